//! Many callers in the same instant: one wins, the others hear what became of it.
//!
//! `TAGWERK_RACE_ROUNDS` sets how often 64 claimers meet for one job (default 1,000).

use std::collections::HashSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::server::Server;
use crate::support::{
    Held, at_once, attempts, claim, claim_all, enqueue, enqueue_all, id_of, in_parallel, job, list,
    nothing_in, setting, take, text,
};

/// Sends requests at the same moment, each on a connection of its own that is open already.
fn at_the_same_moment(server: &Server, requests: &[(String, Value)]) -> Vec<Answer> {
    let barrier = Barrier::new(requests.len());
    in_parallel(
        (requests.len(), requests),
        || server.client(),
        |client, (path, body)| {
            client.get("/livez").expect(200);
            barrier.wait();
            client.post(path, body)
        },
    )
}

/// Somebody counted, then inserted, and two at once both saw room.
#[test]
fn f031_a_hundred_enqueues_of_one_key_make_one_job() {
    let server = Server::start();
    let sent = json!({"type": "t", "queue": "q", "payload": {"n": 1}, "idempotency_key": "k"});
    let answers = at_the_same_moment(&server, &vec![("/jobs".to_owned(), sent); 100]);
    let created: Vec<_> = answers.iter().filter(|answer| answer.status == 201).collect();
    assert_eq!(created.len(), 1);
    let id = id_of(&created[0].json());
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        assert_eq!(id_of(&answer.expect(200)), id);
        assert_eq!(answer.header("idempotency-replayed"), Some("true"));
        assert_eq!(answer.json()["payload_differs"], false);
    }
    assert_eq!(list(&mut server.client(), "?queue=q").len(), 1);
}

/// Two parallel requests with one key overwrote each other's answer.
#[test]
fn f039_fifty_different_enqueues_of_one_key_make_one_job_and_the_others_are_told() {
    let server = Server::start();
    let requests: Vec<_> = (0..50)
        .map(|n| {
            let mut sent = json!({"type": "t", "queue": "q", "payload": n, "idempotency_key": "k"});
            if n % 2 == 1 {
                sent["on_mismatch"] = json!("reject");
            }
            ("/jobs".to_owned(), sent)
        })
        .collect();
    let answers = at_the_same_moment(&server, &requests);
    let winner = answers.iter().position(|answer| answer.status == 201).expect("a winner");
    let id = id_of(&answers[winner].json());
    for (n, answer) in answers.iter().enumerate().filter(|(n, _)| *n != winner) {
        if n % 2 == 1 {
            let problem = answer.problem(422, "idempotency-key-reused");
            assert_eq!(id_of(&problem["job"]), id);
        } else {
            let body = answer.expect(200);
            assert_eq!((id_of(&body), &body["payload_differs"]), (id, &json!(true)));
        }
    }
    let jobs = list(&mut server.client(), "?queue=q");
    assert_eq!(jobs.len(), 1);
    assert_eq!(job(&mut server.client(), id)["payload"], winner);
}

/// Two workers locked the same row in the same instant and both worked it.
#[test]
fn f015_of_64_claimers_for_one_job_one_wins_every_round() {
    const CLAIMERS: usize = 64;
    let rounds: usize = setting("TAGWERK_RACE_ROUNDS", 1000);
    let server = Server::start();
    let (start, end) = (Barrier::new(CLAIMERS + 1), Barrier::new(CLAIMERS + 1));
    let (winners, won) = (AtomicUsize::new(0), AtomicI64::new(0));
    std::thread::scope(|scope| {
        for n in 0..CLAIMERS {
            let mut client = server.client();
            let (start, end, winners, won) = (&start, &end, &winners, &won);
            scope.spawn(move || {
                let wish = json!({"worker_id": format!("w{n}"), "queues": ["q"]});
                for _ in 0..rounds {
                    start.wait();
                    let held = claim(&mut client, &wish);
                    if let Some(held) = &held {
                        winners.fetch_add(1, Ordering::SeqCst);
                        won.store(held.id, Ordering::SeqCst);
                    }
                    end.wait();
                    if let Some(held) = held {
                        held.complete(&mut client);
                    }
                }
            });
        }
        let mut client = server.client();
        for round in 0..rounds {
            let id = enqueue(&mut client, &json!({"type": "t", "queue": "q"}));
            start.wait();
            end.wait();
            let (winners, won) = (winners.swap(0, Ordering::SeqCst), won.load(Ordering::SeqCst));
            assert_eq!((winners, won), (1, id), "round {round}");
        }
    });
    let totals = server.get("/stats").expect(200)["totals"].clone();
    assert_eq!(totals["claims"], rounds, "{totals}");
}

/// With this store every worker ran every job, as row locks that others offer do not exist there.
#[test]
fn f053_sixteen_claimers_take_a_thousand_jobs_each_once() {
    let server = Server::start();
    let mut client = server.client();
    for max_jobs in [1, 2, 10, 100] {
        let queue = format!("by-{max_jobs}");
        let ids = enqueue_all(&mut client, &vec![json!({"type": "t", "queue": queue}); 1000]);
        let wish = |worker: &str| json!({"worker_id": worker, "queues": [queue], "max_jobs": max_jobs});
        let workers: Vec<String> = (0..16).map(|n| format!("w{n}")).collect();
        let taken = in_parallel(
            (16, &workers),
            || server.client(),
            |client, worker| {
                let mut taken = Vec::new();
                loop {
                    let held = claim_all(client, &wish(worker));
                    assert!(held.len() <= max_jobs);
                    if held.is_empty() {
                        return taken;
                    }
                    taken.extend(held.into_iter().map(|held| held.id));
                }
            },
        );
        let mut taken: Vec<i64> = taken.into_iter().flatten().collect();
        taken.sort_unstable();
        assert_eq!(taken, ids, "claims of {max_jobs}");
    }
}

/// "Retry failed jobs" made copies; pressing twice sent each mail twice.
#[test]
fn f019_twenty_clicks_on_retry_make_one_run() {
    let server = Server::start();
    let mut client = server.client();
    let id = enqueue(&mut client, &json!({"type": "t", "queue": "q"}));
    let failed = take(&mut client, "w", "q").fail(&mut client, "permanent");
    let click = json!({"seen_version": failed["version"]});
    let answers = at_the_same_moment(&server, &vec![(format!("/jobs/{id}/retry"), click); 20]);
    let codes: Vec<_> = answers.iter().filter(|answer| answer.status != 200).map(Answer::json).collect();
    assert_eq!(codes.len(), 19);
    for problem in codes {
        assert_eq!((&problem["status"], text(&problem["code"])), (&json!(409), "not-failed"));
    }
    take(&mut client, "w", "q").complete(&mut client);
    assert!(nothing_in(&mut client, "q"));
    assert_eq!(attempts(&mut client, id).len(), 2);
    assert_eq!(list(&mut client, "?queue=q").len(), 1);
}

/// A job that had ended well was moved to failed by another's clean-up.
#[test]
fn f018_completing_at_the_very_end_of_the_lease_leads_to_one_final_state() {
    const JOBS: usize = 1000;
    let server = Server::start();
    let mut client = server.client();
    let job_of =
        |retries: usize| json!({"type": "t", "queue": "q", "retry": at_once(), "max_retries": retries});
    enqueue_all(&mut client, &(0..JOBS).map(|n| job_of(n % 2)).collect::<Vec<_>>());
    let wish = json!({"worker_id": "slow", "queues": ["q"], "lease_seconds": 1, "max_jobs": 1000});
    let held = claim_all(&mut client, &wish);
    assert_eq!(held.len(), JOBS);
    // The others wait on the doorstep: they get what is lost. The first of them was granted in the same instant.
    let late = std::thread::scope(|scope| {
        let second = scope.spawn(|| second_worker(&server));
        crate::support::pass(&mut client, 0.9);
        let answers = in_parallel(
            (8, &held),
            || server.client(),
            |client, held| held.call(client, "complete", json!({"result": "slow"})),
        );
        (answers, second.join().expect("the second worker"))
    });
    let (answers, again) = late;
    let counted = |answer: &Answer| answer.status == 200;
    for (held, answer) in held.iter().zip(&answers) {
        let now = job(&mut client, held.id);
        let taken = again.contains(&held.id);
        if counted(answer) {
            assert!(!taken, "{} was completed and handed out", held.id);
            assert_eq!((text(&now["status"]), text(&now["result"])), ("completed", "slow"), "{now}");
        } else {
            answer.problem(409, "lease-lost");
            assert!(taken, "{} is lost to both: {now}", held.id);
            assert_eq!((text(&now["status"]), text(&now["result"])), ("completed", "second"), "{now}");
        }
        let ended = attempts(&mut client, held.id);
        let done = ended.iter().filter(|attempt| attempt["outcome"] == "completed").count();
        assert_eq!(done, 1, "{ended:?}");
    }
    assert!(answers.iter().any(counted), "nobody was in time");
    let counts = server.get("/stats").expect(200)["counts"].clone();
    // With the job that let the time pass.
    assert_eq!((&counts["completed"], &counts["pending"]), (&json!(JOBS + 1), &json!(0)));
}

/// Takes what comes back and completes it, until nothing has come for a while.
fn second_worker(server: &Server) -> HashSet<i64> {
    let mut client: Client = server.client();
    let wish = json!({"worker_id": "second", "queues": ["q"], "max_jobs": 10, "wait_seconds": 4});
    let mut taken = HashSet::new();
    loop {
        let held: Vec<Held> = claim_all(&mut client, &wish);
        if held.is_empty() {
            return taken;
        }
        for held in held {
            held.call(&mut client, "complete", json!({"result": "second"})).expect(200);
            taken.insert(held.id);
        }
    }
}
