//! A command in a process group of its own: signals to the worker do not reach it by themselves, and signals to the group
//! reach its children too.

use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tagwerk_client::api::answer::ClaimedJob;
use tagwerk_core::limits;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinHandle;

use super::capture::{LastLine, Sink, Tail};
use super::journal::PassOn;
use super::shared::Shared;

/// How long output is awaited after the command has ended: children that it left behind may hold the pipes open for ever.
const OUTPUT_GRACE: Duration = Duration::from_millis(500);

/// How often it is awaited again when there was more meanwhile: what the command itself wrote is never more than pipes hold.
const OUTPUT_ROUNDS: u32 = 10;

/// Bytes read at a time.
const PIECE_BYTES: usize = 16 * 1024;

/// What a command has written.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) stdout: LastLine,
    pub(super) stderr: String,
}

/// A command that runs.
pub(super) struct Running {
    child: Child,
    group: Option<Pid>,
    shared: Arc<Shared>,
    stdout: Arc<Mutex<LastLine>>,
    stderr: Arc<Mutex<Tail>>,
    /// Bytes of output read so far.
    seen: Arc<AtomicU64>,
    /// Feeds stdin.
    feeder: Option<JoinHandle<()>>,
    readers: Vec<JoinHandle<()>>,
}

/// Starts the command for a job.
pub(super) fn start(shared: &Arc<Shared>, job: &ClaimedJob) -> std::io::Result<Running> {
    let (program, args) = shared.command.split_first().ok_or(std::io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.args(args).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in &shared.private {
        command.env_remove(name);
    }
    command.env("TAGWERK_URL", shared.client.address().to_string());
    for (name, value) in facts(job) {
        command.env(format!("TAGWERK_JOB_{name}"), value);
    }
    let mut child = command.spawn()?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    group.inspect(|group| shared.guard.watch(*group));
    let feeder = child.stdin.take().map(|stdin| tokio::spawn(feed(stdin, job.payload.as_str().to_owned())));
    let stdout = Arc::new(Mutex::new(LastLine::new(limits::RESULT_MAX_BYTES)));
    let stderr = Arc::new(Mutex::new(Tail::default()));
    let pass_on = shared.journal.pass_on(job.summary.id);
    let seen = Arc::new(AtomicU64::new(0));
    let (out, err) = ((Arc::clone(&stdout), Arc::clone(&seen)), (Arc::clone(&stderr), Arc::clone(&seen)));
    let readers = [
        child.stdout.take().map(|pipe| tokio::spawn(read(pipe, out, None))),
        child.stderr.take().map(|pipe| tokio::spawn(read(pipe, err, Some(pass_on)))),
    ];
    let shared = Arc::clone(shared);
    let readers = readers.into_iter().flatten().collect();
    Ok(Running { child, group, shared, stdout, stderr, seen, feeder, readers })
}

/// What the command is told about its job. Never the lease.
fn facts(job: &ClaimedJob) -> Vec<(&'static str, String)> {
    let summary = &job.summary;
    let mut facts = vec![
        ("ID", summary.id.to_string()),
        ("TYPE", summary.job_type.clone()),
        ("QUEUE", summary.queue.clone()),
        ("ATTEMPT", summary.attempt.to_string()),
        ("RETRY_COUNT", summary.retry_count.to_string()),
        ("MAX_RETRIES", summary.max_retries.to_string()),
        ("IS_LAST_ATTEMPT", summary.is_last_attempt.to_string()),
        ("VERIFY", summary.verify.to_string()),
    ];
    let subject = summary.subject.as_ref();
    let optional = [
        ("IDEMPOTENCY_KEY", summary.idempotency_key.clone()),
        ("CORRELATION_ID", summary.correlation_id.clone()),
        ("SUBJECT_KIND", subject.map(|subject| subject.kind.clone())),
        ("SUBJECT_ID", subject.map(|subject| subject.id.clone())),
        ("SUBJECT_VERSION", subject.and_then(|subject| subject.version).map(|version| version.to_string())),
        ("TRACEPARENT", summary.traceparent.clone()),
        ("CHECKPOINT", job.checkpoint.as_ref().map(|checkpoint| checkpoint.as_str().to_owned())),
    ];
    facts.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?))));
    facts
}

/// Writes the payload. A command that does not read it, or not to its end, does nothing wrong.
async fn feed(mut stdin: ChildStdin, payload: String) {
    if stdin.write_all(payload.as_bytes()).await.is_ok() {
        drop(stdin.shutdown().await);
    }
}

/// Reads to the end, keeps what the sink keeps, and passes everything on if it is to be passed on.
async fn read(
    mut pipe: impl AsyncRead + Unpin,
    (sink, seen): (Arc<Mutex<impl Sink>>, Arc<AtomicU64>),
    mut pass_on: Option<PassOn>,
) {
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(bytes @ 1..) = pipe.read(&mut piece).await {
        seen.fetch_add(bytes as u64, Ordering::Relaxed);
        sink.lock().unwrap_or_else(PoisonError::into_inner).take(&piece[..bytes]);
        if let Some(pass_on) = &mut pass_on {
            pass_on.take(&piece[..bytes]).await;
        }
    }
    if let Some(pass_on) = &mut pass_on {
        pass_on.flush().await;
    }
}

impl Running {
    /// Waits for the end of the command itself; its children may go on.
    pub(super) async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Sends a signal to the command and all its children that have stayed in its group.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // They may all have ended.
            let _ = kill_process_group(group, signal);
        }
    }

    /// What it has written. To be called after its end.
    pub(super) async fn output(mut self) -> Output {
        self.group.inspect(|group| self.shared.guard.forget(*group));
        let readers = std::mem::take(&mut self.readers);
        let aborts: Vec<_> = readers.iter().map(JoinHandle::abort_handle).collect();
        let mut all = std::pin::pin!(async {
            for reader in readers {
                drop(reader.await);
            }
        });
        for _ in 0..OUTPUT_ROUNDS {
            let seen = self.seen.load(Ordering::Relaxed);
            let is_over = tokio::time::timeout(OUTPUT_GRACE, &mut all).await.is_ok();
            if is_over || self.seen.load(Ordering::Relaxed) == seen {
                break;
            }
        }
        for abort in aborts {
            abort.abort();
        }
        if let Some(feeder) = self.feeder.take() {
            feeder.abort();
        }
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner).text();
        let mut stdout = self.stdout.lock().unwrap_or_else(PoisonError::into_inner);
        let stdout = std::mem::replace(&mut *stdout, LastLine::new(0));
        Output { stdout, stderr }
    }
}
