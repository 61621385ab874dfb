//! Bad input, one row each: a stable status and code, a sentence that says what to do, and nothing changed.

use serde_json::{Value, json};

use crate::server::{JSON, Options, Server};

/// A body of `POST /jobs`, and what becomes of it: status, code, field and field code of the first error.
struct Row {
    body: Vec<u8>,
    status: u16,
    code: &'static str,
    error: Option<(&'static str, &'static str)>,
}

fn row(body: impl Into<Vec<u8>>, status: u16, code: &'static str) -> Row {
    Row { body: body.into(), status, code, error: None }
}

fn field(body: impl Into<Vec<u8>>, field: &'static str, code: &'static str) -> Row {
    Row { body: body.into(), status: 422, code: "invalid-request", error: Some((field, code)) }
}

fn rows() -> Vec<Row> {
    let long = |bytes: usize| "x".repeat(bytes);
    vec![
        row("{\"type\":", 400, "invalid-json"),
        row("type=t", 400, "invalid-json"),
        row("{\"type\":\"t\"} x", 400, "invalid-json"),
        row(b"\xEF\xBB\xBF{\"type\":\"t\"}", 400, "invalid-json"),
        row(b"{\"type\":\"t\xFF\"}", 400, "invalid-json"),
        row(b"{\0}", 400, "invalid-json"),
        row(b"\xFF\xFE{\0}\0", 400, "invalid-json"),
        row("'{\"type\": 't'}'", 400, "invalid-json"),
        row("{\"type\":\"t\",\"priority\":NaN}", 400, "invalid-json"),
        row(format!("{{\"type\":\"t\",\"payload\":{}}}", "[".repeat(100_000)), 400, "invalid-json"),
        field("{}", "type", "missing"),
        field("", "type", "missing"),
        field("{\"type\":5}", "type", "wrong-type"),
        field("{\"type\":\"\"}", "type", "empty"),
        field("{\"type\":null}", "type", "missing"),
        field(format!("{{\"type\":\"{}\"}}", long(256)), "type", "too-long"),
        field("{\"type\":\"a\\u0000b\"}", "type", "bad-character"),
        field("{\"type\":\"a\\nb\"}", "type", "bad-character"),
        field("{\"type\":\"\\ud800\"}", "type", "lone-surrogate"),
        field("{\"type\":\"t\",\"type\":\"u\"}", "type", "duplicate-field"),
        field("{\"type\":\"t\",\"max_retry\":1}", "max_retry", "unknown-field"),
        field("{\"type\":\"t\",\"operation_id\":1}", "operation_id", "unknown-field"),
        field("{\"type\":\"t\",\"ordering_key\":1}", "ordering_key", "wrong-type"),
        field("{\"type\":\"t\",\"queue\":\"a b\"}", "queue", "bad-name"),
        field("{\"type\":\"t\",\"queue\":\"-x\"}", "queue", "bad-name"),
        field("{\"type\":\"t\",\"max_retries\":-1}", "max_retries", "out-of-range"),
        field("{\"type\":\"t\",\"max_retries\":1001}", "max_retries", "out-of-range"),
        field("{\"type\":\"t\",\"max_retries\":1.5}", "max_retries", "wrong-type"),
        field("{\"type\":\"t\",\"max_retries\":1e400}", "max_retries", "out-of-range"),
        field("{\"type\":\"t\",\"max_retries\":\"3\"}", "max_retries", "wrong-type"),
        field("{\"type\":\"t\",\"priority\":101}", "priority", "out-of-range"),
        field("{\"type\":\"t\",\"priority\":\"urgent\"}", "priority", "unknown-value"),
        field("{\"type\":\"t\",\"delay_seconds\":-1}", "delay_seconds", "out-of-range"),
        field("{\"type\":\"t\",\"delay_seconds\":1e12}", "delay_seconds", "out-of-range"),
        field("{\"type\":\"t\",\"delay_seconds\":\"5s\"}", "delay_seconds", "wrong-type"),
        field("{\"type\":\"t\",\"run_at\":\"2030-01-01T00:00:00\"}", "run_at", "time-without-zone"),
        field("{\"type\":\"t\",\"run_at\":\"tomorrow\"}", "run_at", "bad-time"),
        field("{\"type\":\"t\",\"run_at\":1700000000}", "run_at", "wrong-type"),
        field("{\"type\":\"t\",\"run_at\":\"2999-01-01T00:00:00Z\"}", "run_at", "out-of-range"),
        field("{\"type\":\"t\",\"expires_at\":\"2001-01-01T00:00:00Z\"}", "expires_at", "out-of-range"),
        field(
            "{\"type\":\"t\",\"run_at\":\"2030-01-01T00:00:00Z\",\"delay_seconds\":1}",
            "delay_seconds",
            "conflict",
        ),
        field("{\"type\":\"t\",\"max_age_seconds\":0}", "max_age_seconds", "out-of-range"),
        field("{\"type\":\"t\",\"lease_seconds\":0.5}", "lease_seconds", "out-of-range"),
        field("{\"type\":\"t\",\"lease_seconds\":86401}", "lease_seconds", "out-of-range"),
        field("{\"type\":\"t\",\"retry\":{\"factor\":0.5}}", "retry.factor", "out-of-range"),
        field("{\"type\":\"t\",\"retry\":{\"bas_seconds\":5}}", "retry.bas_seconds", "unknown-field"),
        field("{\"type\":\"t\",\"subject\":{\"kind\":\"order\"}}", "subject.id", "missing"),
        field("{\"type\":\"t\",\"on_duplicate\":\"ignore\"}", "on_duplicate", "unknown-value"),
        field("{\"type\":\"t\",\"idempotency_key\":\"\"}", "idempotency_key", "empty"),
        field("{\"type\":\"t\",\"idempotency_key\":\"a\\u0000\"}", "idempotency_key", "bad-character"),
        field(
            format!("{{\"type\":\"t\",\"idempotency_key\":\"{}\"}}", long(256)),
            "idempotency_key",
            "too-long",
        ),
        Row {
            error: Some(("payload", "payload-too-large")),
            ..row(
                format!("{{\"type\":\"t\",\"payload\":\"{}\"}}", long(256 * 1024)),
                422,
                "payload-too-large",
            )
        },
    ]
}

#[test]
fn an_enqueue_that_cannot_be_is_refused_with_its_reason() {
    let server = Server::start();
    let mut client = server.client();
    for Row { body, status, code, error } in rows() {
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        let answer = client.send("POST /jobs", &[JSON], &body);
        assert_eq!(answer.status, status, "{shown}: {}", answer.text());
        let problem = answer.problem(status, code);
        if let Some((field, field_code)) = error {
            let found = (&problem["errors"][0]["field"], &problem["errors"][0]["code"]);
            assert_eq!(found, (&json!(field), &json!(field_code)), "{shown}: {problem}");
            assert!(
                problem["errors"][0]["message"].as_str().is_some_and(|message| message.len() > 5),
                "{problem}"
            );
        }
    }
    assert_eq!(server.get("/stats").expect(200)["counts"]["enqueued"], 0, "nothing was stored");
}

#[test]
fn the_nearest_known_name_is_named() {
    let server = Server::start();
    let problem = server.post("/jobs", &json!({"type": "t", "max_retry": 5})).problem(422, "invalid-request");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("max_retries")), "{problem}");
    let problem = server.get("/jobs?statuss=failed").problem(422, "invalid-request");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("status")), "{problem}");
}

#[test]
fn everything_that_is_wrong_is_named_at_once() {
    let server = Server::start();
    let body = json!({"max_retries": -1, "queue": "a b", "nonsense": 1});
    let problem = server.post("/jobs", &body).problem(422, "invalid-request");
    assert_eq!(problem["errors"].as_array().map(Vec::len), Some(4), "{problem}");
}

#[test]
fn queries_that_cannot_be() {
    let server = Server::start();
    for (path, field) in [
        ("/jobs?status=done", "status"),
        ("/jobs?limit=0", "limit"),
        ("/jobs?limit=1001", "limit"),
        ("/jobs?limit=ten", "limit"),
        ("/jobs?after=-1", "after"),
        ("/jobs?since=yesterday", "since"),
        ("/jobs?since=2026-01-01T00:00:00", "since"),
        ("/jobs?operation_id=1", "operation_id"),
        ("/jobs?type=a&type=b", "type"),
        ("/review?class=fatal", "class"),
        ("/queues?limit=x", "limit"),
        ("/jobs/1?wait_seconds=61", "wait_seconds"),
        ("/jobs/1?wait=5", "wait"),
        ("/stats?x=1", "x"),
        ("/livez?verbose", "verbose"),
    ] {
        let problem = server.get(path).problem(422, "invalid-request");
        assert_eq!(problem["errors"][0]["field"], field, "{path}: {problem}");
    }
    server.get("/jobs?type=%FF").problem(422, "invalid-request");
    server
        .client()
        .send("POST /jobs?dry_run=1", &[JSON], b"{\"type\":\"t\"}")
        .problem(422, "invalid-request");
    assert_eq!(server.get("/stats").expect(200)["counts"]["enqueued"], 0);
}

#[test]
fn ids_and_paths_that_do_not_exist() {
    let server = Server::start();
    for path in
        ["/jobs/99", "/jobs/0", "/jobs/-1", "/jobs/x", "/jobs/9223372036854775808", "/jobs/%31x", "/jobs/..;"]
    {
        server.get(path).problem(404, "job-not-found");
    }
    for call in ["complete", "fail", "release", "heartbeat", "cancel"] {
        server.post(&format!("/jobs/99/{call}"), &json!({})).problem(404, "job-not-found");
    }
    server.delete("/jobs/99").problem(404, "job-not-found");
    for path in [
        "/",
        "//",
        "//jobs",
        "/jobs/",
        "/jobs//1",
        "/jobs/1/",
        "/Jobs",
        "/jobs/..;/",
        "/jobs/../stats",
        "/jobs/1/nope",
        "/api/jobs",
        "/ui/",
        "/schedules",
        "/operations",
        "/alarms",
        "/schedules",
        "/events",
        "/review/groups",
        "/jobs/%FF",
        "/%2e%2e/",
        "/jobs/1/effects",
    ] {
        server.get(path).problem(404, "not-found");
    }
    for path in ["/workers/quiet", "/queues/default/close", "/jobs/1/effects/x/undo", "/operations"] {
        server.post(path, &json!({})).problem(404, "not-found");
    }
}

#[test]
fn methods_that_a_path_does_not_know() {
    let server = Server::start();
    for (call, allowed) in [
        ("PUT /jobs", "POST"),
        ("PATCH /jobs/1", "DELETE"),
        ("GET /jobs/claim/bulk", "POST"),
        ("DELETE /stats", "GET"),
        ("POST /livez", "GET"),
        ("TRACE /jobs", "GET"),
        ("BREW /jobs", "GET"),
    ] {
        let answer = server.client().send(call, &[JSON], b"{}");
        answer.problem(405, "method-not-allowed");
        assert!(answer.header("allow").is_some_and(|allow| allow.contains(allowed)), "{call}: {answer:?}");
    }
    let star = server.client().raw(b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("an answer");
    assert_eq!(star.status, 404);
}

#[test]
fn calls_of_workers_that_come_too_late_or_with_nothing() {
    let server = Server::start();
    let id = server.post("/jobs", &json!({"type": "t"})).expect(201)["id"].clone();
    let call = |name: &str, body: &Value| server.post(&format!("/jobs/{id}/{name}"), body);
    call("complete", &json!({})).problem(409, "not-running");
    let held = server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    let lease = &held["lease"];
    for name in ["complete", "heartbeat"] {
        let problem = call(name, &json!({"lease": "wrong"})).problem(409, "lease-lost");
        assert_eq!((&problem["stop"], &problem["may_report"]), (&json!(true), &json!(false)));
    }
    call("heartbeat", &json!({})).problem(409, "lease-required");
    call("checkpoint", &json!({"checkpoint": 1})).problem(409, "lease-required");
    call("checkpoint", &json!({"lease": lease})).problem(422, "invalid-request");
    call("complete", &json!({"worker_id": "other"})).problem(409, "lease-required");
    let problem = call("fail", &json!({"lease": lease, "class": "fatal"})).problem(422, "invalid-request");
    let detail = problem["detail"].as_str().expect("a detail");
    assert!(["transient", "permanent", "unknown"].iter().all(|class| detail.contains(class)), "{detail}");
    let large = "x".repeat(64 * 1024);
    call("complete", &json!({"lease": lease, "result": large})).problem(422, "result-too-large");
    call("checkpoint", &json!({"lease": lease, "checkpoint": large})).problem(422, "checkpoint-too-large");
    call("heartbeat", &json!({"lease": lease})).expect(200);
    call("complete", &json!({"lease": lease})).expect(200);
    let problem = call("fail", &json!({"lease": lease})).problem(409, "already-reported");
    assert_eq!(problem["counted"], "completed");
    call("heartbeat", &json!({"lease": lease})).problem(409, "not-running");
    call("cancel", &json!({})).problem(409, "already-completed");
    call("discard", &json!({"reason": "x"})).status_is(409);
    call("retry", &json!({"seen_version": 3})).problem(409, "not-failed");
}

#[test]
fn claims_that_cannot_be() {
    let server = Server::start();
    for (body, field) in [
        (json!({}), "worker_id"),
        (json!({"worker_id": ""}), "worker_id"),
        (json!({"worker_id": "a/b"}), "worker_id"),
        (json!({"worker_id": "w", "queue": "q"}), "queue"),
        (json!({"worker_id": "w", "queues": "q"}), "queues"),
        (json!({"worker_id": "w", "queues": []}), "queues"),
        (json!({"worker_id": "w", "wait_seconds": 61}), "wait_seconds"),
        (json!({"worker_id": "w", "lease_seconds": 0}), "lease_seconds"),
        (json!({"worker_id": "w", "request_id": "x".repeat(65)}), "request_id"),
        (json!({"worker_id": "w", "handles_verify": 1}), "handles_verify"),
        (json!({"worker_id": "w", "max_jobs": 2}), "max_jobs"),
    ] {
        let problem = server.post("/jobs/claim", &body).problem(422, "invalid-request");
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
    }
    for max_jobs in [json!(0), json!(1001), json!("many")] {
        server
            .post("/jobs/claim/bulk", &json!({"worker_id": "w", "max_jobs": max_jobs}))
            .problem(422, "invalid-request");
    }
}

#[test]
fn a_failure_with_any_text_is_taken() {
    let server = Server::with(Options::default().set("retry.base=0"));
    let texts = [
        "{}",
        "{\"error\":null}",
        "{\"error\":{\"code\":5,\"nested\":[1,2]}}",
        "{\"error\":\"nul \\u0000 and half \\ud800 pair\"}",
        "{\"error\":\"\"}",
        &format!("{{\"error\":\"{}\"}}", "ä".repeat(40_000)),
        "{\"eror\":\"misspelt\"}",
    ];
    for body in texts {
        server.post("/jobs", &json!({"type": "t"})).expect(201);
        let job = server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
        let path = format!("/jobs/{}/fail", job["id"]);
        let answer = server.client().post_text(&path, body);
        let failed = answer.expect(200);
        let error = failed["error"].as_str().unwrap_or_default();
        assert!(error.len() <= 16 * 1024 && !error.contains('\0'), "{body}");
        if body.contains("eror") {
            assert_eq!(answer.header("tagwerk-ignored"), Some("eror"));
        }
        server.post(&format!("/jobs/{}/cancel", job["id"]), &json!({})).expect(200);
    }
}
