//! Rules between jobs: of an ordering key one job runs at a time, and none before those with lower ids have come to their end;
//! under a limit no more jobs run than it allows.
//!
//! Guarantees: what is reported cannot be true in any order of the calls. Only what is certain counts. A job is held at
//! least from the moment when its claimer had the answer until the first call that could end it was sent, or until its lease
//! could have run out, whichever is first; a heartbeat that counted shows that it was held until then and for a lease more.
//!
//! Deliberately absent: the search for an order. Calls of different jobs are never put into one here, so two jobs that ran
//! together for a moment that nobody can prove are not seen.

use std::collections::{BTreeMap, HashMap};

use crate::call::{Asked, By, Call, Said, Status, Told, View};
use crate::check::Contradiction;
use crate::log::History;
use crate::rules::{Rules, plus_ms};
use crate::words;

/// A job that was certainly held by somebody, from one moment to another.
#[derive(Clone, Copy)]
struct Hold<'c> {
    claim: &'c Call,
    view: &'c View,
    from: u64,
    until: u64,
}

/// What contradicts the rules between jobs; at most one for each key and each limit.
pub(crate) fn contradictions(history: &History) -> Vec<Contradiction> {
    let mut by_job: HashMap<i64, Vec<&Call>> = HashMap::new();
    for call in &history.calls {
        if let Some(job) = call.job() {
            by_job.entry(job).or_default().push(call);
        }
    }
    let mut holds: Vec<Hold<'_>> =
        history.calls.iter().filter_map(|call| hold(call, history, &by_job)).collect();
    holds.sort_by_key(|hold| hold.from);
    let mut found = Vec::new();
    let mut of_key: BTreeMap<&str, Vec<Hold<'_>>> = BTreeMap::new();
    let mut of_limit: BTreeMap<&str, Vec<Hold<'_>>> = BTreeMap::new();
    for hold in holds {
        if let Some(key) = &hold.view.ordering_key {
            of_key.entry(key).or_default().push(hold);
        }
        for limit in &hold.view.limits {
            of_limit.entry(limit).or_default().push(hold);
        }
    }
    for (key, holds) in &of_key {
        if let Some(calls) = more_than(1, holds) {
            found.push(words::together(
                &format!("ordering key {key}: more than one job ran at a time"),
                &calls,
            ));
        }
    }
    found.extend(overtaken(history, &by_job));
    for (limit, holds) in &of_limit {
        let name = limit.split_once(':').map_or(*limit, |(name, _)| name);
        let Some(most) = history.rules.limits.get(name) else { continue };
        if let Some(calls) = more_than(*most, holds) {
            found.push(words::together(
                &format!("limit {limit}: more than {most} jobs ran at a time"),
                &calls,
            ));
        }
    }
    found
}

/// The first claims, in the order of their answers, that make it more than so many at one moment.
fn more_than<'c>(most: u32, holds: &[Hold<'c>]) -> Option<Vec<&'c Call>> {
    let mut live: Vec<Hold<'c>> = Vec::new();
    for hold in holds {
        live.retain(|other| other.until > hold.from && other.view.id != hold.view.id);
        live.push(*hold);
        if live.len() > usize::try_from(most).unwrap_or(usize::MAX) {
            return Some(live.iter().map(|hold| hold.claim).collect());
        }
    }
    None
}

/// What a claim that was answered proves.
fn hold<'c>(claim: &'c Call, history: &'c History, by_job: &HashMap<i64, Vec<&'c Call>>) -> Option<Hold<'c>> {
    let Told::Lease { view, lease, again } = &claim.told else { return None };
    let rules = &history.rules;
    let length = view.until_ms? - view.claimed_ms?;
    // An answer that was given again tells of a grant that nobody here has seen.
    if *again || view.timeout_ms.is_some_and(|most| most <= length) {
        return None;
    }
    let calls = by_job.get(&view.id)?;
    let mut until = ends(claim.start_ns, length, rules);
    for call in
        calls.iter().filter(|call| matches!(&call.asked, Asked::Heartbeat { by, .. } if has(by, lease)))
    {
        if matches!(call.told, Told::Done { .. } | Told::Job(_)) {
            until = until.max(ends(call.start_ns, length, rules));
        }
    }
    if let Some(most) = view.timeout_ms {
        until = until.min(ends(claim.start_ns, most, rules));
    }
    for call in calls.iter().filter(|call| may_end(call, lease)) {
        let is_before = !matches!(call.told, Told::Nothing) && call.end_ns < claim.start_ns;
        if !is_before {
            until = until.min(call.start_ns);
        }
    }
    (until > claim.end_ns).then_some(Hold { claim, view, from: claim.end_ns, until })
}

/// When a lease that was granted or extended after this moment may have run out.
fn ends(after: u64, length: i64, rules: &Rules) -> u64 {
    plus_ms(after, length).saturating_sub(rules.lease_early_ms.saturating_mul(1_000_000))
}

fn has(by: &By, lease: &str) -> bool {
    by.lease.as_deref() == Some(lease)
}

/// Whether this call may have ended the attempt of this lease.
fn may_end(call: &Call, lease: &str) -> bool {
    let may = match &call.asked {
        Asked::Report { by, .. } => by.lease.is_none() || has(by, lease),
        Asked::Heartbeat { by, .. } | Asked::Checkpoint { by, .. } => {
            // Told to stop, it was over by then.
            return has(by, lease) && matches!(call.told, Told::Refused { .. });
        }
        Asked::Operate { .. } => true,
        Asked::Enqueue { .. } | Asked::Claim { .. } | Asked::Get { .. } | Asked::Attempts { .. } => false,
    };
    may && !matches!(call.told, Told::Refused { .. })
}

/// Jobs that were handed out although one before them in the order of their key had surely not come to its end: its
/// completion, which counted, was sent later. (A job that was cancelled cannot be completed, and one in review holds.)
fn overtaken(history: &History, by_job: &HashMap<i64, Vec<&Call>>) -> Vec<Contradiction> {
    let mut claims: BTreeMap<&str, Vec<(&View, &Call)>> = BTreeMap::new();
    for call in &history.calls {
        if let Told::Lease { view, again: false, .. } = &call.told
            && let Some(key) = &view.ordering_key
        {
            claims.entry(key).or_default().push((view, call));
        }
    }
    let mut found = Vec::new();
    for (key, claims) in &mut claims {
        claims.sort_by_key(|(_, call)| call.end_ns);
        let mut firsts: Vec<i64> = claims.iter().map(|(view, _)| view.id).collect();
        firsts.sort_unstable();
        firsts.dedup();
        let before = firsts.iter().filter_map(|id| completed_late(by_job.get(id)?));
        let wrong = before.filter_map(|(first, known, done)| {
            let overtakes = |(view, call): &&(&View, &Call)| {
                view.id > first && call.start_ns > known.end_ns && call.end_ns < done.start_ns
            };
            let (_, claim) = claims.iter().find(overtakes)?;
            Some(vec![known, claim, done])
        });
        if let Some(calls) = wrong.min_by_key(|calls| calls[1].start_ns) {
            found.push(words::together(&format!("ordering key {key}: a later job went first"), &calls));
        }
    }
    found
}

/// Of a job that holds back others until its end: its id, the first answer that showed it, the report that completed it.
fn completed_late<'c>(calls: &[&'c Call]) -> Option<(i64, &'c Call, &'c Call)> {
    let shown = |call: &&&Call| call.told.view().is_some_and(holds_in_review);
    let known = calls.iter().filter(shown).min_by_key(|call| call.end_ns)?;
    let counted = |call: &&&Call| {
        matches!(&call.asked, Asked::Report { said: Said::Completed { .. }, .. })
            && matches!(&call.told, Told::Job(view) if view.status == Status::Completed)
    };
    let done = calls.iter().find(counted)?;
    Some((known.told.view()?.id, known, done))
}

fn holds_in_review(view: &View) -> bool {
    view.ordering_key.is_some() && view.on_head_failure.as_deref() != Some("skip")
}
