//! Limits that leak, are overrun, never open again, or change an order (f001, f080 to f090, f136).

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

use serde_json::{Value, json};

use crate::client::Client;
use crate::server::{JSON, Server};
use crate::support::{
    Held, Sentinel, claim, claim_all, enqueue, enqueue_all, in_parallel, job, linger, list, ms, nothing_in,
    setting, settled, take, take_briefly,
};

fn put(client: &mut Client, name: &str, settings: &Value) {
    let answer = client.send(&format!("PUT /limits/{name}"), &[JSON], settings.to_string().as_bytes());
    answer.expect(201);
}

fn limited() -> Value {
    json!({"type": "t", "queue": "q", "limits": ["crm"]})
}

/// Claims of one job that do not wait, all at the same time.
fn rush(server: &Server, workers: usize) -> Vec<Held> {
    let names: Vec<usize> = (0..workers).collect();
    let found = in_parallel(
        (workers, &names),
        || server.client(),
        |client, name| claim(client, &json!({"worker_id": format!("w{name}"), "queues": ["q"]})),
    );
    found.into_iter().flatten().collect()
}

/// ixti/sidekiq-throttled#84: jobs that waited for a slot vanished on restart.
#[test]
fn f001_what_waits_for_a_slot_outlives_every_restart() {
    let mut server = Server::start();
    put(&mut server.client(), "crm", &json!({"max_running": 1}));
    let mut left: BTreeSet<i64> =
        enqueue_all(&mut server.client(), &vec![limited(); 20]).into_iter().collect();
    for round in 0..20 {
        let mut client = server.client();
        let held = take(&mut client, "w", "q");
        assert!(nothing_in(&mut client, "q"), "one at a time");
        if round % 6 == 5 {
            server.kill();
            server.start_again();
            client = server.client();
            assert!(nothing_in(&mut client, "q"), "the lease lives on, and with it the slot");
        }
        held.complete(&mut client);
        assert!(left.remove(&held.id), "none is handed out twice");
    }
    assert!(left.is_empty() && nothing_in(&mut server.client(), "q"));
}

/// bull#2082: jobs that met the limit vanished from all lists.
#[test]
fn f002_jobs_that_meet_a_limit_stay_pending_and_say_why() {
    let server = Server::start();
    let mut client = server.client();
    put(&mut client, "crm", &json!({"rate": {"count": 2, "per_seconds": 60}}));
    enqueue_all(&mut client, &vec![limited(); 100]);
    let got = claim_all(&mut client, &json!({"worker_id": "w", "queues": ["q"], "max_jobs": 1_000}));
    assert_eq!(got.len(), 2);
    let pending = list(&mut client, "?status=pending");
    assert_eq!(pending.len(), 98);
    for waiting in pending.iter().step_by(14) {
        let explained = client.get(&format!("/jobs/{}/explain", waiting["id"])).expect(200);
        assert_eq!(explained["reasons"][0]["kind"], "rate_exhausted", "{explained}");
        assert!(ms(&explained["reasons"][0]["until"]).is_some(), "{explained}");
    }
}

/// `good_job`#622 and `sidekiq-rate-limiter`#13: retries escaped the limit.
#[test]
fn f080_f090_a_retry_keeps_to_its_limits() {
    let server = Server::start();
    let mut client = server.client();
    put(&mut client, "crm", &json!({"max_running": 1}));
    put(&mut client, "slow", &json!({"rate": {"count": 4, "per_seconds": 2}}));
    let both = json!({"type": "t", "queue": "q", "limits": ["crm", "slow"]});
    let ids = enqueue_all(&mut client, &vec![both; 4]);
    let mut starts = Vec::new();
    for round in 0..8 {
        let held = take(&mut client, "w", "q");
        assert!(nothing_in(&mut client, "q"), "one at a time");
        assert_eq!(held.job["limits"], json!(["crm", "slow"]), "on every attempt");
        starts.push(ms(&held.job["claimed_at"]).expect("a time"));
        if round < 4 {
            held.call(&mut client, "fail", json!({"retry_after_seconds": 0})).expect(200);
        } else {
            held.complete(&mut client);
        }
    }
    assert!(most_within(&starts, 2_000) <= 4, "{starts:?}");
    assert!(ids.iter().all(|id| job(&mut client, *id)["status"] == "completed"));
}

/// A worker with a connection of its own that claims when it is told to, and says what it was given.
type Claimer = (Sender<()>, Receiver<Option<Held>>);

/// So many of them. They end with their channels.
fn claimers<'scope>(scope: &'scope Scope<'scope, '_>, server: &'scope Server, n: usize) -> Vec<Claimer> {
    let claimer = |n| {
        let (go, told) = channel::<()>();
        let (say, said) = channel();
        scope.spawn(move || {
            let mut client = server.client();
            let wish = json!({"worker_id": format!("w{n}"), "queues": ["q"]});
            while told.recv().is_ok() {
                if say.send(claim(&mut client, &wish)).is_err() {
                    break;
                }
            }
        });
        (go, said)
    };
    (0..n).map(claimer).collect()
}

/// windmill#2216: each of many claimers counted for itself and saw a free slot.
#[test]
fn f081_thirty_claimers_at_once_never_get_more_than_three() {
    let server = Server::start();
    let mut client = server.client();
    put(&mut client, "crm", &json!({"max_running": 3}));
    std::thread::scope(|scope| {
        let claimers = claimers(scope, &server, 30);
        for round in 0..setting("TAGWERK_LIMIT_ROUNDS", 200) {
            enqueue_all(&mut client, &vec![limited(); 5]);
            for (go, _) in &claimers {
                go.send(()).expect("it waits for a word");
            }
            let said = claimers.iter().map(|(_, said)| said.recv().expect("its claim was answered"));
            let got: Vec<Held> = said.flatten().collect();
            assert_eq!(got.len(), 3, "round {round}");
            assert!(next(&mut client, &[]).is_empty(), "round {round}: three run");
            let rest = next(&mut client, &got);
            assert_eq!(rest.len(), 2, "round {round}");
            assert!(next(&mut client, &rest).is_empty(), "round {round}: nothing is left");
        }
    });
}

/// Completes what is held and claims all that there is, in one call.
fn next(client: &mut Client, held: &[Held]) -> Vec<Held> {
    let report = |held: &Held| json!({"id": held.id, "lease": held.lease, "outcome": "completed"});
    let reports: Vec<Value> = held.iter().map(report).collect();
    let claim = json!({"worker_id": "w", "queues": ["q"], "max_jobs": 100});
    let answer = client.post("/jobs/report/bulk", &json!({"reports": reports, "claim": claim})).expect(200);
    let done = answer["results"].as_array().expect("results").iter().filter(|result| result["status"] == 200);
    assert_eq!(done.count(), held.len(), "{answer}");
    answer["jobs"].as_array().expect("jobs").iter().cloned().map(Held::of).collect()
}

/// `solid_queue`#735: after a hard kill the sweep and the workers started several at once.
#[test]
fn f082_after_a_kill_nobody_gets_a_slot_before_its_lease_has_ended() {
    let mut server = Server::start();
    put(&mut server.client(), "crm", &json!({"max_running": 1}));
    enqueue_all(&mut server.client(), &vec![limited(); 3]);
    let wish = json!({"worker_id": "dead", "queues": ["q"], "lease_seconds": 5});
    let held = claim(&mut server.client(), &wish).expect("a job");
    server.kill();
    server.start_again();
    assert!(rush(&server, 10).is_empty(), "its lease lives");
    let mut client = server.client();
    let next = take(&mut client, "w", "q");
    let lost = job(&mut client, held.id);
    assert_eq!(lost["lease_losses"], 1, "{lost}");
    assert_ne!(next.id, held.id, "it comes back behind those that waited");
    assert!(nothing_in(&mut client, "q"));
}

/// `solid_queue`#546: the slot of a killed worker stayed taken.
#[test]
fn f083_the_slot_of_a_dead_worker_is_free_when_its_lease_has_ended() {
    let server = Server::start();
    let mut client = server.client();
    put(&mut client, "crm", &json!({"max_running": 2}));
    for end in ["review", "retry"] {
        let losses = if end == "review" { 1 } else { 4 };
        let lost = json!({"type": "t", "queue": "lost", "limits": ["crm"], "max_lease_losses": losses});
        let lost = enqueue_all(&mut client, &vec![lost; 2]);
        take_briefly(&mut client, "dead", "lost");
        take_briefly(&mut client, "dead", "lost");
        let next = enqueue(&mut client, &limited());
        assert!(nothing_in(&mut client, "q"), "both slots are taken");
        // The wait of a claim that is parked ends with the lease.
        let held = take(&mut client, "w", "q");
        assert_eq!(held.id, next);
        held.complete(&mut client);
        for id in lost {
            if end == "retry" {
                take(&mut client, "w", "lost").complete(&mut client);
            } else {
                assert_eq!(settled(&mut client, id)["failure"]["reason"], "worker_lost");
            }
        }
        let shown = client.get("/limits/crm").expect(200);
        assert_eq!(shown["running"], 0, "{shown}");
    }
}

/// `solid_queue`#689: an enqueue that raced with the end of the running job waited for good.
#[test]
fn f084_an_enqueue_beside_the_end_of_the_running_job_is_not_forgotten() {
    let server = Server::start();
    let mut client = server.client();
    put(&mut client, "crm", &json!({"max_running": 1}));
    enqueue(&mut client, &limited());
    let mut held = take(&mut client, "w", "q");
    for round in 0..setting("TAGWERK_LIMIT_RACES", 200) {
        let both = [Some(held), None];
        in_parallel(
            (2, &both),
            || server.client(),
            |client, ended| match ended {
                Some(held) => drop(held.complete(client)),
                None => drop(enqueue(client, &limited())),
            },
        );
        let next = claim(&mut client, &json!({"worker_id": "w", "queues": ["q"], "lease_seconds": 300}));
        held = next.unwrap_or_else(|| panic!("round {round}: nothing runs and nothing is handed out"));
    }
}

/// bull#2235: once there had been a backlog, new jobs were delayed because delayed jobs existed, and these by them again.
#[test]
fn f085_after_a_burst_a_low_load_does_not_wait_for_the_rate() {
    let server = Server::start();
    let mut client = server.client();
    put(&mut client, "crm", &json!({"rate": {"count": 20, "per_seconds": 1}}));
    let burst = enqueue_all(&mut client, &vec![limited(); 60]);
    let order: Vec<i64> = burst
        .iter()
        .map(|_| {
            let held = take(&mut client, "w", "q");
            held.complete(&mut client);
            held.id
        })
        .collect();
    assert_eq!(order, burst);
    linger(&mut client, 1.1);
    // A tenth of the rate: whoever asks gets it without waiting, now and later.
    for _ in 0..4 {
        for _ in 0..2 {
            let id = enqueue(&mut client, &limited());
            let held = claim(&mut client, &json!({"worker_id": "w", "queues": ["q"]}));
            assert_eq!(held.map(|held| held.id), Some(id), "it waits for nothing");
        }
        linger(&mut client, 0.5);
    }
}

/// The same with a backlog that stays, and bull#1875: the rate fell below what was set.
#[test]
fn f085_f086_a_rate_is_reached_and_never_exceeded() {
    let server = Server::start();
    put(&mut server.client(), "crm", &json!({"rate": {"count": 20, "per_seconds": 1}}));
    let seconds: u32 = setting("TAGWERK_RATE_SECONDS", 30);
    let wanted = usize::try_from(seconds * 20).expect("it is small");
    enqueue_all(&mut server.client(), &vec![limited(); wanted + 20]);
    let workers: Vec<usize> = (0..4).collect();
    let each = wanted / workers.len();
    let starts = in_parallel(
        (4, &workers),
        || server.client(),
        |client, worker| {
            let start = |_| {
                let held = take(client, &format!("w{worker}"), "q");
                held.complete(client);
                // Producers go on all the while.
                enqueue(client, &limited());
                ms(&held.job["claimed_at"]).expect("a time")
            };
            (0..each).map(start).collect::<Vec<i64>>()
        },
    );
    let mut starts = starts.concat();
    starts.sort_unstable();
    assert!(most_within(&starts, 1_000) <= 20, "{starts:?}");
    let took = starts[starts.len() - 1] - starts[0];
    // Of each period of 17/16 s all starts are at its beginning; the last one need not pass.
    let longest = i64::from(seconds) * 1_000 * 16 / 15;
    assert!(took <= longest, "{} starts in {took} ms, {longest} at most", starts.len());
}

/// bullmq#269: the limiter let the first window through and then nothing ever again.
#[test]
fn f087_a_claim_that_waits_is_woken_when_the_rate_goes_on() {
    let server = Server::start();
    let mut client = server.client();
    put(&mut client, "crm", &json!({"rate": {"count": 2, "per_seconds": 1}}));
    let ids = enqueue_all(&mut client, &vec![limited(); 8]);
    let mut starts = Vec::new();
    for id in ids {
        let held = take(&mut client, "w", "q");
        assert_eq!(held.id, id, "in order");
        starts.push(ms(&held.job["claimed_at"]).expect("a time"));
        held.complete(&mut client);
    }
    assert!(most_within(&starts, 1_000) <= 2, "{starts:?}");
    let took = starts[7] - starts[0];
    assert!((3_000..4_000).contains(&took), "three periods and three sixteenths, not {took} ms: {starts:?}");
}

/// agenda#120: after some dozens of runs everything was locked until somebody cleared it by hand.
#[test]
fn f088_no_slot_leaks_over_many_runs_with_dead_workers_and_refusals() {
    let server = Server::start();
    let mut client = server.client();
    put(&mut client, "crm", &json!({"max_running": 5}));
    let jobs: u32 = setting("TAGWERK_LIMIT_JOBS", 400);
    let jobs = vec![limited(); usize::try_from(jobs).expect("it is small")];
    enqueue_all(&mut client, &jobs);
    let workers: Vec<usize> = (0..8).collect();
    in_parallel(
        (8, &workers),
        || server.client(),
        |client, worker| {
            let wish = json!({"worker_id": format!("w{worker}"), "queues": ["q"], "wait_seconds": 3, "lease_seconds": 1});
            let mut n = *worker;
            while let Some(held) = claim(client, &wish) {
                n += 7;
                match n % 50 {
                    // Dropped: its lease runs out.
                    0 => {}
                    1 => drop(held.call(client, "release", json!({})).expect(200)),
                    2 => drop(held.call(client, "fail", json!({"retry_after_seconds": 0})).expect(200)),
                    3 => {
                        held.complete(client);
                        held.call(client, "fail", json!({})).problem(409, "already-reported");
                    }
                    _ => drop(held.complete(client)),
                }
            }
        },
    );
    Sentinel::until(&mut client, 2).wait(&mut client);
    let shown = client.get("/limits/crm").expect(200);
    assert_eq!(shown["running"], 0, "{shown}");
    let stats = client.get("/stats").expect(200);
    assert_eq!((&stats["counts"]["running"], &stats["counts"]["pending"]), (&json!(0), &json!(0)), "{stats}");
}

/// sidekiq#6010: hits of the limiter counted as attempts.
#[test]
fn f089_waiting_at_a_rate_spends_no_attempt() {
    let server = Server::start();
    let mut client = server.client();
    put(&mut client, "crm", &json!({"rate": {"count": 1, "per_seconds": 2}}));
    enqueue(&mut client, &limited());
    let waiting = enqueue(&mut client, &limited());
    take(&mut client, "w", "q").complete(&mut client);
    for _ in 0..100 {
        assert!(nothing_in(&mut client, "q"));
    }
    let shown = job(&mut client, waiting);
    assert_eq!(
        (&shown["attempt"], &shown["retry_count"], &shown["attempts_left"]),
        (&json!(0), &json!(0), &json!(4))
    );
    let held = take(&mut client, "w", "q");
    assert_eq!((held.id, &held.job["attempt"]), (waiting, &json!(1)));
}

/// The most starts within a half-open window of this length.
fn most_within(starts: &[i64], per_ms: i64) -> usize {
    let within = |from: &i64| starts.iter().filter(|start| (*from..from + per_ms).contains(*start)).count();
    starts.iter().map(within).max().unwrap_or_default()
}

/// bullmq#1929: jobs put back by a limit changed their place among equals.
#[test]
fn f136_jobs_held_back_by_a_limit_keep_their_place() {
    let server = Server::start();
    let mut client = server.client();
    put(&mut client, "crm", &json!({"max_running": 1}));
    for round in 0..20 {
        let sent: Vec<i64> = enqueue_all(&mut client, &vec![limited(); 5]);
        let mut order = Vec::new();
        for _ in 0..5 {
            let mut held = rush(&server, 3);
            assert_eq!(held.len(), 1, "round {round}");
            let held = held.remove(0);
            order.push(held.id);
            held.complete(&mut client);
        }
        assert_eq!(order, sent, "round {round}");
    }
}
