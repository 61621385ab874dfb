//! The Rust SDK's producer and worker against the real server.

mod effects;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tagwerk_client::api::Json;
use tagwerk_client::api::problem::Code;
use tagwerk_client::api::request::CancelRequest;
use tagwerk_client::{Client, Context, Event, Failure, NewJob, Producer, Tally, Task, Worker, WorkerBuilder};
use tokio::sync::{Notify, Semaphore};

use crate::crash::proxy::{Cut, End, Proxy};
use crate::half_closed::parked;
use crate::server::Server;
use crate::support::dice::Dice;
use crate::support::{at_once, attempts, job, list, nothing_in, operate, take};
use crate::work_outage::SocketServer;

#[derive(Serialize, Deserialize)]
struct Echo {
    n: u64,
}

impl Task for Echo {
    const TYPE: &'static str = "echo";
}

fn echo(n: u64) -> NewJob {
    NewJob::of(&Echo { n }).expect("JSON").queue("q").with(|job| {
        job.retry = Some(serde_json::from_value(at_once()).expect("settings"));
    })
}

fn client(url: &str) -> Client {
    Client::new(url).expect("a client")
}

/// A worker of queue `q` under leases of a second.
fn builder(client: Client) -> WorkerBuilder {
    Worker::builder(client, "sdk").queue("q").lease(Duration::from_secs(1))
}

/// Rings when so many attempts have ended in whatever way.
fn after(ends: u32) -> (Arc<Notify>, impl Fn(&Event) + Send + Sync) {
    let (bell, count) = (Arc::new(Notify::new()), AtomicU32::new(0));
    let rings = Arc::clone(&bell);
    let listen = move |event: &Event| {
        let is_end = !matches!(event, Event::Trouble(_));
        if is_end && count.fetch_add(1, Ordering::SeqCst) + 1 == ends {
            rings.notify_one();
        }
    };
    (bell, listen)
}

/// Runs a worker until so many attempts have ended.
async fn run(ends: u32, worker: WorkerBuilder) -> Tally {
    let (bell, listen) = after(ends);
    worker.listen(listen).build().run(bell.notified()).await.expect("the worker ends well")
}

const fn completed(completed: u64) -> Tally {
    Tally { completed, failed: 0, released: 0, lost: 0 }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_done_at_the_same_time_and_lead_to_others() {
    let server = Server::start();
    let producer = Producer::new(client(&server.url()));
    for n in 0..6 {
        producer.enqueue(echo(n)).await.expect("a job");
    }
    // None ends before three have begun.
    let begun = Arc::new(Semaphore::new(0));
    let handler = move |context: Context, Echo { n }| {
        let begun = Arc::clone(&begun);
        async move {
            begun.add_permits(1);
            drop(begun.acquire_many(if n < 3 { 3 } else { 0 }).await?);
            context.follow_up(echo(n).queue("next").key(format!("after-{n}")));
            Ok(json!({"n": n, "attempt": context.attempt()}))
        }
    };
    assert_eq!(run(6, builder(client(&server.url())).concurrency(3).on(handler)).await, completed(6));
    let mut client = server.client();
    for (n, job) in list(&mut client, "?queue=q").iter().enumerate() {
        let whole = crate::support::job(&mut client, job["id"].as_i64().expect("an id"));
        assert_eq!(
            (&whole["status"], &whole["result"]),
            (&json!("completed"), &json!({"n": n, "attempt": 1}))
        );
    }
    assert_eq!(list(&mut client, "?queue=next").len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_hold_the_job_and_carry_progress_and_a_checkpoint_outlives_the_attempt() {
    let server = Server::start();
    let id = Producer::new(client(&server.url())).enqueue(echo(1)).await.expect("a job").id();
    let watcher = client(&server.url());
    let handler = move |context: Context, _: Echo| {
        let watcher = watcher.clone();
        async move {
            if let Some(done) = context.checkpoint::<u32>()? {
                return Ok(done);
            }
            context.save_checkpoint(&7).await?;
            context.progress(serde_json::from_value(json!({"done": 3, "total": 9, "message": "rows"}))?);
            // Longer than the lease: until the third heartbeat has moved its end.
            let mut ends = std::collections::BTreeSet::new();
            while ends.len() < 4 {
                let job = watcher.job(context.id()).await?.value;
                ends.insert(job.summary.lease_expires_at.map(|at| at.to_string()));
                tokio::task::yield_now().await;
            }
            Err(Failure::transient("once more"))
        }
    };
    assert_eq!(run(2, builder(client(&server.url())).on(handler)).await, Tally { failed: 1, ..completed(1) });
    let job = job(&mut server.client(), id);
    let told =
        [&job["status"], &job["result"], &job["attempt"], &job["lease_losses"], &job["progress"]["done"]];
    assert_eq!(told, [&json!("completed"), &json!(7), &json!(2), &json!(0), &json!(3)], "{job}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_learns_that_its_job_was_cancelled_and_what_it_comes_to_does_not_count() {
    let server = Server::start();
    let id = Producer::new(client(&server.url())).enqueue(echo(1)).await.expect("a job").id();
    let operator = client(&server.url());
    let handler = move |context: Context, _: Echo| {
        let operator = operator.clone();
        async move {
            operator.cancel(context.id(), &CancelRequest::default()).await?;
            context.stopped().await;
            assert!(context.is_stopped());
            Ok(1)
        }
    };
    let expected = Tally { lost: 1, ..completed(0) };
    assert_eq!(run(1, builder(client(&server.url())).on(handler)).await, expected);
    assert_eq!(job(&mut server.client(), id)["status"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_an_unknown_outcome_and_the_next_attempt_is_told_to_look() {
    let server = Server::start();
    let id = Producer::new(client(&server.url())).enqueue(echo(1)).await.expect("a job").id();
    let handler = |context: Context, _: Echo| async move {
        assert!(context.verify(), "the first attempt");
        Ok(())
    };
    assert_eq!(run(2, builder(client(&server.url())).on(handler)).await, Tally { failed: 1, ..completed(1) });
    let mut client = server.client();
    let classes: Vec<Value> =
        attempts(&mut client, id).iter().map(|attempt| attempt["class"].clone()).collect();
    assert_eq!(classes, [json!("unknown"), Value::Null]);
    assert_eq!(job(&mut client, id)["result"], Value::Null, "`()` is no result");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_is_too_large_does_not_undo_the_work_and_bad_follow_ups_go_to_review() {
    let server = Server::start();
    let producer = Producer::new(client(&server.url()));
    let [large, bad] = [producer.enqueue(echo(0)).await, producer.enqueue(echo(1)).await]
        .map(|job| job.expect("a job").id());
    let handler = |context: Context, Echo { n }| async move {
        if n == 1 {
            context.follow_up(echo(2).queue("no such name!"));
        }
        Ok::<_, Failure>("x".repeat(if n == 0 { 70_000 } else { 1 }))
    };
    let expected = Tally { lost: 1, ..completed(1) };
    assert_eq!(run(2, builder(client(&server.url())).on(handler)).await, expected);
    let mut client = server.client();
    let (large, bad) = (job(&mut client, large), job(&mut client, bad));
    assert_eq!((&large["status"], &large["result"]), (&json!("completed"), &Value::Null), "{large}");
    assert_eq!((&bad["status"], &bad["failure"]["reason"]), (&json!("failed"), &json!("permanent")), "{bad}");
    assert!(bad["error"].as_str().is_some_and(|text| text.contains("enqueue[0].queue")), "{bad}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_stops_leaves_nothing_behind_and_finishes_what_it_has_begun() {
    let server = Server::start();
    let stop = Arc::new(Notify::new());
    let (stopping, begun) = (Arc::clone(&stop), Arc::new(Notify::new()));
    let rings = Arc::clone(&begun);
    let handler = move |_: Context, _: Echo| {
        let (stopping, rings) = (Arc::clone(&stopping), Arc::clone(&rings));
        async move {
            rings.notify_one();
            stopping.notified().await;
            Ok::<_, Failure>(())
        }
    };
    // One slot works, the other one waits for a job.
    let worker = builder(client(&server.url())).concurrency(2).on(handler).build();
    let producer = Producer::new(client(&server.url()));
    let id = producer.enqueue(echo(1)).await.expect("a job").id();
    let (ends, running) = (Arc::new(Notify::new()), worker.clone());
    let stops = Arc::clone(&ends);
    let run = tokio::spawn(async move { running.run(stops.notified()).await });
    begun.notified().await;
    while parked(&server) < 1 {}
    ends.notify_one();
    while parked(&server) > 0 {}
    let mut other = server.client();
    let next = producer.enqueue(echo(2)).await.expect("a job").id();
    let got = take(&mut other, "other", "q");
    assert_eq!(got.id, next, "nobody else waits for jobs");
    got.complete(&mut other);
    assert!(!run.is_finished(), "the handler has not ended");
    stop.notify_one();
    assert_eq!(run.await.expect("no panic").expect("the worker ends well"), completed(1));
    assert_eq!(job(&mut other, id)["status"], "completed");
    assert!(nothing_in(&mut other, "q"));
    assert!(list(&mut other, "?queue=q&status=running").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_costs_no_work() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let url = format!("unix:{}", dir.path().join("t.sock").display());
    let server = SocketServer::start(dir.path());
    let id = Producer::new(client(&url)).enqueue(echo(1)).await.expect("a job").id();
    let held = Arc::new(std::sync::Mutex::new(Some(server)));
    let (folder, kept) = (dir.path().to_owned(), Arc::clone(&held));
    let handler = move |_: Context, _: Echo| {
        kept.lock().expect("no panic").take().expect("the server").kill();
        let _ = std::fs::remove_file(folder.join("t.sock"));
        async move { Ok::<_, Failure>(5) }
    };
    let troubles = Arc::new(AtomicU32::new(0));
    let (folder, seen, held_again) = (dir.path().to_owned(), Arc::clone(&troubles), Arc::clone(&held));
    let (bell, listen) = after(1);
    let listen = move |event: &Event| {
        // The report finds nobody; then the server is back.
        if matches!(event, Event::Trouble(_)) && seen.fetch_add(1, Ordering::SeqCst) == 0 {
            *held_again.lock().expect("no panic") = Some(SocketServer::start(&folder));
        }
        listen(event);
    };
    let worker = builder(client(&url)).lease(Duration::from_secs(30)).on(handler).listen(listen).build();
    assert_eq!(worker.run(bell.notified()).await.expect("the worker ends well"), completed(1));
    assert!(troubles.load(Ordering::SeqCst) > 0, "nobody noticed");
    let job = client(&url).job(id).await.expect("the job").value;
    assert_eq!((job.summary.attempt, job.summary.lease_losses), (1, 0));
    assert_eq!(job.result.map(Json::into_text), Some("5".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn with_connections_that_are_cut_each_job_is_made_and_done_once() {
    const JOBS: u32 = 30;
    let seed = crate::crash::seed();
    eprintln!("TAGWERK_CRASH_SEED={seed}");
    let (server, mut dice) = (Server::start(), Dice::new(seed, 0));
    let loud: Vec<Cut> = Cut::ALL.into_iter().filter(|cut| *cut != Cut::Silent).collect();
    let proxy = Proxy::new(server.addr(), move || {
        let cut = if dice.percent(25) { *dice.pick(&loud) } else { Cut::None };
        (cut, if cut == Cut::AfterRequest { End::Fin } else { *dice.pick(&End::ALL) })
    });
    let url = format!("http://{}", proxy.addr());
    let producer = Producer::new(client(&url));
    for n in 0..JOBS {
        // The key is the SDK's own. It gives up after five tries, and does not know then.
        while let Err(error) = producer.enqueue(echo(n.into()).key(format!("k-{n}"))).await {
            assert!(error.is_unreachable(), "{error}");
        }
    }
    let ran: Arc<Vec<AtomicU32>> = Arc::new((0..JOBS).map(|_| AtomicU32::new(0)).collect());
    let counts = Arc::clone(&ran);
    let handler = move |_: Context, Echo { n }| {
        counts[usize::try_from(n).expect("small")].fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, Failure>(n) }
    };
    let worker = builder(client(&url)).concurrency(4).lease(Duration::from_mins(1)).on(handler);
    assert_eq!(run(JOBS, worker).await, completed(JOBS.into()));
    assert!(ran.iter().all(|count| count.load(Ordering::SeqCst) == 1), "{ran:?}");
    let mut client = server.client();
    let jobs = list(&mut client, "?queue=q");
    assert_eq!(jobs.len(), usize::try_from(JOBS).expect("small"));
    let once = |job: &Value| job["status"] == "completed" && job["attempt"] == 1 && job["lease_losses"] == 0;
    assert!(jobs.iter().all(once), "{jobs:#?}");
    assert!(proxy.cuts() > 0, "nothing was cut");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_without_a_key_gets_one_for_an_hour() {
    let server = Server::start();
    let producer = Producer::new(client(&server.url()));
    let ids = [producer.enqueue(echo(1)).await, producer.enqueue(echo(1)).await]
        .map(|job| job.expect("a job").id());
    assert_ne!(ids[0], ids[1], "two calls are two jobs");
    let job = job(&mut server.client(), ids[0]);
    let key = job["idempotency_key"].as_str().expect("a key");
    assert!(key.starts_with("once-"), "{key}");
    assert_eq!((&job["idempotency_scope"], &job["idempotency_ttl_seconds"]), (&json!("ttl"), &json!(3600)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_the_server_refuses_ends_and_says_why() {
    let (_server, url) = crate::tokens::closed_server();
    let worker = builder(client(&url)).on(|_: Context, _: Echo| async { Ok::<_, Failure>(()) }).build();
    let error = worker.run(std::future::pending()).await.expect_err("no token");
    assert_eq!(error.code(), Some(Code::Unauthorized), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_a_person_failed_meanwhile_is_theirs() {
    let server = Server::start();
    let id = Producer::new(client(&server.url())).enqueue(echo(1)).await.expect("a job").id();
    let address = server.url();
    let handler = move |context: Context, _: Echo| {
        let address = address.clone();
        async move {
            let operator = client(&address);
            let force = serde_json::from_value(json!({"reason": "stuck"}))?;
            operator.force_fail(context.id(), &force).await?;
            Ok(1)
        }
    };
    assert_eq!(run(1, builder(client(&server.url())).on(handler)).await, Tally { lost: 1, ..completed(0) });
    let mut client = server.client();
    assert_eq!(job(&mut client, id)["failure"]["reason"], "forced");
    assert_eq!(operate(&mut client, id, "discard").status, 200);
}
