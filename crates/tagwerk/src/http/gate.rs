//! What holds for every request, before any route is looked for: who may call, and what every answer carries.
//!
//! Without API tokens the server trusts whoever reaches it, so it makes sure that only programs on this machine do:
//! no name of another host (DNS rebinding), no page of another origin, no reverse proxy that makes it public. With tokens
//! it trusts their holders, through a proxy too.

use std::convert::Infallible;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use axum::Router;
use axum::body::Body;
use axum::extract::MatchedPath;
use axum::response::{IntoResponse, Response};
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, FORWARDED, HOST, HeaderName, ORIGIN, VIA, X_CONTENT_TYPE_OPTIONS,
};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use hyper::body::Incoming;
use tagwerk_api::headers::PROBLEM_JSON;
use tagwerk_api::openapi::is_report;
use tagwerk_api::problem::Code;
use tower::Service;

use super::access::{Rights, authenticate, is_probe, refuse_token_in_url};
use super::problem::Refused;
use super::{App, Parts, router};

/// Host names by which a program on the same machine calls it.
const LOCAL_HOSTS: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];

/// Who may call a server without API tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callers {
    /// Programs on this machine, directly: nobody else reaches it.
    Local,
    /// Nobody: it listens beyond loopback, and its last token was revoked.
    Holders,
}

/// The whole interface: guards, routes, and what every answer carries.
#[derive(Clone)]
pub(crate) struct Gate {
    app: Arc<App>,
    open: Router,
    guarded: Router,
    hosts: Arc<[String]>,
    callers: Callers,
}

impl Gate {
    /// The interface of a server made of these parts.
    pub(crate) fn new(mut parts: Parts) -> Self {
        let hosts = std::mem::take(&mut parts.hosts).into();
        let callers = parts.callers;
        let app = Arc::new(App::new(parts));
        let (open, guarded) = (router::open(Arc::clone(&app)), router::guarded(Arc::clone(&app)));
        Self { app, open, guarded, hosts, callers }
    }

    /// Reads what handlers keep in memory. To be called before the first request.
    pub(crate) async fn prepare(&self) -> anyhow::Result<()> {
        let loaded = match self.app.reload_owners().await {
            Ok(()) => self.app.reload_tokens().await,
            failed => failed,
        };
        loaded.map_err(|refused| anyhow::anyhow!("{}", refused.into_problem()))?;
        tokio::spawn(Arc::clone(&self.app).watch_tokens());
        Ok(())
    }

    /// Answers a request, whatever it is.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response {
        let started = self.app.clock.monotonic();
        let method = request.method().clone();
        let mut response = match self.admit(&request) {
            Ok(rights) => self.route(request, rights).await,
            Err(refused) => refused.into_response(),
        };
        let headers = response.headers_mut();
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let took = self.app.clock.monotonic().saturating_sub(started);
        let route = response.extensions().get::<MatchedPath>().map_or("-", MatchedPath::as_str);
        tracing::debug!(
            %method,
            route,
            status = response.status().as_u16(),
            took_ms = took.as_millis(),
            "answered"
        );
        response
    }

    /// Who calls, if it may call at all.
    fn admit(&self, request: &Request<Incoming>) -> Result<Rights, Refused> {
        let (headers, uri, known) = (request.headers(), request.uri(), &self.app.known);
        admit(&self.hosts, request)?;
        refuse_token_in_url(uri)?;
        if known.is_empty() && self.callers == Callers::Local {
            direct(headers)?;
            return Ok(Rights::ALL);
        }
        // Without rights of its own: the router for callers with a token is not asked, and the probes show nothing.
        if is_probe(uri) {
            return Ok(Rights::ALL);
        }
        let now = self.app.clock.now();
        let rights = authenticate(known, headers, now)?;
        if !is_report(uri.path()) {
            rights.spend(now)?;
        }
        Ok(rights)
    }

    async fn route(&self, mut request: Request<Incoming>, rights: Rights) -> Response {
        let mut router = if rights.are_granted() { self.guarded.clone() } else { self.open.clone() };
        if rights.are_granted() {
            request.extensions_mut().insert(rights);
        }
        match unpanicked(router.call(request.map(Body::new))).await {
            Some(Ok(response)) => as_problem(response),
            None => {
                tracing::error!("a handler has panicked");
                Refused::of(Code::InternalError).into_response()
            }
        }
    }
}

/// Awaits; `None` if it panicked.
async fn unpanicked<T>(future: impl Future<Output = Result<T, Infallible>>) -> Option<Result<T, Infallible>> {
    let mut future = pin!(future);
    // After a panic the future is never polled again, and what it shared is whole after each step.
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Some(output)),
        Err(_) => Poll::Ready(None),
    })
    .await
}

/// The router adds `Allow` to what it refuses, outside of our problem, which is to name it too. Whatever else it refuses
/// by itself becomes a problem here.
fn as_problem(response: Response) -> Response {
    if response.status() == StatusCode::METHOD_NOT_ALLOWED
        && let Some(allow) = response.headers().get(ALLOW)
    {
        return Refused::method(allow.clone()).into_response();
    }
    let is_error = response.status().is_client_error() || response.status().is_server_error();
    let media = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_ours = media.is_some_and(|media| media == PROBLEM_JSON.as_bytes() || media == b"application/json");
    if is_error && !is_ours {
        tracing::error!(status = response.status().as_u16(), "an error that is no problem");
        return Refused::of(Code::InternalError).into_response();
    }
    response
}

/// Who may call.
fn admit(hosts: &[String], request: &Request<Incoming>) -> Result<(), Refused> {
    let (headers, uri) = (request.headers(), request.uri());
    let host = host(headers, uri).filter(|host| is_known(hosts, host));
    let Some(host) = host else { return Err(Refused::of(Code::UnknownHost)) };
    let only_looks = matches!(*request.method(), Method::GET | Method::HEAD);
    if !only_looks && is_foreign(headers, &host) {
        return Err(Refused::of(Code::CrossOrigin));
    }
    Ok(())
}

/// Whether a request without a token came straight from its sender.
fn direct(headers: &HeaderMap) -> Result<(), Refused> {
    if let Some(name) = headers.keys().find(|name| tells_of_a_proxy(name)) {
        let detail = format!(
            "the request has the header {name}, so it came through a proxy; without API tokens the server answers \
             direct local requests only"
        );
        return Err(Refused::new(Code::ProxiedWithoutToken, detail));
    }
    Ok(())
}

/// The host that the request is addressed to, in lower case. `None` if it names none, or two.
fn host(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let mut given = headers.get_all(HOST).iter();
    let header = given.next();
    if given.next().is_some() {
        return None;
    }
    let header = match header {
        Some(header) => Some(header.to_str().ok()?.to_ascii_lowercase()),
        None => None,
    };
    // HTTP/2 names it in the pseudo-header, HTTP/1 in an absolute target; both at once must agree.
    let target = uri.authority().map(|authority| authority.as_str().to_ascii_lowercase());
    match (header, target) {
        (Some(header), Some(target)) => (header == target).then_some(target),
        (header, target) => header.or(target),
    }
}

/// Whether a host is this server's, its port left aside.
fn is_known(hosts: &[String], host: &str) -> bool {
    let Some(name) = without_port(host) else { return false };
    LOCAL_HOSTS.contains(&name) || hosts.iter().any(|known| known == name)
}

/// `localhost` of `localhost:7070`. `None` if what follows is no port.
fn without_port(host: &str) -> Option<&str> {
    let end = if host.starts_with('[') { host.find(']')? + 1 } else { host.find(':').unwrap_or(host.len()) };
    let (name, port) = host.split_at(end);
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(name)
}

fn tells_of_a_proxy(name: &HeaderName) -> bool {
    *name == FORWARDED
        || *name == VIA
        || name.as_str() == "x-real-ip"
        || name.as_str().starts_with("x-forwarded-")
}

/// Whether a browser says that the page behind the request is another's.
fn is_foreign(headers: &HeaderMap, host: &str) -> bool {
    let fetched = headers.get_all("sec-fetch-site").iter();
    let crosses = |site: &HeaderValue| !matches!(site.as_bytes(), b"same-origin" | b"none");
    let foreign_site = fetched.into_iter().any(crosses);
    let foreign_origin = headers.get_all(ORIGIN).iter().any(|origin| !is_own(origin, host));
    foreign_site || foreign_origin
}

/// Whether an origin is the one that the request is addressed to.
fn is_own(origin: &HeaderValue, host: &str) -> bool {
    let Some(origin) = origin.to_str().ok().map(str::to_ascii_lowercase) else { return false };
    let (rest, default_port) = match (origin.strip_prefix("http://"), origin.strip_prefix("https://")) {
        (Some(rest), _) => (rest, 80),
        (None, Some(rest)) => (rest, 443),
        (None, None) => return false,
    };
    let with_port = |text: &str| {
        let authority: Authority = text.parse().ok()?;
        Some((authority.host().to_owned(), authority.port_u16().unwrap_or(default_port)))
    };
    with_port(rest).is_some_and(|origin| with_port(host) == Some(origin))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        list.iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn hosts_are_compared_without_their_port() {
        let hosts = ["jobs.example".to_owned()];
        for known in [
            "localhost",
            "localhost:7070",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:7070",
            "jobs.example",
            "jobs.example:80",
        ] {
            assert!(is_known(&hosts, known), "{known}");
        }
        for unknown in [
            "",
            ":80",
            "evil.example",
            "localhost.evil.example",
            "localhost:80:90",
            "localhost:x",
            "127.0.0.1.nip.io",
            "[::1",
            "[::1]x",
            "localhost.",
            "0.0.0.0",
            "::1",
            "user@localhost",
        ] {
            assert!(!is_known(&hosts, unknown), "{unknown}");
        }
    }

    #[test]
    fn two_hosts_are_none() {
        let plain = Uri::from_static("/jobs");
        let mut two = headers(&[("host", "localhost")]);
        two.append(HOST, HeaderValue::from_static("evil.example"));
        assert_eq!(host(&two, &plain), None);
        assert_eq!(host(&headers(&[]), &plain), None);
        assert_eq!(host(&headers(&[("host", "LocalHost:1")]), &plain).as_deref(), Some("localhost:1"));
        let absolute = Uri::from_static("http://localhost/jobs");
        assert_eq!(host(&headers(&[("host", "evil.example")]), &absolute), None);
        assert_eq!(host(&headers(&[]), &absolute).as_deref(), Some("localhost"));
    }

    #[test]
    fn only_its_own_origin_is_not_foreign() {
        for own in ["http://localhost:7070", "HTTP://LOCALHOST:7070", "https://localhost:7070"] {
            assert!(is_own(&HeaderValue::from_static(own), "localhost:7070"), "{own}");
        }
        assert!(is_own(&HeaderValue::from_static("http://localhost"), "localhost:80"));
        assert!(is_own(&HeaderValue::from_static("http://localhost:80"), "localhost"));
        for foreign in [
            "null",
            "http://localhost:7071",
            "http://localhost",
            "http://evil.example",
            "http://localhost:7070.evil.example",
            "file://",
            "",
            "localhost:7070",
        ] {
            assert!(!is_own(&HeaderValue::from_static(foreign), "localhost:7070"), "{foreign}");
        }
    }

    #[test]
    fn browsers_say_where_a_request_comes_from() {
        for (site, foreign) in [
            ("cross-site", true),
            ("same-site", true),
            ("anything", true),
            ("same-origin", false),
            ("none", false),
        ] {
            assert_eq!(is_foreign(&headers(&[("sec-fetch-site", site)]), "localhost"), foreign, "{site}");
        }
        assert!(!is_foreign(&headers(&[]), "localhost"));
    }

    #[test]
    fn a_proxy_gives_itself_away() {
        for name in ["forwarded", "x-forwarded-for", "x-forwarded-proto", "x-real-ip", "via", "x-forwarded-"]
        {
            assert!(tells_of_a_proxy(&HeaderName::from_static(name)), "{name}");
        }
        for name in ["x-forwarded", "host", "x-request-id", "forwarded-for"] {
            assert!(!tells_of_a_proxy(&HeaderName::from_static(name)), "{name}");
        }
    }

    #[tokio::test]
    async fn a_panic_is_caught() {
        let output = unpanicked(async { if true { panic!("on purpose") } else { Ok(()) } }).await;
        assert!(output.is_none());
        assert!(unpanicked(async { Ok(7) }).await.is_some());
    }
}
