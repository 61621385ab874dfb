//! `cargo xtask bench`: builds the server and the bench as users get them, and runs the bench.
//!
//! The bench itself is the package `tagwerk-bench` in `bench/`; it reads the options.

use std::process::ExitCode;

use crate::{command, system};

/// Builds and runs.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let words = ["build", "--release", "--locked", "--package", "tagwerk", "--package", "tagwerk-bench"];
    let mut build = command::cargo(&words);
    // The bench looks for the server beside itself, in the folder of the workspace.
    build.env_remove("CARGO_TARGET_DIR").env_remove("CARGO_BUILD_TARGET_DIR");
    if !command::succeeds(&mut build)? {
        return Ok(ExitCode::FAILURE);
    }
    let program = system::root().join("target/release/tagwerk-bench");
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let good = command::succeeds(&mut command::program(&program.to_string_lossy(), &words))?;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
