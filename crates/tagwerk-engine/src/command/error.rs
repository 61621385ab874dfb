//! Why a whole command failed.

/// Why a whole command failed. Nothing of it has happened, except after [`EngineError::OutcomeUnknown`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The server is shutting down.
    #[error("the server is shutting down; send the request to another one or again in a moment")]
    Draining,
    /// More is queued up than the server takes.
    #[error("too many requests are waiting; send it again in a moment")]
    Overloaded,
    /// Somebody else holds the store.
    #[error("the store is busy; send it again in a moment")]
    StoreBusy,
    /// The disk is full.
    #[error("the disk that holds the store is full; free some space, the server goes on by itself")]
    StoreFull,
    /// The store cannot be written.
    #[error("the store is read-only; check the permissions of its file and folder")]
    StoreReadOnly,
    /// The store is damaged.
    #[error("the store is damaged; run `tagwerk check --integrity` and restore a backup")]
    StoreDamaged,
    /// The file of the store was taken away or is another one.
    #[error("the file of the store is gone or is another one; put it back, the server goes on by itself")]
    StoreGone,
    /// The row of a job that the command names cannot be read. Nothing has changed; other jobs are not touched by it.
    #[error(
        "a row that this call needs is damaged and cannot be read; `tagwerk check` names the job, and DELETE without a version removes it"
    )]
    JobDamaged,
    /// Nobody knows whether it was stored. Repeat only with an idempotency key, lease token or request id.
    #[error(
        "nobody knows whether the request was stored; repeat it only with an idempotency key, lease or request_id"
    )]
    OutcomeUnknown,
    /// A fault of the server's own; it is in the log.
    #[error("the server failed on this request; the reason is in its log")]
    Internal,
}
