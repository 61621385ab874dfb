//! A worker claims a job.

use super::{History, Step, state};
use crate::{Grant, Job, Lease, Rejection, Status, Timestamp};

/// Hands the job out: the attempt is counted here, not when it fails, so that a job that kills its worker is counted too.
pub(super) fn claim(job: &Job, grant: &Grant, now: Timestamp) -> Result<Step, Rejection> {
    // A maximum age that is over is not asked for again: `decide` has refused such a job already.
    if job.status != Status::Pending || job.available_at > now {
        return Err(Rejection::NotClaimable);
    }
    // The worker is told the end that counts, or it would beat too late.
    let lease_end = now.plus_ms(grant.lease_ms);
    let time_limit_at = grant.timeout_ms.map(|ms| now.plus_ms(ms));
    let mut next = job.clone();
    next.attempt = job.attempt.saturating_add(1);
    next.leases = job.leases.saturating_add(1);
    next.started = true;
    next.handles_verify = grant.handles_verify;
    next.acted = false;
    next.earlier_lost |= next.newest_lost;
    next.newest_lost = false;
    state::run(
        &mut next,
        Lease {
            bits: grant.bits,
            worker: grant.worker.clone(),
            claimed_at: now,
            expires_at: time_limit_at.map_or(lease_end, |limit| limit.min(lease_end)),
            time_limit_at,
            lease_ms: grant.lease_ms,
            request_id: grant.request_id.clone(),
        },
    );
    Ok(state::done(next, History::Unchanged, now))
}
