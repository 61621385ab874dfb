//! What a store remembers about its claimable rows may be early, never late: after whatever happened in between, a claim
//! finds the same rows that a search through all of them would find.

use tagwerk_core::{JobId, Status};

use super::Bench;
use super::steps::{
    add, add_one, all, at, ids, job, look, of_types, peek, priority, put, put_all, requeued, settled,
    started, take, undo, wish, write,
};
use crate::row::JobRow;

fn picked(rows: &[JobRow], order: &[usize]) -> Vec<JobId> {
    order.iter().map(|index| rows[*index].job.id).collect()
}

/// A claim that rolls back has taken nothing, however much of a level it had gone through.
pub fn a_claim_that_rolls_back_has_taken_nothing(bench: &mut dyn Bench) {
    let drafts = [job().priority(20), job().priority(20), job(), job(), job().priority(0)];
    let rows = write(bench, |tx| add(tx, &drafts));
    for size in 1..=6 {
        undo(bench, |tx| take(tx, at(0), wish(&all(), size)));
        assert_eq!(peek(bench, at(0), &all()), ids(&rows), "after {size} were taken and given back");
    }
    let taken = write(bench, |tx| take(tx, at(0), wish(&all(), 3)));
    assert_eq!(ids(&taken), picked(&rows, &[0, 1, 2]));
    undo(bench, |tx| take(tx, at(0), wish(&all(), 3)));
    assert_eq!(peek(bench, at(0), &all()), picked(&rows, &[3, 4]));
}

/// A row that is due before those already taken comes first, though the claims had passed its place.
pub fn a_row_inserted_before_the_last_claim_is_found(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &vec![job().due(at(-10)); 4]));
    write(bench, |tx| take(tx, at(0), wish(&all(), 2)));
    let earlier = write(bench, |tx| add_one(tx, job().due(at(-99))));
    assert_eq!(peek(bench, at(0), &all()), [earlier.job.id, rows[2].job.id, rows[3].job.id]);
    write(bench, |tx| take(tx, at(0), wish(&all(), 9)));
    assert_eq!(peek(bench, at(0), &all()), []);
    let last = write(bench, |tx| add_one(tx, job().due(at(-50))));
    assert_eq!(peek(bench, at(0), &all()), [last.job.id]);
}

/// A row that comes back with a due time in the past is found where that time puts it.
pub fn a_row_requeued_into_the_past_is_found(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &vec![job().due(at(-10)); 3]));
    write(bench, |tx| take(tx, at(0), wish(&all(), 3)));
    for (index, due) in [(2, -500), (0, -5), (1, -10)] {
        let running = started(&rows[index], at(60_000));
        write(bench, |tx| put(tx, &running, &requeued(&running, at(due))));
    }
    assert_eq!(peek(bench, at(0), &all()), picked(&rows, &[2, 1, 0]));
}

/// Rows come back out of every other status.
pub fn a_row_that_comes_back_from_rest_is_found(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &vec![job(); 4]));
    let rests = [Status::Failed, Status::Cancelled, Status::Completed];
    write(bench, |tx| take(tx, at(0), wish(&all(), 4)));
    let at_rest: Vec<JobRow> = rests
        .iter()
        .zip(&rows)
        .map(|(status, row)| settled(&started(row, at(60_000)), *status, at(1)))
        .collect();
    let changes: Vec<_> =
        rows.iter().map(|row| started(row, at(60_000))).zip(at_rest.iter().cloned()).collect();
    write(bench, |tx| put_all(tx, &changes));
    assert_eq!(peek(bench, at(9), &all()), []);
    let back: Vec<_> = at_rest.iter().map(|row| (row.clone(), requeued(row, at(2)))).collect();
    write(bench, |tx| put_all(tx, &back));
    assert_eq!(peek(bench, at(9), &all()), picked(&rows, &[0, 1, 2]));
}

/// A priority that is changed moves the row at once, up and down, also to levels that were empty.
pub fn a_row_with_a_new_priority_is_found_in_its_new_place(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &vec![job(); 3]));
    assert_eq!(peek(bench, at(0), &all()), ids(&rows));
    let mut before = rows[1].clone();
    for (value, order) in [(77, [1, 0, 2]), (3, [0, 2, 1]), (10, [0, 1, 2]), (100, [1, 0, 2]), (0, [0, 2, 1])]
    {
        let mut after = before.clone();
        after.priority = priority(value);
        after.job.version += 1;
        write(bench, |tx| put(tx, &before, &after));
        assert_eq!(peek(bench, at(0), &all()), picked(&rows, &order), "priority {value}");
        before = after;
    }
}

/// A due time that is changed while the row waits moves it, earlier and later.
pub fn a_row_with_a_new_due_time_is_found_in_its_new_place(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &[job().due(at(-5)), job().due(at(50)), job().due(at(-1))]));
    assert_eq!(peek(bench, at(0), &all()), picked(&rows, &[0, 2]));
    let early = requeued(&rows[1], at(-9));
    write(bench, |tx| put(tx, &rows[1], &early));
    assert_eq!(peek(bench, at(0), &all()), picked(&rows, &[1, 0, 2]));
    write(bench, |tx| put(tx, &early, &requeued(&early, at(-3))));
    assert_eq!(peek(bench, at(0), &all()), picked(&rows, &[0, 1, 2]));
    write(bench, |tx| put(tx, &rows[0], &requeued(&rows[0], at(60))));
    assert_eq!(peek(bench, at(0), &all()), picked(&rows, &[1, 2]));
    assert_eq!(peek(bench, at(60), &all()), picked(&rows, &[1, 2, 0]));
}

/// A row taken out of the middle or off the top by somebody else than a claim is not missed and not given.
pub fn rows_that_leave_without_a_claim_leave_no_gap(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &vec![job(); 6]));
    write(bench, |tx| put(tx, &rows[0], &settled(&rows[0], Status::Cancelled, at(1))));
    assert_eq!(peek(bench, at(0), &all()), picked(&rows, &[1, 2, 3, 4, 5]));
    write(bench, |tx| tx.erase(&[rows[1].job.id, rows[3].job.id]).expect("jobs are erased"));
    assert_eq!(peek(bench, at(0), &all()), picked(&rows, &[2, 4, 5]));
    undo(bench, |tx| tx.erase(&ids(&rows[2..])).expect("jobs are erased"));
    assert_eq!(peek(bench, at(0), &all()), picked(&rows, &[2, 4, 5]));
}

/// A level that was emptied and filled again, with roll-backs between.
pub fn a_level_that_was_emptied_fills_again(bench: &mut dyn Bench) {
    for round in 0..5 {
        let row = write(bench, |tx| add_one(tx, job().priority(30).due(at(-round))));
        undo(bench, |tx| take(tx, at(0), wish(&all(), 1)));
        undo(bench, |tx| add_one(tx, job().priority(30).due(at(-100))));
        assert_eq!(peek(bench, at(0), &all()), [row.job.id], "round {round}");
        let taken = write(bench, |tx| take(tx, at(0), wish(&all(), 1)));
        assert_eq!(ids(&taken), [row.job.id]);
        undo(bench, |tx| add_one(tx, job().priority(30)));
        assert_eq!(peek(bench, at(0), &all()), [], "round {round}");
    }
}

/// Insert, claim and give back in one transaction that rolls back: as if it had never been.
pub fn a_whole_life_that_rolls_back_leaves_no_trace(bench: &mut dyn Bench) {
    let kept = write(bench, |tx| add(tx, &[job().due(at(-1)), job().due(at(-2))]));
    undo(bench, |tx| {
        add(tx, &[job().due(at(-9)), job().priority(90)]);
        let taken = take(tx, at(0), wish(&all(), 4));
        assert_eq!(taken.len(), 4);
        let running = started(&taken[0], at(60_000));
        put(tx, &running, &requeued(&running, at(-77)));
    });
    assert_eq!(peek(bench, at(0), &all()), picked(&kept, &[1, 0]));
}

/// A claim of one type leaves the others of the same level where they are.
pub fn a_claim_of_one_type_hides_nothing_of_another(bench: &mut dyn Bench) {
    let drafts: Vec<_> = (0_u8..12).map(|n| job().kind(["a", "b", "c"][usize::from(n % 3)])).collect();
    let rows = write(bench, |tx| add(tx, &drafts));
    write(bench, |tx| take(tx, at(0), wish(&of_types(&["b"]), 3)));
    assert_eq!(peek(bench, at(0), &all()), picked(&rows, &[0, 2, 3, 5, 6, 8, 9, 10, 11]));
    undo(bench, |tx| take(tx, at(0), wish(&of_types(&["a", "b"]), 9)));
    assert_eq!(peek(bench, at(0), &of_types(&["a"])), picked(&rows, &[0, 3, 6, 9]));
    write(bench, |tx| take(tx, at(0), wish(&of_types(&["a", "c"]), 3)));
    assert_eq!(peek(bench, at(0), &all()), picked(&rows, &[5, 6, 8, 9, 10, 11]));
}

/// Time that goes on finds what was in the future; time that steps back does not lose what it had found.
pub fn time_may_go_on_and_step_back(bench: &mut dyn Bench) {
    let drafts = [job().due(at(10)), job().priority(50).due(at(20)), job().due(at(30)), job().due(at(0))];
    let rows = write(bench, |tx| add(tx, &drafts));
    let expected: [(i64, &[usize]); 7] = [
        (0, &[3]),
        (30, &[1, 3, 0, 2]),
        (10, &[3, 0]),
        (-1, &[]),
        (20, &[1, 3, 0]),
        (9, &[3]),
        (1_000, &[1, 3, 0, 2]),
    ];
    for (now, order) in expected {
        assert_eq!(peek(bench, at(now), &all()), picked(&rows, order), "at {now}");
    }
    let taken = write(bench, |tx| take(tx, at(15), wish(&all(), 9)));
    assert_eq!(ids(&taken), picked(&rows, &[3, 0]));
    assert_eq!(peek(bench, at(19), &all()), []);
    assert_eq!(peek(bench, at(30), &all()), picked(&rows, &[1, 2]));
}

/// A row that was claimable and is put off in the same transaction is found when its new time comes.
pub fn a_claimable_row_that_is_put_off_comes_back_in_time(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &[job(), job(), job()]));
    write(bench, |tx| {
        let given = look(tx, at(0), &[wish(&all(), 2)]).remove(0);
        assert_eq!(ids(&given), picked(&rows, &[0, 1]));
        let put_off = requeued(&given[0], at(5));
        put_all(
            tx,
            &[(given[0].clone(), put_off), (given[1].clone(), settled(&given[1], Status::Failed, at(0)))],
        );
        assert_eq!(ids(&look(tx, at(0), &[wish(&of_types(&["nobody"]), 2)]).concat()), []);
    });
    assert_eq!(peek(bench, at(0), &all()), picked(&rows, &[2]));
    assert_eq!(peek(bench, at(5), &all()), picked(&rows, &[2, 0]));
}

/// A new process finds what the old one had found, taken and put off.
pub fn a_reopen_finds_the_same_rows(bench: &mut dyn Bench) {
    let drafts = [job().priority(20), job().kind("other"), job().due(at(40)), job().priority(0), job()];
    let rows = write(bench, |tx| add(tx, &drafts));
    let taken = write(bench, |tx| take(tx, at(0), wish(&all(), 1)));
    assert_eq!(ids(&taken), picked(&rows, &[0]));
    bench.reopen();
    assert_eq!(peek(bench, at(0), &all()), picked(&rows, &[1, 4, 3]));
    assert_eq!(peek(bench, at(40), &all()), picked(&rows, &[1, 4, 2, 3]));
    let running = started(&rows[0], at(60_000));
    write(bench, |tx| put(tx, &running, &requeued(&running, at(-1))));
    bench.reopen();
    assert_eq!(peek(bench, at(0), &all()), picked(&rows, &[0, 1, 4, 3]));
}

/// A conflict in the middle of a claim: the transaction is dropped, nothing was taken.
pub fn a_claim_that_ends_in_a_conflict_has_taken_nothing(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &[job(), job(), job()]));
    undo(bench, |tx| {
        take(tx, at(0), wish(&all(), 2));
        let mut stale = rows[2].clone();
        stale.job.version = 9;
        let change = crate::store::Change { before: stale, after: started(&rows[2], at(60_000)) };
        assert!(tx.put(&[change]).is_err());
    });
    assert_eq!(peek(bench, at(0), &all()), ids(&rows));
}
