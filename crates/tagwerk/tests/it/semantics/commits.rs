//! How many commits it takes: counted, not timed.

use serde_json::json;

use crate::server::Server;
use crate::support::{enqueue, enqueue_all, id_of, in_parallel, take};

/// Commits that carried requests, and requests that they carried.
fn commits(server: &Server) -> (i64, i64) {
    let stats = server.get("/stats").expect(200);
    let number = |name: &str| stats["commits"][name].as_i64().expect("a number");
    (number("commits"), number("requests"))
}

/// Waits until the server has taken so many requests in all. Looking on is none.
fn taken(server: &Server, count: i64) {
    let mut client = server.client();
    loop {
        let requests = client.get("/stats").expect(200)["commits"]["requests"].as_i64().expect("a number");
        assert!(requests <= count, "{requests} requests, {count} were sent");
        if requests == count {
            return;
        }
    }
}

#[test]
fn a_waiting_claim_starts_the_job_one_commit_after_the_enqueue() {
    let server = Server::start();
    for round in 0..10 {
        let first = commits(&server);
        let held = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| take(&mut server.client(), "w", "q"));
            // The claim has been looked at and found nothing.
            taken(&server, first.1 + 1);
            let before = commits(&server);
            let id = enqueue(&mut server.client(), &json!({"type": "t", "queue": "q"}));
            let held = waiting.join().expect("the claimer");
            let after = commits(&server);
            assert_eq!(held.id, id);
            assert_eq!((after.0 - before.0, after.1 - before.1), (1, 1), "round {round}");
            held
        });
        // Accepted and started at the same instant: there is nothing between the two.
        assert_eq!(held.job["created_at"], held.job["claimed_at"], "{}", held.job);
        held.complete(&mut server.client());
    }
}

#[test]
fn one_commit_serves_as_many_waiting_claims_as_it_brings_jobs() {
    let server = Server::start();
    let first = commits(&server);
    let mut ids: Vec<i64> = std::thread::scope(|scope| {
        let (done, serving) = std::sync::mpsc::channel();
        for n in 0..5 {
            let (mut client, done) = (server.client(), done.clone());
            scope.spawn(move || done.send(take(&mut client, &format!("w{n}"), "q").id));
        }
        taken(&server, first.1 + 5);
        let mut ids = Vec::new();
        for count in [3, 2] {
            let before = commits(&server);
            enqueue_all(&mut server.client(), &vec![json!({"type": "t", "queue": "q"}); count]);
            ids.extend((0..count).map(|_| serving.recv().expect("a claimer")));
            let after = commits(&server);
            assert_eq!((after.0 - before.0, after.1 - before.1), (1, 1), "{count} jobs");
        }
        ids
    });
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 5);
}

#[test]
fn requests_that_come_together_share_a_commit() {
    let server = Server::start();
    let before = commits(&server);
    let clients: Vec<u32> = (0..64).collect();
    in_parallel(
        (64, &clients),
        || server.client(),
        |client, n| {
            for _ in 0..10 {
                id_of(&client.post("/jobs", &json!({"type": "t", "payload": n})).expect(201));
            }
        },
    );
    let after = commits(&server);
    assert_eq!(after.1 - before.1, 640);
    assert!(after.0 - before.0 < 320, "{} commits for 640 requests", after.0 - before.0);
}
