//! A row that cannot be decoded is shown as damaged and does not stand in the way of any other.

use tagwerk_core::idempotency::Scope;
use tagwerk_core::{JobId, Status};

use super::Bench;
use super::steps::{
    add, add_one, add_settled, add_started, all, at, ids, job, listed_ids, peek, put, read, started, stored,
    take, undo, wish, write,
};
use crate::row::{Counter, KeyRow, KeyWrite, Tally};
use crate::store::{ListQuery, Listed, PruneQuery, Unreadable};

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

/// F151: whoever asks for it by its number is told so, gets all others, and goes on with the transaction.
pub fn f151_who_asks_for_a_damaged_row_gets_the_others(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &vec![job(); 2]));
    bench.damage(rows[0].job.id);
    let asked = [rows[1].job.id, rows[0].job.id, JobId(rows[1].job.id.0 + 1), rows[1].job.id];
    let changed = write(bench, |tx| {
        let found = tx.load(&asked).expect("rows are read");
        assert_eq!([&found[0], &found[2], &found[3]], [&Some(Ok(rows[1].clone())), &None, &found[0]]);
        assert!(matches!(&found[1], Some(Err(Unreadable(why))) if !why.is_empty()), "{:?}", found[1]);
        let changed = started(&rows[1], at(9));
        put(tx, &rows[1], &changed);
        changed
    });
    assert_eq!(stored(bench, rows[1].job.id), Some(changed));
}

/// It can be erased, and what it left behind can be found without it: its key, and where the ledger counts it.
pub fn a_damaged_row_can_be_erased(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| {
        let rows = add(tx, &vec![job(); 3]);
        let mut tally = Tally::default();
        tally.add(Counter::Pending, 3);
        tx.add_ledger(&[(rows[0].lane.id, tally)]).expect("the ledger is written");
        tx.put_keys(&[
            KeyWrite::Insert(key("own", rows[1].job.id)),
            KeyWrite::Insert(key("other", JobId(9))),
        ])
        .expect("keys are written");
        rows
    });
    let (lane, gone) = (rows[0].lane.clone(), rows[1].job.id);
    bench.damage(gone);
    read(bench, |view| assert_eq!(view.jobs(&[gone]).expect("jobs are read").len(), 1));
    write(bench, |tx| {
        assert_eq!(tx.key_of(gone).expect("keys are read"), Some(key("own", gone)));
        assert_eq!(tx.key_of(rows[2].job.id).expect("keys are read"), None);
        tx.erase(&[gone]).expect("a job is erased");
        assert_eq!(tx.counts().expect("rows are counted"), [(lane.clone(), Status::Pending, 2)]);
        let ledger = tx.ledger().expect("the ledger is read");
        assert_eq!(ledger.len(), 1);
        assert_eq!((&ledger[0].0, ledger[0].1.get(Counter::Pending)), (&lane, 3));
    });
    for _ in 0..2 {
        assert_eq!(undo(bench, |tx| tx.load(&[gone]).expect("rows are read")), [None]);
        assert_eq!(read(bench, |view| view.jobs(&[gone]).expect("jobs are read")), [None]);
        assert_eq!(read(bench, |view| view.facts().expect("facts").damaged_rows), 0);
        bench.reopen();
    }
}

fn key(name: &str, owner: JobId) -> KeyRow {
    KeyRow {
        key: name.to_owned(),
        owner,
        scope: Scope::Forever,
        ttl_ms: 0,
        fingerprint: [3; 16],
        tombstone: None,
    }
}
