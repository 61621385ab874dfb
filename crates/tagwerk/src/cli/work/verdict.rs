//! What the end of a command says about its job. Pure: the table of `tagwerk work --help`.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use tagwerk_client::api::ErrorClass;

/// How a run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The command ended when it wanted to.
    ByItself,
    /// It was ended by the time limit.
    TimedOut,
    /// It was ended because the worker is to end at once.
    Aborted,
    /// It was ended because the server wants nothing of it any more.
    Dropped,
    /// The system did not tell how it ended.
    Unseen,
}

/// What to report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Done.
    Completed,
    /// Not done, or nobody knows; with what to say before stderr's words.
    Failed(ErrorClass, Option<String>),
    /// The command cannot be run: the shell's code for it.
    Missing(i32),
    /// Nothing: it would not count.
    Nothing,
}

/// The table.
pub(super) fn judge(status: ExitStatus, ending: Ending) -> Verdict {
    use ErrorClass::{Permanent, Transient, Unknown};
    let unknown = |why: String| Verdict::Failed(Unknown, Some(why));
    match (ending, status.code()) {
        (Ending::Dropped, _) => Verdict::Nothing,
        (Ending::TimedOut, _) => unknown("ended by the time limit".to_owned()),
        (Ending::Unseen, _) => unknown("the system did not tell how it ended".to_owned()),
        (_, None) => unknown(signal(status)),
        (_, Some(0)) => Verdict::Completed,
        (_, Some(65)) => Verdict::Failed(Permanent, None),
        (_, Some(70)) => Verdict::Failed(Unknown, None),
        (Ending::ByItself, Some(code @ (126 | 127))) => Verdict::Missing(code),
        (_, Some(75)) | (Ending::ByItself, Some(_)) => Verdict::Failed(Transient, None),
        // A shell that dies of SIGTERM says so with a code of its own making.
        (Ending::Aborted, Some(code)) => {
            unknown(format!("ended with exit code {code} when its worker was stopped"))
        }
    }
}

fn signal(status: ExitStatus) -> String {
    let number = status.signal().unwrap_or(0);
    let name = match number {
        6 => " (SIGABRT)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        _ => "",
    };
    format!("ended by signal {number}{name}")
}

/// The text of the error: what we know, then the end of stderr.
pub(super) fn error(why: Option<&str>, status: ExitStatus, stderr: &str) -> String {
    match (why, stderr) {
        (None, "") => format!("exit code {}, nothing on stderr", status.code().unwrap_or(0)),
        (None, stderr) => stderr.to_owned(),
        (Some(why), "") => why.to_owned(),
        (Some(why), stderr) => format!("{why}\n{stderr}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ErrorClass::{Permanent, Transient, Unknown};

    fn code(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    fn class(verdict: &Verdict) -> Option<ErrorClass> {
        match verdict {
            Verdict::Failed(class, _) => Some(*class),
            _ => None,
        }
    }

    #[test]
    fn every_exit_has_its_meaning() {
        assert_eq!(judge(code(0), Ending::ByItself), Verdict::Completed);
        for (exit, expected) in
            [(65, Permanent), (70, Unknown), (75, Transient), (1, Transient), (255, Transient)]
        {
            assert_eq!(class(&judge(code(exit), Ending::ByItself)), Some(expected), "{exit}");
        }
        for exit in [126, 127] {
            assert_eq!(judge(code(exit), Ending::ByItself), Verdict::Missing(exit));
        }
        let killed = judge(ExitStatus::from_raw(9), Ending::ByItself);
        assert_eq!(killed, Verdict::Failed(Unknown, Some("ended by signal 9 (SIGKILL)".to_owned())));
    }

    #[test]
    fn what_was_ended_by_the_time_limit_is_unknown_whatever_it_says() {
        for status in [code(0), code(75), code(127), ExitStatus::from_raw(15)] {
            assert_eq!(class(&judge(status, Ending::TimedOut)), Some(Unknown), "{status}");
        }
    }

    #[test]
    fn what_was_ended_with_its_worker_counts_only_if_it_says_so_itself() {
        assert_eq!(judge(code(0), Ending::Aborted), Verdict::Completed);
        assert_eq!(class(&judge(code(75), Ending::Aborted)), Some(Transient));
        for status in [code(1), code(143), code(127), ExitStatus::from_raw(15)] {
            assert_eq!(class(&judge(status, Ending::Aborted)), Some(Unknown), "{status}");
        }
    }

    #[test]
    fn what_the_server_does_not_want_is_not_reported() {
        for status in [code(0), code(1), ExitStatus::from_raw(9)] {
            assert_eq!(judge(status, Ending::Dropped), Verdict::Nothing);
        }
    }

    #[test]
    fn errors_say_what_is_known() {
        assert_eq!(error(None, code(1), ""), "exit code 1, nothing on stderr");
        assert_eq!(error(None, code(1), "no such row"), "no such row");
        assert_eq!(error(Some("ended by signal 9"), code(0), "x"), "ended by signal 9\nx");
        assert_eq!(error(Some("ended by signal 9"), code(0), ""), "ended by signal 9");
    }
}
