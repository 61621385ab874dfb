//! What retention finds, and what goes with an erased job and what stays.

use tagwerk_core::idempotency::Scope;
use tagwerk_core::{Call, JobId, Status, Timestamp};

use super::Bench;
use super::steps::{
    add_one, add_settled, add_started, all, at, attempt, ids, job, peek, put, read, requeued, stored, undo,
    write,
};
use crate::row::{ActionRow, Counter, JobRow, KeyRow, KeyWrite, Tally};
use crate::store::{Prunable, PruneQuery, Tx};

fn query(completed: Option<Timestamp>, cancelled: Option<Timestamp>) -> PruneQuery {
    PruneQuery {
        after: JobId(0),
        completed_until: completed,
        cancelled_until: cancelled,
        created_until: None,
        scan: 1_000,
        wanted: 1_000,
    }
}

/// A scan ends at the first row that was created too late to have ended in time, whatever stands behind it.
pub fn a_scan_ends_at_the_first_row_that_is_too_young(bench: &mut dyn Bench) {
    let created = [at(1), at(2), at(9), at(3)];
    let add =
        |tx: &mut dyn Tx| created.map(|when| add_settled(tx, job().created(when), Status::Completed, at(9)));
    let rows = write(bench, add);
    let found = |until| {
        let query = PruneQuery { created_until: until, ..query(Some(at(9)), None) };
        let page = prunable(bench, query);
        assert_eq!(page.next, None);
        page.rows.iter().map(|(row, _)| row.job.id).collect::<Vec<_>>()
    };
    let found: Vec<_> = [Some(at(0)), Some(at(1)), Some(at(8)), Some(at(9)), None].map(found).into();
    let ends = [0, 1, 2, 4, 4];
    assert_eq!(found, ends.map(|end| ids(&rows[..end])));
}

fn prunable(bench: &mut dyn Bench, query: PruneQuery) -> Prunable {
    undo(bench, |tx| tx.prunable(&query).expect("rows are read"))
}

/// Everything that a query finds, page by page, and how many pages it took.
fn sweep(bench: &mut dyn Bench, mut query: PruneQuery) -> (Vec<JobId>, usize) {
    let mut found = Vec::new();
    for pages in 1..1_000 {
        let page = prunable(bench, query);
        assert!(page.rows.len() <= query.wanted, "{} rows for {}", page.rows.len(), query.wanted);
        found.extend(page.rows.iter().map(|(row, _)| row.job.id));
        match page.next {
            Some(next) => {
                assert!(next > query.after, "the scan stands still at {next}");
                query.after = next;
            }
            None => return (found, pages),
        }
    }
    unreachable!("the scan does not end")
}

/// Only completed and cancelled jobs, each by its own age; the moment itself is old enough; in id order, with keys.
pub fn only_completed_and_cancelled_jobs_of_age_are_found(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| {
        vec![
            add_settled(tx, job().key("k0"), Status::Completed, at(10)),
            add_settled(tx, job(), Status::Cancelled, at(10)),
            add_settled(tx, job(), Status::Failed, at(1)),
            add_one(tx, job()),
            add_started(tx, job(), at(1)),
            add_settled(tx, job(), Status::Completed, at(11)),
            add_settled(tx, job().key("k6"), Status::Cancelled, at(9)),
            add_settled(tx, job(), Status::Completed, at(2)),
        ]
    });
    let picked = |order: &[usize]| order.iter().map(|index| rows[*index].job.id).collect::<Vec<_>>();
    let cases: [(Option<i64>, Option<i64>, &[usize]); 7] = [
        (None, None, &[]),
        (Some(10), None, &[0, 7]),
        (None, Some(10), &[1, 6]),
        (Some(10), Some(9), &[0, 6, 7]),
        (Some(9), Some(8), &[7]),
        (Some(11), Some(10), &[0, 1, 5, 6, 7]),
        (Some(1_000_000), Some(1_000_000), &[0, 1, 5, 6, 7]),
    ];
    for (completed, cancelled, expected) in cases {
        let (found, _) = sweep(bench, query(completed.map(at), cancelled.map(at)));
        assert_eq!(found, picked(expected), "completed until {completed:?}, cancelled until {cancelled:?}");
    }
    let found = prunable(bench, query(Some(at(10)), Some(at(9)))).rows;
    let key = |key: &str| Some(key.to_owned());
    let expected = [(rows[0].clone(), key("k0")), (rows[6].clone(), key("k6")), (rows[7].clone(), None)];
    assert_eq!(found, expected);
}

/// A scan is bounded, goes on where it ended, misses nothing and ends.
pub fn a_scan_is_bounded_and_goes_on_where_it_ended(bench: &mut dyn Bench) {
    let rows: Vec<JobRow> = write(bench, |tx| {
        let status = |n: u8| [Status::Completed, Status::Failed, Status::Cancelled][usize::from(n % 3)];
        (0_u8..60).map(|n| add_settled(tx, job(), status(n), at(i64::from(n % 2)))).collect()
    });
    let until = |row: &&JobRow| row.job.status != Status::Failed && row.job.finished_at <= Some(at(0));
    let expected: Vec<JobId> = rows.iter().filter(until).map(|row| row.job.id).collect();
    for (scan, wanted) in [(1, 1), (7, 1_000), (1_000, 3), (5, 2), (60, 60), (61, 20), (1_000, 1_000)] {
        let (found, pages) = sweep(bench, PruneQuery { scan, wanted, ..query(Some(at(0)), Some(at(0))) });
        assert_eq!(found, expected, "scan {scan}, wanted {wanted}");
        assert!(pages > 60 / (scan + 1) || pages > 20 / (wanted + 1), "{pages} pages of {scan} and {wanted}");
    }
    let behind = PruneQuery { after: rows[30].job.id, ..query(Some(at(0)), Some(at(0))) };
    let tail: Vec<JobId> = expected.into_iter().filter(|id| *id > rows[30].job.id).collect();
    assert_eq!(sweep(bench, behind).0, tail);
    assert_eq!(
        prunable(bench, PruneQuery { after: rows[59].job.id, ..behind }),
        Prunable { rows: vec![], next: None }
    );
}

/// A job that came back is no longer found.
pub fn a_job_that_came_back_is_not_found(bench: &mut dyn Bench) {
    let row = write(bench, |tx| add_settled(tx, job(), Status::Cancelled, at(1)));
    write(bench, |tx| put(tx, &row, &requeued(&row, at(5))));
    assert_eq!(sweep(bench, query(Some(at(9)), Some(at(9)))).0, []);
}

/// An erased job takes detail and history with it; key and ledger stay, and so do all others.
pub fn an_erased_job_takes_everything_but_key_and_ledger(bench: &mut dyn Bench) {
    let (gone, kept) = write(bench, |tx| {
        let gone = add_settled(tx, job().key("k"), Status::Completed, at(1));
        let kept = add_one(tx, job());
        for id in [gone.job.id, kept.job.id] {
            tx.put_attempts(&[(id, attempt(1))]).expect("attempts are written");
            let action = ActionRow { job: id, at: at(2), call: Call::Cancel, version: 2, text: None };
            tx.append_actions(&[action]).expect("actions are written");
        }
        let mut tally = Tally::default();
        tally.add(Counter::Pruned, 1);
        tx.add_ledger(&[(gone.lane.id, tally)]).expect("the ledger is written");
        tx.put_keys(&[KeyWrite::Insert(key(gone.job.id))]).expect("a key is written");
        (gone, kept)
    });
    write(bench, |tx| {
        tx.erase(&[gone.job.id]).expect("a job is erased");
        assert_eq!(tx.load(&[gone.job.id]).expect("rows are read"), [None]);
    });
    expect_gone(bench, &gone, &kept);
    bench.reopen();
    expect_gone(bench, &gone, &kept);
}

fn key(owner: JobId) -> KeyRow {
    KeyRow {
        key: "k".to_owned(),
        owner,
        scope: Scope::Forever,
        ttl_ms: 0,
        fingerprint: [2; 16],
        tombstone: None,
    }
}

fn expect_gone(bench: &mut dyn Bench, gone: &JobRow, kept: &JobRow) {
    let asked = [gone.job.id, kept.job.id];
    undo(bench, |tx| {
        assert_eq!(tx.load(&asked).expect("rows are read"), [None, Some(Ok(kept.clone()))]);
        let details = tx.details(&asked).expect("details are read");
        assert!(details[0].is_none() && details[1].is_some());
        assert_eq!(tx.attempts(&asked).expect("attempts are read"), [vec![], vec![attempt(1)]]);
        assert_eq!(tx.keys(&["k"]).expect("keys are read"), [Some(key(gone.job.id))]);
    });
    read(bench, |view| {
        assert_eq!(view.jobs(&asked).expect("jobs are read")[0], None);
        assert_eq!(view.attempts(asked[0], 0, 9).expect("attempts are read"), []);
        assert_eq!(view.actions(asked[0]).expect("actions are read"), []);
        assert_eq!(view.actions(asked[1]).expect("actions are read").len(), 1);
        assert_eq!(view.scan(JobId(0), 9).expect("rows are read").len(), 1);
        let ledger = view.ledger().expect("the ledger is read");
        assert_eq!(ledger.iter().map(|(_, tally)| tally.get(Counter::Pruned)).sum::<i64>(), 1);
    });
}

/// A job is erased in any state and is in no order any more; erasing what is not there is no error.
pub fn a_job_is_erased_in_any_state(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| {
        vec![
            add_one(tx, job().expires(at(5))),
            add_started(tx, job(), at(5)),
            add_settled(tx, job(), Status::Failed, at(1)),
            add_settled(tx, job(), Status::Cancelled, at(1)),
            add_settled(tx, job(), Status::Completed, at(1)),
        ]
    });
    let mut gone = ids(&rows);
    gone.push(JobId(rows[4].job.id.0 + 9));
    gone.push(rows[0].job.id);
    write(bench, |tx| tx.erase(&gone).expect("jobs are erased"));
    write(bench, |tx| tx.erase(&gone).expect("nothing is erased"));
    for row in &rows {
        assert_eq!(stored(bench, row.job.id), None);
    }
    assert_eq!(peek(bench, at(9), &all()), []);
    undo(bench, |tx| {
        assert!(tx.overdue(at(9), 9).expect("rows are read").is_empty());
        assert!(tx.expired(at(9), 9).expect("rows are read").is_empty());
        assert_eq!(tx.next_due(at(-9), &all()).expect("a time is read"), None);
        assert_eq!(tx.shift_leases(1).expect("no lease is moved"), 0);
    });
    assert_eq!(sweep(bench, query(Some(at(9)), Some(at(9)))).0, []);
    let counts = read(bench, |view| view.counts().expect("rows are counted"));
    assert_eq!(counts.iter().map(|(_, _, n)| n).sum::<i64>(), 0);
}
