//! What the ceilings of SQLite share: the settings of the connection, and commits until the time is over.
//!
//! The WAL is synced at every commit (`synchronous = FULL`), as the product does.

use std::path::Path;
use std::time::Instant;

use rusqlite::Connection;

use super::conversation::{Tally, mark_begin, mark_end, percentile};
use crate::system;

/// Rows of a commit when there is only to be something to drain.
pub(super) const FILL_ROWS: usize = 512;

/// A new database in that folder, with these tables.
pub(super) fn open(folder: &Path, schema: &str) -> anyhow::Result<Connection> {
    let database = Connection::open(folder.join("ceiling.db"))?;
    database.pragma_update(None, "journal_mode", "WAL")?;
    database.pragma_update(None, "synchronous", "FULL")?;
    database.pragma_update(None, "cache_size", -64_000)?;
    database.execute_batch(schema)?;
    Ok(database)
}

/// Repeats while it may and moves something. `until` is told how many rows have been moved so far.
pub(super) fn timed(
    until: impl Fn(u64) -> bool,
    mut once: impl FnMut() -> anyhow::Result<usize>,
) -> anyhow::Result<Tally> {
    let mut calls = Vec::new();
    let mut jobs = 0;
    mark_begin();
    let began: Instant = system::now();
    let mut last = began;
    while until(jobs) {
        let from = system::now();
        let moved = u64::try_from(once()?)?;
        if moved == 0 {
            break;
        }
        last = system::now();
        calls.push(last.duration_since(from).as_secs_f64() * 1e3);
        jobs += moved;
    }
    mark_end();
    calls.sort_unstable_by(f64::total_cmp);
    Ok(Tally {
        jobs,
        seconds: last.duration_since(began).as_secs_f64(),
        p50_ms: percentile(&calls, 50),
        p99_ms: percentile(&calls, 99),
        total: jobs,
        ..Tally::default()
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A folder that is gone when it is dropped.
    pub(in crate::drive) fn folder() -> std::io::Result<tempfile::TempDir> {
        tempfile::tempdir()
    }

    /// How many rows there are of a table, a join, or those with a condition.
    pub(in crate::drive) fn count(database: &Connection, of: &str) -> rusqlite::Result<i64> {
        database.query_row(&format!("SELECT count(*) FROM {of}"), [], |row| row.get(0))
    }

    #[test]
    fn every_commit_is_synced() -> anyhow::Result<()> {
        let folder = folder()?;
        let database = open(folder.path(), "")?;
        let journal: String = database.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        let synchronous: i64 = database.pragma_query_value(None, "synchronous", |row| row.get(0))?;
        assert_eq!((journal.as_str(), synchronous), ("wal", 2));
        Ok(())
    }

    #[test]
    fn it_ends_when_nothing_is_moved_or_enough_is() -> anyhow::Result<()> {
        let mut left = 5;
        let drained = timed(|_| true, || Ok(std::mem::take(&mut left)))?;
        assert_eq!((drained.jobs, drained.total), (5, 5));
        assert_eq!(timed(|done| done < 10, || Ok(4))?.jobs, 12);
        Ok(())
    }
}
