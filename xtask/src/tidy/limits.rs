//! Law 5: every limit has its reason beside it.
//!
//! Whether a reason is a good one, a reviewer says. That there is one at all, this check: the documentation says more
//! than what the limit is, so it has a second sentence or a word that gives a reason.

use super::tree::{Finding, Tree, numbered};

/// The one file of limits.
const FILE: &str = "crates/tagwerk-core/src/limits.rs";

/// Constants of the file that limit nothing: lengths of time to write the others with.
const UNITS: &[&str] = &["SECOND_MS", "MINUTE_MS", "HOUR_MS", "DAY_MS"];

/// Words that begin a reason.
const REASONS: &[&str] =
    &["because", "since", "so that", "otherwise", "enough", "more than", "longer than", "as long as", "; "];

/// Every constant in the file of limits is documented with its reason.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some((file, rust)) = tree.rust().find(|(file, _)| file.path == FILE) else { return Vec::new() };
    let text = file.text.as_deref().unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    numbered(&rust.code)
        .filter_map(|(number, line)| Some((number, constant(line)?)))
        .filter(|(_, name)| !UNITS.contains(name))
        .filter(|(number, _)| !gives_reason(&documentation(&lines[..number - 1])))
        .map(|(number, name)| {
            let instead = "say in its `///` why it is this much and not more or less";
            file.at(number, format!("`{name}` has no reason"), instead)
        })
        .collect()
}

/// The name of the public constant that the line defines.
fn constant(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("pub const ").filter(|rest| !rest.starts_with("fn "))?.split(':').next()
}

/// The `///` lines directly above, past attributes.
fn documentation(above: &[&str]) -> String {
    let lines = above.iter().rev().map(|line| line.trim());
    let mut comment: Vec<&str> =
        lines.skip_while(|line| line.starts_with("#[")).map_while(|line| line.strip_prefix("///")).collect();
    comment.reverse();
    comment.concat()
}

/// More than one sentence, or a word that begins a reason.
fn gives_reason(comment: &str) -> bool {
    let inner = comment.trim().trim_end_matches('.');
    inner.contains(". ") || inner.contains(": ") || REASONS.iter().any(|word| inner.contains(word))
}

#[cfg(test)]
mod tests {
    use super::super::tree::places;
    use super::*;

    #[test]
    fn a_limit_says_why() {
        let source = "/// The longest name. An index holds it in one page.\npub const A: usize = 128;\n\n\
                      /// The longest lease.\n#[doc(hidden)]\npub const B: u64 = 1;\n\npub const C: u64 = 1;\n\
                      /// A day, because nobody waits longer.\npub const D: u64 = 1;\n\
                      /// A second.\npub const SECOND_MS: i64 = 1;\npub const fn f() {}\n";
        let found = places(&check(&Tree::of(&[(FILE, source)])));
        assert_eq!(found, [6, 8].map(|line| format!("{FILE}:{line}")));
    }
}
