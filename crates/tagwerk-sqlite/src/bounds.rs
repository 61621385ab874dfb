//! Bounds of queues on what may run: their settings and how many jobs run in each, held in memory by the one writer. Queues
//! without such a bound are not counted. Running jobs are counted from rows, so no crash can leak a slot.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::Connection;
use tagwerk_core::{Priority, QueueSettings, Timestamp};
use tagwerk_engine::row::{LaneId, QueueRow};

use crate::book::Level;
use crate::codec::queue;
use crate::error::Res;
use crate::gates::{ENDS, ENDS_SCAN};
use crate::lanes::Lanes;

/// Lanes and priorities of running jobs: at most the live leases.
pub(crate) const RUNNING: &str = "SELECT lane, prio FROM job INDEXED BY job_lease WHERE state = 1";

/// A queue with a bound.
#[derive(Debug, Default)]
struct Bound {
    settings: QueueSettings,
    /// Running jobs by priority.
    running: BTreeMap<i64, u32>,
}

impl Bound {
    /// How many more of this priority may start.
    fn room(&self, prio: i64) -> Option<u32> {
        let sum =
            |counts: &mut dyn Iterator<Item = &u32>| counts.fold(0_u32, |sum, n| sum.saturating_add(*n));
        let below =
            self.settings.reserve.map_or(i64::MIN, |reserve| i64::from(reserve.from_priority.value()));
        let running = sum(&mut self.running.values());
        let running_below = sum(&mut self.running.range(..below).map(|(_, n)| n));
        let priority = u8::try_from(prio).ok().and_then(Priority::from_value).unwrap_or_default();
        self.settings.room(running, running_below, priority)
    }
}

/// All queues with a bound.
#[derive(Debug, Default)]
pub(crate) struct Bounds {
    queues: HashMap<String, Bound>,
    /// The open transaction has changed settings or counts.
    is_touched: bool,
}

impl Bounds {
    /// Reads settings and counts from the rows.
    pub(crate) fn read(conn: &Connection, lanes: &Lanes) -> Res<Self> {
        let rows = queue::read_all(conn)?.into_iter().filter(|row| row.settings.max_running.is_some());
        let queues =
            rows.map(|row| (row.name, Bound { settings: row.settings, ..Bound::default() })).collect();
        let mut bounds = Self { queues, is_touched: false };
        bounds.count(conn, lanes)?;
        bounds.is_touched = false;
        Ok(bounds)
    }

    /// Counts running jobs from their rows.
    pub(crate) fn count(&mut self, conn: &Connection, lanes: &Lanes) -> Res<()> {
        if self.queues.is_empty() {
            return Ok(());
        }
        for bound in self.queues.values_mut() {
            bound.running.clear();
        }
        let mut select = conn.prepare_cached(RUNNING)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            self.add(lanes, Level { lane: LaneId(row.get(0)?), prio: row.get(1)? }, 1);
        }
        Ok(())
    }

    /// Whether any queue has a bound: only then is anything counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Whether one of these classes (`None` = all) is in a queue with a bound.
    pub(crate) fn concerns(&self, lanes: &Lanes, classes: Option<&[LaneId]>) -> bool {
        let is_bound =
            |class: &LaneId| lanes.get(*class).is_some_and(|lane| self.queues.contains_key(&*lane.queue));
        !self.queues.is_empty() && classes.is_none_or(|classes| classes.iter().any(is_bound))
    }

    /// A job of this level begins (1) or ceases (−1) to run.
    pub(crate) fn add(&mut self, lanes: &Lanes, level: Level, n: i32) {
        let queue = lanes.get(level.lane).map(|lane| &*lane.queue);
        let Some(bound) = queue.and_then(|queue| self.queues.get_mut(queue)) else { return };
        self.is_touched = true;
        let running = bound.running.entry(level.prio).or_default();
        *running = running.saturating_add_signed(n);
        if *running == 0 {
            bound.running.remove(&level.prio);
        }
    }

    /// How many more jobs of this level its queue lets start; `None` = it has no bound.
    pub(crate) fn room(&self, lanes: &Lanes, level: Level) -> Option<u32> {
        self.queues.get(&*lanes.get(level.lane)?.queue)?.room(level.prio)
    }

    /// A row was written.
    pub(crate) fn note(&mut self, conn: &Connection, lanes: &Lanes, row: &QueueRow) -> Res<()> {
        self.is_touched = true;
        if row.settings.max_running.is_none() {
            self.queues.remove(&row.name);
            return Ok(());
        }
        self.queues.entry(row.name.clone()).or_default().settings = row.settings;
        self.count(conn, lanes)
    }

    /// The first end of a running attempt in a queue of these classes whose bound is reached. After a bounded look the end of
    /// the last one that was seen: early, not late.
    pub(crate) fn first_end(
        &self,
        conn: &Connection,
        lanes: &Lanes,
        classes: Option<&[LaneId]>,
    ) -> Res<Option<Timestamp>> {
        if !self.concerns(lanes, classes) {
            return Ok(None);
        }
        let wanted: Option<BTreeSet<&str>> = classes.map(|classes| {
            classes.iter().filter_map(|class| lanes.get(*class)).map(|lane| &*lane.queue).collect()
        });
        let mut select = conn.prepare_cached(ENDS)?;
        let mut rows = select.query([])?;
        let mut seen = 0;
        while let Some(row) = rows.next()? {
            let (lane, end) = (LaneId(row.get(0)?), Timestamp::from_millis(row.get(1)?));
            let queue = lanes.get(lane).map(|lane| &*lane.queue);
            let is_bound = queue.is_some_and(|queue| {
                self.queues.contains_key(queue) && wanted.as_ref().is_none_or(|wanted| wanted.contains(queue))
            });
            seen += 1;
            if is_bound || seen == ENDS_SCAN {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    /// The transaction was committed.
    pub(crate) fn settle(&mut self) {
        self.is_touched = false;
    }

    /// The transaction was rolled back.
    pub(crate) fn revert(&mut self, conn: &Connection, lanes: &Lanes) -> Res<()> {
        if self.is_touched {
            *self = Self::read(conn, lanes)?;
        }
        Ok(())
    }
}
