//! Every route, with every scope, and without a token.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{server_with, with};
use crate::server::Options;

const SCOPES: [&str; 6] = ["enqueue", "work", "read", "payload", "operate", "admin"];

/// What each route asks for, as the design says. `any`: a token, whichever; `open`: nothing.
pub(super) const TABLE: &[(&str, &str, &str)] = &[
    ("POST", "/jobs", "enqueue"),
    ("POST", "/jobs/bulk", "enqueue"),
    ("GET", "/jobs", "read"),
    ("GET", "/jobs/{id}", "read"),
    ("GET", "/jobs/{id}/attempts", "read"),
    ("GET", "/jobs/{id}/explain", "read"),
    ("POST", "/jobs/claim", "work"),
    ("POST", "/jobs/claim/bulk", "work"),
    ("POST", "/jobs/{id}/complete", "work"),
    ("POST", "/jobs/{id}/fail", "work"),
    ("POST", "/jobs/{id}/release", "work"),
    ("POST", "/jobs/{id}/heartbeat", "work"),
    ("POST", "/jobs/{id}/checkpoint", "work"),
    ("POST", "/jobs/{id}/effects/{effect}/begin", "work"),
    ("POST", "/jobs/{id}/effects/{effect}/finish", "work"),
    ("POST", "/jobs/{id}/effects/{effect}/abort", "work"),
    ("POST", "/jobs/heartbeat/bulk", "work"),
    ("POST", "/jobs/report/bulk", "work"),
    ("POST", "/jobs/{id}/cancel", "operate enqueue"),
    ("POST", "/jobs/{id}/retry", "operate"),
    ("POST", "/jobs/{id}/discard", "operate"),
    ("POST", "/jobs/{id}/force-fail", "operate"),
    ("POST", "/jobs/{id}/unblock", "operate"),
    ("DELETE", "/jobs/{id}", "admin"),
    ("GET", "/review", "read"),
    ("GET", "/types", "read"),
    ("GET", "/types/{type}", "read"),
    ("PUT", "/types/{type}", "admin"),
    ("DELETE", "/types/{type}", "admin"),
    ("GET", "/limits", "read"),
    ("GET", "/limits/{name}", "read"),
    ("PUT", "/limits/{name}", "operate"),
    ("DELETE", "/limits/{name}", "operate"),
    ("POST", "/limits/{name}/open", "operate"),
    ("GET", "/queues", "read"),
    ("GET", "/queues/{queue}", "read"),
    ("PUT", "/queues/{queue}", "operate"),
    ("POST", "/queues/{queue}/pause", "operate"),
    ("POST", "/queues/{queue}/resume", "operate"),
    ("POST", "/queues/{queue}/drain", "operate"),
    ("POST", "/queues/{queue}/open", "operate"),
    ("GET", "/workers", "read"),
    ("GET", "/stats", "read"),
    ("GET", "/alerts", "read"),
    ("POST", "/alerts/{id}/ack", "operate"),
    ("GET", "/audit", "read"),
    ("GET", "/metrics", "read"),
    ("GET", "/openapi.json", "any"),
    ("GET", "/livez", "open"),
    ("GET", "/readyz", "open"),
];

#[test]
fn every_route_asks_for_its_scope_and_no_route_is_forgotten() {
    let tokens = SCOPES.map(|scope| [scope, "--scope", scope]);
    let (server, tokens) = server_with(Options::default(), tokens.each_ref().map(|args| &args[..]));

    let document = with(&server, &tokens[0]).get("/openapi.json").expect(200);
    let paths = document["paths"].as_object().expect("paths");
    let documented: BTreeSet<(String, String)> = paths
        .iter()
        .flat_map(|(path, calls)| {
            let calls = calls.as_object().expect("calls").keys();
            calls.map(|method| (method.to_uppercase(), path.clone()))
        })
        .collect();
    let tabled: BTreeSet<_> =
        TABLE.iter().map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned())).collect();
    assert_eq!(documented, tabled);

    for (method, path, needed) in TABLE {
        let path = path
            .replace("{id}", "4711")
            .replace("{effect}", "x")
            .replace("{name}", "x")
            .replace("{queue}", "x")
            .replace("{type}", "x");
        let body = if ["POST", "PUT"].contains(method) { json!({}) } else { Value::Null };
        let call = format!("{method} {path}");
        let bare = server.client().send(&call, &[], b"");
        if *needed == "open" {
            bare.status_is(200);
        } else {
            bare.problem(401, "unauthorized");
        }
        for (scope, token) in SCOPES.iter().zip(&tokens) {
            let answer = with(&server, token).send(&call, &body);
            let allowed = ["open", "any"].contains(needed) || needed.split(' ').any(|name| name == *scope);
            if allowed {
                assert!(![401, 403, 405, 500].contains(&answer.status), "{call} with {scope}: {answer:?}");
            } else {
                let problem = answer.problem(403, "forbidden");
                assert!(
                    problem["detail"].as_str().is_some_and(|detail| detail.contains("scope")),
                    "{problem}"
                );
            }
            if *method == "GET" {
                let head = with(&server, token).send(&format!("HEAD {path}"), &Value::Null);
                assert_eq!(head.status == 403, !allowed, "HEAD {path} with {scope}: {head:?}");
            }
        }
    }
}
