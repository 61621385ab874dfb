//! From a path to a store, and what can be wrong with the path.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tagwerk_core::JobId;
use tagwerk_engine::store::{Listed, Readers as _, Store as _, StoreError};
use tagwerk_engine::testing::conformance::Bench as _;
use tagwerk_sqlite::{OpenError, Options, SqliteStore};
use tempfile::TempDir;

use crate::bench::{SqliteBench, options};
use crate::steps::{add, at, job, take, write};

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.db");
    (folder, path)
}

fn refused(path: &Path) -> OpenError {
    SqliteStore::open(path, &options()).err().expect("it is refused")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn a_second_server_is_told_who_has_the_file() {
    let bench = SqliteBench::new();
    let link = bench.path().with_file_name("link.db");
    std::os::unix::fs::symlink(bench.path(), &link).expect("a link");
    for path in [bench.path(), link] {
        let error = refused(&path);
        assert!(matches!(error, OpenError::InUse { .. }), "{error:?}");
        let words = error.to_string();
        assert!(words.contains(&format!("process {}", std::process::id())), "{words}");
        assert!(words.contains("stop that one first"), "{words}");
    }
    let path = bench.path();
    let folder = bench.close();
    SqliteStore::open(&path, &options()).expect("it is free again");
    drop(folder);
}

#[test]
fn all_files_are_for_their_owner_only() {
    let mut bench = SqliteBench::new();
    write(bench.store(), |tx| add(tx, &[job()]));
    for suffix in ["", "-wal", "-shm", ".lock"] {
        let path = PathBuf::from(format!("{}{suffix}", bench.path().display()));
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn the_secret_is_made_once() {
    let (_folder, path) = folder();
    let first =
        SqliteStore::open(&path, &Options { new_secret: [1; 32], ..options() }).expect("a store").secret();
    let second =
        SqliteStore::open(&path, &Options { new_secret: [2; 32], ..options() }).expect("a store").secret();
    assert_eq!((first, second), ([1; 32], [1; 32]));
}

#[test]
fn what_is_not_a_database_is_left_alone() {
    let (_folder, path) = folder();
    let text = "this is a letter, not a database. ".repeat(100);
    fs::write(&path, &text).expect("a file");
    assert!(matches!(refused(&path), OpenError::NotADatabase { .. }));
    assert!(matches!(SqliteStore::open_read_only(&path).err(), Some(OpenError::NotADatabase { .. })));
    assert_eq!(fs::read_to_string(&path).expect("the file"), text);
}

#[test]
fn a_directory_and_an_empty_file_are_told_as_what_they_are() {
    let (folder, path) = folder();
    assert!(matches!(refused(folder.path()), OpenError::Directory { .. }));
    assert!(matches!(SqliteStore::open_read_only(folder.path()).err(), Some(OpenError::Directory { .. })));
    fs::write(&path, b"").expect("a file");
    assert!(matches!(SqliteStore::open_read_only(&path).err(), Some(OpenError::Empty { .. })));
    assert_eq!(fs::read(&path).expect("the file"), b"");
}

#[test]
fn a_damaged_header_is_told() {
    let (_folder, path) = folder();
    drop(SqliteStore::open(&path, &options()).expect("a store"));
    let mut bytes = fs::read(&path).expect("the file");
    bytes[..16].copy_from_slice(b"SQLite format 9\0");
    fs::write(&path, bytes).expect("the file");
    assert!(matches!(refused(&path), OpenError::NotADatabase { .. }));
}

#[test]
fn a_database_of_somebody_else_is_left_alone() {
    for sql in ["CREATE TABLE photos (id INTEGER)", "PRAGMA application_id = 42"] {
        let (_folder, path) = folder();
        Connection::open(&path).expect("a database").execute_batch(sql).expect("it is theirs");
        let before = fs::read(&path).expect("the file");
        let error = refused(&path);
        assert!(matches!(error, OpenError::Foreign { .. }), "{sql}: {error:?}");
        assert!(matches!(SqliteStore::open_read_only(&path).err(), Some(OpenError::Foreign { .. })));
        assert_eq!(fs::read(&path).expect("the file"), before, "{sql}");
    }
}

#[test]
fn an_empty_file_is_a_new_store() {
    let (_folder, path) = folder();
    fs::write(&path, "").expect("a file");
    SqliteStore::open(&path, &options()).expect("a store");
}

#[test]
fn newer_and_changed_schemas_are_left_alone() {
    let (_folder, path) = folder();
    drop(SqliteStore::open(&path, &options()).expect("a store"));
    let database = || Connection::open(&path).expect("a database");
    let sql = |sql: &str| database().execute_batch(sql).expect("SQL");
    let steps: i64 =
        database().query_one("SELECT count(*) FROM migration", [], |row| row.get(0)).expect("a number");
    sql("INSERT INTO migration VALUES (99, '0099_later', 'x', 0)");
    for error in [refused(&path), SqliteStore::open_read_only(&path).err().expect("it is refused")] {
        assert!(
            matches!(error, OpenError::NewerSchema { found: 99, known, .. } if known == steps),
            "{error:?}"
        );
    }
    sql("DELETE FROM migration WHERE version = 99; UPDATE migration SET checksum = 'x'");
    assert!(matches!(refused(&path), OpenError::ChangedMigration { name, .. } if name == "0001_init"));
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let (_folder, path) = folder();
    let missing = path.with_file_name("missing").join("t.db");
    let error = refused(&missing);
    assert!(matches!(error, OpenError::NoFolder { .. }), "{error:?}");
    assert!(error.to_string().contains("missing/t.db"));
}

#[test]
fn a_place_that_cannot_be_written_is_told() {
    // A folder in which nobody can create a file, whoever runs the test.
    let error = refused(Path::new("/sys/tagwerk.db"));
    assert!(matches!(error, OpenError::ReadOnly { .. }), "{error:?}");
}

#[test]
fn a_store_is_read_beside_its_server() {
    let mut bench = SqliteBench::new();
    write(bench.store(), |tx| add(tx, &[job(), job()]));
    let readers = SqliteStore::open_read_only(&bench.path()).expect("readers");
    let mut snapshot = readers.snapshot().expect("a snapshot");
    write(bench.store(), |tx| take(tx, at(0), 2));
    assert_eq!(snapshot.scan(JobId(0), 9).expect("rows").len(), 2);
    assert!(snapshot.running(JobId(0), 9).expect("rows").is_empty(), "it is of one moment");
    drop(snapshot);
    let mut snapshot = readers.snapshot().expect("a snapshot");
    assert_eq!(snapshot.running(JobId(0), 9).expect("rows").len(), 2);
    assert!(snapshot.integrity().expect("a check").is_empty());
}

#[test]
fn a_store_is_read_without_a_server_and_stays_as_it_is() {
    let mut bench = SqliteBench::new();
    write(bench.store(), |tx| add(tx, &[job()]));
    let path = bench.path();
    let _folder = bench.close();
    let before = fs::read(&path).expect("the file");
    let readers = SqliteStore::open_read_only(&path).expect("readers");
    let mut snapshot = readers.snapshot().expect("a snapshot");
    assert!(matches!(&snapshot.jobs(&[JobId(1)]).expect("jobs")[..], [Some(Listed::Job(_))]));
    drop(snapshot);
    let server = SqliteStore::open(&path, &options()).expect("readers are not in a server's way");
    drop((server, readers));
    assert_eq!(fs::read(&path).expect("the file"), before);
}

/// What a crash of the process leaves: the files as they are while everything is still open.
fn copy_of(path: &Path) -> (TempDir, PathBuf) {
    let (folder, copy) = folder();
    for suffix in ["", "-wal"] {
        let file = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
        if file(path).exists() {
            fs::copy(file(path), file(&copy)).expect("a copy");
        }
    }
    (folder, copy)
}

#[test]
fn what_was_committed_is_in_the_files_at_once() {
    let mut bench = SqliteBench::new();
    for n in 1..=5 {
        let row = write(bench.store(), |tx| add(tx, &[job()])).remove(0);
        let mut open = bench.store().begin().expect("a transaction");
        add(&mut *open, &[job()]);
        drop(open);
        let (_folder, path) = copy_of(&bench.path());
        let readers = SqliteStore::open_read_only(&path).expect("it can be read as it is");
        assert_eq!(readers.snapshot().expect("a snapshot").scan(JobId(0), 9).expect("rows").len(), n);
        drop(readers);
        let mut store = SqliteStore::open(&path, &options()).expect("it can be served as it is");
        let taken = write(&mut store, |tx| take(tx, at(0), 9));
        assert_eq!((taken.len(), taken[n - 1].job.id), (n, row.job.id));
    }
}

#[test]
fn a_store_that_was_closed_is_one_file_again() {
    let mut bench = SqliteBench::new();
    write(bench.store(), |tx| add(tx, &[job()]));
    let readers = bench.store().readers();
    readers.snapshot().expect("a snapshot").scan(JobId(0), 9).expect("rows");
    let path = bench.path();
    let _folder = bench.close();
    for suffix in ["-wal", "-shm"] {
        assert!(!PathBuf::from(format!("{}{suffix}", path.display())).exists(), "{suffix}");
    }
    let after = readers.snapshot().expect("who still reads may go on").scan(JobId(0), 9);
    assert_eq!(after.expect("rows").len(), 1);
}

#[test]
fn a_store_that_is_not_there_is_not_created_to_be_read() {
    let (_folder, path) = folder();
    let error = SqliteStore::open_read_only(&path).err().expect("there is none");
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    assert!(!path.exists());
}

#[test]
fn a_second_name_of_the_file_opens_no_second_door() {
    let mut bench = SqliteBench::new();
    write(bench.store(), |tx| add(tx, &[job()]));
    let path = bench.path();
    let other = path.with_file_name("other.db");
    fs::hard_link(&path, &other).expect("a link");
    assert!(matches!(refused(&other), OpenError::InUse { .. }), "while it is served");
    let _folder = bench.close();
    // What a killed server left in the log is found by one of the names only.
    for name in [&other, &path] {
        let error = refused(name);
        assert!(matches!(error, OpenError::HardLinked { .. }), "{error:?}");
        assert!(error.to_string().contains("hard link"));
    }
    fs::remove_file(&other).expect("it goes");
    SqliteStore::open(&path, &options()).expect("one name is fine");
}

#[test]
fn a_lock_file_that_was_tidied_up_opens_no_second_door() {
    let mut bench = SqliteBench::new();
    write(bench.store(), |tx| add(tx, &[job()]));
    let path = bench.path();
    fs::remove_file(path.with_file_name("t.db.lock")).expect("it goes");
    let error = refused(&path);
    assert!(matches!(error, OpenError::InUse { .. }), "{error:?}");
}

#[test]
fn a_file_that_is_deleted_or_replaced_while_it_is_served_is_not_written_any_more() {
    for name in ["t.db", "t.db-wal"] {
        let mut bench = SqliteBench::new();
        write(bench.store(), |tx| add(tx, &[job()]));
        let file = bench.path().with_file_name(name);
        let aside = file.with_file_name("aside");
        fs::rename(&file, &aside).expect("it moves");
        let error = bench.store().begin().err().expect("it is refused");
        assert!(matches!(&error, StoreError::Gone(why) if why.contains(name)), "{error:?}");
        fs::write(&file, b"").expect("another file");
        assert!(bench.store().begin().is_err(), "another file by that name is not it");
        fs::rename(&aside, &file).expect("it comes back");
        write(bench.store(), |tx| add(tx, &[job()]));
    }
}

#[test]
fn a_short_file_that_is_no_database_is_left_alone() {
    for content in [&b"x"[..], b"SQLite format", b"not a database at all, whatever its name may say"] {
        let (_folder, path) = folder();
        fs::write(&path, content).expect("a file");
        assert!(matches!(refused(&path), OpenError::NotADatabase { .. }));
        assert_eq!(fs::read(&path).expect("the file"), content);
    }
}
