//! Every key there is, in one table: its name, what it is for, how it is read and shown.

use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

use tagwerk_core::limits;
use tagwerk_core::retry::Jitter;
use tagwerk_engine::settings::{LeaseToken, UnknownLimits, UnknownTypes};

use super::value::{Raw, rate, show_duration, show_rate};
use super::{Config, Listen, LogLevel, StoreUrl};

/// A key of the configuration.
pub(super) struct Key {
    /// `retry.base` in the file, `TAGWERK_RETRY_BASE` in the environment.
    pub(super) name: &'static str,
    /// What it is for.
    pub(super) about: &'static str,
    /// Reads a value; the error says what would be right.
    pub(super) set: fn(&mut Config, &Raw) -> Result<(), String>,
    /// The value as the file would have it.
    pub(super) get: fn(&Config) -> String,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Key {
    /// Its name in the environment.
    pub(super) fn variable(&self) -> String {
        format!("TAGWERK_{}", self.name.replace('.', "_").to_uppercase())
    }
}

/// A value of `retention.*` that keeps for good.
const FOREVER: &str = "forever";

/// A text as TOML writes it.
pub(super) fn quoted(text: impl std::fmt::Display) -> String {
    format!("{:?}", text.to_string())
}

fn kept(ms: Option<i64>) -> String {
    quoted(ms.map_or_else(|| FOREVER.to_owned(), show_duration))
}

fn keep(raw: &Raw) -> Result<Option<i64>, String> {
    match raw {
        Raw::Text(text) if text == FOREVER => Ok(None),
        raw => {
            raw.duration(limits::RETENTION_MS).map(Some).map_err(|error| format!("{error}; or {FOREVER:?}"))
        }
    }
}

/// A file; an empty name is none.
fn file(path: &str) -> Option<PathBuf> {
    (!path.is_empty()).then(|| PathBuf::from(path))
}

fn named(path: Option<&Path>) -> String {
    quoted(path.unwrap_or_else(|| Path::new("")).display())
}

/// Whether a request can name this host. Its port is left aside before it is compared, so one with a port would never match.
fn is_host(host: &str) -> bool {
    let name = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match name {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty() && !host.contains(['/', '*', ' ', '@', ':', '[', ']']),
    }
}

/// All keys, in the order in which they are shown.
pub(super) fn all() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().chain(super::alerts::KEYS)
}

/// All but those of alerts.
const KEYS: &[Key] = &[
    Key {
        name: "listen",
        about: "Where to listen: ADDRESS:PORT (port 0: any free one) or unix:PATH. Beyond loopback: with TLS and API tokens.",
        set: |config, raw| raw.text().and_then(Listen::read).map(|listen| config.listen = listen),
        get: |config| quoted(&config.listen),
    },
    Key {
        name: "store",
        about: "Where the jobs are: sqlite:FILE",
        set: |config, raw| raw.text().and_then(StoreUrl::read).map(|store| config.store = store),
        get: |config| quoted(&config.store),
    },
    Key {
        name: "log",
        about: "What to log on stderr: error, warn, info, debug or trace. Never payloads, tokens, keys or queries.",
        set: |config, raw| raw.choice(&LogLevel::ALL).map(|level| config.log = level),
        get: |config| quoted(config.log.name()),
    },
    Key {
        name: "server.hosts",
        about: "Host names besides 127.0.0.1, [::1] and localhost that requests may be addressed to.",
        set: |config, raw| {
            let hosts = raw.list()?;
            if let Some(wrong) = hosts.iter().find(|host| !is_host(host)) {
                return Err(format!("must be host names without port, path or pattern, not {wrong:?}"));
            }
            config.hosts = hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
            Ok(())
        },
        get: |config| format!("{:?}", config.hosts),
    },
    Key {
        name: "server.tls.cert",
        about: "File with the TLS certificate (PEM), the server's own first; \"\": no TLS. Read anew at SIGHUP.",
        set: |config, raw| raw.text().map(|path| config.tls.cert = file(path)),
        get: |config| named(config.tls.cert.as_deref()),
    },
    Key {
        name: "server.tls.key",
        about: "File with its private key (PEM).",
        set: |config, raw| raw.text().map(|path| config.tls.key = file(path)),
        get: |config| named(config.tls.key.as_deref()),
    },
    Key {
        name: "server.plain_http",
        about: "Whether it may listen beyond loopback without TLS: where nobody else can read the way to here.",
        set: |config, raw| raw.flag().map(|plain| config.plain_http = plain),
        get: |config| config.plain_http.to_string(),
    },
    Key {
        name: "server.token_rate",
        about: "Requests that a token allows which has no --rate of its own, such as 100/s or 6000/m; \"\": any number.",
        set: |config, raw| {
            let text = raw.text()?;
            config.token_rate = if text.is_empty() { None } else { Some(rate(text)?) };
            Ok(())
        },
        get: |config| quoted(config.token_rate.map(show_rate).unwrap_or_default()),
    },
    Key {
        name: "max_retries",
        about: "Retries allowed for jobs whose type and request name none; a job runs at most one time more.",
        set: |config, raw| raw.integer(limits::MAX_RETRIES).map(|n| config.engine.max_retries = n),
        get: |config| config.engine.max_retries.to_string(),
    },
    Key {
        name: "max_lease_losses",
        about: "The lost lease that sends a job to review.",
        set: |config, raw| raw.integer(limits::MAX_LEASE_LOSSES).map(|n| config.engine.max_lease_losses = n),
        get: |config| config.engine.max_lease_losses.to_string(),
    },
    Key {
        name: "retry.base",
        about: "Wait before the first retry; 0s: at once.",
        set: |config, raw| raw.duration(limits::RETRY_DELAY_MS).map(|ms| config.engine.retry.base_ms = ms),
        get: |config| quoted(show_duration(config.engine.retry.base_ms)),
    },
    Key {
        name: "retry.factor",
        about: "Growth of the wait from one retry to the next.",
        set: |config, raw| {
            let factor = limits::check::retry_factor(raw.float()?).map_err(|error| error.to_string())?;
            config.engine.retry.factor = factor;
            Ok(())
        },
        get: |config| format!("{:?}", config.engine.retry.factor),
    },
    Key {
        name: "retry.cap",
        about: "No wait is longer.",
        set: |config, raw| raw.duration(limits::RETRY_DELAY_MS).map(|ms| config.engine.retry.cap_ms = ms),
        get: |config| quoted(show_duration(config.engine.retry.cap_ms)),
    },
    Key {
        name: "retry.jitter",
        about: "How chance spreads a wait of length d: none, equal (in [d/2, d]), full (in [0, d]).",
        set: |config, raw| {
            let choices = [("none", Jitter::None), ("equal", Jitter::Equal), ("full", Jitter::Full)];
            raw.choice(&choices).map(|jitter| config.engine.retry.jitter = jitter)
        },
        get: |config| quoted(config.engine.retry.jitter.name()),
    },
    Key {
        name: "lease.default",
        about: "Lease of a claim that names none, unless job or type do.",
        set: |config, raw| raw.duration(limits::LEASE_MS).map(|ms| config.engine.lease_ms = ms),
        get: |config| quoted(show_duration(config.engine.lease_ms)),
    },
    Key {
        name: "require_lease",
        about: "Whether every report must carry its lease token.",
        set: |config, raw| {
            let required = raw.flag()?;
            config.engine.lease_token = if required { LeaseToken::Required } else { LeaseToken::Optional };
            Ok(())
        },
        get: |config| (config.engine.lease_token == LeaseToken::Required).to_string(),
    },
    Key {
        name: "limits.create_on_use",
        about: "Whether a limit that a job names and that there is not is made, without bounds, instead of refused.",
        set: |config, raw| {
            let create = raw.flag()?;
            config.engine.unknown_limits = if create { UnknownLimits::Create } else { UnknownLimits::Refuse };
            Ok(())
        },
        get: |config| (config.engine.unknown_limits == UnknownLimits::Create).to_string(),
    },
    Key {
        name: "idempotency.ttl",
        about: "How long an idempotency key holds after the end of its job, unless job or type say so.",
        set: |config, raw| raw.duration(limits::TTL_MS).map(|ms| config.engine.ttl_ms = ms),
        get: |config| quoted(show_duration(config.engine.ttl_ms)),
    },
    Key {
        name: "payload.max_bytes",
        about: "Largest payload of a job.",
        set: |config, raw| {
            let bytes = raw.integer(limits::PAYLOAD_MAX_BYTES_RANGE)?;
            config.payload_max_bytes = usize::try_from(bytes).map_err(|error| error.to_string())?;
            Ok(())
        },
        get: |config| config.payload_max_bytes.to_string(),
    },
    Key {
        name: "types.strict",
        about: "Whether jobs of a type without settings are refused: a misspelt one would wait for nobody.",
        set: |config, raw| {
            let strict = raw.flag()?;
            config.engine.unknown_types = if strict { UnknownTypes::Refuse } else { UnknownTypes::Accept };
            Ok(())
        },
        get: |config| (config.engine.unknown_types == UnknownTypes::Refuse).to_string(),
    },
    Key {
        name: "retention.completed",
        about: "How long completed jobs are kept; 0s: not at all, \"forever\": for good.",
        set: |config, raw| keep(raw).map(|ms| config.engine.retention.completed_ms = ms),
        get: |config| kept(config.engine.retention.completed_ms),
    },
    Key {
        name: "retention.cancelled",
        about: "How long cancelled jobs are kept. Failed ones stay until somebody decides.",
        set: |config, raw| keep(raw).map(|ms| config.engine.retention.cancelled_ms = ms),
        get: |config| kept(config.engine.retention.cancelled_ms),
    },
];

/// The key that somebody probably meant.
pub(super) fn nearest(name: &str) -> Option<&'static Key> {
    let meant = tagwerk_api::door::nearest(name, all().map(|key| key.name))?;
    all().find(|key| key.name == meant)
}
