//! `tagwerk enqueue --bulk`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::cli_ran::{Ran, run, run_with_input};
use crate::server::{Server, tagwerk};
use crate::work_outage::{SocketServer, client};

fn bulk(server: &Server, text: impl AsRef<[u8]>) -> Ran {
    std::fs::write(server.dir().join("jobs.ndjson"), text).expect("a file");
    run(server, &["enqueue", "--bulk", "jobs.ndjson"])
}

/// So many jobs with keys.
fn jobs(count: usize) -> String {
    (1..=count).fold(String::new(), |mut text, number| {
        writeln!(text, r#"{{"type":"t","idempotency_key":"k{number}","payload":{{"n":{number}}}}}"#)
            .expect("memory");
        text
    })
}

fn enqueued(server: &Server) -> Value {
    server.get("/stats").expect(200)["counts"]["enqueued"].clone()
}

#[test]
fn a_file_goes_in_in_order_and_again_makes_nothing_new() {
    let server = Server::start();
    let file = jobs(2_500);
    let ran = bulk(&server, &file);
    assert_eq!((ran.expect(0), ran.stderr.as_str()), ("created 2500, existing 0, refused 0\n", ""));
    for id in [1, 1_000, 1_001, 2_500] {
        assert_eq!(server.get(&format!("/jobs/{id}")).expect(200)["payload"]["n"], id);
    }
    assert_eq!(bulk(&server, &file).expect(0), "created 0, existing 2500, refused 0\n");
    // What was interrupted is started again, with the rest.
    let more = run_with_input(&server, &["enqueue", "--bulk", "-"], jobs(2_600).as_bytes());
    assert_eq!(more.expect(0), "created 100, existing 2500, refused 0\n");
    assert_eq!(enqueued(&server), 2_600);
}

#[test]
fn lines_that_are_no_jobs_are_named_and_the_rest_goes_on() {
    let server = Server::start();
    let deep =
        format!(r#"{{"type":"t","idempotency_key":"d","payload":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let lines = [
        r#"{"type":"t","idempotency_key":"a"}"#,
        r#"{"type":"t","#,
        "",
        "[]",
        r#"{"type":"t","max_retry":3,"idempotency_key":"b"}"#,
        r#"{"idempotency_key":"c"}"#,
        &deep,
        r#"{"type":"t","idempotency_key":"e"}"#,
    ];
    let ran = bulk(&server, lines.join("\n"));
    assert_eq!(ran.expect(1), "created 2, existing 0, refused 5\n");
    for (line, says) in
        [(2, "not JSON"), (4, "not a JSON object"), (5, "max_retries"), (6, "type"), (7, "invalid-json")]
    {
        let start = format!("line {line}: ");
        let said = ran.stderr.lines().find(|said| said.starts_with(&start)).unwrap_or_default();
        assert!(said.contains(says), "{line} {says}: {}", ran.stderr);
    }
    assert_eq!(enqueued(&server), 2);
}

#[test]
fn refusals_as_json_name_line_and_problem() {
    let server = Server::start();
    let input = b"{\"type\":\"t\",\"idempotency_key\":\"a\"}\n{\"type\":\"\"}\nnonsense\n";
    let ran = run_with_input(&server, &["enqueue", "--bulk", "-", "--json"], input);
    let lines: Vec<Value> =
        ran.expect(1).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 3, "{ran:?}");
    let refused: Vec<_> = lines[..2].iter().map(|line| (&line["line"], &line["status"])).collect();
    assert!(
        refused.contains(&(&json!(2), &json!(422))) && refused.contains(&(&json!(3), &json!(400))),
        "{ran:?}"
    );
    assert_eq!(lines[2], json!({"done": true, "created": 1, "existing": 0, "refused": 2}));
}

#[test]
fn lines_without_a_key_are_warned_of_once() {
    let server = Server::start();
    let ran =
        bulk(&server, "{\"type\":\"t\",\"idempotency_key\":\"a\"}\n{\"type\":\"t\"}\n{\"type\":\"t\"}\n");
    assert_eq!(ran.expect(0), "created 3, existing 0, refused 0\n");
    assert_eq!(ran.stderr.matches("line 2 has no idempotency_key").count(), 1, "{ran:?}");
    assert!(ran.stderr.contains("2 lines had no idempotency_key"), "{ran:?}");
}

#[test]
fn other_content_under_a_known_key_is_warned_of() {
    let server = Server::start();
    bulk(&server, "{\"type\":\"t\",\"idempotency_key\":\"a\",\"payload\":1}\n").expect(0);
    let ran = bulk(&server, "{\"type\":\"t\",\"idempotency_key\":\"a\",\"payload\":2}\n");
    assert_eq!(ran.expect(0), "created 0, existing 1, refused 0\n");
    assert!(ran.stderr.contains("other content"), "{ran:?}");
}

#[test]
fn large_jobs_go_in_and_too_large_ones_are_refused_alone() {
    let server = Server::start();
    let payload = "x".repeat(250 * 1024);
    let too_large = "x".repeat(300 * 1024);
    let endless = "x".repeat(5 * 1024 * 1024);
    let mut text = String::new();
    for number in 0..40 {
        let payload = if number == 17 { &too_large } else { &payload };
        writeln!(text, r#"{{"type":"t","idempotency_key":"k{number}","payload":"{payload}"}}"#)
            .expect("memory");
    }
    writeln!(text, r#"{{"type":"t","idempotency_key":"z","payload":"{endless}"}}"#).expect("memory");
    let ran = bulk(&server, text);
    assert_eq!(ran.expect(1), "created 39, existing 0, refused 2\n");
    assert!(ran.stderr.contains("line 18: ") && ran.stderr.contains("payload-too-large"), "{ran:?}");
    assert!(ran.stderr.contains("line 41: ") && ran.stderr.contains("body-too-large"), "{ran:?}");
}

#[test]
fn a_restart_of_the_server_in_the_middle_costs_and_doubles_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut server = SocketServer::start(dir.path());
    let mut bulk = tagwerk(dir.path(), &["enqueue", "--bulk", "-", "--url", "unix:t.sock"]);
    let mut bulk = bulk.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary");
    let mut stdin = bulk.stdin.take().expect("its stdin");
    let text = jobs(2_500);
    let (first, rest) = text.split_at(text.find("\"k1001\"").expect("a line"));
    let rest = rest.to_owned();
    stdin.write_all(first.as_bytes()).expect("a part");
    while !client(dir.path(), &["jobs", "list", "--after", "999"]).contains("1000") {}
    server.kill();
    // More than a pipe holds: it is read when the server is there again.
    let writer = std::thread::spawn(move || stdin.write_all(rest.as_bytes()).expect("the rest"));
    let _server = SocketServer::start(dir.path());
    writer.join().expect("to have written all");
    let output = bulk.wait_with_output().expect("its end");
    // What was stored and not answered exists when it is sent again.
    let said = String::from_utf8_lossy(&output.stdout);
    let counts: Vec<u64> =
        said.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    let [created, existing, refused] = counts[..] else { panic!("{said}") };
    assert_eq!((created + existing, refused), (2_500, 0), "{said}");
    let stats: Value = serde_json::from_str(&client(dir.path(), &["stats", "--json"])).expect("JSON");
    assert_eq!(stats["counts"]["enqueued"], 2_500);
}

/// Nobody waits for a file to be whole: a pipe may stay open.
#[test]
fn lines_of_a_slow_pipe_go_in_as_they_come() {
    let server = Server::start();
    let mut bulk = tagwerk(server.dir(), &["enqueue", "--bulk", "-", "--json"]);
    let bulk = bulk.env("TAGWERK_URL", server.url()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut bulk = bulk.spawn().expect("the binary");
    let mut stdin = bulk.stdin.take().expect("its stdin");
    for count in 1..=3 {
        stdin
            .write_all(format!("{{\"type\":\"t\",\"idempotency_key\":\"{count}\"}}\n").as_bytes())
            .expect("a line");
        while enqueued(&server) != json!(count) {}
        if count == 1 {
            // Longer than a stream is kept open for nothing: the next line begins another.
            server.get("/jobs/1?wait_seconds=6").expect(200);
        }
    }
    drop(stdin);
    let output = bulk.wait_with_output().expect("its end");
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(said, json!({"done": true, "created": 3, "existing": 0, "refused": 0}));
}

/// A stream that is cut may have stored lines that nobody answered.
#[test]
fn lines_without_a_key_are_not_sent_again_when_nobody_knows() {
    let mut server = Server::start();
    let mut bulk = tagwerk(server.dir(), &["enqueue", "--bulk", "-"]);
    let bulk = bulk.env("TAGWERK_URL", server.url()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut bulk = bulk.stderr(Stdio::piped()).spawn().expect("the binary");
    let mut stdin = bulk.stdin.take().expect("its stdin");
    stdin.write_all(b"{\"type\":\"t\"}\n").expect("a line");
    while enqueued(&server) != json!(1) {}
    server.signal("STOP");
    stdin.write_all(b"{\"type\":\"t\"}\n").expect("a line");
    // It is on its way, or about to be; then the server is gone without a word.
    stdin.flush().expect("to flush");
    server.kill();
    let mut rest = vec![b'\n'; 100_000];
    rest.extend_from_slice(b"{\"type\":\"t\"}\n");
    // It may have ended by now.
    drop(stdin.write_all(&rest));
    drop(stdin);
    let output = bulk.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("stopped at line 2: ") && said.contains("1 lines are in (1 created"), "{said}");
}

#[test]
fn an_empty_file_is_no_error() {
    let server = Server::start();
    assert_eq!(bulk(&server, "").expect(0), "created 0, existing 0, refused 0\n");
    assert_eq!(bulk(&server, "\n\n").expect(0), "created 0, existing 0, refused 0\n");
}
