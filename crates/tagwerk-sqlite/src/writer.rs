//! The one connection that writes, and what it keeps in memory.

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;
use tagwerk_engine::row::LaneId;
use tagwerk_engine::store::StoreError;

use crate::book::{Book, Head, Level};
use crate::codec::job::{Decoder, Depth};
use crate::error::{Fail, Res};
use crate::lanes::Lanes;

const SELECT_SEQUENCE: &str = "SELECT next_job, commits FROM sequence WHERE id = 1";
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
    /// Rows given by `claimable` in this transaction and not yet changed.
    pub(crate) given: HashMap<i64, (Level, Head)>,
    /// Rows that cannot be decoded: reported once, then passed over.
    pub(crate) damaged: HashSet<i64>,
    /// Lanes made in the open transaction.
    pub(crate) fresh_lanes: Vec<LaneId>,
    /// The open transaction has written something.
    pub(crate) has_written: bool,
    /// Runs read so far: seeks in the ready index by claims.
    pub(crate) runs: u64,
    /// What is in memory could not be brought in line after a rollback.
    is_stale: bool,
}

impl Writer {
    /// Takes over a connection to a store whose schema is in place.
    pub(crate) fn new(conn: Connection) -> Res<Self> {
        let sequence = Sequence::read(&conn)?;
        let mut writer = Self {
            conn,
            lanes: Lanes::default(),
            book: Book::default(),
            sequence,
            given: HashMap::new(),
            damaged: HashSet::new(),
            fresh_lanes: Vec::new(),
            has_written: false,
            runs: 0,
            is_stale: false,
        };
        writer.reload()?;
        Ok(writer)
    }

    /// Reads everything that is kept in memory.
    fn reload(&mut self) -> Res<()> {
        self.sequence = Sequence::read(&self.conn)?;
        self.lanes = Lanes::default();
        self.lanes.refresh(&self.conn)?;
        self.book = Book::rebuild(&self.conn)?;
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
        if self.is_stale
            && let Err(fail) = self.reload()
        {
            self.roll_back();
            return Err(fail);
        }
        Ok(())
    }

    /// Commits the transaction. A failure that may have taken effect is looked into.
    pub(crate) fn commit(&mut self) -> Res<()> {
        self.offer_given_again();
        let before = self.sequence.commits;
        if self.has_written {
            self.sequence.commits += 1;
            self.sequence.write(&self.conn)?;
        }
        match self.execute("COMMIT") {
            Ok(()) => {}
            Err(fail) if self.has_written => return self.settle_doubt(fail, before),
            Err(fail) => return Err(fail),
        }
        self.settle();
        Ok(())
    }

    fn settle(&mut self) {
        self.book.settle();
        self.fresh_lanes.clear();
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
                let fenced = is_certain(&fail) || self.fence(found).is_ok();
                Err(if fenced { fail } else { StoreError::OutcomeUnknown.into() })
            }
            Ok(_) | Err(_) => Err(StoreError::OutcomeUnknown.into()),
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
        for lane in self.fresh_lanes.drain(..) {
            self.lanes.forget(lane);
        }
        let read = Sequence::read(&self.conn).map(|sequence| self.sequence = sequence);
        if let Err(fail) = read.and_then(|()| self.book.revert(&self.conn)) {
            tracing::warn!(error = ?fail, "the rows could not be read after a rollback; all heads are read anew");
            self.is_stale = true;
        }
    }

    /// Rows that a claim was given and that nobody changed are offered again, so that none is stranded.
    pub(crate) fn offer_given_again(&mut self) {
        for (_, (level, place)) in self.given.drain() {
            self.book.offer(level, place);
        }
    }

    /// Remembers a row that cannot be decoded; says so once.
    pub(crate) fn note_damaged(&mut self, id: i64, why: &str) {
        if self.damaged.insert(id) {
            tracing::error!(job = id, why, "a row cannot be read and is passed over");
        }
    }

    pub(crate) fn execute(&self, sql: &str) -> Res<()> {
        self.conn.prepare_cached(sql)?.execute([])?;
        Ok(())
    }
}

/// Whether this error means that no commit record was written.
fn is_certain(fail: &Fail) -> bool {
    let Fail::Sql(error) = fail else { return false };
    matches!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DiskFull | rusqlite::ErrorCode::DatabaseBusy)
    )
}
