//! A job as the model knows it.

use tagwerk_core::{AttemptEnd, ErrorClass, Failure, JobId, OnUnknown, Rejection, Status};
use tagwerk_engine::command::EnqueueJob;
use tagwerk_engine::row::Progress;

use super::effects::Effect;
use super::turns::Turn;

/// A job, with its whole history.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts of a job that have nothing to do with each other")]
pub(crate) struct Job {
    pub(crate) id: i64,
    pub(crate) queue: String,
    pub(crate) kind: String,
    pub(crate) payload: String,
    pub(crate) priority: u8,
    pub(crate) status: Status,
    pub(crate) version: i64,
    pub(crate) attempt: u32,
    pub(crate) leases: u32,
    pub(crate) retry_count: u32,
    pub(crate) max_retries: u32,
    pub(crate) lease_losses: u32,
    pub(crate) max_lease_losses: u32,
    pub(crate) release_count: u32,
    pub(crate) available_at: i64,
    pub(crate) expires_at: Option<i64>,
    pub(crate) max_age_ms: Option<i64>,
    pub(crate) on_unknown: OnUnknown,
    pub(crate) verify: bool,
    /// `cancel {wait: true}` was called and the attempt still runs.
    pub(crate) stopping: bool,
    /// The job with a newer version of its object.
    pub(crate) superseded_by: Option<i64>,
    pub(crate) turn: Turn,
    /// A person has decided something since the newest lease was granted.
    pub(crate) acted: bool,
    pub(crate) failure: Option<Failure>,
    pub(crate) error: Option<String>,
    pub(crate) lease: Option<Lease>,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) finished_at: Option<i64>,
    pub(crate) result: Option<String>,
    pub(crate) checkpoint: Option<String>,
    pub(crate) progress: Option<Progress>,
    /// What the producer sent.
    pub(crate) sent: EnqueueJob,
    /// Whoever was given the newest lease, or its type, deals with what may have been done.
    pub(crate) knows_doubt: bool,
    pub(crate) effects: Vec<Effect>,
    pub(crate) history: Vec<Past>,
}

/// The lease of a running job.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) worker: String,
    pub(crate) request_id: Option<String>,
    pub(crate) claimed_at: i64,
    pub(crate) expires_at: i64,
    pub(crate) limit_at: Option<i64>,
    pub(crate) length_ms: i64,
    /// The row's bits, by which the server names a lease that it wants to give back.
    pub(crate) bits: u64,
    /// The token, once anybody has seen it.
    pub(crate) token: Option<String>,
}

impl Lease {
    /// From this instant the attempt is over.
    pub(crate) fn ends_at(&self) -> i64 {
        self.limit_at.map_or(self.expires_at, |limit| limit.min(self.expires_at))
    }

    /// If lease end and time limit fall together it is a time-out.
    pub(crate) fn ends_by_limit(&self) -> bool {
        self.limit_at.is_some_and(|limit| limit <= self.expires_at)
    }
}

/// An attempt that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    pub(crate) seq: u32,
    pub(crate) number: u32,
    pub(crate) worker: String,
    pub(crate) claimed_at: i64,
    pub(crate) lease_expires_at: i64,
    pub(crate) ended_at: i64,
    pub(crate) end: AttemptEnd,
    pub(crate) error: Option<String>,
    pub(crate) late: bool,
    pub(crate) token: Option<String>,
    /// What its own report said.
    pub(crate) said: Option<Content>,
    /// What a loss overwrote.
    pub(crate) undo: Option<Undo>,
}

/// What counts when a report is repeated: outcome, class and result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) outcome: &'static str,
    pub(crate) class: Option<ErrorClass>,
    pub(crate) result: Option<String>,
    /// What it was to lead to, as it was sent.
    pub(crate) leads_to: Option<String>,
}

/// What a loss overwrote.
#[derive(Clone, Debug)]
pub(crate) struct Undo {
    pub(crate) retry_count: u32,
    pub(crate) lease_losses: u32,
    pub(crate) verify: bool,
    pub(crate) error: Option<String>,
}

/// Attempts kept at the start and at the end of a history.
const KEPT: (usize, usize) = (10, 90);

impl Job {
    /// The newest lease has ended and this is what is left of it.
    pub(crate) fn newest_past(&self) -> Option<&Past> {
        self.history.last()
    }

    /// Ended attempts that are still kept.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &Past> {
        let cut = self.history.len().saturating_sub(KEPT.1).max(KEPT.0);
        self.history.iter().take(KEPT.0).chain(self.history.iter().skip(cut))
    }

    /// Some lease before the newest one ended otherwise than by its own report or release.
    pub(crate) fn earlier_lost(&self) -> bool {
        self.history.iter().any(|past| past.seq < self.leases && !is_own(past.end))
    }

    pub(crate) const fn is_settled(&self) -> bool {
        matches!(self.status, Status::Completed | Status::Failed | Status::Cancelled)
    }

    /// Time alone has something to do with it.
    pub(crate) fn is_overdue(&self, now: i64) -> bool {
        match self.status {
            Status::Running => self.lease.as_ref().is_some_and(|lease| lease.ends_at() <= now),
            Status::Pending => self.expires_at.is_some_and(|at| at <= now),
            Status::Completed | Status::Failed | Status::Cancelled => false,
        }
    }

    /// It may be handed out.
    pub(crate) fn is_claimable(&self, now: i64) -> bool {
        self.status == Status::Pending && self.available_at <= now && !self.is_overdue(now)
    }

    /// Its place among the claimable ones.
    pub(crate) const fn place(&self) -> (std::cmp::Reverse<u8>, i64, i64) {
        (std::cmp::Reverse(self.priority), self.available_at, self.id)
    }

    /// The attempt that runs ends like this.
    pub(crate) fn end_attempt(&mut self, end: AttemptEnd, at: i64) {
        let Some(lease) = self.lease.take() else { return };
        self.stopping = false;
        self.history.push(Past {
            seq: self.leases,
            number: self.attempt,
            worker: lease.worker,
            claimed_at: lease.claimed_at,
            lease_expires_at: lease.expires_at,
            ended_at: at,
            end,
            error: None,
            late: false,
            token: lease.token,
            said: None,
            undo: None,
        });
    }

    /// It waits (again).
    pub(crate) fn wait(&mut self, due: i64) {
        self.status = Status::Pending;
        self.available_at = due;
        self.failure = None;
        self.turn.let_go = false;
        self.finished_at = None;
    }

    /// It would wait again. Where a newer version runs it is cancelled instead.
    pub(crate) fn requeue(&mut self, due: i64, now: i64) {
        if self.superseded_by.is_some() {
            self.rest(Status::Cancelled, None, now);
        } else {
            self.wait(due);
        }
    }

    /// What somebody hears who still works on it after it was cancelled.
    pub(crate) fn cancelled(&self) -> Rejection {
        match self.superseded_by {
            Some(by) => Rejection::Superseded { by: JobId(by), may_force: false },
            None => Rejection::Cancelled,
        }
    }

    /// It comes to rest.
    pub(crate) fn rest(&mut self, status: Status, failure: Option<Failure>, now: i64) {
        self.status = status;
        self.failure = failure;
        self.finished_at = Some(now);
    }
}

/// Whether the worker's own report or release ended it.
pub(crate) const fn is_own(end: AttemptEnd) -> bool {
    matches!(end, AttemptEnd::Completed | AttemptEnd::Failed(_) | AttemptEnd::Released)
}
