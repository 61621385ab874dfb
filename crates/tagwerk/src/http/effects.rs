//! The effect journal.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use tagwerk_api::door::Door;
use tagwerk_api::problem::Code;
use tagwerk_engine::command::WorkerCall;

use super::access::Rights;
use super::problem::Refused;
use super::reply::{self, Answer};
use super::report::one;
use super::sent::{NoQuery, PathEffect, Sent};
use super::{App, decode, view};

type Shared = State<Arc<App>>;

/// `POST /jobs/{id}/effects/{effect}/begin`
pub(super) async fn begin(State(app): Shared, path: PathEffect, _: NoQuery, sent: Sent) -> Answer {
    let PathEffect { id, name } = path;
    let begin = sent.decode(&app, Door::effect_begin).await?;
    answered((&app, &sent.rights()), decode::effect_begin((id, &name), begin), &name).await
}

/// `POST /jobs/{id}/effects/{effect}/finish`
pub(super) async fn finish(State(app): Shared, path: PathEffect, _: NoQuery, sent: Sent) -> Answer {
    let PathEffect { id, name } = path;
    let finish = sent.decode(&app, Door::effect_finish).await?;
    answered((&app, &sent.rights()), decode::effect_finish((id, &name), finish), &name).await
}

/// `POST /jobs/{id}/effects/{effect}/abort`
pub(super) async fn abort(State(app): Shared, path: PathEffect, _: NoQuery, sent: Sent) -> Answer {
    let PathEffect { id, name } = path;
    let holder = sent.decode(&app, Door::effect_abort).await?;
    answered((&app, &sent.rights()), decode::effect_abort((id, &name), holder), &name).await
}

/// What is known of the effect after the call. What came of it is part of the work, as in what a claim hands out.
async fn answered((app, rights): (&App, &Rights), call: WorkerCall, name: &str) -> Answer {
    let answer = one((app, rights), call).await?;
    let job = &answer.job.row.job;
    let shown = job.effect(name).map(|effect| view::effect_answer(job, effect));
    reply::json(StatusCode::OK, &shown.ok_or_else(|| Refused::of(Code::InternalError))?)
}
