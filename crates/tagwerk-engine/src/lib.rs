//! Requests and their execution.
//!
//! The engine is synchronous and knows no HTTP, no SQL, no clock and no randomness of its own. Callers hand it
//! [`command`]s with a place to put the answer; one committer collects what has queued up, executes it in one
//! transaction of the [`store`], commits, and only then answers.
//!
//! Deliberately absent: rules about jobs (they are in `tagwerk_core`), wire formats, threads other than the committer.

pub mod command;
pub mod ports;
pub mod row;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
