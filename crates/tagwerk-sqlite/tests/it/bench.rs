//! A store in a folder of its own.

use std::path::PathBuf;

use rusqlite::Connection;
use tagwerk_core::{JobId, Timestamp};
use tagwerk_engine::store::Store;
use tagwerk_engine::testing::conformance::Bench;
use tagwerk_sqlite::{Options, SqliteStore};
use tempfile::TempDir;

/// Options for tests.
pub(crate) fn options() -> Options {
    Options::new(Timestamp::from_millis(1_700_000_000_000), [7; 32])
}

/// An empty store, and the folder that is gone with it.
pub(crate) struct SqliteBench {
    store: Option<SqliteStore>,
    folder: TempDir,
}

impl SqliteBench {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("t.db"), &options()).expect("a store");
        Self { store: Some(store), folder }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("t.db")
    }

    /// Closes the store; the folder stays until it is dropped.
    pub(crate) fn close(self) -> TempDir {
        self.folder
    }

    /// Another connection to the same file, as `sqlite3` would have it.
    pub(crate) fn beside(&self) -> Connection {
        Connection::open(self.path()).expect("another connection")
    }
}

impl Bench for SqliteBench {
    fn store(&mut self) -> &mut dyn Store {
        self.store.as_mut().expect("it is open")
    }

    fn reopen(&mut self) {
        drop(self.store.take());
        self.store = Some(SqliteStore::open(&self.path(), &options()).expect("it opens again"));
    }

    fn set_next_id(&mut self, next: JobId) {
        drop(self.store.take());
        self.beside().execute("UPDATE sequence SET next_job = ?1", [next.0]).expect("a row");
        self.reopen();
    }

    fn damage(&mut self, id: JobId) {
        let changed = self.beside().execute("UPDATE job SET flags = -1 WHERE id = ?1", [id.0]);
        assert_eq!(changed, Ok(1));
    }
}
