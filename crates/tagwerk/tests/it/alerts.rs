//! Alerts of the real server: what rings, what closes by itself, and who is told.

mod command;
mod receiver;
mod rings;
mod store;
mod webhook;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{Options, Server};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(40);

/// Looks often and closes at the first calm look; only what a test switches on rings.
fn quick() -> Options {
    let mut options = Options::default().set("alerts.every=0.1s").set("alerts.calm=0s");
    for kind in [
        "oldest_ready_age",
        "no_worker",
        "no_success",
        "failure_rate",
        "retry_rate",
        "review_new",
        "review_age",
        "run_time_p95",
        "release_loop",
    ] {
        options = options.set(&format!("alerts.{kind}=off"));
    }
    options
}

/// Asks again and again: what is awaited comes with time, and nothing outside tells of it.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < PATIENCE, "it did not come: {what}");
        // tidy: sleep because the server looks in its own time and tells nobody who waits
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Alerts of this status.
fn alerts(server: &Server, status: &str) -> Vec<Value> {
    let page = server.get(&format!("/alerts?status={status}")).expect(200);
    page["alerts"].as_array().expect("alerts").clone()
}

/// The alert of this kind, once it is there.
fn rung(server: &Server, status: &str, kind: &str) -> Value {
    eventually(&format!("{status} {kind}"), || {
        alerts(server, status).into_iter().find(|alert| alert["kind"] == kind)
    })
}

/// A figure of `/metrics`.
fn metric(server: &Server, series: &str) -> Option<f64> {
    let answer = server.get("/metrics");
    let line = answer
        .text()
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' ').map(str::to_owned))?;
    line.parse().ok()
}

/// What the command of a test has been told, one message a line.
fn told(server: &Server) -> Vec<Value> {
    let text = std::fs::read_to_string(server.dir().join("told")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a message")).collect()
}

/// A command that writes down what it is told.
fn writes_down(options: Options) -> Options {
    options.set("alerts.command=sh,-c,(cat; echo) >> told")
}

#[test]
fn an_acknowledgement_is_kept_audited_and_changes_nothing_else() {
    let server = Server::with(quick().set("alerts.no_worker=1s"));
    server.post("/jobs", &json!({"type": "t", "queue": "q"})).expect(201);
    let alert = rung(&server, "open", "no_worker");
    assert_eq!(alert["acknowledged_by"], Value::Null);
    assert_eq!(metric(&server, "tagwerk_alerts_unacknowledged{kind=\"no_worker\"}"), Some(1.0));
    let path = format!("/alerts/{}/ack", alert["id"]);
    let acked = server.post(&path, &json!({"note": "mine"})).expect(200);
    assert_eq!((&acked["acknowledged_by"], &acked["note"]), (&json!("local"), &json!("mine")));
    assert_eq!(acked["status"], "open");
    // The first one stays, and what changes nothing is not in the audit log.
    let again = server.post(&path, &json!({"note": "no, mine"})).expect(200);
    assert_eq!(again["note"], "mine");
    let audit = server.get("/audit").expect(200);
    let entries = audit["entries"].as_array().expect("entries");
    assert_eq!(entries.len(), 1, "{audit}");
    assert_eq!((&entries[0]["action"], &entries[0]["note"]), (&json!("alert.ack"), &json!("mine")));
    assert_eq!(metric(&server, "tagwerk_alerts{kind=\"no_worker\"}"), Some(1.0));
    assert_eq!(metric(&server, "tagwerk_alerts_unacknowledged{kind=\"no_worker\"}"), Some(0.0));

    server.post("/alerts/4711/ack", &json!({})).problem(404, "alert-not-found");
    server.post(&path, &json!({"notes": "x"})).problem(422, "invalid-request");
    server.get("/alerts?status=opne").problem(422, "invalid-request");

    let list = server.command(&["alerts", "--url", &server.url()]).output().expect("a list");
    let text = String::from_utf8(list.stdout).expect("text");
    assert!(list.status.success() && text.contains("no_worker") && text.contains("queue q"), "{text}");
    let ack = server.command(&["alerts", "ack", "1", "--url", &server.url()]).output().expect("an answer");
    let text = String::from_utf8(ack.stdout).expect("text");
    assert!(ack.status.success() && text.contains("is looked after by local"), "{text}");
    let ack = server.command(&["alerts", "ack", "77", "--url", &server.url()]).output().expect("an answer");
    assert!(!ack.status.success() && String::from_utf8_lossy(&ack.stderr).contains("no alert 77"), "{ack:?}");
}

#[test]
fn alerts_come_in_pages() {
    let server = Server::with(quick().set("alerts.no_worker=1s"));
    for queue in ["a", "b", "c"] {
        server.post("/jobs", &json!({"type": "t", "queue": queue})).expect(201);
    }
    eventually("three alerts", || (alerts(&server, "open").len() == 3).then_some(()));
    let first = server.get("/alerts?limit=2").expect(200);
    assert_eq!(first["alerts"].as_array().map(Vec::len), Some(2));
    let next = first["next"].as_str().expect("there are more");
    let second = server.get(&format!("/alerts?limit=2&after={next}")).expect(200);
    assert_eq!(second["alerts"].as_array().map(Vec::len), Some(1));
    assert_eq!(second["next"], Value::Null);
}
