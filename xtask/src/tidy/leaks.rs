//! What must not get into the repository: places on somebody's machine, and other people's files.

use super::rust_text::is_word;
use super::tree::{Finding, Tree, numbered};

/// Beginnings of absolute paths that exist on one machine only. Put together here, so that this file may hold them.
const PLACES: &[&str] =
    &[concat!("/", "work/"), concat!("/", "root/"), concat!("/", "home/"), concat!("/", "Users/")];

/// Kinds of files that are made elsewhere and copied.
const ASSETS: &[&str] = &[
    ".eot", ".gif", ".ico", ".jpeg", ".jpg", ".min.css", ".min.js", ".otf", ".png", ".ttf", ".wasm", ".webp",
    ".woff", ".woff2",
];

/// Folders of copied code.
const FOREIGN: &[&str] = &["node_modules", "third_party", "third-party", "vendor", "vendored"];

/// No absolute path of somebody's machine.
pub(crate) fn paths(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, text) in tree.texts() {
        for (number, line) in numbered(text) {
            let places = PLACES.iter().filter(|place| begins_path(line, place));
            findings.extend(places.map(|place| {
                file.at(
                    number,
                    format!("`{place}…` exists on one machine only"),
                    "write a path from the root, or a made-up one",
                )
            }));
        }
    }
    findings
}

/// Whether an absolute path begins there: `src/cli/…` is a relative one, and `https://host/…` an address.
fn begins_path(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|letter| {
            is_word(letter) || matches!(letter, '.' | '-' | '/' | '*' | '}' | ')' | '>')
        })
    })
}

/// Only what we wrote: no copied scripts, fonts and pictures, and nothing unreadable except what tests feed on.
pub(crate) fn assets(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        let copied = ASSETS.iter().any(|end| file.path.ends_with(end));
        let foreign = file.path.split('/').any(|part| FOREIGN.contains(&part));
        if copied || foreign {
            findings.push(file.at(1, "a file made elsewhere", "write our own, or do without"));
        } else if file.text.is_none() && !file.is_test() && !file.path.starts_with("fuzz/corpus/") {
            findings.push(file.at(1, "a file that is no text", "make it when it is needed"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tree::places;
    use super::*;

    #[test]
    fn no_path_of_a_machine() {
        let text = format!(
            "see {0}x/a\n`{1}ann/a`\ncrates/tagwerk/src/cli{0}mod.rs\nhttps://example.org{1}ann\n",
            PLACES[0], PLACES[2]
        );
        assert_eq!(places(&paths(&Tree::of(&[("a.md", &text)]))), ["a.md:1", "a.md:2"]);
    }

    #[test]
    fn only_our_own_files() {
        let tree = Tree::of(&[
            ("crates/a/src/page.css", ""),
            ("crates/a/src/logo.png", ""),
            ("vendor/x.js", ""),
            ("crates/a/src/blob", "\0"),
            ("crates/a/tests/damaged", "\0"),
        ]);
        assert_eq!(
            places(&assets(&tree)),
            ["crates/a/src/logo.png:1", "vendor/x.js:1", "crates/a/src/blob:1"]
        );
    }
}
