//! What was measured, as it is kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::driver::Answer;
use crate::measure::Measure;
use crate::plan::Plan;
use crate::subject::{About, Kind};

/// A whole run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) date: String,
    pub(crate) minutes: f64,
    pub(crate) plan: Plan,
    pub(crate) machine: Vec<(String, String)>,
    pub(crate) systems: Vec<System>,
    /// Peers that did not run, and why.
    pub(crate) not_run: Vec<(String, String)>,
}

/// A system and all that was measured of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct System {
    pub(crate) about: About,
    pub(crate) cells: BTreeMap<Measure, Cell>,
}

/// One measure of one system.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cell {
    /// By the number of the round.
    pub(crate) rounds: BTreeMap<u32, Round>,
    /// Why there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) absent: Option<String>,
    /// How it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// Of all rounds together, where each wait was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waits: Option<Waits>,
    /// Of fsyncs right before and after, where they matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fsyncs: Option<Waits>,
    #[serde(skip)]
    all_waits: Vec<f64>,
    #[serde(skip)]
    all_fsyncs: Vec<f64>,
}

/// Waits of all rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Waits {
    pub(crate) samples: usize,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

/// One measure of one system in one round.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Round {
    pub(crate) jobs: u64,
    pub(crate) seconds: f64,
    pub(crate) per_second: f64,
    /// Processor time of the server's processes for each job.
    pub(crate) server_us: f64,
    /// The client's.
    pub(crate) client_us: f64,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    /// Median of fsyncs right before and after, where it matters.
    pub(crate) fsync_ms: Option<f64>,
}

impl Cell {
    /// Keeps what a driver has answered in a round.
    pub(crate) fn keep(&mut self, round: u32, answer: &Answer) -> f64 {
        let number = |name: &str| answer.value[name].as_f64();
        let jobs = answer.value["jobs"].as_u64().unwrap_or_default();
        let seconds = number("seconds").unwrap_or_default();
        let per_second = if seconds > 0.0 { to_f64(jobs) / seconds } else { 0.0 };
        // The processor times cover what ended after the time, too.
        let worked = answer.value["total"].as_u64().unwrap_or_default().max(jobs);
        let each = |us: u64| to_f64(us) / to_f64(worked.max(1));
        let (server_us, client_us) = (each(answer.server_us), each(answer.client_us));
        let waits: Vec<f64> = values(&answer.value["waits_ms"]);
        let (mut p50_ms, mut p99_ms) = (number("p50_ms"), number("p99_ms"));
        if !waits.is_empty() {
            (p50_ms, p99_ms) = (percentile(&waits, 50), percentile(&waits, 99));
        }
        let fsync_ms = None;
        let kept = Round { jobs, seconds, per_second, server_us, client_us, p50_ms, p99_ms, fsync_ms };
        self.rounds.insert(round, kept);
        self.all_waits.extend(waits);
        self.waits = Waits::of(&self.all_waits);
        self.note = answer.value["note"].as_str().map(str::to_owned).or_else(|| self.note.take());
        per_second
    }

    /// Keeps the fsyncs beside a round.
    pub(crate) fn keep_fsyncs(&mut self, round: u32, fsyncs: Vec<f64>) {
        if let Some(round) = self.rounds.get_mut(&round) {
            round.fsync_ms = median(fsyncs.clone());
        }
        self.all_fsyncs.extend(fsyncs);
        self.fsyncs = Waits::of(&self.all_fsyncs);
    }

    /// The middle of a figure over all rounds.
    pub(crate) fn median(&self, figure: impl Fn(&Round) -> f64) -> Option<f64> {
        median(self.rounds.values().map(figure).collect())
    }

    /// The smallest and the largest.
    pub(crate) fn spread(&self, figure: impl Fn(&Round) -> f64) -> Option<(f64, f64)> {
        let mut all: Vec<f64> = self.rounds.values().map(figure).collect();
        all.sort_by(f64::total_cmp);
        Some((*all.first()?, *all.last()?))
    }
}

impl Waits {
    fn of(waits: &[f64]) -> Option<Self> {
        let (p50_ms, p99_ms) = (percentile(waits, 50)?, percentile(waits, 99)?);
        Some(Self { samples: waits.len(), p50_ms, p99_ms })
    }
}

impl Report {
    /// The cell of that system.
    pub(crate) fn cell(&self, name: &str, measure: Measure) -> Option<&Cell> {
        self.systems.iter().find(|system| system.about.name == name)?.cells.get(&measure)
    }

    /// Systems of that kind.
    pub(crate) fn of(&self, kind: Kind) -> impl Iterator<Item = &System> {
        self.systems.iter().filter(move |system| system.about.kind == kind)
    }

    /// The middle over the rounds of the quotient of two rates that were measured in the same round.
    pub(crate) fn ratio(&self, upper: (&str, Measure), lower: (&str, Measure)) -> Option<f64> {
        let (upper, lower) = (self.cell(upper.0, upper.1)?, self.cell(lower.0, lower.1)?);
        let both = upper.rounds.iter().filter_map(|(round, upper)| {
            let lower = lower.rounds.get(round).filter(|lower| lower.per_second > 0.0)?;
            Some(upper.per_second / lower.per_second)
        });
        median(both.collect())
    }
}

/// A list of numbers.
pub(crate) fn values(list: &Value) -> Vec<f64> {
    list.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

/// The middle one, or the mean of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(f64::midpoint(values[last / 2], values[last.div_ceil(2)]))
}

/// The p-th per cent.
fn percentile(values: &[f64], p: usize) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((sorted.len() * p / 100).min(sorted.len().saturating_sub(1))).copied()
}

/// A count as a number to reckon with; exact up to 2^52.
#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark are far below 2^52")]
pub(crate) const fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

    /// A cell with these rates in rounds 1, 2, …
    pub(crate) fn cell(rates: &[f64]) -> Cell {
        let mut cell = Cell::default();
        for (round, rate) in (1..).zip(rates) {
            let value = json!({"jobs": 1000, "seconds": 1000.0 / rate, "p50_ms": 1.0, "p99_ms": 2.0});
            cell.keep(round, &Answer { value, server_us: 20_000, client_us: 10_000 });
        }
        cell
    }

    #[test]
    fn the_middle_of_an_even_number_lies_between() {
        assert_eq!(median(vec![4.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn a_round_counts_time_for_each_job() {
        let value = json!({"jobs": 90, "total": 100, "seconds": 2.0});
        let mut cell = Cell::default();
        cell.keep(1, &Answer { value, server_us: 5_000, client_us: 1_000 });
        let round = cell.rounds[&1];
        assert!((round.per_second - 45.0).abs() < 1e-9);
        assert!((round.server_us - 50.0).abs() < 1e-9);
        assert!((round.client_us - 10.0).abs() < 1e-9);
    }

    #[test]
    fn waits_of_all_rounds_are_one_heap() {
        let mut cell = Cell::default();
        for round in 1..=2 {
            let value = json!({"jobs": 2, "seconds": 1.0, "waits_ms": [f64::from(round), 10.0]});
            cell.keep(round, &Answer { value, server_us: 0, client_us: 0 });
        }
        assert_eq!(cell.waits, Some(Waits { samples: 4, p50_ms: 10.0, p99_ms: 10.0 }));
    }
}
