//! The keys `alerts.*`.

use tagwerk_core::alert::{Kind, Rule, Scope, Unit};
use tagwerk_core::limits;

use super::keys::{Key, quoted};
use super::value::{Raw, show_duration};
use crate::alerts::{Secret, Target};

/// What switches something off.
const OFF: &str = "off";

/// A key with the threshold of a kind.
macro_rules! threshold {
    ($kind:ident, $name:literal, $about:literal) => {
        Key {
            name: concat!("alerts.", $name),
            about: $about,
            set: |config, raw| {
                threshold(Kind::$kind, raw).map(|value| config.alerts.rules.general.set(Kind::$kind, value))
            },
            get: |config| shown(Kind::$kind, config.alerts.rules.general.get(Kind::$kind)),
        }
    };
}

/// All keys, in the order in which they are shown.
pub(super) const KEYS: &[Key] = &[
    Key {
        name: "alerts.every",
        about: "How often it is looked whether something rings.",
        set: |config, raw| raw.duration(limits::ALERT_EVERY_MS).map(|ms| config.alerts.every_ms = ms),
        get: |config| quoted(show_duration(config.alerts.every_ms)),
    },
    Key {
        name: "alerts.window",
        about: "How far back rates, new reviews and run times look.",
        set: |config, raw| raw.duration(limits::ALERT_WINDOW_MS).map(|ms| config.alerts.rules.window_ms = ms),
        get: |config| quoted(show_duration(config.alerts.rules.window_ms)),
    },
    Key {
        name: "alerts.calm",
        about: "How long a figure must have been well below its threshold before its alert closes.",
        set: |config, raw| raw.duration(limits::ALERT_CALM_MS).map(|ms| config.alerts.rules.calm_ms = ms),
        get: |config| quoted(show_duration(config.alerts.rules.calm_ms)),
    },
    Key {
        name: "alerts.attempts_min",
        about: "Attempts within the window without which there is no rate and no run time.",
        set: |config, raw| raw.integer(limits::ALERT_COUNT).map(|n| config.alerts.rules.attempts_min = n),
        get: |config| config.alerts.rules.attempts_min.to_string(),
    },
    threshold!(
        OldestReadyAge,
        "oldest_ready_age",
        "Queue: how long a job may wait that could be handed out; \"off\"."
    ),
    threshold!(
        NoWorker,
        "no_worker",
        "Queue: how long jobs may be ready without a worker that asks for them; \"off\"."
    ),
    threshold!(
        NoSuccess,
        "no_success",
        "Type: how long attempts may end without one that is completed; \"off\"."
    ),
    threshold!(FailureRate, "failure_rate", "Type: the share of attempts that may fail, 0.01 to 1; \"off\"."),
    threshold!(
        RetryRate,
        "retry_rate",
        "Type: the share of attempts that may be repeated, 0.01 to 1; \"off\"."
    ),
    threshold!(
        ReviewNew,
        "review_new",
        "Type: how many jobs come into review within the window before it rings; \"off\"."
    ),
    threshold!(ReviewAge, "review_age", "Type: how long a job may be in review; \"off\"."),
    threshold!(RunTimeP95, "run_time_p95", "Type: run time that 95 of 100 attempts stay below; \"off\"."),
    threshold!(
        Store,
        "store",
        "Bytes of the store's write-ahead log; \"off\" also for a store that cannot be written."
    ),
    threshold!(
        ReleaseLoop,
        "release_loop",
        "Type: jobs given back within the window, more than completed; \"off\"."
    ),
    Key {
        name: "alerts.rules",
        about: "For single queues and types, one text each: \"queue:mail no_worker=1m owner=mail team\" (owner last).",
        set: |config, raw| {
            let written = raw.list()?;
            let rules = written.iter().map(|text| rule(text)).collect::<Result<Vec<_>, _>>()?;
            config.alerts.rules.single = rules.into_iter().collect();
            config.alerts.written_rules = written;
            Ok(())
        },
        get: |config| format!("{:?}", config.alerts.written_rules),
    },
    Key {
        name: "alerts.command",
        about: "Program and arguments that are started when an alert opens or closes, with JSON on stdin; []: none.",
        set: |config, raw| raw.list().map(|command| config.alerts.command = command),
        get: |config| format!("{:?}", config.alerts.command),
    },
    Key {
        name: "alerts.command_timeout",
        about: "How long that program may run before it is killed with its children.",
        set: |config, raw| raw.duration(limits::ALERT_COMMAND_MS).map(|ms| config.alerts.command_ms = ms),
        get: |config| quoted(show_duration(config.alerts.command_ms)),
    },
    Key {
        name: "alerts.webhook",
        about: "URL to which a signed message is posted when an alert opens or closes; \"\": none. Never an internal address.",
        set: |config, raw| target(raw).map(|target| config.alerts.webhook = target),
        get: |config| shown_target(config.alerts.webhook.as_ref()),
    },
    Key {
        name: "alerts.webhook_secret",
        about: "What these messages are signed with: whsec_ and the base64 of 24 to 64 random bytes.",
        set: |config, raw| {
            let text = raw.text()?;
            let secret = if text.is_empty() { None } else { Some(Secret::read(text)?) };
            config.alerts.secret = secret;
            Ok(())
        },
        get: |config| quoted(if config.alerts.secret.is_some() { "***" } else { "" }),
    },
    Key {
        name: "alerts.webhook_timeout",
        about: "How long an answer to them, and to heartbeats, may take.",
        set: |config, raw| raw.duration(limits::ALERT_WEBHOOK_MS).map(|ms| config.alerts.webhook_ms = ms),
        get: |config| quoted(show_duration(config.alerts.webhook_ms)),
    },
    Key {
        name: "alerts.internal_hosts",
        about: "Hosts of webhook and heartbeat that may have internal addresses.",
        set: |config, raw| {
            let hosts = raw.list()?;
            let plain = |host: &String| host.trim_matches(['[', ']']).to_ascii_lowercase();
            config.alerts.internal_hosts = hosts.iter().map(plain).collect();
            Ok(())
        },
        get: |config| format!("{:?}", config.alerts.internal_hosts),
    },
    Key {
        name: "alerts.heartbeat_url",
        about: "URL that is called each minute while the server does its work, for a watcher outside; \"\": none.",
        set: |config, raw| target(raw).map(|target| config.alerts.heartbeat = target),
        get: |config| shown_target(config.alerts.heartbeat.as_ref()),
    },
    Key {
        name: "alerts.heartbeat_every",
        about: "How often it is called.",
        set: |config, raw| raw.duration(limits::ALERT_HEARTBEAT_MS).map(|ms| config.alerts.heartbeat_ms = ms),
        get: |config| quoted(show_duration(config.alerts.heartbeat_ms)),
    },
];

fn target(raw: &Raw) -> Result<Option<Target>, String> {
    let text = raw.text()?;
    if text.is_empty() { Ok(None) } else { Target::read(text).map(Some) }
}

/// Without what may be a secret in it.
fn shown_target(target: Option<&Target>) -> String {
    quoted(target.map_or_else(String::new, ToString::to_string))
}

/// The threshold of a kind; `None`: off.
fn threshold(kind: Kind, raw: &Raw) -> Result<Option<i64>, String> {
    if matches!(raw, Raw::Text(text) if text == OFF) {
        return Ok(None);
    }
    let value = match kind.unit() {
        Unit::Ms => raw.duration(limits::ALERT_AGE_MS),
        Unit::Count => raw.integer(limits::ALERT_COUNT),
        Unit::Bytes => raw.integer(limits::ALERT_WAL_BYTES),
        Unit::PerMille => raw.float().and_then(per_mille),
    };
    value.map(Some).map_err(|error| format!("{error}; or {OFF:?}"))
}

#[expect(clippy::cast_possible_truncation, reason = "it was held against its bounds")]
fn per_mille(share: f64) -> Result<i64, String> {
    if (0.01..=1.0).contains(&share) {
        Ok((share * 1_000.0).round() as i64)
    } else {
        Err(format!("must be between 0.01 and 1, not {share}"))
    }
}

fn shown(kind: Kind, value: Option<i64>) -> String {
    let Some(value) = value else { return quoted(OFF) };
    match kind.unit() {
        Unit::Ms => quoted(show_duration(value)),
        Unit::Count | Unit::Bytes => value.to_string(),
        Unit::PerMille => format!("{:?}", crate::alerts::figures::amount(kind, value)),
    }
}

/// `queue:mail no_worker=1m owner=mail team`.
fn rule(text: &str) -> Result<(Scope, Rule), String> {
    let wrong = |why: String| format!("{text:?}: {why}");
    let (head, settings) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    let scope = head.split_once(':').filter(|(word, name)| *word != "server" && !name.is_empty());
    let scope = scope.and_then(|(word, name)| Scope::from_parts(word, name));
    let scope = scope.ok_or_else(|| wrong("begin it with queue:NAME or type:NAME".to_owned()))?;
    let mut rule = Rule::default();
    let (settings, owner) = match settings.split_once("owner=") {
        Some((settings, owner)) => (settings, Some(owner.trim())),
        None => (settings, None),
    };
    if let Some(owner) = owner {
        if owner.is_empty() || owner.len() > limits::TEXT_MAX_BYTES {
            return Err(wrong(format!("an owner has 1 to {} bytes", limits::TEXT_MAX_BYTES)));
        }
        rule.owner = Some(owner.to_owned());
    }
    for setting in settings.split_whitespace() {
        let (name, value) = setting
            .split_once('=')
            .ok_or_else(|| wrong(format!("write {setting:?} as KEY=VALUE, such as no_worker=1m")))?;
        let kind = Kind::from_name(name).filter(|kind| *kind != Kind::Store);
        let kind = kind.ok_or_else(|| wrong(format!("there is no alert {name:?} for it")))?;
        let value =
            threshold(kind, &Raw::Text(value.to_owned())).map_err(|why| wrong(format!("{name} {why}")))?;
        rule.thresholds.insert(kind, value);
    }
    Ok((scope, rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_a_queue_or_a_type_with_thresholds_and_owner() {
        let (scope, found) =
            rule("queue:mail no_worker=1m oldest_ready_age=off owner=Mail team, room 7").unwrap();
        assert_eq!(scope, Scope::Queue("mail".to_owned()));
        assert_eq!(found.owner.as_deref(), Some("Mail team, room 7"));
        assert_eq!(found.thresholds.get(&Kind::NoWorker), Some(&Some(60_000)));
        assert_eq!(found.thresholds.get(&Kind::OldestReadyAge), Some(&None));
        assert_eq!(
            rule("type:App\\Send failure_rate=0.25").unwrap().1.thresholds[&Kind::FailureRate],
            Some(250)
        );
        for (text, why) in [
            ("mail no_worker=1m", "queue:NAME"),
            ("server: no_worker=1m", "queue:NAME"),
            ("queue: no_worker=1m", "queue:NAME"),
            ("queue:mail noworker=1m", "no alert"),
            ("queue:mail store=1", "no alert"),
            ("queue:mail no_worker", "KEY=VALUE"),
            ("queue:mail no_worker=soon", "length of time"),
            ("type:a failure_rate=2", "between 0.01 and 1"),
            ("type:a owner=", "an owner"),
        ] {
            let error = rule(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_threshold_is_shown_as_it_is_written() {
        for (kind, text) in [
            (Kind::NoWorker, "90s"),
            (Kind::ReviewNew, "5"),
            (Kind::FailureRate, "0.25"),
            (Kind::ReviewAge, OFF),
        ] {
            let value = threshold(kind, &Raw::Text(text.to_owned())).unwrap();
            assert_eq!(shown(kind, value).trim_matches('"'), text);
        }
    }
}
