//! The one connection that writes, and what it keeps in memory.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, ErrorCode};
use tagwerk_engine::id_map::IdMap;
use tagwerk_engine::row::QueueRow;
use tagwerk_engine::store::StoreError;

use crate::book::{Book, Head, Level};
use crate::bounds::Bounds;
use crate::codec;
use crate::codec::job::{Decoder, Depth};
use crate::error::{Fail, Res, extended_code};
use crate::gates::Gates;
use crate::lanes::{Lanes, Made};
use crate::open::beside;
use crate::paused::Paused;
use crate::read::Damaged;
use crate::recent::Recent;

const SELECT_SEQUENCE: &str = "SELECT next_job, commits FROM sequence WHERE id = 1";
/// Changes when another connection has written.
const DATA_VERSION: &str = "PRAGMA data_version";
const UPDATE_SEQUENCE: &str = "UPDATE sequence SET next_job = ?1, commits = ?2 WHERE id = 1";

/// The next id, and the number of writing transactions so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    pub(crate) next_job: i64,
    pub(crate) commits: i64,
}

impl Sequence {
    /// As it is in the file.
    pub(crate) fn read(conn: &Connection) -> Res<Self> {
        let decode = |row: &rusqlite::Row<'_>| Ok(Self { next_job: row.get(0)?, commits: row.get(1)? });
        Ok(conn.prepare_cached(SELECT_SEQUENCE)?.query_row([], decode)?)
    }

    fn write(self, conn: &Connection) -> Res<()> {
        conn.prepare_cached(UPDATE_SEQUENCE)?.execute([self.next_job, self.commits])?;
        Ok(())
    }
}

/// The writing connection.
pub(crate) struct Writer {
    pub(crate) conn: Connection,
    pub(crate) lanes: Lanes,
    pub(crate) book: Book,
    pub(crate) sequence: Sequence,
    /// Rows of jobs that run.
    pub(crate) recent: Recent,
    /// Rows given by `claimable` in this transaction and not yet changed.
    pub(crate) given: IdMap<i64, (Level, Head)>,
    /// Rows that cannot be decoded: reported once, then passed over.
    pub(crate) damaged: HashSet<i64>,
    /// The same for figures, with what readers have met.
    seen_damaged: Arc<Damaged>,
    /// Bounds of queues on what may run.
    pub(crate) bounds: Bounds,
    /// What limits let through.
    pub(crate) gates: Gates,
    /// Queues that are paused: none of their lanes is looked at.
    pub(crate) paused: Paused,
    /// Lanes and limits made in the open transaction.
    pub(crate) fresh: Vec<Made>,
    /// The open transaction has written something.
    pub(crate) has_written: bool,
    /// Runs read so far: seeks in the ready index by claims.
    pub(crate) runs: u64,
    /// How often everything in memory was read anew.
    pub(crate) reloads: u64,
    /// What is in memory could not be brought in line after a rollback.
    is_stale: bool,
    data_version: i64,
}

impl Writer {
    /// Takes over a connection to a store whose schema is in place.
    pub(crate) fn new(conn: Connection, seen_damaged: Arc<Damaged>) -> Res<Self> {
        let sequence = Sequence::read(&conn)?;
        let mut writer = Self {
            conn,
            lanes: Lanes::default(),
            book: Book::default(),
            sequence,
            recent: Recent::default(),
            given: IdMap::default(),
            damaged: HashSet::new(),
            seen_damaged,
            bounds: Bounds::default(),
            gates: Gates::default(),
            paused: Paused::default(),
            fresh: Vec::new(),
            has_written: false,
            runs: 0,
            reloads: 0,
            is_stale: true,
            data_version: 0,
        };
        writer.execute("BEGIN")?;
        writer.catch_up()?;
        writer.execute("COMMIT")?;
        Ok(writer)
    }

    /// In a transaction: makes sure that what is in memory is what is in the file. Nobody but this process writes to the
    /// file, except people with a shell; their changes are seen from the next transaction on.
    fn catch_up(&mut self) -> Res<()> {
        let data_version = self.conn.prepare_cached(DATA_VERSION)?.query_row([], |row| row.get(0))?;
        if self.is_stale || data_version != self.data_version {
            self.reload()?;
            self.data_version = data_version;
        }
        Ok(())
    }

    fn reload(&mut self) -> Res<()> {
        self.reloads += 1;
        self.recent.clear();
        self.damaged.clear();
        self.seen_damaged.forget();
        self.sequence = Sequence::read(&self.conn)?;
        self.lanes = Lanes::default();
        self.lanes.refresh(&self.conn)?;
        self.book = Book::rebuild(&self.conn, &self.lanes)?;
        self.gates = Gates::rebuild(&self.conn, &self.lanes)?;
        self.bounds = Bounds::read(&self.conn, &self.lanes)?;
        self.paused = Paused::read(&self.conn)?;
        self.is_stale = false;
        Ok(())
    }

    /// What decodes hot rows.
    pub(crate) const fn decoder(&self) -> Decoder<'_> {
        Decoder { conn: &self.conn, lanes: &self.lanes, depth: Depth::Full }
    }

    /// Begins the transaction.
    pub(crate) fn begin(&mut self) -> Res<()> {
        self.execute("BEGIN IMMEDIATE")?;
        self.has_written = false;
        let caught_up = self.catch_up();
        if caught_up.is_err() {
            self.is_stale = true;
            self.roll_back();
        }
        caught_up
    }

    /// Commits the transaction. A failure that may have taken effect is looked into.
    pub(crate) fn commit(&mut self) -> Res<()> {
        self.offer_given_again();
        self.gates.write(&self.conn)?;
        let before = self.sequence.commits;
        if self.has_written {
            self.sequence.commits += 1;
            self.sequence.write(&self.conn)?;
        }
        match self.execute("COMMIT") {
            Ok(()) => {
                self.book.settle();
                self.gates.settle();
                self.bounds.settle();
                self.paused.settle();
                self.fresh.clear();
                Ok(())
            }
            Err(fail) if self.has_written => self.settle_doubt(fail, before),
            Err(fail) => Err(fail),
        }
    }

    /// COMMIT has failed. Did it take effect? After the rollback the counter tells. If it did not, another commit is made:
    /// when that one stands, nothing of the failed one can come back after a crash, because it took its place in the log.
    fn settle_doubt(&mut self, fail: Fail, before: i64) -> Res<()> {
        let intended = self.sequence;
        self.roll_back();
        match Sequence::read(&self.conn) {
            Ok(found) if found.commits == intended.commits => {
                self.is_stale = true;
                Ok(())
            }
            Ok(found) if found.commits == before => {
                let is_known = is_certain(&fail) || self.fence(found).is_ok();
                Err(if is_known { self.explain(fail) } else { StoreError::OutcomeUnknown.into() })
            }
            Ok(_) | Err(_) => Err(StoreError::OutcomeUnknown.into()),
        }
    }

    /// SQLite does not say why a write failed. The system does, to whoever tries: the disk may have become read-only.
    fn explain(&self, fail: Fail) -> Fail {
        let lock = self.conn.path().map(|path| beside(Path::new(path), ".lock"));
        let tried = lock.map(|lock| std::fs::OpenOptions::new().append(true).open(lock));
        match tried {
            Some(Err(error)) if error.kind() == ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly.into(),
            _ => fail,
        }
    }

    /// A commit that changes nothing but the counter.
    fn fence(&mut self, found: Sequence) -> Res<()> {
        self.execute("BEGIN IMMEDIATE")?;
        let fence = Sequence { commits: found.commits + 2, ..found };
        if let Err(fail) = fence.write(&self.conn).and_then(|()| self.execute("COMMIT")) {
            self.roll_back();
            return Err(fail);
        }
        self.sequence = fence;
        Ok(())
    }

    /// Rolls back, and brings what is in memory in line with the rows.
    pub(crate) fn roll_back(&mut self) {
        if !self.conn.is_autocommit()
            && let Err(fail) = self.execute("ROLLBACK")
        {
            tracing::error!(error = ?fail, "a rollback failed");
        }
        self.given.clear();
        self.recent.clear();
        let read = Sequence::read(&self.conn).map(|sequence| self.sequence = sequence);
        let reverted = read.and_then(|()| self.book.revert(&self.conn));
        let reverted = reverted.and_then(|()| self.paused.revert(&self.conn));
        for made in self.fresh.drain(..).rev() {
            if let Made::Lane(lane) = made {
                self.book.special.forget(lane);
            }
            self.lanes.forget(made);
        }
        if let Err(fail) = reverted
            .and_then(|()| self.gates.revert(&self.conn, &self.lanes))
            .and_then(|()| self.bounds.revert(&self.conn, &self.lanes))
        {
            tracing::warn!(error = ?fail, "the rows could not be read after a rollback; all heads are read anew");
            self.is_stale = true;
        }
        // What was closed by what has not happened is open.
        self.book.special.open_all();
    }

    /// Writes what is said about a queue.
    pub(crate) fn put_queue(&mut self, row: &QueueRow) -> Res<()> {
        codec::queue::write(&self.conn, row)?;
        self.paused.note(row);
        self.bounds.note(&self.conn, &self.lanes, row)?;
        Ok(())
    }

    /// Rows that a claim was given and that nobody changed are offered again, so that none is stranded.
    pub(crate) fn offer_given_again(&mut self) {
        for (_, (level, place)) in std::mem::take(&mut self.given) {
            self.count(level, -1);
            self.book.offer(level, place);
        }
    }

    /// A job of this level begins (1) or ceases (−1) to run, or to be about to.
    pub(crate) fn count(&mut self, level: Level, n: i32) {
        if !self.bounds.is_empty() {
            self.bounds.add(&self.lanes, level, n);
        }
        if level.lane.is_special() {
            for limit in self.gates.add(&self.lanes, level.lane, n) {
                self.book.special.open(limit);
            }
        }
    }

    /// Remembers a row that cannot be decoded; says so once.
    pub(crate) fn note_damaged(&mut self, id: i64, why: &str) {
        self.seen_damaged.note(id);
        if self.damaged.insert(id) {
            tracing::error!(job = id, why, "a row cannot be read and is passed over");
        }
    }

    /// A row is erased. If that is rolled back, it is met again.
    pub(crate) fn forget_damaged(&mut self, id: i64) {
        self.damaged.remove(&id);
        self.seen_damaged.forget_one(id);
    }

    pub(crate) fn execute(&self, sql: &str) -> Res<()> {
        self.conn.prepare_cached(sql)?.execute([])?;
        Ok(())
    }
}

/// Whether this error means that no commit record was written: it is the last thing to be written.
fn is_certain(fail: &Fail) -> bool {
    let Fail::Sql(error) = fail else { return false };
    matches!(error.sqlite_error_code(), Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy))
        || extended_code(error) == rusqlite::ffi::SQLITE_IOERR_WRITE
}
