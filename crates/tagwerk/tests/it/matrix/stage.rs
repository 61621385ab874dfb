//! Brings many jobs into all states at once: what has to be lost is lost together.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::expected;
use crate::client::Client;
use crate::server::Server;
use crate::support::{Held, Sentinel, at_once, claim_all, enqueue_all, in_parallel, job, operate, settled};

/// Connections that work at the same time.
const CLIENTS: usize = 8;

/// What happened to a job before it came into its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    /// Nothing.
    None,
    /// A lease that was lost.
    Loss,
    /// A lease that reported a transient failure.
    Failure,
}

impl Past {
    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Loss => "loss",
            Self::Failure => "failure",
        }
    }
}

/// A job on its way into a state.
#[derive(Clone, Debug)]
pub(super) struct Actor {
    /// Its state, as the tables name it.
    pub(super) state: &'static str,
    /// What came before.
    pub(super) past: Past,
    /// A queue of its own, if somebody is to claim it.
    pub(super) alone: bool,
    /// The job.
    pub(super) id: i64,
    /// The lease of its past.
    pub(super) older: Option<Held>,
    /// The lease of its state.
    pub(super) newest: Option<Held>,
}

impl Actor {
    /// Not on the stage yet.
    pub(super) const fn new(state: &'static str, past: Past) -> Self {
        Self { state, past, alone: false, id: 0, older: None, newest: None }
    }

    /// Where it waits.
    pub(super) fn queue(&self) -> String {
        let alone = if self.alone { "alone" } else { "crowd" };
        format!("{alone}.{}.{}", self.past.name(), self.state)
    }

    fn job(&self) -> Value {
        let lost_before = u32::from(self.past == Past::Loss);
        let fatal = matches!(self.state, "failed-by-loss" | "retried");
        let mut job = json!({
            "type": "matrix",
            "queue": self.queue(),
            "retry": at_once(),
            "max_lease_losses": if fatal { 1 + lost_before } else { 4 },
        });
        match self.state {
            // Longer than the lease of its past, shorter than that of its state.
            "after-time-out" => job["timeout_seconds"] = json!(2),
            // Longer than two losses take.
            "failed-by-age" => job["max_age_seconds"] = json!(9),
            _ => {}
        }
        job
    }
}

/// The length of the lease that brings a job into its state; `None` if it needs none.
fn lease_seconds(state: &str) -> Option<u32> {
    match state {
        "new" | "cancelled-pending" => None,
        // Long enough for an operator to say what happens at its end.
        "after-loss" | "retried" | "failed-by-loss" | "failed-by-age" | "cancelled-at-end" => Some(2),
        _ => Some(300),
    }
}

/// What the holder says in its state.
fn report(state: &str) -> Option<Value> {
    match state {
        "after-failure" => Some(failure("transient")),
        "after-release" => Some(json!({"outcome": "released"})),
        "completed" => Some(json!({"outcome": "completed"})),
        "failed-reported" => Some(failure("permanent")),
        _ => None,
    }
}

/// A report of failure, the same wherever one is made.
fn failure(class: &str) -> Value {
    json!({"outcome": "failed", "class": class, "error": "it did not work"})
}

/// What an operator does in its state, once it is claimed.
fn operation(state: &str) -> Option<(&'static str, Value)> {
    match state {
        "stopping" | "cancelled-at-end" => Some(("cancel", json!({"wait": true}))),
        "cancelled-pending" | "cancelled-running" => Some(("cancel", json!({}))),
        "failed-by-force" => Some(("force-fail", json!({"reason": "by force"}))),
        _ => None,
    }
}

/// Brings them all into their states.
pub(super) fn play(server: &Server, actors: &mut [Actor]) {
    let mut client = server.client();
    let jobs: Vec<Value> = actors.iter().map(Actor::job).collect();
    for (actor, id) in actors.iter_mut().zip(enqueue_all(&mut client, &jobs)) {
        actor.id = id;
    }
    pasts(&mut client, actors);
    // Those with the short lease last, right before the operators who have to be quicker than its end.
    for seconds in [300, 2] {
        let held = hand_out(&mut client, actors, ("w", seconds), |actor| {
            lease_seconds(actor.state) == Some(seconds)
        });
        keep(actors, &held, |actor| &mut actor.newest);
    }
    operators(server, actors);
    let sentinel = Sentinel::until(&mut client, 3);
    let said = actors.iter().filter_map(|actor| Some((actor.newest.as_ref()?, report(actor.state)?)));
    report_all(&mut client, said);
    sentinel.wait(&mut client);
    for actor in actors.iter().filter(|actor| actor.state == "retried") {
        operate(&mut client, actor.id, "retry").expect(200);
    }
    for actor in actors.iter().filter(|actor| actor.state == "failed-by-age") {
        assert_eq!(settled(&mut client, actor.id)["failure"]["cause"], "max_age");
    }
    check(server, actors);
}

/// What was before: losses by a worker called `old`, failures by `w`.
fn pasts(client: &mut Client, actors: &mut [Actor]) {
    let lost = hand_out(client, actors, ("old", 1), |actor| actor.past == Past::Loss);
    let sentinel = Sentinel::until(client, 1);
    let failed = hand_out(client, actors, ("w", 300), |actor| actor.past == Past::Failure);
    report_all(client, failed.values().map(|held| (held, failure("transient"))));
    keep(actors, &lost, |actor| &mut actor.older);
    keep(actors, &failed, |actor| &mut actor.older);
    sentinel.wait(client);
}

/// Claims all actors of this kind.
fn hand_out(
    client: &mut Client,
    actors: &[Actor],
    (worker, seconds): (&str, u32),
    kind: impl Fn(&Actor) -> bool,
) -> HashMap<i64, Held> {
    let wanted: Vec<&Actor> = actors.iter().filter(|actor| kind(actor)).collect();
    let mut queues: Vec<String> = wanted.iter().map(|actor| actor.queue()).collect();
    queues.sort();
    queues.dedup();
    let wish = json!({"worker_id": worker, "queues": queues, "lease_seconds": seconds, "max_jobs": 1000});
    let mut all = HashMap::new();
    while all.len() < wanted.len() {
        let held = claim_all(client, &wish);
        assert!(!held.is_empty(), "{worker} got {} of {} jobs", all.len(), wanted.len());
        all.extend(held.into_iter().map(|held| (held.id, held)));
    }
    all
}

/// Gives everybody what was handed out.
fn keep(actors: &mut [Actor], held: &HashMap<i64, Held>, place: impl Fn(&mut Actor) -> &mut Option<Held>) {
    for actor in actors {
        if let Some(held) = held.get(&actor.id) {
            *place(actor) = Some(held.clone());
        }
    }
}

/// Reports of holders, all of which must count.
fn report_all<'a>(client: &mut Client, reports: impl Iterator<Item = (&'a Held, Value)>) {
    let entries: Vec<Value> = reports
        .map(|(held, mut entry)| {
            entry["id"] = json!(held.id);
            entry["lease"] = json!(held.lease);
            entry
        })
        .collect();
    for part in entries.chunks(1000) {
        let answer = client.post("/jobs/report/bulk", &json!({"reports": part})).expect(200);
        for result in answer["results"].as_array().expect("results") {
            assert_eq!(result["status"], 200, "{result}");
        }
    }
}

/// Everything that operators do.
fn operators(server: &Server, actors: &[Actor]) {
    let mut acts: Vec<_> = actors.iter().filter(|actor| operation(actor.state).is_some()).collect();
    // The short leases first.
    acts.sort_by_key(|actor| lease_seconds(actor.state).unwrap_or(u32::MAX));
    in_parallel(
        (CLIENTS, &acts),
        || server.client(),
        |client, actor| {
            let (action, body) = operation(actor.state).expect("an operation");
            client.post(&format!("/jobs/{}/{action}", actor.id), &body).expect(200);
        },
    );
}

/// Whether everybody stands where they should.
fn check(server: &Server, actors: &[Actor]) {
    in_parallel(
        (CLIENTS, actors),
        || server.client(),
        |client, actor| {
            let job = job(client, actor.id);
            let expected = expected::only(expected::STANDINGS, actor.state);
            let standing = standing(&job);
            let kind = |standing: &str| standing.split('-').next().map(str::to_owned);
            if actor.past == Past::None {
                assert_eq!(standing, expected, "{actor:?} {job}");
            } else {
                assert_eq!(kind(&standing), kind(expected), "{actor:?} {job}");
            }
        },
    );
}

/// How a job stands, as the tables write it.
pub(super) fn standing(job: &Value) -> String {
    let status = job["status"].as_str().expect("a status");
    match status {
        "pending" => {
            let verify = if job["verify"] == true { "-verify" } else { "" };
            format!("pending-{}{verify}", job["retry_count"])
        }
        "running" if job["cancel_requested"] == true => "stopping".to_owned(),
        "failed" => format!("failed-{}", job["failure"]["reason"].as_str().expect("a reason")),
        _ => status.to_owned(),
    }
}
