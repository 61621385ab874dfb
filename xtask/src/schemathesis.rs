//! `cargo xtask schemathesis`: the served document against the server, with more calls than the tests make.
//!
//! The run itself is the test `http_schema` of the binary; its rules stand in `xtask/schemathesis`.

use std::process::ExitCode;

use crate::{command, options, tally, tool};

/// Calls for each operation in each phase unless told otherwise: some minutes.
const EXAMPLES: u128 = 100;

/// Runs the test with more examples; fails also when it was not found.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let options = options::parse(arguments, &["--examples", "--seed"])?;
    anyhow::ensure!(options.words.is_empty(), "unknown word `{}`", options.words.join(" "));
    let program = tool::python().join("bin/schemathesis").display().to_string();
    if !command::answers(&[&program, "--version"])
        && let Err(why) = tool::SCHEMATHESIS.install()
    {
        return Ok(tool::not_run("schemathesis", &why));
    }
    let words = ["test", "--package", "tagwerk", "--locked", "--test", "it", "--"];
    let mut command = command::cargo(&words);
    command.args(["needs_schemathesis", "--nocapture"]);
    let examples = options.numbers[0].unwrap_or(EXAMPLES);
    let seed = options.numbers[1].map_or_else(|| "random".to_owned(), |seed| seed.to_string());
    command.env("TAGWERK_SCHEMATHESIS_EXAMPLES", examples.to_string());
    command.env("TAGWERK_SCHEMATHESIS_SEED", seed);
    let (good, lines) = command::watched(&mut tool::polite(command))?;
    let ran = tally::total(&lines).map_or(0, |tally| tally.passed + tally.failed);
    anyhow::ensure!(!good || ran > 0, "no test named needs_schemathesis: nothing was run");
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
