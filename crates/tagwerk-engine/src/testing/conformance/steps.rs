//! What cases are written with: transactions in one call, jobs in one line, moves without rules.

use std::sync::Arc;

use tagwerk_core::{Attempt, AttemptEnd, Job, JobId, Lease, LeaseBits, NewJob, OnHeadFailure, OnUnknown};
use tagwerk_core::{Priority, RetryOverrides, Status, Timestamp};

use super::Bench;
use crate::row::{Detail, JobRow, LimitRef, Note, Order, Ordering, Special};
use crate::store::{Change, ClaimQuery, Filter, Insert, Listed, Read, Readers, SpecialName, Tx};

/// The moment at which cases begin, in the year 2026: far beyond 32 bits.
const BEGIN_MS: i64 = 1_780_000_000_000;

/// The moment `ms` milliseconds after the case began.
pub(super) const fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(BEGIN_MS + ms)
}

/// Does something in a transaction and commits it.
pub(super) fn write<R>(bench: &mut dyn Bench, work: impl FnOnce(&mut dyn Tx) -> R) -> R {
    let mut tx = bench.store().begin().expect("a transaction begins");
    let result = work(&mut *tx);
    tx.commit().expect("the transaction is committed");
    result
}

/// Does something in a transaction and drops it.
pub(super) fn undo<R>(bench: &mut dyn Bench, work: impl FnOnce(&mut dyn Tx) -> R) -> R {
    let mut tx = bench.store().begin().expect("a transaction begins");
    work(&mut *tx)
}

/// Looks at what is committed.
pub(super) fn read<R>(bench: &mut dyn Bench, work: impl FnOnce(&mut dyn Read) -> R) -> R {
    let readers = bench.store().readers();
    let mut snapshot = readers.snapshot().expect("a snapshot opens");
    work(&mut *snapshot)
}

/// The readers of a store that is on the bench.
pub(super) fn readers(bench: &mut dyn Bench) -> Arc<dyn Readers> {
    bench.store().readers()
}

/// A job to be added.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    queue: String,
    kind: String,
    priority: u8,
    due: Timestamp,
    expires: Option<Timestamp>,
    created: Timestamp,
    payload: String,
    key: Option<String>,
    special: Special,
    ordering: Option<String>,
    space: Option<String>,
}

/// A job of type `work` in queue `default`, medium priority, due at the beginning.
pub(super) fn job() -> Draft {
    Draft {
        queue: "default".to_owned(),
        kind: "work".to_owned(),
        priority: 10,
        due: at(0),
        expires: None,
        created: at(0),
        payload: "{}".to_owned(),
        key: None,
        special: Special::default(),
        ordering: None,
        space: None,
    }
}

impl Draft {
    /// Names a limit; sorted, as a door does.
    pub(super) fn limit(mut self, limit: &str) -> Self {
        self.special.limits.push(LimitRef::parse(limit));
        self.special.limits.sort();
        self
    }

    pub(super) fn fair(mut self, key: &str) -> Self {
        self.special.fair_key = Some(key.to_owned());
        self
    }

    pub(super) fn space(mut self, space: &str) -> Self {
        self.space = Some(space.to_owned());
        self
    }

    pub(super) fn queue(mut self, queue: &str) -> Self {
        queue.clone_into(&mut self.queue);
        self
    }

    pub(super) fn kind(mut self, kind: &str) -> Self {
        kind.clone_into(&mut self.kind);
        self
    }

    pub(super) const fn priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    pub(super) const fn due(mut self, due: Timestamp) -> Self {
        self.due = due;
        self
    }

    pub(super) const fn expires(mut self, at: Timestamp) -> Self {
        self.expires = Some(at);
        self
    }

    pub(super) const fn created(mut self, at: Timestamp) -> Self {
        self.created = at;
        self
    }

    pub(super) fn payload(mut self, payload: &str) -> Self {
        payload.clone_into(&mut self.payload);
        self
    }

    /// A payload of this many bytes, at least 2.
    pub(super) fn payload_of(self, bytes: usize) -> Self {
        let filling = "x".repeat(bytes - 2);
        self.payload(&format!("\"{filling}\""))
    }

    /// With an ordering key; as if nobody stood before it.
    pub(super) fn ordered(mut self, key: &str) -> Self {
        self.ordering = Some(key.to_owned());
        self
    }

    pub(super) fn key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    fn insert(self, lane: crate::row::Lane, id: JobId) -> Insert {
        let new = NewJob {
            id,
            max_retries: 3,
            max_lease_losses: 4,
            available_at: self.due,
            expires_at: self.expires,
            max_age_ms: None,
            on_unknown: OnUnknown::Verify,
            now: self.created,
        };
        let row = JobRow {
            job: Job::accepted(&new),
            lane,
            priority: priority(self.priority),
            payload_bytes: u32::try_from(self.payload.len()).expect("payloads are small"),
            note: Note::default(),
            order: self.ordering.as_deref().map(order).map(Box::new),
        };
        let ordering = self.ordering.map(|key| Box::new(Ordering { key: key.into(), on_head_failure: None }));
        Insert { row, detail: Detail { key: self.key, ordering, ..plain_detail(self.payload) } }
    }
}

/// A place in the order of a key, not blocked.
pub(super) fn order(key: &str) -> Order {
    Order { key: key.into(), on_head_failure: OnHeadFailure::Block, blocked: false }
}

/// A cold part with nothing but a payload.
pub(super) fn plain_detail(payload: String) -> Detail {
    Detail {
        payload,
        subject: None,
        correlation_id: None,
        traceparent: None,
        key: None,
        scope: None,
        ttl_ms: None,
        on_duplicate: None,
        fingerprint: None,
        on_mismatch: None,
        lease_ms: None,
        timeout_ms: None,
        retry: RetryOverrides::default(),
        supersede: false,
        ordering: None,
    }
}

pub(super) fn priority(value: u8) -> Priority {
    Priority::from_value(value).expect("priorities end at 100")
}

/// What would be inserted for these drafts: lanes interned, ids taken, nothing inserted.
pub(super) fn prepare(tx: &mut dyn Tx, drafts: &[Draft]) -> Vec<Insert> {
    let names: Vec<(&str, &str)> =
        drafts.iter().map(|draft| (draft.queue.as_str(), draft.kind.as_str())).collect();
    let mut lanes = tx.intern(&names).expect("lanes are interned");
    for (lane, draft) in lanes.iter_mut().zip(drafts).filter(|(_, draft)| draft.space.is_some()) {
        let names = [(draft.queue.as_str(), draft.kind.as_str())];
        *lane = tx.intern_in(draft.space.as_deref(), &names).expect("lanes are interned").remove(0);
    }
    for (lane, draft) in lanes.iter_mut().zip(drafts).filter(|(_, draft)| draft.special != Special::default())
    {
        let name = SpecialName {
            queue: &draft.queue,
            kind: &draft.kind,
            special: &draft.special,
            space: draft.space.as_deref(),
        };
        *lane = tx.intern_special(&[name]).expect("lanes are interned").remove(0);
    }
    let first = tx.next_ids(drafts.len()).expect("ids are given");
    let ids = (first.0..).map(JobId);
    drafts.iter().zip(lanes).zip(ids).map(|((draft, lane), id)| draft.clone().insert(lane, id)).collect()
}

/// Adds jobs with consecutive ids in one call.
pub(super) fn add(tx: &mut dyn Tx, drafts: &[Draft]) -> Vec<JobRow> {
    let inserts = prepare(tx, drafts);
    tx.insert(&inserts).expect("jobs are inserted");
    inserts.into_iter().map(|insert| insert.row).collect()
}

/// Adds one job.
pub(super) fn add_one(tx: &mut dyn Tx, draft: Draft) -> JobRow {
    add(tx, &[draft]).remove(0)
}

/// Writes one changed row.
pub(super) fn put(tx: &mut dyn Tx, before: &JobRow, after: &JobRow) {
    put_all(tx, &[(before.clone(), after.clone())]);
}

/// Writes changed rows in one call.
pub(super) fn put_all(tx: &mut dyn Tx, changes: &[(JobRow, JobRow)]) {
    let changes: Vec<Change> = changes
        .iter()
        .map(|(before, after)| Change { before: before.clone(), after: after.clone() })
        .collect();
    tx.put(&changes).expect("rows are written");
}

/// The row handed out under a lease that ends at `end`.
pub(super) fn started(row: &JobRow, end: Timestamp) -> JobRow {
    let mut row = row.clone();
    let job = &mut row.job;
    job.status = Status::Running;
    job.version += 1;
    job.attempt += 1;
    job.leases += 1;
    job.started = true;
    job.lease = Some(Lease {
        bits: LeaseBits(0x8000_0000_0000_0000 | (job.id.0.unsigned_abs() << 8) | u64::from(job.leases)),
        worker: "worker".to_owned(),
        claimed_at: at(0),
        expires_at: end,
        time_limit_at: None,
        lease_ms: 60_000,
        request_id: None,
    });
    row
}

/// The row back among the pending, due at `due`.
pub(super) fn requeued(row: &JobRow, due: Timestamp) -> JobRow {
    let mut row = row.clone();
    row.job.status = Status::Pending;
    row.job.version += 1;
    row.job.available_at = due;
    row.job.lease = None;
    row.job.failure = None;
    row.job.finished_at = None;
    row
}

/// The row at rest: completed, failed or cancelled.
pub(super) fn settled(row: &JobRow, status: Status, finished: Timestamp) -> JobRow {
    let mut row = row.clone();
    row.job.status = status;
    row.job.version += 1;
    row.job.lease = None;
    row.job.finished_at = Some(finished);
    row.job.failure = (status == Status::Failed).then_some(tagwerk_core::Failure {
        class: tagwerk_core::FailureClass::Permanent,
        reason: tagwerk_core::Reason::Permanent,
        cause: tagwerk_core::Cause::Reported,
    });
    row
}

/// Adds a job and lets it come to rest.
pub(super) fn add_settled(tx: &mut dyn Tx, draft: Draft, status: Status, finished: Timestamp) -> JobRow {
    let row = add_one(tx, draft);
    let rest = settled(&row, status, finished);
    put(tx, &row, &rest);
    rest
}

/// Adds a job and hands it out under a lease that ends at `end`.
pub(super) fn add_started(tx: &mut dyn Tx, draft: Draft, end: Timestamp) -> JobRow {
    let row = add_one(tx, draft);
    let running = started(&row, end);
    put(tx, &row, &running);
    running
}

/// A wish for up to `wanted` rows without limit of size.
pub(super) const fn wish(filter: &Filter, wanted: usize) -> ClaimQuery<'_> {
    ClaimQuery { filter, wanted, max_bytes: u64::MAX, skip: &[] }
}

/// All jobs pass.
pub(super) fn all() -> Filter {
    Filter::default()
}

/// Only these types pass.
pub(super) fn of_types(types: &[&str]) -> Filter {
    Filter { queues: None, types: Some(owned(types)), space: None }
}

/// Only these queues pass.
pub(super) fn of_queues(queues: &[&str]) -> Filter {
    Filter { queues: Some(owned(queues)), types: None, space: None }
}

pub(super) fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// What is claimable, for wishes in one call; the rows are left as they are, so the transaction must be dropped.
pub(super) fn look(tx: &mut dyn Tx, now: Timestamp, wishes: &[ClaimQuery<'_>]) -> Vec<Vec<JobRow>> {
    let rows = tx.claimable(now, wishes).expect("claimable rows are read");
    assert_eq!(rows.len(), wishes.len(), "one answer per wish");
    rows
}

/// Takes claimable rows and hands them out, as a claim does.
pub(super) fn take(tx: &mut dyn Tx, now: Timestamp, wish: ClaimQuery<'_>) -> Vec<JobRow> {
    let rows = look(tx, now, &[wish]).remove(0);
    let changes: Vec<(JobRow, JobRow)> =
        rows.iter().map(|row| (row.clone(), started(row, now.plus_ms(60_000)))).collect();
    put_all(tx, &changes);
    rows
}

/// Ids of what a claim would get now, without getting it.
pub(super) fn peek(bench: &mut dyn Bench, now: Timestamp, filter: &Filter) -> Vec<JobId> {
    undo(bench, |tx| ids(&look(tx, now, &[wish(filter, 20_000)])[0]))
}

pub(super) fn ids(rows: &[JobRow]) -> Vec<JobId> {
    rows.iter().map(|row| row.job.id).collect()
}

/// The row as it stands.
pub(super) fn load(tx: &mut dyn Tx, id: JobId) -> Option<JobRow> {
    tx.load(&[id]).expect("rows are read").remove(0).map(|row| row.expect("it can be read"))
}

/// The committed row as it stands.
pub(super) fn stored(bench: &mut dyn Bench, id: JobId) -> Option<JobRow> {
    undo(bench, |tx| load(tx, id))
}

/// The ids of listed rows.
pub(super) fn listed_ids(rows: &[Listed]) -> Vec<JobId> {
    let id = |row: &Listed| match row {
        Listed::Job(full) => full.row.job.id,
        Listed::Damaged { id, .. } => *id,
    };
    rows.iter().map(id).collect()
}

/// An attempt that ended without anything special.
pub(super) fn attempt(seq: u32) -> Attempt {
    Attempt {
        seq,
        number: seq,
        bits: LeaseBits(u64::from(seq)),
        worker: "worker".to_owned(),
        claimed_at: at(i64::from(seq)),
        lease_expires_at: at(i64::from(seq) + 60_000),
        ended_at: at(i64::from(seq) + 1),
        end: AttemptEnd::Completed,
        error: None,
        late: false,
        report: None,
        before: None,
    }
}
