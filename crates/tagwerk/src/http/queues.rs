//! Queues: what waits in them, and what operators say about them.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use tagwerk_api::answer::{QueueInfo, QueueList};
use tagwerk_api::problem::{Code, Refusal};
use tagwerk_core::Timestamp;
use tagwerk_engine::command::{ControlQueue, QueueControl};
use tagwerk_engine::query::{self, QueueView};
use tagwerk_engine::row::{Counter, QueueRow, Tally};

use super::access::Rights;
use super::ask::ask;
use super::overview::{counts, page};
use super::problem::{self, Refused};
use super::reply::{self, Answer};
use super::sent::{NoQuery, PathText, Query, Sent};
use super::{App, decode, view};

type Shared = State<Arc<App>>;

/// `GET /queues`
pub(super) async fn list(State(app): Shared, rights: Rights, Query(query): Query) -> Answer {
    let asked = app.door.names_query(&query)?;
    let now = app.clock.now();
    let seen =
        views(&app).await?.into_iter().filter(|view| rights.see_name(|reach| &reach.queues, &view.queue));
    let (queues, next) = page(seen.collect(), &asked, |view| &view.queue);
    let queues = queues.into_iter().map(|queue| info(queue, now)).collect();
    reply::json(StatusCode::OK, &QueueList { queues, next })
}

/// `GET /queues/{queue}`
pub(super) async fn get(State(app): Shared, PathText(name): PathText, _: NoQuery) -> Answer {
    app.door.queue_name(&name)?;
    let found = find(&app, &name).await?;
    let unknown = || Refused::new(Code::QueueNotFound, format!("nobody has used queue {name:?} yet"));
    reply::json(StatusCode::OK, &found.ok_or_else(unknown)?)
}

/// `PUT /queues/{queue}`
pub(super) async fn put(State(app): Shared, PathText(name): PathText, _: NoQuery, sent: Sent) -> Answer {
    let read = |door: &Door, body: &[u8]| Ok(decode::queue_settings(&door.queue_settings(body)?));
    control(&app, name, sent, read).await
}

/// `POST /queues/{queue}/pause`
pub(super) async fn pause(State(app): Shared, PathText(name): PathText, _: NoQuery, sent: Sent) -> Answer {
    let read = |door: &Door, body: &[u8]| {
        let pause = door.pause(body)?;
        Ok(QueueControl::Pause { reason: pause.reason, by: pause.by })
    };
    control(&app, name, sent, read).await
}

/// `POST /queues/{queue}/resume`
pub(super) async fn resume(State(app): Shared, PathText(name): PathText, _: NoQuery, sent: Sent) -> Answer {
    let read = |door: &Door, body: &[u8]| Ok(QueueControl::Resume { reason: door.resume(body)?.reason });
    control(&app, name, sent, read).await
}

/// `POST /queues/{queue}/drain`
pub(super) async fn drain(State(app): Shared, PathText(name): PathText, _: NoQuery, sent: Sent) -> Answer {
    let read = |door: &Door, body: &[u8]| {
        let drain = door.drain(body)?;
        Ok(QueueControl::Drain { reason: drain.reason, by: drain.by })
    };
    control(&app, name, sent, read).await
}

/// `POST /queues/{queue}/open`
pub(super) async fn open(State(app): Shared, PathText(name): PathText, _: NoQuery, sent: Sent) -> Answer {
    control(&app, name, sent, |door, body| door.open(body).map(|()| QueueControl::Open)).await
}

type Door = tagwerk_api::door::Door;

async fn control(
    app: &App,
    queue: String,
    sent: Sent,
    read: impl FnOnce(&Door, &[u8]) -> Result<QueueControl, Refusal> + Send + 'static,
) -> Answer {
    app.door.queue_name(&queue)?;
    let control = sent.decode(app, read).await?;
    let command = ControlQueue { queue: queue.clone(), control };
    let row = match ask(|reply| app.engine.control_queue((command, sent.rights().by()), reply)).await? {
        Ok(row) => row,
        Err(refusal) => return Err(problem::queue_refusal(&refusal).into()),
    };
    let bare = || QueueView {
        queue,
        tally: Tally::default(),
        oldest_ready: None,
        last_claim_at: None,
        said: row.clone(),
    };
    let found = find(app, &row.name).await?;
    reply::json(StatusCode::OK, &found.unwrap_or_else(|| info(bare(), app.clock.now())))
}

async fn views(app: &App) -> Result<Vec<QueueView>, Refused> {
    let (registry, now) = (app.engine.vitals().registry, app.clock.now());
    app.read(move |read| query::queues(read, &registry, now)).await
}

async fn find(app: &App, name: &str) -> Result<Option<QueueInfo>, Refused> {
    let now = app.clock.now();
    Ok(views(app).await?.into_iter().find(|view| view.queue == name).map(|view| info(view, now)))
}

fn info(view: QueueView, now: Timestamp) -> QueueInfo {
    let QueueRow { settings, paused, draining, .. } = view.said;
    let left = view.tally.get(Counter::Pending) + view.tally.get(Counter::Running);
    QueueInfo {
        counts: counts(&view.tally),
        oldest_ready_age_seconds: view.oldest_ready.map(|since| view::age(since, now)),
        last_claim_age_seconds: view.last_claim_at.map(|at| view::age(at, now)),
        queue: view.queue,
        settings: view::queue_settings(&settings),
        paused: paused.into_iter().map(view::pause).collect(),
        drained: draining.is_some() && left == 0,
        draining: draining.map(view::drain),
    }
}
