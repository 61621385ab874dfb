//! What a new job gets from the settings of its type, where it says nothing itself: its queue, its limits and fair key, its
//! ordering key.
//!
//! It keeps what it got: other settings are for the jobs that come after them. A job that names limits of its own is under
//! these alone.

use std::sync::Arc;

use tagwerk_core::limits;

use crate::command::EnqueueJob;
use crate::row::{Ordering, Special, TypeSettings};

/// The queue of a new job: job, type, server.
pub(crate) fn queue_of<'j>(job: &'j EnqueueJob, settings: &'j TypeSettings) -> &'j str {
    job.queue.as_deref().or(settings.queue.as_deref()).unwrap_or(limits::QUEUE_DEFAULT)
}

/// Whether it has neither limits nor a fair key, of its own or by its type.
pub(crate) const fn is_plain(job: &EnqueueJob, settings: &TypeSettings) -> bool {
    job.special.is_none() && settings.limits.is_empty() && settings.fair_key.is_none()
}

/// Its limits and fair key, each by itself from job or type.
pub(crate) fn special_of(job: &EnqueueJob, settings: &TypeSettings) -> Option<Arc<Special>> {
    if settings.limits.is_empty() && settings.fair_key.is_none() {
        return job.special.clone();
    }
    let own = job.special.as_deref();
    let limits = own.map(|own| &own.limits).filter(|limits| !limits.is_empty()).unwrap_or(&settings.limits);
    let fair_key = own.and_then(|own| own.fair_key.as_ref()).or(settings.fair_key.as_ref());
    Some(Arc::new(Special { limits: limits.clone(), fair_key: fair_key.cloned() }))
}

/// Its ordering key with what its failure means, each by itself from job or type.
pub(crate) fn ordering_of(job: &EnqueueJob, settings: &TypeSettings) -> Option<Box<Ordering>> {
    let own = job.ordering.as_deref();
    let key = own.map(|own| &own.key).or(settings.ordering_key.as_ref())?;
    let on_head_failure = own.and_then(|own| own.on_head_failure).or(settings.on_head_failure);
    Some(Box::new(Ordering { key: Arc::clone(key), on_head_failure }))
}
