//! The log of all clients, and what it amounts to: what is known of each job, ready to be held against the store.

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;

use super::history::Recorder;
use super::model::{
    Asked, Entry, Heard, Moment, Register, Said, Seen, Silence, Stored, Violation, check_job, check_settled,
    job_of,
};

/// Where clients write.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Every exchange.
    pub(crate) past: Recorder,
    entries: Mutex<Vec<Entry>>,
    surprises: Mutex<Vec<String>>,
}

impl Log {
    /// The next moment.
    pub(crate) fn moment(&self) -> Moment {
        self.past.moment()
    }

    /// Keeps what came of a call.
    pub(crate) fn keep(&self, entry: Entry) {
        self.entries.lock().expect("no client panicked").push(entry);
    }

    /// Keeps an answer that no client should ever get.
    pub(crate) fn surprise(&self, what: String) {
        self.surprises.lock().expect("no client panicked").push(what);
    }

    /// Everything since the last time.
    pub(crate) fn take(&self) -> (Vec<Entry>, Vec<String>) {
        let mut entries = std::mem::take(&mut *self.entries.lock().expect("no client panicked"));
        entries.sort_by_key(|entry| entry.ended);
        (entries, std::mem::take(&mut *self.surprises.lock().expect("no client panicked")))
    }
}

/// How often something was answered, and how often it was asked without an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Answered as done.
    pub(crate) done: i64,
    /// Without an answer.
    pub(crate) silent: i64,
}

/// What all clients together know.
#[derive(Debug)]
pub(crate) struct Knowledge {
    silence: Silence,
    by_job: HashMap<i64, Vec<Entry>>,
    /// Claims without an answer, by the worker's name: the history tells which jobs they got.
    silent_claims: HashMap<String, Entry>,
    settled: HashMap<i64, Seen>,
    register: Register,
    /// Highest id that was ever read.
    newest: i64,
    tallies: HashMap<&'static str, Tally>,
}

impl Knowledge {
    /// Nothing is known yet.
    pub(crate) fn new(silence: Silence) -> Self {
        Self {
            silence,
            by_job: HashMap::new(),
            silent_claims: HashMap::new(),
            settled: HashMap::new(),
            register: Register::default(),
            newest: 0,
            tallies: HashMap::new(),
        }
    }

    /// What a call without an answer means.
    pub(crate) const fn silence(&self) -> Silence {
        self.silence
    }

    /// Takes in what clients wrote. Returns the jobs that it is about.
    pub(crate) fn take_in(&mut self, entries: Vec<Entry>) -> BTreeSet<i64> {
        let mut touched = BTreeSet::new();
        for entry in entries {
            self.count(&entry);
            self.register.note(&entry);
            if let (Asked::Claim { worker }, Heard::Nothing) = (&entry.asked, &entry.heard) {
                self.silent_claims.insert(worker.clone(), entry);
            } else if let Some(id) = job_of(&entry) {
                touched.insert(id);
                self.by_job.entry(id).or_default().push(entry);
            }
        }
        touched
    }

    fn count(&mut self, entry: &Entry) {
        let what = match &entry.asked {
            Asked::Enqueue { .. } => "enqueues",
            Asked::Claim { .. } => "claims",
            Asked::Report { said: Said::Completed(_), .. } => "completions",
            Asked::Report { said: Said::Failed(_), .. } => "failures",
            Asked::Report { said: Said::Released, .. } => "releases",
            Asked::Operate { action: "retry", .. } => "review_retries",
            _ => return,
        };
        let tally = self.tallies.entry(what).or_default();
        match entry.heard {
            Heard::Job(_) => tally.done += 1,
            Heard::Nothing => tally.silent += 1,
            _ => {}
        }
    }

    /// How often something was done, as far as clients know.
    pub(crate) fn tallies(&self) -> impl Iterator<Item = (&'static str, Tally)> {
        self.tallies.iter().map(|(what, tally)| (*what, *tally))
    }

    /// The highest id that was read so far.
    pub(crate) const fn newest(&self) -> i64 {
        self.newest
    }

    /// Jobs that have not ended, as far as is known.
    pub(crate) fn unsettled(&self) -> BTreeSet<i64> {
        self.by_job.keys().filter(|id| !self.settled.contains_key(id)).copied().collect()
    }

    /// Jobs that had ended, as they were.
    pub(crate) const fn settled(&self) -> &HashMap<i64, Seen> {
        &self.settled
    }

    /// Holds what is known of a job against the store, and forgets the details of what has ended.
    pub(crate) fn judge(&mut self, id: i64, stored: Option<&Stored>) -> Vec<Violation> {
        self.newest = self.newest.max(id);
        if let Some(stored) = stored {
            self.register.found(&stored.seen);
        }
        let workers = stored.iter().flat_map(|stored| &stored.attempts).map(|attempt| &attempt.run.worker);
        let silent: Vec<&Entry> = workers.filter_map(|worker| self.silent_claims.get(worker)).collect();
        let mut entries: Vec<&Entry> = self.by_job.get(&id).into_iter().flatten().collect();
        let found = if let Some(before) = self.settled.get(&id) {
            check_settled(&entries, (before, stored.map(|stored| &stored.seen)), self.silence)
        } else {
            entries.extend(silent);
            entries.sort_by_key(|entry| entry.ended);
            check_job(&entries, stored, self.silence)
        };
        if found.is_empty() {
            self.forget(id, stored);
        }
        found.into_iter().map(|what| Violation { id: Some(id), what }).collect()
    }

    fn forget(&mut self, id: i64, stored: Option<&Stored>) {
        match stored {
            None => {
                self.by_job.remove(&id);
                self.settled.remove(&id);
            }
            Some(Stored { seen, .. }) if seen.status == "completed" || seen.status == "cancelled" => {
                self.by_job.remove(&id);
                self.settled.insert(id, seen.clone());
            }
            Some(_) => {}
        }
    }

    /// Marks, keys and groups of all jobs.
    pub(crate) fn register(&self) -> Vec<Violation> {
        self.register.check(self.silence)
    }

    /// The lines of the log that are about a job, in order, for a person.
    pub(crate) fn lines(&self, id: i64, stored: Option<&Stored>) -> Vec<String> {
        let workers = stored.iter().flat_map(|stored| &stored.attempts).map(|attempt| &attempt.run.worker);
        let silent = workers.filter_map(|worker| self.silent_claims.get(worker));
        let mut entries: Vec<&Entry> = self.by_job.get(&id).into_iter().flatten().chain(silent).collect();
        entries.sort_by_key(|entry| entry.began);
        let mut lines: Vec<String> = self
            .settled
            .get(&id)
            .map(|seen| format!("(earlier lines are forgotten; it had ended as {seen:?})"))
            .into_iter()
            .collect();
        lines.extend(entries.into_iter().map(|entry| {
            let Entry { client, began, ended, at_ms, asked, heard } = entry;
            format!("{began:>8}..{ended:<8} {at_ms} client {client:>2}: {asked:?} → {heard:?}")
        }));
        if let Some(stored) = stored {
            lines.push(format!("store: {:?}", stored.seen));
            lines.extend(stored.attempts.iter().map(|attempt| format!("store: {attempt:?}")));
            lines.push(format!("store: actions {:?}", stored.actions));
        }
        lines
    }
}
