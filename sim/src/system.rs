//! The outside world as the command line needs it: how long it has run, and on how many cores. No simulation sees it.
#![expect(
    clippy::disallowed_methods,
    reason = "the runner measures its own time; worlds have a manual clock"
)]

use std::time::Instant;

/// Time since it was started.
pub(crate) struct Watch(Instant);

impl Watch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// Threads that can run at once.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
