//! What is put into the committer's inbox: a command and where its answer goes.

use std::sync::Arc;

use tagwerk_core::{JobId, LeaseBits, Timestamp, limits};

use crate::command::{
    AlertAnswer, AlertCall, Claim, ClaimAnswer, ControlQueue, EngineError, Enqueue, EnqueueJob, Enqueued,
    LimitAnswer, LimitCall, Operate, OperateAnswer, PutType, QueueAnswer, Refusal, Said, Work, WorkAnswer,
    WorkerCall,
};
use crate::ports::Reply;

/// Answer to an enqueue.
pub type EnqueueAnswer = Vec<Result<Enqueued, Refusal>>;

/// Where an answer goes.
pub type ReplyTo<T> = Reply<Result<T, EngineError>>;

/// Who makes an operator's call, for the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct By(Option<Arc<str>>);

impl By {
    /// The name of a caller without a token. No token can have it.
    pub const LOCAL: &'static str = "local";

    /// A caller without a token.
    #[must_use]
    pub const fn local() -> Self {
        Self(None)
    }

    /// The holder of the token of this name.
    #[must_use]
    pub const fn token(name: Arc<str>) -> Self {
        Self(Some(name))
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.as_deref().unwrap_or(Self::LOCAL)
    }
}

/// A command with the place for its answer.
pub enum Message {
    /// Accept jobs.
    Enqueue(Enqueue, ReplyTo<EnqueueAnswer>),
    /// Hand out jobs.
    Claim(Claim, ReplyTo<ClaimAnswer>),
    /// Calls of a worker about its jobs.
    Work(Work, ReplyTo<WorkAnswer>),
    /// An operator's call.
    Operate(Operate, By, ReplyTo<Result<OperateAnswer, Refusal>>),
    /// Settings of a type; the answer says whether there were any before.
    PutType(PutType, By, ReplyTo<Result<bool, Refusal>>),
    /// A call about limits.
    Limit(LimitCall, By, ReplyTo<Result<LimitAnswer, Refusal>>),
    /// What is said about a queue.
    ControlQueue(ControlQueue, By, ReplyTo<QueueAnswer>),
    /// A call about alerts.
    Alert(AlertCall, By, ReplyTo<AlertAnswer>),
    /// When tokens, by name, were last used. Nobody waits for it.
    TouchTokens(Vec<(String, Timestamp)>),
    /// Leases whose answer could not be delivered.
    GiveBack(Vec<(JobId, LeaseBits)>),
    /// Refuse new work and answer everybody who waits.
    Drain,
    /// Stop after what came before.
    Stop,
}

impl Message {
    /// How much it adds to a batch: the bytes of its payloads, and a fixed size for each job that it reads or hands out.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Enqueue(enqueue, _) => jobs_weight(&enqueue.jobs),
            Self::Work(work, _) => {
                let claim = work.claim.as_ref().map_or(0, Claim::weight);
                let led_to = |call: &WorkerCall| match &call.said {
                    Said::Lead { follow_ups, .. } => jobs_weight(&follow_ups.enqueue.jobs),
                    _ => 0,
                };
                let follow_ups: usize = work.calls.iter().map(led_to).sum();
                claim + follow_ups + work.calls.len() * limits::ROW_WEIGHT_BYTES
            }
            Self::Claim(claim, _) => claim.weight(),
            Self::GiveBack(leases) => leases.len() * limits::ROW_WEIGHT_BYTES,
            Self::Operate(..)
            | Self::PutType(..)
            | Self::Limit(..)
            | Self::ControlQueue(..)
            | Self::Alert(..)
            | Self::TouchTokens(..)
            | Self::Drain
            | Self::Stop => limits::ROW_WEIGHT_BYTES,
        }
    }

    /// Whether a server that is shutting down refuses it: whatever would begin new work.
    pub(crate) const fn begins_work(&self) -> bool {
        matches!(self, Self::Enqueue(..) | Self::Claim(..))
    }
}

/// What jobs to be created add to a batch.
fn jobs_weight(jobs: &[EnqueueJob]) -> usize {
    let payloads: usize = jobs.iter().map(|job| job.payload.as_ref().map_or(0, String::len)).sum();
    payloads + jobs.len() * limits::ROW_WEIGHT_BYTES
}

/// Tells the sender that the whole command failed.
pub(crate) fn refuse(message: Message, error: &EngineError) {
    // A client that is gone does not learn of it, and that is all right: nothing happened.
    match message {
        Message::Enqueue(_, reply) => drop(reply.answer(Err(error.clone()))),
        Message::Claim(_, reply) => drop(reply.answer(Err(error.clone()))),
        Message::Work(_, reply) => drop(reply.answer(Err(error.clone()))),
        Message::Operate(.., reply) => drop(reply.answer(Err(error.clone()))),
        Message::PutType(.., reply) => drop(reply.answer(Err(error.clone()))),
        Message::Limit(.., reply) => drop(reply.answer(Err(error.clone()))),
        Message::ControlQueue(.., reply) => drop(reply.answer(Err(error.clone()))),
        Message::Alert(.., reply) => drop(reply.answer(Err(error.clone()))),
        Message::GiveBack(_) | Message::TouchTokens(_) | Message::Drain | Message::Stop => {}
    }
}

/// Refuses what would begin new work; the rest goes on.
pub(crate) fn refuse_new_work(messages: Vec<Message>) -> Vec<Message> {
    let (new, mut rest): (Vec<_>, Vec<_>) = messages.into_iter().partition(Message::begins_work);
    for message in &mut rest {
        if let Message::Work(command, _) = message {
            command.claim = None;
        }
    }
    for message in new {
        refuse(message, &EngineError::Draining);
    }
    rest
}
