//! A small queue that predicts every answer of the real one.
//!
//! It is written from the semantics, not from the code: it calls no function of the core that decides anything, and
//! borrows from it only words (statuses, outcomes, refusals). Given the time, the calls of a batch and whether it was
//! committed, it says what each answer must be, what every job must look like afterwards, what the keys, the history and
//! the ledger must hold. What the semantics leave free it looks up (see [`eye`]) after it has worked out what is allowed.
//!
//! It relies on one thing that callers cannot see: which calls shared a transaction, and that inside of one, settings of
//! types come first, then what time asks for, then calls in order, then hand-outs, then retention. Callers cannot tell,
//! since none of these calls was answered before another was sent.

mod capacity;
mod choice;
mod clock;
mod compare;
mod effects;
mod enqueue;
mod explained;
mod eye;
mod follow;
mod gates;
mod handout;
mod job;
mod keys;
mod ledger;
mod operate;
mod queues;
mod repeats;
mod report;
mod settings;
mod starts;
mod step;
mod time;
mod turns;
mod versions;

use std::collections::{BTreeMap, BTreeSet};

use tagwerk_core::{RetryPolicy, Status};
use tagwerk_engine::row::{FullJob, Lane, Tally, TypeSettings};
use tagwerk_engine::settings::Settings;

use crate::draws::Draws;
use crate::plan::Plan;

use capacity::Capacity;
use clock::NodeClock;
use eye::Eye;
use job::Job;
use keys::{Key, holds};
use ledger::Ledger;
use time::Moment;

pub(crate) use step::{ParkedSeen, Seen, StepSeen};

/// The real queue did what the model does not allow.
#[derive(Clone, Debug)]
pub(crate) struct Contradiction {
    pub(crate) job: Option<i64>,
    pub(crate) what: String,
}

impl Contradiction {
    pub(crate) fn of(job: Option<i64>, what: impl Into<String>) -> Self {
        Self { job, what: what.into() }
    }
}

/// Whether what was seen is allowed.
pub(crate) type Judged = Result<(), Contradiction>;

/// What the model knows of one server process.
#[derive(Clone, Debug)]
struct NodeView {
    clock: NodeClock,
    /// What workers gave back, and until when they are not given it again, on the clock that never jumps.
    avoid: Vec<(String, i64, i64)>,
    /// Leases that a repeated claim was given again.
    replayed: BTreeSet<(i64, u64)>,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    settings: Settings,
    jobs: BTreeMap<i64, Job>,
    /// All jobs of each ordering key.
    orders: BTreeMap<String, BTreeSet<i64>>,
    keys: BTreeMap<String, Key>,
    types: BTreeMap<String, TypeSettings>,
    objects: BTreeMap<versions::Object, versions::Known>,
    ledger: Ledger,
    capacity: Capacity,
    tokens: BTreeSet<String>,
    effect_keys: BTreeSet<String>,
    drawn: Draws,
    nodes: Vec<NodeView>,
    served_until: Option<i64>,
    last_id: i64,
    // What belongs to the transaction that is being judged.
    now: i64,
    created_here: usize,
    /// Jobs that it stored.
    inserted_here: usize,
    touched: BTreeSet<i64>,
    /// Jobs that it brought up to date with time without being asked to look for such.
    fresh: BTreeSet<i64>,
    deleted: BTreeSet<i64>,
    released: Vec<(String, i64)>,
}

/// How long a worker is passed over for what it gave back.
const AVOID_MS: i64 = 30_000;

impl Model {
    pub(crate) fn new(plan: &Plan, drawn: Draws) -> Self {
        Self {
            settings: plan.settings.clone(),
            capacity: plan.caps.as_ref().map(Capacity::of).unwrap_or_default(),
            jobs: BTreeMap::new(),
            orders: BTreeMap::new(),
            keys: BTreeMap::new(),
            types: BTreeMap::new(),
            objects: BTreeMap::new(),
            ledger: Ledger::default(),
            tokens: BTreeSet::new(),
            effect_keys: BTreeSet::new(),
            drawn,
            nodes: Vec::new(),
            served_until: None,
            last_id: 0,
            now: 0,
            created_here: 0,
            inserted_here: 0,
            touched: BTreeSet::new(),
            fresh: BTreeSet::new(),
            deleted: BTreeSet::new(),
            released: Vec::new(),
        }
    }

    /// A server process starts (again): what it had in memory is gone.
    pub(crate) fn node_started(&mut self, node: usize, wall: i64, mono: i64) {
        self.capacity.forget_turns();
        let view = NodeView {
            clock: NodeClock::started(wall, mono, self.served_until),
            avoid: Vec::new(),
            replayed: BTreeSet::new(),
        };
        if node < self.nodes.len() {
            self.nodes[node] = view;
        } else {
            self.nodes.push(view);
        }
    }

    /// Everything the store holds, compared with everything the model holds.
    pub(crate) fn compare_all(&self, jobs: &[FullJob], ledger: &[(Lane, Tally)]) -> Judged {
        let found: BTreeMap<i64, &FullJob> = jobs.iter().map(|full| (full.row.job.id.0, full)).collect();
        for job in self.jobs.values() {
            match found.get(&job.id) {
                None => return Err(Contradiction::of(Some(job.id), "it is not in the store any more")),
                Some(full) => compare::stored(job, &full.row)
                    .map_err(|what| Contradiction::of(Some(job.id), format!("the store is wrong: {what}")))?,
            }
            if found.get(&job.id).is_some_and(|full| full.detail.payload != job.payload) {
                return Err(Contradiction::of(
                    Some(job.id),
                    format!("its payload must be `{}`", job.payload),
                ));
            }
        }
        if let Some(id) = found.keys().find(|id| !self.jobs.contains_key(id)) {
            return Err(Contradiction::of(Some(*id), "it is in the store and must not be"));
        }
        self.ledger
            .compare(self.jobs.values(), ledger)
            .map_err(|what| Contradiction::of(None, format!("the ledger is wrong: {what}")))
    }

    /// Jobs by where they stand, and why a job that waits does so: `None` if it waits for nothing that is allowed at the
    /// end of a run in which everybody was honest for long enough.
    pub(crate) fn stuck(&self, now: i64) -> Option<(i64, String)> {
        self.jobs.values().find_map(|job| match job.status {
            Status::Running => Some((job.id, "it still runs".to_owned())),
            Status::Pending if self.waits_for_a_pause(job) => None,
            Status::Pending if job.available_at <= now => {
                Some((job.id, format!("it waits though it is due since {} ms", now - job.available_at)))
            }
            _ => None,
        })
    }

    /// Nothing runs and nothing waits.
    pub(crate) fn is_at_rest(&self) -> bool {
        let waits_for_good = |job: &Job| job.expires_at.is_none() && self.waits_for_a_pause(job);
        self.jobs.values().all(|job| job.is_settled() || waits_for_good(job))
    }

    /// Its queue is paused, or that of the job before it in the order of its key.
    pub(crate) fn waits_for_a_pause(&self, job: &Job) -> bool {
        let is_paused = |job: &Job| job.status == Status::Pending && self.capacity.is_paused(&job.queue);
        job.status == Status::Pending && (is_paused(job) || self.before(job).is_some_and(is_paused))
    }

    /// The instant at which the last of the waiting jobs becomes due.
    pub(crate) fn last_due(&self) -> Option<i64> {
        let waiting = self.jobs.values().filter(|job| job.status == Status::Pending);
        waiting.map(|job| job.available_at).max()
    }

    /// How many jobs have come to which end.
    pub(crate) fn ends(&self) -> BTreeMap<&'static str, u64> {
        let mut ends = BTreeMap::new();
        for job in self.jobs.values() {
            let end = job.failure.map_or(job.status.name(), |failure| failure.reason.name());
            *ends.entry(end).or_default() += 1;
        }
        ends
    }

    /// A job that retention should have deleted long ago: it could have been for longer than `grace_ms`.
    pub(crate) fn overstayed(&self, now: i64, grace_ms: i64) -> Option<i64> {
        let keep = |job: &&Job| {
            self.keeps_ms(job.status).zip(job.finished_at).is_some_and(|(ms, at)| at + ms + grace_ms < now)
        };
        self.jobs.values().find(keep).map(|job| job.id)
    }

    /// How long jobs of this status are kept after their end, if they are deleted at all.
    fn keeps_ms(&self, status: Status) -> Option<i64> {
        match status {
            Status::Completed => self.settings.retention.completed_ms,
            Status::Cancelled => self.settings.retention.cancelled_ms,
            Status::Pending | Status::Running | Status::Failed => None,
        }
    }

    fn job(&self, id: i64) -> Result<&Job, Contradiction> {
        self.jobs
            .get(&id)
            .ok_or_else(|| Contradiction::of(Some(id), "the answer shows it, but there is no such job"))
    }

    /// A change of state: the version rises by one.
    fn change(&mut self, id: i64, change: impl FnOnce(&mut Job)) {
        let now = self.now;
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let before = job.clone();
        change(job);
        job.version += 1;
        job.updated_at = now;
        self.ledger.changed(&before, job);
        self.touched.insert(id);
    }

    /// A change that is none of state.
    fn note(&mut self, id: i64, change: impl FnOnce(&mut Job)) {
        if let Some(job) = self.jobs.get_mut(&id) {
            change(job);
            self.touched.insert(id);
        }
    }

    /// Brings a job up to date with time.
    fn settle(&mut self, id: i64, eye: &Eye<'_>) {
        let now = self.now;
        let is_overdue = |model: &Self| model.jobs.get(&id).is_some_and(|job| job.is_overdue(now));
        // An attempt that is over may leave a job that is past its maximum age; more there is not.
        for _ in 0..2 {
            if is_overdue(self) {
                let policy = self.policy(id);
                let moment = Moment { now, policy, eye };
                self.change(id, |job| time::pass(job, &moment));
            }
        }
    }

    /// Back-off of a job: each field by itself from job, type and server.
    fn policy(&self, id: i64) -> RetryPolicy {
        let server = self.settings.retry;
        let Some(job) = self.jobs.get(&id) else { return server };
        let own = job.sent.retry;
        let set = self.types.get(&job.kind).map(|set| set.retry).unwrap_or_default();
        RetryPolicy {
            base_ms: own.base_ms.or(set.base_ms).unwrap_or(server.base_ms),
            factor: own.factor.or(set.factor).unwrap_or(server.factor),
            cap_ms: own.cap_ms.or(set.cap_ms).unwrap_or(server.cap_ms),
            jitter: own.jitter.or(set.jitter).unwrap_or(server.jitter),
        }
    }

    /// Retention has deleted jobs: only such as have ended long enough ago.
    fn prune(&mut self, eye: &Eye<'_>) -> Judged {
        for id in &eye.erased {
            if self.deleted.remove(id) {
                continue;
            }
            let job = self.job(*id)?;
            let old = self.keeps_ms(job.status).zip(job.finished_at);
            if old.is_none_or(|(ms, at)| at + ms > self.now) {
                let what =
                    format!("it was deleted while it is {} since {:?}", job.status.name(), job.finished_at);
                return Err(Contradiction::of(Some(*id), what));
            }
            self.erase(*id);
        }
        match self.deleted.pop_first() {
            Some(id) => Err(Contradiction::of(Some(id), "it was deleted by an operator, but its row stays")),
            None => Ok(()),
        }
    }

    /// What the transaction wrote is what the model expects, no more and no less.
    fn compare_written(&mut self, eye: &Eye<'_>) -> Judged {
        for id in std::mem::take(&mut self.touched) {
            let Some(job) = self.jobs.get(&id) else { continue };
            let Some(row) = eye.last(id) else {
                return Err(Contradiction::of(Some(id), "it must change, but nothing was written"));
            };
            compare::stored(job, row)
                .map_err(|what| Contradiction::of(Some(id), format!("it was written wrongly: {what}")))?;
        }
        for row in &eye.written {
            let id = row.job.id.0;
            if eye.erased.contains(&id) {
                continue;
            }
            compare::stored(self.job(id)?, eye.last(id).unwrap_or(row)).map_err(|what| {
                Contradiction::of(Some(id), format!("it was written and must not change: {what}"))
            })?;
        }
        self.compare_attempts(eye)?;
        self.compare_keys(eye)
    }

    fn compare_attempts(&self, eye: &Eye<'_>) -> Judged {
        for ((id, seq), got) in &eye.attempts {
            let Some(job) = self.jobs.get(id) else { continue };
            let Some(past) = job.history.iter().find(|past| past.seq == *seq) else {
                return Err(Contradiction::of(
                    Some(*id),
                    format!("attempt {seq} is in its history and must not be"),
                ));
            };
            compare::attempt(past, got).map_err(|what| Contradiction::of(Some(*id), what))?;
        }
        Ok(())
    }

    fn compare_keys(&mut self, eye: &Eye<'_>) -> Judged {
        for (name, got) in &eye.keys {
            if got.is_none()
                && let Some(key) = self.keys.get(*name)
                && let Some(standing) = key.tombstone
                && !holds(key, &standing, self.now)
            {
                self.keys.remove(*name);
            }
            let want = self.keys.get(*name);
            compare::key(name, want, *got).map_err(|what| {
                Contradiction::of(
                    want.map(|key| key.owner),
                    format!("key {name} was written wrongly: {what}"),
                )
            })?;
        }
        Ok(())
    }
}
