//! What clients know of the server, and whether the server's store agrees with it. Plain data and pure checks.
//!
//! A client keeps an [`Entry`] for each call: what it asked, when, what it heard. A call without an answer
//! ([`Heard::Nothing`]) happened wholly or not at all; after an orderly stop ([`Silence::MeansNo`]) it did not happen. The
//! store, read after a restart, is a list of [`Stored`] jobs with their attempts.
//!
//! Every answer shows the job at some version, and a version never means two things: so an answer that was lost, or a
//! change that was made twice, shows as two different jobs with one version, or as a version that went back.

use std::collections::{BTreeMap, HashMap};

#[cfg(test)]
mod tests;

/// A moment on the counter that all clients share: which of two calls was answered before the other was sent.
pub(crate) type Moment = u64;

/// One call, and what came of it for one job.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Who called.
    pub(crate) client: usize,
    /// When it was sent.
    pub(crate) began: Moment,
    /// When the answer had been read, or the hope for one was given up.
    pub(crate) ended: Moment,
    /// The clock at that moment, in milliseconds.
    pub(crate) at_ms: i64,
    /// What was asked.
    pub(crate) asked: Asked,
    /// What was heard.
    pub(crate) heard: Heard,
}

/// What a call asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A new job. Its mark is given to no other job; jobs of one group are to be taken all or none.
    Enqueue { mark: String, key: Option<String>, group: Option<u64> },
    /// Any job. The worker's name is used for this claim (and its repetitions) only.
    Claim { worker: String },
    /// A report about a job, or a heartbeat.
    Report { id: i64, run: Run, said: Said },
    /// A checkpoint of an attempt. No two are equal.
    Checkpoint { id: i64, run: Run, value: String },
    /// An operator's action, by its name in the history.
    Operate { id: i64, action: &'static str },
    /// `DELETE`
    Delete { id: i64 },
    /// `GET`
    Look { id: i64 },
}

/// Which attempt of a job: who, and since when. The server says so in the claim and in the history.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Run {
    /// The worker of the claim.
    pub(crate) worker: String,
    /// `claimed_at`
    pub(crate) since: String,
}

/// What a report says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// With this result.
    Completed(String),
    /// With this class.
    Failed(&'static str),
    /// Given back.
    Released,
    /// It goes on.
    Heartbeat,
}

impl Said {
    /// The outcome of the attempt that it ends.
    const fn outcome(&self) -> Option<&'static str> {
        match self {
            Self::Completed(_) => Some("completed"),
            Self::Failed(_) => Some("failed"),
            Self::Released => Some("released"),
            Self::Heartbeat => None,
        }
    }
}

/// What a client heard.
#[derive(Clone, Debug)]
pub(crate) enum Heard {
    /// Nothing: the connection broke.
    Nothing,
    /// It was done; the job as it stood then.
    Job(Seen),
    /// It had been done before (a known key, a repeated claim or report); the job as it stood then.
    Again(Seen),
    /// It was done, and there is no job to show: a heartbeat extended the lease until then, a delete erased, a claim found
    /// nothing.
    Done { lease_until_ms: Option<i64> },
    /// It was refused.
    Refused { status: u16, code: String },
}

/// A job as an answer showed it: what depends on its version and on nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The job.
    pub(crate) id: i64,
    /// Its version.
    pub(crate) version: i64,
    /// Where it stands.
    pub(crate) status: String,
    /// Attempt, retries used, leases lost, times given back.
    pub(crate) counters: [i64; 4],
    /// Whether the next attempt has to look first.
    pub(crate) verify: bool,
    /// Who holds it.
    pub(crate) run: Option<Run>,
    /// Until when; heartbeats move it without a new version.
    pub(crate) lease_until_ms: Option<i64>,
    /// Its mark.
    pub(crate) mark: String,
    /// Its key.
    pub(crate) key: Option<String>,
}

impl Seen {
    /// What an idempotency key tells of a job that was deleted. No job has version 0.
    pub(crate) const fn is_tombstone(&self) -> bool {
        self.version == 0
    }

    fn is_final(&self) -> bool {
        self.status == "completed" || self.status == "cancelled"
    }

    /// Whether both can be the same job at the same version.
    fn agrees_with(&self, other: &Self) -> bool {
        let without_lease = |seen: &Self| Self { lease_until_ms: None, ..seen.clone() };
        without_lease(self) == without_lease(other)
    }
}

/// An attempt in the history.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// Number of its lease.
    pub(crate) seq: i64,
    /// Who, since when.
    pub(crate) run: Run,
    /// When it ended, in milliseconds.
    pub(crate) ended_ms: Option<i64>,
    /// How.
    pub(crate) outcome: Option<String>,
    /// The class of a failure.
    pub(crate) class: Option<String>,
}

/// A job in the store.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// As it stands.
    pub(crate) seen: Seen,
    /// Its result, if that is a text.
    pub(crate) result: Option<String>,
    /// Its checkpoint, if that is a text.
    pub(crate) checkpoint: Option<String>,
    /// Its history, oldest first.
    pub(crate) attempts: Vec<Attempt>,
    /// What operators did, oldest first, and the version that it led to.
    pub(crate) actions: Vec<(String, i64)>,
}

/// What a call without an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// It happened wholly or not at all: the server was killed.
    MeansEither,
    /// It happens wholly or not at all, perhaps later than what its client asked for next: the server stood still.
    MayComeLate,
    /// It did not happen: the server stopped in order.
    MeansNo,
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// The job that it is about, if it is about one.
    pub(crate) id: Option<i64>,
    /// What is wrong.
    pub(crate) what: String,
}

/// Whether a call had an effect, as far as its caller can tell.
fn may_have_happened(entry: &Entry, silence: Silence) -> bool {
    match &entry.heard {
        Heard::Nothing => silence != Silence::MeansNo,
        Heard::Job(_) | Heard::Again(_) | Heard::Done { .. } => true,
        Heard::Refused { .. } => false,
    }
}

/// The job that an entry is about, as far as its caller knows.
pub(crate) fn job_of(entry: &Entry) -> Option<i64> {
    match (&entry.asked, &entry.heard) {
        (_, Heard::Job(seen) | Heard::Again(seen)) => Some(seen.id),
        (
            Asked::Report { id, .. }
            | Asked::Checkpoint { id, .. }
            | Asked::Operate { id, .. }
            | Asked::Delete { id }
            | Asked::Look { id },
            _,
        ) => Some(*id),
        (Asked::Enqueue { .. } | Asked::Claim { .. }, _) => None,
    }
}

/// Everything that clients know of one job against what the store has. `entries` in the order in which they ended.
pub(crate) fn check_job(entries: &[&Entry], stored: Option<&Stored>, silence: Silence) -> Vec<String> {
    let Some(stored) = stored else { return check_absence(entries, silence) };
    let mut wrong = Vec::new();
    let deleted = |entry: &&Entry| match (&entry.asked, &entry.heard) {
        (Asked::Delete { .. }, Heard::Done { .. }) => true,
        (_, Heard::Again(seen)) => seen.is_tombstone(),
        _ => false,
    };
    if entries.iter().any(deleted) {
        wrong.push("it was deleted and is there".to_owned());
    }
    wrong.extend(check_versions(entries, &stored.seen));
    wrong.extend(check_attempts(&stored.attempts, stored));
    wrong.extend(check_claims(entries, stored));
    wrong.extend(check_reports(entries, stored, silence));
    wrong.extend(check_explained(entries, stored, silence));
    wrong.extend(check_operators(entries, stored));
    wrong.extend(check_refusals(entries, silence));
    wrong.extend(check_checkpoint(entries, stored.checkpoint.as_deref(), silence));
    wrong
}

/// The last checkpoint that was accepted is there, or a later one of which nobody knows whether it was.
fn check_checkpoint(entries: &[&Entry], stored: Option<&str>, silence: Silence) -> Option<String> {
    let (mut allowed, mut late) = (vec![None], Vec::new());
    // Only the holder may, and a holder makes one call after the other.
    for entry in entries {
        match (&entry.asked, &entry.heard) {
            (Asked::Checkpoint { value, .. }, Heard::Done { .. }) => allowed = vec![Some(value.as_str())],
            (Asked::Checkpoint { value, .. }, Heard::Nothing) => match silence {
                Silence::MeansEither => allowed.push(Some(value)),
                Silence::MayComeLate => late.push(Some(value.as_str())),
                Silence::MeansNo => {}
            },
            _ => {}
        }
    }
    allowed.extend(late);
    (!allowed.contains(&stored)).then(|| format!("its checkpoint is {stored:?}, it can be {allowed:?}"))
}

/// A job that had ended when it was last looked at, and what was said about it since: it stays as it is.
pub(crate) fn check_settled(
    entries: &[&Entry],
    (before, now): (&Seen, Option<&Seen>),
    silence: Silence,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let counted = |entry: &&&Entry| match (&entry.asked, &entry.heard) {
        (Asked::Report { said, .. }, Heard::Job(_)) => said.outcome().is_some(),
        (Asked::Claim { .. }, Heard::Job(_) | Heard::Again(_)) => true,
        _ => false,
    };
    wrong.extend(
        entries.iter().filter(counted).map(|entry| format!("it was over and this counted: {entry:?}")),
    );
    match now {
        Some(now) if now == before => {}
        Some(now) => wrong.push(format!("it had ended as {before:?} and is {now:?}")),
        None => {
            let deleted = entries.iter().any(|entry| {
                matches!(entry.asked, Asked::Delete { .. }) && may_have_happened(entry, silence)
            });
            if !deleted {
                wrong.push("a job that had ended is lost".to_owned());
            }
        }
    }
    wrong
}

/// A job that was shown to somebody and is not there must have been deleted.
fn check_absence(entries: &[&Entry], silence: Silence) -> Vec<String> {
    let deleted = entries
        .iter()
        .any(|entry| matches!(entry.asked, Asked::Delete { .. }) && may_have_happened(entry, silence));
    let shown = entries
        .iter()
        .any(|entry| matches!(&entry.heard, Heard::Job(seen) | Heard::Again(seen) if !seen.is_tombstone()));
    if shown && !deleted { vec!["an accepted job is lost".to_owned()] } else { Vec::new() }
}

/// A version means one thing, never goes back, and ends with the job.
fn check_versions(entries: &[&Entry], now: &Seen) -> Vec<String> {
    let mut wrong = Vec::new();
    let shown = entries.iter().filter_map(|entry| match &entry.heard {
        Heard::Job(seen) | Heard::Again(seen) => Some((entry.began, entry.ended, seen)),
        _ => None,
    });
    let mut shown: Vec<(Moment, Moment, &Seen)> = shown.collect();
    shown.push((Moment::MAX, Moment::MAX, now));
    let mut first: BTreeMap<i64, &Seen> = BTreeMap::new();
    for (_, _, seen) in &shown {
        let other = first.entry(seen.version).or_insert(seen);
        if !other.agrees_with(seen) {
            wrong.push(format!("version {} means two things: {other:?} and {seen:?}", seen.version));
        }
    }
    // Who was sent after another was answered must have seen at least as much.
    let mut by_begin = shown.clone();
    by_begin.sort_by_key(|(began, ..)| *began);
    shown.sort_by_key(|(_, ended, _)| *ended);
    let (mut answered, mut newest) = (shown.iter().peekable(), 0);
    for (began, _, seen) in by_begin {
        while let Some((_, _, earlier)) = answered.next_if(|(_, ended, _)| *ended < began) {
            newest = newest.max(earlier.version);
        }
        if seen.version < newest {
            wrong.push(format!("it went back from version {newest} to {seen:?}"));
        }
    }
    let last = first.last_key_value().map_or(0, |(version, _)| *version);
    if let Some((version, seen)) = first.iter().find(|(version, seen)| seen.is_final() && **version < last) {
        wrong.push(format!("it was {} at version {version} and went on to version {last}", seen.status));
    }
    wrong
}

/// The history by itself: no gap, one after the other, one end.
fn check_attempts(attempts: &[Attempt], stored: &Stored) -> Vec<String> {
    let mut wrong = Vec::new();
    for (index, attempt) in (1..).zip(attempts) {
        if attempt.seq != index {
            wrong.push(format!("attempt {index} of its history has the number {}", attempt.seq));
        }
    }
    let completed = attempts.iter().filter(|attempt| attempt.outcome.as_deref() == Some("completed")).count();
    let is_completed = stored.seen.status == "completed";
    if completed != usize::from(is_completed) {
        wrong.push(format!("it is {} with {completed} completed attempts", stored.seen.status));
    }
    let running: Vec<_> = attempts.iter().filter(|attempt| attempt.outcome.is_none()).collect();
    if running.len() != usize::from(stored.seen.status == "running") {
        wrong.push(format!("it is {} with {} running attempts", stored.seen.status, running.len()));
    }
    if let Some(last) =
        attempts.last().filter(|last| is_completed && last.outcome.as_deref() != Some("completed"))
    {
        wrong.push(format!("it was completed and run again: {last:?}"));
    }
    wrong
}

/// Every lease that somebody was granted is in the history, once.
fn check_claims(entries: &[&Entry], stored: &Stored) -> Vec<String> {
    let mut wrong = Vec::new();
    for entry in entries {
        let (Asked::Claim { worker }, Heard::Job(seen) | Heard::Again(seen)) = (&entry.asked, &entry.heard)
        else {
            continue;
        };
        let Some(run) = seen.run.as_ref().filter(|run| run.worker == *worker) else {
            wrong.push(format!("it was handed out to {worker} and said to be held by {:?}", seen.run));
            continue;
        };
        let known = stored.attempts.iter().filter(|attempt| attempt.run == *run).count();
        if known != 1 {
            wrong.push(format!("the claim of {run:?} is in its history {known} times"));
        }
    }
    wrong
}

/// What counted of the reports about an attempt: at most one, and the history says the same.
fn check_reports(entries: &[&Entry], stored: &Stored, silence: Silence) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut counted: HashMap<&Run, (&Said, usize)> = HashMap::new();
    for entry in entries {
        let Asked::Report { run, said, .. } = &entry.asked else { continue };
        let Some(outcome) = said.outcome() else { continue };
        match &entry.heard {
            Heard::Job(_) => {
                let (first, times) = counted.entry(run).or_insert((said, 0));
                *times += 1;
                if *times > 1 {
                    wrong.push(format!(
                        "two reports with one lease counted: {first:?} and {said:?} of {run:?}"
                    ));
                }
            }
            Heard::Again(_) => {
                let before = entries.iter().any(|other| {
                    let same = matches!(&other.asked, Asked::Report { run: r, said: s, .. } if r == run && s == said);
                    same && other.began < entry.began && may_have_happened(other, silence)
                });
                if !before {
                    wrong.push(format!("{said:?} of {run:?} was said to be a repetition and is none"));
                }
            }
            _ => continue,
        }
        match stored.attempts.iter().find(|attempt| attempt.run == *run) {
            None => wrong.push(format!("the report {said:?} counted and {run:?} is not in its history")),
            Some(attempt) if attempt.outcome.as_deref() != Some(outcome) => {
                wrong.push(format!("the report {said:?} of {run:?} was accepted and is lost: {attempt:?}"));
            }
            Some(_) => {}
        }
    }
    wrong
}

/// Everything in the history was asked for by somebody, and nothing was taken from a holder before its time.
fn check_explained(entries: &[&Entry], stored: &Stored, silence: Silence) -> Vec<String> {
    let mut wrong = Vec::new();
    for attempt in &stored.attempts {
        let run = &attempt.run;
        let asked = |wanted: &dyn Fn(&Asked) -> bool| {
            entries.iter().any(|entry| wanted(&entry.asked) && may_have_happened(entry, silence))
        };
        let outcome = attempt.outcome.as_deref();
        let class = attempt.class.as_deref();
        if !asked(&|asked| matches!(asked, Asked::Claim { worker } if *worker == run.worker)) {
            wrong.push(format!("nobody claimed it as {run:?}"));
        }
        let explained = match outcome {
            Some("completed" | "failed") => asked(&|asked| match asked {
                Asked::Report { run: r, said: Said::Failed(said), .. } => {
                    r == run && outcome == Some("failed") && class == Some(*said)
                }
                Asked::Report { run: r, said: Said::Completed(result), .. } => {
                    r == run && outcome == Some("completed") && stored.result.as_ref() == Some(result)
                }
                _ => false,
            }),
            // A server that cannot deliver the answer to a claim gives the job back by itself.
            Some("released") => {
                let delivered = entries.iter().any(|entry| {
                    matches!(&entry.asked, Asked::Claim { worker } if *worker == run.worker)
                        // A repeated claim may have got it once more, after it was given back.
                        && matches!(&entry.heard, Heard::Job(seen) | Heard::Again(seen) if seen.run.as_ref() == Some(run))
                });
                !delivered
                    || asked(
                        &|asked| matches!(asked, Asked::Report { run: r, said: Said::Released, .. } if r == run),
                    )
            }
            Some("cancelled") => asked(&|asked| matches!(asked, Asked::Operate { action: "cancel", .. })),
            Some("forced") => asked(&|asked| matches!(asked, Asked::Operate { action: "force_fail", .. })),
            Some("lease_expired") => {
                let until = lease_until(entries, run);
                let early = attempt.ended_ms.zip(until).is_some_and(|(ended, until)| ended < until);
                if early {
                    wrong.push(format!(
                        "the lease of {run:?} was held until {until:?} and lost before: {attempt:?}"
                    ));
                }
                true
            }
            None => true,
            Some(_) => false,
        };
        if !explained {
            wrong.push(format!("nobody asked for this end: {attempt:?}"));
        }
    }
    wrong
}

/// Until when the holder was told that it has the job.
fn lease_until(entries: &[&Entry], run: &Run) -> Option<i64> {
    let told = entries.iter().filter_map(|entry| match (&entry.asked, &entry.heard) {
        (Asked::Claim { .. }, Heard::Job(seen) | Heard::Again(seen)) if seen.run.as_ref() == Some(run) => {
            seen.lease_until_ms
        }
        (Asked::Report { run: r, said: Said::Heartbeat, .. }, Heard::Done { lease_until_ms }) if r == run => {
            *lease_until_ms
        }
        _ => None,
    });
    told.max()
}

/// What operators were told is done stands in the history. A cancel of what was cancelled before changes nothing.
fn check_operators(entries: &[&Entry], stored: &Stored) -> Vec<String> {
    let told = entries.iter().filter_map(|entry| match (&entry.asked, &entry.heard) {
        (Asked::Operate { action, .. }, Heard::Job(seen)) => Some((*action, seen.version)),
        _ => None,
    });
    let kept = |action: &str, version: i64| {
        stored.actions.iter().any(|(known, then)| match action {
            "retry" => known == "retry" && *then == version,
            "cancel" | "discard" => (known == "cancel" || known == "discard") && *then <= version,
            _ => true,
        })
    };
    told.filter(|(action, version)| *action != "force_fail" && !kept(action, *version))
        .map(|(action, version)| {
            format!(
                "{action} was accepted as version {version} and is not in its history: {:?}",
                stored.actions
            )
        })
        .collect()
}

/// A holder whose lease had not ended is not turned away, unless an operator or its own report had ended it.
fn check_refusals(entries: &[&Entry], silence: Silence) -> Vec<String> {
    let ended_otherwise = |entry: &Entry| match &entry.asked {
        Asked::Operate { .. } | Asked::Delete { .. } => entry.began,
        _ => Moment::MAX,
    };
    let operated = entries.iter().map(|entry| ended_otherwise(entry)).min().unwrap_or(Moment::MAX);
    let mut wrong = Vec::new();
    for entry in entries {
        let (Asked::Report { run, said, .. }, Heard::Refused { status, code }) = (&entry.asked, &entry.heard)
        else {
            continue;
        };
        let reported = entries.iter().any(|other| {
            other.began < entry.ended
                && matches!(&other.asked, Asked::Report { run: r, said, .. } if r == run && said.outcome().is_some())
                && (may_have_happened(other, silence) || matches!(other.heard, Heard::Nothing))
        });
        let alive = lease_until(entries, run).is_some_and(|until| entry.at_ms < until);
        // Without its token a holder may be asked for it at any time.
        let turned_away = *status == 409 && code != "lease-required";
        if turned_away && alive && !reported && operated > entry.ended {
            wrong.push(format!("{said:?} of {run:?} was refused with {code} while its lease was alive"));
        }
    }
    wrong
}

/// What clients know of all new jobs together: marks, keys, groups.
#[derive(Debug, Default)]
pub(crate) struct Register {
    /// Which jobs carry a mark.
    by_mark: HashMap<String, Vec<i64>>,
    /// Which jobs were shown for a key.
    by_key: HashMap<String, Vec<i64>>,
    /// How often a mark was asked for.
    asked: HashMap<String, Vec<Fate>>,
    /// Marks of each group.
    groups: HashMap<u64, Vec<String>>,
}

/// What became of an enqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// This job was made.
    Made(i64),
    /// The key belonged to another job.
    Known,
    /// It was refused.
    Refused,
    /// Nobody knows.
    Silent,
}

impl Register {
    /// Takes note of an entry: what it asked for, and any job that it was shown. That one may be deleted before the store is
    /// read.
    pub(crate) fn note(&mut self, entry: &Entry) {
        if let Heard::Job(seen) | Heard::Again(seen) = &entry.heard
            && !seen.is_tombstone()
        {
            self.found(seen);
        }
        let Asked::Enqueue { mark, key, group } = &entry.asked else { return };
        let fate = match &entry.heard {
            Heard::Job(seen) => Fate::Made(seen.id),
            Heard::Again(_) => Fate::Known,
            Heard::Refused { .. } => Fate::Refused,
            Heard::Nothing | Heard::Done { .. } => Fate::Silent,
        };
        self.asked.entry(mark.clone()).or_default().push(fate);
        if let Some(group) = group {
            self.groups.entry(*group).or_default().push(mark.clone());
        }
        if let (Some(key), Heard::Job(seen) | Heard::Again(seen)) = (key, &entry.heard) {
            keep(self.by_key.entry(key.clone()).or_default(), seen.id);
        }
    }

    /// Takes note of a job in the store.
    pub(crate) fn found(&mut self, seen: &Seen) {
        keep(self.by_mark.entry(seen.mark.clone()).or_default(), seen.id);
        if let Some(key) = &seen.key {
            keep(self.by_key.entry(key.clone()).or_default(), seen.id);
        }
    }

    /// Whether all of it fits together.
    pub(crate) fn check(&self, silence: Silence) -> Vec<Violation> {
        let mut wrong = Vec::new();
        let mut find = |id: Option<i64>, what: String| wrong.push(Violation { id, what });
        for (mark, ids) in &self.by_mark {
            let fates = self.asked.get(mark).map(Vec::as_slice).unwrap_or_default();
            let allowed = fates.iter().filter(|fate| match fate {
                Fate::Made(_) => true,
                Fate::Silent => silence != Silence::MeansNo,
                Fate::Known | Fate::Refused => false,
            });
            if ids.len() > allowed.count() {
                find(
                    ids.first().copied(),
                    format!("jobs {ids:?} carry the mark {mark} that had the fates {fates:?}"),
                );
            }
        }
        for (key, ids) in self.by_key.iter().filter(|(_, ids)| ids.len() > 1) {
            find(ids.first().copied(), format!("key {key} stands for the jobs {ids:?}"));
        }
        for (group, marks) in &self.groups {
            let made = |mark: &&String| {
                let shown = |fate: &Fate| matches!(fate, Fate::Made(_));
                self.by_mark.contains_key(*mark)
                    || self.asked.get(*mark).is_some_and(|fates| fates.iter().any(shown))
            };
            let made = marks.iter().filter(made).count();
            if made != 0 && made != marks.len() {
                find(None, format!("of group {group} {made} of {} jobs were taken: {marks:?}", marks.len()));
            }
        }
        wrong
    }
}

fn keep(ids: &mut Vec<i64>, id: i64) {
    if !ids.contains(&id) {
        ids.push(id);
    }
}
