//! Pause, bounds and drain of queues at the real binary.

use serde_json::{Value, json};

use crate::server::Server;
use crate::support::dice::Dice;
use crate::support::{id_of, in_parallel, setting};

fn say(server: &Server, call: &str, body: &Value) -> Value {
    server.post(&format!("/queues/mail/{call}"), body).expect(200)
}

fn put(server: &Server, bounds: &Value) -> Value {
    server.put("/queues/mail", bounds).expect(200)
}

fn mail() -> Value {
    json!({"type": "send", "queue": "mail"})
}

fn claim(server: &Server) -> Value {
    server.post("/jobs/claim", &json!({"worker_id": "w", "queues": ["mail"], "lease_seconds": 1})).expect(200)
}

#[test]
fn a_queue_is_shown_with_what_is_said_about_it() {
    let server = Server::start();
    let unknown = server.get("/queues/mail");
    assert_eq!((unknown.status, &unknown.json()["code"]), (404, &json!("queue-not-found")));
    let bounds = json!({"max_running": 4, "reserve": {"slots": 1, "from_priority": 30}, "max_depth": 1000});
    assert_eq!(put(&server, &bounds)["settings"], bounds);
    let paused = say(&server, "pause", &json!({"reason": "crm down", "by": "ann"}));
    assert_eq!(paused["paused"][0]["reason"], "crm down");
    assert_eq!(paused["paused"][0]["by"], "ann");
    say(&server, "pause", &json!({"reason": "deploy"}));
    let several = server.post("/queues/mail/resume", &json!({}));
    assert_eq!((several.status, &several.json()["code"]), (409, &json!("reason-required")));
    assert_eq!(
        several.json()["detail"],
        "queue mail is paused for several reasons; name one of: \"crm down\", \"deploy\""
    );
    let other = server.post("/queues/mail/resume", &json!({"reason": "depoly"}));
    assert_eq!((other.status, &other.json()["code"]), (409, &json!("pause-not-found")));
    let drained = say(&server, "drain", &json!({"by": "bob"}));
    assert_eq!((&drained["draining"]["by"], &drained["drained"]), (&json!("bob"), &json!(true)));
    let shown = server.get("/queues/mail").expect(200);
    assert_eq!(server.get("/queues").expect(200)["queues"], json!([shown]));
    say(&server, "resume", &json!({"reason": "deploy"}));
    // No body at all.
    let resumed =
        server.client().send("POST /queues/mail/resume", &[("Content-Length", "0")], b"").expect(200);
    assert_eq!(resumed["paused"], json!([]));
    let opened = server.client().send("POST /queues/mail/open", &[("Content-Length", "0")], b"").expect(200);
    assert_eq!((&opened["draining"], &opened["drained"]), (&Value::Null, &json!(false)));
    let bare = put(&server, &json!({}));
    assert_eq!(bare["settings"], json!({"max_running": null, "reserve": null, "max_depth": null}));
}

#[test]
fn nonsense_about_a_queue_is_refused_with_the_field() {
    let server = Server::start();
    for (bounds, field) in [
        (json!({"max_running": 0}), "max_running"),
        (json!({"max_depth": 0}), "max_depth"),
        (json!({"max_depth": "many"}), "max_depth"),
        (json!({"maxdepth": 1}), "maxdepth"),
        (json!({"reserve": {"slots": 1, "from_priority": "critical"}}), "reserve"),
        (json!({"max_running": 2, "reserve": {"slots": 2, "from_priority": "critical"}}), "reserve"),
        (json!({"max_running": 2, "reserve": {"slots": 1}}), "reserve.from_priority"),
    ] {
        let answer = server.put("/queues/mail", &bounds);
        assert_eq!((answer.status, &answer.json()["errors"][0]["field"]), (422, &json!(field)), "{bounds}");
    }
    assert_eq!(server.post("/queues/mail/pause", &json!({})).status, 422);
    assert_eq!(server.post("/queues/mail/pause", &json!({"reason": ""})).status, 422);
    assert_eq!(server.post("/queues/no%20name/pause", &json!({"reason": "r"})).status, 422);
    assert_eq!(server.get("/queues").expect(200)["queues"], json!([]), "nothing was made");
}

#[test]
fn f095_f096_a_pause_survives_kill_9_and_holds_for_rescue_and_retry() {
    let mut server = Server::start();
    let lost = id_of(&server.post("/jobs", &mail()).expect(201));
    let review = id_of(&server.post("/jobs", &mail()).expect(201));
    assert_eq!(claim(&server)["id"], lost);
    let held = claim(&server);
    let report = json!({"lease": held["lease"], "class": "permanent"});
    server.post(&format!("/jobs/{review}/fail"), &report).expect(200);
    say(&server, "pause", &json!({"reason": "crm down", "by": "ann"}));
    server.restart();
    let shown = server.get("/queues/mail").expect(200);
    assert_eq!(
        (&shown["paused"][0]["reason"], &shown["paused"][0]["by"]),
        (&json!("crm down"), &json!("ann"))
    );
    let version = server.get(&format!("/jobs/{review}")).expect(200)["version"].clone();
    server.post(&format!("/jobs/{review}/retry"), &json!({"seen_version": version})).expect(200);
    let fresh = id_of(&server.post("/jobs", &mail()).expect(201));
    // A claim that waits beyond the end of the lost lease, its back-off and the retry gets none of them.
    let wait = json!({"worker_id": "w", "queues": ["mail"], "wait_seconds": 4});
    assert_eq!(server.post("/jobs/claim", &wait).expect(200), Value::Null);
    for id in [lost, review, fresh] {
        assert_eq!(server.get(&format!("/jobs/{id}")).expect(200)["status"], "pending", "{id}");
        let why = server.get(&format!("/jobs/{id}/explain")).expect(200);
        assert_eq!(why["reasons"][0]["kind"], "queue_paused");
        assert_eq!(why["reasons"][0]["detail"], "Queue mail was paused by ann: crm down.");
    }
    // A claim that waits gets work as soon as the pause is lifted.
    let waiting = std::thread::scope(|scope| {
        let url = &server;
        let waits = scope.spawn(move || {
            url.post("/jobs/claim", &json!({"worker_id": "w", "queues": ["mail"], "wait_seconds": 60}))
                .expect(200)
        });
        // The server only says so when asked.
        while server.get("/stats").expect(200)["commits"]["parked_claims"] != 1 {}
        say(&server, "resume", &json!({}));
        waits.join().expect("no panic")
    });
    assert_eq!(waiting["status"], "running");
}

/// Resume after a pause was ignored now and then; the worker stayed paused for good.
#[test]
fn f098_pause_and_resume_from_two_sides_end_as_the_last_says() {
    let server = Server::start();
    put(&server, &json!({"max_depth": 10}));
    let calls = setting("TAGWERK_PAUSES", 300);
    let sides = ["crm down", "deploy"];
    in_parallel(
        (2, &sides),
        || server.client(),
        |client, reason| {
            let mut dice = Dice::new(98, u64::try_from(reason.len()).expect("short"));
            let mut is_paused = false;
            for _ in 0..calls {
                let pause = dice.percent(50);
                let call = if pause { "pause" } else { "resume" };
                let answer = client.post(&format!("/queues/mail/{call}"), &json!({"reason": reason}));
                // Nobody has paused it, or only the other side: then there is nothing of ours to lift.
                let lifts_nothing = !pause && !is_paused;
                assert!(answer.status == 200 || (lifts_nothing && answer.status == 409), "{answer:?}");
                is_paused = pause;
                let shown = client.get("/queues/mail").expect(200)["paused"].clone();
                let ours = shown.as_array().expect("reasons").iter().any(|one| one["reason"] == *reason);
                assert_eq!(ours, is_paused, "what was answered is so: {shown}");
            }
            if is_paused {
                client.post("/queues/mail/resume", &json!({"reason": reason})).expect(200);
            }
        },
    );
    assert_eq!(server.get("/queues/mail").expect(200)["paused"], json!([]));
    // It runs, for those who ask and for those who wait.
    server.post("/jobs", &mail()).expect(201);
    assert_eq!(claim(&server)["status"], "running");
    let waiting = std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let wish = json!({"worker_id": "w", "queues": ["mail"], "wait_seconds": 50});
            server.post("/jobs/claim", &wish).expect(200)
        });
        while server.get("/stats").expect(200)["commits"]["parked_claims"] != 1 {}
        server.post("/jobs", &mail()).expect(201);
        waits.join().expect("an answer")
    });
    assert_eq!(waiting["created_at"], waiting["claimed_at"], "in the transaction of its enqueue");
}

#[test]
fn f097_a_drain_survives_kill_9_and_says_when_it_is_done() {
    let mut server = Server::start();
    let keyed = json!({"type": "send", "queue": "mail", "idempotency_key": "k"});
    server.post("/jobs", &keyed).expect(201);
    say(&server, "drain", &json!({"reason": "moving", "by": "ann"}));
    server.restart();
    let refused = server.post("/jobs", &mail());
    assert_eq!((refused.status, &refused.json()["code"]), (503, &json!("queue-draining")));
    assert_eq!(refused.json()["detail"], "queue mail is being drained and takes no new jobs (moving)");
    assert_eq!((refused.header("retry-after"), &refused.json()["retryable"]), (Some("10"), &json!(true)));
    assert_eq!(server.post("/jobs", &keyed).status, 200, "a known key is answered");
    let other = json!({"type": "send"});
    let bulk = server.post("/jobs/bulk", &json!({"jobs": [mail(), other]})).expect(200);
    assert_eq!((&bulk["results"][0]["status"], &bulk["results"][1]["status"]), (&json!(503), &json!(201)));
    let atomic = server.post("/jobs/bulk", &json!({"atomic": true, "jobs": [other, mail()]})).expect(200);
    assert_eq!(
        (&atomic["results"][0]["status"], &atomic["results"][1]["status"]),
        (&json!(424), &json!(503))
    );
    assert_eq!(server.get("/queues/mail").expect(200)["drained"], false);
    let held = claim(&server);
    server.post(&format!("/jobs/{}/complete", held["id"]), &json!({"lease": held["lease"]})).expect(200);
    assert_eq!(server.get("/queues/mail").expect(200)["drained"], true);
    say(&server, "open", &json!({}));
    server.post("/jobs", &mail()).expect(201);
}

/// What one producer sends at once; every fourth time all or none.
fn items(n: usize) -> usize {
    1 + n % 3
}

#[test]
fn a_depth_is_never_exceeded_by_64_producers_and_nothing_is_half_stored() {
    const DEPTH: i64 = 100;
    let server = Server::start();
    put(&server, &json!({"max_depth": DEPTH}));
    let producers: Vec<usize> = (0..64).collect();
    let stored: Vec<i64> = in_parallel(
        (64, &producers),
        || server.client(),
        |client, producer| {
            let mut stored = 0;
            for round in 0..6 {
                let n = items(producer + round);
                let atomic = round % 4 == 0;
                let body = json!({"atomic": atomic, "jobs": vec![mail(); n]});
                let answer = client.post("/jobs/bulk", &body).expect(200);
                let results = answer["results"].as_array().expect("results").clone();
                let created = results.iter().filter(|result| result["status"] == 201).count();
                let refused = results.iter().filter(|result| result["status"] == 429).count();
                if atomic && created > 0 {
                    assert_eq!(created, n, "half stored: {answer}");
                } else if !atomic {
                    assert_eq!(created + refused, n, "{answer}");
                }
                stored += i64::try_from(created).expect("few");
            }
            stored
        },
    );
    assert_eq!(stored.iter().sum::<i64>(), DEPTH, "all that fit and no more");
    let shown = server.get("/queues/mail").expect(200);
    assert_eq!((&shown["counts"]["pending"], &shown["counts"]["enqueued"]), (&json!(DEPTH), &json!(DEPTH)));
    let full = server.post("/jobs", &mail());
    assert_eq!((full.status, &full.json()["code"]), (429, &json!("queue-full")));
    assert_eq!(full.header("retry-after"), Some("5"));
    // One that is done makes room for one.
    let held = claim(&server);
    assert_eq!(server.post("/jobs", &mail()).status, 429, "what runs counts");
    server.post(&format!("/jobs/{}/complete", held["id"]), &json!({"lease": held["lease"]})).expect(200);
    server.post("/jobs", &mail()).expect(201);
    assert_eq!(server.post("/jobs", &mail()).status, 429);
}

/// Runs `tagwerk queues …` and returns how it ended and what it printed.
fn queues(server: &Server, args: &[&str]) -> (bool, String) {
    let url = server.url();
    let ended = server.command(&[&["queues"], args, &["--url", &url]].concat()).output().expect("it runs");
    let text = if ended.status.success() { ended.stdout } else { ended.stderr };
    (ended.status.success(), String::from_utf8(text).expect("text"))
}

#[test]
fn the_command_line_says_it_all_and_metrics_show_it() {
    let server = Server::start();
    let bounds = ["set", "mail", "--max-running", "4", "--reserve", "1", "--reserve-from", "critical"];
    assert!(queues(&server, &bounds).0);
    assert!(queues(&server, &["set", "mail", "--max-depth", "100"]).0, "the others stay");
    assert!(queues(&server, &["pause", "mail", "--reason", "crm down", "--by", "ann"]).0);
    assert!(queues(&server, &["pause", "mail", "--reason", "deploy"]).0);
    assert!(queues(&server, &["drain", "mail", "--reason", "moving"]).0);
    let (_, shown) = queues(&server, &["show", "mail"]);
    for part in [
        "paused, draining",
        "crm down, since ",
        " by ann",
        "deploy, since ",
        "moving, since ",
        "1 slots from priority 30",
        "100",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let (is_done, said) = queues(&server, &["resume", "mail"]);
    assert!(!is_done && said.contains("name one of: \"crm down\", \"deploy\""), "{said}");
    let metrics = server.get("/metrics");
    assert!(metrics.text().contains("tagwerk_queue_paused{queue=\"mail\"} 2"), "{}", metrics.text());
    assert!(metrics.text().contains("tagwerk_queue_draining{queue=\"mail\"} 1"), "{}", metrics.text());
    for reason in ["crm down", "deploy"] {
        assert!(queues(&server, &["resume", "mail", "--reason", reason]).0);
    }
    let (_, listed) = queues(&server, &[]);
    assert!(listed.contains("STATE") && listed.contains("drained"), "{listed}");
    assert!(queues(&server, &["open", "mail"]).0);
    let (_, json) = queues(&server, &["set", "mail", "--unset", "max-depth", "--unset", "reserve", "--json"]);
    let info: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(info["settings"], json!({"max_running": 4, "reserve": null, "max_depth": null}));
    assert_eq!(queues(&server, &["list"]).1, queues(&server, &[]).1);
}

/// A bulk import has taken every slot that it may: a critical job starts at once in the reserve, and in a queue without one it
/// waits for one running job.
#[test]
fn a_reserve_lets_a_critical_job_start_at_once() {
    let server = Server::start();
    put(&server, &json!({"max_running": 3, "reserve": {"slots": 1, "from_priority": 30}}));
    let low: Vec<Value> =
        (0..6).map(|_| json!({"type": "send", "queue": "mail", "priority": "low"})).collect();
    server.post("/jobs/bulk", &json!({"jobs": low})).expect(200);
    let claim = || {
        server
            .post("/jobs/claim", &json!({"worker_id": "w", "queues": ["mail"], "lease_seconds": 60}))
            .expect(200)
    };
    let (first, second) = (claim(), claim());
    assert!(first["id"].is_i64() && second["id"].is_i64());
    assert_eq!(claim(), Value::Null, "the third slot is kept");
    let waits = server.get("/jobs/3/explain").expect(200);
    assert_eq!(waits["reasons"][0]["kind"], "queue_full", "{waits}");
    let urgent =
        server.post("/jobs", &json!({"type": "send", "queue": "mail", "priority": "critical"})).expect(201);
    assert_eq!(claim()["id"], urgent["id"]);
    // Full: a claim that waits gets the next job when one ends, without asking again.
    let next = std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let claim = json!({"worker_id": "w", "queues": ["mail"], "wait_seconds": 20});
            server.post("/jobs/claim", &claim).expect(200)
        });
        let done = json!({"lease": first["lease"]});
        server.post(&format!("/jobs/{}/complete", first["id"]), &done).expect(200);
        waits.join().expect("the claim is answered")
    });
    assert_eq!(next["id"], 3, "{next:?}");
}

/// Keys take turns whatever stands before them in the line.
#[test]
fn fair_keys_take_turns() {
    let server = Server::start();
    let of = |tenant: &str| json!({"type": "sync", "queue": "shop", "fair_key": tenant});
    let flood: Vec<Value> = (0..20).map(|_| of("big")).collect();
    server.post("/jobs/bulk", &json!({"jobs": flood})).expect(200);
    let claim = || server.post("/jobs/claim", &json!({"worker_id": "w", "queues": ["shop"]})).expect(200);
    assert_eq!(claim()["fair_key"], "big");
    let small = server.post("/jobs", &of("small")).expect(201);
    assert_eq!(claim()["id"], small["id"]);
    assert_eq!(claim()["fair_key"], "big");
}
