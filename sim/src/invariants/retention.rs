//! Retention spares the living and the young. Section 10: only completed and cancelled jobs, by age.
//!
//! What an operator deletes is completed or cancelled by then as well, so the status counts for every deletion. The age
//! counts where no DELETE of that job was ever sent.

use std::collections::{BTreeMap, BTreeSet};

use tagwerk_core::{Action, JobId, Status, retention::Policy};

use super::{At, Broken, Event, Invariant};
use crate::call::Call;
use crate::witness::Write;

/// See the module.
pub(super) struct Retention {
    policy: Policy,
    jobs: BTreeMap<JobId, (Status, Option<i64>)>,
    /// Too young when they were deleted: allowed only if a DELETE of them is answered in the same step.
    suspects: BTreeSet<JobId>,
}

impl Retention {
    pub(super) const fn new(policy: Policy) -> Self {
        Self { policy, jobs: BTreeMap::new(), suspects: BTreeSet::new() }
    }

    fn deleted(&mut self, id: JobId, now: i64) -> Result<(), Broken> {
        let Some((status, finished)) = self.jobs.remove(&id) else { return Ok(()) };
        let keep = match status {
            Status::Completed => self.policy.completed_ms,
            Status::Cancelled => self.policy.cancelled_ms,
            Status::Pending | Status::Running | Status::Failed => {
                return Err((Some(id), format!("it was deleted while it was {}", status.name())));
            }
        };
        if keep.zip(finished).is_none_or(|(ms, at)| at + ms > now) {
            self.suspects.insert(id);
        }
        Ok(())
    }
}

impl Invariant for Retention {
    fn name(&self) -> &'static str {
        "retention spares the living and the young"
    }

    fn see(&mut self, at: At, event: &Event<'_>) -> Result<(), Broken> {
        match event {
            Event::Wrote(Write::Insert(insert)) => {
                let job = &insert.row.job;
                // One that is out of date as it comes is cancelled from the start.
                let finished = job.finished_at.map(tagwerk_core::Timestamp::as_millis);
                self.jobs.insert(job.id, (job.status, finished));
            }
            Event::Wrote(Write::Change(change)) => {
                let job = &change.after.job;
                let finished = job.finished_at.map(tagwerk_core::Timestamp::as_millis);
                self.jobs.insert(job.id, (job.status, finished));
            }
            Event::Wrote(Write::Erase(id)) => return self.deleted(*id, at.now),
            Event::Sent(Call::Operate(call)) if call.action == Action::Delete => {
                self.suspects.remove(&call.id);
            }
            Event::StepOver => {
                if let Some(id) = self.suspects.pop_first() {
                    return Err((Some(id), "it was deleted too young, and nobody asked for that".to_owned()));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
