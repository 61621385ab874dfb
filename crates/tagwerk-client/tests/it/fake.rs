//! Handlers over the queue in memory.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tagwerk_client::api::{PriorityLabel, Status};
use tagwerk_client::{Client, Context, Failure, Fake, NewJob, Task, Worker};

#[derive(Serialize, Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

impl Task for Add {
    const TYPE: &'static str = "add";
}

#[derive(Serialize, Deserialize)]
struct Import {
    rows: u32,
}

impl Task for Import {
    const TYPE: &'static str = "import";
}

fn client() -> Client {
    Client::new("http://127.0.0.1:9").unwrap()
}

/// A worker whose one handler for `add` does this with its nth call, from 1.
fn adder(does: impl Fn(u32, &Context) -> Result<i64, Failure> + Send + Sync + 'static) -> Worker {
    let calls = Arc::new(Mutex::new(0));
    let does = Arc::new(does);
    let on_add = move |context: Context, _: Add| {
        let (calls, does) = (Arc::clone(&calls), Arc::clone(&does));
        async move {
            let call = {
                let mut calls = calls.lock().unwrap();
                *calls += 1;
                *calls
            };
            does(call, &context)
        }
    };
    Worker::builder(client(), "w").on(on_add).build()
}

fn add() -> NewJob {
    NewJob::of(&Add { a: 1, b: 2 }).unwrap()
}

/// Status, attempts, retries used and error of one job that this handler gets.
async fn fate(job: NewJob, worker: &Worker) -> (Status, u32, u32, Option<String>) {
    let fake = Fake::new();
    let id = fake.enqueue(job);
    fake.run(worker).await;
    let job = fake.job(id).unwrap();
    (job.status, job.attempt, job.retry_count, job.error)
}

#[tokio::test]
async fn a_result_completes() {
    let worker = Worker::builder(client(), "w")
        .on(|_: Context, add: Add| async move { Ok::<_, Failure>(add.a + add.b) })
        .build();
    let fake = Fake::new();
    let id = fake.enqueue(add());
    assert_eq!(fake.run(&worker).await, 1);
    let job = fake.job(id).unwrap();
    assert_eq!((job.status, job.result.as_deref(), job.attempt), (Status::Completed, Some("3"), 1));
    assert_eq!(fake.run(&worker).await, 0, "nothing is left");
}

#[tokio::test]
async fn failures_are_retried_as_their_class_says() {
    let error = |text: &str| Some(text.to_owned());
    let always = adder(|_, _| Err(Failure::transient("down")));
    assert_eq!(fate(add(), &always).await, (Status::Failed, 4, 3, error("down")));
    let none = add().with(|job| job.max_retries = Some(0));
    assert_eq!(fate(none, &always).await, (Status::Failed, 1, 0, error("down")));
    let permanent = adder(|_, _| Err(Failure::permanent("bad address")));
    assert_eq!(fate(add(), &permanent).await, (Status::Failed, 1, 0, error("bad address")));
    let once = adder(|call, _| if call == 1 { Err(Failure::transient("down")) } else { Ok(1) });
    assert_eq!(fate(add(), &once).await, (Status::Completed, 2, 1, error("down")));
    let gives_back =
        adder(|call, _| if call < 3 { Err(Failure::release(Duration::ZERO, "not now")) } else { Ok(1) });
    assert_eq!(fate(add(), &gives_back).await, (Status::Completed, 1, 0, None));
    let for_ever = adder(|_, _| Err(Failure::release(Duration::ZERO, "never")));
    assert_eq!(fate(add(), &for_ever).await.0, Status::Failed);
}

#[tokio::test]
async fn an_unknown_outcome_and_a_panic_make_the_next_attempt_look_first() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let worker = adder(move |call, context| {
        noted.lock().unwrap().push((context.attempt(), context.verify(), context.is_last_attempt()));
        match call {
            1 => Err(Failure::unknown("no answer")),
            2 => panic!("a bug"),
            3 => Err(Failure::transient("down")),
            _ => Ok(1),
        }
    });
    let (status, attempts, ..) = fate(add(), &worker).await;
    assert_eq!((status, attempts), (Status::Completed, 4));
    let expected = [(1, false, false), (2, true, false), (3, true, false), (4, false, true)];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_payload_of_another_type_goes_to_review_and_its_content_nowhere() {
    let other = NewJob::of(&Import { rows: 471_105 }).unwrap().with(|job| job.job_type = "add".to_owned());
    let (status, attempts, _, error) = fate(other, &adder(|_, _| Ok(1))).await;
    assert_eq!((status, attempts), (Status::Failed, 1));
    let error = error.unwrap();
    assert!(
        error.contains("not of the type") && !error.contains("471105") && !error.contains("rows"),
        "{error}"
    );
}

#[tokio::test]
async fn the_next_attempt_finds_the_checkpoint_and_completion_brings_what_it_leads_to() {
    let import = |context: Context, import: Import| async move {
        let done: u32 = context.checkpoint()?.unwrap_or(0);
        let add = Add { a: i64::from(done), b: 0 };
        context.follow_up(NewJob::of(&add)?.key(format!("row-{done}")));
        if done == import.rows {
            return Ok(done);
        }
        context.save_checkpoint(&(done + 1)).await?;
        Err(Failure::transient("one row at a time"))
    };
    let worker = Worker::builder(client(), "w").on(import).build();
    let fake = Fake::new();
    let id = fake.enqueue(NewJob::of(&Import { rows: 2 }).unwrap());
    assert_eq!(fake.run(&worker).await, 3);
    assert_eq!(fake.job(id).unwrap().result.as_deref(), Some("2"));
    let others: Vec<_> = fake.jobs().into_iter().filter(|(other, _)| *other != id).collect();
    let keys: Vec<_> = others.iter().map(|(_, job)| job.request.idempotency_key.as_deref()).collect();
    assert_eq!(keys, [Some("row-2")], "what failed has led to nothing");
    assert_eq!(others[0].1.status, Status::Pending, "nobody here does it");
}

#[test]
fn a_key_makes_a_job_once_and_a_job_says_what_it_was_given() {
    let fake = Fake::new();
    let first = fake.enqueue(add().key("k"));
    assert_eq!(fake.enqueue(add().key("k")), first);
    assert_ne!(fake.enqueue(add().key("l")), first);
    assert_ne!(fake.enqueue(add()), fake.enqueue(add()));
    let job = add()
        .queue("q")
        .priority(PriorityLabel::High)
        .delay(Duration::from_millis(1500))
        .subject("order", "7");
    let sent = serde_json::to_value(job.request()).unwrap();
    assert_eq!(
        sent,
        serde_json::json!({
            "type": "add", "queue": "q", "payload": {"a": 1, "b": 2}, "priority": "high", "delay_seconds": 1.5,
            "subject": {"kind": "order", "id": "7", "version": null},
        })
    );
}

#[derive(Debug, thiserror::Error)]
#[error("the file is bad")]
struct Outer(#[source] std::num::ParseIntError);

#[test]
fn any_error_is_a_transient_failure_with_its_causes() {
    let failure = |text: &str| -> Failure { text.parse::<i64>().unwrap_err().into() };
    assert_eq!(failure("x"), Failure::transient("invalid digit found in string"));
    let outer = Failure::from(Outer("x".parse::<i64>().unwrap_err()));
    assert_eq!(outer.to_string(), "transient: the file is bad: invalid digit found in string");
}
