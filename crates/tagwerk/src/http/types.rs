//! Types: defaults for their jobs, and how these do.

use std::sync::Arc;

use axum::body::HttpBody;
use axum::extract::{Request, State};
use http::StatusCode;
use tagwerk_api::answer::{TypeInfo, TypeList};
use tagwerk_api::problem::Code;
use tagwerk_core::Timestamp;
use tagwerk_engine::command::PutType;
use tagwerk_engine::message::By;
use tagwerk_engine::query::{self, TypeView};
use tagwerk_engine::row::{Tally, TypeSettings};

use super::access::Rights;
use super::ask::ask;
use super::overview::{counts, page};
use super::problem::Refused;
use super::reply::{self, Answer};
use super::sent::{NoQuery, PathText, Query, Sent};
use super::{App, decode, view};

type Shared = State<Arc<App>>;

/// `GET /types`
pub(super) async fn list(State(app): Shared, rights: Rights, Query(query): Query) -> Answer {
    let asked = app.door.names_query(&query)?;
    let now = app.clock.now();
    let all = app.read(move |read| query::types(read, now)).await?;
    let seen = all.into_iter().filter(|view| rights.see_name(|reach| &reach.types, &view.kind)).collect();
    let (types, next) = page(seen, &asked, |view| &view.kind);
    let types = types.into_iter().map(|view| info(view, now)).collect();
    reply::json(StatusCode::OK, &TypeList { types, next })
}

/// `GET /types/{type}`
pub(super) async fn get(State(app): Shared, PathText(kind): PathText, _: NoQuery) -> Answer {
    app.door.type_name(&kind)?;
    match find(&app, &kind).await? {
        Some(found) => reply::json(StatusCode::OK, &found),
        None => Err(unknown(&kind)),
    }
}

/// `PUT /types/{type}`
pub(super) async fn put(State(app): Shared, PathText(kind): PathText, _: NoQuery, sent: Sent) -> Answer {
    app.door.type_name(&kind)?;
    let name = kind.clone();
    let settings = sent.decode(&app, move |door, body| door.type_settings(&name, body)).await?;
    write(&app, (&kind, Some(decode::type_settings(settings))), sent.rights().by()).await?;
    shown(&app, &kind).await
}

/// `DELETE /types/{type}`
pub(super) async fn delete(
    State(app): Shared,
    PathText(kind): PathText,
    _: NoQuery,
    request: Request,
) -> Answer {
    let rights = Rights::of(request.extensions());
    if !request.body().is_end_stream() {
        return Err(Refused::new(Code::InvalidRequest, "DELETE takes no body; leave it out"));
    }
    app.door.type_name(&kind)?;
    if write(&app, (&kind, None), rights.by()).await? {
        shown(&app, &kind).await
    } else {
        Err(unknown(&kind))
    }
}

/// Writes settings; says whether there were any before.
async fn write(app: &App, (kind, settings): (&str, Option<TypeSettings>), by: By) -> Result<bool, Refused> {
    let command = PutType { kind: kind.to_owned(), settings };
    let before = ask(|reply| app.engine.put_type((command, by), reply)).await??;
    app.reload_owners().await?;
    Ok(before)
}

async fn shown(app: &App, kind: &str) -> Answer {
    let found = find(app, kind).await?;
    let bare =
        || TypeView { kind: kind.to_owned(), settings: None, tally: Tally::default(), oldest_ready: None };
    reply::json(StatusCode::OK, &found.unwrap_or_else(|| info(bare(), app.clock.now())))
}

async fn find(app: &App, kind: &str) -> Result<Option<TypeInfo>, Refused> {
    let now = app.clock.now();
    let all = app.read(move |read| query::types(read, now)).await?;
    Ok(all.into_iter().find(|view| view.kind == kind).map(|view| info(view, now)))
}

fn unknown(kind: &str) -> Refused {
    Refused::new(Code::TypeNotFound, format!("there are no settings for type {kind:?}; PUT makes some"))
}

fn info(view: TypeView, now: Timestamp) -> TypeInfo {
    TypeInfo {
        job_type: view.kind,
        configured: view.settings.is_some(),
        settings: view::type_settings(view.settings.unwrap_or_default()),
        counts: counts(&view.tally),
        oldest_ready_age_seconds: view.oldest_ready.map(|since| view::age(since, now)),
    }
}
