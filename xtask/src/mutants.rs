//! `cargo xtask mutants`: small changes to the code, one at a time, each of which some test should notice.
//!
//! What no test notices is either a missing test or explained in `docs/mutants.md`.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Context;
use serde_json::Value;

use crate::{command, system, tool};

const TOOL: tool::Crate = tool::Crate { name: "cargo-mutants", version: "27.1.0" };

/// The crate whose rules matter most.
const PACKAGE: &str = "tagwerk-core";

/// Runs it over a crate, or over the named files of it.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let (package, files) = parse(arguments)?;
    let program = match TOOL.provide() {
        Ok(program) => program,
        Err(why) => return Ok(tool::not_run("mutants", &why)),
    };
    let folder = system::root().join("target/mutants").join(&package);
    std::fs::create_dir_all(&folder)?;
    let words = ["mutants", "--no-shuffle", "--timeout", "120", "--jobs", "1", "--package", &package];
    let mut call = command::program(&program.display().to_string(), &words);
    call.arg("--output").arg(&folder);
    if command::answers(&["cargo", "nextest", "--version"]) {
        call.args(["--test-tool", "nextest"]);
    }
    for file in &files {
        call.args(["--file", file]);
    }
    // It ends with a code of its own for survivors; the summary says more.
    command::succeeds(&mut tool::polite(call))?;
    let outcomes = folder.join("mutants.out/outcomes.json");
    let text = std::fs::read_to_string(&outcomes).with_context(|| format!("{}", outcomes.display()))?;
    let summary = Summary::of(&serde_json::from_str(&text)?);
    // As when the tests fail on the code as it is.
    anyhow::ensure!(summary.tested() > 0, "no mutant was tested: see target/mutants/{package}/mutants.out");
    print!("{}", summary.text());
    println!("all of it: target/mutants/{package}/mutants.out");
    Ok(if summary.survivors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The crate, and files of it.
fn parse(arguments: &[String]) -> anyhow::Result<(String, Vec<String>)> {
    let mut package = PACKAGE.to_owned();
    let mut files = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--package" => package.clone_from(words.next().context("`--package` wants the name of a crate")?),
            unknown if unknown.starts_with('-') => {
                anyhow::bail!("unknown option `{unknown}`: see `cargo xtask help`")
            }
            file => files.push(file.to_owned()),
        }
    }
    Ok((package, files))
}

/// What became of the mutants.
#[derive(Debug, PartialEq, Eq)]
struct Summary {
    /// Noticed by a test, or by the time that the tests then took.
    killed: u64,
    /// Those that did not compile prove nothing.
    unviable: u64,
    /// Noticed by nobody.
    survivors: Vec<String>,
}

impl Summary {
    fn of(report: &Value) -> Self {
        let count = |name: &str| report[name].as_u64().unwrap_or_default();
        let outcomes = report["outcomes"].as_array().map(Vec::as_slice).unwrap_or_default();
        let survivors = outcomes
            .iter()
            .filter(|outcome| outcome["summary"] == "MissedMutant")
            .filter_map(|outcome| outcome["scenario"]["Mutant"]["name"].as_str().map(ToOwned::to_owned))
            .collect();
        Self { killed: count("caught") + count("timeout"), unviable: count("unviable"), survivors }
    }

    /// All that compiled.
    fn tested(&self) -> u64 {
        self.killed + u64::try_from(self.survivors.len()).unwrap_or_default()
    }

    fn text(&self) -> String {
        let all = self.tested();
        let tenths = (self.killed * 1000).checked_div(all).unwrap_or_default();
        let mut text = String::new();
        for name in &self.survivors {
            let _ = writeln!(text, "survived: {name}");
        }
        let (killed, unviable) = (self.killed, self.unviable);
        let share = format!("{}.{} %", tenths / 10, tenths % 10);
        let _ = writeln!(text, "{killed} of {all} mutants killed ({share}), {unviable} did not compile");
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_summary_counts_what_was_noticed_and_names_what_was_not() {
        let mutant =
            |name: &str, summary: &str| json!({"scenario": {"Mutant": {"name": name}}, "summary": summary});
        let report = json!({
            "caught": 2, "timeout": 1, "missed": 1, "unviable": 5,
            "outcomes": [
                {"scenario": "Baseline", "summary": "Success"},
                mutant("a.rs:1:2: replace < with <=", "CaughtMutant"),
                mutant("a.rs:3:4: replace + with -", "MissedMutant"),
            ],
        });
        let summary = Summary::of(&report);
        assert_eq!(summary.survivors, ["a.rs:3:4: replace + with -"]);
        assert!(summary.text().ends_with("3 of 4 mutants killed (75.0 %), 5 did not compile\n"));
    }

    #[test]
    fn nothing_was_tested_if_the_code_as_it_is_fails() {
        let report = json!({
            "caught": 0, "timeout": 0, "missed": 0, "unviable": 0,
            "outcomes": [{"scenario": "Baseline", "summary": "Failure"}],
        });
        assert_eq!(Summary::of(&report).tested(), 0);
    }

    #[test]
    fn arguments() -> anyhow::Result<()> {
        assert_eq!(parse(&[])?, ("tagwerk-core".to_owned(), Vec::new()));
        let given = ["--package", "tagwerk-engine", "work.rs"].map(str::to_owned);
        assert_eq!(parse(&given)?, ("tagwerk-engine".to_owned(), vec!["work.rs".to_owned()]));
        assert!(parse(&["--fast".to_owned()]).is_err());
        assert!(parse(&["--package".to_owned()]).is_err());
        Ok(())
    }
}
