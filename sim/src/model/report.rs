//! What a worker's call about a job leads to: in time, late, repeated, stale, without a token. Section 3.

use std::sync::Arc;

use tagwerk_core::{AttemptEnd, Cause, ErrorClass, Failure, Outcome, Rejection, Status};
use tagwerk_engine::command::{EffectSaid, Holder, Refusal, Said, WorkerAnswer, WorkerCall};
use tagwerk_engine::settings::LeaseToken;

use super::compare::{self, Payload};
use super::enqueue::Source;
use super::eye::Eye;
use super::follow;
use super::gates::Fate;
use super::job::{Content, Job, Past, is_own};
use super::time::{self, Moment, Setback, expired};
use super::{Contradiction, Judged, Model};
use crate::call::is_report;

/// Who calls, seen from the job.
#[derive(Clone, Copy)]
pub(super) enum Standpoint {
    Holder,
    /// The newest lease was lost and nobody has decided anything since.
    Late(usize),
    /// Its attempt ended by its own report.
    Reported(usize),
    Stale,
    /// Nobody knows the token any more, if anybody ever did.
    Stranger,
}

impl Model {
    /// Applies a worker's call and judges its answer, if there is one. The answer shows the payload if `whole`.
    pub(crate) fn worker_call(
        &mut self,
        call: &WorkerCall,
        (answer, whole): (Option<&Result<WorkerAnswer, Refusal>>, Payload),
        eye: &Eye<'_>,
    ) -> Judged {
        let id = call.id.0;
        if !self.jobs.contains_key(&id) {
            return compare::refused("not-found", Some(id), answer);
        }
        self.settle(id, eye);
        let before = matches!(call.said, Said::Lead { .. }).then(|| self.clone());
        let verdict = self.verdict(call, eye)?;
        let mut led_to = None;
        if let (Said::Lead { follow_ups, .. }, Ok(false), Some(before)) = (&call.said, &verdict, before) {
            match self.lead_on(&follow_ups.enqueue, eye)? {
                Ok(all) => led_to = Some(all),
                Err(refused) => {
                    *self = before;
                    // Jobs with their keys were looked at, and so brought up to date.
                    self.wants((&follow_ups.enqueue, Source::Completed), None, eye);
                    return follow::compare_refused(id, refused, answer);
                }
            }
        }
        let fate = if verdict == Ok(false) { Fate::Counts } else { Fate::ChangesNothing };
        self.throttle(call, (fate, answer))?;
        let job = self.job(id)?;
        let shows_little = matches!(call.said, Said::Heartbeat { .. } | Said::Effect(..));
        let accepted = if shows_little { Payload::Hidden } else { whole };
        match (verdict, answer) {
            (_, None) => Ok(()),
            (Ok(replayed), Some(Ok(got))) if got.replayed == replayed => {
                if got.enqueued != led_to {
                    let what = format!("it must have led to {led_to:?}, the answer says {:?}", got.enqueued);
                    return Err(Contradiction::of(Some(id), what));
                }
                compare::shown(job, &got.job, accepted)
            }
            (Ok(replayed), Some(Ok(_))) => Err(Contradiction::of(
                Some(id),
                format!("the report must be a repetition: {replayed}, it is not said so"),
            )),
            (Ok(_), Some(Err(refusal))) => Err(Contradiction::of(
                Some(id),
                format!("the call must be accepted, it was refused: {refusal}"),
            )),
            (Err(rejection), Some(Ok(_))) => Err(Contradiction::of(
                Some(id),
                format!("the call must be refused ({rejection}), it was accepted"),
            )),
            (Err(want), Some(Err(Refusal::Rejected { rejection, job: full }))) if *rejection == want => {
                compare::shown(job, full, whole)
            }
            (Err(want), Some(Err(got))) => Err(Contradiction::of(
                Some(id),
                format!("the call must be refused so: {want}; it was refused so: {got}"),
            )),
        }
    }

    /// `Ok` with whether it is a repetition, or the refusal. The job has moved where it had to.
    fn verdict(
        &mut self,
        call: &WorkerCall,
        eye: &Eye<'_>,
    ) -> Result<Result<bool, Rejection>, Contradiction> {
        let id = call.id.0;
        let job = self.job(id)?;
        let point = match self.standpoint(job, &call.holder, &call.said) {
            Ok(point) => point,
            Err(rejection) => return Ok(Err(rejection)),
        };
        let is_fact = matches!(&call.said, Said::Effect(_, EffectSaid::Finish { .. } | EffectSaid::Abort));
        if matches!(point, Standpoint::Holder) && job.stopping && !is_fact {
            let now = self.now;
            self.change(id, |job| {
                job.end_attempt(AttemptEnd::Cancelled, now);
                job.acted = true;
                job.rest(Status::Cancelled, None, now);
            });
            return Ok(Err(Rejection::Cancelled));
        }
        let outcome_and_result = match &call.said {
            Said::Report { outcome, result } => Some((outcome, result.as_ref())),
            Said::Lead { result, .. } => Some((&Outcome::Completed, result.as_ref())),
            Said::Throttle { outcome, .. } => Some((outcome, None)),
            Said::Effect(name, said) => return self.effect((id, point), (name, said), eye),
            Said::Heartbeat { .. } | Said::Checkpoint(_) => None,
        };
        match outcome_and_result {
            Some((outcome, result)) => {
                let says_it_is_settled = matches!(outcome, Outcome::Completed | Outcome::Released { .. });
                if says_it_is_settled && matches!(point, Standpoint::Holder | Standpoint::Late(_)) {
                    let names: Vec<Arc<str>> =
                        job.open_effects().map(|effect| effect.name.as_str().into()).collect();
                    if !names.is_empty() {
                        return Ok(Err(Rejection::EffectsOpen { names }));
                    }
                }
                let content = Content { leads_to: leads_to(&call.said), ..content_of(outcome, result) };
                match point {
                    Standpoint::Holder => self.in_time(id, (outcome, content), eye),
                    Standpoint::Late(index) => self.late((id, index), (outcome, content), eye),
                    Standpoint::Reported(index) => {
                        let past = &job.history[index];
                        let same = past.said.as_ref() == Some(&content);
                        let counted = past.end;
                        return Ok(if same { Ok(true) } else { Err(Rejection::AlreadyReported { counted }) });
                    }
                    Standpoint::Stale | Standpoint::Stranger => return Ok(Err(stale(job, &call.said))),
                }
                if let (Outcome::Completed, Some(result)) = (outcome, result) {
                    self.note(id, |job| job.result = Some(result.clone()));
                }
                Ok(Ok(false))
            }
            None => Ok(self.contact(id, &call.said, point)),
        }
    }

    fn contact(&mut self, id: i64, said: &Said, point: Standpoint) -> Result<bool, Rejection> {
        let now = self.now;
        let Some(job) = self.jobs.get(&id) else { return Ok(false) };
        may_contact(job, point)?;
        self.note(id, |job| match said {
            Said::Heartbeat { progress } => {
                if let Some(lease) = &mut job.lease {
                    let extended = lease.expires_at.max(now + lease.length_ms);
                    lease.expires_at = lease.limit_at.map_or(extended, |limit| limit.min(extended));
                }
                if progress.is_some() {
                    job.progress.clone_from(progress);
                }
            }
            Said::Checkpoint(text) => job.checkpoint = Some(text.clone()),
            Said::Report { .. } | Said::Lead { .. } | Said::Throttle { .. } | Said::Effect(..) => {}
        });
        Ok(false)
    }

    fn standpoint(&self, job: &Job, holder: &Holder, said: &Said) -> Result<Standpoint, Rejection> {
        if let Some(token) = &holder.token {
            let is_it = |own: &Option<String>| own.as_ref() == Some(token);
            if job.lease.as_ref().is_some_and(|lease| is_it(&lease.token)) {
                return Ok(Standpoint::Holder);
            }
            let past = job.kept().find(|past| is_it(&past.token));
            return Ok(past.map_or(Standpoint::Stranger, |past| place(job, past)));
        }
        if !is_report(said) || self.settings.lease_token == LeaseToken::Required {
            return Err(Rejection::LeaseRequired);
        }
        let refuse =
            |rejection| Err(if job.status == Status::Cancelled { job.cancelled() } else { rejection });
        if job.leases == 0 {
            return refuse(Rejection::NotRunning { status: job.status });
        }
        if job.earlier_lost() {
            return refuse(Rejection::LeaseRequired);
        }
        let newest = job.lease.as_ref().map(|lease| &lease.worker);
        let newest = newest.or_else(|| job.newest_past().map(|past| &past.worker));
        if holder.worker.is_some() && holder.worker.as_ref() != newest {
            return refuse(Rejection::LeaseRequired);
        }
        if job.lease.is_some() {
            return Ok(Standpoint::Holder);
        }
        Ok(job.newest_past().map_or(Standpoint::Stale, |past| place(job, past)))
    }

    fn in_time(&mut self, id: i64, said: (&Outcome, Content), eye: &Eye<'_>) {
        let now = self.now;
        let (outcome, content) = said;
        let policy = self.policy(id);
        let moment = Moment { now, policy, eye };
        let mut worker = None;
        self.change(id, |job| {
            job.end_attempt(end_of(outcome), now);
            if let Some(past) = job.history.last_mut() {
                past.error = error_of(outcome);
                past.said = Some(content);
                worker = Some(past.worker.clone());
            }
            apply(job, outcome, &moment);
        });
        self.reported(id, outcome, worker);
    }

    /// The report takes the place of the loss: everything goes back to before it, then it is decided as if in time.
    fn late(&mut self, (id, index): (i64, usize), said: (&Outcome, Content), eye: &Eye<'_>) {
        let now = self.now;
        let (outcome, content) = said;
        let policy = self.policy(id);
        let moment = Moment { now, policy, eye };
        let mut worker = None;
        self.change(id, |job| {
            let past = &mut job.history[index];
            if let Some(undo) = past.undo.take() {
                job.retry_count = undo.retry_count;
                job.lease_losses = undo.lease_losses;
                job.verify = undo.verify;
                job.error = undo.error;
            }
            past.end = end_of(outcome);
            past.ended_at = now;
            past.error = error_of(outcome);
            past.late = true;
            past.said = Some(content);
            worker = Some(past.worker.clone());
            apply(job, outcome, &moment);
        });
        self.reported(id, outcome, worker);
    }

    fn reported(&mut self, id: i64, outcome: &Outcome, worker: Option<String>) {
        self.ledger.reported(self.jobs.get(&id), outcome);
        if let (Outcome::Released { .. }, Some(worker)) = (outcome, worker) {
            self.released.push((worker, id));
        }
    }

    /// The server gives back a lease whose answer nobody took. The worker never saw it, so it is not kept from it.
    pub(crate) fn give_back(&mut self, id: i64, bits: u64, eye: &Eye<'_>) {
        self.settle(id, eye);
        let live =
            self.jobs.get(&id).and_then(|job| job.lease.as_ref()).is_some_and(|lease| lease.bits == bits);
        if !live {
            return;
        }
        let reason = eye
            .attempts
            .get(&(id, self.jobs.get(&id).map_or(0, |job| job.leases)))
            .and_then(|attempt| attempt.error.clone());
        let outcome = Outcome::Released { delay_ms: 0, reason };
        let stopping = self.jobs.get(&id).is_some_and(|job| job.stopping);
        let now = self.now;
        if stopping {
            self.change(id, |job| {
                job.end_attempt(AttemptEnd::Cancelled, now);
                job.acted = true;
                job.rest(Status::Cancelled, None, now);
            });
            return;
        }
        let known = self.released.len();
        self.in_time(id, (&outcome, content_of(&outcome, None)), eye);
        self.released.truncate(known);
    }
}

/// What the outcome does to a job whose attempt has ended.
fn apply(job: &mut Job, outcome: &Outcome, moment: &Moment<'_, '_>) {
    match outcome {
        Outcome::Completed => {
            job.verify = false;
            job.rest(Status::Completed, None, moment.now);
        }
        Outcome::Failed { class, error, retry_after_ms } => {
            job.error.clone_from(error);
            time::follow(job, Setback::Reported(*class, *retry_after_ms), moment);
        }
        Outcome::Released { delay_ms, .. } => {
            job.attempt -= 1;
            job.release_count += 1;
            let due = moment.now + delay_ms;
            if job.expires_at.is_some_and(|at| due >= at) {
                let failure: Failure = expired(job, Cause::Reported);
                job.rest(Status::Failed, Some(failure), moment.now);
            } else {
                job.requeue(due, moment.now);
            }
        }
    }
}

/// Where the holder of an attempt that has ended stands.
fn place(job: &Job, past: &Past) -> Standpoint {
    let index = job.history.iter().position(|own| own.seq == past.seq).unwrap_or_default();
    if is_own(past.end) {
        return Standpoint::Reported(index);
    }
    let by_time = match job.status {
        Status::Pending => true,
        Status::Failed => job.failure.is_some_and(|failure| {
            matches!(failure.cause, Cause::LeaseExpired | Cause::TimedOut | Cause::MaxAge)
        }),
        Status::Running | Status::Completed | Status::Cancelled => false,
    };
    let is_lost = matches!(past.end, AttemptEnd::LeaseExpired | AttemptEnd::TimedOut) && past.undo.is_some();
    if is_lost && by_time && past.seq == job.leases && !job.acted {
        Standpoint::Late(index)
    } else {
        Standpoint::Stale
    }
}

/// What only the holder may do while it works.
pub(super) fn may_contact(job: &Job, point: Standpoint) -> Result<(), Rejection> {
    match point {
        Standpoint::Holder => Ok(()),
        Standpoint::Late(index) => Err(late_refusal(&job.history[index])),
        Standpoint::Reported(_) | Standpoint::Stale | Standpoint::Stranger => Err(stale_effect(job)),
    }
}

fn stale(job: &Job, said: &Said) -> Rejection {
    if is_report(said) && job.status == Status::Completed {
        return Rejection::LeaseLost { may_report: false };
    }
    stale_effect(job)
}

/// What who has nothing to say hears of anything but a report.
pub(super) fn stale_effect(job: &Job) -> Rejection {
    match job.status {
        Status::Cancelled => job.cancelled(),
        Status::Completed => Rejection::NotRunning { status: Status::Completed },
        _ => Rejection::LeaseLost { may_report: false },
    }
}

const fn late_refusal(past: &Past) -> Rejection {
    match past.end {
        AttemptEnd::TimedOut => Rejection::TimedOut { may_report: true },
        _ => Rejection::LeaseLost { may_report: true },
    }
}

const fn end_of(outcome: &Outcome) -> AttemptEnd {
    match outcome {
        Outcome::Completed => AttemptEnd::Completed,
        Outcome::Failed { class, .. } => AttemptEnd::Failed(*class),
        Outcome::Released { .. } => AttemptEnd::Released,
    }
}

fn error_of(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Failed { error, .. } => error.clone(),
        Outcome::Released { reason, .. } => reason.clone(),
        Outcome::Completed => None,
    }
}

fn content_of(outcome: &Outcome, result: Option<&String>) -> Content {
    let (outcome, class): (_, Option<ErrorClass>) = match outcome {
        Outcome::Completed => ("completed", None),
        Outcome::Failed { class, .. } => ("failed", Some(*class)),
        Outcome::Released { .. } => ("released", None),
    };
    Content { outcome, class, result: result.cloned(), leads_to: None }
}

fn leads_to(said: &Said) -> Option<String> {
    match said {
        Said::Lead { follow_ups, .. } => Some(follow_ups.sent.clone()),
        Said::Report { .. }
        | Said::Throttle { .. }
        | Said::Heartbeat { .. }
        | Said::Checkpoint(_)
        | Said::Effect(..) => None,
    }
}
