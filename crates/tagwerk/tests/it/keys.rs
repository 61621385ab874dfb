//! Idempotency keys through HTTP: the table of scopes and states cell by cell, what a second call may ask for, what is left
//! of a key when its job is gone, and who gets it back.

mod remains;
mod second_call;

use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::server::Server;
use crate::support::{Held, at_once, enqueue, id_of, in_parallel, job, pass, take, text};

/// States of the job that has the key, in the order of the columns.
const STATES: [&str; 7] =
    ["new", "again", "running", "failed", "completed", "cancelled-new", "cancelled-started"];

/// What the same key is answered with: the job that has it, or a new one.
const TABLE: [(&str, [u16; 7]); 4] = [
    ("waiting", [200, 201, 201, 201, 201, 201, 201]),
    ("unfinished", [200, 200, 200, 201, 201, 201, 201]),
    ("ttl", [200, 200, 200, 200, 200, 201, 200]),
    ("forever", [200, 200, 200, 200, 200, 200, 200]),
];

/// A job with a key, with its queue to itself.
fn keyed(key: &str, scope: &str) -> Value {
    json!({"type": "keyed", "queue": key, "idempotency_key": key, "idempotency_scope": scope, "retry": at_once()})
}

/// Brings a new job into a state.
fn bring(client: &mut Client, id: i64, (queue, state): (&str, &str)) {
    let cancel = |client: &mut Client| client.post(&format!("/jobs/{id}/cancel"), &json!({})).expect(200);
    let started = |client: &mut Client| {
        let held = take(client, "w", queue);
        assert_eq!(held.id, id);
        held
    };
    match state {
        "new" => {}
        "again" => drop(started(client).fail(client, "transient")),
        "running" => drop(started(client)),
        "failed" => drop(started(client).fail(client, "permanent")),
        "completed" => drop(started(client).complete(client)),
        "cancelled-new" => drop(cancel(client)),
        "cancelled-started" => {
            started(client);
            cancel(client);
        }
        other => panic!("no such state: {other}"),
    }
}

/// The answer to an enqueue whose key is held by this job.
fn assert_held(answer: &Answer, id: i64) -> Value {
    let body = answer.expect(200);
    assert_eq!((id_of(&body), answer.header("idempotency-replayed")), (id, Some("true")), "{body}");
    assert_eq!(answer.header("location"), None);
    body
}

/// The answer to an enqueue whose key was free. Returns the id of the new job.
fn assert_new(answer: &Answer) -> i64 {
    let body = answer.expect(201);
    let id = id_of(&body);
    assert_eq!(answer.header("location"), Some(&*format!("/jobs/{id}")));
    assert_eq!((answer.header("idempotency-replayed"), text(&body["status"])), (None, "pending"));
    id
}

#[test]
fn f032_f040_every_scope_in_every_state() {
    let server = Server::start();
    let mut cells = Vec::new();
    for (scope, row) in TABLE {
        for (state, status) in STATES.into_iter().zip(row) {
            // The same through both doors: one by one, and in bulk.
            cells.extend([(scope, state, status, "one"), (scope, state, status, "bulk")]);
        }
    }
    in_parallel(
        (4, &cells),
        || server.client(),
        |client, (scope, state, status, door)| {
            let key = format!("{scope}.{state}.{door}");
            let sent = keyed(&key, scope);
            let id = enqueue(client, &sent);
            bring(client, id, (&key, state));
            let before = job(client, id);
            let now_held_by = if *door == "one" {
                let answer = client.post("/jobs", &sent);
                if *status == 200 { id_of(&assert_held(&answer, id)) } else { assert_new(&answer) }
            } else {
                let answer = client.post("/jobs/bulk", &json!({"jobs": [sent]})).expect(200);
                let result = &answer["results"][0];
                assert_eq!(
                    (&result["status"], &result["replayed"]),
                    (&json!(status), &json!(*status == 200))
                );
                id_of(&result["job"])
            };
            assert_eq!(now_held_by == id, *status == 200, "{key}");
            assert_eq!(job(client, id), before, "{key}: the first job is left alone");
            // Whoever has the key now is new or still holds it.
            assert_held(&client.post("/jobs", &sent), now_held_by);
        },
    );
}

#[test]
fn f033_a_ttl_holds_after_the_end_and_ends() {
    let server = Server::start();
    let mut client = server.client();
    let sent = |key: &str, seconds: f64| {
        let mut job = keyed(key, "ttl");
        job["idempotency_ttl_seconds"] = json!(seconds);
        job
    };
    let states = ["completed", "cancelled-started"];
    let short: Vec<_> = states.map(|state| (format!("short.{state}"), 1.0)).into();
    let long: Vec<_> = states.map(|state| (format!("long.{state}"), 3600.0)).into();
    let mut ids = Vec::new();
    for ((key, ttl), state) in short.iter().chain(&long).zip(states.into_iter().cycle()) {
        let id = enqueue(&mut client, &sent(key, *ttl));
        bring(&mut client, id, (key, state));
        assert_held(&client.post("/jobs", &sent(key, *ttl)), id);
        ids.push(id);
    }
    pass(&mut client, 1.1);
    for (key, ttl) in &short {
        assert_new(&client.post("/jobs", &sent(key, *ttl)));
    }
    for ((key, ttl), id) in long.iter().zip(&ids[short.len()..]) {
        assert_held(&client.post("/jobs", &sent(key, *ttl)), *id);
    }
    // A ttl of nothing holds until the end and no longer.
    let id = enqueue(&mut client, &sent("none", 0.0));
    let held = take(&mut client, "w", "none");
    assert_held(&client.post("/jobs", &sent("none", 0.0)), id);
    held.complete(&mut client);
    assert_new(&client.post("/jobs", &sent("none", 0.0)));
}

#[test]
fn the_ttl_comes_from_the_job_then_its_type_then_the_server() {
    let options = crate::server::Options::default().set("idempotency.ttl=1s");
    let server = Server::with(options);
    let mut client = server.client();
    server.put("/types/long", &json!({"idempotency_ttl_seconds": 3600})).expect(200);
    server.put("/types/unfinished", &json!({"idempotency_scope": "unfinished"})).expect(200);
    let job = |kind: &str| json!({"type": kind, "queue": kind, "idempotency_key": kind});
    let mut ids = Vec::new();
    for kind in ["plain", "long", "unfinished"] {
        ids.push(enqueue(&mut client, &job(kind)));
        take(&mut client, "w", kind).complete(&mut client);
    }
    assert_held(&client.post("/jobs", &job("plain")), ids[0]);
    assert_new(&client.post("/jobs", &job("unfinished")));
    pass(&mut client, 1.1);
    assert_new(&client.post("/jobs", &job("plain")));
    assert_held(&client.post("/jobs", &job("long")), ids[1]);
}

#[test]
fn f028_f038_an_unfinished_key_holds_through_waiting_and_running_and_is_free_after_the_last_loss() {
    let server = Server::start();
    let mut client = server.client();
    let mut sent = keyed("k", "unfinished");
    sent["delay_seconds"] = json!(2);
    sent["max_retries"] = json!(0);
    sent["idempotency_ttl_seconds"] = json!(0.1);
    let id = enqueue(&mut client, &sent);
    pass(&mut client, 1.0);
    assert_held(&client.post("/jobs", &sent), id);
    let held = crate::support::take_briefly(&mut client, "w", "k");
    for _ in 0..4 {
        pass(&mut client, 0.4);
        held.heartbeat(&mut client).expect(200);
        assert_held(&client.post("/jobs", &sent), id);
    }
    // The worker dies.
    assert_eq!(crate::support::settled(&mut client, id)["failure"]["reason"], "outcome_unknown");
    assert_new(&client.post("/jobs", &sent));
}

#[test]
fn cancel_and_discard_may_free_the_key() {
    let server = Server::start();
    let mut client = server.client();
    for (state, call) in [("new", "cancel"), ("running", "cancel"), ("failed", "discard")] {
        for free in [false, true] {
            let key = format!("{state}.{free}");
            let id = enqueue(&mut client, &keyed(&key, "forever"));
            bring(&mut client, id, (&key, state));
            let body = match call {
                "discard" => json!({"reason": "enough", "free_key": free}),
                _ => json!({"free_key": free}),
            };
            client.post(&format!("/jobs/{id}/{call}"), &body).expect(200);
            let answer = client.post("/jobs", &keyed(&key, "forever"));
            let now = if free { assert_new(&answer) } else { id_of(&assert_held(&answer, id)) };
            assert_eq!(now != id, free);
        }
    }
}

#[test]
fn only_the_owner_frees_a_key() {
    let server = Server::start();
    let mut client = server.client();
    let first = enqueue(&mut client, &keyed("k", "waiting"));
    let held: Held = take(&mut client, "w", "k");
    let second = assert_new(&client.post("/jobs", &keyed("k", "forever")));
    // The first job comes back, ends, and is told to free a key that is no longer its own.
    held.fail(&mut client, "transient");
    assert_held(&client.post("/jobs", &keyed("k", "waiting")), second);
    client.post(&format!("/jobs/{first}/cancel"), &json!({"free_key": true})).expect(200);
    assert_held(&client.post("/jobs", &keyed("k", "waiting")), second);
    // The scope that counts is the one stored with the key.
    take(&mut client, "w", "k").complete(&mut client);
    assert_held(&client.post("/jobs", &keyed("k", "waiting")), second);
}

#[test]
fn a_key_that_is_taken_back_holds_as_its_job_says() {
    let server = Server::start();
    let mut client = server.client();
    server.put("/types/keyed-by-type", &json!({"idempotency_scope": "unfinished"})).expect(200);
    let by_type = json!({"type": "keyed-by-type", "queue": "typed", "idempotency_key": "typed"});
    for (key, sent) in [("given", keyed("given", "unfinished")), ("typed", by_type)] {
        let first = enqueue(&mut client, &sent);
        take(&mut client, "w", key).fail(&mut client, "permanent");
        // Meanwhile it belongs to a job that holds it for a shorter time, and that one goes on.
        let second = assert_new(&client.post("/jobs", &keyed(key, "waiting")));
        assert_eq!(take(&mut client, "w", key).complete(&mut client)["id"], second);
        crate::support::operate(&mut client, first, "retry").expect(200);
        // Started, it still holds it, and at its end it lets go.
        let held = take(&mut client, "w", key);
        assert_eq!(held.id, first);
        assert_held(&client.post("/jobs", &sent), first);
        held.complete(&mut client);
        assert_new(&client.post("/jobs", &sent));
    }
}

#[test]
fn f029_a_requeue_does_not_take_a_key_back_and_a_retry_from_review_does() {
    let server = Server::start();
    let mut client = server.client();
    let sent = keyed("k", "unfinished");
    let first = enqueue(&mut client, &sent);
    take(&mut client, "w", "k").fail(&mut client, "permanent");
    // Nobody else has it: the retry takes it back.
    crate::support::operate(&mut client, first, "retry").expect(200);
    assert_held(&client.post("/jobs", &sent), first);
    take(&mut client, "w", "k").fail(&mut client, "permanent");
    // Somebody else has it: the retry is refused until that one lets go.
    let second = assert_new(&client.post("/jobs", &sent));
    let before = job(&mut client, first);
    let problem = crate::support::operate(&mut client, first, "retry").problem(409, "idempotency-key-held");
    assert_eq!(id_of(&problem["job"]), second, "{problem}");
    assert_eq!(job(&mut client, first), before);
    take(&mut client, "w", "k").complete(&mut client);
    let again = crate::support::operate(&mut client, first, "retry").expect(200);
    assert_eq!((text(&again["status"]), text(&again["idempotency_key"])), ("pending", "k"));
    assert_held(&client.post("/jobs", &sent), first);
}
