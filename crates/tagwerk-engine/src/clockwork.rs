//! Time in which nobody could report does not count against a lease.
//!
//! The store keeps `served_until`, rewritten at least once a second. Who finds a gap (at the start, or after the process
//! or its disk stood still) first moves all live leases by it. A step of the wall clock moves them along as well.

use std::time::Duration;

use tagwerk_core::{Timestamp, limits};

/// Watches both clocks between batches.
pub(crate) struct Clockwork {
    wall: Timestamp,
    monotonic: Duration,
    /// What the store said at the start, until the first batch is committed.
    served_before: Option<Timestamp>,
    marked: Option<Duration>,
}

/// What a batch has to do about time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    wall: Timestamp,
    monotonic: Duration,
    /// By how much live leases are to be moved, in milliseconds.
    pub(crate) shift_ms: i64,
    /// Whether `served_until` is to be rewritten.
    pub(crate) mark_served: bool,
}

impl Reading {
    /// The wall clock's time.
    pub(crate) const fn wall(&self) -> Timestamp {
        self.wall
    }
}

impl Clockwork {
    pub(crate) const fn new(wall: Timestamp, monotonic: Duration, served_before: Option<Timestamp>) -> Self {
        Self { wall, monotonic, served_before, marked: None }
    }

    pub(crate) fn read(&self, wall: Timestamp, monotonic: Duration) -> Reading {
        let elapsed = ms(monotonic.saturating_sub(self.monotonic));
        let step = wall.since_ms(self.wall).saturating_sub(elapsed);
        let gap = match self.served_before {
            Some(served) => wall.since_ms(served),
            None => elapsed,
        };
        let mut shift_ms = 0;
        if gap > limits::GAP_THRESHOLD_MS {
            shift_ms += gap.min(limits::GAP_CAP_MS);
        }
        // Somebody has served until a time that has not come yet: the clock was put back while nobody served.
        if gap <= -limits::CLOCK_STEP_MS {
            shift_ms += gap;
        }
        // Before the first batch the gap is measured on the wall clock and holds the step already.
        if self.served_before.is_none() && step.abs() >= limits::CLOCK_STEP_MS {
            shift_ms += step;
        }
        let due = |marked: Duration| ms(monotonic.saturating_sub(marked)) >= limits::SERVED_UNTIL_EVERY_MS;
        Reading { wall, monotonic, shift_ms, mark_served: shift_ms != 0 || self.marked.is_none_or(due) }
    }

    /// The batch with this reading is committed.
    pub(crate) fn committed(&mut self, reading: &Reading) {
        self.wall = reading.wall;
        self.monotonic = reading.monotonic;
        self.served_before = None;
        if reading.mark_served {
            self.marked = Some(reading.monotonic);
        }
    }
}

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + ms)
    }

    const fn mono(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_gap_at_the_start_moves_leases_once() {
        let mut clockwork = Clockwork::new(at(60_000), mono(0), Some(at(0)));
        let reading = clockwork.read(at(60_000), mono(0));
        assert_eq!((reading.shift_ms, reading.mark_served), (60_000, true));
        clockwork.committed(&reading);
        assert_eq!(clockwork.read(at(60_010), mono(10)).shift_ms, 0);
    }

    #[test]
    fn a_failed_batch_leaves_the_gap_to_the_next() {
        let clockwork = Clockwork::new(at(60_000), mono(0), Some(at(0)));
        assert_eq!(clockwork.read(at(60_000), mono(0)).shift_ms, 60_000);
        assert_eq!(clockwork.read(at(61_000), mono(1_000)).shift_ms, 61_000);
    }

    #[test]
    fn three_seconds_are_no_gap_and_an_hour_is_the_cap() {
        let served = |ms| Clockwork::new(at(ms), mono(0), Some(at(0))).read(at(ms), mono(0)).shift_ms;
        assert_eq!(served(3_000), 0);
        assert_eq!(served(3_001), 3_001);
        assert_eq!(served(3_600_001), 3_600_000);
        assert_eq!(Clockwork::new(at(0), mono(0), None).read(at(0), mono(0)).shift_ms, 0);
    }

    #[test]
    fn a_clock_that_was_put_back_while_nobody_served_moves_leases_back() {
        let served = |ms| Clockwork::new(at(ms), mono(0), Some(at(3_600_000))).read(at(ms), mono(0)).shift_ms;
        assert_eq!(served(0), -3_600_000);
        assert_eq!(served(3_599_501), 0);
    }

    #[test]
    fn a_stall_moves_leases_by_its_length() {
        let mut clockwork = Clockwork::new(at(0), mono(0), None);
        let reading = clockwork.read(at(0), mono(0));
        clockwork.committed(&reading);
        assert_eq!(clockwork.read(at(30_000), mono(30_000)).shift_ms, 30_000);
        assert_eq!(
            clockwork.read(at(1_000), mono(1_000)),
            Reading { wall: at(1_000), monotonic: mono(1_000), shift_ms: 0, mark_served: true }
        );
        assert!(!clockwork.read(at(999), mono(999)).mark_served);
    }

    #[test]
    fn a_step_of_the_wall_clock_moves_leases_along_both_ways() {
        let mut clockwork = Clockwork::new(at(0), mono(0), None);
        let reading = clockwork.read(at(0), mono(0));
        clockwork.committed(&reading);
        assert_eq!(clockwork.read(at(7_200_100), mono(100)).shift_ms, 7_200_000);
        assert_eq!(clockwork.read(at(-7_199_900), mono(100)).shift_ms, -7_200_000);
        assert_eq!(clockwork.read(at(599), mono(100)).shift_ms, 0);
    }
}
