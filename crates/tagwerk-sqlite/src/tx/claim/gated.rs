//! The claim where special lanes are concerned: each run is taken from the best head of all queues, as far as limits and
//! turns let it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tagwerk_core::Timestamp;
use tagwerk_engine::row::{JobRow, LaneId};
use tagwerk_engine::store::ClaimQuery;

use super::{End, Merge, Sources, place};
use crate::boards::Closed;
use crate::book::{Candidate, Level};
use crate::error::Res;
use crate::lanes::Lanes;
use crate::writer::Writer;

/// Answers one wish.
pub(super) fn answer(
    writer: &mut Writer,
    now: i64,
    (query, classes): (&ClaimQuery<'_>, Option<Vec<LaneId>>),
) -> Res<Vec<JobRow>> {
    let Writer { conn, lanes, book, gates, bounds, given, damaged, .. } = writer;
    let at = Timestamp::from_millis(now);
    let queues = by_queue(lanes, classes);
    let mut merge = Merge::new(Sources { conn, lanes, given, known_damaged: damaged }, now, query);
    while merge.taken.len() < query.wanted {
        let mut room = |level: Level| {
            let of_queue = bounds.room(lanes, level).unwrap_or(u32::MAX);
            if of_queue == 0 {
                return Err(Closed::Queue);
            }
            let of_limits = gates.room(lanes, level.lane, at).map_err(Closed::Limit)?;
            Ok(of_limits.min(of_queue))
        };
        let Some((pick, room)) = book.next(&queues, (now, &mut room)) else { break };
        let level = pick.from.level();
        let most = if pick.takes_turns { 1 } else { usize::try_from(room).unwrap_or(usize::MAX) };
        let before = merge.taken.len();
        merge.wanted = before.saturating_add(most).min(query.wanted);
        // A head may be early. Where keys take turns its place decides between those of one turn, so nothing behind it counts.
        let just_it = pick.takes_turns.then(|| Candidate::new(level, pick.from.head.next()));
        let end = merge.read(pick.from, pick.runner_up.into_iter().chain(just_it).min())?;
        let is_cut = matches!(end, End::Fulfilled(_)) && merge.taken.len() < merge.wanted;
        let head = match end {
            End::Exhausted => None,
            End::Behind(head) | End::Later(head) | End::Fulfilled(head) => Some(head),
        };
        book.set(level, head);
        book.wake(now);
        let fresh = merge.taken.get(before..).unwrap_or_default();
        for row in fresh {
            bounds.add(lanes, level, 1);
            gates.add(lanes, level.lane, 1);
            gates.start(lanes, level.lane, (1, at));
            book.special.had_turn(&row.lane);
        }
        if is_cut {
            break;
        }
    }
    let Merge { taken, kept, damaged, runs, .. } = merge;
    writer.runs += runs;
    for (level, head) in kept {
        writer.book.offer(level, head);
    }
    writer.book.wake(now);
    for (id, why) in damaged {
        writer.note_damaged(id, &why);
    }
    writer.given.extend(taken.iter().map(place));
    Ok(taken)
}

/// The classes of a wish by their queues.
fn by_queue(lanes: &Lanes, classes: Option<Vec<LaneId>>) -> Vec<(Arc<str>, Vec<LaneId>)> {
    let classes = classes.unwrap_or_else(|| lanes.classes().collect());
    let mut queues: BTreeMap<Arc<str>, Vec<LaneId>> = BTreeMap::new();
    for class in classes {
        if let Some(lane) = lanes.get(class) {
            queues.entry(Arc::clone(&lane.queue)).or_default().push(class);
        }
    }
    queues.into_iter().collect()
}
