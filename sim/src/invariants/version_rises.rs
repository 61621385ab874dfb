//! The version rises with every change of state, and never falls: what an operator has seen can be compared.

use super::{At, Broken, Event, Invariant};
use crate::witness::Write;

/// See the module.
pub(super) struct VersionRises;

impl Invariant for VersionRises {
    fn name(&self) -> &'static str {
        "the version rises"
    }

    fn see(&mut self, _at: At, event: &Event<'_>) -> Result<(), Broken> {
        let Event::Wrote(Write::Change(change)) = event else { return Ok(()) };
        let (before, after) = (&change.before.job, &change.after.job);
        let moved = before.status != after.status || before.leases != after.leases;
        if after.version < before.version || (moved && after.version == before.version) {
            let what = format!(
                "it went from {} v{} to {} v{}",
                before.status.name(),
                before.version,
                after.status.name(),
                after.version
            );
            return Err((Some(after.id), what));
        }
        Ok(())
    }
}
