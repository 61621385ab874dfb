//! Claim order: priority descending, due time, id; nothing else.

use tagwerk_core::JobId;

use super::Bench;
use super::steps::{
    add, add_one, all, at, ids, job, of_types, owned, peek, put, requeued, started, take, undo, wish, write,
};
use crate::row::JobRow;
use crate::store::Filter;

/// What claims of `size` hand out one after the other until nothing is left.
fn drain(bench: &mut dyn Bench, size: usize, filter: &Filter) -> Vec<JobId> {
    let mut order = Vec::new();
    loop {
        let rows = write(bench, |tx| take(tx, at(0), wish(filter, size)));
        if rows.is_empty() {
            return order;
        }
        assert!(rows.len() <= size, "{} rows for a wish of {size}", rows.len());
        order.extend(ids(&rows));
    }
}

fn picked(rows: &[JobRow], order: &[usize]) -> Vec<JobId> {
    order.iter().map(|index| rows[*index].job.id).collect()
}

/// Priority before due time before id.
pub fn priority_comes_before_due_time_and_due_time_before_id(bench: &mut dyn Bench) {
    let drafts = [
        job().priority(10).due(at(-5)),
        job().priority(20).due(at(-1)),
        job().priority(10).due(at(-9)),
        job().priority(20).due(at(-1)),
        job().priority(0).due(at(-99)),
        job().priority(20).due(at(-2)),
        job().priority(10).due(at(-5)),
    ];
    let rows = write(bench, |tx| add(tx, &drafts));
    let order = picked(&rows, &[5, 1, 3, 2, 0, 6, 4]);
    assert_eq!(peek(bench, at(0), &all()), order);
    bench.reopen();
    assert_eq!(drain(bench, 2, &all()), order);
}

/// F137: a backlog of earlier start times does not beat a higher priority.
pub fn f137_a_backlog_does_not_beat_a_higher_priority(bench: &mut dyn Bench) {
    let backlog: Vec<_> = (0..1_000).map(|n| job().priority(0).due(at(n - 5_000))).collect();
    write(bench, |tx| add(tx, &backlog));
    let urgent = write(bench, |tx| add_one(tx, job().priority(10).due(at(0))));
    let next = write(bench, |tx| take(tx, at(0), wish(&all(), 1)));
    assert_eq!(ids(&next), [urgent.job.id]);
}

/// All 101 priorities are levels of their own.
pub fn every_priority_is_a_level_of_its_own(bench: &mut dyn Bench) {
    let drafts: Vec<_> =
        (0..=100_u32).map(|n| job().priority(u8::try_from(n * 37 % 101).expect("below 101"))).collect();
    let mut rows = write(bench, |tx| add(tx, &drafts));
    rows.sort_by_key(|row| std::cmp::Reverse(row.priority));
    assert_eq!(drain(bench, 7, &all()), ids(&rows));
}

/// F134: equal priority, equal time: the order of the ids, however many there are.
pub fn f134_ten_thousand_equal_jobs_come_in_id_order(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &vec![job(); 10_000]));
    assert_eq!(drain(bench, 1_000, &all()), ids(&rows));
}

/// F135: ids compare as numbers: 9 before 10 before 100.
pub fn f135_ids_compare_as_numbers(bench: &mut dyn Bench) {
    bench.set_next_id(JobId(7));
    let rows = write(bench, |tx| add(tx, &vec![job().due(at(-3)); 105]));
    let order = ids(&rows);
    assert!(order.is_sorted() && order[104].0 > 100);
    assert_eq!(peek(bench, at(0), &all()), order);
    assert_eq!(drain(bench, 1, &all()), order);
}

/// Lanes do not matter for the order: jobs of all queues and types mix by priority, due time, id.
pub fn jobs_of_many_lanes_mix_in_one_order(bench: &mut dyn Bench) {
    let names = ["a", "b", "c", "d", "e"];
    let drafts: Vec<_> = (0_u8..100)
        .map(|n| {
            let (queue, kind) = (names[usize::from(n % 5)], names[usize::from(n / 5 % 4)]);
            job().queue(queue).kind(kind).priority(n % 3 * 10).due(at(-i64::from(n) * 7 % 11))
        })
        .collect();
    let mut rows = write(bench, |tx| add(tx, &drafts));
    rows.sort_by_key(|row| (std::cmp::Reverse(row.priority), row.job.available_at, row.job.id));
    assert_eq!(peek(bench, at(0), &all()), ids(&rows));
    rows.retain(|row| ["b", "d"].contains(&&*row.lane.kind) && ["a", "c", "e"].contains(&&*row.lane.queue));
    let filter =
        Filter { queues: Some(owned(&["e", "c", "a"])), types: Some(owned(&["d", "b"])), space: None };
    assert_eq!(drain(bench, 4, &filter), ids(&rows));
}

/// Due is a condition: the future is not given, the present is.
pub fn a_job_is_given_from_its_due_time_on(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &[job().due(at(1)), job().due(at(0)), job().due(at(2))]));
    assert_eq!(peek(bench, at(-1), &all()), []);
    assert_eq!(peek(bench, at(0), &all()), picked(&rows, &[1]));
    assert_eq!(peek(bench, at(1), &all()), picked(&rows, &[1, 0]));
    assert_eq!(peek(bench, at(2), &all()), picked(&rows, &[1, 0, 2]));
}

/// A higher priority in the future does not hide what is due below it, and is first when its time comes.
pub fn a_future_high_priority_hides_nothing(bench: &mut dyn Bench) {
    let drafts = [
        job().priority(100).due(at(10)),
        job().priority(50).due(at(5)),
        job().priority(10).due(at(0)),
        job().priority(0).due(at(-1)),
    ];
    let rows = write(bench, |tx| add(tx, &drafts));
    assert_eq!(peek(bench, at(0), &all()), picked(&rows, &[2, 3]));
    assert_eq!(peek(bench, at(5), &all()), picked(&rows, &[1, 2, 3]));
    assert_eq!(peek(bench, at(10), &all()), picked(&rows, &[0, 1, 2, 3]));
    assert_eq!(peek(bench, at(4), &all()), picked(&rows, &[2, 3]));
}

/// F127: a million scheduled jobs or a thousand: those that are due are found behind them.
pub fn f127_scheduled_jobs_in_front_do_not_hide_due_ones(bench: &mut dyn Bench) {
    let mut drafts = vec![job().priority(20).due(at(86_400_000)); 1_000];
    drafts.extend(vec![job().priority(20).due(at(-1)); 3]);
    drafts.extend(vec![job().priority(10).due(at(-1)); 2]);
    let rows = write(bench, |tx| add(tx, &drafts));
    assert_eq!(drain(bench, 4, &all()), ids(&rows[1_000..]));
}

/// F132, F133: a job that comes back stands where its new due time puts it, so those behind it are served.
pub fn f132_f133_a_requeued_job_goes_behind_those_due_before(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &[job().due(at(-3)), job().due(at(-2)), job().due(at(-1))]));
    let first = write(bench, |tx| take(tx, at(0), wish(&all(), 1)));
    assert_eq!(ids(&first), picked(&rows, &[0]));
    let running = started(&first[0], at(60_000));
    write(bench, |tx| put(tx, &running, &requeued(&running, at(0))));
    assert_eq!(drain(bench, 1, &all()), picked(&rows, &[1, 2, 0]));
}

/// A job that comes back with the due time of others stands among them by its id.
pub fn a_requeued_job_stands_among_equals_by_its_id(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &vec![job(); 4]));
    let taken = write(bench, |tx| take(tx, at(0), wish(&all(), 3)));
    let running = started(&taken[1], at(60_000));
    write(bench, |tx| put(tx, &running, &requeued(&running, at(0))));
    assert_eq!(drain(bench, 1, &all()), picked(&rows, &[1, 3]));
}

/// An expired job that nobody has swept yet is given like any other: what becomes of it is not the store's decision.
pub fn an_expired_row_is_still_a_row(bench: &mut dyn Bench) {
    let row = write(bench, |tx| add_one(tx, job().expires(at(5))));
    assert_eq!(peek(bench, at(9), &all()), [row.job.id]);
}

/// Within its own transaction a claim sees what was written before it.
pub fn a_claim_sees_what_its_transaction_wrote(bench: &mut dyn Bench) {
    let old = write(bench, |tx| add_one(tx, job().kind("old")));
    undo(bench, |tx| {
        let new = add_one(tx, job().kind("new").due(at(-1)));
        let running = started(&old, at(60_000));
        put(tx, &old, &running);
        assert_eq!(ids(&take(tx, at(0), wish(&all(), 9))), [new.job.id]);
        put(tx, &running, &requeued(&running, at(0)));
        assert_eq!(ids(&take(tx, at(0), wish(&of_types(&["old", "new"]), 9))), [old.job.id]);
    });
    assert_eq!(peek(bench, at(0), &all()), [old.job.id]);
}
