//! Jobs about versions of one object, at the real server: over HTTP, on the command line, through `kill -9`.

use serde_json::{Value, json};

use crate::cli_ran::run;
use crate::client::Client;
use crate::server::Server;
use crate::support::{at_once, enqueue, enqueue_all, id_of, job, nothing_in, take, take_briefly, text};

fn version(version: i64) -> Value {
    let subject = json!({"kind": "order", "id": "4711", "version": version});
    json!({"type": "sync", "queue": "q", "subject": subject, "supersede": true, "retry": at_once()})
}

fn kinds(client: &mut Client, id: i64) -> Vec<String> {
    let explained = client.get(&format!("/jobs/{id}/explain")).expect(200);
    let reasons = explained["reasons"].as_array().expect("reasons");
    reasons.iter().map(|reason| text(&reason["kind"]).to_owned()).collect()
}

#[test]
fn a_newer_version_cancels_what_waits_and_tells_who_holds_what_runs() {
    let server = Server::start();
    let mut client = server.client();
    let first = enqueue(&mut client, &version(1));
    let held = take(&mut client, "w", "q");
    assert_eq!(held.heartbeat(&mut client).expect(200)["superseded"], false);
    let second = enqueue(&mut client, &version(2));
    let beat = held.heartbeat(&mut client).expect(200);
    assert_eq!((&beat["superseded"], &beat["continue"]), (&json!(true), &json!(true)));
    let leases = json!({"worker_id": "w", "leases": [{"id": first, "lease": held.lease}]});
    let beats = client.post("/jobs/heartbeat/bulk", &leases).expect(200);
    assert!(beats.to_string().contains("\"superseded\":true"), "{beats}");
    let running = job(&mut client, first);
    assert_eq!(
        (&running["status"], &running["superseded_by"], &running["supersede"]),
        (&json!("running"), &json!(second), &json!(true))
    );
    assert_eq!(kinds(&mut client, first), ["running", "superseded"]);
    let third = enqueue(&mut client, &version(3));
    let cancelled = job(&mut client, second);
    assert_eq!((&cancelled["status"], &cancelled["superseded_by"]), (&json!("cancelled"), &json!(third)));
    assert_eq!(kinds(&mut client, second), ["superseded", "cancelled"]);
    let ended = held.fail(&mut client, "transient");
    assert_eq!((&ended["status"], &ended["retry_count"]), (&json!("cancelled"), &json!(0)));
    let problem = held.heartbeat(&mut client).problem(409, "superseded");
    assert_eq!((&problem["stop"], &problem["may_report"]), (&json!(true), &json!(false)));
    let newest = take(&mut client, "w", "q");
    assert_eq!(newest.id, third);
    assert_eq!(newest.complete(&mut client)["superseded_by"], Value::Null);
    assert!(nothing_in(&mut client, "q"));
}

#[test]
fn a_job_that_runs_may_complete_although_a_newer_version_waits() {
    let server = Server::start();
    let mut client = server.client();
    enqueue(&mut client, &version(1));
    let held = take(&mut client, "w", "q");
    let second = enqueue(&mut client, &version(2));
    let done = held.complete(&mut client);
    assert_eq!((&done["status"], &done["superseded_by"]), (&json!("completed"), &json!(second)));
    assert_eq!(take(&mut client, "w", "q").id, second);
}

#[test]
fn an_old_event_that_comes_late_is_created_cancelled_also_after_a_kill_and_after_its_successor_is_gone() {
    let mut server = Server::start();
    let mut client = server.client();
    let newest = enqueue(&mut client, &version(5));
    take(&mut client, "w", "q").complete(&mut client);
    let late = client.post("/jobs", &version(4)).expect(201);
    assert_eq!((&late["status"], &late["superseded_by"]), (&json!("cancelled"), &json!(newest)));
    client.send(&format!("DELETE /jobs/{newest}"), &[], b"").expect(200);
    server.kill();
    server.start_again();
    let mut client = server.client();
    let later = client.post("/jobs", &version(3)).expect(201);
    assert_eq!((&later["status"], &later["superseded_by"]), (&json!("cancelled"), &json!(newest)));
    assert!(nothing_in(&mut client, "q"));
    let same = enqueue(&mut client, &version(5));
    assert_eq!(take(&mut client, "w", "q").id, same, "the version itself may come again");
}

#[test]
fn a_worker_that_dies_with_a_superseded_job_leaves_it_cancelled_and_may_not_report_any_more() {
    let server = Server::start();
    let mut client = server.client();
    let first = enqueue(&mut client, &version(1));
    let held = take_briefly(&mut client, "dies", "q");
    let second = enqueue(&mut client, &version(2));
    let ended = client.get(&format!("/jobs/{first}?wait_seconds=30")).expect(200);
    assert_eq!((&ended["status"], &ended["lease_losses"]), (&json!("cancelled"), &json!(1)));
    held.call(&mut client, "complete", json!({})).problem(409, "superseded");
    assert_eq!(take(&mut client, "w", "q").id, second);
}

#[test]
fn review_keeps_a_superseded_job_and_retries_it_only_by_force() {
    let server = Server::start();
    let mut client = server.client();
    let old = enqueue(&mut client, &version(1));
    take(&mut client, "w", "q").fail(&mut client, "permanent");
    let newer = enqueue(&mut client, &version(2));
    let failed = job(&mut client, old);
    assert_eq!((&failed["status"], &failed["superseded_by"]), (&json!("failed"), &json!(newer)));
    assert_eq!(kinds(&mut client, old), ["in_review", "superseded"]);
    let retry = json!({"seen_version": failed["version"]});
    let problem = client.post(&format!("/jobs/{old}/retry"), &retry).problem(409, "superseded");
    assert!(text(&problem["detail"]).contains(&format!("job {newer}")), "{problem}");
    assert_eq!(problem.get("stop"), None, "this is not said to a worker");
    let refused = run(&server, &["review", "retry", &old.to_string()]);
    assert!(format!("{refused:?}").contains("superseded"), "{refused:?}");
    let shown = run(&server, &["jobs", "show", &old.to_string()]);
    assert!(shown.expect(0).contains(&format!("job {newer}, which has a newer version")), "{shown:?}");
    run(&server, &["review", "retry", "--force", &old.to_string()]).expect(0);
    let forced = job(&mut client, old);
    assert_eq!((&forced["status"], &forced["superseded_by"]), (&json!("pending"), &Value::Null));
    let third = enqueue(&mut client, &version(3));
    assert_eq!(job(&mut client, old)["superseded_by"], third, "the next version finds it again");
}

#[test]
fn without_a_version_it_is_refused_in_every_form() {
    let server = Server::start();
    let bare = json!({"type": "t", "supersede": true});
    let half = json!({"type": "t", "supersede": true, "subject": {"kind": "order", "id": "1"}});
    for sent in [&bare, &half] {
        let problem = server.post("/jobs", sent).problem(422, "invalid-request");
        assert_eq!(problem["errors"][0]["field"], "subject.version", "{problem}");
    }
    let problem = server.post("/jobs/bulk", &json!({"jobs": [{"type": "t"}, bare], "atomic": true}));
    assert!(problem.text().contains("jobs[1].subject.version"), "{}", problem.text());
    let wrong = run(&server, &["enqueue", "t", "--subject", "order:1", "--supersede"]);
    assert!(format!("{wrong:?}").contains("--subject-version"), "{wrong:?}");
    assert_eq!(server.get("/stats").expect(200)["counts"]["pending"], 0);
}

#[test]
fn the_command_line_supersedes_and_says_what_was_superseded_as_it_came() {
    let server = Server::start();
    let sent = |version: &str| {
        run(
            &server,
            &["enqueue", "sync", "--subject", "order:1", "--subject-version", version, "--supersede"],
        )
    };
    assert!(sent("2").expect(0).contains("created"));
    let late = sent("1");
    assert!(late.expect(0).contains("created cancelled: job 1 has a newer version"), "{late:?}");
    assert!(run(&server, &["check", "--store", &server.store()]).expect(0).contains("clean"));
}

#[test]
fn whoever_comes_first_of_many_producers_only_the_highest_version_waits() {
    let server = Server::start();
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let mut client = server.client();
            std::thread::spawn(move || {
                let jobs: Vec<Value> = (0..25).map(|n| version((n * 7 + thread * 11) % 100)).collect();
                jobs.iter().map(|job| id_of(&client.post("/jobs", job).expect(201))).collect::<Vec<_>>()
            })
        })
        .collect();
    let ids: Vec<i64> = threads.into_iter().flat_map(|thread| thread.join().expect("it ends")).collect();
    let mut client = server.client();
    let jobs: Vec<Value> = ids.into_iter().map(|id| job(&mut client, id)).collect();
    let top = jobs.iter().filter_map(|job| job["subject"]["version"].as_i64()).max();
    for job in &jobs {
        let is_top = job["subject"]["version"].as_i64() == top;
        assert_eq!(job["status"] == "pending", is_top, "{job}");
        assert_eq!(job["superseded_by"].is_null(), is_top, "{job}");
    }
    let other = json!({"type": "sync", "queue": "q", "subject": {"kind": "order", "id": "x", "version": 1}});
    assert_eq!(enqueue_all(&mut client, &[other.clone(), other]).len(), 2, "who does not ask is left alone");
}

/// As many as one call can bring. The newer one costs a part of what they cost, its memory does not grow with them, and nobody
/// gets one of them beside it.
#[test]
fn ten_thousand_older_jobs_are_superseded_by_one_call() {
    const OLDER: usize = 10_000;
    let server = Server::start();
    let mut client = server.client();
    let before = server.cpu_us();
    let ids = enqueue_all(&mut client, &vec![version(1); OLDER]);
    let brought = server.cpu_us() - before;
    let memory = server.memory_kib();
    let before = server.cpu_us();
    let newer = enqueue(&mut client, &version(2));
    let ended = server.cpu_us() - before;
    assert!(ended < brought * 2, "{ended} µs to supersede what took {brought} µs to bring");
    let grown = server.memory_kib() - memory;
    assert!(grown < 32 * 1024, "{grown} KiB more");
    let counts = client.get("/stats").expect(200)["counts"].clone();
    assert_eq!((&counts["cancelled"], &counts["pending"]), (&json!(OLDER), &json!(1)));
    for id in [ids[0], ids[OLDER / 2], ids[OLDER - 1]] {
        let old = job(&mut client, id);
        assert_eq!((&old["status"], &old["superseded_by"]), (&json!("cancelled"), &json!(newer)));
    }
    assert_eq!(take(&mut client, "w", "q").id, newer);
    assert!(nothing_in(&mut client, "q"));
}
