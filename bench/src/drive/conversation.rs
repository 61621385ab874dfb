//! The driver's end of the conversation.

use std::io::{BufRead as _, Write as _};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

/// A command of the harness. Fields that it does not use are zero.
#[derive(Debug, Deserialize)]
#[serde(default)]
pub(super) struct Order {
    /// What to do.
    #[serde(rename = "do")]
    pub(super) call: String,
    /// For how long.
    pub(super) ms: u64,
    /// Calls at once.
    pub(super) in_flight: usize,
    /// Workers at once.
    pub(super) workers: usize,
    /// Jobs to bring in, or to take out at most; zero: as many as there are.
    pub(super) jobs: u64,
    /// Jobs that are brought in are scheduled for so much later.
    pub(super) delay_seconds: u64,
    /// Rows of a commit.
    pub(super) rows: usize,
    /// Samples to take.
    pub(super) samples: usize,
    /// Jobs of one call.
    pub(super) batch: u64,
}

impl Default for Order {
    fn default() -> Self {
        let call = String::new();
        let (ms, jobs, delay_seconds, samples) = (0, 0, 0, 0);
        Self { call, ms, in_flight: 1, workers: 1, jobs, delay_seconds, rows: 1, samples, batch: 100 }
    }
}

impl Order {
    /// For how long.
    pub(super) const fn time(&self) -> Duration {
        Duration::from_millis(self.ms)
    }
}

/// What came of it.
#[derive(Debug, Default, Serialize)]
pub(super) struct Tally {
    /// Jobs within the time.
    pub(super) jobs: u64,
    /// The time.
    pub(super) seconds: f64,
    /// Of the calls.
    pub(super) p50_ms: Option<f64>,
    /// Of the calls.
    pub(super) p99_ms: Option<f64>,
    /// With the jobs of calls that ended after the time.
    pub(super) total: u64,
    /// Each wait that was measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) waits_ms: Vec<f64>,
    /// What should be known about how it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

/// What a driver says to a command.
pub(super) enum Reply {
    /// Done.
    Done(Tally),
    /// The peer has no such call.
    Absent(&'static str),
}

/// A system that can be driven.
pub(super) trait Driven {
    /// Carries out an order.
    fn carry_out(&mut self, order: &Order) -> anyhow::Result<Reply>;
}

/// Writes a line.
fn say(line: &serde_json::Value) {
    let mut stdout = std::io::stdout().lock();
    // If nobody reads any more, stdin ends too.
    drop(writeln!(stdout, "{line}").and_then(|()| stdout.flush()));
}

/// The measured part begins.
pub(super) fn mark_begin() {
    say(&json!({"begin": true}));
}

/// The measured part is over.
pub(super) fn mark_end() {
    say(&json!({"end": true}));
}

/// Carries out orders until there are no more.
pub(super) fn converse(peer: &mut impl Driven) -> anyhow::Result<()> {
    say(&json!({"ready": true}));
    for line in std::io::stdin().lock().lines() {
        let order: Order = serde_json::from_str(&line?)?;
        match peer.carry_out(&order) {
            Ok(Reply::Done(tally)) => say(&json!({"done": tally})),
            Ok(Reply::Absent(why)) => say(&json!({"absent": why})),
            Err(error) => say(&json!({"error": format!("{error:#}")})),
        }
    }
    Ok(())
}

/// The p-th per cent of a sorted list.
pub(super) fn percentile(sorted: &[f64], p: usize) -> Option<f64> {
    sorted.get((sorted.len() * p / 100).min(sorted.len().saturating_sub(1))).copied()
}
