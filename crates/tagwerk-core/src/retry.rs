//! Back-off: how long a failed job waits before its next attempt.

use crate::limits;
use crate::names::names;

/// How the computed delay is spread, so that a fleet does not retry in step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Jitter {
    /// Exactly the computed delay.
    None,
    /// Uniform between half of the delay and all of it.
    #[default]
    Equal,
    /// Uniform between nothing and the delay.
    Full,
}

names!(Jitter { None => "none", Equal => "equal", Full => "full" });

/// A complete back-off policy. Delay before retry n: `min(cap, base · factor^(n-1))`, then jitter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Delay before the first retry in milliseconds; 0 retries at once.
    pub base_ms: i64,
    /// Growth per retry, at least 1.
    pub factor: f64,
    /// Upper edge in milliseconds.
    pub cap_ms: i64,
    /// Spread.
    pub jitter: Jitter,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            base_ms: limits::RETRY_BASE_DEFAULT_MS,
            factor: limits::RETRY_FACTOR_DEFAULT,
            cap_ms: limits::RETRY_CAP_DEFAULT_MS,
            jitter: Jitter::default(),
        }
    }
}

/// A policy in which each field may be left to the next level (job, type, queue, server).
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct RetryOverrides {
    /// See [`RetryPolicy::base_ms`].
    pub base_ms: Option<i64>,
    /// See [`RetryPolicy::factor`].
    pub factor: Option<f64>,
    /// See [`RetryPolicy::cap_ms`].
    pub cap_ms: Option<i64>,
    /// See [`RetryPolicy::jitter`].
    pub jitter: Option<Jitter>,
}

impl RetryOverrides {
    /// These overrides, each field that is not set taken from the next level. `job.or(type_).or(queue)`.
    #[must_use]
    pub fn or(self, next: Self) -> Self {
        Self {
            base_ms: self.base_ms.or(next.base_ms),
            factor: self.factor.or(next.factor),
            cap_ms: self.cap_ms.or(next.cap_ms),
            jitter: self.jitter.or(next.jitter),
        }
    }

    /// The complete policy: what is not set here comes from the last level, the server's.
    #[must_use]
    pub fn resolve(self, last: &RetryPolicy) -> RetryPolicy {
        RetryPolicy {
            base_ms: self.base_ms.unwrap_or(last.base_ms),
            factor: self.factor.unwrap_or(last.factor),
            cap_ms: self.cap_ms.unwrap_or(last.cap_ms),
            jitter: self.jitter.unwrap_or(last.jitter),
        }
    }
}

/// Milliseconds to wait before retry `n` (1 = the first): `min(cap, base · factor^(n-1))`, then jitter by 64 random
/// bits. Never negative and never above the cap, whatever the policy says; a factor below 1 (or not a number) counts as 1.
#[must_use]
pub fn backoff_ms(policy: &RetryPolicy, n: u32, random: u64) -> i64 {
    let delay_ms = capped_ms(policy, n);
    match policy.jitter {
        Jitter::None => delay_ms,
        Jitter::Equal => uniform_ms(delay_ms - delay_ms / 2, delay_ms, random),
        Jitter::Full => uniform_ms(0, delay_ms, random),
    }
}

/// Milliseconds to wait after the first lost lease: uniform between nothing and the smaller of base and a second.
/// The cap holds here too.
#[must_use]
pub fn first_loss_ms(policy: &RetryPolicy, random: u64) -> i64 {
    let most_ms = policy.base_ms.min(policy.cap_ms).clamp(0, limits::FIRST_LOSS_DELAY_MAX_MS);
    uniform_ms(0, most_ms, random)
}

/// The delay before jitter.
///
/// The power is built step by step and left as soon as it reaches the cap, so there is nothing to overflow; and
/// multiplication, unlike `powi`, gives the same bits on every platform, which replays rely on.
fn capped_ms(policy: &RetryPolicy, n: u32) -> i64 {
    let cap_ms = policy.cap_ms.max(0);
    let base_ms = policy.base_ms.clamp(0, cap_ms);
    let factor = policy.factor.max(1.0);
    let (cap, mut delay) = (float(cap_ms), float(base_ms));
    // More retries than are allowed at all need no larger delay; this bounds the loop for factors close to 1.
    for _ in 1..n.min(limits::MAX_RETRIES.max) {
        delay *= factor;
        if delay >= cap {
            return cap_ms;
        }
    }
    whole(delay).clamp(base_ms, cap_ms)
}

/// Uniform in `low..=high`: multiply and shift instead of a remainder, so no value is favoured noticeably.
fn uniform_ms(low: i64, high: i64, random: u64) -> i64 {
    let span = u128::from(high.abs_diff(low)) + 1;
    let offset = (u128::from(random) * span) >> 64;
    low.saturating_add(i64::try_from(offset).unwrap_or(0))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "exact up to 285,000 years; beyond that a millisecond is nothing"
)]
const fn float(ms: i64) -> f64 {
    ms as f64
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the part after the point is dropped on purpose; the cast saturates"
)]
const fn whole(ms: f64) -> i64 {
    ms as i64
}
