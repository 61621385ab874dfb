//! Who is handed what. Section 6: the highest priority, then due time, then id; nothing before it is due or after its
//! maximum age; a worker is not given what it gave back a moment ago while there is something else for it.
//!
//! The order in which the claims of a batch are served is free. So each hand-out is judged by itself, in the order in
//! which they were written: it must be the best job that is left for that claim. What is over is judged at the end.

use std::collections::BTreeSet;

use tagwerk_core::Status;
use tagwerk_engine::command::{Claim, ClaimAnswer};
use tagwerk_engine::row::JobRow;
use tagwerk_engine::store::Filter;

use super::compare::{self, Payload};
use super::eye::Eye;
use super::job::{Job, Lease};
use super::starts::{Counts, Open};
use super::{Contradiction, Judged, Model};

/// A claim that may be served in a transaction.
pub(crate) struct Asking<'a> {
    pub(crate) claim: &'a Claim,
    /// Its answer, if it got one.
    pub(crate) answer: Option<&'a ClaimAnswer>,
    pub(crate) stage: Stage,
    /// What its worker gave back a moment ago.
    pub(crate) avoid: Vec<i64>,
    pub(crate) got: Vec<i64>,
}

/// How a claim stands when the transaction is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It is answered.
    Answered,
    /// It waits on.
    Waiting,
    /// Nobody will know: the commit got no answer.
    Unknown,
}

impl Model {
    /// Judges every hand-out of the transaction and takes it over.
    pub(crate) fn hand_out(&mut self, open: &mut [Asking<'_>], eye: &Eye<'_>) -> Judged {
        for row in &eye.written {
            let id = row.job.id.0;
            // What an operator has deleted in the same transaction was not handed out in it.
            let Some(known) = self.jobs.get(&id).map(|job| job.leases) else { continue };
            if row.job.status == Status::Running && row.job.leases > known {
                self.grant(open, row)?;
            }
        }
        for claim in open.iter() {
            self.served(claim)?;
            self.nothing_left(claim)?;
        }
        Ok(())
    }

    fn grant(&mut self, open: &mut [Asking<'_>], row: &JobRow) -> Judged {
        let id = row.job.id.0;
        let Some(lease) = &row.job.lease else {
            return Err(Contradiction::of(Some(id), "it runs without a lease"));
        };
        let wanted = |filter: &Filter| self.jobs.get(&id).is_some_and(|job| passes(filter, job));
        let fits = |open: &&mut Asking<'_>| match (open.stage, open.answer) {
            (_, Some(answer)) => {
                !answer.replayed
                    && !open.got.contains(&id)
                    && answer.jobs.iter().any(|claimed| {
                        claimed.job.row.job.id.0 == id
                            && claimed.job.row.job.lease.as_ref().is_some_and(|own| own.bits == lease.bits)
                    })
            }
            (Stage::Unknown, None) => {
                open.claim.worker == lease.worker
                    && open.claim.request_id == lease.request_id
                    && open.got.len() < open.claim.max_jobs
                    && wanted(&open.claim.filter)
            }
            (_, None) => false,
        };
        let Some(index) = open.iter_mut().position(|claim| fits(&claim)) else {
            return Err(Contradiction::of(
                Some(id),
                format!("it was handed to {} by no claim", lease.worker),
            ));
        };
        let claim = &mut open[index];
        self.is_best(id, claim)?;
        if let Some(job) = self.jobs.get(&id) {
            self.capacity.started(job, Counts::Surely);
        }
        claim.got.push(id);
        if claim.got.len() > claim.claim.max_jobs {
            return Err(Contradiction::of(Some(id), "a claim was given more jobs than it asked for"));
        }
        let granted = self.lease(id, claim.claim, lease.bits.0)?;
        let by_type = |job: &Job| self.types.get(&job.kind).is_some_and(|set| set.handles_verify);
        let knows_doubt = claim.claim.handles_verify || by_type(self.job(id)?);
        self.change(id, |job| {
            job.status = Status::Running;
            job.attempt += 1;
            job.leases += 1;
            job.acted = false;
            job.knows_doubt = knows_doubt;
            job.lease = Some(granted);
        });
        Ok(())
    }

    fn is_best(&self, id: i64, claim: &Asking<'_>) -> Judged {
        let job = self.job(id)?;
        if !passes(&claim.claim.filter, job) {
            return Err(Contradiction::of(Some(id), "it was handed to a claim that does not want it"));
        }
        if !job.is_claimable(self.now) {
            let what = format!(
                "it was handed out while it was {}, due at {}, expires at {:?}, now {}",
                job.status.name(),
                job.available_at,
                job.expires_at,
                self.now
            );
            return Err(Contradiction::of(Some(id), what));
        }
        if let Some(first) = self.before(job) {
            let what = format!("it was handed out, and job {} of its ordering key comes first", first.id);
            return Err(Contradiction::of(Some(id), what));
        }
        self.is_chosen(job, claim.claim, &claim.avoid)
    }

    /// Length: claim, job, type, server. Limit: job, type. The worker is told the end that counts.
    fn lease(&self, id: i64, claim: &Claim, bits: u64) -> Result<Lease, Contradiction> {
        let job = self.job(id)?;
        let of_type = self.types.get(&job.kind).cloned().unwrap_or_default();
        let lease_ms =
            claim.lease_ms.or(job.sent.lease_ms).or(of_type.lease_ms).unwrap_or(self.settings.lease_ms);
        let limit_at = job.sent.timeout_ms.or(of_type.timeout_ms).map(|ms| self.now + ms);
        let end = self.now + lease_ms;
        Ok(Lease {
            worker: claim.worker.clone(),
            request_id: claim.request_id.clone(),
            claimed_at: self.now,
            expires_at: limit_at.map_or(end, |limit| limit.min(end)),
            limit_at,
            length_ms: lease_ms,
            bits,
            token: None,
        })
    }

    /// The answer shows exactly what was handed out, or what a repeated claim has.
    fn served(&mut self, open: &Asking<'_>) -> Judged {
        let Some(answer) = open.answer else { return Ok(()) };
        let mut shown: BTreeSet<i64> = BTreeSet::new();
        for claimed in &answer.jobs {
            let id = claimed.job.row.job.id.0;
            shown.insert(id);
            compare::shown(self.job(id)?, &claimed.job, Payload::Shown)?;
            self.see_token(id, &claimed.token)?;
        }
        let expected: BTreeSet<i64> = match &open.claim.request_id {
            Some(request) => self.held_by_request(&open.claim.worker, request),
            None => open.got.iter().copied().collect(),
        };
        let about = shown.symmetric_difference(&expected).next().copied();
        if about.is_some() || shown.len() != answer.jobs.len() {
            let what = format!("a claim must be given {expected:?}, its answer shows {shown:?}");
            return Err(Contradiction::of(about, what));
        }
        if answer.replayed != (!shown.is_empty() && open.got.is_empty()) {
            return Err(Contradiction::of(
                shown.first().copied(),
                "whether the claim is repeated is told wrongly",
            ));
        }
        if shown.is_empty() {
            return self.next_due(open.claim, answer);
        }
        Ok(())
    }

    /// The running jobs of this worker that were claimed under this request.
    fn held_by_request(&self, worker: &str, request: &str) -> BTreeSet<i64> {
        let is_it = |lease: &Lease| lease.worker == worker && lease.request_id.as_deref() == Some(request);
        let held = self.jobs.values().filter(|job| !job.is_overdue(self.now));
        held.filter(|job| job.lease.as_ref().is_some_and(is_it)).map(|job| job.id).collect()
    }

    /// A token belongs to one lease for ever.
    fn see_token(&mut self, id: i64, token: &str) -> Judged {
        let Some(lease) = self.jobs.get_mut(&id).and_then(|job| job.lease.as_mut()) else {
            return Err(Contradiction::of(Some(id), "a claim shows a job that nobody holds"));
        };
        match &lease.token {
            Some(known) if known == token => Ok(()),
            Some(_) => Err(Contradiction::of(Some(id), "one lease has two tokens")),
            None => {
                lease.token = Some(token.to_owned());
                if self.tokens.insert(token.to_owned()) {
                    Ok(())
                } else {
                    Err(Contradiction::of(Some(id), "two leases have the same token"))
                }
            }
        }
    }

    /// A claim that could have been given more leaves nothing behind.
    fn nothing_left(&self, open: &Asking<'_>) -> Judged {
        let full = open.got.len() >= open.claim.max_jobs;
        let repeated = open.answer.is_some_and(|answer| answer.replayed);
        if full || repeated || open.stage == Stage::Unknown {
            return Ok(());
        }
        let avoids = |id: i64| !open.got.is_empty() && open.avoid.contains(&id);
        let due = self.due(&open.claim.filter);
        let left =
            due.iter().find(|(job, open)| *open == Open::Yes && !avoids(job.id)).map(|(job, _)| job.id);
        match left {
            None => Ok(()),
            Some(id) => {
                let how = if open.stage == Stage::Waiting { "waits on" } else { "got too little" };
                let what = format!("it can be handed out, but the claim of {} {how}", open.claim.worker);
                Err(Contradiction::of(Some(id), what))
            }
        }
    }

    pub(super) fn claimable<'m>(&'m self, filter: &'m Filter) -> impl Iterator<Item = &'m Job> {
        let turns = self.turns();
        let seen = |job: &&Job| !self.fresh.contains(&job.id);
        let wanted = |job: &&Job| job.is_claimable(self.now) && passes(filter, job);
        self.jobs.values().filter(wanted).filter(seen).filter(move |job| turns.may_go(job))
    }
}

pub(super) fn passes(filter: &Filter, job: &Job) -> bool {
    let allows =
        |names: &Option<Vec<String>>, name: &String| names.as_ref().is_none_or(|names| names.contains(name));
    allows(&filter.queues, &job.queue) && allows(&filter.types, &job.kind)
}
