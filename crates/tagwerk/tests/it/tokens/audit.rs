//! The audit log: every action of an operator, by whom, and never what a job holds.

use serde_json::{Value, json};

use super::{As, EVERYTHING, run, server_with, with};
use crate::server::{Options, Server, tagwerk};
use crate::support::id_of;

fn entries(page: &Value) -> Vec<(String, String, String, Value)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let entry = |entry: &Value| {
        (text(&entry["who"]), text(&entry["action"]), text(&entry["target"]), entry["note"].clone())
    };
    page["entries"].as_array().expect("entries").iter().map(entry).collect()
}

fn told(who: &str, action: &str, target: &str, note: Value) -> (String, String, String, Value) {
    (who.to_owned(), action.to_owned(), target.to_owned(), note)
}

/// What is done to queues, limits and types, with what is refused.
fn settings(ops: &mut As<'_>) {
    ops.send("PUT /queues/q", &json!({"max_running": 3})).expect(200);
    ops.post("/queues/q/pause", &json!({"reason": "deploy"})).expect(200);
    ops.post("/queues/q/resume", &json!({"reason": "nothing"})).status_is(409);
    ops.post("/queues/q/resume", &json!({})).expect(200);
    ops.post("/queues/q/drain", &json!({})).expect(200);
    ops.post("/queues/q/open", &json!({})).expect(200);
    ops.send("PUT /limits/crm", &json!({"max_running": 2})).expect(201);
    ops.post("/limits/crm/open", &json!({})).expect(200);
    ops.send("DELETE /limits/crm", &Value::Null).expect(200);
    ops.send("DELETE /limits/crm", &Value::Null).status_is(404);
    ops.send("PUT /types/t", &json!({})).expect(200);
    ops.send("DELETE /types/t", &Value::Null).expect(200);
    ops.send("DELETE /types/t", &Value::Null).status_is(404);
}

#[test]
fn every_action_of_an_operator_is_in_the_log_and_no_other_call() {
    let (server, [all, ops]) =
        server_with(Options::default(), [EVERYTHING, &["ops", "--scope", "operate,read,admin,payload"]]);
    let make = |key: &str| {
        let job = json!({"type": "t", "idempotency_key": key, "payload": "SECRET", "max_retries": 0});
        id_of(&with(&server, &all).post("/jobs", &job).expect(201))
    };
    let ids: Vec<i64> = ["a", "b", "c", "d"].iter().map(|key| make(key)).collect();
    for _ in 0..2 {
        let held = with(&server, &all).post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
        let fail = json!({"lease": held["lease"], "error": "SECRET"});
        with(&server, &all).post(&format!("/jobs/{}/fail", held["id"]), &fail).expect(200);
    }
    let mut ops = with(&server, &ops);
    let version = ops.get(&format!("/jobs/{}", ids[0])).expect(200)["version"].clone();
    ops.post(
        &format!("/jobs/{}/retry", ids[0]),
        &json!({"seen_version": version, "note": "n", "payload": "SECRET2"}),
    )
    .expect(200);
    ops.post(&format!("/jobs/{}/retry", ids[0]), &json!({"seen_version": version})).status_is(409);
    ops.post(&format!("/jobs/{}/discard", ids[1]), &json!({"reason": "old"})).expect(200);
    ops.post(&format!("/jobs/{}/discard", ids[1]), &json!({"reason": "again"})).expect(200);
    ops.post(&format!("/jobs/{}/cancel", ids[2]), &json!({})).expect(200);
    let running = with(&server, &all).post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    ops.post(&format!("/jobs/{}/force-fail", running["id"]), &json!({"reason": "hangs"})).expect(200);
    ops.send(&format!("DELETE /jobs/{}", ids[2]), &Value::Null).expect(200);
    ops.send("DELETE /jobs/4711", &Value::Null).status_is(404);
    settings(&mut ops);

    let answer = ops.get("/audit");
    assert!(!answer.text().contains("SECRET"), "{}", answer.text());
    let id = |at: usize| ids[at].to_string();
    let running = running["id"].to_string();
    let expected = [
        told("local", "token.create", "all", json!("enqueue,work,read,payload,operate,admin")),
        told("local", "token.create", "ops", json!("read,payload,operate,admin")),
        told("ops", "job.retry", &id(0), json!("n")),
        told("ops", "job.discard", &id(1), json!("old")),
        told("ops", "job.cancel", &id(2), Value::Null),
        told("ops", "job.force_fail", &running, json!("hangs")),
        told("ops", "job.delete", &id(2), Value::Null),
        told("ops", "queue.put", "q", json!("max_running 3, max_depth none")),
        told("ops", "queue.pause", "q", json!("deploy")),
        told("ops", "queue.resume", "q", Value::Null),
        told("ops", "queue.drain", "q", Value::Null),
        told("ops", "queue.open", "q", Value::Null),
        told("ops", "limit.put", "crm", json!("max_running 2")),
        told("ops", "limit.open", "crm", Value::Null),
        told("ops", "limit.delete", "crm", Value::Null),
        told("ops", "type.put", "t", Value::Null),
        told("ops", "type.delete", "t", Value::Null),
    ];
    assert_eq!(entries(&answer.expect(200)), expected);

    // Page by page it is the same.
    let (mut paged, mut after) = (Vec::new(), "0".to_owned());
    loop {
        let page = ops.get(&format!("/audit?limit=5&after={after}")).expect(200);
        paged.extend(entries(&page));
        match page["next"].as_str() {
            Some(next) => next.clone_into(&mut after),
            None => break,
        }
    }
    assert_eq!(paged, expected);
    assert!(run(server.dir(), &["revoke", "all"]).status.success());
    let last = entries(&ops.get("/audit").expect(200)).pop();
    assert_eq!(last, Some(told("local", "token.revoke", "all", Value::Null)));
}

#[test]
fn without_tokens_the_log_says_local_and_outlives_a_kill() {
    let mut server = Server::start();
    server.post("/queues/q/pause", &json!({"reason": "deploy"})).expect(200);
    server.restart();
    let page = server.get("/audit").expect(200);
    assert_eq!(entries(&page), [told("local", "queue.pause", "q", json!("deploy"))]);
    let at = page["entries"][0]["at"].as_str().expect("a time").to_owned();
    assert_eq!(server.get(&format!("/audit?until={at}")).expect(200)["entries"], json!([]));
    assert_eq!(
        server.get(&format!("/audit?since={at}")).expect(200)["entries"].as_array().map(Vec::len),
        Some(1)
    );
    for wrong in ["limit=0", "limit=1001", "after=-1", "after=x", "since=2026-01-01", "who=me"] {
        server.get(&format!("/audit?{wrong}")).problem(422, "invalid-request");
    }
    let url = format!("http://{}", server.addr());
    let output = tagwerk(server.dir(), &["audit", "--url", &url]).output().expect("it runs");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && shown.contains("queue.pause") && shown.contains("deploy"),
        "{output:?}"
    );
}
