use tagwerk_core::retention;

use super::*;

/// The configuration from a file's text, variables and `--set`.
fn load(file: &str, variables: &[(&str, &str)], set: &[&str]) -> Result<Config, ConfigError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.toml");
    std::fs::write(&path, file).unwrap();
    let mut given = Given::default();
    from_file(Some(&path), &mut given);
    for (name, value) in variables {
        take_variable(name, Some(value), &mut given);
    }
    for setting in set {
        let (key, value) = setting.split_once('=').unwrap();
        given.add(key, Raw::Text(value.to_owned()), Source::Flag("--set".to_owned()));
    }
    Config::build(given)
}

fn error(file: &str) -> String {
    load(file, &[], &[]).unwrap_err().to_string()
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let file = "max_retries = 1\nlog = \"warn\"\n[retry]\nbase = \"2s\"\nfactor = 3\n";
    let config = load(
        file,
        &[("TAGWERK_MAX_RETRIES", "2"), ("TAGWERK_RETRY_CAP", "10m"), ("TAGWERK_LOG", "")],
        &["max_retries=3"],
    )
    .unwrap();
    assert_eq!(config.engine.max_retries, 3);
    assert_eq!(config.engine.retry.base_ms, 2_000);
    assert_eq!(config.engine.retry.cap_ms, 600_000);
    assert!((config.engine.retry.factor - 3.0).abs() < f64::EPSILON);
    assert_eq!(config.log, LogLevel::Warn, "an empty variable counts as not set");
}

#[test]
fn every_key_has_a_default_that_it_reads_itself() {
    let shown = Config::default().show();
    let config = load(&shown, &[], &[]).unwrap();
    assert_eq!(config.engine, Config::default().engine);
    let values = |text: &str| -> Vec<String> {
        text.lines().filter_map(|line| line.split_once("  # ")).map(|(value, _)| value.to_owned()).collect()
    };
    assert_eq!(values(&config.show()), values(&shown));
    assert_eq!(values(&shown).len(), keys::all().count());
}

#[test]
fn the_shown_configuration_names_sources_and_masks_passwords() {
    let variables = [("TAGWERK_STORE", "postgres://u:SECRET@h/db")];
    let shown = load("lease.default = 60", &variables, &["retention.completed=forever"]).unwrap().show();
    assert!(
        shown.contains("store = \"postgres://u:***@h/db\"  # environment variable TAGWERK_STORE"),
        "{shown}"
    );
    assert!(shown.contains("lease.default = \"1m\"  # /"), "{shown}");
    assert!(shown.contains("retention.completed = \"forever\"  # flag --set"), "{shown}");
    assert!(!shown.contains("SECRET"));
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_name() {
    assert!(error("max_retry = 5").contains("max_retry"), "{}", error("max_retry = 5"));
    assert!(error("max_retry = 5").contains("did you mean max_retries?"));
    assert!(error("[retention]\ncomplete = 5").contains("did you mean retention.completed?"));
    assert!(error("retry = 5").contains("is a group; set retry.base, retry.factor"));
    let unknown = error("colour = 5");
    assert!(
        unknown.contains("there are listen, store, ") && !unknown.contains("tagwerk config"),
        "{unknown}"
    );
    let unknown = load("", &[("TAGWERK_COLOUR", "5")], &[]).unwrap_err().to_string();
    assert!(unknown.contains("there are TAGWERK_LISTEN, TAGWERK_STORE, "), "{unknown}");
    let variable = load("", &[("TAGWERK_MAXRETRIES", "5")], &[]).unwrap_err().to_string();
    assert!(variable.contains("did you mean TAGWERK_MAX_RETRIES?"), "{variable}");
    let others = [
        ("TAGWERK_URL", "x"),
        ("TAGWERK_JOB_ID", "1"),
        ("TAGWERK_PORT", "tcp://10.0.0.1:7070"),
        ("TAGWERK_SERVICE_HOST", "x"),
    ];
    load("", &others, &[]).unwrap();
}

#[test]
fn wrong_values_are_all_named_with_their_source_and_what_is_allowed() {
    let text = load(
        "max_retries = 1001\nrequire_lease = \"yes\"\n",
        &[("TAGWERK_RETRY_JITTER", "some")],
        &["listen=x"],
    )
    .unwrap_err()
    .to_string();
    assert!(text.contains("t.toml): must be between 0 and 1000, not 1001"), "{text}");
    assert!(text.contains("require_lease ("), "{text}");
    assert!(text.contains("must be true or false, not \"yes\""), "{text}");
    assert!(
        text.contains(
            "retry.jitter (environment variable TAGWERK_RETRY_JITTER): must be one of none, equal, full, not \"some\""
        ),
        "{text}"
    );
    assert!(text.contains("listen (flag --set): must be ADDRESS:PORT such as 127.0.0.1:7070"), "{text}");
}

#[test]
fn values_are_held_against_the_limits() {
    for (key, good, bad) in [
        ("max_retries", &["0", "1000"][..], &["-1", "1001", "1.5", "x"][..]),
        ("max_lease_losses", &["0", "100"], &["101"]),
        ("retry.base", &["0", "3650d"], &["3651d", "-1"]),
        ("retry.factor", &["1", "1.5", "1000000"], &["0.9", "1000001", "nan", "inf"]),
        ("lease.default", &["1s", "1d"], &["0.999", "86401"]),
        ("idempotency.ttl", &["0"], &["soon"]),
        ("payload.max_bytes", &["2", "7340032"], &["1", "7340033"]),
        ("retention.completed", &["0", "forever", "100d"], &["never", "-1"]),
        ("require_lease", &["true", "false"], &["1"]),
        ("log", &["debug"], &["verbose"]),
        (
            "server.hosts",
            &["", "a.example,b", "10.0.0.1", "[fe80::1]"],
            &[
                "*.example",
                "a/b",
                "x:80",
                "a,x:80",
                "10.0.0.1:80",
                "[::1]:80",
                "x:",
                "::1",
                "[::1",
                "[x]",
                "[]",
            ],
        ),
        ("server.token_rate", &["", "100/s"], &["0/s", "100"]),
        ("server.plain_http", &["true"], &["yes"]),
        ("store", &["sqlite:x.db"], &["x.db"]),
        ("listen", &["unix:/x", "[::1]:0"], &["*:80"]),
    ] {
        for value in good {
            let set = format!("{key}={value}");
            assert!(load("", &[], &[&set]).is_ok(), "{set}");
        }
        for value in bad {
            let set = format!("{key}={value}");
            assert!(load("", &[], &[&set]).is_err(), "{set}");
        }
    }
    let told = load("", &[], &["server.hosts=x:80"]).unwrap_err().to_string();
    assert!(told.contains("must be host names without port") && told.contains("\"x:80\""), "{told}");
    let forever = load("", &[], &["retention.completed=forever"]).unwrap().engine.retention;
    assert_eq!(forever, retention::Policy { completed_ms: None, ..retention::Policy::default() });
}

#[test]
fn a_file_that_cannot_be_read_names_the_line_and_not_its_content() {
    let text = error("log = \"info\"\nstore = \"postgres://u:SECRET@h/db\n");
    assert!(text.contains("t.toml): line 2:"), "{text}");
    assert!(!text.contains("SECRET"), "{text}");
    let args = ConfigArgs { config: Some("/no/such/file.toml".into()), ..ConfigArgs::default() };
    assert!(Config::load(&args, &[]).unwrap_err().to_string().contains("/no/such/file.toml"));
}
