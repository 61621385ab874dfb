//! Whose turn it is in the order of an ordering key. Section 6 of the semantics.
//!
//! A job that waits may be handed out when no job of its key runs and it has the lowest id among those that wait or hold.
//! A failed job holds unless it was to be skipped, or a person has let the others go on. Everything is worked out anew from
//! all jobs of the key. Only at the end of a transaction it is compared with what the rows say.

use std::collections::{BTreeMap, BTreeSet};

use tagwerk_core::{JobId, OnHeadFailure, Status};
use tagwerk_engine::query::{Explanation, Place, WhyKind};
use tagwerk_engine::row::JobRow;

use super::Model;
use super::job::Job;

/// Where a job stands in the order of its key, as far as its status does not say so.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// A person has let those behind it go on.
    pub(super) let_go: bool,
    /// It waits for its turn, as its row says.
    blocked: bool,
}

impl Job {
    /// The ordering key with which it came.
    pub(super) fn ordering_key(&self) -> Option<&str> {
        self.sent.ordering.as_ref().map(|ordering| &*ordering.key)
    }

    fn on_head_failure(&self) -> OnHeadFailure {
        self.sent.ordering.as_ref().and_then(|ordering| ordering.on_head_failure).unwrap_or_default()
    }

    /// It waits for its turn, as its row must say.
    pub(super) const fn is_blocked(&self) -> bool {
        self.turn.blocked
    }

    /// It waits, runs, or holds in the order of its key.
    fn stands(&self) -> bool {
        match self.status {
            Status::Pending | Status::Running => self.sent.ordering.is_some(),
            Status::Failed => self.holds(),
            Status::Completed | Status::Cancelled => false,
        }
    }

    /// It failed and holds back those behind it, if there are any.
    pub(super) fn holds(&self) -> bool {
        let blocks = self.on_head_failure() == OnHeadFailure::Block && !self.turn.let_go;
        self.sent.ordering.is_some() && self.status == Status::Failed && blocks
    }
}

/// Whose turn it is.
pub(super) struct Turns<'m> {
    first: BTreeMap<&'m str, Option<i64>>,
    /// Keys of which the transaction has ended something in passing. Whether a claim saw that already is free.
    fresh: BTreeSet<&'m str>,
}

impl Turns<'_> {
    /// Whether it is the turn of this job. That of any job without a key it is always.
    pub(super) fn has(&self, job: &Job) -> bool {
        job.ordering_key().is_none_or(|key| self.first.get(key) == Some(&Some(job.id)))
    }

    /// Whether every claim must have seen that it is its turn.
    pub(super) fn may_go(&self, job: &Job) -> bool {
        self.has(job) && job.ordering_key().is_none_or(|key| !self.fresh.contains(key))
    }
}

impl Model {
    /// A new job lines up.
    pub(super) fn line_up(&mut self, job: &Job) {
        if let Some(key) = job.ordering_key() {
            self.orders.entry(key.to_owned()).or_default().insert(job.id);
        }
    }

    /// A job is gone.
    pub(super) fn leave_order(&mut self, job: &Job) {
        if let Some(order) = job.ordering_key().and_then(|key| self.orders.get_mut(key)) {
            order.remove(&job.id);
        }
    }

    fn in_line(&self, key: &str) -> impl Iterator<Item = &Job> {
        let ids = self.orders.get(key).into_iter().flatten();
        ids.filter_map(|id| self.jobs.get(id)).filter(|job| job.stands())
    }

    /// Whom all others of a key wait for: who runs, or else the lowest.
    fn first(&self, key: &str) -> Option<&Job> {
        let mut lowest = None;
        for job in self.in_line(key) {
            if job.status == Status::Running {
                return Some(job);
            }
            lowest = lowest.or(Some(job));
        }
        lowest
    }

    /// For whom a job waits; nobody if it is its turn, or if it has no ordering key.
    pub(super) fn before(&self, job: &Job) -> Option<&Job> {
        self.first(job.ordering_key()?).filter(|first| first.id != job.id)
    }

    /// Whose turn it is, of all keys.
    pub(super) fn turns(&self) -> Turns<'_> {
        let first = self.orders.keys().map(|key| (key.as_str(), self.first(key).map(|job| job.id)));
        let fresh = self.fresh.iter().filter_map(|id| self.jobs.get(id)?.ordering_key());
        Turns { first: first.collect(), fresh: fresh.collect() }
    }

    /// The transaction is over: the rows must say who waits for its turn.
    pub(super) fn give_turns(&mut self) {
        let mut wrong = Vec::new();
        for (key, ids) in &self.orders {
            let first = self.first(key).map(|job| job.id);
            let jobs = ids.iter().filter_map(|id| self.jobs.get(id));
            let blocked = |job: &Job| job.status == Status::Pending && first != Some(job.id);
            wrong.extend(
                jobs.filter(|job| blocked(job) != job.turn.blocked).map(|job| (job.id, blocked(job))),
            );
        }
        for (id, blocked) in wrong {
            self.note(id, |job| job.turn.blocked = blocked);
        }
    }

    /// Those in review for whom somebody waits, if nothing goes on any more without a decision about them.
    pub(crate) fn wait_for_people(&self) -> Vec<i64> {
        let moves = |job: &Job| match job.status {
            Status::Running => true,
            Status::Pending if self.waits_for_a_pause(job) => false,
            Status::Pending => self.before(job).is_none_or(|first| first.status != Status::Failed),
            Status::Completed | Status::Failed | Status::Cancelled => false,
        };
        if self.jobs.values().any(moves) {
            return Vec::new();
        }
        let waits = |key: &str| self.in_line(key).any(|job| job.status == Status::Pending);
        let firsts = self.orders.keys().filter(|key| waits(key)).filter_map(|key| self.first(key));
        firsts.filter(|job| job.status == Status::Failed).map(|job| job.id).collect()
    }

    fn behind(&self, job: &Job) -> usize {
        let key = job.ordering_key().unwrap_or_default();
        self.in_line(key).filter(|other| other.id > job.id && other.status == Status::Pending).count()
    }

    /// Judges what people are told about the place of a job.
    pub(crate) fn placed(&self, id: i64, told: Place) -> Result<(), String> {
        let Some(job) = self.jobs.get(&id) else { return Ok(()) };
        let before = self.before(job).filter(|_| job.status == Status::Pending);
        let blocks = job.holds().then(|| self.behind(job));
        let want = Place { blocked_by: before.map(|first| JobId(first.id)), blocks };
        if told == want {
            Ok(())
        } else {
            Err(format!("its place must be {want:?}, it is shown as {told:?}"))
        }
    }

    /// Judges whether `explain` names who comes first, and nobody where nobody does.
    pub(super) fn explained_turn(&self, job: &Job, told: &Explanation) -> Result<(), String> {
        let said = told.reasons.iter().find(|why| why.kind == WhyKind::BlockedByKey);
        let waits =
            job.status == Status::Pending && told.reasons.iter().all(|why| why.kind != WhyKind::Expired);
        match (self.before(job).filter(|_| waits), said) {
            (None, None) => Ok(()),
            (Some(first), Some(why)) if why.detail.starts_with(&format!("Job {} ", first.id)) => Ok(()),
            (first, said) => {
                let first = first.map(|job| job.id);
                Err(format!("job {first:?} comes first by the ordering key, explain says {said:?}"))
            }
        }
    }
}

/// The place of a job as its row has it.
pub(super) fn compare(job: &Job, row: &JobRow) -> Result<(), String> {
    let want =
        job.ordering_key().filter(|_| job.stands()).map(|key| (key, job.on_head_failure(), job.turn.blocked));
    let got = row.order.as_ref().map(|order| (&*order.key, order.on_head_failure, order.blocked));
    if want == got { Ok(()) } else { Err(format!("its place in the order must be {want:?}, it is {got:?}")) }
}
