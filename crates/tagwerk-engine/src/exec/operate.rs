//! What operators do to single jobs.

use tagwerk_core::idempotency;
use tagwerk_core::{Action, Answer, Assumed, Call, Event, JobId};

use crate::command::{KeyFate, Operate, OperateAnswer, Refusal};
use crate::exec::enqueue::{standing, take_key};
use crate::exec::{admit, retention, supersede};
use crate::row::{KeyRow, KeyWrite};
use crate::store::{Listed, OldPayload, PayloadWrite, StoreError, StoreResult, Unreadable};
use crate::work::{View, Work};

/// Executes an operator's call.
pub(crate) fn operate(work: &mut Work<'_>, call: &Operate) -> StoreResult<Result<OperateAnswer, Refusal>> {
    let id = call.id;
    work.load(&[id])?;
    if let Some(Unreadable(why)) = work.damage(id)? {
        return on_damaged(work, call, why);
    }
    if let Some(refusal) = work.absent(id) {
        return Ok(Err(refusal));
    }
    if let Some(refusal) = too_large(work, call) {
        return Ok(Err(refusal));
    }
    let event = Event::Operate { action: call.action.clone(), seen_version: call.seen_version };
    let step = match work.judge(id, &event)? {
        Ok(step) => step,
        Err(rejection) => return Ok(Err(Refusal::Rejected { rejection, job: work.full(id, View::Whole)? })),
    };
    if let Some(assumed) = &call.assume
        && let Some(refusal) = nothing_in_doubt(work, id, assumed)
    {
        return Ok(Err(refusal));
    }
    let done = step.answer == Answer::Done;
    if done
        && is_retry(&call.action)
        && let Err(refusal) = take_key_back(work, id)?
    {
        return Ok(Err(refusal));
    }
    let was_superseded = work.row(id).is_some_and(|row| row.job.superseded_by.is_some());
    if call.action == Action::Unblock && work.row(id).is_none_or(|row| row.order.is_none()) {
        return Ok(Err(Refusal::NotHolding(work.full(id, View::Whole)?)));
    }
    work.record(id, &event, step);
    if call.action == Action::Unblock {
        work.leave_order(id);
    }
    if done {
        if was_superseded && is_retry(&call.action) {
            supersede::reopen(work, id)?;
        }
        if let Some(assumed) = &call.assume {
            assume_effects(work, id, assumed)?;
        }
        work.note_action(id, name_of(&call.action), call.note());
        if let Some(payload) = &call.payload {
            let write =
                PayloadWrite { job: id, payload: payload.clone(), old: OldPayload::Keep, at: work.env.now };
            work.replace_payload(write)?;
        }
    }
    if call.key == KeyFate::Free {
        free_key(work, id)?;
    }
    let job = work.full(id, View::Whole)?;
    if call.action == Action::Delete {
        retention::erase(work, &[(id, job.detail.key.clone())])?;
    }
    Ok(Ok(OperateAnswer { job: Listed::Job(job), replayed: !done && call.action != Action::Delete }))
}

/// What was looked up and is not in doubt any more was said meanwhile by a worker, and may be something else.
fn nothing_in_doubt(work: &Work<'_>, id: JobId, assumed: &Assumed) -> Option<Refusal> {
    let job = &work.row(id)?.job;
    let is_in_doubt = |name: &str| job.effects_in_doubt().any(|effect| *effect.name == *name);
    let message = match assumed {
        Assumed::All(_) if job.effects_in_doubt().next().is_some() => return None,
        Assumed::All(_) => "no effect of this job is in doubt; look again, and leave it out".to_owned(),
        Assumed::Named(known) => {
            let (name, _) = known.iter().find(|(name, _)| !is_in_doubt(name))?;
            format!("{name} is not in doubt in this job; look again, and leave it out")
        }
    };
    Some(Refusal::Invalid { field: "assume", message })
}

/// Takes over what a person has found out about effects in doubt.
fn assume_effects(work: &mut Work<'_>, id: JobId, assumed: &Assumed) -> StoreResult<()> {
    let event = Event::Assume(assumed.clone());
    match work.judge(id, &event)? {
        Ok(step) => work.record(id, &event, step),
        Err(rejection) => return Err(StoreError::Other(format!("what was retried is not: {rejection}"))),
    }
    Ok(())
}

/// A new payload keeps to what the type allows now.
fn too_large(work: &Work<'_>, call: &Operate) -> Option<Refusal> {
    let settings = work.env.types.get(&*work.row(call.id)?.lane.kind)?;
    admit::payload(settings, call.payload.as_deref()?)
}

/// A job that cannot be read can be deleted and nothing else. Not by who names the version that was seen: it cannot be
/// compared.
fn on_damaged(
    work: &mut Work<'_>,
    call: &Operate,
    why: String,
) -> StoreResult<Result<OperateAnswer, Refusal>> {
    let id = call.id;
    if call.action != Action::Delete || call.seen_version.is_some() {
        return Ok(Err(Refusal::JobDamaged(id)));
    }
    work.erase_damaged(id)?;
    Ok(Ok(OperateAnswer { job: Listed::Damaged { id, why }, replayed: false }))
}

/// A retry from review takes the job's idempotency key back, unless another job holds it by now. It holds from now on as
/// this job says, not as whoever had it meanwhile.
fn take_key_back(work: &mut Work<'_>, id: JobId) -> StoreResult<Result<(), Refusal>> {
    let detail = work.detail(id)?.clone();
    let Some(key) = detail.key else { return Ok(Ok(())) };
    let held = work.key(&key)?;
    if held.as_ref().is_some_and(|row| row.owner == id) {
        return Ok(Ok(()));
    }
    let types = work.env.types;
    let of_type = work.row(id).and_then(|row| types.get(&*row.lane.kind));
    let scope = detail.scope.or(of_type.and_then(|set| set.scope)).unwrap_or_default();
    let ttl_ms = detail.ttl_ms.or(of_type.and_then(|set| set.ttl_ms)).unwrap_or(work.env.settings.ttl_ms);
    if let Some(row) = &held
        && work.is_damaged(row.owner)?
    {
        return Ok(Err(Refusal::JobDamaged(row.owner)));
    }
    if let Some(row) = held
        && let Some(standing) = standing(work, &row)?
        && idempotency::holds(row.scope, row.ttl_ms, &standing, work.env.now)
    {
        return Ok(Err(Refusal::KeyHeld(row.owner)));
    }
    let fingerprint = detail.fingerprint.unwrap_or_default();
    take_key(work, KeyRow { key, owner: id, scope, ttl_ms, fingerprint, tombstone: None })?;
    Ok(Ok(()))
}

fn free_key(work: &mut Work<'_>, id: JobId) -> StoreResult<()> {
    let Some(key) = work.detail(id)?.key.clone() else { return Ok(()) };
    if work.key(&key)?.is_some_and(|row| row.owner == id) {
        work.write_key(KeyWrite::Delete { key, owner: id });
    }
    Ok(())
}

const fn is_retry(action: &Action) -> bool {
    matches!(action, Action::Retry { .. } | Action::ForceRetry { .. })
}

const fn name_of(action: &Action) -> Call {
    match action {
        Action::Cancel { .. } => Call::Cancel,
        Action::Retry { .. } | Action::ForceRetry { .. } => Call::Retry,
        Action::Discard => Call::Discard,
        Action::ForceFail { .. } => Call::ForceFail,
        Action::Delete => Call::Delete,
        Action::Replace { .. } => Call::Replace,
        Action::Unblock => Call::Unblock,
    }
}
