//! The command line. `serve`, `check`, `token` and `config` read the server's configuration; every other command is a client of a
//! server and speaks HTTP to it, through `tagwerk-client`.
//!
//! Guarantees: tables for people on stdout, with `--json` exactly what the server says; what went wrong and what to do next
//! on stderr; an exit code of the one table in `exit`; a pipe that is closed early is no error. Lists never show payloads.

mod alerts;
mod audit;
mod bench;
mod bulk;
mod chaos;
mod check;
mod connect;
mod enqueue;
mod exit;
mod failure;
mod job_name;
mod jobs;
mod limits;
mod overview;
mod queues;
mod review;
mod serve;
mod show;
mod table;
mod token;
mod types;
mod values;
mod work;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use exit::Exit;
use failure::Failure;

/// A persistent job queue server, its workers and its tools, in one binary.
///
/// Start a server with `tagwerk serve`, give it work with `tagwerk enqueue`, do the work with `tagwerk work -- COMMAND`
/// or with a worker in any language, and look after it with the other commands.
#[derive(Debug, Parser)]
#[command(name = "tagwerk", version, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server
    Serve(serve::Serve),
    /// Run a command for each job
    Work(Box<work::Work>),
    /// Enqueue a job, or many from a file
    Enqueue(Box<enqueue::Enqueue>),
    /// List, show, explain, cancel jobs, or wait for one
    #[command(subcommand)]
    Jobs(jobs::Jobs),
    /// Decide about failed jobs: list, retry, discard
    #[command(subcommand)]
    Review(review::Review),
    /// List queues; pause, bound and drain them
    Queues(queues::Queues),
    /// List types, and set defaults for their jobs
    #[command(subcommand)]
    Types(types::Types),
    /// List limits, make, change and delete them
    #[command(subcommand)]
    Limits(limits::Limits),
    /// List workers: who was seen lately, and what each holds
    Workers(overview::Page),
    /// Show what the server has done and holds
    Stats(connect::Remote),
    /// List alerts: what somebody should look at; say that you do
    Alerts(alerts::Alerts),
    /// Show what operators did, and who
    Audit(audit::Audit),
    /// Measure a running server
    Bench(Box<bench::Bench>),
    /// Test a worker: cut, delay and kill it, and tell what was lost or doubled
    Chaos(Box<chaos::Chaos>),
    /// Make, list and revoke API tokens
    #[command(subcommand)]
    Token(token::Token),
    /// Prove that a store is sound, with no server or beside a running one
    Check(check::Check),
    /// Print the server's settings, each with where it comes from; secrets are masked
    Config(serve::ShowConfig),
    /// Print the OpenAPI document of the server
    Openapi(connect::Remote),
    /// Ends the commands of a worker that is gone; `work` starts it by itself
    #[command(name = work::GUARD_COMMAND, hide = true)]
    WorkGuard,
    /// Print a script that completes commands in a shell
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
}

/// The program.
pub(crate) fn main() -> ExitCode {
    let matches = match command().try_get_matches() {
        Ok(matches) => matches,
        // Prints help and version too, which end well.
        Err(error) => error.exit(),
    };
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match run(cli.command) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.tell(),
    }
}

/// The whole tree, with the table of exit codes.
fn command() -> clap::Command {
    Cli::command().after_help(Exit::table())
}

fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Serve(serve) => serve.run(),
        Command::Work(work) => connect::wait(work.run()),
        Command::Enqueue(enqueue) => connect::wait(enqueue.run()),
        Command::Jobs(jobs) => connect::wait(jobs.run()),
        Command::Review(review) => connect::wait(review.run()),
        Command::Queues(queues) => connect::wait(queues.run()),
        Command::Types(types) => connect::wait(types.run()),
        Command::Limits(limits) => connect::wait(limits.run()),
        Command::Workers(page) => connect::wait(overview::workers(page)),
        Command::Stats(remote) => connect::wait(overview::stats(remote)),
        Command::Alerts(alerts) => connect::wait(alerts.run()),
        Command::Audit(audit) => connect::wait(audit.run()),
        Command::Bench(bench) => connect::wait(bench.run()),
        Command::Chaos(chaos) => connect::wait(chaos.run()),
        Command::Token(token) => token.run(),
        Command::Check(check) => check.run(),
        Command::Config(config) => config.run(),
        Command::Openapi(remote) => connect::wait(overview::openapi(remote)),
        Command::WorkGuard => connect::wait(work::guard()),
        Command::Completions { shell } => completions(shell),
    }
}

fn completions(shell: clap_complete::Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "tagwerk", &mut script);
    show::print(&String::from_utf8_lossy(&script))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tree_of_commands_is_consistent() {
        super::command().debug_assert();
    }
}
