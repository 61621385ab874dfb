//! Why a limit lets nothing through, and which jobs wait for that. Judged from what the committer said of the limits.

use tagwerk_core::gate::{LimitSettings, Room, Window, room};
use tagwerk_core::{Status, Timestamp};

use super::{Explanation, Why, WhyKind};
use crate::command::LimitState;
use crate::row::{Lane, LimitRef, LimitUse};

/// A reason why a limit lets nothing through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// A worker has closed it until then.
    Held(Timestamp),
    /// As many jobs run under it as may.
    Full,
    /// As many have started within its period as may; the next may then.
    Spent(Timestamp),
}

/// Every reason why this limit lets nothing through, the one that counts first in front; none if something may start.
#[must_use]
pub fn closed(settings: &LimitSettings, of: &LimitUse, now: Timestamp) -> Vec<Closed> {
    let mut reasons = Vec::new();
    if let Some(until) = of.hold_until.filter(|until| *until > now) {
        reasons.push(Closed::Held(until));
    }
    if settings.max_running.is_some_and(|max| of.running >= max) {
        reasons.push(Closed::Full);
    }
    let rate = LimitSettings { max_running: None, ..settings.clone() };
    if let Room::Until(opens) = room(&rate, 0, (&of.window, None), now) {
        reasons.push(Closed::Spent(opens));
    }
    reasons
}

impl LimitState {
    /// How one of its partitions is used; untouched if nothing of it is known.
    #[must_use]
    pub fn of(&self, limit: &LimitRef) -> LimitUse {
        let unused =
            || LimitUse { limit: limit.clone(), running: 0, window: Window::default(), hold_until: None };
        self.uses.iter().find(|used| used.limit == *limit).cloned().unwrap_or_else(unused)
    }
}

impl Explanation {
    /// Adds what the limits of a pending job say. What could otherwise be handed out cannot, if one of them is closed.
    pub fn add_limits(&mut self, lane: &Lane, states: &[LimitState]) {
        if self.status != Status::Pending || self.reasons.iter().any(|why| why.kind == WhyKind::Expired) {
            return;
        }
        let state_of = |limit: &LimitRef| states.iter().find(|state| state.row.name == limit.name);
        let limits = lane.limits().iter().filter_map(|limit| Some((limit, state_of(limit)?)));
        let found: Vec<Why> = limits.flat_map(|(limit, state)| whys(limit, state)).collect();
        if found.is_empty() {
            return;
        }
        self.reasons.retain(|why| why.kind != WhyKind::Ready);
        let behind = self.reasons.iter().take_while(|why| decides_before(why.kind)).count();
        self.reasons.splice(behind..behind, found);
    }
}

/// Whether a reason decides before limits do: who is not due, in a paused or full queue or behind another job does not get
/// as far as its limits.
const fn decides_before(kind: WhyKind) -> bool {
    matches!(
        kind,
        WhyKind::QueuePaused
            | WhyKind::QueueFull
            | WhyKind::Scheduled
            | WhyKind::Backoff
            | WhyKind::Released
            | WhyKind::BlockedByKey
    )
}

fn whys(limit: &LimitRef, state: &LimitState) -> Vec<Why> {
    let (settings, used) = (&state.row.settings, state.of(limit));
    let why = |closed| match closed {
        Closed::Held(until) => Why {
            kind: WhyKind::Throttled,
            detail: format!("Limit {limit} was closed by a worker for a while."),
            since: None,
            until: Some(until),
            freed_by: "time",
        },
        Closed::Full => Why {
            kind: WhyKind::LimitFull,
            detail: format!(
                "Limit {limit} is full: {} of {} jobs run.",
                used.running,
                settings.max_running.unwrap_or_default()
            ),
            since: None,
            until: None,
            freed_by: "the end of a job that runs under the limit, or a higher max_running",
        },
        Closed::Spent(opens) => Why {
            kind: WhyKind::RateExhausted,
            detail: match settings.rate {
                Some(rate) if rate.spread => format!(
                    "Limit {limit} starts {} in {} ms, evenly spaced; the last start was just now.",
                    rate.count, rate.per_ms
                ),
                Some(rate) => {
                    format!(
                        "Limit {limit} has started {} jobs within {} ms, as many as may.",
                        rate.count, rate.per_ms
                    )
                }
                None => format!("The rate of limit {limit} is used up."),
            },
            since: None,
            until: Some(opens),
            freed_by: "time",
        },
    };
    closed(settings, &used, state.at).into_iter().map(why).collect()
}
