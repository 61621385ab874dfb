//! Snapshots: what was committed when they were made, and nothing else.

use tagwerk_core::{JobId, Status};

use super::Bench;
use super::steps::{
    add, add_one, add_started, at, attempt, ids, job, listed_ids, put, readers, settled, write,
};
use crate::row::{FullJob, Tally};
use crate::store::{Listed, Read};

fn scan(view: &mut dyn Read) -> Vec<JobId> {
    listed_ids(&view.scan(JobId(0), 1_000).expect("rows are read"))
}

/// A snapshot that was made before a commit never shows it, even if it is first read after; a new one does.
pub fn a_snapshot_shows_what_was_committed_when_it_was_made(bench: &mut dyn Bench) {
    let first = write(bench, |tx| add_one(tx, job()));
    let readers = readers(bench);
    let mut untouched = readers.snapshot().expect("a snapshot opens");
    let mut used = readers.snapshot().expect("a second snapshot opens");
    assert_eq!(scan(&mut *used), [first.job.id]);
    let second = write(bench, |tx| {
        put(tx, &first, &settled(&first, Status::Completed, at(1)));
        add_one(tx, job())
    });
    for (name, view) in [("untouched", &mut untouched), ("used", &mut used)] {
        assert_eq!(scan(&mut **view), [first.job.id], "{name}");
        let found = view.jobs(&[first.job.id]).expect("jobs are read").remove(0);
        let status = found.map(|row| match row {
            Listed::Job(full) => full.row.job.status,
            Listed::Damaged { why, .. } => unreachable!("damaged: {why}"),
        });
        assert_eq!(status, Some(Status::Pending), "{name}");
    }
    drop((untouched, used));
    let mut after = readers.snapshot().expect("a snapshot opens");
    assert_eq!(scan(&mut *after), [first.job.id, second.job.id]);
}

/// While a transaction is open, a snapshot shows what was before it; after its commit, what it wrote; after its
/// roll-back, nothing of it.
pub fn an_open_transaction_is_not_seen(bench: &mut dyn Bench) {
    let kept = write(bench, |tx| add_one(tx, job()));
    let readers = readers(bench);
    for fate in ["commit", "drop"] {
        let store = bench.store();
        let mut tx = store.begin().expect("a transaction begins");
        let row = add_one(&mut *tx, job().kind(fate));
        tx.put_attempts(&[(kept.job.id, attempt(1))]).expect("attempts are written");
        let seen = {
            let mut view = readers.snapshot().expect("a snapshot opens");
            scan(&mut *view)
        };
        assert!(!seen.contains(&row.job.id), "an open transaction is seen");
        if fate == "commit" {
            tx.commit().expect("the transaction is committed");
        } else {
            drop(tx);
        }
        let mut view = readers.snapshot().expect("a snapshot opens");
        let seen = scan(&mut *view);
        assert_eq!(seen.last() == Some(&row.job.id), fate == "commit", "after {fate}: {seen:?}");
        assert_eq!(view.attempts(kept.job.id, 0, 9).expect("attempts are read").len(), 1);
    }
}

/// One snapshot shows one moment in all its answers.
pub fn all_answers_of_a_snapshot_are_of_one_moment(bench: &mut dyn Bench) {
    let row = write(bench, |tx| add_started(tx, job(), at(60_000)));
    let readers = readers(bench);
    let mut view = readers.snapshot().expect("a snapshot opens");
    write(bench, |tx| {
        put(tx, &row, &settled(&row, Status::Completed, at(1)));
        tx.put_attempts(&[(row.job.id, attempt(1))]).expect("attempts are written");
        let mut tally = Tally::default();
        tally.add(crate::row::Counter::Completed, 1);
        tx.add_ledger(&[(row.lane.id, tally)]).expect("the ledger is written");
        tx.set_served(at(9), &[("default".to_owned(), at(9))]).expect("the mark is written");
    });
    assert_eq!(ids(&view.running(JobId(0), 9).expect("rows are read")), [row.job.id]);
    assert_eq!(view.attempts(row.job.id, 0, 9).expect("attempts are read"), []);
    assert!(view.ledger().expect("the ledger is read").iter().all(|(_, tally)| tally.is_zero()));
    assert_eq!(view.served_until().expect("the mark is read"), None);
    assert_eq!(view.queues().expect("queues are read"), [("default".to_owned(), None)]);
    let counts = view.counts().expect("rows are counted");
    let counts: Vec<_> = counts.into_iter().filter(|(_, _, n)| *n != 0).collect();
    assert_eq!(counts, [(row.lane, Status::Running, 1)]);
}

/// Snapshots are made, used and dropped in other threads while the store goes on writing.
pub fn other_threads_read_while_the_store_writes(bench: &mut dyn Bench) {
    const ROUNDS: i64 = 50;
    let row = write(bench, |tx| add_one(tx, job()));
    let readers = readers(bench);
    let (done, finished) = std::sync::mpsc::channel::<()>();
    let reader = std::thread::spawn(move || {
        let mut last = 0;
        while finished.try_recv().is_err() {
            let mut view = readers.snapshot().expect("a snapshot opens");
            let count = view.scan(JobId(0), 1_000).expect("rows are read").len();
            let version = version_of(&mut *view, row.job.id);
            assert_eq!(i64::try_from(count).expect("few rows"), version, "one moment");
            assert!(version >= last, "time goes on");
            last = version;
        }
    });
    let mut before = row;
    for _ in 0..ROUNDS {
        let mut after = before.clone();
        after.job.version += 1;
        write(bench, |tx| {
            put(tx, &before, &after);
            add(tx, &[job()]);
        });
        before = after;
    }
    done.send(()).expect("the reader runs");
    reader.join().expect("the reader found nothing wrong");
}

fn version_of(view: &mut dyn Read, id: JobId) -> i64 {
    match view.jobs(&[id]).expect("jobs are read").remove(0) {
        Some(Listed::Job(full)) => {
            let FullJob { row, .. } = *full;
            row.job.version
        }
        other => unreachable!("the job is there: {other:?}"),
    }
}
