//! How many requests a token may still make. Counted in the memory of this server: a restart forgets it.
//!
//! Reports about jobs that a worker holds are not counted and never refused (`is_report`).

use std::sync::{Arc, Mutex, PoisonError};

use tagwerk_api::problem::Code;
use tagwerk_core::Timestamp;
use tagwerk_core::rate::{Rate, Window};

use super::super::problem::Refused;

/// The requests of one token.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    rate: Option<Rate>,
    /// Shared by all that is made of this token, also when the tokens are read anew.
    window: Arc<Mutex<Window>>,
}

impl Meter {
    /// The same requests, held against this rate; `None`: any number.
    pub(super) fn with(&self, rate: Option<Rate>) -> Self {
        Self { rate, window: Arc::clone(&self.window) }
    }

    /// Counts one request, if there may be one more.
    pub(super) fn spend(&self, now: Timestamp) -> Result<(), Refused> {
        let Some(rate) = &self.rate else { return Ok(()) };
        // The count is right after each step, so a poisoned lock holds nothing half done.
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        window.settle(rate, now);
        if window.starts_left(rate, now) > 0 {
            window.take(rate, 1, now);
            return Ok(());
        }
        let wait_ms = window.opens_at(rate, now).as_millis() - now.as_millis();
        let seconds = u32::try_from(wait_ms.max(1)).unwrap_or(u32::MAX).div_ceil(1_000);
        let detail = format!(
            "nothing was done: this token allows {} requests in {} s, and the next in {seconds} s",
            rate.count,
            tagwerk_api::Seconds::from_ms(rate.per_ms)
        );
        Err(Refused::new(Code::RateLimited, detail).after(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + ms)
    }

    #[test]
    fn no_window_has_more_than_the_rate_and_the_wait_is_enough() {
        let meter = Meter::default().with(Some(Rate { count: 5, per_ms: 1_000, spread: false }));
        let mut passed = Vec::new();
        for ms in 0..10_000 {
            if meter.spend(at(ms)).is_ok() {
                passed.push(ms);
            }
        }
        assert!(passed.windows(6).all(|six| six[5] - six[0] >= 1_000), "{passed:?}");
        // 16 of 17 parts of the rate are reached, and the first burst.
        assert!(passed.len() >= 45, "{passed:?}");
    }

    #[test]
    fn what_was_refused_is_not_counted_and_a_new_reading_forgets_nothing() {
        let before = Meter::default().with(Some(Rate { count: 2, per_ms: 60_000, spread: false }));
        assert!(before.spend(at(0)).is_ok() && before.spend(at(0)).is_ok());
        for _ in 0..100 {
            assert_eq!(before.spend(at(1)).unwrap_err().code(), Some(Code::RateLimited));
        }
        let anew = before.with(before.rate);
        assert!(anew.spend(at(2)).is_err());
        let more = before.with(Some(Rate { count: 3, per_ms: 60_000, spread: false }));
        assert!(more.spend(at(3)).is_ok() && more.spend(at(3)).is_err());
        assert!(anew.with(None).spend(at(4)).is_ok());
        // Seventeen sixteenths of the period later all is as at the beginning.
        assert!(anew.spend(at(63_751 + 3_750)).is_ok());
    }
}
