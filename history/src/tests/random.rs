//! What the specification itself does is always explained, however calls overlap and answers are lost; what is falsified is
//! refused.

use proptest::prelude::*;

use super::machine::{LIES, Lie, Wildness, falsify, run};
use crate::check;
use crate::check::count;

fn explained(seed: u64, wildness: Wildness) -> Result<(), TestCaseError> {
    let report = check(&run(seed, wildness));
    let told: Vec<String> = report.contradictions.iter().map(ToString::to_string).collect();
    prop_assert!(report.is_explained(), "{}\n{:?}", told.join("\n"), report.undecided);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_call_after_the_other_is_explained(seed: u64, steps in 1..120_u64, jobs in 1..5_i64) {
        explained(seed, Wildness { steps, jobs, spread_ms: 0, lost: 0 })?;
    }

    #[test]
    fn calls_that_overlap_are_explained(seed: u64, steps in 1..80_u64, jobs in 1..5_i64, spread_ms in 1..400_u64) {
        explained(seed, Wildness { steps, jobs, spread_ms, lost: 0 })?;
    }

    #[test]
    fn calls_that_overlap_and_lose_answers_are_explained(
        seed: u64, steps in 1..60_u64, jobs in 1..4_i64, spread_ms in 1..150_u64, lost in 1..20_u64,
    ) {
        explained(seed, Wildness { steps, jobs, spread_ms, lost })?;
    }
}

/// How many of how many falsified histories were refused, and for how many nothing was decided.
fn refused(lie: Lie, wildness: Wildness) -> (usize, usize, usize) {
    let (mut found, mut all, mut open) = (0, 0, 0);
    for seed in 0..400 {
        let mut history = run(seed, wildness);
        if falsify(&mut history, lie, seed) {
            let (contradictions, undecided) = count(&history);
            all += 1;
            found += usize::from(contradictions > 0);
            open += usize::from(contradictions == 0 && undecided > 0);
        }
    }
    (found, all, open)
}

/// Not every lie can be told from the truth: a job that is said to be missing may just have been erased by retention, and a
/// key that is said to have made another job may just have come free.
#[test]
fn what_is_falsified_is_refused() {
    let calm = Wildness { steps: 60, jobs: 2, spread_ms: 0, lost: 0 };
    let wild = Wildness { spread_ms: 100, lost: 5, ..calm };
    for lie in LIES {
        for (wildness, least) in [(calm, 97), (wild, 90)] {
            let (found, all, open) = refused(lie, wildness);
            assert!(all > 100, "{lie:?}: only {all} histories could be falsified so");
            assert!(found * 100 >= all * least, "{lie:?}: {found} of {all} were refused, {wildness:?}");
            assert_eq!(open, 0, "{lie:?}: not decided");
        }
    }
}

#[test]
fn a_contradiction_is_small_and_holds_by_itself() {
    let wild = Wildness { steps: 60, jobs: 2, spread_ms: 100, lost: 5 };
    let (mut contradictions, mut calls) = (0, 0);
    for seed in 0..6 {
        for lie in LIES {
            let mut history = run(seed, wild);
            if falsify(&mut history, lie, seed) {
                for found in check(&history).contradictions {
                    contradictions += 1;
                    calls += found.calls.len();
                    assert!(!found.calls.is_empty() && found.text.contains("by the rules"), "{found}");
                }
            }
        }
    }
    assert!(calls <= contradictions * 4, "{calls} calls in {contradictions} contradictions");
}
