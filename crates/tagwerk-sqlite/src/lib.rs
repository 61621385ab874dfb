//! The store in one SQLite file.
//!
//! One connection writes, inside one process that holds a lock on the file; a few connections read snapshots. Rows are
//! narrow and integer, what is long stands in tables of its own, and the places where claims look are kept in memory
//! ([`SqliteStore`] rebuilds them in milliseconds).
//!
//! | module | what |
//! |---|---|
//! | `open`, `connect`, `mounts`, `migrate` | from a path to a store that may be used |
//! | `store`, `writer`, `tx` | the writing transaction |
//! | `book` | the heads of the lanes, for claims |
//! | `read` | snapshots |
//! | `recent` | rows of jobs that run, for the report that follows |
//! | `beside`, `token` | API tokens, made beside the server |
//! | `alert` | alerts |
//! | `audit` | the log of what operators did |
//! | `figures` | the ledger and counts of rows |
//! | `wal` | keeping the write-ahead log short |
//! | `codec`, `cells`, `code`, `lanes` | rows of SQL and rows of the engine |
//! | `error` | what SQLite says, by what the caller does next |
//!
//! Deliberately absent: rules about jobs (they are in `tagwerk_core`), clocks, randomness.

mod alert;
mod audit;
mod beside;
mod boards;
mod book;
mod bounds;
mod cells;
mod code;
mod codec;
mod connect;
mod error;
mod figures;
mod gates;
mod held;
mod lanes;
mod migrate;
mod mounts;
mod open;
mod paused;
mod read;
mod recent;
mod store;
#[cfg(test)]
mod tests;
mod token;
mod turns;
mod tx;
mod wal;
mod writer;

pub use beside::Beside;
pub use open::{OpenError, Options};
pub use read::SqliteReaders;
pub use store::SqliteStore;
