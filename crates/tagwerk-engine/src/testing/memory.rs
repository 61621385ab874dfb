//! The reference store: maps in memory, whole transactions on a cheap copy.
//!
//! It is durable in the way a test needs: a [`MemoryStore`] is a handle to a disk, and what was committed to the
//! disk stays there when the handle, the transaction or the whole engine is dropped in the middle of its work. So a
//! simulated crash loses exactly what was not committed.
//!
//! It is stricter than other stores need to be. It panics when its caller breaks the contract: a method after an
//! error, a claimable row that was left claimable, a changed lane, an id that was never given out.

mod alerts;
mod cow;
mod faults;
mod gates;
mod read;
mod state;
mod tx;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tagwerk_core::{Job, JobId};

pub use faults::{Fault, Faults, Point};
use read::MemoryRead;
use state::{Record, State};
use tx::MemoryTx;

use super::lock;
use crate::row::Tally;
use crate::store::{Read, Readers, Store, StoreError, StoreResult, Tx};

/// A store in memory. Clones are handles to the same disk, each with its own [`Store::begin`]; while a transaction of
/// one is open, the others get [`StoreError::Busy`].
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    disk: Arc<Disk>,
    faults: Faults,
}

/// What survives a crash.
#[derive(Debug)]
struct Disk {
    committed: Mutex<Arc<State>>,
    writer: AtomicBool,
    secret: [u8; 32],
}

impl Default for Disk {
    fn default() -> Self {
        Self {
            committed: Mutex::default(),
            writer: AtomicBool::new(false),
            secret: *b"the secret of all memory stores!",
        }
    }
}

impl Disk {
    fn committed(&self) -> Arc<State> {
        Arc::clone(&lock(&self.committed))
    }
}

impl MemoryStore {
    /// An empty store on a disk of its own.
    pub fn new() -> Self {
        Self::default()
    }

    /// The store again, as a new process would find it: what was committed, without the faults planned so far.
    #[must_use]
    pub fn reopen(&self) -> Self {
        Self { disk: Arc::clone(&self.disk), faults: Faults::default() }
    }

    /// What is to fail on this handle (and its clones).
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Makes the row of this job undecodable: it is shown as damaged, cannot be loaded, and is passed over otherwise.
    pub fn damage(&self, id: JobId) {
        Arc::make_mut(&mut lock(&self.disk.committed)).damaged.insert(id);
    }

    /// Makes the cold part of this job undecodable.
    pub fn damage_detail(&self, id: JobId) {
        Arc::make_mut(&mut lock(&self.disk.committed)).damaged_details.insert(id);
    }

    /// Writes over the state of this job behind every guard, as a bug of a store or a person with an editor would.
    pub fn forge(&self, id: JobId, change: impl FnOnce(&mut Job)) {
        let mut committed = lock(&self.disk.committed);
        let state = Arc::make_mut(&mut committed);
        let mut record = Record::clone(state.jobs.get(&id).expect("the job was enqueued before"));
        change(&mut record.row.job);
        state.jobs.insert(id, Arc::new(record));
    }

    /// Writes over the ledger; what `change` refuses is taken out of it.
    pub fn forge_ledger(&self, mut change: impl FnMut(&mut Tally) -> bool) {
        Arc::make_mut(&mut lock(&self.disk.committed)).ledger.retain(|_, tally| change(tally));
    }

    /// Lets ids go on from `next`, which must not be below those already given out.
    pub fn set_next_id(&self, next: JobId) {
        let mut committed = lock(&self.disk.committed);
        assert!(committed.next_id <= next.0, "ids are never given out twice");
        Arc::make_mut(&mut committed).next_id = next.0;
    }
}

impl Store for MemoryStore {
    fn begin(&mut self) -> StoreResult<Box<dyn Tx + '_>> {
        self.faults.reach(Point::Begin)?;
        if self.disk.writer.swap(true, Ordering::SeqCst) {
            return Err(StoreError::Busy);
        }
        Ok(Box::new(MemoryTx::new(Writer { disk: &self.disk }, self.faults.clone())))
    }

    fn readers(&self) -> Arc<dyn Readers> {
        Arc::new(MemoryReaders { disk: Arc::clone(&self.disk), faults: self.faults.clone() })
    }

    fn secret(&self) -> [u8; 32] {
        self.disk.secret
    }

    fn housekeeping(&mut self) -> StoreResult<()> {
        self.faults.reach(Point::Housekeeping)
    }
}

/// The right to write to a disk, held by one transaction at a time.
struct Writer<'a> {
    disk: &'a Disk,
}

impl Writer<'_> {
    fn commit(&self, state: State) {
        *lock(&self.disk.committed) = Arc::new(state);
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.disk.writer.store(false, Ordering::SeqCst);
    }
}

struct MemoryReaders {
    disk: Arc<Disk>,
    faults: Faults,
}

impl Readers for MemoryReaders {
    fn snapshot(&self) -> StoreResult<Box<dyn Read + '_>> {
        self.faults.reach(Point::Snapshot)?;
        Ok(Box::new(MemoryRead::new(self.disk.committed())))
    }
}

#[cfg(test)]
mod tests;
