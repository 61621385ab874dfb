//! What a run has exercised: without it nobody could see whether a clean run means anything.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Counts by subject and name.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    counts: BTreeMap<(&'static str, &'static str), u64>,
}

impl Tally {
    pub(crate) fn count(&mut self, subject: &'static str, name: &'static str) {
        self.add(subject, name, 1);
    }

    pub(crate) fn add(&mut self, subject: &'static str, name: &'static str, n: u64) {
        *self.counts.entry((subject, name)).or_default() += n;
    }

    /// Adds what another run has exercised.
    pub fn merge(&mut self, other: &Self) {
        for ((subject, name), n) in &other.counts {
            self.add(subject, name, *n);
        }
    }

    /// How often this was seen.
    #[must_use]
    pub fn of(&self, subject: &str, name: &str) -> u64 {
        self.counts.iter().filter(|((s, n), _)| *s == subject && *n == name).map(|(_, n)| *n).sum()
    }

    /// All of a subject together.
    #[must_use]
    pub fn sum(&self, subject: &str) -> u64 {
        self.counts.iter().filter(|((s, _), _)| *s == subject).map(|(_, n)| *n).sum()
    }

    /// How many different names of a subject were seen.
    #[must_use]
    pub fn names(&self, subject: &str) -> usize {
        self.counts.keys().filter(|(s, _)| *s == subject).count()
    }

    /// A table for people, one line a subject.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::new();
        let mut last = "";
        for ((subject, name), n) in &self.counts {
            if *subject == last {
                text.push_str(", ");
            } else {
                let start = if last.is_empty() { "" } else { "\n" };
                // Writing to a text cannot fail.
                let _ = write!(text, "{start}{subject}: ");
                last = subject;
            }
            let _ = write!(text, "{name} {n}");
        }
        text
    }
}
