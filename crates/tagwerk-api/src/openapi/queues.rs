//! Routes about queues.

use super::examples;
use super::operating::NAME_PAGE;
use super::route::{Answer, Group, Method, Route, answer, body};
use crate::problem::Code;

const ANSWERS: &[Answer] = &[answer(200, "The queue.", "QueueInfo", examples::queue_info)];

/// Something said about one queue. It need not have had a job yet.
const CALL: Route = Route { method: Method::Post, group: Group::Operating, answers: ANSWERS, ..Route::EMPTY };

pub(super) const ROUTES: &[Route] = &[
    Route {
        path: "/queues",
        id: "list_queues",
        group: Group::Operating,
        summary: "List queues",
        about: "What waits in each, since when, and when a worker last asked.",
        params: NAME_PAGE,
        answers: &[answer(200, "A page of queues.", "QueueList", examples::queue_list)],
        ..Route::EMPTY
    },
    Route {
        path: "/queues/{queue}",
        id: "get_queue",
        group: Group::Operating,
        summary: "Show a queue",
        about: "What waits in it, its bounds, and who has paused or drained it, when and why.",
        answers: ANSWERS,
        problems: &[Code::QueueNotFound],
        ..Route::EMPTY
    },
    Route {
        method: Method::Put,
        path: "/queues/{queue}",
        id: "put_queue",
        summary: "Set a queue's bounds",
        about: "Replaces all of them: what is missing is not bounded any more. Touches no job.",
        body: Some(body("QueueSettings", examples::queue_settings)),
        ..CALL
    },
    Route {
        path: "/queues/{queue}/pause",
        id: "pause_queue",
        summary: "Pause a queue",
        about: "None of its jobs is handed out while a reason stands, also after a restart, a lost lease or a retry. Running \
                jobs go on, producers are served. A reason that stands already stays as it is.",
        body: Some(body("PauseRequest", examples::pause)),
        problems: &[Code::TooManyPauses],
        ..CALL
    },
    Route {
        path: "/queues/{queue}/resume",
        id: "resume_queue",
        summary: "Lift a reason of a pause",
        about: "The named one, or the only one. The queue goes on when none is left. Resuming a queue that is not paused is \
                harmless.",
        body: Some(body("ResumeRequest", examples::resume)),
        problems: &[Code::ReasonRequired, Code::PauseNotFound],
        ..CALL
    },
    Route {
        path: "/queues/{queue}/drain",
        id: "drain_queue",
        summary: "Refuse new jobs",
        about: "Producers get 503 `queue-draining`; what is there is worked off, and `drained` says when that is done. Jobs \
                in review can still be retried.",
        body: Some(body("DrainRequest", examples::drain)),
        ..CALL
    },
    Route {
        path: "/queues/{queue}/open",
        id: "open_queue",
        summary: "Take new jobs again",
        about: "Opening an open queue is harmless.",
        ..CALL
    },
];
