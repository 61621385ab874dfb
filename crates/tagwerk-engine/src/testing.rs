//! What tests of the engine, of the stores and of the simulator are built from.
//!
//! * [`memory::MemoryStore`] is the reference store: as plain as possible, strict about the contract, with faults on
//!   demand. What it does is what every other store must do.
//! * [`clock::ManualClock`] and [`entropy::ScriptedEntropy`] stand in for time and chance.
//! * [`conformance`] is the suite that every store runs, the reference included.
//!
//! Deliberately absent: anything that a production build needs.
#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "test support: a broken expectation must fail the test loudly, and says so where it is written"
)]

pub mod clock;
pub mod conformance;
pub mod entropy;
pub mod memory;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after another test thread has panicked while it held the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
