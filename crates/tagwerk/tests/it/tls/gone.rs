//! Clients that close while they wait: over TLS they say so in a message, not only by closing.

use std::io::Write as _;
use std::net::Shutdown;
use std::time::Instant;

use serde_json::{Value, json};

use super::{PATIENCE, Tls, server};

fn parked(tls: &mut Tls) -> i64 {
    tls.send("GET /stats", &Value::Null).expect(200)["commits"]["parked_claims"].as_i64().expect("a number")
}

fn until_parked(tls: &mut Tls, wanted: i64) {
    let begun = Instant::now();
    while parked(tls) != wanted {
        assert!(begun.elapsed() < PATIENCE, "not {wanted} claims wait");
    }
}

/// Says that it closes, and whether also the connection goes.
fn close(tls: &mut Tls, shutdown: Option<Shutdown>) {
    let stream = tls.0.get_mut();
    stream.conn.send_close_notify();
    stream.flush().expect("to write");
    if let Some(how) = shutdown {
        stream.sock.shutdown(how).expect("to close");
    }
}

#[test]
fn a_claim_whose_client_is_gone_gets_no_job() {
    let (authority, server) = server();
    let connect = || Tls::connect(&server, &authority).expect("a connection");
    let mut other = connect();
    for shutdown in [None, Some(Shutdown::Write), Some(Shutdown::Both)] {
        let mut waiting = connect();
        waiting.begin("POST /jobs/claim", &json!({"worker_id": "gone", "wait_seconds": 50}));
        until_parked(&mut other, 1);
        close(&mut waiting, shutdown);
        until_parked(&mut other, 0);
        let job = other.send("POST /jobs", &json!({"type": "t"})).expect(201);
        let claimed =
            other.send("POST /jobs/claim", &json!({"worker_id": "w", "wait_seconds": 20})).expect(200);
        assert_eq!((&claimed["id"], &claimed["attempt"]), (&job["id"], &json!(1)), "{shutdown:?}");
    }
}

#[test]
fn a_client_that_waits_and_stays_gets_its_job_and_its_next_answer() {
    let (authority, server) = server();
    let connect = || Tls::connect(&server, &authority).expect("a connection");
    let (mut waiting, mut other) = (connect(), connect());
    waiting.begin("POST /jobs/claim", &json!({"worker_id": "w", "wait_seconds": 50}));
    until_parked(&mut other, 1);
    // The next request, sent before the answer to the first: the server finds it when it looks whether we are there.
    waiting.begin("GET /livez", &Value::Null);
    let job = other.send("POST /jobs", &json!({"type": "t"})).expect(201);
    assert_eq!(waiting.finish("POST /jobs/claim").expect(200)["id"], job["id"]);
    assert_eq!(waiting.finish("GET /livez").expect(200)["status"], "alive");
    waiting.send("GET /livez", &Value::Null).expect(200);
}

#[test]
fn a_client_that_closes_its_side_gets_its_answer() {
    let (authority, server) = server();
    for shutdown in [None, Some(Shutdown::Write)] {
        let mut tls = Tls::connect(&server, &authority).expect("a connection");
        tls.begin("POST /jobs", &json!({"type": "t"}));
        close(&mut tls, shutdown);
        tls.finish("POST /jobs").expect(201);
    }
}
