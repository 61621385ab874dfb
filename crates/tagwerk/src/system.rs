//! The real world: clock, randomness, what the process may use. The only file of the server that reads these; everything
//! else is handed them.
//!
//! The clock is the wall clock at the start plus monotonic time, so that it does not jitter. A wall clock that was put
//! forward or back is taken over at once: from half a second on the difference counts as a step, and the engine moves
//! live leases along.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the one place where the real clock and randomness come in"
)]

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tagwerk_core::{Timestamp, limits};
use tagwerk_engine::ports::{Clock, Entropy};

/// The machine's clock.
#[derive(Debug)]
pub(crate) struct SystemClock {
    start: Instant,
    /// Wall time less monotonic time, in milliseconds.
    offset_ms: AtomicI64,
}

impl SystemClock {
    /// A clock whose monotonic time begins now.
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), offset_ms: AtomicI64::new(wall_ms()) }
    }

    fn monotonic_ms(&self) -> i64 {
        i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// Both clocks at the same moment: a thread that was put to sleep between two looks must not see a step.
    fn look(&self) -> (i64, i64) {
        loop {
            let before = self.monotonic_ms();
            let wall = wall_ms();
            let after = self.monotonic_ms();
            if after - before < limits::CLOCK_STEP_MS / 10 {
                return (wall, after);
            }
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let (wall, monotonic) = self.look();
        let known = self.offset_ms.load(Ordering::Relaxed);
        let offset = follow(known, wall, monotonic);
        if offset != known {
            self.offset_ms.store(offset, Ordering::Relaxed);
            tracing::warn!(step_ms = offset - known, "the wall clock was stepped");
        }
        Timestamp::from_millis(offset.saturating_add(monotonic))
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

/// The offset to go on with: the known one, unless the wall clock has been stepped.
const fn follow(offset_ms: i64, wall_ms: i64, monotonic_ms: i64) -> i64 {
    let seen = wall_ms.saturating_sub(monotonic_ms);
    if seen.saturating_sub(offset_ms).saturating_abs() >= limits::CLOCK_STEP_MS { seen } else { offset_ms }
}

fn wall_ms() -> i64 {
    let whole = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => whole(since),
        Err(before) => -whole(before.duration()),
    }
}

/// Numbers fetched from the operating system at a time: a system call for each lease would show in a profile.
const BUFFERED: usize = 64;

/// The operating system's randomness.
pub(crate) struct SystemEntropy {
    numbers: Mutex<Vec<u64>>,
}

impl SystemEntropy {
    /// Randomness, if the operating system has any.
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        Ok(Self { numbers: Mutex::new(fetch()?) })
    }
}

impl Entropy for SystemEntropy {
    fn u64(&self) -> u64 {
        // A number is taken or not; a poisoned lock holds nothing half done.
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(number) = numbers.pop() {
                return number;
            }
            // It worked at the start. A system that has lost its randomness must stop handing out leases, and it does:
            // the committer stands still here, and `/readyz` says so.
            match fetch() {
                Ok(fresh) => *numbers = fresh,
                Err(_) => std::thread::yield_now(),
            }
        }
    }
}

fn fetch() -> Result<Vec<u64>, getrandom::Error> {
    let mut bytes = [0; 8 * BUFFERED];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.as_chunks().0.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect())
}

/// Lets this process open as many files as the system allows it, and returns how many that is; `None` for no limit.
pub(crate) fn raise_file_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: now.maximum, maximum: now.maximum };
    // Where raising is not allowed the present limit is what there is.
    setrlimit(Resource::Nofile, wanted).ok();
    getrlimit(Resource::Nofile).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_taken_over_and_slewing_is_not() {
        assert_eq!(follow(1_000, 1_499 + 70, 70), 1_000);
        assert_eq!(follow(1_000, 501 + 70, 70), 1_000);
        assert_eq!(follow(1_000, 1_500 + 70, 70), 1_500);
        assert_eq!(follow(1_000, 500 + 70, 70), 500);
        assert_eq!(follow(0, i64::MIN, i64::MAX), i64::MIN);
    }

    #[test]
    fn the_clock_shows_the_wall_clock() {
        let clock = SystemClock::new();
        let (before, shown) = (wall_ms(), clock.now().as_millis());
        assert!((before - shown).abs() <= limits::CLOCK_STEP_MS, "{before} {shown}");
    }

    #[test]
    fn random_numbers_do_not_repeat() {
        let entropy = SystemEntropy::new().unwrap();
        let mut numbers: Vec<u64> = (0..3 * BUFFERED).map(|_| entropy.u64()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 3 * BUFFERED);
    }
}
