//! Workers and figures.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use tagwerk_api::answer::{
    CommitStats, Counts, ServiceStats, Stats, StoreStats, Totals, WorkerInfo, WorkerJob, WorkerList,
};
use tagwerk_api::query::NamesQuery;
use tagwerk_core::{Timestamp, limits};
use tagwerk_engine::Vitals;
use tagwerk_engine::query::{self, Overview, WorkerView};
use tagwerk_engine::registry::WorkerSeen;
use tagwerk_engine::row::{Counter, JobRow, Tally};
use tagwerk_engine::store::StoreFacts;

use super::jobs::page_size;
use super::reply::{self, Answer};
use super::sent::{NoQuery, Query};
use super::{App, view};

type Shared = State<Arc<App>>;

/// A page of things that are ordered by name.
pub(super) fn page<T>(
    all: Vec<T>,
    query: &NamesQuery,
    name: impl Fn(&T) -> &String,
) -> (Vec<T>, Option<String>) {
    let size = page_size(query.limit);
    let behind = |item: &T| query.after.as_ref().is_none_or(|after| name(item) > after);
    let mut rows: Vec<T> = all.into_iter().filter(behind).take(size + 1).collect();
    let more = rows.len() > size;
    rows.truncate(size);
    let next = rows.last().filter(|_| more).map(|last| name(last).clone());
    (rows, next)
}

/// Jobs by status.
pub(super) const fn counts(tally: &Tally) -> Counts {
    Counts {
        enqueued: tally.get(Counter::Enqueued),
        pending: tally.get(Counter::Pending),
        blocked: tally.get(Counter::Blocked),
        running: tally.get(Counter::Running),
        completed: tally.get(Counter::Completed),
        failed: tally.get(Counter::Failed),
        cancelled: tally.get(Counter::Cancelled),
        pruned: tally.get(Counter::Pruned),
    }
}

const fn totals(tally: &Tally) -> Totals {
    Totals {
        enqueues: tally.get(Counter::Enqueued),
        claims: tally.get(Counter::Claims),
        completions: tally.get(Counter::Completions),
        failures: tally.get(Counter::Failures),
        releases: tally.get(Counter::Releases),
        retries: tally.get(Counter::Retries),
        lease_losses: tally.get(Counter::LeaseLosses),
        time_outs: tally.get(Counter::TimeOuts),
        reviews: tally.get(Counter::Reviews),
        review_retries: tally.get(Counter::ReviewRetries),
    }
}

/// `GET /workers`
pub(super) async fn workers(State(app): Shared, Query(query): Query) -> Answer {
    let asked = app.door.names_query(&query)?;
    let registry = app.engine.vitals().registry;
    let all = app.read(move |read| query::workers(read, &registry)).await?;
    let (workers, next) = page(all, &asked, |view| &view.worker);
    reply::large_json(StatusCode::OK, move || WorkerList {
        workers: workers.into_iter().map(worker).collect(),
        next,
    })
    .await
}

fn worker(seen: WorkerView) -> WorkerInfo {
    let at = |told: fn(&WorkerSeen) -> Option<Timestamp>| seen.seen.as_ref().and_then(told).map(view::time);
    let last_seen_at = at(|seen| Some(seen.last_seen_at()));
    let (last_claim_at, last_report_at) = (at(|seen| seen.last_claim_at), at(|seen| seen.last_report_at));
    let (queues, types, version) =
        seen.seen.map_or((None, None, None), |seen| (seen.queues, seen.types, seen.agent));
    WorkerInfo {
        worker_id: seen.worker,
        last_seen_at,
        last_claim_at,
        last_report_at,
        queues,
        types,
        version,
        running: u32::try_from(seen.holds.len()).unwrap_or(u32::MAX),
        jobs: seen.holds.iter().take(limits::WORKER_JOBS_SHOWN).filter_map(held).collect(),
    }
}

fn held(row: &JobRow) -> Option<WorkerJob> {
    let lease = row.job.lease.as_ref()?;
    Some(WorkerJob {
        id: row.job.id.0,
        job_type: row.lane.kind.to_string(),
        queue: row.lane.queue.to_string(),
        attempt: row.job.attempt,
        claimed_at: view::time(lease.claimed_at),
        lease_expires_at: view::time(lease.expires_at),
        progress: row.note.progress.as_ref().map(view::progress),
    })
}

/// `GET /stats`
pub(super) async fn stats(State(app): Shared, _: NoQuery) -> Answer {
    let (vitals, now) = (app.engine.vitals(), app.clock.now());
    let registry = vitals.registry.clone();
    let (overview, queues, facts) = app
        .read(move |read| {
            Ok((query::overview(read, now)?, query::queues(read, &registry, now)?, read.facts()?))
        })
        .await?;
    let Overview { tally, oldest_ready } = overview;
    let last_claim_at = queues.iter().filter_map(|queue| queue.last_claim_at).max();
    let (commits, requests) = app.metrics.commits();
    reply::json(
        StatusCode::OK,
        &Stats {
            now: view::time(now),
            started_at: view::time(app.started_at),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            draining: vitals.draining,
            counts: counts(&tally),
            oldest_ready_age_seconds: oldest_ready.map(|since| view::age(since, now)),
            last_claim_age_seconds: last_claim_at.map(|at| view::age(at, now)),
            totals: totals(&tally),
            commits: CommitStats { commits, requests, parked_claims: whole(vitals.parked) },
            store: store(facts),
            services: services(&vitals, app.metrics.last_look()),
        },
    )
}

fn store(facts: StoreFacts) -> StoreStats {
    StoreStats {
        kind: facts.engine,
        schema: facts.schema,
        size_bytes: i64::try_from(facts.bytes).ok(),
        wal_bytes: i64::try_from(facts.wal_bytes).ok(),
        damaged_rows: i64::try_from(facts.damaged_rows).unwrap_or(i64::MAX),
    }
}

fn services(vitals: &Vitals, looked: Option<Timestamp>) -> Vec<ServiceStats> {
    let report = vitals.retention.map(|(at, total)| ServiceStats {
        name: "retention".to_owned(),
        last_run_at: Some(view::time(at)),
        report: Some(format!(
            "{} jobs and {} idempotency keys deleted since the start",
            total.jobs, total.keys
        )),
    });
    let alerts = looked.map(|at| ServiceStats {
        name: "alerts".to_owned(),
        last_run_at: Some(view::time(at)),
        report: None,
    });
    report.into_iter().chain(alerts).collect()
}

fn whole(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
