//! What all scenarios share: the server, the clock, names of this run, and how a job is written.

use std::fmt::Write as _;
use std::time::Duration;

use indicatif::ProgressBar;
use tokio::sync::watch;

use super::wire::Target;
use crate::system::SystemClock;

/// See the module.
pub(super) struct World {
    pub(super) target: Target,
    pub(super) clock: SystemClock,
    pub(super) server_pid: Option<u32>,
    /// A scenario ends after this.
    pub(super) most: Duration,
    pub(super) bar: ProgressBar,
    pub(super) stopped: watch::Receiver<bool>,
    /// Part of every name of this run.
    pub(super) run: String,
    pub(super) queue: String,
    pub(super) kind: String,
    /// A JSON text.
    pub(super) payload: String,
    /// Of 100 jobs so many have a key.
    pub(super) keyed: u64,
}

/// The queues of a run: what one scenario leaves behind must not be in the way of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Where producers put jobs.
    In,
    /// Where workers take jobs.
    Work,
    /// Where nothing is but the job that a waiting claim gets.
    Idle,
    /// Where a backlog is that nobody measured takes from.
    Backlog,
}

impl Room {
    pub(super) const ALL: [Self; 4] = [Self::In, Self::Work, Self::Idle, Self::Backlog];

    const fn suffix(self) -> &'static str {
        match self {
            Self::In => "-in",
            Self::Work => "",
            Self::Idle => "-idle",
            Self::Backlog => "-backlog",
        }
    }
}

/// Jobs of one purpose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane<'a> {
    /// Part of the keys.
    pub(super) name: &'a str,
    pub(super) room: Room,
    pub(super) priority: Option<u8>,
}

impl World {
    /// Whether somebody has pressed Ctrl-C.
    pub(super) fn is_stopped(&self) -> bool {
        *self.stopped.borrow()
    }

    /// Name of a queue.
    pub(super) fn queue(&self, room: Room) -> String {
        format!("{}{}", self.queue, room.suffix())
    }

    /// Writes a job.
    pub(super) fn job(&self, lane: Lane<'_>, number: u64, text: &mut String) {
        let Self { queue, kind, payload, run, .. } = self;
        let (Lane { name, priority, .. }, room) = (lane, lane.room.suffix());
        // Writing to memory does not fail.
        write!(text, r#"{{"type":"{kind}","queue":"{queue}{room}","payload":{payload}"#).ok();
        if let Some(priority) = priority {
            write!(text, r#","priority":{priority}"#).ok();
        }
        if self.has_key(number) {
            write!(text, r#","idempotency_key":"bench-{run}-{name}-{number}""#).ok();
        }
        text.push('}');
    }

    /// Spread evenly.
    const fn has_key(&self, number: u64) -> bool {
        number * self.keyed / 100 != (number + 1) * self.keyed / 100
    }
}

/// A JSON text of this many bytes.
pub(super) fn payload(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes.saturating_sub(2)))
}
