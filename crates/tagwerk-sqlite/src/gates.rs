//! What limits let through: their settings, how many jobs run under each, the starts of each rate. Held in memory by the
//! one writer; running jobs are counted from rows and never stored, so no crash can leak a slot. Only the starts of rates
//! and the ends of holds are written, with the claims that they belong to.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::{Connection, OptionalExtension, params};
use tagwerk_core::Timestamp;
use tagwerk_core::gate::{self, LimitSettings, Rate, Room, Window};
use tagwerk_engine::row::{LaneId, LimitRef, LimitRow, LimitUse};

use crate::cells::Cells;
use crate::error::Res;
use crate::lanes::{Lanes, LimitId};

const SELECT_SETTINGS: &str =
    "SELECT name, max_running, rate_count, rate_per_ms, rate_spread FROM limit_def ORDER BY name";
const UPSERT_SETTINGS: &str = "INSERT INTO limit_def (name, max_running, rate_count, rate_per_ms, rate_spread) \
     VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (name) DO UPDATE SET max_running = excluded.max_running, \
     rate_count = excluded.rate_count, rate_per_ms = excluded.rate_per_ms, rate_spread = excluded.rate_spread";
const DELETE_SETTINGS: &str = "DELETE FROM limit_def WHERE name = ?1";
const SELECT_STATES: &str = "SELECT id, starts, hold_until FROM lim";
const SELECT_STATE: &str = "SELECT id, starts, hold_until FROM lim WHERE id = ?1";
const UPDATE_STATE: &str = "UPDATE lim SET starts = ?2, hold_until = ?3 WHERE id = ?1";
/// Lanes of running jobs: at most the live leases.
pub(crate) const RUNNING: &str = "SELECT lane FROM job INDEXED BY job_lease WHERE state = 1";
/// Ends of running attempts, earliest first.
pub(crate) const ENDS: &str =
    "SELECT lane, lease_until FROM job INDEXED BY job_lease WHERE state = 1 ORDER BY lease_until";

/// How many leases are looked at for the first end of one under a full limit.
pub(crate) const ENDS_SCAN: usize = 1_000;

/// A limit with its partition.
#[derive(Clone, Debug, Default)]
struct Gate {
    running: u32,
    window: Window,
    hold_until: Option<Timestamp>,
}

/// All limits.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    settings: HashMap<String, LimitSettings>,
    by_limit: HashMap<LimitId, Gate>,
    /// When limits open by time alone.
    timers: BTreeSet<(Timestamp, LimitId)>,
    /// When timers were last looked at.
    seen: Option<Timestamp>,
    /// Limits that are held back as a whole, with all their partitions, and until when.
    held: HashMap<String, Timestamp>,
    /// Limits whose starts or holds the open transaction has changed.
    changed: BTreeSet<LimitId>,
    /// The open transaction has changed a running count.
    counted: bool,
    /// The open transaction has changed settings.
    set: bool,
}

impl Gates {
    /// Reads everything from the rows.
    pub(crate) fn rebuild(conn: &Connection, lanes: &Lanes) -> Res<Self> {
        let mut gates = Self { settings: read_settings(conn)?, ..Self::default() };
        let mut select = conn.prepare_cached(SELECT_STATES)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let (id, gate) = decode_state(row)?;
            gates.by_limit.insert(id, gate);
        }
        gates.count(conn, lanes)?;
        gates.counted = false;
        gates.note_held(lanes);
        Ok(gates)
    }

    /// Finds out which limits are held back as a whole.
    fn note_held(&mut self, lanes: &Lanes) {
        let held = self.by_limit.iter().filter_map(|(id, gate)| {
            let limit = lanes.limit_name(*id).filter(|limit| limit.partition.is_empty())?;
            Some((limit.name.clone(), gate.hold_until?))
        });
        self.held = held.collect();
    }

    /// Until when a limit is held back, by itself or as a whole.
    fn hold_until(&self, limit: &LimitRef, gate: &Gate) -> Option<Timestamp> {
        if limit.partition.is_empty() || self.held.is_empty() {
            return gate.hold_until;
        }
        gate.hold_until.max(self.held.get(&limit.name).copied())
    }

    /// Counts running jobs from their rows.
    fn count(&mut self, conn: &Connection, lanes: &Lanes) -> Res<()> {
        for gate in self.by_limit.values_mut() {
            gate.running = 0;
        }
        let mut select = conn.prepare_cached(RUNNING)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let lane = LaneId(row.get(0)?);
            if lane.is_special() {
                self.add(lanes, lane, 1);
            }
        }
        Ok(())
    }

    /// A job of this lane begins (1) or ceases (−1) to run. Returns limits that may have room now.
    pub(crate) fn add(&mut self, lanes: &Lanes, lane: LaneId, n: i32) -> Vec<LimitId> {
        let limits = lanes.limits_of(lane).map(|limits| &**limits).unwrap_or_default();
        self.counted |= !limits.is_empty();
        for limit in limits {
            let gate = self.by_limit.entry(*limit).or_default();
            gate.running = gate.running.saturating_add_signed(n);
        }
        if n < 0 { limits.to_vec() } else { Vec::new() }
    }

    /// What the limits of a lane let through now: so many, or the limit that lets nothing through.
    pub(crate) fn room(&mut self, lanes: &Lanes, lane: LaneId, now: Timestamp) -> Result<u32, LimitId> {
        let mut room = u32::MAX;
        for limit in lanes.limits_of(lane).map(|limits| &**limits).unwrap_or_default() {
            self.settle_window(lanes, *limit, now);
            match self.room_of(lanes, *limit, now) {
                Room::Open(n) => room = room.min(n),
                Room::Full => return Err(*limit),
                Room::Until(at) => {
                    self.timers.insert((at, *limit));
                    return Err(*limit);
                }
            }
        }
        Ok(room)
    }

    /// Keeps what a clock that was put back, or another rate, makes of a window.
    fn settle_window(&mut self, lanes: &Lanes, limit: LimitId, now: Timestamp) {
        let Some(rate) = self.rate(lanes, limit) else { return };
        if self.by_limit.get_mut(&limit).is_some_and(|gate| gate.window.settle(&rate, now)) {
            self.changed.insert(limit);
        }
    }

    fn room_of(&self, lanes: &Lanes, limit: LimitId, now: Timestamp) -> Room {
        let named = lanes.limit_name(limit).and_then(|name| Some((name, self.settings.get(&name.name)?)));
        // A limit without settings bounds nothing.
        let Some((name, settings)) = named else { return Room::Open(u32::MAX) };
        let unused = Gate::default();
        let gate = self.by_limit.get(&limit).unwrap_or(&unused);
        gate::room(settings, gate.running, (&gate.window, self.hold_until(name, gate)), now)
    }

    /// Jobs of a lane are handed out: their starts are spent.
    pub(crate) fn start(&mut self, lanes: &Lanes, lane: LaneId, (n, now): (u32, Timestamp)) {
        for limit in lanes.limits_of(lane).map(|limits| &**limits).unwrap_or_default() {
            let Some(rate) = self.rate(lanes, *limit) else { continue };
            self.by_limit.entry(*limit).or_default().window.take(&rate, n, now);
            self.changed.insert(*limit);
        }
    }

    fn rate(&self, lanes: &Lanes, limit: LimitId) -> Option<Rate> {
        self.settings.get(&lanes.limit_name(limit)?.name)?.rate
    }

    /// Limits that time has opened. If the clock was put back, all that wait for a time are looked at anew: what they wait
    /// for may come sooner now.
    pub(crate) fn wake(&mut self, now: Timestamp) -> Vec<LimitId> {
        let mut open = Vec::new();
        if self.seen.replace(now).is_some_and(|seen| seen > now) {
            open.extend(std::mem::take(&mut self.timers).into_iter().map(|(_, limit)| limit));
        }
        while let Some((at, limit)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, limit));
            open.push(limit);
        }
        open
    }

    /// When one of these limits may let something through without anybody's doing.
    pub(crate) fn opens_at(
        &self,
        conn: &Connection,
        of: (&Lanes, &[LimitId]),
        now: Timestamp,
    ) -> Res<Option<Timestamp>> {
        let (lanes, limits) = of;
        let (mut first, mut full) = (None, BTreeSet::new());
        for limit in limits {
            match self.room_of(lanes, *limit, now) {
                // It is looked at again at once.
                Room::Open(_) => return Ok(Some(now)),
                Room::Until(at) => first = first.into_iter().chain([at]).min(),
                Room::Full => drop(full.insert(*limit)),
            }
        }
        if !full.is_empty() {
            first = first.into_iter().chain(first_end(conn, lanes, &full)?).min();
        }
        Ok(first)
    }

    /// All limits with settings.
    pub(crate) fn all(&self) -> Vec<LimitRow> {
        let sorted: BTreeMap<&String, &LimitSettings> = self.settings.iter().collect();
        let row = |(name, settings): (&String, &LimitSettings)| LimitRow {
            name: name.clone(),
            settings: settings.clone(),
        };
        sorted.into_iter().map(row).collect()
    }

    /// Writes settings. Returns whether there were any, and the limits that may have room now.
    pub(crate) fn put(
        &mut self,
        conn: &Connection,
        lanes: &Lanes,
        (name, settings): (&str, Option<&LimitSettings>),
    ) -> Res<(bool, Vec<LimitId>)> {
        self.set = true;
        let before = if let Some(settings) = settings {
            let LimitSettings { max_running, rate } = settings;
            conn.prepare_cached(UPSERT_SETTINGS)?.execute(params![
                name,
                max_running,
                rate.map(|rate| rate.count),
                rate.map(|rate| rate.per_ms),
                rate.map(|rate| rate.spread),
            ])?;
            self.settings.insert(name.to_owned(), settings.clone())
        } else {
            conn.prepare_cached(DELETE_SETTINGS)?.execute([name])?;
            self.settings.remove(name)
        };
        let concerned = lanes.limits().filter(|(limit, _)| limit.name == name).map(|(_, id)| id).collect();
        Ok((before.is_some(), concerned))
    }

    /// How a limit and its partitions are used.
    pub(crate) fn uses(&self, lanes: &Lanes, name: &str) -> Vec<LimitUse> {
        let of_name = lanes.limits().filter(|(limit, _)| limit.name == name);
        let mut uses: Vec<LimitUse> = of_name
            .map(|(limit, id)| {
                let gate = self.by_limit.get(&id).cloned().unwrap_or_default();
                let hold_until = self.hold_until(limit, &gate);
                LimitUse { limit: limit.clone(), running: gate.running, window: gate.window, hold_until }
            })
            .collect();
        uses.sort_by(|a, b| a.limit.cmp(&b.limit));
        uses
    }

    /// Closes a limit until then, with all its partitions if none is named.
    pub(crate) fn hold(&mut self, (limit, id): (&LimitRef, LimitId), until: Timestamp) {
        let gate = self.by_limit.entry(id).or_default();
        gate.hold_until = gate.hold_until.max(Some(until));
        if limit.partition.is_empty() {
            let held = self.held.entry(limit.name.clone()).or_insert(until);
            *held = until.max(*held);
        }
        self.changed.insert(id);
        // What waits in a partition sets a timer of its own when it is looked at.
        self.timers.insert((until, id));
    }

    /// Takes holds back: of a partition, or without one of the limit and all its partitions. Returns whether there were any,
    /// and the limits that may have room now.
    pub(crate) fn open(&mut self, lanes: &Lanes, wanted: &LimitRef) -> (bool, Vec<LimitId>) {
        let is_whole = wanted.partition.is_empty();
        let is_meant = |limit: &LimitRef| limit.name == wanted.name && (is_whole || limit == wanted);
        let concerned: Vec<LimitId> =
            lanes.limits().filter(|(limit, _)| is_meant(limit)).map(|(_, id)| id).collect();
        let mut lifted = false;
        for id in &concerned {
            let held = self.by_limit.get_mut(id).and_then(|gate| gate.hold_until.take());
            if held.is_some() {
                self.changed.insert(*id);
                lifted = true;
            }
        }
        if is_whole {
            self.held.remove(&wanted.name);
        }
        (lifted, concerned)
    }

    /// Writes what the transaction has changed. Call it before the commit.
    pub(crate) fn write(&mut self, conn: &Connection) -> Res<()> {
        if self.changed.is_empty() {
            return Ok(());
        }
        let mut update = conn.prepare_cached(UPDATE_STATE)?;
        for limit in &self.changed {
            let Some(gate) = self.by_limit.get(limit) else { continue };
            update.execute(params![
                limit.0,
                gate.window.to_bytes(),
                gate.hold_until.map(Timestamp::as_millis)
            ])?;
        }
        Ok(())
    }

    /// The transaction was committed.
    pub(crate) fn settle(&mut self) {
        self.changed.clear();
        (self.counted, self.set) = (false, false);
    }

    /// The transaction was rolled back: reads anew what it had changed.
    pub(crate) fn revert(&mut self, conn: &Connection, lanes: &Lanes) -> Res<()> {
        if std::mem::take(&mut self.set) {
            self.settings = read_settings(conn)?;
        }
        for limit in std::mem::take(&mut self.changed) {
            let found = conn
                .prepare_cached(SELECT_STATE)?
                .query_row([limit.0], |row| Ok(decode_state(row)))
                .optional()?;
            let running = self.by_limit.get(&limit).map_or(0, |gate| gate.running);
            match found.transpose()? {
                Some((id, gate)) => drop(self.by_limit.insert(id, Gate { running, ..gate })),
                None => drop(self.by_limit.remove(&limit)),
            }
        }
        self.note_held(lanes);
        if std::mem::take(&mut self.counted) {
            self.count(conn, lanes)?;
            self.counted = false;
        }
        Ok(())
    }

    /// Rows were erased, and nobody knows of which lanes.
    pub(crate) fn recount(&mut self, conn: &Connection, lanes: &Lanes) -> Res<()> {
        if self.by_limit.is_empty() { Ok(()) } else { self.count(conn, lanes) }
    }
}

fn read_settings(conn: &Connection) -> Res<HashMap<String, LimitSettings>> {
    let mut select = conn.prepare_cached(SELECT_SETTINGS)?;
    let mut rows = select.query([])?;
    let mut settings = HashMap::new();
    while let Some(row) = rows.next()? {
        let (count, per_ms, spread): (_, _, Option<bool>) = (row.get(2)?, row.get(3)?, row.get(4)?);
        let rate = match (count, per_ms) {
            (Some(count), Some(per_ms)) => Some(Rate { count, per_ms, spread: spread == Some(true) }),
            _ => None,
        };
        settings.insert(row.get(0)?, LimitSettings { max_running: row.get(1)?, rate });
    }
    Ok(settings)
}

/// Starts that cannot be read are forgotten with a word: a limit must not stand still for them.
fn decode_state(row: &rusqlite::Row<'_>) -> Res<(LimitId, Gate)> {
    let cells = Cells(row);
    let id = LimitId(cells.int(0)?);
    let starts: Option<Vec<u8>> = row.get(1)?;
    let window = match starts.map(|bytes| Window::from_bytes(&bytes)) {
        None => Window::default(),
        Some(Some(window)) => window,
        Some(None) => {
            tracing::error!(limit = id.0, "the starts of a limit cannot be read and are forgotten");
            Window::default()
        }
    };
    let hold_until = cells.maybe_int(2)?.map(Timestamp::from_millis);
    Ok((id, Gate { running: 0, window, hold_until }))
}

/// The first end of a running attempt under one of these limits. After a bounded look the end of the last one that was
/// seen: early, not late.
fn first_end(conn: &Connection, lanes: &Lanes, limits: &BTreeSet<LimitId>) -> Res<Option<Timestamp>> {
    let mut select = conn.prepare_cached(ENDS)?;
    let mut rows = select.query([])?;
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        let (lane, end) = (LaneId(row.get(0)?), Timestamp::from_millis(row.get(1)?));
        let is_under = lanes.limits_of(lane).is_some_and(|of| of.iter().any(|limit| limits.contains(limit)));
        seen += 1;
        if is_under || seen == ENDS_SCAN {
            return Ok(Some(end));
        }
    }
    Ok(None)
}
