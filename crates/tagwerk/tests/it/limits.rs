//! Limits, over HTTP and on the command line: made, shown, changed, deleted, named by jobs, held back by workers.

use serde_json::{Value, json};

use crate::cli_ran::run;
use crate::client::{Answer, Client};
use crate::server::{JSON, Options, Server};
use crate::support::{Held, attempts, claim, delete, enqueue, job, ms, nothing_in, take, text};

fn limited(queue: &str, limits: &[&str]) -> Value {
    json!({"type": "t", "queue": queue, "limits": limits})
}

fn put(client: &mut Client, path: &str, settings: &Value) -> Answer {
    client.send(&format!("PUT {path}"), &[JSON], settings.to_string().as_bytes())
}

fn reasons(client: &mut Client, id: i64) -> Vec<Value> {
    client.get(&format!("/jobs/{id}/explain")).expect(200)["reasons"].as_array().expect("reasons").clone()
}

#[test]
fn a_limit_is_made_shown_changed_and_deleted() {
    let server = Server::start();
    let mut client = server.client();
    client.get("/limits/crm").problem(404, "limit-not-found");
    let made = put(&mut client, "/limits/crm", &json!({"max_running": 3})).expect(201);
    let expected = json!({"name": "crm", "max_running": 3, "rate": null, "running": 0, "partitions": 0, "throttled": 0,
        "uses": []});
    assert_eq!(made, expected);
    assert_eq!(put(&mut client, "/limits/crm", &made).expect(200), made, "what is shown can be sent back");
    let rate = json!({"count": 20, "per_seconds": 0.5});
    let changed = put(&mut client, "/limits/crm", &json!({"rate": rate})).expect(200);
    assert_eq!((&changed["max_running"], &changed["rate"]["spread"]), (&Value::Null, &json!(false)));
    assert_eq!(changed["rate"]["per_seconds"], json!(0.5));
    assert_eq!(client.get("/limits/crm").expect(200), changed);
    put(&mut client, "/limits/api", &json!({})).expect(201);
    let page = client.get("/limits?limit=1").expect(200);
    assert_eq!((text(&page["limits"][0]["name"]), text(&page["next"])), ("api", "api"));
    let page = client.get("/limits?after=api").expect(200);
    assert_eq!((&page["limits"][0]["name"], &page["next"]), (&json!("crm"), &Value::Null));
    assert_eq!(page["limits"][0]["uses"], Value::Null, "lists are short");
    let gone = delete(&mut client, "/limits/crm").expect(200);
    assert_eq!(gone, json!({"name": "crm", "deleted": true}));
    delete(&mut client, "/limits/crm").problem(404, "limit-not-found");
    for (body, field) in [
        (json!({"max_running": 0}), "max_running"),
        (json!({"rate": {"count": 0, "per_seconds": 1}}), "rate.count"),
        (json!({"rate": {"count": 1, "per_seconds": -1}}), "rate.per_seconds"),
        (json!({"rate": {"count": 1, "per_seconds": 86_401}}), "rate.per_seconds"),
        (json!({"name": "other"}), "name"),
    ] {
        let problem = put(&mut client, "/limits/crm", &body).problem(422, "invalid-request");
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
    }
    let problem =
        put(&mut client, "/limits/crm:tenant", &json!({"max_running": 1})).problem(422, "invalid-request");
    assert!(text(&problem["detail"]).contains("crm"), "{problem}");
}

#[test]
fn an_unknown_limit_is_refused_with_the_one_that_was_meant_and_nothing_is_stored() {
    let server = Server::start();
    let mut client = server.client();
    put(&mut client, "/limits/crm-api", &json!({"max_running": 1})).expect(201);
    let problem = client.post("/jobs", &limited("q", &["crm_apu:tenant-1"])).problem(422, "unknown-limit");
    assert!(text(&problem["detail"]).contains("did you mean \"crm-api\"?"), "{problem}");
    assert_eq!((&problem["errors"][0]["field"], &problem["retryable"]), (&json!("limits"), &json!(false)));
    let jobs = json!([limited("q", &["crm-api"]), limited("q", &["nope"])]);
    let results = client.post("/jobs/bulk", &json!({"jobs": jobs})).expect(200)["results"].clone();
    assert_eq!(
        (&results[0]["status"], &results[1]["problem"]["code"]),
        (&json!(201), &json!("unknown-limit"))
    );
    let atomic =
        client.post("/jobs/bulk", &json!({"jobs": jobs, "atomic": true})).expect(200)["results"].clone();
    assert_eq!(atomic[0]["problem"]["code"], "atomic-refused");
    assert_eq!(client.get("/jobs").expect(200)["jobs"].as_array().map(Vec::len), Some(1));
    for limits in
        [json!(["crm-api:"]), json!(["a", "b", "c"]), json!([format!("crm-api:{}", "x".repeat(129))])]
    {
        client.post("/jobs", &json!({"type": "t", "limits": limits})).problem(422, "invalid-request");
    }
}

#[test]
fn limits_may_be_made_by_the_jobs_that_name_them() {
    let mut server = Server::with(Options::default().set("limits.create_on_use=true"));
    enqueue(&mut server.client(), &limited("q", &["new:a", "other"]));
    let list = server.client().get("/limits").expect(200);
    let names: Vec<&str> =
        list["limits"].as_array().expect("limits").iter().map(|l| text(&l["name"])).collect();
    assert_eq!(names, ["new", "other"]);
    server.kill();
    server.start_again();
    let mut client = server.client();
    assert_eq!(client.get("/limits/new").expect(200)["max_running"], Value::Null);
    put(&mut client, "/limits/new", &json!({"max_running": 1})).expect(200);
    take(&mut client, "w", "q");
    enqueue(&mut client, &limited("q", &["new:a"]));
    assert!(nothing_in(&mut client, "q"), "the bound holds for those that came before it");
}

/// A limit comes into being with a job that is accepted, and not with one that is refused.
#[test]
fn a_refused_job_leaves_no_limit_behind() {
    let server = Server::with(Options::default().set("limits.create_on_use=true"));
    let mut client = server.client();
    put(&mut client, "/types/small", &json!({"payload_max_bytes": 8})).expect(200);
    put(&mut client, "/queues/shut", &json!({})).expect(200);
    client.post("/queues/shut/drain", &json!({})).expect(200);
    let large = json!({"type": "small", "payload": "much too large", "limits": ["a"]});
    client.post("/jobs", &large).problem(422, "payload-too-large");
    client.post("/jobs", &limited("shut", &["b"])).problem(503, "queue-draining");
    let atomic = json!({"atomic": true, "jobs": [limited("q", &["c"]), large]});
    client.post("/jobs/bulk", &atomic).expect(200);
    assert_eq!(client.get("/limits").expect(200)["limits"], json!([]));
    let each = json!({"jobs": [limited("q", &["d"]), large, limited("q", &["d:x"])]});
    client.post("/jobs/bulk", &each).expect(200);
    let limits = client.get("/limits").expect(200)["limits"].clone();
    assert_eq!(
        limits.as_array().map(|all| all.iter().map(|one| text(&one["name"]).to_owned()).collect()),
        Some(vec!["d".to_owned()])
    );
}

/// What cannot be meant is refused with its field and a sentence, and leaves nothing behind.
#[test]
fn nonsense_about_limits_is_refused_with_what_is_wrong() {
    let server = Server::start();
    let mut client = server.client();
    put(&mut client, "/limits/crm", &json!({"max_running": 1})).expect(201);
    let (long, name) = ("x".repeat(129), "n".repeat(65));
    for (settings, field, detail) in [
        (json!({"max_running": 0}), "max_running", "max_running: must be between 1 and 1000000"),
        (json!({"max_running": -1}), "max_running", "max_running: must be between 1 and 1000000"),
        (
            json!({"rate": {"count": 0, "per_seconds": 1}}),
            "rate.count",
            "rate.count: must be between 1 and 1000000",
        ),
        (
            json!({"rate": {"count": -20, "per_seconds": 1}}),
            "rate.count",
            "rate.count: must be between 1 and 1000000",
        ),
        (
            json!({"rate": {"count": 1, "per_seconds": 0}}),
            "rate.per_seconds",
            "rate.per_seconds: must be between 0.01 and 86400 seconds",
        ),
        (
            json!({"rate": {"count": 1, "per_seconds": -1}}),
            "rate.per_seconds",
            "rate.per_seconds: must be between 0.01 and 86400 seconds",
        ),
        (json!({"rate": {"count": 1}}), "rate.per_seconds", "rate.per_seconds: is needed"),
    ] {
        let problem = put(&mut client, "/limits/crm", &settings).problem(422, "invalid-request");
        assert_eq!((&problem["errors"][0]["field"], text(&problem["detail"])), (&json!(field), detail));
    }
    for (limits, field, says) in [
        (json!([]), "limits", "empty"),
        (json!(["crm:a", "crm:b", "crm:c"]), "limits", "at most 2"),
        (json!(["crm:"]), "limits[0]", "the partition after the first colon"),
        (json!([format!("crm:{long}")]), "limits[0]", "at most 128 are allowed"),
        (json!(["crm:a\u{7}b"]), "limits[0]", "the partition after the first colon"),
        (json!(["crm:a\nb"]), "limits[0]", "the partition after the first colon"),
        (json!(["c r m"]), "limits[0]", "the name"),
        (json!([name]), "limits[0]", "at most 64 are allowed"),
        (json!("crm"), "limits", "array"),
        (json!([7]), "limits[0]", "text"),
    ] {
        let job = json!({"type": "t", "limits": limits});
        let problem = client.post("/jobs", &job).problem(422, "invalid-request");
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
        assert!(text(&problem["detail"]).contains(says), "{problem}");
    }
    let versionless = json!({"type": "t", "supersede": true, "subject": {"kind": "order", "id": "1"}});
    let problem = client.post("/jobs", &versionless).problem(422, "invalid-request");
    let said = "subject.version: is needed with `supersede`: it says which job is newer";
    assert_eq!((&problem["errors"][0]["field"], text(&problem["detail"])), (&json!("subject.version"), said));
    let unknown = client.post("/jobs", &limited("q", &["crn"])).problem(422, "unknown-limit");
    assert_eq!(unknown["detail"], "limits names \"crn\", which is no limit here; did you mean \"crm\"?");
    delete(&mut client, "/limits/crn").problem(404, "limit-not-found");
    client.post("/limits/crn/open", &json!({})).problem(404, "limit-not-found");
    client.post("/limits/crm/open", &json!({"partition": ""})).problem(422, "invalid-request");
    client.post("/limits/crm:a/open", &json!({})).problem(422, "invalid-request");
    // Nothing of it is there, and nothing is stuck.
    assert_eq!(client.get("/stats").expect(200)["counts"]["enqueued"], 0);
    enqueue(&mut client, &limited("q", &["crm:a"]));
    take(&mut client, "w", "q").complete(&mut client);
    delete(&mut client, "/limits/crm").expect(200);
}

#[test]
fn a_limit_in_use_is_not_deleted_and_says_by_how_many() {
    let server = Server::start();
    let mut client = server.client();
    put(&mut client, "/limits/crm", &json!({"max_running": 1})).expect(201);
    for _ in 0..3 {
        enqueue(&mut client, &limited("q", &["crm:a"]));
    }
    let held = take(&mut client, "w", "q");
    let problem = delete(&mut client, "/limits/crm").problem(409, "limit-in-use");
    assert_eq!(problem["in_use"], json!({"waiting": 2, "running": 1, "types": []}));
    let said = "2 waiting or failed and 1 running jobs name limit crm; raise its bounds instead, or let them end first";
    assert_eq!(problem["detail"], said);
    let shown = client.get("/limits/crm").expect(200);
    let used = json!({"partition": "a", "running": 1, "open": 0, "closed": "limit_full", "opens_at": null});
    assert_eq!((&shown["running"], &shown["uses"]), (&json!(1), &json!([used])));
    held.complete(&mut client);
    for _ in 0..2 {
        take(&mut client, "w", "q").complete(&mut client);
    }
    delete(&mut client, "/limits/crm").expect(200);
}

#[test]
fn a_job_says_which_limits_it_waits_for_and_what_frees_it() {
    let server = Server::start();
    let mut client = server.client();
    put(&mut client, "/limits/crm", &json!({"max_running": 1})).expect(201);
    put(&mut client, "/limits/mail", &json!({"rate": {"count": 1, "per_seconds": 600}})).expect(201);
    enqueue(&mut client, &limited("q", &["crm:a", "mail"]));
    let waiting = enqueue(&mut client, &limited("q", &["crm:a", "mail"]));
    let free = enqueue(&mut client, &limited("other", &["crm:b"]));
    let shown = job(&mut client, waiting);
    assert_eq!(shown["limits"], json!(["crm:a", "mail"]));
    take(&mut client, "w", "q");
    assert!(nothing_in(&mut client, "q"));
    let found = reasons(&mut client, waiting);
    let kinds: Vec<&str> = found.iter().map(|reason| text(&reason["kind"])).collect();
    assert_eq!(kinds, ["limit_full", "rate_exhausted"], "{found:?}");
    assert!(text(&found[0]["detail"]).contains("crm:a is full: 1 of 1"), "{found:?}");
    assert_eq!(found[0]["until"], Value::Null);
    let opens = ms(&found[1]["until"]).expect("time opens it");
    let since = ms(&attempts_start(&mut client, "q")).expect("it runs");
    assert!((600_000..=640_000).contains(&(opens - since)), "{found:?}");
    let found = reasons(&mut client, free);
    assert!(!found.iter().any(|reason| text(&reason["kind"]) == "limit_full"), "{found:?}");
}

/// When the running job of a queue was claimed.
fn attempts_start(client: &mut Client, queue: &str) -> Value {
    let page = client.get(&format!("/jobs?queue={queue}&status=running")).expect(200);
    page["jobs"][0]["claimed_at"].clone()
}

#[test]
fn a_failure_holds_back_a_limit_until_a_time_and_over_a_restart() {
    let mut server = Server::start();
    let mut client = server.client();
    put(&mut client, "/limits/crm", &json!({})).expect(201);
    let first = enqueue(&mut client, &limited("q", &["crm:a"]));
    let second = enqueue(&mut client, &limited("q", &["crm:a"]));
    let other = enqueue(&mut client, &limited("q", &["crm:b"]));
    let held = take(&mut client, "w", "q");
    let said =
        json!({"error": "429", "throttle": {"limit": "crm:a", "for_seconds": 3}, "retry_after_seconds": 0});
    let failed = held.call(&mut client, "fail", said.clone()).expect(200);
    assert_eq!(failed["status"], "pending");
    assert_eq!(take(&mut client, "w", "q").id, other, "the other partition is open");
    assert!(nothing_in(&mut client, "q"));
    let found = reasons(&mut client, second);
    assert_eq!(text(&found[0]["kind"]), "throttled", "{found:?}");
    let until = ms(&found[0]["until"]).expect("time opens it");
    // The same report once more changes nothing.
    let again = held.call(&mut client, "fail", said);
    assert_eq!(again.header("report-replayed"), Some("true"));
    assert_eq!(ms(&reasons(&mut client, second)[0]["until"]), Some(until));
    server.kill();
    server.start_again();
    let mut client = server.client();
    assert!(nothing_in(&mut client, "q"));
    let next = take(&mut client, "w", "q");
    assert!(ms(&next.job["claimed_at"]) >= Some(until), "{}", next.job);
    // The retry is due later than the job that had not yet run: it stands behind it.
    assert_eq!((next.id, take(&mut client, "w", "q").id), (second, first));
}

/// A worker that names no partition means the whole of it. Everybody can see that, and an operator can lift it.
#[test]
fn a_throttle_of_the_whole_limit_is_seen_and_lifted() {
    let mut server = Server::start();
    let mut client = server.client();
    put(&mut client, "/limits/crm", &json!({"max_running": 5})).expect(201);
    let [first, second, other] =
        ["crm:a", "crm:a", "crm:b"].map(|limit| enqueue(&mut client, &limited("q", &[limit])));
    let held = take(&mut client, "w", "q");
    assert_eq!(held.id, first);
    let said =
        json!({"class": "permanent", "error": "503", "throttle": {"limit": "crm", "for_seconds": 600}});
    held.call(&mut client, "fail", said).expect(200);
    for _ in 0..2 {
        assert!(nothing_in(&mut client, "q"), "no partition is open");
        for waiting in [second, other] {
            let found = reasons(&mut client, waiting);
            assert_eq!(text(&found[0]["kind"]), "throttled", "{found:?}");
        }
        server.restart();
        client = server.client();
    }
    let listed = client.get("/limits").expect(200)["limits"][0].clone();
    assert_eq!(listed["throttled"], 3, "two partitions and the name alone: {listed}");
    let shown = client.get("/limits/crm").expect(200);
    let uses = shown["uses"].as_array().expect("uses");
    assert!(uses.iter().all(|of| of["closed"] == "throttled" && of["opens_at"].is_string()), "{shown}");
    let limits = |args: &[&str]| run(&server, &[&["limits"], args].concat());
    let row: Vec<String> = limits(&["list"])
        .expect(0)
        .lines()
        .nth(1)
        .expect("a row")
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    assert_eq!(row, ["crm", "0", "5", "-", "3", "3"]);
    assert!(limits(&["show", "crm"]).expect(0).contains("throttled"));
    // A claim that waits gets what is lifted.
    let freed = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| take(&mut server.client(), "w", "q"));
        while client.get("/stats").expect(200)["commits"]["parked_claims"] != 1 {}
        let opened = client.post("/limits/crm/open", &json!({})).expect(200);
        assert_eq!(opened["throttled"], 0, "{opened}");
        waiting.join().expect("a job")
    });
    assert_eq!(freed.id, second);
    assert_eq!(take(&mut client, "w", "q").id, other);
    // One partition by itself, at the command line.
    freed
        .call(
            &mut client,
            "fail",
            json!({"throttle": {"limit": "crm:a", "for_seconds": 600}, "retry_after_seconds": 0}),
        )
        .expect(200);
    assert!(nothing_in(&mut client, "q"));
    limits(&["open", "crm:b"]).expect(0);
    assert!(nothing_in(&mut client, "q"));
    assert_eq!(limits(&["open", "crm:a", "--json"]).json()["throttled"], 0);
    assert_eq!(take(&mut client, "w", "q").id, second);
    assert!(limits(&["open", "nope"]).fails(1).contains("tagwerk limits list"));
}

#[test]
fn a_throttle_of_a_limit_that_there_is_not_loses_no_report() {
    let server = Server::start();
    let mut client = server.client();
    enqueue(&mut client, &json!({"type": "t", "queue": "q"}));
    let held = take(&mut client, "w", "q");
    let said = json!({"class": "permanent", "throttle": {"limit": "gone", "for_seconds": 3}});
    let answer = held.call(&mut client, "fail", said);
    assert_eq!(answer.header("tagwerk-ignored"), Some("throttle.limit"));
    assert_eq!(answer.expect(200)["status"], "failed");
}

#[test]
fn the_command_line_makes_shows_and_deletes_limits() {
    let server = Server::start();
    let limits = |args: &[&str]| run(&server, &[&["limits"], args].concat());
    assert_eq!(limits(&["list"]).expect(0).trim(), "no limits");
    let made = limits(&["set", "crm", "--max-running", "5", "--rate", "20/1s", "--spread"]);
    assert!(made.expect(0).contains("20 in 1 s, evenly spaced"), "{made:?}");
    let changed = limits(&["set", "crm", "--max-running", "2", "--json"]).json();
    assert_eq!(
        (&changed["max_running"], &changed["rate"]["count"]),
        (&json!(2), &json!(20)),
        "the rate stays"
    );
    assert_eq!(limits(&["set", "crm", "--unset", "rate", "--json"]).json()["rate"], Value::Null);
    let enqueued = run(&server, &["enqueue", "t", "--limit", "crm:tenant-42", "--json"]).json();
    assert_eq!(enqueued["limits"], json!(["crm:tenant-42"]));
    take(&mut server.client(), "w", "default");
    let listed = limits(&["list"]);
    let row: Vec<&str> = listed.expect(0).lines().nth(1).expect("a row").split_whitespace().collect();
    assert_eq!(row, ["crm", "1", "2", "-", "1", "-"]);
    let shown = limits(&["show", "crm"]);
    assert!(shown.expect(0).contains("tenant-42"), "{shown:?}");
    assert!(limits(&["delete", "crm"]).fails(1).contains("1 running"), "a limit in use");
    assert!(limits(&["show", "nope"]).fails(1).contains("tagwerk limits list"));
    assert!(limits(&["set", "crm", "--rate", "20"]).fails(2).contains("COUNT/TIME"));
    let refused = run(&server, &["enqueue", "t", "--limit", "crn"]);
    assert!(refused.fails(1).contains("did you mean"), "{refused:?}");
}

#[test]
fn attempts_are_not_spent_by_waiting_for_a_limit() {
    let server = Server::start();
    let mut client = server.client();
    put(&mut client, "/limits/crm", &json!({"max_running": 1})).expect(201);
    enqueue(&mut client, &limited("q", &["crm"]));
    let waiting = enqueue(&mut client, &limited("q", &["crm"]));
    let held = take(&mut client, "w", "q");
    for _ in 0..100 {
        assert!(claim(&mut client, &json!({"worker_id": "v", "queues": ["q"]})).is_none());
    }
    let shown = job(&mut client, waiting);
    assert_eq!(
        (&shown["attempt"], &shown["retry_count"], &shown["version"]),
        (&json!(0), &json!(0), &json!(1))
    );
    assert_eq!(attempts(&mut client, waiting), Vec::<Value>::new());
    held.complete(&mut client);
    let next: Held = take(&mut client, "w", "q");
    assert_eq!((next.id, &next.job["attempt"]), (waiting, &json!(1)));
}
