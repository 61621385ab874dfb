//! The whole check.

use crate::call::Call;
use crate::log::History;
use crate::partition;
use crate::search::{Part, Verdict, explain};
use crate::shrink::shrink;
use crate::spec::Strictness;
use crate::{together, words};

/// What a check comes to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Parts that were looked at: a key with its jobs, or a job.
    pub parts: usize,
    /// Parts that have no explanation.
    pub contradictions: Vec<Contradiction>,
    /// Parts for which neither an order nor its absence was found in the time given, in words.
    pub undecided: Vec<String>,
}

/// Answers that cannot all be true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The jobs of the part.
    pub jobs: Vec<i64>,
    /// The smallest set of calls whose answers cannot all be true, in the order of their beginnings.
    pub calls: Vec<Call>,
    /// The same for a person.
    pub text: String,
}

impl std::fmt::Display for Contradiction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Report {
    /// Whether there is an order that explains every answer.
    #[must_use]
    pub fn is_explained(&self) -> bool {
        self.contradictions.is_empty() && self.undecided.is_empty()
    }
}

/// Looks for an order of the calls that explains every answer.
#[must_use]
pub fn check(history: &History) -> Report {
    let rules = &history.rules;
    let parts = partition::parts(&history.calls, rules);
    let contradictions = together::contradictions(history);
    let mut report = Report { parts: parts.len(), contradictions, ..Report::default() };
    for part in &parts {
        match explain(part, rules, Strictness::All) {
            Verdict::Explained => {}
            Verdict::GaveUp => report.undecided.push(words::undecided(&jobs(part), part.ops.len())),
            Verdict::Contradiction(_) => {
                let (small, stuck) = shrink(part, rules);
                let answered = small.ops.iter().filter(|op| op.answered);
                let mut calls: Vec<Call> = answered.map(|op| op.call.clone()).collect();
                calls.sort_by_key(|call| call.start_ns);
                let text = words::contradiction(&jobs(part), &small, &stuck);
                report.contradictions.push(Contradiction { jobs: jobs(part), calls, text });
            }
        }
    }
    report
}

/// What is found, without looking for the smallest contradiction: (contradictions, undecided).
#[cfg(test)]
pub(crate) fn count(history: &History) -> (usize, usize) {
    let parts = partition::parts(&history.calls, &history.rules);
    let verdicts: Vec<Verdict> =
        parts.iter().map(|part| explain(part, &history.rules, Strictness::All)).collect();
    let undecided = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::GaveUp)).count();
    (verdicts.iter().filter(|verdict| verdict.is_contradiction()).count(), undecided)
}

fn jobs(part: &Part) -> Vec<i64> {
    part.facts.keys().copied().filter(|id| *id > 0).collect()
}
