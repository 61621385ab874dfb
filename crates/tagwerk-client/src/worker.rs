//! Calls of workers.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tagwerk_api::answer::{
    BulkClaimAnswer, BulkHeartbeatAnswer, ClaimedJob, CompletedJob, EffectAnswer, HeartbeatAnswer, Job,
    ReportBulkAnswer,
};
use tagwerk_api::request::{
    BulkClaimRequest, BulkHeartbeatRequest, CheckpointRequest, ClaimRequest, CompleteRequest,
    EffectAbortRequest, EffectBeginRequest, EffectFinishRequest, FailRequest, HeartbeatRequest,
    ReleaseRequest, ReportBulkRequest,
};

use crate::call::{Call, Repeat};
use crate::{Answer, Client, Error};

impl Client {
    /// `POST /jobs/claim`: a job with its lease, or `None` when nothing is claimable before the wait ends. Repeated only
    /// with a `request_id`, which makes the server give the same job again.
    pub async fn claim(&self, claim: &ClaimRequest) -> Result<Answer<Option<ClaimedJob>>, Error> {
        let repeat = Repeat::if_recognised(claim.request_id.as_ref());
        self.send(Call::post("/jobs/claim".to_owned(), claim, repeat)?.waiting(claim.wait_seconds)).await
    }

    /// `POST /jobs/claim/bulk`: up to `max_jobs` jobs. Repeated only with a `request_id`.
    pub async fn claim_bulk(&self, bulk: &BulkClaimRequest) -> Result<Answer<BulkClaimAnswer>, Error> {
        let repeat = Repeat::if_recognised(bulk.claim.request_id.as_ref());
        let call = Call::post("/jobs/claim/bulk".to_owned(), bulk, repeat)?;
        self.send(call.waiting(bulk.claim.wait_seconds)).await
    }

    /// `POST /jobs/{id}/complete`: done. Repeated only with its lease, like all reports.
    pub async fn complete(&self, id: i64, report: &CompleteRequest) -> Result<Answer<CompletedJob>, Error> {
        self.report(id, "complete", (report, Repeat::if_recognised(report.lease.as_ref()))).await
    }

    /// `POST /jobs/{id}/fail`: not done, or nobody knows.
    pub async fn fail(&self, id: i64, report: &FailRequest) -> Result<Answer<Job>, Error> {
        self.report(id, "fail", (report, Repeat::if_recognised(report.lease.as_ref()))).await
    }

    /// `POST /jobs/{id}/release`: not begun; the attempt is given back.
    pub async fn release(&self, id: i64, report: &ReleaseRequest) -> Result<Answer<Job>, Error> {
        self.report(id, "release", (report, Repeat::if_recognised(report.lease.as_ref()))).await
    }

    /// `POST /jobs/{id}/heartbeat`: still at it. "Stop" comes as a problem with `stop: true`.
    pub async fn heartbeat(
        &self,
        id: i64,
        beat: &HeartbeatRequest,
    ) -> Result<Answer<HeartbeatAnswer>, Error> {
        self.report(id, "heartbeat", (beat, Repeat::Safe)).await
    }

    /// `POST /jobs/heartbeat/bulk`: at most 1,000 heartbeats, each judged by itself.
    pub async fn heartbeat_bulk(
        &self,
        beats: &BulkHeartbeatRequest,
    ) -> Result<Answer<BulkHeartbeatAnswer>, Error> {
        self.send(Call::post("/jobs/heartbeat/bulk".to_owned(), beats, Repeat::Safe)?).await
    }

    /// `POST /jobs/{id}/checkpoint`: what the next attempt gets if this one does not end well.
    pub async fn checkpoint(&self, id: i64, checkpoint: &CheckpointRequest) -> Result<Answer<Job>, Error> {
        self.report(id, "checkpoint", (checkpoint, Repeat::Safe)).await
    }

    /// `POST /jobs/{id}/effects/{name}/begin`: before a side effect. `new`: go ahead with the key of the answer; `in_doubt`: look
    /// it up by that key first; `done`: skip it.
    pub async fn effect_begin(
        &self,
        effect: (i64, &str),
        begin: &EffectBeginRequest,
    ) -> Result<Answer<EffectAnswer>, Error> {
        self.effect(effect, ("begin", begin)).await
    }

    /// `POST /jobs/{id}/effects/{name}/finish`: it happened.
    pub async fn effect_finish(
        &self,
        effect: (i64, &str),
        finish: &EffectFinishRequest,
    ) -> Result<Answer<EffectAnswer>, Error> {
        self.effect(effect, ("finish", finish)).await
    }

    /// `POST /jobs/{id}/effects/{name}/abort`: it certainly did not happen.
    pub async fn effect_abort(
        &self,
        effect: (i64, &str),
        abort: &EffectAbortRequest,
    ) -> Result<Answer<EffectAnswer>, Error> {
        self.effect(effect, ("abort", abort)).await
    }

    /// `POST /jobs/report/bulk`: at most 1,000 reports and a claim in one round trip. Repeated only if every report has
    /// its lease and the claim, if there is one, its `request_id`.
    pub async fn report_bulk(&self, bulk: &ReportBulkRequest) -> Result<Answer<ReportBulkAnswer>, Error> {
        let reports = bulk.reports.iter().map(|report| Repeat::if_recognised(report.lease.as_ref()));
        let claim = bulk.claim.as_ref().map(|bulk| &bulk.claim);
        let claims = claim.map(|claim| Repeat::if_recognised(claim.request_id.as_ref()));
        let repeat = reports.chain(claims).fold(Repeat::Safe, Repeat::and);
        let call = Call::post("/jobs/report/bulk".to_owned(), bulk, repeat)?;
        self.send(call.waiting(claim.and_then(|claim| claim.wait_seconds))).await
    }

    /// Twice is the same as once: the same lease begins, finishes and aborts the same.
    async fn effect(
        &self,
        (id, name): (i64, &str),
        (verb, body): (&str, &impl Serialize),
    ) -> Result<Answer<EffectAnswer>, Error> {
        let name = tagwerk_api::query::encode(name);
        self.report(id, &format!("effects/{name}/{verb}"), (body, Repeat::Safe)).await
    }

    async fn report<T: DeserializeOwned>(
        &self,
        id: i64,
        verb: &str,
        (body, repeat): (&impl Serialize, Repeat),
    ) -> Result<Answer<T>, Error> {
        self.send(Call::post(format!("/jobs/{id}/{verb}"), body, repeat)?).await
    }
}
