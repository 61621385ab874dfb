//! What the settings of a type let its jobs ask for, over HTTP and on the command line.

use serde_json::{Value, json};

use crate::cli_ran::run;
use crate::server::{Options, Server};

#[test]
fn a_type_says_queues_priority_and_size_and_a_job_beyond_is_refused_by_field() {
    let mut server = Server::start();
    let rules = json!({"queue": "mail", "queues": ["mail", "bulk"], "priority_ceiling": "high", "payload_max_bytes": 64});
    let put = server.put("/types/send", &rules).expect(200);
    assert_eq!(
        (&put["queues"], &put["priority_ceiling"], &put["payload_max_bytes"]),
        (&json!(["mail", "bulk"]), &json!(20), &json!(64))
    );
    assert_eq!(server.put("/types/send", &put).expect(200), put, "what GET shows can be sent back");
    let refused = |server: &Server, job: Value, code: &str, field: &str| {
        let problem = server.post("/jobs", &job).problem(422, code);
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
        problem["detail"].as_str().expect("a text").to_owned()
    };
    let detail = refused(&server, json!({"type": "send", "queue": "critical"}), "invalid-request", "queue");
    assert!(detail.contains("mail, bulk"), "{detail}");
    refused(&server, json!({"type": "send", "priority": 21}), "invalid-request", "priority");
    let large = json!({"type": "send", "payload": "x".repeat(63)});
    let detail = refused(&server, large.clone(), "payload-too-large", "payload");
    assert!(detail.contains("65 bytes") && detail.contains("64"), "{detail}");
    server.post("/jobs", &json!({"type": "send", "payload": "x".repeat(62), "priority": "high"})).expect(201);
    server.post("/jobs", &json!({"type": "other", "queue": "critical", "priority": 100})).expect(201);
    let bulk = json!({"jobs": [{"type": "send"}, large]});
    let results = server.post("/jobs/bulk", &bulk).expect(200)["results"].clone();
    assert_eq!(
        (&results[0]["status"], &results[1]["problem"]["code"]),
        (&json!(201), &json!("payload-too-large"))
    );
    assert_eq!(results[1]["problem"]["errors"][0]["field"], "jobs[1].payload");
    server.kill();
    server.start_again();
    refused(&server, json!({"type": "send", "queue": "critical"}), "invalid-request", "queue");
    let wrong =
        server.put("/types/send", &json!({"queue": "a", "queues": ["b"]})).problem(422, "invalid-request");
    assert_eq!(
        (&wrong["errors"][0]["field"], &wrong["errors"][0]["code"]),
        (&json!("queue"), &json!("conflict"))
    );
}

#[test]
fn strict_types_name_the_one_that_was_meant() {
    let server = Server::with(Options::default().set("types.strict=true"));
    let problem = server.post("/jobs", &json!({"type": "send-invoice"})).problem(422, "unknown-type");
    assert!(!problem["detail"].as_str().expect("a text").contains("did you mean"), "{problem}");
    server.put("/types/send-invoice", &json!({})).expect(200);
    server.post("/jobs", &json!({"type": "send-invoice"})).expect(201);
    let problem = server.post("/jobs", &json!({"type": "sendInvoce"})).problem(422, "unknown-type");
    assert!(
        problem["detail"].as_str().expect("a text").contains("did you mean \"send-invoice\"?"),
        "{problem}"
    );
    assert_eq!((&problem["errors"][0]["field"], &problem["retryable"]), (&json!("type"), &json!(false)));
    let lines = "{\"type\":\"send-invoice\"}\n{\"type\":\"sendInvoce\"}\n";
    let answer = server.client().send(
        "POST /jobs/bulk",
        &[("Content-Type", "application/x-ndjson")],
        lines.as_bytes(),
    );
    assert!(
        answer.text().contains("unknown-type") && answer.text().contains("\"refused\":1"),
        "{}",
        answer.text()
    );
}

#[test]
fn the_command_line_sets_shows_and_unsets_the_rules() {
    let server = Server::start();
    let set = |args: &[&str]| run(&server, &[&["types", "set", "mail", "--json"], args].concat()).json();
    let info = set(&[
        "--allow-queue",
        "a",
        "--allow-queue",
        "b",
        "--priority-ceiling",
        "high",
        "--payload-max-bytes",
        "99",
    ]);
    assert_eq!(
        (&info["queues"], &info["priority_ceiling"], &info["payload_max_bytes"]),
        (&json!(["a", "b"]), &json!(20), &json!(99))
    );
    let shown = run(&server, &["types", "show", "mail"]);
    assert!(shown.expect(0).contains("a, b") && shown.expect(0).contains("at most 99 bytes"), "{shown:?}");
    let info =
        set(&["--unset", "allow-queue", "--unset", "priority-ceiling", "--unset", "payload-max-bytes"]);
    assert_eq!(
        (&info["queues"], &info["priority_ceiling"], &info["payload_max_bytes"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
}
