//! What a run comes to, for programs and for people.

use serde::Serialize;

use super::fate::Scenario;
use crate::cli::show::{line, short};
use crate::cli::table::table;

/// Version of the JSON. It rises when a member changes its meaning or goes; new ones may come.
pub(super) const FORMAT: u32 = 1;

/// Findings of a scenario that people are shown; JSON has all.
const SHOWN: usize = 10;

/// A whole run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// [`FORMAT`]
    pub(super) chaos: u32,
    pub(super) tagwerk: &'static str,
    pub(super) seed: u64,
    /// Part of the keys of this run's jobs.
    pub(super) run: String,
    pub(super) worker: Vec<String>,
    pub(super) judged: Judged,
    pub(super) interrupted: bool,
    /// The time given with `--for` was over before everything had run.
    pub(super) time_over: bool,
    /// Why scenarios were left out, if that is for another reason.
    pub(super) stopped: Option<&'static str>,
    pub(super) scenarios: Vec<Outcome>,
    /// Asked for, and not begun.
    pub(super) not_run: Vec<String>,
    pub(super) lost: Option<usize>,
    pub(super) doubled: Option<usize>,
    pub(super) unfinished: usize,
    pub(super) passed: bool,
}

/// What is known of effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Judged {
    /// Counted by `--check`.
    Effects,
    /// Nothing: only what the server can see is judged.
    StatusOnly,
}

/// One scenario.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) rounds: usize,
    pub(super) rounds_planned: usize,
    pub(super) jobs: usize,
    /// Attempts of these jobs.
    pub(super) runs: u64,
    /// Calls of the workers, without claims that brought nothing.
    pub(super) calls: u64,
    /// What was done to calls.
    pub(super) faults: usize,
    /// How often a worker ended by itself and was started again.
    pub(super) restarts: u64,
    /// Completed, and the effect did not happen; `null` without a check.
    pub(super) lost: Option<usize>,
    /// The effect happened more than once.
    pub(super) doubled: Option<usize>,
    /// Neither completed nor cancelled in time.
    pub(super) unfinished: usize,
    pub(super) passed: bool,
    pub(super) remarks: Vec<String>,
    pub(super) findings: Vec<Finding>,
}

/// A job that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) what: What,
    pub(super) round: u32,
    pub(super) job: i64,
    pub(super) key: String,
    pub(super) status: &'static str,
    pub(super) runs: u32,
    pub(super) effects: Option<u64>,
    /// The last error of the job, if it has one.
    pub(super) error: Option<String>,
    /// What was done to its calls, or to all of its round.
    pub(super) faults: Vec<String>,
}

/// What is wrong with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    Lost,
    Doubled,
    Unfinished,
}

/// A job after its round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JobEnd {
    pub(super) id: i64,
    pub(super) key: String,
    pub(super) status: &'static str,
    pub(super) runs: u32,
    pub(super) lease_losses: u32,
    pub(super) error: Option<String>,
    pub(super) effects: Option<u64>,
    pub(super) faults: Vec<String>,
}

/// How a job in review counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Review {
    Unfinished,
    Fine,
}

/// What is wrong with a job after its round.
fn judge(job: &JobEnd, review: Review) -> impl Iterator<Item = What> {
    let is_ended =
        matches!(job.status, "completed" | "cancelled") || (job.status == "failed" && review == Review::Fine);
    let lost = (job.status == "completed" && job.effects == Some(0)).then_some(What::Lost);
    let doubled = job.effects.is_some_and(|effects| effects > 1).then_some(What::Doubled);
    let unfinished = (!is_ended).then_some(What::Unfinished);
    [lost, doubled, unfinished].into_iter().flatten()
}

impl Outcome {
    pub(super) fn new(scenario: Scenario, rounds: usize, judged: Judged) -> Self {
        let count = (judged == Judged::Effects).then_some(0);
        Self {
            name: scenario.name(),
            about: scenario.about(),
            rounds: 0,
            rounds_planned: rounds,
            jobs: 0,
            runs: 0,
            calls: 0,
            faults: 0,
            restarts: 0,
            lost: count,
            doubled: count,
            unfinished: 0,
            passed: false,
            remarks: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Counts a round.
    pub(super) fn add(&mut self, round: u32, jobs: &[JobEnd], review: Review) {
        self.rounds += 1;
        self.jobs += jobs.len();
        for job in jobs {
            self.runs += u64::from(job.runs);
            for what in judge(job, review) {
                match what {
                    What::Lost => self.lost = self.lost.map(|lost| lost + 1),
                    What::Doubled => self.doubled = self.doubled.map(|doubled| doubled + 1),
                    What::Unfinished => self.unfinished += 1,
                }
                self.findings.push(Finding {
                    what,
                    round,
                    job: job.id,
                    key: job.key.clone(),
                    status: job.status,
                    runs: job.runs,
                    effects: job.effects,
                    error: job.error.clone(),
                    faults: job.faults.clone(),
                });
            }
        }
        self.passed = self.findings.is_empty() && self.rounds == self.rounds_planned;
    }

    /// A remark, once.
    pub(super) fn remark(&mut self, told: String) {
        if !self.remarks.contains(&told) {
            self.remarks.push(told);
        }
    }

    fn row(&self) -> [String; 8] {
        let count = |count: Option<usize>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
        let rounds = if self.rounds == self.rounds_planned {
            self.rounds.to_string()
        } else {
            format!("{} of {}", self.rounds, self.rounds_planned)
        };
        [
            self.name.clone(),
            rounds,
            self.jobs.to_string(),
            self.runs.to_string(),
            self.faults.to_string(),
            count(self.lost),
            count(self.doubled),
            self.unfinished.to_string(),
        ]
    }
}

impl Finding {
    fn told(&self) -> String {
        let what = match self.what {
            What::Lost => "lost: completed, and its effect did not happen".to_owned(),
            What::Doubled => {
                format!("doubled: its effect happened {} times", self.effects.unwrap_or_default())
            }
            What::Unfinished if self.status == "failed" => "unfinished: it is in review".to_owned(),
            What::Unfinished => format!("unfinished: still {}", self.status),
        };
        let mut told = format!(
            "round {}, job {} ({}), runs: {}; {what}",
            self.round,
            self.job,
            line(&self.key),
            self.runs
        );
        if let Some(error) = &self.error {
            told = format!("{told}; error: {}", short(error, 120));
        }
        for fault in &self.faults {
            told = format!("{told}\n    {}", line(fault));
        }
        told
    }
}

impl Report {
    /// Adds everything up.
    pub(super) fn sum(&mut self) {
        let all =
            |count: fn(&Outcome) -> Option<usize>| self.scenarios.iter().map(count).sum::<Option<usize>>();
        let is_counted = self.judged == Judged::Effects;
        let (lost, doubled) = (all(|outcome| outcome.lost), all(|outcome| outcome.doubled));
        self.lost = lost.filter(|_| is_counted);
        self.doubled = doubled.filter(|_| is_counted);
        self.unfinished = self.scenarios.iter().map(|outcome| outcome.unfinished).sum();
        let is_whole = !self.interrupted && self.not_run.is_empty();
        self.passed = is_whole && self.scenarios.iter().all(|outcome| outcome.passed);
    }

    /// Whether anything was found.
    pub(super) fn has_findings(&self) -> bool {
        self.scenarios.iter().any(|outcome| !outcome.findings.is_empty())
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let header = ["SCENARIO", "ROUNDS", "JOBS", "RUNS", "FAULTS", "LOST", "DOUBLED", "UNFINISHED"];
        let rows = self.scenarios.iter().map(Outcome::row).collect();
        let mut lines = vec![table(header, rows, "nothing was run")];
        for outcome in &self.scenarios {
            let (found, remarks) = (&outcome.findings, &outcome.remarks);
            if !found.is_empty() || !remarks.is_empty() || outcome.restarts > 0 {
                lines.push(format!("\n{}: {}", outcome.name, outcome.about));
            }
            if outcome.restarts > 0 {
                let times = outcome.restarts;
                lines
                    .push(format!("  note: the worker ended by itself and was started again: {times} times"));
            }
            lines.extend(remarks.iter().map(|remark| format!("  note: {}", line(remark))));
            lines.extend(found.iter().take(SHOWN).map(|finding| format!("  {}", finding.told())));
            if found.len() > SHOWN {
                lines.push(format!("  … and {} more, which --json shows", found.len() - SHOWN));
            }
        }
        lines.push(String::new());
        lines.extend(self.verdict());
        lines.join("\n")
    }

    fn verdict(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.judged == Judged::StatusOnly {
            lines.push(
                "Not judged: whether effects were lost or doubled. Only what the server can see was judged; \
                 give a command that counts effects with --check."
                    .to_owned(),
            );
        }
        if let Some(why) = self.stopped {
            lines.push(format!("Stopped: {why}"));
        }
        if self.interrupted {
            lines.push("Interrupted: the table shows what was done so far.".to_owned());
        }
        if self.time_over {
            lines.push("The time is over (--for); the table shows what was done so far.".to_owned());
        }
        if !self.not_run.is_empty() {
            lines.push(format!("Not run: {}", self.not_run.join(", ")));
        }
        let count =
            |count: Option<usize>| count.map_or_else(|| "not judged".to_owned(), |count| count.to_string());
        let [lost, doubled] = [self.lost, self.doubled].map(count);
        let verdict = match (self.passed, self.has_findings()) {
            (true, _) => "passed",
            (false, true) => "FAILED",
            (false, false) => "not complete",
        };
        lines.push(format!(
            "{verdict}: lost {lost}, doubled {doubled}, unfinished {}; seed {}",
            self.unfinished, self.seed
        ));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(status: &'static str, effects: Option<u64>) -> JobEnd {
        JobEnd {
            id: 7,
            key: "k".to_owned(),
            status,
            runs: 2,
            lease_losses: 0,
            error: None,
            effects,
            faults: vec!["complete: answer lost".to_owned()],
        }
    }

    #[test]
    fn each_job_is_judged_by_status_and_effects() {
        use What::{Doubled, Lost, Unfinished};
        for (status, effects, review, expected) in [
            ("completed", Some(1), Review::Unfinished, vec![]),
            ("completed", Some(0), Review::Unfinished, vec![Lost]),
            ("completed", Some(2), Review::Unfinished, vec![Doubled]),
            ("completed", None, Review::Unfinished, vec![]),
            ("pending", Some(0), Review::Fine, vec![Unfinished]),
            ("running", Some(3), Review::Fine, vec![Doubled, Unfinished]),
            ("failed", Some(0), Review::Unfinished, vec![Unfinished]),
            ("failed", Some(1), Review::Fine, vec![]),
            ("failed", None, Review::Unfinished, vec![Unfinished]),
            ("cancelled", Some(0), Review::Unfinished, vec![]),
        ] {
            let found: Vec<What> = judge(&job(status, effects), review).collect();
            assert_eq!(found, expected, "{status} {effects:?} {review:?}");
        }
    }

    fn report(judged: Judged, jobs: &[JobEnd]) -> Report {
        let mut outcome = Outcome::new(Scenario::Killed, 1, judged);
        outcome.add(0, jobs, Review::Unfinished);
        let mut report = Report {
            chaos: FORMAT,
            tagwerk: "1",
            seed: 5,
            run: String::new(),
            worker: Vec::new(),
            judged,
            interrupted: false,
            time_over: false,
            stopped: None,
            scenarios: vec![outcome],
            not_run: Vec::new(),
            lost: None,
            doubled: None,
            unfinished: 0,
            passed: false,
        };
        report.sum();
        report
    }

    #[test]
    fn what_was_not_judged_is_not_told_as_none() {
        let text = report(Judged::StatusOnly, &[job("completed", None)]).text();
        assert!(text.contains("Not judged") && text.contains("passed: lost not judged"), "{text}");
        let text = report(Judged::Effects, &[job("completed", Some(1))]).text();
        assert!(text.contains("passed: lost 0, doubled 0, unfinished 0; seed 5"), "{text}");
    }

    #[test]
    fn findings_are_told_with_their_faults() {
        let report = report(Judged::Effects, &[job("completed", Some(2)), job("completed", Some(0))]);
        assert_eq!((report.passed, report.lost, report.doubled), (false, Some(1), Some(1)));
        let text = report.text();
        assert!(text.contains("doubled: its effect happened 2 times\n    complete: answer lost"), "{text}");
        assert!(text.contains("FAILED: lost 1, doubled 1, unfinished 0"), "{text}");
    }

    #[test]
    fn a_scenario_that_was_cut_has_not_passed() {
        let mut outcome = Outcome::new(Scenario::Killed, 2, Judged::Effects);
        outcome.add(0, &[job("completed", Some(1))], Review::Unfinished);
        assert!(!outcome.passed);
        outcome.add(1, &[job("completed", Some(1))], Review::Unfinished);
        assert!(outcome.passed);
    }
}
