//! K25: figures that operators decide by. (After kills they are held against the rows in `crash`.)

use serde_json::{Value, json};

use crate::client::Client;
use crate::server::Server;
use crate::support::{
    Sentinel, at_once, delete, enqueue, enqueue_all, list, operate, settled, take, take_briefly, text,
};

/// What clients have seen happen.
#[derive(Debug, Default)]
struct Saw {
    enqueues: i64,
    claims: i64,
    completions: i64,
    failures: i64,
    releases: i64,
    retries: i64,
    lease_losses: i64,
    time_outs: i64,
    reviews: i64,
    review_retries: i64,
}

/// Removing a worker counted one more processed job.
#[test]
fn f149_f152_totals_are_what_clients_saw_and_counts_are_the_rows() {
    let mut server = Server::start();
    let mut saw = Saw::default();
    for round in 0..2 {
        let mut client = server.client();
        scene(&mut client, &mut saw, round);
        assert_figures(&server, &saw, round);
        server.restart();
        assert_figures(&server, &saw, round);
    }
}

/// Every kind of event, and calls that are refused or repeated and must not count.
fn scene(client: &mut Client, saw: &mut Saw, round: usize) {
    let queue = &*format!("q{round}");
    let plain = json!({"type": "t", "queue": queue, "retry": at_once()});
    // Enqueues: one, three in bulk, one key twice, one refused.
    let first = enqueue(client, &plain);
    enqueue_all(client, &vec![plain.clone(); 3]);
    let mut keyed = plain.clone();
    keyed["idempotency_key"] = json!(format!("k-{first}"));
    let id = enqueue(client, &keyed);
    assert_eq!(client.post("/jobs", &keyed).status, 200);
    client.post("/jobs", &json!({"type": "t", "max_retries": -1})).problem(422, "invalid-request");
    saw.enqueues += 5;
    // A completion, said twice, and contradicted.
    let held = take(client, "w", queue);
    held.complete(client);
    assert_eq!(held.call(client, "complete", json!({})).header("report-replayed"), Some("true"));
    held.call(client, "fail", json!({})).problem(409, "already-reported");
    // A failure that is retried, then a release, then a completion.
    take(client, "w", queue).fail(client, "transient");
    take(client, "w", queue).call(client, "release", json!({})).expect(200);
    take(client, "w2", queue).complete(client);
    // A permanent failure, retried from review twice, once in vain.
    let failed = take(client, "w2", queue);
    let version = failed.fail(client, "permanent")["version"].clone();
    let retry = json!({"seen_version": version});
    client.post(&format!("/jobs/{}/retry", failed.id), &retry).expect(200);
    client.post(&format!("/jobs/{}/retry", failed.id), &retry).problem(409, "not-failed");
    saw.claims += 5;
    saw.completions += 2;
    saw.failures += 2;
    saw.releases += 1;
    saw.retries += 1;
    saw.reviews += 1;
    saw.review_retries += 1;
    losses(client, saw);
    delete(client, &format!("/jobs/{id}")).expect(200);
    delete(client, &format!("/jobs/{id}")).problem(404, "job-not-found");
    client.post(&format!("/jobs/{first}/cancel"), &json!({})).problem(409, "already-completed");
}

/// A loss, a time-out, a loss into review, and a forced end.
fn losses(client: &mut Client, saw: &mut Saw) {
    let of = |queue: &str, losses: u8, timeout: u8| json!({"type": "t", "queue": queue, "retry": at_once(), "max_lease_losses": losses, "timeout_seconds": timeout});
    enqueue(client, &of("lost", 4, 60));
    enqueue(client, &of("timed", 4, 1));
    let last = enqueue(client, &of("last", 1, 60));
    let forced = enqueue(client, &of("forced", 1, 60));
    for queue in ["lost", "last"] {
        take_briefly(client, "dies", queue);
    }
    take(client, "slow", "timed");
    take(client, "w", "forced");
    Sentinel::until(client, 1).wait(client);
    operate(client, forced, "force-fail").expect(200);
    assert_eq!(settled(client, last)["failure"]["reason"], "worker_lost");
    for queue in ["lost", "timed"] {
        take(client, "w", queue).complete(client);
    }
    saw.enqueues += 5;
    saw.claims += 7;
    saw.completions += 2;
    // With the sentinel's.
    saw.lease_losses += 3;
    saw.time_outs += 1;
    saw.retries += 2;
    saw.reviews += 3;
}

fn assert_figures(server: &Server, saw: &Saw, round: usize) {
    let stats = server.get("/stats").expect(200);
    let totals = json!({
        "enqueues": saw.enqueues, "claims": saw.claims, "completions": saw.completions,
        "failures": saw.failures, "releases": saw.releases, "retries": saw.retries,
        "lease_losses": saw.lease_losses, "time_outs": saw.time_outs, "reviews": saw.reviews,
        "review_retries": saw.review_retries,
    });
    assert_eq!(stats["totals"], totals, "round {round}");
    let jobs = list(&mut server.client(), "");
    let rows = |status: &str| jobs.iter().filter(|job| job["status"] == status).count();
    for status in ["pending", "running", "completed", "failed", "cancelled"] {
        assert_eq!(stats["counts"][status], rows(status), "{status} in round {round}");
    }
    assert_eq!(stats["counts"]["pruned"], round + 1);
    assert_eq!(stats["counts"]["enqueued"], jobs.len() + round + 1);
    metrics(server, &stats, round);
}

/// The gauges say the same.
fn metrics(server: &Server, stats: &Value, round: usize) {
    let answer = server.get("/metrics");
    let sum = |status: &str| -> f64 {
        answer
            .text()
            .lines()
            .filter(|line| {
                line.starts_with("tagwerk_jobs{") && line.contains(&format!("status=\"{status}\""))
            })
            .filter_map(|line| line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok()))
            .sum()
    };
    for status in ["pending", "failed"] {
        let said = stats["counts"][status].as_f64().expect("a count");
        assert!(
            (sum(status) - said).abs() < 0.5,
            "{status} in round {round}: {}",
            text(&json!(answer.text()))
        );
    }
}
