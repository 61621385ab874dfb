//! `tagwerk audit`: what operators did.

use tagwerk_client::api::Time;
use tagwerk_client::api::answer::AuditEntry;
use tagwerk_client::api::query::AuditQuery;

use super::connect::Remote;
use super::exit::Exit;
use super::failure::Failure;
use super::jobs::rest;
use super::show::{self, line, maybe, time as shown};
use super::table::table;
use super::values::time;

/// A page of the audit log.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tagwerk audit --since 2026-07-01T00:00:00Z
  tagwerk audit --json | jq -r '.entries[] | select(.action == \"job.delete\") | .target'")]
pub(crate) struct Audit {
    /// Done at or after this instant
    #[arg(long, value_name = "INSTANT", value_parser = time)]
    since: Option<Time>,
    /// Done before this instant
    #[arg(long, value_name = "INSTANT", value_parser = time)]
    until: Option<Time>,
    /// At most this many, up to 1000
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Go on behind this number
    #[arg(long, value_name = "N")]
    after: Option<i64>,
    #[command(flatten)]
    remote: Remote,
}

impl Audit {
    /// The command.
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let query = AuditQuery { since: self.since, until: self.until, limit: self.limit, after: self.after };
        let answer = self.remote.client()?.audit(&query).await?;
        if self.remote.json {
            return show::print(&answer.text);
        }
        let rows = answer.value.entries.iter().map(row);
        let header = ["N", "AT", "WHO", "ACTION", "TARGET", "NOTE"];
        show::print(&table(header, rows.collect(), "nobody did anything"))?;
        Ok(rest(&[], answer.value.next.as_deref()))
    }
}

fn row(entry: &AuditEntry) -> [String; 6] {
    [
        entry.n.to_string(),
        shown(entry.at),
        line(&entry.who),
        line(&entry.action),
        line(&entry.target),
        maybe(entry.note.as_deref()),
    ]
}
