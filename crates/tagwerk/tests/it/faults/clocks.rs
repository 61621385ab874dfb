//! K19: clocks and jobs for later. There is one clock, the server's.

use serde_json::{Value, json};

use crate::server::Server;
use crate::support::{claim, enqueue, enqueue_all, job, list, ms, nothing_in, take, text};

/// Due times were computed by one clock and compared with another: jobs were delivered too early.
#[test]
fn f116_a_delay_counts_from_the_acceptance_by_the_servers_clock() {
    let server = Server::start();
    let mut client = server.client();
    let id = enqueue(&mut client, &json!({"type": "t", "queue": "q", "delay_seconds": 1.5}));
    let accepted = job(&mut client, id);
    let at = |job: &Value, field: &str| ms(&job[field]).expect("a time");
    assert_eq!(at(&accepted, "available_at") - at(&accepted, "created_at"), 1_500);
    assert!(nothing_in(&mut client, "q"));
    let held = take(&mut client, "w", "q");
    let waited = at(&held.job, "claimed_at") - at(&held.job, "created_at");
    assert!((1_500..3_500).contains(&waited), "{waited} ms");
}

/// An application clock behind the store's: rows violated "not available before created" and enqueue failed.
#[test]
fn f118_a_start_in_the_past_is_now() {
    let server = Server::start();
    let mut client = server.client();
    for run_at in ["1999-12-31T23:59:59Z", "2000-01-01T00:00:00+14:00", "1970-01-01T00:00:00.000Z"] {
        let id = enqueue(&mut client, &json!({"type": "t", "queue": "q", "run_at": run_at}));
        let accepted = job(&mut client, id);
        assert_eq!(accepted["created_at"], accepted["available_at"], "{run_at}");
        assert_eq!(take(&mut client, "w", "q").id, id);
    }
}

/// A row was inserted by the position of its columns: the start went into the priority, and "later" meant "now".
#[test]
fn f119_every_field_comes_back_as_it_was_sent() {
    let server = Server::start();
    let mut client = server.client();
    let odd = json!({
        "type": "App\\Jobs\\Ödd 1", "queue": "queue-2", "priority": 3, "run_at": "2034-05-06T07:08:09.123Z",
        "expires_at": "2034-06-07T08:09:10.456Z", "max_retries": 4, "max_lease_losses": 5, "lease_seconds": 6.007,
        "timeout_seconds": 7.008, "retry": {"base_seconds": 8.009, "factor": 9.25, "cap_seconds": 10.011,
        "jitter": "full"}, "on_unknown": "review", "idempotency_scope": "unfinished",
        "idempotency_ttl_seconds": 12.013, "on_duplicate": "replace", "on_mismatch": "reject",
        "subject": {"kind": "kind-13", "id": "id-14", "version": 15}, "correlation_id": "correlation-16",
        "traceparent": "traceparent-17", "payload": {"number": 18, "list": [19, null, 20.5]},
    });
    let mut one = odd.clone();
    one["idempotency_key"] = json!("key-one");
    let mut two = odd.clone();
    two["idempotency_key"] = json!("key-two");
    let ids = [enqueue(&mut client, &one), enqueue_all(&mut client, &[two.clone()])[0]];
    for (id, sent) in ids.into_iter().zip([one, two]) {
        let shown = job(&mut client, id);
        for (field, value) in sent.as_object().expect("fields") {
            match field.as_str() {
                "priority" => assert_eq!(shown["priority_value"], *value),
                "run_at" => assert_eq!(shown["available_at"], *value),
                _ => assert_eq!(shown[field], *value, "{field}"),
            }
        }
        assert_eq!(text(&shown["priority"]), "low");
        assert_eq!((text(&shown["status"]), &shown["attempt"]), ("pending", &json!(0)));
        let listed = &list(&mut client, &format!("?idempotency_key={}", text(&sent["idempotency_key"])))[0];
        for (field, value) in listed.as_object().expect("fields") {
            assert_eq!(shown[field], *value, "{field} in the list");
        }
    }
    // The age as a length comes back as such, with the instant that it means.
    let id = enqueue(&mut client, &json!({"type": "t", "max_age_seconds": 21.022}));
    let aged = job(&mut client, id);
    let expires = ms(&aged["expires_at"]).zip(ms(&aged["created_at"])).map(|(end, start)| end - start);
    assert_eq!((&aged["max_age_seconds"], expires), (&json!(21.022), Some(21_022)));
}

/// Jobs for a far-off time were held by workers, unacknowledged, until the broker closed the channel.
#[test]
fn f120_jobs_for_tomorrow_hold_nobody_and_a_claim_says_when() {
    let server = Server::start();
    let mut client = server.client();
    let tomorrow = json!({"type": "t", "queue": "q", "delay_seconds": 86_400});
    let ids = enqueue_all(&mut client, &vec![tomorrow; 1000]);
    let due = job(&mut client, ids[0])["available_at"].clone();
    let wish = json!({"worker_id": "w", "queues": ["q"], "wait_seconds": 0.5});
    let answer = client.post("/jobs/claim", &wish);
    assert_eq!(answer.expect(200), json!(null));
    assert_eq!(answer.header("tagwerk-next-due"), Some(text(&due)));
    assert!(answer.header("retry-after").is_some());
    let bulk = client.post("/jobs/claim/bulk", &json!({"worker_id": "w", "queues": ["q"]})).expect(200);
    assert_eq!((&bulk["jobs"], &bulk["next_due_at"]), (&json!([]), &due));
    // What is due now does not stand behind them.
    let now = enqueue(&mut client, &json!({"type": "t", "queue": "q"}));
    assert_eq!(claim(&mut client, &wish).map(|held| held.id), Some(now));
    let counts = server.get("/stats").expect(200)["counts"].clone();
    assert_eq!((&counts["pending"], &counts["running"]), (&json!(1000), &json!(1)));
}
