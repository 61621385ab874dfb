//! Ordering keys: which jobs get one, and which jobs people let go past.

use tagwerk_core::{JobId, OnHeadFailure, Status};
use tagwerk_engine::command::{EnqueueJob, MaxAge};
use tagwerk_engine::row::{JobRow, Ordering};

use super::{Board, Desk};

/// Gives some jobs an ordering key.
pub(super) fn give_key(desk: &mut Desk<'_>, job: &mut EnqueueJob) {
    let turns = desk.plan.turns;
    if turns.share == 0 || !desk.chance.percent(turns.share) {
        return;
    }
    let key = format!("o{}", desk.chance.below(turns.keys));
    let on_head_failure = turns.mode(desk.chance);
    job.ordering = Some(Box::new(Ordering { key: key.into(), on_head_failure }));
}

/// One of more jobs than a batch ends: plain, or all of one key that grow too old together while they wait for each other.
pub(super) fn one_of_many(desk: &Desk<'_>) -> EnqueueJob {
    let mut job = EnqueueJob { kind: "t0".to_owned(), ..EnqueueJob::default() };
    if desk.plan.turns.share > 0 {
        let on_head_failure = Some(OnHeadFailure::Skip);
        job.ordering = Some(Box::new(Ordering { key: "o0".into(), on_head_failure }));
        job.max_age = Some(MaxAge::AfterMs(2_000));
    }
    job
}

/// Whether an operator unblocks now; never where nobody has an ordering key.
pub(super) fn is_to_unblock(desk: &mut Desk<'_>) -> bool {
    desk.plan.turns.share > 0 && desk.chance.percent(15)
}

/// A job that went to review not long ago and may hold back others.
pub(super) fn holder(desk: &mut Desk<'_>) -> Option<JobId> {
    let failed = &desk.board.failed;
    if failed.is_empty() || !desk.chance.percent(30) {
        return None;
    }
    desk.chance.any(&failed[failed.len().saturating_sub(5)..]).copied()
}

impl Board {
    /// Pins a job that stands in review in the order of a key.
    pub(super) fn pin_failed(&mut self, row: &JobRow) {
        if row.job.status == Status::Failed && row.order.is_some() {
            self.failed.push(row.job.id);
        }
    }
}
