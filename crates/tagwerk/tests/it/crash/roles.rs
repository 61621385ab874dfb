//! What the clients of the harness do: producers, workers, workers who hold one job for long, operators.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};

use super::client::{Hand, Over, Sent, Task, Token, report_entry};
use super::model::{Asked, Heard, Run, Said, Seen};
use crate::server::Server;
use crate::support::text;

/// The queue of everything that clients make.
pub(crate) const QUEUE: &str = "crash";
/// The limit that some of its jobs keep to, in two partitions, and how many of them may run at a time.
pub(crate) const LIMIT: (&str, u32) = ("crash", 2);
/// Ordering keys that some of its jobs have.
const ORDERS: [&str; 6] = ["o-1", "o-2", "o-3", "o-4", "o-5", "o-6"];
/// Jobs that wait, from which on producers look on instead of making more.
const BACKLOG: i64 = 400;
/// Jobs that operators choose from.
const RECENT: usize = 200;

/// What the clients find on a server.
pub(crate) fn prepare(server: &Server) {
    let (name, most) = LIMIT;
    server.put(&format!("/limits/{name}"), &json!({"max_running": most})).expect(201);
}

/// What clients tell each other in passing, so that they meet at the same jobs.
#[derive(Debug, Default)]
pub(crate) struct Gossip {
    recent: Mutex<VecDeque<Seen>>,
    /// Keys that were used, also by calls without an answer.
    keys: Mutex<VecDeque<String>>,
    /// Jobs made but not ended, roughly.
    backlog: AtomicI64,
}

impl Gossip {
    fn tell(&self, seen: &Seen) {
        let change = match seen.status.as_str() {
            "pending" if seen.version == 1 => 1,
            "running" if seen.counters[0] == 1 => -1,
            _ => 0,
        };
        self.backlog.fetch_add(change, Ordering::Relaxed);
        push(&self.recent, seen.clone());
    }

    /// How many jobs really wait.
    pub(crate) fn correct(&self, backlog: i64) {
        self.backlog.store(backlog, Ordering::Relaxed);
    }

    fn job(&self, hand: &mut Hand<'_>) -> Option<Seen> {
        any(&self.recent, hand)
    }
}

fn push<T>(list: &Mutex<VecDeque<T>>, item: T) {
    let mut list = list.lock().expect("no client panicked");
    list.push_back(item);
    if list.len() > RECENT {
        list.pop_front();
    }
}

fn any<T: Clone>(list: &Mutex<VecDeque<T>>, hand: &mut Hand<'_>) -> Option<T> {
    let list = list.lock().expect("no client panicked");
    let count = u64::try_from(list.len()).expect("a length");
    if count == 0 {
        return None;
    }
    list.get(usize::try_from(hand.dice.below(count)).expect("an index")).cloned()
}

/// What a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Makes jobs: single and in bulk, with and without keys.
    Producer,
    /// Claims and reports, in every way there is.
    Worker,
    /// Holds one job at a time under a short lease with heartbeats.
    Steady,
    /// Cancels, retries, discards, forces, deletes.
    Operator,
}

impl Role {
    /// The role of a client by its number: of 32, 9 producers, 15 workers, 4 steady ones, 4 operators.
    pub(crate) const fn of(number: usize) -> Self {
        match number % 8 {
            0 | 1 => Self::Producer,
            2 => Self::Steady,
            3 if number % 16 == 3 => Self::Producer,
            4 => Self::Operator,
            _ => Self::Worker,
        }
    }

    /// Goes on until the run is over.
    pub(crate) fn play(self, mut hand: Hand<'_>, gossip: &Gossip) {
        let mut memory = Memory::default();
        loop {
            let turn = match self {
                Self::Producer => produce(&mut hand, gossip),
                Self::Worker => work(&mut hand, gossip, &mut memory),
                Self::Steady => hold(&mut hand, gossip),
                Self::Operator => operate(&mut hand, gossip),
            };
            if turn.is_err() {
                return;
            }
        }
    }
}

/// A new job: every field that it names stands in its payload too, so that it can be compared.
fn new_job(hand: &mut Hand<'_>, gossip: &Gossip, use_of_key: KeyUse) -> (Value, Asked) {
    let mark = hand.name("m");
    let mut job = json!({
        "type": *hand.dice.pick(&["crash-a", "crash-b", "App\\Crash"]),
        "queue": QUEUE,
        "correlation_id": mark,
        "max_retries": hand.dice.below(4),
        "timeout_seconds": 3600 + hand.dice.below(9),
        "subject": {"kind": "order", "id": mark, "version": 7},
    });
    let key = match use_of_key {
        KeyUse::None => None,
        KeyUse::Own | KeyUse::New => Some(hand.name("k")),
        KeyUse::Any => Some(any(&gossip.keys, hand).unwrap_or_else(|| hand.name("k"))),
    };
    if let Some(key) = &key {
        if !matches!(use_of_key, KeyUse::Own) {
            push(&gossip.keys, key.clone());
        }
        job["idempotency_key"] = json!(key);
        job["idempotency_scope"] = json!("forever");
    }
    match hand.dice.below(100) {
        0..12 => job["ordering_key"] = json!(*hand.dice.pick(&ORDERS)),
        12..24 => job["limits"] = json!([format!("{}:{}", LIMIT.0, hand.dice.pick(&["a", "b"]))]),
        _ => {}
    }
    job["payload"] = job.clone();
    job["priority"] = json!(hand.dice.below(40));
    job["payload"]["priority_value"] = job["priority"].clone();
    let base = *hand.dice.pick(&[0.0, 0.0, 0.05]);
    job["retry"] = json!({"base_seconds": base});
    (job, Asked::Enqueue { mark, key, group: None })
}

#[derive(Clone, Copy, Debug)]
enum KeyUse {
    None,
    /// One that nobody else will use.
    Own,
    /// One that others may use from now on.
    New,
    /// One that somebody has used, perhaps without hearing what became of it.
    Any,
}

fn produce(hand: &mut Hand<'_>, gossip: &Gossip) -> Result<(), Over> {
    if gossip.backlog.load(Ordering::Relaxed) > BACKLOG {
        // Enough for now. Counting by hearsay is inexact, so it is also forgotten.
        gossip.backlog.fetch_sub(1, Ordering::Relaxed);
        if let Some(seen) = gossip.job(hand) {
            hand.look(seen.id, 0.05)?;
        }
        return Ok(());
    }
    if hand.dice.percent(25) {
        return produce_many(hand, gossip);
    }
    let key = *hand.dice.pick(&[KeyUse::None, KeyUse::None, KeyUse::New, KeyUse::Any]);
    let (job, asked) = new_job(hand, gossip, key);
    let sent = hand.call("POST /jobs", Some(&job))?;
    if let Some(seen) = hand.note_answer(&sent, asked, |answer| answer.status == 200) {
        gossip.tell(&seen);
    }
    Ok(())
}

/// A bulk call: all or none of a group, or each judged by itself.
fn produce_many(hand: &mut Hand<'_>, gossip: &Gossip) -> Result<(), Over> {
    let count = 2 + hand.dice.below(7);
    let atomic = hand.dice.percent(50);
    let number = u64::try_from(hand.number).expect("a number");
    let group = atomic.then(|| number << 48 | hand.dice.below(1 << 47));
    let mut items = Vec::new();
    for _ in 0..count {
        let key = match (atomic, hand.dice.below(3)) {
            (true, 0) => KeyUse::Own,
            (false, 0) => KeyUse::New,
            (false, 1) => KeyUse::Any,
            _ => KeyUse::None,
        };
        let (job, asked) = new_job(hand, gossip, key);
        let asked = match asked {
            Asked::Enqueue { mark, key, .. } => Asked::Enqueue { mark, key, group },
            other => other,
        };
        items.push((job, asked));
    }
    let jobs: Vec<&Value> = items.iter().map(|(job, _)| job).collect();
    let sent = hand.call("POST /jobs/bulk", Some(&json!({"jobs": jobs, "atomic": atomic})))?;
    let results = sent.success().map(|body| body["results"].as_array().cloned().unwrap_or_default());
    for (index, (_, asked)) in items.into_iter().enumerate() {
        match &results {
            Some(results) => hand.note_result(&sent, asked, &results[index]),
            None => note_none(hand, &sent, asked),
        }
    }
    Ok(())
}

/// No answer, or a refusal of the whole call.
fn note_none(hand: &Hand<'_>, sent: &Sent, asked: Asked) {
    if sent.is_silent() {
        hand.note(sent, asked, Heard::Nothing);
    } else {
        drop(hand.note_answer(sent, asked, |_| false));
    }
}

/// What a worker has in mind.
#[derive(Debug, Default)]
struct Memory {
    /// A claim whose answer was lost; it is sent again under its name.
    claim: Option<(Value, String, &'static str)>,
    /// Reports whose answers were lost; they are sent again with their token.
    reports: Vec<(Task, Said)>,
    /// Jobs that it is slow with.
    slow: VecDeque<Task>,
}

fn work(hand: &mut Hand<'_>, gossip: &Gossip, memory: &mut Memory) -> Result<(), Over> {
    for (task, said) in std::mem::take(&mut memory.reports) {
        if hand.report(&task, &said, Token::Sent)?.is_none() {
            memory.reports.push((task, said));
        }
    }
    if memory.slow.len() > 20 || hand.dice.percent(20) {
        // By now others may have the job, or it may be over.
        if let Some(task) = memory.slow.pop_front() {
            finish(hand, memory, &task)?;
        }
    }
    let (wish, worker, call) = match memory.claim.take() {
        Some(again) => again,
        None => new_claim(hand),
    };
    let sent = hand.call(&format!("POST /jobs/claim{call}"), Some(&wish))?;
    let tasks = note_claim(hand, gossip, (&sent, &worker));
    if sent.is_silent() && wish["request_id"].is_string() && hand.dice.percent(90) {
        memory.claim = Some((wish, worker, call));
    }
    if tasks.len() > 1 && hand.dice.percent(50) {
        return finish_together(hand, gossip, memory, tasks);
    }
    for task in tasks {
        treat(hand, memory, task)?;
    }
    Ok(())
}

/// A claim under a name of its own: single or in bulk, with or without `request_id`, waiting or not.
fn new_claim(hand: &mut Hand<'_>) -> (Value, String, &'static str) {
    let worker = hand.name("w");
    let mut wish = json!({
        "worker_id": worker,
        "queues": [QUEUE],
        "lease_seconds": *hand.dice.pick(&[1, 1, 2, 5, 30]),
        "wait_seconds": *hand.dice.pick(&[0.0, 0.3, 1.0]),
    });
    if hand.dice.percent(60) {
        wish["request_id"] = json!(format!("r-{worker}"));
    }
    if hand.dice.percent(40) {
        wish["max_jobs"] = json!(1 + hand.dice.below(6));
        return (wish, worker, "/bulk");
    }
    (wish, worker, "")
}

/// Writes down what a claim got.
fn note_claim(hand: &Hand<'_>, gossip: &Gossip, (sent, worker): (&Sent, &str)) -> Vec<Task> {
    let asked = Asked::Claim { worker: worker.to_owned() };
    let Some(body) = sent.success() else {
        note_none(hand, sent, asked);
        return Vec::new();
    };
    let jobs = match &body {
        Value::Null => Vec::new(),
        body if body["jobs"].is_array() => body["jobs"].as_array().cloned().unwrap_or_default(),
        job => vec![job.clone()],
    };
    let mut tasks = Vec::new();
    for job in jobs {
        let heard = super::world::seen(&job);
        gossip.tell(&heard);
        let run = Run { worker: worker.to_owned(), since: text(&job["claimed_at"]).to_owned() };
        tasks.push(Task { id: heard.id, lease: text(&job["lease"]).to_owned(), run });
        let heard = if job["replayed"] == true { Heard::Again(heard) } else { Heard::Job(heard) };
        hand.note(sent, asked.clone(), heard);
    }
    tasks
}

/// How an attempt ends. The result names the attempt, so that two of them cannot be taken for one.
fn end(hand: &mut Hand<'_>, task: &Task) -> Said {
    match hand.dice.below(100) {
        0..70 => Said::Completed(format!("by {} since {}", task.run.worker, task.run.since)),
        70..82 => Said::Failed("transient"),
        82..88 => Said::Failed("unknown"),
        88..92 => Said::Failed("permanent"),
        _ => Said::Released,
    }
}

/// What a worker does with a job that it got.
fn treat(hand: &mut Hand<'_>, memory: &mut Memory, task: Task) -> Result<(), Over> {
    match hand.dice.below(100) {
        // It dies, as far as the server can tell.
        0..3 => Ok(()),
        3..9 => {
            memory.slow.push_back(task);
            Ok(())
        }
        9..14 => {
            let said = end(hand, &task);
            hand.report(&task, &said, Token::LeftOut).map(drop)
        }
        14..20 => {
            hand.report(&task, &Said::Heartbeat, Token::Sent)?;
            finish(hand, memory, &task)
        }
        20..32 => {
            for _ in 0..=hand.dice.below(3) {
                hand.checkpoint(&task)?;
            }
            finish(hand, memory, &task)
        }
        _ => finish(hand, memory, &task),
    }
}

/// Reports, and remembers to do so again if the answer was lost. Sometimes it says the same twice anyway.
fn finish(hand: &mut Hand<'_>, memory: &mut Memory, task: &Task) -> Result<(), Over> {
    let said = end(hand, task);
    let heard = hand.report(task, &said, Token::Sent)?;
    if (heard.is_none() && hand.dice.percent(85)) || (heard == Some(true) && hand.dice.percent(4)) {
        memory.reports.push((task.clone(), said));
    }
    Ok(())
}

/// Several reports and a claim in one call.
fn finish_together(
    hand: &mut Hand<'_>,
    gossip: &Gossip,
    memory: &mut Memory,
    tasks: Vec<Task>,
) -> Result<(), Over> {
    let said: Vec<(Task, Said)> = tasks
        .into_iter()
        .map(|task| {
            let said = if hand.dice.percent(10) { Said::Heartbeat } else { end(hand, &task) };
            (task, said)
        })
        .collect();
    let entries: Vec<Value> = said.iter().map(|(task, said)| report_entry(task, said)).collect();
    let (mut wish, worker, _) = new_claim(hand);
    wish["max_jobs"] = json!(2);
    let body = json!({"reports": entries, "claim": wish});
    let sent = hand.call("POST /jobs/report/bulk", Some(&body))?;
    let results = sent.success().map(|body| body["results"].as_array().cloned().unwrap_or_default());
    for (index, (task, said)) in said.into_iter().enumerate() {
        let asked = Asked::Report { id: task.id, run: task.run.clone(), said: said.clone() };
        match &results {
            Some(results) => hand.note_result(&sent, asked, &results[index]),
            None => note_none(hand, &sent, asked),
        }
        if sent.is_silent() && said != Said::Heartbeat {
            memory.reports.push((task, said));
        } else if said == Said::Heartbeat {
            memory.slow.push_back(task);
        }
    }
    for task in note_claim(hand, gossip, (&sent, &worker)) {
        finish(hand, memory, &task)?;
    }
    Ok(())
}

/// Holds a job for longer than its lease, with heartbeats, and completes it.
fn hold(hand: &mut Hand<'_>, gossip: &Gossip) -> Result<(), Over> {
    let worker = hand.name("s");
    let wish = json!({"worker_id": worker, "queues": [QUEUE], "lease_seconds": 1, "wait_seconds": 1});
    let sent = hand.call("POST /jobs/claim", Some(&wish))?;
    let Some(task) = note_claim(hand, gossip, (&sent, &worker)).pop() else { return Ok(()) };
    for _ in 0..hand.dice.below(9) {
        hand.look(task.id, 0.25)?;
        if hand.report(&task, &Said::Heartbeat, Token::Sent)? == Some(false) {
            return Ok(());
        }
    }
    let said = Said::Completed(format!("by {} since {}", task.run.worker, task.run.since));
    hand.report(&task, &said, Token::Sent).map(drop)
}

/// One action on a job that somebody has just seen, and a look at the review.
fn operate(hand: &mut Hand<'_>, gossip: &Gossip) -> Result<(), Over> {
    if hand.dice.percent(50) {
        return review(hand);
    }
    let Some(seen) = gossip.job(hand) else {
        return hand.call("GET /livez", None).map(drop);
    };
    let id = seen.id;
    // Also lets time pass: operators are slower than workers.
    hand.look(id, 0.1)?;
    let (action, name, body) = match hand.dice.below(100) {
        0..35 => ("cancel", "cancel", json!({"reason": "not needed"})),
        35..60 => ("cancel", "cancel", json!({"wait": true})),
        60..90 => ("force-fail", "force_fail", json!({"reason": "stuck"})),
        _ => return erase(hand, id),
    };
    let sent = hand.call(&format!("POST /jobs/{id}/{action}"), Some(&body))?;
    drop(hand.note_answer(&sent, Asked::Operate { id, action: name }, |_| false));
    Ok(())
}

/// `DELETE`
fn erase(hand: &mut Hand<'_>, id: i64) -> Result<(), Over> {
    let sent = hand.call(&format!("DELETE /jobs/{id}"), None)?;
    let asked = Asked::Delete { id };
    match sent.success() {
        Some(_) => hand.note(&sent, asked, Heard::Done { lease_until_ms: None }),
        None => note_none(hand, &sent, asked),
    }
    Ok(())
}

/// Retries or discards some of what is in review.
fn review(hand: &mut Hand<'_>) -> Result<(), Over> {
    let sent = hand.call("GET /review?limit=20", None)?;
    let jobs = sent.success().map(|body| body["jobs"].as_array().cloned().unwrap_or_default());
    let jobs = jobs.unwrap_or_default();
    let Some(job) = (!jobs.is_empty()).then(|| hand.dice.pick(&jobs)) else {
        return hand.call("GET /livez", None).map(drop);
    };
    let (id, version) = (job["id"].as_i64().expect("an id"), job["version"].clone());
    hand.look(id, 0.05)?;
    let (action, body) = if hand.dice.percent(70) {
        ("retry", json!({"seen_version": version, "note": "once more"}))
    } else {
        ("discard", json!({"seen_version": version, "reason": "given up"}))
    };
    let sent = hand.call(&format!("POST /jobs/{id}/{action}"), Some(&body))?;
    drop(hand.note_answer(&sent, Asked::Operate { id, action }, |_| false));
    Ok(())
}
