//! The effect journal: who may begin, finish and abort, and what a person may say about it.

use std::sync::Arc;

use super::caller::{self, Place};
use super::contact::unversioned;
use super::{Step, operate};
use crate::effect::{Assume, Assumed, Effect, EffectCall, EffectState};
use crate::{Call, Caller, Job, Lease, Rejection, Timestamp, limits};

/// Judges a call about the effect with this name.
pub(super) fn effect(
    job: &Job,
    caller: &Caller,
    (name, call): (&Arc<str>, &EffectCall),
    now: Timestamp,
) -> Result<Step, Rejection> {
    match call {
        EffectCall::Begin { own, fresh } => {
            super::contact::holder(job, caller, Call::EffectBegin)?;
            if job.cancel_requested {
                return Ok(operate::cancel_at_contact(job, now));
            }
            begin(job, name, own.as_ref().unwrap_or(fresh), now)
        }
        EffectCall::Finish { result } => {
            may_finish(job, caller)?;
            finish(job, name, result.as_ref(), now)
        }
        EffectCall::Abort => {
            may_abort(job, caller)?;
            abort(job, name, now)
        }
    }
}

/// `key` counts at the first begin only: whatever comes after, the remote system knows the effect by one key.
fn begin(job: &Job, name: &Arc<str>, key: &Arc<str>, now: Timestamp) -> Result<Step, Rejection> {
    let mut next = job.clone();
    match next.effects.iter_mut().find(|effect| effect.name == *name) {
        // It is in doubt, done, or begun by this lease: what there is stands, its key included.
        Some(effect) if effect.state != EffectState::Aborted => return Ok(Step::replayed(job)),
        Some(effect) => {
            effect.state = EffectState::Open;
            effect.seq = job.leases;
            effect.begun_at = now;
            effect.ended_at = None;
            effect.assumed = false;
        }
        None if job.effects.len() >= limits::EFFECTS_PER_JOB => return Err(Rejection::TooManyEffects),
        None => next.effects.push(Effect {
            name: Arc::clone(name),
            state: EffectState::Open,
            key: Arc::clone(key),
            seq: job.leases,
            begun_at: now,
            ended_at: None,
            assumed: false,
            result: None,
        }),
    }
    Ok(unversioned(next))
}

/// That something happened is a fact, whoever says so: the holder, a late worker, or one whose word counts for nothing else any
/// more, also when the job was cancelled. What is completed has no effect of which this could be news.
fn may_finish(job: &Job, caller: &Caller) -> Result<(), Rejection> {
    match caller {
        Caller::NoToken { .. } => Err(Rejection::LeaseRequired),
        Caller::Stranger => Err(caller::stale(job, Call::EffectFinish)),
        Caller::Live(_) | Caller::Past(_) => match caller::place_by_token(job, caller) {
            Some(Place::Stale) if matches!(caller, Caller::Live(_)) => {
                Err(caller::stale(job, Call::EffectFinish))
            }
            _ => Ok(()),
        },
    }
}

fn finish(job: &Job, name: &str, result: Option<&Arc<str>>, now: Timestamp) -> Result<Step, Rejection> {
    let Some(known) = job.effect(name) else { return Err(Rejection::EffectNotBegun) };
    // Somebody has looked it up and said that it happened; what came of it, only its worker knows.
    let is_news = known.state != EffectState::Done || (known.assumed && known.result.is_none());
    if !is_news {
        let same = known.result.as_ref() == result;
        return if same { Ok(Step::replayed(job)) } else { Err(Rejection::EffectFinished) };
    }
    if job.status == crate::Status::Completed {
        return Err(caller::stale(job, Call::EffectFinish));
    }
    Ok(ended(job, name, now, |effect| {
        effect.state = EffectState::Done;
        effect.result = result.cloned();
        effect.assumed = false;
    }))
}

/// Only who still may report can know that nothing happened: a newer attempt may have done it by now.
fn may_abort(job: &Job, caller: &Caller) -> Result<(), Rejection> {
    match caller::place_by_token(job, caller) {
        Some(Place::Holder(Lease { .. }) | Place::Late(..)) => Ok(()),
        Some(Place::Reported(_) | Place::Stale) => Err(caller::stale(job, Call::EffectAbort)),
        None => Err(Rejection::LeaseRequired),
    }
}

fn abort(job: &Job, name: &str, now: Timestamp) -> Result<Step, Rejection> {
    match job.effect(name).map(|effect| effect.state) {
        None => Err(Rejection::EffectNotBegun),
        Some(EffectState::Aborted) => Ok(Step::replayed(job)),
        Some(EffectState::Done) => Err(Rejection::EffectFinished),
        Some(EffectState::Open) => Ok(ended(job, name, now, |effect| effect.state = EffectState::Aborted)),
    }
}

fn ended(job: &Job, name: &str, now: Timestamp, end: impl FnOnce(&mut Effect)) -> Step {
    let mut next = job.clone();
    if let Some(effect) = next.effects.iter_mut().find(|effect| *effect.name == *name) {
        effect.ended_at = Some(now);
        end(effect);
    }
    unversioned(next)
}

/// What a person has found out about effects in doubt. It comes with a retry, which has its own version.
pub(super) fn assume(job: &Job, assumed: &Assumed, now: Timestamp) -> Step {
    let mut next = job.clone();
    for effect in next.effects.iter_mut().filter(|effect| effect.is_open()) {
        let Some(found) = assumed.about(&effect.name) else { continue };
        effect.state = match found {
            Assume::Done => EffectState::Done,
            Assume::NotDone => EffectState::Aborted,
        };
        effect.ended_at = Some(now);
        effect.assumed = true;
    }
    unversioned(next)
}

/// Whether effects stand in the way of a report that says "all is well" or "nothing happened".
pub(super) fn refuse_open(job: &Job) -> Result<(), Rejection> {
    let open: Vec<Arc<str>> = job.open_effects().map(|effect| Arc::clone(&effect.name)).collect();
    if open.is_empty() { Ok(()) } else { Err(Rejection::EffectsOpen { names: open }) }
}
