//! A job that kills its workers comes to an end: the loss number `max_lease_losses` sends it to review, and it never
//! waits or runs with that many losses.

use tagwerk_core::Status;

use super::{At, Broken, Event, Invariant};
use crate::witness::Write;

/// See the module.
pub(super) struct LossesBounded;

impl Invariant for LossesBounded {
    fn name(&self) -> &'static str {
        "lease losses are bounded"
    }

    fn see(&mut self, _at: At, event: &Event<'_>) -> Result<(), Broken> {
        let Event::Wrote(Write::Change(change)) = event else { return Ok(()) };
        let (before, job) = (&change.before.job, &change.after.job);
        let lives = matches!(job.status, Status::Pending | Status::Running);
        let most = job.max_lease_losses.max(1);
        if lives && job.lease_losses > before.lease_losses && job.lease_losses >= most {
            return Err((Some(job.id), format!("it goes on after loss {} of {most}", job.lease_losses)));
        }
        Ok(())
    }
}
