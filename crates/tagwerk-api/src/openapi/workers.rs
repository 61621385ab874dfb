//! Routes for those who claim and report.

use super::examples;
use super::route::{Answer, Group, Header, Method, Route, Shape, answer, body};
use crate::problem::Code;

const RETRY_AFTER: Header =
    Header { name: "Retry-After", about: "When nothing was claimable: seconds after which to ask again." };
const NEXT_DUE: Header = Header {
    name: "Tagwerk-Next-Due",
    about: "With `null`: when the next job that this claim could get is due.",
};
const REPLAYED: Header =
    Header { name: "Report-Replayed", about: "`true`: the same report had been accepted before." };
const IGNORED: Header = Header { name: "Tagwerk-Ignored", about: "Names of the fields that are not known." };

/// What a call about an attempt can be refused with.
const FENCED: &[Code] = &[
    Code::JobNotFound,
    Code::JobDamaged,
    Code::LeaseLost,
    Code::TimedOut,
    Code::Cancelled,
    Code::NotRunning,
    Code::LeaseRequired,
];

/// What a report can be refused with.
const REPORTED: &[Code] = &[
    Code::JobNotFound,
    Code::JobDamaged,
    Code::LeaseLost,
    Code::TimedOut,
    Code::Cancelled,
    Code::NotRunning,
    Code::LeaseRequired,
    Code::AlreadyReported,
];

/// What `release` can be refused with.
const RELEASED: &[Code] = &[
    Code::JobNotFound,
    Code::JobDamaged,
    Code::LeaseLost,
    Code::TimedOut,
    Code::Cancelled,
    Code::NotRunning,
    Code::LeaseRequired,
    Code::AlreadyReported,
    Code::EffectsOpen,
];

/// What `complete` can be refused with.
const COMPLETED: &[Code] = &[
    Code::IdempotencyKeyTaken,
    Code::JobNotFound,
    Code::JobDamaged,
    Code::LeaseLost,
    Code::TimedOut,
    Code::Cancelled,
    Code::NotRunning,
    Code::LeaseRequired,
    Code::AlreadyReported,
    Code::EffectsOpen,
    Code::ResultTooLarge,
    Code::PayloadTooLarge,
    Code::UnknownType,
    Code::UnknownLimit,
];

const fn reported(about: &'static str, example: fn() -> serde_json::Value) -> Answer {
    Answer {
        status: 200,
        about,
        shape: Shape::Of("Job"),
        example: Some(example),
        headers: &[REPLAYED, IGNORED],
    }
}

const fn bulk(about: &'static str, schema: &'static str, example: fn() -> serde_json::Value) -> Answer {
    Answer { status: 200, about, shape: Shape::Of(schema), example: Some(example), headers: &[IGNORED] }
}

pub(super) const ROUTES: &[Route] = &[
    Route {
        method: Method::Post,
        path: "/jobs/claim",
        id: "claim",
        group: Group::Workers,
        summary: "Claim a job",
        about: "Hands out the first claimable job under a lease. Send a heartbeat every `heartbeat_seconds`, or ask for \
                a lease that is long enough. With `wait_seconds` the call waits for a job.",
        body: Some(body("ClaimRequest", examples::claim)),
        answers: &[Answer {
            status: 200,
            about: "The job with its lease, or `null` when nothing is claimable.",
            shape: Shape::OrNull("ClaimedJob"),
            example: Some(examples::claimed),
            headers: &[RETRY_AFTER, NEXT_DUE],
        }],
        problems: &[Code::TooManyWaiting],
        ..Route::EMPTY
    },
    Route {
        method: Method::Post,
        path: "/jobs/claim/bulk",
        id: "claim_bulk",
        group: Group::Workers,
        summary: "Claim several jobs",
        about: "As a single claim, for up to `max_jobs` jobs.",
        body: Some(body("BulkClaimRequest", examples::claim_bulk)),
        answers: &[Answer {
            headers: &[RETRY_AFTER, NEXT_DUE],
            ..answer(200, "The jobs with their leases.", "BulkClaimAnswer", examples::claimed_bulk)
        }],
        problems: &[Code::TooManyWaiting],
        ..Route::EMPTY
    },
    Route {
        method: Method::Post,
        path: "/jobs/{id}/complete",
        id: "complete",
        group: Group::Workers,
        summary: "Report a job as done",
        about: "Counts once; repeating it is harmless. Without `lease` it counts only if it can be nobody else's. `enqueue` \
                creates further jobs in the same transaction: all and the report, or nothing.",
        body: Some(body("CompleteRequest", examples::complete)),
        answers: &[Answer {
            shape: Shape::Of("CompletedJob"),
            ..reported("The job, completed, with what became of `enqueue`.", examples::completed)
        }],
        problems: COMPLETED,
        ..Route::EMPTY
    },
    Route {
        method: Method::Post,
        path: "/jobs/{id}/fail",
        id: "fail",
        group: Group::Workers,
        summary: "Report a failure",
        about: "`transient` is tried again, `permanent` goes to review, `unknown` is tried again with `verify: true` or \
                goes to review.",
        body: Some(body("FailRequest", examples::fail)),
        answers: &[reported("The job, pending again or failed.", examples::job_failed)],
        problems: REPORTED,
        ..Route::EMPTY
    },
    Route {
        method: Method::Post,
        path: "/jobs/{id}/release",
        id: "release",
        group: Group::Workers,
        summary: "Give a job back",
        about: "It is pending again as if it had not been claimed.",
        body: Some(body("ReleaseRequest", examples::release)),
        answers: &[reported("The job, pending.", examples::job)],
        problems: RELEASED,
        ..Route::EMPTY
    },
    Route {
        method: Method::Post,
        path: "/jobs/{id}/heartbeat",
        id: "heartbeat",
        group: Group::Workers,
        summary: "Keep a lease",
        about: "Extends the lease from now. A 409 means stop; `may_report` says whether the outcome can still count.",
        body: Some(body("HeartbeatRequest", examples::heartbeat)),
        answers: &[bulk("Go on.", "HeartbeatAnswer", examples::heartbeat_answer)],
        problems: FENCED,
        ..Route::EMPTY
    },
    Route {
        method: Method::Post,
        path: "/jobs/heartbeat/bulk",
        id: "heartbeat_bulk",
        group: Group::Workers,
        summary: "Keep many leases",
        about: "At most 1,000 leases, each judged by itself and answered in order.",
        body: Some(body("BulkHeartbeatRequest", examples::heartbeat_bulk)),
        answers: &[bulk(
            "What became of each lease.",
            "BulkHeartbeatAnswer",
            examples::heartbeat_bulk_answer,
        )],
        ..Route::EMPTY
    },
    Route {
        method: Method::Post,
        path: "/jobs/{id}/checkpoint",
        id: "checkpoint",
        group: Group::Workers,
        summary: "Store a checkpoint",
        about: "Durable; the next attempt of the job gets the last one.",
        body: Some(body("CheckpointRequest", examples::checkpoint)),
        answers: &[answer(200, "The job with its checkpoint.", "Job", examples::job_running)],
        problems: &[
            Code::JobNotFound,
            Code::JobDamaged,
            Code::LeaseLost,
            Code::TimedOut,
            Code::Cancelled,
            Code::NotRunning,
            Code::LeaseRequired,
            Code::CheckpointTooLarge,
        ],
        ..Route::EMPTY
    },
    Route {
        method: Method::Post,
        path: "/jobs/report/bulk",
        id: "report_bulk",
        group: Group::Workers,
        summary: "Report many jobs and claim new ones",
        about: "A worker's loop in one round trip: at most 1,000 reports, each judged by itself and answered in order. \
                The claim never waits, and whatever becomes of it, the reports count.",
        body: Some(body("ReportBulkRequest", examples::report_bulk)),
        answers: &[bulk(
            "What became of each report, and what was claimed.",
            "ReportBulkAnswer",
            examples::report_bulk_answer,
        )],
        ..Route::EMPTY
    },
];
