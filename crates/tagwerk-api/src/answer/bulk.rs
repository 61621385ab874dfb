//! Answers to calls about many jobs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ClaimedJob, FollowedUp, HeartbeatAnswer, JobSummary, Tombstone};
use crate::Time;
use crate::problem::Problem;

/// Answer to `POST /jobs/claim/bulk`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BulkClaimAnswer {
    /// What was handed out; empty when nothing is claimable.
    pub jobs: Vec<ClaimedJob>,
    /// When the next job that this claim could get is due, if known.
    pub next_due_at: Option<Time>,
}

/// What became of one job of `POST /jobs/bulk`. One of `job`, `tombstone` and `problem` has a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnqueueResult {
    /// The status that a single call would have had: 201, 200 or a problem's.
    pub status: u16,
    /// The job in list form.
    pub job: Option<JobSummary>,
    /// The key belongs to a job that was pruned.
    pub tombstone: Option<Tombstone>,
    /// Why it was refused.
    pub problem: Option<Problem>,
    /// The job existed before.
    pub replayed: bool,
    /// The job existed, and what was sent first with its key differs from what was sent now.
    pub payload_differs: bool,
    /// For `on_duplicate: replace`: whether the existing job was rewritten; else `null`.
    pub replaced: Option<bool>,
}

/// Answer to `POST /jobs/bulk`, in the order of the request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BulkEnqueueAnswer {
    /// One entry per job sent.
    pub results: Vec<EnqueueResult>,
}

/// What became of one report or heartbeat. One of `job`, `heartbeat` and `problem` has a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReportResult {
    /// The job; `null` when the entry named none.
    pub id: Option<i64>,
    /// The status that a single call would have had.
    pub status: u16,
    /// After `completed`, `failed`, `released`: the job in list form.
    pub job: Option<JobSummary>,
    /// After a heartbeat.
    pub heartbeat: Option<HeartbeatAnswer>,
    /// After `completed` with jobs that it leads to: one entry for each, in order.
    pub enqueued: Option<Vec<FollowedUp>>,
    /// Why it was refused.
    pub problem: Option<Problem>,
    /// The same report had been accepted before.
    pub replayed: bool,
}

/// Answer to `POST /jobs/heartbeat/bulk`, in the order of the request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BulkHeartbeatAnswer {
    /// One entry per lease sent.
    pub results: Vec<ReportResult>,
}

/// Answer to `POST /jobs/report/bulk`, results in the order of the request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReportBulkAnswer {
    /// One entry per report sent.
    pub results: Vec<ReportResult>,
    /// What the claim got; empty without a claim.
    pub jobs: Vec<ClaimedJob>,
    /// When the next job that the claim could get is due, if known.
    pub next_due_at: Option<Time>,
    /// Why the claim was refused; the results count all the same.
    pub claim_problem: Option<Problem>,
}
