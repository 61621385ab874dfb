//! Snapshots for reading: a few connections that only read, each used by one snapshot at a time.

pub(crate) mod list;
mod loose;
pub(crate) mod ready;
mod snapshot;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tagwerk_engine::store::{Read, Readers, StoreError, StoreResult};

use crate::connect::{self, Setup};
use crate::error::{Fail, Res};
use crate::lanes::Lanes;
use crate::open::{OpenError, Options, beside};
use snapshot::Snapshot;

/// Damaged rows that are counted one by one: enough to see that it is not one row but the file.
const DAMAGED_REMEMBERED: usize = 10_000;

/// A connection that reads, and the lanes that it knows.
pub(crate) struct Slot {
    conn: Connection,
    lanes: Lanes,
}

impl Slot {
    /// Ends the read transaction, if one is open.
    fn leave(&self) -> Res<()> {
        if !self.conn.is_autocommit() {
            self.conn.prepare_cached("ROLLBACK")?.execute([])?;
        }
        Ok(())
    }
}

/// The connections for reading, opened when they are needed first.
pub struct SqliteReaders {
    path: PathBuf,
    setup: Setup,
    wait: Duration,
    is_immutable: bool,
    pool: Mutex<Pool>,
    returned: Condvar,
    damaged: Arc<Damaged>,
}

/// Ids of rows that cannot be read, as far as somebody has come across them.
#[derive(Debug, Default)]
pub(crate) struct Damaged(Mutex<BTreeSet<i64>>);

impl Damaged {
    /// Remembers one. Whether it is new; beyond a bound nothing is new.
    pub(crate) fn note(&self, id: i64) -> bool {
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.len() < DAMAGED_REMEMBERED && ids.insert(id)
    }

    /// A row was changed or removed from outside: who is still damaged will be met again.
    pub(crate) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// A row is gone.
    pub(crate) fn forget_one(&self, id: i64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }
}

struct Pool {
    idle: Vec<Slot>,
    /// Connections that may still be opened.
    unopened: usize,
}

impl SqliteReaders {
    pub(crate) fn new(path: PathBuf, options: &Options) -> Self {
        Self {
            path,
            setup: Setup { cache_bytes: options.reader_cache_bytes, busy_timeout: options.busy_timeout },
            wait: options.reader_wait,
            is_immutable: false,
            pool: Mutex::new(Pool { idle: Vec::new(), unopened: options.readers.max(1) }),
            returned: Condvar::new(),
            damaged: Arc::default(),
        }
    }

    /// What this process has met that cannot be read; shared with the writer.
    pub(crate) fn damaged(&self) -> Arc<Damaged> {
        Arc::clone(&self.damaged)
    }

    /// Opens the first connection, to see whether the file can be read. A store in a folder that cannot be written has no
    /// place for the log's index; if there is no log either, nobody serves it and it is read as it is. So is a file that nobody
    /// may write: SQLite would leave a log and an index with the same mode, in which the next server could not write.
    pub(crate) fn probe(mut self) -> Res<Self> {
        let sealed = std::fs::metadata(&self.path).is_ok_and(|facts| facts.permissions().readonly());
        self.is_immutable = sealed && !beside(&self.path, "-wal").exists();
        let (slot, is_immutable) = match self.open() {
            Ok(slot) => (slot, self.is_immutable),
            Err(Fail::Sql(error))
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::CannotOpen)
                    && !beside(&self.path, "-wal").exists() =>
            {
                self.is_immutable = true;
                (self.open()?, true)
            }
            Err(fail) => return Err(fail),
        };
        self.is_immutable = is_immutable;
        self.give_back(Some(slot));
        Ok(self)
    }

    fn open(&self) -> Res<Slot> {
        let conn = if self.is_immutable {
            connect::reading_immutable(&self.path, self.setup)?
        } else {
            connect::reading(&self.path, self.setup)?
        };
        // SQLite opens lazily; this is the first read.
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(Slot { conn, lanes: Lanes::default() })
    }

    /// Runs something on one of the connections.
    pub(crate) fn with_connection<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, OpenError>,
    ) -> Result<T, OpenError> {
        let slot =
            self.take().map_err(|error| OpenError::Store { path: self.path.clone(), error: error.into() })?;
        let done = work(&slot.conn);
        self.give_back(Some(slot));
        done
    }

    /// Closes the connections that nobody uses; they are opened again when they are needed.
    pub(crate) fn close_idle(&self) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        pool.unopened += pool.idle.len();
        pool.idle.clear();
    }

    /// Takes a connection out of the pool.
    fn take(&self) -> Res<Slot> {
        let pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let is_empty = |pool: &mut Pool| pool.idle.is_empty() && pool.unopened == 0;
        let waited = self.returned.wait_timeout_while(pool, self.wait, is_empty);
        let (mut pool, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = pool.idle.pop() {
            return Ok(slot);
        }
        if pool.unopened == 0 {
            return Err(StoreError::Busy.into());
        }
        pool.unopened -= 1;
        drop(pool);
        self.open().inspect_err(|_| self.give_back(None))
    }

    /// Puts a connection back; without one, another may be opened in its place.
    fn give_back(&self, slot: Option<Slot>) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        match slot {
            Some(slot) => pool.idle.push(slot),
            None => pool.unopened += 1,
        }
        drop(pool);
        self.returned.notify_one();
    }
}

impl Readers for SqliteReaders {
    fn snapshot(&self) -> StoreResult<Box<dyn Read + '_>> {
        let slot = self.take()?;
        Ok(Box::new(Snapshot::begin(self, slot)?))
    }
}
