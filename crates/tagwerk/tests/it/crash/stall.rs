//! Time in which nobody could report does not count against a lease: the server stands still, or is down.

use std::time::Duration;

use serde_json::json;

use crate::server::Server;
use crate::support::{Held, claim_all, enqueue_all, list, nothing_in};

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
