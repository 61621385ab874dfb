//! What is in `deploy/` fits the server.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::alerts::eventually;
use crate::server::Server;
use crate::support::{enqueue, take};

fn deploy(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(file)
}

fn read(file: &str) -> String {
    std::fs::read_to_string(deploy(file)).expect("a file of deploy/")
}

/// The queries of the dashboard.
fn queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&read("grafana/tagwerk.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let queries: Vec<String> =
        targets.map(|target| target["expr"].as_str().expect("a query").to_owned()).collect();
    assert!(queries.len() > 30, "{queries:?}");
    queries
}

/// Everything that begins like one of our metrics.
fn named(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_part(c)).filter(|word| word.starts_with("tagwerk_"));
    words.map(str::to_owned).collect()
}

/// A server that has done a bit of everything, so that all its series are there.
fn exported() -> BTreeSet<String> {
    let server = Server::start();
    let client = &mut server.client();
    server.put("/limits/crm", &json!({"max_running": 3})).expect(201);
    enqueue(client, &json!({"type": "t", "queue": "q", "limits": ["crm"]}));
    take(client, "w", "q").complete(client);
    enqueue(client, &json!({"type": "t", "queue": "q"}));
    eventually("it has looked", || {
        server.get("/metrics").text().contains("tagwerk_alerts_look_age_seconds").then_some(())
    });
    let answer = server.get("/metrics");
    let lines = answer.text().lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split(['{', ' ']).next()).map(str::to_owned).collect()
}

#[test]
fn every_metric_that_is_named_is_exported() {
    let exported = exported();
    let dashboard = read("grafana/tagwerk.json");
    let variables: Value = serde_json::from_str(&dashboard).expect("JSON");
    let variables = variables["templating"]["list"].to_string();
    let rules = named(&read("prometheus/tagwerk.rules.yml"));
    let tests = named(&read("prometheus/tagwerk.rules.test.yml"));
    let shown = named(&format!("{} {variables}", queries().join(" ")));
    for (of, names) in [("rules", &rules), ("tests", &tests), ("dashboard", &shown)] {
        let unknown: Vec<_> = names.difference(&exported).collect();
        assert!(names.len() > 10 && unknown.is_empty(), "{of}: {unknown:?} are not exported");
    }
}

#[test]
fn panels_of_the_dashboard_have_numbers_of_their_own_and_do_not_overlap() {
    let dashboard: Value = serde_json::from_str(&read("grafana/tagwerk.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let ids: BTreeSet<i64> = panels.iter().filter_map(|panel| panel["id"].as_i64()).collect();
    assert_eq!(ids.len(), panels.len());
    let mut taken = BTreeSet::new();
    for panel in panels {
        let place = |field: &str| panel["gridPos"][field].as_i64().expect("a place");
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                assert!(x < 24 && taken.insert((x, y)), "{} overlaps at {x}, {y}", panel["title"]);
            }
        }
    }
}

mod needs_promtool {
    use std::fmt::Write as _;
    use std::path::Path;
    use std::process::Command;

    use super::*;

    fn promtool(args: &[&str], file: &Path) {
        let output = Command::new("promtool").args(args).arg(file).output().expect("promtool");
        let text = [&output.stdout[..], &output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
    }

    #[test]
    fn the_alert_rules_are_sound_and_ring_when_they_should() {
        promtool(&["check", "rules"], &deploy("prometheus/tagwerk.rules.yml"));
        promtool(&["test", "rules"], &deploy("prometheus/tagwerk.rules.test.yml"));
        // Every rule has a test in which it rings.
        let (rules, tests) =
            (read("prometheus/tagwerk.rules.yml"), read("prometheus/tagwerk.rules.test.yml"));
        for name in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
            let rings = tests.split("alertname: ").skip(1).any(|test| {
                let (found, rest) = test.split_at(test.find(['\n', '}']).unwrap_or(test.len()));
                found == name && rest.trim_start().starts_with("exp_alerts")
            });
            assert!(rings, "{name} has no test in which it rings");
        }
    }

    #[test]
    fn the_queries_of_the_dashboard_are_sound() {
        let mut rules = "groups:\n  - name: dashboard\n    rules:\n".to_owned();
        for (n, query) in queries().iter().enumerate() {
            let query = query.replace("$__rate_interval", "5m");
            let query =
                ["$instance", "$queue", "$type"].iter().fold(query, |query, name| query.replace(name, ".*"));
            assert!(!query.contains('$'), "a variable that there is not: {query}");
            writeln!(rules, "      - record: panel:query:n{n}\n        expr: {}", json!(query))
                .expect("text");
        }
        let file = tempfile::NamedTempFile::with_suffix(".yml").expect("a file");
        std::fs::write(file.path(), rules).expect("to write it");
        promtool(&["check", "rules"], file.path());
    }
}

mod needs_systemd {
    use std::process::Command;

    use super::*;
    use crate::server::BINARY;

    /// On a scale of 0 to 10 on which a service without any protection has 9.6.
    const EXPOSED_AT_MOST: &str = "--threshold=15";

    #[test]
    fn the_unit_is_sound_and_exposes_little() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("tagwerk.service");
        let unit = read("systemd/tagwerk.service");
        assert!(unit.contains("ExecStart=/usr/local/bin/tagwerk serve"));
        std::fs::write(&file, unit.replace("/usr/local/bin/tagwerk", BINARY)).expect("to write it");
        for words in [&["verify"][..], &["security", "--offline=true", EXPOSED_AT_MOST]] {
            let output =
                Command::new("systemd-analyze").args(words).arg(&file).output().expect("systemd-analyze");
            let text = [&output.stdout[..], &output.stderr].concat();
            let text = String::from_utf8_lossy(&text);
            assert!(output.status.success() && !text.contains("Unknown"), "{words:?}: {text}");
        }
    }
}
