//! Every route there is, on one screen.

use std::sync::Arc;

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use tagwerk_api::problem::Code;

use super::problem::Refused;
use super::{App, claim, health, jobs, limits, operate, overview, queues, report, review, types};

/// Makes the router, and for tests the list of what is in it.
macro_rules! routes {
    ($($method:ident $path:literal => $handler:path;)+) => {
        /// Method and path of every route.
        #[cfg(test)]
        const ROUTES: &[(&str, &str)] = &[$((stringify!($method), $path),)+];

        fn table() -> Router<Arc<App>> {
            Router::new()$(.route($path, $method($handler)))+
        }
    };
}

routes! {
    post   "/jobs"                  => jobs::enqueue;
    get    "/jobs"                  => jobs::list;
    post   "/jobs/bulk"             => jobs::enqueue_bulk;
    get    "/jobs/{id}"             => jobs::get;
    delete "/jobs/{id}"             => operate::delete;
    get    "/jobs/{id}/attempts"    => jobs::attempts;
    get    "/jobs/{id}/explain"     => jobs::explain;

    post   "/jobs/claim"            => claim::claim;
    post   "/jobs/claim/bulk"       => claim::claim_bulk;
    post   "/jobs/{id}/complete"    => report::complete;
    post   "/jobs/{id}/fail"        => report::fail;
    post   "/jobs/{id}/release"     => report::release;
    post   "/jobs/{id}/heartbeat"   => report::heartbeat;
    post   "/jobs/{id}/checkpoint"  => report::checkpoint;
    post   "/jobs/heartbeat/bulk"   => report::heartbeat_bulk;
    post   "/jobs/report/bulk"      => report::report_bulk;

    get    "/review"                => review::list;
    post   "/jobs/{id}/cancel"      => operate::cancel;
    post   "/jobs/{id}/retry"       => operate::retry;
    post   "/jobs/{id}/discard"     => operate::discard;
    post   "/jobs/{id}/force-fail"  => operate::force_fail;
    post   "/jobs/{id}/unblock"     => operate::unblock;

    get    "/types"                 => types::list;
    get    "/types/{type}"          => types::get;
    put    "/types/{type}"          => types::put;
    delete "/types/{type}"          => types::delete;
    get    "/limits"                => limits::list;
    get    "/limits/{name}"         => limits::get;
    put    "/limits/{name}"         => limits::put;
    delete "/limits/{name}"         => limits::delete;
    post   "/limits/{name}/open"    => limits::open;
    get    "/queues"                => queues::list;
    get    "/queues/{queue}"        => queues::get;
    put    "/queues/{queue}"        => queues::put;
    post   "/queues/{queue}/pause"  => queues::pause;
    post   "/queues/{queue}/resume" => queues::resume;
    post   "/queues/{queue}/drain"  => queues::drain;
    post   "/queues/{queue}/open"   => queues::open;
    get    "/workers"               => overview::workers;
    get    "/stats"                 => overview::stats;

    get    "/metrics"               => health::metrics;
    get    "/livez"                 => health::livez;
    get    "/readyz"                => health::readyz;
    get    "/openapi.json"          => health::openapi;
}

/// The router. `HEAD` works wherever `GET` does.
pub(super) fn router(app: Arc<App>) -> Router {
    let mut table = table();
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

    use super::*;

    #[test]
    fn the_router_has_the_routes_of_the_document_and_no_others() {
        let documented: BTreeSet<(String, &str)> = tagwerk_api::openapi::routes()
            .map(|route| (route.method.name().to_ascii_lowercase(), route.path))
            .collect();
        let routed: BTreeSet<(String, &str)> =
            ROUTES.iter().map(|(method, path)| ((*method).to_owned(), *path)).collect();
        assert_eq!(routed, documented);
        assert_eq!(routed.len(), ROUTES.len());
    }
}
