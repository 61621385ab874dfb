//! Nothing is handed out before it is due, and nothing at or after the end of its maximum age.

use tagwerk_core::Status;

use super::{At, Broken, Event, Invariant};
use crate::witness::Write;

/// Never before `available_at`.
pub(super) struct NotBeforeDue;

/// Never from `expires_at` on, swept or not.
pub(super) struct NotAfterExpiry;

impl Invariant for NotBeforeDue {
    fn name(&self) -> &'static str {
        "never handed out before it is due"
    }

    fn see(&mut self, at: At, event: &Event<'_>) -> Result<(), Broken> {
        match claimed(event) {
            Some(job) if job.available_at.as_millis() > at.now => Err((
                Some(job.id),
                format!("it was handed out {} ms too early", job.available_at.as_millis() - at.now),
            )),
            _ => Ok(()),
        }
    }
}

impl Invariant for NotAfterExpiry {
    fn name(&self) -> &'static str {
        "never handed out after its maximum age"
    }

    fn see(&mut self, at: At, event: &Event<'_>) -> Result<(), Broken> {
        match claimed(event) {
            Some(job) if job.expires_at.is_some_and(|expires| expires.as_millis() <= at.now) => {
                Err((Some(job.id), "it was handed out after its maximum age".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

/// The job, if this write hands it out.
fn claimed<'a>(event: &Event<'a>) -> Option<&'a tagwerk_core::Job> {
    let Event::Wrote(Write::Change(change)) = event else { return None };
    let (before, after) = (&change.before.job, &change.after.job);
    (before.leases < after.leases && after.status == Status::Running).then_some(after)
}
