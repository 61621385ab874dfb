//! What a seed decides about capacity: limits and how they are bounded at the start, bounds of queues, keys that take turns.
//!
//! It comes from a stream of its own, so that a world without limits is the same world as before there were any.

use tagwerk_core::gate::LimitSettings;
use tagwerk_core::rate::Rate;
use tagwerk_core::{Priority, QueueSettings, Reserve};
use tagwerk_engine::settings::UnknownLimits;

use crate::chance::Chance;

/// Names of limits in use.
pub(crate) const LIMITS: [&str; 3] = ["crm", "mail", "bank"];

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Caps {
    /// Limits that there are at the start.
    pub(crate) limits: Vec<(String, LimitSettings)>,
    /// Bounds of queues at the start.
    pub(crate) queues: Vec<(String, QueueSettings)>,
    /// How many jobs in 100 name limits.
    pub(crate) limited: u32,
    /// Different keys that take turns; 0: nobody takes turns.
    pub(crate) fair_keys: usize,
    pub(crate) unknown_limits: UnknownLimits,
    /// Queues stay paused at the end, so that their jobs wait for good.
    pub(crate) ends_paused: bool,
}

impl Caps {
    /// What this seed decides; most worlds have no limits at all. `queues` is how many names of queues are in use.
    pub(crate) fn of(seed: u64, queues: usize, nodes: usize) -> Option<Self> {
        let mut chance = Chance::new(seed ^ 0xCA95_CA95);
        if !chance.percent(45) {
            return None;
        }
        let limits = LIMITS.iter().filter(|_| chance.percent(80)).copied().collect::<Vec<_>>();
        let limits = limits.into_iter().map(|name| (name.to_owned(), settings(&mut chance))).collect();
        let names = (0..queues).map(|n| format!("q{n}")).filter(|_| chance.percent(40)).collect::<Vec<_>>();
        let queues = names.into_iter().map(|name| (name, bounds(&mut chance))).collect();
        // One that makes a limit is not seen by the others: each server knows the names as it found them.
        let creates = nodes == 1 && chance.percent(15);
        Some(Self {
            limits,
            queues,
            limited: *chance.pick(&[20, 60, 90]),
            fair_keys: *chance.pick(&[0, 0, 2, 4]),
            unknown_limits: if creates { UnknownLimits::Create } else { UnknownLimits::Refuse },
            ends_paused: chance.percent(40),
        })
    }
}

impl Caps {
    /// The rate that a limit has at the start.
    pub(crate) fn rate_of(&self, name: &str) -> Option<Rate> {
        self.limits.iter().find(|(known, _)| known == name)?.1.rate
    }
}

/// Bounds of a limit. Periods are short and counts low, so that jobs have to wait for them.
pub(crate) fn settings(chance: &mut Chance) -> LimitSettings {
    let max_running = chance.percent(60).then(|| number(chance, 3));
    let rate = chance.percent(50).then(|| Rate {
        count: number(chance, 5),
        per_ms: *chance.pick(&[500, 1_000, 3_000, 7_001]),
        spread: chance.percent(35),
    });
    LimitSettings { max_running, rate }
}

/// Bounds of a queue.
pub(crate) fn bounds(chance: &mut Chance) -> QueueSettings {
    let max_running = chance.percent(70).then(|| number(chance, 4));
    let reserve = max_running.filter(|max| *max > 1 && chance.percent(60)).map(|max| Reserve {
        slots: number(chance, max - 1),
        from_priority: Priority::from_value(*chance.pick(&[10, 11, 20, 30])).unwrap_or_default(),
    });
    QueueSettings {
        max_running,
        reserve,
        max_depth: chance.percent(50).then(|| u64::from(number(chance, 8))),
    }
}

/// From 1 to this.
fn number(chance: &mut Chance, most: u32) -> u32 {
    1 + u32::try_from(chance.below(most as usize)).unwrap_or(0)
}
