//! Counts tests by reading the closing lines of the test runners.
//!
//! Nothing is guessed: a runner that wrote no closing line gives no count, and then the whole run has none.

use std::ops::AddAssign;

/// How many tests ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// Skipped, ignored, filtered out, or cancelled: everything that exists and did not run.
    pub(crate) not_run: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.not_run += other.not_run;
    }
}

/// The lines in which a runner says how it ended.
pub(crate) fn closing_lines(lines: &[String]) -> Vec<String> {
    lines.iter().filter(|line| counts(line).is_some()).cloned().collect()
}

/// The sum of all closing lines; `None` when there is not one.
pub(crate) fn total(lines: &[String]) -> Option<Tally> {
    lines.iter().filter_map(|line| counts(line)).fold(None, |sum: Option<Tally>, one| {
        let mut sum = sum.unwrap_or_default();
        sum += one;
        Some(sum)
    })
}

/// Reads one line of cargo's harness or of nextest.
fn counts(line: &str) -> Option<Tally> {
    if let Some((_, parts)) = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". ")) {
        return Some(sum(parts.split(';')));
    }
    let (_, rest) = line.strip_prefix("Summary [")?.split_once(']')?;
    let (run, parts) = rest.split_once(" run: ")?;
    let mut tally = sum(without_brackets(parts).split(','));
    tally.not_run += cancelled(run);
    Some(tally)
}

/// Adds up parts such as `3 passed`, `1 timed out`, `2 filtered out`.
fn sum<'a>(parts: impl Iterator<Item = &'a str>) -> Tally {
    let mut tally = Tally::default();
    for (count, word) in parts.filter_map(|part| part.trim().split_once(' ')) {
        let Ok(count) = count.parse::<u64>() else { continue };
        match word.trim() {
            "passed" => tally.passed += count,
            "skipped" | "ignored" | "filtered out" => tally.not_run += count,
            "measured" => {}
            _ => tally.failed += count,
        }
    }
    tally
}

/// nextest writes `5/6 tests` when it stopped early: the one that is missing did not run.
fn cancelled(run: &str) -> u64 {
    let numbers = run.trim().split(' ').next().and_then(|word| word.split_once('/'));
    let difference = numbers.and_then(|(run, of)| of.parse::<u64>().ok()?.checked_sub(run.parse().ok()?));
    difference.unwrap_or(0)
}

/// `4 passed (1 slow, 2 leaky), 1 failed` without the remark, whose comma would mislead.
fn without_brackets(text: &str) -> String {
    let mut depth = 0_u32;
    text.chars()
        .filter(|letter| {
            depth += u32::from(*letter == '(');
            let outside = depth == 0;
            depth -= u32::from(*letter == ')' && depth > 0);
            outside
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(passed: u64, failed: u64, not_run: u64) -> Tally {
        Tally { passed, failed, not_run }
    }

    #[test]
    fn reads_the_harness() {
        let line = "test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured; 4 filtered out; finished in 0.00s";
        assert_eq!(counts(line), Some(tally(3, 1, 6)));
        let line =
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(counts(line), Some(tally(0, 0, 0)));
    }

    #[test]
    fn reads_nextest() {
        assert_eq!(counts("Summary [   0.012s] 5 tests run: 5 passed, 0 skipped"), Some(tally(5, 0, 0)));
        let line = "Summary [ 12.3s] 7/9 tests run: 4 passed (1 slow, 2 leaky), 1 failed, 1 timed out, 1 exec failed, 3 skipped";
        assert_eq!(counts(line), Some(tally(4, 3, 5)));
        assert_eq!(counts("Summary [ 0.1s] 1 test run: 1 passed, 0 skipped"), Some(tally(1, 0, 0)));
    }

    #[test]
    fn other_lines_count_nothing() {
        assert_eq!(counts("Summary of what happened: 3 passed"), None);
        assert_eq!(total(&["running 3 tests".to_owned()]), None);
    }

    #[test]
    fn several_closing_lines_add_up() {
        let lines = [
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s"
                .to_owned(),
            "noise".to_owned(),
            "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s"
                .to_owned(),
        ];
        assert_eq!(total(&lines), Some(tally(5, 0, 1)));
        assert_eq!(closing_lines(&lines).len(), 2);
    }
}
