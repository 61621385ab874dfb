//! A row that cannot be decoded is shown as damaged and does not stand in the way of any other.

use tagwerk_core::{JobId, Status};

use super::Bench;
use super::steps::{
    add, add_one, add_settled, add_started, all, at, ids, job, listed_ids, peek, read, take, undo, wish,
    write,
};
use crate::store::{ListQuery, Listed, PruneQuery, StoreError};

/// F151: claims pass it over, before and after a reopen.
pub fn f151_a_damaged_row_does_not_stop_claims(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &vec![job(); 4]));
    bench.damage(rows[0].job.id);
    assert_eq!(peek(bench, at(0), &all()), ids(&rows[1..]));
    let taken = write(bench, |tx| take(tx, at(0), wish(&all(), 1)));
    assert_eq!(ids(&taken), ids(&rows[1..2]));
    bench.reopen();
    assert_eq!(peek(bench, at(0), &all()), ids(&rows[2..]));
}

/// F151: leases end and ages are reached behind it, and retention goes past it.
pub fn f151_a_damaged_row_does_not_stop_rescue_and_retention(bench: &mut dyn Bench) {
    let (broken, sound) = write(bench, |tx| {
        let mut three = || {
            vec![
                add_started(tx, job(), at(1)),
                add_one(tx, job().expires(at(1)).due(at(99))),
                add_settled(tx, job(), Status::Completed, at(1)),
            ]
        };
        (three(), three())
    });
    for row in &broken {
        bench.damage(row.job.id);
    }
    let query = PruneQuery {
        after: JobId(0),
        completed_until: Some(at(9)),
        cancelled_until: None,
        created_until: None,
        scan: 100,
        wanted: 100,
    };
    undo(bench, |tx| {
        assert_eq!(tx.overdue(at(9), 1).expect("rows are read"), sound[..1]);
        assert_eq!(tx.expired(at(9), 1).expect("rows are read"), sound[1..2]);
        assert_eq!(tx.prunable(&query).expect("rows are read").rows, [(sound[2].clone(), None)]);
    });
}

/// F151: lists and scans show it as what it is, among the others.
pub fn f151_a_damaged_row_is_shown_as_damaged(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &vec![job(); 3]));
    bench.damage(rows[1].job.id);
    let page = ListQuery { limit: 10, ..ListQuery::default() };
    let (scanned, listed, found) = read(bench, |view| {
        let scanned = view.scan(JobId(0), 10).expect("rows are read");
        let listed = view.list(&page).expect("a list is read").rows;
        (scanned, listed, view.jobs(&ids(&rows)).expect("jobs are read"))
    });
    let found: Vec<Listed> = found.into_iter().flatten().collect();
    for shown in [scanned, listed, found] {
        assert_eq!(listed_ids(&shown), ids(&rows));
        let damaged: Vec<bool> = shown.iter().map(|row| matches!(row, Listed::Damaged { .. })).collect();
        assert_eq!(damaged, [false, true, false]);
    }
    assert_eq!(read(bench, |view| view.facts().expect("facts").damaged_rows), 1);
}

/// F151: whoever asks for it by its number gets an error, and whoever asks for others gets them.
pub fn f151_only_who_asks_for_a_damaged_row_fails(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &vec![job(); 2]));
    bench.damage(rows[0].job.id);
    let failed = undo(bench, |tx| tx.load(&[rows[1].job.id, rows[0].job.id]));
    assert!(matches!(failed, Err(StoreError::DamagedRow(_))), "{failed:?}");
    assert_eq!(undo(bench, |tx| tx.load(&ids(&rows[1..])).expect("rows are read")), [Some(rows[1].clone())]);
}
