//! Cuts a history into parts that cannot influence each other: a key with the jobs that answered for it, or one job.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::call::{Asked, Call, Status, Told, View};
use crate::rules::{Rules, Silence};
use crate::search::{Op, Part};
use crate::spec::Facts;

/// What a part is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Subject {
    Job(i64),
    Key(String),
}

/// All parts.
pub(crate) fn parts(calls: &[Call], rules: &Rules) -> Vec<Part> {
    let seen = Seen::of(calls);
    let mut groups = Groups::default();
    for (place, call) in calls.iter().enumerate() {
        if let (Some(one), Some(other)) = (key_of(call), job_of((place, call), &seen)) {
            groups.join(&Subject::Key(one), &Subject::Job(other));
        }
    }
    let mut parts: BTreeMap<Subject, Part> = BTreeMap::new();
    let mut silent_claims = Vec::new();
    for (place, call) in calls.iter().enumerate() {
        let op = Op {
            call: call.clone(),
            answered: call.told != Told::Nothing,
            deadline_ns: deadline(call, rules),
            births: seen.births((place, call)),
            claims: matches!(call.asked, Asked::Claim { .. }).then(|| call.job()).flatten(),
        };
        if !op.answered && rules.silence == Silence::MeansNo {
            continue;
        }
        if let (Asked::Claim { worker, .. }, false) = (&call.asked, op.answered) {
            silent_claims.push((call.start_ns, op.deadline_ns));
            for job in seen.named.get(worker.as_str()).into_iter().flatten() {
                let part = parts.entry(groups.find(&Subject::Job(*job))).or_default();
                part.ops.push(Op { claims: Some(*job), ..op.clone() });
            }
            continue;
        }
        // Of a job that no answer ever shows nothing can be said: its enqueue may have got no answer.
        if call.asked.job().is_some_and(|job| !seen.first.contains_key(&job) && !seen.gone.contains(&job)) {
            continue;
        }
        let subject =
            key_of(call).map(Subject::Key).or_else(|| job_of((place, call), &seen).map(Subject::Job));
        if let Some(subject) = subject {
            parts.entry(groups.find(&subject)).or_default().ops.push(op);
        }
    }
    parts.into_values().map(|part| finished(part, &seen, &silent_claims)).collect()
}

/// Puts the calls in order and adds what is known of the jobs.
fn finished(mut part: Part, seen: &Seen<'_>, silent_claims: &[(u64, u64)]) -> Part {
    part.ops.sort_by_key(|op| (op.call.end_ns, op.call.start_ns));
    let ids: BTreeSet<i64> = part
        .ops
        .iter()
        .flat_map(|op| op.births.iter().copied().chain(op.call.job()).chain(op.claims))
        .collect();
    part.facts = ids.into_iter().map(|id| (id, seen.facts(id))).collect();
    let last = part.ops.iter().map(|op| op.call.end_ns).max().unwrap_or(0);
    let first = part.ops.iter().map(|op| op.call.start_ns).min().unwrap_or(0);
    let near = silent_claims.iter().filter(|(from, until)| *from <= last && *until >= first);
    part.unknown = near.copied().collect();
    part
}

/// The moment after which a call without an answer was not done any more.
fn deadline(call: &Call, rules: &Rules) -> u64 {
    rules.stopped_ns.iter().copied().filter(|stopped| *stopped >= call.start_ns).min().unwrap_or(u64::MAX)
}

fn key_of(call: &Call) -> Option<String> {
    match &call.asked {
        Asked::Enqueue { key: Some(key), .. } => Some(key.name.clone()),
        _ => None,
    }
}

/// The job that a call is about, also if only its mark tells.
fn job_of((place, call): (usize, &Call), seen: &Seen<'_>) -> Option<i64> {
    call.job().or_else(|| seen.births((place, call)).first().copied())
}

/// What the answers show of jobs, whatever their order.
#[derive(Default)]
struct Seen<'a> {
    /// The earliest version of each that was shown.
    first: BTreeMap<i64, &'a View>,
    by_mark: HashMap<&'a str, BTreeSet<i64>>,
    by_key: HashMap<&'a str, BTreeSet<i64>>,
    /// Jobs of which something is left.
    gone: BTreeSet<i64>,
    /// Jobs whose enqueue was answered.
    made: BTreeSet<i64>,
    /// Jobs that a worker was said to have.
    named: HashMap<&'a str, BTreeSet<i64>>,
}

impl<'a> Seen<'a> {
    fn of(calls: &'a [Call]) -> Self {
        let mut seen = Self::default();
        for call in calls {
            if let (Asked::Enqueue { .. }, Told::Job(view)) = (&call.asked, &call.told) {
                seen.made.insert(view.id);
            }
            if let (Asked::Attempts { job }, Told::Attempts(list)) = (&call.asked, &call.told) {
                for attempt in list {
                    seen.named.entry(&attempt.worker).or_default().insert(*job);
                }
            }
            // What is left of a job has its key, not its mark.
            if let (Asked::Enqueue { key: Some(key), .. }, Told::Tombstone { job, .. }) =
                (&call.asked, &call.told)
            {
                seen.by_key.entry(&key.name).or_default().insert(*job);
                seen.gone.insert(*job);
            }
            if let Some(view) = call.told.view() {
                seen.show(view);
            }
        }
        seen
    }

    fn show(&mut self, view: &'a View) {
        let first = self.first.entry(view.id).or_insert(view);
        if view.version < first.version {
            *first = view;
        }
        if let Some(mark) = &view.mark {
            self.by_mark.entry(mark).or_default().insert(view.id);
        }
        if let Some(key) = &view.key {
            self.by_key.entry(key).or_default().insert(view.id);
        }
        if let Some(worker) = &view.worker {
            self.named.entry(worker).or_default().insert(view.id);
        }
    }

    /// The jobs that an enqueue may have made. `place`: where it stands in the history.
    fn births(&self, (place, call): (usize, &Call)) -> Vec<i64> {
        let Asked::Enqueue { mark, key } = &call.asked else { return Vec::new() };
        let orphans = |ids: Option<&BTreeSet<i64>>| {
            let ids = ids.into_iter().flatten().copied();
            ids.filter(|id| !self.made.contains(id)).collect::<Vec<i64>>()
        };
        match (&call.told, mark, key) {
            (Told::Job(view), ..) => vec![view.id],
            (Told::Nothing, Some(mark), _) if self.by_mark.contains_key(mark.as_str()) => {
                orphans(self.by_mark.get(mark.as_str()))
            }
            // Its job may never have been shown, only what is left of it.
            (Told::Nothing, mark, Some(key)) => {
                let mut ids = orphans(self.by_key.get(key.name.as_str()));
                ids.retain(|id| mark.is_none() || !self.first.contains_key(id));
                ids.push(nameless(place));
                ids
            }
            _ => Vec::new(),
        }
    }

    fn facts(&self, id: i64) -> Facts {
        self.first.get(&id).map_or_else(|| Facts::of(&unseen(id)), |view| Facts::of(view))
    }
}

/// The id of a job that no answer ever names. Ids of servers are positive. Calls of one bulk begin at one moment, so the
/// moment would not tell their jobs apart, and their keys would count as one.
fn nameless(place: usize) -> i64 {
    -1 - i64::try_from(place).unwrap_or(i64::MAX - 1)
}

/// A job that no answer shows: as the defaults make it.
pub(crate) fn unseen(id: i64) -> View {
    View {
        id,
        status: Status::Pending,
        version: 1,
        attempt: 0,
        retry_count: 0,
        max_retries: 3,
        lease_losses: 0,
        max_lease_losses: 4,
        release_count: 0,
        verify: false,
        cancel_requested: false,
        review_unknown: false,
        due_ms: 0,
        expires_ms: None,
        max_age_ms: None,
        timeout_ms: None,
        worker: None,
        claimed_ms: None,
        until_ms: None,
        reason: None,
        mark: None,
        key: None,
        ordering_key: None,
        on_head_failure: None,
        limits: Vec::new(),
        whole: None,
    }
}

/// Subjects that belong together.
#[derive(Default)]
struct Groups(HashMap<Subject, Subject>);

impl Groups {
    fn find(&self, subject: &Subject) -> Subject {
        let mut at = subject;
        while let Some(next) = self.0.get(at) {
            at = next;
        }
        at.clone()
    }

    fn join(&mut self, one: &Subject, other: &Subject) {
        let (one, other) = (self.find(one), self.find(other));
        if one != other {
            self.0.insert(one, other);
        }
    }
}
