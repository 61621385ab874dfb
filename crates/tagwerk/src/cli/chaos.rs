//! `tagwerk chaos -- WORKER`: tests a worker of any language by what can happen to it, and tells what was lost, doubled or left.
//!
//! Guarantees:
//!
//! - No server of the user's is touched: it starts one of its own, on an empty store in a temporary folder, and a proxy before it.
//! - It is over in a bounded time, and everything that it started is ended then, by its own process group; also on Ctrl-C, and,
//!   through the guard of `work`, when this program itself is killed.
//! - What happens to a call depends on the seed, the scenario, the round and the call, and on nothing else. What the machine
//!   makes of it in time is the machine's.
//! - What was not judged is told as not judged: without `--check` nobody knows what the worker's effects were.
//!
//! Deliberately absent: HTTP/2 and TLS before the worker; faults of the server itself (`cargo xtask crash` has them).

mod call;
mod check;
mod crew;
mod dice;
mod fate;
mod lab;
mod message;
mod proxy;
mod report;
mod round;
mod template;

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use tagwerk_client::api::Seconds;
use tagwerk_engine::ports::Entropy as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::exit::Exit;
use super::failure::{Failure, note};
use super::show;
use super::values::seconds;
use super::work::Guard;
use crate::config;
use crate::system::SystemEntropy;
use check::Check;
use crew::Recipe;
use fate::{Moment, Orders, Scenario};
use lab::Lab;
use report::{FORMAT, Judged, Outcome, Report, Review};
use round::World;
use template::Template;

/// A worker with more calls for a job is killed at the first so many of them.
const KILL_CALLS_MAX: u32 = 12;

const HELP: &str = "\
WORKER is started as it stands (without a shell) with TAGWERK_URL in its environment, and must work
until it gets SIGTERM. Each scenario runs some rounds: jobs are enqueued, the worker is started, its
calls are cut, delayed, held back or refused, or it is killed. Then it is left alone until its jobs
have ended. First comes a calm round; if the worker does not pass that, nothing else is run.

The check command is run by /bin/sh. It gets the jobs of a round as JSON on its stdin,
  [{\"id\": 1, \"type\": \"…\", \"key\": \"chaos-…-0\", \"subject\": {…}, \"status\": \"completed\"}, …]
and prints how often the effect of each has happened, by key or id: {\"chaos-…-0\": 1, …}
Without it only what the server can see is judged: whether the jobs end.

  lost        completed, and the effect did not happen
  doubled     the effect happened more than once
  unfinished  neither completed nor cancelled in the end; in review counts too, but for --review-ok

With --json: {chaos: 1, tagwerk, seed, run, worker, judged: effects | status_only, interrupted, time_over,
  stopped: null | why, scenarios: [{name, about, rounds, rounds_planned, jobs, runs, calls, faults, restarts,
    lost | null, doubled | null, unfinished, passed, remarks, findings: [{what: lost | doubled | unfinished,
      round, job, key, status, runs, effects | null, error | null, faults}]}],
  not_run, lost | null, doubled | null, unfinished, passed}
`chaos` is the version of this form; it rises when a member changes its meaning or goes.

Exit codes:
  0  nothing lost, doubled or unfinished, and everything was run
  1  something was; or interrupted
  2  wrong arguments; nothing was tried
  4  the worker, the check command or the server of the test does not work
  5  nothing found, but the time of --for was over before everything was run

Examples:
  tagwerk chaos -- python3 worker.py
  tagwerk chaos --type mail --payload '{\"order\": \"{key}\"}' --check ./count.py -- php mail.php
  tagwerk chaos --check ./count.py -- tagwerk work -- php mail.php   (a command for each job)
  tagwerk chaos --scenario killed,twice --seed 17 --lease 10s --json -- ./worker";

/// Test a worker: cut, delay and kill it, and tell what was lost or doubled.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Chaos {
    /// What to do to it; several with commas. All, if not given
    #[arg(long = "scenario", value_name = "NAMES", value_enum, value_delimiter = ',')]
    scenarios: Vec<Scenario>,
    /// Chooses what is done to which call; printed, so that it can be given again. Any, if not given
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Rounds of each scenario; `killed` has as many as there are moments to kill at
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Jobs of a round
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    jobs: u64,
    /// Their type
    #[arg(long = "type", value_name = "TYPE", default_value = "chaos")]
    kind: String,
    /// Their queue
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Their payload: JSON, @FILE, or - for stdin; {key} becomes the job's key, {number} a number of its own
    #[arg(long, value_name = "JSON", default_value = "{}")]
    payload: String,
    /// Their retries
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    max_retries: u32,
    /// A command that counts effects
    #[arg(long, value_name = "COMMAND")]
    check: Option<String>,
    /// A job in review has ended well enough
    #[arg(long)]
    review_ok: bool,
    /// Length of every lease, whatever the worker asks for; longer than one job takes, or the worker sends heartbeats
    #[arg(long, value_name = "TIME", value_parser = lease, default_value = "3s")]
    lease: Seconds,
    /// How long a worker may take to its first call, and a round from there
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "30s")]
    patience: Seconds,
    /// All ends after this time, however far it is
    #[arg(long = "for", value_name = "TIME", value_parser = seconds, default_value = "10m")]
    time: Seconds,
    /// Where the output of the workers goes, added at its end; kept nowhere, if not given
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// The worker and its arguments
    #[arg(last = true, required = true, value_name = "WORKER")]
    command: Vec<OsString>,
}

/// For arguments that another command puts together.
#[derive(clap::Parser)]
struct Asked {
    #[command(flatten)]
    chaos: Chaos,
}

impl Chaos {
    /// The test of this worker with these arguments.
    pub(crate) fn of(args: Vec<OsString>, worker: Vec<OsString>) -> Result<Self, Failure> {
        let words = ["chaos".into()].into_iter().chain(args).chain(["--".into()]).chain(worker);
        let asked = Asked::try_parse_from(words).map_err(|error| {
            Failure::usage(
                error.to_string(),
                "say it to tagwerk chaos -- tagwerk work, which can be told more",
            )
        })?;
        Ok(asked.chaos)
    }

    /// The command.
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let payload = Template::payload(&self.payload)?;
        let mut signals = Signals::new()?;
        let entropy = SystemEntropy::new()
            .map_err(|error| Failure::machine(format!("the system gives no randomness: {error}"), ""))?;
        let tag = format!("{:08x}", entropy.u64() & 0xFFFF_FFFF);
        // Short enough to be typed, and exact in any reader's numbers.
        let seed = self.seed.unwrap_or_else(|| entropy.u64() & 0xFFFF_FFFF);
        let base = 1_000_000_000 + entropy.u64() % 1_000_000_000;
        let template = Template {
            kind: self.kind.clone(),
            queue: self.queue.clone(),
            payload,
            max_retries: self.max_retries,
            tag: tag.clone(),
            base,
        };
        let mut report = self.report(seed, tag);
        let mut world = self.world(template).await?;
        let outcome = tokio::select! {
            done = tokio::time::timeout(length(self.time), self.scenarios(&mut world, &mut report)) => done,
            () = signals.next() => {
                report.interrupted = true;
                Ok(Ok(()))
            }
        };
        world.lab.close().await;
        match outcome {
            Ok(done) => done?,
            Err(_) => report.time_over = true,
        }
        self.tell(report)
    }

    fn report(&self, seed: u64, run: String) -> Report {
        let judged = if self.check.is_some() { Judged::Effects } else { Judged::StatusOnly };
        Report {
            chaos: FORMAT,
            tagwerk: env!("CARGO_PKG_VERSION"),
            seed,
            run,
            worker: self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            judged,
            interrupted: false,
            time_over: false,
            stopped: None,
            scenarios: Vec::new(),
            not_run: self.chosen().into_iter().map(Scenario::name).collect(),
            lost: None,
            doubled: None,
            unfinished: 0,
            passed: false,
        }
    }

    async fn world(&self, template: Template) -> Result<World, Failure> {
        let guard = Guard::start().unwrap_or_else(|error| {
            note(&format!("no guard: if this program is killed, what it started runs on ({error})"));
            Guard::none()
        });
        let (guard, private) = (Arc::new(guard), config::own_variables());
        let lab = Lab::open(&template.tag, &private, Arc::clone(&guard)).await?;
        let log = self.log.clone().unwrap_or_else(|| lab.path("worker.log"));
        let file = OpenOptions::new().create(true).append(true).open(&log).map_err(|error| {
            Failure::usage(format!("cannot write {}: {error}", log.display()), "name another file with --log")
        })?;
        let check = self.check.clone().map(|command| Check {
            command,
            private: private.clone(),
            guard: Arc::clone(&guard),
        });
        let recipe = Recipe { command: self.command.clone(), log: file, private, guard };
        Ok(World {
            lab,
            recipe,
            check,
            template,
            log,
            patience: length(self.patience),
            jobs: self.jobs,
            given: 0,
        })
    }

    /// What is to be run, in order: the calm first.
    fn chosen(&self) -> Vec<Scenario> {
        let chosen = |scenario: &Scenario| {
            *scenario == Scenario::Calm || self.scenarios.is_empty() || self.scenarios.contains(scenario)
        };
        Scenario::value_variants().iter().copied().filter(chosen).collect()
    }

    async fn scenarios(&self, world: &mut World, report: &mut Report) -> Result<(), Failure> {
        // Calls for a job, seen in the calm.
        let mut calls = 1;
        for scenario in self.chosen() {
            let plan = self.rounds(scenario, (report.seed, calls));
            report.not_run.retain(|name| *name != scenario.name());
            report.scenarios.push(Outcome::new(scenario, plan.len(), report.judged));
            let Some(outcome) = report.scenarios.last_mut() else { return Ok(()) };
            for orders in plan {
                let round = world.round(orders).await?;
                let jobs = u32::try_from(round.jobs.len()).unwrap_or(u32::MAX).max(1);
                if scenario == Scenario::Calm {
                    calls = round.calls.div_ceil(jobs);
                    if round.jobs.iter().any(|job| job.lease_losses > 0) {
                        outcome.remark("a lease ended: a job takes longer than --lease".to_owned());
                    }
                }
                outcome.calls += u64::from(round.calls);
                outcome.faults += round.faults;
                outcome.restarts += u64::from(round.restarts);
                let review = if self.review_ok { Review::Fine } else { Review::Unfinished };
                outcome.add(orders.round, &round.jobs, review);
                round.remarks.into_iter().for_each(|told| outcome.remark(told));
                if outcome.unfinished > 0 {
                    // Each further round would wait as long, and say the same.
                    break;
                }
            }
            if !self.json {
                note(&format!(
                    "{}: {} rounds, {} findings",
                    outcome.name,
                    outcome.rounds,
                    outcome.findings.len()
                ));
            }
            if scenario == Scenario::Calm && !outcome.findings.is_empty() {
                report.stopped = Some("the worker does not pass even when nothing is done to it");
                return Ok(());
            }
        }
        Ok(())
    }

    /// The rounds of a scenario.
    fn rounds(&self, scenario: Scenario, (seed, calls): (u64, u32)) -> Vec<Orders> {
        let lease = length(self.lease);
        let orders = |round, kill| Orders { scenario, seed, round, lease, kill };
        match scenario {
            Scenario::Calm => vec![orders(0, None)],
            Scenario::Killed => {
                let at =
                    (1..=calls.clamp(1, KILL_CALLS_MAX)).flat_map(|k| Moment::ALL.map(|moment| (k, moment)));
                (0..).zip(at).map(|(round, kill)| orders(round, Some(kill))).collect()
            }
            _ => (0..self.rounds).map(|round| orders(round, None)).collect(),
        }
    }

    fn tell(&self, mut report: Report) -> Result<Exit, Failure> {
        report.sum();
        let exit = match () {
            () if report.passed => Exit::Done,
            () if report.time_over && !report.has_findings() => Exit::TimeOver,
            () => Exit::Refused,
        };
        let text = if self.json {
            serde_json::to_string(&report).map_err(|error| Failure::machine(error.to_string(), ""))?
        } else {
            report.text()
        };
        show::print(&text)?;
        Ok(exit)
    }
}

/// What ends it before its time.
struct Signals([Signal; 3]);

impl Signals {
    fn new() -> Result<Self, Failure> {
        let open = |kind| {
            signal(kind).map_err(|error| Failure::machine(format!("cannot listen to signals: {error}"), ""))
        };
        Ok(Self([
            open(SignalKind::interrupt())?,
            open(SignalKind::terminate())?,
            open(SignalKind::hangup())?,
        ]))
    }

    async fn next(&mut self) {
        let [int, term, hup] = &mut self.0;
        tokio::select! {
            _ = int.recv() => {}
            _ = term.recv() => {}
            _ = hup.recv() => {}
        }
    }
}

/// The server's bounds of a lease, and one in which it makes sense here.
fn lease(text: &str) -> Result<Seconds, String> {
    let lease = seconds(text)?;
    if (1_000..=3_600_000).contains(&lease.ms()) {
        Ok(lease)
    } else {
        Err("must be between 1s and 1h".to_owned())
    }
}

fn length(seconds: Seconds) -> Duration {
    Duration::from_millis(u64::try_from(seconds.ms()).unwrap_or_default())
}
