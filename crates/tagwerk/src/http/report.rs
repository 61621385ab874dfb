//! What workers report about the jobs that they hold.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use tagwerk_api::answer::{BulkHeartbeatAnswer, HeartbeatAnswer, ReportBulkAnswer, ReportResult};
use tagwerk_api::door::{self, Door, Report, ReportBulk, ReportItem, Reported};
use tagwerk_api::headers;
use tagwerk_api::problem::{Code, FieldCode, Problem, Refusal as DoorRefusal};
use tagwerk_core::JobId;
use tagwerk_engine::command::{
    Claim, EngineError, Refusal, Said, Work, WorkAnswer, WorkerAnswer, WorkerCall,
};
use tagwerk_engine::store::Listed;

use super::access::Rights;
use super::ask::{Caller, Leases, ask, ask_for_leases, closed_claim};
use super::problem::{self, Refused};
use super::reply::{self, Answer, off_thread};
use super::sent::{NoQuery, PathId, Sent};
use super::{App, decode, jobs, view};

type Shared = State<Arc<App>>;

/// `POST /jobs/{id}/complete`
pub(super) async fn complete(State(app): Shared, PathId(id): PathId, _: NoQuery, sent: Sent) -> Answer {
    let Reported { value, ignored } = sent.decode(&app, Door::complete).await?;
    let answer = one((&app, &sent.rights()), decode::report(id, Report::Complete(value))).await?;
    let enqueued = answer.enqueued.as_deref().map(view::followed_up);
    let mut response = jobs::completed((&app, &sent.rights()), *answer.job, enqueued).await?;
    reply::set_ignored(&mut response, &ignored);
    if answer.replayed {
        set_replayed(&mut response);
    }
    Ok(response)
}

/// `POST /jobs/{id}/fail`
pub(super) async fn fail(State(app): Shared, PathId(id): PathId, _: NoQuery, sent: Sent) -> Answer {
    // Redaction takes its time on a long text, so it is part of the decoding.
    let read = move |door: &Door, body: &[u8]| {
        let Reported { value, ignored } = door.fail(body)?;
        Ok((decode::report(id, Report::Fail(value)), ignored))
    };
    let (call, ignored) = sent.decode(&app, read).await?;
    report((&app, &sent.rights()), call, &ignored).await
}

/// `POST /jobs/{id}/release`
pub(super) async fn release(State(app): Shared, PathId(id): PathId, _: NoQuery, sent: Sent) -> Answer {
    let Reported { value, ignored } = sent.decode(&app, Door::release).await?;
    report((&app, &sent.rights()), decode::report(id, Report::Release(value)), &ignored).await
}

/// `POST /jobs/{id}/heartbeat`
pub(super) async fn heartbeat(State(app): Shared, PathId(id): PathId, _: NoQuery, sent: Sent) -> Answer {
    let Reported { value, ignored } = sent.decode(&app, Door::heartbeat).await?;
    let answer = one((&app, &sent.rights()), decode::report(id, Report::Heartbeat(value))).await?;
    let shown = beat(&app, &answer).ok_or_else(|| Refused::of(Code::InternalError))?;
    let mut response = reply::json(StatusCode::OK, &shown)?;
    reply::set_ignored(&mut response, &ignored);
    Ok(response)
}

/// `POST /jobs/{id}/checkpoint`
pub(super) async fn checkpoint(State(app): Shared, PathId(id): PathId, _: NoQuery, sent: Sent) -> Answer {
    let checkpoint = sent.decode(&app, Door::checkpoint).await?;
    report((&app, &sent.rights()), decode::checkpoint(id, checkpoint), &[]).await
}

/// One call, answered with the job.
async fn report((app, rights): (&App, &Rights), call: WorkerCall, ignored: &[String]) -> Answer {
    let WorkerAnswer { job, replayed, unknown_limit, .. } = one((app, rights), call).await?;
    let mut response = jobs::shown(app, *job, rights).await?;
    if unknown_limit {
        let throttle = [ignored, &["throttle.limit".to_owned()]].concat();
        reply::set_ignored(&mut response, &throttle);
    } else {
        reply::set_ignored(&mut response, ignored);
    }
    if replayed {
        set_replayed(&mut response);
    }
    Ok(response)
}

/// Says that the same report had been accepted before.
fn set_replayed(response: &mut Response) {
    reply::set(response, headers::REPORT_REPLAYED, "true");
}

/// One call, as far as its caller may make it.
pub(super) async fn one((app, rights): (&App, &Rights), call: WorkerCall) -> Result<WorkerAnswer, Refused> {
    let work = Work { calls: vec![rights.call(call)?], claim: None };
    let mut answer = ask(|reply| app.engine.work(work, reply)).await?;
    let result = answer.results.pop().ok_or_else(|| Refused::of(Code::InternalError))?;
    Ok(result?)
}

fn beat(app: &App, answer: &WorkerAnswer) -> Option<HeartbeatAnswer> {
    // A server that shuts down hands out nothing more; what is held may be finished.
    Some(HeartbeatAnswer { quiet: app.is_stopping(), ..view::heartbeat(&answer.job)? })
}

/// `POST /jobs/heartbeat/bulk`
pub(super) async fn heartbeat_bulk(State(app): Shared, _: NoQuery, sent: Sent) -> Answer {
    let read = |door: &Door, body: &[u8]| {
        let Reported { value, ignored } = door.heartbeat_bulk(body)?;
        Ok((Entries::of(value.reports), ignored))
    };
    let (entries, ignored) = sent.decode(&app, read).await?;
    let rights = sent.rights();
    let Entries { kinds, calls } = entries.admitted(&app, &rights).await?;
    let answer = work(&app, Work { calls, claim: None }).await?;
    let mut response = reply::large_json(StatusCode::OK, move || BulkHeartbeatAnswer {
        results: results((&app, &rights), kinds, answer.results),
    })
    .await?;
    reply::set_ignored(&mut response, &ignored);
    Ok(response)
}

/// `POST /jobs/report/bulk`
pub(super) async fn report_bulk(State(app): Shared, _: NoQuery, sent: Sent) -> Answer {
    let read = |door: &Door, body: &[u8]| {
        let Reported { value: ReportBulk { reports, claim }, ignored } = door.report_bulk(body)?;
        Ok((Entries::of(reports), claim, ignored))
    };
    let (entries, claim, ignored) = sent.decode(&app, read).await?;
    let rights = sent.rights();
    let Entries { kinds, calls } = entries.admitted(&app, &rights).await?;
    let caller = sent.caller();
    // The reports are never refused for being too many; what comes with them is a claim like any other.
    let counted =
        |claim| rights.spend(app.clock.now()).and_then(|()| claimable(&app, claim, caller.as_ref()));
    let (claim, claim_problem) = match claim.map(counted) {
        None => (None, None),
        Some(Ok(claim)) => match rights.claim(decode::claim(claim, sent.agent())) {
            Ok(claim) => (Some(claim), None),
            Err(refused) => (None, Some(refused.into_problem())),
        },
        Some(Err(refused)) => (None, Some(refused.into_problem())),
    };
    let (answer, leases) = work_and_claim(&app, calls, claim).await?;
    let body = off_thread(move || {
        let claimed = view::claim(answer.claimed.unwrap_or_default(), &app.owners);
        reply::encode_job(&ReportBulkAnswer {
            results: results((&app, &rights), kinds, answer.results),
            jobs: claimed.jobs,
            next_due_at: claimed.next_due_at,
            claim_problem,
        })
    });
    let bytes = Bytes::from(body.await??);
    let body = match leases {
        Some(leases) => leases.body(bytes, caller),
        None => Body::from(bytes),
    };
    let mut response = reply::with_body(StatusCode::OK, body);
    reply::set_ignored(&mut response, &ignored);
    Ok(response)
}

/// The claim of a bulk report, which never waits and never holds back the reports.
fn claimable(
    app: &App,
    claim: Result<door::Claim, DoorRefusal>,
    caller: Option<&Caller>,
) -> Result<door::Claim, Refused> {
    let claim = claim?;
    if caller.is_some_and(Caller::is_gone) {
        return Err(closed_claim());
    }
    if claim.wait_ms > 0 {
        let message =
            "a claim that comes with reports never waits; leave wait_seconds out, or claim by itself";
        return Err(DoorRefusal::field("claim.wait_seconds", FieldCode::Conflict, message).into());
    }
    if app.is_stopping() {
        return Err(EngineError::Draining.into());
    }
    Ok(claim)
}

async fn work_and_claim(
    app: &App,
    calls: Vec<WorkerCall>,
    claim: Option<Claim>,
) -> Result<(WorkAnswer, Option<Leases>), Refused> {
    if claim.is_none() {
        return Ok((work(app, Work { calls, claim }).await?, None));
    }
    let (answer, leases) =
        // It never waits, and the reports count whoever reads the answer.
        ask_for_leases(&app.engine, None, |reply| app.engine.work(Work { calls, claim }, reply)).await?;
    Ok((answer, Some(leases)))
}

async fn work(app: &App, work: Work) -> Result<WorkAnswer, Refused> {
    if work.calls.is_empty() {
        return Ok(WorkAnswer { results: Vec::new(), claimed: None });
    }
    Ok(ask(|reply| app.engine.work(work, reply)).await?)
}

/// An entry of a bulk call, as it waits for its result.
struct Entry {
    id: Option<i64>,
    refused: Option<Problem>,
    is_heartbeat: bool,
}

/// The entries of a bulk call, and the calls of those that were not refused at the door, both in order.
struct Entries {
    kinds: Vec<Entry>,
    calls: Vec<WorkerCall>,
}

impl Entries {
    fn of(items: Vec<ReportItem>) -> Self {
        let mut entries = Self { kinds: Vec::with_capacity(items.len()), calls: Vec::new() };
        for ReportItem { id, report } in items {
            match (report, id) {
                (Ok(report), Some(number)) => {
                    let call = decode::report(JobId(number), report);
                    let is_heartbeat = matches!(call.said, Said::Heartbeat { .. });
                    entries.kinds.push(Entry { id, refused: None, is_heartbeat });
                    entries.calls.push(call);
                }
                (Ok(_), None) => entries.refuse(id, Problem::of(Code::InvalidRequest)),
                (Err(refusal), _) => entries.refuse(id, refusal.into()),
            }
        }
        entries
    }

    /// Those that this caller may make; jobs out of its reach are not there.
    async fn admitted(self, app: &App, rights: &Rights) -> Result<Self, Refused> {
        if !rights.are_granted() {
            return Ok(self);
        }
        let ids: Vec<JobId> = self.calls.iter().map(|call| call.id).collect();
        let found =
            if rights.reach_everything() { None } else { Some(app.read(move |read| read.jobs(&ids)).await?) };
        let sees = |at: usize| match &found {
            None => true,
            Some(jobs) => matches!(jobs.get(at), Some(Some(Listed::Job(job))) if rights.see(&job.row.lane)),
        };
        let mut entries = Self { kinds: Vec::with_capacity(self.kinds.len()), calls: Vec::new() };
        let mut calls = self.calls.into_iter().enumerate();
        for entry in self.kinds {
            if entry.refused.is_some() {
                entries.kinds.push(entry);
                continue;
            }
            let Some((at, call)) = calls.next() else { break };
            let id = call.id;
            match rights.call(call) {
                _ if !sees(at) => entries.refuse(entry.id, Refused::no_job(id).into_problem()),
                Ok(call) => {
                    entries.kinds.push(entry);
                    entries.calls.push(call);
                }
                Err(refused) => entries.refuse(entry.id, refused.into_problem()),
            }
        }
        Ok(entries)
    }

    fn refuse(&mut self, id: Option<i64>, problem: Problem) {
        self.kinds.push(Entry { id, refused: Some(problem), is_heartbeat: false });
    }
}

fn results(
    (app, rights): (&App, &Rights),
    entries: Vec<Entry>,
    answers: Vec<Result<WorkerAnswer, Refusal>>,
) -> Vec<ReportResult> {
    let mut answers = answers.into_iter();
    entries
        .into_iter()
        .filter_map(|Entry { id, refused, is_heartbeat }| match refused {
            Some(problem) => Some(refused_result(id, problem)),
            None => answers.next().map(|answer| match answer {
                Err(refusal) => refused_result(id, problem::refusal(refusal)),
                Ok(answer) => {
                    let heartbeat = if is_heartbeat { beat(app, &answer) } else { None };
                    let job = &answer.job;
                    let summary = || view::summary(job, (app.owners.of(&job.row.lane.kind), rights));
                    let enqueued = answer.enqueued.as_deref().map(view::followed_up);
                    let (job, replayed) = ((!is_heartbeat).then(summary), answer.replayed);
                    ReportResult { id, status: 200, job, heartbeat, enqueued, problem: None, replayed }
                }
            }),
        })
        .collect()
}

fn refused_result(id: Option<i64>, problem: Problem) -> ReportResult {
    let status = problem.status;
    ReportResult {
        id,
        status,
        job: None,
        heartbeat: None,
        enqueued: None,
        problem: Some(problem),
        replayed: false,
    }
}
