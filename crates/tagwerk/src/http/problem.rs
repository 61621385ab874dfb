//! Every way to be refused, as a problem. The only place where errors of the engine get their code on the wire.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use tagwerk_api::answer::{Existing, LimitJobs};
use tagwerk_api::door::nearest;
use tagwerk_api::headers::PROBLEM_JSON;
use tagwerk_api::problem::{Code, FieldCode, FieldError, Problem, Refusal as DoorRefusal};
use tagwerk_core::{JobId, Rejection};
use tagwerk_engine::command::{EngineError, QueueRefusal, Refusal};
use tagwerk_engine::store::StoreError;

use super::access::Rights;
use super::view;

/// A request that was refused: the problem, and what stands in its headers.
#[derive(Debug)]
pub(super) struct Refused {
    problem: Box<Problem>,
    allow: Option<HeaderValue>,
    /// Seconds, where they are known better than by the code.
    after: Option<u32>,
}

impl Refused {
    /// A problem with a sentence about the case at hand.
    pub(super) fn new(code: Code, detail: impl Into<String>) -> Self {
        Problem::new(code, detail).into()
    }

    /// A problem that is told by the code's own advice.
    pub(super) fn of(code: Code) -> Self {
        Problem::of(code).into()
    }

    /// No such job.
    pub(super) fn no_job(id: JobId) -> Self {
        refusal(Refusal::NoSuchJob(id)).into()
    }

    /// A method that the path does not know; `allow` names those that it knows.
    pub(super) fn method(allow: HeaderValue) -> Self {
        let known = allow.to_str().unwrap_or_default().to_owned();
        let detail = format!("this path answers to {known} only");
        Self { allow: Some(allow), ..Self::new(Code::MethodNotAllowed, detail) }
    }

    /// The same, to be tried again after so many seconds.
    pub(super) const fn after(mut self, seconds: u32) -> Self {
        self.after = Some(seconds);
        self
    }

    /// Which kind of problem.
    pub(super) fn code(&self) -> Option<Code> {
        self.problem.known_code()
    }

    /// The problem alone, for an entry of a bulk answer.
    pub(super) fn into_problem(self) -> Problem {
        *self.problem
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self { problem: Box::new(problem), allow: None, after: None }
    }
}

impl From<DoorRefusal> for Refused {
    fn from(refusal: DoorRefusal) -> Self {
        Problem::from(refusal).into()
    }
}

impl From<EngineError> for Refused {
    fn from(error: EngineError) -> Self {
        let code = match error {
            EngineError::Draining => Code::Draining,
            EngineError::Overloaded => Code::Overloaded,
            EngineError::StoreBusy => Code::StoreBusy,
            EngineError::StoreFull => Code::StoreFull,
            EngineError::StoreReadOnly => Code::StoreReadOnly,
            EngineError::StoreDamaged | EngineError::StoreGone => Code::StoreDamaged,
            EngineError::JobDamaged => Code::JobDamaged,
            EngineError::OutcomeUnknown => Code::OutcomeUnknown,
            EngineError::Internal => Code::InternalError,
        };
        Self::new(code, error.to_string())
    }
}

/// Errors of reads; those of writes come from the engine.
impl From<&StoreError> for Refused {
    fn from(error: &StoreError) -> Self {
        let code = match error {
            StoreError::Busy => Code::StoreBusy,
            StoreError::Full => Code::StoreFull,
            StoreError::ReadOnly => Code::StoreReadOnly,
            StoreError::Damaged(_) | StoreError::Gone(_) => Code::StoreDamaged,
            StoreError::DamagedRow(_) => Code::JobDamaged,
            StoreError::OutcomeUnknown => Code::OutcomeUnknown,
            StoreError::Conflict | StoreError::Other(_) => Code::InternalError,
        };
        Self::of(code)
    }
}

impl From<Refusal> for Refused {
    fn from(refused: Refusal) -> Self {
        refusal(refused).into()
    }
}

/// What the engine refused, without the job that stands in the way.
pub(super) fn refusal(refusal: Refusal) -> Problem {
    let detail = refusal.to_string();
    match refusal {
        Refusal::NoSuchJob(_) => Problem::new(Code::JobNotFound, detail),
        Refusal::JobDamaged(_) => Problem::new(Code::JobDamaged, detail),
        Refusal::Rejected { rejection, .. } => rejected(&rejection),
        Refusal::Duplicate(_) | Refusal::DuplicatePruned(..) | Refusal::DuplicateHere { .. } => {
            Problem::new(Code::Duplicate, detail)
        }
        Refusal::KeyReused(_) | Refusal::KeyReusedPruned(..) | Refusal::KeyReusedHere { .. } => {
            Problem::new(Code::IdempotencyKeyReused, detail)
        }
        Refusal::KeyHeld(_) => Problem::new(Code::IdempotencyKeyHeld, detail),
        Refusal::OutOfReach(_) => Problem::new(Code::Forbidden, detail),
        Refusal::KeyTaken => Problem::new(Code::IdempotencyKeyTaken, detail),
        Refusal::NotHolding(_) => Problem::new(Code::NotHolding, detail),
        Refusal::NotAtomic { .. } => Problem::new(Code::AtomicRefused, detail),
        Refusal::UnknownType { kind, known } => unknown_type(&kind, &known),
        Refusal::PayloadTooLarge { .. } => {
            let message = detail.trim_start_matches("payload: ");
            DoorRefusal::field("payload", FieldCode::PayloadTooLarge, message).into()
        }
        Refusal::UnknownLimit { name, known } => unknown_limit(&name, &known),
        Refusal::NoSuchLimit(_) => Problem::new(Code::LimitNotFound, detail),
        Refusal::LimitInUse { waiting, running, types, .. } => {
            let in_use = Some(Box::new(LimitJobs { waiting, running, types }));
            Problem { in_use, ..Problem::new(Code::LimitInUse, detail) }
        }
        Refusal::QueueFull { .. } => Problem::new(Code::QueueFull, detail),
        Refusal::QueueDraining { .. } => Problem::new(Code::QueueDraining, detail),
        Refusal::FollowUp { index, refusal: inner } => {
            let problem = under(self::refusal(*inner), &format!("enqueue[{index}]"));
            Problem { detail, ..problem }
        }
        Refusal::Invalid { field, message } => {
            DoorRefusal::field(field, FieldCode::OutOfRange, message).into()
        }
    }
}

/// A type that the server does not take, with the one that was probably meant.
fn unknown_type(kind: &str, known: &[String]) -> Problem {
    let meant = nearest(kind, known.iter().map(String::as_str));
    let meant = meant.map_or_else(String::new, |name| format!("; did you mean {name:?}?"));
    let message = format!("is {kind:?}, which has no settings here{meant}");
    let code = FieldCode::UnknownValue;
    let errors = vec![FieldError::new("type".to_owned(), code, message.clone())];
    Problem { errors, ..Problem::new(Code::UnknownType, format!("type {message}")) }
}

/// What was said about a queue and refused.
pub(super) fn queue_refusal(refusal: &QueueRefusal) -> Problem {
    let code = match refusal {
        QueueRefusal::SeveralReasons { .. } => Code::ReasonRequired,
        QueueRefusal::OtherReasons { .. } => Code::PauseNotFound,
        QueueRefusal::TooManyReasons { .. } => Code::TooManyPauses,
    };
    Problem::new(code, refusal.to_string())
}

/// A limit that there is not, with the one that was probably meant.
fn unknown_limit(name: &str, known: &[String]) -> Problem {
    let meant = nearest(name, known.iter().map(String::as_str));
    let meant = meant.map_or_else(String::new, |name| format!("; did you mean {name:?}?"));
    let message = format!("names {name:?}, which is no limit here{meant}");
    let errors = vec![FieldError::new("limits", FieldCode::UnknownValue, message.clone())];
    Problem { errors, ..Problem::new(Code::UnknownLimit, format!("limits {message}")) }
}

/// The same with the job, where the answer is about one job only.
pub(super) fn refusal_with_job(refused: Refusal, owner: Option<String>, rights: &Rights) -> Problem {
    match refused {
        Refusal::Duplicate(job) => {
            let detail = Refusal::Duplicate(job.clone()).to_string();
            let job = Existing::Job(Box::new(view::job(rights.veiled(*job), owner)));
            Problem { job: Some(Box::new(job)), ..Problem::new(Code::Duplicate, detail) }
        }
        Refusal::DuplicatePruned(id, ref tombstone) | Refusal::KeyReusedPruned(id, ref tombstone) => {
            let job = Existing::Pruned(view::tombstone(id, tombstone.clone()));
            Problem { job: Some(Box::new(job)), ..refusal(refused) }
        }
        other => refusal(other),
    }
}

/// The job that a refusal names without bringing it along.
pub(super) const fn job_named(refusal: &Refusal) -> Option<JobId> {
    match refusal {
        Refusal::KeyReused(id) | Refusal::KeyHeld(id) => Some(*id),
        _ => None,
    }
}

/// Puts the index of a bulk call's entry before the names of its fields.
pub(super) fn at_index(problem: Problem, index: usize) -> Problem {
    under(problem, &format!("jobs[{index}]"))
}

/// Puts where an entry stands before the names of its fields.
fn under(mut problem: Problem, prefix: &str) -> Problem {
    for FieldError { field, .. } in &mut problem.errors {
        if !field.starts_with(prefix) {
            *field = format!("{prefix}.{field}");
        }
    }
    problem
}

fn rejected(rejection: &Rejection) -> Problem {
    let code = code_of(rejection);
    let problem = Problem::new(code, rejection.to_string());
    let stop = |may_report| (Some(true), Some(may_report));
    let (stop, may_report) = match rejection {
        Rejection::LeaseLost { may_report } | Rejection::TimedOut { may_report } => stop(*may_report),
        Rejection::Cancelled
        | Rejection::Superseded { may_force: false, .. }
        | Rejection::NotRunning { .. }
        | Rejection::AlreadyReported { .. } => stop(false),
        _ => (None, None),
    };
    let counted = match rejection {
        Rejection::AlreadyReported { counted } => Some(counted.name().to_owned()),
        _ => None,
    };
    let current_version = match rejection {
        Rejection::VersionChanged { current, .. } => Some(*current),
        _ => None,
    };
    Problem { stop, may_report, counted, current_version, ..problem }
}

fn code_of(rejection: &Rejection) -> Code {
    match rejection {
        Rejection::LeaseLost { .. } => Code::LeaseLost,
        Rejection::TimedOut { .. } => Code::TimedOut,
        Rejection::Cancelled => Code::Cancelled,
        Rejection::Superseded { .. } => Code::Superseded,
        Rejection::NotRunning { .. } => Code::NotRunning,
        Rejection::AlreadyReported { .. } => Code::AlreadyReported,
        Rejection::LeaseRequired => Code::LeaseRequired,
        Rejection::EffectsOpen { .. } => Code::EffectsOpen,
        Rejection::EffectNotBegun => Code::EffectNotBegun,
        Rejection::EffectFinished => Code::EffectFinished,
        Rejection::TooManyEffects => Code::TooManyEffects,
        Rejection::NotFailed { .. } => Code::NotFailed,
        Rejection::UseDiscard => Code::UseDiscard,
        Rejection::UseCancel { .. } => Code::UseCancel,
        Rejection::AlreadyCompleted => Code::AlreadyCompleted,
        Rejection::VersionChanged { .. } => Code::VersionChanged,
        // No call of a client leads there; if one does, it is a bug of ours.
        Rejection::AlreadyStarted | Rejection::NotClaimable | Rejection::DoesNotApply { .. } => {
            tracing::error!(%rejection, "a rejection that no client should see");
            Code::InternalError
        }
    }
}

/// Seconds after which to try again, for the codes that say so. What only an operator can mend takes longer.
const fn retry_after(code: Code) -> Option<u16> {
    match code {
        Code::RateLimited
        | Code::TooManyWaiting
        | Code::Overloaded
        | Code::StoreBusy
        | Code::Draining
        | Code::RequestTimeout => Some(1),
        Code::StoreFull | Code::StoreReadOnly | Code::StoreDamaged | Code::QueueDraining => Some(10),
        Code::OutcomeUnknown | Code::QueueFull => Some(5),
        _ => None,
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self { problem, allow, after } = self;
        // A problem is plain data, so it can always be written.
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() =
            StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        let seconds = after.or_else(|| problem.known_code().and_then(retry_after).map(u32::from));
        if let Some(seconds) = seconds {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if problem.status == StatusCode::UNAUTHORIZED.as_u16() {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"tagwerk\""));
        }
        if let Some(allow) = allow {
            headers.insert(ALLOW, allow);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_that_may_be_sent_again_says_when() {
        for code in Code::ALL.iter().copied().filter(|code| code.retryable()) {
            assert!(retry_after(code).is_some(), "{}", code.name());
        }
    }

    #[test]
    fn a_worker_is_told_to_stop_and_whether_it_may_report() {
        let problem = rejected(&Rejection::LeaseLost { may_report: true });
        assert_eq!((problem.stop, problem.may_report), (Some(true), Some(true)));
        let problem = rejected(&Rejection::Cancelled);
        assert_eq!(
            (problem.code.as_str(), problem.stop, problem.may_report),
            ("cancelled", Some(true), Some(false))
        );
        let problem = rejected(&Rejection::VersionChanged { seen: 1, current: 2 });
        assert_eq!((problem.stop, problem.current_version), (None, Some(2)));
    }

    #[test]
    fn fields_of_a_bulk_entry_name_its_index() {
        let refusal = Refusal::Invalid { field: "run_at", message: "lies too far ahead".to_owned() };
        let problem = at_index(super::refusal(refusal), 3);
        assert_eq!(problem.errors[0].field, "jobs[3].run_at");
        assert_eq!(at_index(problem, 3).errors[0].field, "jobs[3].run_at");
    }
}
