//! F151: rows that cannot be decoded are shown as what they are and stop nobody.

use rusqlite::params;
use tagwerk_core::JobId;
use tagwerk_engine::store::{ListQuery, Listed, Unreadable};
use tagwerk_engine::testing::conformance::Bench as _;

use crate::bench::SqliteBench;
use crate::steps::{add, at, job, take, write};

/// What may happen to a row behind the store's back.
const DAMAGE: &[&str] = &[
    "UPDATE job SET state = 77 WHERE id = ?1",
    "UPDATE job SET state = 1 WHERE id = ?1",
    "UPDATE job SET lease_bits = 1 WHERE id = ?1",
    "UPDATE job SET prio = 300 WHERE id = ?1",
    "UPDATE job SET lane = 12345 WHERE id = ?1",
    "UPDATE job SET flags = 128 WHERE id = ?1",
    "UPDATE job SET flags = -1 WHERE id = ?1",
    "UPDATE job SET attempt = -5 WHERE id = ?1",
    "UPDATE job SET failure = 999 WHERE id = ?1",
    "UPDATE job SET max_retries = 99999999999 WHERE id = ?1",
    "DELETE FROM detail WHERE job = ?1",
    "UPDATE detail SET subject_kind = 'order' WHERE job = ?1",
    "UPDATE detail SET correlation_id = CAST(x'ff' AS TEXT) WHERE job = ?1",
    "UPDATE detail SET scope = 9 WHERE job = ?1",
];

#[test]
fn f151_damaged_rows_of_every_kind_are_shown_and_passed_over() {
    for damage in DAMAGE {
        let mut bench = SqliteBench::new();
        write(bench.store(), |tx| add(tx, &vec![job(); 5]));
        let conn = bench.beside();
        conn.pragma_update(None, "ignore_check_constraints", true).expect("a pragma");
        assert_eq!(conn.execute(damage, params![2]), Ok(1), "{damage}");
        bench.reopen();

        let readers = bench.store().readers();
        let mut snapshot = readers.snapshot().expect("a snapshot");
        let whole = ListQuery { limit: 9, ..ListQuery::default() };
        let listing = snapshot.list(&whole).expect("a list");
        let damaged = |row: &Listed| matches!(row, Listed::Damaged { id: JobId(2), why } if !why.is_empty());
        assert_eq!((listing.rows.len(), listing.next), (5, None), "{damage}");
        assert_eq!(listing.rows.iter().filter(|row| damaged(row)).count(), 1, "{damage}: {:?}", listing.rows);
        assert!(snapshot.jobs(&[JobId(2)]).expect("jobs")[0].as_ref().is_some_and(damaged), "{damage}");
        assert_eq!(snapshot.scan(JobId(0), 9).expect("rows").iter().filter(|row| damaged(row)).count(), 1);
        snapshot.counts().expect("counts");
        drop(snapshot);

        let taken = write(bench.store(), |tx| take(tx, at(0), 9));
        let hot = damage.contains("UPDATE job");
        assert_eq!(taken.len(), if hot { 4 } else { 5 }, "{damage}");
        let mut tx = bench.store().begin().expect("a transaction");
        if hot {
            let found = tx.load(&[JobId(2)]).expect("rows").remove(0);
            assert!(matches!(&found, Some(Err(Unreadable(why))) if why.contains("job 2")), "{found:?}");
        }
        tx.erase(&[JobId(2)]).expect("erased");
        tx.commit().expect("committed");
        let mut snapshot = readers.snapshot().expect("a snapshot");
        let left: Vec<bool> = snapshot.scan(JobId(0), 9).expect("rows").iter().map(damaged).collect();
        assert_eq!(left, [false; 4], "{damage}");
        assert_eq!(snapshot.facts().expect("facts").damaged_rows, 0, "{damage}");
    }
}

/// A claim that cannot read the cold part of a job fails once, not for ever: its queue would stand still.
#[test]
fn f151_a_job_with_a_damaged_cold_part_is_passed_over_once_that_is_known() {
    for damage in DAMAGE.iter().filter(|damage| damage.contains("detail")) {
        let mut bench = SqliteBench::new();
        write(bench.store(), |tx| add(tx, &vec![job(); 5]));
        assert_eq!(bench.beside().execute(damage, params![2]), Ok(1), "{damage}");
        let mut tx = bench.store().begin().expect("a transaction");
        let details = tx.details(&[JobId(1), JobId(2), JobId(99)]).expect("details");
        assert!(matches!(details[..], [Some(Ok(_)), Some(Err(_)), None]), "{damage}: {details:?}");
        // The transaction that met it fails.
        drop(tx);
        let taken = write(bench.store(), |tx| take(tx, at(0), 9));
        let ids: Vec<i64> = taken.iter().map(|row| row.job.id.0).collect();
        assert_eq!(ids, [1, 3, 4, 5], "{damage}");
    }
}

#[test]
fn damage_to_the_file_itself_is_told() {
    let mut bench = SqliteBench::new();
    write(bench.store(), |tx| add(tx, &vec![job(); 5_000]));
    let path = bench.path();
    let _folder = bench.close();
    let mut bytes = std::fs::read(&path).expect("the file");
    let half = bytes.len() / 2;
    bytes[half..half + 40_960].fill(0xA5);
    std::fs::write(&path, bytes).expect("the file");
    let readers = tagwerk_sqlite::SqliteStore::open_read_only(&path).expect("readers");
    let mut snapshot = tagwerk_engine::store::Readers::snapshot(&*readers).expect("a snapshot");
    let found = snapshot.integrity().expect("a check");
    assert!(!found.is_empty());
}
