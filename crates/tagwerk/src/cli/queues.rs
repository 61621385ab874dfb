//! `tagwerk queues`: what waits in them, and pause, bounds and drain.

use tagwerk_client::Answer;
use tagwerk_client::api::answer::{QueueInfo, QueuePause};
use tagwerk_client::api::problem::Code;
use tagwerk_client::api::request::{
    DrainRequest, PauseRequest, Priority, QueueSettings, Reserve, ResumeRequest,
};
use tagwerk_client::{Client, Error};

use super::connect::Remote;
use super::exit::Exit;
use super::failure::Failure;
use super::jobs::rest;
use super::overview::Page;
use super::show::{self, counts, line, maybe_duration, time};
use super::table::{list, table};
use super::values::priority;

/// List queues; pause, bound and drain them.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Queues {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    page: Page,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List queues: what waits, since when, and who asked last (as `tagwerk queues` alone does)
    List(Page),
    /// Show a queue: its jobs, its bounds, and who has paused or drained it
    Show(One),
    /// Set bounds; what is not named stays as it is
    Set(Set),
    /// Hand out none of its jobs for a reason; running ones go on, and producers are served
    Pause(Pause),
    /// Lift a reason; the queue goes on when none is left
    Resume(Resume),
    /// Refuse new jobs while what is there is worked off
    Drain(Drain),
    /// Take new jobs again
    Open(One),
}

/// One queue.
#[derive(Debug, clap::Args)]
struct One {
    /// The queue
    #[arg(value_name = "QUEUE")]
    name: String,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tagwerk queues set mail --max-depth 100000
  tagwerk queues set mail --max-running 4 --reserve 1 --reserve-from critical
  tagwerk queues set mail --unset max-depth")]
struct Set {
    #[command(flatten)]
    one: One,
    /// Jobs that may run at the same time
    #[arg(long, value_name = "N")]
    max_running: Option<u32>,
    /// Slots of these that only urgent jobs may use
    #[arg(long, value_name = "SLOTS", requires = "reserve_from")]
    reserve: Option<u32>,
    /// What is urgent: this priority and above
    #[arg(long, value_name = "LEVEL", value_parser = priority, requires = "reserve")]
    reserve_from: Option<Priority>,
    /// Jobs that may be pending or running; producers are refused beyond it
    #[arg(long, value_name = "N")]
    max_depth: Option<i64>,
    /// Take a bound back
    #[arg(long, value_name = "BOUND", value_parser = ["max-running", "reserve", "max-depth"])]
    unset: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct Pause {
    #[command(flatten)]
    one: One,
    /// Why, in a few words; `resume` lifts it by this name
    #[arg(long)]
    reason: String,
    /// Who says so
    #[arg(long, value_name = "WHO")]
    by: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Resume {
    #[command(flatten)]
    one: One,
    /// Which reason, if there are several
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Drain {
    #[command(flatten)]
    one: One,
    /// Why
    #[arg(long)]
    reason: Option<String>,
    /// Who says so
    #[arg(long, value_name = "WHO")]
    by: Option<String>,
}

impl Queues {
    /// The command.
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let (remote, answer) = match self.command.unwrap_or(Command::List(self.page)) {
            Command::List(page) => return queues(page).await,
            Command::Show(one) => {
                let answer = one.remote.client()?.queue(&one.name).await?;
                (one.remote, answer)
            }
            Command::Set(set) => set.run().await?,
            Command::Pause(Pause { one, reason, by }) => {
                let answer = one.remote.client()?.pause(&one.name, &PauseRequest { reason, by }).await?;
                (one.remote, answer)
            }
            Command::Resume(Resume { one, reason }) => {
                let answer = one.remote.client()?.resume(&one.name, &ResumeRequest { reason }).await?;
                (one.remote, answer)
            }
            Command::Drain(Drain { one, reason, by }) => {
                let answer = one.remote.client()?.drain(&one.name, &DrainRequest { reason, by }).await?;
                (one.remote, answer)
            }
            Command::Open(one) => {
                let answer = one.remote.client()?.open(&one.name).await?;
                (one.remote, answer)
            }
        };
        if remote.json { show::print(&answer.text) } else { show::print(&view(&answer.value)) }
    }
}

async fn queues(page: Page) -> Result<Exit, Failure> {
    let answer = page.remote.client()?.queues(&page.query()).await?;
    if page.remote.json {
        return show::print(&answer.text);
    }
    let rows = answer.value.queues.iter().map(|queue| {
        let [pending, blocked, running, failed, completed, cancelled] = counts(&queue.counts);
        let oldest = maybe_duration(queue.oldest_ready_age_seconds);
        let last = maybe_duration(queue.last_claim_age_seconds);
        let state = state(queue).to_owned();
        let name = line(&queue.queue);
        [name, pending, blocked, running, failed, completed, cancelled, oldest, last, state]
    });
    let header = [
        "QUEUE",
        "PENDING",
        "BLOCKED",
        "RUNNING",
        "FAILED",
        "COMPLETED",
        "CANCELLED",
        "OLDEST READY",
        "LAST CLAIM",
        "STATE",
    ];
    show::print(&table(header, rows.collect(), "no queues"))?;
    Ok(rest(&[], answer.value.next.as_deref()))
}

const fn state(queue: &QueueInfo) -> &'static str {
    match (queue.paused.is_empty(), queue.draining.is_some(), queue.drained) {
        (false, false, _) => "paused",
        (false, true, _) => "paused, draining",
        (true, _, true) => "drained",
        (true, true, false) => "draining",
        (true, false, false) => "open",
    }
}

impl Set {
    async fn run(self) -> Result<(Remote, Answer<QueueInfo>), Failure> {
        let client = self.one.remote.client()?;
        let before = current(&client, &self.one.name).await?;
        let reserve = self
            .reserve
            .zip(self.reserve_from)
            .map(|(slots, from_priority)| Reserve { slots, from_priority });
        let keep = |bound: &str| !self.unset.iter().any(|given| given == bound);
        let settings = QueueSettings {
            max_running: self.max_running.or(before.max_running).filter(|_| keep("max-running")),
            reserve: reserve.or(before.reserve).filter(|_| keep("reserve")),
            max_depth: self.max_depth.or(before.max_depth).filter(|_| keep("max-depth")),
        };
        let answer = client.put_queue(&self.one.name, &settings).await?;
        Ok((self.one.remote, answer))
    }
}

/// The bounds that the queue has now.
async fn current(client: &Client, name: &str) -> Result<QueueSettings, Error> {
    match client.queue(name).await {
        Ok(answer) => Ok(answer.value.settings),
        Err(error) if error.code() == Some(Code::QueueNotFound) => Ok(QueueSettings::default()),
        Err(error) => Err(error),
    }
}

fn view(queue: &QueueInfo) -> String {
    let [pending, blocked, running, failed, completed, cancelled] = counts(&queue.counts);
    let settings = &queue.settings;
    let by = |by: &Option<String>| by.as_ref().map_or_else(String::new, |by| format!(" by {}", line(by)));
    let reason =
        |pause: &QueuePause| format!("{}, since {}{}", line(&pause.reason), time(pause.since), by(&pause.by));
    let mut rows = vec![
        ("queue", Some(line(&queue.queue))),
        ("state", Some(state(queue).to_owned())),
        (
            "jobs",
            Some(format!("{pending} pending ({blocked} blocked), {running} running, {completed} completed")),
        ),
        ("", Some(format!("{failed} failed (review), {cancelled} cancelled"))),
        ("oldest ready", Some(maybe_duration(queue.oldest_ready_age_seconds))),
        ("last claim", Some(maybe_duration(queue.last_claim_age_seconds))),
        ("max running", settings.max_running.map(|max| max.to_string())),
        (
            "reserve",
            settings.reserve.as_ref().map(|reserve| {
                let from = match reserve.from_priority {
                    Priority::Label(label) => label.name().to_owned(),
                    Priority::Number(number) => number.to_string(),
                };
                format!("{} slots from priority {from}", reserve.slots)
            }),
        ),
        ("max depth", settings.max_depth.map(|max| max.to_string())),
    ];
    rows.extend(queue.paused.iter().map(|pause| ("paused", Some(reason(pause)))));
    rows.push((
        "draining",
        queue.draining.as_ref().map(|drain| {
            let reason =
                drain.reason.as_ref().map_or_else(String::new, |reason| format!("{}, ", line(reason)));
            format!("{reason}since {}{}", time(drain.since), by(&drain.by))
        }),
    ));
    list(rows)
}
