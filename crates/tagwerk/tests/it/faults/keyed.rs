//! K14: order within an ordering key that was broken, or that blocked for ever.

use serde_json::{Value, json};

use crate::cli_ran::{Ran, run};
use crate::client::Client;
use crate::server::Server;
use crate::support::{
    at_once, claim, claim_all, delete, enqueue, enqueue_all, in_parallel, job, nothing_in, settled, take,
    take_briefly, text,
};

fn keyed(mode: &str, fields: &Value) -> Value {
    let mut job = json!({"type": "t", "queue": "q", "ordering_key": "order-4711", "on_head_failure": mode,
        "retry": at_once()});
    for (field, value) in fields.as_object().expect("an object") {
        job[field] = value.clone();
    }
    job
}

/// The reasons of `explain`, by kind.
fn kinds(client: &mut Client, id: i64) -> Vec<String> {
    let answer = client.get(&format!("/jobs/{id}/explain")).expect(200);
    let reasons = answer["reasons"].as_array().expect("reasons").clone();
    reasons.iter().map(|reason| text(&reason["kind"]).to_owned()).collect()
}

/// "Singleton" limited the queued jobs but not the running ones, so two close events ran together and the older one won.
#[test]
fn f091_two_jobs_of_a_key_never_run_together() {
    let server = Server::start();
    let mut client = server.client();
    let claimers: Vec<usize> = (0..5).collect();
    for _ in 0..200 {
        let ids = enqueue_all(&mut client, &[keyed("block", &json!({})), keyed("block", &json!({}))]);
        for expected in ids {
            let wish = json!({"worker_id": "w", "queues": ["q"], "lease_seconds": 300, "max_jobs": 2});
            let got = in_parallel((5, &claimers), || server.client(), |client, _| claim_all(client, &wish));
            let got: Vec<_> = got.into_iter().flatten().collect();
            assert_eq!(got.iter().map(|held| held.id).collect::<Vec<_>>(), [expected]);
            got[0].complete(&mut client);
        }
    }
}

/// A job in a serial queue died on its last attempt; the lock of the queue stayed, and blocked its key without a trace.
#[test]
fn f092_a_head_that_is_lost_goes_on_or_blocks_in_sight() {
    let server = Server::start();
    let mut client = server.client();
    let last = json!({"max_retries": 0, "max_lease_losses": 1});
    for mode in ["block", "skip"] {
        let [a, b, c] = [(); 3].map(|()| enqueue(&mut client, &keyed(mode, &last)));
        assert_eq!(take_briefly(&mut client, "dead", "q").id, a);
        assert_eq!(settled(&mut client, a)["status"], "failed");
        if mode == "block" {
            assert!(nothing_in(&mut client, "q"));
            assert_eq!(job(&mut client, b)["blocked_by"], a);
            assert_eq!(job(&mut client, a)["blocks"], 2);
            let review = client.get("/review").expect(200);
            assert_eq!(review["jobs"][0]["blocks"], 2, "{review}");
            assert!(kinds(&mut client, c).contains(&"blocked_by_key".to_owned()));
            let reason = json!({"reason": "looked it up: it was done"});
            let unblocked = client.post(&format!("/jobs/{a}/unblock"), &reason).expect(200);
            assert_eq!((&unblocked["status"], &unblocked["blocks"]), (&json!("failed"), &json!(null)));
            client.post(&format!("/jobs/{a}/unblock"), &reason).problem(409, "not-holding");
            let history = client.get(&format!("/jobs/{a}/attempts")).expect(200);
            assert_eq!(history["actions"][0]["action"], "unblock");
        }
        for expected in [b, c] {
            let held = take(&mut client, "w", "q");
            assert_eq!((held.id, &held.job["blocked_by"]), (expected, &json!(null)));
            held.complete(&mut client);
        }
        // It comes back into its place, which is before all that are to come.
        let body = json!({"seen_version": job(&mut client, a)["version"]});
        client.post(&format!("/jobs/{a}/retry"), &body).expect(200);
        let d = enqueue(&mut client, &keyed(mode, &last));
        for expected in [a, d] {
            let held = take(&mut client, "w", "q");
            assert_eq!(held.id, expected);
            held.complete(&mut client);
        }
    }
}

/// In a group with one at a time a failed job was put behind the others.
#[test]
fn f093_a_head_that_is_retried_keeps_its_place() {
    let server = Server::start();
    let mut client = server.client();
    for mode in ["block", "skip"] {
        let retry = json!({"retry": {"base_seconds": 2, "jitter": "none"}});
        let ids = [(); 3].map(|()| enqueue(&mut client, &keyed(mode, &retry)));
        let held = take(&mut client, "w", "q");
        let failed = held.fail(&mut client, "transient");
        assert_eq!((held.id, text(&failed["status"])), (ids[0], "pending"));
        let wish = json!({"worker_id": "w", "queues": ["q"], "wait_seconds": 1});
        assert!(claim(&mut client, &wish).is_none(), "nobody overtakes it");
        assert_eq!(kinds(&mut client, ids[0])[0], "backoff");
        assert_eq!(kinds(&mut client, ids[1])[0], "blocked_by_key");
        let done = ids.map(|_| {
            let held = take(&mut client, "w", "q");
            held.complete(&mut client);
            held.id
        });
        assert_eq!(done, ids);
    }
}

/// There was no way to end the job of a dead worker for good; people wrote their own SQL to free job and key together.
#[test]
fn f094_a_forced_end_frees_job_and_key_in_one_call() {
    let server = Server::start();
    let mut client = server.client();
    let [a, b] = [(); 2].map(|()| enqueue(&mut client, &keyed("skip", &json!({}))));
    let dead = take(&mut client, "dead", "q");
    assert_eq!(dead.id, a);
    assert_eq!(job(&mut client, b)["blocked_by"], a);
    let reason = json!({"reason": "its machine is gone"});
    let forced = client.post(&format!("/jobs/{a}/force-fail"), &reason).expect(200);
    assert_eq!(forced["status"], "failed");
    assert_eq!(dead.heartbeat(&mut client).status, 409);
    let next = claim(&mut client, &json!({"worker_id": "w", "queues": ["q"]})).expect("the next job");
    assert_eq!(next.id, b);
    // Under `block` the key waits for a decision, which is one call as well.
    next.complete(&mut client);
    let [c, d] = [(); 2].map(|()| enqueue(&mut client, &keyed("block", &json!({}))));
    assert_eq!(take(&mut client, "dead", "q").id, c);
    client.post(&format!("/jobs/{c}/force-fail"), &reason).expect(200);
    assert_eq!(job(&mut client, c)["blocks"], 1);
    client.post(&format!("/jobs/{c}/discard"), &reason).expect(200);
    let next = claim(&mut client, &json!({"worker_id": "w", "queues": ["q"]})).expect("the next job");
    assert_eq!(next.id, d);
}

/// Cancel worked in some states only, and a job could not be deleted in any way. Whatever state a job is in, behind a key or a
/// limit or as its holder, it goes in one call, and slot and key are free with the answer.
#[test]
fn f099_f100_a_cancelled_or_deleted_job_frees_its_key_and_its_slot_at_once() {
    let server = Server::start();
    let mut client = server.client();
    server.put("/limits/crm", &json!({"max_running": 1})).expect(201);
    let end = |client: &mut Client, how: &str, id: i64| match how {
        "cancel" => client.post(&format!("/jobs/{id}/cancel"), &json!({"reason": "not needed"})).expect(200),
        _ => delete(client, &format!("/jobs/{id}")).expect(200),
    };
    for how in ["cancel", "delete"] {
        for fields in [json!({"ordering_key": "k"}), json!({"limits": ["crm"]})] {
            let mut job_of = json!({"type": "t", "queue": "q"});
            job_of.as_object_mut().expect("an object").extend(fields.as_object().expect("fields").clone());
            let [running, waiting, next, last] = [(); 4].map(|()| enqueue(&mut client, &job_of));
            let held = take(&mut client, "w", "q");
            assert_eq!(held.id, running);
            assert!(nothing_in(&mut client, "q"), "{how} {fields}");
            // Blocked by the key, or by the limit.
            end(&mut client, how, waiting);
            // The one that runs.
            end(&mut client, how, running);
            assert_eq!(held.heartbeat(&mut client).status, if how == "cancel" { 409 } else { 404 });
            let wish = json!({"worker_id": "w", "queues": ["q"], "lease_seconds": 300});
            let held = claim(&mut client, &wish).unwrap_or_else(|| panic!("{how} {fields}: not free"));
            assert_eq!(held.id, next, "{how} {fields}");
            // Waiting for its retry, at the head of its key, it does not have it any more either.
            held.call(&mut client, "fail", json!({"retry_after_seconds": 3_600})).expect(200);
            end(&mut client, how, next);
            let held = claim(&mut client, &wish).unwrap_or_else(|| panic!("{how} {fields}: not free"));
            assert_eq!(held.id, last, "{how} {fields}");
            held.complete(&mut client);
            if how == "delete" {
                end(&mut client, how, last);
            } else {
                client.post(&format!("/jobs/{last}/cancel"), &json!({})).problem(409, "already-completed");
            }
        }
    }
    // A head in review, which holds back those behind it.
    let keyed = keyed("block", &json!({"max_retries": 0}));
    let [head, next] = [(); 2].map(|()| enqueue(&mut client, &keyed));
    take(&mut client, "w", "q").fail(&mut client, "permanent");
    client.post(&format!("/jobs/{head}/cancel"), &json!({})).problem(409, "use-discard");
    assert!(nothing_in(&mut client, "q"));
    delete(&mut client, &format!("/jobs/{head}")).expect(200);
    assert_eq!(take(&mut client, "w", "q").id, next);
}

/// Who waits for another job of its key is counted wherever jobs are, and who holds them back says how many; at the command
/// line as well, where one call lets them go on.
#[test]
fn blocked_jobs_are_counted_and_unblocked_at_the_command_line() {
    let server = Server::start();
    let mut client = server.client();
    let keyed = keyed("block", &json!({"max_retries": 0}));
    let ids = enqueue_all(&mut client, &vec![keyed.clone(); 13]);
    enqueue(&mut client, &json!({"type": "t", "queue": "q"}));
    let blocked = |client: &mut Client| {
        let metrics = client.get("/metrics").text().to_owned();
        let gauge =
            metrics.lines().find_map(|line| line.strip_prefix("tagwerk_queue_blocked_jobs{queue=\"q\"} "));
        let gauge: i64 = gauge.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{metrics}"));
        let shown = [
            client.get("/stats").expect(200)["counts"]["blocked"].clone(),
            client.get("/queues/q").expect(200)["counts"]["blocked"].clone(),
            client.get("/queues").expect(200)["queues"][0]["counts"]["blocked"].clone(),
            client.get("/types/t").expect(200)["counts"]["blocked"].clone(),
        ];
        assert!(shown.iter().all(|n| *n == gauge), "{shown:?} and {gauge}");
        gauge
    };
    assert_eq!(blocked(&mut client), 12);
    take(&mut client, "w", "q").fail(&mut client, "permanent");
    assert_eq!(blocked(&mut client), 12, "it holds them back");
    let tagwerk = |args: &[&str]| run(&server, args);
    let cell = |ran: &Ran, column: &str| {
        let (head, row) = ran.expect(0).split_once('\n').expect("a row");
        let at = head.find(column).unwrap_or_else(|| panic!("{head}"));
        row.lines()
            .next()
            .and_then(|row| row.get(at..))
            .map(|rest| rest.split("  ").next().expect("a cell").to_owned())
    };
    assert_eq!(cell(&tagwerk(&["queues"]), "BLOCKED").as_deref(), Some("12"));
    assert_eq!(cell(&tagwerk(&["types", "list"]), "BLOCKED").as_deref(), Some("12"));
    assert_eq!(cell(&tagwerk(&["review", "list"]), "BLOCKS").as_deref(), Some("12 jobs"));
    for args in [&["stats"][..], &["queues", "show", "q"], &["types", "show", "t"]] {
        let shown = tagwerk(args);
        assert!(shown.expect(0).contains("13 pending (12 blocked)"), "{args:?}: {shown:?}");
    }
    // The call that lets them go on.
    let head = ids[0].to_string();
    assert!(tagwerk(&["jobs", "unblock", &head]).fails(2).contains("--reason"));
    let stale = tagwerk(&["jobs", "unblock", &head, "--reason", "r", "--seen-version", "1"]);
    assert!(stale.code == Some(1) && stale.stderr.contains("version-changed"), "{stale:?}");
    assert_eq!(blocked(&mut client), 12);
    let done = tagwerk(&["jobs", "unblock", &head, "--reason", "done by hand", "--json"]).json();
    assert_eq!(
        (&done["id"], &done["status"], &done["blocks"]),
        (&json!(ids[0]), &json!("failed"), &json!(null))
    );
    assert_eq!(blocked(&mut client), 11, "the next one has its turn");
    assert_eq!(cell(&tagwerk(&["review", "list"]), "BLOCKS").as_deref(), Some("-"));
    let twice = tagwerk(&["jobs", "unblock", &head, "--reason", "again"]);
    assert!(twice.code == Some(1) && twice.stderr.contains("not-holding"), "{twice:?}");
    let told = client.get(&format!("/jobs/{head}/attempts")).expect(200)["actions"][0].clone();
    assert_eq!((&told["action"], &told["reason"]), (&json!("unblock"), &json!("done by hand")), "{told}");
    assert_eq!(take(&mut client, "w", "q").id, ids[1]);
    // Counted from the rows they are as many.
    assert!(server.command(&["check", "--store", &server.store()]).status().expect("it runs").success());
}

/// What is given is shown again, and nothing else than it.
#[test]
fn ordering_keys_are_shown_and_checked() {
    let server = Server::start();
    let mut client = server.client();
    let plain = client.post("/jobs", &json!({"type": "t"})).expect(201);
    let fields = ["ordering_key", "on_head_failure", "blocked_by", "blocks"];
    assert_eq!(fields.map(|field| &plain[field]), [&Value::Null; 4]);
    let a = client.post("/jobs", &keyed("skip", &json!({}))).expect(201);
    let b =
        client.post("/jobs", &json!({"type": "t", "queue": "q", "ordering_key": "order-4711"})).expect(201);
    assert_eq!(
        fields.map(|field| &a[field]),
        [&json!("order-4711"), &json!("skip"), &Value::Null, &Value::Null]
    );
    assert_eq!(fields.map(|field| &b[field]), [&json!("order-4711"), &Value::Null, &a["id"], &Value::Null]);
    let list = client.get("/jobs?queue=q").expect(200);
    assert_eq!(list["jobs"][1]["blocked_by"], a["id"]);
    let long = "k".repeat(256);
    for (body, field) in [
        (json!({"type": "t", "on_head_failure": "skip"}), "on_head_failure"),
        (json!({"type": "t", "ordering_key": "k", "on_head_failure": "wait"}), "on_head_failure"),
        (json!({"type": "t", "ordering_key": ""}), "ordering_key"),
        (json!({"type": "t", "ordering_key": long}), "ordering_key"),
    ] {
        let problem = client.post("/jobs", &body).problem(422, "invalid-request");
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
    }
}

/// The order and what a person decided are in the store: both are there after the server was killed.
#[test]
fn an_order_survives_kill_9() {
    let mut server = Server::start();
    let mut client = server.client();
    let [a, b, c] = [(); 3].map(|()| enqueue(&mut client, &keyed("block", &json!({"max_retries": 0}))));
    take(&mut client, "w", "q").fail(&mut client, "permanent");
    server.restart();
    let mut client = server.client();
    assert!(nothing_in(&mut client, "q"));
    client.post(&format!("/jobs/{a}/unblock"), &json!({"reason": "r"})).expect(200);
    let held = take(&mut client, "w", "q");
    assert_eq!(held.id, b);
    server.restart();
    let mut client = server.client();
    assert!(nothing_in(&mut client, "q"));
    held.complete(&mut client);
    assert_eq!(take(&mut client, "w", "q").id, c);
}
