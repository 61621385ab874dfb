//! `tagwerk alerts`: what somebody should look at.

use tagwerk_client::api::answer::AlertInfo;
use tagwerk_client::api::query::AlertsQuery;
use tagwerk_client::api::request::AckRequest;
use tagwerk_client::api::{AlertStatus, AlertUnit, Seconds};

use super::connect::Remote;
use super::exit::Exit;
use super::failure::Failure;
use super::jobs::rest;
use super::show::{self, duration, line, maybe, time};
use super::table::table;

/// List alerts, or say that you look after one.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  tagwerk alerts
  tagwerk alerts --all --json | jq -r '.alerts[] | select(.kind == \"no_worker\") | .name'
  tagwerk alerts ack 3 --note 'the worker is being started'"
)]
pub(crate) struct Alerts {
    #[command(subcommand)]
    call: Option<AlertsCall>,
    #[command(flatten)]
    list: List,
}

/// What is done to an alert.
#[derive(Debug, clap::Subcommand)]
enum AlertsCall {
    /// Say that you look after it; it stays open until what it is about has ended
    Ack(Ack),
}

/// Which ones.
#[derive(Debug, clap::Args)]
struct List {
    /// Closed ones too
    #[arg(long)]
    all: bool,
    /// At most this many, up to 1000
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Go on behind this number
    #[arg(long, value_name = "N")]
    after: Option<i64>,
    #[command(flatten)]
    remote: Remote,
}

/// Which one.
#[derive(Debug, clap::Args)]
struct Ack {
    /// Its number
    #[arg(value_name = "ID")]
    id: i64,
    /// What will be done, for the others
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

impl Alerts {
    /// The command.
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        match self.call {
            None => self.list.run().await,
            Some(AlertsCall::Ack(ack)) => ack.run().await,
        }
    }
}

impl List {
    async fn run(self) -> Result<Exit, Failure> {
        let status = (!self.all).then_some(AlertStatus::Open);
        let query = AlertsQuery { status, limit: self.limit, after: self.after };
        let answer = self.remote.client()?.alerts(&query).await?;
        if self.remote.json {
            return show::print(&answer.text);
        }
        let rows = answer.value.alerts.iter().map(row);
        let header = ["ID", "KIND", "WHERE", "STATUS", "OPENED", "VALUE", "ACK", "OWNER", "DETAIL"];
        let none = if self.all { "nothing has rung" } else { "nothing rings" };
        show::print(&table(header, rows.collect(), none))?;
        Ok(rest(&[], answer.value.next.as_deref()))
    }
}

impl Ack {
    async fn run(self) -> Result<Exit, Failure> {
        let answer = self.remote.client()?.acknowledge(self.id, &AckRequest { note: self.note }).await?;
        if self.remote.json {
            return show::print(&answer.text);
        }
        let by = maybe(answer.value.acknowledged_by.as_deref());
        show::print(&format!("alert {} is looked after by {by}", answer.value.id))
    }
}

fn row(alert: &AlertInfo) -> [String; 9] {
    let name = alert.name.as_deref().map_or_else(String::new, |name| format!(" {}", line(name)));
    [
        alert.id.to_string(),
        alert.kind.to_string(),
        format!("{}{name}", alert.scope),
        alert.status.to_string(),
        time(alert.opened_at),
        figure(alert.value, alert.unit),
        maybe(alert.acknowledged_by.as_deref()),
        maybe(alert.owner.as_deref()),
        line(&alert.detail),
    ]
}

fn figure(value: f64, unit: AlertUnit) -> String {
    match unit {
        #[expect(clippy::cast_possible_truncation, reason = "a length of time in ms is far below 2^53")]
        AlertUnit::Seconds => duration(Seconds::from_ms((value * 1_000.0) as i64)),
        AlertUnit::Share => format!("{:.0} %", value * 100.0),
        AlertUnit::Count => format!("{value}"),
        AlertUnit::Bytes => format!("{:.0} MB", value / 1_000_000.0),
    }
}
