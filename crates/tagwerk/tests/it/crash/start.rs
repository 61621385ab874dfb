//! Killed while it starts: while it makes the file, or puts right what an earlier kill has left.

use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;

use crate::server::{Options, Server, tagwerk};
use crate::support::dice::Dice;
use crate::support::{claim_all, enqueue_all, list};

/// Starts a server in this folder and kills it so many microseconds later, however far it has come.
fn kill_at(dir: &std::path::Path, micros: u64) {
    let mut child = tagwerk(dir, &["serve", "--listen", "127.0.0.1:0", "--store", "sqlite:tagwerk.db"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary");
    // Nobody ever sends: this is the time that it gets.
    let (_nobody, nothing) = mpsc::channel::<()>();
    assert!(nothing.recv_timeout(Duration::from_micros(micros)).is_err());
    child.kill().expect("to kill it");
    child.wait().expect("its end");
}

#[test]
fn a_store_that_is_made_under_kills_is_made_in_the_end() {
    let mut dice = Dice::new(1, 1);
    for _ in 0..10 {
        let dir = tempfile::tempdir().expect("a folder");
        for _ in 0..4 {
            kill_at(dir.path(), 1_000 + dice.below(60_000));
        }
        let server = Server::in_dir(dir, Options::default());
        let ids = enqueue_all(&mut server.client(), &vec![json!({"type": "t"}); 3]);
        assert_eq!(ids, [1, 2, 3]);
    }
}

#[test]
fn a_store_that_is_recovered_under_kills_has_everything() {
    let mut dice = Dice::new(1, 2);
    let mut server = Server::start();
    for round in 1..=8 {
        let mut client = server.client();
        let payload = "x".repeat(20_000);
        enqueue_all(&mut client, &vec![json!({"type": "t", "queue": "q", "payload": payload}); 50]);
        // Some leases too: they are moved or ended by whoever starts.
        let wish = json!({"worker_id": "w", "queues": ["q"], "lease_seconds": 1, "max_jobs": 5});
        assert_eq!(claim_all(&mut client, &wish).len(), 5);
        server.kill();
        for _ in 0..4 {
            kill_at(server.dir(), 1_000 + dice.below(80_000));
        }
        server.start_again();
        let jobs = list(&mut server.client(), "?queue=q");
        assert_eq!(jobs.len(), round * 50, "round {round}");
        assert!(jobs.iter().all(|job| job["status"] == "pending" || job["status"] == "running"));
    }
    assert!(super::check_command(&server).is_none());
}
