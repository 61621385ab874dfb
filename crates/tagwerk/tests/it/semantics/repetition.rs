//! No repetition is hidden: whoever runs a job again is told what is known of the runs before.

use serde_json::{Value, json};

use crate::server::Server;
use crate::support::{
    at_once, attempts, claim, enqueue, job, operate, pass, settled, take, take_briefly, text,
};

#[test]
fn what_is_not_known_is_told_until_it_is_known() {
    let server = Server::start();
    let mut client = server.client();
    let id = enqueue(&mut client, &json!({"type": "t", "queue": "q", "max_retries": 10, "retry": at_once()}));
    let first = take(&mut client, "w1", "q");
    assert_eq!((&first.job["verify"], &first.job["checkpoint"]), (&json!(false), &Value::Null));
    first.call(&mut client, "checkpoint", json!({"checkpoint": {"page": 1}})).expect(200);
    first.call(&mut client, "checkpoint", json!({"checkpoint": {"page": 2}})).expect(200);
    first.call(&mut client, "fail", json!({"class": "unknown", "error": "connection reset"})).expect(200);
    // The next gets what the one before left.
    let second = take(&mut client, "w2", "q");
    assert_eq!((&second.job["verify"], &second.job["checkpoint"]), (&json!(true), &json!({"page": 2})));
    assert_eq!(text(&second.job["error"]), "connection reset");
    // Giving it back says nothing about it, a transient failure does.
    second.call(&mut client, "release", json!({})).expect(200);
    let third = take(&mut client, "w3", "q");
    assert_eq!((&third.job["verify"], &third.job["attempt"]), (&json!(true), &json!(2)));
    third.fail(&mut client, "transient");
    let fourth = take(&mut client, "w4", "q");
    assert_eq!(fourth.job["verify"], false);
    fourth.complete(&mut client);
    let told: Vec<_> = attempts(&mut client, id)
        .iter()
        .map(|attempt| {
            format!("{} {} {}", attempt["number"], text(&attempt["worker_id"]), text(&attempt["outcome"]))
        })
        .collect();
    assert_eq!(told, ["1 w1 failed", "2 w2 released", "2 w3 failed", "3 w4 completed"]);
}

#[test]
fn what_must_not_be_repeated_blindly_goes_to_review_and_says_so_after_a_retry() {
    let server = Server::start();
    let mut client = server.client();
    let id = enqueue(&mut client, &json!({"type": "t", "queue": "q", "on_unknown": "review"}));
    take_briefly(&mut client, "dies", "q");
    let failed = settled(&mut client, id);
    assert_eq!(
        failed["failure"],
        json!({"class": "unknown", "reason": "outcome_unknown", "cause": "lease_expired"})
    );
    let note = json!({"seen_version": failed["version"], "payload": {"amount": 2}, "note": "looked it up", "max_retries": 0});
    let retried = client.post(&format!("/jobs/{id}/retry"), &note).expect(200);
    assert_eq!((&retried["payload"], &retried["lease_losses"]), (&json!({"amount": 2}), &json!(0)));
    let again = take(&mut client, "w", "q");
    let told = (&again.job["verify"], &again.job["attempt"], &again.job["is_last_attempt"]);
    assert_eq!(told, (&json!(true), &json!(2), &json!(true)));
    again.fail(&mut client, "transient");
    let history = client.get(&format!("/jobs/{id}/attempts")).expect(200);
    assert_eq!(history["attempts"].as_array().map(Vec::len), Some(2));
    let action = &history["actions"][0];
    assert_eq!((text(&action["action"]), text(&action["reason"])), ("retry", "looked it up"));
}

#[test]
fn a_report_is_repeated_for_as_long_as_its_attempt_is_known() {
    let server = Server::start();
    let mut client = server.client();
    enqueue(&mut client, &json!({"type": "t", "queue": "q", "retry": at_once()}));
    let first = take(&mut client, "w1", "q");
    let said = json!({"class": "transient", "error": "busy"});
    first.call(&mut client, "fail", said.clone()).expect(200);
    let second = take(&mut client, "w2", "q");
    for _ in 0..2 {
        let answer = first.call(&mut client, "fail", said.clone());
        let now = answer.expect(200);
        // The job as it is by now: somebody else has it.
        assert_eq!((text(&now["status"]), text(&now["worker_id"])), ("running", "w2"));
        assert_eq!(answer.header("report-replayed"), Some("true"));
    }
    let problem = first.call(&mut client, "complete", json!({})).problem(409, "already-reported");
    assert_eq!(problem["counted"], "failed");
    let result = |n: u8| json!({"result": {"n": n}});
    second.call(&mut client, "complete", result(1)).expect(200);
    assert_eq!(second.call(&mut client, "complete", result(1)).header("report-replayed"), Some("true"));
    // Another result is another report.
    second.call(&mut client, "complete", result(2)).problem(409, "already-reported");
    assert_eq!(job(&mut client, first.id)["result"], json!({"n": 1}));
}

#[test]
fn a_claim_whose_answer_was_lost_is_repeated_while_its_leases_live() {
    let server = Server::start();
    let mut client = server.client();
    for _ in 0..2 {
        enqueue(&mut client, &json!({"type": "t", "queue": "q", "retry": at_once()}));
    }
    let wish =
        |worker: &str| json!({"worker_id": worker, "queues": ["q"], "request_id": "r-1", "lease_seconds": 1});
    let first = claim(&mut client, &wish("w")).expect("a job");
    let again = claim(&mut client, &wish("w")).expect("the same job");
    assert_eq!((again.id, &again.lease, &again.job["replayed"]), (first.id, &first.lease, &json!(true)));
    // Of another worker it is another claim.
    let other = claim(&mut client, &wish("v")).expect("another job");
    assert!(other.id != first.id && other.job["replayed"] == false);
    while job(&mut client, first.id)["status"] == "running" {
        pass(&mut client, 0.2);
    }
    let later = claim(&mut client, &wish("w")).expect("a job");
    assert!(later.lease != first.lease && later.job["replayed"] == false);
}

#[test]
fn a_maximum_age_bounds_the_waiting_and_not_the_work() {
    let server = Server::start();
    let mut client = server.client();
    let aged = |queue: &str| json!({"type": "t", "queue": queue, "max_age_seconds": 1, "retry": at_once()});
    let (waits, runs) = (enqueue(&mut client, &aged("waits")), enqueue(&mut client, &aged("runs")));
    let held = take(&mut client, "w", "runs");
    let expired = settled(&mut client, waits);
    assert_eq!(expired["failure"], json!({"class": "transient", "reason": "expired", "cause": "max_age"}));
    assert!(claim(&mut client, &json!({"worker_id": "w", "queues": ["waits"]})).is_none());
    // The one that runs goes on; coming back it is too old.
    held.heartbeat(&mut client).expect(200);
    let failed = held.fail(&mut client, "transient");
    assert_eq!((failed["id"].as_i64(), text(&failed["failure"]["reason"])), (Some(runs), "expired"));
    // A retry from review counts the age anew.
    operate(&mut client, waits, "retry").expect(200);
    assert_eq!(take(&mut client, "w", "waits").complete(&mut client)["id"], waits);
}
