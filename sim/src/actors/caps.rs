//! Limits, fair keys and throttles as chance gives them, in worlds that have them.

use std::sync::Arc;

use tagwerk_core::Outcome;
use tagwerk_engine::command::{EnqueueJob, Said, Throttle};
use tagwerk_engine::row::{LimitRef, Special};

use super::Desk;
use crate::chance::Chance;
use crate::plan::LIMITS;

/// Gives a job limits and a fair key, if the world has any.
pub(super) fn special(desk: &mut Desk<'_>, job: &mut EnqueueJob) {
    let Some(caps) = &desk.plan.caps else { return };
    let chance = &mut *desk.chance;
    let mut limits = Vec::new();
    if chance.percent(caps.limited) {
        limits = (0..=chance.below(2)).map(|_| limit(chance)).collect();
        limits.sort_unstable();
        limits.dedup();
    }
    let takes_turns = caps.fair_keys > 0 && chance.percent(70);
    let fair_key = takes_turns.then(|| format!("f{}", chance.below(caps.fair_keys)));
    if !limits.is_empty() || fair_key.is_some() {
        job.special = Some(Arc::new(Special { limits, fair_key }));
    }
}

/// One of the limits or of their partitions, now and then one that there is not.
fn limit(chance: &mut Chance) -> LimitRef {
    let name = if chance.percent(4) { "nobody" } else { *chance.pick(&LIMITS) };
    let partition = match chance.below(4) {
        0 => "north",
        1 => "south",
        _ => "",
    };
    LimitRef { name: name.to_owned(), partition: partition.to_owned() }
}

/// A failure that also holds back a limit, if the world has any.
pub(super) fn throttled(desk: &mut Desk<'_>, said: Said) -> Said {
    if desk.plan.caps.is_none() {
        return said;
    }
    let chance = &mut *desk.chance;
    match said {
        Said::Report { outcome: outcome @ Outcome::Failed { .. }, result: None } if chance.percent(40) => {
            let for_ms = *chance.pick(&[1, 400, 3_000, 12_000]);
            let throttle = Box::new(Throttle { limit: limit(chance), for_ms });
            Said::Throttle { outcome, throttle }
        }
        other => other,
    }
}
