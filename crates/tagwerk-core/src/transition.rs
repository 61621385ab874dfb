//! The one decider: whether a job may move, and where to.
//!
//! [`decide`] is a pure function of the job, the event and the context. Live requests, the rescue of lost leases,
//! operator actions, replays and simulations all go through it, so there is no second opinion anywhere: no `CASE` in a
//! store, no `if` in a handler. Stores only guard what was decided here (unique keys, conditional updates).
//!
//! | file | question |
//! |---|---|
//! | `claim` | may this job be handed out? |
//! | `caller` | is the caller the holder, late, repeated or stale? |
//! | `contact` | heartbeat and checkpoint |
//! | `effect` | the effect journal |
//! | `report` | complete, fail and release: in time, late, repeated |
//! | `setback` | what follows an attempt that did not succeed, however it ended |
//! | `time_up` | the end of a lease, of the time limit, of the maximum age |
//! | `supersede` | a newer version of the job's object |
//! | `operate` | what people do |
//! | `state` | the only places where `status` is written |
//!
//! Deliberately absent: which job is claimed first, limits, order keys (the store's business), and anything that would
//! need to look at a second job.

mod caller;
mod claim;
mod contact;
mod effect;
mod operate;
mod report;
mod setback;
mod state;
mod supersede;
mod time_up;

use crate::{Attempt, Ctx, Event, Job, Rejection, Status, Timestamp};

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

impl Step {
    /// A step that changes nothing, because the same had been done before.
    fn replayed(job: &Job) -> Self {
        Self { job: job.clone(), history: History::Unchanged, answer: Answer::Replayed }
    }
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

/// Decides what an event does to a job.
///
/// A job for which [`overdue`] names an event is judged for that event only: whoever has another event decides and
/// stores the overdue one first. So an attempt that is over can never be extended, reported as live or counted as
/// running, whether or not anybody has rewritten its row yet.
///
/// Every [`Answer::Done`] except that of a heartbeat, a checkpoint or an effect raises `version` by one and sets `updated_at`.
pub fn decide(job: &Job, event: &Event, ctx: &Ctx) -> Result<Step, Rejection> {
    refuse_out_of_turn(job, event, ctx.now)?;
    match event {
        Event::Claim(grant) => claim::claim(job, grant, ctx.now),
        Event::Heartbeat(caller) => contact::heartbeat(job, caller, ctx.now),
        Event::Checkpoint(caller) => contact::checkpoint(job, caller, ctx.now),
        Event::Effect(caller, name, call) => effect::effect(job, caller, (name, call), ctx.now),
        Event::Assume(assume) => Ok(effect::assume(job, assume, ctx.now)),
        Event::Unheard(bits, report) => report::unheard(job, *bits, report, ctx),
        Event::Report(caller, report) => report::report(job, caller, report, ctx),
        Event::AttemptOver => time_up::attempt_over(job, ctx),
        Event::Expire => Ok(time_up::expire(job, ctx.now)),
        Event::Supersede { by } => Ok(supersede::supersede(job, *by, ctx.now)),
        Event::Operate { action, seen_version } => operate::operate(job, action, *seen_version, ctx.now),
    }
}

/// The event that time alone has made due for this job: [`Event::AttemptOver`] or [`Event::Expire`].
///
/// `t = ends_at` of a lease is over and `t = expires_at` is expired. After the event has been applied at `now`, nothing
/// more is overdue at that same `now`.
#[must_use]
pub fn overdue(job: &Job, now: Timestamp) -> Option<Event> {
    match job.status {
        Status::Running => {
            job.lease.as_ref().is_some_and(|lease| lease.ends_at() <= now).then_some(Event::AttemptOver)
        }
        Status::Pending => job.expires_at.is_some_and(|at| at <= now).then_some(Event::Expire),
        Status::Completed | Status::Failed | Status::Cancelled => None,
    }
}

/// Time goes first: nothing else is decided while something is overdue, and time's own events only when they are.
fn refuse_out_of_turn(job: &Job, event: &Event, now: Timestamp) -> Result<(), Rejection> {
    let in_turn = match overdue(job, now) {
        Some(due) => due == *event,
        None => !matches!(event, Event::AttemptOver | Event::Expire),
    };
    if in_turn {
        Ok(())
    } else {
        Err(Rejection::DoesNotApply { id: job.id, status: job.status, call: event.call() })
    }
}
