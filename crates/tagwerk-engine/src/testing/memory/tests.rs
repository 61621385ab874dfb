//! What the memory store does beyond the contract: faults, and panics when its caller breaks the contract.

use tagwerk_core::{Job, NewJob, OnUnknown, Priority, Status, Timestamp};

use super::*;
use crate::row::{Detail, JobRow, Note};
use crate::store::{Change, ClaimQuery, Filter, Insert};

const NOW: Timestamp = Timestamp::from_millis(1_000);

fn job(tx: &mut dyn Tx) -> JobRow {
    let lane = tx.intern(&[("default", "work")]).expect("lanes are interned").remove(0);
    let new = NewJob {
        id: tx.next_ids(1).expect("ids are given"),
        max_retries: 3,
        max_lease_losses: 4,
        available_at: NOW,
        expires_at: None,
        max_age_ms: None,
        on_unknown: OnUnknown::Verify,
        now: NOW,
    };
    let row = JobRow {
        job: Job::accepted(&new),
        lane,
        priority: Priority::DEFAULT,
        payload_bytes: 2,
        note: Note::default(),
        order: None,
    };
    let detail = Detail {
        payload: "{}".to_owned(),
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
        retry: tagwerk_core::RetryOverrides::default(),
        supersede: false,
        ordering: None,
    };
    tx.insert(&[Insert { row: row.clone(), detail }]).expect("a job is inserted");
    row
}

fn jobs(store: &MemoryStore) -> usize {
    let readers = store.readers();
    readers.snapshot().expect("a snapshot opens").scan(JobId(0), 100).expect("rows are read").len()
}

fn claim(tx: &mut dyn Tx) -> Vec<JobRow> {
    let filter = Filter::default();
    let wish = ClaimQuery { filter: &filter, wanted: 9, max_bytes: 99, skip: &[] };
    tx.claimable(NOW, &[wish]).expect("rows are read").remove(0)
}

#[test]
fn a_commit_that_fails_before_it_took_effect_leaves_nothing() {
    let mut store = MemoryStore::new();
    store.faults().fail(Point::BeforeCommit, StoreError::Full, 1);
    let mut tx = store.begin().expect("a transaction begins");
    job(&mut *tx);
    assert!(matches!(tx.commit(), Err(StoreError::Full)));
    assert_eq!(jobs(&store), 0);
    let mut tx = store.begin().expect("the next transaction begins");
    job(&mut *tx);
    tx.commit().expect("the fault is spent");
    assert_eq!(jobs(&store), 1);
}

#[test]
fn a_commit_that_fails_after_it_took_effect_leaves_everything() {
    let mut store = MemoryStore::new();
    store.faults().fail(Point::AfterCommit, StoreError::OutcomeUnknown, 1);
    let mut tx = store.begin().expect("a transaction begins");
    job(&mut *tx);
    assert!(matches!(tx.commit(), Err(StoreError::OutcomeUnknown)));
    assert!(store.faults().are_spent());
    assert_eq!((jobs(&store), jobs(&store.reopen())), (1, 1));
}

#[test]
fn faults_strike_where_and_as_often_as_planned() {
    let mut store = MemoryStore::new();
    store.faults().fail(Point::Begin, StoreError::Busy, 2);
    store.faults().plan(Fault { point: Point::AnyMethod, error: StoreError::ReadOnly, spare: 1, times: 1 });
    store.faults().fail(Point::Method("load"), StoreError::Conflict, 1);
    assert!(matches!(store.begin().err(), Some(StoreError::Busy)));
    assert!(matches!(store.begin().err(), Some(StoreError::Busy)));
    let mut tx = store.begin().expect("the fault is spent");
    tx.types().expect("one method is spared");
    assert!(matches!(tx.types(), Err(StoreError::ReadOnly)));
    drop(tx);
    let mut tx = store.begin().expect("a transaction begins");
    tx.types().expect("another method was meant");
    assert!(matches!(tx.load(&[]), Err(StoreError::Conflict)));
    drop(tx);
    store.faults().fail(Point::Snapshot, StoreError::Busy, 1);
    assert!(store.readers().snapshot().is_err());
    store.faults().fail(Point::Housekeeping, StoreError::Full, 9);
    assert!(store.housekeeping().is_err());
    store.faults().clear();
    store.housekeeping().expect("the fault is forgotten");
}

#[test]
fn one_writer_at_a_time() {
    let mut store = MemoryStore::new();
    let mut other = store.clone();
    let tx = store.begin().expect("a transaction begins");
    assert!(matches!(other.begin().err(), Some(StoreError::Busy)));
    drop(tx);
    other.begin().expect("the other one's turn");
}

#[test]
#[should_panic(expected = "left claimable")]
fn a_claimable_row_that_is_left_claimable_is_the_callers_fault() {
    let mut store = MemoryStore::new();
    let mut tx = store.begin().expect("a transaction begins");
    job(&mut *tx);
    claim(&mut *tx);
    let _ = tx.commit();
}

#[test]
#[should_panic(expected = "left claimable")]
fn a_second_claim_before_the_first_is_done_is_the_callers_fault() {
    let mut store = MemoryStore::new();
    let mut tx = store.begin().expect("a transaction begins");
    job(&mut *tx);
    claim(&mut *tx);
    claim(&mut *tx);
}

#[test]
#[should_panic(expected = "only good for dropping")]
fn a_method_after_an_error_is_the_callers_fault() {
    let mut store = MemoryStore::new();
    let mut tx = store.begin().expect("a transaction begins");
    let row = job(&mut *tx);
    let mut stale = row.clone();
    stale.job.version = 9;
    assert!(tx.put(&[Change { before: stale, after: row }]).is_err());
    let _ = tx.load(&[]);
}

#[test]
#[should_panic(expected = "was never given out")]
fn an_id_that_was_never_given_out_is_the_callers_fault() {
    let mut store = MemoryStore::new();
    let mut tx = store.begin().expect("a transaction begins");
    let mut row = job(&mut *tx);
    row.job.id = JobId(2);
    let detail = tx.details(&[JobId(1)]).expect("details are read").remove(0).expect("the job is there");
    let _ = tx.insert(&[Insert { row, detail: detail.expect("it can be read") }]);
}

#[test]
#[should_panic(expected = "id and lane never change")]
fn another_lane_is_the_callers_fault() {
    let mut store = MemoryStore::new();
    let mut tx = store.begin().expect("a transaction begins");
    let before = job(&mut *tx);
    let mut after = before.clone();
    after.lane = tx.intern(&[("other", "work")]).expect("lanes are interned").remove(0);
    let _ = tx.put(&[Change { before, after }]);
}

#[test]
fn a_row_that_was_claimed_may_come_back_in_the_same_transaction() {
    let mut store = MemoryStore::new();
    let mut tx = store.begin().expect("a transaction begins");
    job(&mut *tx);
    let before = claim(&mut *tx).remove(0);
    let mut rest = before.clone();
    rest.job.status = Status::Cancelled;
    tx.put(&[Change { before: before.clone(), after: rest.clone() }]).expect("the row is written");
    tx.put(&[Change { before: rest, after: before.clone() }]).expect("the row is written");
    assert_eq!(claim(&mut *tx), [before]);
}
