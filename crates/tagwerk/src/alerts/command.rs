//! `alerts.command`: a program that gets the message on stdin.
//!
//! It runs in a process group of its own, without our own variables (they may hold a token), with the server's stderr, so
//! that what it complains about stands in the log. When its time is over the whole group is killed.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::message::Message;
use super::settings::AlertSettings;
use super::tell::Failed;

/// A process group that does not outlive whoever waits for it.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // They may all have ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Runs it once.
pub(super) async fn run(settings: &AlertSettings, message: &Message) -> Result<(), Failed> {
    let (program, args) =
        settings.command.split_first().ok_or_else(|| Failed::for_good("alerts.command is empty"))?;
    let mut command = Command::new(program);
    command.args(args).process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
    for name in crate::config::own_variables() {
        command.env_remove(name);
    }
    // A program that is being replaced is there again soon.
    let mut child = command
        .spawn()
        .map_err(|error| Failed::again(format!("{program:?} could not be started: {error}")))?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let mut group = Group(group);
    let stdin = child.stdin.take();
    let talk = async {
        if let Some(mut stdin) = stdin {
            // A program that does not read it does nothing wrong.
            drop(stdin.write_all(message.body.as_bytes()).await);
            drop(stdin.shutdown().await);
        }
        child.wait().await
    };
    let patience = Duration::from_millis(settings.command_ms.unsigned_abs());
    let ended = tokio::time::timeout(patience, talk).await;
    match ended {
        Err(_) => {
            drop(group);
            let killed = child.wait().await;
            drop(killed);
            // It may have told somebody before it hung; nobody knows, so it is not done again.
            Err(Failed::for_good(format!(
                "{program:?} did not end within {} s and was killed; whether it told anybody is not known",
                patience.as_secs_f64()
            )))
        }
        Ok(Ok(status)) if status.success() => {
            // What it has left behind on purpose goes on.
            group.0 = None;
            Ok(())
        }
        Ok(Ok(status)) => Err(Failed::again(format!("{program:?} failed: {status}"))),
        Ok(Err(error)) => Err(Failed::again(format!("{program:?} could not be waited for: {error}"))),
    }
}
