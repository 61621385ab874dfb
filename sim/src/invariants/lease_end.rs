//! A heartbeat never shortens a lease, and nothing moves it past the time limit of the attempt. Sections 3 and 5.

use super::{At, Broken, Event, Invariant};
use crate::witness::Write;

/// See the module.
pub(super) struct LeaseEnd;

impl Invariant for LeaseEnd {
    fn name(&self) -> &'static str {
        "a heartbeat never shortens a lease"
    }

    fn see(&mut self, _at: At, event: &Event<'_>) -> Result<(), Broken> {
        let Event::Wrote(Write::Change(change)) = event else { return Ok(()) };
        let (before, after) = (&change.before.job, &change.after.job);
        let Some(new) = &after.lease else { return Ok(()) };
        if new.time_limit_at.is_some_and(|limit| new.expires_at > limit) {
            return Err((Some(after.id), "its lease goes on past the time limit".to_owned()));
        }
        if let Some(old) = before.lease.as_ref().filter(|old| old.bits == new.bits)
            && new.expires_at < old.expires_at
        {
            return Err((Some(after.id), "its lease was shortened".to_owned()));
        }
        Ok(())
    }
}
