//! `cargo xtask instructions`: what enqueue, claim and complete cost the committer, in machine instructions a job.
//!
//! Seconds depend on who else uses the machine; callgrind counts the same for the same work. It does not see what the
//! system does for the process (reads, writes, syncs), and an instruction is not a constant time: compare builds, not
//! machines.

use std::process::{ExitCode, Stdio};

use anyhow::Context;

use crate::{command, system};

/// Functions of the example `engine_cost` whose instructions are counted, and what they are.
const PHASES: [(&str, &str); 6] = [
    ("enqueue_one", "enqueue, one a call, 64 calls a batch"),
    ("claim_one", "claim, one a call, 64 calls a batch"),
    ("complete_one", "complete, one a call, 64 calls a batch"),
    ("enqueue_bulk", "enqueue, 100 a call"),
    ("claim_bulk", "claim, 100 a call"),
    ("complete_bulk", "complete, 100 a call"),
];
/// A multiple of both batch sizes.
const JOBS: u64 = 3_200;

/// Counts and prints.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(arguments.is_empty(), "`instructions` takes no arguments, not `{}`", arguments.join(" "));
    if !command::answers(&["valgrind", "--version"]) {
        println!("not run: valgrind is missing (Debian: apt-get install valgrind)");
        return Ok(ExitCode::FAILURE);
    }
    let mut build =
        command::cargo(&["build", "--release", "-p", "tagwerk-sqlite", "--example", "engine_cost"]);
    anyhow::ensure!(command::succeeds(&mut build)?, "the example cannot be built");
    println!("instructions a job   what (SQLite, payload of 150 bytes, half with a key)");
    for (phase, what) in PHASES {
        println!("{:>18}   {what}", count(phase)? / JOBS);
    }
    Ok(ExitCode::SUCCESS)
}

/// All instructions of one phase.
fn count(phase: &str) -> anyhow::Result<u64> {
    let example = system::root().join("target/release/examples/engine_cost");
    let mut valgrind = command::program("valgrind", &["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(format!("--toggle-collect=*engine_cost::{phase}*")).arg(example).arg(JOBS.to_string());
    let ended = valgrind.stdout(Stdio::null()).output().context("valgrind cannot be started")?;
    let report = String::from_utf8_lossy(&ended.stderr);
    anyhow::ensure!(ended.status.success(), "valgrind failed: {report}");
    collected(&report).with_context(|| format!("valgrind has not counted {phase}: {report}"))
}

/// The number behind `Collected :`.
fn collected(report: &str) -> Option<u64> {
    let line = report.lines().find(|line| line.contains("Collected"))?;
    line.rsplit(' ').next()?.parse().ok().filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_and_nothing_is_no_count() {
        assert_eq!(
            collected("==7== Events    : Ir\n==7== Collected : 166701312\n==7==\n"),
            Some(166_701_312)
        );
        assert_eq!(collected("==7== Collected : 0\n"), None);
        assert_eq!(collected("==7== Events    : Ir\n"), None);
    }
}
