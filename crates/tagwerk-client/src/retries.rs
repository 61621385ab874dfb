//! How often and how patiently a call is repeated.

use std::time::Duration;

/// A server that asks for a longer wait than this gets no repetition: the caller decides.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(1);

/// How a call that may be repeated is repeated: waits double from `first` up to `cap`, and are never shorter than the
/// server's `Retry-After`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// How often a call is sent at most. 1 = never again.
    pub tries: u32,
    /// The wait before the second try.
    pub first: Duration,
    /// No wait is longer, unless the server asks for it.
    pub cap: Duration,
    /// Where in [d/2, d] a wait of length d falls: clients with different seeds do not come back all at once.
    pub seed: u64,
}

impl Default for Retries {
    /// Five tries within about two seconds.
    fn default() -> Self {
        Self { tries: 5, first: Duration::from_millis(150), cap: Duration::from_secs(5), seed: 0 }
    }
}

impl Retries {
    /// Every call is sent once.
    pub const NONE: Self = Self { tries: 1, first: Duration::ZERO, cap: Duration::ZERO, seed: 0 };

    /// How long to wait before the next try, after `tries` tries. `None` = give up.
    #[must_use]
    pub fn wait(&self, tries: u32, retry_after: Option<Duration>) -> Option<Duration> {
        let asked = retry_after.unwrap_or(Duration::ZERO);
        if tries >= self.tries || asked > RETRY_AFTER_MAX {
            return None;
        }
        let doubled = self.first.saturating_mul(1 << (tries.saturating_sub(1)).min(20)).min(self.cap);
        let half = doubled / 2;
        // Four decimals of chance are plenty.
        let part = u32::try_from(mixed(self.seed, tries) % 10_000).unwrap_or(0);
        Some((half + half * part / 10_000).max(asked))
    }
}

/// A number that looks like chance but follows from seed and number of tries (`SplitMix64`).
const fn mixed(seed: u64, tries: u32) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(tries as u64 + 1));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_grow_to_a_bound_and_end() {
        for seed in 0..50 {
            let retries = Retries { tries: 40, first: SECOND, cap: 8 * SECOND, seed };
            for (tries, most) in [(1, 1), (2, 2), (3, 4), (4, 8), (5, 8), (39, 8)] {
                let wait = retries.wait(tries, None).unwrap();
                assert!(wait <= most * SECOND && wait >= most * SECOND / 2, "{seed} {tries} {wait:?}");
            }
            assert_eq!(retries.wait(40, None), None);
        }
        assert_eq!(Retries::NONE.wait(1, None), None);
    }

    #[test]
    fn the_server_may_ask_for_longer_but_not_for_ever() {
        let retries = Retries::default();
        assert_eq!(retries.wait(1, Some(30 * SECOND)), Some(30 * SECOND));
        assert_eq!(retries.wait(1, Some(61 * SECOND)), None);
        assert!(retries.wait(3, Some(Duration::ZERO)).unwrap() >= Duration::from_millis(300));
    }

    #[test]
    fn seeds_spread_the_waits() {
        let wait = |seed| Retries { seed, ..Retries::default() }.wait(1, None);
        assert!((1..20).any(|seed| wait(seed) != wait(0)));
    }
}
