//! Says it to a person: which few answers cannot all be true, when they were given, and where every order ends.

use std::fmt::Write;

use crate::call::{Action, Asked, By, Call, Said, Told, View};
use crate::check::Contradiction;
use crate::search::{Part, Placed, Stuck};

/// A part for which the search was given up.
pub(crate) fn undecided(jobs: &[i64], calls: usize) -> String {
    format!("{}: {calls} calls, too many orders to look at", subject(jobs))
}

/// Calls of several jobs that break a rule between them.
pub(crate) fn together(rule: &str, calls: &[&Call]) -> Contradiction {
    let mut calls: Vec<Call> = calls.iter().map(|call| (*call).clone()).collect();
    calls.sort_by_key(|call| call.start_ns);
    let mut jobs: Vec<i64> = calls.iter().filter_map(Call::job).collect();
    jobs.sort_unstable();
    jobs.dedup();
    let mut text = format!("{rule}; these answers cannot all be true:\n");
    for call in &calls {
        line(&mut text, &in_words(call));
    }
    Contradiction { jobs, calls, text }
}

/// A contradiction.
pub(crate) fn contradiction(jobs: &[i64], part: &Part, stuck: &Stuck) -> String {
    let mut text = format!("{}: these answers cannot all be true:\n", subject(jobs));
    let mut core: Vec<&Call> = part.ops.iter().filter(|op| op.answered).map(|op| &op.call).collect();
    core.sort_by_key(|call| call.start_ns);
    for call in core {
        line(&mut text, &in_words(call));
    }
    let story: Vec<&Placed> = stuck.story.iter().collect();
    if !story.is_empty() {
        text.push_str("the furthest that any order comes:\n");
        for placed in story {
            match placed {
                Placed::Call(index) => {
                    let op = &part.ops[*index];
                    let perhaps = if op.answered { "" } else { "(its answer is not needed) " };
                    line(&mut text, &format!("{perhaps}{}", in_words(&op.call)));
                }
                Placed::Hidden(job, what) => line(&mut text, &format!("job {job}: {what}")),
            }
        }
    }
    for (index, why) in &stuck.next {
        let _ = writeln!(
            text,
            "then this does not fit: {}\n  by the rules: {why}",
            in_words(&part.ops[*index].call)
        );
    }
    text
}

fn line(text: &mut String, words: &str) {
    text.push_str("  ");
    text.push_str(words);
    text.push('\n');
}

fn subject(jobs: &[i64]) -> String {
    match jobs {
        [job] => format!("job {job}"),
        jobs => format!("jobs {jobs:?} of one key"),
    }
}

/// A moment of the clients' clock.
pub(crate) fn moment(ns: u64) -> String {
    let ms = ns / 1_000_000;
    format!("{}.{:03} s", ms / 1000, ms % 1000)
}

/// One call.
pub(crate) fn in_words(call: &Call) -> String {
    let Call { client, start_ns, end_ns, asked, told } = call;
    let (start, end) = (moment(*start_ns), moment(*end_ns));
    format!("{start} to {end}, client {client}: {} → {}", asked_in_words(asked), told_in_words(told))
}

fn asked_in_words(asked: &Asked) -> String {
    match asked {
        Asked::Enqueue { key: Some(key), .. } => format!("enqueue with the key {}", key.name),
        Asked::Enqueue { .. } => "enqueue".to_owned(),
        Asked::Claim { worker, .. } => format!("claim as {worker}"),
        Asked::Report { job, by, said } => {
            let said = match said {
                Said::Completed { .. } => "complete".to_owned(),
                Said::Failed { class } => format!("fail ({class:?})").to_lowercase(),
                Said::Released => "release".to_owned(),
            };
            format!("{said} job {job} {}", by_in_words(by))
        }
        Asked::Heartbeat { job, by } => format!("heartbeat for job {job} {}", by_in_words(by)),
        Asked::Checkpoint { job, by, value } => {
            format!("checkpoint {value} for job {job} {}", by_in_words(by))
        }
        Asked::Operate { job, action, .. } => {
            let action = match action {
                Action::Cancel { wait: true } => "cancel (and wait)",
                Action::Cancel { wait: false } => "cancel",
                Action::Retry { .. } => "retry",
                Action::Discard => "discard",
                Action::ForceFail => "force-fail",
                Action::Delete => "delete",
            };
            format!("{action} job {job}")
        }
        Asked::Get { job } => format!("get job {job}"),
        Asked::Attempts { job } => format!("get the history of job {job}"),
    }
}

fn by_in_words(by: &By) -> String {
    match (&by.lease, &by.worker) {
        (Some(lease), _) => format!("with the lease {lease}"),
        (None, Some(worker)) => format!("without a lease, as {worker}"),
        (None, None) => "without a lease".to_owned(),
    }
}

fn told_in_words(told: &Told) -> String {
    match told {
        Told::Nothing => "no answer".to_owned(),
        Told::Job(view) => format!("done: {}", view_in_words(view)),
        Told::Again(view) => format!("done before: {}", view_in_words(view)),
        Told::Lease { view, lease, again } => {
            let again = if *again { "the same again" } else { "handed out" };
            format!("{again} under the lease {lease}: {}", view_in_words(view))
        }
        Told::Tombstone { job, status } => format!("job {job} is gone, it had ended as {status:?}"),
        Told::Done { until_ms: Some(until_ms) } => format!("done, the lease holds until {until_ms} ms"),
        Told::Done { until_ms: None } => "done".to_owned(),
        Told::Attempts(list) => {
            let each = list.iter().map(|attempt| {
                format!("{} {}", attempt.worker, attempt.outcome.as_deref().unwrap_or("running"))
            });
            format!("the history [{}]", each.collect::<Vec<_>>().join(", "))
        }
        Told::Refused { status, code, .. } => format!("refused, {status} {code}"),
    }
}

fn view_in_words(view: &View) -> String {
    let status = format!("{:?}", view.status).to_lowercase();
    let mut words =
        format!("job {} is {status}, version {}, attempt {}", view.id, view.version, view.attempt);
    if let Some(worker) = &view.worker {
        let _ = write!(words, ", held by {worker}");
    }
    if let (Some(from), Some(until)) = (view.claimed_ms, view.until_ms) {
        let _ = write!(words, " for {} ms", until - from);
    }
    words
}
