//! One client: it calls, writes down what it heard, and after a crash goes on where it was.

use serde_json::{Value, json};

use super::gate::{Gate, Pass};
use super::log::Log;
use super::model::{Asked, Entry, Heard, Moment, Run, Said, Seen};
use super::world;
use crate::client::{Answer, Client};
use crate::server::JSON;
use crate::support::dice::Dice;
use crate::support::{ms, text};

/// What all clients share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Where they wait for a server.
    pub(crate) gate: Gate,
    /// Where they write.
    pub(crate) log: Log,
    /// How long a client waits for an answer.
    pub(crate) patience: std::time::Duration,
    /// Codes of 503 that are no surprise in this run.
    pub(crate) expected: &'static [&'static str],
}

/// A call that was made.
pub(crate) struct Sent {
    began: Moment,
    ended: Moment,
    at_ms: i64,
    answer: Option<Answer>,
}

impl Sent {
    /// The answer's body, if it was a success.
    pub(crate) fn success(&self) -> Option<Value> {
        self.answer.as_ref().filter(|answer| answer.status < 300).map(Answer::json)
    }

    /// The answer, if it was a refusal.
    pub(crate) fn refused(&self) -> Option<&Answer> {
        self.answer.as_ref().filter(|answer| answer.status >= 300)
    }

    /// Whether there was no answer.
    pub(crate) const fn is_silent(&self) -> bool {
        self.answer.is_none()
    }
}

/// The run is over; whoever hears it goes home.
#[derive(Debug)]
pub(crate) struct Over;

/// A job in this client's hands.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// The job.
    pub(crate) id: i64,
    /// The token of its lease.
    pub(crate) lease: String,
    /// Its attempt.
    pub(crate) run: Run,
}

/// One client.
pub(crate) struct Hand<'a> {
    /// Its number.
    pub(crate) number: usize,
    /// Its chance.
    pub(crate) dice: Dice,
    shared: &'a Shared,
    client: Option<(std::net::SocketAddr, Client)>,
    /// Kept until it has written down what it heard, which it has when it comes for the next call.
    pass: Option<Pass<'a>>,
    serial: u64,
}

impl<'a> Hand<'a> {
    /// A client that has done nothing yet.
    pub(crate) const fn new(number: usize, dice: Dice, shared: &'a Shared) -> Self {
        Self { number, dice, shared, client: None, pass: None, serial: 0 }
    }

    /// It has written down everything and makes no call for now.
    pub(crate) fn rest(&mut self) {
        self.pass = None;
    }

    /// A name that nothing else has.
    pub(crate) fn name(&mut self, kind: &str) -> String {
        self.serial += 1;
        format!("{kind}{}-{}", self.number, self.serial)
    }

    /// Makes a call. If no connection could be made nothing was sent, and it waits for the next server.
    pub(crate) fn call(&mut self, call: &str, body: Option<&Value>) -> Result<Sent, Over> {
        loop {
            self.pass = None;
            let pass = self.shared.gate.enter().ok_or(Over)?;
            let addr = pass.addr;
            self.pass = Some(pass);
            if self.client.as_ref().is_none_or(|(known, _)| *known != addr) {
                self.client = Some((addr, Client::patient(addr, self.shared.patience)));
            }
            let Some((_, client)) = &mut self.client else { continue };
            if client.stream().is_err() {
                self.client = None;
                continue;
            }
            let began = self.shared.log.moment();
            let sent = body.unwrap_or(&Value::Null);
            let body = body.map(Value::to_string).unwrap_or_default();
            let headers: &[_] = if body.is_empty() { &[] } else { &[JSON] };
            let answer = client.try_send(call, headers, body.as_bytes()).ok();
            if answer.is_none() {
                self.client = None;
            }
            let at_ms = now_ms();
            let ended = self.shared.log.moment();
            self.shared.log.past.keep((self.number, began, ended), (call, sent), answer.as_ref());
            let answer = answer.filter(|answer| !is_unknown(answer));
            return Ok(Sent { began, ended, at_ms, answer });
        }
    }

    /// Writes down what was asked and heard for one job.
    pub(crate) fn note(&self, sent: &Sent, asked: Asked, heard: Heard) {
        let Sent { began, ended, at_ms, .. } = *sent;
        self.shared.log.keep(Entry { client: self.number, began, ended, at_ms, asked, heard });
    }

    /// Writes down an answer that is about one job. `again` tells whether it says that it had been done before.
    pub(crate) fn note_answer(
        &self,
        sent: &Sent,
        asked: Asked,
        again: impl Fn(&Answer) -> bool,
    ) -> Option<Seen> {
        let heard = match &sent.answer {
            None => Heard::Nothing,
            Some(answer) if answer.status < 300 => {
                let seen = world::seen(&answer.json());
                if again(answer) { Heard::Again(seen) } else { Heard::Job(seen) }
            }
            Some(answer) => self.refused(answer.status, &answer.json()),
        };
        let seen = match &heard {
            Heard::Job(seen) | Heard::Again(seen) => Some(seen.clone()),
            _ => None,
        };
        self.note(sent, asked, heard);
        seen
    }

    /// Writes down one result of a bulk call: `job`, `tombstone`, `heartbeat` or `problem`.
    pub(crate) fn note_result(&self, sent: &Sent, asked: Asked, result: &Value) {
        let job = if result["tombstone"].is_object() { &result["tombstone"] } else { &result["job"] };
        let heard = match (job, &result["heartbeat"], &result["problem"]) {
            (job @ Value::Object(_), ..) if result["replayed"] == true => Heard::Again(world::seen(job)),
            (job @ Value::Object(_), ..) => Heard::Job(world::seen(job)),
            (_, beat @ Value::Object(_), _) => Heard::Done { lease_until_ms: ms(&beat["lease_expires_at"]) },
            (.., problem) => {
                let status = result["status"].as_u64().and_then(|status| u16::try_from(status).ok());
                self.refused(status.unwrap_or(0), problem)
            }
        };
        self.note(sent, asked, heard);
    }

    /// A refusal; one that no client here should ever get is written down as such.
    pub(crate) fn refused(&self, status: u16, problem: &Value) -> Heard {
        let code = text(&problem["code"]).to_owned();
        let known = matches!(status, 404 | 409)
            || (status == 503
                && (["draining", "overloaded", "store-busy"].contains(&code.as_str())
                    || self.shared.expected.contains(&code.as_str())));
        if !known {
            self.shared.log.surprise(format!("client {}: {status} {problem}", self.number));
        }
        Heard::Refused { status, code }
    }

    /// Looks at a job, and waits up to this long for its end. Also a way to let time pass.
    pub(crate) fn look(&mut self, id: i64, wait_seconds: f64) -> Result<Option<Seen>, Over> {
        let sent = self.call(&format!("GET /jobs/{id}?wait_seconds={wait_seconds}"), None)?;
        Ok(self.note_answer(&sent, Asked::Look { id }, |_| false))
    }

    /// Saves a checkpoint that no other call saves.
    pub(crate) fn checkpoint(&mut self, task: &Task) -> Result<(), Over> {
        let value = self.name("c");
        let body = json!({"lease": task.lease, "checkpoint": value});
        let sent = self.call(&format!("POST /jobs/{}/checkpoint", task.id), Some(&body))?;
        let heard = match &sent.answer {
            None => Heard::Nothing,
            Some(answer) if answer.status < 300 => Heard::Done { lease_until_ms: None },
            Some(answer) => self.refused(answer.status, &answer.json()),
        };
        self.note(&sent, Asked::Checkpoint { id: task.id, run: task.run.clone(), value }, heard);
        Ok(())
    }

    /// Reports about a job, with the token or without. Returns whether there was an answer.
    pub(crate) fn report(&mut self, task: &Task, said: &Said, token: Token) -> Result<Option<bool>, Over> {
        let (call, mut body) = report_body(said);
        match token {
            Token::Sent => body["lease"] = json!(task.lease),
            Token::LeftOut => body["worker_id"] = json!(task.run.worker),
        }
        let sent = self.call(&format!("POST /jobs/{}/{call}", task.id), Some(&body))?;
        let asked = Asked::Report { id: task.id, run: task.run.clone(), said: said.clone() };
        let counted = sent.success();
        match (&counted, said) {
            (Some(beat), Said::Heartbeat) => {
                let lease_until_ms = ms(&beat["lease_expires_at"]);
                self.note(&sent, asked, Heard::Done { lease_until_ms });
            }
            _ => drop(
                self.note_answer(&sent, asked, |answer| answer.header("report-replayed") == Some("true")),
            ),
        }
        Ok((!sent.is_silent()).then_some(counted.is_some()))
    }
}

/// Whether a report carries its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// It does.
    Sent,
    /// It names the worker instead.
    LeftOut,
}

/// The call and body of a report.
fn report_body(said: &Said) -> (&'static str, Value) {
    match said {
        Said::Completed(result) => ("complete", json!({"result": result})),
        Said::Failed(class) => ("fail", json!({"class": class, "error": "it did not work"})),
        Said::Released => ("release", json!({})),
        Said::Heartbeat => ("heartbeat", json!({"progress": {"done": 1}})),
    }
}

/// The entry of a bulk report.
pub(crate) fn report_entry(task: &Task, said: &Said) -> Value {
    let (_, mut entry) = report_body(said);
    let outcome = match said {
        Said::Completed(_) => "completed",
        Said::Failed(_) => "failed",
        Said::Released => "released",
        Said::Heartbeat => "heartbeat",
    };
    entry["outcome"] = json!(outcome);
    entry["id"] = json!(task.id);
    entry["lease"] = json!(task.lease);
    entry
}

/// The server says itself that it does not know whether it was done.
fn is_unknown(answer: &Answer) -> bool {
    answer.status == 503 && answer.json()["code"] == "outcome-unknown"
}

/// The clock in milliseconds.
fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_millis()).expect("a time")
}
