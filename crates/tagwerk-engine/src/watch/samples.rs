//! Counters of a while ago, against which those of now are held.

use std::collections::{BTreeMap, HashMap, VecDeque};

use tagwerk_core::alert::Ended;
use tagwerk_core::{Timestamp, limits};

use super::failed;
use super::runs::Runs;
use crate::row::{Counter, Tally};

/// Counters of a moment.
struct Sample {
    at: Timestamp,
    types: HashMap<String, Tally>,
    runs: HashMap<String, Runs>,
}

/// Samples, oldest first: one that is as old as the window, and those since then, not more than
/// [`limits::ALERT_SAMPLES_MAX`].
#[derive(Default)]
pub(super) struct Samples {
    kept: VecDeque<Sample>,
    /// Run times of now.
    runs: HashMap<String, Runs>,
}

impl Samples {
    /// The first look: entries into review count from the mark on, all other counters from now on.
    pub(super) fn begin(
        &mut self,
        at: Timestamp,
        types: &BTreeMap<String, Tally>,
        marks: &HashMap<String, i64>,
    ) {
        let marked = types.iter().map(|(kind, tally)| {
            let mut tally = *tally;
            let mark = marks.get(kind).copied().unwrap_or_default();
            tally.add(Counter::Reviews, mark - tally.get(Counter::Reviews));
            (kind.clone(), tally)
        });
        self.kept.push_back(Sample { at, types: marked.collect(), runs: HashMap::new() });
    }

    /// A look.
    pub(super) fn add(
        &mut self,
        (at, window_ms): (Timestamp, i64),
        types: &BTreeMap<String, Tally>,
        runs: HashMap<String, Runs>,
    ) {
        let grain_ms = window_ms / i64::try_from(limits::ALERT_SAMPLES_MAX).unwrap_or(1);
        let is_due = self.kept.back().is_none_or(|last| at.since_ms(last.at) >= grain_ms.max(1));
        if is_due {
            let types = types.iter().map(|(kind, tally)| (kind.clone(), *tally)).collect();
            self.kept.push_back(Sample { at, types, runs: runs.clone() });
        }
        self.runs = runs;
        // One that is older than the window is what it is held against.
        while self.kept.get(1).is_some_and(|second| at.since_ms(second.at) >= window_ms) {
            self.kept.pop_front();
        }
    }

    /// What happened to a type in the window: attempts that ended, entries into review, 95 of 100 run times and of how many.
    pub(super) fn within(
        &self,
        kind: &str,
        now: &Tally,
        (window_ms, at): (i64, Timestamp),
    ) -> (Ended, i64, Option<(i64, i64)>) {
        let Some(then) = self.kept.front() else { return (Ended::default(), 0, None) };
        let before = then.types.get(kind).copied().unwrap_or_default();
        // A ledger that was mended can go back.
        let since = |counter: Counter| (now.get(counter) - before.get(counter)).max(0);
        let failed = (failed(now) - failed(&before)).max(0);
        let ended = Ended {
            completed: since(Counter::Completions),
            failed,
            retried: since(Counter::Retries).min(failed),
            released: since(Counter::Releases),
            whole: at.since_ms(then.at) >= window_ms,
        };
        let runs = self.runs.get(kind).map(|runs| runs.since(then.runs.get(kind)));
        (ended, since(Counter::Reviews), runs.and_then(|runs| runs.p95()))
    }
}
