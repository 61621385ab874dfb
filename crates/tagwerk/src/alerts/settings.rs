//! What the operator has said about alerts.

use std::path::Path;

use tagwerk_core::alert::Rules;
use tagwerk_core::limits;
use tagwerk_engine::row::Ways;

/// Settings `alerts.*`.
#[derive(Clone, Debug)]
pub(crate) struct AlertSettings {
    /// Thresholds.
    pub(crate) rules: Rules,
    /// `alerts.rules` as it was written.
    pub(crate) written_rules: Vec<String>,
    /// How often it is looked.
    pub(crate) every_ms: i64,
    /// A program and its arguments; empty: none.
    pub(crate) command: Vec<String>,
    /// How long it may run.
    pub(crate) command_ms: i64,
}

impl Default for AlertSettings {
    fn default() -> Self {
        Self {
            rules: Rules::default(),
            written_rules: Vec::new(),
            every_ms: limits::ALERT_EVERY_DEFAULT_MS,
            command: Vec::new(),
            command_ms: limits::ALERT_COMMAND_DEFAULT_MS,
        }
    }
}

impl AlertSettings {
    /// On which ways people are told.
    pub(super) fn ways(&self) -> Vec<Ways> {
        let mut ways = Vec::new();
        if !self.command.is_empty() {
            ways.push(Ways::COMMAND);
        }
        ways
    }

    /// Says at the start what will not work.
    pub(super) fn warn(&self) {
        let Some(program) = self.command.first() else { return };
        if !is_there(program) {
            tracing::warn!(
                program,
                "alerts.command names a program that is not there or may not be run; nobody will be told by it"
            );
        }
    }
}

/// Whether a program can be started, as far as that shows without starting it.
fn is_there(program: &str) -> bool {
    if program.contains('/') {
        return is_executable(Path::new(program));
    }
    crate::config::program_folders().iter().any(|folder| is_executable(&folder.join(program)))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
