//! Routes for those who operate.

use super::examples;
use super::route::{
    Answer, Group, IF_MATCH, LIMIT, Method, Param, ParamKind, Route, Shape, answer, body, param,
};
use crate::problem::Code;

const REVIEW_FILTERS: &[Param] = &[
    param("type", ParamKind::Text, "What they do."),
    param("queue", ParamKind::Text, "The capacity that they draw on."),
    param("class", ParamKind::Named("ErrorClass"), "How their failure is to be understood."),
    param("reason", ParamKind::Named("FailureReason"), "Why they are in review."),
    param("since", ParamKind::Time, "Failed at or after."),
    param("until", ParamKind::Time, "Failed before."),
    LIMIT,
    param("after", ParamKind::Integer, "Ids above this one: `next` of the page before."),
];

pub(super) const NAME_PAGE: &[Param] =
    &[LIMIT, param("after", ParamKind::Text, "Names after this one: `next` of the page before.")];

/// An operator's call about one job.
const CALL: Route =
    Route { method: Method::Post, group: Group::Review, headers: &[IF_MATCH], ..Route::EMPTY };

pub(super) const ROUTES: &[Route] = &[
    Route {
        path: "/review",
        id: "list_review",
        group: Group::Review,
        summary: "List failed jobs",
        about: "They stay until a person or an API call decides: retry or discard.",
        params: REVIEW_FILTERS,
        answers: &[answer(200, "A page of failed jobs.", "ReviewPage", examples::review_page)],
        ..Route::EMPTY
    },
    Route {
        path: "/jobs/{id}/retry",
        id: "retry",
        summary: "Run a failed job again",
        about: "On the same id, with its key and history, due now, and with a new retry budget.",
        body: Some(body("RetryRequest", examples::retry)),
        answers: &[answer(200, "The job, pending.", "Job", examples::job)],
        problems: &[
            Code::JobNotFound,
            Code::JobDamaged,
            Code::InvalidPrecondition,
            Code::PayloadTooLarge,
            Code::NotFailed,
            Code::Superseded,
            Code::VersionChanged,
            Code::IdempotencyKeyHeld,
        ],
        ..CALL
    },
    Route {
        path: "/jobs/{id}/discard",
        id: "discard",
        summary: "Take a failed job out of review",
        about: "It is cancelled for good; doing it twice is harmless.",
        body: Some(body("DiscardRequest", examples::discard)),
        answers: &[answer(200, "The job, cancelled.", "Job", examples::job_cancelled)],
        problems: &[
            Code::JobNotFound,
            Code::JobDamaged,
            Code::InvalidPrecondition,
            Code::UseCancel,
            Code::VersionChanged,
        ],
        ..CALL
    },
    Route {
        path: "/jobs/{id}/cancel",
        id: "cancel",
        summary: "Cancel a job",
        about: "A running attempt loses its lease at once, or with `wait` at its next call. Doing it twice is harmless.",
        body: Some(body("CancelRequest", examples::cancel)),
        answers: &[answer(200, "The job, cancelled or about to be.", "Job", examples::job_cancelled)],
        problems: &[
            Code::JobNotFound,
            Code::JobDamaged,
            Code::InvalidPrecondition,
            Code::UseDiscard,
            Code::AlreadyCompleted,
            Code::VersionChanged,
        ],
        ..CALL
    },
    Route {
        path: "/jobs/{id}/force-fail",
        id: "force_fail",
        summary: "Put a running job into review",
        about: "Ends the attempt whatever its worker does; for work that hangs.",
        body: Some(body("ForceFailRequest", examples::force_fail)),
        answers: &[answer(200, "The job, failed.", "Job", examples::job_failed)],
        problems: &[
            Code::JobNotFound,
            Code::JobDamaged,
            Code::InvalidPrecondition,
            Code::NotRunning,
            Code::VersionChanged,
        ],
        ..CALL
    },
    Route {
        path: "/jobs/{id}/unblock",
        id: "unblock",
        summary: "Let the jobs behind a failed one go on",
        about: "For a job in review that holds back others with its ordering key. It stays in review; a retry puts it back \
                into its place.",
        body: Some(body("UnblockRequest", examples::unblock)),
        answers: &[answer(200, "The job, still failed.", "Job", examples::job_failed)],
        problems: &[
            Code::JobNotFound,
            Code::JobDamaged,
            Code::InvalidPrecondition,
            Code::NotFailed,
            Code::NotHolding,
            Code::VersionChanged,
        ],
        ..CALL
    },
    Route {
        method: Method::Delete,
        path: "/jobs/{id}",
        id: "delete_job",
        group: Group::Review,
        summary: "Erase a job",
        about: "In whatever state it is: job, payload and attempts go; its key and the count of it stay. So does a job that \
                cannot be read, unless a version is named.",
        headers: &[IF_MATCH],
        params: &[param("seen_version", ParamKind::Integer, "Only if the job still has this version.")],
        answers: &[answer(200, "The job as it was last.", "Deleted", examples::job_cancelled)],
        problems: &[Code::JobNotFound, Code::JobDamaged, Code::InvalidPrecondition, Code::VersionChanged],
        ..Route::EMPTY
    },
    Route {
        path: "/types",
        id: "list_types",
        group: Group::Operating,
        summary: "List types",
        about: "Every type that has settings or jobs, by name.",
        params: NAME_PAGE,
        answers: &[answer(200, "A page of types.", "TypeList", examples::type_list)],
        ..Route::EMPTY
    },
    Route {
        path: "/types/{type}",
        id: "get_type",
        group: Group::Operating,
        summary: "Show a type",
        about: "Its settings and its jobs.",
        answers: &[answer(200, "The type.", "TypeInfo", examples::type_info)],
        problems: &[Code::TypeNotFound],
        ..Route::EMPTY
    },
    Route {
        method: Method::Put,
        path: "/types/{type}",
        id: "put_type",
        group: Group::Operating,
        summary: "Set a type's defaults",
        about: "For jobs enqueued from now on. Replaces all settings: what is missing goes back to the server's default.",
        body: Some(body("TypeSettings", examples::type_settings)),
        answers: &[answer(200, "The type.", "TypeInfo", examples::type_info)],
        problems: &[Code::UnknownLimit],
        ..Route::EMPTY
    },
    Route {
        method: Method::Delete,
        path: "/types/{type}",
        id: "delete_type",
        group: Group::Operating,
        summary: "Remove a type's defaults",
        about: "Touches no job.",
        answers: &[answer(200, "The type without settings.", "TypeInfo", examples::type_info_bare)],
        problems: &[Code::TypeNotFound],
        ..Route::EMPTY
    },
    Route {
        path: "/limits",
        id: "list_limits",
        group: Group::Operating,
        summary: "List limits",
        about: "What each bounds, and how many jobs run under it.",
        params: NAME_PAGE,
        answers: &[answer(200, "A page of limits.", "LimitList", examples::limit_list)],
        ..Route::EMPTY
    },
    Route {
        path: "/limits/{name}",
        id: "get_limit",
        group: Group::Operating,
        summary: "Show a limit",
        about: "What it bounds, and for each partition in use what runs, how many may start, and when it opens.",
        answers: &[answer(200, "The limit.", "LimitInfo", examples::limit_info)],
        problems: &[Code::LimitNotFound],
        ..Route::EMPTY
    },
    Route {
        method: Method::Put,
        path: "/limits/{name}",
        id: "put_limit",
        group: Group::Operating,
        summary: "Make or change a limit",
        about: "Holds at once, for jobs that wait too. Replaces all settings: what is missing bounds nothing.",
        body: Some(body("LimitSettings", examples::limit_settings)),
        answers: &[
            answer(200, "The limit, changed.", "LimitInfo", examples::limit_info),
            answer(201, "The limit, new.", "LimitInfo", examples::limit_info_new),
        ],
        ..Route::EMPTY
    },
    Route {
        method: Method::Delete,
        path: "/limits/{name}",
        id: "delete_limit",
        group: Group::Operating,
        summary: "Remove a limit",
        about: "Only when neither a job that has not ended nor the settings of a type name it.",
        answers: &[answer(200, "It is gone.", "LimitDeleted", examples::limit_deleted)],
        problems: &[Code::LimitNotFound, Code::LimitInUse],
        ..Route::EMPTY
    },
    Route {
        method: Method::Post,
        path: "/limits/{name}/open",
        id: "open_limit",
        group: Group::Operating,
        summary: "Lift what workers have held back",
        about: "A worker can close a limit for a while (`throttle` of a failure), or one of its partitions. This opens the named \
                partition, or the limit with all of them; its bounds hold on. Opening what is open is harmless.",
        body: Some(body("OpenLimitRequest", examples::open_limit)),
        answers: &[answer(200, "The limit.", "LimitInfo", examples::limit_info)],
        problems: &[Code::LimitNotFound],
        ..Route::EMPTY
    },
    Route {
        path: "/workers",
        id: "list_workers",
        group: Group::Operating,
        summary: "List workers",
        about: "Who was seen lately or holds a job, and what each holds.",
        params: NAME_PAGE,
        answers: &[answer(200, "A page of workers.", "WorkerList", examples::worker_list)],
        ..Route::EMPTY
    },
    Route {
        path: "/stats",
        id: "stats",
        group: Group::Operating,
        summary: "Show figures",
        about: "Counts of all jobs, events since the store was made, and how the server itself does.",
        answers: &[answer(200, "The figures.", "Stats", examples::stats)],
        ..Route::EMPTY
    },
    Route {
        path: "/audit",
        id: "audit",
        group: Group::Operating,
        summary: "Show what operators did",
        about: "Every action with when, who, what and on what, oldest first; never a payload. It is written in the \
                transaction of the action.",
        params: &[
            param("since", ParamKind::Time, "Done at or after."),
            param("until", ParamKind::Time, "Done before."),
            LIMIT,
            param("after", ParamKind::Integer, "Numbers above this one: `next` of the page before."),
        ],
        answers: &[answer(200, "A page of the audit log.", "AuditPage", examples::audit_page)],
        ..Route::EMPTY
    },
    Route {
        path: "/metrics",
        id: "metrics",
        group: Group::Operating,
        summary: "Metrics for Prometheus",
        about: "By queue and type; ids, keys and worker names are never labels.",
        answers: &[Answer {
            status: 200,
            about: "OpenMetrics text.",
            shape: Shape::Text("application/openmetrics-text"),
            example: None,
            headers: &[],
        }],
        ..Route::EMPTY
    },
    Route {
        path: "/livez",
        id: "livez",
        summary: "Whether the process answers",
        about: "Says nothing about the store.",
        answers: &[answer(200, "It does.", "Livez", examples::livez)],
        ..Route::EMPTY
    },
    Route {
        path: "/readyz",
        id: "readyz",
        summary: "Whether work can be done",
        about: "For load balancers and probes.",
        params: &[param("verbose", ParamKind::Flag, "Show what was looked at.")],
        answers: &[
            answer(200, "It can.", "Readyz", examples::readyz),
            answer(503, "It cannot.", "Readyz", examples::not_readyz),
        ],
        ..Route::EMPTY
    },
    Route {
        path: "/openapi.json",
        id: "openapi",
        summary: "This document",
        about: "`OpenAPI` 3.1.",
        answers: &[Answer {
            status: 200,
            about: "The document.",
            shape: Shape::Document,
            example: None,
            headers: &[],
        }],
        ..Route::EMPTY
    },
];
