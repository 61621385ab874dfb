//! In front of every route, for callers with a token: scope and patterns, by the table of routes.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{MatchedPath, RawPathParams, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::Method;
use tagwerk_api::door::parse_job_id;
use tagwerk_api::problem::Code;
use tagwerk_core::JobId;
use tagwerk_core::access::Scope;

use super::super::App;
use super::super::problem::Refused;
use super::Rights;

/// What a call is about, which must be within reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum About {
    /// The job in its path.
    Job,
    /// The queue in its path, whatever the types of its jobs.
    Queue,
    /// The type in its path, whatever the queues of its jobs.
    Type,
    /// Everything in the store: not for tokens with patterns.
    Store,
    /// What its handler judges.
    Body,
    /// Nothing of anybody's.
    Nothing,
}

/// What a route asks of a token: one of these scopes.
#[derive(Clone, Copy, Debug)]
pub(in crate::http) struct Need {
    pub(in crate::http) scopes: &'static [Scope],
    pub(in crate::http) about: About,
}

/// Needs by method and pattern.
pub(in crate::http) type Needs = HashMap<(Method, &'static str), Need>;

/// Lets pass what the token allows.
pub(in crate::http) async fn guard(
    State((app, needs)): State<(Arc<App>, Arc<Needs>)>,
    (pattern, params): (MatchedPath, RawPathParams),
    request: Request,
    next: Next,
) -> Response {
    let rights = Rights::of(request.extensions());
    let method = if request.method() == Method::HEAD { Method::GET } else { request.method().clone() };
    // A method that the path does not know is said so behind this.
    let Some(need) = needs.get(&(method, pattern.as_str())) else { return next.run(request).await };
    if let Err(refused) = scoped(&rights, need) {
        return refused.into_response();
    }
    let name = params.iter().next().map(|(_, value)| value.to_owned()).unwrap_or_default();
    match reached(&app, &rights, (need.about, name)).await {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

fn scoped(rights: &Rights, need: &Need) -> Result<(), Refused> {
    if need.scopes.iter().any(|scope| rights.has(*scope)) {
        return Ok(());
    }
    let names: Vec<&str> = need.scopes.iter().map(|scope| scope.name()).collect();
    Err(Refused::new(
        Code::Forbidden,
        format!("this call needs a token with the scope {}", names.join(" or ")),
    ))
}

async fn reached(app: &App, rights: &Rights, (about, name): (About, String)) -> Result<(), Refused> {
    let Some(reach) = rights.reach().filter(|reach| !reach.is_everything()) else { return Ok(()) };
    let forbidden = |detail: &str| Err(Refused::new(Code::Forbidden, detail));
    match about {
        About::Nothing | About::Body => Ok(()),
        About::Store => {
            forbidden("this call is about the whole store and needs a token without patterns and space")
        }
        About::Job => {
            // What is no id is said so by the handler.
            let Ok(id) = parse_job_id(&name) else { return Ok(()) };
            let job = app.job(JobId(id)).await?;
            if rights.see(&job.row.lane) { Ok(()) } else { Err(Refused::no_job(JobId(id))) }
        }
        About::Queue | About::Type if reach.space.is_some() => {
            forbidden("this call is about all spaces and needs a token without a space")
        }
        About::Queue if !reach.types.is_all() => {
            forbidden("this call is about all types of a queue and needs a token without patterns of types")
        }
        About::Queue if reach.queues.fits(&name) => Ok(()),
        About::Queue => Err(Refused::new(Code::QueueNotFound, format!("nobody has used queue {name:?} yet"))),
        About::Type if !reach.queues.is_all() => {
            forbidden("this call is about all queues of a type and needs a token without patterns of queues")
        }
        About::Type if reach.types.fits(&name) => Ok(()),
        About::Type => {
            let detail = format!("there are no settings for type {name:?}; PUT makes some");
            Err(Refused::new(Code::TypeNotFound, detail))
        }
    }
}
