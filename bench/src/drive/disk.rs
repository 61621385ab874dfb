//! The ceilings of the disk: what an fsync takes, and what SQLite alone does with the narrowest rows that a queue can have.
//!
//! One table, one row a job with its payload, one index of what is ready, as little as a job queue can write. No HTTP, no
//! rules, no history, no keys. What is kept of a job in Tagwerk is more; that is the ceiling of `rows.rs`.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, params};

use super::bodies::payload;
use super::conversation::{Driven, Order, Reply, Tally, mark_begin, mark_end};
use super::sqlite::{FILL_ROWS, open, timed};
use crate::system;

/// A page.
const PAGE: [u8; 4096] = [7; 4096];

/// Pages of the file that is written over: 4 MiB, as SQLite's WAL between two checkpoints.
const PAGES: u64 = 1024;

/// The table.
const SCHEMA: &str = "
CREATE TABLE job (
    id INTEGER PRIMARY KEY, lane INTEGER NOT NULL, prio INTEGER NOT NULL, state INTEGER NOT NULL,
    due INTEGER NOT NULL, attempt INTEGER NOT NULL, lease_until INTEGER, lease_bits INTEGER,
    created INTEGER NOT NULL, updated INTEGER NOT NULL, payload TEXT NOT NULL
) STRICT;
CREATE INDEX job_ready ON job (lane, prio DESC, due) WHERE state = 0;
";

const INSERT: &str = "INSERT INTO job (lane, prio, state, due, attempt, created, updated, payload)
                      VALUES (?1, 50, 0, ?2, 0, ?2, ?2, ?3)";

const READY: &str =
    "SELECT id, payload FROM job WHERE state = 0 AND lane = ?1 ORDER BY prio DESC, due, id LIMIT ?2";

const CLAIM: &str =
    "UPDATE job SET state = 1, attempt = attempt + 1, lease_until = ?2, lease_bits = ?2, updated = ?2
                     WHERE id = ?1";

const COMPLETE: &str = "UPDATE job SET state = 5, lease_until = NULL, lease_bits = NULL, updated = ?2 WHERE id = ?1 AND state = 1";

/// The folder and the database in it.
pub(super) struct Peer {
    folder: PathBuf,
    database: Connection,
    time: i64,
}

impl Peer {
    pub(super) fn new(folder: &Path) -> anyhow::Result<Self> {
        Ok(Self { folder: folder.to_path_buf(), database: open(folder, SCHEMA)?, time: 0 })
    }

    /// Commits of that many rows until the time is over.
    fn insert(&mut self, rows: usize, until: impl Fn(u64) -> bool) -> anyhow::Result<Tally> {
        let payload = payload();
        timed(until, || {
            self.time += 1;
            let transaction = self.database.transaction()?;
            let mut insert = transaction.prepare_cached(INSERT)?;
            for _ in 0..rows {
                insert.execute(params![1, self.time, payload])?;
            }
            drop(insert);
            transaction.commit()?;
            Ok(rows)
        })
    }

    /// A commit that claims, a commit that completes.
    fn claim(&mut self, rows: usize, until: impl Fn(u64) -> bool) -> anyhow::Result<Tally> {
        timed(until, || {
            self.time += 1;
            let transaction = self.database.transaction()?;
            let mut ready = transaction.prepare_cached(READY)?;
            let found = ready.query_map(params![1, i64::try_from(rows)?], |row| {
                Ok((row.get::<_, i64>(0)?, row.get_ref(1)?.as_str()?.len()))
            })?;
            let ids = found.map(|row| row.map(|row| row.0)).collect::<Result<Vec<_>, _>>()?;
            drop(ready);
            each(&transaction, CLAIM, (&ids, self.time))?;
            transaction.commit()?;
            let transaction = self.database.transaction()?;
            each(&transaction, COMPLETE, (&ids, self.time))?;
            transaction.commit()?;
            Ok(ids.len())
        })
    }

    /// One sync after the other; with an allocated file nothing but the data has to be written.
    fn fsync(&self, kind: Sync, time: Duration) -> anyhow::Result<Tally> {
        let path = self.folder.join("fsync");
        let mut file = File::create(&path)?;
        if kind == Sync::Overwrite {
            for _ in 0..PAGES {
                file.write_all(&PAGE)?;
            }
            file.sync_all()?;
            file.seek(SeekFrom::Start(0))?;
        }
        let mut waits_ms = Vec::new();
        mark_begin();
        let began = system::now();
        while system::since(began) < time {
            if kind == Sync::Overwrite && (waits_ms.len() as u64).is_multiple_of(PAGES) {
                file.seek(SeekFrom::Start(0))?;
            }
            let from = system::now();
            file.write_all(&PAGE)?;
            file.sync_data()?;
            waits_ms.push(system::seconds_since(from) * 1e3);
        }
        mark_end();
        std::fs::remove_file(&path)?;
        let jobs = u64::try_from(waits_ms.len())?;
        Ok(Tally { jobs, seconds: system::seconds_since(began), total: jobs, waits_ms, ..Tally::default() })
    }
}

/// What is synced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sync {
    Append,
    Overwrite,
}

impl Driven for Peer {
    fn carry_out(&mut self, order: &Order) -> anyhow::Result<Reply> {
        let deadline = system::now() + order.time();
        let in_time = move |_| system::now() < deadline;
        let tally = match order.call.as_str() {
            "fsync_append" => self.fsync(Sync::Append, order.time())?,
            "fsync_overwrite" => self.fsync(Sync::Overwrite, order.time())?,
            "insert" => self.insert(order.rows, in_time)?,
            "claim" => self.claim(order.rows, in_time)?,
            "fill" => self.insert(FILL_ROWS, |done| done < order.jobs)?,
            _ => return Ok(Reply::Absent("nobody has written it")),
        };
        Ok(Reply::Done(tally))
    }
}

/// The same statement for each id.
fn each(transaction: &rusqlite::Transaction<'_>, sql: &str, what: (&[i64], i64)) -> anyhow::Result<()> {
    let (ids, time) = what;
    let mut statement = transaction.prepare_cached(sql)?;
    for id in ids {
        anyhow::ensure!(statement.execute(params![id, time])? == 1, "a row is not as it was left");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::sqlite::tests::{count, folder};

    #[test]
    fn the_narrow_table_is_filled_and_drained() -> anyhow::Result<()> {
        let folder = folder()?;
        let mut peer = Peer::new(folder.path())?;
        assert_eq!(peer.insert(64, |done| done < 1_000)?.total, 1_024);
        assert_eq!(peer.insert(1, |done| done < 3)?.total, 3);
        assert_eq!(count(&peer.database, "job WHERE state = 0 AND length(payload) = 150")?, 1_027);
        assert_eq!(peer.claim(512, |_| true)?.jobs, 1_027);
        let ended = "job WHERE state = 5 AND attempt = 1 AND lease_bits IS NULL AND lease_until IS NULL";
        assert_eq!(count(&peer.database, ended)?, 1_027);
        Ok(())
    }
}
