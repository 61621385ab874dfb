//! The one file of xtask that reads clock and environment.

use std::path::{Path, PathBuf};
use std::time::Instant;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The moment, for measuring how long a step takes.
#[expect(clippy::disallowed_methods, reason = "the one place of xtask that reads the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// How long ago that moment was.
pub(crate) fn seconds_since(start: Instant) -> f64 {
    now().duration_since(start).as_secs_f64()
}

/// The cargo that started us, so that nested calls use the same toolchain.
pub(crate) fn cargo() -> String {
    variable("CARGO").unwrap_or_else(|| "cargo".to_owned())
}

/// Whether a machine is looking: what was not run then fails the whole.
pub(crate) fn in_ci() -> bool {
    variable("CI").is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

/// One variable of the environment.
#[expect(clippy::disallowed_methods, reason = "the one place of xtask that reads the environment")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
