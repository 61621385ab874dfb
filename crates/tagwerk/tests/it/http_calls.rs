//! The calls as a client makes them: the plain loop, waiting, bulk, lists.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, request};
use crate::server::{JSON, Options, Server};

/// Enqueues a job of type `t` and returns its id.
fn enqueue(server: &Server) -> i64 {
    server.post("/jobs", &json!({"type": "t"})).expect(201)["id"].as_i64().expect("an id")
}

#[test]
fn the_plain_loop_needs_a_worker_id_and_nothing_else() {
    let server = Server::start();
    let job = server.post("/jobs", &json!({"type": "send"})).expect(201);
    assert_eq!(job["queue"], "default");
    assert_eq!(job["payload"], json!({}));
    let claimed = server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    assert_eq!(claimed["id"], job["id"]);
    assert_eq!(claimed["attempt"], 1);
    assert_eq!(claimed["heartbeat_seconds"], 100);
    assert_eq!(claimed["verify"], false);
    assert_eq!(claimed["lease"].as_str().map(str::len), Some(32));
    // No body at all, and no Content-Type either.
    let path = format!("/jobs/{}/complete", job["id"]);
    let done = server.client().send(&format!("POST {path}"), &[("Content-Length", "0")], b"");
    assert_eq!(done.expect(200)["status"], "completed");
    let bare = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let again = server.client().raw(bare.as_bytes()).expect("an answer");
    assert_eq!(again.status, 200, "a repeated report: {again:?}");
    assert_eq!(again.header("report-replayed"), Some("true"));
}

#[test]
fn an_answer_shows_every_field_and_the_token_only_to_the_claimer() {
    let server = Server::start();
    let id = enqueue(&server);
    let claimed = server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    let token = claimed["lease"].as_str().expect("a token").to_owned();
    for path in [
        "/jobs",
        "/workers",
        "/stats",
        "/queues",
        "/metrics",
        &format!("/jobs/{id}"),
        &format!("/jobs/{id}/attempts"),
        &format!("/jobs/{id}/explain"),
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{path}");
        assert!(!answer.text().contains(&token), "{path}");
    }
    let shown = server.get(&format!("/jobs/{id}")).expect(200);
    let mut expected: BTreeSet<&String> = claimed.as_object().expect("an object").keys().collect();
    for only_claimed in ["lease", "heartbeat_seconds", "replayed"] {
        expected.remove(&only_claimed.to_owned());
    }
    assert_eq!(shown.as_object().expect("an object").keys().collect::<BTreeSet<_>>(), expected);
    assert!(!server.log().contains(&token));
}

#[test]
fn an_empty_claim_says_when_to_ask_again() {
    let server = Server::start();
    let empty = server.post("/jobs/claim", &json!({"worker_id": "w"}));
    assert_eq!((empty.status, empty.text()), (200, "null"));
    assert_eq!(empty.header("retry-after"), Some("5"));
    assert_eq!(empty.header("tagwerk-next-due"), None);
    let job = server.post("/jobs", &json!({"type": "t", "delay_seconds": 3600})).expect(201);
    let later = server.post("/jobs/claim", &json!({"worker_id": "w"}));
    assert_eq!(later.text(), "null");
    assert_eq!(later.header("tagwerk-next-due"), job["available_at"].as_str());
    let bulk = server.post("/jobs/claim/bulk", &json!({"worker_id": "w", "max_jobs": 5}));
    assert_eq!(bulk.expect(200), json!({"jobs": [], "next_due_at": job["available_at"]}));
    assert!(bulk.header("retry-after").is_some());
}

#[test]
fn a_waiting_claim_is_served_by_an_enqueue() {
    let server = Server::start();
    let mut waiting = server.client();
    let claim = json!({"worker_id": "w", "wait_seconds": 60}).to_string();
    waiting.begin(&request(server.addr(), "POST /jobs/claim", &[JSON], claim.as_bytes())).expect("to send");
    until(&server, |stats| stats["commits"]["parked_claims"] == 1);
    let id = enqueue(&server);
    assert_eq!(waiting.finish("").expect("an answer").expect(200)["id"], id);
}

/// Polls `/stats` until it says so.
fn until(server: &Server, is_so: impl Fn(&Value) -> bool) {
    let start = Instant::now();
    while !is_so(&server.get("/stats").expect(200)) {
        assert!(start.elapsed() < Duration::from_secs(20), "{}", server.get("/stats").text());
    }
}

#[test]
fn a_waiting_claim_ends_empty_after_its_time() {
    let server = Server::start();
    let start = Instant::now();
    let answer = server.post("/jobs/claim", &json!({"worker_id": "w", "wait_seconds": 0.3}));
    assert_eq!(answer.text(), "null");
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert!(start.elapsed() >= Duration::from_millis(300));
}

#[test]
fn a_claimer_that_hangs_up_burns_no_attempt() {
    let server = Server::start();
    let mut gone = server.client();
    let claim = json!({"worker_id": "gone", "wait_seconds": 60}).to_string();
    gone.begin(&request(server.addr(), "POST /jobs/claim", &[JSON], claim.as_bytes())).expect("to send");
    until(&server, |stats| stats["commits"]["parked_claims"] == 1);
    gone.close();
    until(&server, |stats| stats["commits"]["parked_claims"] == 0);
    let id = enqueue(&server);
    let claimed = server.post("/jobs/claim", &json!({"worker_id": "w", "wait_seconds": 5})).expect(200);
    assert_eq!((&claimed["id"], &claimed["attempt"]), (&json!(id), &json!(1)));
}

#[test]
fn claimers_that_do_not_wait_for_their_answer_leave_nothing_running() {
    let server = Server::start();
    let jobs: Vec<Value> = (0..30).map(|_| json!({"type": "t"})).collect();
    server.post("/jobs/bulk", &json!({"jobs": jobs})).expect(200);
    let claim = json!({"worker_id": "gone"}).to_string();
    // They are gone before the server reads what they ask for.
    server.stand_still();
    for _ in 0..30 {
        let mut gone = server.client();
        gone.begin(&request(server.addr(), "POST /jobs/claim", &[JSON], claim.as_bytes())).expect("to send");
        let addr = gone.stream().and_then(|stream| stream.get_ref().local_addr()).expect("an address");
        gone.close();
        server.learns_of_the_end(addr);
    }
    server.signal("CONT");
    // Some of their claims may be read only now, so what they let go comes little by little.
    let mut attempts: Vec<Value> = Vec::new();
    let (start, patient) = (Instant::now(), json!({"worker_id": "w", "max_jobs": 100, "wait_seconds": 5}));
    while attempts.len() < 30 && start.elapsed() < Duration::from_secs(20) {
        let claimed = server.post("/jobs/claim/bulk", &patient).expect(200);
        attempts.extend(claimed["jobs"].as_array().expect("jobs").iter().map(|job| job["attempt"].clone()));
    }
    assert_eq!(attempts, vec![1; 30], "no attempt was burnt, no job was kept");
}

#[test]
fn a_look_at_a_job_waits_for_its_end() {
    let server = Server::start();
    let id = enqueue(&server);
    server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    let mut waiting = server.client();
    let look = format!("GET /jobs/{id}?wait_seconds=60");
    waiting.begin(&request(server.addr(), &look, &[], b"")).expect("to send");
    server.post(&format!("/jobs/{id}/complete"), &json!({"result": [1]})).expect(200);
    let job = waiting.finish("").expect("an answer").expect(200);
    assert_eq!((&job["status"], &job["result"]), (&json!("completed"), &json!([1])));
    let start = Instant::now();
    let other = enqueue(&server);
    let pending = server.get(&format!("/jobs/{other}?wait_seconds=0.2")).expect(200);
    assert_eq!(pending["status"], "pending");
    assert!(start.elapsed() >= Duration::from_millis(200));
    server.get(&format!("/jobs/{id}?wait_seconds=60")).expect(200);
    server.get("/jobs/99?wait_seconds=60").problem(404, "job-not-found");
}

#[test]
fn a_repeated_claim_gets_the_same_lease() {
    let server = Server::start();
    enqueue(&server);
    let claim = json!({"worker_id": "w", "request_id": "r-1"});
    let first = server.post("/jobs/claim", &claim).expect(200);
    let again = server.post("/jobs/claim", &claim).expect(200);
    assert_eq!(again["lease"], first["lease"]);
    assert_eq!((&first["replayed"], &again["replayed"]), (&json!(false), &json!(true)));
    assert_eq!(again["attempt"], 1);
}

#[test]
fn bulk_enqueue_judges_each_job_by_itself_or_all_together() {
    let server = Server::start();
    let jobs = json!([{"type": "a"}, {"type": "b", "max_retry": 1}, {"type": "c", "run_at": "2999-01-01T00:00:00Z"}]);
    let results = server.post("/jobs/bulk", &json!({"jobs": jobs})).expect(200);
    let results = results["results"].as_array().expect("results").clone();
    assert_eq!(results.iter().map(|entry| &entry["status"]).collect::<Vec<_>>(), [201, 422, 422]);
    assert_eq!(results[0]["job"]["type"], "a");
    assert!(results[0]["job"].get("payload").is_none(), "the list form");
    assert_eq!(results[1]["problem"]["errors"][0]["field"], "jobs[1].max_retry");
    assert!(results[1]["problem"]["detail"].as_str().is_some_and(|detail| detail.contains("max_retries")));
    assert_eq!(results[2]["problem"]["errors"][0]["field"], "jobs[2].run_at");
    let atomic = server.post("/jobs/bulk", &json!({"jobs": jobs, "atomic": true})).expect(200);
    let statuses: Vec<&Value> =
        atomic["results"].as_array().expect("results").iter().map(|entry| &entry["status"]).collect();
    assert_eq!(statuses[0], 424);
    assert_eq!(statuses[1], 422);
    let far =
        json!({"jobs": [{"type": "a"}, {"type": "c", "run_at": "2999-01-01T00:00:00Z"}], "atomic": true});
    let far = server.post("/jobs/bulk", &far).expect(200);
    assert_eq!(far["results"][0]["problem"]["code"], "atomic-refused");
    assert_eq!(far["results"][1]["status"], 422);
    assert_eq!(server.get("/stats").expect(200)["counts"]["enqueued"], 1);
    assert_eq!(server.post("/jobs/bulk", &json!({"jobs": []})).expect(200), json!({"results": []}));
}

#[test]
fn a_workers_loop_in_one_round_trip() {
    let server = Server::start();
    let jobs: Vec<Value> = (0..5).map(|_| json!({"type": "t"})).collect();
    server.post("/jobs/bulk", &json!({"jobs": jobs})).expect(200);
    let first = server.post("/jobs/claim/bulk", &json!({"worker_id": "w", "max_jobs": 4})).expect(200);
    let held: Vec<(&Value, &Value)> =
        first["jobs"].as_array().expect("jobs").iter().map(|job| (&job["id"], &job["lease"])).collect();
    assert_eq!(held.len(), 4);
    let answer = server.post(
        "/jobs/report/bulk",
        &json!({
            "reports": [
                {"id": held[0].0, "lease": held[0].1, "outcome": "completed", "result": {"ok": true}},
                {"id": held[1].0, "lease": held[1].1, "outcome": "failed", "class": "permanent", "error": "no", "why": 1},
                {"id": held[2].0, "lease": held[2].1, "outcome": "released"},
                {"id": held[3].0, "lease": held[3].1, "outcome": "heartbeat", "progress": {"done": 1}},
                {"id": held[3].0, "lease": "wrong", "outcome": "completed"},
                {"id": 999, "lease": "x", "outcome": "completed"},
                {"id": held[3].0, "outcome": "finished"},
            ],
            "claim": {"worker_id": "w", "max_jobs": 10}
        }),
    );
    let ignored = answer.header("tagwerk-ignored").expect("the header").to_owned();
    assert!(ignored.contains("why"), "{ignored}");
    let answer = answer.expect(200);
    let results = answer["results"].as_array().expect("results");
    let statuses: Vec<&Value> = results.iter().map(|result| &result["status"]).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 409, 404, 422]);
    assert_eq!(results[0]["job"]["status"], "completed");
    assert_eq!(results[1]["job"]["status"], "failed");
    assert_eq!(results[2]["job"]["status"], "pending");
    assert_eq!(results[3]["heartbeat"]["continue"], true);
    assert_eq!(results[4]["problem"]["stop"], true);
    assert_eq!(
        answer["jobs"].as_array().map(Vec::len),
        Some(1),
        "the fifth; the one that was given back is for another worker first"
    );
    assert_eq!(answer["claim_problem"], Value::Null);
}

#[test]
fn results_are_not_held_back_by_the_claim_that_comes_along() {
    let server = Server::start();
    enqueue(&server);
    let held = server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    let report = json!({"id": held["id"], "lease": held["lease"], "outcome": "completed"});
    for (claim, field) in [
        (json!({"worker_id": "w", "wait_seconds": 5}), "claim.wait_seconds"),
        (json!({"worker_id": "w", "max_jobs": 0}), "claim.max_jobs"),
        (json!({}), "claim.worker_id"),
    ] {
        let start = Instant::now();
        let answer =
            server.post("/jobs/report/bulk", &json!({"reports": [report], "claim": claim})).expect(200);
        assert_eq!(answer["results"][0]["status"], 200, "{answer}");
        assert_eq!(answer["claim_problem"]["errors"][0]["field"], field, "{answer}");
        assert_eq!(answer["jobs"], json!([]));
        assert!(start.elapsed() < Duration::from_secs(4));
    }
    let job = server.get(&format!("/jobs/{}", held["id"])).expect(200);
    assert_eq!(job["status"], "completed");
}

#[test]
fn heartbeats_in_bulk() {
    let server = Server::start();
    enqueue(&server);
    let held = server.post("/jobs/claim", &json!({"worker_id": "w", "lease_seconds": 10})).expect(200);
    let leases = json!([{"id": held["id"], "lease": held["lease"]}, {"id": held["id"], "lease": "no"}]);
    let answer =
        server.post("/jobs/heartbeat/bulk", &json!({"worker_id": "w", "leases": leases})).expect(200);
    assert_eq!(answer["results"][0]["heartbeat"]["quiet"], false);
    assert_eq!(answer["results"][0]["job"], Value::Null);
    assert_eq!(answer["results"][1]["status"], 409);
    assert_eq!(
        server.post("/jobs/heartbeat/bulk", &json!({"leases": []})).expect(200),
        json!({"results": []})
    );
}

#[test]
fn lists_are_paged_and_filtered() {
    let server = Server::start();
    let jobs: Vec<Value> = (0..7)
        .map(|n| json!({"type": if n % 2 == 0 { "even" } else { "odd" }, "queue": "q", "subject": {"kind": "order", "id": n.to_string()}}))
        .collect();
    server.post("/jobs/bulk", &json!({"jobs": jobs})).expect(200);
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("/jobs?limit=3{after}")).expect(200);
        seen.extend(
            page["jobs"].as_array().expect("jobs").iter().map(|job| job["id"].as_i64().expect("an id")),
        );
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7]);
    let count =
        |filter: &str| server.get(&format!("/jobs?{filter}")).expect(200)["jobs"].as_array().map(Vec::len);
    assert_eq!(count("type=even"), Some(4));
    assert_eq!(count("type=even&status=completed"), Some(0));
    assert_eq!(count("subject_kind=order&subject_id=5"), Some(1));
    assert_eq!(count("queue=other"), Some(0));
    assert_eq!(count("until=2020-01-01T00:00:00Z"), Some(0));
    let queues = server.get("/queues").expect(200);
    assert_eq!(queues["queues"][0]["counts"]["pending"], 7);
}

#[test]
fn the_review_list_is_filtered_by_why_jobs_failed() {
    let server = Server::with(Options::default().set("max_retries=0"));
    for class in ["transient", "permanent", "unknown"] {
        let id = enqueue(&server);
        server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
        server
            .post(&format!("/jobs/{id}/fail"), &json!({"class": class, "error": {"code": class}}))
            .expect(200);
    }
    let reasons = |filter: &str| -> Vec<Value> {
        let page = server.get(&format!("/review{filter}")).expect(200);
        page["jobs"].as_array().expect("jobs").iter().map(|job| job["failure"]["reason"].clone()).collect()
    };
    assert_eq!(reasons(""), ["retries_exhausted", "permanent", "outcome_unknown"]);
    assert_eq!(reasons("?class=permanent"), ["permanent"]);
    assert_eq!(reasons("?reason=outcome_unknown&type=t"), ["outcome_unknown"]);
    assert_eq!(reasons("?since=2999-01-01T00:00:00Z").len(), 0);
    let page = server.get("/review?limit=2").expect(200);
    assert_eq!(page["jobs"].as_array().map(Vec::len), Some(2));
    let rest =
        server.get(&format!("/review?limit=2&after={}", page["next"].as_str().expect("more"))).expect(200);
    assert_eq!(rest["jobs"].as_array().map(Vec::len), Some(1));
    assert_eq!(rest["next"], Value::Null);
}

#[test]
fn types_have_settings_that_show_with_their_jobs() {
    let server = Server::start();
    server.get("/types/App%5CJobs%5CSend").problem(404, "type-not-found");
    let settings =
        json!({"queue": "mail", "max_retries": 7, "owner": "billing", "retry": {"base_seconds": 1.5}});
    let put = server.put("/types/App%5CJobs%5CSend", &settings).expect(200);
    assert_eq!((&put["type"], &put["configured"]), (&json!("App\\Jobs\\Send"), &json!(true)));
    assert_eq!(put["retry"]["base_seconds"], 1.5);
    let job = server.post("/jobs", &json!({"type": "App\\Jobs\\Send"})).expect(201);
    assert_eq!(
        (&job["queue"], &job["max_retries"], &job["owner"]),
        (&json!("mail"), &json!(7), &json!("billing"))
    );
    let again = server.put("/types/App%5CJobs%5CSend", &put);
    assert_eq!(again.status, 200, "what GET shows can be edited and sent back: {}", again.text());
    let deleted = server.delete("/types/App%5CJobs%5CSend").expect(200);
    assert_eq!(deleted["configured"], false);
    server.delete("/types/App%5CJobs%5CSend").problem(404, "type-not-found");
    let job = server.get(&format!("/jobs/{}", job["id"])).expect(200);
    assert_eq!(job["owner"], Value::Null);
    assert_eq!(server.get("/types").expect(200)["types"][0]["type"], "App\\Jobs\\Send");
}

#[test]
fn a_history_shows_attempts_and_what_operators_did() {
    let server = Server::with(Options::default().set("max_retries=0"));
    let id = enqueue(&server);
    server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    let failed = server.post(&format!("/jobs/{id}/fail"), &json!({"error": "boom"})).expect(200);
    server
        .post(&format!("/jobs/{id}/retry"), &json!({"seen_version": failed["version"], "note": "again"}))
        .expect(200);
    server.post("/jobs/claim", &json!({"worker_id": "w2"})).expect(200);
    let history = server.get(&format!("/jobs/{id}/attempts")).expect(200);
    assert_eq!(history["attempts"].as_array().map(Vec::len), Some(2));
    assert_eq!(history["attempts"][0]["error"], "boom");
    assert_eq!(
        (&history["attempts"][1]["worker_id"], &history["attempts"][1]["ended_at"]),
        (&json!("w2"), &Value::Null)
    );
    assert_eq!(
        (&history["actions"][0]["action"], &history["actions"][0]["reason"]),
        (&json!("retry"), &json!("again"))
    );
    let page = server.get(&format!("/jobs/{id}/attempts?limit=1")).expect(200);
    assert_eq!(page["next"], "1");
    let page = server.get(&format!("/jobs/{id}/attempts?limit=1&after=1")).expect(200);
    assert_eq!(
        (&page["attempts"][0]["seq"], &page["next"], &page["actions"]),
        (&json!(2), &Value::Null, &json!([]))
    );
}

#[test]
fn every_documented_route_answers_and_head_works_where_get_does() {
    let server = Server::start();
    let document = server.get("/openapi.json").expect(200);
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().expect("paths");
    assert!(paths.len() > 20);
    let mut client = server.client();
    for (path, operations) in paths {
        let path = path.replace("{id}", "1").replace("{type}", "t");
        for method in operations.as_object().expect("operations").keys() {
            let method = method.to_uppercase();
            let answer = client.send(&format!("{method} {path}"), &[JSON], b"");
            assert!(answer.status != 405 && answer.status < 500, "{method} {path}: {answer:?}");
            let unknown = answer.status == 404 && answer.json()["code"] == "not-found";
            assert!(!unknown, "{method} {path} is no route");
            if method == "GET" {
                let head = client.send(&format!("HEAD {path}"), &[], b"");
                assert_eq!((head.status, head.body.len()), (answer.status, 0), "{path}");
                assert_eq!(head.header("content-type"), answer.header("content-type"), "{path}");
            }
        }
        let options = client.send(&format!("OPTIONS {path}"), &[], b"");
        options.problem(405, "method-not-allowed");
        let allowed = options.header("allow").expect("Allow").to_owned();
        for method in operations.as_object().expect("operations").keys() {
            assert!(allowed.contains(&method.to_uppercase()), "{path}: {allowed}");
        }
    }
}

#[test]
fn figures_agree_with_each_other() {
    let server = Server::start();
    for _ in 0..3 {
        enqueue(&server);
    }
    server.post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    let stats = server.get("/stats").expect(200);
    assert_eq!((&stats["counts"]["pending"], &stats["counts"]["running"]), (&json!(2), &json!(1)));
    assert_eq!((&stats["totals"]["enqueues"], &stats["totals"]["claims"]), (&json!(3), &json!(1)));
    let metrics = server.get("/metrics");
    assert_eq!(
        metrics.header("content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    for line in [
        "tagwerk_jobs{type=\"t\",status=\"pending\"} 2",
        "tagwerk_queue_jobs{queue=\"default\",status=\"running\"} 1",
        "tagwerk_claims_total{type=\"t\"} 1",
        "tagwerk_store_failing 0",
    ] {
        assert!(metrics.text().lines().any(|found| found == line), "{line}\n{}", metrics.text());
    }
    let workers = server.get("/workers").expect(200);
    assert_eq!(
        (&workers["workers"][0]["worker_id"], &workers["workers"][0]["running"]),
        (&json!("w"), &json!(1))
    );
    assert_eq!(server.get("/livez").expect(200), json!({"status": "alive"}));
    assert_eq!(server.get("/readyz").expect(200), json!({"status": "ready", "checks": null}));
    let verbose = server.get("/readyz?verbose").expect(200);
    assert!(verbose["checks"].as_array().is_some_and(|checks| checks.len() == 3), "{verbose}");
}

#[test]
fn http2_is_spoken_without_being_asked_about_it() {
    let server = Server::start();
    let mut stream = TcpStream::connect(server.addr()).expect("a connection");
    let host = server.addr().to_string();
    // :method GET, :scheme http, :path /livez, :authority
    let mut block = vec![0x82, 0x86, 0x04, 6];
    block.extend_from_slice(b"/livez");
    block.extend([0x41, u8::try_from(host.len()).expect("a short name")]);
    block.extend_from_slice(host.as_bytes());
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]); // SETTINGS
    bytes.extend([0, 0, u8::try_from(block.len()).expect("a short block"), 1, 5, 0, 0, 0, 1]); // HEADERS, the last frame
    bytes.extend(block);
    stream.write_all(&bytes).expect("to send");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("alive") {
        let mut buffer = [0; 1024];
        let length = stream.read(&mut buffer).expect("an answer");
        assert!(length > 0, "closed: {seen:?}");
        seen.extend_from_slice(&buffer[..length]);
    }
}

#[test]
fn a_connection_is_used_again() {
    let server = Server::start();
    let mut client: Client = server.client();
    client.get("/livez").expect(200);
    let port = client.stream().expect("a stream").get_ref().local_addr().expect("an address");
    client.post("/jobs", &json!({"type": "t"})).expect(201);
    client.get("/nope").problem(404, "not-found");
    assert_eq!(client.stream().expect("a stream").get_ref().local_addr().expect("an address"), port);
}
