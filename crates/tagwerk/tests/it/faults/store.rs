//! K08: the embedded store under readers, many writers, a foreign writer, and with damaged rows. (Claims of many sizes stand
//! in `races`, a full disk in `disk`.)

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::{Server, tagwerk};
use crate::support::dice::Dice;
use crate::support::{Held, claim, claim_all, enqueue, enqueue_all, list, pass, settled, take, text};

/// The write-ahead log never gets longer.
const WAL_MAX_BYTES: i64 = 64 * 1024 * 1024;

/// The write-ahead file grew to gigabytes because some reader was always open and no checkpoint could finish.
#[test]
fn f049_the_log_stays_short_while_lists_and_statistics_are_read_without_pause() {
    let server = Server::start();
    let (over, longest, written) = (AtomicBool::new(false), AtomicI64::new(0), AtomicUsize::new(0));
    // Some 150 MB in all, more than twice the bound.
    let jobs = vec![json!({"type": "t", "queue": "q", "payload": "x".repeat(50_000)}); 50];
    std::thread::scope(|scope| {
        for path in ["/jobs?limit=1000", "/stats", "/queues", "/jobs?status=pending&limit=1000"] {
            let (over, longest, mut client) = (&over, &longest, server.client());
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    client.get(path).expect(200);
                    let stats = client.get("/stats").expect(200);
                    let bytes = stats["store"]["wal_bytes"].as_i64().expect("bytes");
                    longest.fetch_max(bytes, Ordering::Relaxed);
                }
            });
        }
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let (jobs, written, mut client) = (&jobs, &written, server.client());
                scope.spawn(move || {
                    for _ in 0..30 {
                        enqueue_all(&mut client, jobs);
                        written.fetch_add(jobs.len() * 50_000, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let ended: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        over.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
    let (longest, written) = (longest.into_inner(), i64::try_from(written.into_inner()).expect("bytes"));
    assert!(written > 2 * WAL_MAX_BYTES, "{written} bytes prove nothing");
    assert!(longest < WAL_MAX_BYTES, "the log was {longest} bytes long");
    // It shrinks when the load ends.
    let mut client = server.client();
    loop {
        let now = client.get("/stats").expect(200)["store"]["wal_bytes"].as_i64().expect("bytes");
        if now < longest / 4 {
            break;
        }
        // Looking on writes nothing.
        client.get("/jobs/1?wait_seconds=1").expect(200);
    }
}

/// Even the heartbeat failed with "locked", so living processes looked dead.
#[test]
fn f050_of_64_busy_clients_nobody_is_told_that_the_store_is_locked() {
    let server = Server::with(crate::server::Options::default().set("retention.completed=0s"));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..64)
            .map(|number| {
                let (over, server) = (&over, &server);
                scope.spawn(move || busy_client(server, number, over))
            })
            .collect();
        pass(&mut server.client(), 4.0);
        over.store(true, Ordering::Relaxed);
        let calls: usize = clients.into_iter().map(|client| client.join().expect("a client")).sum();
        assert!(calls > 1_000, "{calls} calls prove nothing");
    });
    let totals = server.get("/stats").expect(200)["totals"].clone();
    assert_eq!(totals["lease_losses"], 0, "{totals}");
}

/// Enqueues, claims with the shortest lease, beats, completes. Whatever it is told, it is no error of the server.
fn busy_client(server: &Server, number: u64, over: &AtomicBool) -> usize {
    let (mut client, mut dice, mut calls) = (server.client(), Dice::new(50, number), 0);
    let queue = format!("q{}", number % 4);
    while !over.load(Ordering::Relaxed) {
        enqueue(&mut client, &json!({"type": "t", "queue": queue, "priority": dice.below(100)}));
        let wish = json!({"worker_id": format!("w{number}"), "queues": [queue], "lease_seconds": 5});
        if let Some(held) = claim(&mut client, &wish) {
            for _ in 0..dice.below(4) {
                held.heartbeat(&mut client).expect(200);
                calls += 1;
            }
            held.complete(&mut client);
        }
        calls += 3;
    }
    calls
}

/// `sqlite3` on the server's file.
pub(super) mod needs_sqlite3 {
    use super::*;

    /// A shell that is kept open.
    pub(in crate::faults) struct Shell {
        child: Child,
        said: BufReader<std::process::ChildStdout>,
    }

    impl Shell {
        pub(in crate::faults) fn open(server: &Server) -> Self {
            let mut child = Command::new("sqlite3")
                .arg(server.file())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("sqlite3");
            let said = BufReader::new(child.stdout.take().expect("stdout"));
            Self { child, said }
        }

        /// Says something and waits for its answer to a question at the end.
        pub(in crate::faults) fn tell(&mut self, sql: &str) -> String {
            let stdin = self.child.stdin.as_mut().expect("stdin");
            writeln!(stdin, "{sql}\nSELECT 'done', total_changes();").expect("to write");
            stdin.flush().expect("to write");
            let mut line = String::new();
            self.said.read_line(&mut line).expect("an answer");
            line.trim_end().to_owned()
        }

        pub(in crate::faults) fn close(mut self) {
            drop(self.child.stdin.take());
            assert!(self.child.wait().expect("its end").success());
        }
    }

    /// Enqueue inside a request failed with "locked" when somebody else was writing.
    #[test]
    fn f051_while_somebody_else_writes_an_enqueue_waits_or_says_when_to_come_again() {
        let server = Server::start();
        let mut shell = Shell::open(&server);
        assert!(shell.tell("BEGIN IMMEDIATE;").starts_with("done"));
        let sent = json!({"type": "t", "queue": "q", "idempotency_key": "k"});
        let answer = std::thread::scope(|scope| {
            let (answered, answers) = mpsc::channel();
            let (server, sent) = (&server, &sent);
            scope.spawn(move || answered.send(server.post("/jobs", sent)));
            let early = answers.recv_timeout(Duration::from_secs(1));
            assert!(early.as_ref().map_or(true, |answer| answer.status == 503), "{early:?}");
            // Reading goes on.
            server.get("/jobs").expect(200);
            assert!(shell.tell("COMMIT;").starts_with("done"));
            shell.close();
            early.unwrap_or_else(|_| answers.recv().expect("an answer"))
        });
        if answer.status == 503 {
            answer.problem(503, "store-busy");
            assert!(answer.header("retry-after").is_some());
            server.post("/jobs", &sent).expect(201);
        } else {
            answer.expect(201);
        }
        assert_eq!(server.post("/jobs", &sent).status, 200);
        assert_eq!(list(&mut server.client(), "").len(), 1);
    }

    /// What happens to the second of five jobs behind the server's back.
    const DAMAGE: [&str; 6] = [
        "UPDATE job SET state = 77 WHERE id = 2",
        "UPDATE job SET lane = 12345 WHERE id = 2",
        "UPDATE job SET flags = -1 WHERE id = 2",
        "UPDATE job SET max_retries = 99999999999 WHERE id = 2",
        "UPDATE detail SET scope = 9 WHERE job = 2",
        "DELETE FROM detail WHERE job = 2",
    ];

    /// One row that could not be decoded made the whole list fail now and then.
    #[test]
    fn f151_a_damaged_row_is_shown_as_damaged_and_stops_nobody() {
        for damage in DAMAGE {
            let mut server = Server::start();
            let mut client = server.client();
            let mut jobs = vec![json!({"type": "t", "queue": "q"}); 5];
            jobs[1]["idempotency_key"] = json!("k");
            assert_eq!(enqueue_all(&mut client, &jobs), [1, 2, 3, 4, 5]);
            server.kill();
            let mut shell = Shell::open(&server);
            let done = shell.tell(&format!("PRAGMA ignore_check_constraints = ON; {damage};"));
            assert_eq!(done, "done|1", "{damage}");
            shell.close();
            server.start_again();
            damaged(&server, damage);
        }
    }

    /// The others are listed, claimed, completed; the damaged one is named and found by `check`.
    fn damaged(server: &Server, damage: &str) {
        let mut client = server.client();
        let page = client.get("/jobs?limit=10").expect(200);
        let shown: Vec<_> =
            page["jobs"].as_array().expect("jobs").iter().map(|job| job["id"].clone()).collect();
        assert_eq!(shown, [1, 3, 4, 5], "{damage}: {page}");
        assert_eq!(page["damaged"][0]["id"], 2, "{damage}: {page}");
        client.get("/jobs/2").problem(500, "job-damaged");
        for call in ["complete", "cancel"] {
            client.post(&format!("/jobs/2/{call}"), &json!({})).problem(500, "job-damaged");
        }
        client.get("/readyz").expect(200);
        assert_eq!(client.get("/stats").expect(200)["store"]["damaged_rows"], 1, "{damage}");
        let taken: Vec<Held> = (0..4).map(|_| take(&mut client, "w", "q")).collect();
        assert_eq!(taken.iter().map(|held| held.id).collect::<Vec<_>>(), [1, 3, 4, 5], "{damage}");
        for held in taken {
            held.complete(&mut client);
        }
        assert!(claim_all(&mut client, &json!({"worker_id": "w", "max_jobs": 10})).is_empty(), "{damage}");
        let id = enqueue(&mut client, &json!({"type": "t", "queue": "q"}));
        take(&mut client, "w", "q").complete(&mut client);
        settled(&mut client, id);
        let output =
            tagwerk(server.dir(), &["check", "--store", "sqlite:tagwerk.db"]).output().expect("the binary");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{damage}: {said}");
        assert!(said.contains("damaged-row") && said.contains("job 2"), "{damage}: {said}");
        repeated_and_deleted(server, damage);
    }

    /// Who enqueues under its key again is refused and nobody else in the same call. A person deletes it, and all is well.
    fn repeated_and_deleted(server: &Server, damage: &str) {
        let mut client = server.client();
        let (new, known) =
            (json!({"type": "t", "queue": "r"}), json!({"type": "t", "queue": "q", "idempotency_key": "k"}));
        client.post("/jobs", &known).problem(500, "job-damaged");
        let results =
            client.post("/jobs/bulk", &json!({"jobs": [new, known, new]})).expect(200)["results"].clone();
        let statuses: Vec<_> = (0..3).map(|index| results[index]["status"].clone()).collect();
        assert_eq!(statuses, [201, 500, 201], "{damage}: {results}");
        assert_eq!(results[1]["problem"]["code"], "job-damaged", "{damage}: {results}");

        server.delete("/jobs/2?seen_version=1").problem(500, "job-damaged");
        let deleted = server.delete("/jobs/2").expect(200);
        assert_eq!(deleted["id"], 2, "{damage}: {deleted}");
        assert!(!text(&deleted["detail"]).is_empty(), "{damage}: {deleted}");
        assert!(server.log().contains("a job that could not be read was deleted"));
        client.get("/jobs/2").problem(404, "job-not-found");
        server.delete("/jobs/2").problem(404, "job-not-found");
        // It may have run.
        let again = client.post("/jobs", &known).expect(200);
        assert_eq!(
            (&again["id"], &again["pruned"], text(&again["status"])),
            (&json!(2), &json!(true), "cancelled")
        );
        let stats = client.get("/stats").expect(200);
        assert_eq!(
            (&stats["store"]["damaged_rows"], &stats["counts"]["pruned"]),
            (&json!(0), &json!(1)),
            "{damage}"
        );
        let check = tagwerk(server.dir(), &["check", "--integrity", "--store", "sqlite:tagwerk.db"]).output();
        let check = check.expect("the binary");
        assert_eq!(check.status.code(), Some(0), "{damage}: {}", String::from_utf8_lossy(&check.stdout));
    }

    /// Rows as people read them.
    fn read(server: &Server, sql: &str) -> Value {
        let output = Command::new("sqlite3")
            .args(["-json", "-readonly"])
            .args([server.file().as_os_str(), sql.as_ref()])
            .output()
            .expect("sqlite3");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// The views can be read with `sqlite3` while the server runs, and show no payload and no lease.
    #[test]
    fn the_views_can_be_read_beside_the_server() {
        let server = Server::start();
        let mut client = server.client();
        enqueue(&mut client, &json!({"type": "t", "queue": "q", "payload": "SECRET"}));
        let held = take(&mut client, "w", "q");
        let shown = read(&server, "SELECT * FROM tagwerk_jobs");
        assert_eq!((text(&shown[0]["type"]), text(&shown[0]["status"])), ("t", "running"), "{shown}");
        for shown in [shown, read(&server, "SELECT * FROM tagwerk_attempts")] {
            let shown = shown.to_string();
            assert!(!shown.contains("SECRET") && !shown.contains(&held.lease), "{shown}");
        }
        assert!(read(&server, "SELECT * FROM tagwerk_payloads").to_string().contains("SECRET"));
        held.complete(&mut client);
    }
}
