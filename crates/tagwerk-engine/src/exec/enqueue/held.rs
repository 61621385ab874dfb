//! A key that a job has already: the job stands for what was sent, or takes it in.

use tagwerk_core::{Action, Answer, Event, JobId};

use super::{Relation, due, fingerprint, payload_of};
use crate::command::{EnqueueJob, Enqueued};
use crate::exec::admit;
use crate::row::{KeyRow, KeyWrite, TypeSettings};
use crate::store::{OldPayload, PayloadWrite, StoreResult};
use crate::work::{View, Work};

pub(super) fn existing(
    work: &mut Work<'_>,
    sent: (&EnqueueJob, View),
    held: (KeyRow, Relation),
) -> StoreResult<Enqueued> {
    let (key, relation) = held;
    let owner = key.owner;
    if let Some(tombstone) = key.tombstone {
        let Relation { differs: payload_differs, replace: replaced } = relation;
        return Ok(Enqueued::Pruned { id: owner, tombstone, payload_differs, replaced });
    }
    repeated(work, sent, (owner, relation))
}

pub(super) fn repeated(
    work: &mut Work<'_>,
    sent: (&EnqueueJob, View),
    held: (JobId, Relation),
) -> StoreResult<Enqueued> {
    let ((job, view), (owner, relation)) = (sent, held);
    let replaced = match relation.replace {
        Some(true) => Some(replace(work, job, owner)?),
        refused_or_not_asked => refused_or_not_asked,
    };
    Ok(Enqueued::Existing { job: work.full(owner, view)?, payload_differs: relation.differs, replaced })
}

/// `on_duplicate: replace`: rewrites payload, priority and time of a job that never started.
fn replace(work: &mut Work<'_>, job: &EnqueueJob, owner: JobId) -> StoreResult<bool> {
    // Fails here or not at all: nothing is recorded for a job that cannot be read.
    work.detail(owner)?;
    let action = Action::Replace { available_at: due(job.start, work.env.now) };
    let event = Event::Operate { action, seen_version: None };
    let step = match work.judge(owner, &event)? {
        Ok(step) if step.answer == Answer::Done => step,
        Ok(_) | Err(_) => return Ok(false),
    };
    work.record(owner, &event, step);
    let none = TypeSettings::default();
    let priority = admit::priority(job, work.env.types.get(&job.kind).unwrap_or(&none));
    work.edit(owner, |row| row.priority = priority);
    let payload = payload_of(job).to_owned();
    work.replace_payload(PayloadWrite { job: owner, payload, old: OldPayload::Forget, at: work.env.now })?;
    let key = work.detail(owner)?.key.clone();
    if let Some(mut row) = work.key(key.as_deref().unwrap_or_default())? {
        row.fingerprint = fingerprint(job);
        work.write_key(KeyWrite::Replace { row, from: owner });
    }
    Ok(true)
}
