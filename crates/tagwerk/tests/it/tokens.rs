//! API tokens: who may do what, with which jobs. The ways in that people have tried are blocked, each by name.

mod audit;
mod rate;
mod reach;
mod routes;
mod spaces;

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::server::{JSON, Options, Server, tagwerk};

/// A connection with a token.
pub(crate) struct As<'a> {
    client: Client,
    token: &'a str,
}

impl As<'_> {
    pub(crate) fn send(&mut self, call: &str, body: &Value) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        let text = if body.is_null() { String::new() } else { body.to_string() };
        self.client.send(call, &[JSON, ("Authorization", &bearer)], text.as_bytes())
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.send(&format!("GET {path}"), &Value::Null)
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.send(&format!("POST {path}"), body)
    }
}

pub(crate) fn with<'a>(server: &Server, token: &'a str) -> As<'a> {
    As { client: server.client(), token }
}

/// Runs `tagwerk token …` on the store in this folder.
pub(crate) fn run(dir: &Path, args: &[&str]) -> Output {
    let args: Vec<&str> =
        ["token"].iter().chain(args).chain(&["--store", "sqlite:tagwerk.db"]).copied().collect();
    tagwerk(dir, &args).output().expect("tagwerk runs")
}

/// A new token.
pub(crate) fn create(dir: &Path, args: &[&str]) -> String {
    let args: Vec<&str> = ["create"].iter().chain(args).copied().collect();
    let output = run(dir, &args);
    assert!(output.status.success(), "{output:?}");
    let token = String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned();
    assert!(token.starts_with("tw_") && token.len() == 67, "{token}");
    token
}

/// A server that answers to holders of a token only, and its address.
pub(crate) fn closed_server() -> (Server, String) {
    let (server, _) = server_with(Options::default(), [EVERYTHING]);
    let url = server.url();
    (server, url)
}

/// A server whose store has these tokens.
fn server_with<const N: usize>(options: Options, tokens: [&[&str]; N]) -> (Server, [String; N]) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let tokens = tokens.map(|args| create(dir.path(), args));
    (Server::in_dir(dir, options), tokens)
}

pub(crate) const EVERYTHING: &[&str] = &["all", "--scope", "enqueue,work,read,payload,operate,admin"];

#[test]
fn way_in_1_no_auth_whoever_has_no_token_that_counts_gets_nothing() {
    let (server, [good, expired]) =
        server_with(Options::default(), [EVERYTHING, &["old", "--scope", "read", "--expires-in", "0.001"]]);
    let mut client = server.client();
    let almost = format!("{}0", &good[..good.len() - 1]);
    let almost = if almost == good { format!("{}1", &good[..good.len() - 1]) } else { almost };
    for headers in [
        &[][..],
        &[("Authorization", "Bearer")],
        &[("Authorization", "Bearer ")],
        &[("Authorization", "Bearer tw_")],
        &[("Authorization", format!("Basic {good}").as_str())],
        &[("Authorization", good.as_str())],
        &[("Authorization", format!("Bearer {almost}").as_str())],
        &[("Authorization", format!("Bearer {expired}").as_str())],
        &[("Authorization", format!("Bearer {good}").as_str()), ("Authorization", "Bearer x")],
        &[("Authorization", "Bearer ' OR 1=1 --")],
        &[("X-Api-Key", good.as_str())],
        &[("Cookie", format!("token={good}").as_str())],
    ] {
        for call in [
            "GET /jobs",
            "POST /jobs",
            "DELETE /jobs/1",
            "GET /no/such/path",
            "GET /readyz?verbose",
            "PATCH /jobs",
        ] {
            let answer = client.send(call, headers, b"");
            answer.problem(401, "unauthorized");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer realm=\"tagwerk\""), "{call}");
            assert!(!answer.text().contains(&good), "{call}");
        }
    }
    assert_eq!(client.get("/livez").expect(200), json!({"status": "alive"}));
    assert_eq!(client.get("/readyz").expect(200)["checks"], Value::Null, "bare");
    assert_eq!(with(&server, &good).get("/stats").expect(200)["counts"]["enqueued"], 0, "nothing was stored");
    with(&server, &good).get("/no/such/path").problem(404, "not-found");
}

#[test]
fn a_token_in_the_url_is_refused_whoever_sends_it() {
    let (server, [good]) = server_with(Options::default(), [EVERYTHING]);
    for path in
        [format!("/jobs?token={good}"), format!("/jobs/{good}"), format!("/stats?x=1&access_token={good}")]
    {
        let answer = server.client().get(&path);
        let problem = answer.problem(401, "token-in-url");
        assert!(!problem.to_string().contains(&good), "{problem}");
        with(&server, &good).get(&path).problem(401, "token-in-url");
    }
}

#[test]
fn a_token_counts_within_a_second_and_a_revoked_one_no_longer() {
    let server = Server::start();
    server.get("/jobs").expect(200);
    let lasting = create(server.dir(), EVERYTHING);
    let wait = json!({"worker_id": "w", "queues": ["nothing"], "wait_seconds": 1});
    with(&server, &lasting).post("/jobs/claim", &wait).expect(200);
    server.get("/jobs").problem(401, "unauthorized");
    let short = create(server.dir(), &["short", "--scope", "read"]);
    with(&server, &lasting).post("/jobs/claim", &wait).expect(200);
    with(&server, &short).get("/jobs").expect(200);
    assert!(run(server.dir(), &["revoke", "short"]).status.success());
    with(&server, &lasting).post("/jobs/claim", &wait).expect(200);
    with(&server, &short).get("/jobs").problem(401, "unauthorized");
    // With the last one goes the need for one, and that is said.
    let output = run(server.dir(), &["revoke", "all"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("no token is left"), "{output:?}");
}

#[test]
fn a_proxy_may_stand_in_front_of_callers_with_a_token() {
    let (server, [good]) = server_with(Options::default(), [EVERYTHING]);
    let bearer = format!("Bearer {good}");
    let proxied = ("X-Forwarded-For", "203.0.113.7");
    server.client().send("GET /jobs", &[proxied, ("Authorization", &bearer)], b"").expect(200);
    server.client().send("GET /jobs", &[proxied], b"").problem(401, "unauthorized");
    server.client().send("GET /livez", &[proxied], b"").expect(200);
    // A page of another origin is refused whatever it holds.
    let foreign = ("Origin", "http://evil.example");
    server
        .client()
        .send("POST /jobs", &[foreign, JSON, ("Authorization", &bearer)], b"{\"type\":\"t\"}")
        .problem(403, "cross-origin");
}

#[test]
fn beyond_loopback_tokens_are_not_enough() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    create(dir.path(), EVERYTHING);
    let output = tagwerk(dir.path(), &["serve", "--listen", "0.0.0.0:0"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("TLS") && told.contains("token"), "{told}");
}

#[test]
fn the_store_and_the_lists_do_not_hold_the_token() {
    let (server, [good]) = server_with(Options::default(), [EVERYTHING]);
    with(&server, &good).get("/jobs").expect(200);
    for file in ["tagwerk.db", "tagwerk.db-wal"] {
        let bytes = std::fs::read(server.dir().join(file)).unwrap_or_default();
        assert!(!bytes.windows(good.len()).any(|part| part == good.as_bytes()), "{file}");
    }
    for args in [&["list"][..], &["list", "--json"]] {
        let output = run(server.dir(), args);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("all") && !text.contains(&good), "{text}");
    }
}

#[test]
fn way_in_8_sql_injection_a_name_is_a_name() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    create(dir.path(), EVERYTHING);
    for name in ["x'); DROP TABLE token; --", "", "local", "a b", "-a", "ä", &"n".repeat(65)] {
        let output = run(dir.path(), &["create", "--scope", "read", "--", name]);
        assert_eq!(output.status.code(), Some(2), "{name}: {output:?}");
    }
    for (args, told) in [
        (&["create", "all", "--scope", "read"][..], "already"),
        (&["create", "b", "--scope", "root"], "root"),
        (&["create", "b"], "--scope"),
        (&["create", "b", "--scope", "read", "--expires-at", "2020-01-01T00:00:00Z"], "expired"),
        (&["revoke", "' OR 1=1 --"], "no token"),
    ] {
        let output = run(dir.path(), args);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && text.contains(told), "{args:?}: {text}");
    }
    let server = Server::in_dir(dir, Options::default());
    let tokens = run(server.dir(), &["list", "--json"]);
    let tokens: Value = serde_json::from_slice(&tokens.stdout).expect("JSON");
    assert_eq!(tokens["tokens"].as_array().map(Vec::len), Some(1), "{tokens}");
}

#[test]
fn the_command_line_takes_the_token_from_its_environment() {
    let (server, [good]) = server_with(Options::default(), [EVERYTHING]);
    let url = format!("http://{}", server.addr());
    let call = |token: &str, args: &[&str]| {
        let args: Vec<&str> = args.iter().chain(&["--url", &url]).copied().collect();
        tagwerk(server.dir(), &args).env("TAGWERK_TOKEN", token).output().expect("it runs")
    };
    assert!(call(&good, &["enqueue", "t"]).status.success());
    let refused = call("", &["jobs", "list"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("TAGWERK_TOKEN"), "{refused:?}");
    let worker = tagwerk(
        server.dir(),
        &["work", "--queue", "default", "--max-jobs", "1", "--url", &url, "--", "sh", "-c", "env > seen"],
    )
    .env("TAGWERK_TOKEN", &good)
    .output()
    .expect("it runs");
    assert!(worker.status.success(), "{worker:?}");
    let seen = std::fs::read_to_string(server.dir().join("seen")).expect("what the command saw");
    assert!(seen.contains("TAGWERK_JOB_ID") && !seen.contains(&good), "{seen}");
    assert_eq!(with(&server, &good).get("/jobs/1").expect(200)["status"], "completed");
}

#[test]
fn a_pattern_that_can_fit_no_name_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    create(
        dir.path(),
        &["first", "--scope", "read", "--queue", "*", "--queue", "m*.a-1", "--type", "Any Thing*"],
    );
    let (long, control) = ("x".repeat(65), "a\nb".to_owned());
    for args in [
        ["--queue", "bad name"],
        ["--queue", ".mail"],
        ["--queue", ""],
        ["--queue", &long],
        ["--queue", "ma\u{fc}l*"],
        ["--type", ""],
        ["--type", &control],
    ] {
        let output = run(dir.path(), &[&["create", "second", "--scope", "read"], &args[..]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains("can fit no name") && said.contains("give "), "{args:?}: {said}");
    }
    let listed = String::from_utf8(run(dir.path(), &["list"]).stdout).expect("UTF-8");
    assert!(listed.contains("first") && !listed.contains("second"), "{listed}");
}

mod needs_sqlite3 {
    use super::*;

    #[test]
    fn tokens_that_cannot_be_read_are_told_and_let_nobody_in_who_was_not() {
        let (mut server, [all, other]) =
            server_with(Options::default(), [EVERYTHING, &["other", "--scope", "read"]]);
        let sql = "UPDATE token SET scopes = 'everything' WHERE name = 'other'";
        let mut shell = std::process::Command::new("sqlite3");
        let output =
            shell.args(["-cmd", ".timeout 5000"]).arg(server.file()).arg(sql).output().expect("sqlite3");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        while !server.log().contains("the API tokens cannot be read") {
            with(&server, &all).get("/stats").expect(200);
        }
        // Those that were known go on to count, and nobody else.
        with(&server, &other).get("/jobs").expect(200);
        server.client().get("/jobs").problem(401, "unauthorized");
        assert_eq!(server.log().matches("the API tokens cannot be read").count(), 1, "{}", server.log());
        // Started anew the server would know none and let everybody in, so it does not start.
        let (dir, store) = (server.dir().to_owned(), server.store());
        let said = |args: &[&str], code: i32| {
            let output = tagwerk(&dir, &[args, &["--store", &store]].concat()).output();
            let output = output.expect("tagwerk runs");
            assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
        };
        let found = said(&["check"], 1);
        assert!(found.contains("damaged-token") && found.contains("\"other\""), "{found}");
        let listed = said(&["token", "list"], 4);
        assert!(listed.contains("token \"other\": its scopes cannot be read"), "{listed}");
        server.kill();
        let refused = said(&["serve", "--listen", "127.0.0.1:0"], 1);
        assert!(refused.contains("an API token cannot be read; tagwerk token list says which"), "{refused}");
        said(&["token", "revoke", "other"], 0);
        server.start_again();
        with(&server, &other).get("/jobs").problem(401, "unauthorized");
        with(&server, &all).get("/stats").expect(200);
    }
}
