//! Clients that close their side when they have sent their request, and clients that are gone. The network shows both
//! alike, so the former get their answers and neither gets a job.

use std::net::Shutdown;

use serde_json::{Value, json};

use crate::client::{Answer, Client, request};
use crate::server::{JSON, Server};

/// Sends a request, closes the side it was sent on, and reads the answer.
fn half_closed(server: &Server, call: &str, body: &Value) -> Answer {
    half_closed_or_cut(server, call, body).expect("an answer")
}

/// The same where the server may have begun to answer with a lease just before it saw that the client had closed: then the
/// answer is cut off and the lease given back.
fn half_closed_or_cut(server: &Server, call: &str, body: &Value) -> std::io::Result<Answer> {
    let mut client = server.client();
    let sent = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    client.begin(&request(server.addr(), call, &[JSON], &sent)).expect("to send");
    close_ours(&mut client);
    client.finish(call)
}

fn close_ours(client: &mut Client) {
    client.stream().expect("a connection").get_mut().shutdown(Shutdown::Write).expect("to close");
}

fn parked(server: &Server) -> i64 {
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
        let told = (0..20).find_map(|_| half_closed_or_cut(&server, call, &claim).ok());
        let problem = told.expect("an answer to one of twenty").problem(422, "invalid-request");
        assert!(problem["detail"].as_str().expect("a text").contains("keep it open"), "{problem}");
    }
    let reports = json!({"reports": [], "claim": {"worker_id": "w"}});
    let told = (0..20).find_map(|_| half_closed_or_cut(&server, "POST /jobs/report/bulk", &reports).ok());
    let answer = told.expect("an answer to one of twenty").expect(200);
    assert_eq!((&answer["jobs"], &answer["claim_problem"]["code"]), (&json!([]), &json!("invalid-request")));
    // No attempt was burnt, nobody holds it. A claim that was decided before it was withdrawn has given it back.
    let wish = json!({"worker_id": "next", "wait_seconds": 50});
    let job = server.post("/jobs/claim", &wish).expect(200);
    assert_eq!(
        [&job["attempt"], &job["lease_losses"], &job["retry_count"]],
        [&json!(1), &json!(0), &json!(0)]
    );
}

#[test]
fn waiting_claims_of_clients_that_went_away_are_withdrawn() {
    let server = Server::start();
    let claim = |worker: &str| {
        let body = json!({"worker_id": worker, "wait_seconds": 60, "queues": ["q"]}).to_string();
        let mut client = server.client();
        client.begin(&request(server.addr(), "POST /jobs/claim", &[JSON], body.as_bytes())).expect("to send");
        client
    };
    let (mut closes, mut halves, mut stays) = (claim("closes"), claim("halves"), claim("stays"));
    while parked(&server) < 3 {}
    closes.close();
    close_ours(&mut halves);
    halves.finish("POST").expect("an answer").problem(422, "invalid-request");
    server.post("/jobs", &json!({"type": "t", "queue": "q"})).expect(201);
    let job = stays.finish("POST").expect("an answer").expect(200);
    let facts = [&job["worker_id"], &job["attempt"], &job["lease_losses"]];
    assert_eq!(facts, [&json!("stays"), &json!(1), &json!(0)]);
}
