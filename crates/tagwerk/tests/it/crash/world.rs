//! Reads the store through the server, as the model wants it.

use serde_json::Value;

use super::history::Recorder;
use super::model::{Attempt, Run, Seen, Stored};
use crate::client::Client;
use crate::support::{ms, text};

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// A job in whole or in list form, or what is left of one.
pub(crate) fn seen(job: &Value) -> Seen {
    if job["pruned"] == true {
        return tombstone(job);
    }
    let run = job["worker_id"]
        .as_str()
        .map(|worker| Run { worker: worker.to_owned(), since: text(&job["claimed_at"]).to_owned() });
    Seen {
        id: number(&job["id"]),
        version: number(&job["version"]),
        status: text(&job["status"]).to_owned(),
        counters: ["attempt", "retry_count", "lease_losses", "release_count"]
            .map(|field| number(&job[field])),
        verify: job["verify"] == true,
        run,
        lease_until_ms: ms(&job["lease_expires_at"]),
        mark: text(&job["correlation_id"]).to_owned(),
        key: job["idempotency_key"].as_str().map(str::to_owned),
    }
}

/// It has no version, as [`Seen::is_tombstone`] wants it.
fn tombstone(job: &Value) -> Seen {
    Seen {
        id: number(&job["id"]),
        version: 0,
        status: text(&job["status"]).to_owned(),
        counters: [0; 4],
        verify: false,
        run: None,
        lease_until_ms: None,
        mark: String::new(),
        key: None,
    }
}

fn attempt(attempt: &Value) -> Attempt {
    Attempt {
        seq: number(&attempt["seq"]),
        run: Run {
            worker: text(&attempt["worker_id"]).to_owned(),
            since: text(&attempt["claimed_at"]).to_owned(),
        },
        ended_ms: ms(&attempt["ended_at"]),
        outcome: attempt["outcome"].as_str().map(str::to_owned),
        class: attempt["class"].as_str().map(str::to_owned),
    }
}

/// The job with its history, at one moment: both are read again if a lease has ended in between.
pub(crate) fn read(client: &mut Client, id: i64, past: &Recorder) -> Option<Stored> {
    loop {
        let answer = past.get(client, &format!("/jobs/{id}"));
        if answer.status == 404 {
            return None;
        }
        let job = answer.expect(200);
        let history = past.get(client, &format!("/jobs/{id}/attempts?limit=1000")).expect(200);
        let again = past.get(client, &format!("/jobs/{id}")).expect(200);
        if again["version"] != job["version"] {
            continue;
        }
        assert_as_sent(&job);
        let list = |name: &str| history[name].as_array().cloned().unwrap_or_default();
        return Some(Stored {
            seen: seen(&job),
            result: job["result"].as_str().map(str::to_owned),
            checkpoint: job["checkpoint"].as_str().map(str::to_owned),
            attempts: list("attempts").iter().map(attempt).collect(),
            actions: list("actions")
                .iter()
                .map(|action| (text(&action["action"]).to_owned(), number(&action["version"])))
                .collect(),
        });
    }
}

/// The payload says how the job was sent; its `filler` only takes room.
fn assert_as_sent(job: &Value) {
    let sent = job["payload"].as_object().unwrap_or_else(|| panic!("no payload: {job}"));
    for (field, value) in sent.iter().filter(|(field, _)| *field != "filler") {
        assert_eq!(&job[field], value, "{field} of {job}");
    }
}
