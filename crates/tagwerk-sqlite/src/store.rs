//! The store as the committer holds it.

use std::path::Path;
use std::sync::Arc;

use tagwerk_engine::store::{Readers, Store, StoreResult, Tx};

use crate::held::Held;
use crate::open::{self, OpenError, Options};
use crate::read::SqliteReaders;
use crate::tx::SqliteTx;
use crate::wal::Checkpointer;
use crate::writer::Writer;

/// A store in one SQLite file, open for serving.
pub struct SqliteStore {
    pub(crate) writer: Writer,
    checkpointer: Checkpointer,
    readers: Arc<SqliteReaders>,
    secret: [u8; 32],
    held: Held,
}

impl SqliteStore {
    /// Opens a store for serving, and creates it if there is none.
    pub fn open(path: &Path, options: &Options) -> Result<Self, OpenError> {
        open::open(path, options)
    }

    /// Opens a store only to read it, beside a running server or without one. Takes no lock and writes nothing.
    pub fn open_read_only(path: &Path) -> Result<Arc<SqliteReaders>, OpenError> {
        open::open_read_only(path)
    }

    pub(crate) fn new(
        writer: Writer,
        readers: Arc<SqliteReaders>,
        (secret, held, checkpointer): ([u8; 32], Held, Checkpointer),
    ) -> Self {
        Self { writer, checkpointer, readers, secret, held }
    }
}

impl Drop for SqliteStore {
    /// SQLite tidies up when the last connection is closed, which must be one that can write.
    fn drop(&mut self) {
        self.readers.close_idle();
    }
}

impl Store for SqliteStore {
    fn begin(&mut self) -> StoreResult<Box<dyn Tx + '_>> {
        self.held.check()?;
        self.checkpointer.before_transaction(&self.writer.conn);
        Ok(Box::new(SqliteTx::begin(&mut self.writer)?))
    }

    fn readers(&self) -> Arc<dyn Readers> {
        Arc::<SqliteReaders>::clone(&self.readers)
    }

    fn secret(&self) -> [u8; 32] {
        self.secret
    }

    fn housekeeping(&mut self) -> StoreResult<()> {
        Ok(self.checkpointer.housekeeping(&self.writer.conn)?)
    }
}
