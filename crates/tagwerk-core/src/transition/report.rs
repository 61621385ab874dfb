//! Complete, fail and release: in time, late and repeated.

use super::caller::{self, Place};
use super::setback::{self, Setback};
use super::{History, Step, effect, operate, state};
use crate::{Attempt, AttemptEnd, Before, Caller, Cause, Ctx, Job, LeaseBits, Outcome, Rejection, Report};

/// Judges a report by who sends it.
pub(super) fn report(job: &Job, caller: &Caller, report: &Report, ctx: &Ctx) -> Result<Step, Rejection> {
    match place(job, caller, ctx)? {
        Place::Holder(_) if job.cancel_requested => Ok(operate::cancel_at_contact(job, ctx.now)),
        Place::Holder(_) => {
            refuse_open(job, report)?;
            Ok(in_time(job, report, ctx))
        }
        Place::Late(attempt, before) => {
            refuse_open(job, report)?;
            Ok(late(job, (attempt, before), report, ctx))
        }
        Place::Reported(attempt) => repeated(job, attempt, report),
        Place::Stale => Err(caller::stale(job, report.call())),
    }
}

fn place<'a>(job: &'a Job, caller: &'a Caller, ctx: &Ctx) -> Result<Place<'a>, Rejection> {
    match caller {
        Caller::NoToken { .. } if ctx.require_lease => Err(Rejection::LeaseRequired),
        Caller::NoToken { worker, newest } => {
            caller::place_without_token(job, worker.as_deref(), newest.as_deref())
        }
        _ => Ok(caller::place_by_token(job, caller).unwrap_or(Place::Stale)),
    }
}

/// The server gives back a lease of which nobody has heard. What earlier attempts have begun stays in doubt: nothing was asked
/// of whoever did not get the job.
pub(super) fn unheard(job: &Job, bits: LeaseBits, report: &Report, ctx: &Ctx) -> Result<Step, Rejection> {
    match place(job, &Caller::Live(bits), ctx)? {
        Place::Holder(_) if job.cancel_requested => Ok(operate::cancel_at_contact(job, ctx.now)),
        Place::Holder(_) => Ok(in_time(job, report, ctx)),
        _ => Err(caller::stale(job, report.call())),
    }
}

/// "All is well" and "nothing happened" cannot be said while it is open what became of an effect. That it failed can.
fn refuse_open(job: &Job, report: &Report) -> Result<(), Rejection> {
    match report.outcome {
        Outcome::Completed | Outcome::Released { .. } => effect::refuse_open(job),
        Outcome::Failed { .. } => Ok(()),
    }
}

/// The holder's report ends its attempt.
fn in_time(job: &Job, report: &Report, ctx: &Ctx) -> Step {
    let mut next = job.clone();
    let ended = state::end_attempt(&mut next, report.end(), ctx.now);
    apply(&mut next, &report.outcome, ctx);
    let attempt =
        ended.map(|attempt| Attempt { error: report.error().cloned(), report: Some(report.hash), ..attempt });
    state::done(next, state::appended(attempt), ctx.now)
}

/// A late report takes the place of the loss: the counters go back to before it, then it is decided as if in time.
fn late(job: &Job, (lost, before): (&Attempt, &Before), report: &Report, ctx: &Ctx) -> Step {
    let mut next = job.clone();
    next.retry_count = before.retry_count;
    next.lease_losses = before.lease_losses;
    next.verify = before.verify;
    next.error.clone_from(&before.error);
    next.newest_lost = false;
    apply(&mut next, &report.outcome, ctx);
    let attempt = Attempt {
        ended_at: ctx.now,
        end: report.end(),
        error: report.error().cloned(),
        late: true,
        report: Some(report.hash),
        before: None,
        ..lost.clone()
    };
    state::done(next, History::Amend(Box::new(attempt)), ctx.now)
}

/// The first report of a lease counts. The same again is answered as before; another is refused.
fn repeated(job: &Job, attempt: &Attempt, report: &Report) -> Result<Step, Rejection> {
    if attempt.report == Some(report.hash) {
        Ok(Step::replayed(job))
    } else {
        Err(Rejection::AlreadyReported { counted: attempt.end })
    }
}

/// What the outcome does to the job, whose attempt has ended.
fn apply(job: &mut Job, outcome: &Outcome, ctx: &Ctx) {
    match outcome {
        Outcome::Completed => {
            job.verify = false;
            state::complete(job, ctx.now);
        }
        Outcome::Failed { class, error, retry_after_ms } => {
            job.error.clone_from(error);
            let setback = Setback::Reported { class: *class, retry_after_ms: *retry_after_ms };
            setback::follow(job, setback, ctx);
        }
        Outcome::Released { delay_ms, .. } => release(job, *delay_ms, ctx),
    }
}

/// Given back unused: the attempt's number is free again, nothing is counted against the job.
///
/// `verify` stays as it was. The attempt that gives the job back has looked up nothing, so clearing it would make the
/// next one repeat an uncertain effect blindly.
fn release(job: &mut Job, delay_ms: i64, ctx: &Ctx) {
    job.attempt = job.attempt.saturating_sub(1);
    job.release_count = job.release_count.saturating_add(1);
    let due = ctx.now.plus_ms(delay_ms.max(0));
    if setback::is_too_late(job, due) {
        state::review(job, setback::expired(job, Cause::Reported), ctx.now);
    } else {
        state::requeue(job, due, ctx.now);
    }
}

impl Report {
    /// How the attempt ends that is reported so.
    const fn end(&self) -> AttemptEnd {
        match self.outcome {
            Outcome::Completed => AttemptEnd::Completed,
            Outcome::Failed { class, .. } => AttemptEnd::Failed(class),
            Outcome::Released { .. } => AttemptEnd::Released,
        }
    }

    const fn error(&self) -> Option<&String> {
        match &self.outcome {
            Outcome::Failed { error, .. } => error.as_ref(),
            Outcome::Released { reason, .. } => reason.as_ref(),
            Outcome::Completed => None,
        }
    }
}
