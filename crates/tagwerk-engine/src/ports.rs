//! What the engine needs from the world: a clock, randomness, a place to put answers, somebody who counts.

use std::time::Duration;

use tagwerk_core::Timestamp;

/// The one clock. The real one is wall time at the start plus monotonic time; tests hand in a manual one.
pub trait Clock: Send + Sync + 'static {
    /// The present, for everything that is stored or shown.
    fn now(&self) -> Timestamp;
    /// Time since some fixed moment that never jumps, for measuring how long something took.
    fn monotonic(&self) -> Duration;
}

/// The source of randomness: lease bits and jitter.
pub trait Entropy: Send + Sync + 'static {
    /// 64 random bits that nobody can guess.
    fn u64(&self) -> u64;
}

/// A place to put an answer: a channel's sending end in the HTTP layer, a slot in tests.
pub trait Responder<T>: Send {
    /// Whether somebody still waits for the answer. A parked claim whose client is gone is not served.
    fn is_waiting(&self) -> bool;
    /// Delivers the answer.
    ///
    /// # Errors
    /// Gives the answer back if nobody waits any more; leases in it are then released.
    fn answer(self: Box<Self>, answer: T) -> Result<(), T>;
}

/// An owned [`Responder`].
pub type Reply<T> = Box<dyn Responder<T>>;

impl<T: Send> Responder<T> for std::sync::mpsc::SyncSender<T> {
    fn is_waiting(&self) -> bool {
        true
    }

    fn answer(self: Box<Self>, answer: T) -> Result<(), T> {
        self.try_send(answer).map_err(|refused| match refused {
            std::sync::mpsc::TrySendError::Full(answer)
            | std::sync::mpsc::TrySendError::Disconnected(answer) => answer,
        })
    }
}

/// Somebody who counts what the committer does. Called outside transactions; must not block.
pub trait Observer: Send + Sync + 'static {
    /// A batch was committed: how many commands it answered and how long transaction and commit took.
    fn committed(&self, commands: usize, took: Duration);
    /// An attempt ended by a report after this many milliseconds.
    fn attempt_ended(&self, kind: &str, run_ms: i64);
}

/// An [`Observer`] that looks away.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn committed(&self, _commands: usize, _took: Duration) {}
    fn attempt_ended(&self, _kind: &str, _run_ms: i64) {}
}
