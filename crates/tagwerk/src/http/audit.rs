//! The audit log: what operators did.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use tagwerk_api::answer::{AuditEntry, AuditPage};
use tagwerk_engine::row::{AuditQuery, AuditRow};

use super::jobs::page_size;
use super::reply::{self, Answer};
use super::sent::Query;
use super::{App, decode, view};

/// `GET /audit`
pub(super) async fn list(State(app): State<Arc<App>>, Query(query): Query) -> Answer {
    let asked = app.door.audit_query(&query)?;
    let size = page_size(asked.limit);
    let query = AuditQuery {
        after: asked.after.unwrap_or_default(),
        since: asked.since.map(decode::time),
        until: asked.until.map(decode::time),
        // One more than is shown tells whether there is anything behind.
        limit: size + 1,
    };
    let mut rows = app.read(move |read| read.audit(&query)).await?;
    let more = rows.len() > size;
    rows.truncate(size);
    let next = rows.last().filter(|_| more).map(|last| last.n.to_string());
    reply::large_json(StatusCode::OK, move || AuditPage {
        entries: rows.into_iter().map(entry).collect(),
        next,
    })
    .await
}

fn entry(row: AuditRow) -> AuditEntry {
    let AuditRow { n, at, who, action, target, note } = row;
    AuditEntry { n, at: view::time(at), who, action, target, note }
}
