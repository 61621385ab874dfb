//! The book of lane heads: where in the ready index a claim has to look, held in memory by the one writer.
//!
//! A *level* is a (lane, priority). Its *head* is a lower bound of the place (due time, id) of its first ready row. The
//! rule that makes the book safe: **a head may be early, never late**. A head that is too early costs one seek and is
//! corrected; one that is too late would strand a job. Nothing is ever rolled back by hand: the levels that a transaction
//! touched are read anew from the rows.
//!
//! Size: one entry per level in use, whatever the number of jobs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row};
use tagwerk_engine::row::LaneId;

use crate::boards::{Closed, Pick, Special};
use crate::error::Res;
use crate::lanes::Lanes;

/// First ready row of a level.
pub(crate) const SEEK_LEVEL: &str = "SELECT due, id FROM job INDEXED BY job_ready \
     WHERE lane = ?1 AND prio = ?2 AND state = 0 ORDER BY due, id LIMIT 1";
/// First ready row of a level that is due after a time.
pub(crate) const SEEK_AFTER: &str = "SELECT due, id FROM job INDEXED BY job_ready \
     WHERE lane = ?1 AND prio = ?2 AND state = 0 AND due > ?3 ORDER BY due, id LIMIT 1";
/// Head of the next lower level of a lane.
pub(crate) const NEXT_LEVEL: &str = "SELECT lane, prio, due, id FROM job INDEXED BY job_ready \
     WHERE lane = ?1 AND prio < ?2 AND state = 0 ORDER BY prio DESC, due, id LIMIT 1";
/// Head of the highest level of the next lane.
pub(crate) const NEXT_LANE: &str = "SELECT lane, prio, due, id FROM job INDEXED BY job_ready \
     WHERE lane > ?1 AND state = 0 ORDER BY lane, prio DESC, due, id LIMIT 1";

/// A priority of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Level {
    pub(crate) lane: LaneId,
    /// A damaged row may have any.
    pub(crate) prio: i64,
}

/// A place in a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Head {
    pub(crate) due: i64,
    pub(crate) id: i64,
}

impl Head {
    /// The first place behind this one.
    pub(crate) const fn next(self) -> Self {
        Self { due: self.due, id: self.id.saturating_add(1) }
    }
}

/// A head among those of other levels, in claim order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    rank: Reverse<i64>,
    pub(crate) head: Head,
    lane: LaneId,
}

impl Candidate {
    /// A head of a level.
    pub(crate) const fn new(level: Level, head: Head) -> Self {
        Self { rank: Reverse(level.prio), head, lane: level.lane }
    }

    /// Its level.
    pub(crate) const fn level(&self) -> Level {
        Level { lane: self.lane, prio: self.rank.0 }
    }
}

/// All heads.
#[derive(Debug, Default)]
pub(crate) struct Book {
    heads: BTreeMap<Level, Head>,
    /// Heads of plain lanes that were due when last looked at, in claim order over all of them.
    due: BTreeSet<Candidate>,
    /// Where the due heads of special lanes stand.
    pub(crate) special: Special,
    /// The others by due time.
    timers: BTreeSet<(Head, Level)>,
    /// Levels that the open transaction may have moved to where its rows are not, if it is rolled back.
    touched: HashSet<Level>,
    /// When it was last looked at.
    seen: i64,
}

impl Book {
    /// Reads all heads from the rows: one seek per level.
    pub(crate) fn rebuild(conn: &Connection, lanes: &Lanes) -> Res<Self> {
        let mut book = Self::default();
        for (lane, _) in lanes.all_special() {
            book.special.know(lane);
        }
        for (level, head) in scan(conn)? {
            book.set(level, Some(head));
        }
        book.touched.clear();
        Ok(book)
    }

    /// A row has become ready.
    pub(crate) fn offer(&mut self, level: Level, place: Head) {
        if self.heads.get(&level).is_none_or(|head| place < *head) {
            self.set(level, Some(place));
        }
    }

    /// A row has left this place. Where keys take turns a head that is early could go before, or stand in the way of, what
    /// has the turn, so the level is read anew.
    pub(crate) fn leave(&mut self, conn: &Connection, level: Level, place: Head) -> Res<()> {
        if self.heads.get(&level) == Some(&place) {
            let head = seek(conn, level)?;
            self.set(level, head);
        }
        Ok(())
    }

    /// The head of a level is known now. Whether it is due the next [`Book::wake`] sees, also if it is the same as before:
    /// a head that stayed among the due ones and is not due would be met again and again.
    pub(crate) fn set(&mut self, level: Level, head: Option<Head>) {
        let old = match head {
            Some(head) => {
                self.timers.insert((head, level));
                self.heads.insert(level, head)
            }
            None => self.heads.remove(&level),
        };
        if let Some(old) = old {
            if Some(old) != head {
                self.timers.remove(&(old, level));
            }
            if level.lane.is_special() {
                self.special.remove(level, old);
            } else {
                self.due.remove(&Candidate::new(level, old));
            }
        }
        self.touched.insert(level);
    }

    /// Moves what has become due among the due heads, and back what is not due any more because the clock was put back.
    pub(crate) fn wake(&mut self, now: i64) {
        if std::mem::replace(&mut self.seen, now) > now {
            let later: Vec<(Level, Head)> =
                self.levels(None).into_iter().filter(|(_, head)| head.due > now).collect();
            for (level, head) in later {
                self.set(level, Some(head));
            }
        }
        while let Some((head, level)) = self.timers.first().copied().filter(|(head, _)| head.due <= now) {
            self.timers.remove(&(head, level));
            if level.lane.is_special() {
                self.special.insert(level, head);
            } else {
                self.due.insert(Candidate::new(level, head));
            }
        }
    }

    /// Due heads of all plain lanes, in claim order. Call [`Book::wake`] first.
    pub(crate) fn due(&self) -> impl Iterator<Item = Candidate> + use<'_> {
        self.due.iter().copied()
    }

    /// Due heads of these lanes, in claim order.
    pub(crate) fn due_of(&self, lanes: &[LaneId], now: i64) -> Vec<Candidate> {
        let due = self.levels_of(lanes).filter(|(_, head)| head.due <= now);
        let mut due: Vec<Candidate> = due.map(|(level, head)| Candidate::new(level, head)).collect();
        due.sort_unstable();
        due
    }

    /// What a claim of these queues takes next, and how much of it `room` lets through.
    pub(crate) fn next(
        &mut self,
        queues: &[(Arc<str>, Vec<LaneId>)],
        (now, room): (i64, &mut dyn FnMut(Level) -> Result<u32, Closed>),
    ) -> Option<(Pick, u32)> {
        let Self { heads, special, .. } = self;
        let best_of = |lane: LaneId| {
            let due = levels_of(heads, lane).filter(|(_, head)| head.due <= now).last();
            due.map(|(level, head)| Candidate::new(level, head))
        };
        special.best(queues, &best_of, room)
    }

    /// All levels, or those of these lanes, with their heads.
    pub(crate) fn levels(&self, lanes: Option<&[LaneId]>) -> Vec<(Level, Head)> {
        match lanes {
            Some(lanes) => self.levels_of(lanes).collect(),
            None => self.heads.iter().map(|(level, head)| (*level, *head)).collect(),
        }
    }

    /// Heads that are due after `now`, earliest first.
    pub(crate) fn timers(&self, now: i64) -> impl Iterator<Item = (Level, Head)> + use<'_> {
        let behind = (Head { due: now, id: i64::MAX }, Level { lane: LaneId(i64::MAX), prio: i64::MAX });
        self.timers.range(behind..).map(|(head, level)| (*level, *head))
    }

    /// Those of special lanes.
    pub(crate) fn special_timers(&self, now: i64) -> impl Iterator<Item = (Level, Head)> + use<'_> {
        self.timers(now).filter(|(level, _)| level.lane.is_special())
    }

    fn levels_of<'a>(&'a self, lanes: &'a [LaneId]) -> impl Iterator<Item = (Level, Head)> + use<'a> {
        lanes.iter().flat_map(|lane| levels_of(&self.heads, *lane))
    }

    /// The transaction was committed: what it did to the book holds.
    pub(crate) fn settle(&mut self) {
        self.special.settle();
        self.touched.clear();
    }

    /// The transaction was rolled back: reads anew what it had touched.
    pub(crate) fn revert(&mut self, conn: &Connection) -> Res<()> {
        self.special.revert();
        for level in std::mem::take(&mut self.touched) {
            let head = seek(conn, level)?;
            self.set(level, head);
        }
        self.touched.clear();
        Ok(())
    }
}

/// The levels of a lane with their heads, lowest priority first.
fn levels_of(heads: &BTreeMap<Level, Head>, lane: LaneId) -> impl Iterator<Item = (Level, Head)> {
    let levels = Level { lane, prio: i64::MIN }..=Level { lane, prio: i64::MAX };
    heads.range(levels).map(|(level, head)| (*level, *head))
}

/// The first ready row of a level.
pub(crate) fn seek(conn: &Connection, level: Level) -> Res<Option<Head>> {
    let mut select = conn.prepare_cached(SEEK_LEVEL)?;
    Ok(select.query_row([level.lane.0, level.prio], head).optional()?)
}

/// The first ready row of a level that is due after `now`.
pub(crate) fn seek_after(conn: &Connection, level: Level, now: i64) -> Res<Option<Head>> {
    let mut select = conn.prepare_cached(SEEK_AFTER)?;
    Ok(select.query_row([level.lane.0, level.prio, now], head).optional()?)
}

fn head(row: &Row<'_>) -> rusqlite::Result<Head> {
    Ok(Head { due: row.get(0)?, id: row.get(1)? })
}

/// All levels with their heads, straight from the index: one seek per level and lane.
pub(crate) fn scan(conn: &Connection) -> Res<Vec<(Level, Head)>> {
    let (mut next_level, mut next_lane) = (conn.prepare_cached(NEXT_LEVEL)?, conn.prepare_cached(NEXT_LANE)?);
    let decode = |row: &Row<'_>| {
        let level = Level { lane: LaneId(row.get(0)?), prio: row.get(1)? };
        Ok((level, Head { due: row.get(2)?, id: row.get(3)? }))
    };
    let mut found = Vec::new();
    let mut last = Level { lane: LaneId(i64::MIN), prio: i64::MIN };
    loop {
        let lower = next_level.query_row([last.lane.0, last.prio], decode).optional()?;
        let next = match lower {
            Some(lower) => Some(lower),
            None => next_lane.query_row([last.lane.0], decode).optional()?,
        };
        let Some((level, head)) = next else { return Ok(found) };
        found.push((level, head));
        last = level;
    }
}

/// All levels of one lane with their heads.
pub(crate) fn scan_lane(conn: &Connection, lane: LaneId) -> Res<Vec<(Level, Head)>> {
    let mut next_level = conn.prepare_cached(NEXT_LEVEL)?;
    let decode = |row: &Row<'_>| Ok((row.get(1)?, Head { due: row.get(2)?, id: row.get(3)? }));
    let mut found: Vec<(Level, Head)> = Vec::new();
    let mut above = i64::MAX;
    while let Some((prio, head)) = next_level.query_row([lane.0, above], decode).optional()? {
        found.push((Level { lane, prio }, head));
        above = prio;
    }
    Ok(found)
}
