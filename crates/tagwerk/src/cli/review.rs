//! `tagwerk review`: what failed, and what is to become of it.

use std::collections::BTreeMap;

use tagwerk_client::api::answer::{JobSummary, ReviewPage};
use tagwerk_client::api::query::ReviewQuery;
use tagwerk_client::api::request::{Assumed, DiscardRequest, RetryRequest};
use tagwerk_client::api::{Assume, ErrorClass, FailureReason, Time};
use tagwerk_client::{Client, Error};

use super::connect::Remote;
use super::exit::Exit;
use super::failure::Failure;
use super::job_name::JobName;
use super::jobs::{Each, about, blocked, onward, rest, runs};
use super::show::{self, line, maybe_time, short};
use super::table::table;
use super::values::{json, named, time};

/// Width of the error's column.
const ERROR_CHARS: usize = 60;

/// Decide about failed jobs.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Review {
    /// List failed jobs, oldest first; every filter that is given must hold
    List(Box<List>),
    /// Run failed jobs again: same id, same key, new retries
    Retry(Retry),
    /// Give failed jobs up, with a reason
    Discard(Discard),
}

/// Filters and a page.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// What they do
    #[arg(long = "type", value_name = "TYPE")]
    job_type: Option<String>,
    /// The capacity that they draw on
    #[arg(long)]
    queue: Option<String>,
    /// How their failure is to be understood
    #[arg(long, value_parser = named(ErrorClass::NAMES, ErrorClass::from_name))]
    class: Option<ErrorClass>,
    /// Why they are in review
    #[arg(long, value_parser = named(FailureReason::NAMES, FailureReason::from_name))]
    reason: Option<FailureReason>,
    /// Failed at or after this instant
    #[arg(long, value_name = "INSTANT", value_parser = time)]
    since: Option<Time>,
    /// Failed before this instant
    #[arg(long, value_name = "INSTANT", value_parser = time)]
    until: Option<Time>,
    /// At most this many, up to 1000
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Go on behind this id
    #[arg(long, value_name = "ID")]
    after: Option<i64>,
    #[command(flatten)]
    remote: Remote,
}

/// What to run again, and how.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tagwerk review retry 17 --note \"the API is back\"
  tagwerk review retry key:order-4711-paid --payload @fixed.json
  tagwerk review list --type send-invoice --json | jq -r '.jobs[].id' | xargs tagwerk review retry")]
pub(crate) struct Retry {
    /// The jobs: their ids, or key:IDEMPOTENCY-KEY
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<JobName>,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// A new payload: JSON, or @FILE, or - for stdin; the old one is kept in the store
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    payload: Option<String>,
    /// A new number of retries
    #[arg(long, value_name = "N")]
    max_retries: Option<u32>,
    /// Also if a newer version has superseded it
    #[arg(long)]
    force: bool,
    /// What you have found out about its effects in doubt: that they happened or not, all of them or one
    #[arg(long, value_name = "done|not_done|NAME=done|NAME=not_done", value_parser = found)]
    assume: Vec<Found>,
    /// The version that you looked at; without it the job is read now
    #[arg(long, value_name = "VERSION")]
    seen_version: Option<i64>,
    #[command(flatten)]
    remote: Remote,
}

/// `done`, or `NAME=done`.
#[derive(Clone, Debug)]
struct Found {
    effect: Option<String>,
    assume: Assume,
}

fn found(text: &str) -> Result<Found, String> {
    let (effect, word) = match text.rsplit_once('=') {
        Some((effect, word)) => (Some(effect.to_owned()), word),
        None => (None, text),
    };
    let assume = Assume::from_name(word).ok_or("say done or not_done, or NAME=done or NAME=not_done")?;
    Ok(Found { effect, assume })
}

/// All that was found out, which is the same about all effects or something about each that is named.
fn assumed(found: Vec<Found>) -> Result<Option<Assumed>, Failure> {
    let mixed = || {
        Failure::usage(
            "--assume says something about all effects and something else besides",
            "give it once as done or not_done, or once for each effect as NAME=done or NAME=not_done",
        )
    };
    let mut named = BTreeMap::new();
    let count = found.len();
    for Found { effect, assume } in found {
        match effect {
            None if count == 1 => return Ok(Some(Assumed::All(assume))),
            None => return Err(mixed()),
            Some(effect) => {
                if named.insert(effect, assume).is_some_and(|before| before != assume) {
                    return Err(mixed());
                }
            }
        }
    }
    Ok((!named.is_empty()).then_some(Assumed::Named(named)))
}

/// What to give up, and why.
#[derive(Debug, clap::Args)]
pub(crate) struct Discard {
    /// The jobs: their ids, or key:IDEMPOTENCY-KEY
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<JobName>,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Free the idempotency key, whatever its scope says
    #[arg(long)]
    free_key: bool,
    /// The version that you looked at; without it the job is read now
    #[arg(long, value_name = "VERSION")]
    seen_version: Option<i64>,
    #[command(flatten)]
    remote: Remote,
}

impl Review {
    /// The command.
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::List(list) => list.run().await,
            Self::Retry(retry) => retry.run().await,
            Self::Discard(discard) => discard.run().await,
        }
    }
}

impl List {
    async fn run(self) -> Result<Exit, Failure> {
        let mut query = ReviewQuery {
            job_type: self.job_type,
            queue: self.queue,
            class: self.class,
            reason: self.reason,
            since: self.since,
            until: self.until,
            limit: self.limit,
            after: self.after,
        };
        let client = self.remote.client()?;
        let answer = loop {
            let answer = client.review(&query).await?;
            let ReviewPage { jobs, damaged, next } = &answer.value;
            match onward(jobs, damaged, next.as_deref()) {
                Some(after) => query.after = Some(after),
                None => break answer,
            }
        };
        if self.remote.json {
            return show::print(&answer.text);
        }
        let rows = answer.value.jobs.iter().map(row);
        let header = ["ID", "TYPE", "REASON", "RUN", "FAILED", "BLOCKS", "ABOUT", "ERROR"];
        show::print(&table(header, rows.collect(), "nothing to review"))?;
        Ok(rest(&answer.value.damaged, answer.value.next.as_deref()))
    }
}

fn row(job: &JobSummary) -> [String; 8] {
    [
        job.id.to_string(),
        line(&job.job_type),
        job.failure.map_or("-", |failure| failure.reason.name()).to_owned(),
        runs(job),
        maybe_time(job.finished_at),
        job.blocks.map_or_else(|| "-".to_owned(), blocked),
        about(job),
        job.error.as_deref().map_or_else(|| "-".to_owned(), |error| short(error, ERROR_CHARS)),
    ]
}

impl Retry {
    async fn run(self) -> Result<Exit, Failure> {
        let client = self.remote.client()?;
        let payload = self.payload.map(|text| json("--payload", &text)).transpose()?;
        let assume = assumed(self.assume)?;
        let mut each = Each::new(&self.remote);
        for job in self.jobs {
            let Some(id) = each.id(&client, &job).await? else { continue };
            let outcome = match version(&client, id, self.seen_version).await {
                Ok(seen_version) => {
                    let request = RetryRequest {
                        seen_version,
                        note: self.note.clone(),
                        payload: payload.clone(),
                        max_retries: self.max_retries,
                        force: self.force.then_some(true),
                        assume: assume.clone(),
                    };
                    client.retry(id, &request).await
                }
                Err(error) => Err(error),
            };
            each.take(id, outcome)?;
        }
        Ok(each.exit)
    }
}

impl Discard {
    async fn run(self) -> Result<Exit, Failure> {
        let client = self.remote.client()?;
        let mut each = Each::new(&self.remote);
        for job in self.jobs {
            let Some(id) = each.id(&client, &job).await? else { continue };
            let outcome = match version(&client, id, self.seen_version).await {
                Ok(version) => {
                    let request = DiscardRequest {
                        reason: self.reason.clone(),
                        free_key: self.free_key.then_some(true),
                        seen_version: Some(version),
                    };
                    client.discard(id, &request).await
                }
                Err(error) => Err(error),
            };
            each.take(id, outcome)?;
        }
        Ok(each.exit)
    }
}

/// The version that was looked at, or the one that the job has now.
async fn version(client: &Client, id: i64, seen: Option<i64>) -> Result<i64, Error> {
    match seen {
        Some(version) => Ok(version),
        None => Ok(client.job(id).await?.value.summary.version),
    }
}
