//! What a run comes to, for programs and for people.

use std::collections::BTreeMap;

use serde::Serialize;

use super::meter::{Measured, Plan};
use crate::cli::table::table;

/// Version of the JSON. It rises when a member changes its meaning or goes; new ones may come.
pub(super) const FORMAT: u32 = 1;

/// A whole run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// [`FORMAT`]
    pub(super) bench: u32,
    /// Version of this program, not of the server.
    pub(super) tagwerk: &'static str,
    pub(super) url: String,
    /// Part of the names of this run's queue and type.
    pub(super) run: String,
    pub(super) queue: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) payload_bytes: usize,
    pub(super) keyed_percent: u64,
    pub(super) backlog: Backlog,
    /// Somebody stopped it: the last scenario counts as far as it came.
    pub(super) interrupted: bool,
    pub(super) scenarios: Vec<Outcome>,
    pub(super) left: Left,
}

/// Jobs that were there before the first scenario.
#[derive(Debug, Default, Serialize)]
pub(super) struct Backlog {
    pub(super) jobs: u64,
    /// `other`: in a queue of their own. `same`: in the measured queue, behind the measured jobs.
    pub(super) place: &'static str,
    pub(super) seconds: f64,
}

/// What the run leaves on the server.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Left {
    /// Deleted by the server's retention.
    pub(super) completed: u64,
    /// Stay until somebody works on them or cancels them.
    pub(super) pending: u64,
    /// Their leases run out, then they are pending.
    pub(super) running: u64,
}

/// One scenario.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    /// `enqueue-64`, `bulk-ndjson`, …
    pub(super) name: String,
    pub(super) about: String,
    /// Calls under way at the same time.
    pub(super) in_flight: usize,
    /// Jobs of one call; 0 for a stream.
    pub(super) batch: u64,
    /// Jobs that came first and do not count.
    pub(super) warm_up_jobs: u64,
    pub(super) jobs: u64,
    pub(super) calls: u64,
    pub(super) seconds: f64,
    pub(super) jobs_per_second: f64,
    /// All jobs that were planned have been measured.
    pub(super) complete: bool,
    /// Of one call; of one job's two calls for `drain-single`; from enqueue to start for `latency`.
    pub(super) latency_ms: Option<Latency>,
    /// `latency` only: the round trip of a request that does nothing.
    pub(super) floor_ms: Option<Latency>,
    /// Calls that failed, by the problem's code.
    pub(super) errors: BTreeMap<String, u64>,
    /// Processor time of this program.
    pub(super) client_cpu_us_per_job: Option<f64>,
    /// Processor time of the server, if `--server-pid` was given.
    pub(super) server_cpu_us_per_job: Option<f64>,
}

/// Milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Latency {
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

impl Latency {
    /// Of samples in microseconds: the smallest value that so many percent do not exceed.
    pub(super) fn of(mut samples: Vec<u32>) -> Option<Self> {
        samples.sort_unstable();
        let last = samples.len().checked_sub(1)?;
        let at = |percent: usize| {
            let rank = (samples.len() * percent).div_ceil(100).saturating_sub(1);
            samples.get(rank.min(last)).map(|micros| f64::from(*micros) / 1_000.0)
        };
        Some(Self { p50: at(50)?, p90: at(90)?, p99: at(99)?, max: at(100)? })
    }
}

/// How a scenario is told.
pub(super) struct Shape {
    pub(super) name: String,
    pub(super) about: &'static str,
    pub(super) in_flight: usize,
    pub(super) batch: u64,
    pub(super) floor: Option<Latency>,
}

impl Outcome {
    pub(super) fn new(shape: Shape, plan: Plan, measured: Measured) -> Self {
        let jobs = measured.jobs;
        let per_job = |used: Option<std::time::Duration>| {
            used.filter(|_| jobs > 0).map(|used| rounded(used.as_secs_f64() * 1e6 / number(jobs)))
        };
        Self {
            name: shape.name,
            about: shape.about.to_owned(),
            in_flight: shape.in_flight,
            batch: shape.batch,
            warm_up_jobs: plan.warm_up,
            jobs,
            calls: measured.calls,
            seconds: measured.seconds,
            jobs_per_second: if jobs > 0 { rounded(number(jobs) / measured.seconds.max(1e-9)) } else { 0.0 },
            complete: measured.complete,
            latency_ms: measured.latency,
            floor_ms: shape.floor,
            errors: measured.errors,
            client_cpu_us_per_job: per_job(measured.client_cpu),
            server_cpu_us_per_job: per_job(measured.server_cpu),
        }
    }

    fn row(&self) -> [String; 10] {
        let latency = |pick: fn(&Latency) -> f64| {
            self.latency_ms.as_ref().map_or_else(|| "-".to_owned(), |latency| format!("{:.2}", pick(latency)))
        };
        let cpu = |used: Option<f64>| used.map_or_else(|| "-".to_owned(), |used| format!("{used:.1}"));
        let errors: Vec<String> = self.errors.iter().map(|(code, count)| format!("{count} {code}")).collect();
        let partly = if self.complete { "" } else { " (cut)" };
        [
            self.name.clone(),
            format!("{}{partly}", self.jobs),
            format!("{:.0}", self.jobs_per_second),
            latency(|latency| latency.p50),
            latency(|latency| latency.p90),
            latency(|latency| latency.p99),
            latency(|latency| latency.max),
            cpu(self.client_cpu_us_per_job),
            cpu(self.server_cpu_us_per_job),
            if errors.is_empty() { "none".to_owned() } else { errors.join(", ") },
        ]
    }
}

impl Report {
    /// Whether every scenario has measured something, or somebody did not let it.
    pub(super) fn measured(&self) -> bool {
        self.interrupted || self.scenarios.iter().all(|outcome| outcome.jobs > 0)
    }

    /// What people should know besides.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.interrupted {
            lines.push("interrupted: the figures are of what was measured so far".to_owned());
        }
        if self.backlog.jobs > 0 {
            let Backlog { jobs, place, seconds } = &self.backlog;
            lines.push(format!("backlog: {jobs} jobs in the {place} queue, put there in {seconds:.1} s"));
        }
        let Left { completed, pending, running } = self.left;
        lines.push(format!(
            "queue {}: {completed} completed jobs stay until retention deletes them, {pending} are pending",
            self.queue
        ));
        if running > 0 {
            lines.push(format!(
                "{running} jobs are running: their reports were lost, so they will be pending"
            ));
        }
        lines
    }

    /// The table for people.
    pub(super) fn table(&self) -> String {
        let header = [
            "SCENARIO",
            "JOBS",
            "JOBS/S",
            "P50 MS",
            "P90",
            "P99",
            "MAX",
            "CLIENT CPU µS",
            "SERVER CPU µS",
            "ERRORS",
        ];
        let mut rows = Vec::new();
        for outcome in &self.scenarios {
            rows.push(outcome.row());
            if let Some(floor) = outcome.floor_ms {
                let mut row = [const { String::new() }; 10];
                let figures = [floor.p50, floor.p90, floor.p99, floor.max];
                let [name, _, _, p50, p90, p99, max, ..] = &mut row;
                "  a request that does nothing".clone_into(name);
                for (cell, figure) in [p50, p90, p99, max].into_iter().zip(figures) {
                    *cell = format!("{figure:.2}");
                }
                rows.push(row);
            }
        }
        table(header, rows, "nothing was measured")
    }
}

/// A count as a number to divide by; beyond 2^53 nobody counts.
#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark are far below 2^53")]
pub(super) const fn number(count: u64) -> f64 {
    count as f64
}

/// Digits behind that say nothing are left out.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let latency = Latency::of((1..=1_000).rev().map(|n| n * 1_000).collect()).unwrap();
        assert_eq!(latency, Latency { p50: 500.0, p90: 900.0, p99: 990.0, max: 1_000.0 });
        let one = Latency::of(vec![1_500]).unwrap();
        assert_eq!((one.p50, one.p99, one.max), (1.5, 1.5, 1.5));
        assert_eq!(Latency::of(Vec::new()), None);
    }
}
