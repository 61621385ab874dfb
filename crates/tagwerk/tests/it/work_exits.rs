//! `tagwerk work`: what the end of the command becomes.

use serde_json::{Value, json};

use crate::server::Server;
use crate::work_process::Worker;

/// Enqueues a job with this payload, runs one job with the script, and returns the job as it is then.
fn after(script: &str, payload: &Value) -> (Value, Worker) {
    let server = Server::start();
    let (job, worker) = after_on(&server, script, payload);
    (job, worker)
}

fn after_on(server: &Server, script: &str, payload: &Value) -> (Value, Worker) {
    let body = json!({"type": "t", "payload": payload, "retry": {"base_seconds": 100}});
    let job = server.post("/jobs", &body).expect(201);
    let mut worker = Worker::shell(server, &["--max-jobs", "1"], script);
    assert_eq!(worker.wait(), Some(0), "{:#?}", worker.said);
    (server.get(&format!("/jobs/{}", job["id"])).expect(200), worker)
}

fn ended_as(script: &str) -> (String, Option<String>, Value) {
    let (job, _worker) = after(script, &json!({}));
    let text = |field: &Value| field.as_str().map(str::to_owned);
    (text(&job["status"]).unwrap_or_default(), text(&job["error"]), job)
}

#[test]
fn zero_completes_and_the_last_line_is_the_result_if_it_is_json() {
    for (script, result) in [
        ("echo '{\"n\": 1.10}'", json!({"n": 1.1})),
        ("echo hello; echo; printf '[1]\\n\\n'", json!([1])),
        ("printf '{\"a\":\\n1}'", json!(null)),
        ("echo done", json!(null)),
        ("true", json!(null)),
        ("printf 17", json!(17)),
    ] {
        let (status, _, job) = ended_as(script);
        assert_eq!((status.as_str(), &job["result"]), ("completed", &result), "{script}");
    }
}

#[test]
fn a_result_keeps_its_bytes() {
    let server = Server::start();
    after_on(&server, r#"echo '{"b":123456789012345678901234567890, "a":1.10}'"#, &json!({}));
    let text = server.get("/jobs/1").text().to_owned();
    assert!(text.contains(r#""result":{"b":123456789012345678901234567890, "a":1.10}"#), "{text}");
}

#[test]
fn a_result_that_cannot_be_taken_is_left_out_with_a_word() {
    let (job, worker) = after("printf '\"'; head -c 70000 /dev/zero | tr '\\0' x; printf '\"'", &json!({}));
    assert_eq!((&job["status"], &job["result"]), (&json!("completed"), &json!(null)));
    assert!(worker.has_said("more than 65536 bytes"), "{:#?}", worker.said);
    let deep = format!("echo '{}{}'", "[".repeat(200), "]".repeat(200));
    let (job, worker) = after(&deep, &json!({}));
    assert_eq!((&job["status"], &job["result"]), (&json!("completed"), &json!(null)));
    assert!(worker.has_said("without its result"), "{:#?}", worker.said);
}

#[test]
fn codes_have_their_classes() {
    for code in [75, 1, 2, 255] {
        let (status, error, job) = ended_as(&format!("echo 'no luck' >&2; exit {code}"));
        assert_eq!((status.as_str(), error.as_deref()), ("pending", Some("no luck")), "{code}");
        assert_eq!((&job["retry_count"], &job["verify"]), (&json!(1), &json!(false)), "{code}");
    }
    let (status, error, job) = ended_as("echo bad >&2; exit 65");
    assert_eq!((status.as_str(), error.as_deref()), ("failed", Some("bad")));
    assert_eq!(job["failure"]["reason"], "permanent");
    let (status, _, job) = ended_as("exit 70");
    assert_eq!((status.as_str(), &job["verify"]), ("pending", &json!(true)));
}

#[test]
fn a_command_that_says_nothing_still_has_an_error() {
    let (_, error, _) = ended_as("exit 3");
    assert_eq!(error.as_deref(), Some("exit code 3, nothing on stderr"));
}

#[test]
fn a_signal_means_that_nobody_knows() {
    for (signal, name) in [("KILL", "9 (SIGKILL)"), ("TERM", "15 (SIGTERM)"), ("SEGV", "11 (SIGSEGV)")] {
        let (status, error, job) = ended_as(&format!("echo half done >&2; kill -{signal} $$"));
        assert_eq!((status.as_str(), &job["verify"]), ("pending", &json!(true)), "{signal}");
        assert_eq!(error, Some(format!("ended by signal {name}\nhalf done")));
    }
}

#[test]
fn a_command_that_is_missing_gives_the_job_back_and_ends_the_worker() {
    let server = Server::start();
    server.post("/jobs", &json!({"type": "t"})).expect(201);
    std::fs::write(server.dir().join("not-executable"), "#!/bin/sh\n").expect("a file");
    for command in [
        &["no-such-command-anywhere"][..],
        &["./not-executable"],
        &["sh", "-c", "no-such-command-anywhere"],
        &["sh", "-c", "./not-executable"],
    ] {
        let mut worker = Worker::start(&server, &["--concurrency", "2"], command);
        assert_eq!(worker.wait(), Some(4), "{command:?}: {:#?}", worker.said);
        assert!(
            worker.has_said("error: cannot run `") && worker.has_said("given back"),
            "{:#?}",
            worker.said
        );
        let job = server.get("/jobs/1").expect(200);
        assert_eq!(
            (&job["status"], &job["attempt"], &job["retry_count"]),
            (&json!("pending"), &json!(0), &json!(0))
        );
    }
}

#[test]
fn the_end_of_a_huge_stderr_is_the_error() {
    let (status, error, _) = ended_as(
        "i=0; while [ $i -lt 20000 ]; do echo \"line $i of much talk\"; i=$((i+1)); done >&2; exit 1",
    );
    let error = error.unwrap_or_default();
    assert_eq!(status, "pending");
    assert!(error.len() <= 4096 && error.ends_with("line 19999 of much talk"), "{} {error}", error.len());
}

#[test]
fn payload_and_facts_reach_the_command_and_secrets_do_not() {
    let server = Server::start();
    let body = json!({
        "type": "send mail", "queue": "q", "payload": {"to": "you"}, "idempotency_key": "k", "correlation_id": "c",
        "subject": {"kind": "order", "id": "4711", "version": 3}, "traceparent": "00-1-2-01", "max_retries": 0,
    });
    server.post("/jobs", &body).expect(201);
    let script = "cat > payload; env | grep ^TAGWERK | sort > facts";
    let args = ["work", "--max-jobs", "1", "--queue", "q", "--", "sh", "-c", script];
    let mut command = crate::server::tagwerk(server.dir(), &args);
    command
        .env("TAGWERK_URL", server.url())
        .env("TAGWERK_STORE", "postgres://u:geheim@h/db")
        .env("TAGWERK_TOKEN", "geheim")
        .env("TAGWERK_JOB_CHECKPOINT", "of an outer worker");
    let mut worker = Worker::spawn(&mut command);
    assert_eq!(worker.wait(), Some(0));
    let read = |name| std::fs::read_to_string(server.dir().join(name)).expect("what the command wrote");
    assert_eq!(read("payload"), r#"{"to":"you"}"#);
    let facts = [
        "TAGWERK_JOB_ATTEMPT=1",
        "TAGWERK_JOB_CORRELATION_ID=c",
        "TAGWERK_JOB_ID=1",
        "TAGWERK_JOB_IDEMPOTENCY_KEY=k",
        "TAGWERK_JOB_IS_LAST_ATTEMPT=true",
        "TAGWERK_JOB_MAX_RETRIES=0",
        "TAGWERK_JOB_QUEUE=q",
        "TAGWERK_JOB_RETRY_COUNT=0",
        "TAGWERK_JOB_SUBJECT_ID=4711",
        "TAGWERK_JOB_SUBJECT_KIND=order",
        "TAGWERK_JOB_SUBJECT_VERSION=3",
        "TAGWERK_JOB_TRACEPARENT=00-1-2-01",
        "TAGWERK_JOB_TYPE=send mail",
        "TAGWERK_JOB_VERIFY=false",
        &format!("TAGWERK_URL={}", server.url()),
    ];
    assert_eq!(read("facts").lines().collect::<Vec<_>>(), facts);
    assert!(!worker.has_said("geheim") && !worker.has_said("you"), "{:#?}", worker.said);
}

#[test]
fn a_checkpoint_of_an_earlier_attempt_is_handed_on() {
    let server = Server::start();
    server.post("/jobs", &json!({"type": "t", "retry": {"base_seconds": 0}})).expect(201);
    let held = server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    let lease = &held["lease"];
    server.post("/jobs/1/checkpoint", &json!({"lease": lease, "checkpoint": {"row": 17}})).expect(200);
    server.post("/jobs/1/fail", &json!({"lease": lease})).expect(200);
    let mut worker = Worker::shell(&server, &["--max-jobs", "1"], "echo \"$TAGWERK_JOB_CHECKPOINT\"");
    assert_eq!(worker.wait(), Some(0));
    assert_eq!(server.get("/jobs/1").expect(200)["result"], json!({"row": 17}));
}

#[test]
fn a_command_that_does_not_read_a_large_payload_does_nothing_wrong() {
    let payload = json!("x".repeat(250_000));
    let (job, _) = after("echo 1", &payload);
    assert_eq!(job["status"], "completed");
    let (job, _) =
        after("exec <&-; head -c 200000 /dev/zero | tr '\\0' y; echo; wc -c < /dev/null", &payload);
    assert_eq!((&job["status"], &job["result"]), (&json!("completed"), &json!(0)));
    let (job, _) = after("cat > copy; cat copy", &payload);
    assert_eq!(job["status"], "completed");
}

#[test]
fn children_left_behind_do_not_hold_up_the_report() {
    let server = Server::start();
    let script = "sh -c 'echo $$ > left; exec sleep 1000' & echo '\"left one\"'";
    let (job, _) = after_on(&server, script, &json!({}));
    assert_eq!((&job["status"], &job["result"]), (&json!("completed"), &json!("left one")));
    let left = std::fs::read_to_string(server.dir().join("left")).expect("its process id");
    let kill = format!("kill -9 {left}");
    let status = std::process::Command::new("sh").args(["-c", &kill]).status().expect("a shell");
    assert!(status.success(), "what a command leaves behind on purpose lives on");
}

#[test]
fn one_line_tells_of_each_job() {
    let server = Server::start();
    for kind in ["a", "b b"] {
        server.post("/jobs", &json!({"type": kind, "payload": "geheim"})).expect(201);
    }
    let mut worker = Worker::shell(&server, &["--max-jobs", "1"], "echo note >&2");
    worker.wait();
    assert!(worker.has_said("[job 1] note"), "{:#?}", worker.said);
    assert!(
        worker.has_said("job=1 type=a attempt=1 outcome=completed status=completed ms="),
        "{:#?}",
        worker.said
    );
    let mut worker = Worker::shell(&server, &["--max-jobs", "1", "--json"], "exit 65");
    worker.wait();
    let line: Value = serde_json::from_str(&worker.said[0]).expect("JSON");
    assert_eq!((&line["job"], &line["type"]), (&json!(2), &json!("b b")));
    assert_eq!((&line["outcome"], &line["detail"]), (&json!("failed"), &json!("permanent")));
    assert!(line["ms"].is_u64() && !worker.has_said("geheim"), "{line}");
}
