//! `tagwerk limits`: how many jobs may run or start under a name.

use tagwerk_client::Client;
use tagwerk_client::api::answer::{LimitInfo, LimitUse};
use tagwerk_client::api::problem::Code;
use tagwerk_client::api::request::{LimitSettings, OpenLimitRequest, RateSettings};

use super::connect::Remote;
use super::exit::Exit;
use super::failure::Failure;
use super::jobs::rest;
use super::overview::Page;
use super::show::{self, duration, line, maybe_time, time};
use super::table::{list, table};
use super::values::rate;

/// List limits, make, change and delete them.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Limits {
    /// List every limit: what it bounds and what runs under it
    List(Page),
    /// Show a limit, and each of its partitions in use: what runs, how many may start, when it opens
    Show(One),
    /// Make a limit or change one; what is not named stays as it is
    Set(Set),
    /// Lift what workers have held back: of one partition, or of the limit with all its partitions
    Open(Open),
    /// Delete a limit that neither an unfinished job nor a type names
    Delete(One),
}

/// One limit.
#[derive(Debug, clap::Args)]
pub(crate) struct One {
    /// The limit, without a partition
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    remote: Remote,
}

/// What to open.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tagwerk limits open crm
  tagwerk limits open crm:tenant-42")]
pub(crate) struct Open {
    /// The limit, with all its partitions, or one of them
    #[arg(value_name = "NAME[:PARTITION]")]
    limit: String,
    #[command(flatten)]
    remote: Remote,
}

/// What to set.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tagwerk limits set crm --max-running 5
  tagwerk limits set crm --rate 20/1s
  tagwerk limits set sms --rate 600/1m --spread
  tagwerk limits set crm --unset rate")]
pub(crate) struct Set {
    /// The limit, without a partition; the settings hold for each partition by itself
    #[arg(value_name = "NAME")]
    name: String,
    /// Jobs that may run at the same time
    #[arg(long, value_name = "N")]
    max_running: Option<u32>,
    /// Jobs that may start within any period of this length: 20/1s, 600/1m
    #[arg(long, value_name = "COUNT/TIME", value_parser = rate)]
    rate: Option<RateSettings>,
    /// Space the starts evenly
    #[arg(long, requires = "rate")]
    spread: bool,
    /// Bound this no longer
    #[arg(long, value_name = "SETTING", value_parser = clap::builder::PossibleValuesParser::new(["max-running", "rate"]))]
    unset: Vec<String>,
    #[command(flatten)]
    remote: Remote,
}

impl Limits {
    /// The command.
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::List(page) => limits(page).await,
            Self::Show(one) => {
                let answer = one.remote.client()?.limit(&one.name).await?;
                print(&one.remote, &answer)
            }
            Self::Set(set) => set.run().await,
            Self::Open(open) => {
                let parts = open.limit.split_once(':').map(|(name, partition)| (name, partition.to_owned()));
                let (name, partition) = parts.map_or((&*open.limit, None), |(name, of)| (name, Some(of)));
                let answer = open.remote.client()?.open_limit(name, &OpenLimitRequest { partition }).await?;
                print(&open.remote, &answer)
            }
            Self::Delete(one) => {
                let answer = one.remote.client()?.delete_limit(&one.name).await?;
                let told = format!("limit {} is deleted", line(&answer.value.name));
                show::print(if one.remote.json { &answer.text } else { &told })
            }
        }
    }
}

fn print(remote: &Remote, answer: &tagwerk_client::Answer<LimitInfo>) -> Result<Exit, Failure> {
    if remote.json { show::print(&answer.text) } else { show::print(&view(&answer.value)) }
}

async fn limits(page: Page) -> Result<Exit, Failure> {
    let answer = page.remote.client()?.limits(&page.query()).await?;
    if page.remote.json {
        return show::print(&answer.text);
    }
    let rows = answer.value.limits.iter().map(|limit| {
        let most = limit.settings.max_running.map_or_else(|| "-".to_owned(), |most| most.to_string());
        let rate = limit.settings.rate.as_ref().map_or_else(|| "-".to_owned(), pace);
        let throttled = if limit.throttled == 0 { "-".to_owned() } else { limit.throttled.to_string() };
        [line(&limit.name), limit.running.to_string(), most, rate, limit.partitions.to_string(), throttled]
    });
    let header = ["LIMIT", "RUNNING", "MAX RUNNING", "RATE", "PARTITIONS", "THROTTLED"];
    show::print(&table(header, rows.collect(), "no limits"))?;
    Ok(rest(&[], answer.value.next.as_deref()))
}

impl Set {
    async fn run(self) -> Result<Exit, Failure> {
        let client = self.remote.client()?;
        let before = current(&client, &self.name).await?;
        let is_unset = |name: &str| self.unset.iter().any(|given| given == name);
        let spread = Some(self.spread);
        let rate = self.rate.map(|rate| RateSettings { spread, ..rate }).or(before.rate);
        let settings = LimitSettings {
            max_running: self.max_running.or(before.max_running).filter(|_| !is_unset("max-running")),
            rate: rate.filter(|_| !is_unset("rate")),
        };
        let answer = client.put_limit(&self.name, &settings).await?;
        print(&self.remote, &answer)
    }
}

/// The settings that the limit has now.
async fn current(client: &Client, name: &str) -> Result<LimitSettings, Failure> {
    match client.limit(name).await {
        Ok(answer) => Ok(answer.value.settings),
        Err(error) if error.code() == Some(Code::LimitNotFound) => Ok(LimitSettings::default()),
        Err(error) => Err(error.into()),
    }
}

fn view(limit: &LimitInfo) -> String {
    let settings = &limit.settings;
    let nothing = settings.max_running.is_none() && settings.rate.is_none();
    let facts = list(vec![
        ("limit", Some(line(&limit.name))),
        ("bounds", nothing.then(|| "nothing; a worker can hold it back all the same".to_owned())),
        ("max running", settings.max_running.map(|most| most.to_string())),
        ("rate", settings.rate.as_ref().map(pace)),
        ("running", Some(limit.running.to_string())),
    ]);
    let uses = limit.uses.as_deref().unwrap_or_default();
    if uses.is_empty() {
        return facts;
    }
    let more = limit.partitions.saturating_sub(uses.len() as u64);
    let more = if more == 0 { String::new() } else { format!("\n… and {more} more") };
    let header = ["PARTITION", "RUNNING", "MAY START", "CLOSED BY", "OPENS"];
    format!("{facts}\n\n{}{more}", table(header, uses.iter().map(used).collect(), ""))
}

fn used(used: &LimitUse) -> [String; 5] {
    [
        used.partition.as_deref().map_or_else(|| "-".to_owned(), line),
        used.running.to_string(),
        used.open.map_or_else(|| "any".to_owned(), |open| open.to_string()),
        used.closed.map_or_else(|| "-".to_owned(), |closed| closed.to_string()),
        used.opens_at.map_or_else(|| maybe_time(None), time),
    ]
}

/// `20 in 1 s`, `600 in 1 m 0 s, evenly spaced`
fn pace(rate: &RateSettings) -> String {
    let spread = if rate.spread == Some(true) { ", evenly spaced" } else { "" };
    format!("{} in {}{spread}", rate.count, duration(rate.per_seconds))
}
