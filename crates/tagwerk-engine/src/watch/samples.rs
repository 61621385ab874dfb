//! What happened to each type lately. Kept are sums of the window and, for each of at most [`limits::ALERT_SAMPLES_MAX`]
//! stretches of it, what happened in it: so memory is taken by what happens, not by how many types there are.

use std::collections::{BTreeMap, HashMap, VecDeque};

use tagwerk_core::alert::Ended;
use tagwerk_core::{Timestamp, limits};

use super::failed;
use super::runs::Runs;
use crate::row::{Counter, Tally};

/// Completed, failed, retried, released, reviews.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Events([i64; 5]);

impl Events {
    fn at(tally: &Tally) -> Self {
        let of = |counter| tally.get(counter);
        Self([
            of(Counter::Completions),
            failed(tally),
            of(Counter::Retries),
            of(Counter::Releases),
            of(Counter::Reviews),
        ])
    }

    /// What came since then. A ledger that was mended can go back.
    fn since(self, then: Self) -> Self {
        let mut since = self;
        for (now, then) in since.0.iter_mut().zip(then.0) {
            *now = (*now - then).max(0);
        }
        since
    }

    fn add(&mut self, more: Self, sign: i64) {
        for (mine, more) in self.0.iter_mut().zip(more.0) {
            *mine += sign * more;
        }
    }

    const fn is_nothing(self) -> bool {
        matches!(self.0, [0, 0, 0, 0, 0])
    }
}

/// A stretch of time.
struct Stretch {
    /// When it began: what stands in `events` came after that.
    from: Timestamp,
    events: HashMap<String, Events>,
    /// Run times until it began.
    runs: HashMap<String, Runs>,
}

/// See the module.
#[derive(Default)]
pub(super) struct Samples {
    /// The counters of the last look.
    last: HashMap<String, Events>,
    /// Oldest first.
    stretches: VecDeque<Stretch>,
    /// Sums over all stretches.
    sums: HashMap<String, Events>,
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
            let mut events = Events::at(tally);
            events.0[4] = marks.get(kind).copied().unwrap_or_default();
            (kind.clone(), events)
        });
        self.last = marked.collect();
        self.stretches.push_back(Stretch { from: at, events: HashMap::new(), runs: HashMap::new() });
    }

    /// A look.
    pub(super) fn add(
        &mut self,
        (at, window_ms): (Timestamp, i64),
        types: &BTreeMap<String, Tally>,
        runs: HashMap<String, Runs>,
    ) {
        let grain_ms = window_ms / i64::try_from(limits::ALERT_SAMPLES_MAX).unwrap_or(1);
        let is_due = self.stretches.back().is_none_or(|last| at.since_ms(last.from) >= grain_ms.max(1));
        // What came since the last look came before now, so it belongs to the stretch that ends now.
        for (kind, tally) in types {
            let now = Events::at(tally);
            let came = if let Some(last) = self.last.get_mut(kind) {
                now.since(std::mem::replace(last, now))
            } else {
                self.last.insert(kind.clone(), now);
                now
            };
            if came.is_nothing() {
                continue;
            }
            self.sums.entry(kind.clone()).or_default().add(came, 1);
            if let Some(stretch) = self.stretches.back_mut() {
                stretch.events.entry(kind.clone()).or_default().add(came, 1);
            }
        }
        if is_due {
            self.stretches.push_back(Stretch { from: at, events: HashMap::new(), runs: runs.clone() });
        }
        self.runs = runs;
        // One that has begun before the window stays until the next one has too.
        while self.stretches.get(1).is_some_and(|second| at.since_ms(second.from) >= window_ms) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some(gone) = self.stretches.pop_front() else { return };
        for (kind, events) in gone.events {
            let Some(sum) = self.sums.get_mut(&kind) else { continue };
            sum.add(events, -1);
            if sum.is_nothing() {
                self.sums.remove(&kind);
            }
        }
    }

    /// What happened to a type in the window: attempts that ended, entries into review, 95 of 100 run times and of how many.
    pub(super) fn within(
        &self,
        kind: &str,
        (window_ms, at): (i64, Timestamp),
    ) -> (Ended, i64, Option<(i64, i64)>) {
        let Some(oldest) = self.stretches.front() else { return (Ended::default(), 0, None) };
        let Events([completed, failed, retried, released, reviews]) =
            self.sums.get(kind).copied().unwrap_or_default();
        let whole = at.since_ms(oldest.from) >= window_ms;
        let ended = Ended { completed, failed, retried: retried.min(failed), released, whole };
        let runs = self.runs.get(kind).map(|runs| runs.since(oldest.runs.get(kind)));
        (ended, reviews, runs.and_then(|runs| runs.p95()))
    }

    /// What is kept, in entries.
    #[cfg(test)]
    fn entries(&self) -> usize {
        self.stretches.iter().map(|stretch| stretch.events.len()).sum::<usize>() + self.sums.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW_MS: i64 = 600_000;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millis(second * 1_000)
    }

    fn types(completions: i64) -> BTreeMap<String, Tally> {
        let mut tally = Tally::default();
        tally.add(Counter::Completions, completions);
        BTreeMap::from([("t".to_owned(), tally)])
    }

    /// One completion a second, looked at each five seconds: after each look the window has what came within it, and within
    /// one stretch more.
    #[test]
    fn the_window_holds_what_came_within_it() {
        let mut samples = Samples::default();
        samples.begin(at(0), &types(7), &HashMap::new());
        for second in (0..3_000).step_by(5) {
            samples.add((at(second), WINDOW_MS), &types(7 + second), HashMap::new());
            let (ended, ..) = samples.within("t", (WINDOW_MS, at(second)));
            let least = second.min(600);
            assert!((least..=least + 10).contains(&ended.completed), "{second}: {}", ended.completed);
            assert_eq!(ended.whole, second >= 600);
        }
        // Nothing happens any more.
        for second in (3_000..3_700).step_by(5) {
            samples.add((at(second), WINDOW_MS), &types(7 + 2_995), HashMap::new());
        }
        assert_eq!(samples.within("t", (WINDOW_MS, at(3_695))).0.completed, 0);
        assert_eq!(samples.entries(), 0);
    }

    /// Very many types of which few are used cost an entry each, not one for each stretch.
    #[test]
    fn types_to_which_nothing_happens_cost_nothing_in_the_window() {
        let mut many: BTreeMap<String, Tally> =
            (0..10_000).map(|n| (format!("t{n}"), Tally::default())).collect();
        let mut samples = Samples::default();
        samples.begin(at(0), &many, &HashMap::new());
        for second in (0..600).step_by(10) {
            many.entry("t7".to_owned()).or_default().add(Counter::Completions, 1);
            samples.add((at(second), WINDOW_MS), &many, HashMap::new());
        }
        assert!(samples.entries() <= limits::ALERT_SAMPLES_MAX + 2, "{}", samples.entries());
        assert!(samples.stretches.len() <= limits::ALERT_SAMPLES_MAX + 2, "{}", samples.stretches.len());
    }
}
