//! Interned lanes as a connection remembers them. Rows of `lane` and `special_lane` never change, so what was read once
//! stays true. Plain lanes have ids above 0, special ones below.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use rusqlite::{Connection, params};
use tagwerk_core::limits;
use tagwerk_engine::row::{Lane, LaneId, LimitRef, Special};
use tagwerk_engine::store::SpecialName;

use crate::error::Res;

const SELECT_NEW: &str = "SELECT lane.id, queue.name, type.name, lane.space FROM lane JOIN queue ON queue.id = lane.queue \
     JOIN type ON type.id = lane.type WHERE lane.id > ?1 ORDER BY lane.id";
const INSERT_QUEUE: &str = "INSERT INTO queue (name) VALUES (?1) ON CONFLICT (name) DO NOTHING";
const INSERT_TYPE: &str = "INSERT INTO type (name) VALUES (?1) ON CONFLICT (name) DO NOTHING";
const INSERT_LANE: &str = "INSERT INTO lane (queue, type, space) SELECT queue.id, type.id, ?3 FROM queue, type \
     WHERE queue.name = ?1 AND type.name = ?2";
const SELECT_NEW_LIMITS: &str = "SELECT id, name, partition FROM lim WHERE id > ?1 ORDER BY id";
const INSERT_LIMIT: &str = "INSERT INTO lim (name, partition) VALUES (?1, ?2)";
const SELECT_NEW_SPECIAL: &str =
    "SELECT id, class, first, second, fair FROM special_lane WHERE id < ?1 ORDER BY id DESC";
const INSERT_SPECIAL: &str =
    "INSERT INTO special_lane (id, class, first, second, fair) VALUES (?1, ?2, ?3, ?4, ?5)";

/// Number of a limit with its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LimitId(pub(crate) i64);

/// What was made new by interning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// A lane, plain or special.
    Lane(LaneId),
    /// A limit.
    Limit(LimitId),
}

/// The plain lanes of a queue and type: one outside of spaces and one in each of some.
#[derive(Debug, Default)]
struct Alike {
    outside: Option<LaneId>,
    within: BTreeMap<Arc<str>, LaneId>,
}

impl Alike {
    fn get(&self, space: Option<&str>) -> Option<LaneId> {
        space.map_or(self.outside, |space| self.within.get(space).copied())
    }

    fn all(&self) -> impl Iterator<Item = LaneId> + use<'_> {
        self.outside.iter().chain(self.within.values()).copied()
    }
}

/// Lanes by number and by name.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    by_id: HashMap<LaneId, Lane>,
    by_queue: HashMap<Arc<str>, HashMap<Arc<str>, Alike>>,
    by_kind: HashMap<Arc<str>, BTreeSet<LaneId>>,
    by_space: HashMap<Arc<str>, BTreeSet<LaneId>>,
    newest: i64,
    /// Special lanes by class.
    special: HashMap<LaneId, HashMap<Arc<Special>, LaneId>>,
    /// Id of the newest special lane: the lowest.
    lowest: i64,
    limits: HashMap<LimitRef, LimitId>,
    limit_of: HashMap<LimitId, LimitRef>,
    newest_limit: i64,
    /// Limits of special lanes.
    limits_of: HashMap<LaneId, Arc<[LimitId]>>,
}

impl Lanes {
    /// The lane with this number.
    pub(crate) fn get(&self, id: LaneId) -> Option<&Lane> {
        self.by_id.get(&id)
    }

    /// The plain lane of this queue and type in this space.
    fn find(&self, (queue, kind): (&str, &str), space: Option<&str>) -> Option<&Lane> {
        self.get(self.by_queue.get(queue)?.get(kind)?.get(space)?)
    }

    /// The plain lanes of this queue and type, whatever their space.
    pub(crate) fn of_both<'a>(&'a self, queue: &str, kind: &str) -> impl Iterator<Item = LaneId> + use<'a> {
        self.by_queue.get(queue).and_then(|kinds| kinds.get(kind)).into_iter().flat_map(Alike::all)
    }

    /// The plain lanes of a space.
    pub(crate) fn of_space<'a>(&'a self, space: &str) -> impl Iterator<Item = LaneId> + use<'a> {
        self.by_space.get(space).into_iter().flatten().copied()
    }

    /// The plain lanes of this queue.
    pub(crate) fn of_queue<'a>(&'a self, queue: &str) -> impl Iterator<Item = LaneId> + use<'a> {
        self.by_queue.get(queue).into_iter().flat_map(|kinds| kinds.values().flat_map(Alike::all))
    }

    /// The plain lanes of this type.
    pub(crate) fn of_kind<'a>(&'a self, kind: &str) -> impl Iterator<Item = LaneId> + use<'a> {
        self.by_kind.get(kind).into_iter().flatten().copied()
    }

    /// All plain lanes.
    pub(crate) fn classes(&self) -> impl Iterator<Item = LaneId> + use<'_> {
        self.by_queue.values().flat_map(|kinds| kinds.values().flat_map(Alike::all))
    }

    /// The special lanes of a class.
    pub(crate) fn special_of(&self, class: LaneId) -> impl Iterator<Item = LaneId> + use<'_> {
        self.special.get(&class).into_iter().flat_map(|lanes| lanes.values().copied())
    }

    /// All special lanes with their limits.
    pub(crate) fn all_special(&self) -> impl Iterator<Item = (&Lane, &Arc<[LimitId]>)> {
        self.limits_of.iter().filter_map(|(id, limits)| Some((self.by_id.get(id)?, limits)))
    }

    /// The limits of a special lane.
    pub(crate) fn limits_of(&self, lane: LaneId) -> Option<&Arc<[LimitId]>> {
        self.limits_of.get(&lane)
    }

    /// All limits that a job has named.
    pub(crate) fn limits(&self) -> impl Iterator<Item = (&LimitRef, LimitId)> {
        self.limits.iter().map(|(name, id)| (name, *id))
    }

    /// The name of a limit.
    pub(crate) fn limit_name(&self, id: LimitId) -> Option<&LimitRef> {
        self.limit_of.get(&id)
    }

    /// Reads the lanes that are not yet known.
    pub(crate) fn refresh(&mut self, conn: &Connection) -> Res<()> {
        let mut select = conn.prepare_cached(SELECT_NEW)?;
        let mut rows = select.query([self.newest])?;
        while let Some(row) = rows.next()? {
            let (id, queue, kind): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let space: String = row.get(3)?;
            let space = Some(space.as_str()).filter(|space| !space.is_empty());
            self.remember(LaneId(id), (&queue, &kind), space);
        }
        let mut select = conn.prepare_cached(SELECT_NEW_LIMITS)?;
        let mut rows = select.query([self.newest_limit])?;
        while let Some(row) = rows.next()? {
            let name = LimitRef { name: row.get(1)?, partition: row.get(2)? };
            self.remember_limit(LimitId(row.get(0)?), name);
        }
        let mut select = conn.prepare_cached(SELECT_NEW_SPECIAL)?;
        let mut rows = select.query([self.lowest])?;
        while let Some(row) = rows.next()? {
            let (id, class) = (LaneId(row.get(0)?), LaneId(row.get(1)?));
            let limits = [row.get(2)?, row.get(3)?].into_iter().filter(|id| *id != 0).map(LimitId);
            let fair: String = row.get(4)?;
            let fair_key = Some(fair).filter(|fair| !fair.is_empty());
            self.remember_special((id, class), limits.collect(), fair_key);
        }
        Ok(())
    }

    /// The lane of this queue and type in this space, and whether it had to be made.
    pub(crate) fn intern(
        &mut self,
        conn: &Connection,
        (queue, kind): (&str, &str),
        space: Option<&str>,
    ) -> Res<(Lane, bool)> {
        if let Some(lane) = self.find((queue, kind), space) {
            return Ok((lane.clone(), false));
        }
        conn.prepare_cached(INSERT_QUEUE)?.execute([queue])?;
        conn.prepare_cached(INSERT_TYPE)?.execute([kind])?;
        let id =
            LaneId(conn.prepare_cached(INSERT_LANE)?.insert([queue, kind, space.unwrap_or_default()])?);
        Ok((self.remember(id, (queue, kind), space), true))
    }

    /// A special lane. What had to be made for it comes on top of `made`.
    pub(crate) fn intern_special(
        &mut self,
        conn: &Connection,
        name: &SpecialName<'_>,
        made: &mut Vec<Made>,
    ) -> Res<Lane> {
        let SpecialName { queue, kind, space, special } = *name;
        let (class, is_fresh) = self.intern(conn, (queue, kind), space)?;
        made.extend(is_fresh.then_some(Made::Lane(class.id)));
        if let Some(known) = self.find_special(class.id, special) {
            return Ok(known.clone());
        }
        let shared;
        let special = if self.by_id.len() < limits::LANES_MAX {
            special
        } else {
            shared = shared_with_others(special);
            &shared
        };
        if let Some(known) = self.find_special(class.id, special) {
            return Ok(known.clone());
        }
        let mut ids = Vec::with_capacity(2);
        for limit in &special.limits {
            ids.push(self.intern_limit(conn, limit, made)?);
        }
        ids.sort_unstable();
        let id = LaneId(self.lowest - 1);
        let number = |at: usize| ids.get(at).map_or(0, |id| id.0);
        conn.prepare_cached(INSERT_SPECIAL)?.execute(params![
            id.0,
            class.id.0,
            number(0),
            number(1),
            special.fair_key.as_deref().unwrap_or_default()
        ])?;
        made.push(Made::Lane(id));
        self.remember_special((id, class.id), ids.into(), special.fair_key.clone());
        Ok(self.by_id.get(&id).cloned().unwrap_or(class))
    }

    /// A limit with its partition.
    pub(crate) fn intern_limit(
        &mut self,
        conn: &Connection,
        limit: &LimitRef,
        made: &mut Vec<Made>,
    ) -> Res<LimitId> {
        if let Some(id) = self.limits.get(limit) {
            return Ok(*id);
        }
        let insert = params![limit.name, limit.partition];
        let id = LimitId(conn.prepare_cached(INSERT_LIMIT)?.insert(insert)?);
        self.remember_limit(id, limit.clone());
        made.push(Made::Limit(id));
        Ok(id)
    }

    fn find_special(&self, class: LaneId, special: &Special) -> Option<&Lane> {
        self.get(*self.special.get(&class)?.get(special)?)
    }

    /// Forgets what was made in a transaction that was rolled back, newest first.
    pub(crate) fn forget(&mut self, made: Made) {
        match made {
            Made::Limit(id) => {
                if let Some(name) = self.limit_of.remove(&id) {
                    self.limits.remove(&name);
                }
                self.newest_limit = self.newest_limit.min(id.0 - 1);
            }
            Made::Lane(id) => {
                let Some(lane) = self.by_id.remove(&id) else { return };
                if let Some(special) = &lane.special {
                    if let Some(lanes) = self.special.get_mut(&lane.class) {
                        lanes.remove(special);
                    }
                    self.limits_of.remove(&id);
                    self.lowest = self.lowest.max(id.0 + 1);
                    return;
                }
                let alike = self.by_queue.get_mut(&lane.queue).and_then(|kinds| kinds.get_mut(&lane.kind));
                match (alike, &lane.space) {
                    (Some(alike), None) => alike.outside = None,
                    (Some(alike), Some(space)) => {
                        alike.within.remove(space);
                    }
                    (None, _) => {}
                }
                if let Some(lanes) = lane.space.as_ref().and_then(|space| self.by_space.get_mut(space)) {
                    lanes.remove(&id);
                }
                if let Some(lanes) = self.by_kind.get_mut(&lane.kind) {
                    lanes.remove(&id);
                }
                self.newest = self.newest.min(id.0 - 1);
            }
        }
    }

    fn remember(&mut self, id: LaneId, (queue, kind): (&str, &str), space: Option<&str>) -> Lane {
        let queue =
            self.by_queue.get_key_value(queue).map_or_else(|| queue.into(), |(name, _)| Arc::clone(name));
        let kind = self.by_kind.get_key_value(kind).map_or_else(|| kind.into(), |(name, _)| Arc::clone(name));
        let space = space.map(|space| {
            self.by_space.get_key_value(space).map_or_else(|| space.into(), |(name, _)| Arc::clone(name))
        });
        let names = (Arc::clone(&queue), Arc::clone(&kind));
        let lane = Lane { id, class: id, queue: names.0, kind: names.1, space: space.clone(), special: None };
        let alike = self.by_queue.entry(queue).or_default().entry(Arc::clone(&kind)).or_default();
        match space {
            None => alike.outside = Some(id),
            Some(space) => {
                alike.within.insert(Arc::clone(&space), id);
                self.by_space.entry(space).or_default().insert(id);
            }
        }
        self.by_kind.entry(kind).or_default().insert(id);
        self.by_id.insert(id, lane.clone());
        self.newest = self.newest.max(id.0);
        lane
    }

    fn remember_limit(&mut self, id: LimitId, name: LimitRef) {
        self.limits.insert(name.clone(), id);
        self.limit_of.insert(id, name);
        self.newest_limit = self.newest_limit.max(id.0);
    }

    /// Nothing if the class or a limit is not there: then the lane cannot be read, nor can its jobs.
    fn remember_special(
        &mut self,
        (id, class): (LaneId, LaneId),
        limits: Arc<[LimitId]>,
        fair_key: Option<String>,
    ) {
        self.lowest = self.lowest.min(id.0);
        let names: Option<Vec<LimitRef>> = limits.iter().map(|id| self.limit_of.get(id).cloned()).collect();
        let (Some(plain), Some(mut names)) = (self.by_id.get(&class), names) else { return };
        names.sort();
        let special = Arc::new(Special { limits: names, fair_key });
        let lane = Lane { id, class, special: Some(Arc::clone(&special)), ..plain.clone() };
        self.special.entry(class).or_default().insert(special, id);
        self.limits_of.insert(id, limits);
        self.by_id.insert(id, lane);
    }
}

/// What stands for a lane when there are too many: a partition and a fair key that others have, too.
fn shared_with_others(special: &Special) -> Special {
    let share = |text: &str| {
        let hash = blake3::hash(text.as_bytes());
        let [first, second, ..] = *hash.as_bytes();
        format!("~{}", u16::from_le_bytes([first, second]) % limits::SHARED_LANES)
    };
    let mut limits: Vec<LimitRef> = special
        .limits
        .iter()
        .map(|limit| match limit.partition.as_str() {
            "" => limit.clone(),
            partition => LimitRef { name: limit.name.clone(), partition: share(partition) },
        })
        .collect();
    limits.sort();
    limits.dedup();
    Special { limits, fair_key: special.fair_key.as_deref().map(share) }
}
