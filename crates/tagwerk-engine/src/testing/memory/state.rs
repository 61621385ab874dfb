//! Everything a memory store holds, and the orders in which it can be walked.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tagwerk_core::gate::LimitSettings;
use tagwerk_core::limits::{ATTEMPTS_FIRST, ATTEMPTS_LAST, JOB_ID_MAX};
use tagwerk_core::{Attempt, JobId, Priority, Status, Timestamp};

use super::alerts::Alerts;
use super::cow::CowMap;
use super::gates::Gate;
use crate::row::{
    ActionRow, AttemptRow, AuditRow, Detail, FullJob, JobRow, KeyRow, Lane, LaneId, LimitRef, OrderRows,
    QueueRow, Special, Tally, TypeSettings, VersionRow, VersionWrite, Versioned,
};
use crate::store::SpecialName;

/// A set in order.
type CowSet<K> = CowMap<K, ()>;

/// Place of a pending job in claim order: priority descending, due time, id.
pub(super) type Place = (Reverse<Priority>, Timestamp, JobId);

/// Queue, type and space.
type LaneNames = (Arc<str>, Arc<str>, Option<Arc<str>>);

/// The whole content of a store. Its clone is cheap.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// The next id to be given out.
    pub(super) next_id: i64,
    /// All jobs.
    pub(super) jobs: CowMap<JobId, Arc<Record>>,
    /// Jobs whose row cannot be decoded any more, because a test said so.
    pub(super) damaged: BTreeSet<JobId>,
    /// Jobs whose cold part cannot be decoded any more, because a test said so.
    pub(super) damaged_details: BTreeSet<JobId>,
    /// Pending jobs that are not blocked, in claim order.
    pub(super) pending: CowSet<Place>,
    /// Running jobs by the end of their attempt.
    pub(super) ends: CowSet<(Timestamp, JobId)>,
    /// Pending jobs by their maximum age.
    pub(super) ages: CowSet<(Timestamp, JobId)>,
    /// Jobs that stand in the order of an ordering key.
    pub(super) ordered: CowSet<(Arc<str>, JobId)>,
    /// Idempotency keys.
    pub(super) keys: CowMap<String, KeyRow>,
    /// Lanes by queue and type.
    pub(super) lanes: BTreeMap<LaneNames, Lane>,
    /// Lanes with limits or a fair key, by class.
    pub(super) special: BTreeMap<(LaneId, Arc<Special>), Lane>,
    /// Settings of limits.
    pub(super) limits: BTreeMap<String, LimitSettings>,
    /// Starts and holds of limits.
    pub(super) gates: BTreeMap<LimitRef, Gate>,
    /// When the keys of a queue were last given something; `None` = jobs without a key.
    pub(super) turns: BTreeMap<(Arc<str>, Option<String>), u64>,
    /// The ledger.
    pub(super) ledger: BTreeMap<LaneId, Tally>,
    /// Settings of types.
    pub(super) types: BTreeMap<String, TypeSettings>,
    /// The highest version of each object.
    pub(super) versions: CowMap<Versioned, VersionRow>,
    /// Alerts.
    pub(super) alerts: Alerts,
    /// The audit log.
    pub(super) audit: Vec<AuditRow>,
    /// What was ever said about queues.
    pub(super) queues: BTreeMap<String, QueueRow>,
    /// Last claim by queue.
    pub(super) claims: BTreeMap<String, Timestamp>,
    /// Until when somebody has certainly served.
    pub(super) served_until: Option<Timestamp>,
}

/// A job with everything that belongs to it. Parts that are rarely written are shared between versions.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// Hot part.
    pub(super) row: JobRow,
    /// Cold part.
    pub(super) detail: Arc<Detail>,
    /// What has happened to it.
    pub(super) history: Arc<History>,
}

/// What has happened to a job.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// Attempts by `seq`.
    pub(super) attempts: BTreeMap<u32, AttemptRow>,
    /// Actions in the order in which they were done.
    pub(super) actions: Vec<ActionRow>,
    /// Payloads that were replaced after they had been handed out.
    pub(super) old_payloads: Vec<(Timestamp, String)>,
}

impl History {
    /// Adds an attempt or replaces the one with its `seq`, and lets go of the middle of a long history.
    pub(super) fn keep(&mut self, attempt: &Attempt) {
        let fresh = AttemptRow { attempt: attempt.clone(), refused_calls: 0, last_refused: None };
        self.attempts.entry(attempt.seq).or_insert(fresh).attempt = attempt.clone();
        if self.attempts.len() > (ATTEMPTS_FIRST + ATTEMPTS_LAST) as usize {
            let gone = *self.attempts.keys().nth(ATTEMPTS_FIRST as usize).expect("there are more");
            self.attempts.remove(&gone);
        }
    }
}

impl Record {
    /// The job as it is shown in full.
    pub(super) fn full(&self) -> FullJob {
        FullJob { row: self.row.clone(), detail: Detail::clone(&self.detail) }
    }
}

impl Default for State {
    fn default() -> Self {
        Self {
            next_id: 1,
            jobs: CowMap::default(),
            damaged: BTreeSet::new(),
            damaged_details: BTreeSet::new(),
            pending: CowMap::default(),
            ends: CowMap::default(),
            ages: CowMap::default(),
            ordered: CowMap::default(),
            keys: CowMap::default(),
            lanes: BTreeMap::new(),
            special: BTreeMap::new(),
            limits: BTreeMap::new(),
            gates: BTreeMap::new(),
            turns: BTreeMap::new(),
            ledger: BTreeMap::new(),
            types: BTreeMap::new(),
            versions: CowMap::default(),
            alerts: Alerts::default(),
            audit: Vec::new(),
            queues: BTreeMap::new(),
            claims: BTreeMap::new(),
            served_until: None,
        }
    }
}

impl State {
    /// Takes `n` ids; `None` when there are not that many any more.
    pub(super) fn take_ids(&mut self, n: usize) -> Option<JobId> {
        let first = self.next_id;
        let end = first.checked_add(i64::try_from(n).ok()?)?;
        (end - 1 <= JOB_ID_MAX).then(|| {
            self.next_id = end;
            JobId(first)
        })
    }

    /// The hot part of a job.
    pub(super) fn row(&self, id: JobId) -> Option<&JobRow> {
        self.jobs.get(&id).map(|record| &record.row)
    }

    /// Writes a job, new or changed, and moves it to its places in every order.
    pub(super) fn set(&mut self, record: Record) {
        self.leave_places(record.row.job.id);
        let job = &record.row.job;
        if job.status == Status::Pending {
            if !record.row.is_blocked() {
                self.pending.insert(place(&record.row), ());
            }
            if let Some(at) = job.expires_at {
                self.ages.insert((at, job.id), ());
            }
        }
        if let Some(lease) = running_lease(&record.row) {
            self.ends.insert((lease.ends_at(), job.id), ());
        }
        if let Some(order) = &record.row.order {
            self.ordered.insert((Arc::clone(&order.key), job.id), ());
        }
        self.jobs.insert(job.id, Arc::new(record));
    }

    /// Changes the history of a job; nothing if the job is not there.
    pub(super) fn amend(&mut self, id: JobId, change: impl FnOnce(&mut History)) {
        if let Some(record) = self.jobs.get(&id) {
            let mut record = Record::clone(record);
            change(Arc::make_mut(&mut record.history));
            self.jobs.insert(id, Arc::new(record));
        }
    }

    /// Adds to the audit log.
    pub(super) fn append_audit(&mut self, entries: &[AuditRow]) {
        for entry in entries {
            let n = self.audit.last().map_or(1, |last| last.n + 1);
            self.audit.push(AuditRow { n, ..entry.clone() });
        }
    }

    /// Writes versions of objects.
    pub(super) fn put_versions(&mut self, writes: &[VersionWrite]) {
        for write in writes {
            match write {
                VersionWrite::Raise { of, version, job } => {
                    let row = VersionRow { version: *version, job: *job, open: vec![*job] };
                    self.versions.insert(of.clone(), row);
                }
                VersionWrite::Open { of, job } => {
                    let mut row = self.versions.get(of).expect("there has been a version").clone();
                    if let Err(at) = row.open.binary_search(job) {
                        row.open.insert(at, *job);
                    }
                    self.versions.insert(of.clone(), row);
                }
            }
        }
    }

    /// What is said about queues.
    pub(super) fn queue_rows(&self) -> Vec<QueueRow> {
        self.queues.values().filter(|row| !row.is_plain()).cloned().collect()
    }

    /// Whether the jobs of this queue are held back.
    pub(super) fn is_paused(&self, queue: &str) -> bool {
        self.queues.get(queue).is_some_and(|row| !row.paused.is_empty())
    }

    /// Takes a job out.
    pub(super) fn erase(&mut self, id: JobId) {
        self.leave_places(id);
        self.damaged.remove(&id);
        self.damaged_details.remove(&id);
        if let Some(of) = self.jobs.get(&id).and_then(|record| versioned(record))
            && let Some(mut row) = self.versions.get(&of).cloned()
        {
            row.open.retain(|open| *open != id);
            self.versions.insert(of, row);
        }
        self.jobs.remove(&id);
    }

    /// The lane of this queue, type and space, made if it is new. Lanes are never removed, so their number is fresh.
    pub(super) fn lane(&mut self, (queue, kind): (&str, &str), space: Option<&str>) -> Lane {
        let names: LaneNames = (queue.into(), kind.into(), space.map(Into::into));
        let fresh = LaneId(i64::try_from(self.lanes.len()).expect("a test has few lanes") + 1);
        let (queue, kind) = (Arc::clone(&names.0), Arc::clone(&names.1));
        let lane = Lane { id: fresh, class: fresh, queue, kind, space: names.2.clone(), special: None };
        self.lanes.entry(names).or_insert(lane).clone()
    }

    /// A lane that is more than plain, made if it is new.
    pub(super) fn special_lane(&mut self, name: &SpecialName<'_>) -> Lane {
        let class = self.lane((name.queue, name.kind), name.space);
        let fresh = LaneId(-i64::try_from(self.special.len()).expect("a test has few lanes") - 1);
        let special = Arc::new(name.special.clone());
        for limit in &special.limits {
            self.gates.entry(limit.clone()).or_default();
        }
        let lane = Lane { id: fresh, special: Some(Arc::clone(&special)), ..class };
        self.special.entry((lane.class, special)).or_insert(lane).clone()
    }

    /// All lanes in order of their numbers.
    pub(super) fn lanes_by_id(&self) -> BTreeMap<LaneId, Lane> {
        self.lanes.values().map(|lane| (lane.id, lane.clone())).collect()
    }

    /// The ledger by lane.
    pub(super) fn ledger(&self) -> Vec<(Lane, Tally)> {
        let lanes = self.lanes_by_id();
        self.ledger.iter().map(|(id, tally)| (lanes[id].clone(), *tally)).collect()
    }

    /// Rows by class and status.
    pub(super) fn counts(&self) -> Vec<(Lane, Status, i64)> {
        let mut counts = BTreeMap::new();
        for (_, record) in self.jobs.iter() {
            *counts.entry((record.row.lane.class, record.row.job.status)).or_default() += 1;
        }
        let lanes = self.lanes_by_id();
        counts.into_iter().map(|((id, status), n)| (lanes[&id].clone(), status, n)).collect()
    }

    /// Blocked rows by class.
    pub(super) fn blocked(&self) -> Vec<(Lane, i64)> {
        let mut counts = BTreeMap::new();
        for (_, record) in self.jobs.iter().filter(|(_, record)| record.row.is_blocked()) {
            *counts.entry(record.row.lane.class).or_default() += 1;
        }
        let lanes = self.lanes_by_id();
        counts.into_iter().map(|(id, n)| (lanes[&id].clone(), n)).collect()
    }

    /// Pending rows in claim order. Damaged ones are passed over.
    pub(super) fn in_claim_order(&self) -> impl Iterator<Item = &JobRow> {
        self.readable(self.pending.iter().map(|((_, _, id), ())| *id))
    }

    /// The rows of jobs that are there, without those that are damaged.
    pub(super) fn readable<'a>(
        &'a self,
        ids: impl Iterator<Item = JobId> + 'a,
    ) -> impl Iterator<Item = &'a JobRow> {
        ids.filter(|id| !self.damaged.contains(id)).map(|id| self.row(id).expect("the job is there"))
    }

    /// The rows that decide whose turn it is in the order of a key.
    pub(super) fn order(&self, key: &str) -> OrderRows {
        let standing = || self.readable(self.in_order(key, JobId(0)));
        let open = standing().filter(|row| is_open(row)).cloned().collect();
        OrderRows { lowest: standing().next().cloned(), open }
    }

    /// Who stands in the order of a key behind a job.
    pub(super) fn in_order(&self, key: &str, behind: JobId) -> impl Iterator<Item = JobId> {
        let key: Arc<str> = key.into();
        let all = self.ordered.behind(&(Arc::clone(&key), behind)).map(|((other, id), ())| (other, *id));
        all.take_while(move |(other, _)| **other == key).map(|(_, id)| id)
    }

    fn leave_places(&mut self, id: JobId) {
        let Some(old) = self.jobs.get(&id).cloned() else { return };
        self.pending.remove(&place(&old.row));
        if let Some(at) = old.row.job.expires_at {
            self.ages.remove(&(at, id));
        }
        if let Some(lease) = running_lease(&old.row) {
            self.ends.remove(&(lease.ends_at(), id));
        }
        if let Some(order) = &old.row.order {
            self.ordered.remove(&(Arc::clone(&order.key), id));
        }
    }
}

/// Place of a job in claim order.
pub(super) fn place(row: &JobRow) -> Place {
    (Reverse(row.priority), row.job.available_at, row.job.id)
}

/// Whether a row is one of the open ones of its order.
pub(super) fn is_open(row: &JobRow) -> bool {
    row.job.status == Status::Running || is_offered(row)
}

/// Whether claims may see a row once it is due.
pub(super) fn is_offered(row: &JobRow) -> bool {
    row.job.status == Status::Pending && !row.is_blocked()
}

/// The lease of a running job.
pub(super) fn running_lease(row: &JobRow) -> Option<&tagwerk_core::Lease> {
    row.job.lease.as_ref().filter(|_| row.job.status == Status::Running)
}

/// What the versions of a job are compared of, if they are.
fn versioned(record: &Record) -> Option<Versioned> {
    let subject = record.detail.subject.as_ref().filter(|_| record.detail.supersede)?;
    Some(Versioned {
        kind: record.row.lane.kind.to_string(),
        subject_kind: subject.kind.clone(),
        subject_id: subject.id.clone(),
    })
}
