//! The book of heads against the rows: early, never late.

use std::collections::BTreeMap;

use tagwerk_core::{JobId, Status};
use tagwerk_engine::row::JobRow;
use tagwerk_engine::store::{ClaimQuery, Filter, Store as _};
use tagwerk_engine::testing::entropy::Seeded;

use super::Place;
use super::steps::{Draft, add, at, claimable, job_of, put, requeued, settled, started, take, undo, write};
use crate::book::{Book, Head, Level, scan};

const KINDS: [&str; 5] = ["a", "b", "c", "d", "e"];

fn heads(book: &Book) -> BTreeMap<Level, Head> {
    book.levels(None).into_iter().collect()
}

fn rows(place: &Place) -> BTreeMap<Level, Head> {
    scan(&place.store.writer.conn).expect("a scan").into_iter().collect()
}

/// No head stands behind the first row of its level.
fn check_never_late(place: &Place) {
    let heads = heads(&place.store.writer.book);
    for (level, first) in rows(place) {
        let head =
            heads.get(&level).unwrap_or_else(|| panic!("{level:?} has rows from {first:?} on, but no head"));
        assert!(*head <= first, "{level:?}: the head {head:?} is behind {first:?}");
    }
}

fn draft(chance: &mut Seeded, now: i64) -> Draft {
    let due = now + i64::try_from(chance.below(40)).expect("small") - 25;
    let priority = [0, 10, 10, 10, 30][chance.below(5)];
    Draft { priority, due: at(due), ..job_of(KINDS[chance.below(KINDS.len())]) }
}

/// One random move; returns whether the rows in `known` still hold.
pub(super) fn step(place: &mut Place, chance: &mut Seeded, now: i64) {
    let pick = chance.below(8);
    let drafts: Vec<Draft> = (0..=chance.below(6)).map(|_| draft(chance, now)).collect();
    let n = chance.below(7);
    let target = JobId(i64::try_from(chance.below(200)).expect("small") + 1);
    let moved = move |tx: &mut dyn tagwerk_engine::store::Tx| match pick {
        0..=2 => drop(add(tx, &drafts)),
        3..=4 => drop(take(tx, at(now), n)),
        5 => tx.erase(&[target]).expect("erased"),
        _ => {
            let Some(row) = tx.load(&[target]).expect("loaded").pop().flatten().and_then(Result::ok) else {
                return;
            };
            put(tx, &[(row.clone(), changed(&row, (pick, now)))]);
        }
    };
    if chance.one_in(4) { undo(&mut place.store, moved) } else { write(&mut place.store, moved) }
}

fn changed(row: &JobRow, (pick, now): (usize, i64)) -> JobRow {
    match row.job.status {
        Status::Pending if pick == 6 => settled(row, Status::Cancelled, at(now)),
        Status::Pending => requeued(row, at(now - 30)),
        Status::Running if pick == 6 => requeued(row, at(now - 3)),
        Status::Running => settled(row, Status::Completed, at(now)),
        _ => requeued(row, at(now + 3)),
    }
}

#[test]
fn heads_are_never_late_whatever_happens() {
    for seed in 0..20 {
        let mut place = Place::new();
        place.sql("PRAGMA synchronous = OFF");
        let mut chance = Seeded::new(seed);
        for round in 0..150 {
            step(&mut place, &mut chance, round);
            check_never_late(&place);
        }
        // What a claim of everything leaves is exact.
        write(&mut place.store, |tx| take(tx, at(150), usize::MAX));
        assert_eq!(heads(&place.store.writer.book), rows(&place), "seed {seed}");
        let rebuilt = Book::rebuild(&place.store.writer.conn, &place.store.writer.lanes).expect("a book");
        assert_eq!(heads(&rebuilt), rows(&place), "seed {seed}");
    }
}

#[test]
fn a_given_row_that_nobody_changes_is_offered_again() {
    let mut place = Place::new();
    let rows = write(&mut place.store, |tx| add(tx, &[job_of("a"), job_of("a"), job_of("a")]));
    let everything = (&Filter::default(), 2);
    write(&mut place.store, |tx| drop(claimable(tx, at(0), everything)));
    check_never_late(&place);
    let again = undo(&mut place.store, |tx| claimable(tx, at(0), everything));
    assert_eq!(again, rows[..2]);
}

#[test]
fn a_claim_of_one_lane_reads_one_row_more_than_it_takes() {
    let mut place = Place::new();
    write(&mut place.store, |tx| add(tx, &vec![job_of("a"); 50]));
    let given = undo(&mut place.store, |tx| claimable(tx, at(0), (&Filter::default(), 10)));
    assert_eq!(given.len(), 10);
    write(&mut place.store, |tx| take(tx, at(0), 10));
    let heads = heads(&place.store.writer.book);
    assert_eq!(heads.values().map(|head| head.id).collect::<Vec<_>>(), [11], "the head is exact");
}

#[test]
fn many_lanes_cost_a_claim_nothing() {
    let mut place = Place::new();
    place.sql("PRAGMA synchronous = OFF");
    let drafts: Vec<Draft> = (0..5_000).map(|n| job_of(&format!("type-{n}"))).collect();
    write(&mut place.store, |tx| add(tx, &drafts));
    let from = place.store.writer.runs;
    for n in 0..100 {
        let taken = write(&mut place.store, |tx| take(tx, at(0), 1));
        assert_eq!(taken[0].job.id, JobId(n + 1));
    }
    assert_eq!(place.store.writer.runs - from, 100, "one seek a claim");
}

#[test]
fn a_rolled_back_start_is_found_again() {
    let mut place = Place::new();
    let rows = write(&mut place.store, |tx| add(tx, &[job_of("a"), job_of("b")]));
    undo(&mut place.store, |tx| {
        take(tx, at(0), 2);
        let running = started(&rows[0], at(0));
        put(tx, &[(running.clone(), requeued(&running, at(9)))]);
    });
    check_never_late(&place);
    assert_eq!(write(&mut place.store, |tx| take(tx, at(0), 2)).len(), 2);
}

#[test]
fn many_claims_in_one_call_do_not_step_over_each_others_rows() {
    let mut place = Place::new();
    write(&mut place.store, |tx| add(tx, &vec![job_of("a"); 500]));
    let (filter, from) = (Filter::default(), place.store.writer.runs);
    let one = ClaimQuery { filter: &filter, wanted: 1, max_bytes: u64::MAX, skip: &[] };
    let given = undo(&mut place.store, |tx| tx.claimable(at(0), &vec![one; 300]).expect("rows"));
    let ids: Vec<i64> = given.iter().flatten().map(|row| row.job.id.0).collect();
    assert!(ids.iter().copied().eq(1..=300));
    assert!(place.store.writer.runs - from <= 600);
}

#[test]
fn nothing_is_read_anew_but_for_somebody_elses_changes() {
    let mut place = Place::new();
    assert_eq!(place.store.writer.reloads, 1, "at the start");
    for round in 0..30 {
        write(&mut place.store, |tx| drop(add(tx, &vec![job_of("a"); 300])));
        undo(&mut place.store, |tx| drop(add(tx, &vec![job_of("b"); 3_000])));
        write(&mut place.store, |tx| drop(take(tx, at(0), 10)));
        undo(&mut place.store, |tx| drop(take(tx, at(0), 2_000)));
        if round % 5 == 0 {
            place.store.housekeeping().expect("housekeeping");
        }
    }
    assert_eq!(place.store.writer.reloads, 1);
    let shell = rusqlite::Connection::open(place.path()).expect("a shell");
    let changed =
        shell.execute("UPDATE job SET state = 0, lease_until = NULL, lease_bits = NULL WHERE id = 1", []);
    assert_eq!(changed, Ok(1));
    let taken = write(&mut place.store, |tx| take(tx, at(0), 1));
    assert_eq!((taken[0].job.id, place.store.writer.reloads), (JobId(1), 2));
}
