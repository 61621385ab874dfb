//! Time in which nobody could report does not count against a lease: the server stands still, or is down.

use std::time::Duration;

use serde_json::json;

use super::client::{Hand, Shared};
use super::gate::Gate;
use super::log::{Knowledge, Log};
use super::model::Silence;
use super::roles::{Gossip, Role};
use super::{Depth, EndOfRun, drain, report, seed, verify};
use crate::server::Server;
use crate::support::dice::Dice;
use crate::support::{Held, claim_all, enqueue_all, linger, list, nothing_in, setting};

/// Longer than the gap from which leases are moved, and than the leases.
const AWAY: Duration = Duration::from_millis(3_600);

/// Fifty jobs under leases that end within the pause.
fn fifty_held(server: &Server) -> Vec<Held> {
    let mut client = server.client();
    enqueue_all(&mut client, &vec![json!({"type": "t", "queue": "q"}); 50]);
    let wish = json!({"worker_id": "w", "queues": ["q"], "lease_seconds": 2, "max_jobs": 50});
    let held = claim_all(&mut client, &wish);
    assert_eq!(held.len(), 50);
    held
}

/// Everybody still has their job, and nobody else gets one.
fn assert_still_held(server: &Server, held: &[Held]) {
    let mut client = server.client();
    assert!(nothing_in(&mut client, "q"), "a live lease was taken away");
    for held in held {
        let beat = held.heartbeat(&mut client).expect(200);
        assert_eq!(beat["continue"], true, "{beat}");
    }
    for held in held {
        assert_eq!(held.complete(&mut client)["attempt"], 1);
    }
    let jobs = list(&mut client, "?queue=q");
    assert!(jobs.iter().all(|job| job["status"] == "completed" && job["lease_losses"] == 0), "{jobs:?}");
    assert_eq!(server.get("/stats").expect(200)["totals"]["lease_losses"], 0);
}

#[test]
fn a_server_that_stood_still_moves_live_leases() {
    let server = Server::start();
    let held = fifty_held(&server);
    server.signal("STOP");
    std::thread::sleep(AWAY); // tidy: sleep because nothing signals while the server stands still
    server.signal("CONT");
    assert_still_held(&server, &held);
}

#[test]
fn a_server_that_was_down_moves_live_leases() {
    let mut server = Server::start();
    let held = fifty_held(&server);
    server.kill();
    std::thread::sleep(AWAY); // tidy: sleep because nothing signals while no server is there
    server.start_again();
    assert_still_held(&server, &held);
}

/// When a client has had enough. Shorter than the pause, longer than any of them waits for an answer.
const PATIENCE: Duration = Duration::from_millis(1_800);

/// Clients do not hear from it, go away, come back and ask again. What they had asked for is done all the same when it goes on,
/// and all of it once.
#[test]
fn a_server_that_stands_still_under_load_does_everything_once() {
    let servers: u32 = setting::<u32>("TAGWERK_CRASH_ROUNDS", 8).div_ceil(8);
    for seed in (seed()..).take(servers as usize) {
        stand_still_under_load(seed);
    }
}

fn stand_still_under_load(seed: u64) {
    eprintln!("TAGWERK_CRASH_SEED={seed}");
    let server = Server::start();
    super::roles::prepare(&server);
    let shared = Shared { gate: Gate::new(), log: Log::default(), patience: PATIENCE, expected: &[] };
    let (gossip, mut known) = (Gossip::default(), Knowledge::new(Silence::MayComeLate));
    std::thread::scope(|scope| {
        for number in 0..32 {
            let dice = Dice::new(seed, 1 + u64::try_from(number).expect("a number"));
            let (hand, gossip) = (Hand::new(number, dice, &shared), &gossip);
            scope.spawn(move || Role::of(number).play(hand, gossip));
        }
        let end = EndOfRun(&shared.gate);
        let mut client = server.client();
        shared.gate.open(server.addr());
        linger(&mut client, 0.5);
        server.stand_still();
        std::thread::sleep(AWAY); // tidy: sleep because nothing signals while the server stands still
        server.signal("CONT");
        linger(&mut client, 0.5);
        shared.gate.close();
        // What was asked before is taken before this.
        linger(&mut client, 0.2);
        shared.log.past.still();
        let found = verify(&server, &shared, &mut known, Depth::Whole);
        report(&found, &server, &known, (seed, 1));
        drop(end);
    });
    let silent: i64 = known.tallies().map(|(_, tally)| tally.silent).sum();
    assert!(silent > 0, "nobody lost patience");
    shared.log.past.must_be_explained(known.silence(), ("stalled", seed));
    drain(&server);
    assert!(!server.log().contains("panicked"), "the server panicked");
}
