//! `tagwerk bench`: measures a running server as its users would, over HTTP.
//!
//! Guarantees: it touches only a queue and a type of its own, whose names no other run has; what comes first to warm up
//! does not count; Ctrl-C prints what was measured so far; what it leaves behind is said. No-op jobs: what is measured
//! is the queue.
//!
//! Deliberately absent: a load generator for other machines' networks, and any comparison. Seconds on a shared machine
//! mean little; compare within one run.

mod caller;
mod cpu;
mod idle;
mod meter;
mod producers;
mod report;
mod wire;
mod workers;
mod world;

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use tagwerk_client::api::Seconds;
use tagwerk_client::api::query::NamesQuery;
use tagwerk_client::{Address, Client, Retries};
use tagwerk_engine::ports::{Clock as _, Entropy as _};
use tokio::sync::watch;

use super::connect::{DEFAULT_URL, address};
use super::exit::Exit;
use super::failure::{Failure, note};
use super::show;
use super::values::seconds;
use crate::system::{SystemClock, SystemEntropy, raise_file_limit};
use meter::Plan;
use report::{Backlog, FORMAT, Left, Outcome, Report, Shape};
use wire::Target;
use world::{Lane, Room, World};

/// Calls at the same time: a connection each, and the server takes 10,000.
const WORKERS_MAX: u16 = 8_000;

/// With what is added to it, a queue's name has at most 64 bytes.
const NAME_MAX_BYTES: usize = 40;

const HELP: &str = "Examples:
  tagwerk bench
  tagwerk bench --scenario enqueue --in-flight 1,64 --jobs 50000
  tagwerk bench --scenario drain-bulk,drain-single --backlog 1000000 --json

Jobs have a payload of 150 bytes, half of them an idempotency key, and their work is nothing.
They are made in a queue and of a type whose names begin with --name and end with letters of this run,
so the run takes nobody else's jobs. What it leaves pending is claimed and completed at the end;
completed jobs are deleted by the server's retention.

With --json: {bench: 1, tagwerk, url, run, queue, type, payload_bytes, keyed_percent,
  backlog: {jobs, place, seconds}, interrupted,
  scenarios: [{name, about, in_flight, batch, warm_up_jobs, jobs, calls, seconds, jobs_per_second, complete,
    latency_ms: {p50, p90, p99, max} | null, floor_ms: the same | null, errors: {CODE: count},
    client_cpu_us_per_job | null, server_cpu_us_per_job | null}],
  left: {completed, pending}}
`bench` is the version of this form; it rises when a member changes its meaning or goes.";

/// Measure a running server
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Bench {
    /// What to measure; several with commas. All, if not given
    #[arg(long = "scenario", value_name = "NAMES", value_enum, value_delimiter = ',')]
    scenarios: Vec<Scenario>,
    /// Jobs that count in each scenario but `latency` [default: 20000; in bulk 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    jobs: Option<u64>,
    /// Jobs that count in `latency`
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    samples: u64,
    /// Jobs before them that do not count [default: a tenth]
    #[arg(long, value_name = "N")]
    warm_up: Option<u64>,
    /// A scenario ends after this time, however far it is
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "30s")]
    time: Seconds,
    /// Calls at the same time, for `enqueue`; one run for each number
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_values_t = [64, 512], value_parser = workers)]
    in_flight: Vec<u16>,
    /// Workers of `drain-single`
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = workers)]
    workers: u16,
    /// Workers of `drain-bulk`, connections of `bulk-json`
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = workers)]
    bulk_workers: u16,
    /// Jobs of a claim and report of `drain-bulk`
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    batch: u64,
    /// Jobs of a call of `bulk-json`
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    bulk_jobs: u64,
    /// Bytes of each payload, a JSON text
    #[arg(long, value_name = "BYTES", default_value_t = 150)]
    payload_bytes: u32,
    /// Of 100 jobs so many have an idempotency key
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u64).range(0..=100))]
    keyed: u64,
    /// Jobs that are put there first and stay pending meanwhile
    #[arg(long, value_name = "N", default_value_t = 0)]
    backlog: u64,
    /// Where they are
    #[arg(long, value_name = "PLACE", value_enum, default_value_t = Place::Same)]
    backlog_in: Place,
    /// Begin of the names of queue and type
    #[arg(long, value_name = "NAME", default_value = "bench", value_parser = name)]
    name: String,
    /// Process of the server, to tell its processor time (Linux, same machine)
    #[arg(long, value_name = "PID")]
    server_pid: Option<u32>,
    /// Leave pending jobs where they are, for a server that is thrown away
    #[arg(long)]
    keep: bool,
    /// Measure a server that is not on this machine
    #[arg(long)]
    yes: bool,
    /// The server: http://HOST:PORT or unix:PATH
    #[arg(long, value_name = "URL", env = "TAGWERK_URL", hide_env_values = true, default_value = DEFAULT_URL, value_parser = address)]
    url: Address,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Scenario {
    /// One job a call
    Enqueue,
    /// Many jobs in one JSON body
    BulkJson,
    /// A stream of lines
    BulkNdjson,
    /// Claim and report in one call, many jobs each
    DrainBulk,
    /// Claim, then complete, one job each
    DrainSingle,
    /// From enqueue to start in a claim that waits
    Latency,
}

/// Where a backlog is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Place {
    /// In the measured queue, behind the measured jobs (priority 0)
    Same,
    /// In a queue of its own
    Other,
}

impl Bench {
    /// The command.
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let target = Target::new(&self.url)?;
        if !target.is_local() && !self.yes {
            return Err(Failure::usage(
                format!("{} is not on this machine", self.url),
                "a benchmark is a load; say --yes if that server is yours to load",
            ));
        }
        // A server that is not there is said at once.
        Client::builder(self.url.clone()).retries(Retries::NONE).build()?.livez().await?;
        raise_file_limit();
        let (stop, stopped) = watch::channel(false);
        let world = Arc::new(self.world(target, stopped)?);
        let mut signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
            .map_err(|error| Failure::machine(format!("cannot listen to signals: {error}"), ""))?;
        tokio::spawn(async move {
            signal.recv().await;
            stop.send_replace(true);
            signal.recv().await;
            // What was measured has been printed or will not be.
            std::process::exit(130);
        });
        let report = self.measure(&world).await?;
        let exit = if report.measured() { Exit::Done } else { Exit::Refused };
        if self.json {
            let text =
                serde_json::to_string(&report).map_err(|error| Failure::machine(error.to_string(), ""))?;
            show::print(&text)?;
            return Ok(exit);
        }
        show::print(&report.table())?;
        for line in report.remarks() {
            note(&line);
        }
        Ok(exit)
    }

    fn world(&self, target: Target, stopped: watch::Receiver<bool>) -> Result<World, Failure> {
        let entropy = SystemEntropy::new()
            .map_err(|error| Failure::machine(format!("the system gives no randomness: {error}"), ""))?;
        let run = format!("{:08x}", entropy.u64() & 0xFFFF_FFFF);
        let name = format!("{}-{run}", self.name);
        Ok(World {
            target,
            clock: SystemClock::new(),
            server_pid: self.server_pid,
            most: Duration::from_millis(self.time.ms().unsigned_abs()),
            bar: bar(),
            stopped,
            queue: name.clone(),
            kind: name,
            run,
            payload: world::payload(usize::try_from(self.payload_bytes).unwrap_or(usize::MAX)),
            keyed: self.keyed,
        })
    }

    async fn measure(&self, world: &Arc<World>) -> Result<Report, Failure> {
        let backlog = match self.backlog_in {
            Place::Same => Lane { name: "backlog", room: Room::Work, priority: Some(0) },
            Place::Other => Lane { name: "backlog", room: Room::Backlog, priority: None },
        };
        world.bar.set_message("backlog");
        let since = world.clock.monotonic();
        let filled = producers::fill(world, backlog, self.backlog).await.map_err(|code| failed(&code))?;
        let took = world.clock.monotonic().saturating_sub(since);
        let chosen = if self.scenarios.is_empty() { Scenario::value_variants() } else { &self.scenarios };
        let mut scenarios = Vec::new();
        for scenario in chosen {
            if !world.is_stopped() {
                self.scenario(*scenario, world, &mut scenarios).await?;
            }
        }
        let left = self.clear(world).await?;
        world.bar.finish_and_clear();
        Ok(Report {
            bench: FORMAT,
            tagwerk: env!("CARGO_PKG_VERSION"),
            url: self.url.to_string(),
            run: world.run.clone(),
            queue: world.queue.clone(),
            kind: world.kind.clone(),
            payload_bytes: world.payload.len(),
            keyed_percent: self.keyed,
            backlog: Backlog {
                jobs: filled,
                place: if self.backlog_in == Place::Same { "same" } else { "other" },
                seconds: took.as_secs_f64(),
            },
            interrupted: world.is_stopped(),
            scenarios,
            left,
        })
    }

    fn plan(&self, jobs: u64) -> Plan {
        Plan { jobs, warm_up: self.warm_up.unwrap_or(jobs / 10) }
    }

    async fn scenario(
        &self,
        scenario: Scenario,
        world: &Arc<World>,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), Failure> {
        let shape = |name: &str, in_flight: u16, batch: u64| Shape {
            name: name.to_owned(),
            about: scenario.about(),
            in_flight: usize::from(in_flight),
            batch,
            floor: None,
        };
        let (workers, many) = (usize::from(self.workers), usize::from(self.bulk_workers));
        let (single, bulk) =
            (self.plan(self.jobs.unwrap_or(20_000)), self.plan(self.jobs.unwrap_or(100_000)));
        let idle = self.plan(self.samples);
        let outcome = match scenario {
            Scenario::Enqueue => {
                for in_flight in &self.in_flight {
                    let shape = shape(&format!("enqueue-{in_flight}"), *in_flight, 1);
                    world.bar.set_message(shape.name.clone());
                    let measured = producers::one_by_one(world, single, usize::from(*in_flight)).await;
                    outcomes.push(Outcome::new(shape, single, measured));
                }
                return Ok(());
            }
            Scenario::BulkJson => {
                world.bar.set_message("bulk-json");
                let measured = producers::bulk_json(world, bulk, (many, self.bulk_jobs)).await;
                Outcome::new(shape("bulk-json", self.bulk_workers, self.bulk_jobs), bulk, measured)
            }
            Scenario::BulkNdjson => {
                world.bar.set_message("bulk-ndjson");
                let measured = producers::bulk_ndjson(world, bulk).await;
                Outcome::new(shape("bulk-ndjson", 1, 0), bulk, measured)
            }
            Scenario::DrainBulk => {
                fill(world, "drain-bulk", bulk).await?;
                let measured = workers::drain_bulk(world, bulk, (many, self.batch)).await;
                Outcome::new(shape("drain-bulk", self.bulk_workers, self.batch), bulk, measured)
            }
            Scenario::DrainSingle => {
                fill(world, "drain-single", single).await?;
                let measured = workers::drain_single(world, single, workers).await;
                Outcome::new(shape("drain-single", self.workers, 1), single, measured)
            }
            Scenario::Latency => {
                world.bar.set_message("latency");
                let (measured, floor) = idle::latency(world, idle).await;
                Outcome::new(Shape { floor, ..shape("latency", 1, 1) }, idle, measured)
            }
        };
        outcomes.push(outcome);
        Ok(())
    }

    /// Completes what is pending, and says what stays.
    async fn clear(&self, world: &Arc<World>) -> Result<Left, Failure> {
        let client = Client::builder(self.url.clone()).retries(Retries::NONE).build()?;
        let before = count(&client, world).await?;
        if self.keep || before.pending == 0 {
            return Ok(before);
        }
        world.bar.set_message("clearing");
        for room in Room::ALL {
            workers::clear(world, room, before.pending).await;
        }
        count(&client, world).await
    }
}

/// Jobs for those who drain, put there before it counts.
async fn fill(world: &Arc<World>, name: &str, plan: Plan) -> Result<(), Failure> {
    world.bar.set_message(format!("{name}: jobs for it"));
    let lane = Lane { name, room: Room::Work, priority: None };
    producers::fill(world, lane, plan.total()).await.map_err(|code| failed(&code))?;
    world.bar.set_message(name.to_owned());
    Ok(())
}

/// Jobs in the queues of this run.
async fn count(client: &Client, world: &World) -> Result<Left, Failure> {
    // The names of the run begin with that of its first queue; so it stands before all of them.
    let mut before = world.queue.clone();
    before.pop();
    let query = NamesQuery { after: Some(before), limit: Some(1_000) };
    let mut left = Left::default();
    for queue in client.queues(&query).await?.value.queues {
        if queue.queue.starts_with(&world.queue) {
            left.completed += count_of(queue.counts.completed);
            left.pending += count_of(queue.counts.pending);
            left.running += count_of(queue.counts.running);
        }
    }
    Ok(left)
}

fn count_of(count: i64) -> u64 {
    u64::try_from(count).unwrap_or_default()
}

impl Scenario {
    const fn about(self) -> &'static str {
        match self {
            Self::Enqueue => "POST /jobs, one job a call",
            Self::BulkJson => "POST /jobs/bulk, a JSON body",
            Self::BulkNdjson => {
                "POST /jobs/bulk, one stream of lines; the latency is that of the whole stream"
            }
            Self::DrainBulk => "POST /jobs/report/bulk with a claim: report and take the next in one call",
            Self::DrainSingle => {
                "POST /jobs/claim, then POST /jobs/{id}/complete; the latency is that of both"
            }
            Self::Latency => "from sending POST /jobs to the answer of a claim that waits",
        }
    }
}

/// Calls at the same time.
fn workers(text: &str) -> Result<u16, String> {
    let number = text.parse().ok().filter(|number| (1..=WORKERS_MAX).contains(number));
    number.ok_or_else(|| format!("must be a number from 1 to {WORKERS_MAX}"))
}

/// A name that fits with what is added to it, and needs no quotes anywhere.
fn name(text: &str) -> Result<String, String> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if (1..=NAME_MAX_BYTES).contains(&text.len()) && text.bytes().all(is_good) {
        return Ok(text.to_owned());
    }
    Err(format!("must be 1 to {NAME_MAX_BYTES} letters, digits, - or _"))
}

/// A bar for people who watch, or a hidden one.
fn bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {percent}%  {msg}, {pos} of {len} jobs  {elapsed}");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn failed(code: &str) -> Failure {
    Failure::machine(
        format!("jobs could not be put into the store: {code}"),
        "look at the server's log, and at `tagwerk stats`",
    )
}
