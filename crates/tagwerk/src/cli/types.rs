//! `tagwerk types`: defaults for the jobs of a type.

use tagwerk_client::api::answer::TypeInfo;
use tagwerk_client::api::problem::Code;
use tagwerk_client::api::request::{Priority, RetrySettings, TypeSettings};
use tagwerk_client::api::{IdempotencyScope, OnHeadFailure, OnUnknown, Seconds};
use tagwerk_client::{Client, Error};

use super::connect::Remote;
use super::enqueue::RetryFlags;
use super::exit::Exit;
use super::failure::Failure;
use super::jobs::rest;
use super::overview::Page;
use super::show::{self, counts, duration, line, maybe_duration};
use super::table::{list, table};
use super::values::{named, priority, seconds};

/// List types, and set defaults for their jobs.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Types {
    /// List every type that has settings or jobs
    List(Page),
    /// Show a type: its settings and its jobs
    Show(One),
    /// Set defaults for jobs that are enqueued from now on; what is not named stays as it is
    Set(Box<Set>),
    /// Remove all settings of a type; its jobs are not touched
    Delete(One),
}

/// One type.
#[derive(Debug, clap::Args)]
pub(crate) struct One {
    /// The type
    #[arg(value_name = "TYPE")]
    name: String,
    #[command(flatten)]
    remote: Remote,
}

/// What to set.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tagwerk types set send-invoice --max-retries 10 --retry-base 30s --owner billing@example.org
  tagwerk types set send-invoice --unset max-retries")]
pub(crate) struct Set {
    /// The type
    #[arg(value_name = "TYPE")]
    name: String,
    /// The queue
    #[arg(long)]
    queue: Option<String>,
    /// low, medium, high, critical, or 0 to 100; higher goes first
    #[arg(long, value_name = "LEVEL", value_parser = priority)]
    priority: Option<Priority>,
    /// Retries allowed
    #[arg(long, value_name = "N")]
    max_retries: Option<u32>,
    /// The lost lease that ends a job
    #[arg(long, value_name = "N")]
    max_lease_losses: Option<u32>,
    /// Length of a lease
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
    /// All workers of the type deal with what an earlier attempt may have done
    #[arg(long)]
    handles_verify: bool,
    /// If a job is still pending after this time, it goes to review instead
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    max_age: Option<Seconds>,
    /// How long idempotency keys hold
    #[arg(long, value_name = "SCOPE", value_parser = named(IdempotencyScope::NAMES, IdempotencyScope::from_name))]
    idempotency_scope: Option<IdempotencyScope>,
    /// For scope ttl: how long after the end of a job
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    idempotency_ttl: Option<Seconds>,
    /// Whom to ask about these jobs
    #[arg(long, value_name = "TEXT")]
    owner: Option<String>,
    /// A queue that its jobs may go to; repeat it for more. Others are refused
    #[arg(long = "allow-queue", value_name = "QUEUE")]
    queues: Option<Vec<String>>,
    /// The highest priority that a job may ask for
    #[arg(long, value_name = "LEVEL", value_parser = priority)]
    priority_ceiling: Option<Priority>,
    /// Largest payload in bytes
    #[arg(long, value_name = "BYTES")]
    payload_max_bytes: Option<u32>,
    /// A limit of jobs that name none, NAME or NAME:PARTITION; twice for two
    #[arg(long = "limit", value_name = "LIMIT")]
    limits: Option<Vec<String>>,
    /// Jobs that have no fair key take turns under this one
    #[arg(long, value_name = "KEY")]
    fair_key: Option<String>,
    /// Jobs that have no ordering key run one after the other under this one
    #[arg(long, value_name = "KEY")]
    ordering_key: Option<String>,
    /// What the failure of a job with an ordering key means for those behind it
    #[arg(long, value_name = "WHAT", value_parser = named(OnHeadFailure::NAMES, OnHeadFailure::from_name))]
    on_head_failure: Option<OnHeadFailure>,
    /// Go back to the server's default for this setting
    #[arg(long, value_name = "SETTING", value_parser = clap::builder::PossibleValuesParser::new(UNSET.map(|(name, _)| name)))]
    unset: Vec<String>,
    #[command(flatten)]
    remote: Remote,
}

/// Takes a setting back.
type Unset = fn(&mut TypeSettings);

/// How each setting is taken back.
const UNSET: [(&str, Unset); 20] = [
    ("queue", |settings| settings.queue = None),
    ("priority", |settings| settings.priority = None),
    ("max-retries", |settings| settings.max_retries = None),
    ("max-lease-losses", |settings| settings.max_lease_losses = None),
    ("lease", |settings| settings.lease_seconds = None),
    ("timeout", |settings| settings.timeout_seconds = None),
    ("retry", |settings| settings.retry = None),
    ("on-unknown", |settings| settings.on_unknown = None),
    ("handles-verify", |settings| settings.handles_verify = None),
    ("max-age", |settings| settings.max_age_seconds = None),
    ("idempotency-scope", |settings| settings.idempotency_scope = None),
    ("idempotency-ttl", |settings| settings.idempotency_ttl_seconds = None),
    ("owner", |settings| settings.owner = None),
    ("allow-queue", |settings| settings.queues = None),
    ("priority-ceiling", |settings| settings.priority_ceiling = None),
    ("payload-max-bytes", |settings| settings.payload_max_bytes = None),
    ("limit", |settings| settings.limits = None),
    ("fair-key", |settings| settings.fair_key = None),
    ("ordering-key", |settings| settings.ordering_key = None),
    ("on-head-failure", |settings| settings.on_head_failure = None),
];

impl Types {
    /// The command.
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::List(page) => types(page).await,
            Self::Show(one) => {
                let answer = one.remote.client()?.job_type(&one.name).await?;
                print(&one.remote, &answer)
            }
            Self::Set(set) => set.run().await,
            Self::Delete(one) => {
                let answer = one.remote.client()?.delete_type(&one.name).await?;
                print(&one.remote, &answer)
            }
        }
    }
}

fn print(remote: &Remote, answer: &tagwerk_client::Answer<TypeInfo>) -> Result<Exit, Failure> {
    if remote.json { show::print(&answer.text) } else { show::print(&view(&answer.value)) }
}

async fn types(page: Page) -> Result<Exit, Failure> {
    let answer = page.remote.client()?.types(&page.query()).await?;
    if page.remote.json {
        return show::print(&answer.text);
    }
    let rows = answer.value.types.iter().map(|info| {
        let [pending, blocked, running, failed, completed, cancelled] = counts(&info.counts);
        let oldest = maybe_duration(info.oldest_ready_age_seconds);
        let settings = if info.configured { "own" } else { "default" };
        let name = line(&info.job_type);
        [name, pending, blocked, running, failed, completed, cancelled, oldest, settings.to_owned()]
    });
    let header = [
        "TYPE",
        "PENDING",
        "BLOCKED",
        "RUNNING",
        "FAILED",
        "COMPLETED",
        "CANCELLED",
        "OLDEST READY",
        "SETTINGS",
    ];
    show::print(&table(header, rows.collect(), "no types"))?;
    Ok(rest(&[], answer.value.next.as_deref()))
}

impl Set {
    async fn run(self) -> Result<Exit, Failure> {
        let client = self.remote.client()?;
        let before = current(&client, &self.name).await?;
        let mut settings = TypeSettings {
            queue: self.queue.or(before.queue),
            priority: self.priority.or(before.priority),
            max_retries: self.max_retries.or(before.max_retries),
            max_lease_losses: self.max_lease_losses.or(before.max_lease_losses),
            lease_seconds: self.lease.or(before.lease_seconds),
            timeout_seconds: self.timeout.or(before.timeout_seconds),
            retry: self.retry.over(before.retry),
            on_unknown: self.on_unknown.or(before.on_unknown),
            handles_verify: self.handles_verify.then_some(true).or(before.handles_verify),
            max_age_seconds: self.max_age.or(before.max_age_seconds),
            idempotency_scope: self.idempotency_scope.or(before.idempotency_scope),
            idempotency_ttl_seconds: self.idempotency_ttl.or(before.idempotency_ttl_seconds),
            owner: self.owner.or(before.owner),
            queues: self.queues.or(before.queues),
            priority_ceiling: self.priority_ceiling.or(before.priority_ceiling),
            payload_max_bytes: self.payload_max_bytes.or(before.payload_max_bytes),
            limits: self.limits.or(before.limits),
            fair_key: self.fair_key.or(before.fair_key),
            ordering_key: self.ordering_key.or(before.ordering_key),
            on_head_failure: self.on_head_failure.or(before.on_head_failure),
        };
        for (_, unset) in UNSET.iter().filter(|(name, _)| self.unset.iter().any(|given| given == name)) {
            unset(&mut settings);
        }
        let answer = client.put_type(&self.name, &settings).await?;
        print(&self.remote, &answer)
    }
}

/// The settings that the type has now.
async fn current(client: &Client, name: &str) -> Result<TypeSettings, Error> {
    match client.job_type(name).await {
        Ok(answer) => Ok(answer.value.settings),
        Err(error) if error.code() == Some(Code::TypeNotFound) => Ok(TypeSettings::default()),
        Err(error) => Err(error),
    }
}

fn view(info: &TypeInfo) -> String {
    let settings = &info.settings;
    let length = |length: Option<Seconds>| length.map(duration);
    let [pending, blocked, running, failed, completed, cancelled] = counts(&info.counts);
    let jobs = format!(
        "{pending} pending ({blocked} blocked), {running} running, {failed} failed, {completed} completed, {cancelled} cancelled"
    );
    let none = (!info.configured).then(|| "none of its own; the server's defaults hold".to_owned());
    list(vec![
        ("type", Some(line(&info.job_type))),
        ("jobs", Some(jobs)),
        ("oldest ready", info.oldest_ready_age_seconds.map(duration)),
        ("settings", none),
        ("owner", settings.owner.as_deref().map(line)),
        ("queue", settings.queue.as_deref().map(line)),
        ("priority", settings.priority.map(level)),
        ("allowed queues", settings.queues.as_ref().map(|names| names.join(", "))),
        ("priority ceiling", settings.priority_ceiling.map(level)),
        ("payload", settings.payload_max_bytes.map(|bytes| format!("at most {bytes} bytes"))),
        ("limits", settings.limits.as_ref().map(|names| line(&names.join(", ")))),
        ("fair key", settings.fair_key.as_deref().map(line)),
        ("ordering key", settings.ordering_key.as_deref().map(line)),
        ("if the head fails", settings.on_head_failure.map(|what| what.to_string())),
        ("max retries", settings.max_retries.map(|retries| retries.to_string())),
        ("max lease losses", settings.max_lease_losses.map(|losses| losses.to_string())),
        ("lease", length(settings.lease_seconds)),
        ("timeout", length(settings.timeout_seconds)),
        ("back-off", settings.retry.as_ref().map(backoff)),
        ("handles verify", settings.handles_verify.map(|is| if is { "yes" } else { "no" }.to_owned())),
        ("if unknown", settings.on_unknown.map(|what| what.to_string())),
        ("max age", length(settings.max_age_seconds)),
        ("key scope", settings.idempotency_scope.map(|scope| scope.to_string())),
        ("key ttl", length(settings.idempotency_ttl_seconds)),
    ])
}

fn level(priority: Priority) -> String {
    match priority {
        Priority::Label(label) => label.to_string(),
        Priority::Number(number) => number.to_string(),
    }
}

/// `base 5 s, factor 2, cap 1 h 0 m, jitter equal`; what is not set is left out.
pub(super) fn backoff(retry: &RetrySettings) -> String {
    let parts = [
        retry.base_seconds.map(|base| format!("base {}", duration(base))),
        retry.factor.map(|factor| format!("factor {factor}")),
        retry.cap_seconds.map(|cap| format!("cap {}", duration(cap))),
        retry.jitter.map(|jitter| format!("jitter {jitter}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
