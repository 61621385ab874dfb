//! Limits and turns, judged by looking at every row: slow, and easy to be sure of.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use tagwerk_core::gate::{Room, Window, room};
use tagwerk_core::{JobId, Timestamp};

use super::state::State;
use crate::row::{JobRow, LimitRef, LimitUse};
use crate::store::{ClaimQuery, Filter};

/// What is kept of a limit with its partition.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate {
    pub(super) window: Window,
    pub(super) hold_until: Option<Timestamp>,
}

/// Answers one wish: again and again the best row of all that may be handed out.
pub(super) fn choose(
    state: &mut State,
    now: Timestamp,
    query: &ClaimQuery<'_>,
    given: &mut BTreeSet<JobId>,
) -> Vec<JobRow> {
    let is_bound = state.queues.values().any(|row| row.settings.max_running.is_some());
    if state.special.is_empty() && !is_bound {
        return first_in_line(state, now, query, given);
    }
    for (limit, gate) in &mut state.gates {
        if let Some(rate) = state.limits.get(&limit.name).and_then(|settings| settings.rate) {
            gate.window.settle(&rate, now);
        }
    }
    let (mut rows, mut bytes): (Vec<JobRow>, u64) = (Vec::new(), 0);
    while rows.len() < query.wanted {
        let Some(best) = best(state, now, query, given).cloned() else { break };
        bytes += best.answer_bytes();
        if bytes > query.max_bytes && !rows.is_empty() {
            break;
        }
        given.insert(best.job.id);
        start(state, &best, now);
        rows.push(best);
    }
    rows
}

/// The same where no job has limits or a fair key: one walk over all pending rows in claim order.
fn first_in_line(
    state: &State,
    now: Timestamp,
    query: &ClaimQuery<'_>,
    given: &mut BTreeSet<JobId>,
) -> Vec<JobRow> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    let passing = state.in_claim_order().filter(|row| {
        let id = row.job.id;
        super::tx::is_claimable(row, now)
            && query.filter.matches(&row.lane)
            && !state.is_paused(&row.lane.queue)
            && !query.skip.contains(&id)
    });
    for row in passing.filter(|row| !given.contains(&row.job.id)).take(query.wanted) {
        bytes += row.answer_bytes();
        if bytes > query.max_bytes && !rows.is_empty() {
            break;
        }
        rows.push(row.clone());
    }
    given.extend(rows.iter().map(|row| row.job.id));
    rows
}

/// Of each queue the row whose turn it is; of these the first by priority, due time, id.
fn best<'a>(
    state: &'a State,
    now: Timestamp,
    query: &ClaimQuery<'_>,
    given: &BTreeSet<JobId>,
) -> Option<&'a JobRow> {
    let named: BTreeSet<&LimitRef> = state.in_claim_order().flat_map(|row| row.lane.limits()).collect();
    let is_open = |limit: &&LimitRef| matches!(room_of(state, limit, (now, given)), Room::Open(_));
    let open: BTreeSet<&LimitRef> = named.into_iter().filter(is_open).collect();
    let may_run = |row: &&JobRow| {
        let id = row.job.id;
        super::tx::is_claimable(row, now)
            && query.filter.matches(&row.lane)
            && !state.is_paused(&row.lane.queue)
            && !query.skip.contains(&id)
            && !given.contains(&id)
            && row.lane.limits().iter().all(|limit| open.contains(limit))
            && queue_room(state, row, given) != Some(0)
    };
    let place = |row: &JobRow| (Reverse(row.priority), row.job.available_at, row.job.id);
    let turn = |row: &JobRow| {
        let key = (row.lane.queue.clone(), row.lane.fair_key().map(str::to_owned));
        state.turns.get(&key).copied().unwrap_or_default()
    };
    let candidates: Vec<&JobRow> = state.in_claim_order().filter(may_run).collect();
    let queues: BTreeSet<&str> = candidates.iter().map(|row| &*row.lane.queue).collect();
    let of_queue = |queue: &str| {
        let rows = candidates.iter().copied().filter(|row| *row.lane.queue == *queue);
        rows.min_by_key(|row| (Reverse(row.priority), turn(row), place(row)))
    };
    queues.into_iter().filter_map(of_queue).min_by_key(|row| place(row))
}

/// How many more jobs like this one may start in its queue.
fn queue_room(state: &State, row: &JobRow, given: &BTreeSet<JobId>) -> Option<u32> {
    let settings = &state.queues.get(&*row.lane.queue)?.settings;
    let running = running_ids(state).chain(given.iter().copied()).filter_map(|id| state.row(id));
    let of_queue: Vec<&JobRow> = running.filter(|other| other.lane.queue == row.lane.queue).collect();
    let from = settings.reserve.map(|reserve| reserve.from_priority);
    let below = of_queue.iter().filter(|other| from.is_some_and(|from| other.priority < from)).count();
    let count = |n: usize| u32::try_from(n).expect("a test has few jobs");
    settings.room(count(of_queue.len()), count(below), row.priority)
}

/// What a limit lets through. Rows that were given count as running.
fn room_of(state: &State, limit: &LimitRef, (now, given): (Timestamp, &BTreeSet<JobId>)) -> Room {
    let Some(settings) = state.limits.get(&limit.name) else { return Room::Open(u32::MAX) };
    let gate = state.gates.get(limit).cloned().unwrap_or_default();
    let is_under = |id: &JobId| state.row(*id).is_some_and(|row| row.lane.limits().contains(limit));
    let running =
        running_ids(state).filter(is_under).count() + given.iter().filter(|id| is_under(id)).count();
    let running = u32::try_from(running).expect("a test has few jobs");
    room(settings, running, (&gate.window, hold_until(state, limit)), now)
}

/// Until when a limit is held back, by itself or as a whole.
pub(super) fn hold_until(state: &State, limit: &LimitRef) -> Option<Timestamp> {
    let whole = LimitRef { name: limit.name.clone(), partition: String::new() };
    let of = |limit: &LimitRef| state.gates.get(limit).and_then(|gate| gate.hold_until);
    of(limit).max(of(&whole))
}

/// Takes holds back: of a partition, or of a limit with all of its own.
pub(super) fn open(state: &mut State, limit: &LimitRef) -> bool {
    let is_whole = limit.partition.is_empty();
    let is_meant = |known: &LimitRef| known.name == limit.name && (is_whole || known == limit);
    let gates = state.gates.iter_mut().filter(|(known, _)| is_meant(known));
    gates.filter_map(|(_, gate)| gate.hold_until.take()).count() > 0
}

/// How a limit and its partitions are used.
pub(super) fn uses(state: &State, name: &str) -> Vec<LimitUse> {
    let of_name = state.gates.iter().filter(|(limit, _)| limit.name == name);
    let used = |(limit, gate): (&LimitRef, &Gate)| LimitUse {
        limit: limit.clone(),
        running: running(state, limit),
        window: gate.window.clone(),
        hold_until: hold_until(state, limit),
    };
    of_name.map(used).collect()
}

/// Jobs that run under a limit.
fn running(state: &State, limit: &LimitRef) -> u32 {
    let is_under = |id: &JobId| state.row(*id).is_some_and(|row| row.lane.limits().contains(limit));
    u32::try_from(running_ids(state).filter(is_under).count()).expect("a test has few jobs")
}

fn running_ids(state: &State) -> impl Iterator<Item = JobId> {
    state.ends.iter().map(|((_, id), ())| *id)
}

/// A row is handed out.
fn start(state: &mut State, row: &JobRow, now: Timestamp) {
    for limit in row.lane.limits() {
        let rate = state.limits.get(&limit.name).and_then(|settings| settings.rate);
        if let Some(rate) = rate {
            state.gates.entry(limit.clone()).or_default().window.take(&rate, 1, now);
        }
    }
    let queue = row.lane.queue.clone();
    if state.special.values().any(|lane| lane.queue == queue && lane.fair_key().is_some()) {
        let last = state.turns.values().copied().max().unwrap_or_default();
        state.turns.insert((queue, row.lane.fair_key().map(str::to_owned)), last + 1);
    }
}

/// When time alone may make something claimable.
pub(super) fn next_due(state: &State, now: Timestamp, filter: &Filter) -> Option<Timestamp> {
    let passes = |row: &&JobRow| filter.matches(&row.lane) && !state.is_paused(&row.lane.queue);
    let passing = || state.in_claim_order().filter(passes);
    let later = passing()
        .filter(|row| row.job.available_at > now)
        .filter(|row| !waits_in_lane(state, row, now))
        .map(|row| row.job.available_at)
        .min();
    // A row needs room in all its limits and in its queue, so the last of them to open counts.
    let none = BTreeSet::new();
    let opens = passing().filter(|row| row.job.available_at <= now).filter_map(|row| {
        let mut opens: Vec<Option<Timestamp>> = Vec::new();
        for limit in row.lane.limits() {
            match room_of(state, limit, (now, &none)) {
                Room::Open(_) => {}
                Room::Until(at) => opens.push(Some(at)),
                Room::Full => opens.push(first_end(state, |other| other.lane.limits().contains(limit))),
            }
        }
        if queue_room(state, row, &none) == Some(0) {
            opens.push(first_end(state, |other| other.lane.queue == row.lane.queue));
        }
        opens.into_iter().collect::<Option<Vec<Timestamp>>>().and_then(|opens| opens.into_iter().max())
    });
    later.into_iter().chain(opens).min()
}

/// Whether other rows of its lane and level are due and wait for a limit, for which it would have to wait as well.
fn waits_in_lane(state: &State, row: &JobRow, now: Timestamp) -> bool {
    row.lane.special.is_some()
        && state.in_claim_order().any(|other| {
            other.lane == row.lane && other.priority == row.priority && other.job.available_at <= now
        })
}

/// The first end of a running attempt of such a job.
fn first_end(state: &State, is_wanted: impl Fn(&JobRow) -> bool) -> Option<Timestamp> {
    let mut running = state.ends.iter().map(|(end, ())| *end);
    running.find(|(_, id)| state.row(*id).is_some_and(&is_wanted)).map(|(end, _)| end)
}
