//! Turns a request and its answer, as HTTP shows them, into what the history keeps of them.
//!
//! One exchange may concern many jobs or none. What is asked of the server as a whole (`/stats`, lists, settings) is left out.
//! Tokens are not kept: a digest stands for each.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use crate::call::{Action, Asked, Attempt, By, Class, Key, Said, Scope, Told, View};
use crate::read::time_ms;

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// Whether it says that nothing new was done (`Report-Replayed`, `Idempotency-Replayed`).
    pub replayed: bool,
    /// The body; null if there is none.
    pub body: Value,
}

/// Milliseconds that a key of scope `ttl` holds after the end of its job if nothing says otherwise: 30 days.
const TTL_DEFAULT_MS: i64 = 30 * 24 * 3_600_000;

/// What a request (`POST /jobs/7/complete` with its body) and its answer say of each job. `None`: there was no answer. An answer
/// which says that the server does not know is none either.
#[must_use]
pub fn read_exchange(request: &str, body: &Value, answer: Option<&Answer>) -> Vec<(Asked, Told)> {
    let answer = answer.filter(|answer| answer.body["code"] != "outcome-unknown");
    let (method, path) = request.split_once(' ').unwrap_or(("", request));
    let path = path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match (method, parts.as_slice()) {
        ("POST", ["jobs"]) => vec![(enqueue(body), enqueued(answer))],
        ("POST", ["jobs", "bulk"]) => bulk(&body["jobs"], answer, enqueue),
        ("POST", ["jobs", "claim"] | ["jobs", "claim", "bulk"]) => claimed(body, answer),
        ("POST", ["jobs", "report", "bulk"]) => {
            let mut all = bulk(&body["reports"], answer, entry);
            if body["claim"].is_object() {
                all.extend(claimed(&body["claim"], answer));
            }
            all
        }
        ("POST", ["jobs", id, call]) => {
            let asked = id.parse().ok().and_then(|id| of_job(id, call, body));
            asked.map(|asked| (asked, done(answer))).into_iter().collect()
        }
        ("DELETE", ["jobs", id]) => {
            let operate = |job| Asked::Operate { job, action: Action::Delete, seen_version: None };
            id.parse().ok().map(|id| (operate(id), done(answer))).into_iter().collect()
        }
        ("GET", ["jobs", id]) => {
            id.parse().ok().map(|job| (Asked::Get { job }, done(answer))).into_iter().collect()
        }
        ("GET", ["jobs", id, "attempts"]) => {
            let told = answer.map_or(Some(Told::Nothing), attempts);
            let job = id.parse().ok();
            job.zip(told).map(|(job, told)| (Asked::Attempts { job }, told)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

#[expect(clippy::cast_possible_truncation, reason = "lengths of time are bounded by the server")]
fn ms(seconds: &Value) -> Option<i64> {
    seconds.as_f64().map(|seconds| (seconds * 1e3).round() as i64)
}

/// Stands for a token without telling it.
fn digest(token: &Value) -> Option<String> {
    let token = token.as_str()?;
    let mut hasher = DefaultHasher::new();
    token.hash(&mut hasher);
    Some(format!("L{:016x}", hasher.finish()))
}

fn enqueue(job: &Value) -> Asked {
    let scope = match job["idempotency_scope"].as_str() {
        Some("waiting") => Scope::Waiting,
        Some("unfinished") => Scope::Unfinished,
        Some("forever") => Scope::Forever,
        _ => Scope::Ttl,
    };
    let ttl_ms = ms(&job["idempotency_ttl_seconds"]).unwrap_or(TTL_DEFAULT_MS);
    let key = text(&job["idempotency_key"]).map(|name| Key { name, scope, ttl_ms });
    Asked::Enqueue { mark: text(&job["correlation_id"]), key }
}

fn enqueued(answer: Option<&Answer>) -> Told {
    match answer {
        Some(Answer { status: 200, body, .. }) => Told::tombstone(body)
            .or_else(|| View::read(body).map(Told::Again))
            .unwrap_or(Told::Done { until_ms: None }),
        other => done(other),
    }
}

fn by(body: &Value) -> By {
    By { lease: digest(&body["lease"]), worker: text(&body["worker_id"]) }
}

fn failed(body: &Value) -> Said {
    let class = match body["class"].as_str() {
        Some("permanent") => Class::Permanent,
        Some("unknown") => Class::Unknown,
        _ => Class::Transient,
    };
    Said::Failed { class }
}

fn completed(body: &Value) -> Said {
    let result = body.get("result").filter(|result| !result.is_null());
    Said::Completed { result: result.map(Value::to_string) }
}

/// A call on one job.
fn of_job(job: i64, call: &str, body: &Value) -> Option<Asked> {
    let report = |said| Asked::Report { job, by: by(body), said };
    let seen_version = body["seen_version"].as_i64();
    let operate = |action| Asked::Operate { job, action, seen_version };
    Some(match call {
        "complete" => report(completed(body)),
        "fail" => report(failed(body)),
        "release" => report(Said::Released),
        "heartbeat" => Asked::Heartbeat { job, by: by(body) },
        "checkpoint" => Asked::Checkpoint { job, by: by(body), value: body["checkpoint"].to_string() },
        "cancel" => operate(Action::Cancel { wait: body["wait"] == true }),
        "retry" => {
            let retries = body["max_retries"].as_u64();
            operate(Action::Retry { max_retries: retries.and_then(|retries| u32::try_from(retries).ok()) })
        }
        "discard" => operate(Action::Discard),
        "force-fail" => operate(Action::ForceFail),
        _ => return None,
    })
}

/// An entry of a bulk report.
fn entry(entry: &Value) -> Asked {
    let job = entry["id"].as_i64().unwrap_or_default();
    let report = |said| Asked::Report { job, by: by(entry), said };
    match entry["outcome"].as_str() {
        Some("completed") => report(completed(entry)),
        Some("failed") => report(failed(entry)),
        Some("released") => report(Said::Released),
        _ => Asked::Heartbeat { job, by: by(entry) },
    }
}

/// Entries that are judged each by itself.
fn bulk(entries: &Value, answer: Option<&Answer>, asked: impl Fn(&Value) -> Asked) -> Vec<(Asked, Told)> {
    let entries = entries.as_array().map(Vec::as_slice).unwrap_or_default();
    let told = |index: usize| match answer {
        Some(Answer { status: 200, body, .. }) => result(&body["results"][index]),
        other => done(other),
    };
    entries.iter().enumerate().map(|(index, entry)| (asked(entry), told(index))).collect()
}

/// One result of a bulk call.
fn result(result: &Value) -> Told {
    let status = result["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(0);
    if result["problem"]["code"] == "outcome-unknown" {
        return Told::Nothing;
    }
    if result["problem"].is_object() {
        return Told::problem(status, &result["problem"]);
    }
    if result["heartbeat"].is_object() {
        return Told::Done { until_ms: time_ms(&result["heartbeat"]["lease_expires_at"]) };
    }
    if let Some(tombstone) = Told::tombstone(&result["tombstone"]) {
        return tombstone;
    }
    let told = if result["replayed"] == true { Told::Again } else { Told::Job };
    View::read(&result["job"]).map_or(Told::Done { until_ms: None }, told)
}

/// What a claim got. A claim that got nothing says nothing of any job.
fn claimed(wish: &Value, answer: Option<&Answer>) -> Vec<(Asked, Told)> {
    let asked = || Asked::Claim {
        worker: text(&wish["worker_id"]).unwrap_or_default(),
        request: text(&wish["request_id"]),
        lease_ms: ms(&wish["lease_seconds"]),
    };
    let Some(answer) = answer else { return vec![(asked(), Told::Nothing)] };
    let one = std::slice::from_ref(&answer.body);
    let jobs = answer.body["jobs"].as_array().map_or(one, Vec::as_slice);
    let told = jobs.iter().filter_map(|job| {
        let (view, lease) = (View::read(job)?, digest(&job["lease"])?);
        Some((asked(), Told::Lease { view, lease, again: job["replayed"] == true }))
    });
    told.collect()
}

/// The answer to a call on one job.
fn done(answer: Option<&Answer>) -> Told {
    let Some(Answer { status, replayed, body }) = answer else { return Told::Nothing };
    if *status >= 300 {
        return Told::problem(*status, body);
    }
    match View::read(body) {
        Some(view) if *replayed => Told::Again(view),
        Some(view) => Told::Job(view),
        None => Told::Done { until_ms: time_ms(&body["lease_expires_at"]) },
    }
}

/// A history that is there in whole.
fn attempts(answer: &Answer) -> Option<Told> {
    if answer.status >= 300 {
        return Some(Told::problem(answer.status, &answer.body));
    }
    let whole = answer.body["omitted"] == 0 && answer.body["next"].is_null();
    let list = answer.body["attempts"].as_array().filter(|_| whole)?;
    list.iter().map(Attempt::read).collect::<Option<Vec<_>>>().map(Told::Attempts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(status: u16, body: Value) -> Answer {
        Answer { status, replayed: false, body }
    }

    #[test]
    fn a_refused_report_is_read() {
        let refused = answer(409, json!({"code": "lease-lost", "may_report": false}));
        let read = read_exchange("POST /jobs/7/complete", &json!({"lease": "secret"}), Some(&refused));
        let [(Asked::Report { job: 7, by, said }, told)] = read.as_slice() else { panic!("{read:?}") };
        assert_eq!(*said, Said::Completed { result: None });
        assert!(by.lease.as_ref().is_some_and(|lease| !lease.contains("secret")));
        let expected = Told::Refused { status: 409, code: "lease-lost".to_owned(), may_report: Some(false) };
        assert_eq!(*told, expected);
    }

    #[test]
    fn each_entry_of_a_bulk_call_is_read() {
        let jobs = json!({"jobs": [{"type": "t", "idempotency_key": "k"}, {"type": "t"}]});
        let problem = json!({"status": 409, "problem": {"code": "duplicate"}});
        let gone = json!({"id": 3, "pruned": true, "status": "completed"});
        let results = answer(200, json!({"results": [problem, {"status": 200, "tombstone": gone}]}));
        let read = read_exchange("POST /jobs/bulk", &jobs, Some(&results));
        assert!(matches!(&read[0].1, Told::Refused { status: 409, .. }), "{read:?}");
        assert!(matches!(&read[1].1, Told::Tombstone { job: 3, .. }), "{read:?}");
        let silent = read_exchange("POST /jobs/bulk", &jobs, None);
        assert!(silent.iter().all(|(_, told)| *told == Told::Nothing) && silent.len() == 2);
    }

    #[test]
    fn a_server_that_does_not_know_gives_no_answer() {
        let unknown = answer(503, json!({"code": "outcome-unknown"}));
        let read = read_exchange("DELETE /jobs/7", &Value::Null, Some(&unknown));
        assert_eq!(read[0].1, Told::Nothing);
    }

    #[test]
    fn what_is_about_no_job_is_left_out() {
        let stats = answer(200, json!({}));
        assert_eq!(read_exchange("GET /stats", &Value::Null, Some(&stats)), []);
        let nothing = answer(200, Value::Null);
        assert_eq!(read_exchange("POST /jobs/claim", &json!({"worker_id": "w"}), Some(&nothing)), []);
    }
}
