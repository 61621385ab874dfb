//! `tagwerk jobs`: list, show, explain, cancel jobs, wait for one.

mod view;

pub(super) use view::{about, blocked, runs};

use std::time::Duration;

use tagwerk_client::api::answer::{DamagedJob, Job, JobSummary, JobsPage};
use tagwerk_client::api::query::{AttemptsQuery, JobsQuery};
use tagwerk_client::api::request::{CancelRequest, UnblockRequest};
use tagwerk_client::api::{Seconds, Status, Time};
use tagwerk_client::{Answer, Client, Error};
use tagwerk_core::limits;
use tagwerk_engine::ports::Clock;

use super::connect::{PATIENCE, Remote};
use super::exit::Exit;
use super::failure::{Failure, Told, note};
use super::job_name::JobName;
use super::show;
use super::values::{named, seconds, time};
use crate::system::SystemClock;

/// List, show, explain, cancel, unblock jobs, or wait for one.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Jobs {
    /// List jobs, oldest first; every filter that is given must hold
    List(Box<List>),
    /// Show a job with payload and result, and the history of its attempts
    Show(One),
    /// Show the history of a job: every attempt, and what operators did
    Attempts(Attempts),
    /// Say why a job stands where it stands, and what would move it
    Explain(One),
    /// Cancel jobs that have not ended
    Cancel(Cancel),
    /// Let the jobs behind failed ones with an ordering key go on; the failed ones stay in review
    Unblock(Unblock),
    /// Wait until a job is completed, failed or cancelled; exit code 0 only if it was completed
    Wait(Wait),
}

/// Filters and a page.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tagwerk jobs list --status failed --type send-invoice
  tagwerk jobs list --subject-kind order --subject-id 4711
  tagwerk jobs list --json --limit 1000 | jq -r '.jobs[].id'")]
pub(crate) struct List {
    /// Where they stand
    #[arg(long, value_parser = named(Status::NAMES, Status::from_name))]
    status: Option<Status>,
    /// What they do
    #[arg(long = "type", value_name = "TYPE")]
    job_type: Option<String>,
    /// The capacity that they draw on
    #[arg(long)]
    queue: Option<String>,
    /// Kind of their business object
    #[arg(long, value_name = "KIND")]
    subject_kind: Option<String>,
    /// Id of their business object
    #[arg(long, value_name = "ID")]
    subject_id: Option<String>,
    /// Their correlation id
    #[arg(long, value_name = "ID")]
    correlation_id: Option<String>,
    /// Their idempotency key
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Created at or after this instant
    #[arg(long, value_name = "INSTANT", value_parser = time)]
    since: Option<Time>,
    /// Created before this instant
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

/// One job.
#[derive(Debug, clap::Args)]
pub(crate) struct One {
    /// The job: its id, or key:IDEMPOTENCY-KEY
    #[arg(value_name = "JOB")]
    job: JobName,
    #[command(flatten)]
    remote: Remote,
}

/// One job's history.
#[derive(Debug, clap::Args)]
pub(crate) struct Attempts {
    /// The job: its id, or key:IDEMPOTENCY-KEY
    #[arg(value_name = "JOB")]
    job: JobName,
    /// At most this many, up to 1000
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Go on behind this lease
    #[arg(long, value_name = "SEQ")]
    after: Option<i64>,
    #[command(flatten)]
    remote: Remote,
}

/// What to cancel, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Cancel {
    /// The jobs: their ids, or key:IDEMPOTENCY-KEY
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<JobName>,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Leave a running attempt until its worker's next call
    #[arg(long)]
    wait: bool,
    /// Free the idempotency key, whatever its scope says
    #[arg(long)]
    free_key: bool,
    /// Only if the job still has this version
    #[arg(long, value_name = "VERSION")]
    seen_version: Option<i64>,
    #[command(flatten)]
    remote: Remote,
}

/// What no longer holds back others, and why.
#[derive(Debug, clap::Args)]
pub(crate) struct Unblock {
    /// The jobs: their ids, or key:IDEMPOTENCY-KEY
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<JobName>,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Only if the job still has this version
    #[arg(long, value_name = "VERSION")]
    seen_version: Option<i64>,
    #[command(flatten)]
    remote: Remote,
}

/// What to wait for, and how long.
#[derive(Debug, clap::Args)]
pub(crate) struct Wait {
    /// The job: its id, or key:IDEMPOTENCY-KEY
    #[arg(value_name = "JOB")]
    job: JobName,
    /// Give up after this time; without it, wait for ever
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    timeout: Option<Seconds>,
    #[command(flatten)]
    remote: Remote,
}

impl Jobs {
    /// The command.
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::List(list) => list.run().await,
            Self::Show(one) => one.show().await,
            Self::Attempts(attempts) => attempts.run().await,
            Self::Explain(one) => one.explain().await,
            Self::Cancel(cancel) => cancel.run().await,
            Self::Unblock(unblock) => unblock.run().await,
            Self::Wait(wait) => wait.run().await,
        }
    }
}

impl List {
    async fn run(self) -> Result<Exit, Failure> {
        let client = self.remote.client()?;
        let mut query = JobsQuery {
            status: self.status,
            job_type: self.job_type,
            queue: self.queue,
            subject_kind: self.subject_kind,
            subject_id: self.subject_id,
            correlation_id: self.correlation_id,
            idempotency_key: self.idempotency_key,
            since: self.since,
            until: self.until,
            limit: self.limit,
            after: self.after,
        };
        let answer = loop {
            let answer = client.jobs(&query).await?;
            let JobsPage { jobs, damaged, next } = &answer.value;
            match onward(jobs, damaged, next.as_deref()) {
                Some(after) => query.after = Some(after),
                None => break answer,
            }
        };
        if self.remote.json {
            return show::print(&answer.text);
        }
        show::print(&view::jobs(&answer.value.jobs))?;
        Ok(rest(&answer.value.damaged, answer.value.next.as_deref()))
    }
}

/// Behind which id to go on, if the page is empty and not the last: the server looks at a bounded number of rows for each.
pub(super) fn onward(jobs: &[JobSummary], damaged: &[DamagedJob], next: Option<&str>) -> Option<i64> {
    next.filter(|_| jobs.is_empty() && damaged.is_empty())?.parse().ok()
}

/// What a page cannot show.
pub(super) fn rest(damaged: &[DamagedJob], next: Option<&str>) -> Exit {
    for row in damaged {
        note(&format!("warning: the row of job {} cannot be read: {}", row.id, show::line(&row.detail)));
    }
    if let Some(next) = next {
        note(&format!("there are more: --after {next}"));
    }
    Exit::Done
}

impl One {
    async fn show(self) -> Result<Exit, Failure> {
        let client = self.remote.client()?;
        let id = self.job.id(&client).await?;
        let answer = client.job(id).await?;
        if self.remote.json {
            return show::print(&answer.text);
        }
        let history = client.attempts(id, &AttemptsQuery::default()).await?.value;
        let mut text = view::job(&answer.value);
        if !history.attempts.is_empty() || !history.actions.is_empty() {
            text = format!("{text}\n\n{}", view::history(&history));
        }
        show::print(&text)?;
        if let Some(next) = history.next {
            note(&format!("there are more attempts: tagwerk jobs attempts {id} --after {next}"));
        }
        Ok(Exit::Done)
    }

    async fn explain(self) -> Result<Exit, Failure> {
        let client = self.remote.client()?;
        let answer = client.explain(self.job.id(&client).await?).await?;
        if self.remote.json {
            return show::print(&answer.text);
        }
        show::print(&view::explain(&answer.value))
    }
}

impl Attempts {
    async fn run(self) -> Result<Exit, Failure> {
        let query = AttemptsQuery { limit: self.limit, after: self.after };
        let client = self.remote.client()?;
        let answer = client.attempts(self.job.id(&client).await?, &query).await?;
        if self.remote.json {
            return show::print(&answer.text);
        }
        show::print(&view::history(&answer.value))?;
        Ok(rest(&[], answer.value.next.as_deref()))
    }
}

impl Cancel {
    async fn run(self) -> Result<Exit, Failure> {
        let client = self.remote.client()?;
        let request = CancelRequest {
            wait: self.wait.then_some(true),
            reason: self.reason,
            free_key: self.free_key.then_some(true),
            seen_version: self.seen_version,
        };
        let mut each = Each::new(&self.remote);
        for job in self.jobs {
            if let Some(id) = each.id(&client, &job).await? {
                each.take(id, client.cancel(id, &request).await)?;
            }
        }
        Ok(each.exit)
    }
}

impl Unblock {
    async fn run(self) -> Result<Exit, Failure> {
        let client = self.remote.client()?;
        let request = UnblockRequest { reason: self.reason, seen_version: self.seen_version };
        let mut each = Each::new(&self.remote);
        for job in self.jobs {
            if let Some(id) = each.id(&client, &job).await? {
                each.take(id, client.unblock(id, &request).await)?;
            }
        }
        Ok(each.exit)
    }
}

/// An operator's call on several jobs: each is told by itself, and one that is refused does not keep the others.
pub(super) struct Each {
    json: bool,
    pub(super) exit: Exit,
}

impl Each {
    pub(super) const fn new(remote: &Remote) -> Self {
        Self { json: remote.json, exit: Exit::Done }
    }

    /// The id of the next one, if there is such a job.
    pub(super) async fn id(&mut self, client: &Client, job: &JobName) -> Result<Option<i64>, Failure> {
        match job.id(client).await {
            Ok(id) => Ok(Some(id)),
            Err(Failure::Told(told)) if told.exit == Exit::Refused => {
                told.say();
                self.exit = Exit::Refused;
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Tells what became of one. A server that is gone ends it all.
    pub(super) fn take(&mut self, id: i64, outcome: Result<Answer<Job>, Error>) -> Result<(), Failure> {
        match outcome {
            Ok(answer) if self.json => show::print(&answer.text).map(drop),
            Ok(answer) => show::print(&view::moved(&answer.value.summary)).map(drop),
            Err(error) if error.is_unreachable() => Err(error.into()),
            Err(error) => {
                let told = Told::from(&error);
                Told { message: format!("job {id}: {}", told.message), ..told }.say();
                self.exit = Exit::Refused;
                Ok(())
            }
        }
    }
}

impl Wait {
    async fn run(self) -> Result<Exit, Failure> {
        // A server that is not there at all is said at once; later on it may only be restarting.
        let mut client = self.remote.client()?;
        let id = self.job.id(&client).await?;
        let clock = SystemClock::new();
        let timeout = self.timeout.map(|timeout| Duration::from_millis(timeout.ms().unsigned_abs()));
        loop {
            let left = timeout.map(|timeout| timeout.saturating_sub(clock.monotonic()));
            let left_ms = left.map_or(limits::WAIT_MAX_MS, |left| {
                i64::try_from(left.as_millis()).unwrap_or(limits::WAIT_MAX_MS)
            });
            let wait = Seconds::from_ms(left_ms.min(limits::WAIT_MAX_MS));
            let answer = client.wait_for_job(id, wait).await?;
            client = client.with_retries(PATIENCE);
            let job = &answer.value.summary;
            let exit = match job.status {
                Status::Completed => Exit::Done,
                Status::Failed | Status::Cancelled => Exit::Refused,
                Status::Pending | Status::Running if left_ms <= wait.ms() && timeout.is_some() => {
                    Exit::TimeOver
                }
                Status::Pending | Status::Running => continue,
            };
            let text = if self.remote.json { answer.text } else { view::moved(job) };
            show::print(&text)?;
            return Ok(exit);
        }
    }
}
