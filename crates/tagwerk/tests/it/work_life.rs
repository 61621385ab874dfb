//! `tagwerk work`: limits, heartbeats, signals, and servers that come and go.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{Server, tagwerk};
use crate::work_process::Worker;

fn enqueue(server: &Server, more: Value) -> i64 {
    let mut job = json!({"type": "t", "retry": {"base_seconds": 0}});
    if let (Some(job), Value::Object(more)) = (job.as_object_mut(), more) {
        job.extend(more);
    }
    server.post("/jobs", &job).expect(201)["id"].as_i64().expect("an id")
}

fn job(server: &Server, id: i64) -> Value {
    server.get(&format!("/jobs/{id}")).expect(200)
}

/// Whether the process whose id stands in the file still lives.
fn lives(dir: &Path, file: &str) -> bool {
    let id = std::fs::read_to_string(dir.join(file)).expect("a process id");
    Command::new("sh")
        .args(["-c", &format!("kill -0 {id}")])
        .stderr(std::process::Stdio::null())
        .status()
        .expect("a shell")
        .success()
}

/// Waits until the process whose id stands in the file is gone. It is not ours, so there is nothing to wait on but itself.
fn gone(dir: &Path, file: &str) {
    let start = Instant::now();
    while lives(dir, file) {
        assert!(start.elapsed() < Duration::from_mins(1), "{file} lives on");
        std::thread::yield_now();
    }
}

#[test]
fn the_time_limit_ends_the_command_with_its_children() {
    let server = Server::start();
    let id = enqueue(&server, json!({"max_retries": 0}));
    let script = "sh -c 'echo $$ > grandchild; exec sleep 1000' & echo begun >&2; wait";
    let mut worker = Worker::shell(&server, &["--max-jobs", "1", "--timeout", "0.5s"], script);
    assert_eq!(worker.wait(), Some(0), "{:#?}", worker.said);
    let job = job(&server, id);
    assert_eq!((&job["status"], &job["failure"]["class"]), (&json!("failed"), &json!("unknown")));
    assert_eq!(job["error"], "ended by the time limit\nbegun");
    gone(server.dir(), "grandchild");
}

#[test]
fn a_command_that_ignores_sigterm_is_killed_after_the_grace() {
    let server = Server::start();
    let id = enqueue(&server, json!({"max_retries": 0}));
    let script = "trap 'echo not now >&2' TERM; echo $$ > child; while :; do sleep 0.1; done";
    let args = ["--max-jobs", "1", "--timeout", "0.3s", "--grace", "0.3s"];
    let mut worker = Worker::shell(&server, &args, script);
    assert_eq!(worker.wait(), Some(0), "{:#?}", worker.said);
    assert!(worker.has_said("[job 1] not now"), "{:#?}", worker.said);
    assert_eq!(job(&server, id)["failure"]["reason"], "outcome_unknown");
    gone(server.dir(), "child");
}

#[test]
fn a_stderr_that_nobody_reads_holds_up_no_limit_and_no_report() {
    let server = Server::start();
    let id = enqueue(&server, json!({"max_retries": 0}));
    let script = "while :; do echo 'much talk, again and again and again and again'; done >&2";
    let args = ["work", "--max-jobs", "1", "--timeout", "1s", "--lease", "1s", "--", "sh", "-c", script];
    let mut command = tagwerk(server.dir(), &args);
    command.env("TAGWERK_URL", server.url()).stderr(std::process::Stdio::piped());
    let mut worker = command.spawn().expect("the binary");
    let unread = worker.stderr.take();
    assert_eq!(worker.wait().expect("its end").code(), Some(0));
    let job = job(&server, id);
    assert_eq!((&job["failure"]["class"], &job["lease_losses"]), (&json!("unknown"), &json!(0)));
    drop(unread);
}

#[test]
fn the_jobs_own_time_limit_holds_too() {
    let server = Server::start();
    let id = enqueue(&server, json!({"max_retries": 0, "timeout_seconds": 0.5}));
    let mut worker = Worker::shell(&server, &["--max-jobs", "1"], "exec sleep 1000");
    assert_eq!(worker.wait(), Some(0), "{:#?}", worker.said);
    assert_eq!(job(&server, id)["failure"]["class"], "unknown");
}

#[test]
fn heartbeats_keep_the_lease_while_the_command_runs() {
    let server = Server::start();
    let id = enqueue(&server, json!({}));
    // Three leases long.
    let mut worker = Worker::shell(&server, &["--max-jobs", "1", "--lease", "1s"], "exec sleep 3");
    assert_eq!(worker.wait(), Some(0), "{:#?}", worker.said);
    let job = job(&server, id);
    assert_eq!(
        (&job["status"], &job["lease_losses"], &job["attempt"]),
        (&json!("completed"), &json!(0), &json!(1))
    );
}

#[test]
fn a_job_that_is_cancelled_ends_its_command_and_nothing_is_reported() {
    let server = Server::start();
    let id = enqueue(&server, json!({}));
    let script = "echo $$ > child; echo begun >&2; exec sleep 1000";
    let mut worker = Worker::shell(&server, &["--max-jobs", "1", "--lease", "1s"], script);
    worker.line("begun");
    server.post(&format!("/jobs/{id}/cancel"), &json!({})).expect(200);
    assert_eq!(worker.wait(), Some(0), "{:#?}", worker.said);
    assert!(worker.has_said("outcome=dropped detail=cancelled"), "{:#?}", worker.said);
    assert_eq!(job(&server, id)["status"], "cancelled");
    gone(server.dir(), "child");
}

#[test]
fn a_worker_that_was_stopped_for_a_while_reports_late_if_nobody_else_has_the_job() {
    let server = Server::start();
    let id = enqueue(&server, json!({"retry": {"base_seconds": 100}}));
    let script = "echo begun >&2; while [ ! -e go ]; do sleep 0.05; done; echo 7";
    let mut worker = Worker::shell(&server, &["--max-jobs", "1", "--lease", "1s"], script);
    worker.line("begun");
    worker.signal("STOP");
    // The lease is lost while the worker stands still.
    let mut losses = Value::Null;
    let start = Instant::now();
    while losses != json!(1) && start.elapsed() < Duration::from_mins(1) {
        losses = job(&server, id)["lease_losses"].clone();
    }
    assert_eq!(losses, 1);
    worker.signal("CONT");
    std::fs::write(server.dir().join("go"), "").expect("a file");
    assert_eq!(worker.wait(), Some(0), "{:#?}", worker.said);
    let job = job(&server, id);
    assert_eq!(
        (&job["status"], &job["result"], &job["lease_losses"]),
        (&json!("completed"), &json!(7), &json!(0))
    );
}

#[test]
fn sigterm_lets_the_running_command_finish_and_claims_no_more() {
    for signal in ["TERM", "INT", "HUP"] {
        let server = Server::start();
        let (first, second) = (enqueue(&server, json!({})), enqueue(&server, json!({})));
        let script =
            "trap 'echo touched >&2' TERM INT HUP; echo begun >&2; while [ ! -e go ]; do sleep 0.05; done";
        let mut worker = Worker::shell(&server, &[], script);
        worker.line("begun");
        worker.signal(signal);
        worker.line("claiming no more");
        std::fs::write(server.dir().join("go"), "").expect("a file");
        assert_eq!(worker.wait(), Some(0), "{signal}: {:#?}", worker.said);
        assert!(!worker.has_said("touched"), "{:#?}", worker.said);
        assert_eq!(job(&server, first)["status"], "completed", "{signal}");
        let job = job(&server, second);
        assert_eq!((&job["status"], &job["attempt"]), (&json!("pending"), &json!(0)), "{signal}");
    }
}

#[test]
fn a_second_signal_ends_the_command_and_says_that_nobody_knows() {
    let server = Server::start();
    let id = enqueue(&server, json!({"retry": {"base_seconds": 100}}));
    let mut worker = Worker::shell(&server, &[], "echo $$ > child; echo begun >&2; exec sleep 1000");
    worker.line("begun");
    worker.signal("TERM");
    worker.line("claiming no more");
    worker.signal("TERM");
    assert_eq!(worker.wait(), Some(0), "{:#?}", worker.said);
    let job = job(&server, id);
    assert_eq!((&job["status"], &job["verify"]), (&json!("pending"), &json!(true)));
    assert_eq!(job["error"], "ended by signal 15 (SIGTERM)\nbegun");
    gone(server.dir(), "child");
}

#[test]
fn a_worker_that_waits_for_jobs_ends_at_once_and_leaves_nothing_held() {
    let server = Server::start();
    let mut worker = Worker::shell(&server, &["--concurrency", "3"], "true");
    let id = enqueue(&server, json!({}));
    worker.line("outcome=completed");
    assert_eq!(worker.end(), Some(0), "{:#?}", worker.said);
    let next = enqueue(&server, json!({}));
    let job = job(&server, next);
    assert_eq!((&job["status"], &job["attempt"]), (&json!("pending"), &json!(0)), "{id}");
}

#[test]
fn a_worker_that_is_killed_takes_its_commands_with_it_and_the_next_looks_first() {
    let server = Server::start();
    let id = enqueue(&server, json!({}));
    let script = "if [ $TAGWERK_JOB_VERIFY = true ]; then echo '\"looked\"'; exit; fi
        sh -c 'echo $$ > grandchild; echo begun >&2; exec sleep 1000' & wait";
    let mut worker = Worker::shell(&server, &["--lease", "1s"], script);
    worker.line("begun");
    worker.kill();
    gone(server.dir(), "grandchild");
    let mut next = Worker::shell(&server, &["--max-jobs", "1"], script);
    assert_eq!(next.wait(), Some(0), "{:#?}", next.said);
    let job = job(&server, id);
    assert_eq!((&job["status"], &job["result"]), (&json!("completed"), &json!("looked")));
    assert_eq!((&job["attempt"], &job["lease_losses"]), (&json!(2), &json!(1)));
}

#[test]
fn concurrency_runs_so_many_at_the_same_time_and_max_jobs_so_many_in_all() {
    let server = Server::start();
    for _ in 0..5 {
        enqueue(&server, json!({}));
    }
    // Each waits until three have begun.
    let script = "echo > begun.$TAGWERK_JOB_ID; while [ $(ls begun.* | wc -l) -lt 3 ]; do sleep 0.05; done";
    let mut worker = Worker::shell(&server, &["--concurrency", "3", "--max-jobs", "4"], script);
    assert_eq!(worker.wait(), Some(0), "{:#?}", worker.said);
    let counts = server.get("/stats").expect(200)["counts"].clone();
    assert_eq!((&counts["completed"], &counts["pending"]), (&json!(4), &json!(1)));
    assert_eq!(job(&server, 5)["attempt"], 0);
}

#[test]
fn for_ends_the_worker_after_its_time() {
    let server = Server::start();
    let id = enqueue(&server, json!({}));
    let mut worker = Worker::shell(&server, &["--for", "1s"], "true");
    assert_eq!(worker.wait(), Some(0), "{:#?}", worker.said);
    assert_eq!(job(&server, id)["status"], "completed");
}

#[test]
fn queues_and_types_choose_what_is_claimed() {
    let server = Server::start();
    let other = enqueue(&server, json!({"queue": "other"}));
    let kind = enqueue(&server, json!({"queue": "a", "type": "no"}));
    let (a, b) = (enqueue(&server, json!({"queue": "a"})), enqueue(&server, json!({"queue": "b"})));
    let args = ["--queue", "a", "--queue", "b", "--type", "t", "--max-jobs", "2", "--worker-id", "me"];
    let mut worker = Worker::shell(&server, &args, "true");
    assert_eq!(worker.wait(), Some(0), "{:#?}", worker.said);
    for (id, status) in [(other, "pending"), (kind, "pending"), (a, "completed"), (b, "completed")] {
        assert_eq!(job(&server, id)["status"], status, "{id}");
    }
    let history = server.get(&format!("/jobs/{a}/attempts")).expect(200);
    assert_eq!(history["attempts"][0]["worker_id"], "me");
}

#[test]
fn what_the_server_refuses_for_good_ends_the_worker() {
    let server = Server::start();
    for args in [&["--queue", "no spaces"][..], &["--worker-id", "a/b"], &["--lease", "0.1s"]] {
        let mut worker = Worker::shell(&server, args, "true");
        assert_eq!(worker.wait(), Some(1), "{args:?}: {:#?}", worker.said);
        assert!(worker.has_said("error: Invalid request"), "{args:?}: {:#?}", worker.said);
    }
}

#[test]
fn a_server_that_never_answers_is_said_at_the_end() {
    let dir = tempfile::tempdir().expect("a folder");
    let args = ["work", "--url", "unix:gone.sock", "--for", "0.3s", "--", "true"];
    let mut worker = Worker::spawn(&mut tagwerk(dir.path(), &args));
    assert_eq!(worker.wait(), Some(3), "{:#?}", worker.said);
    assert!(worker.has_said("trying again") && worker.has_said("tagwerk serve"), "{:#?}", worker.said);
}
