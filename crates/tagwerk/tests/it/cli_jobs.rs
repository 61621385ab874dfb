//! Jobs, review, types and overviews on the command line, against the real server.

use serde_json::{Value, json};

use crate::cli_ran::{run, run_alone, run_with_input};
use crate::server::Server;
use crate::support::delete;

/// A job that failed for good, with this payload; its id.
fn failed(server: &Server, payload: &Value) -> String {
    let job = server.post("/jobs", &json!({"type": "mail", "payload": payload, "queue": "q"})).expect(201);
    let claim = json!({"worker_id": "w", "queues": ["q"]});
    let held = server.post("/jobs/claim", &claim).expect(200);
    let report = json!({"lease": held["lease"], "class": "permanent", "error": "no such\naddress"});
    server.post(&format!("/jobs/{}/fail", job["id"]), &report).expect(200);
    job["id"].to_string()
}

#[test]
fn every_option_of_enqueue_reaches_the_job() {
    let server = Server::start();
    let args = "enqueue mail --queue q --priority high --idempotency-key k --idempotency-scope ttl \
                --idempotency-ttl 2h --on-duplicate existing --on-mismatch flag --delay 90s --max-age 7d \
                --max-retries 5 --max-lease-losses 2 --lease 2.5 --timeout 5m --retry-base 1s --retry-factor 1.5 \
                --retry-cap 1h --retry-jitter none --on-unknown review --subject order:47:11 --subject-version 3 \
                --correlation-id c --traceparent 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 \
                --payload {\"a\":1} --json";
    let args: Vec<&str> = args.split_whitespace().collect();
    let job = run(&server, &args).json();
    for (field, value) in [
        ("type", json!("mail")),
        ("queue", json!("q")),
        ("priority_value", json!(20)),
        ("idempotency_key", json!("k")),
        ("idempotency_scope", json!("ttl")),
        ("idempotency_ttl_seconds", json!(7200)),
        ("max_age_seconds", json!(604_800)),
        ("max_retries", json!(5)),
        ("max_lease_losses", json!(2)),
        ("lease_seconds", json!(2.5)),
        ("timeout_seconds", json!(300)),
        ("retry", json!({"base_seconds": 1, "factor": 1.5, "cap_seconds": 3600, "jitter": "none"})),
        ("on_unknown", json!("review")),
        ("subject", json!({"kind": "order", "id": "47:11", "version": 3})),
        ("correlation_id", json!("c")),
        ("payload", json!({"a": 1})),
    ] {
        assert_eq!(job[field], value, "{field}");
    }
    let explained = run(&server, &["jobs", "explain", "1"]);
    assert!(explained.expect(0).contains("scheduled"), "{explained:?}");
    let later = "2030-07-01T12:00:00+02:00";
    let job = run(&server, &["enqueue", "t", "--run-at", later, "--priority", "77", "--json"]).json();
    assert_eq!(
        (&job["available_at"], &job["priority_value"]),
        (&json!("2030-07-01T10:00:00.000Z"), &json!(77))
    );
}

#[test]
fn payloads_come_from_argument_file_and_stdin_byte_for_byte() {
    let server = Server::start();
    let payload = r#"{"b": 123456789012345678901234567890,"a":1.10, "a":"\u00e9"}"#;
    std::fs::write(server.dir().join("p.json"), format!("\n{payload}\n")).expect("a file");
    run(&server, &["enqueue", "t", "--payload", payload]).expect(0);
    run(&server, &["enqueue", "t", "--payload", "@p.json"]).expect(0);
    run_with_input(&server, &["enqueue", "t", "--payload", "-"], payload.as_bytes()).expect(0);
    run(&server, &["enqueue", "t", "--payload", "-17"]).expect(0);
    for id in 1..=3 {
        let shown = run(&server, &["jobs", "show", &id.to_string()]);
        assert!(shown.expect(0).contains(payload), "{shown:?}");
    }
    assert_eq!(server.get("/jobs/4").expect(200)["payload"], -17);
}

#[test]
fn a_key_makes_a_job_once_and_other_content_is_warned_of() {
    let server = Server::start();
    let enqueue = |payload| run(&server, &["enqueue", "t", "--idempotency-key", "k", "--payload", payload]);
    assert_eq!(enqueue("1").expect(0), "job 1 created\n");
    let again = enqueue("1");
    assert_eq!((again.expect(0), again.stderr.as_str()), ("job 1 existed already and is pending\n", ""));
    let other = enqueue("2");
    assert!(other.stderr.starts_with("warning: ") && other.code == Some(0), "{other:?}");
    // What replaced the old content is what counts.
    let args = ["enqueue", "t", "--idempotency-key", "k", "--payload", "3", "--on-duplicate", "replace"];
    let replaced = run(&server, &args);
    assert_eq!((replaced.expect(0), replaced.stderr.as_str()), ("job 1 existed and was rewritten\n", ""));
    let elsewhere = run(&server, &[&args[..], &["--queue", "r"]].concat());
    assert!(
        elsewhere.expect(0).contains("is pending") && elsewhere.stderr.starts_with("warning: "),
        "{elsewhere:?}"
    );
    let args = ["enqueue", "t", "--idempotency-key", "k", "--on-duplicate", "conflict"];
    let conflict = run(&server, &args);
    assert!(conflict.fails(1).contains("job 1 is pending"), "{conflict:?}");
}

#[test]
fn other_content_for_the_key_of_a_deleted_job_is_warned_of_too() {
    let server = Server::start();
    let enqueue = |payload| {
        let key = ["--idempotency-key", "k", "--idempotency-scope", "forever"];
        run(&server, &[&["enqueue", "t", "--payload", payload][..], &key].concat())
    };
    assert_eq!(enqueue("1").expect(0), "job 1 created\n");
    delete(&mut server.client(), "/jobs/1").expect(200);
    let again = enqueue("1");
    let told = "job 1 existed already, was cancelled and is deleted\n";
    assert_eq!((again.expect(0), again.stderr.as_str()), (told, ""));
    let other = enqueue("2");
    assert!(other.expect(0) == told && other.stderr.starts_with("warning: "), "{other:?}");
}

#[test]
fn json_is_exactly_what_the_server_says() {
    let server = Server::start();
    failed(&server, &json!({"to": "nobody"}));
    for (args, path) in [
        (&["jobs", "list"][..], "/jobs"),
        (&["jobs", "list", "--status", "failed", "--type", "mail"], "/jobs?status=failed&type=mail"),
        (&["jobs", "show", "1"], "/jobs/1"),
        (&["jobs", "attempts", "1"], "/jobs/1/attempts"),
        (&["jobs", "explain", "1"], "/jobs/1/explain"),
        (&["review", "list", "--class", "permanent"], "/review?class=permanent"),
        (&["types", "list"], "/types"),
        (&["types", "show", "mail"], "/types/mail"),
        (&["openapi"], "/openapi.json"),
    ] {
        let ran = run(&server, &[args, &["--json"]].concat());
        assert_eq!(ran.expect(0).trim_end_matches('\n'), server.get(path).text(), "{args:?}");
    }
    for args in [["queues"], ["workers"], ["stats"]] {
        assert!(run(&server, &[&args[..], &["--json"]].concat()).json().is_object());
    }
}

#[test]
fn a_list_goes_on_over_pages_that_found_nothing() {
    /// Rows that the server looks at for one page.
    const PAGE_ROWS: usize = 50_000;
    let server = Server::start();
    let line = "{\"type\":\"common\",\"delay_seconds\":86400}\n";
    let mut lines = line.repeat(PAGE_ROWS + 1);
    lines.push_str("{\"type\":\"rare\"}\n");
    run_with_input(&server, &["enqueue", "--bulk", "-"], lines.as_bytes()).expect(0);
    let page = server.get("/jobs?type=rare").expect(200);
    assert_eq!((&page["jobs"], page["next"].is_string()), (&json!([]), true), "such a page: {page}");
    for more in [&["--json"][..], &[]] {
        let found = run(&server, &[&["jobs", "list", "--type", "rare"], more].concat());
        assert!(found.expect(0).contains("rare") && found.stderr.is_empty(), "{found:?}");
    }
    let none = run(&server, &["jobs", "list", "--type", "none"]);
    assert_eq!((none.expect(0), none.stderr.as_str()), ("no jobs\n", ""));
}

#[test]
fn lists_are_tables_without_payloads() {
    let server = Server::start();
    assert_eq!(run(&server, &["jobs", "list"]).expect(0), "no jobs\n");
    assert_eq!(run(&server, &["review", "list"]).expect(0), "nothing to review\n");
    failed(&server, &json!({"secret": "geheim"}));
    server.post("/jobs", &json!({"type": "a b", "idempotency_key": "k7", "payload": "geheim"})).expect(201);
    let jobs = run(&server, &["jobs", "list"]);
    let mut lines = jobs.expect(0).lines();
    assert_eq!(
        lines.next().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).as_deref(),
        Some("ID STATUS TYPE QUEUE RUN UPDATED ABOUT")
    );
    assert!(
        lines.next().is_some_and(|line| line.starts_with("1   failed   mail  q        1/1  ")),
        "{jobs:?}"
    );
    assert!(lines.next().is_some_and(|line| line.contains("a b") && line.ends_with("k7")), "{jobs:?}");
    let review = run(&server, &["review", "list"]);
    assert!(
        review.expect(0).contains("permanent") && review.stdout.contains("no such address"),
        "{review:?}"
    );
    for args in [
        &["queues"][..],
        &["workers"],
        &["types", "list"],
        &["stats"],
        &["jobs", "list"],
        &["review", "list"],
    ] {
        let ran = run(&server, args);
        assert!(ran.expect(0).lines().count() >= 2 && !ran.stdout.contains("geheim"), "{ran:?}");
    }
    let page = run(&server, &["jobs", "list", "--limit", "1"]);
    assert!(page.stderr.contains("--after 1"), "{page:?}");
    assert!(!run(&server, &["jobs", "list", "--after", "1"]).expect(0).contains("mail"));
}

#[test]
fn text_of_others_does_not_reach_the_terminal_raw() {
    let server = Server::start();
    server.post("/jobs", &json!({"type": "t", "payload": "x\u{9b}2Jy"})).expect(201);
    let held = server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    let report = json!({"lease": held["lease"], "class": "permanent", "error": "a\u{1b}[2Jb\u{202e}c"});
    server.post("/jobs/1/fail", &report).expect(200);
    for args in [&["review", "list"][..], &["jobs", "show", "1"]] {
        let ran = run(&server, args);
        assert!(ran.expect(0).contains("[2Jb"), "{ran:?}");
        assert!(!ran.stdout.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{ran:?}");
    }
}

#[test]
fn cancel_takes_several_and_one_that_is_refused_keeps_none_of_the_others() {
    let server = Server::start();
    for _ in 0..3 {
        server.post("/jobs", &json!({"type": "t"})).expect(201);
    }
    server.post("/jobs/2/cancel", &json!({})).expect(200);
    let ran = run(&server, &["jobs", "cancel", "1", "99", "3", "--reason", "not needed"]);
    assert_eq!(ran.expect(1), "job 1 is cancelled\njob 3 is cancelled\n");
    assert!(ran.stderr.contains("job 99: No such job"), "{ran:?}");
    let history = run(&server, &["jobs", "show", "1"]);
    assert!(history.expect(0).contains("not needed"), "{history:?}");
}

#[test]
fn a_job_can_be_named_by_its_key() {
    let server = Server::start();
    for scope in ["unfinished", "unfinished", "ttl"] {
        let job = json!({"type": "t", "idempotency_key": "order 7", "idempotency_scope": scope});
        let id = server.post("/jobs", &job).expect(201)["id"].clone();
        server.post(&format!("/jobs/{id}/cancel"), &json!({})).expect(200);
    }
    // Of several that had it, the last one is meant.
    assert_eq!(run(&server, &["jobs", "show", "key:order 7", "--json"]).json()["id"], 3);
    assert_eq!(run(&server, &["jobs", "wait", "key:order 7"]).expect(1), "job 3 is cancelled\n");
    run(&server, &["jobs", "explain", "key:order 7"]).expect(0);
    run(&server, &["jobs", "attempts", "key:order 7"]).expect(0);
    let missing = run(&server, &["jobs", "show", "key:order 8"]);
    assert!(missing.fails(1).contains("no job with the idempotency key order 8"), "{missing:?}");
    server.post("/jobs", &json!({"type": "t", "idempotency_key": "k"})).expect(201);
    let ran = run(&server, &["jobs", "cancel", "key:gone", "key:k"]);
    assert_eq!(ran.expect(1), "job 4 is cancelled\n");
}

#[test]
fn retry_reads_the_job_first_and_can_change_payload_and_retries() {
    let server = Server::start();
    let first = failed(&server, &json!({"to": "nobody"}));
    let second = failed(&server, &json!({"to": "noone"}));
    let third = failed(&server, &json!({}));
    let args =
        ["review", "retry", &first, "--payload", "{\"to\":\"you\"}", "--max-retries", "0", "--note", "asked"];
    let ran = run(&server, &args);
    assert!(ran.expect(0).starts_with(&format!("job {first} is pending, due ")), "{ran:?}");
    let job = server.get(&format!("/jobs/{first}")).expect(200);
    assert_eq!((&job["payload"], &job["max_retries"]), (&json!({"to": "you"}), &json!(0)));
    let shown = run(&server, &["jobs", "show", &first]);
    assert!(shown.expect(0).contains("asked"), "{shown:?}");
    // The second click, and a version that is not the job's any more.
    let again = run(&server, &["review", "retry", &first, &second]);
    assert!(
        again.stderr.contains("not-failed") && again.expect(1).contains(&format!("job {second}")),
        "{again:?}"
    );
    let stale = run(&server, &["review", "retry", &third, "--seen-version", "1"]);
    assert!(stale.fails(1).contains("version-changed"), "{stale:?}");
    let json = run(&server, &["review", "retry", &third, "--json"]).json();
    assert_eq!(json["status"], "pending");
}

#[test]
fn discard_needs_a_reason_and_keeps_it() {
    let server = Server::start();
    let id = failed(&server, &json!({}));
    let ran = run(&server, &["review", "discard", &id, "--reason", "no longer sold"]);
    assert_eq!(ran.expect(0), format!("job {id} is cancelled\n"));
    assert!(run(&server, &["jobs", "show", &id]).expect(0).contains("no longer sold"));
    run(&server, &["review", "discard", &id, "--reason", "again"]).expect(0);
}

#[test]
fn wait_ends_with_the_job() {
    let server = Server::start();
    server.post("/jobs", &json!({"type": "t"})).expect(201);
    let ran = run(&server, &["jobs", "wait", "1", "--timeout", "0.05s"]);
    assert!(ran.expect(5).starts_with("job 1 is pending"), "{ran:?}");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| run(&server, &["jobs", "wait", "1", "--json"]));
        let held = server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
        server.post("/jobs/1/complete", &json!({"lease": held["lease"], "result": [7]})).expect(200);
        assert_eq!(waiting.join().expect("its end").json()["result"], json!([7]));
    });
    assert_eq!(run(&server, &["jobs", "wait", "1"]).expect(0), "job 1 is completed\n");
    let id = failed(&server, &json!({}));
    assert_eq!(run(&server, &["jobs", "wait", &id]).expect(1), format!("job {id} is failed (permanent)\n"));
}

#[test]
fn types_are_set_field_by_field() {
    let server = Server::start();
    let set = |args: &[&str]| run(&server, &[&["types", "set", "mail", "--json"], args].concat()).json();
    let info = set(&["--max-retries", "9", "--retry-base", "30s", "--owner", "billing", "--priority", "low"]);
    assert_eq!((&info["max_retries"], &info["retry"]["base_seconds"]), (&json!(9), &json!(30)));
    let info = set(&["--lease", "2m", "--retry-factor", "3", "--unset", "owner"]);
    assert_eq!((&info["max_retries"], &info["lease_seconds"]), (&json!(9), &json!(120)));
    assert_eq!((&info["retry"]["base_seconds"], &info["retry"]["factor"]), (&json!(30), &json!(3.0)));
    assert_eq!(info["owner"], json!(null));
    let job = server.post("/jobs", &json!({"type": "mail"})).expect(201);
    assert_eq!((&job["max_retries"], &job["priority"]), (&json!(9), &json!("low")));
    let shown = run(&server, &["types", "show", "mail"]);
    assert!(shown.expect(0).contains("base 30 s, factor 3"), "{shown:?}");
    let bare = run(&server, &["types", "delete", "mail"]);
    assert!(bare.expect(0).contains("the server's defaults hold"), "{bare:?}");
}

#[test]
fn check_opens_the_store_itself_beside_a_server_or_without_one() {
    let mut server = Server::start();
    failed(&server, &json!({}));
    let check = |dir: &std::path::Path, args: &[&str]| run_alone(dir, &[&["check"], args].concat());
    for args in [&["--store", "sqlite:tagwerk.db"][..], &["--integrity"]] {
        assert_eq!(check(server.dir(), args).expect(0), "tagwerk.db: clean (1 jobs, 1 ledger rows)\n");
    }
    server.kill();
    let ran = check(server.dir(), &["--json"]);
    assert_eq!(ran.json(), json!({"jobs": 1, "lanes": 1, "findings": [], "more": 0}));
    let missing = check(server.dir(), &["--store", "sqlite:gone.db"]);
    assert!(missing.fails(4).contains("gone.db"), "{missing:?}");
    std::fs::write(server.dir().join("text.db"), "no database at all, but long enough").expect("a file");
    let other = check(server.dir(), &["--store", "sqlite:text.db"]);
    assert!(other.fails(4).contains("text.db"), "{other:?}");
    let postgres = check(server.dir(), &["--store", "postgres://u:geheim@h/db"]);
    assert!(!postgres.fails(2).contains("geheim"), "{postgres:?}");
}

#[test]
fn config_shows_settings_with_their_source() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("tagwerk.toml"), "max_retries = 7\n").expect("a file");
    let ran = run_alone(dir.path(), &["config", "--set", "lease.default=90s"]);
    assert!(ran.expect(0).contains("max_retries = 7  # tagwerk.toml"), "{ran:?}");
    assert!(ran.stdout.contains("flag --set"), "{ran:?}");
    let wrong = run_alone(dir.path(), &["config", "--set", "max_retry=1"]);
    assert!(wrong.fails(2).contains("did you mean max_retries?"), "{wrong:?}");
}

#[test]
fn a_server_on_a_socket_is_reached_by_its_path() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut command = crate::server::tagwerk(dir.path(), &["serve", "--listen", "unix:t.sock"]);
    let mut server = command.stdout(std::process::Stdio::piped()).spawn().expect("the binary");
    let mut line = String::new();
    let stdout = server.stdout.take().expect("its stdout");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).expect("its first line");
    let ran = run_alone(dir.path(), &["enqueue", "t", "--url", "unix:t.sock"]);
    server.kill().expect("to end the server");
    server.wait().expect("its end");
    assert_eq!(ran.expect(0), "job 1 created\n", "{line}");
}
