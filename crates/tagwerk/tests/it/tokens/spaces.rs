//! Spaces: jobs and keys of one are not there for the next, whatever is asked; who has none sees all.

use serde_json::{Value, json};

use super::routes::TABLE;
use super::{EVERYTHING, run, server_with, with};
use crate::server::{Options, Server};
use crate::support::id_of;

const ALL_SCOPES: &str = "enqueue,work,read,payload,operate,admin";
const A: &[&str] = &["a", "--scope", ALL_SCOPES, "--space", "north"];
const B: &[&str] = &["b", "--scope", ALL_SCOPES, "--space", "south"];

fn three() -> (Server, [String; 3]) {
    server_with(Options::default(), [A, B, EVERYTHING])
}

fn make(server: &Server, token: &str, job: &Value) -> i64 {
    id_of(&with(server, token).post("/jobs", job).expect(201))
}

fn claim(server: &Server, token: &str) -> Value {
    with(server, token).post("/jobs/claim", &json!({"worker_id": "w"})).expect(200)
}

fn listed(server: &Server, token: &str, path: &str) -> Vec<i64> {
    let page = with(server, token).get(path).expect(200);
    assert_eq!(page["next"], Value::Null, "{page}");
    page["jobs"].as_array().expect("jobs").iter().map(id_of).collect()
}

#[test]
fn a_key_is_unique_in_its_space_and_no_further() {
    let (server, [a, b, all]) = three();
    let job = json!({"type": "t", "idempotency_key": "order-1", "payload": {"of": 1}});
    let ids: Vec<i64> = [&a, &b, &all].iter().map(|token| make(&server, token, &job)).collect();
    assert!(ids[0] != ids[1] && ids[1] != ids[2], "{ids:?}");
    for (token, id) in [&a, &b, &all].iter().zip(&ids) {
        let again = with(&server, token).post("/jobs", &job);
        assert_eq!(id_of(&again.expect(200)), *id);
        let other = json!({"type": "u", "idempotency_key": "order-1", "on_mismatch": "reject"});
        let problem = with(&server, token).post("/jobs", &other).problem(422, "idempotency-key-reused");
        assert_eq!(problem["job"]["id"], *id, "{problem}");
        let seen = with(&server, token).get(&format!("/jobs/{id}")).expect(200);
        assert_eq!(seen["idempotency_key"], "order-1");
        assert_eq!(listed(&server, token, "/jobs?idempotency_key=order-1"), [*id]);
        let replaced = json!({"type": "t", "idempotency_key": "order-1", "on_duplicate": "replace", "payload": {"of": 2}});
        let answer = with(&server, token).post("/jobs", &replaced).expect(200);
        assert_eq!((id_of(&answer), &answer["replaced"]), (*id, &json!(true)));
        assert_eq!(with(&server, token).post("/jobs", &replaced).expect(200)["payload_differs"], false);
        let bulk =
            json!({"jobs": [{"type": "t", "idempotency_key": "b"}, {"type": "t", "idempotency_key": "b"}]});
        let results = with(&server, token).post("/jobs/bulk", &bulk).expect(200)["results"].clone();
        assert_eq!((&results[0]["status"], &results[1]["status"]), (&json!(201), &json!(200)), "{results}");
        let bearer = format!("Bearer {token}");
        let headers = [("Content-Type", "application/x-ndjson"), ("Authorization", bearer.as_str())];
        let lines =
            b"{\"type\":\"t\",\"idempotency_key\":\"b\"}\n{\"type\":\"t\",\"idempotency_key\":\"s\"}\n";
        let streamed = server.client().send("POST /jobs/bulk", &headers, lines).text().to_owned();
        assert!(streamed.contains("\"created\":1") && streamed.contains("\"existing\":1"), "{streamed}");
    }
    assert_eq!(with(&server, &all).get("/stats").expect(200)["counts"]["enqueued"], 9);
}

#[test]
fn what_is_of_another_space_is_not_there() {
    let (server, [a, b, all]) = three();
    let id = make(&server, &b, &json!({"type": "t", "queue": "q", "payload": "secret"}));
    make(&server, &all, &json!({"type": "t", "queue": "q"}));
    let nobody = with(&server, &a).get("/jobs/4711").problem(404, "job-not-found");
    for (method, path, needed) in TABLE {
        if ["open", "any"].contains(needed) || path.contains("claim") {
            continue;
        }
        let filled = path.replace("{id}", &id.to_string());
        let filled = filled
            .replace("{name}", "x")
            .replace("{effect}", "x")
            .replace("{queue}", "q")
            .replace("{type}", "t");
        let body = if ["POST", "PUT"].contains(method) { json!({}) } else { Value::Null };
        let answer = with(&server, &a).send(&format!("{method} {filled}"), &body);
        assert!(!answer.text().contains("secret"), "{method} {path}: {answer:?}");
        if path.starts_with("/jobs/{id}") {
            let problem = answer.problem(404, "job-not-found");
            let expected = nobody["detail"].as_str().expect("a text").replace("4711", &id.to_string());
            assert_eq!(problem["detail"], expected, "{method} {path}");
        } else if path.contains('{')
            || ["/limits", "/workers", "/stats", "/audit", "/metrics", "/alerts"].contains(path)
        {
            answer.problem(403, "forbidden");
        } else if *method == "GET" {
            let page = answer.expect(200);
            let lists = page.as_object().expect("an object").values().filter_map(Value::as_array);
            assert!(lists.clone().count() > 0 && lists.clone().all(Vec::is_empty), "{path}: {page}");
        }
    }
    assert_eq!(claim(&server, &a), Value::Null);
    for names in [json!({"queues": ["q"]}), json!({"types": ["t"]}), json!({"queues": ["q"], "types": ["t"]})]
    {
        let mut wish = json!({"worker_id": "w"});
        wish.as_object_mut().expect("an object").extend(names.as_object().expect("an object").clone());
        assert_eq!(with(&server, &a).post("/jobs/claim", &wish).expect(200), Value::Null);
    }
    // Whoever holds its lease by whatever way may not report it from elsewhere.
    let held = claim(&server, &b);
    assert_eq!(id_of(&held), id);
    let lease = json!({"lease": held["lease"]});
    with(&server, &a).post(&format!("/jobs/{id}/complete"), &lease).problem(404, "job-not-found");
    let report = json!({"reports": [{"id": id, "lease": held["lease"], "outcome": "completed"}]});
    assert_eq!(with(&server, &a).post("/jobs/report/bulk", &report).expect(200)["results"][0]["status"], 404);
    let beat = json!({"worker_id": "w", "leases": [{"id": id, "lease": held["lease"]}]});
    assert_eq!(
        with(&server, &a).post("/jobs/heartbeat/bulk", &beat).expect(200)["results"][0]["status"],
        404
    );
    assert_eq!(with(&server, &b).get(&format!("/jobs/{id}")).expect(200)["status"], "running");
    with(&server, &b).post(&format!("/jobs/{id}/complete"), &lease).expect(200);
}

#[test]
fn who_has_no_space_sees_all_of_them() {
    let (server, [a, b, all]) = three();
    let ids: Vec<i64> =
        [&a, &b, &all].iter().map(|token| make(&server, token, &json!({"type": "t"}))).collect();
    assert_eq!(listed(&server, &a, "/jobs"), ids[..1]);
    assert_eq!(listed(&server, &b, "/jobs"), ids[1..2]);
    let mut seen = listed(&server, &all, "/jobs");
    seen.sort_unstable();
    assert_eq!(seen, ids);
    for (id, space) in ids.iter().zip([json!("north"), json!("south"), Value::Null]) {
        assert_eq!(with(&server, &all).get(&format!("/jobs/{id}")).expect(200)["space"], space);
    }
    assert_eq!(with(&server, &all).get("/stats").expect(200)["counts"]["pending"], 3);
    let claimed: Vec<i64> = (0..3).map(|_| id_of(&claim(&server, &all))).collect();
    assert_eq!(claimed, ids);
    with(&server, &all)
        .post(&format!("/jobs/{}/force-fail", ids[0]), &json!({"reason": "for the test"}))
        .expect(200);
    assert_eq!(listed(&server, &a, "/review"), ids[..1]);
    assert_eq!(listed(&server, &b, "/review"), Vec::<i64>::new());
}

#[test]
fn a_waiting_claim_wakes_for_its_space_only() {
    let (server, [a, b, _]) = three();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let wish = json!({"worker_id": "w", "wait_seconds": 50});
            with(&server, &b).post("/jobs/claim", &wish).expect(200)
        });
        let for_a = make(&server, &a, &json!({"type": "t"}));
        let for_b = make(&server, &b, &json!({"type": "t"}));
        assert_eq!(id_of(&waiting.join().expect("a claim")), for_b);
        assert_eq!(id_of(&claim(&server, &a)), for_a);
    });
}

#[test]
fn orders_and_versions_of_one_space_do_not_meet_those_of_another() {
    let (server, [a, b, _]) = three();
    let ordered = json!({"type": "t", "ordering_key": "customer-7"});
    let ids: Vec<i64> = [&a, &b, &a].iter().map(|token| make(&server, token, &ordered)).collect();
    assert_eq!(with(&server, &a).get(&format!("/jobs/{}", ids[0])).expect(200)["ordering_key"], "customer-7");
    assert_eq!(id_of(&claim(&server, &b)), ids[1], "nobody of another space is before it");
    assert_eq!(id_of(&claim(&server, &a)), ids[0]);
    assert_eq!(claim(&server, &a), Value::Null, "in its own space it waits");
    let waits = with(&server, &a).get(&format!("/jobs/{}/explain", ids[2])).expect(200);
    assert!(!waits.to_string().contains("north") && !waits.to_string().contains("\\u0000"), "{waits}");
    let version = |n: i64| json!({"type": "sync", "supersede": true, "subject": {"kind": "order", "id": "1", "version": n}});
    let old = make(&server, &a, &version(1));
    make(&server, &b, &version(2));
    let state = |id: i64| with(&server, &a).get(&format!("/jobs/{id}")).expect(200)["status"].clone();
    assert_eq!(state(old), "pending", "another space has another order 1");
    make(&server, &a, &version(2));
    assert_ne!(state(old), "pending");
}

#[test]
fn follow_ups_stay_in_the_space_of_their_job_whoever_reports() {
    let (server, [a, b, all]) = three();
    for (n, reporter) in [&a, &all].iter().enumerate() {
        let id = make(&server, &a, &json!({"type": "t"}));
        let held = claim(&server, reporter);
        assert_eq!(id_of(&held), id);
        let next = format!("next-{n}");
        let complete = json!({"lease": held["lease"], "enqueue": [{"type": "u", "idempotency_key": next}]});
        let done = with(&server, reporter).post(&format!("/jobs/{id}/complete"), &complete).expect(200);
        let made = done["enqueued"][0]["id"].as_i64().expect("an id");
        let seen = with(&server, &a).get(&format!("/jobs/{made}")).expect(200);
        assert_eq!(seen["idempotency_key"], next);
        with(&server, &b).get(&format!("/jobs/{made}")).problem(404, "job-not-found");
        let again = with(&server, &a).post("/jobs", &json!({"type": "u", "idempotency_key": next}));
        assert_eq!(id_of(&again.expect(200)), made);
        let held = claim(&server, &a);
        with(&server, &a)
            .post(&format!("/jobs/{made}/complete"), &json!({"lease": held["lease"]}))
            .expect(200);
    }
}

#[test]
fn a_retry_takes_its_key_back_within_its_space_and_all_of_it_outlives_the_server() {
    let (mut server, [a, b, all]) = three();
    let job =
        json!({"type": "t", "idempotency_key": "k", "idempotency_scope": "unfinished", "max_retries": 0});
    let first = make(&server, &a, &job);
    let other = make(&server, &b, &job);
    let held = claim(&server, &a);
    let fail = json!({"lease": held["lease"], "class": "permanent"});
    with(&server, &a).post(&format!("/jobs/{first}/fail"), &fail).expect(200);
    server.restart();
    let seen = with(&server, &a).get(&format!("/jobs/{first}")).expect(200);
    let retry = json!({"seen_version": seen["version"]});
    with(&server, &b).post(&format!("/jobs/{first}/retry"), &retry).problem(404, "job-not-found");
    with(&server, &a).post(&format!("/jobs/{first}/retry"), &retry).expect(200);
    assert_eq!(id_of(&with(&server, &a).post("/jobs", &job).expect(200)), first);
    assert_eq!(id_of(&with(&server, &b).post("/jobs", &job).expect(200)), other);
    assert_eq!(id_of(&claim(&server, &b)), other);
    assert_eq!(id_of(&claim(&server, &a)), first);
    server.kill();
    let check = crate::server::tagwerk(server.dir(), &["check", "--store", "sqlite:tagwerk.db"]).output();
    let check = check.expect("the binary");
    assert!(check.status.success(), "{check:?}");
    server.start_again();
    with(&server, &all).get("/stats").expect(200);
}

#[test]
fn a_space_is_named_and_listed() {
    let (server, [_, _, _]) = three();
    let listed = run(server.dir(), &["list", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let spaces: Vec<&Value> =
        listed["tokens"].as_array().expect("tokens").iter().map(|token| &token["space"]).collect();
    assert_eq!(spaces, [&json!("north"), &Value::Null, &json!("south")]);
    let text = run(server.dir(), &["list"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("SPACE") && text.contains("north"), "{text}");
    for wrong in ["", "a b", "a\u{1}b", "-a", "ä", &"n".repeat(65)] {
        let output = run(server.dir(), &["create", "x", "--scope", "read", &format!("--space={wrong}")]);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {output:?}");
    }
}
