//! Calls of operators.

use reqwest::Method;
use serde::Serialize;
use tagwerk_api::answer::{
    AlertInfo, AlertsPage, AttemptsPage, AuditPage, Deleted, Explain, Job, JobsPage, LimitDeleted, LimitInfo,
    LimitList, QueueInfo, ReviewPage, TypeInfo, TypeList,
};
use tagwerk_api::query::{
    AlertsQuery, AttemptsQuery, AuditQuery, DeleteQuery, JobsQuery, NamesQuery, ReviewQuery, encode,
};
use tagwerk_api::request::{
    AckRequest, CancelRequest, DiscardRequest, DrainRequest, ForceFailRequest, LimitSettings,
    OpenLimitRequest, PauseRequest, QueueSettings, ResumeRequest, RetryRequest, TypeSettings, UnblockRequest,
};

use crate::call::{Call, Repeat};
use crate::{Answer, Client, Error};

impl Client {
    /// `GET /jobs`: a page of jobs, without payloads.
    pub async fn jobs(&self, query: &JobsQuery) -> Result<Answer<JobsPage>, Error> {
        self.send(Call::get(format!("/jobs{}", query.to_query()))).await
    }

    /// `GET /jobs/{id}/attempts`: the history of a job.
    pub async fn attempts(&self, id: i64, query: &AttemptsQuery) -> Result<Answer<AttemptsPage>, Error> {
        self.send(Call::get(format!("/jobs/{id}/attempts{}", query.to_query()))).await
    }

    /// `GET /jobs/{id}/explain`: why a job stands where it stands.
    pub async fn explain(&self, id: i64) -> Result<Answer<Explain>, Error> {
        self.send(Call::get(format!("/jobs/{id}/explain"))).await
    }

    /// `GET /audit`: a page of what operators did.
    pub async fn audit(&self, query: &AuditQuery) -> Result<Answer<AuditPage>, Error> {
        self.send(Call::get(format!("/audit{}", query.to_query()))).await
    }

    /// `GET /alerts`: a page of alerts.
    pub async fn alerts(&self, query: &AlertsQuery) -> Result<Answer<AlertsPage>, Error> {
        self.send(Call::get(format!("/alerts{}", query.to_query()))).await
    }

    /// `POST /alerts/{id}/ack`: you look after it. Twice is the same as once.
    pub async fn acknowledge(&self, id: i64, ack: &AckRequest) -> Result<Answer<AlertInfo>, Error> {
        self.send(Call::post(format!("/alerts/{id}/ack"), ack, Repeat::Safe)?).await
    }

    /// `GET /review`: a page of failed jobs.
    pub async fn review(&self, query: &ReviewQuery) -> Result<Answer<ReviewPage>, Error> {
        self.send(Call::get(format!("/review{}", query.to_query()))).await
    }

    /// `POST /jobs/{id}/cancel`
    pub async fn cancel(&self, id: i64, cancel: &CancelRequest) -> Result<Answer<Job>, Error> {
        self.operate(id, "cancel", cancel).await
    }

    /// `POST /jobs/{id}/retry`: a job in review runs again.
    pub async fn retry(&self, id: i64, retry: &RetryRequest) -> Result<Answer<Job>, Error> {
        self.operate(id, "retry", retry).await
    }

    /// `POST /jobs/{id}/discard`: a job in review is given up.
    pub async fn discard(&self, id: i64, discard: &DiscardRequest) -> Result<Answer<Job>, Error> {
        self.operate(id, "discard", discard).await
    }

    /// `POST /jobs/{id}/force-fail`: the running attempt is ended and the job goes to review.
    pub async fn force_fail(&self, id: i64, force: &ForceFailRequest) -> Result<Answer<Job>, Error> {
        self.operate(id, "force-fail", force).await
    }

    /// `POST /jobs/{id}/unblock`: the jobs behind a job in review go on without it.
    pub async fn unblock(&self, id: i64, unblock: &UnblockRequest) -> Result<Answer<Job>, Error> {
        self.operate(id, "unblock", unblock).await
    }

    /// `DELETE /jobs/{id}`: the job, its history and its payload are erased. Answers with the job as it was last.
    pub async fn delete_job(&self, id: i64, query: &DeleteQuery) -> Result<Answer<Deleted>, Error> {
        let path = format!("/jobs/{id}{}", query.to_query());
        self.send(Call::new(Method::DELETE, path, Repeat::Once)).await
    }

    /// `GET /types`: a page of types with settings or jobs.
    pub async fn types(&self, query: &NamesQuery) -> Result<Answer<TypeList>, Error> {
        self.send(Call::get(format!("/types{}", query.to_query()))).await
    }

    /// `GET /types/{type}`
    pub async fn job_type(&self, name: &str) -> Result<Answer<TypeInfo>, Error> {
        self.send(Call::get(type_path(name))).await
    }

    /// `PUT /types/{type}`: these settings, and no others, are the type's. Twice is the same as once.
    pub async fn put_type(&self, name: &str, settings: &TypeSettings) -> Result<Answer<TypeInfo>, Error> {
        let call = Call::post(type_path(name), settings, Repeat::Safe)?;
        self.send(Call { method: Method::PUT, ..call }).await
    }

    /// `DELETE /types/{type}`: the server's defaults hold again.
    pub async fn delete_type(&self, name: &str) -> Result<Answer<TypeInfo>, Error> {
        self.send(Call::new(Method::DELETE, type_path(name), Repeat::Once)).await
    }

    /// `GET /queues/{queue}`
    pub async fn queue(&self, name: &str) -> Result<Answer<QueueInfo>, Error> {
        self.send(Call::get(queue_path(name, ""))).await
    }

    /// `PUT /queues/{queue}`: these bounds, and no others, are the queue's. Twice is the same as once.
    pub async fn put_queue(&self, name: &str, settings: &QueueSettings) -> Result<Answer<QueueInfo>, Error> {
        let call = Call::post(queue_path(name, ""), settings, Repeat::Safe)?;
        self.send(Call { method: Method::PUT, ..call }).await
    }

    /// `POST /queues/{queue}/pause`: none of its jobs is handed out. Twice is the same as once.
    pub async fn pause(&self, name: &str, pause: &PauseRequest) -> Result<Answer<QueueInfo>, Error> {
        self.send(Call::post(queue_path(name, "/pause"), pause, Repeat::Safe)?).await
    }

    /// `POST /queues/{queue}/resume`: one reason is lifted. Sent again it could lift another.
    pub async fn resume(&self, name: &str, resume: &ResumeRequest) -> Result<Answer<QueueInfo>, Error> {
        self.send(Call::post(queue_path(name, "/resume"), resume, Repeat::Once)?).await
    }

    /// `POST /queues/{queue}/drain`: producers are refused. Twice is the same as once.
    pub async fn drain(&self, name: &str, drain: &DrainRequest) -> Result<Answer<QueueInfo>, Error> {
        self.send(Call::post(queue_path(name, "/drain"), drain, Repeat::Safe)?).await
    }

    /// `POST /queues/{queue}/open`: producers are served again. Twice is the same as once.
    pub async fn open(&self, name: &str) -> Result<Answer<QueueInfo>, Error> {
        self.send(Call::new(Method::POST, queue_path(name, "/open"), Repeat::Safe)).await
    }

    /// `GET /limits`: a page of limits.
    pub async fn limits(&self, query: &NamesQuery) -> Result<Answer<LimitList>, Error> {
        self.send(Call::get(format!("/limits{}", query.to_query()))).await
    }

    /// `GET /limits/{name}`
    pub async fn limit(&self, name: &str) -> Result<Answer<LimitInfo>, Error> {
        self.send(Call::get(limit_path(name))).await
    }

    /// `PUT /limits/{name}`: makes a limit, or gives one these settings and no others. Twice is the same as once.
    pub async fn put_limit(&self, name: &str, settings: &LimitSettings) -> Result<Answer<LimitInfo>, Error> {
        let call = Call::post(limit_path(name), settings, Repeat::Safe)?;
        self.send(Call { method: Method::PUT, ..call }).await
    }

    /// `POST /limits/{name}/open`: what workers have held back is lifted. Twice is the same as once.
    pub async fn open_limit(&self, name: &str, open: &OpenLimitRequest) -> Result<Answer<LimitInfo>, Error> {
        self.send(Call::post(format!("{}/open", limit_path(name)), open, Repeat::Safe)?).await
    }

    /// `DELETE /limits/{name}`: refused while unfinished jobs name it.
    pub async fn delete_limit(&self, name: &str) -> Result<Answer<LimitDeleted>, Error> {
        self.send(Call::new(Method::DELETE, limit_path(name), Repeat::Once)).await
    }

    /// An operator's call is sent once: sent again it would meet the state that it has made, and be refused.
    async fn operate(&self, id: i64, verb: &str, body: &impl Serialize) -> Result<Answer<Job>, Error> {
        self.send(Call::post(format!("/jobs/{id}/{verb}"), body, Repeat::Once)?).await
    }
}

fn limit_path(name: &str) -> String {
    format!("/limits/{}", encode(name))
}

fn type_path(name: &str) -> String {
    format!("/types/{}", encode(name))
}

fn queue_path(name: &str, call: &str) -> String {
    format!("/queues/{}{call}", encode(name))
}
