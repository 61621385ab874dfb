//! What bounds hand-outs: limits with their partitions, queues with what was said about them, whose turn it is.
//!
//! Section 6 of the semantics. Running jobs are counted from the rows each time, so a slot is there as long as its lease.

use std::collections::{BTreeMap, BTreeSet};

use tagwerk_core::gate::LimitSettings;
use tagwerk_core::{QueueSettings, Status};
use tagwerk_engine::row::{LimitRef, QueueRow};

use super::Model;
use super::job::Job;
use super::starts::{Counts, Open, Reading, Span, Starts, open_by};
use crate::plan::Caps;

/// A limit, or a partition of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate {
    /// Closed until then.
    pub(super) hold_until: Option<i64>,
    pub(super) starts: Starts,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Capacity {
    pub(super) limits: BTreeMap<String, LimitSettings>,
    pub(super) gates: BTreeMap<LimitRef, Gate>,
    pub(super) queues: BTreeMap<String, QueueRow>,
    /// When keys were last given something: between which places in the order of all hand-outs.
    turns: BTreeMap<(String, Option<String>), (u64, u64)>,
    /// Queues in which jobs take turns.
    fair: BTreeSet<String>,
    handed_out: u64,
    /// Some job has named limits or a key.
    is_special: bool,
    pub(super) clock: Reading,
}

/// Ends of the attempts that run, by what bounds them.
pub(super) struct Load<'m> {
    limits: BTreeMap<&'m LimitRef, Vec<i64>>,
    /// With the priority of each.
    queues: BTreeMap<&'m str, Vec<(i64, u8)>>,
}

/// An attempt that is over is ended within a second.
const SWEPT_MS: i64 = 1_000;

impl Capacity {
    pub(super) fn of(caps: &Caps) -> Self {
        let row = |(name, settings): &(String, QueueSettings)| {
            (name.clone(), QueueRow { settings: *settings, ..QueueRow::plain(name) })
        };
        Self {
            limits: caps.limits.iter().cloned().collect(),
            queues: caps.queues.iter().map(row).filter(|(_, row)| !row.is_plain()).collect(),
            ..Self::default()
        }
    }

    /// Nothing bounds anything, and nobody takes turns.
    pub(super) fn is_unused(&self) -> bool {
        !self.is_special && self.queues.is_empty()
    }

    /// The clocks of a step.
    pub(super) fn read_clock(&mut self, wall: i64) {
        let before = self.clock.wall;
        if before == 0 || wall >= before {
            self.clock.forward += if before == 0 { 0 } else { wall - before };
        } else {
            self.gates.values_mut().for_each(|gate| gate.starts.put_back(before));
        }
        self.clock.wall = wall;
    }

    /// A server starts: nobody remembers whose turn it was.
    pub(super) fn forget_turns(&mut self) {
        self.turns.values_mut().for_each(|turn| turn.0 = 0);
    }

    /// A job was accepted.
    pub(super) fn accepted(&mut self, job: &Job) {
        let Some(special) = &job.sent.special else { return };
        self.is_special = true;
        if special.fair_key.is_some() {
            self.fair.insert(job.queue.clone());
        }
    }

    /// A job was handed out, or perhaps.
    pub(super) fn started(&mut self, job: &Job, counts: Counts) {
        for limit in job.limits() {
            let settings = self.limits.get(&limit.name);
            if let Some(rate) = settings.and_then(|settings| settings.rate) {
                let gate = self.gates.entry(limit.clone()).or_default();
                gate.starts.add(&rate, self.clock, counts);
            }
        }
        self.handed_out += 1;
        let key = (job.queue.clone(), job.fair_key().map(str::to_owned));
        let is_turn = counts == Counts::Surely && self.fair.contains(&job.queue);
        let turn = self.turns.entry(key).or_default();
        turn.1 = self.handed_out;
        if is_turn {
            turn.0 = self.handed_out;
        }
    }

    /// Writes the settings of a limit, or deletes it with all that was known of it.
    pub(super) fn put_limit(&mut self, name: &str, settings: Option<&LimitSettings>) -> bool {
        let before = match settings {
            Some(settings) => self.limits.insert(name.to_owned(), settings.clone()),
            None => self.limits.remove(name),
        };
        if settings.is_none() {
            self.gates.retain(|limit, _| limit.name != name);
        }
        let old = before.as_ref().and_then(|before| before.rate);
        let new = settings.and_then(|settings| settings.rate);
        if old != new {
            let of_name = self.gates.iter_mut().filter(|(limit, _)| limit.name == name);
            for (_, gate) in of_name {
                gate.starts.change(old.as_ref(), new.as_ref(), self.clock);
            }
        }
        before.is_some()
    }

    /// Closes a limit until then; a later end stands.
    pub(super) fn hold(&mut self, limit: &LimitRef, until: i64) {
        let gate = self.gates.entry(limit.clone()).or_default();
        gate.hold_until = gate.hold_until.max(Some(until));
    }

    /// Until when a limit is held: by itself, or as a whole with all its partitions.
    pub(super) fn held_until(&self, limit: &LimitRef) -> Option<i64> {
        let whole = LimitRef { name: limit.name.clone(), partition: String::new() };
        let of = |limit: &LimitRef| self.gates.get(limit).and_then(|gate| gate.hold_until);
        of(limit).max(of(&whole))
    }

    /// Nobody holds it any more: a partition, or a limit with all of its own.
    pub(super) fn open(&mut self, limit: &LimitRef) {
        for (known, gate) in &mut self.gates {
            if known == limit || (limit.partition.is_empty() && known.name == limit.name) {
                gate.hold_until = None;
            }
        }
    }

    pub(super) fn is_paused(&self, queue: &str) -> bool {
        self.queues.get(queue).is_some_and(|row| !row.paused.is_empty())
    }

    /// Whether one certainly goes before another of the same queue: by priority, then by turns, then by its place.
    pub(super) fn goes_first(&self, one: &Job, other: &Job) -> bool {
        if one.priority != other.priority || one.fair_key() == other.fair_key() {
            return one.place() < other.place();
        }
        let turn = |job: &Job| {
            let key = (job.queue.clone(), job.fair_key().map(str::to_owned));
            self.turns.get(&key).copied().unwrap_or_default()
        };
        let (ours, theirs) = (turn(one), turn(other));
        let is_tie = ours.0 == ours.1 && ours == theirs;
        ours.1 < theirs.0 || (is_tie && one.place() < other.place())
    }
}

impl Job {
    /// The limits that it names.
    pub(super) fn limits(&self) -> &[LimitRef] {
        self.sent.special.as_deref().map_or(&[], |special| &special.limits)
    }

    pub(super) fn fair_key(&self) -> Option<&str> {
        self.sent.special.as_deref()?.fair_key.as_deref()
    }
}

impl Model {
    /// What runs, by what it counts for.
    pub(super) fn load(&self) -> Load<'_> {
        let mut load = Load { limits: BTreeMap::new(), queues: BTreeMap::new() };
        for job in self.jobs.values().filter(|job| job.status == Status::Running) {
            let Some(lease) = &job.lease else { continue };
            for limit in job.limits() {
                load.limits.entry(limit).or_default().push(lease.ends_at());
            }
            load.queues.entry(&job.queue).or_default().push((lease.ends_at(), job.priority));
        }
        load
    }

    /// How certain it is that a job that is due may start.
    pub(super) fn lets_through(&self, load: &Load<'_>, job: &Job) -> Open {
        if self.capacity.is_paused(&job.queue) {
            return Open::No;
        }
        let spans = self.bounds_of(load, job);
        spans.into_iter().map(|span| open_by(span, self.now)).min().unwrap_or(Open::Yes)
    }

    /// Everything that bounds a job, pauses apart: between which instants it opens by time alone, if nothing else happens.
    pub(super) fn bounds_of(&self, load: &Load<'_>, job: &Job) -> Vec<Span> {
        let mut spans: Vec<Span> = self.queue_span(load, job).into_iter().collect();
        for limit in job.limits() {
            let parts = self.limit_spans(load, limit);
            spans.extend([parts.hold, parts.slots, parts.rate].into_iter().flatten());
        }
        spans
    }

    /// The parts of a limit.
    pub(super) fn limit_spans(&self, load: &Load<'_>, limit: &LimitRef) -> LimitSpans {
        let gate = self.capacity.gates.get(limit).cloned().unwrap_or_default();
        let settings = self.capacity.limits.get(&limit.name).cloned().unwrap_or_default();
        let hold = self.capacity.held_until(limit);
        let hold = hold.filter(|until| *until > self.now).map(|until| (until, until));
        let ends = load.limits.get(limit).cloned().unwrap_or_default();
        let slots = settings.max_running.and_then(|max| self.slots_span(ends, max));
        let reading = Reading { wall: self.now, ..self.capacity.clock };
        let rate = settings.rate.map(|rate| gate.starts.opens(&rate, reading));
        LimitSpans { hold, slots, rate: rate.filter(|span| span.1 > self.now) }
    }

    /// When a slot is free, if none is now. What is over and not yet ended may be counted or not.
    fn slots_span(&self, mut ends: Vec<i64>, max: u32) -> Option<Span> {
        ends.sort_unstable();
        let max = max as usize;
        let live: Vec<i64> = ends.iter().copied().filter(|end| *end > self.now).collect();
        let freed = live.len().checked_sub(max).and_then(|index| live.get(index));
        match (live.first(), freed) {
            (Some(first), Some(freed)) => Some((*first, *freed)),
            _ if ends.len() >= max => Some((self.now, self.now + SWEPT_MS)),
            _ => None,
        }
    }

    /// When the queue has room for a job of this priority, if it has none now.
    pub(super) fn queue_span(&self, load: &Load<'_>, job: &Job) -> Option<Span> {
        let settings = &self.capacity.queues.get(&job.queue)?.settings;
        let max = settings.max_running?;
        let all = load.queues.get(job.queue.as_str()).cloned().unwrap_or_default();
        let ends = |below: Option<u8>| {
            let ends = all.iter().filter(|(_, priority)| below.is_none_or(|from| *priority < from));
            ends.map(|(end, _)| *end).collect::<Vec<i64>>()
        };
        let of_all = self.slots_span(ends(None), max);
        let reserve = settings.reserve.filter(|reserve| job.priority < reserve.from_priority.value());
        let of_below = reserve.and_then(|reserve| {
            let ends = ends(Some(reserve.from_priority.value()));
            self.slots_span(ends, max.saturating_sub(reserve.slots))
        });
        match (of_all, of_below) {
            (Some(one), Some(other)) => Some((one.0.max(other.0), one.1.max(other.1))),
            (one, other) => one.or(other),
        }
    }
}

impl Model {
    /// Every reason for which a queue is paused.
    pub(crate) fn pauses(&self) -> Vec<(String, String)> {
        let reasons = self
            .capacity
            .queues
            .values()
            .flat_map(|row| row.paused.iter().map(|pause| (row.name.clone(), pause.reason.clone())));
        reasons.collect()
    }

    /// How long limits may keep back what waits, at most: by their rates, and until they are no longer held.
    pub(crate) fn held_ms(&self) -> i64 {
        let waiting = self.jobs.values().filter(|job| !job.is_settled()).count();
        let waiting = i64::try_from(waiting).unwrap_or(i64::MAX);
        let rates = self.capacity.limits.values().filter_map(|settings| settings.rate);
        let slowest = rates.map(|rate| rate.per_ms / i64::from(rate.count)).max().unwrap_or(0);
        let holds = self.capacity.gates.values().filter_map(|gate| gate.hold_until);
        let held = holds.map(|until| until - self.capacity.clock.wall).max().unwrap_or(0);
        held.max(0) + waiting * slowest * 5 / 4
    }
}

/// What keeps a limit closed, each by itself.
#[derive(Clone, Debug)]
pub(super) struct LimitSpans {
    pub(super) hold: Option<Span>,
    pub(super) slots: Option<Span>,
    pub(super) rate: Option<Span>,
}
