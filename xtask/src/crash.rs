//! `cargo xtask crash`: the full run of the crash harness.
//!
//! The harness itself is module `crash` of the binary's integration tests; the tests run it shortly each time. Here
//! it only gets more rounds. Its variables: `TAGWERK_CRASH_ROUNDS`, `TAGWERK_CRASH_CLIENTS`, `TAGWERK_CRASH_SECONDS`, and
//! `TAGWERK_CRASH_SEED`, which a failed run names and which is passed on as it is. What needs a program that is missing is left
//! out by name and said.

use std::process::ExitCode;

use anyhow::Context;

use crate::requirement::{self, WantedBy};
use crate::{command, tally};

/// How hard to try.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    rounds: u32,
    clients: u32,
    seconds: u32,
    build: Build,
}

/// Which binary is killed.
#[derive(Debug, PartialEq, Eq)]
enum Build {
    Debug,
    Release,
}

/// Runs the harness; fails also when no harness was found, since that would prove nothing.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let plan = parse(arguments)?;
    let mut command = cargo_test(&plan);
    for missing in requirement::provide()?.into_iter().filter(|row| row.wanted_by == WantedBy::Tests) {
        println!("not run: tests named needs_{}", missing.name);
        command.arg("--skip").arg(format!("needs_{}", missing.name));
    }
    println!("==> {}", command::typed(&command));
    let (good, lines) = command::watched(&mut command)?;
    let ran = tally::total(&lines).map_or(0, |tally| tally.passed + tally.failed);
    anyhow::ensure!(
        !good || ran > 0,
        "no test in the module `crash` of crates/tagwerk/tests: nothing was run"
    );
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads the options.
fn parse(arguments: &[String]) -> anyhow::Result<Plan> {
    let mut plan = Plan { rounds: 100, clients: 32, seconds: 3, build: Build::Debug };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let target = match word.as_str() {
            "--release" => {
                plan.build = Build::Release;
                continue;
            }
            "--rounds" => &mut plan.rounds,
            "--clients" => &mut plan.clients,
            "--seconds" => &mut plan.seconds,
            unknown => anyhow::bail!("unknown option `{unknown}`: see `cargo xtask help`"),
        };
        let value = words.next().with_context(|| format!("`{word}` wants a number"))?;
        *target = value.parse().with_context(|| format!("`{word} {value}`: that is no number"))?;
        anyhow::ensure!(*target > 0, "`{word} 0` would prove nothing");
    }
    Ok(plan)
}

/// The call of the harness.
fn cargo_test(plan: &Plan) -> std::process::Command {
    let mut words = vec!["test", "--package", "tagwerk", "--locked", "--test", "it"];
    if plan.build == Build::Release {
        words.push("--release");
    }
    words.extend(["--", "crash::", "--nocapture", "--test-threads=1"]);
    let mut command = command::cargo(&words);
    command
        .env("TAGWERK_CRASH_ROUNDS", plan.rounds.to_string())
        .env("TAGWERK_CRASH_CLIENTS", plan.clients.to_string())
        .env("TAGWERK_CRASH_SECONDS", plan.seconds.to_string());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> anyhow::Result<Plan> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn defaults_are_the_full_run() -> anyhow::Result<()> {
        assert_eq!(parsed("")?, Plan { rounds: 100, clients: 32, seconds: 3, build: Build::Debug });
        Ok(())
    }

    #[test]
    fn options_are_read() -> anyhow::Result<()> {
        let plan = parsed("--rounds 7 --release --clients 2 --seconds 1")?;
        assert_eq!(plan, Plan { rounds: 7, clients: 2, seconds: 1, build: Build::Release });
        Ok(())
    }

    #[test]
    fn nonsense_is_refused() {
        for line in ["--rounds", "--rounds many", "--rounds 0", "--fast", "7"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
