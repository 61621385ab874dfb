//! The one decider. (Under construction: see the docs of `decide`.)

use crate::{Attempt, Ctx, Event, Job, Rejection};

/// What a decision leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The job as it is from now on.
    pub job: Job,
    /// What happens to the history of attempts.
    pub history: History,
    /// What the caller is told.
    pub answer: Answer,
}

/// What happens to the history of attempts.
#[derive(Clone, Debug, PartialEq)]
pub enum History {
    /// Nothing.
    Unchanged,
    /// An attempt has ended and is added.
    Append(Box<Attempt>),
    /// A late report takes the place of a loss: the row with the same `seq` is replaced.
    Amend(Box<Attempt>),
}

/// What the caller is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was done.
    Done,
    /// It had been done before, nothing changed: `Report-Replayed`, or a second discard.
    Replayed,
    /// The caller is refused although the job moved (the holder's next call after `cancel {wait: true}`).
    Refused(Rejection),
}

/// See module.
pub fn decide(job: &Job, event: &Event, ctx: &Ctx) -> Result<Step, Rejection> {
    let _ = (job, event, ctx);
    Err(Rejection::NotClaimable)
}

/// The event that time alone has made due for this job: [`Event::AttemptOver`] or [`Event::Expire`].
#[must_use]
pub fn overdue(job: &Job, now: crate::Timestamp) -> Option<Event> {
    let _ = (job, now);
    None
}
