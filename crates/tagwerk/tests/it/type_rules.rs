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

#[test]
fn a_type_gives_its_jobs_limits_and_keys_where_they_have_none() {
    let mut server = Server::start();
    let settings = json!({"limits": ["crm:t", "api"], "fair_key": "shop", "ordering_key": "all", "on_head_failure": "skip"});
    let problem = server.put("/types/sync", &settings).problem(422, "unknown-limit");
    assert_eq!(problem["detail"], "limits names \"api\", which is no limit here");
    for name in ["crm", "api"] {
        server.put(&format!("/limits/{name}"), &json!({"max_running": 1})).expect(201);
    }
    let misspelt = server.put("/types/sync", &json!({"limits": ["crn"]})).problem(422, "unknown-limit");
    assert_eq!(misspelt["detail"], "limits names \"crn\", which is no limit here; did you mean \"crm\"?");
    assert_eq!(misspelt["errors"][0]["field"], "limits");
    for (wrong, field, text) in [
        (json!({"limits": []}), "limits", "empty"),
        (json!({"limits": ["a", "b", "c"]}), "limits", "at most 2"),
        (json!({"limits": ["crm:"]}), "limits[0]", "the partition after the first colon"),
        (json!({"ordering_key": ""}), "ordering_key", "empty"),
        (json!({"fair_key": "x".repeat(256)}), "fair_key", "255"),
        (json!({"on_head_failure": "wait"}), "on_head_failure", "block"),
    ] {
        let problem = server.put("/types/sync", &wrong).problem(422, "invalid-request");
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(text)), "{problem}");
    }
    assert_eq!(server.get("/types").expect(200)["types"], json!([]), "nothing was stored");
    let put = server.put("/types/sync", &settings).expect(200);
    let fields = ["limits", "fair_key", "ordering_key", "on_head_failure"];
    let given = [json!(["api", "crm:t"]), json!("shop"), json!("all"), json!("skip")];
    assert_eq!(fields.map(|field| put[field].clone()), given);
    assert_eq!(server.put("/types/sync", &put).expect(200), put, "what GET shows can be sent back");
    server.restart();
    let first = server.post("/jobs", &json!({"type": "sync"})).expect(201);
    assert_eq!(fields.map(|field| first[field].clone()), given);
    let own = json!({"type": "sync", "limits": ["crm:own"], "ordering_key": "own"});
    let own = server.post("/jobs", &own).expect(201);
    let expected = [json!(["crm:own"]), json!("shop"), json!("own"), json!("skip")];
    assert_eq!(fields.map(|field| own[field].clone()), expected);
    // They hold: the second of the type waits for the first, in its order and for its slot.
    let second = server.post("/jobs", &json!({"type": "sync"})).expect(201);
    let claim = json!({"worker_id": "w", "types": ["sync"]});
    for id in [&first["id"], &own["id"]] {
        assert_eq!(server.post("/jobs/claim", &claim).expect(200)["id"], *id);
    }
    assert_eq!(server.post("/jobs/claim", &claim).expect(200), Value::Null, "its limit api is full");
    let why = server.get(&format!("/jobs/{}/explain", second["id"])).expect(200);
    let kinds: Vec<&Value> =
        why["reasons"].as_array().expect("reasons").iter().map(|why| &why["kind"]).collect();
    assert!(kinds.contains(&&json!("limit_full")) && kinds.contains(&&json!("blocked_by_key")), "{why}");
    let busy = server.delete("/limits/api").problem(409, "limit-in-use");
    assert_eq!(busy["in_use"], json!({"waiting": 1, "running": 1, "types": ["sync"]}));
    assert!(
        busy["detail"].as_str().is_some_and(|detail| detail.contains("the settings of type \"sync\"")),
        "{busy}"
    );
    // Later settings are for later jobs.
    server.put("/types/sync", &json!({})).expect(200);
    assert_eq!(server.get(&format!("/jobs/{}", second["id"])).expect(200)["limits"], json!(["api", "crm:t"]));
    let plain = server.post("/jobs", &json!({"type": "sync"})).expect(201);
    assert_eq!(fields.map(|field| plain[field].clone()), [json!([]), Value::Null, Value::Null, Value::Null]);
}

#[test]
fn the_command_line_sets_shows_and_unsets_limits_and_keys_of_a_type() {
    let server = Server::start();
    server.put("/limits/crm", &json!({"max_running": 1})).expect(201);
    let types = |args: &[&str]| run(&server, &[&["types"], args].concat());
    let set = [
        "set",
        "sync",
        "--limit",
        "crm:t",
        "--fair-key",
        "shop",
        "--ordering-key",
        "all",
        "--on-head-failure",
        "skip",
    ];
    let shown = types(&set);
    for part in ["crm:t", "shop", "all", "skip"] {
        assert!(shown.expect(0).contains(part), "{part}: {shown:?}");
    }
    let kept = types(&["set", "sync", "--owner", "shop team", "--json"]).json();
    assert_eq!((&kept["limits"], &kept["ordering_key"]), (&json!(["crm:t"]), &json!("all")));
    let unset =
        ["set", "sync", "--unset", "limit", "--unset", "fair-key", "--unset", "ordering-key", "--json"];
    let info = types(&[&unset[..], &["--unset", "on-head-failure"]].concat()).json();
    for field in ["limits", "fair_key", "ordering_key", "on_head_failure"] {
        assert_eq!(info[field], Value::Null, "{field}");
    }
    assert!(types(&["set", "sync", "--limit", "crn"]).fails(1).contains("did you mean \"crm\"?"));
}
