//! What the operator may set: a TOML file < environment `TAGWERK_…` < flags. The only file that reads the environment.
//!
//! Everything that is wrong is named at once, each with its source and what would be right; an unknown key is refused
//! with the nearest known one, since a misspelt `max_retry` must not be ignored. Values are held against
//! `tagwerk_core::limits`, the same as those of requests.

mod address;
mod alerts;
mod keys;
mod value;

use std::borrow::Borrow;
use std::fmt;
use std::path::{Path, PathBuf};

use tagwerk_api::door::DoorLimits;
use tagwerk_core::rate::Rate;
use tagwerk_core::{Priority, limits};
use tagwerk_engine::settings::Settings;

use crate::alerts::AlertSettings;
use crate::serve::TlsFiles;
pub(crate) use address::{Listen, StoreUrl};
use keys::Key;
use value::Raw;
pub(crate) use value::{duration_ms, rate, show_rate};

/// The file that is read if no other is named and it is there.
const DEFAULT_FILE: &str = "tagwerk.toml";

/// Variables that begin like ours and are not settings of the server: the client's address, token and authorities, the file's name, the facts
/// that `tagwerk work` hands to its command, and what Kubernetes and Docker set beside a service called `tagwerk`.
const OTHER_VARIABLES: &[&str] = &[
    "TAGWERK_URL",
    "TAGWERK_TOKEN",
    "TAGWERK_CA_FILE",
    "TAGWERK_CONFIG",
    "TAGWERK_JOB_",
    "TAGWERK_SERVICE_",
    "TAGWERK_PORT",
];

/// The flags of every command that reads the configuration.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ConfigArgs {
    /// Configuration file (TOML); default: tagwerk.toml in the working directory, if there is one
    #[arg(long, value_name = "FILE", env = "TAGWERK_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// The store: sqlite:FILE
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// Any other setting, as in the file: `--set max_retries=5 --set retry.cap=10m`
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

/// Severity from which on lines are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogLevel {
    /// `error`
    Error,
    /// `warn`
    Warn,
    /// `info`
    Info,
    /// `debug`
    Debug,
    /// `trace`
    Trace,
}

impl LogLevel {
    /// The names that may be given, in order.
    const ALL: [(&'static str, Self); 5] = [
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
        ("trace", Self::Trace),
    ];

    /// The name in the configuration.
    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, level)| *level == self).map_or("info", |(name, _)| name)
    }
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Default,
    File(PathBuf),
    Environment(String),
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}

/// The settings of the server, checked.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Where to listen.
    pub(crate) listen: Listen,
    /// What to open.
    pub(crate) store: StoreUrl,
    /// What to log.
    pub(crate) log: LogLevel,
    /// Host names besides the loopback ones that requests may be addressed to, in lower case.
    pub(crate) hosts: Vec<String>,
    /// Certificate and key.
    pub(crate) tls: TlsFiles,
    /// Whether it may listen beyond loopback without them.
    pub(crate) plain_http: bool,
    /// Requests that a token allows which has no rate of its own.
    pub(crate) token_rate: Option<Rate>,
    /// Largest payload in bytes.
    pub(crate) payload_max_bytes: usize,
    /// Who is told when, and how.
    pub(crate) alerts: AlertSettings,
    /// The engine's part.
    pub(crate) engine: Settings,
    sources: Vec<(&'static str, Source)>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            store: StoreUrl::default(),
            log: LogLevel::Info,
            hosts: Vec::new(),
            tls: TlsFiles::default(),
            plain_http: false,
            token_rate: None,
            payload_max_bytes: limits::PAYLOAD_MAX_BYTES,
            alerts: AlertSettings::default(),
            engine: Settings::default(),
            sources: Vec::new(),
        }
    }
}

/// Something that is wrong with the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    what: String,
    source: Source,
    message: String,
}

/// Everything that is wrong with the configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) struct ConfigError(Vec<Fault>);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration is not usable")?;
        for Fault { what, source, message } in &self.0 {
            write!(f, "\n  {what} ({source}): {message}")?;
        }
        Ok(())
    }
}

/// Values in the order of their precedence, the last one wins.
#[derive(Debug, Default)]
struct Given {
    values: Vec<(&'static Key, Raw, Source)>,
    faults: Vec<Fault>,
}

impl Given {
    fn add(&mut self, name: &str, raw: Raw, source: Source) {
        match keys::all().find(|key| key.name == name) {
            Some(key) => self.values.push((key, raw, source)),
            None => self.refuse(name, source, unknown(name)),
        }
    }

    fn refuse(&mut self, what: &str, source: Source, message: impl Into<String>) {
        self.faults.push(Fault { what: what.to_owned(), source, message: message.into() });
    }
}

impl Config {
    /// Reads file, environment and flags. `also` are further flags that set a key: `("listen", "--listen", value)`.
    pub(crate) fn load(
        args: &ConfigArgs,
        also: &[(&str, &str, Option<String>)],
    ) -> Result<Self, ConfigError> {
        let mut given = Given::default();
        from_file(args.config.as_deref(), &mut given);
        from_environment(&mut given);
        let store = [("store", "--store", args.store.clone())];
        for (key, flag, value) in store.iter().chain(also) {
            if let Some(value) = value {
                given.add(key, Raw::Text(value.clone()), Source::Flag((*flag).to_owned()));
            }
        }
        for setting in &args.set {
            let source = Source::Flag("--set".to_owned());
            match setting.split_once('=') {
                Some((key, value)) => given.add(key.trim(), Raw::Text(value.trim().to_owned()), source),
                None => given.refuse(setting, source, "write it as KEY=VALUE, such as max_retries=5"),
            }
        }
        Self::build(given)
    }

    fn build(given: Given) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        let mut faults = given.faults;
        for (key, raw, source) in given.values {
            if let Err(message) = (key.set)(&mut config, &raw) {
                faults.push(Fault { what: key.name.to_owned(), source, message });
                continue;
            }
            config.sources.retain(|(name, _)| *name != key.name);
            config.sources.push((key.name, source));
        }
        if let Some((key, message)) = config.alerts.fault() {
            let source =
                config.sources.iter().find(|(name, _)| *name == key).map(|(_, source)| source.clone());
            let source = source.unwrap_or(Source::Default);
            faults.push(Fault { what: key.to_owned(), source, message: message.to_owned() });
        }
        if faults.is_empty() { Ok(config) } else { Err(ConfigError(faults)) }
    }

    /// Whether somebody has said what this setting is to be.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.sources.iter().any(|(known, _)| *known == name)
    }

    /// All settings as a TOML file, each with its source; secrets are masked.
    pub(crate) fn show(&self) -> String {
        let line = |key: &Key| {
            let source = self.sources.iter().find(|(name, _)| *name == key.name).map(|(_, source)| source);
            let (value, source) = ((key.get)(self), source.unwrap_or(&Source::Default));
            format!("# {}\n{} = {value}  # {source}\n", key.about, key.name)
        };
        keys::all().map(line).collect()
    }

    /// What the door takes.
    pub(crate) fn door_limits(&self) -> DoorLimits {
        DoorLimits {
            id_max: limits::JOB_ID_MAX,
            name_max_bytes: limits::NAME_MAX_BYTES,
            type_max_bytes: limits::TYPE_MAX_BYTES,
            key_max_bytes: limits::KEY_MAX_BYTES,
            traceparent_max_bytes: limits::TRACEPARENT_MAX_BYTES,
            worker_id_max_bytes: limits::WORKER_ID_MAX_BYTES,
            request_id_max_bytes: limits::REQUEST_ID_MAX_BYTES,
            text_max_bytes: limits::TEXT_MAX_BYTES,
            payload_max_bytes: self.payload_max_bytes,
            payload_max_depth: limits::PAYLOAD_MAX_DEPTH,
            result_max_bytes: limits::RESULT_MAX_BYTES,
            checkpoint_max_bytes: limits::CHECKPOINT_MAX_BYTES,
            progress_message_max_bytes: limits::PROGRESS_MESSAGE_MAX_BYTES,
            priority_max: Priority::MAX,
            max_retries: limits::MAX_RETRIES.min..=limits::MAX_RETRIES.max,
            max_lease_losses: limits::MAX_LEASE_LOSSES.min..=limits::MAX_LEASE_LOSSES.max,
            retry_factor: limits::RETRY_FACTOR_MIN..=limits::RETRY_FACTOR_MAX,
            retry_delay_ms: limits::RETRY_DELAY_MS.min..=limits::RETRY_DELAY_MS.max,
            delay_ms: limits::DELAY_MS.min..=limits::DELAY_MS.max,
            max_age_ms: limits::MAX_AGE_MS.min..=limits::MAX_AGE_MS.max,
            lease_ms: limits::LEASE_MS.min..=limits::LEASE_MS.max,
            timeout_ms: limits::TIMEOUT_MS.min..=limits::TIMEOUT_MS.max,
            ttl_ms: limits::TTL_MS.min..=limits::TTL_MS.max,
            wait_max_ms: limits::WAIT_MAX_MS,
            bulk_jobs_max: limits::BULK_JOBS_MAX,
            reports_max: limits::REPORTS_MAX,
            effect_name_max_bytes: limits::EFFECT_NAME_MAX_BYTES,
            effects_per_job: limits::EFFECTS_PER_JOB,
            follow_ups_max: limits::FOLLOW_UPS_MAX,
            follow_ups_max_bytes: limits::FOLLOW_UPS_MAX_BYTES,
            reports_follow_ups_max: limits::REPORTS_FOLLOW_UPS_MAX,
            claim_jobs: limits::CLAIM_JOBS.min..=limits::CLAIM_JOBS.max,
            claim_names_max: limits::CLAIM_NAMES_MAX,
            queue_max_running: limits::QUEUE_MAX_RUNNING.min..=limits::QUEUE_MAX_RUNNING.max,
            queue_max_depth: limits::QUEUE_MAX_DEPTH.min..=limits::QUEUE_MAX_DEPTH.max,
            list_page: limits::LIST_PAGE.min..=limits::LIST_PAGE.max,
            limits_per_job: limits::LIMITS_PER_JOB,
            partition_max_bytes: limits::PARTITION_MAX_BYTES,
            limit_running: limits::LIMIT_RUNNING.min..=limits::LIMIT_RUNNING.max,
            rate_count: limits::RATE_COUNT.min..=limits::RATE_COUNT.max,
            rate_per_ms: limits::RATE_PER_MS.min..=limits::RATE_PER_MS.max,
            throttle_ms: limits::THROTTLE_MS.min..=limits::THROTTLE_MS.max,
        }
    }
}

/// The named file, which must be there, or the default one, which need not.
fn from_file(named: Option<&Path>, given: &mut Given) {
    let path = named.unwrap_or_else(|| Path::new(DEFAULT_FILE));
    let source = Source::File(path.to_owned());
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => return given.refuse("file", source, error.to_string()),
    };
    match text.parse::<toml::Table>() {
        Ok(table) => flatten("", table, (given, &source)),
        Err(error) => {
            // The parser would show the line, and it may hold a password.
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            given.refuse("file", source, format!("line {line}: {}", error.message()));
        }
    }
}

/// `[retry] base = 5` is `retry.base`.
fn flatten(prefix: &str, table: toml::Table, into: (&mut Given, &Source)) {
    let (given, source) = into;
    for (name, value) in table {
        let name = format!("{prefix}{name}");
        match value {
            toml::Value::Table(table) => flatten(&format!("{name}."), table, (given, source)),
            value => given.add(&name, Raw::from(value), source.clone()),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place where the environment is read")]
fn from_environment(given: &mut Given) {
    for (name, value) in std::env::vars_os() {
        let Some(name) = name.to_str().filter(|name| name.starts_with("TAGWERK_")) else { continue };
        take_variable(name, value.to_str(), given);
    }
}

/// Names of our own variables in the environment, for who starts other programs and hands them none of it.
#[expect(clippy::disallowed_methods, reason = "this is the one place where the environment is read")]
pub(crate) fn own_variables() -> Vec<std::ffi::OsString> {
    let names = std::env::vars_os().map(|(name, _)| name);
    names.filter(|name| name.as_encoded_bytes().starts_with(b"TAGWERK_")).collect()
}

/// Folders in which programs are looked for.
#[expect(clippy::disallowed_methods, reason = "this is the one place where the environment is read")]
pub(crate) fn program_folders() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

/// One variable; `None` is a value that is not UTF-8. An empty one counts as not set, as in most tools that set them.
fn take_variable(name: &str, value: Option<&str>, given: &mut Given) {
    if value == Some("") || OTHER_VARIABLES.iter().any(|other| name.starts_with(other)) {
        return;
    }
    let source = Source::Environment(name.to_owned());
    let key = keys::all().find(|key| key.variable() == name);
    match (key, value) {
        (Some(key), Some(value)) => given.add(key.name, Raw::Text(value.trim().to_owned()), source),
        (Some(key), None) => given.refuse(key.name, source, "is not UTF-8"),
        (None, _) => {
            let meant = keys::nearest(&name["TAGWERK_".len()..].to_lowercase());
            let message = meant.map_or_else(
                || none_of(&keys::all().map(Key::variable).collect::<Vec<_>>()),
                |key| format!("no setting has this name; did you mean {}?", key.variable()),
            );
            given.refuse(name, source, message);
        }
    }
}

/// What to say of a key that does not exist.
fn unknown(name: &str) -> String {
    let group = format!("{name}.");
    let members: Vec<&str> =
        keys::all().map(|key| key.name).filter(|known| known.starts_with(&group)).collect();
    if !members.is_empty() {
        return format!("is a group; set {}", members.join(", "));
    }
    match keys::nearest(name) {
        Some(key) => format!("no setting has this name; did you mean {}?", key.name),
        None => none_of(&keys::all().map(|key| key.name).collect::<Vec<_>>()),
    }
}

/// No command can list the settings while one of them is wrong, so they are listed here.
fn none_of<S: Borrow<str>>(names: &[S]) -> String {
    format!("no setting has this name; there are {}", names.join(", "))
}

#[cfg(test)]
mod tests;
