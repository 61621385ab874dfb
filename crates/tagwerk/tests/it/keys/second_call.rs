//! What a second call with a known key says and gets: other content, `on_duplicate`, `on_mismatch`, header and body, bulk.

use serde_json::{Value, json};

use super::{assert_held, assert_new, bring, keyed};
use crate::client::Client;
use crate::server::Server;
use crate::support::{delete, enqueue, id_of, job, list, post_with, take, text};

/// The key as a header.
fn header(key: &str) -> (&str, &str) {
    ("Idempotency-Key", key)
}

/// How the second call relates to the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// It says the same.
    Same,
    /// It says something else.
    Differs,
}

#[test]
fn f036_f039_what_differs_is_told_whichever_came_first() {
    let server = Server::start();
    let mut client = server.client();
    let full = json!({"type": "a", "queue": "q", "payload": {"a": 1, "b": 2}, "max_retries": 2,
        "subject": {"kind": "order", "id": "7", "version": 1}});
    let with = |member: &str, value: Value| {
        let mut other = full.clone();
        other[member] = value;
        other
    };
    let without = |member: &str| {
        let mut other = full.clone();
        other.as_object_mut().expect("an object").remove(member);
        other
    };
    let different = [
        with("type", json!("b")),
        with("queue", json!("r")),
        without("queue"),
        with("payload", json!({"a": 1})),
        with("payload", json!({"a": 1, "b": 2, "c": 3})),
        with("payload", json!(null)),
        without("payload"),
        with("max_retries", json!(3)),
        without("max_retries"),
        with("subject", json!({"kind": "bill", "id": "7", "version": 1})),
        with("subject", json!({"kind": "order", "id": "8", "version": 1})),
        with("subject", json!({"kind": "order", "id": "7", "version": 2})),
        with("subject", json!({"kind": "order", "id": "7"})),
        without("subject"),
    ];
    let equal = [
        full.clone(),
        with("priority", json!("high")),
        with("delay_seconds", json!(60)),
        with("correlation_id", json!("c")),
        with("traceparent", json!("t")),
        with("lease_seconds", json!(7)),
        with("max_age_seconds", json!(3600)),
        with("idempotency_scope", json!("forever")),
    ];
    let pairs = different
        .iter()
        .map(|other| (other, Content::Differs))
        .chain(equal.iter().map(|other| (other, Content::Same)));
    for (number, (other, content)) in pairs.enumerate() {
        for (order, first, second) in [("ab", &full, other), ("ba", other, &full)] {
            let key = format!("{number}.{order}");
            verdict(&mut client, &key, (first, second), content);
        }
    }
}

/// The first call makes the job; the second is told whether it said something else, and changes nothing.
fn verdict(client: &mut Client, key: &str, (first, second): (&Value, &Value), content: Content) {
    let differs = content == Content::Differs;
    let keyed = |sent: &Value, on_mismatch: &str| {
        let mut sent = sent.clone();
        sent["idempotency_key"] = json!(key);
        sent["on_mismatch"] = json!(on_mismatch);
        sent
    };
    let id = assert_new(&client.post("/jobs", &keyed(first, "flag")));
    let before = job(client, id);
    let flagged = assert_held(&client.post("/jobs", &keyed(second, "flag")), id);
    assert_eq!(flagged["payload_differs"], differs, "{key}: {first} then {second}");
    assert_eq!(flagged["payload"], before["payload"]);
    let rejected = client.post("/jobs", &keyed(second, "reject"));
    if differs {
        let problem = rejected.problem(422, "idempotency-key-reused");
        assert_eq!(id_of(&problem["job"]), id);
    } else {
        assert_held(&rejected, id);
    }
    assert_eq!(job(client, id), before, "{key}");
}

#[test]
fn f036_payloads_are_equal_by_their_bytes_and_by_nothing_else() {
    let server = Server::start();
    let mut client = server.client();
    let payloads = [
        r#"{"a":1,"b":2}"#,
        r#"{"b":2,"a":1}"#,
        r#"{"a": 1,"b":2}"#,
        r#"{"a":1.0,"b":2}"#,
        r#"{"a":1,"b":2,"b":2}"#,
        r#"{"a":1,"b":2,"c":null}"#,
        r#"{"\u0061":1,"b":2}"#,
        "{}",
        "null",
        "\"\"",
    ];
    for (row, first) in payloads.iter().enumerate() {
        for (column, second) in payloads.iter().enumerate() {
            let sent = |payload: &str| {
                format!(r#"{{"type":"t","idempotency_key":"{row}.{column}","payload":{payload}}}"#)
            };
            let id = assert_new(&client.post_text("/jobs", &sent(first)));
            let again = assert_held(&client.post_text("/jobs", &sent(second)), id);
            assert_eq!(again["payload_differs"], row != column, "{first} then {second}");
        }
    }
    // No payload is the default payload.
    let bare = r#"{"type":"t","idempotency_key":"bare"}"#;
    let id = assert_new(&client.post_text("/jobs", bare));
    let same = client.post_text("/jobs", r#"{"type":"t","idempotency_key":"bare","payload":{}}"#);
    assert_eq!(assert_held(&same, id)["payload_differs"], false);
}

#[test]
fn a_key_in_the_header_is_strict_and_must_be_that_of_the_body() {
    let server = Server::start();
    let mut client = server.client();
    let sent = json!({"type": "t", "payload": 1});
    let other = json!({"type": "t", "payload": 2});
    let id = assert_new(&post_with(&mut client, "/jobs", header("h"), &sent));
    assert_eq!(job(&mut client, id)["idempotency_key"], "h");
    assert_held(&post_with(&mut client, "/jobs", header("h"), &sent), id);
    let problem = post_with(&mut client, "/jobs", header("h"), &other).problem(422, "idempotency-key-reused");
    assert_eq!(id_of(&problem["job"]), id);
    let mut flagged = other.clone();
    flagged["on_mismatch"] = json!("flag");
    let answer = post_with(&mut client, "/jobs", header("h"), &flagged);
    assert_eq!(assert_held(&answer, id)["payload_differs"], true);
    let mut both = sent.clone();
    both["idempotency_key"] = json!("h");
    assert_held(&post_with(&mut client, "/jobs", header("h"), &both), id);
    both["idempotency_key"] = json!("another");
    post_with(&mut client, "/jobs", header("h"), &both).problem(422, "idempotency-key-conflict");
    // In the body the same key is lenient.
    let mut body = other.clone();
    body["idempotency_key"] = json!("h");
    assert_eq!(assert_held(&client.post("/jobs", &body), id)["payload_differs"], true);
    assert_eq!(list(&mut client, "?type=t").len(), 1);
}

#[test]
fn replace_rewrites_payload_priority_and_time_of_a_job_that_never_started() {
    let server = Server::start();
    let mut client = server.client();
    let id = enqueue(&mut client, &json!({"type": "t", "queue": "q", "payload": 1, "idempotency_key": "k"}));
    let replacement = json!({"type": "t", "queue": "q", "payload": [2], "priority": 77, "delay_seconds": 3600,
        "max_retries": 9, "correlation_id": "c", "idempotency_key": "k", "on_duplicate": "replace"});
    let before = job(&mut client, id);
    let replaced = assert_held(&client.post("/jobs", &replacement), id);
    assert_eq!((&replaced["replaced"], &replaced["payload_differs"]), (&json!(true), &json!(true)));
    let after = job(&mut client, id);
    assert_eq!((&after["payload"], &after["priority_value"]), (&json!([2]), &json!(77)));
    assert!(text(&after["available_at"]) > text(&before["available_at"]));
    // Nothing else is rewritten, and the version says that somebody acted.
    for kept in ["type", "queue", "max_retries", "correlation_id", "created_at", "attempt", "status"] {
        assert_eq!(after[kept], before[kept], "{kept}");
    }
    assert!(after["version"].as_i64() > before["version"].as_i64());
    // What is compared from now on is what stands there now.
    let again = assert_held(&client.post("/jobs", &replacement), id);
    assert_eq!(again["payload_differs"], false);
    let first = json!({"type": "t", "queue": "q", "payload": 1, "idempotency_key": "k"});
    assert_eq!(assert_held(&client.post("/jobs", &first), id)["payload_differs"], true);
}

#[test]
fn replace_leaves_alone_a_job_of_another_type_or_queue() {
    let server = Server::start();
    let mut client = server.client();
    let first = json!({"type": "t", "queue": "q", "payload": 1, "idempotency_key": "k"});
    let id = enqueue(&mut client, &first);
    let before = job(&mut client, id);
    for (member, value) in [("type", json!("u")), ("queue", json!("r")), ("queue", Value::Null)] {
        let mut other = json!({"type": "t", "queue": "q", "payload": 2, "priority": 77, "delay_seconds": 60,
            "idempotency_key": "k", "on_duplicate": "replace"});
        other[member] = value;
        let answer = assert_held(&client.post("/jobs", &other), id);
        assert_eq!(
            (&answer["replaced"], &answer["payload_differs"]),
            (&json!(false), &json!(true)),
            "{other}"
        );
        let bulk = client.post("/jobs/bulk", &json!({"jobs": [other]})).expect(200);
        let result = &bulk["results"][0];
        assert_eq!(
            (&result["replaced"], &result["payload_differs"]),
            (&json!(false), &json!(true)),
            "{other}"
        );
        assert_eq!(job(&mut client, id), before, "{other}");
    }
    // What is compared is still what was sent first.
    assert_eq!(assert_held(&client.post("/jobs", &first), id)["payload_differs"], false);
}

#[test]
fn replace_leaves_alone_whatever_was_handed_out_before() {
    let server = Server::start();
    let mut client = server.client();
    for state in ["again", "running", "failed", "completed", "cancelled-new", "cancelled-started"] {
        let id = enqueue(&mut client, &keyed(state, "forever"));
        bring(&mut client, id, (state, state));
        let before = job(&mut client, id);
        let mut replacement = keyed(state, "forever");
        replacement["payload"] = json!("new");
        replacement["on_duplicate"] = json!("replace");
        let answer = assert_held(&client.post("/jobs", &replacement), id);
        assert_eq!(answer["replaced"], false, "{state}");
        assert_eq!(job(&mut client, id), before, "{state}");
    }
    // A job that was given back unused has been handed out all the same.
    let id = enqueue(&mut client, &keyed("released", "forever"));
    take(&mut client, "w", "released").call(&mut client, "release", json!({})).expect(200);
    let mut replacement = keyed("released", "forever");
    replacement["on_duplicate"] = json!("replace");
    assert_eq!(assert_held(&client.post("/jobs", &replacement), id)["replaced"], false);
}

#[test]
fn conflict_refuses_with_the_job_that_has_the_key() {
    let server = Server::start();
    let mut client = server.client();
    let mut sent = keyed("k", "ttl");
    sent["on_duplicate"] = json!("conflict");
    let id = assert_new(&client.post("/jobs", &sent));
    for (state, status) in [("new", "pending"), ("running", "running"), ("failed", "failed")] {
        if state == "running" {
            take(&mut client, "w", "k");
        }
        if state == "failed" {
            client.post(&format!("/jobs/{id}/force-fail"), &json!({"reason": "r"})).expect(200);
        }
        let problem = client.post("/jobs", &sent).problem(409, "duplicate");
        assert_eq!((id_of(&problem["job"]), text(&problem["job"]["status"])), (id, status));
    }
    assert_eq!(list(&mut client, "?queue=k").len(), 1);
}

#[test]
fn in_bulk_each_key_is_judged_by_itself() {
    let server = Server::start();
    let mut client = server.client();
    let old =
        enqueue(&mut client, &json!({"type": "t", "queue": "q", "idempotency_key": "old", "payload": 1}));
    let key = |key: &str, payload: u8| json!({"type": "t", "queue": "q", "idempotency_key": key, "payload": payload});
    let with = |mut job: Value, member: &str, value: &str| {
        job[member] = json!(value);
        job
    };
    // What the door refuses shifts no place behind it.
    let broken = json!({"type": "t", "queue": "q", "priority": "odd"});
    let jobs = [
        broken,
        with(key("first", 1), "on_duplicate", "conflict"),
        with(key("first", 1), "on_duplicate", "conflict"),
    ];
    let answer = client.post("/jobs/bulk", &json!({"jobs": jobs})).expect(200);
    let [refused, first, second] = answer["results"].as_array().expect("results").as_slice() else {
        panic!("{answer}")
    };
    assert_eq!([&refused["status"], &first["status"], &second["status"]], [422, 201, 409]);
    let id = id_of(&first["job"]);
    assert_eq!((&second["job"], text(&second["problem"]["code"])), (&first["job"], "duplicate"));
    assert!(text(&second["problem"]["detail"]).contains(&format!("job {id}")), "{second}");
    delete(&mut client, &format!("/jobs/{id}")).expect(200);
    let jobs = [
        key("new", 1),
        key("old", 1),
        key("old", 2),
        key("new", 1),
        key("new", 2),
        with(key("old", 2), "on_mismatch", "reject"),
        with(key("old", 1), "on_duplicate", "conflict"),
        with(key("new", 2), "on_mismatch", "reject"),
        json!({"type": "t", "queue": "q"}),
    ];
    let answer = client.post("/jobs/bulk", &json!({"jobs": jobs})).expect(200);
    let results = answer["results"].as_array().expect("results");
    let statuses: Vec<_> = results.iter().map(|result| result["status"].as_u64().unwrap_or(0)).collect();
    assert_eq!(statuses, [201, 200, 200, 200, 200, 422, 409, 422, 201]);
    let differs: Vec<_> = results[..5].iter().map(|result| result["payload_differs"] == true).collect();
    assert_eq!(differs, [false, false, true, false, true]);
    let new = id_of(&results[0]["job"]);
    let ids: Vec<_> = results[..5].iter().map(|result| id_of(&result["job"])).collect();
    assert_eq!(ids, [new, old, old, new, new]);
    let codes: Vec<_> = results[5..8].iter().map(|result| text(&result["problem"]["code"])).collect();
    assert_eq!(codes, ["idempotency-key-reused", "duplicate", "idempotency-key-reused"]);
    assert_eq!(list(&mut client, "?queue=q").len(), 3);
}

#[test]
fn an_atomic_bulk_takes_all_or_none() {
    let server = Server::start();
    let mut client = server.client();
    let old =
        enqueue(&mut client, &json!({"type": "t", "queue": "q", "idempotency_key": "old", "payload": 1}));
    let mut refused = json!({"type": "t", "queue": "q", "idempotency_key": "old", "payload": 2});
    refused["on_mismatch"] = json!("reject");
    let jobs =
        json!([{"type": "t", "queue": "q", "idempotency_key": "a"}, refused, {"type": "t", "queue": "q"}]);
    let answer = client.post("/jobs/bulk", &json!({"jobs": jobs, "atomic": true})).expect(200);
    let results = answer["results"].as_array().expect("results");
    let codes: Vec<_> = results.iter().map(|result| text(&result["problem"]["code"])).collect();
    assert_eq!(codes, ["atomic-refused", "idempotency-key-reused", "atomic-refused"]);
    assert_eq!(list(&mut client, "?queue=q").len(), 1);
    // The key of the refused neighbour is not taken, and a known key is no reason to refuse.
    let jobs = json!([{"type": "t", "queue": "q", "idempotency_key": "a"},
        {"type": "t", "queue": "q", "idempotency_key": "old", "payload": 1}]);
    let answer = client.post("/jobs/bulk", &json!({"jobs": jobs, "atomic": true})).expect(200);
    let statuses: Vec<_> =
        answer["results"].as_array().expect("results").iter().map(|r| r["status"].clone()).collect();
    assert_eq!(statuses, [201, 200]);
    assert_eq!(id_of(&answer["results"][1]["job"]), old);
}
