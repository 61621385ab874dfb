//! The size and the names of files. The size of functions is clippy's (`clippy.toml`).

use super::tree::{Finding, Tree, numbered};

/// Lines of a file without its tests.
const SOURCE_LINES: usize = 500;

/// Lines of a file of tests.
const TEST_LINES: usize = 900;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "misc"];

/// A file is short enough to be read at once.
pub(crate) fn file_length(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust() {
        let most = if file.is_test() { TEST_LINES } else { SOURCE_LINES };
        let lines = rust.in_test.iter().filter(|in_test| file.is_test() || !**in_test).count();
        if lines > most {
            let found = format!("{lines} lines, at most {most}");
            findings.push(file.at(most + 1, found, "split it along its subjects into modules"));
        }
    }
    findings
}

/// A module is named after its subject.
pub(crate) fn module_names(tree: &Tree) -> Vec<Finding> {
    let instead = "name it after its subject, or move each function to the module that uses it";
    let mut findings = Vec::new();
    for (file, rust) in tree.rust() {
        for part in file.path.trim_end_matches(".rs").split('/').filter(|part| EMPTY_NAMES.contains(part)) {
            findings.push(file.at(1, format!("a file under the name `{part}`"), instead));
        }
        for (number, line) in numbered(&rust.code) {
            let name = line
                .split("mod ")
                .nth(1)
                .map(|rest| rest.trim_end_matches([';', '{', ' ', '}']))
                .unwrap_or_default();
            if EMPTY_NAMES.contains(&name) {
                findings.push(file.at(number, format!("a module under the name `{name}`"), instead));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tree::places;
    use super::*;

    #[test]
    fn tests_do_not_count_in_sources() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "\n".repeat(300));
        let good = format!("{}{tests}", "fn a() {}\n".repeat(SOURCE_LINES));
        let bad = format!("fn b() {{}}\n{good}");
        let tree = Tree::of(&[("a/src/good.rs", &good), ("a/src/bad.rs", &bad), ("a/tests/it.rs", &good)]);
        assert_eq!(places(&file_length(&tree)), ["a/src/bad.rs:501"]);
        let long = "\n".repeat(TEST_LINES + 1);
        assert_eq!(places(&file_length(&Tree::of(&[("a/tests/it.rs", &long)]))), ["a/tests/it.rs:901"]);
    }

    #[test]
    fn names_say_something() {
        let tree = Tree::of(&[
            ("a/src/utils.rs", ""),
            ("a/tests/common/mod.rs", ""),
            ("a/src/lib.rs", "mod lease;\npub(crate) mod helpers;\nmod misc {\n}\nmod miscellany;\n"),
        ]);
        let bad = ["a/src/utils.rs:1", "a/tests/common/mod.rs:1", "a/src/lib.rs:2", "a/src/lib.rs:3"];
        assert_eq!(places(&module_names(&tree)), bad);
    }
}
