//! Server processes and the disk that outlives them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use anyhow::Context;
use tagwerk_core::Timestamp;
use tagwerk_engine::committer::{Committer, Ports};
use tagwerk_engine::engine::Shared;
use tagwerk_engine::message::Message;
use tagwerk_engine::row::QueueRow;
use tagwerk_engine::settings::Settings;
use tagwerk_engine::store::{Readers, Store};
use tagwerk_engine::testing::memory::MemoryStore;
use tagwerk_sqlite::{Options, SqliteStore};
use tempfile::TempDir;

use crate::plan::{Caps, StoreKind};
use crate::witness::{Journal, Witness};

/// What survives a crash.
pub(crate) enum Disk {
    Memory(MemoryStore),
    /// A file in a folder that goes with the world.
    Sqlite {
        path: PathBuf,
        _folder: TempDir,
    },
}

/// The same on every store, so that the same seed leads to the same tokens.
const SECRET: [u8; 32] = *b"the secret of all memory stores!";

impl Disk {
    pub(crate) fn new(kind: StoreKind) -> anyhow::Result<Self> {
        if kind != StoreKind::Sqlite {
            return Ok(Self::Memory(MemoryStore::new()));
        }
        // In memory where the system has such a place: what is simulated is the server, not the disk.
        let fast = std::path::Path::new("/dev/shm");
        let folder = if fast.is_dir() { TempDir::new_in(fast)? } else { TempDir::new()? };
        Ok(Self::Sqlite { path: folder.path().join("sim.db"), _folder: folder })
    }

    /// Limits and bounds that are there before the first server.
    pub(crate) fn set_up(&self, caps: &Caps, now: Timestamp) -> anyhow::Result<()> {
        let mut store = self.open(now)?;
        let mut tx = store.begin()?;
        for (name, settings) in &caps.limits {
            tx.put_limit(name, Some(settings))?;
        }
        for (name, settings) in &caps.queues {
            tx.put_queue(&QueueRow { settings: *settings, ..QueueRow::plain(name) })?;
        }
        tx.commit()?;
        Ok(())
    }

    fn open(&self, now: Timestamp) -> anyhow::Result<Box<dyn Store>> {
        Ok(match self {
            Self::Memory(store) => Box::new(store.reopen()),
            Self::Sqlite { path, .. } => {
                let mut options = Options::new(now, SECRET);
                options.readers = 1;
                options.cache_bytes = 1 << 20;
                Box::new(SqliteStore::open(path, &options)?)
            }
        })
    }
}

/// One server process.
pub(crate) struct Node {
    pub(crate) committer: Committer,
    pub(crate) shared: Arc<Shared>,
    /// What the server puts into its own inbox: leases to be given back.
    pub(crate) inbox: Receiver<Message>,
    pub(crate) journal: Journal,
    pub(crate) readers: Arc<dyn Readers>,
}

impl Node {
    /// Starts a server on this disk.
    pub(crate) fn start(disk: &Disk, ports: &Ports, settings: &Settings) -> anyhow::Result<Self> {
        let journal = Journal::default();
        let store = Witness::new(disk.open(ports.clock.now())?, journal.clone());
        let readers = store.readers();
        let (sender, inbox) = sync_channel(10_000);
        let shared = Arc::new(Shared::new(sender, ports.clock.monotonic()));
        let committer = Committer::new(Box::new(store), ports.clone(), settings.clone(), Arc::clone(&shared))
            .context("a server could not be started")?;
        journal.take();
        Ok(Self { committer, shared, inbox, journal, readers })
    }
}
