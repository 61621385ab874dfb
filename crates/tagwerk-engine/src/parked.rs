//! Claims that wait for a job (long polls). They belong to the committer: a job that becomes claimable in a batch is handed
//! to a parked claim in the same transaction, so the way from enqueue to start costs one commit.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::Duration;

use tagwerk_core::{Timestamp, limits};

use crate::command::{Claim, ClaimAnswer, EngineError};
use crate::ports::Reply;
use crate::row::Lane;
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
    /// Jobs that became claimable in earlier batches, which had no room for all the claims that wait for them.
    left: BTreeMap<Lane, usize>,
}

/// Serving parked claims in one batch: several rounds, since only the answer shows which jobs a claim took.
pub(crate) struct Round {
    /// Jobs that became claimable and are not yet handed out, by lane.
    ready: BTreeMap<Lane, usize>,
    /// What may still be handed out in this batch.
    budget: usize,
    tried: HashSet<usize>,
}

impl Round {
    /// Takes over what a claim was given.
    pub(crate) fn tried(&mut self, position: usize, claim: &Claim, answer: &ClaimAnswer) {
        self.tried.insert(position);
        self.budget = self.budget.saturating_sub(claim.weight());
        // What a repeated claim has anyway took nothing of what is ready.
        for claimed in answer.jobs.iter().filter(|_| !answer.replayed) {
            if let Some(n) = self.ready.get_mut(&claimed.job.row.lane) {
                *n = n.saturating_sub(1);
            }
        }
    }

    /// What the next batch has to go on with; nothing if all claims that could be served were tried.
    pub(crate) fn left(self) -> BTreeMap<Lane, usize> {
        if self.budget > 0 {
            return BTreeMap::new();
        }
        self.ready.into_iter().filter(|(_, n)| *n > 0).collect()
    }
}

impl Parked {
    /// The first round of a batch in which these jobs became claimable.
    pub(crate) fn round(&self, effects: &Effects) -> Round {
        let mut ready = self.left.clone();
        for (lane, n) in &effects.readied {
            *ready.entry(lane.clone()).or_default() += n;
        }
        Round { ready, budget: limits::BATCH_BYTES, tried: HashSet::new() }
    }

    /// What this batch left to the next.
    pub(crate) fn leave(&mut self, left: BTreeMap<Lane, usize>) {
        self.left = left;
    }

    /// Whether claims wait for jobs that are there.
    pub(crate) fn is_behind(&self) -> bool {
        !self.left.is_empty() && !self.waiting.is_empty()
    }

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

    /// Which parked claims to try now, in order of arrival: those whose next due time has come, and for each job that
    /// became claimable one that it fits. Who was tried in this batch is left out.
    pub(crate) fn candidates(&self, round: &Round, now: Timestamp) -> Vec<usize> {
        let mut fresh = round.ready.clone();
        let mut budget = round.budget;
        let mut chosen = Vec::new();
        for (position, parked) in self.waiting.iter().enumerate() {
            if budget == 0 {
                break;
            }
            if round.tried.contains(&position) || !parked.reply.is_waiting() {
                continue;
            }
            let due = parked.next_due.is_some_and(|at| at <= now);
            let fits = |lane: &Lane, n: usize| n > 0 && parked.claim.filter.matches(lane);
            let woken = fresh.iter_mut().find(|(lane, n)| fits(lane, **n));
            match woken {
                Some((_, n)) => *n -= 1,
                None if due => {}
                None => continue,
            }
            budget = budget.saturating_sub(parked.claim.weight());
            chosen.push(position);
        }
        chosen
    }

    pub(crate) fn get(&self, position: usize) -> Option<&ParkedClaim> {
        self.waiting.get(position)
    }

    /// Takes out the claims at these positions that were served; the others learn when to try again.
    pub(crate) fn settle(&mut self, mut tried: Vec<(usize, ClaimAnswer)>) -> Vec<(ParkedClaim, ClaimAnswer)> {
        tried.sort_unstable_by_key(|(position, _)| *position);
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

    /// Nobody knows what became of a batch: jobs may be there that no claim was woken for, so all look again.
    pub(crate) fn look_again(&mut self, now: Timestamp) {
        for parked in &mut self.waiting {
            parked.next_due = Some(parked.next_due.map_or(now, |known| known.min(now)));
        }
    }

    /// The next instant at which time alone may serve or end one: due time on the wall clock, deadline on the monotonic.
    pub(crate) fn next_wake(&self) -> (Option<Timestamp>, Option<Duration>) {
        let due = self.waiting.iter().filter_map(|parked| parked.next_due).min();
        let deadline = self.waiting.iter().map(|parked| parked.deadline).min();
        (due, deadline)
    }
}
