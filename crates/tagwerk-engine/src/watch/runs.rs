//! Run times by type, in buckets.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tagwerk_core::limits;

/// Buckets: four to an octave, up to 2^40 ms. The lower edge of a bucket is at most a fifth below what is in it.
const BUCKETS: usize = 160;

/// How many attempts took how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Runs([u32; BUCKETS]);

impl Default for Runs {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

impl Runs {
    fn note(&mut self, ms: i64) {
        if let Some(n) = self.0.get_mut(bucket(ms)) {
            *n = n.wrapping_add(1);
        }
    }

    /// Those that came since then.
    pub(super) fn since(&self, then: Option<&Self>) -> Self {
        let mut since = self.clone();
        for (now, then) in since.0.iter_mut().zip(then.map(|then| then.0).iter().flatten()) {
            *now = now.wrapping_sub(*then);
        }
        since
    }

    /// The time that 5 of 100 reach, and of how many.
    pub(super) fn p95(&self) -> Option<(i64, i64)> {
        let all: i64 = self.0.iter().map(|n| i64::from(*n)).sum();
        let wanted = (all + 19) / 20;
        let mut above = 0;
        let reached = self.0.iter().enumerate().rev().find(|(_, n)| {
            above += i64::from(**n);
            above >= wanted
        });
        reached.filter(|_| all > 0).map(|(bucket, _)| (edge(bucket), all))
    }
}

/// The bucket of a time: its octave and the two binary digits behind the first.
fn bucket(ms: i64) -> usize {
    let ms = ms.max(1).unsigned_abs();
    let octave = ms.ilog2();
    let quarter = (ms << 2 >> octave) & 3;
    let bucket = u64::from(octave) * 4 + quarter;
    usize::try_from(bucket).unwrap_or(BUCKETS).min(BUCKETS - 1)
}

/// The lower edge of a bucket, rounded up: below four the buckets are finer than milliseconds.
fn edge(bucket: usize) -> i64 {
    let (octave, quarter) = (bucket / 4, bucket % 4);
    let scaled = (4 + i64::try_from(quarter).unwrap_or(0)) << octave;
    (scaled + 3) / 4
}

/// Run times of attempts since the start of this process. Types beyond a number share nothing: they are not watched.
#[derive(Debug, Default)]
pub struct RunTimes(Mutex<HashMap<String, Runs>>);

impl RunTimes {
    /// An attempt of a type ended by a report.
    pub fn note(&self, kind: &str, ms: i64) {
        // A bucket is counted up or not; a poisoned lock holds nothing half done.
        let mut types = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runs) = types.get_mut(kind) {
            runs.note(ms);
        } else if types.len() < limits::METRIC_NAMES_MAX {
            types.entry(kind.to_owned()).or_default().note(ms);
        }
    }

    pub(super) fn read(&self) -> HashMap<String, Runs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_at_most_a_fifth_above_the_edge_of_its_bucket() {
        for ms in (1..2_000).chain([4_095, 4_096, 3_600_000, 86_400_000, (1 << 40) - 1]) {
            let edge = edge(bucket(ms));
            assert!(edge <= ms && ms * 4 <= edge * 5, "{ms} {edge}");
        }
        assert_eq!(edge(bucket(3_600_000)), 3_145_728);
        assert_eq!((bucket(0), bucket(-5), bucket(i64::MAX)), (0, 0, BUCKETS - 1));
    }

    #[test]
    fn five_of_a_hundred_reach_the_percentile() {
        let times = RunTimes::default();
        let seen = |times: &RunTimes| times.read().get("t").and_then(Runs::p95);
        assert_eq!(seen(&times), None);
        for _ in 0..95 {
            times.note("t", 1);
        }
        for _ in 0..4 {
            times.note("t", 1_024);
        }
        assert_eq!(seen(&times), Some((1, 99)));
        times.note("t", 2_048);
        assert_eq!(seen(&times), Some((1_024, 100)));
        let before = times.read();
        times.note("t", 4_096);
        let since = times.read().get("t").map(|now| now.since(before.get("t")));
        assert_eq!(since.and_then(|runs| runs.p95()), Some((4_096, 1)));
    }
}
