//! K07: queues that stand still and nobody notices. What rings when nobody looks waits for alerts; here is that whoever
//! looks is told, and that waiting claims miss nothing.

use std::io::BufRead as _;

use rustix::net::sockopt::set_socket_linger;
use serde_json::{Value, json};

use crate::client::{Client, request};
use crate::server::{JSON, Server};
use crate::support::{
    Held, at_once, claim, enqueue, id_of, job, linger, ms, nothing_in, operate, take, take_briefly, text,
};

/// The longest from an event to the start of the job that it frees. Events are in the server's own clock, so this is no
/// measure of the machine.
const WITHIN_MS: i64 = 1_000;

/// Returns when so many claims wait. The server only says so when asked.
fn until_parked(client: &mut Client, count: i64) {
    while client.get("/stats").expect(200)["commits"]["parked_claims"] != count {}
}

/// What a claim of queue `q` that waits is answered after this was done. It waits before, and asks once.
fn waits_for<R>(server: &Server, act: impl FnOnce(&mut Client) -> R) -> (Held, R) {
    let mut client = server.client();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| take(&mut server.client(), "waits", "q"));
        until_parked(&mut client, 1);
        let done = act(&mut client);
        (waiting.join().expect("a job"), done)
    })
}

/// The server's clock.
fn now(client: &mut Client) -> i64 {
    ms(&client.get("/stats").expect(200)["now"]).expect("a time")
}

fn started(held: &Held) -> i64 {
    ms(&held.job["claimed_at"]).expect("a time")
}

/// Behind a pooler pause, scale and stop answered ok and did nothing. (With several servers: PostgreSQL.)
#[test]
fn f044_what_was_answered_ok_holds_for_every_connection() {
    let server = Server::start();
    let job = json!({"type": "t", "queue": "q"});
    let said = |client: &mut Client, what: &str, body: &Value| {
        client.post(&format!("/queues/q/{what}"), body).expect(200);
    };
    let (held, id) = waits_for(&server, |client| {
        said(client, "pause", &json!({"reason": "crm down"}));
        let id = enqueue(client, &job);
        assert!(nothing_in(client, "q"));
        until_parked(client, 1);
        said(client, "resume", &json!({}));
        id
    });
    assert_eq!(held.id, id);
    // As many run as may: one more may when somebody says so.
    let bound = |client: &mut Client, n: u32| {
        let body = json!({"max_running": n}).to_string();
        client.send("PUT /queues/q", &[JSON], body.as_bytes()).expect(200);
    };
    bound(&mut server.client(), 1);
    let (second, id) = waits_for(&server, |client| {
        let id = enqueue(client, &job);
        assert!(nothing_in(client, "q"));
        bound(client, 2);
        id
    });
    assert_eq!(second.id, id);
    operate(&mut server.client(), held.id, "cancel").expect(200);
    held.heartbeat(&mut server.client()).problem(409, "cancelled");
    held.call(&mut server.client(), "complete", json!({})).problem(409, "cancelled");
}

/// Workers were down, and nobody could tell growth by load from growth by standstill.
#[test]
fn f045_a_queue_that_nobody_asks_is_named() {
    let mut server = Server::start();
    let mut client = server.client();
    let asleep = enqueue(&mut client, &json!({"type": "t", "queue": "asleep"}));
    for _ in 0..3 {
        enqueue(&mut client, &json!({"type": "t", "queue": "busy"}));
    }
    take(&mut client, "w", "busy").complete(&mut client);
    linger(&mut client, 1.2);
    take(&mut client, "w", "busy").complete(&mut client);
    let queue = |client: &mut Client, name: &str| client.get(&format!("/queues/{name}")).expect(200);
    let (idle, busy) = (queue(&mut client, "asleep"), queue(&mut client, "busy"));
    let age = |shown: &Value, field: &str| shown[field].as_f64();
    assert_eq!(age(&idle, "last_claim_age_seconds"), None, "nobody ever asked: {idle}");
    assert!(age(&idle, "oldest_ready_age_seconds").is_some_and(|age| age >= 1.2), "{idle}");
    assert!(age(&busy, "last_claim_age_seconds").is_some(), "{busy}");
    // And in words, for the job that waits.
    let why = client.get(&format!("/jobs/{asleep}/explain")).expect(200)["reasons"].clone();
    let why = why.as_array().and_then(|why| why.iter().find(|why| why["kind"] == "no_worker")).cloned();
    let why = why.expect("a reason");
    let said = "No worker has asked for type t in queue asleep since the server was started.";
    assert_eq!((text(&why["detail"]), &why["until"]), (said, &Value::Null));
    // And as gauges.
    let metrics = client.get("/metrics");
    let gauge = |name: &str, queue: &str| {
        let series = format!("tagwerk_{name}{{queue=\"{queue}\"}} ");
        metrics.text().lines().find_map(|line| line.strip_prefix(&series)?.parse::<f64>().ok())
    };
    assert!(gauge("queue_oldest_ready_age_seconds", "asleep").is_some_and(|age| age >= 1.2));
    assert_eq!(gauge("queue_last_claim_age_seconds", "asleep"), None);
    assert!(gauge("queue_last_claim_age_seconds", "busy").is_some());
    // And at the command line.
    let url = server.url();
    let printed = server.command(&["queues", "--url", &url]).output().expect("it runs");
    let printed = String::from_utf8(printed.stdout).expect("text");
    let row = printed.lines().find(|line| line.starts_with("asleep")).expect("a row");
    assert!(row.trim_end().ends_with('-') || row.contains(" - "), "no last claim: {printed}");
    // It is not forgotten with a restart that somebody did ask for the other one.
    drop(client);
    server.terminate();
    server.start_again();
    let mut client = server.client();
    assert_eq!(age(&queue(&mut client, "asleep"), "last_claim_age_seconds"), None);
    assert!(age(&queue(&mut client, "busy"), "last_claim_age_seconds").is_some_and(|age| age > 0.0));
}

/// Old jobs were done only when workers were restarted.
#[test]
fn f046_a_waiting_claim_gets_whatever_becomes_claimable() {
    let server = Server::start();
    let mut client = server.client();
    let job_of = |fields: Value| {
        let mut job = json!({"type": "t", "queue": "q", "retry": at_once()});
        job.as_object_mut().expect("an object").extend(fields.as_object().expect("fields").clone());
        job
    };
    let late = |held: &Held, event: i64| {
        let late = started(held) - event;
        assert!((0..=WITHIN_MS).contains(&late), "{late} ms after the event: {}", held.job);
    };

    let (held, id) = waits_for(&server, |client| enqueue(client, &job_of(json!({}))));
    assert_eq!(held.id, id);
    late(&held, ms(&held.job["created_at"]).expect("a time"));

    // A retry that comes due.
    let retried = held.call(&mut client, "fail", json!({"retry_after_seconds": 1.5})).expect(200);
    let (held, ()) = waits_for(&server, |_| ());
    assert_eq!(held.id, id);
    late(&held, ms(&retried["available_at"]).expect("a time"));
    held.complete(&mut client);

    // A lease that ends.
    let id = enqueue(&mut client, &job_of(json!({})));
    let lost = take_briefly(&mut client, "dies", "q");
    let (held, ()) = waits_for(&server, |_| ());
    assert_eq!((held.id, &held.job["lease_losses"]), (id, &json!(1)));
    late(&held, ms(&lost.job["lease_expires_at"]).expect("a time"));
    held.complete(&mut client);

    // A limit: a slot, then a rate.
    server.put("/limits/slot", &json!({"max_running": 1})).expect(201);
    let ids = [(); 2].map(|()| enqueue(&mut client, &job_of(json!({"limits": ["slot"]}))));
    let first = take(&mut client, "w", "q");
    let (held, freed) = waits_for(&server, |client| {
        let freed = first.complete(client);
        ms(&freed["finished_at"]).expect("a time")
    });
    assert_eq!([first.id, held.id], ids);
    late(&held, freed);
    held.complete(&mut client);
    server.put("/limits/rate", &json!({"rate": {"count": 1, "per_seconds": 1.5}})).expect(201);
    let ids = [(); 2].map(|()| enqueue(&mut client, &job_of(json!({"limits": ["rate"]}))));
    let first = take(&mut client, "w", "q");
    first.complete(&mut client);
    let why = client.get(&format!("/jobs/{}/explain", ids[1])).expect(200)["reasons"][0].clone();
    let opens = ms(&why["until"]).unwrap_or_else(|| panic!("time alone decides: {why}"));
    let (held, ()) = waits_for(&server, |_| ());
    assert_eq!([first.id, held.id], ids);
    late(&held, opens);
    held.complete(&mut client);

    // The end of a pause.
    client.post("/queues/q/pause", &json!({"reason": "deploy"})).expect(200);
    let id = enqueue(&mut client, &job_of(json!({})));
    let (held, resumed) = waits_for(&server, |client| {
        client.post("/queues/q/resume", &json!({})).expect(200);
        now(client)
    });
    assert_eq!(held.id, id);
    assert!(started(&held) <= resumed + WITHIN_MS, "{}", held.job);
    held.complete(&mut client);

    // A key that is freed: by its end, and by a decision.
    let keyed = || job_of(json!({"ordering_key": "k", "max_retries": 0}));
    let ids = [(); 3].map(|()| enqueue(&mut client, &keyed()));
    let first = take(&mut client, "w", "q");
    let (second, freed) =
        waits_for(&server, |client| ms(&first.complete(client)["finished_at"]).expect("a time"));
    late(&second, freed);
    second.fail(&mut client, "permanent");
    let (third, decided) = waits_for(&server, |client| {
        client.post(&format!("/jobs/{}/unblock", second.id), &json!({"reason": "done by hand"})).expect(200);
        now(client)
    });
    assert!(started(&third) <= decided + WITHIN_MS, "{}", third.job);
    assert_eq!([first.id, second.id, third.id], ids);
}

/// The listening stream ended, the heartbeat went on: the worker looked healthy, was given jobs and took none of them.
#[test]
fn f047_a_claim_that_was_cut_gets_nothing_and_a_worker_shows_when_it_last_asked() {
    let server = Server::start();
    let mut client = server.client();
    let mut cut = server.client();
    let wish = json!({"worker_id": "half-dead", "queues": ["q"], "wait_seconds": 50}).to_string();
    cut.begin(&request(server.addr(), "POST /jobs/claim", &[JSON], wish.as_bytes())).expect("to send");
    until_parked(&mut client, 1);
    // Reset: nothing is sent any more, as if a machine in between had forgotten the connection.
    let stream = cut.stream().expect("a connection").get_mut();
    set_socket_linger(&*stream, Some(std::time::Duration::ZERO)).expect("to set it");
    cut.close();
    until_parked(&mut client, 0);
    let id = enqueue(&mut client, &json!({"type": "t", "queue": "q"}));
    assert_eq!(job(&mut client, id)["status"], "pending", "nobody is given it");
    let held = take(&mut client, "healthy", "q");
    assert_eq!((held.id, &held.job["attempt"]), (id, &json!(1)));
    held.complete(&mut client);
    // One that goes on with its heartbeats and asks for no work shows both times.
    let id = enqueue(&mut client, &json!({"type": "t", "queue": "q"}));
    let held = take(&mut client, "deaf", "q");
    assert_eq!(held.id, id);
    linger(&mut client, 2.0);
    held.heartbeat(&mut client).expect(200);
    let shown = client.get("/workers").expect(200)["workers"].clone();
    let deaf = shown.as_array().and_then(|all| all.iter().find(|worker| worker["worker_id"] == "deaf"));
    let deaf = deaf.unwrap_or_else(|| panic!("{shown}"));
    let (asked, reported) = (ms(&deaf["last_claim_at"]), ms(&deaf["last_report_at"]));
    // It is given the job a moment after or before it is seen to have asked for it.
    assert!(asked.is_some_and(|asked| (asked - started(&held)).abs() < 1_000), "{deaf}");
    assert!(reported.zip(asked).is_some_and(|(reported, asked)| reported - asked >= 1_000), "{deaf}");
    assert_eq!(ms(&deaf["last_seen_at"]), reported, "{deaf}");
    let url = server.url();
    let printed = server.command(&["workers", "--url", &url]).output().expect("it runs");
    let printed = String::from_utf8(printed.stdout).expect("text");
    assert!(printed.lines().next().is_some_and(|head| head.contains("LAST CLAIM")), "{printed}");
}

/// The same where nobody says that the connection is gone: bytes get lost, and a proxy gives up by itself. The job comes back
/// with its lease, and is not lost.
#[test]
fn f047_an_answer_that_nobody_reads_comes_back_with_its_lease() {
    let server = Server::start();
    let mut client = server.client();
    let mut silent = server.client();
    let wish =
        json!({"worker_id": "gone", "queues": ["q"], "wait_seconds": 50, "lease_seconds": 1}).to_string();
    silent.begin(&request(server.addr(), "POST /jobs/claim", &[JSON], wish.as_bytes())).expect("to send");
    until_parked(&mut client, 1);
    let id = enqueue(&mut client, &json!({"type": "t", "queue": "q"}));
    // The answer has left the server: for the server it is delivered, to a worker that will never report.
    assert!(!silent.stream().and_then(|stream| stream.fill_buf()).expect("an answer").is_empty());
    let held = take(&mut client, "healthy", "q");
    let facts = ["lease_losses", "verify", "attempt"].map(|field| held.job[field].clone());
    assert_eq!((held.id, facts), (id, [json!(1), json!(true), json!(2)]));
}

/// A job delayed by six hours held up those with shorter delays that were added later.
#[test]
fn f048_a_nearer_due_time_is_not_held_up_by_a_later_one() {
    let server = Server::start();
    let (held, ids) = waits_for(&server, |client| {
        [6 * 3_600, 60, 1].map(|delay| {
            id_of(
                &client
                    .post("/jobs", &json!({"type": "t", "queue": "q", "delay_seconds": delay}))
                    .expect(201),
            )
        })
    });
    assert_eq!(held.id, ids[2]);
    let late = started(&held) - ms(&held.job["available_at"]).expect("a time");
    assert!((0..=WITHIN_MS).contains(&late), "{late} ms after it was due");
    // Nothing else is: an empty claim says when to ask again.
    let wish = json!({"worker_id": "w", "queues": ["q"], "max_jobs": 1});
    let mut client = server.client();
    let answer = client.post("/jobs/claim/bulk", &wish).expect(200);
    let minute = ms(&job(&mut client, ids[1])["available_at"]);
    assert_eq!((&answer["jobs"], ms(&answer["next_due_at"])), (&json!([]), minute));
    assert!(claim(&mut client, &json!({"worker_id": "w", "queues": ["q"]})).is_none());
}
