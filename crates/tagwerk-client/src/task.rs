//! Jobs by type: what a payload is in Rust, and the job that carries it.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tagwerk_api::answer::Enqueued;
use tagwerk_api::request::{EnqueueRequest, Priority, Subject};
use tagwerk_api::{IdempotencyScope, Json, PriorityLabel, Seconds};

use crate::nonce::Nonce;
use crate::{Client, Error};

/// A payload with the type of the jobs that carry it.
///
/// ```
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct SendInvoice {
///     number: u64,
/// }
///
/// impl tagwerk_client::Task for SendInvoice {
///     const TYPE: &'static str = "send-invoice";
/// }
/// ```
pub trait Task: Serialize + DeserializeOwned + Send + 'static {
    /// The `type` of its jobs: 1 to 255 bytes of printable text.
    const TYPE: &'static str;
}

/// A job before it is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob(EnqueueRequest);

impl NewJob {
    /// A job for this payload; everything else is what its type and the server say.
    ///
    /// # Errors
    /// The payload cannot be written as JSON.
    pub fn of<T: Task>(task: &T) -> Result<Self, serde_json::Error> {
        let payload = Json::from_text(serde_json::to_string(task)?)?;
        let job_type = T::TYPE.to_owned();
        Ok(Self(EnqueueRequest { job_type, payload: Some(payload), ..EnqueueRequest::default() }))
    }

    /// The stable key of the business operation: sent again, it finds the job that it made.
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        self.with(|job| job.idempotency_key = Some(key.into()))
    }

    /// The capacity that it draws on. Default: `default`, or what the type says.
    #[must_use]
    pub fn queue(self, queue: impl Into<String>) -> Self {
        self.with(|job| job.queue = Some(queue.into()))
    }

    /// How urgent it is. Default: medium.
    #[must_use]
    pub fn priority(self, priority: PriorityLabel) -> Self {
        self.with(|job| job.priority = Some(Priority::Label(priority)))
    }

    /// Not handed out before this time has passed.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        self.with(|job| job.delay_seconds = Some(seconds(delay)))
    }

    /// The business object that people see.
    #[must_use]
    pub fn subject(self, kind: impl Into<String>, id: impl Into<String>) -> Self {
        let subject = Subject { kind: kind.into(), id: id.into(), version: None };
        self.with(|job| job.subject = Some(subject))
    }

    /// Everything else that a job may carry.
    ///
    /// ```
    /// # use tagwerk_client::{NewJob, Task};
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct SyncOrder { id: u64 }
    /// # impl Task for SyncOrder { const TYPE: &'static str = "sync-order"; }
    /// # fn main() -> Result<(), serde_json::Error> {
    /// let job = NewJob::of(&SyncOrder { id: 7 })?.with(|job| {
    ///     job.ordering_key = Some("order-7".to_owned());
    ///     job.max_retries = Some(0);
    /// });
    /// # drop(job);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut EnqueueRequest)) -> Self {
        change(&mut self.0);
        self
    }

    /// What is sent.
    #[must_use]
    pub const fn request(&self) -> &EnqueueRequest {
        &self.0
    }
}

impl From<NewJob> for EnqueueRequest {
    fn from(NewJob(request): NewJob) -> Self {
        request
    }
}

/// Enqueues jobs so that a lost answer makes none twice. Cheap to clone.
///
/// A job without a key of its own gets a random one for an hour, so every enqueue may be repeated and is
/// ([`Retries`](crate::Retries)). That key knows nothing of the business: a *program* that is started again and enqueues again needs
/// [`NewJob::key`].
#[derive(Clone, Debug)]
pub struct Producer {
    client: Client,
    keys: Nonce,
}

/// How long a key holds that nobody has chosen: far longer than repetitions go on.
const KEY_HOLDS: Duration = Duration::from_hours(1);

impl Producer {
    /// A producer that calls through this client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client, keys: Nonce::new() }
    }

    /// Makes a job, or finds the one that its key made before.
    ///
    /// # Errors
    /// The server refused it or could not be reached, see [`Error`].
    pub async fn enqueue(&self, job: NewJob) -> Result<Enqueued, Error> {
        let mut request = EnqueueRequest::from(job);
        if request.idempotency_key.is_none() {
            request.idempotency_key = Some(format!("once-{}", self.keys.next()));
            request.idempotency_scope = Some(IdempotencyScope::Ttl);
            request.idempotency_ttl_seconds = Some(seconds(KEY_HOLDS));
        }
        Ok(self.client.enqueue(&request).await?.value)
    }
}

/// A length of time as the interface has it, cut to what it can say.
pub(crate) fn seconds(length: Duration) -> Seconds {
    Seconds::from_ms(i64::try_from(length.as_millis()).unwrap_or(i64::MAX))
}
