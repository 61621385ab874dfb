//! `cargo xtask sim`: the simulator with optimisation, since it is the number of seeds that finds things; in a profile of
//! its own, since it is built more often than a release.

use std::process::ExitCode;

use crate::command;

/// Passes everything on; `cargo xtask sim --help` is the simulator's own help.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let mut words = vec!["run", "--profile", "sim", "--locked", "--quiet", "--package", "tagwerk-sim", "--"];
    words.extend(arguments.iter().map(String::as_str));
    let good = command::succeeds(&mut command::cargo(&words))?;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
