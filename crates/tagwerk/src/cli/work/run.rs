//! One run: the command, its heartbeats, its limits, its end.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tagwerk_client::api::LeaseToken;
use tagwerk_client::api::answer::ClaimedJob;
use tagwerk_client::api::problem::Code;
use tagwerk_client::api::request::HeartbeatRequest;
use tagwerk_engine::ports::Clock;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

use super::child::{self, Running};
use super::pause::{backoff, pause, pause_if};
use super::report;
use super::shared::{Phase, Shared, length, reach};
use super::verdict::{Ending, Verdict, judge};
use crate::cli::failure::Failure;

/// How a run ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) ending: Ending,
    /// What the server said when it told the worker to stop.
    pub(super) told: Option<String>,
}

/// Runs the command for a job and reports. Fails only for reasons that end the worker.
pub(super) async fn run(shared: &Arc<Shared>, job: ClaimedJob) -> Result<(), Failure> {
    let begun = shared.clock.monotonic();
    let mut running = match child::start(shared, &job) {
        Ok(running) => running,
        Err(error) => {
            report::release(shared, &job).await;
            return Err(missing(shared, &error.to_string()));
        }
    };
    let beats = Beats::start(shared, &job);
    let ended = watch(shared, &job, (&mut running, beats)).await;
    let ended = ended.unwrap_or_else(|error| {
        running.signal(Signal::KILL);
        Ended { status: ExitStatus::default(), ending: Ending::Unseen, told: Some(error.to_string()) }
    });
    let output = running.output().await;
    let ms = shared.clock.monotonic().saturating_sub(begun).as_millis();
    match judge(ended.status, ended.ending) {
        Verdict::Missing(code) => {
            report::release(shared, &job).await;
            let why =
                if code == 126 { "it cannot be executed" } else { "it, or what it calls, is not there" };
            Err(missing(shared, &format!("exit code {code}: {why}\n  {}", output.stderr)))
        }
        verdict => {
            report::report(shared, &job, report::Done { verdict, ended, output, ms }).await;
            Ok(())
        }
    }
}

/// The command cannot be run: no job is to blame.
fn missing(shared: &Shared, why: &str) -> Failure {
    let command =
        shared.command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
    Failure::machine(
        format!("cannot run `{}`: {}", command, why.trim_end()),
        "the job was given back; check the command behind `--`, its path and its permissions",
    )
}

/// Waits for the end of the command, and brings it about where it must be.
async fn watch(
    shared: &Shared,
    job: &ClaimedJob,
    (running, mut beats): (&mut Running, Beats),
) -> std::io::Result<Ended> {
    let own_limit = job.summary.timeout_seconds.map(length);
    let limit = shared.timeout.into_iter().chain(own_limit).min();
    let mut phase = shared.phase();
    let mut limit = std::pin::pin!(pause_if(limit));
    let mut kill = std::pin::pin!(async {
        pause(shared.grace).await;
    });
    let (mut ending, mut told) = (Ending::ByItself, None);
    loop {
        let runs_free = ending == Ending::ByItself;
        let next = tokio::select! {
            status = running.wait() => {
                if !runs_free {
                    // Its children were told to end with it.
                    running.signal(Signal::KILL);
                }
                return Ok(Ended { status: status?, ending, told });
            }
            () = &mut limit, if runs_free => Ending::TimedOut,
            () = reach(&mut phase, Phase::Abort), if runs_free => Ending::Aborted,
            Some(stop) = beats.stops.recv(), if runs_free => {
                told = Some(stop.code.clone());
                match stop.ending() {
                    Some(ending) => ending,
                    None => continue,
                }
            }
            () = &mut kill, if !runs_free => {
                running.signal(Signal::KILL);
                let status = running.wait().await?;
                return Ok(Ended { status, ending, told });
            }
        };
        ending = next;
        running.signal(Signal::TERM);
    }
}

/// The server's word to stop.
#[derive(Clone, Debug)]
struct Stop {
    code: String,
    may_report: bool,
}

impl Stop {
    /// What follows: nothing while the outcome may still count, unless the time limit is reached, since a command that hangs
    /// would hold its slot for ever.
    fn ending(&self) -> Option<Ending> {
        match (self.may_report, self.code == Code::TimedOut.name()) {
            (false, _) => Some(Ending::Dropped),
            (true, true) => Some(Ending::TimedOut),
            (true, false) => None,
        }
    }
}

/// Heartbeats while the command runs, from a task of their own. They end with this value.
struct Beats {
    stops: Receiver<Stop>,
    task: JoinHandle<()>,
}

impl Beats {
    fn start(shared: &Arc<Shared>, job: &ClaimedJob) -> Self {
        let (sender, stops) = channel(1);
        let (id, lease, every) = (job.summary.id, job.lease.clone(), length(job.heartbeat_seconds));
        let task = tokio::spawn(beat(Arc::clone(shared), (id, lease, every), sender));
        Self { stops, task }
    }
}

impl Drop for Beats {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn beat(shared: Arc<Shared>, (id, lease, every): (i64, LeaseToken, Duration), stops: Sender<Stop>) {
    let request = HeartbeatRequest { lease, progress: None };
    let mut failures = 0;
    loop {
        // After a failure sooner than usual: the lease is running out.
        pause(if failures == 0 { every } else { backoff(failures, shared.chance()).min(every) }).await;
        let Err(error) = shared.client.heartbeat(id, &request).await else {
            shared.trouble.over(&shared.journal);
            failures = 0;
            continue;
        };
        let gone = error.code() == Some(Code::JobNotFound);
        match error.problem() {
            Some(problem) if problem.stop == Some(true) || gone => {
                failures = 0;
                let may_report = problem.may_report == Some(true);
                let stop = Stop { code: problem.code.clone(), may_report };
                if stops.send(stop).await.is_err() || !may_report {
                    return;
                }
            }
            _ => {
                shared.trouble.note(&error, &shared.journal);
                failures += 1;
            }
        }
    }
}
