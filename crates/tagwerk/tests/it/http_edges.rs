//! What people and programs do to a server that nobody plans for.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::client::request;
use crate::server::{JSON, Server, tagwerk};

#[test]
fn a_compressed_body_is_refused_by_its_name() {
    let server = Server::start();
    let headers = [JSON, ("Content-Encoding", "gzip")];
    let problem = server
        .client()
        .send("POST /jobs", &headers, b"\x1f\x8b\x08\x00")
        .problem(415, "unsupported-media-type");
    assert!(
        problem["detail"].as_str().is_some_and(|detail| detail.contains("Content-Encoding")),
        "{problem}"
    );
    let plain = [JSON, ("Content-Encoding", "identity")];
    server.client().send("POST /jobs", &plain, b"{\"type\":\"t\"}").expect(201);
}

#[test]
fn a_store_whose_file_was_deleted_acknowledges_nothing() {
    let server = Server::start();
    let (file, aside) = (server.file(), server.dir().join("aside.db"));
    let id = server.post("/jobs", &json!({"type": "t"})).expect(201)["id"].clone();
    std::fs::rename(&file, &aside).expect("it moves");
    server.post("/jobs", &json!({"type": "t"})).problem(503, "store-damaged");
    server.get("/readyz").status_is(503);
    assert!(server.log().contains("was deleted or replaced"), "{}", server.log());
    std::fs::rename(&aside, &file).expect("it comes back");
    let next = server.post("/jobs", &json!({"type": "t"})).expect(201)["id"].clone();
    assert_eq!(next.as_i64(), id.as_i64().map(|id| id + 1));
}

#[test]
fn a_second_name_of_the_store_opens_no_second_server() {
    let server = Server::start();
    std::fs::hard_link(server.file(), server.dir().join("other.db")).expect("a link");
    let ran = tagwerk(server.dir(), &["serve", "--listen", "127.0.0.1:0", "--store", "sqlite:other.db"])
        .output()
        .expect("it runs");
    assert_eq!(ran.status.code(), Some(3), "{ran:?}");
}

/// A claim that took more than fits into the sockets on the way, and a client that went away after the first bytes.
#[test]
fn jobs_of_an_answer_that_was_not_written_to_its_end_are_given_back() {
    let server = Server::start();
    let job = json!({"type": "t", "payload": "x".repeat(250_000)});
    for _ in 0..3 {
        server.post("/jobs/bulk", &json!({"jobs": vec![job.clone(); 10]})).expect(200);
    }
    let claim = json!({"worker_id": "gone", "max_jobs": 30, "lease_seconds": 300});
    let mut gone = TcpStream::connect(server.addr()).expect("a connection");
    let body = claim.to_string();
    gone.write_all(&request(server.addr(), "POST /jobs/claim/bulk", &[JSON], body.as_bytes()))
        .expect("to send");
    gone.read_exact(&mut [0; 1_000]).expect("the first bytes");
    drop(gone);
    let mut got = 0;
    while got < 30 {
        let wish = json!({"worker_id": "next", "max_jobs": 30, "wait_seconds": 30});
        let answer = server.post("/jobs/claim/bulk", &wish).expect(200);
        let jobs = answer["jobs"].as_array().expect("jobs");
        assert!(!jobs.is_empty(), "only {got} came back");
        for job in jobs {
            let facts = [&job["attempt"], &job["verify"], &job["retry_count"], &job["release_count"]];
            assert_eq!(facts, [&json!(1), &json!(false), &json!(0), &json!(1)], "no attempt was burnt");
        }
        got += jobs.len();
    }
}

#[test]
fn a_worker_is_told_the_end_that_counts() {
    let server = Server::start();
    server.post("/jobs", &json!({"type": "t", "timeout_seconds": 6})).expect(201);
    let job = server.post("/jobs/claim", &json!({"worker_id": "w", "lease_seconds": 60})).expect(200);
    let ms = |value: &Value| tagwerk_api::parse_rfc3339(value.as_str().expect("a time")).expect("a time");
    assert_eq!(ms(&job["lease_expires_at"]) - ms(&job["claimed_at"]), 6_000);
    assert_eq!(job["heartbeat_seconds"], json!(2));
    let path = format!("/jobs/{}/heartbeat", job["id"]);
    let beat = server.post(&path, &json!({"lease": job["lease"]})).expect(200);
    assert_eq!(
        (&beat["lease_expires_at"], &beat["ends_at"]),
        (&job["lease_expires_at"], &job["lease_expires_at"])
    );
}

#[test]
fn the_place_in_the_line_is_exact_to_a_thousand_and_then_says_more() {
    let server = Server::start();
    server.post("/jobs/bulk", &json!({"jobs": vec![json!({"type": "t"}); 1_100]})).expect(200);
    for (id, position) in [(1, 0), (2, 1), (1_000, 999), (1_001, 1_000), (1_002, 1_001), (1_100, 1_001)] {
        let explain = server.get(&format!("/jobs/{id}/explain")).expect(200);
        assert_eq!(explain["position"], json!(position), "{id}");
    }
    let ran = tagwerk(server.dir(), &["jobs", "explain", "1100", "--url", &server.url()])
        .output()
        .expect("it runs");
    assert!(String::from_utf8_lossy(&ran.stdout).contains("more than 1000 jobs are before it"), "{ran:?}");
}

#[test]
fn parked_claims_are_counted_as_they_are() {
    let server = Server::start();
    let mut clients: Vec<_> = (0..3).map(|_| server.client()).collect();
    for (n, client) in clients.iter_mut().enumerate() {
        let body = json!({"worker_id": format!("w{n}"), "wait_seconds": 30}).to_string();
        client.begin(&request(server.addr(), "POST /jobs/claim", &[JSON], body.as_bytes())).expect("to send");
    }
    let parked = || server.get("/stats").expect(200)["commits"]["parked_claims"].as_i64().expect("a number");
    while parked() < 3 {}
    server.post("/jobs/bulk", &json!({"jobs": vec![json!({"type": "t"}); 3]})).expect(200);
    for client in &mut clients {
        client.finish("claim").expect("an answer").expect(200);
    }
    assert_eq!(parked(), 0);
}

/// Bodies of unknown length are reckoned large; claims that wait must not keep the room of theirs.
#[test]
fn waiting_claims_in_chunks_keep_nobody_out() {
    let server = Server::start();
    let mut waiting = Vec::new();
    for n in 0..600 {
        let body = json!({"worker_id": format!("w{n}"), "queues": ["empty"], "wait_seconds": 60}).to_string();
        let mut client = server.client();
        let chunked = format!(
            "POST /jobs/claim HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
            body.len()
        );
        client.begin(chunked.as_bytes()).expect("to send");
        waiting.push(client);
    }
    while server.get("/stats").expect(200)["commits"]["parked_claims"] != 600 {}
    server.post("/jobs", &json!({"type": "t"})).expect(201);
}
