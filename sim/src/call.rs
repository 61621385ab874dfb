//! Calls as clients send them, answers as they get them, and the place where the engine puts an answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tagwerk_core::{Action, ErrorClass, JobId, Outcome, Rejection};
use tagwerk_engine::command::{
    Claim, ClaimAnswer, ControlQueue, EffectSaid, EngineError, Enqueue, LimitAnswer, LimitCall, Operate,
    OperateAnswer, PutType, QueueAnswer, QueueControl, QueueRefusal, Refusal, Said, Work, WorkAnswer,
};
use tagwerk_engine::message::{By, EnqueueAnswer, Message};
use tagwerk_engine::ports::Responder;

/// What a client asks for.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Enqueue(Enqueue),
    Claim(Claim),
    Work(Work),
    Operate(Operate),
    PutType(PutType),
    Limit(LimitCall),
    Queue(ControlQueue),
}

/// What it is answered.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Enqueue(EnqueueAnswer),
    Claim(ClaimAnswer),
    Work(WorkAnswer),
    Operate(Result<OperateAnswer, Refusal>),
    PutType(bool),
    Limit(Result<LimitAnswer, Refusal>),
    Queue(QueueAnswer),
}

/// An answer, or why the whole call failed.
pub(crate) type Reply = Result<Answer, EngineError>;

/// Where the answer to one call arrives.
#[derive(Debug, Default)]
pub(crate) struct Cell {
    /// The client's connection is closed.
    gone: AtomicBool,
    reply: Mutex<Option<Reply>>,
}

impl Cell {
    pub(crate) fn close(&self) {
        self.gone.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    pub(crate) fn take(&self) -> Option<Reply> {
        self.reply.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The engine's end of a [`Cell`].
struct Slot<T> {
    cell: Arc<Cell>,
    wrap: fn(T) -> Answer,
}

impl<T: Clone + Send> Responder<Result<T, EngineError>> for Slot<T> {
    fn is_waiting(&self) -> bool {
        !self.cell.is_gone()
    }

    /// An answer to somebody who is gone is kept for the judges, and given back as a server would.
    fn answer(self: Box<Self>, answer: Result<T, EngineError>) -> Result<(), Result<T, EngineError>> {
        let kept = answer.clone().map(self.wrap);
        *self.cell.reply.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
        if self.cell.is_gone() { Err(answer) } else { Ok(()) }
    }
}

impl Call {
    /// The engine's message for this call, answered into `cell`.
    pub(crate) fn message(&self, cell: &Arc<Cell>) -> Message {
        let cell = Arc::clone(cell);
        match self.clone() {
            Self::Enqueue(command) => {
                Message::Enqueue(command, Box::new(Slot { cell, wrap: Answer::Enqueue }))
            }
            Self::Claim(command) => Message::Claim(command, Box::new(Slot { cell, wrap: Answer::Claim })),
            Self::Work(command) => Message::Work(command, Box::new(Slot { cell, wrap: Answer::Work })),
            Self::Operate(command) => {
                Message::Operate(command, By::local(), Box::new(Slot { cell, wrap: Answer::Operate }))
            }
            Self::PutType(command) => Message::PutType(
                command,
                By::local(),
                Box::new(Slot { cell, wrap: |known| Answer::PutType(known == Ok(true)) }),
            ),
            Self::Limit(command) => {
                Message::Limit(command, By::local(), Box::new(Slot { cell, wrap: Answer::Limit }))
            }
            Self::Queue(command) => {
                Message::ControlQueue(command, By::local(), Box::new(Slot { cell, wrap: Answer::Queue }))
            }
        }
    }

    /// Kind of the call, for the table of what was exercised.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Enqueue(command) if command.jobs.len() > 1 => "enqueue bulk",
            Self::Enqueue(_) => "enqueue",
            Self::Claim(claim) if claim.wait_ms > 0 => "claim, waiting",
            Self::Claim(_) => "claim",
            Self::Work(work) if work.claim.is_some() => "bulk report and claim",
            Self::Work(work) => match work.calls.as_slice() {
                [call] => said_name(&call.said),
                _ => "bulk report",
            },
            Self::Operate(call) => action_name(&call.action),
            Self::PutType(_) => "type settings",
            Self::Limit(call) => limit_name(call),
            Self::Queue(call) => control_name(&call.control),
        }
    }

    /// The jobs that the call names.
    pub(crate) fn jobs(&self) -> Vec<JobId> {
        match self {
            Self::Work(work) => work.calls.iter().map(|call| call.id).collect(),
            Self::Operate(call) => vec![call.id],
            Self::Enqueue(_) | Self::Claim(_) | Self::PutType(_) | Self::Limit(_) | Self::Queue(_) => {
                Vec::new()
            }
        }
    }
}

/// Whether it ends a run, with or without holding back a limit.
pub(crate) const fn is_report(said: &Said) -> bool {
    matches!(said, Said::Report { .. } | Said::Lead { .. } | Said::Throttle { .. })
}

pub(crate) const fn said_name(said: &Said) -> &'static str {
    match said {
        Said::Heartbeat { .. } => "heartbeat",
        Said::Checkpoint(_) => "checkpoint",
        Said::Effect(_, EffectSaid::Begin { .. }) => "begin an effect",
        Said::Effect(_, EffectSaid::Finish { .. }) => "finish an effect",
        Said::Effect(_, EffectSaid::Abort) => "abort an effect",
        Said::Lead { .. } => "complete with follow-ups",
        Said::Throttle { .. } => "fail and hold a limit",
        Said::Report { outcome, .. } => match outcome {
            Outcome::Completed => "complete",
            Outcome::Failed { class: ErrorClass::Transient, .. } => "fail transient",
            Outcome::Failed { class: ErrorClass::Permanent, .. } => "fail permanent",
            Outcome::Failed { class: ErrorClass::Unknown, .. } => "fail unknown",
            Outcome::Released { .. } => "release",
        },
    }
}

pub(crate) const fn action_name(action: &Action) -> &'static str {
    match action {
        Action::Cancel { wait: true } => "cancel, waiting",
        Action::Cancel { wait: false } => "cancel",
        Action::Retry { .. } => "retry",
        Action::ForceRetry { .. } => "retry, forced",
        Action::Discard => "discard",
        Action::ForceFail { .. } => "force-fail",
        Action::Delete => "delete",
        Action::Replace { .. } => "replace",
        Action::Unblock => "unblock",
    }
}

const fn limit_name(call: &LimitCall) -> &'static str {
    match call {
        LimitCall::List => "limits listed",
        LimitCall::Show(_) => "limit shown",
        LimitCall::Put(..) => "limit set",
        LimitCall::Delete(_) => "limit deleted",
        LimitCall::Open(_) => "limit opened",
    }
}

const fn control_name(control: &QueueControl) -> &'static str {
    match control {
        QueueControl::Set(_) => "queue bounded",
        QueueControl::Pause { .. } => "queue paused",
        QueueControl::Resume { .. } => "queue resumed",
        QueueControl::Drain { .. } => "queue drained",
        QueueControl::Open => "queue opened",
    }
}

/// The code of a refusal about a queue.
pub(crate) const fn queue_code(refusal: &QueueRefusal) -> &'static str {
    match refusal {
        QueueRefusal::SeveralReasons { .. } => "queue-paused (several reasons)",
        QueueRefusal::OtherReasons { .. } => "queue-paused (other reasons)",
        QueueRefusal::TooManyReasons { .. } => "queue-paused (too many reasons)",
    }
}

/// The code of a refusal, as short as in a problem document.
pub(crate) const fn refusal_code(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::NoSuchJob(_) => "not-found",
        Refusal::JobDamaged(_) => "job-damaged",
        Refusal::Rejected { rejection, .. } => rejection_code(rejection),
        Refusal::Duplicate(_) => "duplicate",
        Refusal::KeyReused(_) => "idempotency-key-reused",
        Refusal::KeyReusedPruned(..) => "idempotency-key-reused (pruned)",
        Refusal::DuplicatePruned(..) => "duplicate (pruned)",
        Refusal::DuplicateHere { .. } => "duplicate (same request)",
        Refusal::KeyReusedHere { .. } => "idempotency-key-reused (same request)",
        Refusal::KeyHeld(_) => "idempotency-key-held",
        Refusal::NotHolding(_) => "not-holding",
        Refusal::NotAtomic { .. } => "not-atomic",
        Refusal::UnknownType { .. } => "unknown-type",
        Refusal::PayloadTooLarge { .. } => "payload-too-large",
        Refusal::QueueFull { .. } => "queue-full",
        Refusal::QueueDraining { .. } => "queue-draining",
        Refusal::Invalid { .. } => "invalid",
        Refusal::FollowUp { .. } => "follow-up",
        Refusal::UnknownLimit { .. } => "invalid (unknown limit)",
        Refusal::NoSuchLimit(_) => "limit-not-found",
        Refusal::LimitInUse { .. } => "limit-in-use",
        Refusal::OutOfReach(_) => "forbidden",
        Refusal::KeyTaken => "idempotency-key-taken",
    }
}

pub(crate) const fn rejection_code(rejection: &Rejection) -> &'static str {
    match rejection {
        Rejection::LeaseLost { may_report: true } => "lease-lost, may report",
        Rejection::LeaseLost { may_report: false } => "lease-lost",
        Rejection::TimedOut { may_report: true } => "timed-out, may report",
        Rejection::TimedOut { may_report: false } => "timed-out",
        Rejection::Cancelled => "cancelled",
        Rejection::Superseded { .. } => "superseded",
        Rejection::NotRunning { .. } => "not-running",
        Rejection::AlreadyReported { .. } => "already-reported",
        Rejection::LeaseRequired => "lease-required",
        Rejection::EffectsOpen { .. } => "effects-open",
        Rejection::EffectNotBegun => "effect-not-begun",
        Rejection::EffectFinished => "effect-finished",
        Rejection::TooManyEffects => "too-many-effects",
        Rejection::NotFailed { .. } => "not-failed",
        Rejection::UseDiscard => "use-discard",
        Rejection::UseCancel { .. } => "use-cancel",
        Rejection::AlreadyCompleted => "already-completed",
        Rejection::VersionChanged { .. } => "version-changed",
        Rejection::AlreadyStarted => "already-started",
        Rejection::NotClaimable => "not-claimable",
        Rejection::DoesNotApply { .. } => "does-not-apply",
    }
}
