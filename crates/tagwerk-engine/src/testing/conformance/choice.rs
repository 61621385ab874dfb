//! What a claim may choose from: types, queues, numbers, sizes, rows to be left out.

use tagwerk_core::JobId;

use super::Bench;
use super::steps::{
    add, add_one, all, at, ids, job, look, of_queues, of_types, owned, peek, put_all, started, take, undo,
    wish, write,
};
use crate::row::JobRow;
use crate::store::{ClaimQuery, Filter};

fn picked(rows: &[JobRow], order: &[usize]) -> Vec<JobId> {
    order.iter().map(|index| rows[*index].job.id).collect()
}

/// Ids by wish.
fn looked(bench: &mut dyn Bench, wishes: &[ClaimQuery<'_>]) -> Vec<Vec<JobId>> {
    undo(bench, |tx| look(tx, at(0), wishes).iter().map(|rows| ids(rows)).collect())
}

/// By type, by queue, by both; names that nobody used; names given twice; other case.
pub fn filters_choose_by_type_and_queue(bench: &mut dyn Bench) {
    let drafts = [
        job().queue("q1").kind("t1"),
        job().queue("q1").kind("t2"),
        job().queue("q2").kind("t1"),
        job().queue("q2").kind("t2"),
        job().queue("q2").kind("t3"),
    ];
    let rows = write(bench, |tx| add(tx, &drafts));
    let both = |queues: &[&str], types: &[&str]| Filter {
        queues: Some(owned(queues)),
        types: Some(owned(types)),
        space: None,
    };
    let cases: [(Filter, &[usize]); 13] = [
        (all(), &[0, 1, 2, 3, 4]),
        (of_types(&["t1"]), &[0, 2]),
        (of_types(&["t3", "t1"]), &[0, 2, 4]),
        (of_queues(&["q2"]), &[2, 3, 4]),
        (of_queues(&["q2", "q1"]), &[0, 1, 2, 3, 4]),
        (both(&["q1"], &["t2", "t3"]), &[1]),
        (both(&["q1"], &["t3"]), &[]),
        (of_types(&["t1", "t1", "t1"]), &[0, 2]),
        (of_queues(&["q1", "nobody", "q1"]), &[0, 1]),
        (of_types(&["nobody"]), &[]),
        (of_types(&[]), &[]),
        (of_queues(&[]), &[]),
        (of_types(&["T1", "t1 ", "t"]), &[]),
    ];
    for (filter, expected) in cases {
        assert_eq!(peek(bench, at(0), &filter), picked(&rows, expected), "{filter:?}");
    }
}

/// A lane made after a filter was first used is found by the same filter.
pub fn filters_find_lanes_made_later(bench: &mut dyn Bench) {
    let filters = [of_queues(&["later"]), of_types(&["later"]), all()];
    for filter in &filters {
        assert_eq!(peek(bench, at(0), filter), []);
    }
    let row = write(bench, |tx| add_one(tx, job().queue("later").kind("later")));
    for filter in &filters {
        assert_eq!(peek(bench, at(0), filter), [row.job.id], "{filter:?}");
    }
    let more = write(bench, |tx| add_one(tx, job().queue("later").kind("other")));
    assert_eq!(peek(bench, at(0), &filters[0]), [row.job.id, more.job.id]);
}

/// Not more than wanted, and what is left comes next.
pub fn no_more_than_wanted(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &vec![job(); 5]));
    assert_eq!(looked(bench, &[wish(&all(), 0)]), [[]]);
    assert_eq!(ids(&write(bench, |tx| take(tx, at(0), wish(&all(), 2)))), picked(&rows, &[0, 1]));
    assert_eq!(ids(&write(bench, |tx| take(tx, at(0), wish(&all(), 2)))), picked(&rows, &[2, 3]));
    assert_eq!(ids(&write(bench, |tx| take(tx, at(0), wish(&all(), 2)))), picked(&rows, &[4]));
    assert_eq!(looked(bench, &[wish(&all(), 2)]), [[]]);
}

/// Rows to be left out are left out, wherever they stand, and are there for the next who asks.
pub fn skipped_rows_are_left_out_and_stay(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &vec![job(); 6]));
    let skip = picked(&rows, &[0, 2, 5]);
    let everything = all();
    let query = |wanted| ClaimQuery { skip: &skip, ..wish(&everything, wanted) };
    assert_eq!(looked(bench, &[query(2)]), [picked(&rows, &[1, 3])]);
    assert_eq!(looked(bench, &[query(9)]), [picked(&rows, &[1, 3, 4])]);
    let taken = write(bench, |tx| take(tx, at(0), query(9)));
    assert_eq!(ids(&taken), picked(&rows, &[1, 3, 4]));
    assert_eq!(looked(bench, &[query(9)]), [[]]);
    assert_eq!(peek(bench, at(0), &everything), skip);
    let strangers = [JobId(0), JobId(rows[5].job.id.0 + 1)];
    let query = ClaimQuery { skip: &strangers, ..wish(&everything, 9) };
    assert_eq!(looked(bench, &[query]), [skip]);
}

/// Several wishes in one call are served one after the other and never share a row.
pub fn wishes_of_one_call_never_share_a_row(bench: &mut dyn Bench) {
    let drafts = [job().kind("a"), job().kind("b"), job().kind("a"), job().kind("b"), job().kind("c")];
    let rows = write(bench, |tx| add(tx, &drafts));
    let (a, b, everything) = (of_types(&["a"]), of_types(&["b", "a"]), all());
    let wishes = [wish(&everything, 1), wish(&a, 5), wish(&b, 1), wish(&everything, 9), wish(&b, 9)];
    let expected = [vec![0], vec![2], vec![1], vec![3, 4], vec![]];
    let expected: Vec<Vec<JobId>> = expected.iter().map(|order| picked(&rows, order)).collect();
    assert_eq!(looked(bench, &wishes), expected);
    let skip = picked(&rows, &[0]);
    let wishes = [ClaimQuery { skip: &skip, ..wish(&a, 1) }, wish(&a, 9)];
    assert_eq!(looked(bench, &wishes), [picked(&rows, &[2]), picked(&rows, &[0])]);
    assert_eq!(looked(bench, &[]), Vec::<Vec<JobId>>::new());
}

/// Two calls in one transaction go on where the first ended.
pub fn calls_of_one_transaction_go_on(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &[job().kind("a"), job().kind("b"), job().kind("a")]));
    write(bench, |tx| {
        assert_eq!(ids(&take(tx, at(0), wish(&of_types(&["a"]), 1))), picked(&rows, &[0]));
        assert_eq!(ids(&take(tx, at(0), wish(&all(), 1))), picked(&rows, &[1]));
        assert_eq!(ids(&take(tx, at(0), wish(&all(), 9))), picked(&rows, &[2]));
        assert!(take(tx, at(0), wish(&all(), 9)).is_empty());
    });
}

/// F131: the answer stops before its budget is passed; the first row is given whatever its size.
pub fn f131_payloads_add_up_to_no_more_than_the_budget(bench: &mut dyn Bench) {
    let drafts = [job().payload_of(50), job().payload_of(30), job().payload_of(40), job().payload_of(2)];
    let rows = write(bench, |tx| add(tx, &drafts));
    let everything = all();
    let query = |max_bytes| ClaimQuery { max_bytes, ..wish(&everything, 9) };
    let cases: [(u64, &[usize]); 8] = [
        (0, &[0]),
        (49, &[0]),
        (50, &[0]),
        (79, &[0]),
        (80, &[0, 1]),
        (119, &[0, 1]),
        (120, &[0, 1, 2]),
        (122, &[0, 1, 2, 3]),
    ];
    for (budget, expected) in cases {
        assert_eq!(looked(bench, &[query(budget)]), [picked(&rows, expected)], "budget {budget}");
    }
    let two = looked(bench, &[query(10), query(71), query(1_000)]);
    assert_eq!(two, [picked(&rows, &[0]), picked(&rows, &[1, 2]), picked(&rows, &[3])]);
    let taken = write(bench, |tx| take(tx, at(0), query(60)));
    assert_eq!(ids(&taken), picked(&rows, &[0]));
    assert_eq!(peek(bench, at(0), &everything), picked(&rows, &[1, 2, 3]));
}

/// What stands between two lanes of a filter and belongs to another is passed over and stays.
pub fn rows_of_other_lanes_are_passed_over_and_stay(bench: &mut dyn Bench) {
    let drafts: Vec<_> =
        (0..600).map(|n| job().kind(if n % 100 == 99 { "rare" } else { "common" })).collect();
    let rows = write(bench, |tx| add(tx, &drafts));
    let rare = write(bench, |tx| take(tx, at(0), wish(&of_types(&["rare"]), 4)));
    assert_eq!(ids(&rare), picked(&rows, &[99, 199, 299, 399]));
    let left: Vec<JobId> = ids(&rows).into_iter().filter(|id| !ids(&rare).contains(id)).collect();
    assert_eq!(peek(bench, at(0), &all()), left);
}

/// A full answer of the same rows for two wishes with different filters, then a commit: nobody is lost.
pub fn every_row_goes_to_exactly_one_wish(bench: &mut dyn Bench) {
    let drafts: Vec<_> = (0_u8..90).map(|n| job().kind(["a", "b", "c"][usize::from(n % 3)])).collect();
    let rows = write(bench, |tx| add(tx, &drafts));
    let (ab, bc, ca) = (of_types(&["a", "b"]), of_types(&["b", "c"]), of_types(&["c", "a"]));
    let mut taken = Vec::new();
    loop {
        let given = write(bench, |tx| {
            let given = look(tx, at(0), &[wish(&ab, 7), wish(&bc, 6), wish(&ca, 5)]).concat();
            let changes: Vec<_> = given.iter().map(|row| (row.clone(), started(row, at(60_000)))).collect();
            put_all(tx, &changes);
            given
        });
        if given.is_empty() {
            break;
        }
        taken.extend(ids(&given));
    }
    taken.sort_unstable();
    assert_eq!(taken, ids(&rows));
}
