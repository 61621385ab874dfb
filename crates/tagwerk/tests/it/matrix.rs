//! The state machine through HTTP, cell by cell: every kind of state × every call × every kind of caller.
//!
//! What is expected stands in [`expected`] as tables; [`stage`] brings the jobs into their states. Every cell has a job of
//! its own. A refused or repeated call is held against the whole job as it was shown before: nothing of it may change.

mod expected;
mod stage;

use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::server::Server;
use crate::support::{Held, attempts, claim, delete, in_parallel, job};
use stage::{Actor, Past, standing};

/// Connections that work at the same time.
const CLIENTS: usize = 8;
/// A token that was never granted.
const UNKNOWN: &str = "tw_00000000000000000000000000000000";

/// Who calls.
#[derive(Clone, Debug)]
enum Caller {
    /// With the token of the newest lease, live or not.
    Newest,
    /// With the token of an older lease.
    Older,
    /// With a token that was never granted.
    Unknown,
    /// Without a token, as somebody or nobody.
    WithoutToken(Option<&'static str>),
}

/// A cell of a table.
#[derive(Clone, Debug)]
struct Cell {
    actor: Actor,
    call: &'static str,
    caller: Caller,
    expected: &'static str,
}

/// Who stands behind a column, and what came before the state.
fn caller(column: &str) -> (Caller, Past) {
    match column {
        "T" | "N" => (Caller::Newest, Past::None),
        "X" => (Caller::Older, Past::Loss),
        "R" => (Caller::Older, Past::Failure),
        "?" => (Caller::Unknown, Past::None),
        "-" => (Caller::WithoutToken(None), Past::None),
        "=" => (Caller::WithoutToken(Some("w")), Past::None),
        "/" => (Caller::WithoutToken(Some("v")), Past::None),
        "-X" => (Caller::WithoutToken(None), Past::Loss),
        other => panic!("no such column: {other}"),
    }
}

/// The calls of workers, with their tables.
const CALLS: [(&str, &str); 7] = [
    ("heartbeat", expected::CONTACT),
    ("checkpoint", expected::CONTACT),
    ("complete", expected::COMPLETE),
    ("fail transient", expected::FAIL_TRANSIENT),
    ("fail permanent", expected::FAIL_PERMANENT),
    ("fail unknown", expected::FAIL_UNKNOWN),
    ("release", expected::RELEASE),
];

/// All cells of the workers' calls.
fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (call, table) in CALLS {
        for (state, row) in expected::rows(table) {
            for (column, expected) in expected::CALLERS.into_iter().zip(row).filter(|(_, cell)| *cell != ".")
            {
                let (caller, past) = caller(column);
                cells.push(Cell { actor: Actor::new(state, past), call, caller, expected });
            }
        }
    }
    cells
}

#[test]
fn every_call_of_a_worker_in_every_state_by_every_caller() {
    let server = Server::start();
    let mut cells = cells();
    let mut actors: Vec<Actor> = cells.iter().map(|cell| cell.actor.clone()).collect();
    stage::play(&server, &mut actors);
    for (cell, actor) in cells.iter_mut().zip(actors) {
        cell.actor = actor;
    }
    let wrong: Vec<String> = in_parallel((CLIENTS, &cells), || server.client(), judge)
        .into_iter()
        .zip(&cells)
        .filter_map(|(verdict, cell)| verdict.err().map(|why| explain(cell, &why)))
        .collect();
    assert!(wrong.is_empty(), "{} of {} cells:\n{}", wrong.len(), cells.len(), wrong.join("\n"));
    assert_eq!(cells.len(), 840);
}

fn explain(cell: &Cell, why: &str) -> String {
    let Cell { actor, call, caller, expected } = cell;
    format!("{} after {:?}, {call} by {caller:?}: expected {expected}, {why}", actor.state, actor.past)
}

/// Makes the call of a cell and compares.
fn judge(client: &mut Client, cell: &Cell) -> Result<(), String> {
    let before = job(client, cell.actor.id);
    let answer = call(client, cell);
    let after = job(client, cell.actor.id);
    compare(cell.expected, (&before, &answer, &after))?;
    if cell.expected.starts_with("ok:") && !before["status"].eq("running") {
        late(client, &after)?;
    }
    match (cell.call, cell.expected) {
        ("heartbeat", "ok") => beaten(&before, &after),
        ("checkpoint", "ok") if after["checkpoint"] != json!({"page": 7}) => {
            Err(format!("checkpoint: {after}"))
        }
        _ => Ok(()),
    }
}

fn call(client: &mut Client, cell: &Cell) -> Answer {
    let (path, mut body) = match cell.call.split_once(' ') {
        Some((path, class)) => (path, json!({"class": class, "error": "it did not work"})),
        None if cell.call == "checkpoint" => (cell.call, json!({"checkpoint": {"page": 7}})),
        None => (cell.call, json!({})),
    };
    let token = |held: &Option<Held>| json!(held.as_ref().map(|held| &held.lease).expect("a lease"));
    match cell.caller {
        Caller::Newest => body["lease"] = token(&cell.actor.newest),
        Caller::Older => body["lease"] = token(&cell.actor.older),
        Caller::Unknown => body["lease"] = json!(UNKNOWN),
        Caller::WithoutToken(None) => {}
        Caller::WithoutToken(Some(worker)) => body["worker_id"] = json!(worker),
    }
    client.post(&format!("/jobs/{}/{path}", cell.actor.id), &body)
}

/// Compares an answer, and the job before and after, with a cell.
fn compare(expected: &str, seen: (&Value, &Answer, &Value)) -> Result<(), String> {
    let (before, answer, after) = seen;
    let (said, then) = expected.split_once(':').map_or((expected, None), |(said, then)| (said, Some(then)));
    let got = heard(answer);
    if expected::code(said.trim_end_matches('+')) != got.trim_end_matches('+')
        || said.ends_with('+') != got.ends_with('+')
    {
        return Err(format!("got {got}: {}", answer.text()));
    }
    match then {
        Some(then) if standing(after) != then => {
            Err(format!("but it stands as {}: {after}", standing(after)))
        }
        Some(_) if after["version"].as_i64() <= before["version"].as_i64() => {
            Err(format!("but its version is still {}", after["version"]))
        }
        None if said == "ok" && before["version"] != after["version"] => {
            Err(format!("but its version went from {} to {}", before["version"], after["version"]))
        }
        None if said != "ok" && before != after => Err(format!("but it changed:\n  {before}\n  {after}")),
        _ => Ok(()),
    }
}

/// What an answer says, as the tables write it, with the code in full. Whoever is told to stop is told so in every way.
fn heard(answer: &Answer) -> String {
    let body = answer.json();
    match (answer.status, answer.header("report-replayed")) {
        (200, None) => return "ok".to_owned(),
        (200, Some("true")) => return "again".to_owned(),
        (409, None) => {}
        (status, _) => return format!("{status}"),
    }
    let code = body["code"].as_str().unwrap_or_default();
    let stops = ["lease-lost", "timed-out", "cancelled", "not-running"].contains(&code);
    match (stops, body["stop"].as_bool(), body["may_report"].as_bool()) {
        (true, Some(true), Some(true)) => format!("{code}+"),
        (true, Some(true), Some(false)) | (false, _, None | Some(false)) => code.to_owned(),
        (_, stop, may_report) => format!("{code} with stop {stop:?}, may_report {may_report:?}"),
    }
}

/// A report that came after its lease had ended stands in the history as one attempt, and nothing of the loss is left.
fn late(client: &mut Client, job: &Value) -> Result<(), String> {
    let attempts = attempts(client, job["id"].as_i64().expect("an id"));
    let [attempt] = attempts.as_slice() else { return Err(format!("but there are attempts: {attempts:?}")) };
    let outcome = match job["status"].as_str() {
        Some("completed") => "completed",
        _ if job["release_count"] == 1 => "released",
        _ => "failed",
    };
    if attempt["late"] != true || attempt["outcome"] != outcome || job["lease_losses"] != 0 {
        return Err(format!("but the loss is still there: {attempt} {job}"));
    }
    Ok(())
}

/// A heartbeat never shortens the lease.
fn beaten(before: &Value, after: &Value) -> Result<(), String> {
    let ends = |job: &Value| job["lease_expires_at"].as_str().map(str::to_owned);
    if ends(before) > ends(after) { Err(format!("but the lease got shorter: {after}")) } else { Ok(()) }
}

/// A call of an operator in a state.
#[derive(Clone, Debug)]
struct Operation {
    actor: Actor,
    action: &'static str,
    version: Version,
    expected: &'static str,
}

/// The version that the operator has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// None is named.
    None,
    /// The one that it has.
    Present,
    /// An older one.
    Older,
}

#[test]
fn every_call_of_an_operator_in_every_state() {
    let server = Server::start();
    let mut operations = Vec::new();
    for (state, row) in expected::rows(expected::OPERATORS) {
        for (action, expected) in expected::OPERATIONS.into_iter().zip(row) {
            for version in [Version::None, Version::Present, Version::Older] {
                let actor = Actor::new(state, Past::None);
                operations.push(Operation { actor, action, version, expected });
            }
        }
    }
    let mut actors: Vec<Actor> = operations.iter().map(|operation| operation.actor.clone()).collect();
    stage::play(&server, &mut actors);
    for (operation, actor) in operations.iter_mut().zip(actors) {
        operation.actor = actor;
    }
    let wrong: Vec<String> = in_parallel((CLIENTS, &operations), || server.client(), act)
        .into_iter()
        .zip(&operations)
        .filter_map(|(verdict, operation)| verdict.err().map(|why| (operation, why)))
        .map(|(Operation { actor, action, version, expected }, why)| {
            format!("{}, {action} with version {version:?}: expected {expected}, {why}", actor.state)
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} cells:\n{}", wrong.len(), operations.len(), wrong.join("\n"));
    let erased = operations.iter().filter(|operation| operation.expected == "ok:erased").count();
    let older = operations
        .iter()
        .filter(|operation| operation.expected == "ok:erased" && expects(operation) != "ok:erased")
        .count();
    let stats = server.get("/stats").expect(200);
    assert_eq!(stats["counts"]["pruned"], erased - older);
}

/// A version that was seen is compared where the call would change something; and a retry always names one.
fn expects(operation: &Operation) -> &'static str {
    match operation {
        Operation { version: Version::None, action: "retry", .. } => "invalid-request",
        Operation { version: Version::Older, expected, .. } if expected.starts_with("ok:") => {
            "version-changed"
        }
        Operation { expected, .. } => expected,
    }
}

fn act(client: &mut Client, operation: &Operation) -> Result<(), String> {
    let id = operation.actor.id;
    let before = job(client, id);
    let seen = match operation.version {
        Version::None => Value::Null,
        Version::Present => before["version"].clone(),
        Version::Older => json!(before["version"].as_i64().expect("a version") - 1),
    };
    let expected = expects(operation);
    let answer = match (operation.action, &seen) {
        ("delete", Value::Null) => delete(client, &format!("/jobs/{id}")),
        ("delete", seen) => delete(client, &format!("/jobs/{id}?seen_version={seen}")),
        (action, seen) => {
            let (action, mut body) = match action {
                "cancel-wait" => ("cancel", json!({"wait": true})),
                "discard" | "force-fail" => (action, json!({"reason": "the test says so"})),
                _ => (action, json!({})),
            };
            if !seen.is_null() {
                body["seen_version"] = seen.clone();
            }
            client.post(&format!("/jobs/{id}/{action}"), &body)
        }
    };
    match expected {
        "invalid-request" => {
            answer.problem(422, "invalid-request");
            let after = job(client, id);
            if before == after { Ok(()) } else { Err(format!("but it changed: {after}")) }
        }
        "ok:erased" => {
            if answer.status == 200 && client.get(&format!("/jobs/{id}")).status == 404 {
                return Ok(());
            }
            Err(format!("got {}: {}", answer.status, answer.text()))
        }
        _ => compare(expected, (&before, &answer, &job(client, id))),
    }
}

#[test]
fn every_state_is_claimed_or_not() {
    let server = Server::start();
    let rows = expected::rows(expected::CLAIMS);
    let mut actors: Vec<Actor> =
        rows.iter().map(|(state, _)| Actor { alone: true, ..Actor::new(state, Past::None) }).collect();
    stage::play(&server, &mut actors);
    let mut client = server.client();
    for (actor, (state, expected)) in actors.iter().zip(rows) {
        let before = job(&mut client, actor.id);
        let got = claim(&mut client, &json!({"worker_id": "next", "queues": [actor.queue()]}));
        let shown = got.as_ref().map_or_else(
            || "-".to_owned(),
            |held| {
                format!("{}{}", held.job["attempt"], if held.job["verify"] == true { "-verify" } else { "" })
            },
        );
        assert_eq!(shown, expected[0], "{state}: {before}");
        match got {
            Some(held) => assert_eq!(held.job["is_last_attempt"], false, "{state}: {}", held.job),
            None => assert_eq!(job(&mut client, actor.id), before, "{state}"),
        }
    }
}
