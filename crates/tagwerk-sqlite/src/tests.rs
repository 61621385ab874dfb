//! Tests that look behind the store's surface.

mod book;
mod faults;
mod plans;
mod recent;
mod schema;
#[path = "../tests/it/steps.rs"]
mod steps;

use std::path::PathBuf;
use std::time::Duration;

use tagwerk_core::Timestamp;
use tempfile::TempDir;

use crate::{Options, SqliteStore};

/// A store in a folder of its own, with everything inside open to tests.
struct Place {
    store: SqliteStore,
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("t.db"), &options()).expect("a store");
        Self { store, folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("t.db")
    }

    fn sql(&self, sql: &str) {
        self.store.writer.conn.execute_batch(sql).expect("SQL");
    }
}

fn options() -> Options {
    let busy_timeout = Duration::from_millis(100);
    Options { busy_timeout, ..Options::new(Timestamp::from_millis(1_700_000_000_000), [7; 32]) }
}
