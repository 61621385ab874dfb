//! Jobs that a completed one leads to.

use tagwerk_core::JobId;

use super::enqueue::{self, Source, Verdict};
use crate::command::{Enqueue, Enqueued, FollowUps, FollowedUp, Refusal};
use crate::store::{StoreError, StoreResult};
use crate::work::Work;

/// What is to become of them.
pub(super) struct Plan<'c> {
    request: &'c Enqueue,
    source: Source,
    verdicts: Vec<Verdict>,
}

/// Judges them as they will stand once this job is completed. Nothing is changed.
pub(super) fn judge<'c>(
    work: &mut Work<'_>,
    completed: JobId,
    follow_ups: &'c FollowUps,
) -> StoreResult<Result<Plan<'c>, Refusal>> {
    let request = &follow_ups.enqueue;
    let source = Source::Completed(completed);
    let verdicts = enqueue::verdicts(work, (request, source))?;
    for (index, verdict) in verdicts.iter().enumerate() {
        if let Verdict::Refused(refusal) = verdict {
            return Ok(Err(Refusal::FollowUp { index, refusal: Box::new(refusal.clone()) }));
        }
    }
    Ok(Ok(Plan { request, source, verdicts }))
}

/// Creates them.
pub(super) fn create(work: &mut Work<'_>, plan: Plan<'_>) -> StoreResult<Vec<FollowedUp>> {
    let Plan { request, source, verdicts } = plan;
    let items = enqueue::execute(work, (request, source), verdicts)?;
    let followed_up = |item: Result<Enqueued, Refusal>| match item {
        Ok(Enqueued::Created(job)) => Ok(FollowedUp { id: job.row.job.id, created: true }),
        Ok(Enqueued::Existing { job, .. }) => Ok(FollowedUp { id: job.row.job.id, created: false }),
        Ok(Enqueued::Pruned { id, .. }) => Ok(FollowedUp { id, created: false }),
        // All were judged before. The transaction fails, and with it the report.
        Err(refusal) => {
            Err(StoreError::Other(format!("a follow-up that was judged fine was refused: {refusal}")))
        }
    };
    items.into_iter().map(followed_up).collect()
}
