//! What the disk and other processes do to a store.

use rusqlite::Connection;
use tagwerk_engine::store::{Store, StoreError};

use super::Place;
use super::steps::{Draft, add, at, detail, job, take, undo, write};
use crate::writer::Sequence;

fn big() -> Draft {
    Draft { detail: detail(&"x".repeat(50_000)), ..job() }
}

#[test]
fn f052_a_full_disk_is_told_and_survived() {
    let mut place = Place::new();
    let conn = &place.store.writer.conn;
    let pages: i64 = conn.pragma_query_value(None, "page_count", |row| row.get(0)).expect("pages");
    place.sql(&format!("PRAGMA max_page_count = {}", pages + 100));
    let mut accepted = Vec::new();
    let full = loop {
        let mut tx = place.store.begin().expect("a transaction");
        let names = tx.intern(&[("default", "work")]).expect("a lane");
        assert_eq!(names.len(), 1);
        let jobs = super::steps::inserts(&mut *tx, &[big()]);
        match tx.insert(&jobs).and_then(|()| tx.commit()) {
            Ok(()) => accepted.push(jobs[0].row.clone()),
            Err(error) => break error,
        }
    };
    assert!(matches!(full, StoreError::Full), "{full:?}");
    assert!(accepted.len() > 3);

    // Reading goes on, and so does work that needs no space.
    let readers = place.store.readers();
    let mut snapshot = readers.snapshot().expect("a snapshot");
    let ids: Vec<_> = accepted.iter().map(|row| row.job.id).collect();
    assert!(snapshot.jobs(&ids).expect("jobs").iter().all(Option::is_some));
    drop(snapshot);
    let running = write(&mut place.store, |tx| take(tx, at(0), 2));
    assert_eq!(running.len(), 2);

    place.sql("PRAGMA max_page_count = 1000000");
    let more = write(&mut place.store, |tx| add(tx, &[big()]));
    assert_eq!(
        more[0].job.id.0,
        accepted.last().expect("some").job.id.0 + 1,
        "ids of what failed come again"
    );
    let rest = undo(&mut place.store, |tx| take(tx, at(0), 100));
    assert_eq!(rest.len(), accepted.len() - 2 + 1);
}

/// Makes the next COMMIT fail: a deferred foreign key that is violated.
fn let_commit_fail(place: &Place) {
    place.sql(
        "PRAGMA foreign_keys = ON; CREATE TABLE parent (id INTEGER PRIMARY KEY);
         CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);
         CREATE TRIGGER violate AFTER INSERT ON job BEGIN INSERT INTO child VALUES (1); END;",
    );
}

#[test]
fn a_commit_that_failed_without_effect_is_told_as_such() {
    let mut place = Place::new();
    let_commit_fail(&place);
    let before = place.store.writer.sequence;
    let mut tx = place.store.begin().expect("a transaction");
    add(&mut *tx, &[job()]);
    let error = tx.commit().expect_err("the commit fails");
    assert!(matches!(error, StoreError::Other(_)), "{error:?}");
    assert!(place.store.writer.conn.is_autocommit());
    // A commit in its place made sure of that.
    let after = Sequence::read(&place.store.writer.conn).expect("the sequence");
    assert_eq!(after, Sequence { commits: before.commits + 2, ..before });
    assert_eq!(place.store.writer.sequence, after);

    place.sql("DROP TRIGGER violate");
    let rows = write(&mut place.store, |tx| add(tx, &[job()]));
    assert_eq!(rows[0].job.id.0, 1);
    assert_eq!(undo(&mut place.store, |tx| take(tx, at(0), 9)).len(), 1);
}

#[test]
fn a_commit_of_nothing_writes_nothing() {
    let mut place = Place::new();
    let before = place.store.writer.sequence;
    write(&mut place.store, |tx| drop(tx.load(&[]).expect("nothing")));
    assert_eq!(Sequence::read(&place.store.writer.conn).expect("the sequence"), before);
}

#[test]
fn f051_a_foreign_writer_makes_the_store_busy_and_no_more() {
    let mut place = Place::new();
    let other = Connection::open(place.path()).expect("a connection");
    other.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let error = place.store.begin().err().expect("somebody else writes");
    assert!(matches!(error, StoreError::Busy), "{error:?}");
    let readers = place.store.readers();
    readers.snapshot().expect("reading goes on").types().expect("types");
    other.execute_batch("COMMIT").expect("the end");
    assert_eq!(write(&mut place.store, |tx| add(tx, &[job()])).len(), 1);
}

/// SQLite calls it an error of the disk.
#[test]
fn f052_no_room_for_the_index_of_the_log_is_a_full_disk() {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_SHMSIZE);
    let error = crate::error::store_error(&rusqlite::Error::SqliteFailure(code, None));
    assert!(matches!(error, StoreError::Full), "{error:?}");
}
