//! F049: the write-ahead log stays short, whoever reads.

use std::sync::atomic::{AtomicBool, Ordering};

use tagwerk_core::JobId;
use tagwerk_engine::store::{ListQuery, Store, StoreError};
use tagwerk_sqlite::{Options, SqliteStore};

use crate::bench::options;
use crate::steps::{add, at, job, take, write};

const KIB: u64 = 1024;

fn wal_bytes(store: &SqliteStore) -> u64 {
    store.readers().snapshot().expect("a snapshot").facts().expect("facts").wal_bytes
}

#[test]
fn f049_the_log_stays_short_while_readers_never_stop_and_shrinks_when_writers_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let bounds = Options {
        wal_restart_bytes: 512 * KIB,
        wal_limit_bytes: 2_048 * KIB,
        wal_warm_bytes: 64 * KIB,
        ..options()
    };
    let mut store = SqliteStore::open(&folder.path().join("t.db"), &bounds).expect("a store");
    let readers = store.readers();
    let stop = AtomicBool::new(false);
    let longest = std::thread::scope(|scope| {
        for _ in 0..3 {
            let (readers, stop) = (&readers, &stop);
            scope.spawn(move || {
                let query = ListQuery { limit: 50, ..ListQuery::default() };
                while !stop.load(Ordering::Relaxed) {
                    let mut snapshot = readers.snapshot().expect("a snapshot");
                    snapshot.list(&query).expect("a list");
                    snapshot.ledger().expect("a ledger");
                }
            });
        }
        let mut longest = 0;
        for round in 0..400 {
            write(&mut store, |tx| drop(add(tx, &vec![job(); 20])));
            write(&mut store, |tx| drop(take(tx, at(0), 20)));
            if round % 50 == 0 {
                store.housekeeping().expect("housekeeping");
            }
            longest = longest.max(wal_bytes(&store));
        }
        stop.store(true, Ordering::Relaxed);
        longest
    });
    assert!(longest > 256 * KIB, "the log was in use: {longest}");
    assert!(longest <= 2_048 * KIB, "{longest}");
    // The first look wakes the thread that copies, later ones find next to nothing to copy and cut the log. Whoever serves
    // goes on writing down every second that it does.
    let shrunk = (0..1_000).any(|second| {
        write(&mut store, |tx| tx.set_served(at(second), &[]).expect("it is written"));
        store.housekeeping().expect("housekeeping");
        std::thread::yield_now();
        wal_bytes(&store) == 0
    });
    assert!(shrunk, "{} bytes are left", wal_bytes(&store));
    let whole = store.readers().snapshot().expect("a snapshot").scan(JobId(0), 10_000).expect("rows").len();
    assert_eq!(whole, 8_000);
}

#[test]
fn snapshots_are_bounded_and_say_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = Options { readers: 1, reader_wait: std::time::Duration::from_millis(20), ..options() };
    let store = SqliteStore::open(&folder.path().join("t.db"), &one).expect("a store");
    let readers = store.readers();
    let first = readers.snapshot().expect("a snapshot");
    assert!(matches!(readers.snapshot().err(), Some(StoreError::Busy)));
    drop(first);
    readers.snapshot().expect("there is room again");
}
