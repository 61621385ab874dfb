//! `tagwerk check`: opens the store itself and proves that it is sound.

use std::path::Path;

use serde_json::json;
use tagwerk_engine::query::check::{Checked, Depth, check};
use tagwerk_engine::store::Readers;
use tagwerk_sqlite::SqliteStore;

use super::exit::Exit;
use super::failure::Failure;
use super::show;
use crate::config::{Config, ConfigArgs, StoreUrl};

/// Prove that a store is sound.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Nothing is changed, and a server may run meanwhile. Exit code 0: clean; 1: there are findings.

Examples:
  tagwerk check --store sqlite:tagwerk.db
  tagwerk check --store sqlite:tagwerk.db --integrity --json"
)]
pub(crate) struct Check {
    #[command(flatten)]
    config: ConfigArgs,
    /// Also read everything that the database itself can check; takes time on a large store
    #[arg(long)]
    integrity: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Check {
    /// The command.
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let config = Config::load(&self.config, &[])?;
        let path = match &config.store {
            StoreUrl::Sqlite(path) => path,
            StoreUrl::Postgres(_) => {
                return Err(Failure::usage(
                    "this version opens SQLite stores only",
                    "name one with --store sqlite:FILE",
                ));
            }
        };
        let depth = if self.integrity { Depth::Integrity } else { Depth::Jobs };
        let checked = look(path, depth)?;
        let clean = checked.findings.is_empty();
        let text = if self.json { as_json(&checked) } else { as_text(&checked, path) };
        show::print(&text)?;
        Ok(if clean { Exit::Done } else { Exit::Refused })
    }
}

fn look(path: &Path, depth: Depth) -> Result<Checked, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::machine(format!("cannot check {}: {error}", path.display()), String::new())
    };
    let readers = SqliteStore::open_read_only(path).map_err(|error| failed(&error))?;
    let mut snapshot = readers.snapshot().map_err(|error| failed(&error))?;
    check(&mut *snapshot, depth).map_err(|error| failed(&error))
}

fn as_json(checked: &Checked) -> String {
    let findings: Vec<_> = checked
        .findings
        .iter()
        .map(|finding| json!({"code": finding.code, "detail": finding.detail}))
        .collect();
    json!({"jobs": checked.jobs, "lanes": checked.lanes, "findings": findings, "more": checked.more})
        .to_string()
}

fn as_text(checked: &Checked, path: &Path) -> String {
    let mut lines: Vec<String> = checked
        .findings
        .iter()
        .map(|finding| format!("{}: {}", finding.code, show::line(&finding.detail)))
        .collect();
    if checked.more > 0 {
        lines.push(format!("and {} more of the same kinds", checked.more));
    }
    let found = checked.findings.len() as u64 + checked.more;
    let verdict = if found == 0 { "clean".to_owned() } else { format!("{found} findings") };
    lines.push(format!(
        "{}: {verdict} ({} jobs, {} ledger rows)",
        path.display(),
        checked.jobs,
        checked.lanes
    ));
    lines.join("\n")
}
