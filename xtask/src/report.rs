//! What happened, step by step, and what it adds up to.

use std::fmt::Write;
use std::process::ExitCode;

use crate::tally::Tally;

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    /// Something it needs is missing. Never the same as passed.
    NotRun(String),
}

impl From<bool> for Outcome {
    fn from(good: bool) -> Self {
        if good { Self::Passed } else { Self::Failed }
    }
}

/// A line of the report.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) step: String,
    pub(crate) outcome: Outcome,
    pub(crate) seconds: f64,
    /// What the test runner said at its end; empty for steps that run no tests.
    pub(crate) closing: Vec<String>,
}

/// Who reads the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A person sees the words `not run`.
    Person,
    /// A machine sees the exit code only: what was not run has not been shown to hold.
    Machine,
}

/// The table, the runners' closing lines, the verdict and, when it can be had honestly, the sum of all tests.
pub(crate) fn text(rows: &[Row], tests: Option<Tally>) -> String {
    let mut text = format!("\n==> summary\n{:<30} {:>8}  result\n", "step", "seconds");
    for row in rows {
        let _ = writeln!(text, "{:<30} {:>8.1}  {}", row.step, row.seconds, words(&row.outcome));
    }
    for row in rows {
        for line in &row.closing {
            let _ = writeln!(text, "{}: {line}", row.step);
        }
    }
    let _ = writeln!(text, "{}", verdict(rows));
    if let Some(sum) = tests {
        let _ = writeln!(text, "{} passed, {} failed, {} not run", sum.passed, sum.failed, sum.not_run);
    }
    text
}

/// What the process tells who started it.
pub(crate) fn exit_code(rows: &[Row], reader: Reader) -> ExitCode {
    if is_good(rows, reader) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Nothing failed, and where a machine looks, nothing was left out.
fn is_good(rows: &[Row], reader: Reader) -> bool {
    rows.iter().all(|row| match row.outcome {
        Outcome::Passed => true,
        Outcome::Failed => false,
        Outcome::NotRun(_) => reader == Reader::Person,
    })
}

/// The outcome for people.
fn words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Passed => "passed".to_owned(),
        Outcome::Failed => "FAILED".to_owned(),
        Outcome::NotRun(why) => format!("not run: {why}"),
    }
}

/// One sentence over all rows.
fn verdict(rows: &[Row]) -> String {
    let failed = names(rows, |outcome| *outcome == Outcome::Failed);
    let left_out = names(rows, |outcome| matches!(outcome, Outcome::NotRun(_)));
    match (failed.is_empty(), left_out.is_empty()) {
        (true, true) => "All steps passed.".to_owned(),
        (true, false) => format!("What ran has passed. Not run: {left_out}."),
        (false, true) => format!("FAILED: {failed}."),
        (false, false) => format!("FAILED: {failed}. Not run: {left_out}."),
    }
}

/// The steps with such an outcome.
fn names(rows: &[Row], wanted: impl Fn(&Outcome) -> bool) -> String {
    let chosen: Vec<&str> =
        rows.iter().filter(|row| wanted(&row.outcome)).map(|row| row.step.as_str()).collect();
    chosen.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(step: &str, outcome: Outcome) -> Row {
        Row { step: step.to_owned(), outcome, seconds: 1.25, closing: Vec::new() }
    }

    #[test]
    fn not_run_is_never_passed() {
        let rows = [row("fmt", Outcome::Passed), row("clippy", Outcome::NotRun("it is missing".to_owned()))];
        assert!(
            text(&rows, None).contains("clippy                              1.2  not run: it is missing")
        );
        assert_eq!(verdict(&rows), "What ran has passed. Not run: clippy.");
        assert!(is_good(&rows, Reader::Person));
        assert!(!is_good(&rows, Reader::Machine));
    }

    #[test]
    fn a_failure_is_a_failure_for_everybody() {
        let rows = [row("fmt", Outcome::Failed), row("clippy", Outcome::Passed)];
        assert_eq!(verdict(&rows), "FAILED: fmt.");
        assert!(!is_good(&rows, Reader::Person));
        assert!(!is_good(&rows, Reader::Machine));
    }

    #[test]
    fn the_last_line_is_the_sum_of_the_tests_and_only_there_when_known() {
        let mut rows = [row("tests", Outcome::Passed)];
        rows[0].closing.push("Summary [ 0.1s] 7 tests run: 7 passed, 1 skipped".to_owned());
        let sum = Tally { passed: 7, failed: 0, not_run: 1 };
        let report = text(&rows, Some(sum));
        assert!(report.contains("\ntests: Summary [ 0.1s] 7 tests run: 7 passed, 1 skipped\n"), "{report}");
        assert!(report.ends_with("All steps passed.\n7 passed, 0 failed, 1 not run\n"), "{report}");
        assert!(text(&rows, None).ends_with("All steps passed.\n"));
    }
}
