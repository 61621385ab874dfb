//! What is known of a run besides its calls.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// See the module. The default fits a server that was never stopped, on a machine whose clock runs evenly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// What a call without an answer means.
    pub silence: Silence,
    /// Moments when a server was surely gone. A call that was under way before and got no answer happened by then or never.
    pub stopped_ns: Vec<u64>,
    /// How much earlier than told a lease may end by the clients' clock: rounding, and clocks of different pace.
    pub lease_early_ms: u64,
    /// How much later than told a lease may still be held. `None`: nobody knows, because a server that stood still or was
    /// down moves leases by as much.
    pub lease_late_ms: Option<u64>,
    /// How much a lease's end may go back between two answers, because a restart took a corrected clock.
    pub clock_ms: i64,
    /// The age at which completed jobs may be erased; `None`: never.
    pub completed_kept_ms: Option<u64>,
    /// The age at which cancelled jobs may be erased; `None`: never.
    pub cancelled_kept_ms: Option<u64>,
    /// How many jobs may run at a time under each limit or partition of it, by the limit's name.
    pub limits: BTreeMap<String, u32>,
    /// How many steps the search for one part may take before it gives up.
    pub patience: usize,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            silence: Silence::MeansEither,
            stopped_ns: Vec::new(),
            lease_early_ms: 20,
            lease_late_ms: None,
            clock_ms: 50,
            completed_kept_ms: None,
            cancelled_kept_ms: None,
            limits: BTreeMap::new(),
            patience: 300_000,
        }
    }
}

/// What a call without an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Silence {
    /// It happened wholly or not at all.
    MeansEither,
    /// It did not happen: the server stopped in order.
    MeansNo,
}

/// When a step was made: not before `lo` and not after `hi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct When {
    pub(crate) lo: u64,
    pub(crate) hi: u64,
}

impl When {
    /// This long after it.
    pub(crate) fn plus_ms(self, ms: i64) -> Self {
        Self { lo: plus_ms(self.lo, ms), hi: plus_ms(self.hi, ms) }
    }
}

/// A moment and a length of time in milliseconds.
pub(crate) fn plus_ms(ns: u64, ms: i64) -> u64 {
    let length = ms.unsigned_abs().saturating_mul(1_000_000);
    if ms < 0 { ns.saturating_sub(length) } else { ns.saturating_add(length) }
}
