//! The ledger: sums per lane that survive everything that happens to rows.

use tagwerk_core::Status;

use super::Bench;
use super::steps::{add, add_one, at, job, put, read, settled, undo, write};
use crate::row::{Counter, Lane, Tally};
use crate::store::Tx;

fn tally(numbers: &[(Counter, i64)]) -> Tally {
    let mut tally = Tally::default();
    for (counter, n) in numbers {
        tally.add(*counter, *n);
    }
    tally
}

/// A tally in which every counter has a number of its own.
fn odd_tally(salt: i64) -> Tally {
    let numbers: Vec<(Counter, i64)> =
        (1..).zip(Counter::ALL).map(|(n, counter)| (counter, 1_000 * salt + n)).collect();
    tally(&numbers)
}

/// The ledger without lanes that have nothing in it, in lane order.
fn ledger(bench: &mut dyn Bench) -> Vec<(Lane, Tally)> {
    let mut rows = read(bench, |view| view.ledger().expect("the ledger is read"));
    rows.retain(|(_, tally)| !tally.is_zero());
    rows.sort_by_key(|(lane, _)| lane.id);
    rows
}

fn lanes(tx: &mut dyn Tx) -> Vec<Lane> {
    let mut lanes = tx.intern(&[("q1", "t1"), ("q1", "t2"), ("q2", "t1")]).expect("lanes are interned");
    lanes.sort_by_key(|lane| lane.id);
    lanes
}

/// Every counter has a column of its own, and deltas add up: in a call, in a transaction, over transactions.
pub fn f119_every_counter_adds_up_by_itself(bench: &mut dyn Bench) {
    let lanes = write(bench, |tx| {
        let lanes = lanes(tx);
        let deltas = [(lanes[0].id, odd_tally(1)), (lanes[1].id, odd_tally(2)), (lanes[0].id, odd_tally(3))];
        tx.add_ledger(&deltas).expect("the ledger is written");
        tx.add_ledger(&[(lanes[0].id, odd_tally(5))]).expect("the ledger is written");
        lanes
    });
    bench.reopen();
    let less = tally(&[(Counter::Pending, -2), (Counter::Running, 2)]);
    write(bench, |tx| tx.add_ledger(&[(lanes[1].id, less)]).expect("the ledger is written"));
    let (mut first, mut second) = (odd_tally(1), odd_tally(2));
    first.merge(&odd_tally(3));
    first.merge(&odd_tally(5));
    second.merge(&less);
    assert_eq!(ledger(bench), [(lanes[0].clone(), first), (lanes[1].clone(), second)]);
}

/// The ledger takes numbers below zero and above 32 bits.
pub fn numbers_keep_all_their_bits(bench: &mut dyn Bench) {
    let big =
        tally(&[(Counter::Enqueued, 1 << 40), (Counter::Pending, -(1 << 41)), (Counter::Claims, i64::MAX)]);
    let lane = write(bench, |tx| {
        let lane = lanes(tx).remove(0);
        tx.add_ledger(&[(lane.id, big)]).expect("the ledger is written");
        lane
    });
    bench.reopen();
    assert_eq!(ledger(bench), [(lane, big)]);
}

/// Nothing of a transaction that rolls back is in the sums.
pub fn a_sum_that_rolls_back_is_not_there(bench: &mut dyn Bench) {
    let lanes = write(bench, |tx| {
        let lanes = lanes(tx);
        tx.add_ledger(&[(lanes[2].id, odd_tally(1))]).expect("the ledger is written");
        lanes
    });
    undo(bench, |tx| {
        let deltas = [(lanes[2].id, odd_tally(4)), (lanes[0].id, odd_tally(4))];
        tx.add_ledger(&deltas).expect("the ledger is written");
    });
    assert_eq!(ledger(bench), [(lanes[2].clone(), odd_tally(1))]);
}

/// The ledger is not derived from rows: erasing a job changes nothing in it.
pub fn the_ledger_outlives_its_jobs(bench: &mut dyn Bench) {
    let row = write(bench, |tx| {
        let row = add_one(tx, job());
        tx.add_ledger(&[(row.lane.id, odd_tally(1))]).expect("the ledger is written");
        row
    });
    write(bench, |tx| tx.erase(&[row.job.id]).expect("a job is erased"));
    bench.reopen();
    assert_eq!(ledger(bench), [(row.lane, odd_tally(1))]);
}

/// Rows are counted by lane and status from the rows themselves.
pub fn f149_rows_are_counted_by_lane_and_status(bench: &mut dyn Bench) {
    let drafts = [job(), job(), job(), job().kind("other"), job().queue("q"), job()];
    let rows = write(bench, |tx| {
        let rows = add(tx, &drafts);
        put(tx, &rows[0], &settled(&rows[0], Status::Completed, at(1)));
        put(tx, &rows[1], &settled(&rows[1], Status::Failed, at(1)));
        put(tx, &rows[5], &settled(&rows[5], Status::Failed, at(1)));
        rows
    });
    let mut counts = read(bench, |view| view.counts().expect("rows are counted"));
    counts.retain(|(_, _, n)| *n != 0);
    counts.sort_by_key(|(lane, status, _)| (lane.id, *status));
    let lane = |index: usize| rows[index].lane.clone();
    let mut expected = vec![
        (lane(0), Status::Pending, 1),
        (lane(0), Status::Completed, 1),
        (lane(0), Status::Failed, 2),
        (lane(3), Status::Pending, 1),
        (lane(4), Status::Pending, 1),
    ];
    expected.sort_by_key(|(lane, status, _)| (lane.id, *status));
    assert_eq!(counts, expected);
}
