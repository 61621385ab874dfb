//! Which space new jobs are in, and what that means for their ordering keys. Idempotency keys are looked up by
//! [`crate::row::in_space`] too.

use std::sync::Arc;

use super::Source;
use crate::command::Enqueue;
use crate::row::{Ordering, in_space};
use crate::work::Work;

/// The caller's space, or that of the job that leads to them.
pub(super) fn space_of(work: &Work<'_>, (request, source): (&Enqueue, Source)) -> Option<Arc<str>> {
    match source {
        Source::Producer => request.reach.as_ref()?.space.as_deref().map(Arc::from),
        Source::Completed(id) => work.row(id)?.lane.space.clone(),
    }
}

/// Orders are for the jobs of a space alone.
pub(super) fn keep_apart(orderings: &mut [Option<Box<Ordering>>], space: Option<&str>) {
    if space.is_some() {
        for ordering in orderings.iter_mut().flatten() {
            ordering.key = in_space(space, &ordering.key).into();
        }
    }
}
