//! Interned lanes as a connection remembers them. Rows of `lane` never change, so what was read once stays true.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rusqlite::Connection;
use tagwerk_engine::row::{Lane, LaneId};

use crate::error::Res;

const SELECT_NEW: &str = "SELECT lane.id, queue.name, type.name FROM lane JOIN queue ON queue.id = lane.queue \
     JOIN type ON type.id = lane.type WHERE lane.id > ?1 ORDER BY lane.id";
const INSERT_QUEUE: &str = "INSERT INTO queue (name) VALUES (?1) ON CONFLICT (name) DO NOTHING";
const INSERT_TYPE: &str = "INSERT INTO type (name) VALUES (?1) ON CONFLICT (name) DO NOTHING";
const INSERT_LANE: &str = "INSERT INTO lane (queue, type) SELECT queue.id, type.id FROM queue, type \
     WHERE queue.name = ?1 AND type.name = ?2";

/// Lanes by number and by name.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    by_id: HashMap<LaneId, Lane>,
    by_queue: HashMap<Arc<str>, HashMap<Arc<str>, LaneId>>,
    by_kind: HashMap<Arc<str>, BTreeSet<LaneId>>,
    newest: i64,
}

impl Lanes {
    /// The lane with this number.
    pub(crate) fn get(&self, id: LaneId) -> Option<&Lane> {
        self.by_id.get(&id)
    }

    /// The lane of this queue and type.
    pub(crate) fn find(&self, queue: &str, kind: &str) -> Option<&Lane> {
        self.get(*self.by_queue.get(queue)?.get(kind)?)
    }

    /// The lanes of this queue.
    pub(crate) fn of_queue<'a>(&'a self, queue: &str) -> impl Iterator<Item = LaneId> + use<'a> {
        self.by_queue.get(queue).into_iter().flat_map(|kinds| kinds.values().copied())
    }

    /// The lanes of this type.
    pub(crate) fn of_kind<'a>(&'a self, kind: &str) -> impl Iterator<Item = LaneId> + use<'a> {
        self.by_kind.get(kind).into_iter().flatten().copied()
    }

    /// Reads the lanes that are not yet known.
    pub(crate) fn refresh(&mut self, conn: &Connection) -> Res<()> {
        let mut select = conn.prepare_cached(SELECT_NEW)?;
        let mut rows = select.query([self.newest])?;
        while let Some(row) = rows.next()? {
            let (id, queue, kind): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            self.remember(LaneId(id), &queue, &kind);
        }
        Ok(())
    }

    /// The lane of this queue and type, and whether it had to be made.
    pub(crate) fn intern(&mut self, conn: &Connection, queue: &str, kind: &str) -> Res<(Lane, bool)> {
        if let Some(lane) = self.find(queue, kind) {
            return Ok((lane.clone(), false));
        }
        conn.prepare_cached(INSERT_QUEUE)?.execute([queue])?;
        conn.prepare_cached(INSERT_TYPE)?.execute([kind])?;
        let id = LaneId(conn.prepare_cached(INSERT_LANE)?.insert([queue, kind])?);
        Ok((self.remember(id, queue, kind), true))
    }

    /// Forgets a lane that was made in a transaction that was rolled back.
    pub(crate) fn forget(&mut self, id: LaneId) {
        if let Some(lane) = self.by_id.remove(&id) {
            if let Some(kinds) = self.by_queue.get_mut(&lane.queue) {
                kinds.remove(&lane.kind);
            }
            if let Some(lanes) = self.by_kind.get_mut(&lane.kind) {
                lanes.remove(&id);
            }
            self.newest = self.newest.min(id.0 - 1);
        }
    }

    fn remember(&mut self, id: LaneId, queue: &str, kind: &str) -> Lane {
        let queue =
            self.by_queue.get_key_value(queue).map_or_else(|| queue.into(), |(name, _)| Arc::clone(name));
        let kind = self.by_kind.get_key_value(kind).map_or_else(|| kind.into(), |(name, _)| Arc::clone(name));
        let lane = Lane { id, queue: Arc::clone(&queue), kind: Arc::clone(&kind) };
        self.by_queue.entry(queue).or_default().insert(Arc::clone(&kind), id);
        self.by_kind.entry(kind).or_default().insert(id);
        self.by_id.insert(id, lane.clone());
        self.newest = self.newest.max(id.0);
        lane
    }
}
