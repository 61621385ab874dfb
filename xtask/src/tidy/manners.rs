//! Habits of writing code that clippy does not know.

use super::rust_text::{RustText, has_word, is_word};
use super::tree::{File, Finding, Tree, numbered};
use crate::requirement;

/// Lints are lifted with `#[expect(…, reason = "…")]`, which complains by itself once it is no longer needed.
pub(crate) fn exceptions(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust() {
        for (start, attribute) in attributes(&rust.code) {
            let line = rust.code[..start].matches('\n').count() + 1;
            if calls_word(attribute, "allow") {
                let instead = "write `#[expect(…, reason = \"…\")]`";
                findings.push(file.at(line, "an `allow`, which outlives its cause", instead));
            }
            if calls_word(attribute, "expect") && !has_word(attribute, "reason") {
                findings.push(file.at(line, "an `expect` without a reason", "add `reason = \"…\"`"));
            }
        }
    }
    findings
}

/// Every attribute with the place where it begins.
fn attributes(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let starts = code
        .match_indices('#')
        .filter(|(at, _)| code[at + 1..].starts_with('[') || code[at + 1..].starts_with("!["));
    starts.map(|(at, _)| (at, &code[at..at + bracket_length(&code[at..])]))
}

/// The length up to the bracket that closes the attribute.
fn bracket_length(code: &str) -> usize {
    let mut depth = 0_u32;
    for (at, letter) in code.char_indices() {
        depth += u32::from(letter == '[');
        if letter == ']' {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return at + 1;
            }
        }
    }
    code.len()
}

/// Whether `word(` or `word!` stands in the text, as a word of its own.
fn calls_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_some_and(is_word);
        !before && text[at + word.len()..].trim_start().starts_with(['(', '!'])
    })
}

/// Macros of code that is not finished.
const MACROS: &[&str] = &["todo", "unimplemented", "dbg"];

/// Remarks about code that is not finished.
const MARKS: &[&str] = &["TODO", "FIXME", "XXX", "HACK"];

/// No macro and no remark that says: not finished.
pub(crate) fn unfinished(tree: &Tree) -> Vec<Finding> {
    let instead = "finish it, or leave it out";
    let mut findings = Vec::new();
    for (file, text) in tree.texts().filter(|(file, _)| !file.is("md")) {
        let remarks = file.rust.as_ref().map_or(text, |rust| rust.comments.as_str());
        for (number, line) in numbered(remarks) {
            let marks = MARKS.iter().filter(|mark| has_word(line, mark));
            findings.extend(marks.map(|mark| file.at(number, format!("`{mark}`"), instead)));
        }
        let code = file.rust.as_ref().map_or("", |rust| rust.code.as_str());
        for (number, line) in numbered(code) {
            let macros =
                MACROS.iter().filter(|name| line.contains(&format!("{name}!")) && calls_word(line, name));
            findings.extend(macros.map(|name| file.at(number, format!("`{name}!`"), instead)));
        }
    }
    findings
}

/// No test is switched off.
pub(crate) fn ignored_tests(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust() {
        let ignored = attributes(&rust.code).filter(|(_, text)| has_word(text, "ignore"));
        findings.extend(ignored.map(|(at, _)| {
            let instead = "make it run, or name what it lacks: a `needs_<row>` of xtask/src/requirement.rs";
            file.at(rust.code[..at].matches('\n').count() + 1, "a test that is switched off", instead)
        }));
    }
    findings
}

/// `needs_<name>` in the name of a test or of its module names a row of the table.
pub(crate) fn needs(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust() {
        for (number, line) in numbered(&rust.code) {
            let names = ["fn needs_", "mod needs_"].into_iter().filter_map(|start| line.split(start).nth(1));
            let unknown = names.map(program_name).filter(|name| !requirement::is_known(name));
            findings.extend(unknown.map(|name| {
                let instead =
                    "add a row to REQUIREMENTS in xtask/src/requirement.rs, or use a name that is there";
                file.at(number, format!("nothing installs `{name}`"), instead)
            }));
        }
    }
    findings
}

/// The first word after `needs_`: names of rows have no underscore.
fn program_name(rest: &str) -> &str {
    rest.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default()
}

/// The remark that makes a sleep acceptable, at its line or the one before.
const SLEEP_REMARK: &str = "// tidy: sleep because ";

/// Nothing sleeps, or it says why nothing better exists.
pub(crate) fn sleeps(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(|(file, rust)| sleeps_in(file, rust)).collect()
}

/// The sleeps of one file.
fn sleeps_in(file: &File, rust: &RustText) -> Vec<Finding> {
    let remarks: Vec<&str> = rust.comments.lines().collect();
    let excused = |index: usize| remarks.get(index).is_some_and(|line| line.contains(SLEEP_REMARK));
    let lines = numbered(&rust.code).filter(|(_, line)| falls_asleep(line));
    lines
        .filter(|(number, _)| !(number.saturating_sub(2)..*number).any(excused))
        .map(|(number, _)| {
            let instead = "wait for a signal or move the manual clock; else add `// tidy: sleep because …`";
            file.at(number, "a sleep", instead)
        })
        .collect()
}

/// A call of `thread::sleep`, `time::sleep`, `sleep_until`: not a method, not a definition.
fn falls_asleep(line: &str) -> bool {
    ["sleep(", "sleep_until(", "sleep_ms("].into_iter().any(|call| {
        line.match_indices(call).any(|(at, _)| {
            let before = &line[..at];
            !before.ends_with('.')
                && !before.ends_with("fn ")
                && !before.chars().next_back().is_some_and(is_word)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::places;
    use super::*;

    fn lines(check: fn(&Tree) -> Vec<Finding>, source: &str) -> Vec<usize> {
        let findings = check(&Tree::of(&[("a/src/a.rs", source)]));
        let mut lines: Vec<usize> = findings.iter().map(|finding| finding.line).collect();
        lines.sort_unstable();
        lines
    }

    #[test]
    fn exceptions_have_reasons() {
        let source = "#[expect(dead_code, reason = \"soon [used]\")]\nfn a() {}\n#[allow(dead_code)]\nfn b() {}\n\
                      #![allow(x)]\n#[expect(\n    clippy::x\n)]\nfn c() {}\n\
                      #[cfg_attr(test, allow(x))]\nfn d() { x.expect(\"#[allow(x)]\") }\n";
        assert_eq!(lines(exceptions, source), [3, 5, 6, 10]);
    }

    #[test]
    fn nothing_is_unfinished() {
        let source = "fn a() { todo!() }\n// FIXME later\nfn b() { \"TODO\"; todo(); }\nlet XXX = dbg!(1);\n";
        assert_eq!(lines(unfinished, source), [1, 2, 4]);
        let tree = Tree::of(&[("a.sh", "# XXX\nmktemp a.XXXXXX\n"), ("A.md", "TODO\n")]);
        assert_eq!(places(&unfinished(&tree)), ["a.sh:1"]);
    }

    #[test]
    fn no_test_is_switched_off() {
        let source = "#[test]\n#[ignore]\nfn a() {}\n#[ignore = \"slow\"]\nfn b() { ignore(); }\n";
        assert_eq!(lines(ignored_tests, source), [2, 4]);
    }

    #[test]
    fn what_is_needed_is_a_row_of_the_table() {
        let source =
            "mod needs_php {\n}\nfn needs_curl_and_more() {}\nmod needs_perl;\nfn needs_clippy() {}\n";
        assert_eq!(lines(needs, source), [4, 5]);
    }

    #[test]
    fn sleeping_needs_a_remark() {
        let source = "std::thread::sleep(x); // tidy: sleep because the program has no signal\n\n\
                      tokio::time::sleep(x).await;\n// tidy: sleep because it is measured\nsleep(x);\n\
                      clock.sleep(x);\nfn sleep(x: u8) {}\nthread::sleep(x); // tidy: sleep because\n";
        assert_eq!(lines(sleeps, source), [3, 8]);
    }
}
