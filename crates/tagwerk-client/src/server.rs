//! Calls about the server and what it holds.

use tagwerk_api::Json;
use tagwerk_api::answer::{Livez, QueueList, Readyz, Stats, WorkerList};
use tagwerk_api::query::NamesQuery;

use crate::call::Call;
use crate::{Answer, Client, Error};

impl Client {
    /// `GET /queues`: a page of queues with their counts.
    pub async fn queues(&self, query: &NamesQuery) -> Result<Answer<QueueList>, Error> {
        self.send(Call::get(format!("/queues{}", query.to_query()))).await
    }

    /// `GET /workers`: a page of workers that were seen lately or hold a job.
    pub async fn workers(&self, query: &NamesQuery) -> Result<Answer<WorkerList>, Error> {
        self.send(Call::get(format!("/workers{}", query.to_query()))).await
    }

    /// `GET /stats`
    pub async fn stats(&self) -> Result<Answer<Stats>, Error> {
        self.send(Call::get("/stats".to_owned())).await
    }

    /// `GET /metrics`: the text that Prometheus reads.
    pub async fn metrics(&self) -> Result<Answer<String>, Error> {
        self.send(Call::text("/metrics")).await
    }

    /// `GET /livez`: the process answers.
    pub async fn livez(&self) -> Result<Answer<Livez>, Error> {
        self.send(Call::get("/livez".to_owned())).await
    }

    /// `GET /readyz?verbose`: whether work can be done, and what was looked at. Status 503 if not.
    pub async fn readyz(&self) -> Result<Answer<Readyz>, Error> {
        self.send(Call::get("/readyz?verbose".to_owned())).await
    }

    /// `GET /openapi.json`: the description of the interface.
    pub async fn openapi(&self) -> Result<Answer<Json>, Error> {
        self.send(Call::get("/openapi.json".to_owned())).await
    }
}
