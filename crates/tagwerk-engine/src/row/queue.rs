//! What is said about queues.

use tagwerk_core::{Drain, Pause, QueueSettings};

/// What operators have said about a queue.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct QueueRow {
    /// Its name.
    pub name: String,
    /// Bounds.
    pub settings: QueueSettings,
    /// Why its jobs are not handed out, oldest reason first; empty: they are.
    pub paused: Vec<Pause>,
    /// Why producers are refused, if they are.
    pub draining: Option<Drain>,
}

impl QueueRow {
    /// A queue about which nothing was said.
    #[must_use]
    pub fn plain(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Whether nothing is said about it (any more).
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.settings == QueueSettings::default() && self.paused.is_empty() && self.draining.is_none()
    }
}
