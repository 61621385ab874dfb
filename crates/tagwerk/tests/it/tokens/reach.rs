//! With which jobs: patterns, the ceiling, what is hidden, and who a worker is.

use serde_json::{Value, json};

use super::{EVERYTHING, server_with, with};
use crate::server::{Options, Server};
use crate::support::id_of;

const SHOP: &[&str] = &[
    "shop",
    "--scope",
    "enqueue,work,read,payload,operate,admin",
    "--queue",
    "shop",
    "--queue",
    "shop-*",
    "--type",
    "send-*",
    "--max-priority",
    "high",
];

fn make(server: &Server, token: &str, job: &Value) -> i64 {
    id_of(&with(server, token).post("/jobs", job).expect(201))
}

#[test]
fn way_in_2_and_3_types_and_priorities_out_of_reach_are_refused_never_lowered() {
    let (server, [all, shop]) = server_with(Options::default(), [EVERYTHING, SHOP]);
    let types = json!({"priority": "critical", "queue": "secret"});
    with(&server, &all).send("PUT /types/send-by-default", &types).expect(200);
    for (job, told) in [
        (json!({"type": "charge", "queue": "shop"}), "charge"),
        (json!({"type": "send-x", "queue": "billing"}), "billing"),
        (json!({"type": "send-x"}), "default"),
        (json!({"type": "send-x", "queue": "shop", "priority": "critical"}), "above"),
        (json!({"type": "send-x", "queue": "shop", "priority": 21}), "above"),
        (json!({"type": "send-by-default"}), "secret"),
        (json!({"type": "send-by-default", "queue": "shop"}), "above"),
    ] {
        let problem = with(&server, &shop).post("/jobs", &job).problem(403, "forbidden");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(told)), "{job}: {problem}");
    }
    let bulk = json!({"jobs": [{"type": "send-x", "queue": "shop-1"}, {"type": "charge", "queue": "shop"}]});
    let results = with(&server, &shop).post("/jobs/bulk", &bulk).expect(200)["results"].clone();
    assert_eq!(
        (results[0]["status"].clone(), results[1]["status"].clone()),
        (json!(201), json!(403)),
        "{results}"
    );
    let bearer = format!("Bearer {shop}");
    let lines = b"{\"type\":\"send-x\",\"queue\":\"shop\",\"priority\":\"high\"}\n{\"type\":\"charge\",\"queue\":\"shop\"}\n";
    let streamed = server.client().send(
        "POST /jobs/bulk",
        &[("Content-Type", "application/x-ndjson"), ("Authorization", &bearer)],
        lines,
    );
    let lines: Vec<Value> =
        streamed.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines[0]["status"], 403, "{lines:?}");
    assert_eq!(lines[1]["created"], 1, "{lines:?}");
    assert_eq!(with(&server, &all).get("/stats").expect(200)["counts"]["enqueued"], 2);
}

#[test]
fn follow_ups_are_within_the_reach_of_whoever_reports() {
    let (server, [all, shop]) = server_with(Options::default(), [EVERYTHING, SHOP]);
    let id = make(&server, &all, &json!({"type": "send-x", "queue": "shop"}));
    let claim = json!({"worker_id": "w", "queues": ["shop"], "types": ["send-x"]});
    let held = with(&server, &shop).post("/jobs/claim", &claim).expect(200);
    let complete = |kind: &str| json!({"lease": held["lease"], "enqueue": [{"type": kind, "queue": "shop"}]});
    let path = format!("/jobs/{id}/complete");
    let problem = with(&server, &shop).post(&path, &complete("charge")).problem(403, "forbidden");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("enqueue[0]")), "{problem}");
    let item = json!({"reports": [{"id": id, "lease": held["lease"], "outcome": "completed", "enqueue": [{"type": "charge", "queue": "shop"}]}]});
    let refused = with(&server, &shop).post("/jobs/report/bulk", &item).expect(200);
    assert_eq!(refused["results"][0]["status"], 403, "{refused}");
    assert_eq!(with(&server, &all).get(&format!("/jobs/{id}")).expect(200)["status"], "running");
    with(&server, &shop).post(&path, &complete("send-y")).expect(200);
}

#[test]
fn way_in_9_key_enumeration_what_is_out_of_reach_is_not_there() {
    let (server, [all, shop]) = server_with(Options::default(), [EVERYTHING, SHOP]);
    let hidden = make(
        &server,
        &all,
        &json!({"type": "charge", "queue": "shop", "idempotency_key": "k", "payload": {"card": 4711}}),
    );
    let other = make(&server, &all, &json!({"type": "send-x", "queue": "billing"}));
    let own = make(&server, &all, &json!({"type": "send-x", "queue": "shop"}));
    for id in [hidden, other] {
        let there = [
            ("GET", "", Value::Null),
            ("GET", "?wait_seconds=1", Value::Null),
            ("GET", "/attempts", Value::Null),
            ("GET", "/explain", Value::Null),
            ("POST", "/cancel", json!({})),
            ("POST", "/retry", json!({"seen_version": 1})),
            ("POST", "/discard", json!({"reason": "r"})),
            ("POST", "/force-fail", json!({"reason": "r"})),
            ("POST", "/unblock", json!({"reason": "r"})),
            ("POST", "/complete", json!({"lease": "0".repeat(32)})),
            ("POST", "/fail", json!({"lease": "0".repeat(32)})),
            ("POST", "/release", json!({"lease": "0".repeat(32)})),
            ("POST", "/heartbeat", json!({"lease": "0".repeat(32)})),
            ("POST", "/checkpoint", json!({"lease": "0".repeat(32), "checkpoint": 1})),
            ("DELETE", "", Value::Null),
        ];
        for (method, call, body) in there {
            let path = |id: i64| format!("{method} /jobs/{id}{call}");
            let hidden =
                with(&server, &shop).send(&path(id), &body).problem(404, "job-not-found").to_string();
            let missing =
                with(&server, &shop).send(&path(999_999), &body).problem(404, "job-not-found").to_string();
            // Nothing tells a job that is hidden from one that is not there.
            assert_eq!(hidden.replace(&id.to_string(), "ID"), missing.replace("999999", "ID"), "{call}");
        }
        let lease = "0".repeat(32);
        let beat =
            json!({"worker_id": "w", "leases": [{"id": id, "lease": lease}, {"id": own, "lease": lease}]});
        let beats = with(&server, &shop).post("/jobs/heartbeat/bulk", &beat).expect(200);
        assert_eq!(beats["results"][0]["status"], 404, "{beats}");
        assert_eq!(beats["results"][1]["status"], 409, "{beats}");
    }
    let listed = with(&server, &shop).get("/jobs").expect(200);
    let ids: Vec<i64> = listed["jobs"].as_array().expect("jobs").iter().map(id_of).collect();
    assert_eq!(ids, [own]);
    assert_eq!(with(&server, &shop).get("/jobs?idempotency_key=k").expect(200)["jobs"], json!([]));

    for job in [
        json!({"type": "send-x", "queue": "shop", "idempotency_key": "k"}),
        json!({"type": "send-x", "queue": "shop", "idempotency_key": "k", "on_duplicate": "conflict"}),
        json!({"type": "send-x", "queue": "shop", "idempotency_key": "k", "on_duplicate": "replace"}),
        json!({"type": "send-x", "queue": "shop", "idempotency_key": "k", "on_mismatch": "reject"}),
    ] {
        let taken = with(&server, &shop).post("/jobs", &job).problem(409, "idempotency-key-taken");
        assert!(taken.get("job").is_none() && !taken.to_string().contains("4711"), "{taken}");
        let bulk = with(&server, &shop).post("/jobs/bulk", &json!({"jobs": [job]})).expect(200);
        assert_eq!(bulk["results"][0]["problem"]["code"], "idempotency-key-taken", "{bulk}");
    }
    let kept = with(&server, &all).get(&format!("/jobs/{hidden}")).expect(200);
    assert_eq!((kept["status"].clone(), kept["payload"].clone()), (json!("pending"), json!({"card": 4711})));
}

#[test]
fn claims_and_settings_keep_within_the_patterns() {
    let exact = &["exact", "--scope", "work,read", "--queue", "shop", "--type", "send-x"];
    let (server, [all, shop, exact]) = server_with(Options::default(), [EVERYTHING, SHOP, exact]);
    make(&server, &all, &json!({"type": "charge", "queue": "shop", "priority": 100}));
    let own = make(&server, &all, &json!({"type": "send-x", "queue": "shop"}));
    for claim in [
        json!({"worker_id": "w"}),
        json!({"worker_id": "w", "queues": ["shop"]}),
        json!({"worker_id": "w", "queues": ["billing"], "types": ["send-x"]}),
        json!({"worker_id": "w", "queues": ["shop"], "types": ["send-x", "charge"]}),
    ] {
        with(&server, &shop).post("/jobs/claim", &claim).problem(403, "forbidden");
        let answer = with(&server, &shop)
            .post("/jobs/report/bulk", &json!({"reports": [], "claim": claim}))
            .expect(200);
        assert_eq!(answer["claim_problem"]["code"], "forbidden", "{answer}");
    }
    // Patterns that are names say what is meant.
    let held = with(&server, &exact).post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    assert_eq!(id_of(&held), own);
    assert_eq!(
        with(&server, &exact).post("/jobs/claim", &json!({"worker_id": "w"})).expect(200),
        Value::Null
    );

    // What concerns others' jobs too is for tokens that reach them.
    let queue = &["ops", "--scope", "operate,read", "--queue", "shop"];
    let kind = &["types", "--scope", "admin,read", "--type", "send-*"];
    let (server, [all, queue, kind]) = server_with(Options::default(), [EVERYTHING, queue, kind]);
    make(&server, &all, &json!({"type": "charge", "queue": "billing"}));
    with(&server, &queue).post("/queues/shop/pause", &json!({"reason": "r"})).expect(200);
    with(&server, &queue)
        .post("/queues/billing/pause", &json!({"reason": "r"}))
        .problem(404, "queue-not-found");
    let queues = with(&server, &queue).get("/queues").expect(200)["queues"].clone();
    assert_eq!(queues.as_array().map(Vec::len), Some(1), "{queues}");
    with(&server, &kind).send("PUT /types/send-x", &json!({})).expect(200);
    with(&server, &kind).send("PUT /types/charge", &json!({})).problem(404, "type-not-found");
    let types = with(&server, &kind).get("/types").expect(200)["types"].clone();
    assert_eq!(types.as_array().map(Vec::len), Some(1), "{types}");
    for path in ["/stats", "/metrics", "/workers", "/limits", "/audit", "/types"] {
        let answer = with(&server, &queue).get(path);
        if path == "/types" {
            answer.status_is(200);
        } else {
            answer.problem(403, "forbidden");
        }
    }
    with(&server, &kind).get("/queues/shop").problem(403, "forbidden");
}

#[test]
fn way_in_10_error_disclosure_what_a_job_holds_is_for_the_scope_payload() {
    let (server, [all, bare]) = server_with(
        Options::default(),
        [EVERYTHING, &["bare", "--scope", "enqueue,work,read,operate,admin"]],
    );
    let job = json!({"type": "t", "idempotency_key": "k", "payload": "SECRET-payload", "max_retries": 0});
    let id = make(&server, &all, &job);
    let claim = json!({"worker_id": "w"});
    let held = with(&server, &bare).post("/jobs/claim", &claim).expect(200);
    assert_eq!(held["payload"], "SECRET-payload", "it is the work itself");
    let report = |body: Value| -> Value {
        let mut body = body;
        body["lease"] = held["lease"].clone();
        body
    };
    let path = |call: &str| format!("/jobs/{id}{call}");
    let mut seen = vec![
        with(&server, &bare).post(&path("/checkpoint"), &report(json!({"checkpoint": "SECRET-cursor"}))),
        with(&server, &bare).post(&path("/fail"), &report(json!({"error": "SECRET-error"}))),
        with(&server, &bare).post("/jobs", &job),
        with(&server, &bare)
            .post("/jobs", &json!({"type": "t", "idempotency_key": "k", "on_duplicate": "conflict"})),
        with(&server, &bare)
            .post("/jobs", &json!({"type": "t", "idempotency_key": "k", "on_mismatch": "reject"})),
        with(&server, &bare).post("/jobs/bulk", &json!({"jobs": [job]})),
        with(&server, &bare).post(
            "/jobs/report/bulk",
            &json!({"reports": [report(json!({"id": id, "outcome": "failed", "error": "SECRET-error"}))]}),
        ),
        with(&server, &bare).post(&path("/retry"), &json!({"seen_version": 99})),
        with(&server, &bare).post(&path("/cancel"), &json!({})),
    ];
    for get in [
        "/jobs",
        "/review",
        "/workers",
        "/stats",
        "/metrics",
        "/audit",
        "/queues",
        "/types",
        "/jobs?status=failed",
    ] {
        seen.push(with(&server, &bare).get(get));
    }
    for get in ["", "?wait_seconds=1", "/attempts", "/explain"] {
        seen.push(with(&server, &bare).get(&path(get)));
    }
    for answer in &seen {
        assert!(answer.status < 500 && answer.status != 403, "{answer:?}");
        assert!(!answer.text().contains("SECRET"), "{}", answer.text());
    }
    let shown = with(&server, &bare).get(&path("")).expect(200);
    for field in ["payload", "result", "checkpoint", "error"] {
        assert_eq!(shown[field], Value::Null, "{field}");
    }
    let whole = with(&server, &all).get(&path("")).expect(200);
    assert_eq!(
        (whole["payload"].clone(), whole["error"].clone()),
        (json!("SECRET-payload"), json!("SECRET-error"))
    );
    // Another payload is a thing of those who may see it.
    let version = whole["version"].clone();
    with(&server, &bare)
        .post(&path("/retry"), &json!({"seen_version": version, "payload": 1}))
        .problem(403, "forbidden");
    let retried = with(&server, &bare).post(&path("/retry"), &json!({"seen_version": version})).expect(200);
    assert_eq!(retried["payload"], Value::Null);
    let deleted = with(&server, &bare).send(&format!("DELETE {}", path("")), &Value::Null).expect(200);
    assert!(!deleted.to_string().contains("SECRET"), "{deleted}");
}

#[test]
fn way_in_4_and_5_no_worker_passes_for_another_and_takes_its_job() {
    let (server, [one, two]) = server_with(
        Options::default().set("require_lease=false"),
        [&["one", "--scope", "enqueue,work,read"], &["two", "--scope", "work,read"]],
    );
    let id = make(&server, &one, &json!({"type": "t"}));
    let held = with(&server, &one).post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    assert_eq!(held["worker_id"], "one/w");
    let complete = format!("/jobs/{id}/complete");
    for body in [
        json!({}),
        json!({"worker_id": "w"}),
        json!({"lease": "0".repeat(32)}),
        json!({"lease": "0".repeat(32), "worker_id": "w"}),
    ] {
        assert_eq!(with(&server, &two).post(&complete, &body).status, 409, "{body}");
    }
    // The name of another token cannot be made up: it stands behind one's own, and a slash is not for worker ids.
    with(&server, &two).post(&complete, &json!({"worker_id": "one/w"})).problem(409, "lease-required");
    with(&server, &two).post("/jobs/claim", &json!({"worker_id": "one/w"})).problem(422, "invalid-request");
    assert_eq!(with(&server, &two).get(&format!("/jobs/{id}")).expect(200)["status"], "running");
    // Without a lease it must be the token that claimed, and say which worker it is.
    with(&server, &one).post(&complete, &json!({})).problem(409, "lease-required");
    with(&server, &one).post(&complete, &json!({"worker_id": "w"})).expect(200);
}

#[test]
fn reports_need_their_lease_where_there_are_tokens() {
    let (server, [all]) = server_with(Options::default(), [EVERYTHING]);
    let id = make(&server, &all, &json!({"type": "t"}));
    let held = with(&server, &all).post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
    let complete = format!("/jobs/{id}/complete");
    with(&server, &all).post(&complete, &json!({"worker_id": "w"})).problem(409, "lease-required");
    with(&server, &all).post(&complete, &json!({"lease": held["lease"]})).expect(200);
}

#[test]
fn way_in_6_non_atomic_claim_one_job_is_for_one() {
    let (server, tokens) = server_with(
        Options::default(),
        [EVERYTHING, &["a", "--scope", "work"], &["b", "--scope", "work"], &["c", "--scope", "work"]],
    );
    for _ in 0..20 {
        make(&server, &tokens[0], &json!({"type": "t"}));
        let got: usize = std::thread::scope(|scope| {
            let claims: Vec<_> = tokens[1..]
                .iter()
                .map(|token| {
                    let server = &server;
                    scope.spawn(move || {
                        let job =
                            with(server, token).post("/jobs/claim", &json!({"worker_id": "w"})).expect(200);
                        usize::from(!job.is_null())
                    })
                })
                .collect();
            claims.into_iter().map(|claim| claim.join().expect("no panic")).sum()
        });
        assert_eq!(got, 1);
    }
}

#[test]
fn way_in_7_payload_size_a_token_lifts_no_limit() {
    let (server, [all]) = server_with(Options::default(), [EVERYTHING]);
    let large = "x".repeat(300 * 1024);
    with(&server, &all)
        .post("/jobs", &json!({"type": "t", "payload": large}))
        .problem(422, "payload-too-large");
    let huge = "x".repeat(9 * 1024 * 1024);
    with(&server, &all).post("/jobs", &json!({"type": "t", "payload": huge})).problem(413, "body-too-large");
    // Without a token not a byte of it is looked at.
    server.client().post("/jobs", &json!({"type": "t", "payload": large})).problem(401, "unauthorized");
}

#[test]
fn a_producer_takes_back_what_nobody_has_begun() {
    let (server, [all, shop]) =
        server_with(Options::default(), [EVERYTHING, &["shop", "--scope", "enqueue", "--type", "send-*"]]);
    let waiting = make(&server, &all, &json!({"type": "send-x", "queue": "waiting"}));
    let other = make(&server, &all, &json!({"type": "charge", "queue": "waiting"}));
    let begun = make(&server, &all, &json!({"type": "send-x", "queue": "begun"}));
    with(&server, &all).post("/jobs/claim", &json!({"worker_id": "w", "queues": ["begun"]})).expect(200);
    let cancel = |id: i64, body: Value| with(&server, &shop).post(&format!("/jobs/{id}/cancel"), &body);
    cancel(other, json!({})).problem(404, "job-not-found");
    cancel(begun, json!({})).problem(403, "forbidden");
    cancel(waiting, json!({"seen_version": 99})).problem(409, "version-changed");
    assert_eq!(cancel(waiting, json!({})).expect(200)["status"], "cancelled");
    assert_eq!(with(&server, &all).get(&format!("/jobs/{begun}")).expect(200)["status"], "running");
}
