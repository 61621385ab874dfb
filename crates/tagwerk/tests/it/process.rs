//! The server as a process: how it starts, refuses to start, and ends.

use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{Client, request};
use crate::server::{JSON, Options, Server, tagwerk};

/// Runs a `serve` that must not start, and returns what it said and its exit code.
fn refuse(dir: &std::path::Path, args: &[&str]) -> (String, Option<i32>) {
    let output = tagwerk(dir, &[&["serve"], args].concat()).output().expect("the binary");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && output.stdout.is_empty(), "{said}");
    (said, output.status.code())
}

#[test]
fn a_second_server_on_the_file_says_so() {
    let server = Server::start();
    let (said, code) = refuse(server.dir(), &["--listen", "127.0.0.1:0"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("in use") && said.contains(&server.pid().to_string()), "{said}");
    server.get("/readyz").expect(200);
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill_and_is_for_its_owner_only() {
    let mut server = Server::start();
    let id = server.post("/jobs", &json!({"type": "t"})).expect(201)["id"].clone();
    let held = server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    server.restart();
    let done = server.post(&format!("/jobs/{id}/complete"), &json!({"lease": held["lease"]})).expect(200);
    assert_eq!((&done["status"], &done["attempt"]), (&json!("completed"), &json!(1)));
    server.restart();
    assert_eq!(server.get(&format!("/jobs/{id}")).expect(200)["status"], "completed");
    let wal = server.file().with_extension("db-wal");
    for file in [server.file(), wal] {
        let mode = std::fs::metadata(&file).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

#[test]
fn a_port_in_use_is_said_so() {
    let server = Server::start();
    let dir = tempfile::tempdir().expect("a folder");
    let (said, code) = refuse(dir.path(), &["--listen", &server.addr().to_string()]);
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("in use") && said.contains("--listen"), "{said}");
}

#[test]
fn stores_that_cannot_be_used_are_left_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("other.db");
    std::fs::write(
        &file,
        "this is no database, and it is long enough to be looked at by anybody who cares".repeat(20),
    )
    .expect("a file");
    let before = std::fs::read(&file).expect("its bytes");
    let (said, code) = refuse(dir.path(), &["--listen", "127.0.0.1:0", "--store", "sqlite:other.db"]);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("not a SQLite database"), "{said}");
    assert_eq!(std::fs::read(&file).expect("its bytes"), before);
    let (said, code) =
        refuse(dir.path(), &["--listen", "127.0.0.1:0", "--store", "sqlite:no/such/folder/t.db"]);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("folder"), "{said}");
    let (said, code) = refuse(dir.path(), &["--store", "postgres://u:geheim@localhost/db"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("PostgreSQL") && !said.contains("geheim"), "{said}");
}

#[test]
fn settings_that_cannot_be_name_their_source() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("tagwerk.toml"), "max_retry = 5\n").expect("a file");
    let (said, code) = refuse(dir.path(), &["--set", "lease.default=0"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("tagwerk.toml") && said.contains("did you mean max_retries?"), "{said}");
    assert!(said.contains("lease.default") && said.contains("between 1s and 1d"), "{said}");
}

#[test]
fn settings_reach_the_jobs() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(
        dir.path().join("tagwerk.toml"),
        "max_retries = 5\nrequire_lease = true\n[lease]\ndefault = \"90s\"\n",
    )
    .expect("a file");
    let server = Server::in_dir(dir, Options::default().env("TAGWERK_MAX_LEASE_LOSSES", "2"));
    let job = server.post("/jobs", &json!({"type": "t"})).expect(201);
    assert_eq!((&job["max_retries"], &job["max_lease_losses"]), (&json!(5), &json!(2)));
    let held = server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    assert_eq!(held["heartbeat_seconds"], 30);
    server.post(&format!("/jobs/{}/complete", held["id"]), &json!({})).problem(409, "lease-required");
}

#[test]
fn a_unix_socket_is_for_its_owner() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("t.sock");
    let serve = || {
        let mut child = tagwerk(dir.path(), &["serve", "--listen", &format!("unix:{}", path.display())])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("the binary");
        let mut line = [0; 8];
        child.stdout.as_mut().expect("stdout").read_exact(&mut line).expect("its first words");
        child
    };
    let mut child = serve();
    let found = std::fs::metadata(&path).expect("a socket");
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    let mut stream = UnixStream::connect(&path).expect("a connection");
    stream
        .write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("to send");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("alive"), "{answer}");
    child.kill().expect("to kill it");
    child.wait().expect("its end");
    assert!(path.exists(), "left over from the kill, and no obstacle");
    let mut child = serve();
    child.kill().expect("to kill it");
    child.wait().expect("its end");
    std::fs::remove_file(&path).expect("to remove it");
    std::fs::write(&path, "a file").expect("a file");
    let (said, _) = refuse(dir.path(), &["--listen", &format!("unix:{}", path.display())]);
    assert!(said.contains("is no socket"), "{said}");
}

/// Jobs in work at a hard stop were not put back and were gone for good.
#[test]
fn f054_a_stop_under_load_finishes_or_refuses_every_call() {
    let mut server = Server::start();
    let stop = Arc::new(AtomicBool::new(false));
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let clients: Vec<_> = (0..8)
        .map(|n| {
            let (addr, stop, acknowledged) = (server.addr(), Arc::clone(&stop), Arc::clone(&acknowledged));
            std::thread::spawn(move || load(&mut Client::new(addr), n, (&stop, &acknowledged)))
        })
        .collect();
    let mut waiting = server.client();
    let claim = json!({"worker_id": "patient", "queues": ["none"], "wait_seconds": 60}).to_string();
    waiting.begin(&request(server.addr(), "POST /jobs/claim", &[JSON], claim.as_bytes())).expect("to send");
    let mut look = server.client();
    let id = server.post("/jobs", &json!({"type": "t", "queue": "held"})).expect(201)["id"].clone();
    look.begin(&request(server.addr(), &format!("GET /jobs/{id}?wait_seconds=60"), &[], b""))
        .expect("to send");
    while acknowledged.lock().expect("the list").len() < 300 {
        std::thread::yield_now();
    }
    let start = Instant::now();
    server.signal("TERM");
    let parked = waiting.finish("").expect("an answer");
    assert_eq!((parked.status, parked.text()), (200, "null"));
    assert_eq!(look.finish("").expect("an answer").expect(200)["status"], "pending");
    let (status, _) = server.wait();
    assert!(status.success(), "{status}");
    assert!(start.elapsed() < Duration::from_secs(12), "{:?}", start.elapsed());
    stop.store(true, Ordering::SeqCst);
    for client in clients {
        client.join().expect("a client");
    }
    server.start_again();
    let acknowledged = acknowledged.lock().expect("the list").clone();
    let mut client = server.client();
    for (id, status) in acknowledged {
        let job = client.get(&format!("/jobs/{id}")).expect(200);
        assert!(status.contains(&job["status"].as_str().unwrap_or_default()), "{id} is {job}");
    }
    assert!(server.terminate().success());
}

/// What was acknowledged: the job, and the statuses that it may have.
type Acknowledged = Mutex<Vec<(i64, &'static [&'static str])>>;

/// Enqueues, claims and completes until the server is gone.
fn load(client: &mut Client, n: usize, shared: (&AtomicBool, &Acknowledged)) {
    let (stop, acknowledged) = shared;
    let queue = format!("q{n}");
    let mut call = |path: &str, body: serde_json::Value| -> Option<serde_json::Value> {
        let answer = client.try_send(&format!("POST {path}"), &[JSON], body.to_string().as_bytes()).ok()?;
        match answer.status {
            200 | 201 => Some(answer.json()),
            503 => {
                answer.problem(503, "draining");
                assert!(answer.header("retry-after").is_some());
                None
            }
            _ => panic!("{path}: {answer:?}"),
        }
    };
    while !stop.load(Ordering::SeqCst) {
        let Some(job) = call("/jobs", json!({"type": "t", "queue": queue})) else { return };
        let id = job["id"].as_i64().expect("an id");
        let note = |statuses| acknowledged.lock().expect("the list").push((id, statuses));
        note(&["pending", "running", "completed"][..]);
        let Some(held) = call("/jobs/claim", json!({"worker_id": queue, "queues": [queue]})) else { return };
        if held.is_null() {
            return;
        }
        note(&["running", "completed"][..]);
        let path = format!("/jobs/{}/complete", held["id"]);
        if call(&path, json!({"lease": held["lease"]})).is_some() {
            note(&["completed"][..]);
        }
    }
}

#[test]
fn while_it_stops_reports_are_taken_and_new_work_is_not() {
    let mut server = Server::start();
    server.post("/jobs", &json!({"type": "t"})).expect(201);
    let held = server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    // A request that is under way keeps the server up; its connection is served to the end.
    let mut slow = server.client();
    let body = json!({"lease": held["lease"], "result": "late"}).to_string();
    let (first, second) = body.split_at(10);
    let start = format!(
        "POST /jobs/{}/complete HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{first}",
        held["id"],
        body.len()
    );
    slow.begin(start.as_bytes()).expect("to send");
    // The server has it when it has answered somebody else since.
    server.get("/stats").expect(200);
    server.signal("TERM");
    while Client::new(server.addr()).try_send("GET /livez", &[], b"").is_ok() {}
    slow.begin(second.as_bytes()).expect("to send");
    let answer = slow.finish("").expect("an answer");
    assert_eq!(answer.expect(200)["status"], "completed");
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(server.wait().0.success());
    server.start_again();
    assert_eq!(server.get(&format!("/jobs/{}", held["id"])).expect(200)["result"], "late");
}

#[test]
fn a_stop_does_not_wait_for_idle_or_dead_connections_for_ever() {
    let mut server = Server::start();
    let mut idle = server.client();
    idle.get("/livez").expect(200);
    let mut half = server.client();
    half.begin(b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{").expect("to send");
    let silent = std::net::TcpStream::connect(server.addr()).expect("a connection");
    server.get("/stats").expect(200);
    let start = Instant::now();
    assert!(server.terminate().success());
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    drop(silent);
}

/// Worker names with random ids as labels: thousands of series a month.
#[test]
fn f150_metrics_stay_small_whatever_names_come() {
    let server = Server::start();
    let mut client = server.client();
    for batch in 0..10 {
        let jobs: Vec<_> = (0..300)
            .map(|n| {
                json!({"type": format!("type-{batch}-{n}"), "queue": format!("q-{batch}-{n}"),
                            "idempotency_key": format!("key-{batch}-{n}"), "max_retries": 0})
            })
            .collect();
        client.post("/jobs/bulk", &json!({"jobs": jobs})).expect(200);
        for n in 0..30 {
            let job =
                client.post("/jobs/claim", &json!({"worker_id": format!("worker-{batch}-{n}")})).expect(200);
            client
                .post(&format!("/jobs/{}/fail", job["id"]), &json!({"error": format!("error {batch} {n}")}))
                .expect(200);
        }
    }
    let metrics = client.get("/metrics");
    let text = metrics.text();
    assert!(text.len() < 600_000, "{} bytes", text.len());
    assert!(text.contains("type=\"other\"") && text.contains("queue=\"other\""));
    for name in ["worker-", "key-", "error "] {
        assert!(!text.contains(name), "{name}");
    }
    let enqueued: u64 = text
        .lines()
        .filter_map(|line| line.strip_prefix("tagwerk_enqueues_total{"))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum();
    assert_eq!(enqueued, 3_000, "`other` holds the rest");
}
