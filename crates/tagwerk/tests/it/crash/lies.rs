//! A liar between clients and the server: once, in the middle of everything, it tells a client something that is not true.
//! The history must show it, and nothing else. So no fault has to be planted in the server.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tagwerk_history::{Asked, Contradiction, History, Said, Told, check};

use super::client::{Hand, Shared};
use super::gate::Gate;
use super::log::{Knowledge, Log};
use super::model::Silence;
use super::proxy::read_message;
use super::roles::{Gossip, LIMIT, Role};
use super::{EndOfRun, PATIENCE, read_all, seed};
use crate::client::{Answer, Client};
use crate::server::Server;
use crate::support::dice::Dice;
use crate::support::linger;

/// What is told that is not true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// That a completion counted which came with a stale lease, after another one had counted.
    CountedTwice,
    /// That a job was accepted; it is erased before its producer hears of it.
    Accepted,
    /// That a completion counted; the server never hears of it.
    Completed,
}

/// Occasions to lie that the liar lets pass, so that much is going on when it does.
const PASSED: usize = 3;

struct Liar {
    server: SocketAddr,
    lie: Lie,
    /// Occasions so far, and where to say which job it lied about; empty when it has.
    state: Mutex<(usize, Option<Sender<i64>>)>,
}

impl Liar {
    /// Where clients call, and where it says which job it has lied about.
    fn before(server: SocketAddr, lie: Lie) -> (SocketAddr, Receiver<i64>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let addr = listener.local_addr().expect("an address");
        let (say, said) = mpsc::channel();
        let liar = Arc::new(Self { server, lie, state: Mutex::new((0, Some(say))) });
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let liar = Arc::clone(&liar);
                // It ends when the client has had enough.
                std::thread::spawn(move || liar.converse(client).ok());
            }
        });
        (addr, said)
    }

    fn converse(&self, mut client: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let mut server = Client::new(self.server);
        while let Some(request) = read_message(&mut client)? {
            let (head, body) = request.bytes.split_at(request.head);
            let head = String::from_utf8_lossy(head);
            let line = head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned();
            let body: Value = serde_json::from_slice(body).unwrap_or_default();
            let answer = if let Some(told) = self.lie_instead(&line, &body) {
                told
            } else {
                let answer = server.raw(&request.bytes)?;
                self.lie_about(&line, &answer).unwrap_or(answer)
            };
            client.write_all(&written(&answer))?;
        }
        Ok(())
    }

    /// An answer without asking the server.
    fn lie_instead(&self, line: &str, body: &Value) -> Option<Answer> {
        let id = completes(line)?;
        (self.lie == Lie::Completed && body["lease"].is_string()).then_some(())?;
        self.once(id, || {
            let job = Client::new(self.server).get(&format!("/jobs/{id}"));
            let mut told = (job.status == 200).then(|| job.json())?;
            let holder = told["status"] == "running" && told["cancel_requested"] == false;
            // Whoever has a job reports the attempt that it has.
            let own = body["result"].as_str().is_some_and(|result| {
                result == format!("by {} since {}", word(&told["worker_id"]), word(&told["claimed_at"]))
            });
            (holder && own).then_some(())?;
            told["version"] = json!(told["version"].as_i64()? + 1);
            told["status"] = json!("completed");
            told["verify"] = json!(false);
            told["result"] = body["result"].clone();
            for field in ["worker_id", "claimed_at", "lease_expires_at"] {
                told[field] = Value::Null;
            }
            Some(ok(200, &told))
        })
    }

    /// Another answer than the server's.
    fn lie_about(&self, line: &str, answer: &Answer) -> Option<Answer> {
        match self.lie {
            Lie::CountedTwice => {
                let id = completes(line)?;
                let late = answer.status == 409 && answer.json()["code"] == "lease-lost";
                late.then_some(())?;
                self.once(id, || {
                    let job = Client::new(self.server).get(&format!("/jobs/{id}"));
                    (job.status == 200 && job.json()["status"] == "completed").then_some(job)
                })
            }
            Lie::Accepted => {
                (line == "POST /jobs" && answer.status == 201).then_some(())?;
                let id = answer.json()["id"].as_i64()?;
                self.once(id, || {
                    let erased = Client::new(self.server).send(&format!("DELETE /jobs/{id}"), &[], b"");
                    (erased.status == 200).then(|| answer.clone())
                })
            }
            Lie::Completed => None,
        }
    }

    /// Lies about this job, if it has not lied yet and can.
    fn once(&self, id: i64, lie: impl FnOnce() -> Option<Answer>) -> Option<Answer> {
        let mut state = self.state.lock().expect("no panic");
        state.0 += 1;
        if state.0 <= PASSED || state.1.is_none() {
            return None;
        }
        let told = lie()?;
        state.1.take()?.send(id).ok();
        Some(told)
    }
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The job that a request completes.
fn completes(line: &str) -> Option<i64> {
    line.strip_prefix("POST /jobs/")?.strip_suffix("/complete")?.parse().ok()
}

fn ok(status: u16, body: &Value) -> Answer {
    Answer { status, headers: Vec::new(), body: body.to_string().into_bytes() }
}

/// The bytes of an answer.
fn written(answer: &Answer) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} Said\r\ncontent-length: {}\r\n", answer.status, answer.body.len());
    for (name, value) in &answer.headers {
        if name != "content-length" && name != "transfer-encoding" {
            head.extend([name, ": ", value, "\r\n"]);
        }
    }
    [head.as_bytes(), b"\r\n", &answer.body].concat()
}

/// Lets the clients of the crash runs work for as long as this waits.
fn crowd<T>(addr: SocketAddr, seed: u64, wait: impl FnOnce() -> T) -> (Shared, T) {
    let shared = Shared { gate: Gate::new(), log: Log::default(), patience: PATIENCE, expected: &[] };
    let gossip = Gossip::default();
    let waited = std::thread::scope(|scope| {
        let end = EndOfRun(&shared.gate);
        for number in 0..16 {
            let dice = Dice::new(seed, 1 + u64::try_from(number).expect("a number"));
            let (hand, gossip) = (Hand::new(number, dice, &shared), &gossip);
            scope.spawn(move || Role::of(number).play(hand, gossip));
        }
        shared.gate.open(addr);
        let waited = wait();
        shared.gate.close();
        drop(end);
        waited
    });
    (shared, waited)
}

/// Until the liar has lied; what the history says, and about which job the lie was.
fn found(lie: Lie) -> (Contradiction, i64) {
    let seed = seed();
    eprintln!("{lie:?}, TAGWERK_CRASH_SEED={seed}");
    let server = Server::start();
    super::roles::prepare(&server);
    let (addr, told) = Liar::before(server.addr(), lie);
    let wait = || told.recv_timeout(Duration::from_mins(2)).expect("an occasion to lie");
    let (shared, job) = crowd(addr, seed, wait);
    shared.log.past.still();
    let touched = Knowledge::new(Silence::MeansEither).take_in(shared.log.take().0);
    drop(read_all(&server, &touched, &shared.log.past));
    let mut report = check(&shared.log.past.history(Silence::MeansEither));
    for contradiction in &report.contradictions {
        eprintln!("{contradiction}");
    }
    assert_eq!(report.undecided, Vec::<String>::new());
    assert_eq!(report.contradictions.len(), 1, "one lie was told");
    (report.contradictions.remove(0), job)
}

/// How many completions of this job are said to have counted.
fn completions(found: &Contradiction, id: i64) -> usize {
    let counted = found.calls.iter().filter(|call| {
        let completes =
            matches!(&call.asked, Asked::Report { job, said: Said::Completed { .. }, .. } if *job == id);
        completes && matches!(call.told, Told::Job(_))
    });
    counted.count()
}

#[test]
fn a_completion_that_counts_twice_is_found_in_the_history() {
    let (found, job) = found(Lie::CountedTwice);
    assert!(found.jobs.contains(&job), "it was about job {job}: {found}");
    assert!(completions(&found, job) >= 1, "{found}");
}

#[test]
fn an_acknowledged_enqueue_that_is_lost_is_found_in_the_history() {
    let (found, job) = found(Lie::Accepted);
    assert!(found.jobs.contains(&job), "it was about job {job}: {found}");
    // Whoever was the last to see it: its producer, or a worker who was faster than the liar.
    let there = |told: &Told| told.view().is_some_and(|view| view.id == job);
    let gone = |told: &Told| matches!(told, Told::Refused { status: 404, .. } | Told::Tombstone { .. });
    assert!(found.calls.iter().any(|call| there(&call.told)), "{found}");
    assert!(found.calls.iter().any(|call| gone(&call.told)), "{found}");
}

#[test]
fn an_acknowledged_completion_that_is_lost_is_found_in_the_history() {
    let (found, job) = found(Lie::Completed);
    assert!(found.jobs.contains(&job), "it was about job {job}: {found}");
    // Whoever says it again is told, truly, that it counts; that is one too many as well.
    assert!(completions(&found, job) >= 1, "{found}");
}

/// The jobs of a history as if all of them had one ordering key.
fn with_one_key(history: &History) -> History {
    let mut history = history.clone();
    for call in &mut history.calls {
        if let Told::Lease { view, .. } | Told::Job(view) | Told::Again(view) = &mut call.told {
            view.ordering_key = Some("planted".to_owned());
        }
    }
    history
}

/// A real run keeps the rules between jobs. Held against other rules than it kept, the same history breaks each of them.
#[test]
fn jobs_that_run_together_are_found_in_the_history() {
    let seed = seed();
    eprintln!("TAGWERK_CRASH_SEED={seed}");
    let server = Server::start();
    super::roles::prepare(&server);
    let (shared, ()) = crowd(server.addr(), seed, || {
        let mut client = server.client();
        // Until slots were fought over, and jobs of a key have waited for each other.
        while !full_and_blocked(&mut client) {
            linger(&mut client, 0.2);
        }
        linger(&mut client, 1.5);
    });
    shared.log.past.still();
    let touched = Knowledge::new(Silence::MeansEither).take_in(shared.log.take().0);
    drop(read_all(&server, &touched, &shared.log.past));
    let history = shared.log.past.history(Silence::MeansEither);
    let report = check(&history);
    assert!(report.is_explained(), "{:?} {:?}", report.contradictions, report.undecided);
    let found = |history: &History, what: &str| {
        let told = check(history).contradictions.into_iter().map(|one| one.text);
        let found: Vec<String> = told.filter(|text| text.starts_with(what)).collect();
        assert_eq!(found.len(), 1, "{what}: {found:?}");
    };
    found(&with_one_key(&history), "ordering key planted: more than one job ran at a time");
    found(&with_one_key(&history), "ordering key planted: a later job went first");
    let mut lower = history;
    lower.rules.limits.insert(LIMIT.0.to_owned(), LIMIT.1 - 1);
    for partition in ["a", "b"] {
        found(
            &lower,
            &format!("limit {}:{partition}: more than {} jobs ran at a time", LIMIT.0, LIMIT.1 - 1),
        );
    }
}

/// Both partitions of the limit are full, and somebody waits for another of his key.
fn full_and_blocked(client: &mut Client) -> bool {
    let blocked = client.get("/stats").expect(200)["counts"]["blocked"].as_i64();
    let uses = client.get(&format!("/limits/{}", LIMIT.0)).expect(200)["uses"].clone();
    let full = uses.as_array().into_iter().flatten().filter(|of| of["closed"] == "limit_full").count();
    blocked > Some(0) && full == 2
}
