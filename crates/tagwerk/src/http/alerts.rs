//! Alerts: what somebody should look at.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use tagwerk_api::answer::{AlertInfo, AlertsPage};
use tagwerk_api::door::Door;
use tagwerk_api::problem::Code;
use tagwerk_api::{AlertKind, AlertScope, AlertStatus};
use tagwerk_engine::command::{AlertAnswer, AlertCall};
use tagwerk_engine::row::{AlertQuery, AlertRow, Which};

use super::jobs::page_size;
use super::problem::Refused;
use super::reply::{self, Answer};
use super::sent::{NoQuery, PathId, Query, Sent};
use super::{App, view};
use crate::alerts::figures::{amount, unit};

type Shared = State<Arc<App>>;

/// `GET /alerts`
pub(super) async fn list(State(app): Shared, Query(query): Query) -> Answer {
    let asked = app.door.alerts_query(&query)?;
    let size = page_size(asked.limit);
    let which = match asked.status {
        None => Which::All,
        Some(AlertStatus::Open) => Which::Open,
        Some(AlertStatus::Closed) => Which::Closed,
    };
    // One more than is shown tells whether there is anything behind.
    let query = AlertQuery { after: asked.after.unwrap_or_default(), which, limit: size + 1 };
    let mut rows = app.read(move |read| read.alerts(&query)).await?;
    let more = rows.len() > size;
    rows.truncate(size);
    let next = rows.last().filter(|_| more).map(|last| last.id.to_string());
    let alerts: Option<Vec<AlertInfo>> = rows.into_iter().map(info).collect();
    let alerts = alerts.ok_or_else(|| Refused::of(Code::InternalError))?;
    reply::large_json(StatusCode::OK, move || AlertsPage { alerts, next }).await
}

/// `POST /alerts/{id}/ack`
pub(super) async fn acknowledge(State(app): Shared, PathId(id): PathId, _: NoQuery, sent: Sent) -> Answer {
    let note = sent.decode(&app, Door::acknowledge).await?;
    let call = AlertCall::Acknowledge { id: id.0, note };
    match super::ask::ask(|reply| app.engine.alert((call, sent.rights().by()), reply)).await? {
        AlertAnswer::Alert { alert, .. } => {
            let alert = info(*alert).ok_or_else(|| Refused::of(Code::InternalError))?;
            reply::json(StatusCode::OK, &alert)
        }
        AlertAnswer::NoSuchAlert => {
            Err(Refused::new(Code::AlertNotFound, format!("there is no alert {}", id.0)))
        }
        AlertAnswer::Judged { .. } => Err(Refused::of(Code::InternalError)),
    }
}

/// An alert on the wire. `None` only if a kind has no name there, which a test rules out.
fn info(row: AlertRow) -> Option<AlertInfo> {
    let acknowledged = row.acknowledged;
    Some(AlertInfo {
        id: row.id,
        kind: AlertKind::from_name(row.kind.name())?,
        scope: AlertScope::from_name(row.scope.word())?,
        name: Some(row.scope.name().to_owned()).filter(|name| !name.is_empty()),
        status: if row.closed_at.is_none() { AlertStatus::Open } else { AlertStatus::Closed },
        opened_at: view::time(row.opened_at),
        last_seen_at: view::time(row.seen_at),
        closed_at: row.closed_at.map(view::time),
        acknowledged_at: acknowledged.as_ref().map(|acknowledged| view::time(acknowledged.at)),
        acknowledged_by: acknowledged.as_ref().map(|acknowledged| acknowledged.by.clone()),
        note: acknowledged.and_then(|acknowledged| acknowledged.note),
        owner: row.owner,
        detail: row.detail,
        value: amount(row.kind, row.value),
        threshold: amount(row.kind, row.threshold),
        unit: unit(row.kind),
    })
}

#[cfg(test)]
mod tests {
    use tagwerk_core::alert::Kind;

    use super::*;

    #[test]
    fn every_kind_has_its_name_on_the_wire() {
        let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names, AlertKind::NAMES);
    }
}
