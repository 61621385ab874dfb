//! What the tests of behaviour have in common: calls in a line, and ways to wait without sleeping.
//!
//! Time passes by [`pass`]: a claim that waits for a job which comes due then. Losses are awaited by [`Sentinel`]: a job
//! whose lease is granted last and whose loss ends in review, where `GET ?wait_seconds=` hears of it.

pub(crate) mod dice;
pub(crate) mod disk;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::server::JSON;

/// Longer than anything here takes, shorter than the server's longest wait.
const WAIT: u32 = 50;

/// A job in somebody's hands.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    /// The job.
    pub(crate) id: i64,
    /// The token of its lease.
    pub(crate) lease: String,
    /// As the claim answered it.
    pub(crate) job: Value,
}

impl Held {
    /// What a claim answered.
    pub(crate) fn of(job: Value) -> Self {
        let lease = job["lease"].as_str().unwrap_or_else(|| panic!("no lease: {job}")).to_owned();
        Self { id: id_of(&job), lease, job }
    }

    /// A call about this job with its token.
    pub(crate) fn call(&self, client: &mut Client, call: &str, mut body: Value) -> Answer {
        body["lease"] = json!(self.lease);
        client.post(&format!("/jobs/{}/{call}", self.id), &body)
    }

    /// `complete`, which must count.
    pub(crate) fn complete(&self, client: &mut Client) -> Value {
        self.call(client, "complete", json!({})).expect(200)
    }

    /// `fail` with this class, which must count.
    pub(crate) fn fail(&self, client: &mut Client, class: &str) -> Value {
        self.call(client, "fail", json!({"class": class, "error": "it did not work"})).expect(200)
    }

    /// `heartbeat`.
    pub(crate) fn heartbeat(&self, client: &mut Client) -> Answer {
        self.call(client, "heartbeat", json!({}))
    }
}

/// The id of a job.
pub(crate) fn id_of(job: &Value) -> i64 {
    job["id"].as_i64().unwrap_or_else(|| panic!("no id: {job}"))
}

/// A new job, which must not exist yet.
pub(crate) fn enqueue(client: &mut Client, job: &Value) -> i64 {
    id_of(&client.post("/jobs", job).expect(201))
}

/// New jobs in one call, none of which may exist yet. Ids in order.
pub(crate) fn enqueue_all(client: &mut Client, jobs: &[Value]) -> Vec<i64> {
    let answer = client.post("/jobs/bulk", &json!({"jobs": jobs})).expect(200);
    let results = answer["results"].as_array().expect("results");
    let id = |result: &Value| {
        assert_eq!(result["status"], 201, "{result}");
        id_of(&result["job"])
    };
    results.iter().map(id).collect()
}

/// A claim, as it is written.
pub(crate) fn claim(client: &mut Client, wish: &Value) -> Option<Held> {
    let job = client.post("/jobs/claim", wish).expect(200);
    (!job.is_null()).then(|| Held::of(job))
}

/// A claim of up to `max_jobs`, as it is written.
pub(crate) fn claim_all(client: &mut Client, wish: &Value) -> Vec<Held> {
    let answer = client.post("/jobs/claim/bulk", wish).expect(200);
    answer["jobs"].as_array().expect("jobs").iter().cloned().map(Held::of).collect()
}

/// Takes the next job of a queue, waiting for it, with a lease that outlives the test.
pub(crate) fn take(client: &mut Client, worker: &str, queue: &str) -> Held {
    let wish = json!({"worker_id": worker, "queues": [queue], "wait_seconds": WAIT, "lease_seconds": 300});
    claim(client, &wish).unwrap_or_else(|| panic!("no job came to queue {queue}"))
}

/// Takes the next job of a queue, waiting for it, with the shortest lease there is.
pub(crate) fn take_briefly(client: &mut Client, worker: &str, queue: &str) -> Held {
    let wish = json!({"worker_id": worker, "queues": [queue], "wait_seconds": WAIT, "lease_seconds": 1});
    claim(client, &wish).unwrap_or_else(|| panic!("no job came to queue {queue}"))
}

/// Whether the queue has nothing to hand out at this moment.
pub(crate) fn nothing_in(client: &mut Client, queue: &str) -> bool {
    claim(client, &json!({"worker_id": "nobody", "queues": [queue]})).is_none()
}

/// The job as it stands.
pub(crate) fn job(client: &mut Client, id: i64) -> Value {
    client.get(&format!("/jobs/{id}")).expect(200)
}

/// The job once it is completed, failed or cancelled.
pub(crate) fn settled(client: &mut Client, id: i64) -> Value {
    let job = client.get(&format!("/jobs/{id}?wait_seconds={WAIT}")).expect(200);
    assert!(["completed", "failed", "cancelled"].contains(&text(&job["status"])), "still not settled: {job}");
    job
}

/// Its attempts, oldest first.
pub(crate) fn attempts(client: &mut Client, id: i64) -> Vec<Value> {
    let page = client.get(&format!("/jobs/{id}/attempts?limit=1000")).expect(200);
    page["attempts"].as_array().expect("attempts").clone()
}

/// Every job that a filter (`?queue=q`) finds, in list form, page by page.
pub(crate) fn list(client: &mut Client, filter: &str) -> Vec<Value> {
    list_after(client, filter, 0)
}

/// The same, above an id.
pub(crate) fn list_after(client: &mut Client, filter: &str, after: i64) -> Vec<Value> {
    let sign = if filter.is_empty() { '?' } else { '&' };
    let (mut jobs, mut after) = (Vec::new(), after.to_string());
    loop {
        let page = client.get(&format!("/jobs{filter}{sign}limit=1000&after={after}")).expect(200);
        jobs.extend(page["jobs"].as_array().expect("jobs").iter().cloned());
        match page["next"].as_str() {
            Some(next) => next.clone_into(&mut after),
            None => return jobs,
        }
    }
}

/// A time in milliseconds.
pub(crate) fn ms(time: &Value) -> Option<i64> {
    time.as_str().map(|time| tagwerk_api::parse_rfc3339(time).expect("a time"))
}

/// A text, or nothing.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Retries come back at once.
pub(crate) fn at_once() -> Value {
    json!({"base_seconds": 0, "jitter": "none"})
}

/// An action of an operator who has seen the job as it is.
pub(crate) fn operate(client: &mut Client, id: i64, action: &str) -> Answer {
    let version = job(client, id)["version"].clone();
    let body = match action {
        "discard" | "force-fail" => json!({"reason": "the test says so", "seen_version": version}),
        _ => json!({"seen_version": version}),
    };
    client.post(&format!("/jobs/{id}/{action}"), &body)
}

/// Lets this many seconds pass by the server's clock: waits for a job that comes due then.
pub(crate) fn pass(client: &mut Client, seconds: f64) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let queue = format!("time-{}", COUNT.fetch_add(1, Ordering::Relaxed));
    enqueue(client, &json!({"type": "time", "queue": queue, "delay_seconds": seconds}));
    take(client, "time", &queue).complete(client);
}

/// Lets this many seconds pass by the server's clock, and whatever was asked of it before be done, without a trace: waits for
/// a job that nobody makes.
pub(crate) fn linger(client: &mut Client, seconds: f64) {
    let wish = json!({"worker_id": "time", "queues": ["nothing"], "wait_seconds": seconds});
    assert!(claim(client, &wish).is_none());
}

/// A job that is lost after every lease that was granted before it and ends no later, so that its end tells theirs.
pub(crate) struct Sentinel(i64);

impl Sentinel {
    /// Granted now, to end `seconds` from now.
    pub(crate) fn until(client: &mut Client, seconds: u32) -> Self {
        let queue = format!("sentinel-{seconds}");
        let id = enqueue(
            client,
            &json!({"type": "sentinel", "queue": queue, "max_lease_losses": 1, "priority": 100}),
        );
        let wish = json!({"worker_id": "sentinel", "queues": [queue], "lease_seconds": seconds});
        assert_eq!(claim(client, &wish).map(|held| held.id), Some(id));
        Self(id)
    }

    /// Waits until its lease is lost.
    pub(crate) fn wait(self, client: &mut Client) {
        let job = settled(client, self.0);
        assert_eq!(job["failure"]["reason"], "worker_lost", "{job}");
    }
}

/// Does something with every item on several threads, each with a connection of its own. Results in the order of items.
pub(crate) fn in_parallel<I: Sync, R: Send>(
    (clients, items): (usize, &[I]),
    connect: impl Fn() -> Client + Sync,
    work: impl Fn(&mut Client, &I) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let mut client = connect();
                while let Some((index, item)) =
                    items.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed))
                {
                    let result = work(&mut client, item);
                    results.lock().expect("no panic beside").push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no panic beside");
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// The value of a variable that sets how hard a test tries.
pub(crate) fn setting<N: std::str::FromStr>(name: &str, default: N) -> N {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text}: that is no number")),
        Err(_) => default,
    }
}

/// Sends `DELETE`.
pub(crate) fn delete(client: &mut Client, path: &str) -> Answer {
    client.send(&format!("DELETE {path}"), &[], b"")
}

/// `POST` of JSON with one more header.
pub(crate) fn post_with(
    client: &mut Client,
    path: &str,
    (name, value): (&str, &str),
    body: &Value,
) -> Answer {
    client.send(&format!("POST {path}"), &[JSON, (name, value)], body.to_string().as_bytes())
}
