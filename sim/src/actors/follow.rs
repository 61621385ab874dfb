//! Jobs that a completed one leads to, in worlds where that happens.

use tagwerk_core::Outcome;
use tagwerk_engine::command::{FollowUps, Said};

use super::{Desk, order};

/// A completion that leads to other jobs, if chance says so.
pub(super) fn leading(desk: &mut Desk<'_>, said: Said) -> Said {
    if desk.plan.leads == 0 {
        return said;
    }
    match said {
        Said::Report { outcome: Outcome::Completed, result } if desk.chance.percent(desk.plan.leads) => {
            // Mostly one, so that work does not grow without end.
            let count = 1 + desk.chance.weighted(&[80, 15, 5]);
            let jobs: Vec<_> = (0..count).map(|_| order::job(desk)).collect();
            let sent = format!("{jobs:?}");
            Said::Lead { result, follow_ups: Box::new(FollowUps::new(jobs, sent)) }
        }
        other => other,
    }
}
