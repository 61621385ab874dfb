//! What headers say: idempotency keys, versions, what was ignored.

use serde_json::{Value, json};

use crate::client::Answer;
use crate::server::{JSON, Options, Server};

fn enqueue(server: &Server, header: Option<&str>, body: &Value) -> Answer {
    let mut headers = vec![JSON];
    headers.extend(header.map(|key| ("Idempotency-Key", key)));
    server.client().send("POST /jobs", &headers, body.to_string().as_bytes())
}

#[test]
fn a_key_makes_the_job_once() {
    let server = Server::start();
    let body = json!({"type": "t", "payload": {"n": 1}, "idempotency_key": "order-7"});
    let first = enqueue(&server, None, &body);
    let id = first.expect(201)["id"].clone();
    assert_eq!(first.header("location"), Some(format!("/jobs/{id}").as_str()));
    assert_eq!(first.header("idempotency-replayed"), None);
    let second = enqueue(&server, None, &body);
    let job = second.expect(200);
    assert_eq!((&job["id"], &job["payload_differs"]), (&id, &json!(false)));
    assert_eq!(second.header("idempotency-replayed"), Some("true"));
    assert_eq!(second.header("location"), None);
    let other =
        enqueue(&server, None, &json!({"type": "t", "payload": {"n": 2}, "idempotency_key": "order-7"}));
    assert_eq!(other.expect(200)["payload_differs"], true);
}

#[test]
fn a_key_in_the_header_is_the_same_key_and_stricter() {
    let server = Server::start();
    let job = json!({"type": "t", "payload": 1});
    let id = enqueue(&server, Some("k-1"), &job).expect(201)["id"].clone();
    // Bare, as a structured field's string, or in the body: one key.
    for (header, body) in [
        (Some("k-1"), job.clone()),
        (Some("\"k-1\""), job.clone()),
        (None, json!({"type": "t", "payload": 1, "idempotency_key": "k-1"})),
        (Some("\"k-1\""), json!({"type": "t", "payload": 1, "idempotency_key": "k-1"})),
    ] {
        assert_eq!(enqueue(&server, header, &body).expect(200)["id"], id, "{header:?} {body}");
    }
    let other = json!({"type": "t", "payload": 2});
    let problem = enqueue(&server, Some("k-1"), &other).problem(422, "idempotency-key-reused");
    assert_eq!(problem["job"]["id"], id, "{problem}");
    let flagged = json!({"type": "t", "payload": 2, "on_mismatch": "flag"});
    assert_eq!(enqueue(&server, Some("k-1"), &flagged).expect(200)["payload_differs"], true);
    let in_body = json!({"type": "t", "payload": 2, "idempotency_key": "k-1"});
    assert_eq!(enqueue(&server, None, &in_body).expect(200)["payload_differs"], true);
    let reject = json!({"type": "t", "payload": 2, "idempotency_key": "k-1", "on_mismatch": "reject"});
    enqueue(&server, None, &reject).problem(422, "idempotency-key-reused");
}

#[test]
fn two_different_keys_are_refused() {
    let server = Server::start();
    let body = json!({"type": "t", "idempotency_key": "a"});
    enqueue(&server, Some("b"), &body).problem(422, "idempotency-key-conflict");
    enqueue(&server, Some("\"b\""), &body).problem(422, "idempotency-key-conflict");
    enqueue(&server, Some("\"a\""), &body).expect(201);
    for bad in ["", "\"\"", &"x".repeat(256)] {
        enqueue(&server, Some(bad), &json!({"type": "t"})).problem(422, "invalid-request");
    }
    let bulk = json!({"jobs": [{"type": "t"}]}).to_string();
    let headers = [JSON, ("Idempotency-Key", "a")];
    server.client().send("POST /jobs/bulk", &headers, bulk.as_bytes()).problem(422, "invalid-request");
}

#[test]
fn a_conflict_shows_the_job_that_has_the_key() {
    let server = Server::start();
    let body = json!({"type": "t", "payload": {"a": 1}, "idempotency_key": "k", "on_duplicate": "conflict"});
    let id = enqueue(&server, None, &body).expect(201)["id"].clone();
    let problem = enqueue(&server, None, &body).problem(409, "duplicate");
    assert_eq!((&problem["job"]["id"], &problem["job"]["payload"]), (&id, &json!({"a": 1})));
    let bulk = server.post("/jobs/bulk", &json!({"jobs": [body, {"type": "u"}]})).expect(200);
    assert_eq!(bulk["results"][0]["status"], 409);
    assert_eq!(bulk["results"][0]["problem"]["code"], "duplicate");
    assert_eq!(bulk["results"][0]["job"]["id"], id);
}

#[test]
fn a_replacing_enqueue_rewrites_what_never_started() {
    let server = Server::start();
    let first = json!({"type": "t", "payload": 1, "idempotency_key": "k"});
    enqueue(&server, None, &first).expect(201);
    let second = json!({"type": "t", "payload": 2, "idempotency_key": "k", "on_duplicate": "replace", "priority": "high"});
    let job = enqueue(&server, None, &second).expect(200);
    assert_eq!(
        (&job["replaced"], &job["payload"], &job["priority"]),
        (&json!(true), &json!(2), &json!("high"))
    );
    server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    let third = json!({"type": "t", "payload": 3, "idempotency_key": "k", "on_duplicate": "replace"});
    let job = enqueue(&server, None, &third).expect(200);
    assert_eq!((&job["replaced"], &job["payload"]), (&json!(false), &json!(2)));
}

#[test]
fn a_version_guards_what_operators_do() {
    let server = Server::with(Options::default().set("max_retries=0"));
    let id = server.post("/jobs", &json!({"type": "t"})).expect(201)["id"].clone();
    server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    server.post(&format!("/jobs/{id}/fail"), &json!({"error": "boom"})).expect(200);
    let seen = server.get(&format!("/jobs/{id}"));
    let version = seen.expect(200)["version"].clone();
    let etag = seen.header("etag").expect("a version").to_owned();
    assert_eq!(etag, format!("\"{version}\""));
    let retry = |headers: &[(&str, &str)], body: &str| {
        server.client().send(&format!("POST /jobs/{id}/retry"), headers, body.as_bytes())
    };
    let problem = retry(&[JSON, ("If-Match", "\"1\"")], "").problem(409, "version-changed");
    assert_eq!(problem["current_version"], version);
    for bad in ["*", "\"x\"", "\"1\", \"2\"", "-1"] {
        retry(&[("If-Match", bad)], "").problem(422, "invalid-precondition");
    }
    retry(&[JSON], "{}").problem(422, "invalid-request");
    let both = json!({"seen_version": 1}).to_string();
    assert_eq!(retry(&[JSON, ("If-Match", &etag)], &both).status, 422, "two versions");
    let job = retry(&[("If-Match", &etag)], "").expect(200);
    assert_eq!((&job["status"], &job["retry_count"]), (&json!("pending"), &json!(0)));
    retry(&[("If-Match", &etag)], "").problem(409, "not-failed");
    let stale = server.client().send(&format!("DELETE /jobs/{id}"), &[("If-Match", &etag)], b"");
    stale.problem(409, "version-changed");
    let body = server.client().send(&format!("DELETE /jobs/{id}"), &[JSON], b"{\"seen_version\":1}");
    body.problem(422, "invalid-request");
    let current = job["version"].to_string();
    let erased = server.delete(&format!("/jobs/{id}?seen_version={current}")).expect(200);
    assert_eq!(erased["id"], id);
    server.get(&format!("/jobs/{id}")).problem(404, "job-not-found");
}

#[test]
fn a_retry_that_cannot_take_its_key_back_names_the_job_that_has_it() {
    let server = Server::with(Options::default().set("max_retries=0"));
    let body = json!({"type": "t", "idempotency_key": "k", "idempotency_scope": "unfinished"});
    let id = enqueue(&server, None, &body).expect(201)["id"].clone();
    server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    let failed = server.post(&format!("/jobs/{id}/fail"), &json!({})).expect(200);
    let other = enqueue(&server, None, &body).expect(201)["id"].clone();
    let retry = json!({"seen_version": failed["version"]});
    let problem = server.post(&format!("/jobs/{id}/retry"), &retry).problem(409, "idempotency-key-held");
    assert_eq!(problem["job"]["id"], other);
    server.post(&format!("/jobs/{other}/cancel"), &json!({})).expect(200);
    server.post(&format!("/jobs/{id}/retry"), &retry).expect(200);
}

#[test]
fn reports_ignore_and_name_what_they_do_not_know() {
    let server = Server::start();
    server.post("/jobs", &json!({"type": "t"})).expect(201);
    let held = server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    let path = |call: &str| format!("/jobs/{}/{call}", held["id"]);
    let beat = server.post(&path("heartbeat"), &json!({"lease": held["lease"], "extend_by": 60}));
    assert_eq!(beat.expect(200)["continue"], true);
    assert_eq!(beat.header("tagwerk-ignored"), Some("extend_by"));
    let done = server.post(&path("complete"), &json!({"lease": held["lease"], "resutl": 1, "enqueu": []}));
    assert_eq!(done.expect(200)["status"], "completed");
    assert_eq!(done.header("tagwerk-ignored"), Some("enqueu, resutl"));
    let again = server.post(&path("complete"), &json!({"lease": held["lease"]}));
    again.expect(200);
    assert_eq!(again.header("report-replayed"), Some("true"));
    let odd =
        server.post(&path("complete"), &json!({"lease": held["lease"], "a\r\nSet-Cookie: x": 1, "ü": 2}));
    odd.expect(200);
    assert!(odd.header("set-cookie").is_none());
    assert!(odd.header("tagwerk-ignored").is_some());
}
