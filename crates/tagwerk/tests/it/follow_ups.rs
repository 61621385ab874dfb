//! Jobs that a completed one leads to, at the real server: all of them and the report, or nothing.

use serde_json::{Value, json};

use crate::server::Server;
use crate::support::{enqueue, id_of, job, nothing_in, take};

fn complete(lease: &str, jobs: &Value) -> Value {
    json!({"lease": lease, "result": {"n": 1}, "enqueue": jobs})
}

#[test]
fn a_chain_goes_on_in_the_call_that_completes_its_link() {
    let server = Server::start();
    let mut client = server.client();
    enqueue(&mut client, &json!({"type": "import", "queue": "q"}));
    let held = take(&mut client, "w", "q");
    let next = json!([
        {"type": "resize", "queue": "q", "payload": {"image": 1}, "idempotency_key": "resize-1"},
        {"type": "resize", "queue": "q", "payload": {"image": 2}, "idempotency_key": "resize-2"},
    ]);
    let path = format!("/jobs/{}/complete", held.id);
    let done = client.post(&path, &complete(&held.lease, &next)).expect(200);
    let (first, second) = (held.id + 1, held.id + 2);
    let created = json!([{"id": first, "created": true}, {"id": second, "created": true}]);
    assert_eq!((&done["status"], &done["enqueued"]), (&json!("completed"), &created));
    assert_eq!(job(&mut client, first)["payload"], json!({"image": 1}));
    // The answer was lost and the report is sent again.
    let again = client.post(&path, &complete(&held.lease, &next));
    assert_eq!(again.header("report-replayed"), Some("true"));
    assert_eq!(again.expect(200)["enqueued"], Value::Null);
    let other = json!([{"type": "resize", "queue": "q"}]);
    client.post(&path, &complete(&held.lease, &other)).problem(409, "already-reported");
    // A worker that reports in bulk and brings a key that is known already.
    let held = take(&mut client, "w", "q");
    let report = json!({"id": held.id, "lease": held.lease, "outcome": "completed", "enqueue": next});
    let answer = client.post("/jobs/report/bulk", &json!({"reports": [report]})).expect(200);
    let known = json!([{"id": first, "created": false}, {"id": second, "created": false}]);
    assert_eq!(answer["results"][0]["enqueued"], known);
    take(&mut client, "w", "q").complete(&mut client);
    assert!(nothing_in(&mut client, "q"));
}

#[test]
fn one_bad_job_refuses_the_report_and_the_lease_lives() {
    let server = Server::start();
    let mut client = server.client();
    server.put("/types/mail", &json!({"payload_max_bytes": 10})).status_is(200);
    let id = id_of(&enqueue_one(&mut client));
    let held = take(&mut client, "w", "q");
    let path = format!("/jobs/{id}/complete");
    for (jobs, code, field) in [
        // What the door sees, what the rules of a type see, what the clock and the limits see.
        (json!([{"type": "a"}, {"type": "b", "max_retry": 1}]), "invalid-request", "enqueue[1].max_retry"),
        (
            json!([{"type": "a"}, {"type": "mail", "payload": "0123456789"}]),
            "payload-too-large",
            "enqueue[1].payload",
        ),
        (json!([{"type": "a", "limits": ["crm"]}]), "unknown-limit", "enqueue[0].limits"),
        (
            json!([{"type": "a", "expires_at": "2020-01-01T00:00:00Z"}]),
            "invalid-request",
            "enqueue[0].expires_at",
        ),
    ] {
        let problem = client.post(&path, &complete(&held.lease, &jobs)).problem(422, code);
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(detail.starts_with(field.split('.').next().expect("a place")), "{detail}");
    }
    let counts = client.get("/queues/q").expect(200);
    assert_eq!(counts["counts"]["running"], 1, "{counts}");
    assert_eq!(client.get("/jobs").expect(200)["jobs"].as_array().map(Vec::len), Some(1), "none was created");
    client.post(&path, &complete(&held.lease, &json!([{"type": "a", "queue": "q"}]))).status_is(200);
    assert_eq!(take(&mut client, "w", "q").id, id + 1);
}

fn enqueue_one(client: &mut crate::client::Client) -> Value {
    client.post("/jobs", &json!({"type": "import", "queue": "q"})).expect(201)
}

#[test]
fn a_chain_survives_kill_9_at_every_link() {
    let mut server = Server::start();
    let mut client = server.client();
    enqueue_one(&mut client);
    for link in 0..20_i64 {
        let held = take(&mut client, "w", "q");
        assert_eq!(held.id, link + 1, "no link is missing, none is there twice");
        let next = json!([{"type": "import", "queue": "q"}]);
        client.post(&format!("/jobs/{}/complete", held.id), &complete(&held.lease, &next)).status_is(200);
        server.restart();
        client = server.client();
    }
    let stats = client.get("/queues/q").expect(200);
    assert_eq!(
        (&stats["counts"]["completed"], &stats["counts"]["pending"]),
        (&json!(20), &json!(1)),
        "{stats}"
    );
}
