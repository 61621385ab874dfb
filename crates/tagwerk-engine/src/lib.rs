//! Requests and their execution.
//!
//! The engine is synchronous and knows no HTTP, no SQL, no clock and no randomness of its own. Callers hand it
//! [`command`]s with a place to put the answer; one committer collects what has queued up, executes it in one
//! transaction of the [`store`], commits, and only then answers.
//!
//! Deliberately absent: rules about jobs (they are in `tagwerk_core`), wire formats, threads other than the committer.

mod batch;
mod clockwork;
pub mod command;
pub mod committer;
pub mod engine;
mod exec;
#[cfg(test)]
mod fuzzed;
pub mod id_map;
pub mod message;
mod parked;
mod policies;
pub mod ports;
pub mod query;
pub mod registry;
pub mod row;
pub mod settings;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod tokens;
pub mod watch;
mod work;

pub use engine::{Engine, EngineThread, Vitals};
pub use exec::retention::RetentionReport;
