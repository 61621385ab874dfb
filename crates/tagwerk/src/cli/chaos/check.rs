//! The user's own command that counts effects.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::cli::failure::Failure;
use crate::cli::show::short;
use crate::cli::work::Guard;

/// How long it may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// More output than this is no answer.
const OUTPUT_MAX_BYTES: u64 = 16 * 1024 * 1024;

/// What the command is told of a job.
#[derive(Debug, Serialize)]
pub(super) struct Asked {
    pub(super) id: i64,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) key: String,
    pub(super) subject: serde_json::Value,
    pub(super) status: &'static str,
}

/// The command.
pub(super) struct Check {
    pub(super) command: String,
    pub(super) private: Vec<std::ffi::OsString>,
    pub(super) guard: Arc<Guard>,
}

impl Check {
    /// How often the effect of each job has happened, in the order of the jobs.
    pub(super) async fn count(&self, jobs: &[Asked]) -> Result<Vec<u64>, Failure> {
        let said = tokio::time::timeout(PATIENCE, self.run(jobs)).await;
        let told = format!("took longer than {} s and was ended", PATIENCE.as_secs());
        let said = said.unwrap_or(Err(told)).map_err(|why| self.failed(&why))?;
        read(&said, jobs).map_err(|why| self.failed(&format!("{why}; it printed: {}", short(&said, 200))))
    }

    fn failed(&self, why: &str) -> Failure {
        let command = &self.command;
        Failure::machine(
            format!("the check command `{command}` {why}"),
            "it gets an array of jobs as JSON on stdin ({id, type, key, subject, status}) and prints an object \
             with the number of effects of each: {\"KEY OR ID\": 1, …}",
        )
    }

    async fn run(&self, jobs: &[Asked]) -> Result<String, String> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &self.command]).process_group(0);
        for name in &self.private {
            command.env_remove(name);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        group.inspect(|group| self.guard.watch(*group));
        let _end = Group(group, &self.guard);
        let question = serde_json::to_vec(jobs).map_err(|error| error.to_string())?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let ask = async {
            if let Some(mut stdin) = stdin {
                // A command that does not read it does nothing wrong.
                drop(stdin.write_all(&question).await);
            }
        };
        let mut said = Vec::new();
        let listen = async {
            match stdout {
                Some(stdout) => stdout.take(OUTPUT_MAX_BYTES).read_to_end(&mut said).await.map(drop),
                None => Ok(()),
            }
        };
        let ((), heard) = tokio::join!(ask, listen);
        heard.map_err(|error| format!("cannot be read: {error}"))?;
        let status = child.wait().await.map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(format!("has failed: {status}"));
        }
        String::from_utf8(said).map_err(|_| "did not print UTF-8".to_owned())
    }
}

/// Ends what is left of the command.
struct Group<'a>(Option<Pid>, &'a Guard);

impl Drop for Group<'_> {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It may all have ended.
            let _ = kill_process_group(group, Signal::KILL);
            self.1.forget(group);
        }
    }
}

/// The count of each job, or what is wrong.
fn read(said: &str, jobs: &[Asked]) -> Result<Vec<u64>, String> {
    let counts: HashMap<String, u64> = serde_json::from_str(said.trim())
        .map_err(|error| format!("did not print an object of counts ({error})"))?;
    let count = |job: &Asked| {
        let found = counts.get(&job.key).or_else(|| counts.get(&job.id.to_string()));
        found.copied().ok_or_else(|| format!("did not count job {} ({}); say 0 if it is 0", job.id, job.key))
    };
    jobs.iter().map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: i64) -> Asked {
        let subject = serde_json::Value::Null;
        Asked { id, kind: "t".to_owned(), key: format!("k-{id}"), subject, status: "completed" }
    }

    #[test]
    fn jobs_are_named_by_key_or_id() {
        assert_eq!(read(" {\"k-1\": 1, \"2\": 0, \"other\": 9}\n", &[job(1), job(2)]), Ok(vec![1, 0]));
        for (said, why) in [
            ("{\"k-1\": 1}", "did not count job 2 (k-2)"),
            ("[1, 1]", "object"),
            ("{\"k-1\": -1, \"k-2\": 1}", "object"),
            ("{\"k-1\": \"1\", \"k-2\": 1}", "object"),
            ("", "object"),
        ] {
            let told = read(said, &[job(1), job(2)]).unwrap_err();
            assert!(told.contains(why), "{said}: {told}");
        }
    }
}
