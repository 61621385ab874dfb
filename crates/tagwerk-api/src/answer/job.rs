//! The job as it is shown.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::effect::{Effect, EffectInDoubt};
use crate::request::{Progress, RetrySettings, Subject};
use crate::{
    ErrorClass, FailureCause, FailureReason, IdempotencyScope, Json, LeaseToken, OnDuplicate, OnHeadFailure,
    OnMismatch, OnUnknown, PriorityLabel, Seconds, Status, Time,
};

/// Why a failed job failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    /// How to understand it.
    pub class: ErrorClass,
    /// Why it is in review.
    pub reason: FailureReason,
    /// What brought it there.
    pub cause: FailureCause,
}

/// The list form of a job: all of it but payload, result and checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own; they do not make up one state")]
pub struct JobSummary {
    /// Identity, below 2^53. A job that was enqueued after another was answered has the higher id.
    pub id: i64,
    /// What to do.
    #[serde(rename = "type")]
    pub job_type: String,
    /// The capacity it draws on.
    pub queue: String,
    /// Where it stands.
    pub status: Status,
    /// Rises with every change of state or by an operator, not with heartbeats; what `seen_version` compares with.
    pub version: i64,
    /// The highest level that is not above `priority_value`.
    pub priority: PriorityLabel,
    /// 0..=100; higher goes first.
    pub priority_value: u8,
    /// Number of the current or last attempt, 0 before the first.
    pub attempt: u32,
    /// Runs that may still begin.
    pub attempts_left: u32,
    /// Whether any failure or loss of the current attempt must end in review.
    pub is_last_attempt: bool,
    /// Retries used.
    pub retry_count: u32,
    /// Retries allowed.
    pub max_retries: u32,
    /// Leases lost.
    pub lease_losses: u32,
    /// The loss that ends it.
    pub max_lease_losses: u32,
    /// How often it was given back.
    pub release_count: u32,
    /// Not handed out before.
    pub available_at: Time,
    /// From this instant it is not handed out any more.
    pub expires_at: Option<Time>,
    /// The maximum age as it was given.
    pub max_age_seconds: Option<Seconds>,
    /// Length of a lease if the claim names none.
    pub lease_seconds: Option<Seconds>,
    /// Hard limit of one attempt.
    pub timeout_seconds: Option<Seconds>,
    /// Back-off as it was given with the job.
    pub retry: Option<RetrySettings>,
    /// What an unknown outcome leads to.
    pub on_unknown: OnUnknown,
    /// Stable key of the business operation.
    pub idempotency_key: Option<String>,
    /// How long the key holds.
    pub idempotency_scope: Option<IdempotencyScope>,
    /// For scope `ttl`: how long after the job's end.
    pub idempotency_ttl_seconds: Option<Seconds>,
    /// As it was given.
    pub on_duplicate: Option<OnDuplicate>,
    /// As it was given.
    pub on_mismatch: Option<OnMismatch>,
    /// Whether the version of its subject supersedes, and is superseded by, those of others.
    pub supersede: bool,
    /// The business object.
    pub subject: Option<Subject>,
    /// Ties together what belongs together across systems.
    pub correlation_id: Option<String>,
    /// W3C trace context of the producer.
    pub traceparent: Option<String>,
    /// Jobs with the same key run one after the other.
    pub ordering_key: Option<String>,
    /// As it was given.
    pub on_head_failure: Option<OnHeadFailure>,
    /// The job with the same ordering key that comes first; `null` if it has the turn, and in answers about many jobs that
    /// are no lists.
    pub blocked_by: Option<i64>,
    /// How many jobs of its ordering key it holds back, counted to 1001; `null` unless it is in review and holds them.
    pub blocks: Option<u32>,
    /// Limits that it keeps to.
    pub limits: Vec<String>,
    /// The key under which it takes turns with other jobs of its queue.
    pub fair_key: Option<String>,
    /// The space of the token that it was made with; jobs and keys of one are not there for another.
    pub space: Option<String>,
    /// Whom to ask, from the type's settings.
    pub owner: Option<String>,
    /// Last error text; kept through a requeue and after completion.
    pub error: Option<String>,
    /// Why it is in review; `null` unless `failed`.
    pub failure: Option<Failure>,
    /// Who holds it; `null` unless `running`.
    pub worker_id: Option<String>,
    /// Since when; `null` unless `running`.
    pub claimed_at: Option<Time>,
    /// Until when without a heartbeat; `null` unless `running`.
    pub lease_expires_at: Option<Time>,
    /// Nobody knows whether an earlier attempt's effect happened: look before doing it again.
    pub verify: bool,
    /// Effects that an earlier attempt began, and of which nobody has said what became of them: they may have happened.
    pub effects_in_doubt: Vec<EffectInDoubt>,
    /// It will be cancelled at the holder's next call or at the end of its lease.
    pub cancel_requested: bool,
    /// The job with a newer version of the same subject, which made this one out of date: cancelled if it waited, marked if it
    /// ran or was in review.
    pub superseded_by: Option<i64>,
    /// How far the work has come.
    pub progress: Option<Progress>,
    /// When it was accepted.
    pub created_at: Time,
    /// Last change of state or by an operator.
    pub updated_at: Time,
    /// When it was completed, failed or cancelled.
    pub finished_at: Option<Time>,
}

/// The whole job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// Everything but payload, result, checkpoint and effects.
    #[serde(flatten)]
    pub summary: JobSummary,
    /// As it was sent, byte for byte.
    pub payload: Json,
    /// The last checkpoint of any attempt.
    #[schema(value_type = Json)]
    pub checkpoint: Option<Json>,
    /// What `complete` carried.
    #[schema(value_type = Json)]
    pub result: Option<Json>,
    /// The effect journal, in the order in which effects were first begun.
    pub effects: Vec<Effect>,
}

/// A job that was just handed out, with its lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClaimedJob {
    /// Everything but payload, result, checkpoint and effects.
    #[serde(flatten)]
    pub summary: JobSummary,
    /// As it was sent, byte for byte.
    pub payload: Json,
    /// What an earlier attempt left.
    #[schema(value_type = Json)]
    pub checkpoint: Option<Json>,
    /// `null` while it runs.
    #[schema(value_type = Json)]
    pub result: Option<Json>,
    /// The effect journal, in the order in which effects were first begun.
    pub effects: Vec<Effect>,
    /// Token for every further call about this attempt. Shown here only.
    pub lease: LeaseToken,
    /// How often to send a heartbeat: a third of the lease.
    pub heartbeat_seconds: Seconds,
    /// The same claim (`request_id`) had been answered before.
    pub replayed: bool,
}

impl ClaimedJob {
    /// The job without its lease.
    #[must_use]
    pub fn into_job(self) -> Job {
        Job {
            summary: self.summary,
            payload: self.payload,
            checkpoint: self.checkpoint,
            result: self.result,
            effects: self.effects,
        }
    }
}

/// What became of a job that came with a `complete`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FollowedUp {
    /// The job.
    pub id: i64,
    /// Whether it is new; `false` if its idempotency key belongs to this job.
    pub created: bool,
}

/// A job that was just completed, with what became of the jobs that it led to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CompletedJob {
    /// Everything but payload, result, checkpoint and effects.
    #[serde(flatten)]
    pub summary: JobSummary,
    /// As it was sent, byte for byte.
    pub payload: Json,
    /// The last checkpoint of any attempt.
    #[schema(value_type = Json)]
    pub checkpoint: Option<Json>,
    /// What `complete` carried.
    #[schema(value_type = Json)]
    pub result: Option<Json>,
    /// The effect journal, in the order in which effects were first begun.
    pub effects: Vec<Effect>,
    /// One entry for each job of `enqueue`, in order; `null` without any, and if the same report had been accepted before.
    pub enqueued: Option<Vec<FollowedUp>>,
}

impl CompletedJob {
    /// The job with what it led to.
    #[must_use]
    pub fn new(job: Job, enqueued: Option<Vec<FollowedUp>>) -> Self {
        let Job { summary, payload, checkpoint, result, effects } = job;
        Self { summary, payload, checkpoint, result, effects, enqueued }
    }

    /// The job alone.
    #[must_use]
    pub fn into_job(self) -> Job {
        Job {
            summary: self.summary,
            payload: self.payload,
            checkpoint: self.checkpoint,
            result: self.result,
            effects: self.effects,
        }
    }
}

/// What is left of a pruned job whose idempotency key still holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tombstone {
    /// Identity that it had.
    pub id: i64,
    /// What it did.
    #[serde(rename = "type")]
    pub job_type: String,
    /// Where it stood.
    pub status: Status,
    /// When it had ended.
    pub finished_at: Option<Time>,
    /// Always `true`: tells a tombstone from a job.
    pub pruned: bool,
}

/// A job, or what is left of it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Existing {
    /// The whole job.
    Job(Box<Job>),
    /// A pruned job's tombstone.
    Pruned(Tombstone),
}

impl Existing {
    /// The job's id.
    #[must_use]
    pub const fn id(&self) -> i64 {
        match self {
            Self::Job(job) => job.summary.id,
            Self::Pruned(tombstone) => tombstone.id,
        }
    }
}

/// Tells a tombstone from a job before the rest is read.
#[derive(Deserialize)]
struct PrunedMark {
    #[serde(default)]
    pruned: bool,
}

/// Reads a job or a tombstone. By hand: an untagged enum would buffer the job, and a raw payload does not survive that.
fn read_either<'de, D, J, T, E>(deserializer: D, job: fn(J) -> E, pruned: fn(T) -> E) -> Result<E, D::Error>
where
    D: Deserializer<'de>,
    J: DeserializeOwned,
    T: DeserializeOwned,
{
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    let read = || {
        let mark: PrunedMark = serde_json::from_str(raw.get())?;
        if mark.pruned {
            serde_json::from_str(raw.get()).map(pruned)
        } else {
            serde_json::from_str(raw.get()).map(job)
        }
    };
    read().map_err(serde::de::Error::custom)
}

impl<'de> Deserialize<'de> for Existing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_either(deserializer, Self::Job, Self::Pruned)
    }
}

/// A job as an enqueue answers it: with how it relates to what was sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnqueueAnswer {
    /// Everything but payload, result, checkpoint and effects.
    #[serde(flatten)]
    pub summary: JobSummary,
    /// As it was sent, byte for byte.
    pub payload: Json,
    /// The last checkpoint of any attempt.
    #[schema(value_type = Json)]
    pub checkpoint: Option<Json>,
    /// What `complete` carried.
    #[schema(value_type = Json)]
    pub result: Option<Json>,
    /// The effect journal, in the order in which effects were first begun.
    pub effects: Vec<Effect>,
    /// The job existed, and what was sent first with its key differs from what was sent now.
    pub payload_differs: bool,
    /// For `on_duplicate: replace`: whether the existing job was rewritten; else `null`. `false` if it has started before, or is
    /// of another type or in another queue.
    pub replaced: Option<bool>,
}

/// A pruned job's tombstone as an enqueue answers it: with how it relates to what was sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnqueueTombstone {
    /// What is left of the job.
    #[serde(flatten)]
    pub tombstone: Tombstone,
    /// What was sent first with the key differs from what was sent now.
    pub payload_differs: bool,
    /// For `on_duplicate: replace`: `false`, there is nothing left to rewrite; else `null`.
    pub replaced: Option<bool>,
}

impl EnqueueAnswer {
    /// The answer about this job.
    #[must_use]
    pub fn new(job: Job) -> Self {
        Self {
            summary: job.summary,
            payload: job.payload,
            checkpoint: job.checkpoint,
            result: job.result,
            effects: job.effects,
            payload_differs: false,
            replaced: None,
        }
    }

    /// The job alone.
    #[must_use]
    pub fn into_job(self) -> Job {
        Job {
            summary: self.summary,
            payload: self.payload,
            checkpoint: self.checkpoint,
            result: self.result,
            effects: self.effects,
        }
    }
}

/// Answer to `POST /jobs`: the job, or a tombstone when the key belongs to a job that was pruned.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Enqueued {
    /// The whole job.
    Job(Box<EnqueueAnswer>),
    /// A pruned job's tombstone.
    Pruned(EnqueueTombstone),
}

impl Enqueued {
    /// The job's id.
    #[must_use]
    pub const fn id(&self) -> i64 {
        match self {
            Self::Job(job) => job.summary.id,
            Self::Pruned(pruned) => pruned.tombstone.id,
        }
    }

    /// Whether the job existed and was made from something else than what was sent now.
    #[must_use]
    pub const fn payload_differs(&self) -> bool {
        match self {
            Self::Job(job) => job.payload_differs,
            Self::Pruned(pruned) => pruned.payload_differs,
        }
    }
}

impl<'de> Deserialize<'de> for Enqueued {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_either(deserializer, Self::Job, Self::Pruned)
    }
}

/// Answer to a heartbeat. "Stop" never comes here but as a problem with `stop: true`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatAnswer {
    /// Always `true`: go on.
    #[serde(rename = "continue")]
    pub go_on: bool,
    /// Finish this job and claim no more for now.
    pub quiet: bool,
    /// A newer version of the job's subject exists. Going on is allowed; the job will not be run again after this attempt.
    pub superseded: bool,
    /// Until when the lease holds without another heartbeat.
    pub lease_expires_at: Time,
    /// When the attempt ends, with the time limit taken into account.
    pub ends_at: Time,
}

/// A row that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DamagedJob {
    /// The job.
    pub id: i64,
    /// What is wrong with its row.
    pub detail: String,
}

/// A job that was erased, as it was last.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Deleted {
    /// The whole job.
    Job(Box<Job>),
    /// It could not be read.
    Damaged(DamagedJob),
}

impl Deleted {
    /// The job's id.
    #[must_use]
    pub const fn id(&self) -> i64 {
        match self {
            Self::Job(job) => job.summary.id,
            Self::Damaged(damaged) => damaged.id,
        }
    }
}

/// Tells a job from one that could not be read, before the rest is read.
#[derive(Deserialize)]
struct StatusMark {
    status: Option<Status>,
}

impl<'de> Deserialize<'de> for Deleted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let read = || {
            let mark: StatusMark = serde_json::from_str(raw.get())?;
            match mark.status {
                Some(_) => serde_json::from_str(raw.get()).map(Self::Job),
                None => serde_json::from_str(raw.get()).map(Self::Damaged),
            }
        };
        read().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMMARY: &str = r#""id":9007199254740991,"type":"send-invoice","queue":"default","status":"running",
        "version":2,"priority":"high","priority_value":25,"attempt":1,"attempts_left":3,"is_last_attempt":false,
        "retry_count":0,"max_retries":3,"lease_losses":0,"max_lease_losses":4,"release_count":0,
        "available_at":"2026-07-01T12:00:00.000Z","expires_at":null,"max_age_seconds":null,"lease_seconds":2.5,
        "timeout_seconds":null,"retry":{"base_seconds":5,"factor":1.5,"cap_seconds":null,"jitter":"full"},
        "on_unknown":"verify","idempotency_key":null,"idempotency_scope":null,"idempotency_ttl_seconds":null,
        "on_duplicate":null,"on_mismatch":null,"supersede":false,"subject":{"kind":"order","id":"7","version":null},
        "correlation_id":null,"traceparent":null,"ordering_key":"o","on_head_failure":"skip","blocked_by":7,
        "blocks":null,"limits":["crm:t"],"fair_key":"t","space":null,"owner":null,"error":null,"failure":null,"worker_id":"w",
        "claimed_at":"2026-07-01T12:00:00.001Z","lease_expires_at":"2026-07-01T12:05:00.001Z","verify":false,
        "effects_in_doubt":[],"cancel_requested":false,"superseded_by":null,"progress":null,"created_at":"2026-07-01T12:00:00.000Z",
        "updated_at":"2026-07-01T12:00:00.001Z","finished_at":null"#;
    const PAYLOAD: &str = r#"{"b":123456789012345678901234567890, "a":1.10,"a":"\ud800"}"#;

    fn text(tail: &str) -> String {
        let summary: String = SUMMARY.lines().map(str::trim_start).collect();
        format!("{{{summary},\"payload\":{PAYLOAD},\"checkpoint\":[1],\"result\":null,\"effects\":[]{tail}}}")
    }

    /// Nothing is lost, reordered or left out on the way to the client and back.
    fn round_trip<T: Serialize + DeserializeOwned>(text: &str) -> T {
        let value: T = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&value).unwrap(), text);
        value
    }

    #[test]
    fn jobs_survive_the_wire_byte_for_byte() {
        let job: Job = round_trip(&text(""));
        assert_eq!(job.payload.as_str(), PAYLOAD);
        assert_eq!(job.summary.lease_seconds, Some(Seconds::from_ms(2500)));
        let claimed: ClaimedJob =
            round_trip(&text(r#","lease":"t","heartbeat_seconds":100,"replayed":false"#));
        assert_eq!(claimed.into_job(), job);
        let answer: EnqueueAnswer = round_trip(&text(r#","payload_differs":true,"replaced":null"#));
        assert_eq!(answer.into_job(), job);
    }

    #[test]
    fn a_tombstone_is_told_from_a_job() {
        let tombstone = r#"{"id":7,"type":"t","status":"completed","finished_at":"2026-07-01T12:00:00.000Z","pruned":true}"#;
        assert!(matches!(round_trip::<Existing>(tombstone), Existing::Pruned(_)));
        let told = tombstone.replace('}', r#","payload_differs":true,"replaced":false}"#);
        let pruned = round_trip::<Enqueued>(&told);
        assert!(matches!(&pruned, Enqueued::Pruned(_)));
        assert_eq!((pruned.id(), pruned.payload_differs()), (7, true));
        assert!(matches!(round_trip::<Existing>(&text("")), Existing::Job(_)));
        let enqueued = round_trip::<Enqueued>(&text(r#","payload_differs":false,"replaced":true"#));
        assert_eq!(enqueued.id(), 9_007_199_254_740_991);
    }
}
