//! Calls of producers.

use tagwerk_api::answer::{BulkEnqueueAnswer, Enqueued, Job};
use tagwerk_api::query::JobQuery;
use tagwerk_api::request::{BulkEnqueueRequest, EnqueueRequest};
use tagwerk_api::{Json, Seconds};

use crate::call::{Call, Repeat};
use crate::{Answer, Client, Error};

/// What of a job tells whether sending it twice makes it twice.
#[derive(serde::Deserialize)]
struct Key {
    idempotency_key: Option<String>,
}

/// A bulk of jobs that are JSON already.
#[derive(serde::Serialize)]
struct RawBulk<'a> {
    jobs: &'a [Json],
}

impl Client {
    /// `POST /jobs`: makes a job, or finds the one that its idempotency key made before. Repeated only with a key.
    pub async fn enqueue(&self, job: &EnqueueRequest) -> Result<Answer<Enqueued>, Error> {
        let repeat = Repeat::if_recognised(job.idempotency_key.as_ref());
        self.send(Call::post("/jobs".to_owned(), job, repeat)?).await
    }

    /// `POST /jobs/bulk`: at most 10,000 jobs, each judged by itself unless `atomic`. Repeated only if all have a key.
    pub async fn enqueue_bulk(&self, bulk: &BulkEnqueueRequest) -> Result<Answer<BulkEnqueueAnswer>, Error> {
        let repeat = bulk
            .jobs
            .iter()
            .map(|job| Repeat::if_recognised(job.idempotency_key.as_ref()))
            .fold(Repeat::Safe, Repeat::and);
        self.send(Call::post("/jobs/bulk".to_owned(), bulk, repeat)?).await
    }

    /// `POST /jobs/bulk` with jobs that are JSON already and go out byte for byte. Repeated only if all have a key.
    pub async fn enqueue_bulk_json(&self, jobs: &[Json]) -> Result<Answer<BulkEnqueueAnswer>, Error> {
        let key =
            |job: &Json| serde_json::from_str::<Key>(job.as_str()).ok().and_then(|key| key.idempotency_key);
        let repeat =
            jobs.iter().map(|job| Repeat::if_recognised(key(job).as_ref())).fold(Repeat::Safe, Repeat::and);
        self.send(Call::post("/jobs/bulk".to_owned(), &RawBulk { jobs }, repeat)?).await
    }

    /// `GET /jobs/{id}`: the whole job.
    pub async fn job(&self, id: i64) -> Result<Answer<Job>, Error> {
        self.send(Call::get(format!("/jobs/{id}"))).await
    }

    /// `GET /jobs/{id}?wait_seconds=…`: the job when it is completed, failed or cancelled, or at the end of the wait (at
    /// most 60 s), whichever comes first.
    pub async fn wait_for_job(&self, id: i64, wait: Seconds) -> Result<Answer<Job>, Error> {
        let query = JobQuery { wait_ms: Some(wait.ms()) }.to_query();
        self.send(Call::get(format!("/jobs/{id}{query}")).waiting(Some(wait))).await
    }
}
