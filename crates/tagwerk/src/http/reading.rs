//! Reads of the store: snapshots on threads of their own, a bounded number at a time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tagwerk_api::problem::Code;
use tagwerk_core::{JobId, limits};
use tagwerk_engine::row::FullJob;
use tagwerk_engine::store::{Listed, Read, StoreError, StoreResult};
use tokio::sync::Semaphore;

use super::App;
use super::problem::Refused;
use super::reply::off_thread;

/// The same error is logged again after this time.
const SAY_AGAIN_AFTER: Duration = Duration::from_mins(1);

/// Turns at reading.
pub(super) struct Turns {
    free: Arc<Semaphore>,
    /// The last error that was logged, and when on the monotonic clock.
    said: Mutex<Option<(String, Duration)>>,
}

impl Default for Turns {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(limits::READS_AT_ONCE)), said: Mutex::default() }
    }
}

/// A time of the limits.
pub(super) const fn patience(ms: i64) -> Duration {
    Duration::from_millis(ms.unsigned_abs())
}

impl App {
    /// Asks a snapshot.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut dyn Read) -> StoreResult<T> + Send + 'static,
    ) -> Result<T, Refused> {
        let turn = Arc::clone(&self.turns.free).acquire_owned();
        let turn = tokio::time::timeout(patience(limits::ADMISSION_MS), turn).await;
        let Ok(Ok(turn)) = turn else {
            return Err(Refused::new(
                Code::Overloaded,
                "too many requests read at once; send it again in a moment",
            ));
        };
        let readers = self.engine.readers();
        let answer = off_thread(move || {
            let _turn = turn;
            question(&mut *readers.snapshot()?)
        })
        .await?;
        answer.map_err(|error| {
            self.say(&error);
            Refused::from(&error)
        })
    }

    /// Asks a snapshot in the background: waits for its turn as long as it takes, and nothing is logged.
    pub(super) async fn read_quietly<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut dyn Read) -> StoreResult<T> + Send + 'static,
    ) -> Result<T, Refused> {
        let turn = Arc::clone(&self.turns.free).acquire_owned().await;
        let readers = self.engine.readers();
        let answer = off_thread(move || {
            let _turn = turn;
            question(&mut *readers.snapshot()?)
        })
        .await?;
        answer.map_err(|error| Refused::from(&error))
    }

    /// A job with everything.
    pub(super) async fn job(&self, id: JobId) -> Result<FullJob, Refused> {
        let found = self.read(move |read| Ok(read.jobs(&[id])?.pop().flatten())).await?;
        readable(id, found)
    }

    /// Logs an error of the store when it is new or has been going on for a while.
    fn say(&self, error: &StoreError) {
        let (text, now) = (error.to_string(), self.clock.monotonic());
        // What was said last is replaced in one step; a poisoned lock holds nothing half done.
        let mut said = self.turns.said.lock().unwrap_or_else(PoisonError::into_inner);
        let repeated = said
            .as_ref()
            .is_some_and(|(before, at)| *before == text && now.saturating_sub(*at) < SAY_AGAIN_AFTER);
        if !repeated {
            tracing::error!(error = text, "the store could not be read");
            *said = Some((text, now));
        }
    }
}

/// The job, unless it is not there or cannot be read.
pub(super) fn readable(id: JobId, found: Option<Listed>) -> Result<FullJob, Refused> {
    match found {
        Some(Listed::Job(job)) => Ok(*job),
        Some(Listed::Damaged { why, .. }) => {
            Err(Refused::new(Code::JobDamaged, format!("the row of job {id} cannot be read: {why}")))
        }
        None => Err(Refused::no_job(id)),
    }
}
