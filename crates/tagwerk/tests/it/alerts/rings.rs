//! What rings, and what closes by itself.

use serde_json::{Value, json};

use super::{alerts, eventually, metric, quick, rung, told, writes_down};
use crate::server::Server;
use crate::support::{Held, claim, enqueue, take, take_briefly};

#[test]
fn a_queue_that_never_had_a_worker_rings_and_closes_by_itself_when_one_comes() {
    let server = Server::with(writes_down(quick().set("alerts.no_worker=1s")));
    let client = &mut server.client();
    enqueue(client, &json!({"type": "send", "queue": "mail"}));
    let alert = rung(&server, "open", "no_worker");
    assert_eq!((&alert["scope"], &alert["name"]), (&json!("queue"), &json!("mail")));
    let detail = alert["detail"].as_str().expect("words");
    assert!(detail.contains("send") && detail.contains("ever"), "{detail}");
    assert_eq!((&alert["unit"], &alert["threshold"]), (&json!("seconds"), &json!(1.0)));
    assert!(alert["value"].as_f64().expect("a figure") >= 1.0, "{alert}");
    // It opened once, however often it was looked.
    assert_eq!(alerts(&server, "open").len(), 1);

    take(client, "w", "mail").complete(client);
    let closed = rung(&server, "closed", "no_worker");
    assert_eq!(closed["id"], alert["id"]);
    assert!(closed["closed_at"].is_string(), "{closed}");
    eventually("both were told", || (told(&server).len() == 2).then_some(()));
    let types: Vec<Value> = told(&server).iter().map(|message| message["type"].clone()).collect();
    assert_eq!(types, ["alert.opened", "alert.closed"]);
    assert_eq!(metric(&server, "tagwerk_alerts{kind=\"no_worker\"}"), Some(0.0));
}

/// A worker for other types is none.
#[test]
fn a_worker_that_would_not_take_them_does_not_count() {
    let server = Server::with(quick().set("alerts.no_worker=1s"));
    let client = &mut server.client();
    enqueue(client, &json!({"type": "send", "queue": "mail"}));
    let other = json!({"worker_id": "w", "queues": ["mail"], "types": ["other"]});
    let alert = eventually("it rings", || {
        assert!(claim(client, &other).is_none());
        alerts(&server, "open").pop()
    });
    assert_eq!(alert["kind"], "no_worker");
    // Still: it goes on asking for what is not there.
    assert!(claim(client, &other).is_none());
    assert_eq!(alerts(&server, "open").len(), 1);
}

/// A worker with a long job is there, and so is one that waits.
#[test]
fn a_worker_that_is_busy_or_waits_is_one() {
    let server = Server::with(quick().set("alerts.no_worker=2s").set("alerts.oldest_ready_age=3s"));
    let client = &mut server.client();
    enqueue(client, &json!({"type": "send", "queue": "mail"}));
    let held = take(client, "w", "mail");
    enqueue(client, &json!({"type": "send", "queue": "mail"}));
    // The other alert tells that time has passed: longer than `no_worker` takes.
    let first = eventually("the job has waited", || {
        held.heartbeat(client).expect(200);
        alerts(&server, "open").pop()
    });
    assert_eq!(first["kind"], "oldest_ready_age");
    assert_eq!(alerts(&server, "open").len(), 1);
}

/// Money is not taken twice, and its owner hears of it once.
#[test]
fn a_charge_whose_worker_is_lost_goes_to_review_and_its_owner_is_told_once() {
    let options = writes_down(quick().set("alerts.review_new=1").set("alerts.window=1h"));
    let mut server = Server::with(options);
    let client = &mut server.client();
    let settings = json!({"max_retries": 0, "owner": "Payments <pay@example.org>"});
    server.put("/types/charge-card", &settings).expect(200);
    let id = enqueue(client, &json!({"type": "charge-card", "queue": "pay"}));
    let held: Held = take_briefly(client, "w", "pay");
    assert_eq!(held.id, id);
    let job = client.get(&format!("/jobs/{id}?wait_seconds=50")).expect(200);
    assert_eq!((&job["status"], &job["failure"]["reason"]), (&json!("failed"), &json!("outcome_unknown")));

    let alert = rung(&server, "open", "review_new");
    assert_eq!((&alert["scope"], &alert["name"]), (&json!("type"), &json!("charge-card")));
    assert_eq!(alert["owner"], settings["owner"]);
    let message = eventually("the owner was told", || told(&server).pop());
    assert_eq!((&message["type"], &message["data"]["id"]), (&json!("alert.opened"), &alert["id"]));
    assert_eq!(message["data"]["owner"], settings["owner"]);
    eventually("it is written down that it was told", || {
        metric(&server, "tagwerk_alert_messages_total{outcome=\"delivered\",way=\"command\"}")
            .or_else(|| {
                metric(&server, "tagwerk_alert_messages_total{way=\"command\",outcome=\"delivered\"}")
            })
            .filter(|n| *n >= 1.0)
    });
    // Nobody gets it, now or after a restart, and nobody is told again.
    assert!(claim(client, &json!({"worker_id": "w2"})).is_none());
    eventually("it is written down", || server.terminate().success().then_some(()));
    server.start_again();
    let client = &mut server.client();
    assert!(claim(client, &json!({"worker_id": "w3"})).is_none());
    eventually("it has looked again", || metric(&server, "tagwerk_alerts_look_age_seconds"));
    assert_eq!(told(&server).len(), 1, "{:?}", told(&server));
    let job = client.get(&format!("/jobs/{id}")).expect(200);
    assert_eq!((&job["status"], &job["attempt"]), (&json!("failed"), &json!(1)));
}

/// What comes into review while the server is down, or in the moment before it is killed, is told by the next one.
#[test]
fn what_comes_into_review_unseen_is_told_after_a_restart() {
    let mut server = Server::with(writes_down(
        quick().set("alerts.review_new=1").set("alerts.every=60s").set("alerts.window=1h"),
    ));
    let client = &mut server.client();
    // The first look is over: the next one is a minute away.
    eventually("it has looked", || metric(&server, "tagwerk_alerts_look_age_seconds"));
    enqueue(client, &json!({"type": "t", "queue": "q", "max_retries": 0}));
    take(client, "w", "q").fail(client, "permanent");
    assert!(alerts(&server, "open").is_empty());
    server.restart();
    rung(&server, "open", "review_new");
    eventually("it was told", || (told(&server).len() == 1).then_some(()));
}

#[test]
fn attempts_that_fail_are_repeated_or_given_back_ring() {
    let options = quick()
        .set("alerts.attempts_min=4")
        .set("alerts.failure_rate=0.5")
        .set("alerts.retry_rate=0.5")
        .set("alerts.release_loop=4")
        .set("alerts.no_success=1s");
    let server = Server::with(options);
    let client = &mut server.client();
    eventually("it has looked", || metric(&server, "tagwerk_alerts_look_age_seconds"));
    for _ in 0..4 {
        let job = json!({"type": "fails", "queue": "q", "retry": {"base_seconds": 300, "jitter": "none"}});
        enqueue(client, &job);
        take(client, "w", "q").fail(client, "transient");
    }
    for _ in 0..4 {
        enqueue(client, &json!({"type": "fine", "queue": "q"}));
        take(client, "w", "q").complete(client);
    }
    for n in 0..4 {
        enqueue(client, &json!({"type": "thrown-back", "queue": "r"}));
        let held = take(client, &format!("w{n}"), "r");
        held.call(client, "release", json!({"delay_seconds": 300})).expect(200);
    }
    for (kind, name) in [
        ("failure_rate", "fails"),
        ("retry_rate", "fails"),
        ("no_success", "fails"),
        ("release_loop", "thrown-back"),
    ] {
        let alert = rung(&server, "open", kind);
        assert_eq!((&alert["scope"], &alert["name"]), (&json!("type"), &json!(name)), "{alert}");
    }
    let names: Vec<Value> = alerts(&server, "open").iter().map(|alert| alert["name"].clone()).collect();
    assert!(!names.contains(&json!("fine")) && names.len() == 4, "{names:?}");
}

/// Who paused a queue knows that its jobs wait.
#[test]
fn a_paused_queue_is_silent() {
    let server = Server::with(quick().set("alerts.no_worker=1s").set("alerts.oldest_ready_age=1s"));
    let client = &mut server.client();
    server.post("/queues/q/pause", &json!({"reason": "repairs"})).expect(200);
    enqueue(client, &json!({"type": "t", "queue": "q"}));
    enqueue(client, &json!({"type": "t", "queue": "other"}));
    // The other queue tells that time has passed.
    eventually("the other rings", || (alerts(&server, "open").len() == 2).then_some(()));
    let names: Vec<Value> = alerts(&server, "open").iter().map(|alert| alert["name"].clone()).collect();
    assert_eq!(names, ["other", "other"]);
}

/// An owner and a threshold for one queue.
#[test]
fn a_rule_for_one_queue_holds_for_it_alone() {
    let rules = "alerts.rules=queue:mail no_worker=1s owner=Mail team";
    let server = Server::with(quick().set("alerts.no_worker=1h").set(rules));
    let client = &mut server.client();
    for queue in ["mail", "other"] {
        enqueue(client, &json!({"type": "t", "queue": queue}));
    }
    let alert = rung(&server, "open", "no_worker");
    assert_eq!((&alert["name"], &alert["owner"]), (&json!("mail"), &json!("Mail team")));
    assert_eq!(alerts(&server, "open").len(), 1);
}
