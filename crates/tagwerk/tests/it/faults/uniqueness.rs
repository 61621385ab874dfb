//! K05: jobs that share a key by a legal way. (The table of keys stands in `keys`, races in `races`, a full disk in `disk`.)

use serde_json::{Value, json};

use crate::server::Server;
use crate::support::{at_once, claim_all, enqueue, id_of, job, nothing_in, pass, take, take_briefly, text};

/// A job whose key holds until its first start only.
fn waiting(retry: &Value) -> Value {
    json!({"type": "t", "queue": "q", "idempotency_key": "k", "idempotency_scope": "waiting", "retry": retry})
}

/// A job waiting for its retry was seen as in conflict with itself, or two of one key with one another, and the whole
/// scheduling failed; elsewhere one batch with both was a unique violation for ever after.
#[test]
fn f029_f030_jobs_of_one_key_come_due_together_and_stop_nobody() {
    let server = Server::start();
    let mut client = server.client();
    let sent = waiting(&json!({"base_seconds": 0.5, "jitter": "none"}));
    let first = enqueue(&mut client, &sent);
    let running = take(&mut client, "w", "q");
    // While the first runs, one more may wait behind it.
    let second = enqueue(&mut client, &sent);
    assert_eq!(id_of(&client.post("/jobs", &sent).expect(200)), second);
    running.fail(&mut client, "transient");
    let other = enqueue(&mut client, &json!({"type": "t", "queue": "q"}));
    pass(&mut client, 0.6);
    let held = claim_all(&mut client, &json!({"worker_id": "w", "queues": ["q"], "max_jobs": 10}));
    let mut ids: Vec<i64> = held.iter().map(|held| held.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, [first, second, other]);
    for held in held {
        held.complete(&mut client);
    }
    assert!(nothing_in(&mut client, "q"));
    assert!(enqueue(&mut client, &sent) > other);
}

/// Recovering a stalled job violated the unique lock because a newer one with its key was waiting; it failed each time.
#[test]
fn f035_a_lost_job_comes_back_beside_the_one_that_has_its_key_now() {
    let server = Server::start();
    let mut client = server.client();
    let sent = waiting(&at_once());
    let first = enqueue(&mut client, &sent);
    take_briefly(&mut client, "dies", "q");
    let second = enqueue(&mut client, &sent);
    let other = enqueue(&mut client, &json!({"type": "t", "queue": "other", "retry": at_once()}));
    take_briefly(&mut client, "dies", "other");
    for id in [first, other] {
        while job(&mut client, id)["status"] == "running" {
            pass(&mut client, 0.2);
        }
    }
    let lost = job(&mut client, first);
    assert_eq!((text(&lost["status"]), &lost["lease_losses"]), ("pending", &json!(1)));
    assert_eq!(job(&mut client, other)["status"], "pending");
    let held = claim_all(&mut client, &json!({"worker_id": "w", "queues": ["q"], "max_jobs": 10}));
    let mut ids: Vec<i64> = held.iter().map(|held| held.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, [first, second]);
}

/// A job in the archive blocked new ones of its key, and nobody could see which.
#[test]
fn f032_what_holds_a_key_is_shown_with_where_it_stands() {
    let server = Server::start();
    let mut client = server.client();
    let sent = json!({"type": "t", "queue": "q", "idempotency_key": "k"});
    let id = enqueue(&mut client, &sent);
    take(&mut client, "w", "q").fail(&mut client, "permanent");
    let existing = client.post("/jobs", &sent).expect(200);
    assert_eq!((id_of(&existing), text(&existing["status"])), (id, "failed"));
    assert_eq!(existing["failure"]["reason"], "permanent");
    let found = client.get("/jobs?idempotency_key=k").expect(200);
    assert_eq!((&found["jobs"][0]["id"], found["jobs"].as_array().map(Vec::len)), (&json!(id), Some(1)));
}
