//! The workers under test as processes, each in a group of its own.
//!
//! Guarantees: what was started is ended, by its own group; when this program itself is killed, the guard of `work` does it.
//! Deliberately absent: what has left its group (`setsid`) is not found.

use std::ffi::OsString;
use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::cli::failure::Failure;
use crate::cli::work::Guard;

/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(3);

/// How workers are started.
pub(super) struct Recipe {
    pub(super) command: Vec<OsString>,
    /// Where their output goes.
    pub(super) log: File,
    /// Variables that they do not get.
    pub(super) private: Vec<OsString>,
    pub(super) guard: Arc<Guard>,
}

/// A worker has ended.
pub(super) struct Ended {
    pub(super) worker: usize,
    pub(super) status: Option<ExitStatus>,
}

/// The workers of a round. Dropped, they are killed.
pub(super) struct Crew<'a> {
    recipe: &'a Recipe,
    /// The group of each worker, while it runs.
    groups: Vec<Option<Pid>>,
    ended: mpsc::UnboundedSender<Ended>,
    pub(super) endings: mpsc::UnboundedReceiver<Ended>,
}

impl<'a> Crew<'a> {
    pub(super) fn new(recipe: &'a Recipe, workers: usize) -> Self {
        let (ended, endings) = mpsc::unbounded_channel();
        Self { recipe, groups: vec![None; workers], ended, endings }
    }

    /// Starts a worker that speaks to this port.
    pub(super) fn start(&mut self, worker: usize, port: SocketAddr) -> Result<(), Failure> {
        let child = self.spawn(port).map_err(|error| self.cannot_start(&error))?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        group.inspect(|group| self.recipe.guard.watch(*group));
        if let Some(place) = self.groups.get_mut(worker) {
            *place = group;
        }
        tokio::spawn(watch(child, (worker, group), (Arc::clone(&self.recipe.guard), self.ended.clone())));
        Ok(())
    }

    fn spawn(&self, port: SocketAddr) -> std::io::Result<Child> {
        let (program, args) = self.recipe.command.split_first().ok_or(std::io::ErrorKind::NotFound)?;
        let mut command = Command::new(program);
        for name in &self.recipe.private {
            command.env_remove(name);
        }
        command.args(args).env("TAGWERK_URL", format!("http://{port}")).process_group(0);
        command
            .stdin(Stdio::null())
            .stdout(self.recipe.log.try_clone()?)
            .stderr(self.recipe.log.try_clone()?);
        command.spawn()
    }

    fn cannot_start(&self, error: &std::io::Error) -> Failure {
        let program = self.recipe.command.first().map(|name| Path::new(name).display().to_string());
        Failure::machine(
            format!("cannot start the worker {}: {error}", program.unwrap_or_default()),
            "check its name and its permissions; what stands behind -- is started without a shell",
        )
    }

    /// A worker has ended by itself.
    pub(super) fn forget(&mut self, worker: usize) {
        if let Some(group) = self.groups.get_mut(worker) {
            *group = None;
        }
    }

    /// Kills a worker, and returns when it is dead.
    pub(super) async fn kill(&mut self, worker: usize) {
        let Some(group) = self.groups.get(worker).copied().flatten() else { return };
        signal(group, Signal::KILL);
        while let Some(ended) = self.endings.recv().await {
            self.forget(ended.worker);
            if ended.worker == worker {
                return;
            }
        }
    }

    /// Ends all workers: politely, then not.
    pub(super) async fn stop(&mut self) {
        for group in self.groups.iter().flatten() {
            signal(*group, Signal::TERM);
        }
        // tidy: sleep because it bounds the wait for their ends, which are signals.
        let grace = tokio::time::sleep(GRACE);
        let mut grace = std::pin::pin!(grace);
        let mut is_over = false;
        while self.groups.iter().any(Option::is_some) {
            tokio::select! {
                Some(ended) = self.endings.recv() => self.forget(ended.worker),
                () = &mut grace, if !is_over => {
                    is_over = true;
                    for group in self.groups.iter().flatten() {
                        signal(*group, Signal::KILL);
                    }
                }
            }
        }
    }
}

impl Drop for Crew<'_> {
    fn drop(&mut self) {
        for group in self.groups.iter().flatten() {
            signal(*group, Signal::KILL);
        }
    }
}

/// Waits for the end of a worker, and ends what it leaves behind in its group.
async fn watch(
    mut child: Child,
    (worker, group): (usize, Option<Pid>),
    (guard, ended): (Arc<Guard>, mpsc::UnboundedSender<Ended>),
) {
    let status = child.wait().await.ok();
    if let Some(group) = group {
        signal(group, Signal::KILL);
        guard.forget(group);
    }
    // A round that is over does not listen.
    drop(ended.send(Ended { worker, status }));
}

fn signal(group: Pid, signal: Signal) {
    // They may all have ended.
    let _ = kill_process_group(group, signal);
}
