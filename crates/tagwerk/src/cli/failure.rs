//! What went wrong, and what to do next.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use tagwerk_client::Error;
use tagwerk_client::api::answer::Existing;
use tagwerk_client::api::problem::{Code, Problem};

use super::exit::Exit;
use super::show;
use crate::config::ConfigError;

/// Why a command ended without having done what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nobody reads our output any more, which is how `| head` works.
    PipeClosed,
    /// Something to tell.
    Told(Told),
}

/// What is told on stderr.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    /// What to do next; empty if the message says so.
    pub(crate) advice: String,
}

impl Failure {
    /// Wrong arguments or input.
    pub(crate) fn usage(message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::Told(Told { exit: Exit::Usage, message: message.into(), advice: advice.into() })
    }

    /// Something on this machine.
    pub(crate) fn machine(message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::Told(Told { exit: Exit::Machine, message: message.into(), advice: advice.into() })
    }

    /// Tells it and ends the program.
    pub(crate) fn tell(self) -> ExitCode {
        match self {
            Self::PipeClosed => Exit::Done.into(),
            Self::Told(told) => {
                told.say();
                told.exit.into()
            }
        }
    }
}

impl Told {
    /// Says it on stderr.
    pub(crate) fn say(&self) {
        let advice = if self.advice.is_empty() { String::new() } else { format!("\n  {}", self.advice) };
        note(&format!("error: {}{advice}", show::lines(&self.message)));
    }
}

/// A line on stderr. If nobody reads it, nobody misses it.
pub(crate) fn note(text: &str) {
    drop(writeln!(std::io::stderr(), "{text}"));
}

impl From<std::io::Error> for Failure {
    /// An error of writing the output.
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::PipeClosed,
            _ => Self::machine(
                format!("cannot write the output: {error}"),
                "free some space, or write elsewhere",
            ),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        // No command shows settings that cannot be read, `tagwerk config` as little as any other.
        Self::usage(error.to_string(), "put right what is named; then `tagwerk config` prints all settings")
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Told(Told::from(&error))
    }
}

impl From<&Error> for Told {
    fn from(error: &Error) -> Self {
        let (exit, advice) = match error {
            Error::Connect { .. } => (
                Exit::Unreachable,
                "start one with `tagwerk serve`, or name it with --url or TAGWERK_URL".to_owned(),
            ),
            Error::Untrusted { .. } => (
                Exit::Unreachable,
                "name the authority of its certificate with --ca-file or TAGWERK_CA_FILE, or correct --url"
                    .to_owned(),
            ),
            Error::Timeout { .. } | Error::Broken { .. } => {
                (Exit::Unreachable, "look with `tagwerk jobs list` before you repeat it".to_owned())
            }
            Error::BadAnswer { .. } => (
                Exit::Unreachable,
                "check --url or TAGWERK_URL: a server of another kind or version listens there".to_owned(),
            ),
            Error::Problem { problem, .. } => (Exit::Refused, advice(problem)),
            Error::Authorities(_) => {
                (Exit::Usage, "give a PEM file with --ca-file or TAGWERK_CA_FILE".to_owned())
            }
            Error::Request(_) | Error::BadToken => (Exit::Usage, String::new()),
        };
        let message = error.problem().map_or_else(|| error.to_string(), problem_text);
        Self { exit, message, advice }
    }
}

/// The problem in a sentence, and its fields where there are several.
pub(crate) fn problem_text(problem: &Problem) -> String {
    let mut lines = vec![format!("{} ({}): {}", problem.title, problem.code, problem.detail)];
    if let [_, _, ..] = problem.errors.as_slice() {
        lines.extend(problem.errors.iter().map(|error| format!("  {error}")));
    }
    lines.join("\n")
}

/// What to do at the command line. The problem's own advice speaks to programs; it is told where no command says it better.
fn advice(problem: &Problem) -> String {
    let job = problem.job.as_deref().map(|job| match job {
        Existing::Job(job) => format!("job {} is {}", job.summary.id, job.summary.status),
        Existing::Pruned(tombstone) => {
            format!("job {} was {} and is deleted", tombstone.id, tombstone.status)
        }
    });
    let code = problem.known_code();
    let general = match code {
        None | Some(Code::InvalidRequest | Code::InvalidJson | Code::PayloadTooLarge) => "",
        Some(Code::JobNotFound) => "`tagwerk jobs list` shows those that there are",
        Some(Code::TypeNotFound) => {
            "`tagwerk types list` shows all types, `tagwerk types set` makes settings"
        }
        Some(Code::LimitNotFound | Code::UnknownLimit) => {
            "`tagwerk limits list` shows those that there are, `tagwerk limits set` makes one"
        }
        Some(Code::Unauthorized) => "give a token with TAGWERK_TOKEN; `tagwerk token create` makes one",
        Some(Code::NotFailed | Code::UseCancel) => {
            "`tagwerk jobs show` tells its state; `tagwerk jobs cancel` ends a job that has not ended"
        }
        Some(Code::UseDiscard) => "`tagwerk review discard` takes a job out of review",
        Some(Code::VersionChanged) => "look at it with `tagwerk jobs show`, then decide again",
        Some(Code::Duplicate | Code::IdempotencyKeyReused | Code::IdempotencyKeyHeld) => {
            "`tagwerk jobs show` shows it"
        }
        Some(code) => code.advice(),
    };
    let general = (problem.detail != general && !general.is_empty()).then(|| general.to_owned());
    job.into_iter().chain(general).collect::<Vec<_>>().join("; ")
}
