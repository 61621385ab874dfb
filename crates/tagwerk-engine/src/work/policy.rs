//! The back-off that applies to a job.

use tagwerk_core::{Event, JobId, Outcome, RetryPolicy};

use crate::store::StoreResult;
use crate::work::Work;

impl Work<'_> {
    /// Back-off of a job: each field by itself from job, type and server.
    pub(super) fn retry_policy(&mut self, id: JobId) -> StoreResult<RetryPolicy> {
        // A bulk of failures must not keep a thousand payloads for three numbers each.
        let of_job = self.detail_without_payload(id)?.retry;
        let of_type = self
            .row(id)
            .and_then(|row| self.env.types.get(&*row.lane.kind))
            .map(|settings| settings.retry)
            .unwrap_or_default();
        Ok(of_job.or(of_type).resolve(&self.env.settings.retry))
    }
}

/// Events after which a job may have to wait for its next attempt, so that its back-off matters.
pub(super) const fn may_back_off(event: &Event) -> bool {
    match event {
        Event::AttemptOver => true,
        Event::Report(_, report) | Event::Unheard(_, report) => {
            matches!(report.outcome, Outcome::Failed { .. })
        }
        Event::Claim(_)
        | Event::Heartbeat(_)
        | Event::Checkpoint(_)
        | Event::Effect(..)
        | Event::Assume(_)
        | Event::Expire
        | Event::Supersede { .. }
        | Event::Operate { .. } => false,
    }
}
