//! What the server holds and does: workers, statistics, its interface.

use tagwerk_client::api::answer::{Counts, Stats, WorkerInfo};
use tagwerk_client::api::query::NamesQuery;

use super::connect::Remote;
use super::exit::Exit;
use super::failure::Failure;
use super::jobs::rest;
use super::show::{self, line, maybe, maybe_duration, maybe_time, time};
use super::table::{list, table};

/// Ids of held jobs that a row shows.
const HELD_SHOWN: usize = 5;

/// A page of names.
#[derive(Debug, clap::Args)]
pub(crate) struct Page {
    /// At most this many, up to 1000
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Go on behind this name
    #[arg(long, value_name = "NAME")]
    after: Option<String>,
    #[command(flatten)]
    pub(super) remote: Remote,
}

impl Page {
    pub(super) fn query(&self) -> NamesQuery {
        NamesQuery { limit: self.limit, after: self.after.clone() }
    }
}

/// `tagwerk workers`
pub(crate) async fn workers(page: Page) -> Result<Exit, Failure> {
    let answer = page.remote.client()?.workers(&page.query()).await?;
    if page.remote.json {
        return show::print(&answer.text);
    }
    let rows = answer.value.workers.iter().map(worker);
    let header = ["WORKER", "RUNNING", "JOBS", "LAST SEEN", "LAST CLAIM", "QUEUES", "TYPES", "VERSION"];
    show::print(&table(header, rows.collect(), "no workers were seen lately"))?;
    Ok(rest(&[], answer.value.next.as_deref()))
}

fn worker(worker: &WorkerInfo) -> [String; 8] {
    let names = |names: &Option<Vec<String>>| {
        names.as_ref().map_or_else(|| "all".to_owned(), |names| line(&names.join(",")))
    };
    let mut held: Vec<_> = worker.jobs.iter().take(HELD_SHOWN).map(|job| job.id.to_string()).collect();
    if worker.jobs.len() > HELD_SHOWN {
        held.push("…".to_owned());
    }
    [
        line(&worker.worker_id),
        worker.running.to_string(),
        if held.is_empty() { "-".to_owned() } else { held.join(",") },
        maybe_time(worker.last_seen_at),
        maybe_time(worker.last_claim_at),
        names(&worker.queues),
        names(&worker.types),
        maybe(worker.version.as_deref()),
    ]
}

/// `tagwerk stats`
pub(crate) async fn stats(remote: Remote) -> Result<Exit, Failure> {
    let answer = remote.client()?.stats().await?;
    show::print(&if remote.json { answer.text } else { view(&answer.value) })
}

fn view(stats: &Stats) -> String {
    let Counts { enqueued, pending, blocked, running, completed, failed, cancelled, pruned } = stats.counts;
    let (totals, commits, store) = (&stats.totals, &stats.commits, &stats.store);
    let mut rows = vec![
        ("server", Some(format!("tagwerk {}, since {}", line(&stats.version), time(stats.started_at)))),
        ("state", stats.draining.then(|| "shutting down".to_owned())),
        (
            "jobs",
            Some(format!(
                "{enqueued} enqueued: {pending} pending ({blocked} blocked), {running} running, {completed} completed"
            )),
        ),
        ("", Some(format!("{failed} failed (review), {cancelled} cancelled, {pruned} deleted"))),
        ("oldest ready", Some(maybe_duration(stats.oldest_ready_age_seconds))),
        ("last claim", Some(maybe_duration(stats.last_claim_age_seconds))),
        ("claims", Some(totals.claims.to_string())),
        (
            "reports",
            Some(format!(
                "{} completed, {} failed, {} released",
                totals.completions, totals.failures, totals.releases
            )),
        ),
        (
            "troubles",
            Some(format!(
                "{} retries, {} leases lost, {} time-outs, {} reviews",
                totals.retries, totals.lease_losses, totals.time_outs, totals.reviews
            )),
        ),
        (
            "commits",
            Some(format!(
                "{} for {} requests, {} claims wait",
                commits.commits, commits.requests, commits.parked_claims
            )),
        ),
        ("store", Some(line(&format!("{}, schema {}", store.kind, store.schema)))),
        ("", Some(format!("{}, write-ahead log {}", bytes(store.size_bytes), bytes(store.wal_bytes)))),
    ];
    for service in &stats.services {
        let report = service.report.as_deref().map(line).unwrap_or_default();
        rows.push(("service", Some(format!("{}: {report}", line(&service.name)))));
    }
    list(rows)
}

fn bytes(bytes: Option<i64>) -> String {
    bytes.map_or_else(|| "size unknown".to_owned(), |bytes| format!("{} KiB", bytes / 1024))
}

/// `tagwerk openapi`
pub(crate) async fn openapi(remote: Remote) -> Result<Exit, Failure> {
    show::print(&remote.client()?.openapi().await?.text)
}
