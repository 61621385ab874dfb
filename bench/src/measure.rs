//! What is measured: one name for each column of the tables, in the order of a round.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Workers of the drain with one job a call.
pub(crate) const WORKERS: u64 = 64;

/// Jobs of one call of the drain in bulk, where the peer lets us say it.
pub(crate) const BATCH: u64 = 100;

/// Samples of the idle latency that one round tries to take.
const SAMPLES: u64 = 250;

/// A thing that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Measure {
    /// `fdatasync` after an append of 4 KiB.
    FsyncAppend,
    /// `fdatasync` after 4 KiB were written anew in a file whose blocks were there.
    FsyncOverwrite,
    /// From enqueue to start with a consumer that waits on an empty queue.
    Latency,
    /// One job a call, 64 calls in flight.
    Enqueue64,
    /// One row a commit.
    Insert1,
    /// 64 rows a commit.
    Insert64,
    /// One job a call, 512 calls in flight.
    Enqueue512,
    /// Many jobs a call.
    Bulk,
    /// 512 rows a commit.
    Insert512,
    /// Claim and complete, one job a call, 64 workers.
    DrainOne,
    /// Complete and claim the next in one call, 64 workers.
    DrainTurn,
    /// Claim and complete many in a call.
    DrainBulk,
    /// 512 rows claimed in a commit and completed in another.
    Claim512,
}

impl Measure {
    /// In the order of a round: what is compared stands side by side.
    pub(crate) const ALL: [Self; 13] = [
        Self::FsyncAppend,
        Self::FsyncOverwrite,
        Self::Latency,
        Self::Enqueue64,
        Self::Insert1,
        Self::Insert64,
        Self::Enqueue512,
        Self::Bulk,
        Self::Insert512,
        Self::DrainOne,
        Self::DrainTurn,
        Self::DrainBulk,
        Self::Claim512,
    ];

    /// What every job queue is asked for.
    pub(crate) const QUEUE: [Self; 6] =
        [Self::Latency, Self::Enqueue64, Self::Enqueue512, Self::Bulk, Self::DrainOne, Self::DrainBulk];

    /// The heading of its column.
    pub(crate) const fn heading(self) -> &'static str {
        match self {
            Self::FsyncAppend => "fdatasync, 4 KiB appended",
            Self::FsyncOverwrite => "fdatasync, 4 KiB overwritten",
            Self::Latency => "idle latency",
            Self::Enqueue64 => "enqueue, 64 in flight",
            Self::Insert1 => "insert, 1 a commit",
            Self::Insert64 => "insert, 64 a commit",
            Self::Enqueue512 => "enqueue, 512 in flight",
            Self::Bulk => "bulk enqueue",
            Self::Insert512 => "insert, 512 a commit",
            Self::DrainOne => "drain, one a call, 64 workers",
            Self::DrainTurn => "drain, report + claim of one in a call",
            Self::DrainBulk => "drain in bulk",
            Self::Claim512 => "claim + complete, 512 a commit",
        }
    }

    /// Whether it takes jobs out, so that jobs must be there.
    pub(crate) const fn drains(self) -> bool {
        matches!(self, Self::DrainOne | Self::DrainTurn | Self::DrainBulk | Self::Claim512)
    }

    /// What the driver is told.
    pub(crate) fn command(self, time: Duration, pending: u64) -> Value {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        match self {
            Self::FsyncAppend => json!({"do": "fsync_append", "ms": ms}),
            Self::FsyncOverwrite => json!({"do": "fsync_overwrite", "ms": ms}),
            Self::Latency => json!({"do": "latency", "ms": ms, "samples": SAMPLES}),
            Self::Enqueue64 => json!({"do": "enqueue", "ms": ms, "in_flight": 64}),
            Self::Enqueue512 => json!({"do": "enqueue", "ms": ms, "in_flight": 512}),
            Self::Bulk => json!({"do": "bulk", "ms": ms}),
            Self::Insert1 => json!({"do": "insert", "ms": ms, "rows": 1}),
            Self::Insert64 => json!({"do": "insert", "ms": ms, "rows": 64}),
            Self::Insert512 => json!({"do": "insert", "ms": ms, "rows": 512}),
            Self::DrainOne => json!({"do": "drain_one", "ms": ms, "workers": WORKERS, "pending": pending}),
            Self::DrainTurn => json!({"do": "drain_turn", "ms": ms, "workers": WORKERS, "pending": pending}),
            Self::DrainBulk => json!({"do": "drain_bulk", "ms": ms, "batch": BATCH, "pending": pending}),
            Self::Claim512 => json!({"do": "claim", "ms": ms, "rows": 512, "pending": pending}),
        }
    }
}
