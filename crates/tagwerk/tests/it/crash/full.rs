//! The disk gets full while many clients work. They are told so, nothing that was acknowledged is lost, and when there is room
//! again the server goes on by itself, also one that was killed meanwhile and started on the full disk.

use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;

use super::client::{Hand, Shared};
use super::gate::Gate;
use super::log::{Knowledge, Log};
use super::model::{Asked, Silence};
use super::roles::{Gossip, Role};
use super::{Depth, EndOfRun, PATIENCE, correct, drain, report, seed, verify};
use crate::server::{Options, Server, tagwerk};
use crate::support::dice::Dice;
use crate::support::disk::Disk;
use crate::support::{enqueue, list, setting, text};

/// How long the clients work between one change and the next.
const WHILE: Duration = Duration::from_millis(300);
/// Looks until something must have come about, [`WHILE`] apart.
const LOOKS: usize = 100;

/// Lets the clients work.
fn wait() {
    // Nobody ever sends: this is the time that they get.
    let (_nobody, nothing) = mpsc::channel::<()>();
    assert!(nothing.recv_timeout(WHILE).is_err());
}

/// Whether it is ready, and what it says about itself.
fn ready(server: &Server) -> (u16, String) {
    let answer = server.get("/readyz?verbose");
    (answer.status, answer.text().to_owned())
}

/// Waits until it says that it is ready, or that it is not.
fn wait_until(server: &Server, status: u16) -> String {
    for _ in 0..LOOKS {
        let (found, said) = ready(server);
        if found == status {
            return said;
        }
        wait();
    }
    panic!("not {status}: {:?}", ready(server));
}

/// Rights to mount.
mod needs_tmpfs {
    use super::*;

    /// Writes what has no room until it is refused, large and small. Returns how many were accepted.
    fn press(hand: &mut Hand<'_>, server: &Server) -> usize {
        let mut accepted = 0;
        for _ in 0..LOOKS {
            for bytes in [100_000, 4_000, 1] {
                accepted += press_with(hand, bytes);
            }
            if ready(server).0 == 503 {
                return accepted;
            }
        }
        panic!("the disk does not get full");
    }

    fn press_with(hand: &mut Hand<'_>, bytes: usize) -> usize {
        for accepted in 0..10_000 {
            let mark = hand.name("m");
            let mut job = json!({"type": "t", "queue": "ballast", "correlation_id": mark});
            job["payload"] = job.clone();
            job["payload"]["filler"] = json!("x".repeat(bytes));
            let sent = hand.call("POST /jobs", Some(&job)).expect("the gate is open");
            let seen = hand.note_answer(&sent, Asked::Enqueue { mark, key: None, group: None }, |_| false);
            if seen.is_none() {
                let refused = sent.refused().expect("an answer");
                assert_eq!(refused.problem(503, "store-full")["retryable"], true);
                assert!(refused.header("retry-after").is_some(), "{refused:?}");
                return accepted;
            }
        }
        panic!("the disk does not get full");
    }

    /// It says what is wrong, and shows everything.
    fn assert_full_and_readable(server: &Server, ballast: usize) {
        let said = wait_until(server, 503);
        assert!(said.contains("disk") && said.contains("full"), "{said}");
        server.get("/livez").expect(200);
        let mut client = server.client();
        assert_eq!(list(&mut client, "?queue=ballast").len(), ballast);
        let metrics = client.get("/metrics");
        assert!(metrics.text().contains("tagwerk_store_failing 1"), "{}", metrics.text());
        client.get("/stats").expect(200);
    }

    #[test]
    fn f052_a_disk_that_gets_full_under_load_loses_nothing_and_stops_nobody_for_good() {
        let rounds = setting::<u32>("TAGWERK_CRASH_ROUNDS", 8).div_ceil(4).max(2);
        let seed = seed();
        eprintln!("{rounds} rounds, TAGWERK_CRASH_SEED={seed}");
        let disk = Disk::new("48m");
        let mut server = Server::with(Options::default().store(&disk.file("tagwerk.db")));
        crate::crash::roles::prepare(&server);
        let shared =
            Shared { gate: Gate::new(), log: Log::default(), patience: PATIENCE, expected: &["store-full"] };
        let (gossip, mut known) = (Gossip::default(), Knowledge::new(Silence::MeansEither));
        let mut ballast = 0;
        std::thread::scope(|scope| {
            for number in 0..16 {
                let dice = Dice::new(seed, 1 + u64::try_from(number).expect("a number"));
                let (hand, gossip) = (Hand::new(number, dice, &shared), &gossip);
                scope.spawn(move || Role::of(number).play(hand, gossip));
            }
            let end = EndOfRun(&shared.gate);
            let mut hand = Hand::new(99, Dice::new(seed, 99), &shared);
            for round in 1..=rounds {
                shared.gate.open(server.addr());
                wait();
                disk.fill();
                ballast += press(&mut hand, &server);
                hand.rest();
                assert_full_and_readable(&server, ballast);
                if round % 2 == 0 {
                    server.kill();
                    shared.gate.close();
                    shared.log.past.still();
                    server.start_again();
                    assert_full_and_readable(&server, ballast);
                    let found = verify(&server, &shared, &mut known, Depth::Touched);
                    report(&found, &server, &known, (seed, round));
                    shared.gate.open(server.addr());
                }
                disk.free();
                wait_until(&server, 200);
                wait();
                shared.gate.close();
                shared.log.past.still();
                let found = verify(&server, &shared, &mut known, Depth::Whole);
                report(&found, &server, &known, (seed, round));
                correct(&server, &gossip);
            }
            drop(end);
        });
        shared.log.past.must_be_explained(known.silence(), ("full", seed));
        drain(&server);
        assert!(!server.log().contains("panicked"), "the server panicked");
        // It comes and goes: small calls still fit where large ones do not. The log does not repeat each time.
        let lines = server.log().lines().filter(|line| line.contains("ERROR")).count();
        assert!(lines <= 6 * rounds as usize, "{lines} errors in the log of {rounds} rounds");
    }

    /// The first start, and the start on a store that was closed: there is no room for the file, its log, the log's index.
    #[test]
    fn a_start_on_a_full_disk_says_so_and_leaves_everything_as_it_was() {
        let disk = Disk::new("16m");
        let refused = || {
            let store = format!("sqlite:{}", disk.file("tagwerk.db"));
            let mut command = tagwerk(disk.path(), &["serve", "--listen", "127.0.0.1:0", "--store", &store]);
            let output = command.output().expect("the binary");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(4), "{said}");
            assert!(output.stdout.is_empty(), "{said}");
            assert!(said.contains("is full; free some space"), "{said}");
            assert_eq!(said.matches("full").count(), 1, "it says it twice: {said}");
        };
        disk.fill();
        refused();
        disk.free();
        let mut server = Server::with(Options::default().store(&disk.file("tagwerk.db")));
        let id = enqueue(&mut server.client(), &json!({"type": "t", "payload": "kept"}));
        assert!(server.terminate().success());
        disk.fill();
        refused();
        disk.free();
        server.start_again();
        let kept = server.get(&format!("/jobs/{id}")).expect(200);
        assert_eq!((text(&kept["payload"]), text(&kept["status"])), ("kept", "pending"));
    }
}
