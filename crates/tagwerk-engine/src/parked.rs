//! Claims that wait for a job (long polls). They belong to the committer: a job that becomes claimable in a batch is handed
//! to a parked claim in the same transaction, so the way from enqueue to start costs one commit.
//!
//! Claims that wait for the same thing stand in one group, and what is known about the future is known of a group. So a
//! batch that makes a job claimable costs a look at each group, not at each claim, and a batch that makes none costs
//! nothing, however many wait.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tagwerk_core::{Timestamp, limits};

use crate::command::{Claim, ClaimAnswer, EngineError};
use crate::ports::Reply;
use crate::row::Lane;
use crate::store::Filter;
use crate::work::Effects;

/// How many claims of a group are tried at once because a job of theirs has come due: how many jobs have is not known.
const TRIES_WHEN_DUE: usize = 32;
/// How often claims whose client is gone are looked for. Until then they only take room: they are never served.
const LOOK_FOR_GONE_EVERY: Duration = Duration::from_millis(100);

/// A claim that waits.
pub(crate) struct ParkedClaim {
    pub(crate) claim: Claim,
    /// When it is answered empty, on the monotonic clock.
    pub(crate) deadline: Duration,
    /// When time alone brings it a job, as far as known.
    pub(crate) next_due: Option<Timestamp>,
    pub(crate) reply: Reply<Result<ClaimAnswer, EngineError>>,
}

/// Place in the order of arrival.
pub(crate) type Arrival = u64;

/// Claims that wait for the same.
#[derive(Default)]
struct Group {
    claims: BTreeSet<Arrival>,
    /// When time alone brings them a job, as far as known.
    next_due: Option<Timestamp>,
}

/// All claims that wait.
#[derive(Default)]
pub(crate) struct Parked {
    waiting: BTreeMap<Arrival, ParkedClaim>,
    arrivals: Arrival,
    groups: BTreeMap<Arc<Filter>, Group>,
    /// Groups by `next_due`.
    due: BTreeSet<(Timestamp, Arc<Filter>)>,
    deadlines: BTreeSet<(Duration, Arrival)>,
    /// Claims that may be repeated, by worker and `request_id`.
    requests: HashMap<(String, String), Vec<Arrival>>,
    looked_for_gone: Duration,
    /// Jobs that became claimable in earlier batches, which had no room for all the claims that wait for them.
    left: BTreeMap<Lane, usize>,
}

/// Serving parked claims in one batch: several rounds, since only the answer shows which jobs a claim took.
pub(crate) struct Round {
    /// Jobs that became claimable and are not yet handed out, by lane.
    ready: BTreeMap<Lane, usize>,
    /// Slots that became free: which lanes they let through is for the store to say, so each group is tried.
    opened: usize,
    /// Queues that are no longer paused: how much is ready there is not known.
    resumed: BTreeSet<String>,
    /// What may still be handed out in this batch.
    budget: usize,
    tried: HashSet<Arrival>,
    /// What there is nothing of any more: whoever else waits for it is left alone.
    exhausted: BTreeSet<Filter>,
}

impl Round {
    /// Takes over what a claim was given.
    pub(crate) fn tried(&mut self, arrival: Arrival, claim: &Claim, answer: &ClaimAnswer) {
        self.tried.insert(arrival);
        self.budget = self.budget.saturating_sub(claim.weight());
        if answer.jobs.is_empty() {
            self.exhausted.insert(claim.filter.clone());
        }
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

/// A group whose claims are being tried.
struct Eager<'a> {
    claims: std::iter::Peekable<std::collections::btree_set::Iter<'a, Arrival>>,
    filter: &'a Filter,
    /// How many more are tried because of the time, or of slots that became free.
    tries: usize,
}

impl Parked {
    /// The first round of a batch in which these jobs became claimable.
    pub(crate) fn round(&self, effects: &Effects) -> Round {
        let mut ready = self.left.clone();
        for (lane, n) in &effects.readied {
            *ready.entry(lane.clone()).or_default() += n;
        }
        let (tried, exhausted) = (HashSet::new(), BTreeSet::new());
        let (opened, resumed) = (effects.opened, effects.resumed.clone());
        Round { ready, opened, resumed, budget: limits::BATCH_BYTES, tried, exhausted }
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

    /// What is known of its future holds for all that wait for the same: it was looked up just now.
    pub(crate) fn push(&mut self, parked: ParkedClaim) {
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.deadlines.insert((parked.deadline, arrival));
        if let Some(request) = request_of(&parked.claim) {
            self.requests.entry(request).or_default().push(arrival);
        }
        let filter = match self.groups.get_key_value(&parked.claim.filter) {
            Some((filter, _)) => Arc::clone(filter),
            None => Arc::new(parked.claim.filter.clone()),
        };
        self.groups.entry(Arc::clone(&filter)).or_default().claims.insert(arrival);
        self.set_due(&filter, parked.next_due);
        self.waiting.insert(arrival, parked);
    }

    /// Forgets claims whose client is gone, and takes out those whose time is up.
    pub(crate) fn take_ended(&mut self, now: Duration) -> Vec<ParkedClaim> {
        let ended: Vec<Arrival> = self
            .deadlines
            .iter()
            .take_while(|(deadline, _)| *deadline <= now)
            .map(|(_, arrival)| *arrival)
            .collect();
        let ended = ended.into_iter().filter_map(|arrival| self.remove(arrival)).collect();
        if now.saturating_sub(self.looked_for_gone) >= LOOK_FOR_GONE_EVERY || !self.has_room() {
            self.looked_for_gone = now;
            let is_gone = |(_, parked): &(&Arrival, &ParkedClaim)| !parked.reply.is_waiting();
            let gone: Vec<Arrival> =
                self.waiting.iter().filter(is_gone).map(|(arrival, _)| *arrival).collect();
            for arrival in gone {
                self.remove(arrival);
            }
        }
        ended
    }

    /// Takes out those that wait under the same worker and `request_id` as this claim.
    pub(crate) fn take_request(&mut self, claim: &Claim) -> Vec<ParkedClaim> {
        let arrivals = request_of(claim).and_then(|request| self.requests.get(&request).cloned());
        arrivals.unwrap_or_default().into_iter().filter_map(|arrival| self.remove(arrival)).collect()
    }

    /// Takes out all.
    pub(crate) fn take_all(&mut self) -> Vec<ParkedClaim> {
        let all: Vec<Arrival> = self.waiting.keys().copied().collect();
        all.into_iter().filter_map(|arrival| self.remove(arrival)).collect()
    }

    /// Which parked claims to try now, in order of arrival: those whose next due time has come, and for each job that
    /// became claimable one that it fits. Who was tried in this batch is left out.
    pub(crate) fn candidates(&self, round: &Round, now: Timestamp) -> Vec<Arrival> {
        let mut fresh = round.ready.clone();
        fresh.retain(|_, n| *n > 0);
        let is_due = self.due.first().is_some_and(|(at, _)| *at <= now);
        let opens = round.opened > 0 || !round.resumed.is_empty();
        if fresh.is_empty() && !is_due && !opens {
            return Vec::new();
        }
        let mut eager: Vec<Eager<'_>> = self.eager(round, now).collect();
        let next = |group: &mut Eager<'_>| group.claims.peek().map(|arrival| **arrival);
        let mut queue: BTreeSet<(Arrival, usize)> = eager
            .iter_mut()
            .enumerate()
            .filter_map(|(at, group)| next(group).map(|arrival| (arrival, at)))
            .collect();
        let mut budget = round.budget;
        let mut chosen = Vec::new();
        while budget > 0
            && let Some((arrival, at)) = queue.pop_first()
        {
            let Some(group) = eager.get_mut(at) else { break };
            group.claims.next();
            let claim = self.waiting.get(&arrival).filter(|parked| parked.reply.is_waiting());
            if let Some(parked) = claim.filter(|_| !round.tried.contains(&arrival)) {
                if !takes(group, &mut fresh) {
                    // Nothing for this one, so nothing for those behind it.
                    continue;
                }
                budget = budget.saturating_sub(parked.claim.weight());
                chosen.push(arrival);
            }
            queue.extend(next(group).map(|arrival| (arrival, at)));
        }
        chosen
    }

    /// Groups for which there may be a job.
    fn eager<'a>(&'a self, round: &'a Round, now: Timestamp) -> impl Iterator<Item = Eager<'a>> {
        let left = self.groups.iter().filter(|(filter, _)| !round.exhausted.contains(&***filter));
        left.filter_map(move |(filter, group)| {
            let is_due = group.next_due.is_some_and(|at| at <= now)
                || round.resumed.iter().any(|queue| filter.asks(queue));
            let tries = if is_due { TRIES_WHEN_DUE } else { 0 }.max(round.opened.min(TRIES_WHEN_DUE));
            let wanted = tries > 0 || round.ready.iter().any(|(lane, n)| *n > 0 && filter.matches(lane));
            wanted.then(|| Eager { claims: group.claims.iter().peekable(), filter, tries })
        })
    }

    pub(crate) fn get(&self, arrival: Arrival) -> Option<&ParkedClaim> {
        self.waiting.get(&arrival)
    }

    /// Takes out the claims that were served; the others learn when to try again.
    pub(crate) fn settle(
        &mut self,
        mut tried: Vec<(Arrival, ClaimAnswer)>,
    ) -> Vec<(ParkedClaim, ClaimAnswer)> {
        tried.sort_unstable_by_key(|(arrival, _)| *arrival);
        let mut served = Vec::new();
        for (arrival, answer) in tried {
            if answer.jobs.is_empty() {
                let filter = self.waiting.get(&arrival).map(|parked| parked.claim.filter.clone());
                let group = filter.as_ref().and_then(|filter| self.groups.get_key_value(filter));
                if let Some(filter) = group.map(|(filter, _)| Arc::clone(filter)) {
                    self.set_due(&filter, answer.next_due_at);
                }
            } else if let Some(parked) = self.remove(arrival) {
                served.push((parked, answer));
            }
        }
        served
    }

    /// A batch has planned jobs for later: who waits for such a job is to be woken then. Who waits for a queue that goes on
    /// looks again, since a batch tries some of them only.
    pub(crate) fn note_due_later(&mut self, effects: &Effects, now: Timestamp) {
        for queue in &effects.resumed {
            self.bring_forward(now, |filter| filter.asks(queue));
        }
        for (lane, due) in &effects.due_later {
            self.bring_forward(*due, |filter| filter.matches(lane));
        }
    }

    /// Nobody knows what became of a batch: jobs may be there that no claim was woken for, so all look again.
    pub(crate) fn look_again(&mut self, now: Timestamp) {
        self.bring_forward(now, |_| true);
    }

    fn bring_forward(&mut self, to: Timestamp, concerns: impl Fn(&Filter) -> bool) {
        let is_later = |group: &Group| group.next_due.is_none_or(|known| known > to);
        let concerned = self.groups.iter().filter(|(filter, group)| is_later(group) && concerns(filter));
        let concerned: Vec<Arc<Filter>> = concerned.map(|(filter, _)| Arc::clone(filter)).collect();
        for filter in concerned {
            self.set_due(&filter, Some(to));
        }
    }

    /// The next instant at which time alone may serve or end one: due time on the wall clock, deadline on the monotonic.
    pub(crate) fn next_wake(&self) -> (Option<Timestamp>, Option<Duration>) {
        let due = self.due.first().map(|(due, _)| *due);
        (due, self.deadlines.first().map(|(deadline, _)| *deadline))
    }

    fn set_due(&mut self, filter: &Arc<Filter>, next_due: Option<Timestamp>) {
        let Some(group) = self.groups.get_mut(filter) else { return };
        if let Some(old) = std::mem::replace(&mut group.next_due, next_due) {
            self.due.remove(&(old, Arc::clone(filter)));
        }
        self.due.extend(next_due.map(|due| (due, Arc::clone(filter))));
    }

    /// Takes a claim out, with what is known of its future by now.
    fn remove(&mut self, arrival: Arrival) -> Option<ParkedClaim> {
        let mut parked = self.waiting.remove(&arrival)?;
        self.deadlines.remove(&(parked.deadline, arrival));
        if let Some(request) = request_of(&parked.claim)
            && let Some(arrivals) = self.requests.get_mut(&request)
        {
            arrivals.retain(|other| *other != arrival);
            if arrivals.is_empty() {
                self.requests.remove(&request);
            }
        }
        if let Some(group) = self.groups.get_mut(&parked.claim.filter) {
            parked.next_due = group.next_due;
            group.claims.remove(&arrival);
            if group.claims.is_empty() {
                let gone = self.groups.remove_entry(&parked.claim.filter);
                if let Some((filter, Group { next_due: Some(due), .. })) = gone {
                    self.due.remove(&(due, filter));
                }
            }
        }
        Some(parked)
    }
}

/// Whether there may be a job for the next claim of this group; takes it off what is fresh.
fn takes(group: &mut Eager<'_>, fresh: &mut BTreeMap<Lane, usize>) -> bool {
    if let Some((_, n)) = fresh.iter_mut().find(|(lane, n)| **n > 0 && group.filter.matches(lane)) {
        *n -= 1;
        return true;
    }
    let by_time = group.tries > 0;
    group.tries = group.tries.saturating_sub(1);
    by_time
}

fn request_of(claim: &Claim) -> Option<(String, String)> {
    claim.request_id.clone().map(|request_id| (claim.worker.clone(), request_id))
}
