//! Ids rise, are never used again, and fit where they must.

use tagwerk_core::limits::JOB_ID_MAX;
use tagwerk_core::{JobId, Status};

use super::Bench;
use super::steps::{add, add_one, add_settled, all, at, ids, job, listed_ids, load, peek, read, undo, write};
use crate::store::{ListQuery, Listed};

/// Ids asked for in one call are consecutive, and the next call goes on behind them.
pub fn ids_of_one_call_are_consecutive_and_calls_go_on(bench: &mut dyn Bench) {
    undo(bench, |tx| {
        let first = tx.next_ids(5).expect("ids are given");
        assert!(first.0 > 0, "ids are positive");
        let next = tx.next_ids(1).expect("ids are given");
        assert!(next.0 >= first.0 + 5, "{next} was given out with {first}");
    });
}

/// What committed before another transaction began has lower ids.
pub fn ids_rise_from_transaction_to_transaction_and_over_a_reopen(bench: &mut dyn Bench) {
    let mut last = JobId(0);
    for round in 0..6 {
        let rows = write(bench, |tx| add(tx, &[job(), job(), job()]));
        assert!(rows[0].job.id > last, "round {round}: {} after {last}", rows[0].job.id);
        last = rows[2].job.id;
        if round % 2 == 0 {
            bench.reopen();
        }
    }
}

/// Ids of a transaction that rolled back may be lost or come again, but never collide with what was committed.
pub fn ids_of_a_rolled_back_transaction_do_no_harm(bench: &mut dyn Bench) {
    let before = write(bench, |tx| add_one(tx, job()));
    undo(bench, |tx| add(tx, &[job(), job()]));
    let after = write(bench, |tx| add(tx, &[job(), job()]));
    assert!(before.job.id < after[0].job.id);
    let found = undo(bench, |tx| tx.load(&ids(&after)).expect("rows are read"));
    assert_eq!(found, after.into_iter().map(|row| Some(Ok(row))).collect::<Vec<_>>());
}

/// The sequence does not follow the highest row that is left.
pub fn ids_of_erased_jobs_are_never_used_again(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &[job(), job(), job()]));
    let highest = rows[2].job.id;
    write(bench, |tx| tx.erase(&[highest]).expect("a job is erased"));
    let next = write(bench, |tx| add_one(tx, job())).job.id;
    assert!(next > highest, "{highest} was erased and {next} given out");
    write(bench, |tx| tx.erase(&[rows[0].job.id, rows[1].job.id, next]).expect("jobs are erased"));
    bench.reopen();
    let last = write(bench, |tx| add_one(tx, job())).job.id;
    assert!(last > next, "all were erased up to {next} and {last} given out");
}

/// A job that is erased in the transaction that made it has used its id up all the same.
pub fn ids_of_jobs_erased_at_once_are_never_used_again(bench: &mut dyn Bench) {
    let gone = write(bench, |tx| {
        let row = add_settled(tx, job(), Status::Cancelled, at(1));
        tx.erase(&[row.job.id]).expect("a job is erased");
        row.job.id
    });
    assert!(write(bench, |tx| add_one(tx, job())).job.id > gone);
}

/// F143: nothing is special at the edge of 32 bits.
pub fn f143_ids_cross_the_edge_of_32_bits(bench: &mut dyn Bench) {
    crossing(bench, (1 << 31) - 2);
}

/// F143: nothing is special at the edge of unsigned 32 bits.
pub fn f143_ids_cross_the_edge_of_unsigned_32_bits(bench: &mut dyn Bench) {
    crossing(bench, (1 << 32) - 2);
}

/// F144: ids far above 32 bits work everywhere.
pub fn f144_ids_above_40_bits_work_everywhere(bench: &mut dyn Bench) {
    crossing(bench, 1 << 40);
}

fn crossing(bench: &mut dyn Bench, start: i64) {
    bench.set_next_id(JobId(start));
    let rows = write(bench, |tx| add(tx, &[job(), job(), job(), job(), job()]));
    let expected: Vec<JobId> = (start..start + 5).map(JobId).collect();
    assert_eq!(ids(&rows), expected);
    bench.reopen();
    assert_eq!(peek(bench, at(0), &all()), expected);
    assert_eq!(undo(bench, |tx| load(tx, expected[3])), Some(rows[3].clone()));
    let page = ListQuery { after: Some(expected[1]), limit: 10, ..ListQuery::default() };
    let listed = read(bench, |view| view.list(&page).expect("a list is read"));
    assert_eq!(listed_ids(&listed.rows), expected[2..]);
    let full = read(bench, |view| view.jobs(&expected[4..]).expect("jobs are read"));
    assert!(matches!(&full[0], Some(Listed::Job(full)) if full.row == rows[4]));
}

/// An id that a JSON reader cannot hold is refused, not rounded.
pub fn ids_stay_below_2_to_the_53(bench: &mut dyn Bench) {
    bench.set_next_id(JobId(JOB_ID_MAX - 1));
    undo(bench, |tx| assert!(tx.next_ids(3).is_err(), "three ids are not left"));
    let rows = write(bench, |tx| add(tx, &[job(), job()]));
    assert_eq!(ids(&rows), [JobId(JOB_ID_MAX - 1), JobId(JOB_ID_MAX)]);
    undo(bench, |tx| assert!(tx.next_ids(1).is_err(), "no id is left"));
    assert_eq!(peek(bench, at(0), &all()), [JobId(JOB_ID_MAX - 1), JobId(JOB_ID_MAX)]);
}
