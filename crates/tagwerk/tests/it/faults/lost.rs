//! K01, K02: accepted jobs that were lost, and jobs that ran twice while their worker was alive.

use serde_json::{Value, json};

use crate::client::request;
use crate::server::{JSON, Server};
use crate::support::{
    Held, at_once, attempts, claim, claim_all, delete, enqueue, enqueue_all, job, list, ms, nothing_in, pass,
    settled, take, take_briefly, text,
};

/// A job that ran when server and worker went down stayed "in flight" and was never run again.
#[test]
fn f004_a_job_whose_server_and_worker_died_is_run_again() {
    let mut server = Server::start();
    let mut client = server.client();
    let id = enqueue(&mut client, &json!({"type": "t", "queue": "q", "retry": at_once()}));
    assert_eq!(take_briefly(&mut client, "dead", "q").id, id);
    server.restart();
    let mut client = server.client();
    let again = take(&mut client, "new", "q");
    assert_eq!((again.id, &again.job["attempt"], &again.job["verify"]), (id, &json!(2), &json!(true)));
    let first = &attempts(&mut client, id)[0];
    assert_eq!((text(&first["worker_id"]), text(&first["outcome"])), ("dead", "lease_expired"));
}

/// Old workers treated an unknown job name as done: deliveries vanished without a failed job.
#[test]
fn f005_a_job_is_completed_by_a_complete_and_by_nothing_else() {
    let server = Server::start();
    let mut client = server.client();
    let new = |kind: &str| json!({"type": kind, "queue": kind, "max_lease_losses": 1, "timeout_seconds": 2});
    let held = |client: &mut _, kind: &str| {
        enqueue(client, &new(kind));
        take(client, "w", kind)
    };
    enqueue(&mut client, &new("lost"));
    let lost = take_briefly(&mut client, "w", "lost");
    let late = held(&mut client, "late");
    for class in ["transient", "permanent", "unknown"] {
        held(&mut client, class).fail(&mut client, class);
    }
    let released = held(&mut client, "released");
    released.call(&mut client, "release", json!({"reason": "unknown type"})).expect(200);
    for (kind, action, body) in [
        ("cancelled", "cancel", json!({})),
        ("stopping", "cancel", json!({"wait": true})),
        ("forced", "force-fail", json!({"reason": "r"})),
    ] {
        let held = held(&mut client, kind);
        client.post(&format!("/jobs/{}/{action}", held.id), &body).expect(200);
        assert_eq!(held.heartbeat(&mut client).status, 409);
    }
    let deleted = held(&mut client, "deleted");
    delete(&mut client, &format!("/jobs/{}", deleted.id)).expect(200);
    settled(&mut client, lost.id);
    while job(&mut client, late.id)["status"] == "running" {
        pass(&mut client, 0.2);
    }
    let completed = |client: &mut _| list(client, "?status=completed");
    assert!(completed(&mut client).iter().all(|job| job["type"] == "time"));
    let done = take(&mut client, "w", "released").complete(&mut client);
    assert!(completed(&mut client).iter().any(|job| job["id"] == done["id"]));
}

/// A "rescue after six minutes" handed long jobs to a second worker each night although the first was alive; another
/// broker never let work that was longer than its limit be acknowledged at all.
#[test]
fn f006_f013_f014_heartbeats_hold_a_job_for_as_long_as_they_come() {
    let server = Server::start();
    let mut client = server.client();
    let id = enqueue(&mut client, &json!({"type": "t", "queue": "q"}));
    let held = take_briefly(&mut client, "alive", "q");
    let waiting = std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            let wish = json!({"worker_id": "second", "queues": ["q"], "wait_seconds": 4});
            claim(&mut server.client(), &wish).map(|held| held.id)
        });
        for _ in 0..10 {
            pass(&mut client, 0.4);
            let beat = held.heartbeat(&mut client).expect(200);
            assert_eq!((&beat["continue"], &beat["quiet"]), (&json!(true), &json!(false)), "{beat}");
        }
        second.join().expect("the second worker")
    });
    assert_eq!(waiting, None, "a live job was handed out");
    let done = held.complete(&mut client);
    assert_eq!(
        (done["id"].as_i64(), &done["attempt"], &done["lease_losses"]),
        (Some(id), &json!(1), &json!(0))
    );
}

/// Mails had been sent, but the removal from a private list failed silently: at the next restart they were sent again.
#[test]
fn f007_what_was_answered_as_completed_is_never_handed_out_again() {
    let mut server = Server::start();
    for round in 0..5 {
        let mut client = server.client();
        let ids = enqueue_all(&mut client, &vec![json!({"type": "t", "queue": "q"}); 3]);
        let held: Vec<Held> = (0..3).map(|_| take_briefly(&mut client, "w", "q")).collect();
        for held in &held {
            held.complete(&mut client);
        }
        server.restart();
        let mut client = server.client();
        assert!(nothing_in(&mut client, "q"), "round {round}");
        for id in ids {
            assert_eq!(job(&mut client, id)["status"], "completed", "round {round}");
        }
    }
}

/// Workers took jobs with a later start in advance; when that time lay beyond their lease, several ran the job.
#[test]
fn f008_nobody_gets_a_job_before_its_time_and_then_one_does() {
    let server = Server::start();
    let mut client = server.client();
    let now = server.get("/stats").expect(200)["now"].clone();
    let due = ms(&now).expect("a time") + 2_000;
    let run_at = tagwerk_api::format_rfc3339(due);
    let id = enqueue(&mut client, &json!({"type": "t", "queue": "q", "run_at": run_at}));
    let taken: Vec<Held> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|n| {
                let mut client = server.client();
                let wish =
                    json!({"worker_id": format!("w{n}"), "queues": ["q"], "wait_seconds": 3, "lease_seconds": 60});
                scope.spawn(move || claim(&mut client, &wish))
            })
            .collect();
        workers.into_iter().filter_map(|worker| worker.join().expect("a worker")).collect()
    });
    let [held] = taken.as_slice() else { panic!("{} workers got it", taken.len()) };
    assert_eq!(held.id, id);
    assert!(text(&held.job["claimed_at"]) >= run_at.as_str(), "{}", held.job);
    assert_eq!(held.job["available_at"], run_at);
}

/// A sweep compared ages from two places while a slow worker was between taking and starting the job.
#[test]
fn f009_a_lease_counts_from_its_grant_and_the_answer_says_until_when() {
    let server = Server::start();
    let (mut client, mut slow) = (server.client(), server.client());
    let id = enqueue(&mut client, &json!({"type": "t", "queue": "q"}));
    let body = json!({"worker_id": "slow", "queues": ["q"], "lease_seconds": 2}).to_string();
    slow.begin(&request(server.addr(), "POST /jobs/claim", &[JSON], body.as_bytes())).expect("to send");
    // The answer is on its way for most of the lease.
    pass(&mut client, 1.6);
    let held = Held::of(slow.finish("POST").expect("an answer").expect(200));
    assert_eq!(held.id, id);
    let at = |field: &str| ms(&held.job[field]).expect("a time");
    assert_eq!(at("lease_expires_at") - at("claimed_at"), 2_000);
    assert!(nothing_in(&mut client, "q"), "no sweep before the end that was told");
    held.heartbeat(&mut slow).expect(200);
}

/// Slow handlers outlived the re-delivery time: customers got the same mail several times.
#[test]
fn f010_a_claim_says_how_long_and_a_late_report_counts_while_nobody_else_has_the_job() {
    let server = Server::start();
    let mut client = server.client();
    let id = enqueue(&mut client, &json!({"type": "t", "queue": "q", "max_lease_losses": 1}));
    let held = take_briefly(&mut client, "slow", "q");
    assert!(held.job["lease_expires_at"].is_string());
    assert!(held.job["heartbeat_seconds"].as_f64().is_some_and(|seconds| seconds > 0.0 && seconds < 1.0));
    assert_eq!(settled(&mut client, id)["failure"]["reason"], "worker_lost");
    let done = held.complete(&mut client);
    assert_eq!((text(&done["status"]), &done["lease_losses"]), ("completed", &json!(0)));
    let ended = attempts(&mut client, id);
    assert_eq!((ended.len(), &ended[0]["late"], text(&ended[0]["outcome"])), (1, &json!(true), "completed"));
}

/// A one-off job was started anew each ten minutes because its lock was never cleared.
#[test]
fn f011_one_off_jobs_are_not_handed_out_again_after_their_leases() {
    const JOBS: usize = 1_000;
    let server = Server::start();
    let mut client = server.client();
    enqueue_all(&mut client, &vec![json!({"type": "t", "queue": "q"}); JOBS]);
    let wish = json!({"worker_id": "w", "queues": ["q"], "lease_seconds": 2, "max_jobs": 1000});
    let held = claim_all(&mut client, &wish);
    let reports: Vec<Value> =
        held.iter().map(|held| json!({"id": held.id, "lease": held.lease, "outcome": "completed"})).collect();
    let answer = client.post("/jobs/report/bulk", &json!({"reports": reports})).expect(200);
    assert!(answer["results"].as_array().expect("results").iter().all(|result| result["status"] == 200));
    pass(&mut client, 3.5);
    assert!(nothing_in(&mut client, "q"));
    let jobs = list(&mut client, "?queue=q");
    assert_eq!((held.len(), jobs.len()), (JOBS, JOBS));
    assert!(jobs.iter().all(|job| job["status"] == "completed" && job["attempt"] == 1));
}

/// A loaded worker took longer than its reservation; the job was given out again without the first being told.
#[test]
fn f012_whoever_lost_a_job_hears_it_at_the_next_call() {
    let server = Server::start();
    let mut client = server.client();
    enqueue(&mut client, &json!({"type": "t", "queue": "q", "retry": at_once()}));
    let first = take_briefly(&mut client, "first", "q");
    let second = take(&mut client, "second", "q");
    assert_eq!(first.id, second.id);
    let problem = first.heartbeat(&mut client).problem(409, "lease-lost");
    let told = [&problem["stop"], &problem["may_report"], &problem["retryable"]];
    assert_eq!(told, [&json!(true), &json!(false), &json!(false)], "{problem}");
    second.complete(&mut client);
    assert_eq!(first.heartbeat(&mut client).problem(409, "not-running")["stop"], true);
}
