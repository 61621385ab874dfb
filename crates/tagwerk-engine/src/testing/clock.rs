//! A clock that stands still until a test moves it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tagwerk_core::Timestamp;

use super::lock;
use crate::ports::Clock;

/// A clock moved by hand. Clones are the same clock.
#[derive(Clone, Debug)]
pub struct ManualClock {
    hands: Arc<Mutex<Hands>>,
}

#[derive(Debug)]
struct Hands {
    now: Timestamp,
    monotonic: Duration,
}

impl ManualClock {
    /// A clock that shows `now`.
    pub fn new(now: Timestamp) -> Self {
        Self { hands: Arc::new(Mutex::new(Hands { now, monotonic: Duration::ZERO })) }
    }

    /// Lets `ms` milliseconds pass.
    pub fn advance(&self, ms: u32) {
        let mut hands = lock(&self.hands);
        hands.now = hands.now.plus_ms(i64::from(ms));
        hands.monotonic += Duration::from_millis(u64::from(ms));
    }

    /// Puts the wall clock to `now`, forwards or backwards, while no time passes.
    pub fn set(&self, now: Timestamp) {
        lock(&self.hands).now = now;
    }
}

impl Default for ManualClock {
    /// A clock that shows a moment in the year 2026, so that 64-bit milliseconds are in play.
    fn default() -> Self {
        Self::new(Timestamp::from_millis(1_780_000_000_000))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        lock(&self.hands).now
    }

    fn monotonic(&self) -> Duration {
        lock(&self.hands).monotonic
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_for_all_clones_and_a_set_clock_does_not_age() {
        let clock = ManualClock::new(Timestamp::from_millis(1_000));
        let other = clock.clone();
        clock.advance(5);
        assert_eq!((other.now().as_millis(), other.monotonic()), (1_005, Duration::from_millis(5)));
        other.set(Timestamp::from_millis(10));
        assert_eq!((clock.now().as_millis(), clock.monotonic()), (10, Duration::from_millis(5)));
    }
}
