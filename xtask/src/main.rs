//! The project's own chores, run as `cargo xtask <command>`.
//!
//! Deliberately absent: anything that a plain cargo command does well, and every dependency the product does not
//! have already. A chore that is not listed in [`HELP`] does not exist.

mod bench;
mod command;
mod coverage;
mod crash;
mod fuzz;
mod instructions;
mod mutants;
mod options;
mod planted;
mod report;
mod requirement;
mod schemathesis;
mod sim;
mod suite;
mod system;
mod tally;
mod tidy;
mod tool;

use std::process::ExitCode;

/// What `cargo xtask help` prints.
const HELP: &str = "\
cargo xtask <command>

  test [STEP…]   everything that must hold before a change is merged: installs what the tests need (Debian, root),
                 then tidy, fmt, clippy, build, tests, doc tests; or only the steps that are named
  tidy           the five laws and the habits, checked in the sources (under two seconds)
  setup          only the installing part of `test`
  crash          under load, kill the server at random moments, stop it, cut its connections, its disk and its power, and
                 prove that no acknowledged call is lost or done twice
                   --rounds N     how many times the server is killed (100); the others take their share of it
                   --clients N    how many clients work meanwhile (32)
                   --seconds N    the longest a round lasts before the kill (3)
                   --release      with the optimised binary
  schemathesis   the served OpenAPI document against the server, with more calls than the tests make
                   --examples N   calls for each operation and phase (100)
                   --seed N       the same calls again (otherwise chance decides, and the run names its seed)
  fuzz [TARGET…] the fuzz targets, each for a bounded time; needs a nightly toolchain
                   --seconds N    how long each target runs (60)
  mutants [FILE…] changes the code in small ways and shows which changes no test notices
                   --package P    the crate (tagwerk-core); with files, only those
  coverage       lines of core and engine that their tests run, by file
  instructions   what enqueue, claim and complete cost the committer, counted by callgrind
  sim            scripted clients, faults and time over the real engine, every answer predicted (sim/README.md)
                   --seeds N      how many; --minutes M instead; --help lists the rest
  bench          Tagwerk beside its peers and its ceilings; `bench scale`: with millions of jobs; `bench help`
  planted [NAME…]  plants the faults of sim/planted one at a time in a copy; the simulator has to find each
                   --seeds N      within how many seeds (200)
  help           this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Finds the command and runs it. An unknown one is an error that shows the help.
fn dispatch(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let (name, rest) =
        arguments.split_first().map_or(("help", &[][..]), |(name, rest)| (name.as_str(), rest));
    match name {
        "test" => suite::run(rest),
        "tidy" => tidy::run(),
        "setup" => requirement::setup(),
        "crash" => crash::run(rest),
        "schemathesis" => schemathesis::run(rest),
        "fuzz" => fuzz::run(rest),
        "mutants" => mutants::run(rest),
        "coverage" => coverage::run(rest),
        "instructions" => instructions::run(rest),
        "sim" => sim::run(rest),
        "planted" => planted::run(rest),
        "bench" => bench::run(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        unknown => anyhow::bail!("there is no command `{unknown}`\n\n{HELP}"),
    }
}
