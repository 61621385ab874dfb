//! Calls about limits, failures that hold one back, and what `explain` must say of limits and queues.

use tagwerk_core::{Status, Timestamp};
use tagwerk_engine::command::{
    EnqueueJob, LimitAnswer, LimitCall, LimitState, Refusal, Said, WorkerAnswer, WorkerCall,
};
use tagwerk_engine::query::{Explanation, WhyKind};
use tagwerk_engine::settings::UnknownLimits;

use tagwerk_engine::row::LimitRef;

use super::job::Job;
use super::starts::{Open, Span, open_by};
use super::{Contradiction, Judged, Model};

/// What becomes of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Counts,
    /// It was repeated or refused.
    ChangesNothing,
}

impl Model {
    /// Makes the limits that a job names and that there are not, where that is wanted.
    pub(super) fn make_limits(&mut self, job: &EnqueueJob) {
        if self.settings.unknown_limits != UnknownLimits::Create {
            return;
        }
        for limit in job.special.iter().flat_map(|special| &special.limits) {
            self.capacity.limits.entry(limit.name.clone()).or_default();
        }
    }

    /// Applies a call about limits and judges its answer, if there is one.
    pub(super) fn limit(
        &mut self,
        call: &LimitCall,
        answer: Option<&Result<LimitAnswer, Refusal>>,
    ) -> Judged {
        let wrong = |what: String| Err(Contradiction::of(None, what));
        let is_known = |name: &String| self.capacity.limits.contains_key(name);
        match (call, answer) {
            (
                LimitCall::Show(name) | LimitCall::Delete(name) | LimitCall::Open(LimitRef { name, .. }),
                answer,
            ) if !is_known(name) => match answer {
                None => Ok(()),
                Some(Err(Refusal::NoSuchLimit(told))) if told == name => Ok(()),
                Some(other) => wrong(format!("there is no limit {name}, the answer is {other:?}")),
            },
            (LimitCall::Open(limit), answer) => {
                self.capacity.open(limit);
                match answer {
                    None => Ok(()),
                    Some(Ok(LimitAnswer::Limits(states))) => {
                        self.limits_shown(std::slice::from_ref(&limit.name), states)
                    }
                    Some(other) => wrong(format!("{limit} was opened, the answer is {other:?}")),
                }
            }
            (LimitCall::List | LimitCall::Show(_), None) => Ok(()),
            (LimitCall::List, Some(Ok(LimitAnswer::Limits(states)))) => {
                let want: Vec<String> = self.capacity.limits.keys().cloned().collect();
                self.limits_shown(&want, states)
            }
            (LimitCall::Show(name), Some(Ok(LimitAnswer::Limits(states)))) => {
                self.limits_shown(std::slice::from_ref(name), states)
            }
            (LimitCall::Put(name, settings), answer) => {
                let was_there = self.capacity.put_limit(name, Some(settings));
                match answer {
                    None => Ok(()),
                    Some(Ok(LimitAnswer::Put { limit, is_new })) if *is_new != was_there => {
                        self.limits_shown(std::slice::from_ref(name), std::slice::from_ref(&**limit))
                    }
                    Some(other) => wrong(format!("limit {name} was there: {was_there}, answer: {other:?}")),
                }
            }
            (LimitCall::Delete(name), answer) => {
                let (waiting, running) = self.jobs_of_limit(name);
                if waiting + running == 0 {
                    self.capacity.put_limit(name, None);
                }
                match answer {
                    None => Ok(()),
                    Some(Ok(LimitAnswer::Deleted)) if waiting + running == 0 => Ok(()),
                    Some(Err(Refusal::LimitInUse {
                        name: told,
                        waiting: of_waiting,
                        running: of_running,
                        types,
                    })) if waiting + running > 0
                        && types.is_empty()
                        && (told, *of_waiting, *of_running) == (name, waiting, running) =>
                    {
                        Ok(())
                    }
                    Some(other) => wrong(format!(
                        "{waiting} waiting and {running} running jobs name {name}, the answer is {other:?}"
                    )),
                }
            }
            (_, Some(other)) => wrong(format!("a call about limits was answered with {other:?}")),
        }
    }

    /// Jobs that a limit is needed for: such as wait or may come back from review, and such as run.
    fn jobs_of_limit(&self, name: &str) -> (u64, u64) {
        let (mut waiting, mut running) = (0, 0);
        for job in self.jobs.values().filter(|job| job.limits().iter().any(|limit| limit.name == name)) {
            waiting += u64::from(matches!(job.status, Status::Pending | Status::Failed));
            running += u64::from(job.status == Status::Running);
        }
        (waiting, running)
    }

    fn limits_shown(&self, want: &[String], states: &[LimitState]) -> Judged {
        let names: Vec<&String> = states.iter().map(|state| &state.row.name).collect();
        let is_right = names.iter().copied().eq(want)
            && states.iter().all(|state| {
                self.capacity.limits.get(&state.row.name) == Some(&state.row.settings)
                    && state.at == Timestamp::from_millis(self.now)
            });
        if !is_right {
            return Err(Contradiction::of(None, format!("limits {want:?} must be shown, not {states:?}")));
        }
        for limit in self.capacity.gates.keys() {
            let Some(state) = states.iter().find(|state| state.row.name == limit.name) else { continue };
            let until = |at: Option<i64>| at.filter(|until| *until > self.now);
            let told = state.of(limit).hold_until.map(Timestamp::as_millis);
            let want = self.capacity.held_until(limit);
            if until(told) != until(want) {
                let what = format!("{limit} is held until {want:?}, the answer says {told:?}");
                return Err(Contradiction::of(None, what));
            }
        }
        self.running_shown(states)
    }

    /// Numbers of running jobs; what is over and not yet ended counts or not.
    fn running_shown(&self, states: &[LimitState]) -> Judged {
        let used = states.iter().flat_map(|state| &state.uses);
        let named = self
            .jobs
            .values()
            .flat_map(Job::limits)
            .filter(|limit| states.iter().any(|state| state.row.name == limit.name));
        for limit in used.clone().map(|used| &used.limit).chain(named) {
            let under = || {
                let running = self.jobs.values().filter(|job| job.status == Status::Running);
                running.filter(|job| job.limits().contains(limit))
            };
            let most = under().count();
            let least = under().filter(|job| !job.is_overdue(self.now)).count();
            let told = used.clone().find(|used| used.limit == *limit).map_or(0, |used| used.running as usize);
            if !(least..=most).contains(&told) {
                let what = format!("{least} to {most} jobs run under {limit}, the answer says {told}");
                return Err(Contradiction::of(None, what));
            }
        }
        Ok(())
    }

    /// A failure that counts closes the limit that it names; one that names no limit is told so.
    pub(super) fn throttle(
        &mut self,
        call: &WorkerCall,
        (fate, answer): (Fate, Option<&Result<WorkerAnswer, Refusal>>),
    ) -> Judged {
        let throttle = match &call.said {
            Said::Throttle { throttle, .. } => Some(throttle),
            Said::Report { .. }
            | Said::Lead { .. }
            | Said::Heartbeat { .. }
            | Said::Checkpoint(_)
            | Said::Effect(..) => None,
        };
        let is_unknown =
            throttle.is_some_and(|throttle| !self.capacity.limits.contains_key(&throttle.limit.name));
        if let Some(throttle) = throttle.filter(|_| fate == Fate::Counts && !is_unknown) {
            self.capacity.hold(&throttle.limit, self.now + throttle.for_ms);
        }
        match answer {
            Some(Ok(answer)) if answer.unknown_limit != is_unknown => {
                let what = format!("that its throttle names no limit must be told: {is_unknown}");
                Err(Contradiction::of(Some(call.id.0), what))
            }
            _ => Ok(()),
        }
    }

    /// What `explain` says of limits and queues, and the rest of it. Whether something of these keeps the job back.
    pub(super) fn held_back(&self, job: &Job, told: &Explanation) -> Result<(bool, Explanation), String> {
        let of_capacity = |kind: WhyKind| {
            matches!(
                kind,
                WhyKind::QueuePaused
                    | WhyKind::QueueFull
                    | WhyKind::Throttled
                    | WhyKind::LimitFull
                    | WhyKind::RateExhausted
            )
        };
        let (ours, rest): (Vec<_>, Vec<_>) =
            told.reasons.iter().cloned().partition(|why| of_capacity(why.kind));
        let rest = Explanation { reasons: rest, ..told.clone() };
        if job.status != Status::Pending || job.is_overdue(self.now) {
            return match ours.first() {
                Some(why) => Err(format!("explain says {:?} of a job that does not wait", why.kind)),
                None => Ok((false, rest)),
            };
        }
        let mut expected = self.reasons(job);
        for why in &ours {
            let until = why.until.map(Timestamp::as_millis);
            let fits = |reason: &Reason| {
                reason.kind == why.kind
                    && reason
                        .of
                        .as_ref()
                        .is_none_or(|limit| why.detail.starts_with(&format!("Limit {limit} ")))
                    && match reason.until {
                        Some((low, high)) => until.is_some_and(|until| (low..=high).contains(&until)),
                        None => until.is_none(),
                    }
            };
            match expected.iter().position(fits) {
                Some(index) => drop(expected.remove(index)),
                None => {
                    return Err(format!("explain says {:?} until {until:?}; true is {expected:?}", why.kind));
                }
            }
        }
        if let Some(missing) = expected.iter().find(|reason| reason.open == Open::No) {
            return Err(format!("explain must say {missing:?}; it says {:?}", told.reasons));
        }
        let first = told.reasons.first().map(|why| why.kind);
        if self.capacity.is_paused(&job.queue) && first != Some(WhyKind::QueuePaused) {
            return Err(format!("explain says {first:?} first of a job whose queue is paused"));
        }
        Ok((!ours.is_empty(), rest))
    }

    /// Everything of limits and queues that keeps a job back, or may do so.
    fn reasons(&self, job: &Job) -> Vec<Reason> {
        let load = self.load();
        let mut reasons = Vec::new();
        let paused = self.capacity.queues.get(&job.queue).map_or(0, |row| row.paused.len());
        let pause = Reason { kind: WhyKind::QueuePaused, of: None, until: None, open: Open::No };
        reasons.resize(paused, pause);
        let reason = |kind, span| Reason { kind, of: None, until: None, open: open_by(span, self.now) };
        reasons.extend(self.queue_span(&load, job).map(|span| reason(WhyKind::QueueFull, span)));
        for limit in job.limits() {
            let spans = self.limit_spans(&load, limit);
            let own = |kind, span| Reason { of: Some(limit.clone()), ..reason(kind, span) };
            let until = |kind, span| Reason { until: Some(span), ..own(kind, span) };
            reasons.extend(spans.hold.map(|span| until(WhyKind::Throttled, span)));
            reasons.extend(spans.slots.map(|span| own(WhyKind::LimitFull, span)));
            reasons.extend(spans.rate.map(|span| until(WhyKind::RateExhausted, span)));
        }
        reasons
    }
}

/// Something that keeps a job back.
#[derive(Clone, Debug)]
struct Reason {
    kind: WhyKind,
    /// Which limit.
    of: Option<LimitRef>,
    until: Option<Span>,
    /// Whether it does so for certain.
    open: Open,
}
