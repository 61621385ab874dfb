//! Limits: how many jobs may run at a time under a name, and how many may start within a period.
//!
//! [`room`] is the whole rule: what a limit lets through at a moment. It is asked with the number of jobs that run now,
//! counted from live leases by the store, so a crash cannot leak a slot.
//!
//! Deliberately absent: names, partitions and which job waits where (the stores know them).

use crate::Timestamp;
pub use crate::rate::{Rate, Window};

/// What a limit bounds. Without either it bounds nothing, but it can still be held until a time.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LimitSettings {
    /// Jobs that may run at the same time.
    pub max_running: Option<u32>,
    /// Jobs that may start within a period.
    pub rate: Option<Rate>,
}

/// What a limit lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// So many, at least 1.
    Open(u32),
    /// Nothing until a job that runs under it ends.
    Full,
    /// Nothing before then. Always later than the moment of asking.
    Until(Timestamp),
}

/// What a limit with these settings lets through now: `running` jobs run under it, `window` has its starts, and it is held
/// until `hold_until`.
///
/// A hold comes first, then slots, then the rate: what opens later than it says is asked again and says so then. Call
/// [`Window::settle`] before, and keep what it changed.
#[must_use]
pub fn room(
    settings: &LimitSettings,
    running: u32,
    (window, hold_until): (&Window, Option<Timestamp>),
    now: Timestamp,
) -> Room {
    if let Some(until) = hold_until.filter(|until| *until > now) {
        return Room::Until(until);
    }
    let slots = settings.max_running.map_or(u32::MAX, |max| max.saturating_sub(running));
    if slots == 0 {
        return Room::Full;
    }
    let Some(rate) = &settings.rate else { return Room::Open(slots) };
    match window.starts_left(rate, now) {
        0 => Room::Until(window.opens_at(rate, now)),
        starts => Room::Open(slots.min(starts)),
    }
}
