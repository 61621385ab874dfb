//! Limits: how many jobs may run or start under a name.

use std::cmp::Reverse;
use std::sync::Arc;

use axum::body::HttpBody;
use axum::extract::{Request, State};
use http::StatusCode;
use tagwerk_api::answer::{LimitDeleted, LimitInfo, LimitList, LimitUse};
use tagwerk_api::door::Door;
use tagwerk_api::problem::Code;
use tagwerk_api::request::{LimitSettings, RateSettings};
use tagwerk_api::{LimitClosed, Seconds};
use tagwerk_core::gate::{self, Room, room};
use tagwerk_core::{Timestamp, limits};
use tagwerk_engine::command::{LimitAnswer, LimitCall, LimitState};
use tagwerk_engine::message::By;
use tagwerk_engine::query::{Closed, closed};
use tagwerk_engine::row::{self, Lane, LimitRef};

use super::access::Rights;
use super::ask::ask;
use super::overview::page;
use super::problem::Refused;
use super::reply::{self, Answer};
use super::sent::{NoQuery, PathText, Query, Sent};
use super::{App, decode, view};

type Shared = State<Arc<App>>;

/// `GET /limits`
pub(super) async fn list(State(app): Shared, Query(query): Query) -> Answer {
    let asked = app.door.names_query(&query)?;
    let states = states(&app, LimitCall::List).await?;
    let (states, next) = page(states, &asked, |state| &state.row.name);
    reply::large_json(StatusCode::OK, move || {
        let limits = states.into_iter().map(|state| LimitInfo { uses: None, ..info(state) });
        LimitList { limits: limits.collect(), next }
    })
    .await
}

/// `GET /limits/{name}`
pub(super) async fn get(State(app): Shared, PathText(name): PathText, _: NoQuery) -> Answer {
    app.door.limit_name(&name)?;
    let found = states(&app, LimitCall::Show(name)).await?.pop();
    let found = found.ok_or_else(|| Refused::of(Code::InternalError))?;
    reply::large_json(StatusCode::OK, move || info(found)).await
}

/// `PUT /limits/{name}`
pub(super) async fn put(State(app): Shared, PathText(name): PathText, _: NoQuery, sent: Sent) -> Answer {
    app.door.limit_name(&name)?;
    let path = name.clone();
    let settings = sent.decode(&app, move |door, body| door.limit_settings(&path, body)).await?;
    let put = LimitCall::Put(name, decode::limit_settings(settings));
    match call_by(&app, put, sent.rights().by()).await? {
        LimitAnswer::Put { limit, is_new } => {
            let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
            reply::large_json(status, move || info(*limit)).await
        }
        LimitAnswer::Limits(_) | LimitAnswer::Deleted => Err(Refused::of(Code::InternalError)),
    }
}

/// `DELETE /limits/{name}`
pub(super) async fn delete(
    State(app): Shared,
    PathText(name): PathText,
    _: NoQuery,
    request: Request,
) -> Answer {
    let rights = Rights::of(request.extensions());
    if !request.body().is_end_stream() {
        return Err(Refused::new(Code::InvalidRequest, "DELETE takes no body; leave it out"));
    }
    app.door.limit_name(&name)?;
    call_by(&app, LimitCall::Delete(name.clone()), rights.by()).await?;
    reply::json(StatusCode::OK, &LimitDeleted { name, deleted: true })
}

/// `POST /limits/{name}/open`
pub(super) async fn open(State(app): Shared, PathText(name): PathText, _: NoQuery, sent: Sent) -> Answer {
    app.door.limit_name(&name)?;
    let partition = sent.decode(&app, Door::open_limit).await?.unwrap_or_default();
    let open = LimitCall::Open(LimitRef { name, partition });
    let found = states_of(call_by(&app, open, sent.rights().by()).await?)?.pop();
    let found = found.ok_or_else(|| Refused::of(Code::InternalError))?;
    reply::large_json(StatusCode::OK, move || info(found)).await
}

/// The limits of a lane, as they stand now.
pub(super) async fn of_lane(app: &App, lane: &Lane) -> Result<Vec<LimitState>, Refused> {
    let mut found = Vec::new();
    for limit in lane.limits() {
        match call(app, LimitCall::Show(limit.name.clone())).await {
            Ok(LimitAnswer::Limits(limits)) => found.extend(limits),
            // Deleted between two looks: it bounds nothing.
            Ok(_) => {}
            Err(refused) if refused.code() == Some(Code::LimitNotFound) => {}
            Err(refused) => return Err(refused),
        }
    }
    Ok(found)
}

/// All limits.
pub(super) async fn all(app: &App) -> Result<Vec<LimitState>, Refused> {
    states(app, LimitCall::List).await
}

async fn states(app: &App, of: LimitCall) -> Result<Vec<LimitState>, Refused> {
    states_of(call(app, of).await?)
}

fn states_of(answer: LimitAnswer) -> Result<Vec<LimitState>, Refused> {
    match answer {
        LimitAnswer::Limits(states) => Ok(states),
        LimitAnswer::Put { .. } | LimitAnswer::Deleted => Err(Refused::of(Code::InternalError)),
    }
}

/// A call that changes nothing.
async fn call(app: &App, call: LimitCall) -> Result<LimitAnswer, Refused> {
    call_by(app, call, By::local()).await
}

async fn call_by(app: &App, call: LimitCall, by: By) -> Result<LimitAnswer, Refused> {
    Ok(ask(|reply| app.engine.limit((call, by), reply)).await??)
}

fn info(state: LimitState) -> LimitInfo {
    let LimitState { row, mut uses, at } = state;
    let running = uses.iter().map(|of| u64::from(of.running)).sum();
    let partitions = uses.len() as u64;
    let throttled = uses.iter().filter(|of| of.hold_until.is_some_and(|until| until > at)).count() as u64;
    uses.sort_by_key(|of| Reverse(of.running));
    uses.truncate(limits::LIMIT_USES_SHOWN);
    let uses = Some(uses.into_iter().map(|of| shown(&row.settings, of, at)).collect());
    LimitInfo { name: row.name, settings: settings(&row.settings), running, partitions, throttled, uses }
}

fn settings(of: &gate::LimitSettings) -> LimitSettings {
    let rate = of.rate.map(|rate| RateSettings {
        count: rate.count,
        per_seconds: Seconds::from_ms(rate.per_ms),
        spread: Some(rate.spread),
    });
    LimitSettings { max_running: of.max_running, rate }
}

fn shown(settings: &gate::LimitSettings, used: row::LimitUse, now: Timestamp) -> LimitUse {
    let room = room(settings, used.running, (&used.window, used.hold_until), now);
    let (open, opens_at) = match room {
        Room::Open(u32::MAX) => (None, None),
        Room::Open(n) => (Some(n), None),
        Room::Full => (Some(0), None),
        Room::Until(at) => (Some(0), Some(at)),
    };
    let closed = closed(settings, &used, now).first().map(|closed| match closed {
        Closed::Held(_) => LimitClosed::Throttled,
        Closed::Full => LimitClosed::Full,
        Closed::Spent(_) => LimitClosed::RateExhausted,
    });
    let partition = Some(used.limit.partition).filter(|partition| !partition.is_empty());
    LimitUse { partition, running: used.running, open, closed, opens_at: opens_at.map(view::time) }
}
