//! A small process beside the worker that ends its commands when the worker itself is gone: killed, or crashed.
//!
//! Without it they would run on, unseen, while the next attempt of their job already begins and looks whether the work was
//! done: it would find that it was not, and do it a second time. The guard holds the reading end of a pipe to the worker. What
//! the worker writes into it are the process groups of its commands; that it ends means that the worker has.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::exit::Exit;
use crate::cli::failure::Failure;

/// The command line of the guard.
pub(crate) const COMMAND: &str = "work-guard";

/// This program, even when its file was replaced meanwhile.
const ITSELF: &str = "/proc/self/exe";

/// The file of this program.
pub(crate) fn this_program() -> std::io::Result<PathBuf> {
    if Path::new(ITSELF).exists() { Ok(ITSELF.into()) } else { std::env::current_exe() }
}

/// The worker's end of the pipe.
#[derive(Debug)]
pub(crate) struct Guard(Option<Mutex<ChildStdin>>);

impl Guard {
    /// Starts the guard. A worker can do without one, so that it cannot be started is only said.
    pub(crate) fn start() -> std::io::Result<Self> {
        // In a group of its own: what is sent to the worker's group must not reach it.
        let mut command = Command::new(this_program()?);
        command.arg0("tagwerk").arg(COMMAND).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let stdin = command.spawn()?.stdin.take();
        Ok(Self(stdin.map(Mutex::new)))
    }

    /// None.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// A command has begun.
    pub(crate) fn watch(&self, group: Pid) {
        self.say('+', group);
    }

    /// It has ended, and what it left behind may live.
    pub(crate) fn forget(&self, group: Pid) {
        self.say('-', group);
    }

    fn say(&self, sign: char, group: Pid) {
        let Some(pipe) = &self.0 else { return };
        let line = format!("{sign}{}\n", group.as_raw_nonzero());
        // A guard that was killed guards nothing; the work goes on.
        drop(pipe.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes()));
    }
}

/// The guard's side: listens until the worker is gone, then ends what it has left.
pub(crate) async fn run() -> Result<Exit, Failure> {
    // Caught and dropped: whoever ends the worker politely may send the same signal here, and the commands may still run.
    let signals = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal);
    let mut groups = BTreeSet::new();
    for line in BufReader::new(std::io::stdin()).lines() {
        let Ok(line) = line else { break };
        follow(&mut groups, &line);
    }
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        // It may have ended by itself at last.
        let _ = kill_process_group(group, Signal::KILL);
    }
    drop(signals);
    Ok(Exit::Done)
}

/// `+17` or `-17`.
fn follow(groups: &mut BTreeSet<i32>, line: &str) {
    let Some((sign, number)) = line.split_at_checked(1) else { return };
    // Lower numbers would mean our own group, everybody, or init.
    let Some(group) = number.parse().ok().filter(|group| *group > 1) else { return };
    match sign {
        "+" => drop(groups.insert(group)),
        "-" => drop(groups.remove(&group)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_knows_what_runs() {
        let mut groups = BTreeSet::new();
        for line in ["+17", "+18", "-17", "", "+", "+0", "+1", "+-5", "x9", "-99", "+ü"] {
            follow(&mut groups, line);
        }
        assert_eq!(groups.into_iter().collect::<Vec<_>>(), [18]);
    }
}
