//! Clients that begin a handshake and do not end it, or send something else.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{PATIENCE, Tls, server};
use crate::server::Server;

fn open(server: &Server, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(server.addr()).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    stream.write_all(bytes).expect("to write");
    stream
}

/// The first bytes of a record of TLS: a handshake of 512 bytes, of which these are all that come.
const HALF: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00";

/// What the server sends until it closes.
fn rest(mut stream: TcpStream) -> usize {
    let mut bytes = Vec::new();
    // A reset is an end too.
    stream.read_to_end(&mut bytes).map_or(0, |length| length)
}

#[test]
fn half_open_handshakes_hold_nobody_up_and_end() {
    let (authority, server) = server();
    let begun = Instant::now();
    let half: Vec<TcpStream> = (0..200).map(|n| open(&server, &HALF[..n % (HALF.len() + 1)])).collect();
    for n in 0..20 {
        let mut tls = Tls::connect(&server, &authority).expect("a connection");
        tls.send("POST /jobs", &json!({"type": "t", "payload": n})).expect(201);
    }
    assert!(begun.elapsed() < Duration::from_secs(8), "they waited for the others: {:?}", begun.elapsed());
    for stream in half {
        assert_eq!(rest(stream), 0, "an end without a word");
    }
    let took = begun.elapsed();
    assert!(took > Duration::from_secs(9) && took < Duration::from_secs(30), "{took:?}");
    let mut tls = Tls::connect(&server, &authority).expect("a connection");
    assert_eq!(tls.send("GET /stats", &Value::Null).expect(200)["counts"]["enqueued"], 20);
}

#[test]
fn what_is_neither_tls_nor_http_is_closed_at_once() {
    let (authority, server) = server();
    let begun = Instant::now();
    for bytes in [
        &b"\0\0\0\0\0\0\0\0"[..],
        b"\x80\x2e\x01\x03\x01",
        b"\x16\x03\x01\x00\x04\x78\0\0\0",
        b"get / http\r\n\r\n",
    ] {
        rest(open(&server, bytes));
    }
    let stream = open(&server, HALF);
    stream.shutdown(Shutdown::Write).expect("to close");
    rest(stream);
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    Tls::connect(&server, &authority).expect("a connection").send("GET /livez", &Value::Null).expect(200);
}

#[test]
fn a_server_that_is_told_to_stop_does_not_wait_for_handshakes() {
    let (authority, mut server) = server();
    let half: Vec<TcpStream> = (0..20).map(|_| open(&server, HALF)).collect();
    // Behind them: they have been accepted.
    Tls::connect(&server, &authority).expect("a connection").send("GET /livez", &Value::Null).expect(200);
    let begun = Instant::now();
    assert!(server.terminate().success());
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    drop(half);
}
