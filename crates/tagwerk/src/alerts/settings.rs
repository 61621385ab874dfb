//! What the operator has said about alerts.

use std::net::SocketAddr;
use std::path::Path;

use tagwerk_core::alert::Rules;
use tagwerk_core::limits;
use tagwerk_engine::row::Ways;

use super::guard;
use super::target::Target;
use super::webhook::Secret;

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
    /// Where messages are posted.
    pub(crate) webhook: Option<Target>,
    /// What they are signed with.
    pub(crate) secret: Option<Secret>,
    /// How long an answer may take.
    pub(crate) webhook_ms: i64,
    /// Hosts that may be inside, in lower case.
    pub(crate) internal_hosts: Vec<String>,
    /// What is called each minute.
    pub(crate) heartbeat: Option<Target>,
    /// How often.
    pub(crate) heartbeat_ms: i64,
}

impl Default for AlertSettings {
    fn default() -> Self {
        Self {
            rules: Rules::default(),
            written_rules: Vec::new(),
            every_ms: limits::ALERT_EVERY_DEFAULT_MS,
            command: Vec::new(),
            command_ms: limits::ALERT_COMMAND_DEFAULT_MS,
            webhook: None,
            secret: None,
            webhook_ms: limits::ALERT_WEBHOOK_DEFAULT_MS,
            internal_hosts: Vec::new(),
            heartbeat: None,
            heartbeat_ms: limits::ALERT_HEARTBEAT_DEFAULT_MS,
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
        if self.webhook.is_some() {
            ways.push(Ways::WEBHOOK);
        }
        ways
    }

    /// Whom it may call.
    pub(super) fn targets(&self) -> impl Iterator<Item = &Target> {
        self.webhook.iter().chain(&self.heartbeat)
    }

    /// What does not fit together.
    pub(crate) fn fault(&self) -> Option<(&'static str, &'static str)> {
        let is_unsigned = self.webhook.is_some() && self.secret.is_none();
        is_unsigned.then_some((
            "alerts.webhook_secret",
            "alerts.webhook needs it: whoever gets a message must be able to tell from whom it is; \
             `echo whsec_$(openssl rand -base64 32)` makes one",
        ))
    }

    /// Says at the start what will not work.
    pub(super) fn warn(&self) {
        for (setting, target) in
            [("alerts.webhook", &self.webhook), ("alerts.heartbeat_url", &self.heartbeat)]
        {
            let Some(target) = target else { continue };
            let literal = target.host.parse().map(|ip| vec![SocketAddr::new(ip, target.port)]);
            if let Ok(Err(why)) = literal.map(|found| guard::admit(found, &target.host, &self.internal_hosts))
            {
                tracing::warn!(setting, why, "a setting names an address to which nothing will be sent");
            }
        }
        if let Some(program) = self.command.first().filter(|program| !is_there(program)) {
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
