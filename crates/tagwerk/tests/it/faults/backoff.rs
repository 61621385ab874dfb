//! K12: counting retries and waiting between them.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::client::Client;
use crate::server::Server;
use crate::support::{
    Held, at_once, attempts, claim_all, enqueue, enqueue_all, job, ms, nothing_in, take, take_briefly, text,
};

/// How long a failed job waits, in milliseconds.
fn wait_ms(job: &Value) -> i64 {
    ms(&job["available_at"]).expect("a time") - ms(&job["updated_at"]).expect("a time")
}

/// The delay overflowed 32 bits at the 31st retry, and before that was years; elsewhere the power overflowed although the
/// capped result would have been small.
#[test]
fn f073_f074_f075_delays_stay_within_the_cap_for_ever() {
    let server = Server::start();
    let mut client = server.client();
    for (queue, base, factor) in [("doubling", 0.001, 2.0), ("exploding", 0.001, 1e6), ("flat", 0.02, 1.0)] {
        let retry = json!({"base_seconds": base, "factor": factor, "cap_seconds": 0.02, "jitter": "none"});
        let id =
            enqueue(&mut client, &json!({"type": "t", "queue": queue, "max_retries": 70, "retry": retry}));
        let mut waits = Vec::new();
        for retry in 1..=70 {
            let failed = take(&mut client, "w", queue).fail(&mut client, "transient");
            assert_eq!((failed["id"].as_i64(), &failed["retry_count"]), (Some(id), &json!(retry)));
            waits.push(wait_ms(&failed));
        }
        assert!(waits.iter().all(|wait| (1..=20).contains(wait)), "{queue}: {waits:?}");
        assert!(waits.is_sorted() && waits[5..].iter().all(|wait| *wait == 20), "{queue}: {waits:?}");
        let last = take(&mut client, "w", queue);
        assert_eq!((&last.job["attempt"], &last.job["is_last_attempt"]), (&json!(71), &json!(true)));
        assert_eq!(last.fail(&mut client, "transient")["failure"]["reason"], "retries_exhausted");
        // Of very many attempts the first and the last are kept, all are counted.
        assert_eq!(attempts(&mut client, id).len(), 71);
    }
}

/// The counter was not raised on the last retry, so "is this the last one" was wrong.
#[test]
fn f076_attempts_are_numbered_and_the_last_one_says_so() {
    let server = Server::start();
    let mut client = server.client();
    let id = enqueue(&mut client, &json!({"type": "t", "queue": "q", "max_retries": 3, "retry": at_once()}));
    for number in 1..=4 {
        let held = take(&mut client, "w", "q");
        assert_eq!(held.job["attempt"], number);
        assert_eq!(held.job["is_last_attempt"], number == 4);
        assert_eq!(held.job["attempts_left"], 4 - number);
        held.fail(&mut client, "transient");
    }
    let failed = job(&mut client, id);
    assert_eq!((text(&failed["status"]), &failed["attempt"]), ("failed", &json!(4)));
    assert_eq!(failed["failure"]["reason"], "retries_exhausted");
    let numbers: Vec<_> = attempts(&mut client, id).iter().map(|attempt| attempt["number"].clone()).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
}

/// One component counted from 0 and the other from 1: one retry too few or too many.
#[test]
fn f077_a_job_runs_once_more_than_its_retries_whatever_ends_its_runs() {
    let server = Server::start();
    let mut client = server.client();
    let job_of = |queue: &str, retries: u8| json!({"type": "t", "queue": queue, "max_retries": retries, "retry": at_once(), "timeout_seconds": 1});
    for retries in 0..=2 {
        let mut ids = vec![enqueue(&mut client, &job_of("one", retries))];
        ids.extend(enqueue_all(&mut client, &[job_of("bulk", retries)]));
        ids.extend(enqueue_all(&mut client, &[job_of("unknown", retries), job_of("mixed", retries)]));
        for (queue, ends) in [
            ("one", ["transient"; 3]),
            ("bulk", ["transient"; 3]),
            ("unknown", ["unknown"; 3]),
            ("mixed", ["lost", "transient", "unknown"]),
        ] {
            runs(&mut client, queue, &ends[..=usize::from(retries)]);
        }
        for id in ids {
            let failed = job(&mut client, id);
            assert_eq!(
                (text(&failed["status"]), &failed["attempt"]),
                ("failed", &json!(retries + 1)),
                "{failed}"
            );
            assert_eq!(attempts(&mut client, id).len(), usize::from(retries) + 1);
        }
    }
}

/// Ends each run of the only job in a queue as it says; after the last there is none.
fn runs(client: &mut Client, queue: &str, ends: &[&str]) {
    for end in ends {
        let held = take(client, "w", queue);
        match *end {
            "lost" => {
                while job(client, held.id)["status"] == "running" {
                    crate::support::pass(client, 0.2);
                }
            }
            class => drop(held.fail(client, class)),
        }
    }
    assert!(nothing_in(client, queue), "{queue} runs once too often");
}

/// Expired reservations landed among the dead with retries left.
#[test]
fn f078_a_lost_first_attempt_leads_to_a_second_one() {
    let server = Server::start();
    let mut client = server.client();
    let id = enqueue(&mut client, &json!({"type": "t", "queue": "q", "max_retries": 3}));
    take_briefly(&mut client, "dead", "q");
    // With the usual back-off of 5 s the first loss still comes back within a second.
    let again = take(&mut client, "w", "q");
    assert_eq!((again.id, &again.job["attempt"], &again.job["retry_count"]), (id, &json!(2), &json!(1)));
    let lost = &attempts(&mut client, id)[0];
    assert_eq!(text(&lost["outcome"]), "lease_expired");
    assert!(text(&lost["error"]).contains("dead"), "{lost}");
    let waited =
        ms(&again.job["claimed_at"]).zip(ms(&lost["ended_at"])).map(|(claimed, ended)| claimed - ended);
    assert!(waited.is_some_and(|ms| ms < 4_000), "{waited:?}");
}

/// Back-off without chance: after an outage the whole fleet came back in step.
#[test]
fn f079_a_thousand_failures_of_one_moment_come_back_spread() {
    let server = Server::start();
    let mut client = server.client();
    enqueue_all(&mut client, &vec![json!({"type": "t", "queue": "q"}); 1000]);
    let held = claim_all(&mut client, &json!({"worker_id": "w", "queues": ["q"], "max_jobs": 1000}));
    let report = |held: &Held| json!({"id": held.id, "lease": held.lease, "outcome": "failed"});
    let (most, asked) = held.split_at(900);
    let mut reports: Vec<Value> = most.iter().map(report).collect();
    for held in asked {
        let mut report = report(held);
        report["retry_after_seconds"] = json!(60);
        reports.push(report);
    }
    let answer = client.post("/jobs/report/bulk", &json!({"reports": reports})).expect(200);
    let waits: Vec<i64> =
        answer["results"].as_array().expect("results").iter().map(|result| wait_ms(&result["job"])).collect();
    // Base 5 s, "equal": between half of it and all of it.
    assert!(waits[..900].iter().all(|wait| (2_500..=5_000).contains(wait)));
    assert!(waits[900..].iter().all(|wait| *wait >= 60_000));
    let mut slots: HashMap<i64, usize> = HashMap::new();
    for wait in &waits[..900] {
        *slots.entry(wait / 50).or_default() += 1;
    }
    let fullest = slots.into_values().max();
    assert!(fullest.is_some_and(|count| count < 90), "{fullest:?} in one slot of 50 ms");
}
