//! A write is refused when the row is not what was read, and a transaction is all or nothing.

use tagwerk_core::idempotency::Scope;
use tagwerk_core::{Call, JobId, LeaseBits, Status};

use super::Bench;
use super::steps::{
    add, add_one, add_settled, add_started, all, at, attempt, ids, job, load, peek, put, read, requeued,
    settled, started, stored, take, undo, wish, write,
};
use crate::row::{ActionRow, Counter, JobRow, KeyRow, KeyWrite, Tally, TypeSettings};
use crate::store::{Change, StoreError, StoreResult};

/// Puts changes in a transaction of their own and expects them to be refused.
fn expect_conflict(bench: &mut dyn Bench, changes: &[Change]) {
    let refused = undo(bench, |tx| tx.put(changes));
    assert!(is_conflict(&refused), "{refused:?} for {changes:?}");
}

fn is_conflict<T>(result: &StoreResult<T>) -> bool {
    matches!(result, Err(StoreError::Conflict))
}

fn cancelled(before: &JobRow) -> Change {
    Change { before: before.clone(), after: settled(before, Status::Cancelled, at(9)) }
}

/// The version that was read is not the version that is there.
pub fn a_put_with_another_version_is_refused(bench: &mut dyn Bench) {
    let row = write(bench, |tx| add_one(tx, job()));
    for version in [0, 2] {
        let mut stale = row.clone();
        stale.job.version = version;
        expect_conflict(bench, &[cancelled(&stale)]);
    }
    assert_eq!(stored(bench, row.job.id), Some(row));
}

/// The version is the same, the status is not; with and without a lease.
pub fn a_put_with_another_status_is_refused(bench: &mut dyn Bench) {
    let (running, failed) = write(bench, |tx| {
        (add_started(tx, job(), at(60_000)), add_settled(tx, job(), Status::Failed, at(1)))
    });
    let mut stale = running.clone();
    stale.job.status = Status::Pending;
    expect_conflict(bench, &[cancelled(&stale)]);
    stale.job.lease = None;
    expect_conflict(bench, &[cancelled(&stale)]);
    for status in [Status::Pending, Status::Completed, Status::Cancelled] {
        let mut stale = failed.clone();
        stale.job.status = status;
        expect_conflict(bench, &[cancelled(&stale)]);
    }
    assert_eq!(stored(bench, running.job.id), Some(running));
    assert_eq!(stored(bench, failed.job.id), Some(failed));
}

/// Version and status are the same, the lease is another: the fence between two holders.
pub fn a_put_with_other_lease_bits_is_refused(bench: &mut dyn Bench) {
    let row = write(bench, |tx| add_started(tx, job(), at(60_000)));
    let mut stale = row.clone();
    let lease = stale.job.lease.as_mut().expect("it is running");
    lease.bits = LeaseBits(lease.bits.0 ^ 1);
    expect_conflict(bench, &[cancelled(&stale)]);
    lease_bits_high(bench, &row);
    assert_eq!(stored(bench, row.job.id), Some(row));
}

/// Bits that differ only where a signed number keeps its sign.
fn lease_bits_high(bench: &mut dyn Bench, row: &JobRow) {
    let mut stale = row.clone();
    let lease = stale.job.lease.as_mut().expect("it is running");
    lease.bits = LeaseBits(lease.bits.0 ^ (1 << 63));
    expect_conflict(bench, &[cancelled(&stale)]);
}

/// The row is not there: never was, or was erased.
pub fn a_put_to_a_row_that_is_not_there_is_refused(bench: &mut dyn Bench) {
    let row = write(bench, |tx| add_one(tx, job()));
    let mut unknown = row.clone();
    unknown.job.id = JobId(row.job.id.0 + 1);
    expect_conflict(bench, &[cancelled(&unknown)]);
    write(bench, |tx| tx.erase(&[row.job.id]).expect("a job is erased"));
    expect_conflict(bench, &[cancelled(&row)]);
    assert_eq!(stored(bench, row.job.id), None);
}

/// What another transaction has committed since is seen by the guard.
pub fn a_put_behind_somebody_elses_commit_is_refused(bench: &mut dyn Bench) {
    let row = write(bench, |tx| add_one(tx, job()));
    let first = started(&row, at(60_000));
    write(bench, |tx| put(tx, &row, &first));
    expect_conflict(bench, &[Change { before: row.clone(), after: started(&row, at(70_000)) }]);
    bench.reopen();
    expect_conflict(bench, &[cancelled(&row)]);
    assert_eq!(stored(bench, row.job.id), Some(first));
}

/// One stale change among several: nothing of them is there, wherever the stale one stands.
pub fn a_put_of_several_rows_is_all_or_none(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &[job(), job(), job()]));
    for stale in 0..rows.len() {
        let mut changes: Vec<Change> = rows.iter().map(cancelled).collect();
        changes[stale].before.job.version = 7;
        expect_conflict(bench, &changes);
        for row in &rows {
            assert_eq!(stored(bench, row.job.id).as_ref(), Some(row));
        }
    }
    assert_eq!(peek(bench, at(0), &all()), ids(&rows));
}

/// What the guard does not name may differ: a heartbeat between does not change version, status or bits.
pub fn a_put_changes_a_row_again_without_a_new_version(bench: &mut dyn Bench) {
    let row = write(bench, |tx| add_started(tx, job(), at(60_000)));
    let mut beaten = row.clone();
    beaten.job.lease.as_mut().expect("it is running").expires_at = at(90_000);
    write(bench, |tx| put(tx, &row, &beaten));
    assert_eq!(stored(bench, row.job.id), Some(beaten));
}

/// A transaction that is dropped leaves nothing in any table, now and after a reopen.
pub fn a_dropped_transaction_leaves_nothing(bench: &mut dyn Bench) {
    let kept = write(bench, |tx| {
        let rows = add(tx, &[job().key("kept"), job()]);
        tx.put_keys(&[KeyWrite::Insert(key_row("kept", rows[0].job.id))]).expect("a key is written");
        rows
    });
    let before = everything(bench, &kept);
    undo(bench, |tx| {
        let made = add_one(tx, job().queue("new").key("new"));
        let id = kept[0].job.id;
        put(tx, &kept[0], &started(&kept[0], at(60_000)));
        tx.put_attempts(&[(id, attempt(1))]).expect("an attempt is written");
        let action =
            ActionRow { job: id, at: at(1), call: Call::Cancel, version: 2, text: Some("why".to_owned()) };
        tx.append_actions(&[action]).expect("an action is written");
        let mut tally = Tally::default();
        tally.add(Counter::Enqueued, 1);
        tx.add_ledger(&[(made.lane.id, tally), (kept[0].lane.id, tally)]).expect("the ledger is written");
        let gone = KeyWrite::Delete { key: "kept".to_owned(), owner: id };
        tx.put_keys(&[KeyWrite::Insert(key_row("new", made.job.id)), gone]).expect("keys are written");
        tx.put_type("work", Some(&TypeSettings::default())).expect("settings are written");
        tx.set_served(at(5), &[("default".to_owned(), at(5))]).expect("the mark is written");
        tx.erase(&[kept[1].job.id]).expect("a job is erased");
    });
    assert_eq!(everything(bench, &kept), before);
    bench.reopen();
    assert_eq!(everything(bench, &kept), before);
    assert_eq!(peek(bench, at(0), &all()), ids(&kept));
}

/// Everything that a snapshot shows, as text.
fn everything(bench: &mut dyn Bench, rows: &[JobRow]) -> String {
    read(bench, |view| {
        let id = rows[0].job.id;
        let jobs = view.scan(JobId(0), 100).expect("rows are read");
        let keys = [view.key("kept").expect("a key is read"), view.key("new").expect("a key is read")];
        let history = (view.attempts(id, 0, 100).expect("read"), view.actions(id).expect("read"));
        let ledger = view.ledger().expect("the ledger is read");
        let types = view.types().expect("types are read");
        let served = (view.served_until().expect("read"), view.queues().expect("queues are read"));
        format!("{jobs:?} {keys:?} {history:?} {ledger:?} {types:?} {served:?}")
    })
}

fn key_row(key: &str, owner: JobId) -> KeyRow {
    KeyRow { key: key.to_owned(), owner, scope: Scope::Ttl, ttl_ms: 1, fingerprint: [1; 16], tombstone: None }
}

/// The same after a reopen in the place of a drop: what was not committed is not there.
pub fn a_reopen_keeps_what_was_committed_and_nothing_else(bench: &mut dyn Bench) {
    let first = write(bench, |tx| add_one(tx, job()));
    undo(bench, |tx| add_one(tx, job()));
    bench.reopen();
    let second = write(bench, |tx| add_one(tx, job()));
    bench.reopen();
    assert_eq!(peek(bench, at(0), &all()), [first.job.id, second.job.id]);
}

/// F015: of two claims one after the other, the second does not get what the first has.
pub fn f015_a_row_is_handed_out_once(bench: &mut dyn Bench) {
    let row = write(bench, |tx| add_one(tx, job()));
    let first = write(bench, |tx| take(tx, at(0), wish(&all(), 10)));
    assert_eq!(first, vec![row.clone()]);
    assert!(write(bench, |tx| take(tx, at(0), wish(&all(), 10))).is_empty());
    bench.reopen();
    assert!(write(bench, |tx| take(tx, at(0), wish(&all(), 10))).is_empty());
    expect_conflict(bench, &[Change { before: row.clone(), after: started(&row, at(1)) }]);
}

/// After an error the transaction is dropped, and the next one works.
pub fn a_conflict_does_not_hurt_the_next_transaction(bench: &mut dyn Bench) {
    let row = write(bench, |tx| add_one(tx, job()));
    let mut stale = row.clone();
    stale.job.version = 5;
    expect_conflict(bench, &[cancelled(&stale)]);
    let next = requeued(&row, at(5));
    write(bench, |tx| {
        put(tx, &row, &next);
        assert_eq!(load(tx, row.job.id).as_ref(), Some(&next));
    });
    assert_eq!(stored(bench, row.job.id), Some(next));
}

/// The secret is made once.
pub fn the_secret_survives_a_reopen(bench: &mut dyn Bench) {
    let secret = bench.store().secret();
    assert_ne!(secret, [0; 32]);
    bench.reopen();
    assert_eq!(bench.store().secret(), secret);
}

/// Housekeeping changes nothing that anybody can see.
pub fn housekeeping_changes_nothing(bench: &mut dyn Bench) {
    bench.store().housekeeping().expect("an empty store keeps house");
    let rows = write(bench, |tx| add(tx, &[job(), job()]));
    bench.store().housekeeping().expect("the store keeps house");
    assert_eq!(peek(bench, at(0), &all()), ids(&rows));
    bench.store().housekeeping().expect("the store keeps house again");
}
