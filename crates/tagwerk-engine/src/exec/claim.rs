//! Handing out jobs.

use std::collections::HashSet;

use tagwerk_core::{Event, Grant, JobId, LeaseBits, Status, limits};

use crate::command::{Claim, ClaimAnswer, Claimed};
use crate::row::JobRow;
use crate::store::{ClaimQuery, StoreError, StoreResult};
use crate::work::{View, Work};

/// A claim to be served, and the jobs that its worker gave back a moment ago.
pub(crate) struct Wish<'a> {
    pub(crate) claim: &'a Claim,
    pub(crate) avoid: Vec<JobId>,
}

/// A claim while it is being served.
struct Open<'a> {
    wish: &'a Wish<'a>,
    ids: Vec<JobId>,
    bytes: u64,
    replayed: bool,
    /// Whether jobs that the worker gave back a moment ago are left out.
    avoiding: bool,
    /// Nothing more is asked of the store.
    done: bool,
}

/// Serves claims in order. Those that find nothing get an empty answer with the next due time.
pub(crate) fn serve(work: &mut Work<'_>, wishes: &[Wish<'_>]) -> StoreResult<Vec<ClaimAnswer>> {
    let mut answers = Vec::with_capacity(wishes.len());
    while answers.len() < wishes.len() {
        let rest = wishes.get(answers.len()..).unwrap_or_default();
        let (group, _) = rest.split_at(different_requests(rest));
        answers.extend(serve_group(work, group)?);
    }
    Ok(answers)
}

/// How many of these claims can be served together: a claim that repeats the request of one before it must see its leases.
fn different_requests(wishes: &[Wish<'_>]) -> usize {
    let mut seen = HashSet::new();
    wishes
        .iter()
        .position(|wish| {
            let request = wish.claim.request_id.as_ref().map(|request_id| (&wish.claim.worker, request_id));
            request.is_some_and(|request| !seen.insert(request))
        })
        .unwrap_or(wishes.len())
}

fn serve_group(work: &mut Work<'_>, wishes: &[Wish<'_>]) -> StoreResult<Vec<ClaimAnswer>> {
    let mut open = Vec::with_capacity(wishes.len());
    for wish in wishes {
        open.push(replay(work, wish)?);
    }
    while fill(work, &mut open)? {}
    for claim in open.iter_mut().filter(|claim| claim.ids.is_empty() && claim.avoiding) {
        claim.avoiding = false;
        claim.done = false;
    }
    while fill(work, &mut open)? {}
    open.into_iter().map(|claim| answer(work, &claim)).collect()
}

/// A claim repeated with its `request_id` gets the leases that it has.
fn replay<'a>(work: &mut Work<'_>, wish: &'a Wish<'a>) -> StoreResult<Open<'a>> {
    let avoiding = !wish.avoid.is_empty();
    let mut open = Open { wish, ids: Vec::new(), bytes: 0, replayed: false, avoiding, done: false };
    let Some(request_id) = &wish.claim.request_id else { return Ok(open) };
    for row in work.tx.claimed_by_request(&wish.claim.worker, request_id)? {
        let id = row.job.id;
        work.adopt(row);
        work.settle(id)?;
        if work.row(id).is_some_and(|row| row.job.status == Status::Running) {
            open.ids.push(id);
        }
    }
    open.replayed = !open.ids.is_empty();
    open.done = open.replayed;
    Ok(open)
}

/// One round over all open claims. Returns whether another round can bring more: rows that turned out to be past their
/// maximum age have made room.
fn fill(work: &mut Work<'_>, open: &mut [Open<'_>]) -> StoreResult<bool> {
    let mut asking: Vec<&mut Open<'_>> = open.iter_mut().filter(|claim| !claim.done).collect();
    if asking.is_empty() {
        return Ok(false);
    }
    let queries: Vec<ClaimQuery<'_>> = asking.iter().map(|claim| query(claim)).collect();
    let found = work.tx.claimable(work.env.now, &queries)?;
    let ids: Vec<JobId> = found.iter().flatten().map(|row| row.job.id).collect();
    let found: Vec<Vec<(JobId, u64)>> = found.into_iter().map(|rows| adopt(work, rows)).collect();
    work.load_details(&ids)?;
    let mut again = false;
    for (claim, rows) in asking.iter_mut().zip(found) {
        let mut expired = false;
        for row in rows {
            expired |= !hand_out(work, claim, row)?;
        }
        // What else has expired is for the sweep, which is bounded.
        work.expired_by_claims += usize::from(expired);
        let tired = work.expired_by_claims >= limits::OVERDUE_PER_BATCH;
        claim.done = !expired || tired || claim.ids.len() >= claim.wish.claim.max_jobs;
        again |= !claim.done;
    }
    work.flush()?;
    work.settle_turns()?;
    Ok(again)
}

fn query<'q>(claim: &'q Open<'_>) -> ClaimQuery<'q> {
    let wanted = claim.wish.claim.max_jobs.saturating_sub(claim.ids.len());
    // The fixed fields of all that are wanted come out of the budget first; the store adds up the texts.
    let fields = limits::CLAIM_JOB_FIELDS_BYTES.saturating_mul(wanted as u64);
    ClaimQuery {
        filter: &claim.wish.claim.filter,
        wanted,
        max_bytes: (limits::CLAIM_BUDGET_BYTES as u64).saturating_sub(claim.bytes.saturating_add(fields)),
        skip: if claim.avoiding { &claim.wish.avoid } else { &[] },
    }
}

/// Takes in what the store gave to one claim; what is needed of each is its id and how much it adds to an answer.
fn adopt(work: &mut Work<'_>, rows: Vec<JobRow>) -> Vec<(JobId, u64)> {
    let adopt = |row: JobRow| {
        let given = (row.job.id, row.answer_bytes());
        work.adopt(row);
        given
    };
    rows.into_iter().map(adopt).collect()
}

/// Grants a lease. `false` when the row has expired instead.
fn hand_out(work: &mut Work<'_>, claim: &mut Open<'_>, given: (JobId, u64)) -> StoreResult<bool> {
    let (id, answer_bytes) = given;
    work.settle(id)?;
    if work.row(id).is_none_or(|row| row.job.status != Status::Pending) {
        return Ok(false);
    }
    let event = Event::Claim(grant(work, claim.wish.claim, id)?);
    match work.judge(id, &event)? {
        Ok(step) => work.record(id, &event, step),
        Err(rejection) => {
            return Err(StoreError::Other(format!("the store gave job {id} as claimable: {rejection}")));
        }
    }
    claim.ids.push(id);
    claim.bytes += answer_bytes + limits::CLAIM_JOB_FIELDS_BYTES;
    Ok(true)
}

/// Lease length: claim, job, type, server. Time limit: job, type.
fn grant(work: &mut Work<'_>, claim: &Claim, id: JobId) -> StoreResult<Grant> {
    let (lease_of_job, timeout_of_job) = {
        let detail = work.detail(id)?;
        (detail.lease_ms, detail.timeout_ms)
    };
    let of_type = work.row(id).and_then(|row| work.env.types.get(&*row.lane.kind));
    let lease_ms = claim
        .lease_ms
        .or(lease_of_job)
        .or(of_type.and_then(|set| set.lease_ms))
        .unwrap_or(work.env.settings.lease_ms);
    Ok(Grant {
        bits: LeaseBits(work.env.entropy.u64()),
        worker: claim.worker.clone(),
        lease_ms,
        handles_verify: claim.handles_verify || of_type.is_some_and(|set| set.handles_verify),
        timeout_ms: timeout_of_job.or(of_type.and_then(|set| set.timeout_ms)),
        request_id: claim.request_id.clone(),
    })
}

fn answer(work: &mut Work<'_>, claim: &Open<'_>) -> StoreResult<ClaimAnswer> {
    if claim.ids.is_empty() {
        let next_due_at = if work.expired_by_claims >= limits::OVERDUE_PER_BATCH {
            // There may be more behind what has expired: the next batch looks again.
            Some(work.env.now)
        } else {
            work.tx.next_due(work.env.now, &claim.wish.claim.filter)?
        };
        return Ok(ClaimAnswer { next_due_at, ..ClaimAnswer::default() });
    }
    work.load_details(&claim.ids)?;
    let mut jobs = Vec::with_capacity(claim.ids.len());
    for id in &claim.ids {
        let job = work.full(*id, View::Whole)?;
        if let Some(lease) = &job.row.job.lease {
            jobs.push(Claimed { token: work.env.tokens.token(*id, lease.bits), job: *job });
        }
    }
    Ok(ClaimAnswer { jobs, replayed: claim.replayed, next_due_at: None })
}
