//! A queue in memory, for tests of handlers: no server, no waiting, no I/O.
//!
//! It keeps to the rules that handlers notice: keys make a job once, retries are counted, an unknown outcome makes the next attempt
//! look first, the last checkpoint is there for it, an effect that was left open is in doubt, follow-ups come only with a completion. Time passes at once: delays and back-off are
//! over when the next job is looked for.
//!
//! Deliberately absent: leases that are lost, limits, ordering keys, priorities, scopes and lifetimes of keys. For those run a server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tagwerk_api::request::EnqueueRequest;
use tagwerk_api::{ErrorClass, Json, Status};
use tokio::sync::watch;

use crate::work::{Facts, Journal, Kind, outcome};
use crate::{Context, Failure, NewJob, Worker};

/// Retries of a job that says nothing of them, as the server has it.
const MAX_RETRIES: u32 = 3;
/// A handler that gives a job back this often would do so for ever.
const RELEASES: u32 = 100;

/// See the module. Cheap to clone; clones are the same queue.
///
/// ```
/// use tagwerk_client::{Client, Context, Failure, Fake, NewJob, Task, Worker};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Greet {
///     name: String,
/// }
///
/// impl Task for Greet {
///     const TYPE: &'static str = "greet";
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let worker = Worker::builder(Client::new("http://127.0.0.1:7070")?, "test")
///     .on(|_: Context, greet: Greet| async move { Ok::<_, Failure>(format!("Hello {}", greet.name)) })
///     .build();
/// let queue = Fake::new();
/// let id = queue.enqueue(NewJob::of(&Greet { name: "Ada".to_owned() })?);
/// queue.run(&worker).await;
/// assert_eq!(queue.job(id).and_then(|job| job.result), Some("\"Hello Ada\"".to_owned()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Fake(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    jobs: BTreeMap<i64, FakeJob>,
    keys: BTreeMap<String, i64>,
}

/// A job of a [`Fake`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FakeJob {
    /// As it was enqueued.
    pub request: EnqueueRequest,
    /// Where it stands: pending, completed or failed.
    pub status: Status,
    /// Attempts so far.
    pub attempt: u32,
    /// Retries used.
    pub retry_count: u32,
    /// Whether the next attempt is told to look first.
    pub verify: bool,
    /// What the handler returned, as JSON text.
    pub result: Option<String>,
    /// The last error.
    pub error: Option<String>,
    /// The last checkpoint, as JSON text.
    pub checkpoint: Option<String>,
    /// How often it was given back.
    pub release_count: u32,
    effects: Journal,
}

impl Fake {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is whole, so a lock that somebody panicked with holds nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a job, or finds the one that its key made before. Returns the job's id.
    #[expect(clippy::must_use_candidate, reason = "it changes the queue, whoever needs the id")]
    pub fn enqueue(&self, job: NewJob) -> i64 {
        self.state().enqueue(job.into())
    }

    /// A job.
    #[must_use]
    pub fn job(&self, id: i64) -> Option<FakeJob> {
        self.state().jobs.get(&id).cloned()
    }

    /// All jobs, by id: also those that others led to.
    #[must_use]
    pub fn jobs(&self) -> Vec<(i64, FakeJob)> {
        self.state().jobs.iter().map(|(id, job)| (*id, job.clone())).collect()
    }

    /// Gives jobs to the worker's handlers, lowest id first, until none is left that it has one for. How many attempts that were.
    pub async fn run(&self, worker: &Worker) -> u32 {
        let mut attempts = 0;
        let mut from = 0;
        loop {
            let next = self.state().next(from);
            let Some((id, job)) = next else { return attempts };
            from = id + 1;
            if self.attempt(worker, (id, job)).await {
                attempts += 1;
                from = 0;
            }
        }
    }

    /// One attempt. `false`: the worker has no handler for it.
    async fn attempt(&self, worker: &Worker, (id, job): (i64, FakeJob)) -> bool {
        let facts = Facts {
            id,
            attempt: job.attempt + 1,
            is_last_attempt: job.retry_count >= job.max_retries(),
            verify: job.verify,
            correlation_id: job.request.correlation_id.clone(),
            subject: job.request.subject.clone(),
        };
        let checkpoint = job.checkpoint.clone().and_then(|text| Json::from_text(text).ok());
        // Nobody stops it.
        let (_stopper, told) = watch::channel(false);
        let context = Context::new(facts, (checkpoint, job.effects.clone()), (told, None));
        let payload = job.request.payload.clone().unwrap_or_else(|| Json::from(&serde_json::json!({})));
        let started = worker.handlers().start(&job.request.job_type, context.clone(), payload);
        let Some(mut task) = started else { return false };
        let outcome = outcome(&mut task).await;
        let said = context.said().clone();
        let outcome = outcome.map_err(|failure| failure.0);
        self.state().settle((id, worker.knows_doubt()), (outcome, said));
        true
    }
}

impl FakeJob {
    /// Effects that were begun and of which no handler has said what became of them.
    #[must_use]
    pub fn open_effects(&self) -> Vec<&str> {
        self.effects.open()
    }

    fn max_retries(&self) -> u32 {
        self.request.max_retries.unwrap_or(MAX_RETRIES)
    }
}

impl State {
    fn enqueue(&mut self, request: EnqueueRequest) -> i64 {
        let id = self.jobs.last_key_value().map_or(1, |(id, _)| id + 1);
        if let Some(key) = &request.idempotency_key {
            let owner = *self.keys.entry(key.clone()).or_insert(id);
            if owner != id {
                return owner;
            }
        }
        let job = FakeJob {
            request,
            status: Status::Pending,
            attempt: 0,
            retry_count: 0,
            verify: false,
            result: None,
            error: None,
            checkpoint: None,
            release_count: 0,
            effects: Journal::default(),
        };
        self.jobs.insert(id, job);
        id
    }

    fn next(&self, from: i64) -> Option<(i64, FakeJob)> {
        let mut waiting = self.jobs.range(from..).filter(|(_, job)| job.status == Status::Pending);
        waiting.next().map(|(id, job)| (*id, job.clone()))
    }

    fn settle(
        &mut self,
        (id, knows_doubt): (i64, bool),
        (outcome, said): (Result<Option<Json>, Kind>, crate::work::Said),
    ) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.attempt += 1;
        job.checkpoint = said.checkpoint.map(Json::into_text);
        job.effects = said.effects;
        let open = job.effects.open().join(", ");
        let outcome = match outcome {
            Ok(_) | Err(Kind::Released { .. }) if !open.is_empty() => {
                Err(Failure::unknown(format!("the handler ended while an effect is open: {open}")).0)
            }
            outcome => outcome,
        };
        match outcome {
            Ok(result) => {
                job.status = Status::Completed;
                job.verify = false;
                job.result = result.map(Json::into_text);
                for follow_up in said.follow_ups {
                    self.enqueue(follow_up);
                }
            }
            Err(Kind::Failed { class, error, .. }) => {
                job.error = Some(error);
                job.verify = class == ErrorClass::Unknown;
                let is_blind = class == ErrorClass::Unknown && !open.is_empty() && !knows_doubt;
                if class == ErrorClass::Permanent || is_blind || job.retry_count >= job.max_retries() {
                    job.status = Status::Failed;
                } else {
                    job.retry_count += 1;
                }
            }
            Err(Kind::Released { reason, .. }) => {
                job.attempt -= 1;
                job.verify = false;
                job.release_count += 1;
                if job.release_count >= RELEASES {
                    job.error = Some(format!("given back {RELEASES} times: {reason}"));
                    job.status = Status::Failed;
                }
            }
        }
    }
}
