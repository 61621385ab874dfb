//! Processes that the bench starts: each by its own pid, frozen while another is measured, and ended by all means.
//!
//! A [`Roster`] knows all that run. It ends them when the bench is interrupted; should the bench itself be killed, the
//! kernel ends them (`setpriv --pdeathsig`). Nothing is ever looked up by its name.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};

use crate::system;

/// Ticks of `/proc/<pid>/stat` in a second; a constant of Linux.
const TICKS_PER_SECOND: u64 = 100;

/// How long a process may take to end by itself.
const PATIENCE: Duration = Duration::from_secs(15);

/// All processes that run now, each with the signal that ends it, and whether everything is to end.
#[derive(Clone, Default)]
pub(crate) struct Roster {
    running: Arc<Mutex<Vec<(u32, Signal)>>>,
    ending: Arc<AtomicBool>,
}

impl Roster {
    fn with<T>(&self, act: impl FnOnce(&mut Vec<(u32, Signal)>) -> T) -> T {
        act(&mut self.running.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends everything: as each wants to be ended, and by force what is still there after a few seconds.
    pub(crate) fn end_all(&self) {
        self.ending.store(true, Ordering::SeqCst);
        let all = self.with(std::mem::take);
        let pids: Vec<u32> = all.iter().flat_map(|(pid, _)| tree(*pid)).collect();
        send_all(&pids, Signal::CONT);
        for (pid, end) in all.iter().rev().filter(|(_, end)| *end != Signal::KILL) {
            send(*pid, *end);
        }
        let is_over = |(pid, end): &(u32, Signal)| *end == Signal::KILL || is_gone(*pid);
        // Force follows for those who take longer.
        system::wait_until("ending", Duration::from_secs(5), || all.iter().all(is_over)).ok();
        for (pid, _) in all {
            kill_tree(pid);
        }
        kill_rest(&pids);
    }

    /// Whether everything is to end, so that a failure is no news.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    /// Starts a program. What it writes to stderr goes to `log`, its stdout too unless it is piped.
    pub(crate) fn start(&self, mut command: Command, log: &Path) -> anyhow::Result<Process> {
        anyhow::ensure!(!self.is_ending(), "everything is to end");
        let name = command.get_program().to_string_lossy().into_owned();
        let file = File::options().create(true).append(true).open(log).context("cannot write a log")?;
        let child = command.stderr(file).spawn().with_context(|| format!("cannot start {name}"))?;
        let pid = child.id();
        self.with(|running| running.push((pid, Signal::TERM)));
        Ok(Process { child, pid, end: Signal::TERM, roster: self.clone() })
    }
}

/// A call of a program that dies with the bench.
pub(crate) fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(name);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// A process that runs.
pub(crate) struct Process {
    /// For its pipes.
    pub(crate) child: Child,
    pid: u32,
    end: Signal,
    roster: Roster,
}

impl Process {
    /// Told to end by this signal instead of SIGTERM; SIGKILL goes to its children too.
    pub(crate) fn ended_by(mut self, signal: Signal) -> Self {
        self.end = signal;
        self.roster.with(|running| {
            running.iter_mut().filter(|(pid, _)| *pid == self.pid).for_each(|(_, end)| *end = signal);
        });
        self
    }

    /// Its pid.
    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Sends a signal to it alone.
    pub(crate) fn signal(&self, signal: Signal) {
        send(self.pid, signal);
    }

    /// Takes it and its children off the processor.
    pub(crate) fn freeze(&self) {
        send_all(&tree(self.pid), Signal::STOP);
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) {
        send_all(&tree(self.pid), Signal::CONT);
    }

    /// Waits until it has ended; false when it does not in time.
    pub(crate) fn wait_end(&mut self) -> bool {
        system::wait_until("ending", PATIENCE, || self.has_ended()).is_ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.thaw();
        if !self.has_ended() {
            let pids = tree(self.pid);
            if self.end != Signal::KILL {
                send(self.pid, self.end);
            }
            if self.end == Signal::KILL || !self.wait_end() {
                kill_tree(self.pid);
                drop(self.child.wait());
            }
            kill_rest(&pids);
        }
        self.roster.with(|running| running.retain(|(pid, _)| *pid != self.pid));
    }
}

/// Sends a signal; that the process is gone already is fine.
fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        kill_process(pid, signal).ok();
    }
}

/// Ends it and what is below it by force, the children first, so that their parent can still bury them.
fn kill_tree(root: u32) {
    send_all(&tree(root)[1..], Signal::KILL);
    system::wait_until("the children", Duration::from_secs(1), || tree(root).len() <= 1).ok();
    send_all(&tree(root), Signal::KILL);
}

/// Ends what a parent has left behind.
fn kill_rest(pids: &[u32]) {
    for pid in pids.iter().filter(|pid| !is_gone(**pid)) {
        send(*pid, Signal::KILL);
    }
}

fn send_all(pids: &[u32], signal: Signal) {
    for pid in pids {
        send(*pid, signal);
    }
}

/// Whether it has ended, buried or not.
fn is_gone(pid: u32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
}

/// What `/proc/<pid>/stat` says.
struct Stat {
    parent: u32,
    /// Own ticks and those of children that have ended.
    ticks: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Stat { parent: fields.get(1)?.parse().ok()?, ticks })
}

/// The process and all below it, parents first.
fn tree(root: u32) -> Vec<u32> {
    let names = std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse::<u32>().ok());
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for pid in pids {
        if let Some(stat) = stat(pid) {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    let mut all = vec![root];
    let mut at = 0;
    while let Some(pid) = all.get(at) {
        all.extend(children.remove(pid).unwrap_or_default());
        at += 1;
    }
    all
}

/// Microseconds of processor time of these processes and everything below them, children that have ended included.
pub(crate) fn cpu_us<'a>(processes: impl IntoIterator<Item = &'a Process>) -> u64 {
    let pids = processes.into_iter().flat_map(|process| tree(process.pid));
    pids.filter_map(stat).map(|stat| stat.ticks).sum::<u64>() * (1_000_000 / TICKS_PER_SECOND)
}

/// A line of `/proc/<pid>/status` in kB.
pub(crate) fn memory_kb(pid: u32, field: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// What the program writes to stdout; an error when it does not end with success.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ended = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {name}"))?;
    let complaint = String::from_utf8_lossy(&ended.stderr);
    let last = complaint.trim().lines().last().unwrap_or_default().to_owned();
    anyhow::ensure!(ended.status.success(), "{name} failed: {last}");
    Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
}

/// The first line that a program writes, or nothing.
pub(crate) fn first_line(command: &mut Command) -> String {
    let text = output(command).unwrap_or_default();
    text.lines().next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_frozen_thawed_and_ended_with_its_children() -> anyhow::Result<()> {
        let folder = std::env::temp_dir().join(format!("tagwerk-bench-test-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let roster = Roster::default();
        let mut command = program("sh");
        command.args(["-c", "sleep 60 & wait"]);
        let process = roster.start(command, &folder.join("log"))?;
        system::wait_until("the child", PATIENCE, || tree(process.pid()).len() == 2)?;
        let pids = tree(process.pid());
        let state = |pid: u32| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
        };
        process.freeze();
        system::wait_until("freezing", PATIENCE, || pids.iter().all(|pid| state(*pid) == Some('T')))?;
        process.thaw();
        system::wait_until("thawing", PATIENCE, || pids.iter().all(|pid| state(*pid) != Some('T')))?;
        roster.end_all();
        drop(process);
        system::wait_until("ending", PATIENCE, || pids.iter().all(|pid| is_gone(*pid)))?;
        std::fs::remove_dir_all(&folder)?;
        Ok(())
    }
}
