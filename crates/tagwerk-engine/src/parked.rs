//! Claims that wait for a job (long polls). They belong to the committer: a job that becomes claimable in a batch is handed
//! to a parked claim in the same transaction, so the way from enqueue to start costs one commit.

use std::collections::VecDeque;
use std::time::Duration;

use tagwerk_core::{Timestamp, limits};

use crate::command::{Claim, ClaimAnswer, EngineError};
use crate::ports::Reply;
use crate::store::Filter;
use crate::work::Effects;

/// A claim that waits.
pub(crate) struct ParkedClaim {
    pub(crate) claim: Claim,
    /// When it is answered empty, on the monotonic clock.
    pub(crate) deadline: Duration,
    /// When time alone brings it a job, as far as known.
    pub(crate) next_due: Option<Timestamp>,
    pub(crate) reply: Reply<Result<ClaimAnswer, EngineError>>,
}

/// All claims that wait, in the order of their arrival.
#[derive(Default)]
pub(crate) struct Parked {
    waiting: VecDeque<ParkedClaim>,
}

impl Parked {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() < limits::PARKED_CLAIMS_MAX
    }

    pub(crate) fn push(&mut self, claim: ParkedClaim) {
        self.waiting.push_back(claim);
    }

    /// Forgets claims whose client is gone, and takes out those whose time is up.
    pub(crate) fn take_ended(&mut self, now: Duration) -> Vec<ParkedClaim> {
        let (mut ended, mut kept) = (Vec::new(), VecDeque::with_capacity(self.waiting.len()));
        for parked in self.waiting.drain(..) {
            if parked.deadline <= now {
                ended.push(parked);
            } else if parked.reply.is_waiting() {
                kept.push_back(parked);
            }
        }
        self.waiting = kept;
        ended
    }

    /// Takes out those that wait under the same worker and `request_id` as this claim.
    pub(crate) fn take_request(&mut self, claim: &Claim) -> Vec<ParkedClaim> {
        let same = |parked: &ParkedClaim| {
            parked.claim.request_id == claim.request_id && parked.claim.worker == claim.worker
        };
        let (taken, kept): (VecDeque<_>, VecDeque<_>) = self.waiting.drain(..).partition(same);
        self.waiting = kept;
        taken.into()
    }

    /// Takes out all.
    pub(crate) fn take_all(&mut self) -> Vec<ParkedClaim> {
        self.waiting.drain(..).collect()
    }

    /// Which parked claims to try now: those for which the batch made a job claimable (no more than it made), and those
    /// whose next due time has come. Positions in order of arrival.
    pub(crate) fn candidates(&self, effects: &Effects, now: Timestamp) -> Vec<usize> {
        let mut fresh: usize = effects.readied.values().sum();
        let mut chosen = Vec::new();
        for (position, parked) in self.waiting.iter().enumerate() {
            if chosen.len() >= limits::PARKED_PER_BATCH {
                break;
            }
            let due = parked.next_due.is_some_and(|at| at <= now);
            let woken = fresh > 0 && effects.readied.keys().any(|lane| parked.claim.filter.matches(lane));
            if !(due || woken) || !parked.reply.is_waiting() {
                continue;
            }
            if !due {
                fresh -= 1;
            }
            chosen.push(position);
        }
        chosen
    }

    pub(crate) fn get(&self, position: usize) -> Option<&ParkedClaim> {
        self.waiting.get(position)
    }

    /// Takes out the claims at these positions that were served; the others learn when to try again.
    pub(crate) fn settle(&mut self, tried: Vec<(usize, ClaimAnswer)>) -> Vec<(ParkedClaim, ClaimAnswer)> {
        let mut served = Vec::new();
        for (position, answer) in tried.into_iter().rev() {
            if answer.jobs.is_empty() {
                if let Some(filter) = self.waiting.get(position).map(|parked| parked.claim.filter.clone()) {
                    self.learn(&filter, answer.next_due_at);
                }
            } else if let Some(parked) = self.waiting.remove(position) {
                served.push((parked, answer));
            }
        }
        served.reverse();
        served
    }

    fn learn(&mut self, filter: &Filter, next_due: Option<Timestamp>) {
        for parked in self.waiting.iter_mut().filter(|parked| parked.claim.filter == *filter) {
            parked.next_due = next_due;
        }
    }

    /// A batch has planned jobs for later: who waits for such a job is to be woken then.
    pub(crate) fn note_due_later(&mut self, effects: &Effects) {
        for (lane, due) in &effects.due_later {
            for parked in self.waiting.iter_mut().filter(|parked| parked.claim.filter.matches(lane)) {
                parked.next_due = Some(parked.next_due.map_or(*due, |known| known.min(*due)));
            }
        }
    }

    /// The next instant at which time alone may serve or end one: due time on the wall clock, deadline on the monotonic.
    pub(crate) fn next_wake(&self) -> (Option<Timestamp>, Option<Duration>) {
        let due = self.waiting.iter().filter_map(|parked| parked.next_due).min();
        let deadline = self.waiting.iter().map(|parked| parked.deadline).min();
        (due, deadline)
    }
}
