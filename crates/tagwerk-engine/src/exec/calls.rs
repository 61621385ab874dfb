//! Calls of workers about jobs that they hold: reports, heartbeats, checkpoints.

use std::sync::Arc;

use tagwerk_core::{Answer, Call, Caller, EffectCall, Event, JobId, LeaseBits, Outcome, Rejection, Report};

use crate::command::{EffectSaid, Holder, Refusal, Said, Throttle, WorkerAnswer, WorkerCall};
use crate::exec::follow;
use crate::store::StoreResult;
use crate::tokens::{lead_hash, report_hash};
use crate::work::{View, Work};

/// Executes one call. The row must have been loaded (or is loaded now, one by one).
pub(crate) fn worker_call(
    work: &mut Work<'_>,
    call: &WorkerCall,
    view: View,
) -> StoreResult<Result<WorkerAnswer, Refusal>> {
    let id = call.id;
    work.load(&[id])?;
    if let Some(refusal) = work.absent(id) {
        return Ok(Err(refusal));
    }
    let caller = resolve(work, id, &call.holder)?;
    let worker = match &caller {
        Caller::Past(attempt) => Some(attempt.worker.clone()),
        _ => work.row(id).and_then(|row| row.job.lease.as_ref()).map(|lease| lease.worker.clone()),
    };
    let seq = match &caller {
        Caller::Past(attempt) => Some(attempt.seq),
        Caller::Live(_) | Caller::Stranger | Caller::NoToken { .. } => None,
    };
    let event = event_of(work, caller, &call.said);
    let step = match work.judge(id, &event)? {
        Ok(step) => step,
        Err(rejection) => {
            if let Some(seq) = seq.filter(|_| is_stale(&rejection)) {
                work.note_refused(id, seq, name_of(&call.said));
            }
            return Ok(Err(Refusal::Rejected { rejection, job: work.full(id, view)? }));
        }
    };
    let answer = step.answer.clone();
    // Judged before anything is recorded: a job that cannot be created leaves the report unmade.
    let plan = match &call.said {
        Said::Lead { follow_ups, .. } if answer == Answer::Done => match follow::judge(work, id, follow_ups)?
        {
            Ok(plan) => Some(plan),
            Err(refusal) => return Ok(Err(refusal)),
        },
        _ => None,
    };
    work.record(id, &event, step);
    match answer {
        Answer::Refused(rejection) => {
            let seq = work.row(id).map_or(0, |row| row.job.leases);
            work.note_refused(id, seq, name_of(&call.said));
            return Ok(Err(Refusal::Rejected { rejection, job: work.full(id, view)? }));
        }
        Answer::Replayed => {}
        Answer::Done => keep_note(work, id, &call.said),
    }
    let unknown_limit = match &call.said {
        Said::Throttle { throttle, .. } => hold_back(work, throttle, &answer)?,
        Said::Report { .. }
        | Said::Lead { .. }
        | Said::Heartbeat { .. }
        | Said::Checkpoint(_)
        | Said::Effect(..) => false,
    };
    let enqueued = plan.map(|plan| follow::create(work, plan)).transpose()?;
    work.effects.heard.extend(worker);
    let shows_little = matches!(call.said, Said::Heartbeat { .. } | Said::Effect(..));
    let view = if shows_little { View::RowOnly } else { view };
    let replayed = answer == Answer::Replayed;
    Ok(Ok(WorkerAnswer { job: work.full(id, view)?, replayed, unknown_limit, enqueued }))
}

/// Gives back a lease whose answer nobody received. Nothing to do if it is no longer live.
pub(crate) fn give_back(work: &mut Work<'_>, id: JobId, bits: LeaseBits) -> StoreResult<()> {
    work.load(&[id])?;
    if work.absent(id).is_some() {
        return Ok(());
    }
    let reason = Some("the claimer was gone before its answer could be delivered".to_owned());
    let outcome = Outcome::Released { delay_ms: 0, reason };
    let hash = report_hash(&outcome, None);
    let event = Event::Unheard(bits, Report { outcome, hash });
    if let Ok(step) = work.judge(id, &event)? {
        let known = work.effects.released.len();
        work.record(id, &event, step);
        // The worker never saw it, so it is not to be kept from it.
        work.effects.released.truncate(known);
    }
    Ok(())
}

/// Finds out whose token it is.
fn resolve(work: &mut Work<'_>, id: JobId, holder: &Holder) -> StoreResult<Caller> {
    let live = work.row(id).and_then(|row| row.job.lease.as_ref()).map(|lease| lease.bits);
    let Some(token) = &holder.token else {
        let newest = if live.is_some() { None } else { work.history(id)?.pop().map(Box::new) };
        return Ok(Caller::NoToken { worker: holder.worker.clone(), newest });
    };
    let tokens = work.env.tokens;
    if let Some(bits) = live.filter(|bits| tokens.matches(token, id, *bits)) {
        return Ok(Caller::Live(bits));
    }
    let past = work.history(id)?.into_iter().rev().find(|attempt| tokens.matches(token, id, attempt.bits));
    Ok(past.map_or(Caller::Stranger, |attempt| Caller::Past(Box::new(attempt))))
}

/// Closes the limit that a failure names, if the failure counts. True if there is none of that name.
fn hold_back(work: &mut Work<'_>, throttle: &Throttle, answer: &Answer) -> StoreResult<bool> {
    if !work.knows_limit(&throttle.limit.name) {
        return Ok(true);
    }
    if *answer == Answer::Done {
        work.tx.hold_limit(&throttle.limit, work.env.now.plus_ms(throttle.for_ms))?;
    }
    Ok(false)
}

fn event_of(work: &Work<'_>, caller: Caller, said: &Said) -> Event {
    match said {
        Said::Heartbeat { .. } => Event::Heartbeat(caller),
        Said::Checkpoint(_) => Event::Checkpoint(caller),
        Said::Effect(name, said) => Event::Effect(caller, Arc::clone(name), effect_call(work, said)),
        Said::Report { outcome, result } => {
            let hash = report_hash(outcome, result.as_deref());
            Event::Report(caller, Report { outcome: outcome.clone(), hash })
        }
        Said::Lead { result, follow_ups } => {
            let hash = lead_hash(result.as_deref(), &follow_ups.sent);
            Event::Report(caller, Report { outcome: Outcome::Completed, hash })
        }
        Said::Throttle { outcome, .. } => {
            let hash = report_hash(outcome, None);
            Event::Report(caller, Report { outcome: outcome.clone(), hash })
        }
    }
}

fn effect_call(work: &Work<'_>, said: &EffectSaid) -> EffectCall {
    match said {
        EffectSaid::Begin { key } => EffectCall::Begin { own: key.clone(), fresh: fresh_key(work) },
        EffectSaid::Finish { result } => EffectCall::Finish { result: result.clone() },
        EffectSaid::Abort => EffectCall::Abort,
    }
}

/// 128 random bits. Never made from the id, which comes back after a restore, when the remote system still knows the key.
fn fresh_key(work: &Work<'_>) -> Arc<str> {
    let (high, low) = (work.env.entropy.u64(), work.env.entropy.u64());
    format!("{high:016x}{low:016x}").into()
}

/// Keeps what came along with an accepted call.
fn keep_note(work: &mut Work<'_>, id: JobId, said: &Said) {
    match said {
        Said::Heartbeat { progress: Some(progress) } => {
            work.edit(id, |row| row.note.progress = Some(progress.clone()));
        }
        Said::Checkpoint(checkpoint) => work.edit(id, |row| row.note.checkpoint = Some(checkpoint.clone())),
        Said::Report { outcome: Outcome::Completed, result } | Said::Lead { result, .. } => {
            if result.is_some() {
                work.edit(id, |row| row.note.result.clone_from(result));
            }
        }
        Said::Heartbeat { progress: None }
        | Said::Report { .. }
        | Said::Throttle { .. }
        | Said::Effect(..) => {}
    }
}

const fn name_of(said: &Said) -> Call {
    match said {
        Said::Heartbeat { .. } => Call::Heartbeat,
        Said::Checkpoint(_) => Call::Checkpoint,
        Said::Effect(_, EffectSaid::Begin { .. }) => Call::EffectBegin,
        Said::Effect(_, EffectSaid::Finish { .. }) => Call::EffectFinish,
        Said::Effect(_, EffectSaid::Abort) => Call::EffectAbort,
        Said::Report { outcome: Outcome::Completed, .. } | Said::Lead { .. } => Call::Complete,
        Said::Report { outcome: Outcome::Failed { .. }, .. } | Said::Throttle { .. } => Call::Fail,
        Said::Report { outcome: Outcome::Released { .. }, .. } => Call::Release,
    }
}

/// Refusals that mean "too late"; they are kept in the history of the attempt.
const fn is_stale(rejection: &Rejection) -> bool {
    matches!(
        rejection,
        Rejection::LeaseLost { .. }
            | Rejection::TimedOut { .. }
            | Rejection::Cancelled
            | Rejection::Superseded { .. }
            | Rejection::NotRunning { .. }
            | Rejection::AlreadyReported { .. }
    )
}
