//! Every route there is, on one screen.

use std::sync::Arc;

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use http::Method;
use tagwerk_api::problem::Code;
use tagwerk_core::access::Scope::{self, Admin, Enqueue, Operate, Read, Work};

use super::access::{About, Need, guard};
use super::problem::Refused;
use super::{
    App, alerts, audit, claim, effects, health, jobs, limits, operate, overview, queues, report, review,
    types,
};

/// Makes the router, and the list of what each route asks of a token: one of these scopes, and that what it is about is
/// within the token's patterns.
macro_rules! routes {
    ($($method:ident $path:literal => $handler:path, $scopes:expr, $about:ident;)+) => {
        /// Method, path and need of every route.
        const ROUTES: &[(&str, &str, Need)] =
            &[$((stringify!($method), $path, Need { scopes: $scopes, about: About::$about }),)+];

        fn table() -> Router<Arc<App>> {
            Router::new()$(.route($path, $method($handler)))+
        }
    };
}

/// Any token will do.
const ALL: &[Scope] = &Scope::ALL;

routes! {
    post   "/jobs"                   => jobs::enqueue,            &[Enqueue],          Body;
    get    "/jobs"                   => jobs::list,               &[Read],             Body;
    post   "/jobs/bulk"              => jobs::enqueue_bulk,       &[Enqueue],          Body;
    get    "/jobs/{id}"              => jobs::get,                &[Read],             Job;
    delete "/jobs/{id}"              => operate::delete,          &[Admin],            Job;
    get    "/jobs/{id}/attempts"     => jobs::attempts,           &[Read],             Job;
    get    "/jobs/{id}/explain"      => jobs::explain,            &[Read],             Job;

    post   "/jobs/claim"             => claim::claim,             &[Work],             Body;
    post   "/jobs/claim/bulk"        => claim::claim_bulk,        &[Work],             Body;
    post   "/jobs/{id}/complete"     => report::complete,         &[Work],             Job;
    post   "/jobs/{id}/fail"         => report::fail,             &[Work],             Job;
    post   "/jobs/{id}/release"      => report::release,          &[Work],             Job;
    post   "/jobs/{id}/heartbeat"    => report::heartbeat,        &[Work],             Job;
    post   "/jobs/{id}/checkpoint"   => report::checkpoint,       &[Work],             Job;
    post   "/jobs/{id}/effects/{effect}/begin" => effects::begin, &[Work], Job;
    post   "/jobs/{id}/effects/{effect}/finish" => effects::finish, &[Work], Job;
    post   "/jobs/{id}/effects/{effect}/abort" => effects::abort, &[Work], Job;
    post   "/jobs/heartbeat/bulk"    => report::heartbeat_bulk,   &[Work],             Body;
    post   "/jobs/report/bulk"       => report::report_bulk,      &[Work],             Body;

    get    "/review"                 => review::list,             &[Read],             Body;
    post   "/jobs/{id}/cancel"       => operate::cancel,          &[Operate, Enqueue], Job;
    post   "/jobs/{id}/retry"        => operate::retry,           &[Operate],          Job;
    post   "/jobs/{id}/discard"      => operate::discard,         &[Operate],          Job;
    post   "/jobs/{id}/force-fail"   => operate::force_fail,      &[Operate],          Job;
    post   "/jobs/{id}/unblock"      => operate::unblock,         &[Operate],          Job;

    get    "/types"                  => types::list,              &[Read],             Body;
    get    "/types/{type}"           => types::get,               &[Read],             Type;
    put    "/types/{type}"           => types::put,               &[Admin],            Type;
    delete "/types/{type}"           => types::delete,            &[Admin],            Type;
    get    "/limits"                 => limits::list,             &[Read],             Store;
    get    "/limits/{name}"          => limits::get,              &[Read],             Store;
    put    "/limits/{name}"          => limits::put,              &[Operate],          Store;
    delete "/limits/{name}"          => limits::delete,           &[Operate],          Store;
    post   "/limits/{name}/open"     => limits::open,             &[Operate],          Store;
    get    "/queues"                 => queues::list,             &[Read],             Body;
    get    "/queues/{queue}"         => queues::get,              &[Read],             Queue;
    put    "/queues/{queue}"         => queues::put,              &[Operate],          Queue;
    post   "/queues/{queue}/pause"   => queues::pause,            &[Operate],          Queue;
    post   "/queues/{queue}/resume"  => queues::resume,           &[Operate],          Queue;
    post   "/queues/{queue}/drain"   => queues::drain,            &[Operate],          Queue;
    post   "/queues/{queue}/open"    => queues::open,             &[Operate],          Queue;
    get    "/workers"                => overview::workers,        &[Read],             Store;
    get    "/stats"                  => overview::stats,          &[Read],             Store;
    get    "/alerts"                 => alerts::list,             &[Read],             Store;
    post   "/alerts/{id}/ack"        => alerts::acknowledge,      &[Operate],          Store;
    get    "/audit"                  => audit::list,              &[Read],             Store;

    get    "/metrics"                => health::metrics,          &[Read],             Store;
    get    "/livez"                  => health::livez,            ALL,                 Nothing;
    get    "/readyz"                 => health::readyz,           ALL,                 Nothing;
    get    "/openapi.json"           => health::openapi,          ALL,                 Nothing;
}

/// The router for callers with a token.
pub(super) fn guarded(app: Arc<App>) -> Router {
    let needs = ROUTES.iter().filter_map(|(method, path, need)| {
        let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).ok()?;
        Some(((method, *path), *need))
    });
    let state = (Arc::clone(&app), Arc::new(needs.collect()));
    finished(table().route_layer(middleware::from_fn_with_state(state, guard)), app)
}

/// The router of a server without tokens.
pub(super) fn open(app: Arc<App>) -> Router {
    finished(table(), app)
}

/// `HEAD` works wherever `GET` does.
fn finished(mut table: Router<Arc<App>>, app: Arc<App>) -> Router {
    // It takes as long as the routing itself, so whoever does not want to know does not pay for it.
    if tracing::enabled!(tracing::Level::DEBUG) {
        table = table.route_layer(middleware::from_fn(remember));
    }
    table
        .method_not_allowed_fallback(|| async { Refused::of(Code::MethodNotAllowed) })
        .fallback(|| async { Refused::of(Code::NotFound) })
        .with_state(app)
}

/// Keeps the pattern that matched for the log: unlike the path it holds nothing of anybody's.
async fn remember(pattern: MatchedPath, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await.into_response();
    response.extensions_mut().insert(pattern);
    response
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tagwerk_api::openapi::is_report;

    use super::*;

    #[test]
    fn the_router_has_the_routes_of_the_document_and_no_others() {
        let documented: BTreeSet<(String, &str)> = tagwerk_api::openapi::routes()
            .map(|route| (route.method.name().to_ascii_lowercase(), route.path))
            .collect();
        let routed: BTreeSet<(String, &str)> =
            ROUTES.iter().map(|(method, path, _)| ((*method).to_owned(), *path)).collect();
        assert_eq!(routed, documented);
        assert_eq!(routed.len(), ROUTES.len());
    }

    #[test]
    fn what_workers_say_of_their_jobs_is_a_report_and_nothing_else_is() {
        for (method, path, need) in ROUTES {
            let says = matches!(need.scopes, [Work]) && !path.starts_with("/jobs/claim");
            assert_eq!(is_report(path), says, "{method} {path}");
            assert_eq!(is_report(&path.replace("{id}", "4711")), says, "{method} {path}");
        }
        for path in ["", "/", "/jobs", "/jobs/1", "/jobs/1/completed", "/jobs/1/complete/", "/x/1/complete"] {
            assert!(!is_report(path), "{path}");
        }
    }
}
