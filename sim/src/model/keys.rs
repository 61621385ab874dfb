//! Who holds an idempotency key. Section 4 of the semantics.

use tagwerk_core::Status;
use tagwerk_core::idempotency::Scope;
use tagwerk_engine::command::EnqueueJob;

/// A key with the job that has it.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) owner: i64,
    pub(crate) scope: Scope,
    pub(crate) ttl_ms: i64,
    pub(crate) first: Print,
    /// What is left of a job that was deleted.
    pub(crate) tombstone: Option<Standing>,
}

/// Where the job that has a key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) status: Status,
    pub(crate) started: bool,
    pub(crate) finished_at: Option<i64>,
}

/// What makes two enqueues with one key the same: type, queue, payload bytes, retries, subject, as sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Print {
    kind: String,
    queue: Option<String>,
    payload: String,
    max_retries: Option<u32>,
    subject: Option<tagwerk_engine::row::Subject>,
}

impl Print {
    pub(crate) fn of(job: &EnqueueJob) -> Self {
        Self {
            kind: job.kind.clone(),
            queue: job.queue.clone(),
            payload: payload_of(job),
            max_retries: job.max_retries,
            subject: job.subject.clone(),
        }
    }
}

pub(crate) fn payload_of(job: &EnqueueJob) -> String {
    job.payload.clone().unwrap_or_else(|| "{}".to_owned())
}

/// The table of section 4: a column for each standing.
pub(crate) fn holds(key: &Key, standing: &Standing, now: i64) -> bool {
    #[derive(Clone, Copy)]
    enum Cell {
        Yes,
        No,
        Ttl,
    }
    use Cell::{No, Ttl, Yes};
    let column = match (standing.status, standing.started) {
        (Status::Pending, false) => 0,
        (Status::Pending, true) => 1,
        (Status::Running, _) => 2,
        (Status::Failed, _) => 3,
        (Status::Completed, _) => 4,
        (Status::Cancelled, false) => 5,
        (Status::Cancelled, true) => 6,
    };
    let row = match key.scope {
        Scope::Waiting => [Yes, No, No, No, No, No, No],
        Scope::Unfinished => [Yes, Yes, Yes, No, No, No, No],
        Scope::Ttl => [Yes, Yes, Yes, Yes, Ttl, No, Ttl],
        Scope::Forever => [Yes; 7],
    };
    match row[column] {
        Yes => true,
        No => false,
        Ttl => standing.finished_at.is_some_and(|at| now < at + key.ttl_ms),
    }
}
