//! The one table of exit codes.

use std::process::ExitCode;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It is done.
    Done,
    /// The server said no, or what was looked at is not as it should be.
    Refused,
    /// The call itself is wrong; nothing was tried.
    Usage,
    /// The way to the server failed.
    Unreachable,
    /// This machine failed.
    Machine,
    /// The time that was given is over.
    TimeOver,
    /// `serve` has codes of its own: a supervisor wants to know whether starting again can help.
    Serve(u8),
}

impl Exit {
    /// Every code with its number and what people need to know. Those of `serve` stand in its help.
    const ALL: [(Self, u8, &'static str); 6] = [
        (Self::Done, 0, "done"),
        (
            Self::Refused,
            1,
            "refused by the server, not found, findings (check, chaos), job not completed (jobs wait)",
        ),
        (Self::Usage, 2, "wrong arguments, settings or input; nothing was tried"),
        (Self::Unreachable, 3, "the server cannot be reached or did not answer"),
        (
            Self::Machine,
            4,
            "something on this machine: a store that cannot be opened, a command that `work` cannot run",
        ),
        (Self::TimeOver, 5, "the time given is over: --timeout (jobs wait), --for (chaos)"),
    ];

    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Serve(code) => code,
            _ => Self::ALL.iter().find(|(exit, ..)| *exit == self).map_or(1, |(_, code, _)| *code),
        }
    }

    /// The table for `--help`.
    pub(crate) fn table() -> String {
        let rows = Self::ALL.iter().map(|(_, code, meaning)| format!("\n  {code}  {meaning}"));
        std::iter::once("Exit codes (`serve` has its own, see its help):".to_owned()).chain(rows).collect()
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}
