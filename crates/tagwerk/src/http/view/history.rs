//! A job's history, and why it stands where it stands.

use tagwerk_api::answer::{AttemptEntry, Explain, ExplainReason, OperatorEntry, RefusedCall};
use tagwerk_core::{AttemptEnd, Job, JobId};
use tagwerk_engine::query::Explanation;
use tagwerk_engine::row::{ActionRow, AttemptRow};

use super::{names, time};

/// An attempt that has ended.
pub(in crate::http) fn attempt(row: AttemptRow) -> AttemptEntry {
    let AttemptRow { attempt, refused_calls, last_refused } = row;
    let class = match attempt.end {
        AttemptEnd::Failed(class) => Some(names::error_class(class)),
        _ => None,
    };
    AttemptEntry {
        number: attempt.number,
        seq: attempt.seq,
        worker_id: attempt.worker,
        claimed_at: time(attempt.claimed_at),
        lease_expires_at: time(attempt.lease_expires_at),
        ended_at: Some(time(attempt.ended_at)),
        outcome: Some(names::attempt_outcome(attempt.end)),
        class,
        error: attempt.error,
        late: attempt.late,
        refused_calls,
        last_refused: last_refused
            .map(|(call, at)| RefusedCall { at: time(at), call: names::call(call).to_owned() }),
    }
}

/// The attempt that runs, if one does.
pub(in crate::http) fn live_attempt(job: &Job) -> Option<AttemptEntry> {
    let lease = job.lease.as_ref()?;
    Some(AttemptEntry {
        number: job.attempt,
        seq: job.leases,
        worker_id: lease.worker.clone(),
        claimed_at: time(lease.claimed_at),
        lease_expires_at: time(lease.expires_at),
        ended_at: None,
        outcome: None,
        class: None,
        error: None,
        late: false,
        refused_calls: 0,
        last_refused: None,
    })
}

/// What an operator did.
pub(in crate::http) fn action(row: ActionRow) -> Option<OperatorEntry> {
    Some(OperatorEntry {
        at: time(row.at),
        action: names::operator_action(row.call)?,
        reason: row.text,
        version: row.version,
    })
}

/// Why a job stands where it stands.
pub(in crate::http) fn explain(id: JobId, explanation: Explanation, position: Option<u32>) -> Explain {
    let reason = |why: tagwerk_engine::query::Why| ExplainReason {
        kind: names::why(why.kind),
        detail: why.detail,
        since: why.since.map(time),
        until: why.until.map(time),
        freed_by: Some(why.freed_by.to_owned()),
    };
    Explain {
        id: id.0,
        status: names::status(explanation.status),
        position,
        reasons: explanation.reasons.into_iter().map(reason).collect(),
    }
}
