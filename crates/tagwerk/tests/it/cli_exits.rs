//! How the command line fails: the exit code, and what it says to do next.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Stdio;

use serde_json::json;

use crate::cli_ran::{run, run_alone, run_with_input};
use crate::server::{Server, tagwerk};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// An address where nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    format!("http://{}", listener.local_addr().expect("its address"))
}

#[test]
fn help_is_stable_and_names_the_exit_codes() {
    let dir = folder();
    insta::assert_snapshot!("help", run_alone(dir.path(), &["--help"]).expect(0));
    insta::assert_snapshot!("help_work", run_alone(dir.path(), &["work", "--help"]).expect(0));
    insta::assert_snapshot!("help_bench", run_alone(dir.path(), &["bench", "--help"]).expect(0));
    insta::assert_snapshot!("help_chaos", run_alone(dir.path(), &["chaos", "--help"]).expect(0));
    insta::assert_snapshot!("help_enqueue", run_alone(dir.path(), &["enqueue", "--help"]).expect(0));
    assert!(run_alone(dir.path(), &["serve", "--help"]).expect(0).contains("Exit codes"));
    for command in ["jobs", "review", "types"] {
        assert!(
            run_alone(dir.path(), &[command, "list", "--help"]).expect(0).contains("--json"),
            "{command}"
        );
    }
}

#[test]
fn completions_are_scripts() {
    let dir = folder();
    for shell in ["bash", "zsh", "fish"] {
        assert!(run_alone(dir.path(), &["completions", shell]).expect(0).contains("tagwerk"), "{shell}");
    }
}

#[test]
fn no_server_is_code_3_and_says_how_to_start_one() {
    let (dir, url) = (folder(), nobody());
    let payload = ["enqueue", "t", "--url", &url];
    for args in
        [&payload[..], &["stats", "--url", &url], &["jobs", "wait", "7", "--timeout", "0", "--url", &url]]
    {
        let ran = run_alone(dir.path(), args);
        let said = ran.fails(3);
        assert!(said.contains(&url) && said.contains("Connection refused"), "{said}");
        assert!(said.contains("tagwerk serve") && said.contains("TAGWERK_URL"), "{said}");
    }
    std::fs::write(dir.path().join("jobs.ndjson"), "{\"type\":\"t\"}\n").expect("a file");
    run_alone(dir.path(), &["enqueue", "--bulk", "jobs.ndjson", "--url", &url]).fails(3);
    let socket = run_alone(dir.path(), &["stats", "--url", "unix:gone.sock"]);
    assert!(socket.fails(3).contains("unix:gone.sock"), "{socket:?}");
}

#[test]
fn something_else_listens_there() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a caller");
        let mut request = [0; 1024];
        let read = stream.read(&mut request).expect("its request");
        let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\n<p>Hi</p>";
        stream.write_all(page.as_bytes()).expect("to answer");
        String::from_utf8_lossy(&request[..read]).into_owned()
    });
    let ran = run_alone(folder().path(), &["stats", "--url", &url]);
    let said = ran.fails(3);
    assert!(
        said.contains("not Tagwerk's") && said.contains("<p>Hi</p>") && said.contains("check --url"),
        "{said}"
    );
    let asked = other.join().expect("the other server").to_lowercase();
    assert!(asked.contains("user-agent: tagwerk/"), "{asked}");
}

#[test]
fn what_cannot_be_checked_is_told_as_what_it_is() {
    let dir = folder();
    std::fs::write(dir.path().join("empty.db"), b"").expect("a file");
    for (store, says) in [("sqlite:.", "is a directory"), ("sqlite:empty.db", "is empty")] {
        let ran = run_alone(dir.path(), &["check", "--store", store]);
        let said = ran.fails(4);
        assert!(said.contains(says) && !said.contains("another application"), "{said}");
    }
}

#[test]
fn a_wrong_setting_sends_nobody_in_a_circle() {
    let dir = folder();
    for set in ["colour=5", "max_retries=-1"] {
        let ran = run_alone(dir.path(), &["config", "--set", set]);
        let said = ran.fails(2);
        assert!(!said.contains("`tagwerk config`"), "{said}");
        let ran = run_alone(dir.path(), &["check", "--set", set]);
        assert!(ran.fails(2).contains("put right what is named; then `tagwerk config`"), "{ran:?}");
    }
}

#[test]
fn addresses_that_are_none_are_usage_errors() {
    let dir = folder();
    for (url, says) in [
        ("ftp://example.org", "https://HOST:PORT"),
        ("localhost:7070", "http://HOST:PORT"),
        ("http://", "http://HOST:PORT"),
        ("http://u:geheim@127.0.0.1:7070", "user name"),
        ("unix:", "path of a socket"),
    ] {
        let ran = run_alone(dir.path(), &["stats", "--url", url]);
        assert!(ran.fails(2).contains(says), "{url}: {ran:?}");
    }
    let mut command = tagwerk(dir.path(), &["stats"]);
    let output = command.env("TAGWERK_URL", "ftp://example.org").output().expect("the binary");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn wrong_arguments_are_usage_errors_and_try_nothing() {
    let server = Server::start();
    let long = "x".repeat(9 * 1024 * 1024);
    std::fs::write(server.dir().join("long.json"), long).expect("a file");
    std::fs::write(server.dir().join("latin1.json"), b"\"\xfc\"").expect("a file");
    for (args, says) in [
        (&["enqueue"][..], "TYPE"),
        (&["enqueue", "t", "--payload", "{id: 7}"], "--payload is not JSON"),
        (&["enqueue", "t", "--payload", "@no-such-file"], "no-such-file"),
        (&["enqueue", "t", "--payload", "@long.json"], "more than"),
        (&["enqueue", "t", "--payload", "@latin1.json"], "not UTF-8"),
        (&["enqueue", "t", "--bulk", "x.ndjson"], "cannot be used with"),
        (&["enqueue", "--bulk", "no-such-file"], "no-such-file"),
        (&["enqueue", "--bulk", "jobs.ndjson", "--queue", "q"], "cannot be used with"),
        (&["enqueue", "t", "--run-at", "2026-07-01T12:00:00"], "zone"),
        (&["enqueue", "t", "--delay", "soon"], "90s"),
        (&["enqueue", "t", "--delay", "1s", "--run-at", "2026-07-01T12:00:00Z"], "cannot be used with"),
        (&["enqueue", "t", "--priority", "101"], "from 0 to 100"),
        (&["enqueue", "t", "--max-retries", "x"], "--max-retries"),
        (&["enqueue", "t", "--subject", "order"], "KIND:ID"),
        (&["enqueue", "t", "--on-unknown", "maybe"], "verify, review"),
        (&["jobs", "show", "x"], "key:IDEMPOTENCY-KEY"),
        (&["jobs", "list", "--status", "done"], "completed"),
        (&["jobs", "cancel"], "JOB"),
        (&["review", "discard", "1"], "--reason"),
        (&["review", "retry", "1", "--payload", "x"], "not JSON"),
        (&["types", "set", "t", "--unset", "colour"], "max-retries"),
        (&["work", "--queue", "q"], "COMMAND"),
        (&["work", "--concurrency", "0", "--", "true"], "--concurrency"),
        (&["work", "--max-jobs", "0", "--", "true"], "--max-jobs"),
        (&["jbos"], "jobs"),
    ] {
        let ran = run(&server, args);
        assert!(ran.fails(2).contains(says), "{args:?}: {ran:?}");
    }
    assert_eq!(server.get("/stats").expect(200)["counts"]["enqueued"], 0);
}

#[test]
fn what_the_server_refuses_is_code_1_with_its_reason_and_what_to_do() {
    let server = Server::start();
    for (args, says) in [
        (&["jobs", "show", "7"][..], "job-not-found"),
        (&["jobs", "explain", "7"], "job-not-found"),
        (&["jobs", "wait", "7"], "job-not-found"),
        (&["jobs", "cancel", "7"], "job 7: No such job"),
        (&["review", "retry", "7"], "job-not-found"),
        (&["types", "show", "t"], "type-not-found"),
        (&["types", "delete", "t"], "type-not-found"),
        (&["enqueue", "t", "--max-retries", "1001"], "max_retries"),
        (&["enqueue", "t", "--queue", "no spaces"], "queue"),
        (&["enqueue", ""], "type"),
        (&["jobs", "list", "--limit", "0"], "limit"),
        (&["enqueue", "t", "--lease", "0"], "lease_seconds"),
    ] {
        let ran = run(&server, args);
        let said = ran.fails(1);
        assert!(said.starts_with("error: ") && said.contains(says), "{args:?}: {said}");
    }
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let ran = run_with_input(&server, &["enqueue", "t", "--payload", "-"], deep.as_bytes());
    assert!(ran.fails(1).contains("invalid-json"), "{ran:?}");
}

#[test]
fn a_pipe_that_is_closed_early_is_no_error() {
    let server = Server::start();
    for _ in 0..50 {
        server.post("/jobs", &json!({"type": "t"})).expect(201);
    }
    for args in [&["jobs", "list"][..], &["jobs", "list", "--json"], &["openapi"], &["completions", "bash"]] {
        let mut command = tagwerk(server.dir(), args);
        command.env("TAGWERK_URL", server.url()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("its end");
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{args:?}");
    }
}

#[test]
fn a_disk_that_is_full_is_said_so() {
    let server = Server::start();
    let mut command = tagwerk(server.dir(), &["openapi"]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a full disk");
    let output = command.env("TAGWERK_URL", server.url()).stdout(full).output().expect("the binary");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("cannot write the output"), "{said}");
}
