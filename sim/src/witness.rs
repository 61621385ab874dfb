//! A store that passes everything on to another one, writes down what each transaction wrote and how it ended, and fails
//! where it was told to.
//!
//! So the judges know what no client can know: whether a batch was committed whose answer got lost, and what it changed.
//! It works in front of every store, so the same faults strike the same calls in memory and in SQLite.

mod passing;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tagwerk_core::gate::LimitSettings;
use tagwerk_core::{Attempt, JobId};
use tagwerk_engine::row::{KeyWrite, QueueRow};
use tagwerk_engine::store::{Change, Insert, Readers, Store, StoreError, StoreResult, Tx};

use passing::WitnessTx;

/// What kind of error a caller got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Busy,
    Full,
    ReadOnly,
    Damaged,
    Conflict,
    OutcomeUnknown,
    Other,
}

impl Kind {
    pub(crate) fn error(self) -> StoreError {
        match self {
            Self::Busy => StoreError::Busy,
            Self::Full => StoreError::Full,
            Self::ReadOnly => StoreError::ReadOnly,
            Self::Damaged => StoreError::Damaged("a simulated page".to_owned()),
            Self::Conflict => StoreError::Conflict,
            Self::OutcomeUnknown => StoreError::OutcomeUnknown,
            Self::Other => StoreError::Other("a simulated fault".to_owned()),
        }
    }

    const fn of(error: &StoreError) -> Self {
        match error {
            StoreError::Busy => Self::Busy,
            StoreError::Full => Self::Full,
            StoreError::ReadOnly => Self::ReadOnly,
            StoreError::Damaged(_) | StoreError::Gone(_) => Self::Damaged,
            StoreError::Conflict => Self::Conflict,
            StoreError::OutcomeUnknown => Self::OutcomeUnknown,
            StoreError::DamagedRow(_) | StoreError::Other(_) => Self::Other,
        }
    }
}

/// Where a fault strikes in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strike {
    /// At the begin.
    Begin,
    /// At the method with this number.
    Method(u32),
    /// At the commit, which then did not happen.
    BeforeCommit,
    /// At the commit, which has happened.
    AfterCommit,
}

/// A fault to come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) at: Strike,
    pub(crate) kind: Kind,
    /// The whole server dies there.
    pub(crate) deadly: bool,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Committed,
    /// The caller was told that nobody knows.
    Unknown {
        committed: bool,
    },
    /// Nothing of it is there.
    Failed(Kind),
    /// It was dropped without an error: only a panic does that.
    Dropped,
}

/// One write, as the store was told it.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    Insert(Box<Insert>),
    Change(Box<Change>),
    Erase(JobId),
    Key(KeyWrite),
    Attempt(JobId, Box<Attempt>),
    /// Settings of a limit; `None` = it is gone.
    Limit(String, Option<LimitSettings>),
    Queue(Box<QueueRow>),
}

/// One transaction that was tried.
#[derive(Clone, Debug)]
pub(crate) struct Tried {
    pub(crate) writes: Vec<Write>,
    /// By how much live leases were moved.
    pub(crate) shift_ms: i64,
    /// `served_until`, if it was written.
    pub(crate) served: Option<i64>,
    pub(crate) end: End,
    /// The fault that was planned for it has struck.
    pub(crate) struck: bool,
    /// The server died in it.
    pub(crate) deadly: bool,
}

#[derive(Debug, Default)]
struct Book {
    tries: Vec<Tried>,
    /// One entry per transaction to come.
    plan: VecDeque<Option<Fault>>,
    house: Option<Kind>,
    dead: bool,
}

/// What was written down, and what is to fail. Clones share both.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal(Arc<Mutex<Book>>);

impl Journal {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plans the faults of the next transactions, one entry each; forgets what was planned before.
    pub(crate) fn plan(&self, faults: impl IntoIterator<Item = Option<Fault>>) {
        self.book().plan = faults.into_iter().collect();
    }

    /// Lets the next housekeeping fail.
    pub(crate) fn fail_housekeeping(&self, kind: Kind) {
        self.book().house = Some(kind);
    }

    /// The transactions since the last call.
    pub(crate) fn take(&self) -> Vec<Tried> {
        std::mem::take(&mut self.book().tries)
    }

    fn note(&self, tried: Tried) {
        self.book().tries.push(tried);
    }
}

/// See the module.
pub(crate) struct Witness {
    inner: Box<dyn Store>,
    journal: Journal,
}

impl Witness {
    pub(crate) fn new(inner: Box<dyn Store>, journal: Journal) -> Self {
        Self { inner, journal }
    }
}

impl Tried {
    /// It failed at its begin.
    const fn failed(kind: Kind) -> Self {
        let end = End::Failed(kind);
        Self { writes: Vec::new(), shift_ms: 0, served: None, end, struck: true, deadly: false }
    }
}

impl Store for Witness {
    fn begin(&mut self) -> StoreResult<Box<dyn Tx + '_>> {
        let fault = {
            let mut book = self.journal.book();
            if book.dead {
                return Err(StoreError::Busy);
            }
            book.plan.pop_front().flatten()
        };
        if let Some(fault) = fault.filter(|fault| fault.at == Strike::Begin) {
            self.journal.book().dead |= fault.deadly;
            self.journal.note(Tried { deadly: fault.deadly, ..Tried::failed(fault.kind) });
            return Err(fault.kind.error());
        }
        match self.inner.begin() {
            Ok(tx) => Ok(Box::new(WitnessTx::new(tx, self.journal.clone(), fault))),
            Err(error) => {
                self.journal.note(Tried { struck: false, ..Tried::failed(Kind::of(&error)) });
                Err(error)
            }
        }
    }

    fn readers(&self) -> Arc<dyn Readers> {
        self.inner.readers()
    }

    fn secret(&self) -> [u8; 32] {
        self.inner.secret()
    }

    fn housekeeping(&mut self) -> StoreResult<()> {
        match self.journal.book().house.take() {
            Some(kind) => Err(kind.error()),
            None => self.inner.housekeeping(),
        }
    }
}
