//! A worker: claims jobs, gives them to handlers by type, keeps their leases, reports what came of them.
//!
//! Guarantees:
//!
//! - A handler runs to its end, also when its lease is lost or the worker is to stop: nobody but the handler knows where its work
//!   may be broken off. It is told ([`Context::stopped`]). Only dropping the future of [`Worker::run`] breaks it off.
//! - What is reported is what is known: an error is *transient* unless the handler says more, a panic is *unknown*, so that the
//!   next attempt looks first.
//! - A server that is away costs no work: handlers go on, reports are repeated for up to an hour. A claim whose answer was lost
//!   is repeated under its `request_id`, so it burns no attempt; one that nobody waits for any more is given back.
//!
//! Deliberately absent: threads, signals, a clock of its own but for `tokio`'s timers.

mod context;
mod effect;
mod failure;
mod report;
mod slot;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tagwerk_api::Json;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use context::Context;
pub(crate) use context::{Facts, Said};
pub use effect::Effect;
pub(crate) use effect::Journal;
pub use failure::Failure;
pub(crate) use failure::Kind;

use crate::nonce::Nonce;
use crate::{Client, Error, Task};

/// What a handler comes to: a result, if it has one.
type Outcome = Result<Option<Json>, Failure>;
type Handler = Arc<dyn Fn(Context, Json) -> Pin<Box<dyn Future<Output = Outcome> + Send>> + Send + Sync>;
type Listener = Arc<dyn Fn(&Event) + Send + Sync>;

/// Something that whoever runs a worker may want to log or count.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The server is away or refuses for now; the worker goes on trying.
    Trouble(Error),
    /// A job is completed.
    Completed(i64),
    /// A job failed; what was reported.
    Failed(i64, Failure),
    /// A job was given back.
    Released(i64),
    /// The lease was lost or the job cancelled, so what the handler came to does not count.
    Lost(i64),
    /// The server did not take the report.
    NotReported(i64, Error),
}

/// How many attempts came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Completed.
    pub completed: u64,
    /// Failed, in whatever class.
    pub failed: u64,
    /// Given back.
    pub released: u64,
    /// Did not count: lost, or not taken by the server.
    pub lost: u64,
}

/// See the module. Made by [`Worker::builder`]; runs once or several times.
#[derive(Clone)]
pub struct Worker {
    settings: Arc<Settings>,
}

struct Settings {
    client: Client,
    name: String,
    queues: Option<Vec<String>>,
    concurrency: u32,
    lease: Duration,
    poll: Duration,
    handles_verify: bool,
    handlers: Handlers,
    listener: Listener,
    requests: Nonce,
}

/// Handlers by type.
#[derive(Clone, Default)]
pub(crate) struct Handlers(BTreeMap<String, Handler>);

impl Handlers {
    fn types(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// Runs the handler of this type, in a task of its own, so that a panic is its own. `None`: there is none.
    pub(crate) fn start(&self, job_type: &str, context: Context, payload: Json) -> Option<JoinSet<Outcome>> {
        let handler = self.0.get(job_type)?;
        let mut task = JoinSet::new();
        task.spawn(handler(context, payload));
        Some(task)
    }
}

/// What the task of a handler came to.
pub(crate) async fn outcome(task: &mut JoinSet<Outcome>) -> Outcome {
    match task.join_next().await {
        Some(Ok(outcome)) => outcome,
        Some(Err(error)) if error.is_panic() => Err(Failure::unknown("the handler panicked")),
        Some(Err(_)) | None => Err(Failure::unknown("the handler was broken off")),
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Settings { name, queues, concurrency, handlers, .. } = &*self.settings;
        let mut shown = f.debug_struct("Worker");
        shown.field("name", name).field("queues", queues).field("concurrency", concurrency);
        shown.field("types", &handlers.types()).finish_non_exhaustive()
    }
}

/// Settings of a [`Worker`].
#[must_use]
pub struct WorkerBuilder(Settings);

impl Worker {
    /// Settings for a worker. `name` is its `worker_id`: up to 255 bytes without `/`; two that run at the same time need two.
    pub fn builder(client: Client, name: impl Into<String>) -> WorkerBuilder {
        WorkerBuilder(Settings {
            client,
            name: name.into(),
            queues: None,
            concurrency: 1,
            lease: Duration::from_mins(1),
            poll: Duration::from_secs(20),
            handles_verify: false,
            handlers: Handlers::default(),
            listener: Arc::new(|_| {}),
            requests: Nonce::new(),
        })
    }

    /// Works until `stop` is ready, then claims no more and returns when what runs has ended and is reported.
    ///
    /// # Errors
    /// The server refuses claims for good: a queue's or the worker's name is wrong, a token is missing. What runs is ended first.
    pub async fn run(&self, stop: impl Future<Output = ()> + Send) -> Result<Tally, Error> {
        let (stopper, told) = watch::channel(false);
        let mut slots = JoinSet::new();
        for _ in 0..self.settings.concurrency {
            slots.spawn(slot::work(Arc::clone(&self.settings), told.clone()));
        }
        let mut stop = std::pin::pin!(stop);
        let mut tally = Tally::default();
        let mut outcome = Ok(());
        loop {
            let ended = tokio::select! {
                () = &mut stop, if !*told.borrow() => {
                    stopper.send_replace(true);
                    continue;
                }
                ended = slots.join_next() => ended,
            };
            let Some(ended) = ended else { break };
            match ended {
                Ok(Ok(part)) => tally.add(part),
                Ok(Err(error)) => {
                    // One slot's trouble is all slots' trouble: the others finish what they have begun.
                    stopper.send_replace(true);
                    outcome = outcome.and(Err(error));
                }
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            }
        }
        outcome.map(|()| tally)
    }

    pub(crate) fn knows_doubt(&self) -> bool {
        self.settings.handles_verify
    }

    pub(crate) fn handlers(&self) -> &Handlers {
        &self.settings.handlers
    }
}

impl Tally {
    const fn add(&mut self, other: Self) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.released += other.released;
        self.lost += other.lost;
    }
}

impl WorkerBuilder {
    /// Only jobs of this queue; may be said several times. Default: all queues.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.0.queues.get_or_insert_default().push(queue.into());
        self
    }

    /// So many jobs at the same time. Default: 1.
    pub fn concurrency(mut self, jobs: u32) -> Self {
        self.0.concurrency = jobs.max(1);
        self
    }

    /// Length of a lease: how soon somebody else gets the job when this process dies. Heartbeats keep it. Default: 60 s.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.0.lease = lease;
        self
    }

    /// How long a claim waits for a job. Default: 20 s, short enough for proxies that cut idle connections; at most 60.
    pub fn poll(mut self, poll: Duration) -> Self {
        self.0.poll = poll;
        self
    }

    /// All handlers deal with what an earlier attempt may have done: they look up each effect that is in doubt
    /// ([`Context::effect`] with a look-up does), or are harmless to repeat. Without this, a job whose attempt is lost while an
    /// effect is open goes to review, unless its type says `handles_verify`.
    pub fn handles_verify(mut self) -> Self {
        self.0.handles_verify = true;
        self
    }

    /// Who does the jobs of a type. What it returns is the job's result (at most 64 KiB of JSON; `()` is none).
    ///
    /// A payload that is not of this type fails for good: it goes to review.
    pub fn on<T, R, F, Fut>(mut self, handler: F) -> Self
    where
        T: Task,
        R: Serialize,
        F: Fn(Context, T) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let handler: Handler = Arc::new(move |context, payload| {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let task = serde_json::from_str(payload.as_str()).map_err(|error| unreadable(&error))?;
                let result = handler(context, task).await?;
                let result = serde_json::to_string(&result).and_then(Json::from_text);
                // The work is done; that its result cannot be written must not hide that.
                Ok(result.ok().filter(|result| result.as_str() != "null"))
            })
        });
        self.0.handlers.0.insert(T::TYPE.to_owned(), handler);
        self
    }

    /// Who is told what happens. Called between two steps of the worker: must not block.
    pub fn listen(mut self, listener: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.0.listener = Arc::new(listener);
        self
    }

    /// The worker. It claims only types that it has handlers for.
    #[must_use]
    pub fn build(self) -> Worker {
        Worker { settings: Arc::new(self.0) }
    }
}

/// Says where the payload is wrong, not what it holds.
fn unreadable(error: &serde_json::Error) -> Failure {
    let (line, column) = (error.line(), error.column());
    Failure::permanent(format!(
        "the payload is not of the type that the handler expects (line {line}, column {column})"
    ))
}
