//! K09, K10, K15: deploys, retention, cancelling. (A stop under load stands in `process` and `crash`.)

use serde_json::{Value, json};

use crate::client::Client;
use crate::server::{Options, Server};
use crate::support::{
    at_once, claim, claim_all, delete, enqueue, enqueue_all, job, nothing_in, operate, pass, take, text,
};

/// Jobs of workers that ignored the stop were left "running" and picked up an hour later.
#[test]
fn f056_a_worker_that_goes_gives_its_jobs_back_at_once_and_unspent() {
    let server = Server::start();
    let mut client = server.client();
    enqueue_all(&mut client, &vec![json!({"type": "t", "queue": "q", "max_retries": 0}); 3]);
    for _ in 0..3 {
        let held = take(&mut client, "old", "q");
        assert_eq!((&held.job["attempt"], &held.job["is_last_attempt"]), (&json!(1), &json!(true)));
        let back = held.call(&mut client, "release", json!({"reason": "shutting down"})).expect(200);
        assert_eq!((text(&back["status"]), &back["attempt"]), ("pending", &json!(0)));
    }
    let again = claim_all(&mut client, &json!({"worker_id": "new", "queues": ["q"], "max_jobs": 10}));
    assert_eq!(again.len(), 3);
    for held in again {
        assert_eq!((&held.job["attempt"], &held.job["verify"]), (&json!(1), &json!(false)));
        held.complete(&mut client);
    }
}

/// During a rolling deploy new workers took jobs of the old version, called them invalid and failed them for good.
#[test]
fn f057_a_worker_gets_only_the_types_that_it_knows_and_can_give_the_others_back() {
    let server = Server::start();
    let mut client = server.client();
    let old = enqueue(&mut client, &json!({"type": "v1", "queue": "q", "max_retries": 0}));
    let wish = json!({"worker_id": "new", "queues": ["q"], "types": ["v2"]});
    assert!(claim(&mut client, &wish).is_none());
    let new = enqueue(&mut client, &json!({"type": "v2", "queue": "q"}));
    assert_eq!(claim(&mut client, &wish).map(|held| held.id), Some(new));
    assert!(claim(&mut client, &wish).is_none());
    // One without a filter gives back what it does not know, and it is not pressed on the same worker again.
    let held = take(&mut client, "careless", "q");
    assert_eq!(held.id, old);
    held.call(&mut client, "release", json!({"reason": "unknown type"})).expect(200);
    let other = enqueue(&mut client, &json!({"type": "v2", "queue": "q"}));
    assert_eq!(take(&mut client, "careless", "q").id, other);
    let knows = json!({"worker_id": "old", "queues": ["q"], "types": ["v1"]});
    let held = claim(&mut client, &knows).expect("the old job");
    assert_eq!((held.id, &held.job["attempt"], &held.job["release_count"]), (old, &json!(1), &json!(1)));
}

/// A pruner deleted everything above an age, also jobs that still ran.
#[test]
fn f058_retention_deletes_completed_and_cancelled_jobs_and_nothing_else() {
    let server = Server::with(Options::default().set("retention.completed=1s").set("retention.cancelled=1s"));
    let mut client = server.client();
    let states: Vec<(&str, i64)> =
        ["pending", "scheduled", "running", "failed", "waiting", "completed", "cancelled"]
            .into_iter()
            .map(|state| (state, bring(&mut client, state)))
            .collect();
    let there = |client: &mut Client, id: i64| client.get(&format!("/jobs/{id}")).status == 200;
    for (_, id) in states.iter().filter(|(state, _)| ["completed", "cancelled"].contains(state)) {
        while there(&mut client, *id) {
            pass(&mut client, 0.3);
        }
    }
    // Older than what was deleted, by far.
    pass(&mut client, 1.5);
    for (state, id) in &states[..5] {
        assert!(there(&mut client, *id), "{state}");
    }
    let counts = server.get("/stats").expect(200)["counts"].clone();
    assert_eq!(
        (&counts["failed"], &counts["running"], &counts["pending"]),
        (&json!(1), &json!(1), &json!(3))
    );
}

/// A job in this state, in a queue of its own.
fn bring(client: &mut Client, state: &str) -> i64 {
    let delay = if state == "scheduled" { 3600 } else { 0 };
    let id = enqueue(client, &json!({"type": "t", "queue": state, "delay_seconds": delay}));
    match state {
        "running" => drop(take(client, "w", state)),
        "failed" => drop(take(client, "w", state).fail(client, "permanent")),
        "waiting" => drop(
            take(client, "w", state).call(client, "fail", json!({"retry_after_seconds": 3600})).expect(200),
        ),
        "completed" => drop(take(client, "w", state).complete(client)),
        "cancelled" => drop(client.post(&format!("/jobs/{id}/cancel"), &json!({})).expect(200)),
        _ => {}
    }
    id
}

/// Clean-up ran in small bites beside the runner and fell behind; the table grew until the queue could not be worked.
#[test]
fn f059_retention_keeps_up_while_jobs_come_and_go() {
    let server = Server::with(Options::default().set("retention.completed=0s"));
    let mut client = server.client();
    let mut done = 0;
    for round in 0..8 {
        enqueue_all(&mut client, &vec![json!({"type": "t", "queue": "q"}); 1000]);
        let wish = json!({"worker_id": "w", "queues": ["q"], "max_jobs": 1000});
        let held = claim_all(&mut client, &wish);
        assert_eq!(held.len(), 1000, "round {round}");
        let reports: Vec<Value> = held
            .iter()
            .map(|held| json!({"id": held.id, "lease": held.lease, "outcome": "completed"}))
            .collect();
        client.post("/jobs/report/bulk", &json!({"reports": reports})).expect(200);
        done += 1000;
    }
    // All of them within seconds. (Each pause completes a job as well.)
    let mut rounds = 0;
    while server.get("/stats").expect(200)["counts"]["completed"].as_i64().is_none_or(|left| left > 20) {
        pass(&mut client, 0.25);
        rounds += 1;
        assert!(rounds < 60, "it falls behind: {}", server.get("/stats").text());
    }
    let counts = server.get("/stats").expect(200)["counts"].clone();
    assert!(counts["pruned"].as_i64().is_some_and(|pruned| pruned > done - 20), "{counts}");
}

/// Cancel was ignored in some states, so it worked only by chance.
#[test]
fn f099_cancel_is_done_or_refused_by_the_state_and_frees_at_once() {
    let server = Server::start();
    let mut client = server.client();
    for (state, expected) in [
        ("pending", None),
        ("scheduled", None),
        ("running", None),
        ("waiting", None),
        ("failed", Some("use-discard")),
        ("completed", Some("already-completed")),
        ("cancelled", None),
    ] {
        let id = bring(&mut client, state);
        let before = job(&mut client, id);
        let answer = client.post(&format!("/jobs/{id}/cancel"), &json!({"reason": "not needed"}));
        if let Some(code) = expected {
            answer.problem(409, code);
            assert_eq!(job(&mut client, id), before, "{state}");
        } else {
            let now = answer.expect(200);
            assert_eq!((text(&now["status"]), &now["worker_id"]), ("cancelled", &json!(null)), "{state}");
        }
        assert!(nothing_in(&mut client, state), "{state}");
    }
}

/// A job could not be deleted in any way, not even after a restart.
#[test]
fn f100_a_job_can_be_deleted_in_every_state_and_its_holder_is_told() {
    let server = Server::start();
    let mut client = server.client();
    for state in ["pending", "scheduled", "running", "waiting", "failed", "completed", "cancelled"] {
        let id = bring(&mut client, state);
        delete(&mut client, &format!("/jobs/{id}")).expect(200);
        client.get(&format!("/jobs/{id}")).problem(404, "job-not-found");
        delete(&mut client, &format!("/jobs/{id}")).problem(404, "job-not-found");
        assert!(nothing_in(&mut client, state), "{state}");
    }
    enqueue(&mut client, &json!({"type": "t", "queue": "q"}));
    let held = take(&mut client, "w", "q");
    delete(&mut client, &format!("/jobs/{}", held.id)).expect(200);
    held.heartbeat(&mut client).problem(404, "job-not-found");
    held.call(&mut client, "complete", json!({})).problem(404, "job-not-found");
    let counts = server.get("/stats").expect(200)["counts"].clone();
    assert_eq!((&counts["enqueued"], &counts["pruned"]), (&json!(8), &json!(8)));
}

/// The last worker holds a job while its queue is emptied by hand: each call says what became of it.
#[test]
fn a_holder_hears_of_a_cancel_at_its_next_call_whichever_it_is() {
    let server = Server::start();
    let mut client = server.client();
    for call in ["heartbeat", "checkpoint", "complete", "fail", "release"] {
        enqueue(&mut client, &json!({"type": "t", "queue": call, "retry": at_once()}));
        let held = take(&mut client, "w", call);
        client.post(&format!("/jobs/{}/cancel", held.id), &json!({"wait": true})).expect(200);
        let waiting = job(&mut client, held.id);
        assert_eq!((text(&waiting["status"]), &waiting["cancel_requested"]), ("running", &json!(true)));
        let problem = held.call(&mut client, call, json!({"checkpoint": 1})).problem(409, "cancelled");
        assert_eq!((&problem["stop"], &problem["may_report"]), (&json!(true), &json!(false)), "{call}");
        assert_eq!(job(&mut client, held.id)["status"], "cancelled", "{call}");
        operate(&mut client, held.id, "cancel").expect(200);
    }
}
