//! Ids rise, are never used twice, and stay exact for every JSON reader.

use tagwerk_core::JobId;

use super::{At, Broken, Event, Invariant};
use crate::witness::Write;

/// See the module.
#[derive(Default)]
pub(super) struct IdsRise {
    last: i64,
}

impl Invariant for IdsRise {
    fn name(&self) -> &'static str {
        "ids rise"
    }

    fn see(&mut self, _at: At, event: &Event<'_>) -> Result<(), Broken> {
        let Event::Wrote(Write::Insert(insert)) = event else { return Ok(()) };
        let JobId(id) = insert.row.job.id;
        if id <= self.last || id >= 1 << 53 {
            return Err((Some(JobId(id)), format!("its id comes after {}", self.last)));
        }
        self.last = id;
        Ok(())
    }
}
