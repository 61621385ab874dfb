//! Enqueue, and look at jobs.

use std::sync::Arc;

use axum::extract::{FromRequest, Request, State};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderValue, StatusCode};
use tagwerk_api::answer::{
    AttemptsPage, BulkEnqueueAnswer, CompletedJob, DamagedJob, EnqueueResult, Enqueued as EnqueuedView,
    Existing, FollowedUp, Job, JobsPage,
};
use tagwerk_api::door::{Door, NewJobs, is_ndjson};
use tagwerk_api::headers;
use tagwerk_api::problem::{Code, Problem};
use tagwerk_api::query::JobsQuery;
use tagwerk_core::access::Scope;
use tagwerk_core::{JobId, limits};
use tagwerk_engine::command::{BulkMode, Enqueue, EnqueueJob, Enqueued, Refusal};
use tagwerk_engine::query::{self, Place};
use tagwerk_engine::row::{FullJob, JobRow, in_space};
use tagwerk_engine::store::{ListQuery, Listed, Listing, Read, StoreResult};

use super::access::Rights;
use super::ask::{ask, slot};
use super::problem::{self, Refused};
use super::reading::{patience, readable};
use super::reply::{self, Answer};
use super::sent::{NoQuery, PathId, Query, Sent, SentBulk};
use super::{App, decode, stream, view};

type Shared = State<Arc<App>>;

/// `POST /jobs`
pub(super) async fn enqueue(State(app): Shared, _: NoQuery, sent: Sent) -> Answer {
    let key = sent.single(headers::IDEMPOTENCY_KEY)?;
    let job =
        sent.decode(&app, move |door, body| door.enqueue(body, key.as_ref().map(HeaderValue::as_bytes)));
    let job = decode::new_job(job.await?);
    let rights = sent.rights();
    let command = Enqueue { jobs: vec![job], mode: BulkMode::Each, reach: rights.reach() };
    let mut results = ask(|reply| app.engine.enqueue(command, reply)).await?;
    match results.pop() {
        Some(Ok(enqueued)) => accepted(&app, enqueued, &rights).await,
        Some(Err(refusal)) => Err(refused(&app, refusal, &rights).await),
        None => Err(Refused::of(Code::InternalError)),
    }
}

async fn accepted(app: &App, enqueued: Enqueued, rights: &Rights) -> Answer {
    let is_new = matches!(enqueued, Enqueued::Created(_));
    let place = match &enqueued {
        Enqueued::Created(job) | Enqueued::Existing { job, .. } => place_of(app, &job.row).await,
        Enqueued::Pruned { .. } => Place::default(),
    };
    let mut shown = view::enqueued(enqueued, &app.owners, rights);
    if let EnqueuedView::Job(job) = &mut shown {
        view::put_place(&mut job.summary, place);
    }
    let mut response = reply::job(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &shown)?;
    if is_new {
        reply::set(&mut response, LOCATION.as_str(), &format!("/jobs/{}", shown.id()));
    } else {
        reply::set(&mut response, headers::IDEMPOTENCY_REPLAYED, "true");
    }
    if let EnqueuedView::Job(job) = &shown {
        reply::set_version(&mut response, job.summary.version);
    }
    Ok(response)
}

/// The problem with the job that stands in the way, if it is still there.
pub(super) async fn refused(app: &App, refusal: Refusal, rights: &Rights) -> Refused {
    let named = problem::job_named(&refusal);
    let owner = match &refusal {
        Refusal::Duplicate(job) => app.owners.of(&job.row.lane.kind),
        _ => None,
    };
    let mut problem = problem::refusal_with_job(refusal, owner, rights);
    if let Some(id) = named
        && let Ok(job) = app.job(id).await
        && rights.see(&job.row.lane)
    {
        let owner = app.owners.of(&job.row.lane.kind);
        problem.job = Some(Box::new(Existing::Job(Box::new(view::job(rights.veiled(job), owner)))));
    }
    problem.into()
}

/// `POST /jobs/bulk`
pub(super) async fn enqueue_bulk(State(app): Shared, request: Request) -> Answer {
    let content_type = request.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    if is_ndjson(content_type) {
        return stream::enqueue(app, request).await;
    }
    app.door.no_query(request.uri().query().unwrap_or_default())?;
    let sent = SentBulk::from_request(request, &app).await?;
    enqueue_list(app, sent).await
}

/// Jobs in one JSON body.
async fn enqueue_list(app: Arc<App>, sent: SentBulk) -> Answer {
    let key = sent.single(headers::IDEMPOTENCY_KEY)?;
    let read = move |door: &Door, body: &[u8]| {
        let NewJobs { jobs, atomic } = door.enqueue_bulk(body, key.as_ref().map(HeaderValue::as_bytes))?;
        let jobs = jobs.into_iter().map(|job| job.map(decode::new_job)).collect();
        Ok((jobs, if atomic { BulkMode::Atomic } else { BulkMode::Each }))
    };
    let (jobs, mode): (Vec<Result<EnqueueJob, tagwerk_api::problem::Refusal>>, _) =
        sent.decode(&app, read).await?;
    let mut entries: Vec<Option<EnqueueResult>> = Vec::with_capacity(jobs.len());
    let mut good = Vec::new();
    let first_refused = jobs.iter().position(Result::is_err);
    for (index, job) in jobs.into_iter().enumerate() {
        match (job, first_refused, mode) {
            (Err(refusal), ..) => {
                entries.push(Some(refused_entry(problem::at_index(Problem::from(refusal), index))));
            }
            (Ok(_), Some(index), BulkMode::Atomic) => {
                entries.push(Some(refused_entry(problem::refusal(Refusal::NotAtomic { index }))));
            }
            (Ok(job), ..) => {
                entries.push(None);
                good.push(job);
            }
        }
    }
    let (rights, reach) = (sent.rights(), sent.rights().reach());
    let results = if good.is_empty() {
        Vec::new()
    } else {
        ask(|reply| app.engine.enqueue(Enqueue { jobs: good, mode, reach }, reply)).await?
    };
    drop(sent);
    reply::large_json(StatusCode::OK, move || {
        let mut results = results.into_iter();
        let fill = |(index, entry): (usize, Option<EnqueueResult>)| {
            entry.or_else(|| results.next().map(|result| entry_of((&app, &rights), result, index)))
        };
        BulkEnqueueAnswer { results: entries.into_iter().enumerate().filter_map(fill).collect() }
    })
    .await
}

const EMPTY: EnqueueResult = EnqueueResult {
    status: 200,
    job: None,
    tombstone: None,
    problem: None,
    replayed: false,
    payload_differs: false,
    replaced: None,
};

fn refused_entry(problem: Problem) -> EnqueueResult {
    EnqueueResult { status: problem.status, problem: Some(problem), ..EMPTY }
}

fn entry_of(
    (app, rights): (&App, &Rights),
    result: Result<Enqueued, Refusal>,
    index: usize,
) -> EnqueueResult {
    let summary = |job: &FullJob| Some(view::summary(job, (app.owners.of(&job.row.lane.kind), rights)));
    match result {
        Ok(Enqueued::Created(job)) => EnqueueResult { status: 201, job: summary(&job), ..EMPTY },
        Ok(Enqueued::Existing { job, payload_differs, replaced }) => {
            EnqueueResult { job: summary(&job), replayed: true, payload_differs, replaced, ..EMPTY }
        }
        Ok(Enqueued::Pruned { id, tombstone, payload_differs, replaced }) => {
            let tombstone = Some(view::tombstone(id, tombstone));
            EnqueueResult { tombstone, replayed: true, payload_differs, replaced, ..EMPTY }
        }
        Err(refusal) => {
            let (job, tombstone) = match &refusal {
                Refusal::Duplicate(job) => (summary(job), None),
                Refusal::DuplicatePruned(id, tombstone) | Refusal::KeyReusedPruned(id, tombstone) => {
                    (None, Some(view::tombstone(*id, tombstone.clone())))
                }
                _ => (None, None),
            };
            EnqueueResult {
                job,
                tombstone,
                ..refused_entry(problem::at_index(problem::refusal(refusal), index))
            }
        }
    }
}

/// `GET /jobs`
pub(super) async fn list(State(app): Shared, rights: Rights, Query(query): Query) -> Answer {
    let mut query = list_query(app.door.jobs_query(&query)?);
    query.key = query.key.map(|key| in_space(rights.space(), &key).into_owned());
    let (rows, places, next) = app
        .read(move |read| {
            let page = read.list(&query)?;
            with_places(read, page)
        })
        .await?;
    reply::large_json(StatusCode::OK, move || {
        let mut page =
            JobsPage { jobs: Vec::new(), damaged: Vec::new(), next: next.map(|id| id.to_string()) };
        for (row, place) in rows.into_iter().zip(places) {
            match row {
                Listed::Job(job) if !rights.see(&job.row.lane) => {}
                Listed::Job(job) => {
                    let mut summary = view::summary(&job, (app.owners.of(&job.row.lane.kind), &rights));
                    view::put_place(&mut summary, place);
                    page.jobs.push(summary);
                }
                Listed::Damaged { .. } if !rights.reach_everything() => {}
                Listed::Damaged { id, why } => page.damaged.push(DamagedJob { id: id.0, detail: why }),
            }
        }
        page
    })
    .await
}

/// A page with where its jobs stand in the orders of their keys.
pub(super) type Placed = (Vec<Listed>, Vec<Place>, Option<JobId>);

/// Looks that up, for jobs that stand in an order.
pub(super) fn with_places(read: &mut dyn Read, page: Listing) -> StoreResult<Placed> {
    let Listing { rows, next } = page;
    let place = |row: &Listed| match row {
        Listed::Job(job) => query::place(read, &job.row),
        Listed::Damaged { .. } => Ok(Place::default()),
    };
    let places = rows.iter().map(place).collect::<StoreResult<_>>()?;
    Ok((rows, places, next))
}

fn list_query(query: JobsQuery) -> ListQuery {
    ListQuery {
        statuses: query.status.map(decode::status).into_iter().collect(),
        kind: query.job_type,
        queue: query.queue,
        subject_kind: query.subject_kind,
        subject_id: query.subject_id,
        correlation_id: query.correlation_id,
        key: query.idempotency_key,
        since: query.since.map(decode::time),
        until: query.until.map(decode::time),
        after: query.after.map(JobId),
        limit: page_size(query.limit),
    }
}

/// Rows of a page.
pub(super) fn page_size(asked: Option<u32>) -> usize {
    usize::try_from(asked.unwrap_or(limits::LIST_PAGE_DEFAULT)).unwrap_or(usize::MAX)
}

/// `GET /jobs/{id}`
pub(super) async fn get(
    State(app): Shared,
    rights: Rights,
    PathId(id): PathId,
    Query(query): Query,
) -> Answer {
    let wait_ms = app.door.job_query(&query)?.wait_ms.unwrap_or_default();
    let job = if wait_ms > 0 { wait_for(&app, id, wait_ms).await? } else { app.job(id).await? };
    shown(&app, job, &rights).await
}

/// The job when it has come to rest, or at the end of the wait, or when the server is told to stop.
async fn wait_for(app: &App, id: JobId, wait_ms: i64) -> Result<FullJob, Refused> {
    let (reply, settled) = slot();
    // Registered before looking, so that an end between the two is not missed.
    let registered = app.engine.watch(id, reply);
    let job = app.job(id).await?;
    if job.row.job.status.is_settled() {
        return Ok(job);
    }
    // Read again at the end; nobody keeps a payload in memory for a minute.
    drop(job);
    if !registered {
        return Err(Refused::of(Code::TooManyWaiting));
    }
    let mut stopping = app.stopping.clone();
    tokio::select! {
        _ = settled => {}
        () = tokio::time::sleep(patience(wait_ms)) => {} // tidy: sleep because it is the end of the wait asked for
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
    app.job(id).await
}

/// Where a job stands in the order of its key; asked only for jobs that stand in one. What cannot be read now is left out:
/// the call itself was accepted.
async fn place_of(app: &App, row: &JobRow) -> Place {
    if row.order.is_none() {
        return Place::default();
    }
    let row = row.clone();
    app.read(move |read| query::place(read, &row)).await.unwrap_or_default()
}

/// One job, whole.
pub(super) async fn shown(app: &App, job: FullJob, rights: &Rights) -> Answer {
    let job = viewed(app, job, rights).await;
    let mut response = reply::job(StatusCode::OK, &job)?;
    reply::set_version(&mut response, job.summary.version);
    Ok(response)
}

/// The answer to a `complete`.
pub(super) async fn completed(
    (app, rights): (&App, &Rights),
    job: FullJob,
    enqueued: Option<Vec<FollowedUp>>,
) -> Answer {
    let job = CompletedJob::new(viewed(app, job, rights).await, enqueued);
    let mut response = reply::job(StatusCode::OK, &job)?;
    reply::set_version(&mut response, job.summary.version);
    Ok(response)
}

async fn viewed(app: &App, job: FullJob, rights: &Rights) -> Job {
    let owner = app.owners.of(&job.row.lane.kind);
    let place = place_of(app, &job.row).await;
    let mut job = view::job(rights.veiled(job), owner);
    view::put_place(&mut job.summary, place);
    job
}

/// `GET /jobs/{id}/attempts`
pub(super) async fn attempts(
    State(app): Shared,
    rights: Rights,
    PathId(id): PathId,
    Query(query): Query,
) -> Answer {
    let query = app.door.attempts_query(&query)?;
    // A history is bounded, so it is read whole and paged here.
    let most = (limits::ATTEMPTS_FIRST + limits::ATTEMPTS_LAST) as usize;
    let read = move |read: &mut dyn tagwerk_engine::store::Read| {
        let found = read.jobs(&[id])?.pop().flatten();
        Ok((found, read.attempts(id, 0, most)?, read.actions(id)?))
    };
    let (found, rows, actions) = app.read(read).await?;
    let job = readable(id, found)?.row.job;
    let live = view::live_attempt(&job);
    let ended = job.leases.saturating_sub(u32::from(live.is_some()));
    let omitted = ended.saturating_sub(u32::try_from(rows.len()).unwrap_or(u32::MAX));
    let after = query.after.unwrap_or_default();
    let size = page_size(query.limit);
    let all = rows.into_iter().map(view::attempt).chain(live);
    let mut attempts: Vec<_> = all.filter(|attempt| i64::from(attempt.seq) > after).take(size + 1).collect();
    let more = attempts.len() > size;
    attempts.truncate(size);
    if !rights.has(Scope::Payload) {
        for attempt in &mut attempts {
            attempt.error = None;
        }
    }
    let next = attempts.last().filter(|_| more).map(|last| last.seq.to_string());
    let actions =
        if after == 0 { actions.into_iter().filter_map(view::action).collect() } else { Vec::new() };
    reply::json(StatusCode::OK, &AttemptsPage { attempts, omitted, actions, next })
}

/// `GET /jobs/{id}/explain`
pub(super) async fn explain(State(app): Shared, PathId(id): PathId, _: NoQuery) -> Answer {
    let (vitals, now) = (app.engine.vitals(), app.clock.now());
    let read = move |read: &mut dyn tagwerk_engine::store::Read| {
        let found = read.jobs(&[id])?.pop().flatten();
        let Some(Listed::Job(job)) = &found else { return Ok((found, None)) };
        let explanation = query::explain(read, &job.row, &vitals, now)?;
        let first = explanation.reasons.first().map(|why| why.kind);
        let position = match first {
            Some(query::WhyKind::Ready | query::WhyKind::NoWorker) => {
                let ahead = read.ahead(&job.row, now, limits::POSITION_EXACT_MAX as usize + 1)?;
                Some(u32::try_from(ahead).unwrap_or(u32::MAX))
            }
            _ => None,
        };
        Ok((found, Some((explanation, position))))
    };
    let (found, explained) = app.read(read).await?;
    let lane = readable(id, found)?.row.lane;
    let (mut explanation, position) = explained.ok_or_else(|| Refused::of(Code::InternalError))?;
    if explanation.status == tagwerk_core::Status::Pending {
        explanation.add_limits(&lane, &super::limits::of_lane(&app, &lane).await?);
    }
    let could_be_next =
        |why: &query::Why| matches!(why.kind, query::WhyKind::Ready | query::WhyKind::NoWorker);
    let position = position.filter(|_| explanation.reasons.first().is_some_and(could_be_next));
    reply::json(StatusCode::OK, &view::explain(id, explanation, position))
}
