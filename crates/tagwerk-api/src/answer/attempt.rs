//! The history of a job, and why it stands where it stands.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{AttemptOutcome, ErrorClass, ExplainKind, OperatorAction, Status, Time};

/// One run of a job by one worker under one lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttemptEntry {
    /// The attempt number that the worker was told. A released attempt shares its number with the next.
    pub number: u32,
    /// Sequence number of its lease among all leases of the job, from 1; unique in the job.
    pub seq: u32,
    /// Who ran it.
    pub worker_id: String,
    /// When the lease was granted.
    pub claimed_at: Time,
    /// When the lease ends or would have ended.
    pub lease_expires_at: Time,
    /// When it ended; `null` while it runs.
    pub ended_at: Option<Time>,
    /// How it ended; `null` while it runs.
    pub outcome: Option<AttemptOutcome>,
    /// For failures: the class that was reported.
    pub class: Option<ErrorClass>,
    /// Its error text.
    pub error: Option<String>,
    /// The report came after the lease had ended and took the place of the loss.
    pub late: bool,
    /// How many calls with its token were refused as stale after it had ended.
    pub refused_calls: u32,
    /// The last of them.
    pub last_refused: Option<RefusedCall>,
}

/// A stale call that was refused and kept for the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedCall {
    /// When it came.
    pub at: Time,
    /// Which call: `complete`, `fail`, `release`, `heartbeat`, `checkpoint`.
    pub call: String,
}

/// What a person or an API call did to the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperatorEntry {
    /// When.
    pub at: Time,
    /// What.
    pub action: OperatorAction,
    /// The reason or note that was given.
    pub reason: Option<String>,
    /// The job's version after it.
    pub version: i64,
}

/// `GET /jobs/{id}/attempts`, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttemptsPage {
    /// The attempts of this page. Of very many the first 10 and the last 90 are kept.
    pub attempts: Vec<AttemptEntry>,
    /// Attempts of this job that are no longer kept.
    pub omitted: u32,
    /// Everything that operators and producers did to it; on the first page only.
    pub actions: Vec<OperatorEntry>,
    /// What to give as `after` for the next page; `null` at the end.
    pub next: Option<String>,
}

/// One reason why a job stands where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExplainReason {
    /// Which kind of reason.
    pub kind: ExplainKind,
    /// A sentence for people.
    pub detail: String,
    /// Since when it holds, if known.
    pub since: Option<Time>,
    /// Until when it holds at most, if known.
    pub until: Option<Time>,
    /// What ends it: time, a call, a person.
    pub freed_by: Option<String>,
}

/// `GET /jobs/{id}/explain`, judged now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Explain {
    /// The job.
    pub id: i64,
    /// Where it stands.
    pub status: Status,
    /// Jobs that would be handed out before it, exact to 1,000; 1,001 stands for more. `null` unless it could be handed out.
    pub position: Option<u32>,
    /// Why; the most telling first, never empty.
    pub reasons: Vec<ExplainReason>,
}
