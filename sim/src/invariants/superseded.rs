//! What a newer version has made out of date is never handed out again, and never waits to be.

use tagwerk_core::Status;

use super::{At, Broken, Event, Invariant};
use crate::witness::Write;

/// See the module.
pub(super) struct Superseded;

impl Invariant for Superseded {
    fn name(&self) -> &'static str {
        "a superseded job waits for nothing"
    }

    fn see(&mut self, _at: At, event: &Event<'_>) -> Result<(), Broken> {
        let after = match event {
            Event::Wrote(Write::Change(change)) => &change.after.job,
            Event::Wrote(Write::Insert(insert)) => &insert.row.job,
            _ => return Ok(()),
        };
        let Some(by) = after.superseded_by.filter(|_| after.status == Status::Pending) else { return Ok(()) };
        Err((Some(after.id), format!("job {by} has a newer version, and it waits for another run")))
    }
}
