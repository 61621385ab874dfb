//! The effect journal at the real server, over plain HTTP: begin, finish, abort, what an open effect stands in the way of, and what
//! a person makes of it.

use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::server::{Options, Server};
use crate::support::{Held, attempts, claim, enqueue, job, list, nothing_in, operate, settled, take, text};

/// A call about an effect of a job in somebody's hands.
fn effect(client: &mut Client, held: &Held, (name, verb): (&str, &str), body: Value) -> Answer {
    held.call(client, &format!("effects/{name}/{verb}"), body)
}

fn begin(client: &mut Client, held: &Held, name: &str) -> Value {
    effect(client, held, (name, "begin"), json!({})).expect(200)
}

fn finish(client: &mut Client, held: &Held, name: &str, result: &Value) -> Answer {
    effect(client, held, (name, "finish"), json!({"result": result}))
}

/// Takes the next job, as a worker that knows of effects in doubt.
fn take_knowing(client: &mut Client, lease_seconds: u32) -> Held {
    let wish = json!({"worker_id": "knows", "queues": ["q"], "wait_seconds": 50, "lease_seconds": lease_seconds,
        "handles_verify": true});
    claim(client, &wish).expect("a job")
}

/// A job that a worker was lost with after it had begun `ship`; what the begin was answered.
fn lost_with_an_open_effect(client: &mut Client) -> (Held, Value) {
    enqueue(client, &json!({"type": "t", "queue": "q", "retry": {"base_seconds": 0}}));
    let wish = json!({"worker_id": "w", "queues": ["q"], "lease_seconds": 1});
    let held = claim(client, &wish).expect("a job");
    let begun = begin(client, &held, "ship");
    (held, begun)
}

#[test]
fn begun_finished_and_seen() {
    let server = Server::start();
    let mut client = server.client();
    let id = enqueue(&mut client, &json!({"type": "t", "queue": "q"}));
    let held = take(&mut client, "w", "q");
    assert_eq!((&held.job["effects"], &held.job["effects_in_doubt"]), (&json!([]), &json!([])));
    let begun = begin(&mut client, &held, "ship");
    let key = text(&begun["key"]).to_owned();
    assert!(key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit()), "128 random bits: {key}");
    assert_eq!(begun, json!({"state": "new", "key": key, "result": null}));
    assert_eq!(begin(&mut client, &held, "ship"), begun, "the answer was lost and the call is made again");
    let own = effect(&mut client, &held, ("mail", "begin"), json!({"key": "order-7"})).expect(200);
    assert_eq!(own["key"], "order-7");
    assert_ne!(begin(&mut client, &held, "bill")["key"], begun["key"]);

    // Neither all is well nor nothing happened, while it is open what did.
    for report in ["complete", "release"] {
        let problem = held.call(&mut client, report, json!({})).problem(409, "effects-open");
        assert!(text(&problem["detail"]).contains("ship, mail, bill"), "{problem}");
        assert_eq!(problem["stop"], Value::Null, "the lease lives: {problem}");
    }
    let done = finish(&mut client, &held, "ship", &json!({"number": 1})).expect(200);
    assert_eq!(done, json!({"state": "done", "key": key, "result": {"number": 1}}));
    finish(&mut client, &held, "ship", &json!({"number": 1})).expect(200);
    finish(&mut client, &held, "ship", &json!({"number": 2})).problem(409, "effect-finished");
    assert_eq!(begin(&mut client, &held, "ship")["state"], "done");
    for name in ["mail", "bill"] {
        let aborted = effect(&mut client, &held, (name, "abort"), json!({})).expect(200);
        assert_eq!(aborted["state"], "aborted");
    }
    effect(&mut client, &held, ("ship", "abort"), json!({})).problem(409, "effect-finished");
    assert_eq!(begin(&mut client, &held, "mail")["key"], "order-7", "the key stays");
    finish(&mut client, &held, "mail", &Value::Null).expect(200);

    let version = job(&mut client, id)["version"].clone();
    held.complete(&mut client);
    let seen = job(&mut client, id);
    assert_eq!(
        seen["version"].as_i64(),
        version.as_i64().map(|version| version + 1),
        "effects are no versions"
    );
    let shown: Vec<_> = seen["effects"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|e| (text(&e["name"]), text(&e["state"])))
        .collect();
    assert_eq!(shown, [("ship", "done"), ("mail", "done"), ("bill", "aborted")]);
    assert_eq!(seen["effects"][0]["result"], json!({"number": 1}));
    assert_eq!(list(&mut client, "")[0]["effects"], Value::Null, "lists have no results");
    // A begin on what is completed.
    effect(&mut client, &held, ("more", "begin"), json!({})).problem(409, "not-running");
}

#[test]
fn a_blind_worker_does_nothing_twice() {
    let server = Server::start();
    let mut client = server.client();
    let (held, begun) = lost_with_an_open_effect(&mut client);
    let failed = settled(&mut client, held.id);
    assert_eq!(
        (&failed["status"], &failed["failure"]["reason"]),
        (&json!("failed"), &json!("outcome_unknown"))
    );
    let in_doubt =
        json!([{"name": "ship", "key": begun["key"], "begun_at": failed["effects"][0]["begun_at"]}]);
    assert_eq!(failed["effects_in_doubt"], in_doubt);
    assert!(nothing_in(&mut client, "q"));
    let review = client.get("/review").expect(200);
    assert_eq!(review["jobs"][0]["effects_in_doubt"], in_doubt, "the review shows what is to be looked up");
    let explain = client.get(&format!("/jobs/{}/explain", held.id)).expect(200);
    assert!(explain.to_string().contains("ship"), "{explain}");
    // Late facts count, late beginnings do not.
    let late = effect(&mut client, &held, ("more", "begin"), json!({})).problem(409, "lease-lost");
    assert_eq!(late["may_report"], true);
    finish(&mut client, &held, "ship", &json!({"number": 7})).expect(200);
    assert_eq!(job(&mut client, held.id)["effects_in_doubt"], json!([]));
    // And so the late report counts too.
    assert_eq!(held.complete(&mut client)["status"], "completed");
}

#[test]
fn a_worker_that_looks_gets_the_job_with_what_is_in_doubt() {
    let server = Server::start();
    let mut client = server.client();
    server.put("/types/t", &json!({"handles_verify": true})).expect(200);
    let (lost, begun) = lost_with_an_open_effect(&mut client);
    let held = take_knowing(&mut client, 60);
    assert_eq!((held.id, &held.job["verify"]), (lost.id, &json!(true)));
    assert_eq!(held.job["effects"][0]["state"], "in_doubt");
    assert_eq!(
        begin(&mut client, &held, "ship"),
        json!({"state": "in_doubt", "key": begun["key"], "result": null})
    );
    held.call(&mut client, "complete", json!({})).problem(409, "effects-open");
    // The one that was lost has heard nothing, and may say what happened, not that nothing did.
    effect(&mut client, &lost, ("ship", "abort"), json!({})).problem(409, "lease-lost");
    finish(&mut client, &lost, "ship", &json!({"number": 7})).expect(200);
    assert_eq!(begin(&mut client, &held, "ship")["result"], json!({"number": 7}));
    held.complete(&mut client);
    let outcomes: Vec<_> =
        attempts(&mut client, held.id).iter().map(|a| text(&a["outcome"]).to_owned()).collect();
    assert_eq!(outcomes, ["lease_expired", "completed"]);
}

#[test]
fn a_person_says_what_was_looked_up() {
    let server = Server::start();
    let mut client = server.client();
    for (assume, state) in [(json!("done"), "done"), (json!({"ship": "not_done"}), "new")] {
        let (lost, begun) = lost_with_an_open_effect(&mut client);
        let version = settled(&mut client, lost.id)["version"].clone();
        let path = format!("/jobs/{}/retry", lost.id);
        let other = json!({"seen_version": version, "assume": {"mail": "done"}});
        let problem = client.post(&path, &other).problem(422, "invalid-request");
        assert!(
            problem["errors"][0]["field"] == "assume" && text(&problem["detail"]).contains("mail"),
            "{problem}"
        );
        assert_eq!(job(&mut client, lost.id)["status"], "failed", "nothing was done");
        let retry = json!({"seen_version": version, "note": "asked them", "assume": assume});
        let retried = client.post(&path, &retry).expect(200);
        assert_eq!(
            (&retried["effects_in_doubt"], &retried["effects"][0]["assumed"]),
            (&json!([]), &json!(true))
        );
        // A second click.
        client.post(&path, &retry).problem(409, "not-failed");
        let history = client.get(&format!("/jobs/{}/attempts", lost.id)).expect(200);
        let said = text(&history["actions"][0]["reason"]).to_owned();
        assert!(said.starts_with("asked them (assumed "), "{history}");
        let log = client.get("/audit").expect(200);
        let entry = log["entries"].as_array().and_then(|entries| entries.last()).expect("an entry").clone();
        assert_eq!((text(&entry["action"]), text(&entry["note"])), ("job.retry", said.as_str()));

        let held = take(&mut client, "w", "q");
        let again = begin(&mut client, &held, "ship");
        assert_eq!((text(&again["state"]), &again["key"]), (state, &begun["key"]), "{again}");
        if state == "new" {
            finish(&mut client, &held, "ship", &Value::Null).expect(200);
        }
        held.complete(&mut client);
    }
    // Nothing is in doubt.
    enqueue(&mut client, &json!({"type": "t", "queue": "q"}));
    let held = take(&mut client, "w", "q");
    held.fail(&mut client, "permanent");
    let retry = json!({"seen_version": job(&mut client, held.id)["version"], "assume": "done"});
    client.post(&format!("/jobs/{}/retry", held.id), &retry).problem(422, "invalid-request");
    operate(&mut client, held.id, "retry").expect(200);
}

/// Ids come back when an old copy of the store is put in place; the remote system must not take the new job for the old one.
#[test]
fn keys_of_effects_do_not_come_back_with_ids() {
    let mut keys = Vec::new();
    for _ in 0..2 {
        let server = Server::start();
        let mut client = server.client();
        assert_eq!(enqueue(&mut client, &json!({"type": "t", "queue": "q"})), 1);
        let held = take(&mut client, "w", "q");
        keys.push(begin(&mut client, &held, "ship")["key"].clone());
    }
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn what_was_begun_survives_kill_9() {
    let mut server = Server::start();
    let mut client = server.client();
    enqueue(&mut client, &json!({"type": "t", "queue": "q"}));
    let held = take(&mut client, "w", "q");
    let begun = begin(&mut client, &held, "ship");
    server.restart();
    let mut client = server.client();
    assert_eq!(begin(&mut client, &held, "ship"), begun);
    finish(&mut client, &held, "ship", &json!([1])).expect(200);
    server.restart();
    let mut client = server.client();
    assert_eq!(begin(&mut client, &held, "ship")["result"], json!([1]));
    held.complete(&mut client);
}

#[test]
fn bad_calls_change_nothing() {
    let server = Server::start();
    let mut client = server.client();
    enqueue(&mut client, &json!({"type": "t", "queue": "q"}));
    let held = take(&mut client, "w", "q");
    for name in ["Ship", "a%2Fb", "%C3%BC", &"x".repeat(65), "a%00"] {
        let problem = effect(&mut client, &held, (name, "begin"), json!({})).problem(422, "invalid-request");
        assert_eq!(problem["errors"][0]["field"], "effect", "{problem}");
    }
    finish(&mut client, &held, "never-begun", &Value::Null).problem(409, "effect-not-begun");
    effect(&mut client, &held, ("never-begun", "abort"), json!({})).problem(409, "effect-not-begun");
    for verb in ["begin", "finish", "abort"] {
        let path = format!("/jobs/{}/effects/ship/{verb}", held.id);
        client.post(&path, &json!({})).problem(409, "lease-required");
        client.post(&path, &json!({"lease": "what"})).problem(409, "lease-lost");
        client
            .post(&format!("/jobs/99/effects/ship/{verb}"), &json!({"lease": held.lease}))
            .problem(404, "job-not-found");
        client.post(&path, &json!({"lease": held.lease, "results": 1})).problem(422, "invalid-request");
    }
    let key = json!({"key": "k".repeat(256)});
    effect(&mut client, &held, ("ship", "begin"), key).problem(422, "invalid-request");
    assert_eq!(job(&mut client, held.id)["effects"], json!([]));

    begin(&mut client, &held, "ship");
    let large = "r".repeat(64 * 1024 - 1);
    finish(&mut client, &held, "ship", &json!(large)).problem(422, "result-too-large");
    assert_eq!(begin(&mut client, &held, "ship")["state"], "new", "it is as it was, and so is the lease");
    finish(&mut client, &held, "ship", &json!(large[..large.len() - 1])).expect(200);
    for n in 1..100 {
        begin(&mut client, &held, &format!("e{n}"));
    }
    effect(&mut client, &held, ("e100", "begin"), json!({})).problem(409, "too-many-effects");
    for n in 1..100 {
        effect(&mut client, &held, (&format!("e{n}"), "abort"), json!({})).expect(200);
    }
    held.complete(&mut client);
}

/// `charge-card` must never run twice: without retries a lost lease is for a person to decide.
#[test]
fn without_retries_a_lost_lease_is_never_a_second_run() {
    let server = Server::with(Options::default());
    let mut client = server.client();
    server.put("/types/charge-card", &json!({"max_retries": 0, "owner": "payments"})).expect(200);
    let id = enqueue(&mut client, &json!({"type": "charge-card", "queue": "q"}));
    claim(
        &mut client,
        &json!({"worker_id": "w", "queues": ["q"], "lease_seconds": 1, "handles_verify": true}),
    );
    let failed = settled(&mut client, id);
    assert_eq!(
        (&failed["failure"]["reason"], &failed["owner"]),
        (&json!("outcome_unknown"), &json!("payments"))
    );
    assert!(nothing_in(&mut client, "q"));
    assert_eq!(attempts(&mut client, id).len(), 1);
}
