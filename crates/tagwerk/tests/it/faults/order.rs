//! K22: who is next.

use serde_json::{Value, json};

use crate::server::Server;
use crate::support::{Sentinel, at_once, claim_all, enqueue, enqueue_all, job, ms, take, take_briefly};

/// Order held only as long as nothing stalled; a requeued job lost its place.
#[test]
fn f132_a_lost_job_comes_back_behind_those_that_were_due_before() {
    let server = Server::start();
    let mut client = server.client();
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(enqueue(&mut client, &json!({"type": "t", "queue": "q", "retry": at_once()})));
    }
    assert_eq!(take_briefly(&mut client, "dies", "q").id, ids[0]);
    Sentinel::until(&mut client, 1).wait(&mut client);
    ids.push(enqueue(&mut client, &json!({"type": "t", "queue": "q"})));
    let lost = job(&mut client, ids[0]);
    let newer = job(&mut client, ids[6]);
    assert!(ms(&lost["available_at"]) <= ms(&newer["available_at"]), "{lost} {newer}");
    let order: Vec<i64> = (0..7).map(|_| take(&mut client, "w", "q").id).collect();
    assert_eq!(order, [ids[1], ids[2], ids[3], ids[4], ids[5], ids[0], ids[6]]);
}

/// A job that failed at once kept its first place: it was claimed again and again and everything behind it starved.
#[test]
fn f133_a_job_that_always_fails_does_not_starve_those_behind_it() {
    let server = Server::start();
    let mut client = server.client();
    let always = json!({"type": "fails", "queue": "q", "max_retries": 1000, "retry": at_once()});
    let bad = enqueue(&mut client, &always);
    enqueue_all(&mut client, &vec![json!({"type": "t", "queue": "q"}); 49]);
    let (mut claims, mut done) = (0, 0);
    while done < 49 {
        let held = take(&mut client, "w", "q");
        claims += 1;
        if held.id == bad {
            held.fail(&mut client, "transient");
        } else {
            held.complete(&mut client);
            done += 1;
        }
    }
    assert!(claims <= 60, "{claims} claims for 49 jobs");
}

/// Equal priorities came in random order, and low ones waited for ever.
#[test]
fn f134_ten_thousand_equal_jobs_come_in_the_order_in_which_they_were_sent() {
    let server = Server::start();
    let mut client = server.client();
    let jobs: Vec<Value> = (0..10_000).map(|n| json!({"type": "t", "queue": "q", "payload": n})).collect();
    let ids = enqueue_all(&mut client, &jobs);
    assert!(ids.is_sorted());
    let mut order = Vec::new();
    while order.len() < jobs.len() {
        let held = claim_all(&mut client, &json!({"worker_id": "w", "queues": ["q"], "max_jobs": 1000}));
        assert!(!held.is_empty());
        order.extend(held.into_iter().map(|held| held.job["payload"].as_i64().expect("a number")));
    }
    assert_eq!(order, (0..10_000).collect::<Vec<i64>>());
}

/// Jobs planned for the same instant came in the order of their ids as text: 10 before 2.
#[test]
fn f135_jobs_of_the_same_instant_come_by_number() {
    let server = Server::start();
    let mut client = server.client();
    let now = ms(&server.get("/stats").expect(200)["now"]).expect("a time");
    let run_at = tagwerk_api::format_rfc3339(now + 1_500);
    let ids: Vec<i64> = (0..120)
        .map(|_| enqueue(&mut client, &json!({"type": "t", "queue": "q", "run_at": run_at})))
        .collect();
    assert!(ids[0] < 10 && ids[119] > 100, "ids of one, two and three digits: {ids:?}");
    let order: Vec<i64> = (0..120).map(|_| take(&mut client, "w", "q").id).collect();
    assert_eq!(order, ids);
}

/// With a backlog, the earlier start beat the higher priority.
#[test]
fn f137_a_backlog_does_not_beat_a_higher_priority() {
    let server = Server::start();
    let mut client = server.client();
    enqueue_all(&mut client, &vec![json!({"type": "t", "queue": "q", "priority": "low"}); 1000]);
    let levels = [("critical", 30), ("high", 20), ("medium", 10)];
    let mut expected = Vec::new();
    for (level, value) in levels.into_iter().rev() {
        expected.push(enqueue(&mut client, &json!({"type": "t", "queue": "q", "priority": level})));
        expected.push(enqueue(&mut client, &json!({"type": "t", "queue": "q", "priority": value + 1})));
    }
    // Each level's number plus one goes before the level.
    expected.reverse();
    let order: Vec<i64> = (0..6).map(|_| take(&mut client, "w", "q").id).collect();
    assert_eq!(order, expected);
    assert_eq!(take(&mut client, "w", "q").job["priority"], "low");
}
