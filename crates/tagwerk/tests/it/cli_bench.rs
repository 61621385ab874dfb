//! `tagwerk bench` against the real server. Its figures are not judged here, its honesty is.

use std::process::Stdio;

use serde_json::{Map, Value, json};

use crate::cli_ran::{run, run_alone};
use crate::server::{Server, tagwerk};

const SMALL: [&str; 15] = [
    "bench",
    "--jobs",
    "300",
    "--warm-up",
    "30",
    "--in-flight",
    "1,8",
    "--workers",
    "4",
    "--bulk-jobs",
    "100",
    "--time",
    "60s",
    "--samples",
    "300",
];

/// The same tree with the kind of each value instead of the value.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), shape(value))).collect())
        }
        Value::Array(elements) => elements.iter().map(shape).collect(),
        Value::String(_) => json!("text"),
        Value::Number(_) => json!("number"),
        Value::Bool(_) => json!("bool"),
        Value::Null => Value::Null,
    }
}

#[test]
fn every_scenario_measures_what_was_asked_and_tells_it_in_a_stable_form() {
    let server = Server::start();
    let pid = server.pid().to_string();
    let report =
        run(&server, &[&SMALL[..], &["--json", "--backlog", "50", "--server-pid", &pid]].concat()).json();
    let scenarios = report["scenarios"].as_array().expect("scenarios");
    let names: Vec<_> = scenarios.iter().map(|outcome| outcome["name"].as_str().expect("a name")).collect();
    assert_eq!(
        names,
        ["enqueue-1", "enqueue-8", "bulk-json", "bulk-ndjson", "drain-bulk", "drain-single", "latency"]
    );
    for outcome in scenarios {
        let facts = [&outcome["jobs"], &outcome["warm_up_jobs"], &outcome["complete"], &outcome["errors"]];
        // What was under way when the last warm-up call came back does not count either.
        let jobs = outcome["jobs"].as_u64().expect("a number");
        assert!((1..=300).contains(&jobs), "{outcome}");
        assert_eq!(facts[1..], [&json!(30), &json!(true), &Value::Object(Map::new())], "{outcome}");
        let latency =
            ["p50", "p90", "p99", "max"].map(|name| outcome["latency_ms"][name].as_f64().expect(name));
        assert!(latency.is_sorted() && latency[0] > 0.0, "{outcome}");
        assert!(outcome["jobs_per_second"].as_f64().expect("a rate") > 0.0);
    }
    // Everything that was made was claimed and completed, by the scenarios or at the end.
    let counts = server.get("/stats").expect(200)["counts"].clone();
    assert_eq!(report["left"], json!({"completed": 7 * 330 + 50, "pending": 0, "running": 0}), "{counts}");
    assert_eq!(
        (&counts["completed"], &counts["enqueued"]),
        (&counts["enqueued"], &report["left"]["completed"])
    );
    assert_eq!(report["backlog"]["jobs"], 50);
    insta::assert_snapshot!("json", serde_json::to_string_pretty(&shape(&report)).expect("JSON"));
}

#[test]
fn only_its_own_queue_and_type_are_touched() {
    let server = Server::start();
    let job = server.post("/jobs", &json!({"type": "bench", "queue": "bench"})).expect(201);
    let args = [
        "bench",
        "--scenario",
        "drain-single,drain-bulk",
        "--jobs",
        "500",
        "--backlog",
        "20",
        "--backlog-in",
        "other",
    ];
    let table = run(&server, &args);
    assert!(table.expect(0).contains("drain-single") && table.stderr.contains("0 are pending"), "{table:?}");
    assert_eq!(server.get(&format!("/jobs/{}", job["id"])).expect(200)["attempt"], 0);
    let kept = run(&server, &[&args[..], &["--keep", "--json"]].concat()).json();
    assert_eq!(kept["left"], json!({"completed": 1100, "pending": 20, "running": 0}));
}

#[test]
fn another_machine_is_not_loaded_by_mistake() {
    let dir = tempfile::tempdir().expect("a folder");
    for url in ["http://192.0.2.1:7070", "http://example.org"] {
        let ran = run_alone(dir.path(), &["bench", "--url", url]);
        assert!(ran.fails(2).contains("--yes"), "{ran:?}");
    }
}

#[test]
fn an_interrupted_run_tells_what_it_has() {
    let server = Server::start();
    let args = [
        "bench",
        "--scenario",
        "enqueue,latency",
        "--in-flight",
        "2",
        "--jobs",
        "1000000",
        "--warm-up",
        "10",
        "--json",
    ];
    let bench = tagwerk(server.dir(), &args)
        .env("TAGWERK_URL", server.url())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary");
    let enqueued = || server.get("/stats").expect(200)["counts"]["enqueued"].as_i64().expect("a number");
    while enqueued() < 100 {}
    let interrupt = format!("kill -INT {}", bench.id());
    assert!(std::process::Command::new("sh").args(["-c", &interrupt]).status().expect("a shell").success());
    let output = bench.wait_with_output().expect("its end");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let scenarios = report["scenarios"].as_array().expect("scenarios");
    assert_eq!((&report["interrupted"], scenarios.len()), (&json!(true), 1));
    assert_eq!(scenarios[0]["complete"], false);
    assert!(scenarios[0]["jobs"].as_u64().expect("a number") >= 80, "{report}");
    assert_eq!((&report["left"]["pending"], &report["left"]["completed"]), (&json!(0), &json!(enqueued())));
}

#[test]
fn a_server_that_goes_away_ends_the_run() {
    let mut server = Server::start();
    let args = ["bench", "--scenario", "enqueue", "--in-flight", "4", "--jobs", "1000000", "--json"];
    let bench = tagwerk(server.dir(), &args)
        .env("TAGWERK_URL", server.url())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary");
    while server.get("/stats").expect(200)["counts"]["enqueued"].as_i64().expect("a number") < 50 {}
    server.kill();
    let output = bench.wait_with_output().expect("its end");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot reach a server"), "{output:?}");
}

#[test]
fn arguments_are_judged_at_their_edges() {
    let dir = tempfile::tempdir().expect("a folder");
    let long = "n".repeat(41);
    for wrong in [
        ["--in-flight", "0"],
        ["--in-flight", "8001"],
        ["--workers", "0"],
        ["--bulk-workers", "0"],
        ["--batch", "1001"],
        ["--bulk-jobs", "10001"],
        ["--keyed", "101"],
        ["--jobs", "0"],
        ["--name", ""],
        ["--name", "a\"b"],
        ["--name", &long],
        ["--scenario", "everything"],
    ] {
        let ran = run_alone(dir.path(), &["bench", wrong[0], wrong[1]]);
        assert!(ran.fails(2).contains(wrong[0]), "{wrong:?} {ran:?}");
    }
    let server = Server::start();
    let args = [
        "bench",
        "--scenario",
        "enqueue",
        "--in-flight",
        "1",
        "--jobs",
        "1",
        "--keyed",
        "100",
        "--name",
        &long[1..],
        "--json",
    ];
    let report = run(&server, &args).json();
    assert_eq!((&report["scenarios"][0]["jobs"], &report["left"]["completed"]), (&json!(1), &json!(1)));
    // Nothing was taken: the payload is over the server's limit.
    let ran = run(
        &server,
        &["bench", "--scenario", "enqueue", "--in-flight", "4", "--jobs", "10", "--payload-bytes", "300000"],
    );
    assert!(ran.expect(1).contains("payload-too-large"), "{ran:?}");
}
