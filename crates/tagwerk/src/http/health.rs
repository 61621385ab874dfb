//! How the server itself is: probes, metrics, its own description.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use tagwerk_api::answer::{Livez, Readyz, ReadyzCheck};
use tagwerk_api::openapi;
use tagwerk_api::problem::Code;
use tagwerk_core::limits;
use tagwerk_engine::Vitals;
use tagwerk_engine::query;
use tagwerk_engine::row::{AlertQuery, Which};
use tokio::time::timeout;

use super::App;
use super::problem::Refused;
use super::reading::patience;
use super::reply::{self, Answer};
use super::sent::{NoQuery, Query};
use crate::metrics::Scrape;

type Shared = State<Arc<App>>;

/// All alerts that are open.
const OPEN_ALERTS: AlertQuery = AlertQuery { after: 0, which: Which::Open, limit: limits::ALERTS_OPEN_MAX };

/// `GET /livez`: the process answers. Says nothing about the store.
pub(super) async fn livez(_: NoQuery) -> Answer {
    reply::json(StatusCode::OK, &Livez { status: "alive".to_owned() })
}

/// `GET /readyz`: whether work can be done.
pub(super) async fn readyz(State(app): Shared, Query(query): Query) -> Answer {
    let verbose = app.door.readyz_query(&query)?.verbose;
    let checks = [accepting(&app), committer(&app, &app.engine.vitals()), store(&app).await];
    let ready = checks.iter().all(|check| check.ok);
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let word = if ready { "ready" } else { "not_ready" };
    reply::json(status, &Readyz { status: word.to_owned(), checks: verbose.then(|| checks.to_vec()) })
}

fn check(name: &str, verdict: Result<&str, String>) -> ReadyzCheck {
    let ok = verdict.is_ok();
    let detail = verdict.map_or_else(|wrong| wrong, str::to_owned);
    ReadyzCheck { name: name.to_owned(), ok, detail }
}

fn accepting(app: &App) -> ReadyzCheck {
    let verdict = if app.is_stopping() { Err("the server is shutting down".to_owned()) } else { Ok("it is") };
    check("accepting", verdict)
}

/// The committer rewrites the time until which it served each second, so a silence means that it stands still.
fn committer(app: &App, vitals: &Vitals) -> ReadyzCheck {
    let silence = app.clock.monotonic().saturating_sub(vitals.last_commit);
    let verdict = match &vitals.failing {
        Some((error, ..)) => Err(format!("writing fails: {error}")),
        None if silence > patience(limits::STANDSTILL_MS) => {
            Err(format!("nothing has been committed for {} s", silence.as_secs()))
        }
        None => Ok("commits"),
    };
    check("committer", verdict)
}

async fn store(app: &App) -> ReadyzCheck {
    let read = app.read(|read| read.served_until()).await;
    check("store", read.map(|_| "can be read").map_err(|refused| refused.into_problem().detail))
}

/// `GET /metrics`
pub(super) async fn metrics(State(app): Shared, _: NoQuery) -> Answer {
    let (vitals, now) = (app.engine.vitals(), app.clock.now());
    let metrics = Arc::clone(&app.metrics);
    // A committer that stands still is what metrics are looked at for, so they do not wait for it.
    let asked = timeout(patience(limits::METRICS_PATIENCE_MS), super::limits::all(&app)).await;
    let limits = asked.ok().and_then(Result::ok).unwrap_or_default();
    let limits = limits.into_iter().map(|state| {
        let running = state.uses.iter().map(|used| u64::from(used.running)).sum();
        (state.row.name, running, state.row.settings.max_running)
    });
    let limits: Vec<_> = limits.collect();
    let written = app
        .read(move |read| {
            let scrape = Scrape {
                ledger: read.ledger()?,
                ready: read.ready(now)?,
                queues: query::queues(read, &vitals.registry, now)?,
                limits,
                facts: read.facts()?,
                now,
                parked: vitals.parked,
                failing: vitals.failing.is_some(),
                alerts: read.alerts(&OPEN_ALERTS)?,
            };
            Ok(metrics.write(&scrape))
        })
        .await?;
    let text = written.map_err(|error| {
        tracing::error!(%error, "the metrics could not be written");
        Refused::of(Code::InternalError)
    })?;
    let mut response = Response::new(Body::from(text));
    let media = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    Ok(response)
}

/// `GET /openapi.json`
pub(super) async fn openapi(State(app): Shared, _: NoQuery) -> Answer {
    reply::json(StatusCode::OK, &openapi::document(app.door.limits()))
}
