//! Payloads come out as they went in, byte for byte, and go nowhere else.

use std::collections::HashMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::client::Answer;
use crate::server::{Options, Server};

/// Numbers that no float holds, keys twice and out of order, escapes, white space inside.
const ODD: &str = r#"{"id":899999999999999990,"x":1.10,"e":1E400,"b":123456789012345678901234567890,"a":1,"z":{"y":2, "b":3},"a":"\u0000\ud800é\/","n":-0.0}"#;

/// The fields of an object, their bytes as they stand there.
type Fields = HashMap<String, Box<RawValue>>;

/// The bytes of a field of an answer, as they stand there.
fn raw(answer: &Answer, field: &str) -> String {
    let fields: Fields = serde_json::from_slice(&answer.body).expect("an object");
    fields.get(field).map(|value| value.get().to_owned()).unwrap_or_default()
}

/// The same of the first job of a bulk answer.
fn raw_first(answer: &Answer, field: &str) -> String {
    let jobs: Vec<Fields> = serde_json::from_str(&raw(answer, "jobs")).expect("jobs");
    jobs[0].get(field).map(|value| value.get().to_owned()).unwrap_or_default()
}

fn enqueue(server: &Server, payload: &str, more: &str) -> i64 {
    let body = format!("{{\"type\":\"t\",\"payload\":{payload}{more}}}");
    let answer = server.client().post_text("/jobs", &body);
    answer.status_is(201);
    assert_eq!(raw(&answer, "payload"), payload);
    raw(&answer, "id").parse().expect("an id")
}

/// A result with a NUL could not be written; the run stayed RUNNING and could not even be killed.
#[test]
fn f105_nul_in_strings_is_kept_or_refused_and_never_sticks() {
    let server = Server::start();
    let nul = r#"{"text":"a\u0000b"}"#;
    let id = enqueue(&server, nul, "");
    let claimed = server.post("/jobs/claim", &json!({"worker_id": "w"}));
    assert_eq!(raw(&claimed, "payload"), nul);
    let body = format!("{{\"result\":{nul}}}");
    let done = server.client().post_text(&format!("/jobs/{id}/complete"), &body);
    assert_eq!(raw(&done, "result"), nul);
    assert_eq!(raw(&server.get(&format!("/jobs/{id}")), "result"), nul);
    let id = enqueue(&server, "1", ",\"max_retries\":0");
    server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    let failed =
        server.client().post_text(&format!("/jobs/{id}/fail"), "{\"error\":\"a\\u0000b\"}").expect(200);
    assert_eq!(failed["status"], "failed");
    assert!(
        failed["error"].as_str().is_some_and(|error| !error.contains('\0') && error.starts_with('a')),
        "{failed}"
    );
}

/// Large integers came back changed because the server parsed and printed them as floats.
#[test]
fn f106_numbers_are_not_read() {
    let server = Server::start();
    let id = enqueue(&server, ODD, "");
    assert_eq!(raw(&server.get(&format!("/jobs/{id}")), "payload"), ODD);
    let claimed = server.post("/jobs/claim", &json!({"worker_id": "w"}));
    assert_eq!(raw(&claimed, "payload"), ODD);
    assert_eq!(raw(&claimed, "id"), id.to_string());
    let lease = raw(&claimed, "lease");
    let checkpoint = format!("{{\"lease\":{lease},\"checkpoint\":{ODD}}}");
    let kept = server.client().post_text(&format!("/jobs/{id}/checkpoint"), &checkpoint);
    assert_eq!(raw(&kept, "checkpoint"), ODD);
    let result = format!("{{\"lease\":{lease},\"result\":{ODD}}}");
    let done = server.client().post_text(&format!("/jobs/{id}/complete"), &result);
    assert_eq!((raw(&done, "result"), raw(&done, "payload")), (ODD.to_owned(), ODD.to_owned()));
}

/// Numbers lost digits only for delayed jobs, which another piece of code decoded and encoded again.
#[test]
fn f107_every_route_gives_the_same_bytes() {
    let server = Server::with(Options::default().set("retry.base=0").set("retry.jitter=none"));
    let claim = || server.post("/jobs/claim", &json!({"worker_id": "w", "wait_seconds": 10}));
    let post = |path: String, body: String| server.client().post_text(&path, &body);
    // Delayed.
    let id = enqueue(&server, ODD, ",\"delay_seconds\":0.2,\"max_retries\":1");
    let first = claim();
    assert_eq!((raw(&first, "id"), raw(&first, "payload")), (id.to_string(), ODD.to_owned()));
    // Retried.
    post(format!("/jobs/{id}/fail"), String::new()).status_is(200);
    let second = claim();
    assert_eq!((raw(&second, "attempt"), raw(&second, "payload")), ("2".to_owned(), ODD.to_owned()));
    // From review.
    let failed = post(format!("/jobs/{id}/fail"), format!("{{\"lease\":{}}}", raw(&second, "lease")));
    assert_eq!(raw(&failed, "status"), "\"failed\"");
    let retried =
        post(format!("/jobs/{id}/retry"), format!("{{\"seen_version\":{}}}", raw(&failed, "version")));
    assert_eq!(raw(&retried, "payload"), ODD);
    let third = claim();
    assert_eq!(raw(&third, "payload"), ODD);
    post(format!("/jobs/{id}/complete"), format!("{{\"lease\":{}}}", raw(&third, "lease"))).status_is(200);
    // In bulk, and claimed in bulk.
    let bulk = format!("{{\"jobs\":[{{\"type\":\"t\",\"payload\":{ODD}}}]}}");
    post("/jobs/bulk".to_owned(), bulk).status_is(200);
    let claimed = server.post("/jobs/claim/bulk", &json!({"worker_id": "w", "max_jobs": 3}));
    assert_eq!(raw_first(&claimed, "payload"), ODD);
    // Released, and claimed along with the report.
    let (id, lease) = (raw_first(&claimed, "id"), raw_first(&claimed, "lease"));
    let report = format!(
        "{{\"reports\":[{{\"id\":{id},\"lease\":{lease},\"outcome\":\"released\"}}],\"claim\":{{\"worker_id\":\"x\"}}}}"
    );
    assert_eq!(raw_first(&post("/jobs/report/bulk".to_owned(), report), "payload"), ODD);
    // Replaced by an operator with other odd bytes.
    let failed = post(format!("/jobs/{id}/force-fail"), "{\"reason\":\"test\"}".to_owned());
    let other = format!("{{\"seen_version\":{},\"payload\":[{ODD}, 1.0]}}", raw(&failed, "version"));
    assert_eq!(raw(&post(format!("/jobs/{id}/retry"), other), "payload"), format!("[{ODD}, 1.0]"));
}

/// Arguments came back with another key order because the column was jsonb.
#[test]
fn f108_keys_keep_their_order_and_stay_twice() {
    let server = Server::start();
    for payload in
        [r#"{"z":1,"a":{"y":2,"b":3},"z":4}"#, "null", "0", "\"\"", "[]", "{ }", "[1 , 2]", "1e5", "true"]
    {
        let id = enqueue(&server, payload, "");
        assert_eq!(raw(&server.get(&format!("/jobs/{id}")), "payload"), payload);
    }
}

/// A run of opening brackets overflowed the stack and killed the process.
#[test]
fn f109_nesting_ends_at_its_limit_and_not_in_a_crash() {
    let server = Server::start();
    let pid = server.pid();
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for depth in [1, 100, 128] {
        let id = enqueue(&server, &nested(depth), "");
        assert_eq!(raw(&server.get(&format!("/jobs/{id}")), "payload"), nested(depth));
    }
    for depth in [129, 1_000, 100_000] {
        let body = format!("{{\"type\":\"t\",\"payload\":{}}}", nested(depth));
        server.client().post_text("/jobs", &body).problem(400, "invalid-json");
    }
    server.client().post_text("/jobs", &"{\"a\":".repeat(1_000_000)).problem(400, "invalid-json");
    server.client().post_text("/jobs", &nested(4_000_000)).status_is(422);
    assert_eq!(server.pid(), pid);
    server.get("/readyz").expect(200);
}

/// A queue logged whole payloads, with passwords from application settings.
#[test]
fn f115_secrets_reach_no_log_list_or_metric() {
    const MARK: &str = "SECRET-MARK-123";
    for level in ["debug", "trace"] {
        let mut server = Server::with(
            Options::default().env("TAGWERK_LOG", level).set("max_retries=1").set("retry.base=0"),
        );
        let post = |path: &str, body: &Value| server.post(path, body);
        let job = json!({
            "type": "t", "payload": {"password": MARK}, "idempotency_key": format!("key-{MARK}"),
            "correlation_id": MARK, "subject": {"kind": "k", "id": MARK},
        });
        let id = post("/jobs", &job).expect(201)["id"].clone();
        let held = post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
        let lease = held["lease"].as_str().expect("a token").to_owned();
        post(&format!("/jobs/{id}/checkpoint"), &json!({"lease": lease, "checkpoint": MARK})).expect(200);
        let error = format!("login failed: password={MARK}, url https://u:{MARK}@host/, Bearer {MARK}");
        let failed = post(&format!("/jobs/{id}/fail"), &json!({"lease": lease, "error": error})).expect(200);
        assert!(failed["error"].as_str().is_some_and(|error| !error.contains(MARK)), "{failed}");
        // What is refused, in every way.
        post("/jobs", &json!({"type": "t", "payload": {"x": MARK}, "max_retries": MARK})).status_is(422);
        post("/jobs", &json!({"type": format!("t\n{MARK}")})).status_is(422);
        server.client().post_text("/jobs", &format!("{{\"payload\":\"{MARK}")).status_is(400);
        server.get(&format!("/jobs?idempotency_key={MARK}&statuss={MARK}")).status_is(422);
        server.get(&format!("/jobs?idempotency_key=key-{MARK}")).status_is(200);
        server.get(&format!("/{MARK}?{MARK}={MARK}")).status_is(404);
        server
            .client()
            .send("GET /jobs", &[("Authorization", &format!("Bearer {MARK}"))], b"")
            .status_is(200);
        post(&format!("/jobs/{id}/complete"), &json!({"lease": MARK})).status_is(409);
        let held = post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
        post(&format!("/jobs/{id}/complete"), &json!({"lease": held["lease"], "result": MARK})).expect(200);
        for path in [
            "/metrics",
            "/stats",
            "/workers",
            "/queues",
            &format!("/jobs/{id}/attempts"),
            &format!("/jobs/{id}/explain"),
        ] {
            assert!(!server.get(path).text().contains(MARK), "{path}");
        }
        let list = server.get("/jobs").expect(200);
        for field in ["payload", "result", "checkpoint"] {
            assert!(list["jobs"][0].get(field).is_none(), "{field} in a list");
        }
        assert!(server.terminate().success());
        let log = server.log();
        assert!(log.contains("answered"), "it does log");
        assert!(log.contains("route=\"/jobs/{id}/complete\""), "the pattern that matched, not the path");
        assert!(!log.contains(MARK), "{}", log.lines().find(|line| line.contains(MARK)).unwrap_or_default());
        assert!(!log.contains(&lease), "a token in the log");
    }
}
