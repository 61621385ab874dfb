//! The smallest contradiction.
//!
//! A call is taken out by forgetting its answer: then it may have happened or not, at any later moment too. So what remains
//! is a set of answers that cannot all be true, whatever came of all other calls, and no smaller part of it is. Where states
//! and holders alone contradict each other, versions and counters are left aside, because those convict a single call
//! without telling of what.

use crate::rules::Rules;
use crate::search::{Part, Stuck, Verdict, explain};
use crate::spec::Strictness;

/// How many steps one of the many searches may take. Where that is too few an answer stays that could have gone.
const PATIENCE: usize = 3_000;

/// Shrinks a part that has no explanation to one that has none either.
pub(crate) fn shrink(part: &Part, rules: &Rules) -> (Part, Stuck) {
    let rules = &Rules { patience: rules.patience.min(PATIENCE), ..rules.clone() };
    for strictness in [Strictness::Gist, Strictness::All] {
        if explain(part, rules, strictness).is_contradiction() {
            let small = without_needless(first_to_fail(part, rules, strictness), rules, strictness);
            if let Verdict::Contradiction(stuck) = explain(&small, rules, strictness) {
                return (small, stuck);
            }
        }
    }
    (part.clone(), Stuck::default())
}

/// The shortest beginning that has no explanation: what was under way at its end happened or did not.
fn first_to_fail(part: &Part, rules: &Rules, strictness: Strictness) -> Part {
    let ends: Vec<u64> = part.ops.iter().filter(|op| op.answered).map(|op| op.call.end_ns).collect();
    let fails = |end: u64| explain(&until(part, end), rules, strictness).is_contradiction();
    let first = ends.partition_point(|end| !fails(*end));
    ends.get(first).map_or_else(|| part.clone(), |end| until(part, *end))
}

fn until(part: &Part, end: u64) -> Part {
    let mut part = part.clone();
    part.ops.retain(|op| op.call.start_ns <= end);
    for op in part.ops.iter_mut().filter(|op| op.call.end_ns > end) {
        op.answered = false;
    }
    part
}

/// Forgets one answer after the other as long as the contradiction stays: first those of calls that change nothing, since
/// what was done says more than what was seen; then the oldest.
fn without_needless(mut part: Part, rules: &Rules, strictness: Strictness) -> Part {
    let mut order: Vec<usize> = (0..part.ops.len()).filter(|index| part.ops[*index].answered).collect();
    order.sort_by_key(|index| part.ops[*index].call.asked.changes());
    for index in order {
        let mut fewer = part.clone();
        fewer.ops[index].answered = false;
        fewer.ops[index].deadline_ns = u64::MAX;
        if explain(&fewer, rules, strictness).is_contradiction() {
            part = fewer;
        }
    }
    part
}
