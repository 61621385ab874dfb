//! A system under test: its servers, its driver, and what is known about it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::driver::{Driver, Outcome};
use crate::measure::Measure;
use crate::processes::{Process, Roster, program};

/// What a system is to the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Tagwerk.
    Product,
    /// As fast as it could be.
    Ceiling,
    /// What others use.
    Peer,
}

/// How a system is made empty.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reset {
    /// Its driver can do it.
    Ask,
    /// It is started anew in a fresh folder.
    Restart,
}

/// Where everything is.
#[derive(Clone)]
pub(crate) struct Place {
    /// Of the repository.
    pub(crate) root: PathBuf,
    /// Of this run; gone afterwards.
    pub(crate) folder: PathBuf,
    /// All processes.
    pub(crate) roster: Roster,
    /// The product's binary.
    pub(crate) tagwerk: PathBuf,
    /// Our own.
    pub(crate) own: PathBuf,
}

impl Place {
    /// A call of our own binary.
    pub(crate) fn own(&self, words: &[&str]) -> Command {
        let mut command = program(&self.own);
        command.args(words);
        command
    }

    /// A fresh folder.
    pub(crate) fn fresh(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// Where a system writes what it has to say.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    /// Starts one of our own drivers.
    pub(crate) fn drive(&self, name: &str, target: &str) -> anyhow::Result<Driver> {
        Driver::start(&self.roster, self.own(&["drive", name, target]), &self.log(name))
    }

    /// Starts a driver in JavaScript.
    pub(crate) fn node(&self, folder: &Path, words: [&str; 2]) -> anyhow::Result<Driver> {
        let [name, target] = words;
        let mut command = program("node");
        command.arg(format!("{name}.mjs")).arg(target).current_dir(folder);
        Driver::start(&self.roster, command, &self.log(name))
    }
}

/// What the report says about a system.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) version: String,
    /// What was set, and how it is used.
    pub(crate) settings: Vec<String>,
}

/// A system under test, frozen unless it is its turn. Fields drop in this order: the driver ends before its servers.
pub(crate) struct Subject {
    pub(crate) about: About,
    pub(crate) measures: &'static [Measure],
    pub(crate) reset: Reset,
    pub(crate) driver: Driver,
    pub(crate) servers: Vec<Process>,
    /// Jobs that wait in it.
    pub(crate) pending: u64,
}

impl Subject {
    /// It may run.
    pub(crate) fn thaw(&self) {
        self.servers.iter().for_each(Process::thaw);
        self.driver.process.thaw();
    }

    /// It may not.
    pub(crate) fn freeze(&self) {
        self.driver.process.freeze();
        self.servers.iter().for_each(Process::freeze);
    }

    /// Jobs for a drain.
    pub(crate) fn fill(&mut self, wanted: u64) -> anyhow::Result<()> {
        if wanted <= self.pending {
            return Ok(());
        }
        let order = json!({"do": "fill", "jobs": wanted - self.pending});
        match self.driver.ask(&order, &self.servers)? {
            Outcome::Done(answer) => {
                self.pending += answer.value["total"].as_u64().unwrap_or_default();
                Ok(())
            }
            Outcome::Absent(what) | Outcome::Failed(what) => anyhow::bail!("filling it: {what}"),
        }
    }

    /// Nothing waits in it any more. Only for those whose driver can do it.
    pub(crate) fn empty(&mut self) -> anyhow::Result<()> {
        self.pending = 0;
        match self.driver.ask(&json!({"do": "reset"}), &self.servers)? {
            Outcome::Done(_) => Ok(()),
            Outcome::Absent(what) | Outcome::Failed(what) => anyhow::bail!("emptying it: {what}"),
        }
    }
}
