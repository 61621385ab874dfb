//! What a handler knows of its job, and what it can do while it runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tagwerk_api::answer::ClaimedJob;
use tagwerk_api::request::{CheckpointRequest, EnqueueRequest, Progress, Subject};
use tagwerk_api::{Json, LeaseToken};
use tokio::sync::watch;

use super::effect::Journal;
use crate::{Client, Error, NewJob};

/// An attempt at a job. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Context {
    facts: Arc<Facts>,
    said: Arc<Mutex<Said>>,
    stop: watch::Receiver<bool>,
    server: Option<(Client, LeaseToken)>,
}

/// What was known when the job was handed out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) id: i64,
    pub(crate) attempt: u32,
    pub(crate) is_last_attempt: bool,
    pub(crate) verify: bool,
    pub(crate) correlation_id: Option<String>,
    pub(crate) subject: Option<Subject>,
}

impl Facts {
    pub(crate) fn of(job: &ClaimedJob) -> Self {
        let summary = &job.summary;
        Self {
            id: summary.id,
            attempt: summary.attempt,
            is_last_attempt: summary.is_last_attempt,
            verify: summary.verify,
            correlation_id: summary.correlation_id.clone(),
            subject: summary.subject.clone(),
        }
    }
}

/// What the handler has said so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    pub(crate) progress: Option<Progress>,
    pub(crate) checkpoint: Option<Json>,
    pub(crate) follow_ups: Vec<EnqueueRequest>,
    pub(crate) effects: Journal,
}

impl Context {
    /// `stop` says when to stop. Without a server what is said is only kept.
    pub(crate) fn new(
        facts: Facts,
        (checkpoint, effects): (Option<Json>, Journal),
        (stop, server): (watch::Receiver<bool>, Option<(Client, LeaseToken)>),
    ) -> Self {
        let said = Said { checkpoint, effects, ..Said::default() };
        Self { facts: Arc::new(facts), said: Arc::new(Mutex::new(said)), stop, server }
    }

    pub(crate) fn said(&self) -> MutexGuard<'_, Said> {
        // Each change is whole, so a lock that somebody panicked with holds nothing half done.
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where its calls go, and the token that they need; `None` in a test.
    pub(super) const fn server(&self) -> Option<&(Client, LeaseToken)> {
        self.server.as_ref()
    }

    /// The job's id.
    #[must_use]
    pub fn id(&self) -> i64 {
        self.facts.id
    }

    /// The number of this attempt, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.facts.attempt
    }

    /// Whether any failure of this attempt ends in review.
    #[must_use]
    pub fn is_last_attempt(&self) -> bool {
        self.facts.is_last_attempt
    }

    /// Whether an earlier attempt ended and nobody knows what it did: look whether the work is done before you do it.
    #[must_use]
    pub fn verify(&self) -> bool {
        self.facts.verify
    }

    /// What connects this job with others.
    #[must_use]
    pub fn correlation_id(&self) -> Option<&str> {
        self.facts.correlation_id.as_deref()
    }

    /// The business object.
    #[must_use]
    pub fn subject(&self) -> Option<&Subject> {
        self.facts.subject.as_ref()
    }

    /// What this or an earlier attempt has saved last.
    ///
    /// # Errors
    /// It is not of this type.
    pub fn checkpoint<T: DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        let saved = self.said().checkpoint.clone();
        saved.map(|saved| serde_json::from_str(saved.as_str())).transpose()
    }

    /// Saves how far the work has come (at most 64 KiB of JSON). It is durable when this returns; the next attempt gets it.
    ///
    /// # Errors
    /// The server refused it, for example because the lease is lost, or could not be reached.
    pub async fn save_checkpoint<T: Serialize + Sync>(&self, value: &T) -> Result<(), Error> {
        let checkpoint = Json::from_text(serde_json::to_string(value)?)?;
        if let Some((client, lease)) = &self.server {
            let request = CheckpointRequest { lease: lease.clone(), checkpoint: checkpoint.clone() };
            client.checkpoint(self.id(), &request).await?;
        }
        self.said().checkpoint = Some(checkpoint);
        Ok(())
    }

    /// Tells the people who watch how far it is; goes out with the next heartbeat.
    pub fn progress(&self, progress: Progress) {
        self.said().progress = Some(progress);
    }

    /// A job that this one leads to: created in the transaction that completes this one, so not at all if it does not complete.
    pub fn follow_up(&self, job: NewJob) {
        self.said().follow_ups.push(job.into());
    }

    /// Whether to stop: the lease is lost, or the job was cancelled. What was not begun is to be left alone.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// Waits until it is to stop.
    pub async fn stopped(&self) {
        let mut stop = self.stop.clone();
        if stop.wait_for(|is_stopped| *is_stopped).await.is_err() {
            // Nobody can say so any more.
            std::future::pending::<()>().await;
        }
    }
}
