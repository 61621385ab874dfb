//! What tests and measurements are written with: jobs in one line, moves without rules.
#![expect(dead_code, reason = "each of the programs that include this file uses a part of it")]

use tagwerk_core::{
    Attempt, AttemptEnd, Job, JobId, Lease, LeaseBits, NewJob, OnUnknown, Priority, ReportHash,
    RetryOverrides, Status, Timestamp,
};
use tagwerk_engine::row::{Detail, JobRow, Lane, Note};
use tagwerk_engine::store::{Change, ClaimQuery, Filter, Insert, Store, Tx};

/// The moment `ms` milliseconds after the tests' beginning.
pub(crate) const fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(1_780_000_000_000 + ms)
}

/// A job to be added.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) queue: String,
    pub(crate) kind: String,
    pub(crate) priority: u8,
    pub(crate) due: Timestamp,
    pub(crate) expires: Option<Timestamp>,
    pub(crate) detail: Detail,
}

/// A job of type `work` in queue `default`, medium priority, due at the beginning.
pub(crate) fn job() -> Draft {
    Draft {
        queue: "default".to_owned(),
        kind: "work".to_owned(),
        priority: 10,
        due: at(0),
        expires: None,
        detail: detail("{}"),
    }
}

/// A job of this type.
pub(crate) fn job_of(kind: &str) -> Draft {
    Draft { kind: kind.to_owned(), ..job() }
}

/// A cold part with nothing but a payload.
pub(crate) fn detail(payload: &str) -> Detail {
    Detail {
        payload: payload.to_owned(),
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

impl Draft {
    fn insert(&self, lane: Lane, id: JobId) -> Insert {
        let new = NewJob {
            id,
            max_retries: 3,
            max_lease_losses: 4,
            available_at: self.due,
            expires_at: self.expires,
            max_age_ms: None,
            on_unknown: OnUnknown::Verify,
            now: at(0),
        };
        let row = JobRow {
            job: Job::accepted(&new),
            lane,
            priority: Priority::from_value(self.priority).expect("a priority"),
            payload_bytes: u32::try_from(self.detail.payload.len()).expect("small"),
            note: Note::default(),
            order: None,
        };
        Insert { row, detail: self.detail.clone() }
    }
}

/// Does something in a transaction and commits it.
pub(crate) fn write<R>(store: &mut dyn Store, work: impl FnOnce(&mut dyn Tx) -> R) -> R {
    let mut tx = store.begin().expect("a transaction begins");
    let result = work(&mut *tx);
    tx.commit().expect("the transaction is committed");
    result
}

/// Does something in a transaction and drops it.
pub(crate) fn undo<R>(store: &mut dyn Store, work: impl FnOnce(&mut dyn Tx) -> R) -> R {
    let mut tx = store.begin().expect("a transaction begins");
    work(&mut *tx)
}

/// What to insert for these drafts.
pub(crate) fn inserts(tx: &mut dyn Tx, drafts: &[Draft]) -> Vec<Insert> {
    let names: Vec<(&str, &str)> = drafts.iter().map(|draft| (&*draft.queue, &*draft.kind)).collect();
    let lanes = tx.intern(&names).expect("lanes");
    let first = tx.next_ids(drafts.len()).expect("ids");
    let ids = (first.0..).map(JobId);
    drafts.iter().zip(lanes).zip(ids).map(|((draft, lane), id)| draft.insert(lane, id)).collect()
}

/// Adds jobs.
pub(crate) fn add(tx: &mut dyn Tx, drafts: &[Draft]) -> Vec<JobRow> {
    let jobs = inserts(tx, drafts);
    tx.insert(&jobs).expect("jobs are inserted");
    jobs.into_iter().map(|job| job.row).collect()
}

/// Claimable rows.
pub(crate) fn claimable(tx: &mut dyn Tx, now: Timestamp, (filter, wanted): (&Filter, usize)) -> Vec<JobRow> {
    let query = ClaimQuery { filter, wanted, max_bytes: u64::MAX, skip: &[] };
    tx.claimable(now, &[query]).expect("claimable rows").remove(0)
}

/// Takes up to `n` jobs of any lane, and lets them run.
pub(crate) fn take(tx: &mut dyn Tx, now: Timestamp, n: usize) -> Vec<JobRow> {
    let rows = claimable(tx, now, (&Filter::default(), n));
    let changes: Vec<Change> =
        rows.into_iter().map(|before| Change { after: started(&before, now), before }).collect();
    tx.put(&changes).expect("rows are changed");
    changes.into_iter().map(|change| change.after).collect()
}

/// The row under a lease of five minutes.
pub(crate) fn started(row: &JobRow, now: Timestamp) -> JobRow {
    let mut row = row.clone();
    row.job.status = Status::Running;
    row.job.version += 1;
    row.job.attempt += 1;
    row.job.leases += 1;
    row.job.started = true;
    row.job.updated_at = now;
    row.job.lease = Some(Lease {
        bits: LeaseBits(row.job.id.0.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15)),
        worker: "worker-1".to_owned(),
        claimed_at: now,
        expires_at: now.plus_ms(300_000),
        time_limit_at: None,
        lease_ms: 300_000,
        request_id: None,
    });
    row
}

/// The row at rest.
pub(crate) fn settled(row: &JobRow, status: Status, now: Timestamp) -> JobRow {
    let mut row = row.clone();
    row.job.status = status;
    row.job.version += 1;
    row.job.lease = None;
    row.job.updated_at = now;
    row.job.finished_at = Some(now);
    row
}

/// The row pending again.
pub(crate) fn requeued(row: &JobRow, due: Timestamp) -> JobRow {
    let mut row = row.clone();
    row.job.status = Status::Pending;
    row.job.version += 1;
    row.job.lease = None;
    row.job.available_at = due;
    row
}

/// The attempt that ends with a running row.
pub(crate) fn attempt(row: &JobRow, now: Timestamp) -> Attempt {
    let lease = row.job.lease.as_ref().expect("it is running");
    Attempt {
        seq: row.job.leases,
        number: row.job.attempt,
        bits: lease.bits,
        worker: lease.worker.clone(),
        claimed_at: lease.claimed_at,
        lease_expires_at: lease.expires_at,
        ended_at: now,
        end: AttemptEnd::Completed,
        error: None,
        late: false,
        report: Some(ReportHash([9; 16])),
        before: None,
    }
}

/// Changes rows.
pub(crate) fn put(tx: &mut dyn Tx, changes: &[(JobRow, JobRow)]) {
    let change = |(before, after): &(JobRow, JobRow)| Change { before: before.clone(), after: after.clone() };
    tx.put(&changes.iter().map(change).collect::<Vec<_>>()).expect("rows are changed");
}
