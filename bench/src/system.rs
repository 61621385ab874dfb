//! The one file of the bench that reads the clock, and the one that waits without a signal.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The moment, for measuring.
#[expect(clippy::disallowed_methods, reason = "the one place of the bench that reads the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// How long ago that was.
pub(crate) fn since(start: Instant) -> Duration {
    now().saturating_duration_since(start)
}

/// Seconds since that moment.
pub(crate) fn seconds_since(start: Instant) -> f64 {
    since(start).as_secs_f64()
}

/// The time of day in UTC, for names and headings.
#[expect(clippy::disallowed_methods, reason = "the one place of the bench that reads the clock")]
pub(crate) fn date(format: &str) -> String {
    jiff::Timestamp::now().strftime(format).to_string()
}

/// Waits.
#[expect(clippy::disallowed_methods, reason = "the one place of the bench that waits for time to pass")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time); // tidy: sleep because other people's servers do not say when they are ready
}

/// Asks until the answer is yes; an error when that takes longer than `patience`.
pub(crate) fn wait_until(
    what: &str,
    patience: Duration,
    mut ask: impl FnMut() -> bool,
) -> anyhow::Result<()> {
    let start = now();
    while !ask() {
        anyhow::ensure!(since(start) < patience, "{what} took longer than {} s", patience.as_secs());
        pause(Duration::from_millis(20));
    }
    Ok(())
}
