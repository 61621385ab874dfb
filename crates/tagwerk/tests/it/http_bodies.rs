//! Bodies: how large, how slow, how many.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::request;
use crate::server::{JSON, Options, Server};

const MIB: usize = 1024 * 1024;

#[test]
fn a_body_over_its_limit_is_refused_before_it_is_read() {
    let server = Server::start();
    for (path, limit) in [("/jobs", 8 * MIB), ("/jobs/claim", 8 * MIB), ("/jobs/bulk", 64 * MIB)] {
        let mut client = server.client();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            limit + 1
        );
        // Only the head is sent; the answer comes all the same.
        let problem = client.raw(head.as_bytes()).expect("an answer").problem(413, "body-too-large");
        assert!(
            problem["detail"].as_str().is_some_and(|detail| detail.contains(&limit.to_string())),
            "{problem}"
        );
    }
    let absurd = "POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n";
    if let Ok(answer) = server.client().raw(absurd.as_bytes()) {
        assert!(matches!(answer.status, 400 | 413), "{answer:?}");
    }
}

#[test]
fn whoever_sends_too_much_all_the_same_sees_why_it_was_refused() {
    let server = Server::start();
    let body = vec![b' '; 9 * MIB];
    server.client().send("POST /jobs", &[JSON], &body).problem(413, "body-too-large");
    // In pieces, without saying how much there will be.
    let mut client = server.client();
    let head = "POST /jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.begin(head.as_bytes()).expect("to send");
    let chunk = [format!("{MIB:x}\r\n").as_bytes(), &vec![b' '; MIB], b"\r\n"].concat();
    for _ in 0..9 {
        client.begin(&chunk).expect("to send");
    }
    client.finish("").expect("an answer").problem(413, "body-too-large");
}

#[test]
fn a_client_that_asks_first_is_told_before_it_sends() {
    let server = Server::start();
    let mut client = server.client();
    let head = |length: usize| {
        format!(
            "POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n\
             Content-Length: {length}\r\n\r\n"
        )
    };
    client.raw(head(9 * MIB).as_bytes()).expect("an answer").problem(413, "body-too-large");
    let mut client = server.client();
    let told = client.raw(head(12).as_bytes());
    assert_eq!(told.expect("an interim answer").status, 100);
    client.begin(b"{\"type\":\"t\"}").expect("to send");
    client.finish("").expect("an answer").expect(201);
}

#[test]
fn bodies_in_pieces_and_at_their_limit_are_taken() {
    let server = Server::with(Options::default().set("payload.max_bytes=7340032"));
    let mut client = server.client();
    let pieces = "POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                  Transfer-Encoding: chunked\r\n\r\n6\r\n{\"type\r\n6\r\n\":\"t\"}\r\n0\r\n\r\n";
    client.raw(pieces.as_bytes()).expect("an answer").expect(201);
    let payload = format!("\"{}\"", "x".repeat(7_340_032 - 2));
    let job = client.post_text("/jobs", &format!("{{\"type\":\"t\",\"payload\":{payload}}}")).expect(201);
    assert_eq!(job["payload"].as_str().map(str::len), Some(7_340_030));
    let one_more = format!("\"{}\"", "x".repeat(7_340_032 - 1));
    client
        .post_text("/jobs", &format!("{{\"type\":\"t\",\"payload\":{one_more}}}"))
        .problem(422, "payload-too-large");
}

#[test]
fn a_body_that_stops_coming_is_given_up() {
    let server = Server::start();
    let mut client = server.client();
    let head = "POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{\"ty";
    let start = Instant::now();
    let answer = client.raw(head.as_bytes()).expect("an answer");
    let problem = answer.problem(408, "request-timeout");
    assert_eq!(problem["retryable"], true);
    let took = start.elapsed();
    assert!((Duration::from_secs(14)..Duration::from_secs(30)).contains(&took), "{took:?}");
    assert_eq!(server.get("/stats").expect(200)["counts"]["enqueued"], 0);
}

#[test]
fn a_broken_off_body_stores_nothing() {
    let server = Server::start();
    let mut client = server.client();
    let head = "POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Transfer-Encoding: chunked\r\n\r\nC\r\n{\"type\":\"t\"}\r\nnonsense\r\n\r\n";
    if let Ok(answer) = client.raw(head.as_bytes()) {
        assert_eq!(answer.status, 400, "{answer:?}");
    }
    let mut client = server.client();
    client
        .begin(b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{\"type\":\"t\"}")
        .expect("to send");
    client.close();
    for nonsense in [&b"\x16\x03\x01\x02\x00\x01\x00\x01"[..], b"GET\r\n\r\n", b"{\"type\":\"t\"}\r\n\r\n"] {
        if let Ok(answer) = server.client().raw(nonsense) {
            assert_eq!(answer.status, 400, "{answer:?}");
        }
    }
    assert_eq!(server.get("/stats").expect(200)["counts"]["enqueued"], 0);
}

#[test]
fn a_connection_that_says_nothing_is_closed() {
    let server = Server::start();
    let start = Instant::now();
    let silent: Vec<TcpStream> =
        [&b""[..], b"PRI * HTTP/2.0\r\n", b"\r\n\r\n", b"GET /livez HTTP/1.1\r\nHost:"]
            .into_iter()
            .map(|bytes| {
                let mut stream = TcpStream::connect(server.addr()).expect("a connection");
                stream.write_all(bytes).expect("to send");
                stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a timeout");
                stream
            })
            .collect();
    for mut stream in silent {
        assert_eq!(stream.read(&mut [0; 100]).unwrap_or_default(), 0, "closed without a word");
    }
    let took = start.elapsed();
    assert!((Duration::from_secs(25)..Duration::from_secs(59)).contains(&took), "{took:?}");
    server.get("/livez").expect(200);
}

#[test]
fn a_head_over_its_limit_is_refused() {
    let server = Server::start();
    let long = "x".repeat(100_000);
    let answer = server.client().try_send("GET /jobs", &[("X-Long", &long)], b"");
    assert!(answer.as_ref().map_or(true, |answer| answer.status == 431), "{answer:?}");
    let fits = "x".repeat(30_000);
    server.client().send("GET /jobs", &[("X-Long", &fits)], b"").expect(200);
    let path = format!("/jobs?type={}", "x".repeat(20_000));
    server.get(&path).problem(422, "invalid-request");
}

#[test]
fn what_is_sent_as_something_else_than_json_is_refused_with_the_remedy() {
    let server = Server::start();
    for media in ["application/x-www-form-urlencoded", "text/json", "application/json; charset=latin1", ""] {
        let answer = server.client().send("POST /jobs", &[("Content-Type", media)], b"{\"type\":\"t\"}");
        let problem = answer.problem(415, "unsupported-media-type");
        assert!(
            problem["detail"]
                .as_str()
                .is_some_and(|detail| detail.contains("-H 'Content-Type: application/json'"))
        );
    }
    let bare = request(server.addr(), "POST /jobs", &[], b"{\"type\":\"t\"}");
    server.client().raw(&bare).expect("an answer").problem(415, "unsupported-media-type");
    // Only a bulk can be a stream.
    let ndjson = server.client().send(
        "POST /jobs",
        &[("Content-Type", "application/x-ndjson")],
        b"{\"type\":\"t\"}\n",
    );
    ndjson.problem(415, "unsupported-media-type");
    for media in ["application/json", "Application/JSON; charset=UTF-8"] {
        server.client().send("POST /jobs", &[("Content-Type", media)], b"{\"type\":\"t\"}").expect(201);
    }
}

/// Large payloads and results filled the memory of worker and store.
#[test]
fn f131_large_payloads_do_not_fill_the_memory() {
    let server = Server::with(Options::default().set("payload.max_bytes=1100000"));
    let mut client = server.client();
    let payload = "x".repeat(1_000_000);
    // More than it may keep.
    for _ in 0..20 {
        let jobs: Vec<Value> = (0..10).map(|_| json!({"type": "t", "payload": payload})).collect();
        let answer = client.post("/jobs/bulk", &json!({"jobs": jobs}));
        assert!(answer.body.len() < 20_000, "an answer in list form: {}", answer.body.len());
        assert_eq!(answer.expect(200)["results"][9]["status"], 201);
    }
    let list = client.get("/jobs?limit=1000");
    assert_eq!(list.expect(200)["jobs"].as_array().map(Vec::len), Some(200));
    assert!(list.body.len() < 400_000, "lists leave payloads out");
    let claimed = client.post("/jobs/claim/bulk", &json!({"worker_id": "w", "max_jobs": 100}));
    let jobs = claimed.expect(200)["jobs"].as_array().map(Vec::len);
    assert_eq!(jobs, Some(8), "as many as fit into 8 MiB");
    let one = client.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    assert_eq!(one["payload"].as_str().map(str::len), Some(1_000_000));
    for path in ["/stats", "/queues", "/types", "/workers", "/metrics"] {
        let answer = client.get(path);
        assert!(answer.status == 200 && answer.body.len() < 100_000, "{path}: {}", answer.body.len());
    }
    let rss_kib = server.memory_kib();
    assert!(rss_kib < 150 * 1024, "{rss_kib} KiB for 200 MB of payloads");
}

#[test]
fn a_client_that_does_not_read_does_not_stop_the_others() {
    let server = Server::with(Options::default().set("payload.max_bytes=7000000"));
    let payload = "x".repeat(6_000_000);
    let id = server.post("/jobs", &json!({"type": "t", "payload": payload})).expect(201)["id"].clone();
    let mut deaf: Vec<_> = (0..10).map(|_| server.client()).collect();
    for client in &mut deaf {
        let look = request(server.addr(), &format!("GET /jobs/{id}"), &[], b"");
        client.stream().expect("a connection").get_mut().write_all(&look).expect("to send");
    }
    let start = Instant::now();
    for _ in 0..20 {
        server.get("/readyz").expect(200);
    }
    assert!(start.elapsed() < Duration::from_secs(10));
    assert_eq!(deaf[0].finish("").expect("an answer").expect(200)["id"], id);
}
