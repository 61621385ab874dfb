//! What is left of a key when its job was deleted: a tombstone for as long as the key holds.

use serde_json::{Value, json};

use super::{assert_held, assert_new, bring, keyed};
use crate::client::Client;
use crate::server::{Options, Server};
use crate::support::{delete, enqueue, id_of, pass, text};

/// Finished jobs are deleted as soon as they are seen.
fn forgetful() -> Server {
    Server::with(Options::default().set("retention.completed=0s").set("retention.cancelled=0s"))
}

/// Waits until retention has deleted the job.
fn gone(client: &mut Client, id: i64) {
    while client.get(&format!("/jobs/{id}")).status != 404 {
        pass(client, 0.1);
    }
}

/// The tombstone that stands for the key.
fn assert_tombstone(tombstone: &Value, (id, status): (i64, &str)) {
    assert_eq!((id_of(tombstone), text(&tombstone["status"])), (id, status), "{tombstone}");
    assert_eq!((&tombstone["pruned"], text(&tombstone["type"])), (&json!(true), "keyed"), "{tombstone}");
    assert!(tombstone["finished_at"].is_string(), "{tombstone}");
}

#[test]
fn f034_a_key_outlives_its_deleted_job_for_as_long_as_its_scope_says() {
    let server = forgetful();
    let mut client = server.client();
    let mut jobs = Vec::new();
    for scope in ["waiting", "unfinished", "ttl", "forever"] {
        for (state, status) in
            [("completed", "completed"), ("cancelled-new", "cancelled"), ("cancelled-started", "cancelled")]
        {
            let key = format!("{scope}.{state}");
            let sent = keyed(&key, scope);
            let id = enqueue(&mut client, &sent);
            bring(&mut client, id, (&key, state));
            let holds = scope == "forever" || (scope == "ttl" && state != "cancelled-new");
            jobs.push((sent, id, status, holds));
        }
    }
    for (sent, id, status, holds) in jobs {
        gone(&mut client, id);
        let answer = client.post("/jobs", &sent);
        if holds {
            assert_tombstone(&assert_held(&answer, id), (id, status));
        } else {
            assert!(assert_new(&answer) > id);
        }
    }
}

#[test]
fn a_tombstone_ends_with_its_ttl() {
    let server = forgetful();
    let mut client = server.client();
    let mut sent = keyed("k", "ttl");
    sent["idempotency_ttl_seconds"] = json!(3);
    let id = enqueue(&mut client, &sent);
    bring(&mut client, id, ("k", "completed"));
    gone(&mut client, id);
    assert_tombstone(&assert_held(&client.post("/jobs", &sent), id), (id, "completed"));
    pass(&mut client, 3.0);
    assert_new(&client.post("/jobs", &sent));
}

#[test]
fn a_tombstone_answers_like_its_job() {
    let server = forgetful();
    let mut client = server.client();
    let sent = keyed("k", "forever");
    let id = enqueue(&mut client, &sent);
    bring(&mut client, id, ("k", "completed"));
    gone(&mut client, id);
    let with = |member: &str, value: &str| {
        let mut other = sent.clone();
        other[member] = json!(value);
        other
    };
    let conflict = client.post("/jobs", &with("on_duplicate", "conflict")).problem(409, "duplicate");
    assert_tombstone(&conflict["job"], (id, "completed"));
    let mut other = with("on_mismatch", "reject");
    other["payload"] = json!("other");
    let reused = client.post("/jobs", &other).problem(422, "idempotency-key-reused");
    assert_tombstone(&reused["job"], (id, "completed"));
    for (change, differs, replaced) in [
        (json!({}), false, Value::Null),
        (json!({"payload": "other"}), true, Value::Null),
        (json!({"on_duplicate": "replace"}), false, json!(false)),
        (json!({"on_duplicate": "replace", "payload": "other"}), true, json!(false)),
    ] {
        let mut again = sent.clone();
        let members = change.as_object().expect("an object").clone();
        again.as_object_mut().expect("an object").extend(members);
        let answer = assert_held(&client.post("/jobs", &again), id);
        assert_tombstone(&answer, (id, "completed"));
        assert_eq!(
            (&answer["payload_differs"], &answer["replaced"]),
            (&json!(differs), &replaced),
            "{change}"
        );
        let bulk = client.post("/jobs/bulk", &json!({"jobs": [again]})).expect(200);
        let result = &bulk["results"][0];
        assert_eq!(
            (&result["payload_differs"], &result["replaced"]),
            (&json!(differs), &replaced),
            "{change}"
        );
    }
    let bulk = client.post("/jobs/bulk", &json!({"jobs": [sent]})).expect(200);
    let result = &bulk["results"][0];
    assert_eq!((&result["status"], &result["replayed"]), (&json!(200), &json!(true)));
    assert_tombstone(&result["tombstone"], (id, "completed"));
}

#[test]
fn the_key_of_a_job_that_was_deleted_by_hand_is_judged_as_if_it_had_been_cancelled_first() {
    let server = Server::start();
    let mut client = server.client();
    for (scope, state, holds) in [
        ("forever", "new", true),
        ("ttl", "new", false),
        ("ttl", "running", true),
        ("ttl", "failed", true),
        ("unfinished", "running", false),
        ("forever", "completed", true),
    ] {
        let key = format!("{scope}.{state}");
        let sent = keyed(&key, scope);
        let id = enqueue(&mut client, &sent);
        bring(&mut client, id, (&key, state));
        delete(&mut client, &format!("/jobs/{id}")).expect(200);
        client.get(&format!("/jobs/{id}")).problem(404, "job-not-found");
        let answer = client.post("/jobs", &sent);
        if holds {
            let status = if state == "completed" { "completed" } else { "cancelled" };
            assert_tombstone(&assert_held(&answer, id), (id, status));
        } else {
            assert_new(&answer);
        }
    }
}
