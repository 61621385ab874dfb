//! Figures that operators decide by: each equals what really happened, and they agree with each other.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Client;
use crate::server::{Options, Server};

/// A server on which something of every kind has happened, and how often what has.
fn eventful() -> (Server, BTreeMap<&'static str, i64>) {
    let server =
        Server::with(Options::default().set("max_retries=1").set("retry.base=0").set("retry.jitter=none"));
    let mut client = server.client();
    let mut seen: BTreeMap<&'static str, i64> = BTreeMap::new();
    let mut count = |what: &'static str, n: i64| *seen.entry(what).or_default() += n;
    let claim = |client: &mut Client, lease: f64| {
        let body = json!({"worker_id": "w", "lease_seconds": lease, "wait_seconds": 10});
        client.post("/jobs/claim", &body).expect(200)
    };
    let call = |client: &mut Client, job: &Value, name: &str, body: Value| {
        let mut body = body;
        body["lease"] = job["lease"].clone();
        client.post(&format!("/jobs/{}/{name}", job["id"]), &body)
    };
    let jobs: Vec<Value> = (0..12).map(|n| json!({"type": if n % 2 == 0 { "a" } else { "b" }})).collect();
    client.post("/jobs/bulk", &json!({"jobs": jobs})).expect(200);
    count("enqueues", 12);
    // Done; and done again, which counts once.
    let job = claim(&mut client, 60.0);
    call(&mut client, &job, "complete", json!({})).expect(200);
    call(&mut client, &job, "complete", json!({})).expect(200);
    call(&mut client, &job, "fail", json!({})).problem(409, "already-reported");
    count("claims", 1);
    count("completions", 1);
    // Failed, tried again, failed for good, tried again by a person, done.
    let job = claim(&mut client, 60.0);
    call(&mut client, &job, "fail", json!({"error": "x"})).expect(200);
    let id = job["id"].clone();
    let release = |client: &mut Client, job: &Value| {
        call(client, job, "release", json!({"delay_seconds": 60})).expect(200)
    };
    let failed = loop {
        let job = claim(&mut client, 60.0);
        count("claims", 1);
        if job["id"] == id {
            break call(&mut client, &job, "fail", json!({})).expect(200);
        }
        release(&mut client, &job);
        count("releases", 1);
    };
    assert_eq!(failed["status"], "failed");
    count("claims", 1);
    count("failures", 2);
    count("retries", 1);
    count("reviews", 1);
    client.post(&format!("/jobs/{id}/retry"), &json!({"seen_version": failed["version"]})).expect(200);
    count("review_retries", 1);
    // Cancelled and erased.
    let last = client.get("/jobs?status=pending&limit=1000").expect(200);
    let last = last["jobs"].as_array().and_then(|jobs| jobs.last()).expect("a job")["id"].clone();
    client.post(&format!("/jobs/{last}/cancel"), &json!({})).expect(200);
    client.send(&format!("DELETE /jobs/{last}"), &[], b"").expect(200);
    // A lease that ran out.
    let job = claim(&mut client, 1.0);
    count("claims", 1);
    let start = Instant::now();
    while client.get(&format!("/jobs/{}", job["id"])).expect(200)["lease_losses"] == 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "the lease does not run out");
    }
    count("lease_losses", 1);
    count("retries", 1);
    (server, seen)
}

/// Removing a worker counted one more processed job.
#[test]
fn f152_totals_are_what_clients_saw() {
    let (mut server, seen) = eventful();
    let check = |server: &Server| {
        let totals = server.get("/stats").expect(200)["totals"].clone();
        for (what, times) in totals.as_object().expect("totals") {
            assert_eq!(
                times.as_i64(),
                Some(seen.get(what.as_str()).copied().unwrap_or_default()),
                "{what}: {totals}"
            );
        }
    };
    check(&server);
    server.restart();
    check(&server);
}

/// Two counts on one page contradicted each other.
#[test]
fn f149_counts_lists_and_gauges_agree() {
    let (mut server, _) = eventful();
    server.restart();
    let counts = server.get("/stats").expect(200)["counts"].clone();
    let metrics = server.get("/metrics");
    let mut sum = counts["pruned"].as_i64().expect("a count");
    for status in ["pending", "running", "completed", "failed", "cancelled"] {
        let listed = server.get(&format!("/jobs?status={status}&limit=1000")).expect(200);
        let listed = listed["jobs"].as_array().map(Vec::len).expect("jobs");
        assert_eq!(counts[status], json!(listed), "{status}");
        let gauges: i64 = metrics
            .text()
            .lines()
            .filter(|line| {
                line.starts_with("tagwerk_jobs{") && line.contains(&format!("status=\"{status}\""))
            })
            .filter_map(|line| line.rsplit(' ').next()?.parse::<i64>().ok())
            .sum();
        assert_eq!(counts[status], json!(gauges), "{status}");
        sum += gauges;
    }
    assert_eq!(counts["enqueued"], json!(sum));
    assert_eq!(counts["pruned"], 1);
    let by_queue = server.get("/queues").expect(200)["queues"][0]["counts"].clone();
    assert_eq!(by_queue, counts);
    let types = server.get("/types").expect(200);
    let enqueued: i64 = types["types"]
        .as_array()
        .expect("types")
        .iter()
        .filter_map(|kind| kind["counts"]["enqueued"].as_i64())
        .sum();
    assert_eq!(counts["enqueued"], json!(enqueued));
}

/// Far-off jobs held unacknowledged by a worker made the broker close the channel.
#[test]
fn f120_jobs_of_tomorrow_are_held_by_nobody() {
    let server = Server::start();
    let jobs: Vec<Value> = (0..1_000).map(|n| json!({"type": "t", "delay_seconds": 86_400 + n})).collect();
    let first = server.post("/jobs/bulk", &json!({"jobs": jobs})).expect(200)["results"][0]["job"].clone();
    let claim = server.post("/jobs/claim", &json!({"worker_id": "w", "wait_seconds": 0.2}));
    assert_eq!((claim.status, claim.text()), (200, "null"));
    assert_eq!(claim.header("tagwerk-next-due"), first["available_at"].as_str());
    let stats = server.get("/stats").expect(200);
    assert_eq!((&stats["counts"]["running"], &stats["commits"]["parked_claims"]), (&json!(0), &json!(0)));
    assert_eq!(stats["oldest_ready_age_seconds"], Value::Null);
    let why = server.get(&format!("/jobs/{}/explain", first["id"])).expect(200);
    assert_eq!((&why["reasons"][0]["kind"], &why["position"]), (&json!("scheduled"), &Value::Null));
}
