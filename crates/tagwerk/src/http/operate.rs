//! What operators do to single jobs.

use std::sync::Arc;

use axum::body::HttpBody;
use axum::extract::{Request, State};
use http::header::IF_MATCH;
use http::{HeaderValue, StatusCode};
use tagwerk_api::answer::DamagedJob;
use tagwerk_api::problem::Code;
use tagwerk_core::access::Scope;
use tagwerk_engine::command::{Operate, OperateAnswer};
use tagwerk_engine::store::Listed;

use super::access::Rights;
use super::ask::ask;
use super::problem::Refused;
use super::reply::{self, Answer};
use super::sent::{NoQuery, PathId, Query, Sent, single};
use super::{App, decode, jobs};

type Shared = State<Arc<App>>;

/// `POST /jobs/{id}/cancel`
pub(super) async fn cancel(State(app): Shared, PathId(id): PathId, _: NoQuery, sent: Sent) -> Answer {
    let seen = sent.single(IF_MATCH.as_str())?;
    let read =
        sent.decode(&app, move |door, body| door.cancel(body, seen.as_ref().map(HeaderValue::as_bytes)));
    let command = decode::cancel(id, read.await?);
    let rights = sent.rights();
    if rights.has(Scope::Operate) {
        return operate(&app, command, &rights).await;
    }
    // A producer may take back what nobody has begun. The version that was looked at guards the call: a job that is begun
    // between the two has another one.
    let job = app.job(id).await?.row.job;
    if job.started && !job.status.is_settled() {
        rights.need(Scope::Operate, "cancelling a job that has been started")?;
    }
    let seen_version = Some(command.seen_version.unwrap_or(job.version));
    operate(&app, Operate { seen_version, ..command }, &rights).await
}

/// `POST /jobs/{id}/retry`
pub(super) async fn retry(State(app): Shared, PathId(id): PathId, _: NoQuery, sent: Sent) -> Answer {
    let seen = sent.single(IF_MATCH.as_str())?;
    let read =
        sent.decode(&app, move |door, body| door.retry(body, seen.as_ref().map(HeaderValue::as_bytes)));
    let command = decode::retry_job(id, read.await?);
    if command.payload.is_some() {
        sent.rights().need(Scope::Payload, "a new payload")?;
    }
    operate(&app, command, &sent.rights()).await
}

/// `POST /jobs/{id}/discard`
pub(super) async fn discard(State(app): Shared, PathId(id): PathId, _: NoQuery, sent: Sent) -> Answer {
    let seen = sent.single(IF_MATCH.as_str())?;
    let read =
        sent.decode(&app, move |door, body| door.discard(body, seen.as_ref().map(HeaderValue::as_bytes)));
    let command = decode::discard(id, read.await?);
    operate(&app, command, &sent.rights()).await
}

/// `POST /jobs/{id}/force-fail`
pub(super) async fn force_fail(State(app): Shared, PathId(id): PathId, _: NoQuery, sent: Sent) -> Answer {
    let seen = sent.single(IF_MATCH.as_str())?;
    let read =
        sent.decode(&app, move |door, body| door.force_fail(body, seen.as_ref().map(HeaderValue::as_bytes)));
    let command = decode::force_fail(id, read.await?);
    operate(&app, command, &sent.rights()).await
}

/// `POST /jobs/{id}/unblock`
pub(super) async fn unblock(State(app): Shared, PathId(id): PathId, _: NoQuery, sent: Sent) -> Answer {
    let seen = sent.single(IF_MATCH.as_str())?;
    let read =
        sent.decode(&app, move |door, body| door.unblock(body, seen.as_ref().map(HeaderValue::as_bytes)));
    let command = decode::unblock(id, read.await?);
    operate(&app, command, &sent.rights()).await
}

/// `DELETE /jobs/{id}`
pub(super) async fn delete(
    State(app): Shared,
    PathId(id): PathId,
    Query(query): Query,
    request: Request,
) -> Answer {
    // A body here would be ignored on its way, and with it the version that somebody meant to guard the call with.
    let rights = Rights::of(request.extensions());
    if !request.body().is_end_stream() {
        let detail = "DELETE takes no body; give seen_version in the query, or the header If-Match";
        return Err(Refused::new(Code::InvalidRequest, detail));
    }
    let seen = single(request.headers(), IF_MATCH.as_str())?;
    let delete = app.door.delete(&query, seen.as_ref().map(HeaderValue::as_bytes))?;
    operate(&app, decode::delete(id, delete), &rights).await
}

async fn operate(app: &App, command: Operate, rights: &Rights) -> Answer {
    match ask(|reply| app.engine.operate((command, rights.by()), reply)).await? {
        Ok(OperateAnswer { job: Listed::Job(job), .. }) => jobs::shown(app, *job, rights).await,
        Ok(OperateAnswer { job: Listed::Damaged { id, why }, .. }) => {
            tracing::warn!(job = id.0, why, "a job that could not be read was deleted");
            reply::json(StatusCode::OK, &DamagedJob { id: id.0, detail: why })
        }
        Err(refusal) => Err(jobs::refused(app, refusal, rights).await),
    }
}
