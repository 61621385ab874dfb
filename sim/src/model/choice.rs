//! Which of the jobs that are due a claim may be given, where limits, queues and turns have a say. Section 6.
//!
//! What limits exclude is passed over; then the highest priority; inside a queue and level keys take turns; then due time
//! and id. Of several queues the heads compare by priority, due time, id. Where it is not certain whether a limit is open
//! or whose turn it is, every outcome that may be is allowed.

use std::collections::{BTreeMap, BTreeSet};

use tagwerk_core::Status;
use tagwerk_engine::command::{Claim, ClaimAnswer};
use tagwerk_engine::store::Filter;

use super::handout::passes;
use super::job::{Job, Lease};
use super::starts::{Open, open_by};
use super::{Contradiction, Judged, Model};

/// A job that is due, and whether it may start.
type Due<'m> = (&'m Job, Open);

impl Model {
    /// The jobs that are due and may, or may perhaps, be handed out.
    pub(super) fn due<'m>(&'m self, filter: &'m Filter) -> Vec<Due<'m>> {
        let load = (!self.capacity.is_unused()).then(|| self.load());
        let judged = |job: &'m Job| {
            let open = load.as_ref().map_or(Open::Yes, |load| self.lets_through(load, job));
            (open != Open::No).then_some((job, open))
        };
        self.claimable(filter).filter_map(judged).collect()
    }

    /// Whether a claim may be given this one: nothing keeps it back, and nothing goes before it for certain.
    pub(super) fn is_chosen(&self, job: &Job, claim: &Claim, avoid: &[i64]) -> Judged {
        let id = job.id;
        if self.capacity.is_paused(&job.queue) {
            let what = format!("it was handed out although queue {} is paused", job.queue);
            return Err(Contradiction::of(Some(id), what));
        }
        if !self.capacity.is_unused() {
            let load = self.load();
            let spans = self.bounds_of(&load, job);
            if let Some(span) = spans.iter().find(|span| open_by(**span, self.now) == Open::No) {
                let what = format!(
                    "it was handed out although a limit or its queue lets nothing through until {} at least: \
                     limits {:?}, queue {}, now {}",
                    span.0,
                    job.limits(),
                    job.queue,
                    self.now
                );
                return Err(Contradiction::of(Some(id), what));
            }
        }
        let is_avoided = avoid.contains(&id);
        let due: Vec<Due<'_>> = self
            .due(&claim.filter)
            .into_iter()
            .filter(|(other, _)| other.id == id || is_avoided || !avoid.contains(&other.id))
            .collect();
        let instead = due.iter().find(|(other, open)| {
            is_avoided && *open == Open::Yes && other.id != id && !avoid.contains(&other.id)
        });
        if let Some((other, _)) = instead {
            return Err(behind(job, other, (claim, "since that worker gave it back a moment ago")));
        }
        match self.better(job, &due) {
            Some(other) => Err(behind(job, other, (claim, "by its place"))),
            None => Ok(()),
        }
    }

    /// One that goes before this one for certain.
    fn better<'m>(&self, job: &Job, due: &[Due<'m>]) -> Option<&'m Job> {
        if self.capacity.is_unused() {
            return due.iter().map(|(other, _)| *other).find(|other| other.place() < job.place());
        }
        let mut queues: BTreeMap<&str, Vec<&Due<'m>>> = BTreeMap::new();
        for one in due {
            queues.entry(&one.0.queue).or_default().push(one);
        }
        let certain = |of_queue: &[&Due<'m>]| -> Vec<&'m Job> {
            of_queue.iter().filter(|(_, open)| *open == Open::Yes).map(|(job, _)| *job).collect()
        };
        let own = queues.remove(job.queue.as_str()).unwrap_or_default();
        let first = certain(&own).into_iter().find(|other| self.capacity.goes_first(other, job));
        if first.is_some() {
            return first;
        }
        queues.values().find_map(|of_queue| {
            let certain = certain(of_queue);
            // Who may stand for that queue: each that nobody goes before for certain.
            let may_lead = |other: &&Job| !certain.iter().any(|one| self.capacity.goes_first(one, other));
            let mut heads = of_queue.iter().map(|(other, _)| *other).filter(may_lead);
            let worst = heads.by_ref().max_by_key(|head| head.place())?;
            (!certain.is_empty() && worst.place() < job.place()).then_some(worst)
        })
    }

    /// The next due time of an empty answer: never later than something really can be had.
    pub(super) fn next_due(&self, claim: &Claim, answer: &ClaimAnswer) -> Judged {
        let told = answer.next_due_at.map(tagwerk_core::Timestamp::as_millis);
        let pending = self.jobs.values().filter(|job| job.status == Status::Pending);
        let mine = pending.filter(|job| passes(&claim.filter, job) && !self.capacity.is_paused(&job.queue));
        let (load, turns) = (self.load(), self.turns());
        let (mut lows, mut highs) = (BTreeSet::new(), BTreeSet::new());
        for job in mine.filter(|job| turns.has(job)) {
            let mut spans = self.bounds_of(&load, job);
            spans.retain(|span| span.1 > self.now);
            if job.available_at > self.now {
                spans.push((job.available_at, job.available_at));
            }
            lows.extend(spans.iter().map(|span| span.0).min());
            highs.extend(spans.iter().map(|span| span.1).max());
        }
        // Where limits and bounds are in use a store may be early: who waits looks once more. It is never late. What is tried
        // again alone ends no attempts that are over: then the end of one that holds a slot is what is waited for.
        let may_be_early = !self.capacity.is_unused();
        let is_over = |told| {
            let over = self
                .jobs
                .values()
                .filter(|job| job.is_overdue(self.now))
                .filter_map(|job| job.lease.as_ref());
            over.map(Lease::ends_at).any(|end| end == told)
        };
        let is_right = match (told, lows.first(), highs.first()) {
            (None, None, None) => true,
            (Some(told), None, None) => may_be_early && (told >= self.now || is_over(told)),
            (Some(told), Some(low), Some(high)) => told <= *high && (told >= *low || may_be_early),
            _ => false,
        };
        if is_right {
            return Ok(());
        }
        let (low, high) = (lows.first(), highs.first());
        let what =
            format!("an empty claim must name {low:?} to {high:?} as next due time, it names {told:?}");
        Err(Contradiction::of(None, what))
    }
}

fn behind(job: &Job, other: &Job, (claim, why): (&Claim, &str)) -> Contradiction {
    let what = format!(
        "it was handed to {} though job {} goes first {why}: priority {} due {}, it has {} and {}",
        claim.worker, other.id, other.priority, other.available_at, job.priority, job.available_at
    );
    Contradiction::of(Some(job.id), what)
}
