//! K03: stale workers and second clicks. (Races of them stand in `races`.)

use serde_json::json;

use crate::server::Server;
use crate::support::{Held, at_once, attempts, enqueue, job, operate, settled, take, take_briefly, text};

/// A slow worker lost its lock, a second ran the job, then both reported completion and both were accepted.
#[test]
fn f016_who_has_lost_the_job_to_another_changes_nothing_any_more() {
    let server = Server::start();
    let mut client = server.client();
    let id = enqueue(&mut client, &json!({"type": "t", "queue": "q", "retry": at_once()}));
    let first = take_briefly(&mut client, "first", "q");
    let second = take(&mut client, "second", "q");
    assert_eq!((first.id, second.id), (id, id));
    let before = job(&mut client, id);
    for (call, body) in [
        ("heartbeat", json!({})),
        ("checkpoint", json!({"checkpoint": 1})),
        ("complete", json!({"result": "first"})),
        ("fail", json!({"class": "permanent", "error": "first"})),
        ("release", json!({})),
    ] {
        let problem = first.call(&mut client, call, body).problem(409, "lease-lost");
        assert_eq!(problem["may_report"], false, "{call}");
    }
    assert_eq!(job(&mut client, id), before);
    let done = second.call(&mut client, "complete", json!({"result": "second"})).expect(200);
    assert_eq!(done["result"], "second");
    // What was refused is kept for the people who have to find out.
    let ended = attempts(&mut client, id);
    assert_eq!((&ended[0]["refused_calls"], &ended[1]["refused_calls"]), (&json!(5), &json!(0)));
    assert_eq!(ended[0]["last_refused"]["call"], "release");
}

/// A second worker marked a job that still ran as failed while the first finished it: failed and done at once.
#[test]
fn f017_a_late_complete_counts_until_a_person_has_decided() {
    let server = Server::start();
    let mut client = server.client();
    let lose = |client: &mut _, queue: &str| -> Held {
        let id = enqueue(client, &json!({"type": "t", "queue": queue, "max_retries": 0}));
        let held = take_briefly(client, "slow", queue);
        assert_eq!(settled(client, id)["failure"]["reason"], "outcome_unknown");
        held
    };
    let rescued = lose(&mut client, "rescued");
    let done = rescued.complete(&mut client);
    assert_eq!((text(&done["status"]), &done["failure"]), ("completed", &json!(null)));
    assert_eq!(attempts(&mut client, rescued.id)[0]["late"], true);
    operate(&mut client, rescued.id, "retry").problem(409, "not-failed");

    let decided = lose(&mut client, "decided");
    operate(&mut client, decided.id, "retry").expect(200);
    let before = job(&mut client, decided.id);
    let problem = decided.call(&mut client, "complete", json!({})).problem(409, "lease-lost");
    assert_eq!(problem["may_report"], false);
    assert_eq!(job(&mut client, decided.id), before);

    let discarded = lose(&mut client, "discarded");
    operate(&mut client, discarded.id, "discard").expect(200);
    discarded.call(&mut client, "complete", json!({})).problem(409, "cancelled");
    assert_eq!(job(&mut client, discarded.id)["status"], "cancelled");
}

/// Running jobs were put back at shutdown while their own error arrived: two copies.
#[test]
fn f055_of_release_and_fail_for_one_lease_the_first_counts() {
    let server = Server::start();
    let mut client = server.client();
    for (first, second) in [("release", "fail"), ("fail", "release")] {
        let id = enqueue(&mut client, &json!({"type": "t", "queue": first, "retry": at_once()}));
        let held = take(&mut client, "w", first);
        let counted = held.call(&mut client, first, json!({})).expect(200);
        assert_eq!(
            held.call(&mut client, second, json!({})).problem(409, "already-reported")["counted"],
            if first == "fail" { "failed" } else { "released" }
        );
        let now = job(&mut client, id);
        assert_eq!((&now["status"], &now["version"]), (&json!("pending"), &counted["version"]));
        assert_eq!(attempts(&mut client, id).len(), 1);
        let again = take(&mut client, "w2", first);
        assert_eq!(again.job["attempt"], if first == "fail" { 2 } else { 1 });
    }
}
