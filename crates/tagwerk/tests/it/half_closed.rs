//! Clients that close their side when they have sent their request, and clients that are gone. The network shows both
//! alike, so the former get their answers and neither gets a job.

use std::io::{BufRead as _, ErrorKind};
use std::net::Shutdown;

use serde_json::{Value, json};

use crate::client::{Answer, Client, request};
use crate::server::{JSON, Server};

/// Sends a request, closes the side it was sent on, and reads the answer. The server sees both at once.
fn half_closed(server: &Server, call: &str, body: &Value) -> Answer {
    server.stand_still();
    let mut client = begin(server, call, body);
    close_ours(server, &mut client);
    server.signal("CONT");
    client.finish(call).expect("an answer")
}

fn begin(server: &Server, call: &str, body: &Value) -> Client {
    let mut client = server.client();
    let sent = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    client.begin(&request(server.addr(), call, &[JSON], &sent)).expect("to send");
    client
}

fn close_ours(server: &Server, client: &mut Client) {
    let stream = client.stream().expect("a connection").get_mut();
    stream.shutdown(Shutdown::Write).expect("to close");
    server.learns_of_the_end(stream.local_addr().expect("an address"));
}

pub(crate) fn parked(server: &Server) -> i64 {
    server.get("/stats").expect(200)["commits"]["parked_claims"].as_i64().expect("a number")
}

#[test]
fn a_half_closed_client_gets_its_answer() {
    let server = Server::start();
    half_closed(&server, "POST /jobs", &json!({"type": "t"})).expect(201);
    half_closed(&server, "GET /jobs/1", &Value::Null).expect(200);
    half_closed(&server, "GET /jobs?limit=10", &Value::Null).expect(200);
    let bulk = half_closed(&server, "POST /jobs/bulk", &json!({"jobs": [{"type": "t"}]})).expect(200);
    assert_eq!(bulk["results"][0]["status"], 201);
    let waiting = half_closed(&server, "GET /jobs/1?wait_seconds=0.2", &Value::Null).expect(200);
    assert_eq!(waiting["status"], "pending");
    let job = server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    let path = format!("POST /jobs/{}/complete", job["id"]);
    assert_eq!(
        half_closed(&server, &path, &json!({"lease": job["lease"]})).expect(200)["status"],
        "completed"
    );
}

#[test]
fn a_half_closed_client_gets_no_job_and_is_told_why() {
    let server = Server::start();
    server.post("/jobs", &json!({"type": "t"})).expect(201);
    let claim = json!({"worker_id": "w", "wait_seconds": 50});
    for call in ["POST /jobs/claim", "POST /jobs/claim/bulk"] {
        let problem = half_closed(&server, call, &claim).problem(422, "invalid-request");
        assert!(problem["detail"].as_str().expect("a text").contains("keep it open"), "{problem}");
    }
    let reports = json!({"reports": [], "claim": {"worker_id": "w"}});
    let answer = half_closed(&server, "POST /jobs/report/bulk", &reports).expect(200);
    assert_eq!((&answer["jobs"], &answer["claim_problem"]["code"]), (&json!([]), &json!("invalid-request")));
    // No attempt was burnt, nobody holds it. A claim that was decided before it was withdrawn has given it back.
    let wish = json!({"worker_id": "next", "wait_seconds": 50});
    let job = server.post("/jobs/claim", &wish).expect(200);
    assert_eq!(
        [&job["attempt"], &job["lease_losses"], &job["retry_count"]],
        [&json!(1), &json!(0), &json!(0)]
    );
}

/// The server hears of the end only when it has handed out the jobs and begun to answer. The answer is larger than what the
/// network takes unread, so its last piece is still to come.
#[test]
fn a_client_that_closes_its_side_in_the_middle_of_an_answer_gets_no_job() {
    const JOBS: usize = 40;
    let server = Server::start();
    let large = json!({"type": "t", "payload": {"text": "x".repeat(200 * 1024)}});
    for _ in 0..JOBS {
        server.post("/jobs", &large).expect(201);
    }
    let claim = json!({"worker_id": "w", "max_jobs": JOBS});
    let reports = json!({"reports": [], "claim": claim});
    for (call, body) in [("POST /jobs/claim/bulk", &claim), ("POST /jobs/report/bulk", &reports)] {
        let mut client = begin(&server, call, body);
        let begun = client.stream().and_then(|stream| stream.fill_buf()).expect("the beginning of an answer");
        assert!(begun.starts_with(b"HTTP/1.1 200 "), "{call}");
        close_ours(&server, &mut client);
        let error = client.finish(call).expect_err("a whole answer");
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{call}: {error}");
        // Nobody holds one, and no attempt was burnt.
        let wish = json!({"worker_id": "next", "max_jobs": JOBS, "wait_seconds": 50});
        let claimed = server.post("/jobs/claim/bulk", &wish).expect(200);
        let jobs = claimed["jobs"].as_array().expect("jobs");
        assert_eq!(jobs.len(), JOBS, "{call}");
        for job in jobs {
            assert_eq!((&job["attempt"], &job["lease_losses"]), (&json!(1), &json!(0)), "{call}");
            let release = format!("/jobs/{}/release", job["id"]);
            server.post(&release, &json!({"lease": job["lease"]})).expect(200);
        }
    }
}

#[test]
fn waiting_claims_of_clients_that_went_away_are_withdrawn() {
    let server = Server::start();
    let claim = |worker: &str| {
        let body = json!({"worker_id": worker, "wait_seconds": 60, "queues": ["q"]});
        begin(&server, "POST /jobs/claim", &body)
    };
    let (mut closes, mut halves, mut stays) = (claim("closes"), claim("halves"), claim("stays"));
    while parked(&server) < 3 {}
    closes.close();
    halves.stream().expect("a connection").get_mut().shutdown(Shutdown::Write).expect("to close");
    halves.finish("POST").expect("an answer").problem(422, "invalid-request");
    server.post("/jobs", &json!({"type": "t", "queue": "q"})).expect(201);
    let job = stays.finish("POST").expect("an answer").expect(200);
    let facts = [&job["worker_id"], &job["attempt"], &job["lease_losses"]];
    assert_eq!(facts, [&json!("stays"), &json!(1), &json!(0)]);
}
