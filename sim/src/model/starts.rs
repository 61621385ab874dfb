//! The starts under a rate, and what is certain of them.
//!
//! Section 6 leaves a choice: never more than `count` starts in any window of the period, at least 15/16 of them under
//! load. So between one period after a start and seventeen sixteenths of it nobody can say whether it still counts. The
//! clock widens that: put forward it may open a rate early, put back it may keep it closed for a period and a sixteenth. So
//! does a change of the rate: only the starts count on that the old period could still see.

use tagwerk_core::rate::Rate;

/// How certain it is that something lets a job through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Open {
    No,
    Maybe,
    Yes,
}

/// The wall clock, and all its steps and running forward added up: what no implementation can have counted more of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    pub(super) wall: i64,
    pub(super) forward: i64,
}

/// Between which instants something opens; both in the past or now: it is open.
pub(super) type Span = (i64, i64);

/// Whether it has opened by now.
pub(super) fn open_by((low, high): Span, now: i64) -> Open {
    match (low > now, high > now) {
        (true, _) => Open::No,
        (false, true) => Open::Maybe,
        (false, false) => Open::Yes,
    }
}

/// Whether a start counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counts {
    Surely,
    /// What was met past its maximum age instead of being handed out may have been counted, too.
    Perhaps,
}

/// Sub-windows of a period by which rates are allowed to be counted.
const PARTS: i64 = 16;

#[derive(Clone, Debug)]
struct Start {
    forward: i64,
    /// The highest reading of the wall clock at which it can be thought to have been.
    high: i64,
    /// The clock was put back since.
    is_put_back: bool,
    /// What a change of the period adds to its age.
    slack: i64,
    /// It must count.
    is_sure: bool,
    /// The shortest period since, in which it must have been looked at to be known still: a change of the rate is met at
    /// the next claim.
    known_ms: i64,
    /// The rate was spread.
    is_spread: bool,
    /// Shortest and longest distance to the next one that rates have asked for since, had they been spread.
    gaps: (i64, i64),
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Starts {
    all: Vec<Start>,
}

impl Starts {
    /// A job was handed out, or may have been.
    pub(super) fn add(&mut self, rate: &Rate, at: Reading, counts: Counts) {
        let gap = rate.per_ms / i64::from(rate.count);
        self.all.push(Start {
            forward: at.forward,
            high: at.wall,
            is_put_back: false,
            slack: 0,
            is_sure: counts == Counts::Surely,
            known_ms: rate.per_ms,
            is_spread: rate.spread,
            gaps: (gap, gap),
        });
    }

    /// The wall clock was put back from there.
    pub(super) fn put_back(&mut self, from: i64) {
        for start in &mut self.all {
            start.high = start.high.max(from);
            start.is_put_back = true;
        }
    }

    /// Another rate holds from now on, or none.
    pub(super) fn change(&mut self, old: Option<&Rate>, new: Option<&Rate>, at: Reading) {
        for start in &mut self.all {
            if let Some(old) = old {
                start.is_sure &= new.is_some() && at.forward - start.forward < old.per_ms;
                start.slack += old.per_ms / PARTS + 1;
            }
            if let Some(new) = new {
                start.known_ms = start.known_ms.min(new.per_ms);
                let gap = new.per_ms / i64::from(new.count);
                start.gaps = (start.gaps.0.min(gap), start.gaps.1.max(gap));
            }
        }
    }

    /// Between which instants the next may start.
    pub(super) fn opens(&self, rate: &Rate, at: Reading) -> Span {
        (self.earliest(rate, at), self.latest(rate, at))
    }

    fn earliest(&self, rate: &Rate, at: Reading) -> i64 {
        let sure = || self.all.iter().filter(|start| start.is_sure);
        let left = |start: &Start, ms: i64| ms - (at.forward - start.forward);
        let mut counted: Vec<i64> = sure()
            .map(|start| left(start, rate.per_ms.min(start.known_ms)))
            .filter(|left| *left > 0)
            .collect();
        let of_count = of_enough(&mut counted, rate).unwrap_or(0);
        let of_gap = if rate.spread { sure().map(|start| left(start, start.gaps.0)).max() } else { None };
        at.wall + of_count.max(of_gap.unwrap_or(0)).max(0)
    }

    fn latest(&self, rate: &Rate, at: Reading) -> i64 {
        let until = |start: &Start| {
            let parts = PARTS + if start.is_put_back { 2 } else { 1 };
            start.high + rate.per_ms * parts / PARTS + 2 + start.slack
        };
        if rate.spread {
            let gaps = self.all.iter().map(|start| start.high + start.gaps.1 + 2);
            // What came in a crowd may have to be waited for.
            let crowd = self.all.iter().filter(|start| !start.is_spread).map(until);
            return gaps.chain(crowd).max().map_or(at.wall, |until| until.max(at.wall));
        }
        let mut counted: Vec<i64> = self.all.iter().map(until).filter(|until| *until > at.wall).collect();
        of_enough(&mut counted, rate).unwrap_or(at.wall)
    }
}

/// Of the instants at which starts leave the one at which enough have left; `None` if no more count than may.
fn of_enough(leaving: &mut [i64], rate: &Rate) -> Option<i64> {
    leaving.sort_unstable();
    let index = leaving.len().checked_sub(rate.count as usize)?;
    leaving.get(index).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_counts_for_a_period_and_at_most_a_sixteenth_more() {
        let rate = Rate { count: 2, per_ms: 1_600, spread: false };
        let at = |ms: i64| Reading { wall: 1_000_000 + ms, forward: ms };
        let mut starts = Starts::default();
        let open = |starts: &Starts, ms: i64| open_by(starts.opens(&rate, at(ms)), at(ms).wall);
        starts.add(&rate, at(0), Counts::Surely);
        assert_eq!(open(&starts, 0), Open::Yes);
        starts.add(&rate, at(100), Counts::Surely);
        assert_eq!(open(&starts, 1_599), Open::No);
        assert_eq!(open(&starts, 1_600), Open::Maybe);
        assert_eq!(open(&starts, 1_702), Open::Yes, "the second one counts, and one more may start");
        starts.add(&rate, at(1_702), Counts::Surely);
        assert_eq!(
            starts.opens(&rate, at(1_702)).0,
            at(1_702).wall,
            "the one of 100 is out of sight at 1,700"
        );
        starts.add(&rate, at(1_702), Counts::Surely);
        assert_eq!(starts.opens(&rate, at(1_702)).0, at(3_302).wall);
    }

    #[test]
    fn spread_starts_keep_their_distance() {
        let rate = Rate { count: 3, per_ms: 1_000, spread: true };
        let at = |ms: i64| Reading { wall: ms, forward: ms };
        let mut starts = Starts::default();
        starts.add(&rate, at(10), Counts::Surely);
        assert_eq!(starts.opens(&rate, at(10)), (343, 345));
    }
}
