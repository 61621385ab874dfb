//! A job and its leases.

use crate::call::{Class, Key, Said, Status, View};
use crate::rules::{When, plus_ms};

/// What never changes about a job.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) max_retries: u32,
    pub(crate) max_lease_losses: u32,
    pub(crate) review_unknown: bool,
    pub(crate) timeout_ms: Option<i64>,
    pub(crate) age: Age,
}

/// The maximum age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    None,
    /// So long after its creation or its retry from review.
    Ms(i64),
    /// A moment by the server's clock; cleared by a retry from review.
    Moment,
}

impl Facts {
    /// As an answer shows them.
    pub(crate) fn of(view: &View) -> Self {
        let age = match (view.max_age_ms, view.expires_ms) {
            (Some(ms), _) => Age::Ms(ms),
            (None, Some(_)) => Age::Moment,
            (None, None) => Age::None,
        };
        Self {
            max_retries: view.max_retries,
            max_lease_losses: view.max_lease_losses,
            review_unknown: view.review_unknown,
            timeout_ms: view.timeout_ms,
            age,
        }
    }

    /// When the maximum age is reached of a job that begins (anew).
    pub(crate) fn expires(&self, begun: When) -> Option<When> {
        match self.age {
            Age::None => None,
            Age::Ms(ms) => Some(begun.plus_ms(ms)),
            Age::Moment => Some(When { lo: 0, hi: u64::MAX }),
        }
    }
}

/// Whether a job is there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Life {
    Unborn,
    Here(Box<Job>),
    Gone { status: Status, started: bool, finished: When, key: Option<Key> },
}

/// A job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and all of them go together")]
pub(crate) struct Job {
    pub(crate) status: Status,
    pub(crate) version: i64,
    pub(crate) attempt: u32,
    pub(crate) retry_count: u32,
    pub(crate) max_retries: u32,
    pub(crate) lease_losses: u32,
    pub(crate) release_count: u32,
    pub(crate) verify: bool,
    pub(crate) cancel_requested: bool,
    /// A person has acted since the newest lease was granted.
    pub(crate) acted: bool,
    /// It was failed by a lost lease or by its age, not by a report or a person.
    pub(crate) failed_by_time: bool,
    /// It was handed out at least once.
    pub(crate) started: bool,
    pub(crate) reason: Option<&'static str>,
    pub(crate) result: Option<String>,
    pub(crate) checkpoint: Option<String>,
    /// Oldest first.
    pub(crate) leases: Vec<Lease>,
    /// As it was shown; `None` if it was not shown since it changed.
    pub(crate) due_ms: Option<i64>,
    pub(crate) expires: Option<When>,
    pub(crate) finished: Option<When>,
    pub(crate) key: Option<Key>,
}

/// One lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lease {
    /// `None`: somebody who heard nothing of it.
    pub(crate) worker: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) request: Option<String>,
    pub(crate) claimed: When,
    pub(crate) claimed_ms: Option<i64>,
    /// It was told to hold until then at least.
    pub(crate) until_ms: Option<i64>,
    /// A heartbeat may have moved the end since.
    pub(crate) extended: bool,
    pub(crate) length_ms: Option<i64>,
    /// When it ends, if nothing moves it.
    pub(crate) ends: When,
    /// When the time limit is reached, if there is one.
    pub(crate) limit: Option<When>,
    /// Its holder heard of it.
    pub(crate) heard: bool,
    /// `None` while it lives.
    pub(crate) end: Option<End>,
    pub(crate) said: Option<Said>,
    /// What a late report goes back to.
    pub(crate) before: Option<Before>,
}

/// How a lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    Completed,
    Failed(Class),
    Released,
    LeaseExpired,
    TimedOut,
    Cancelled,
    Forced,
}

impl End {
    pub(crate) const fn is_reported(self) -> bool {
        matches!(self, Self::Completed | Self::Failed(_) | Self::Released)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed(_) => "failed",
            Self::Released => "released",
            Self::LeaseExpired => "lease_expired",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Forced => "forced",
        }
    }

    pub(crate) const fn class(self) -> Option<Class> {
        match self {
            Self::Failed(class) => Some(class),
            _ => None,
        }
    }

    pub(crate) const fn of(said: &Said) -> Self {
        match said {
            Said::Completed { .. } => Self::Completed,
            Said::Failed { class } => Self::Failed(*class),
            Said::Released => Self::Released,
        }
    }
}

/// What a loss overwrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Before {
    pub(crate) retry_count: u32,
    pub(crate) lease_losses: u32,
    pub(crate) verify: bool,
}

/// Who claims.
#[derive(Clone, Debug)]
pub(crate) struct Claimer<'a> {
    pub(crate) worker: Option<&'a str>,
    pub(crate) request: Option<&'a str>,
    pub(crate) length_ms: Option<i64>,
    /// What the client was told its token is, if it was told.
    pub(crate) token: Option<&'a str>,
}

impl Job {
    /// A job that was just accepted.
    pub(crate) fn new(facts: &Facts, key: Option<&Key>, at: When) -> Self {
        Self {
            status: Status::Pending,
            version: 1,
            attempt: 0,
            retry_count: 0,
            max_retries: facts.max_retries,
            lease_losses: 0,
            release_count: 0,
            verify: false,
            cancel_requested: false,
            acted: false,
            failed_by_time: false,
            started: false,
            reason: None,
            result: None,
            checkpoint: None,
            leases: Vec::new(),
            due_ms: None,
            expires: facts.expires(at),
            finished: None,
            key: key.cloned(),
        }
    }

    /// The lease that lives.
    pub(crate) fn live(&self) -> Option<&Lease> {
        self.leases.last().filter(|lease| lease.end.is_none())
    }

    pub(crate) fn live_mut(&mut self) -> Option<&mut Lease> {
        self.leases.last_mut().filter(|lease| lease.end.is_none())
    }

    /// Handed out. `None` if it cannot be.
    pub(crate) fn claimed(&self, by: &Claimer<'_>, facts: &Facts, at: When) -> Option<Self> {
        let too_old = self.expires.is_some_and(|expires| at.lo >= expires.hi);
        if self.status != Status::Pending || too_old {
            return None;
        }
        let mut next = self.moved(Status::Running);
        next.attempt += 1;
        next.started = true;
        next.acted = false;
        let limit = facts.timeout_ms.map(|ms| at.plus_ms(ms));
        let length = by.length_ms.map(|ms| facts.timeout_ms.map_or(ms, |limit| limit.min(ms)));
        next.leases.push(Lease {
            worker: by.worker.map(str::to_owned),
            token: by.token.map(str::to_owned),
            request: by.request.map(str::to_owned),
            claimed: at,
            claimed_ms: None,
            until_ms: None,
            extended: false,
            length_ms: by.length_ms,
            ends: length.map_or(When { lo: at.lo, hi: u64::MAX }, |ms| at.plus_ms(ms)),
            limit,
            heard: false,
            end: None,
            said: None,
            before: None,
        });
        Some(next)
    }

    /// In words, for a claim that got it.
    pub(crate) fn why_not_claimable(&self) -> String {
        match (self.status, self.live()) {
            (Status::Running, Some(lease)) => {
                let worker = lease.worker.as_deref().unwrap_or("somebody");
                let end = crate::words::moment(lease.ends.lo);
                format!("{worker} holds the job under a lease that ends not before {end}")
            }
            (Status::Pending, _) => "its maximum age is over".to_owned(),
            (status, _) => format!("the job is {status:?}"),
        }
    }

    /// A new version, in this state.
    pub(crate) fn moved(&self, status: Status) -> Self {
        Self { status, version: self.version + 1, ..self.clone() }
    }

    /// Ends the lease that lives.
    pub(crate) fn end_lease(&mut self, end: End, said: Option<&Said>) {
        self.cancel_requested = false;
        if let Some(lease) = self.live_mut() {
            lease.end = Some(end);
            lease.said = said.cloned();
        }
    }

    /// It waits (again).
    pub(crate) fn wait(&mut self) {
        self.status = Status::Pending;
        self.due_ms = None;
        self.reason = None;
        self.finished = None;
        self.failed_by_time = false;
    }

    /// It came to rest.
    pub(crate) fn settle(&mut self, status: Status, at: When) {
        self.status = status;
        self.reason = None;
        self.failed_by_time = false;
        self.finished = Some(at);
    }

    /// It goes to review.
    pub(crate) fn review(&mut self, reason: &'static str, at: When) {
        self.settle(Status::Failed, at);
        self.reason = Some(reason);
    }
}

impl Lease {
    /// What was told about its end.
    pub(crate) fn told_until(&mut self, until_ms: i64) {
        self.until_ms = self.until_ms.max(Some(until_ms));
        self.extended = false;
        let Some(claimed_ms) = self.claimed_ms else { return };
        let told = self.claimed.plus_ms(until_ms - claimed_ms);
        self.ends.lo = self.ends.lo.max(told.lo);
        self.ends.hi = if self.ends.hi == u64::MAX { told.hi } else { self.ends.hi.max(told.hi) };
    }

    /// A heartbeat at this moment.
    pub(crate) fn extend(&mut self, at: When) {
        let to = self.length_ms.map_or(When { lo: 0, hi: u64::MAX }, |ms| at.plus_ms(ms));
        self.ends.lo = self.ends.lo.max(to.lo.min(self.limit.map_or(u64::MAX, |limit| limit.lo)));
        self.ends.hi = self.ends.hi.max(to.hi);
        self.extended = true;
    }

    /// The first moment at which it can have ended.
    pub(crate) fn ends_not_before(&self, early_ms: u64) -> u64 {
        plus_ms(self.ends.lo, -i64::try_from(early_ms).unwrap_or(i64::MAX))
    }
}
