//! Requests that a token allows: counted exactly, told when there are more, and never in the way of a report.

use std::time::Instant;

use serde_json::{Value, json};

use super::{As, EVERYTHING, create, run, server_with, with};
use crate::server::Options;

/// Sends until it is refused. Returns how many were answered, and the refusal's `Retry-After`.
fn spend(caller: &mut As<'_>) -> (usize, u64) {
    for passed in 0..1_000 {
        let answer = caller.get("/queues");
        if answer.status == 429 {
            let problem = answer.problem(429, "rate-limited");
            assert_eq!(problem["retryable"], true);
            return (
                passed,
                answer.header("retry-after").and_then(|text| text.parse().ok()).expect("seconds"),
            );
        }
        answer.expect(200);
    }
    panic!("it is never refused");
}

/// By the day: nothing of it comes back while the test runs.
#[test]
fn a_token_has_so_many_requests_and_others_have_theirs() {
    let ten = ["ten", "--scope", "read,enqueue", "--rate", "10/24h"];
    let three = ["three", "--scope", "read", "--rate", "3/24h"];
    let (server, [ten, three, all]) = server_with(Options::default(), [&ten, &three, EVERYTHING]);
    let mut of_ten = with(&server, &ten);
    // What is refused for another reason counts: it was a request. What is refused for the number does not.
    of_ten.get("/limits").expect(200);
    of_ten.get("/no/such/path").problem(404, "not-found");
    of_ten.post("/jobs", &json!({"type": 7})).problem(422, "invalid-request");
    of_ten.post("/queues/a/pause", &json!({})).problem(403, "forbidden");
    of_ten.post("/jobs/bulk", &json!({"jobs": [{"type": "t"}, {"type": "t"}, {"type": "t"}]})).expect(200);
    let (passed, after) = spend(&mut of_ten);
    assert_eq!(passed, 5, "five of ten were spent");
    assert!((1..=25 * 3_600 + 1_800).contains(&after), "{after}");
    for call in ["GET /jobs", "POST /jobs", "POST /jobs/claim", "GET /no/such/path", "GET /openapi.json"] {
        of_ten.send(call, &json!({"type": "t"})).problem(429, "rate-limited");
    }
    // On another connection it is the same token.
    with(&server, &ten).get("/queues").problem(429, "rate-limited");
    of_ten.get("/livez").expect(200);
    assert_eq!(spend(&mut with(&server, &three)).0, 3);
    // Whoever does not say who it is spends nobody's.
    server.client().get("/queues").problem(401, "unauthorized");
    for _ in 0..50 {
        with(&server, &all).get("/queues").expect(200);
    }
    assert_eq!(with(&server, &all).get("/stats").expect(200)["counts"]["enqueued"], 3);
}

#[test]
fn after_the_wait_that_is_told_there_are_more() {
    let (server, [token]) = server_with(Options::default(), [&["t", "--scope", "read", "--rate", "4/1s"]]);
    let mut caller = with(&server, &token);
    let begun = Instant::now();
    let mut passed = Vec::new();
    while passed.len() < 12 {
        let sent = begun.elapsed().as_millis();
        let answer = caller.get("/queues");
        match answer.status {
            200 => passed.push((sent, begun.elapsed().as_millis())),
            _ => assert_eq!(answer.problem(429, "rate-limited")["code"], "rate-limited"),
        }
        assert!(begun.elapsed().as_secs() < 30, "{passed:?}");
    }
    // What counts lies between sending and the answer, so this much lies between the two that are furthest apart.
    for five in passed.windows(5) {
        assert!(five[4].1 >= five[0].0 + 999, "{passed:?}");
    }
}

#[test]
fn a_report_is_never_refused_for_being_one_too_many() {
    let worker = ["w", "--scope", "work,enqueue", "--rate", "7/24h"];
    let (server, [token, all]) = server_with(Options::default(), [&worker, EVERYTHING]);
    let mut worker = with(&server, &token);
    for _ in 0..5 {
        with(&server, &all).post("/jobs", &json!({"type": "t"})).expect(201);
    }
    let claim = |worker: &mut As<'_>| worker.post("/jobs/claim", &json!({"worker_id": "w"}));
    let jobs: Vec<Value> = (0..4).map(|_| claim(&mut worker).expect(200)).collect();
    for _ in 0..3 {
        worker.post("/jobs", &json!({"type": "other", "delay_seconds": 3600})).expect(201);
    }
    claim(&mut worker).problem(429, "rate-limited");
    let mut say = |job: &Value, what: &str, more: &Value| {
        let mut body = json!({"lease": job["lease"]});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        worker.post(&format!("/jobs/{}/{what}", job["id"]), &body).expect(200)
    };
    for _ in 0..20 {
        say(&jobs[0], "heartbeat", &json!({}));
    }
    say(&jobs[0], "checkpoint", &json!({"checkpoint": 1}));
    assert_eq!(say(&jobs[0], "complete", &json!({}))["status"], "completed");
    assert_eq!(say(&jobs[1], "fail", &json!({"class": "permanent"}))["status"], "failed");
    assert_eq!(say(&jobs[2], "release", &json!({"delay_seconds": 3600}))["status"], "pending");
    let leases = json!({"worker_id": "w", "leases": [{"id": jobs[3]["id"], "lease": jobs[3]["lease"]}]});
    worker.post("/jobs/heartbeat/bulk", &leases).expect(200);
    // The report counts, the claim that came with it is one too many.
    let bulk = json!({
        "reports": [{"id": jobs[3]["id"], "lease": jobs[3]["lease"], "outcome": "completed"}],
        "claim": {"worker_id": "w", "max_jobs": 1},
    });
    let answer = worker.post("/jobs/report/bulk", &bulk).expect(200);
    assert_eq!(answer["results"][0]["status"], 200, "{answer}");
    assert_eq!((&answer["claim_problem"]["code"], &answer["jobs"]), (&json!("rate-limited"), &json!([])));
    let left = with(&server, &all).get("/jobs?type=t&status=pending").expect(200);
    assert_eq!(
        left["jobs"].as_array().expect("jobs").len(),
        2,
        "the released one and the one nobody claimed"
    );
}

#[test]
fn the_server_has_a_rate_for_tokens_without_one() {
    let own = ["own", "--scope", "read", "--rate", "6/d"];
    let (mut server, [own, plain]) =
        server_with(Options::default().set("server.token_rate=2/d"), [&own, &["plain", "--scope", "read"]]);
    assert_eq!(spend(&mut with(&server, &own)).0, 6);
    assert_eq!(spend(&mut with(&server, &plain)).0, 2);
    let listed = run(server.dir(), &["list", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!(listed["tokens"][0]["rate"], json!({"count": 6, "per_seconds": 86_400}));
    assert_eq!(listed["tokens"][1]["rate"], Value::Null);
    let listed = run(server.dir(), &["list"]);
    let text = String::from_utf8_lossy(&listed.stdout);
    assert!(text.contains("RATE") && text.contains("6/1d"), "{text}");
    // The tokens are read anew again and again, and what was spent stays spent.
    create(server.dir(), &["third", "--scope", "read"]);
    assert_eq!(spend(&mut with(&server, &plain)).0, 0);
    assert_eq!(spend(&mut with(&server, &own)).0, 0);
    // It is kept in memory only.
    server.restart();
    assert_eq!(spend(&mut with(&server, &plain)).0, 2);
    for wrong in ["0/s", "5", "5/week", "5/25h"] {
        let output = run(server.dir(), &["create", "x", "--scope", "read", "--rate", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}: {output:?}");
    }
}
