//! Routes for those who enqueue and look.

use super::examples;
use super::route::{
    Answer, Group, Header, LIMIT, Lines, Method, Param, ParamKind, Route, Shape, answer, body, param,
};
use crate::problem::Code;

const KEY: Header = Header {
    name: "Idempotency-Key",
    about: "The idempotency key; a key given here makes `on_mismatch` default to `reject`.",
};
const LOCATION: Header = Header { name: "Location", about: "Path of the new job." };
const KEY_REPLAYED: Header =
    Header { name: "Idempotency-Replayed", about: "`true`: the job existed before." };

const JOB_FILTERS: &[Param] = &[
    param("status", ParamKind::Named("Status"), "Where they stand."),
    param("type", ParamKind::Text, "What they do."),
    param("queue", ParamKind::Text, "The capacity that they draw on."),
    param("subject_kind", ParamKind::Text, "Kind of their business object."),
    param("subject_id", ParamKind::Text, "Id of their business object."),
    param("correlation_id", ParamKind::Text, "Their correlation id."),
    param("idempotency_key", ParamKind::Text, "Their idempotency key."),
    param("since", ParamKind::Time, "Created at or after."),
    param("until", ParamKind::Time, "Created before."),
    LIMIT,
    param("after", ParamKind::Integer, "Ids above this one: `next` of the page before."),
];

pub(super) const ROUTES: &[Route] = &[
    Route {
        method: Method::Post,
        path: "/jobs",
        id: "enqueue",
        group: Group::Jobs,
        summary: "Enqueue a job",
        about: "Needs only `type`. A success answer is sent after the job is durable. With an idempotency key a repeated \
                call makes no second job but answers with the first one.",
        headers: &[KEY],
        body: Some(body("EnqueueRequest", examples::enqueue)),
        answers: &[
            Answer {
                status: 201,
                about: "The job was created.",
                shape: Shape::Of("EnqueueAnswer"),
                example: Some(examples::enqueued),
                headers: &[LOCATION],
            },
            Answer {
                status: 200,
                about: "The key belongs to this job; nothing was created. A pruned job answers as a tombstone.",
                shape: Shape::Of("Enqueued"),
                example: Some(examples::enqueued_before),
                headers: &[KEY_REPLAYED],
            },
        ],
        problems: &[
            Code::PayloadTooLarge,
            Code::UnknownType,
            Code::UnknownLimit,
            Code::JobDamaged,
            Code::Duplicate,
            Code::IdempotencyKeyReused,
            Code::IdempotencyKeyConflict,
            Code::IdempotencyKeyTaken,
            Code::QueueFull,
            Code::QueueDraining,
        ],
        ..Route::EMPTY
    },
    Route {
        method: Method::Post,
        path: "/jobs/bulk",
        id: "enqueue_bulk",
        group: Group::Jobs,
        summary: "Enqueue many jobs",
        about: "At most 10,000 jobs, stored together. Each is judged by itself and answered in order with the status \
                that a call of its own would have had; `atomic: true` takes all or none. Or a stream of any length, \
                one job a line, as `application/x-ndjson`.",
        params: &[param(
            "results",
            ParamKind::Named("StreamResults"),
            "For a stream: which lines are answered one by one.",
        )],
        body: Some(body("BulkEnqueueRequest", examples::enqueue_bulk)),
        lines: Some(Lines {
            schema: "EnqueueRequest",
            answers: &["RefusedLine", "StoredLine", "StreamEnd"],
            about: "As `application/x-ndjson`: one job a line, of any number, stored in order and in parts while they come. \
                    Blank lines are skipped and counted; a line that is refused touches no other. The answer has a line \
                    for each of the first 1,000 refused lines and a last line with the counts; it comes when the stream \
                    has been read, however late the client reads it. With `results=all` each line is answered as soon as \
                    it is stored, and the client must read while it writes. A last line with `done: false` says at which \
                    line it ended and why; every line before that one was judged. An answer without a last line is not \
                    finished: send the lines again, with their keys.",
            example: examples::lines,
        }),
        answers: &[answer(200, "What became of each job.", "BulkEnqueueAnswer", examples::enqueued_bulk)],
        ..Route::EMPTY
    },
    Route {
        path: "/jobs",
        id: "list_jobs",
        group: Group::Jobs,
        summary: "List jobs",
        about: "Ascending by id, in list form. Every filter that is given must hold.",
        params: JOB_FILTERS,
        answers: &[answer(200, "A page of jobs.", "JobsPage", examples::jobs_page)],
        ..Route::EMPTY
    },
    Route {
        path: "/jobs/{id}",
        id: "get_job",
        group: Group::Jobs,
        summary: "Show a job",
        about: "With `wait_seconds` the answer comes when the job is completed, failed or cancelled, or at the end of \
                the wait.",
        params: &[param("wait_seconds", ParamKind::Seconds, "Wait up to this long, at most 60.")],
        answers: &[answer(200, "The whole job.", "Job", examples::job)],
        problems: &[Code::JobNotFound, Code::JobDamaged, Code::TooManyWaiting],
        ..Route::EMPTY
    },
    Route {
        path: "/jobs/{id}/attempts",
        id: "list_attempts",
        group: Group::Jobs,
        summary: "Show a job's history",
        about: "Attempts oldest first, and what operators did.",
        params: &[
            LIMIT,
            param(
                "after",
                ParamKind::Integer,
                "Lease numbers (`seq`) above this one: `next` of the page before.",
            ),
        ],
        answers: &[answer(200, "A page of attempts.", "AttemptsPage", examples::attempts_page)],
        problems: &[Code::JobNotFound, Code::JobDamaged],
        ..Route::EMPTY
    },
    Route {
        path: "/jobs/{id}/explain",
        id: "explain_job",
        group: Group::Jobs,
        summary: "Say why a job stands where it stands",
        about: "Judged at the moment of the call.",
        answers: &[answer(200, "The reasons.", "Explain", examples::explain)],
        problems: &[Code::JobNotFound, Code::JobDamaged],
        ..Route::EMPTY
    },
];
