//! Routes about alerts.

use super::examples;
use super::route::{Group, LIMIT, Method, ParamKind, Route, answer, body, param};
use crate::problem::Code;

pub(super) const ROUTES: &[Route] = &[
    Route {
        path: "/alerts",
        id: "list_alerts",
        group: Group::Operating,
        summary: "List alerts",
        about: "What somebody should look at, and what that was before: open and closed ones, oldest first. The server tells of \
                each once when it opens and once when it closes (settings `alerts.*`).",
        params: &[
            param("status", ParamKind::Named("AlertStatus"), "Only those that are open, or closed."),
            LIMIT,
            param("after", ParamKind::Integer, "Numbers above this one: `next` of the page before."),
        ],
        answers: &[answer(200, "A page of alerts.", "AlertsPage", examples::alerts_page)],
        ..Route::EMPTY
    },
    Route {
        method: Method::Post,
        path: "/alerts/{id}/ack",
        id: "acknowledge_alert",
        group: Group::Operating,
        summary: "Say that you look after an alert",
        about: "It stays open until what it is about has ended. The first who says so is kept; doing it again is harmless.",
        body: Some(body("AckRequest", examples::ack)),
        answers: &[answer(200, "The alert.", "AlertInfo", examples::alert_acknowledged)],
        problems: &[Code::AlertNotFound],
        ..Route::EMPTY
    },
];
