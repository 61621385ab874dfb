//! From which figure on something rings, in general and for single queues and types.

use std::collections::BTreeMap;

use super::{Kind, Scope};
use crate::limits;

/// One threshold a kind, in the kind's unit; `None` switches it off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds([Option<i64>; Kind::ALL.len()]);

impl Default for Thresholds {
    fn default() -> Self {
        let mut all = Self([None; Kind::ALL.len()]);
        for (kind, threshold) in limits::ALERT_DEFAULTS {
            all.set(kind, Some(threshold));
        }
        all
    }
}

impl Thresholds {
    /// That of a kind.
    #[must_use]
    pub const fn get(&self, kind: Kind) -> Option<i64> {
        self.0[kind as usize]
    }

    /// Changes one.
    pub const fn set(&mut self, kind: Kind, threshold: Option<i64>) {
        self.0[kind as usize] = threshold;
    }
}

/// What is said about one queue or type.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Rule {
    /// Other thresholds than in general; the inner `None` switches a kind off.
    pub thresholds: BTreeMap<Kind, Option<i64>>,
    /// Who is responsible; free text.
    pub owner: Option<String>,
}

/// Everything that is said about thresholds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// In general.
    pub general: Thresholds,
    /// For single queues and types.
    pub single: BTreeMap<Scope, Rule>,
    /// How far back rates, new reviews and run times look, in milliseconds.
    pub window_ms: i64,
    /// Attempts that a rate or a percentile needs at least: of three attempts two failures are no rate.
    pub attempts_min: i64,
    /// How long a figure must have been well below before its alert closes, in milliseconds.
    pub calm_ms: i64,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            general: Thresholds::default(),
            single: BTreeMap::new(),
            window_ms: limits::ALERT_WINDOW_DEFAULT_MS,
            attempts_min: limits::ALERT_ATTEMPTS_MIN_DEFAULT,
            calm_ms: limits::ALERT_CALM_DEFAULT_MS,
        }
    }
}

impl Rules {
    /// From which figure on this rings; `None`: never.
    #[must_use]
    pub fn threshold(&self, kind: Kind, scope: &Scope) -> Option<i64> {
        let single = self.single.get(scope).and_then(|rule| rule.thresholds.get(&kind));
        single.copied().unwrap_or_else(|| self.general.get(kind))
    }

    /// The longest threshold of a kind that has any.
    #[must_use]
    pub fn longest(&self, kind: Kind) -> Option<i64> {
        let single = self.single.values().filter_map(|rule| rule.thresholds.get(&kind).copied().flatten());
        single.chain(self.general.get(kind)).max()
    }

    /// Who is responsible, if that was said here.
    #[must_use]
    pub fn owner(&self, scope: &Scope) -> Option<&str> {
        self.single.get(scope)?.owner.as_deref()
    }
}
