//! `tagwerk enqueue`: one job from flags, or many from a file.

use std::path::PathBuf;

use tagwerk_client::api::answer::Enqueued;
use tagwerk_client::api::request::{EnqueueRequest, Priority, RetrySettings, Subject};
use tagwerk_client::api::{IdempotencyScope, Jitter, OnDuplicate, OnHeadFailure, OnMismatch};
use tagwerk_client::api::{OnUnknown, Seconds, Time};

use super::connect::Remote;
use super::exit::Exit;
use super::failure::{Failure, note};
use super::values::{json, named, priority, seconds, subject, time};
use super::{bulk, show};

const EXAMPLES: &str = "Examples:
  tagwerk enqueue send-invoice --payload '{\"order\": 4711}' --idempotency-key order-4711-paid
  tagwerk enqueue report --payload @report.json --queue slow --run-at 2026-07-01T03:00:00+02:00
  jq -c . order.json | tagwerk enqueue import --payload - --max-retries 0
  tagwerk enqueue --bulk jobs.ndjson

A job needs only its type. Lengths of time are seconds, or 90s, 5m, 2h, 7d.
With --bulk each line of the file is a job as POST /jobs takes it, such as {\"type\": \"import\"}.
Give each an idempotency_key: then a bulk that was interrupted is simply started again.";

/// What is said of one job and has no place beside a file of many.
const JOB_FLAGS: [&str; 31] = [
    "job_type",
    "payload",
    "queue",
    "priority",
    "idempotency_key",
    "idempotency_scope",
    "idempotency_ttl",
    "on_duplicate",
    "on_mismatch",
    "delay",
    "run_at",
    "max_age",
    "expires_at",
    "max_retries",
    "max_lease_losses",
    "lease",
    "timeout",
    "retry_base",
    "retry_factor",
    "retry_cap",
    "retry_jitter",
    "on_unknown",
    "subject",
    "subject_version",
    "supersede",
    "correlation_id",
    "traceparent",
    "ordering_key",
    "on_head_failure",
    "limits",
    "fair_key",
];

/// Enqueue a job, or many from a file.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Enqueue {
    /// What to do: send-invoice
    #[arg(value_name = "TYPE", required_unless_present = "bulk")]
    job_type: Option<String>,
    /// Enqueue every line of this file (- for stdin) as a job
    #[arg(long, value_name = "FILE", conflicts_with_all = JOB_FLAGS)]
    bulk: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    remote: Remote,
}

/// Everything that can be said of one job.
#[derive(Debug, clap::Args)]
struct Options {
    /// Any JSON, or @FILE, or - for stdin; default: {}
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    payload: Option<String>,
    /// The capacity it draws on
    #[arg(long)]
    queue: Option<String>,
    /// low, medium, high, critical, or 0 to 100; higher goes first
    #[arg(long, value_name = "LEVEL", value_parser = priority)]
    priority: Option<Priority>,
    /// Stable name of the business operation: the same key makes the job once
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// How long the key holds
    #[arg(long, value_name = "SCOPE", value_parser = named(IdempotencyScope::NAMES, IdempotencyScope::from_name))]
    idempotency_scope: Option<IdempotencyScope>,
    /// For scope ttl: how long after the end of the job
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    idempotency_ttl: Option<Seconds>,
    /// What to do when the key is known
    #[arg(long, value_name = "WHAT", value_parser = named(OnDuplicate::NAMES, OnDuplicate::from_name))]
    on_duplicate: Option<OnDuplicate>,
    /// What to do when the key is known and the content differs
    #[arg(long, value_name = "WHAT", value_parser = named(OnMismatch::NAMES, OnMismatch::from_name))]
    on_mismatch: Option<OnMismatch>,
    /// Not before this time has passed
    #[arg(long, value_name = "TIME", value_parser = seconds, conflicts_with = "run_at")]
    delay: Option<Seconds>,
    /// Not before this instant, with its zone: 2026-07-01T12:00:00Z
    #[arg(long, value_name = "INSTANT", value_parser = time)]
    run_at: Option<Time>,
    /// If it is still pending after this time, it goes to review instead
    #[arg(long, value_name = "TIME", value_parser = seconds, conflicts_with = "expires_at")]
    max_age: Option<Seconds>,
    /// If it is still pending at this instant, it goes to review instead
    #[arg(long, value_name = "INSTANT", value_parser = time)]
    expires_at: Option<Time>,
    /// Retries allowed
    #[arg(long, value_name = "N")]
    max_retries: Option<u32>,
    /// The lost lease that ends it
    #[arg(long, value_name = "N")]
    max_lease_losses: Option<u32>,
    /// Length of a lease, if the claim names none
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    lease: Option<Seconds>,
    /// Hard limit of one attempt
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    timeout: Option<Seconds>,
    #[command(flatten)]
    retry: RetryFlags,
    /// What an unknown outcome leads to
    #[arg(long, value_name = "WHAT", value_parser = named(OnUnknown::NAMES, OnUnknown::from_name))]
    on_unknown: Option<OnUnknown>,
    /// The business object that it is about: order:4711
    #[arg(long, value_name = "KIND:ID", value_parser = subject)]
    subject: Option<Subject>,
    /// Version of the business object
    #[arg(long, value_name = "N", requires = "subject")]
    subject_version: Option<i64>,
    /// A higher version makes jobs with lower ones out of date: those that wait are cancelled
    #[arg(long, requires = "subject_version")]
    supersede: bool,
    /// Ties together what belongs together across systems
    #[arg(long, value_name = "ID")]
    correlation_id: Option<String>,
    /// W3C trace context
    #[arg(long, value_name = "TEXT")]
    traceparent: Option<String>,
    /// Jobs with the same key run one after the other
    #[arg(long, value_name = "KEY")]
    ordering_key: Option<String>,
    /// What its failure means for the jobs behind it
    #[arg(long, value_name = "WHAT", requires = "ordering_key",
        value_parser = named(OnHeadFailure::NAMES, OnHeadFailure::from_name))]
    on_head_failure: Option<OnHeadFailure>,
    /// A limit that it keeps to: crm, or crm:tenant-42 for a partition; up to two
    #[arg(long = "limit", value_name = "NAME")]
    limits: Vec<String>,
    /// Jobs of different keys take turns within their queue and priority
    #[arg(long, value_name = "KEY")]
    fair_key: Option<String>,
}

/// The back-off before retries, for jobs and types.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_field_names, reason = "the names are the flags' names")]
pub(crate) struct RetryFlags {
    /// Wait before the first retry
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    retry_base: Option<Seconds>,
    /// Each further wait is longer by this factor
    #[arg(long, value_name = "FACTOR")]
    retry_factor: Option<f64>,
    /// No wait is longer
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    retry_cap: Option<Seconds>,
    /// How chance spreads the waits
    #[arg(long, value_name = "KIND", value_parser = named(Jitter::NAMES, Jitter::from_name))]
    retry_jitter: Option<Jitter>,
}

impl RetryFlags {
    /// What was given over what was there.
    pub(crate) fn over(&self, before: Option<RetrySettings>) -> Option<RetrySettings> {
        let before = before.unwrap_or_default();
        let settings = RetrySettings {
            base_seconds: self.retry_base.or(before.base_seconds),
            factor: self.retry_factor.or(before.factor),
            cap_seconds: self.retry_cap.or(before.cap_seconds),
            jitter: self.retry_jitter.or(before.jitter),
        };
        (settings != RetrySettings::default()).then_some(settings)
    }
}

impl Enqueue {
    /// The command.
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        if let Some(file) = self.bulk {
            return bulk::run(&file, &self.remote).await;
        }
        let request = self.options.request(self.job_type.unwrap_or_default())?;
        let answer = self.remote.client()?.enqueue(&request).await?;
        let rewritten = matches!(&answer.value, Enqueued::Job(job) if job.replaced == Some(true));
        if answer.value.payload_differs() && !rewritten {
            note("warning: the job of this key was made from other content, and that content counts");
        }
        if self.remote.json {
            return show::print(&answer.text);
        }
        let (id, outcome) = (answer.value.id(), outcome(&answer.value, answer.status));
        show::print(&format!("job {id} {outcome}"))
    }
}

/// In a few words.
fn outcome(enqueued: &Enqueued, status: u16) -> String {
    match enqueued {
        Enqueued::Job(job) if status == 201 => match job.summary.superseded_by {
            Some(newer) => format!("created cancelled: job {newer} has a newer version"),
            None => "created".to_owned(),
        },
        Enqueued::Job(job) if job.replaced == Some(true) => "existed and was rewritten".to_owned(),
        Enqueued::Job(job) => format!("existed already and is {}", job.summary.status),
        Enqueued::Pruned(pruned) => {
            format!("existed already, was {} and is deleted", pruned.tombstone.status)
        }
    }
}

impl Options {
    fn request(self, job_type: String) -> Result<EnqueueRequest, Failure> {
        let version = self.subject_version;
        Ok(EnqueueRequest {
            job_type,
            payload: self.payload.map(|text| json("--payload", &text)).transpose()?,
            queue: self.queue,
            priority: self.priority,
            delay_seconds: self.delay,
            run_at: self.run_at,
            max_age_seconds: self.max_age,
            expires_at: self.expires_at,
            max_retries: self.max_retries,
            max_lease_losses: self.max_lease_losses,
            lease_seconds: self.lease,
            timeout_seconds: self.timeout,
            retry: self.retry.over(None),
            on_unknown: self.on_unknown,
            idempotency_key: self.idempotency_key,
            idempotency_scope: self.idempotency_scope,
            idempotency_ttl_seconds: self.idempotency_ttl,
            on_duplicate: self.on_duplicate,
            on_mismatch: self.on_mismatch,
            subject: self.subject.map(|subject| Subject { version, ..subject }),
            correlation_id: self.correlation_id,
            traceparent: self.traceparent,
            supersede: self.supersede.then_some(true),
            ordering_key: self.ordering_key,
            on_head_failure: self.on_head_failure,
            limits: Some(self.limits).filter(|limits| !limits.is_empty()),
            fair_key: self.fair_key,
        })
    }
}
