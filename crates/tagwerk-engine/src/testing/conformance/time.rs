//! What time brings: due times, ends of attempts, maximum ages, shifted leases; and claims found again.

use tagwerk_core::{JobId, Status, Timestamp};

use super::Bench;
use super::steps::{
    add, add_one, add_settled, add_started, all, at, ids, job, load, of_queues, of_types, put, requeued,
    settled, started, stored, undo, write,
};
use crate::row::JobRow;
use crate::store::{Filter, Tx};

fn next_due(bench: &mut dyn Bench, now: i64, filter: &Filter) -> Option<Timestamp> {
    undo(bench, |tx| tx.next_due(at(now), filter).expect("a time is read"))
}

/// The earliest due time behind the present, of pending rows that pass the filter, whatever their priority.
pub fn the_next_due_time_is_exact(bench: &mut dyn Bench) {
    assert_eq!(next_due(bench, 0, &all()), None);
    let drafts = [
        job().due(at(-5)),
        job().due(at(0)),
        job().due(at(30)).priority(100),
        job().due(at(20)).priority(0).kind("a"),
        job().due(at(10)).queue("q").kind("b"),
        job().due(at(5)).kind("c"),
    ];
    let rows = write(bench, |tx| add(tx, &drafts));
    write(bench, |tx| put(tx, &rows[5], &settled(&rows[5], Status::Cancelled, at(0))));
    let cases = [
        (0, all(), Some(10)),
        (9, all(), Some(10)),
        (10, all(), Some(20)),
        (29, all(), Some(30)),
        (30, all(), None),
        (-1, all(), Some(0)),
        (-9, all(), Some(-5)),
        (0, of_types(&["a"]), Some(20)),
        (0, of_types(&["a", "b"]), Some(10)),
        (0, of_queues(&["default"]), Some(20)),
        (0, of_types(&["c"]), None),
        (0, of_types(&["nobody"]), None),
    ];
    for (now, filter, expected) in cases {
        assert_eq!(next_due(bench, now, &filter), expected.map(at), "after {now} for {filter:?}");
    }
    bench.reopen();
    assert_eq!(next_due(bench, 0, &all()), Some(at(10)));
}

/// A transaction sees the due times that it wrote.
pub fn the_next_due_time_follows_the_transaction(bench: &mut dyn Bench) {
    undo(bench, |tx| {
        let row = add_one(tx, job().due(at(9)));
        assert_eq!(tx.next_due(at(0), &all()).expect("a time is read"), Some(at(9)));
        let running = started(&row, at(60_000));
        put(tx, &row, &running);
        assert_eq!(tx.next_due(at(0), &all()).expect("a time is read"), None);
        put(tx, &running, &requeued(&running, at(4)));
        assert_eq!(tx.next_due(at(0), &all()).expect("a time is read"), Some(at(4)));
    });
    assert_eq!(next_due(bench, 0, &all()), None);
}

/// A running row whose attempt ends at these moments.
fn limited(tx: &mut dyn Tx, expires: i64, limit: Option<i64>) -> JobRow {
    let row = add_started(tx, job(), at(expires));
    let mut after = row.clone();
    after.job.lease.as_mut().expect("it is running").time_limit_at = limit.map(at);
    put(tx, &row, &after);
    after
}

fn overdue(bench: &mut dyn Bench, now: i64, limit: usize) -> Vec<JobRow> {
    undo(bench, |tx| tx.overdue(at(now), limit).expect("rows are read"))
}

/// The end is the lease end or the time limit, whichever comes first; the moment itself is over; oldest first.
pub fn an_attempt_is_over_at_its_earlier_end(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| {
        let rows = vec![
            limited(tx, 40, None),
            limited(tx, 50, Some(20)),
            limited(tx, 10, Some(60)),
            limited(tx, 20, Some(20)),
            limited(tx, 30, None),
        ];
        add_one(tx, job());
        for status in [Status::Completed, Status::Failed, Status::Cancelled] {
            add_settled(tx, job(), status, at(0));
        }
        rows
    });
    let expect = |order: &[usize]| order.iter().map(|index| rows[*index].clone()).collect::<Vec<_>>();
    assert_eq!(overdue(bench, 9, 99), []);
    assert_eq!(overdue(bench, 10, 99), expect(&[2]));
    assert_eq!(overdue(bench, 20, 99), expect(&[2, 1, 3]));
    assert_eq!(overdue(bench, 39, 99), expect(&[2, 1, 3, 4]));
    assert_eq!(overdue(bench, 40, 99), expect(&[2, 1, 3, 4, 0]));
    assert_eq!(overdue(bench, 40, 2), expect(&[2, 1]));
    assert_eq!(overdue(bench, 40, 0), []);
    bench.reopen();
    assert_eq!(overdue(bench, 1_000_000, 3), expect(&[2, 1, 3]));
}

/// A heartbeat moves the end; an attempt that has ended is no longer over.
pub fn an_end_moves_and_goes_away_with_its_row(bench: &mut dyn Bench) {
    let row = write(bench, |tx| limited(tx, 10, Some(100)));
    let mut beaten = row.clone();
    beaten.job.lease.as_mut().expect("it is running").expires_at = at(50);
    write(bench, |tx| put(tx, &row, &beaten));
    assert_eq!(overdue(bench, 49, 9), []);
    assert_eq!(overdue(bench, 50, 9), [beaten.clone()]);
    undo(bench, |tx| {
        put(tx, &beaten, &requeued(&beaten, at(60)));
        assert!(tx.overdue(at(99), 9).expect("rows are read").is_empty());
    });
    assert_eq!(overdue(bench, 50, 9), [beaten.clone()]);
    write(bench, |tx| put(tx, &beaten, &settled(&beaten, Status::Completed, at(51))));
    assert_eq!(overdue(bench, 1_000, 9), []);
}

fn expired(bench: &mut dyn Bench, now: i64, limit: usize) -> Vec<JobId> {
    undo(bench, |tx| ids(&tx.expired(at(now), limit).expect("rows are read")))
}

/// Only pending rows reach a maximum age; the moment itself is over; oldest first, due or not.
pub fn a_pending_row_is_expired_at_its_maximum_age(bench: &mut dyn Bench) {
    let drafts = [
        job().expires(at(30)),
        job().expires(at(10)).due(at(99_999)),
        job(),
        job().expires(at(20)).priority(100),
        job().expires(at(20)),
        job().expires(at(5)),
        job().expires(at(6)),
    ];
    let rows = write(bench, |tx| add(tx, &drafts));
    let id = |index: usize| rows[index].job.id;
    let running = started(&rows[5], at(60_000));
    write(bench, |tx| {
        put(tx, &rows[5], &running);
        put(tx, &rows[6], &settled(&rows[6], Status::Cancelled, at(0)));
    });
    assert_eq!(expired(bench, 9, 99), []);
    assert_eq!(expired(bench, 10, 99), [id(1)]);
    assert_eq!(expired(bench, 20, 99), [id(1), id(3), id(4)]);
    assert_eq!(expired(bench, 30, 99), [id(1), id(3), id(4), id(0)]);
    assert_eq!(expired(bench, 30, 2), [id(1), id(3)]);
    assert_eq!(expired(bench, 30, 0), []);
    write(bench, |tx| put(tx, &running, &requeued(&running, at(3))));
    assert_eq!(expired(bench, 10, 99), [id(5), id(1)]);
    let mut ageless = requeued(&rows[1], at(0));
    ageless.job.expires_at = None;
    write(bench, |tx| put(tx, &rows[1], &ageless));
    bench.reopen();
    assert_eq!(expired(bench, 29, 99), [id(5), id(3), id(4)]);
}

/// Lease end and time limit of all running rows move together, and with them the order in which they end.
pub fn shifted_leases_end_later_in_the_same_order(bench: &mut dyn Bench) {
    let (rows, still) = write(bench, |tx| {
        let rows = vec![limited(tx, 30, Some(25)), limited(tx, 10, None), limited(tx, 20, Some(90))];
        (rows, [add_one(tx, job().expires(at(9))), add_settled(tx, job(), Status::Completed, at(1))])
    });
    assert_eq!(write(bench, |tx| tx.shift_leases(1_000).expect("leases are moved")), 3);
    expect_shifted(bench, &rows, 1_000);
    for row in &still {
        assert_eq!(stored(bench, row.job.id).as_ref(), Some(row));
    }
    undo(bench, |tx| tx.shift_leases(5_000).expect("leases are moved"));
    expect_shifted(bench, &rows, 1_000);
    assert_eq!(write(bench, |tx| tx.shift_leases(-1_500).expect("leases are moved")), 3);
    bench.reopen();
    expect_shifted(bench, &rows, -500);
}

fn expect_shifted(bench: &mut dyn Bench, rows: &[JobRow], ms: i64) {
    let shifted = rows.iter().map(|row| {
        let mut row = row.clone();
        let lease = row.job.lease.as_mut().expect("it is running");
        lease.expires_at = lease.expires_at.plus_ms(ms);
        lease.time_limit_at = lease.time_limit_at.map(|limit| limit.plus_ms(ms));
        row
    });
    let shifted: Vec<JobRow> = shifted.collect();
    for row in &shifted {
        assert_eq!(stored(bench, row.job.id).as_ref(), Some(row));
    }
    let expect = |order: &[usize]| order.iter().map(|index| shifted[*index].clone()).collect::<Vec<_>>();
    assert_eq!(overdue(bench, 9 + ms, 9), []);
    assert_eq!(overdue(bench, 20 + ms, 9), expect(&[1, 2]));
    assert_eq!(overdue(bench, 25 + ms, 9), expect(&[1, 2, 0]));
}

/// A shift in the middle of a transaction is seen by what follows in it, and does not break a guard.
pub fn a_shift_is_seen_at_once_and_breaks_no_guard(bench: &mut dyn Bench) {
    assert_eq!(write(bench, |tx| tx.shift_leases(7).expect("no lease is moved")), 0);
    let row = write(bench, |tx| limited(tx, 10, None));
    write(bench, |tx| {
        tx.shift_leases(100).expect("leases are moved");
        assert!(tx.overdue(at(10), 9).expect("rows are read").is_empty());
        let moved = load(tx, row.job.id).expect("the row is there");
        assert_eq!(moved.job.version, row.job.version);
        put(tx, &moved, &settled(&moved, Status::Completed, at(11)));
    });
    assert_eq!(overdue(bench, 1_000, 9), []);
}

/// A running row under a claim of this worker with this `request_id`.
fn claimed(tx: &mut dyn Tx, worker: &str, request: Option<&str>) -> JobRow {
    let row = add_one(tx, job());
    let mut running = started(&row, at(60_000));
    let lease = running.job.lease.as_mut().expect("it is running");
    worker.clone_into(&mut lease.worker);
    lease.request_id = request.map(str::to_owned);
    put(tx, &row, &running);
    running
}

/// A repeated claim finds its leases by worker and request, and nobody else's.
pub fn a_claim_is_found_again_by_worker_and_request(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| {
        vec![
            claimed(tx, "w1", Some("r1")),
            claimed(tx, "w1", Some("r2")),
            claimed(tx, "w2", Some("r1")),
            claimed(tx, "w1", None),
            claimed(tx, "w1", Some("r1")),
            claimed(tx, "w1r", Some("1")),
            claimed(tx, "W1", Some("r1")),
            claimed(tx, "w1", Some("r1")),
        ]
    });
    write(bench, |tx| put(tx, &rows[7], &settled(&rows[7], Status::Completed, at(1))));
    let found = |bench: &mut dyn Bench, worker: &str, request: &str| {
        undo(bench, |tx| tx.claimed_by_request(worker, request).expect("rows are read"))
    };
    assert_eq!(found(bench, "w1", "r1"), [rows[0].clone(), rows[4].clone()]);
    assert_eq!(found(bench, "w1", "r2"), [rows[1].clone()]);
    assert_eq!(found(bench, "w2", "r1"), [rows[2].clone()]);
    assert_eq!(found(bench, "w2", "r2"), []);
    assert_eq!(found(bench, "w1", ""), []);
    bench.reopen();
    assert_eq!(found(bench, "w1r", "1"), [rows[5].clone()]);
    undo(bench, |tx| {
        put(tx, &rows[0], &requeued(&rows[0], at(9)));
        assert_eq!(tx.claimed_by_request("w1", "r1").expect("rows are read"), [rows[4].clone()]);
    });
}
