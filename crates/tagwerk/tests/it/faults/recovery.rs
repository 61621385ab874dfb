//! K04, K06: workers that die, and jobs that kill them.

use serde_json::{Value, json};

use crate::server::Server;
use crate::support::{
    Sentinel, at_once, attempts, claim, claim_all, enqueue, enqueue_all, job, ms, nothing_in, pass, settled,
    take, take_briefly, text,
};

/// Orphans were found by the worker's name; after a restart a new process had the same name and they looked alive.
#[test]
fn f021_a_lease_ends_whatever_a_worker_of_the_same_name_does() {
    let server = Server::start();
    let mut client = server.client();
    let orphan = enqueue(&mut client, &json!({"type": "t", "queue": "q", "retry": at_once()}));
    assert_eq!(take_briefly(&mut client, "w1", "q").id, orphan);
    enqueue(&mut client, &json!({"type": "t", "queue": "other"}));
    let namesake = take_briefly(&mut client, "w1", "other");
    for _ in 0..3 {
        pass(&mut client, 0.4);
        namesake.heartbeat(&mut client).expect(200);
    }
    let rescued = take(&mut client, "w2", "q");
    assert_eq!((rescued.id, &rescued.job["attempt"]), (orphan, &json!(2)));
    namesake.heartbeat(&mut client).expect(200);
}

/// Recovery ran at the start of a process only; with rolling restarts nobody looked until the next deploy.
#[test]
fn f022_a_lost_job_comes_back_without_a_restart_and_without_anybody_waiting_for_it() {
    let server = Server::start();
    let mut client = server.client();
    let id = enqueue(&mut client, &json!({"type": "t", "queue": "q", "retry": at_once()}));
    let ends = ms(&take_briefly(&mut client, "dead", "q").job["lease_expires_at"]).expect("a time");
    let again = loop {
        if let Some(again) = claim(&mut client, &json!({"worker_id": "w", "queues": ["q"]})) {
            break again;
        }
        pass(&mut client, 0.1);
    };
    let claimed = ms(&again.job["claimed_at"]).expect("a time");
    assert_eq!(again.id, id);
    assert!((ends..ends + 2_000).contains(&claimed), "lost at {ends}, claimed at {claimed}");
}

/// A worker without threads could not stop, and its job stayed "started" for four hours.
#[test]
fn f024_the_time_limit_ends_an_attempt_that_sends_heartbeats_for_ever() {
    let server = Server::start();
    let mut client = server.client();
    let limited = |queue: &str, retries: u8| json!({"type": "t", "queue": queue, "timeout_seconds": 2, "max_retries": retries});
    let (retried, reviewed) =
        (enqueue(&mut client, &limited("retried", 1)), enqueue(&mut client, &limited("reviewed", 0)));
    let holders = [take(&mut client, "w", "retried"), take(&mut client, "w", "reviewed")];
    let problems: Vec<Value> = loop {
        pass(&mut client, 0.3);
        let answers = holders.each_ref().map(|held| held.heartbeat(&mut client));
        if answers.iter().all(|answer| answer.status == 409) {
            break answers.iter().map(|answer| answer.problem(409, "timed-out")).collect();
        }
        for beat in answers.iter().filter(|answer| answer.status == 200) {
            assert!(
                text(&beat.json()["ends_at"]) <= text(&beat.json()["lease_expires_at"]),
                "{}",
                beat.text()
            );
        }
    };
    assert!(problems.iter().all(|problem| problem["stop"] == true && problem["may_report"] == true));
    let (retried, reviewed) = (job(&mut client, retried), job(&mut client, reviewed));
    assert_eq!((text(&retried["status"]), &retried["verify"]), ("pending", &json!(true)));
    assert_eq!((&retried["lease_losses"], &retried["retry_count"]), (&json!(0), &json!(1)));
    assert_eq!(
        reviewed["failure"],
        json!({"class": "unknown", "reason": "outcome_unknown", "cause": "timed_out"})
    );
    let attempt = &attempts(&mut client, holders[0].id)[0];
    let length = ms(&attempt["ended_at"]).zip(ms(&attempt["claimed_at"])).map(|(end, start)| end - start);
    assert_eq!((text(&attempt["outcome"]), length), ("timed_out", Some(2_000)));
}

/// After a crash the marker of a running job lived on for the whole time limit; jobs waited for hours.
#[test]
fn f025_a_long_time_limit_does_not_keep_a_lost_job() {
    let server = Server::start();
    let mut client = server.client();
    let id = enqueue(
        &mut client,
        &json!({"type": "t", "queue": "q", "timeout_seconds": 3600, "retry": at_once()}),
    );
    let first = take_briefly(&mut client, "dead", "q");
    let again = take(&mut client, "w", "q");
    assert_eq!((first.id, again.id), (id, id));
    let waited =
        ms(&again.job["claimed_at"]).zip(ms(&first.job["claimed_at"])).map(|(end, start)| end - start);
    assert!(waited.is_some_and(|ms| ms < 4_000), "{waited:?}");
}

/// The threshold of "given out before" was computed once, so jobs of dead workers came back only after a restart.
#[test]
fn f026_a_hundred_dead_workers_give_back_a_hundred_jobs() {
    let server = Server::start();
    let mut client = server.client();
    let ids = enqueue_all(&mut client, &vec![json!({"type": "t", "queue": "q", "retry": at_once()}); 100]);
    for n in 0..100 {
        // Each with a connection of its own, which is gone right after.
        let wish = json!({"worker_id": format!("dead-{n}"), "queues": ["q"], "lease_seconds": 1});
        assert!(claim(&mut server.client(), &wish).is_some());
    }
    let sentinel = Sentinel::until(&mut client, 1);
    sentinel.wait(&mut client);
    let wish = json!({"worker_id": "w", "queues": ["q"], "max_jobs": 1000});
    let mut again: Vec<i64> = claim_all(&mut client, &wish).iter().map(|held| held.id).collect();
    again.sort_unstable();
    assert_eq!(again, ids);
    let stats = server.get("/stats").expect(200);
    // With the sentinel's own.
    assert_eq!((&stats["totals"]["lease_losses"], &stats["totals"]["retries"]), (&json!(101), &json!(100)));
}

/// Jobs that blow the memory were put straight back and killed one worker after the other.
#[test]
fn f041_a_job_that_kills_its_workers_goes_to_review_and_the_others_flow() {
    let server = Server::start();
    let mut client = server.client();
    let poison = json!({"type": "poison", "queue": "q", "max_retries": 25, "max_lease_losses": 2, "priority": "high",
        "retry": at_once()});
    let id = enqueue(&mut client, &poison);
    let mut others = 0;
    for loss in 1..=2 {
        enqueue(&mut client, &json!({"type": "good", "queue": "q"}));
        assert_eq!(take_briefly(&mut client, "dies", "q").id, id, "loss {loss}");
        // Those behind it do not wait for it.
        take(&mut client, "w", "q").complete(&mut client);
        others += 1;
        if loss == 1 {
            while job(&mut client, id)["status"] == "running" {
                pass(&mut client, 0.2);
            }
        }
    }
    let failed = settled(&mut client, id);
    assert_eq!(
        failed["failure"],
        json!({"class": "unknown", "reason": "worker_lost", "cause": "lease_expired"})
    );
    assert_eq!((&failed["lease_losses"], &failed["retry_count"], others), (&json!(2), &json!(1), 2));
    assert!(nothing_in(&mut client, "q"));
}

/// A job limited to one try was run again because it outlived the retry timer.
#[test]
fn f042_a_job_without_retries_is_never_handed_out_twice() {
    let server = Server::start();
    let mut client = server.client();
    let id = enqueue(&mut client, &json!({"type": "t", "queue": "q", "max_retries": 0, "retry": at_once()}));
    let held = take_briefly(&mut client, "dies", "q");
    assert_eq!((&held.job["is_last_attempt"], &held.job["attempts_left"]), (&json!(true), &json!(0)));
    assert_eq!(settled(&mut client, id)["failure"]["reason"], "outcome_unknown");
    assert!(nothing_in(&mut client, "q"));
    let reported = enqueue(&mut client, &json!({"type": "t", "queue": "q", "max_retries": 0}));
    let body = json!({"class": "transient", "retry_after_seconds": 0});
    let failed = take(&mut client, "w", "q").call(&mut client, "fail", body).expect(200);
    assert_eq!(
        (failed["id"].as_i64(), text(&failed["failure"]["reason"])),
        (Some(reported), "retries_exhausted")
    );
    assert!(nothing_in(&mut client, "q"));
}

/// A worker without the class of a new job crashed on it; it stayed reserved until the time-out, over and over.
#[test]
fn f043_fail_permanent_goes_to_review_at_once_with_its_reason() {
    let server = Server::start();
    let mut client = server.client();
    let id = enqueue(&mut client, &json!({"type": "t", "queue": "q"}));
    let body = json!({"class": "permanent", "error": "unknown type t"});
    let failed = take(&mut client, "w", "q").call(&mut client, "fail", body).expect(200);
    assert_eq!(failed["failure"], json!({"class": "permanent", "reason": "permanent", "cause": "reported"}));
    assert_eq!((text(&failed["error"]), &failed["retry_count"]), ("unknown type t", &json!(0)));
    let review = client.get("/review?reason=permanent").expect(200);
    assert_eq!(review["jobs"][0]["id"], id);
    assert!(nothing_in(&mut client, "q"));
}
