//! Back-off: how long a failed job waits before its next attempt.

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
