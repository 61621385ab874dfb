//! What operators say about queues.

use tagwerk_core::{QueueSettings, limits};

use crate::row::QueueRow;

/// What is to be said about a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlQueue {
    /// Its name. It need not have had a job yet.
    pub queue: String,
    /// What.
    pub control: QueueControl,
}

/// See [`ControlQueue`].
#[derive(Clone, Debug, PartialEq)]
pub enum QueueControl {
    /// These are its bounds from now on.
    Set(QueueSettings),
    /// Hand out none of its jobs.
    Pause {
        /// Why.
        reason: String,
        /// Who says so.
        by: Option<String>,
    },
    /// Lift one reason; the only one, if none is named.
    Resume {
        /// Which.
        reason: Option<String>,
    },
    /// Refuse producers, let work go on.
    Drain {
        /// Why.
        reason: Option<String>,
        /// Who says so.
        by: Option<String>,
    },
    /// Take new jobs again.
    Open,
}

/// Why nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueRefusal {
    /// Several reasons hold it and none was named.
    #[error("queue {queue} is paused for several reasons; name one of: {}", quoted(.reasons))]
    SeveralReasons {
        /// The queue.
        queue: String,
        /// The reasons.
        reasons: Vec<String>,
    },
    /// Other reasons hold it.
    #[error("queue {queue} is not paused for this reason, but for: {}", quoted(.reasons))]
    OtherReasons {
        /// The queue.
        queue: String,
        /// The reasons.
        reasons: Vec<String>,
    },
    /// No further reason fits.
    #[error("queue {queue} is paused for {} reasons already; lift one first", limits::PAUSE_REASONS_MAX)]
    TooManyReasons {
        /// The queue.
        queue: String,
    },
}

/// Answer to [`ControlQueue`]: what is said about the queue now.
pub type QueueAnswer = Result<QueueRow, QueueRefusal>;

fn quoted(reasons: &[String]) -> String {
    let quoted: Vec<String> = reasons.iter().map(|reason| format!("{reason:?}")).collect();
    quoted.join(", ")
}
