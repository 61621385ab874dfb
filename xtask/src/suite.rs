//! `cargo xtask test`: everything that must hold before a change is merged, in one run.
//!
//! A step that fails does not stop the others, so that one run shows all. A step that cannot run says why.

use std::process::{Command, ExitCode};

use crate::report::{self, Outcome, Reader, Row};
use crate::requirement::{self, Requirement, WantedBy};
use crate::tally::{self, Tally};
use crate::{command, system, tidy};

/// One thing that must hold.
struct Step {
    name: &'static str,
    action: Action,
}

/// How a step is carried out.
enum Action {
    /// Our own check of the sources.
    Tidy,
    /// A cargo command that passes or fails.
    Cargo(&'static [&'static str]),
    /// A runner of tests, whose closing lines are counted.
    Tests(fn(&[&'static Requirement]) -> Command),
}

/// All steps, the quick ones first.
const STEPS: &[Step] = &[
    Step { name: "tidy", action: Action::Tidy },
    Step { name: "fmt", action: Action::Cargo(&["fmt", "--all", "--check"]) },
    Step { name: "clippy", action: Action::Cargo(CLIPPY) },
    Step { name: "build", action: Action::Cargo(&["build", "--package", "tagwerk", "--locked"]) },
    Step { name: "tests", action: Action::Tests(test_command) },
    Step { name: "doctests", action: Action::Tests(|_| command::cargo(DOC_TESTS)) },
];

/// Every warning is an error, in every target.
const CLIPPY: &[&str] =
    &["clippy", "--workspace", "--all-targets", "--all-features", "--locked", "--", "-D", "warnings"];

/// Examples in the documentation.
const DOC_TESTS: &[&str] = &["test", "--doc", "--workspace", "--all-features", "--locked", "--no-fail-fast"];

/// Runs all steps, or those that are named.
pub(crate) fn run(names: &[String]) -> anyhow::Result<ExitCode> {
    let steps = chosen(names)?;
    heading("setup", "what the tests need");
    let missing = requirement::provide()?;
    let mut rows: Vec<Row> = Vec::new();
    for step in &steps {
        rows.push(timed(step, &missing));
    }
    let sum = tests_of(&steps, &rows);
    if steps.iter().any(|step| step.name == "tests") {
        rows.extend(left_out(&missing));
    }
    print!("{}", report::text(&rows, sum));
    let reader = if system::in_ci() { Reader::Machine } else { Reader::Person };
    Ok(report::exit_code(&rows, reader))
}

/// The steps by name, in the order of the table; all of them when none is named.
fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Step>> {
    for name in names {
        let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        anyhow::ensure!(known.contains(&name.as_str()), "no step `{name}`: there are {}", known.join(", "));
    }
    let wanted = |step: &&Step| names.is_empty() || names.iter().any(|name| name == step.name);
    Ok(STEPS.iter().filter(wanted).collect())
}

/// Carries out one step and measures it.
fn timed(step: &Step, missing: &[&'static Requirement]) -> Row {
    let start = system::now();
    let (outcome, closing) = carry_out(step, missing).unwrap_or_else(|error| {
        eprintln!("{}: {error:#}", step.name);
        (Outcome::Failed, Vec::new())
    });
    Row { step: step.name.to_owned(), outcome, seconds: system::seconds_since(start), closing }
}

/// Carries out one step.
fn carry_out(step: &Step, missing: &[&'static Requirement]) -> anyhow::Result<(Outcome, Vec<String>)> {
    let lacking = missing.iter().find(|row| row.wanted_by == WantedBy::Step && row.name == step.name);
    if let Some(row) = lacking {
        heading(step.name, "not run");
        return Ok((Outcome::NotRun(row.why_not()), Vec::new()));
    }
    match &step.action {
        Action::Tidy => {
            heading(step.name, "the five laws and the habits");
            Ok((tidy::holds()?.into(), Vec::new()))
        }
        Action::Cargo(words) => {
            let mut command = command::cargo(words);
            heading(step.name, &command::typed(&command));
            Ok((command::succeeds(&mut command)?.into(), Vec::new()))
        }
        Action::Tests(make) => {
            let mut command = make(missing);
            heading(step.name, &command::typed(&command));
            let (good, lines) = command::watched(&mut command)?;
            Ok((good.into(), tally::closing_lines(&lines)))
        }
    }
}

/// Makes the steps findable in a long output.
fn heading(name: &str, what: &str) {
    println!("\n==> {name}: {what}");
}

/// The sum over all steps that run tests; nothing when one of them did not come to its closing line, or failed without
/// a failed test (it did not compile, or was killed): then nobody knows how many there are.
fn tests_of(steps: &[&Step], rows: &[Row]) -> Option<Tally> {
    let runners = steps.iter().zip(rows).filter(|(step, _)| matches!(step.action, Action::Tests(_)));
    let mut sum = None;
    for (_, row) in runners {
        let tally = tally::total(&row.closing)?;
        if row.outcome == Outcome::Failed && tally.failed == 0 {
            return None;
        }
        *sum.get_or_insert_default() += tally;
    }
    sum
}

/// One row for each program without which some tests were left out.
fn left_out(missing: &[&'static Requirement]) -> Vec<Row> {
    let rows = missing.iter().filter(|row| row.wanted_by == WantedBy::Tests);
    rows.map(|row| Row {
        step: format!("tests named needs_{}", row.name),
        outcome: Outcome::NotRun(row.why_not()),
        seconds: 0.0,
        closing: Vec::new(),
    })
    .collect()
}

/// nextest where it is installed, else cargo's own harness.
fn test_command(missing: &[&'static Requirement]) -> Command {
    let names = missing.iter().filter(|row| row.wanted_by == WantedBy::Tests).map(|row| row.name);
    if command::answers(&["cargo", "nextest", "--version"]) { nextest(names) } else { harness(names) }
}

/// The whole workspace under nextest, without the tests that need what is missing.
fn nextest<'a>(missing: impl Iterator<Item = &'a str>) -> Command {
    let mut command = command::cargo(&["nextest", "run", "--workspace", "--all-features", "--locked"]);
    command.arg("--no-fail-fast");
    let unable: Vec<String> = missing.map(|name| format!("test(needs_{name})")).collect();
    if !unable.is_empty() {
        command.arg("--filterset").arg(format!("not ({})", unable.join(" | ")));
    }
    command
}

/// The same under cargo's harness. Doc tests are a step of their own.
fn harness<'a>(missing: impl Iterator<Item = &'a str>) -> Command {
    let mut command =
        command::cargo(&["test", "--workspace", "--all-features", "--locked", "--no-fail-fast"]);
    command.args(["--lib", "--bins", "--tests", "--"]);
    for name in missing {
        command.arg("--skip").arg(format!("needs_{name}"));
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_without_their_program_are_left_out_by_name() {
        let line = command::typed(&nextest(["php", "curl"].into_iter()));
        assert!(
            line.ends_with("--no-fail-fast --filterset not (test(needs_php) | test(needs_curl))"),
            "{line}"
        );
        let line = command::typed(&harness(["php", "curl"].into_iter()));
        assert!(line.ends_with("--tests -- --skip needs_php --skip needs_curl"), "{line}");
    }

    #[test]
    fn nothing_is_left_out_when_nothing_is_missing() {
        assert!(!command::typed(&nextest(std::iter::empty())).contains("filterset"));
    }

    #[test]
    fn steps_are_chosen_by_name_and_keep_their_order() -> anyhow::Result<()> {
        let names: Vec<&str> =
            chosen(&["clippy".to_owned(), "fmt".to_owned()])?.iter().map(|step| step.name).collect();
        assert_eq!(names, ["fmt", "clippy"]);
        assert_eq!(chosen(&[])?.len(), STEPS.len());
        assert!(chosen(&["everything".to_owned()]).is_err());
        Ok(())
    }

    #[test]
    fn a_runner_without_closing_line_leaves_no_sum() -> anyhow::Result<()> {
        let steps = chosen(&["tests".to_owned(), "doctests".to_owned()])?;
        let row = |closing: &[&str]| Row {
            step: "tests".to_owned(),
            outcome: Outcome::Passed,
            seconds: 0.0,
            closing: closing.iter().map(|&line| line.to_owned()).collect(),
        };
        let closing = ["Summary [ 0.1s] 7 tests run: 7 passed, 0 skipped"];
        assert_eq!(tests_of(&steps, &[row(&closing), row(&[])]), None);
        let sum = Tally { passed: 14, failed: 0, not_run: 0 };
        assert_eq!(tests_of(&steps, &[row(&closing), row(&closing)]), Some(sum));
        let died = Row { outcome: Outcome::Failed, ..row(&closing) };
        assert_eq!(tests_of(&steps, &[row(&closing), died]), None);
        Ok(())
    }
}
