//! How many jobs of a queue are pending or running, for queues with a bound: the ledger of the store and what this batch
//! has added to it.

use std::collections::{BTreeSet, HashMap};

use crate::row::{Counter, Lane, LaneId};
use crate::store::StoreResult;
use crate::work::Work;

/// By queue: the sum that the store has, and the plain lanes that it is made of.
pub(super) type Depths = HashMap<String, (i64, BTreeSet<LaneId>)>;

impl Work<'_> {
    /// Pending and running jobs of a queue, with all that was decided in this batch.
    pub(crate) fn depth(&mut self, queue: &str) -> StoreResult<u64> {
        if !self.depths.contains_key(queue) {
            let lanes = self.tx.depth(queue)?;
            let sum = lanes.iter().map(|(_, n)| n).sum();
            let lanes = lanes.into_iter().map(|(lane, _)| lane).collect();
            self.depths.insert(queue.to_owned(), (sum, lanes));
        }
        let Some((stored, lanes)) = self.depths.get(queue) else { return Ok(0) };
        let added: i64 = lanes
            .iter()
            .filter_map(|lane| self.ledger.get(lane))
            .map(|tally| tally.get(Counter::Pending) + tally.get(Counter::Running))
            .sum();
        Ok(u64::try_from(stored + added).unwrap_or_default())
    }

    /// Lanes of new jobs: some may be new themselves.
    pub(crate) fn note_lanes(&mut self, lanes: &[Lane]) {
        if self.depths.is_empty() {
            return;
        }
        for lane in lanes {
            if let Some((_, known)) = self.depths.get_mut(&*lane.queue) {
                known.insert(lane.class);
            }
        }
    }
}
