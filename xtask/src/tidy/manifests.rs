//! What every crate takes from the workspace.

use super::tree::{File, Finding, Tree, numbered};

/// Keys of `[package]` that come from the workspace.
const INHERITED: &[&str] = &["edition", "license", "publish", "rust-version", "version"];

/// Every crate's manifest takes lints, edition and versions from the workspace.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let manifests = tree.texts().filter(|(file, _)| file.path.ends_with("/Cargo.toml"));
    manifests.flat_map(|(file, text)| complaints(file, text)).collect()
}

/// What one manifest lacks. A workspace of its own has nothing to inherit from.
fn complaints(file: &File, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if text.lines().any(|line| line == "[workspace]") {
        return findings;
    }
    if !text.contains("[lints]\nworkspace = true\n") {
        let instead = "write `[lints]` and below it `workspace = true`";
        findings.push(file.at(1, "the workspace's lints do not hold here", instead));
    }
    for key in INHERITED {
        let line = format!("{key}.workspace = true");
        if !text.lines().any(|own| own == line) {
            findings.push(file.at(1, format!("`{key}` is not the workspace's"), format!("write `{line}`")));
        }
    }
    findings.extend(own_versions(file, text));
    findings
}

/// Versions of libraries stand in one place.
fn own_versions(file: &File, text: &str) -> Vec<Finding> {
    let mut section = "";
    let mut findings = Vec::new();
    for (number, line) in numbered(text) {
        if line.starts_with('[') {
            section = line;
        } else if section.contains("dependencies") && has_version(line) {
            let instead = "write the version in the workspace's Cargo.toml and `workspace = true` here";
            findings.push(file.at(number, "a version of its own", instead));
        }
    }
    findings
}

/// `name = "1"` or `name = { version = "1" }`.
fn has_version(line: &str) -> bool {
    line.split_once('=')
        .is_some_and(|(_, value)| value.trim_start().starts_with('"') && !line.contains(".workspace"))
        || line.contains("version =")
}

#[cfg(test)]
mod tests {
    use super::super::tree::places;
    use super::*;

    const GOOD: &str = "[package]\nversion.workspace = true\nedition.workspace = true\nrust-version.workspace = true\n\
                        license.workspace = true\npublish.workspace = true\n\n[dependencies]\nserde.workspace = true\n\
                        own = { path = \".\" }\n\n[lints]\nworkspace = true\n";

    #[test]
    fn a_workspace_of_its_own_is_left_alone() {
        let alone = "[package]\nversion = \"0.0.0\"\n\n[workspace]\n\n[dependencies]\nserde = \"1\"\n";
        assert!(check(&Tree::of(&[("fuzz/Cargo.toml", alone)])).is_empty());
        let member = alone.replace("[workspace]\n", "");
        assert!(!check(&Tree::of(&[("fuzz/Cargo.toml", &member)])).is_empty());
    }

    #[test]
    fn a_manifest_inherits() {
        assert_eq!(check(&Tree::of(&[("crates/a/Cargo.toml", GOOD), ("Cargo.toml", "[workspace]\n")])), []);
    }

    #[test]
    fn what_it_has_of_its_own_is_found() {
        let bad = GOOD.replace("edition.workspace = true", "edition = \"2021\"").replace("[lints]", "[lint]");
        assert_eq!(
            places(&check(&Tree::of(&[("a/Cargo.toml", &bad)]))),
            ["a/Cargo.toml:1", "a/Cargo.toml:1"]
        );
        let bad = GOOD.replace("serde.workspace = true", "serde = \"1\"");
        assert_eq!(places(&check(&Tree::of(&[("a/Cargo.toml", &bad)]))), ["a/Cargo.toml:9"]);
        let bad = GOOD.replace("serde.workspace = true", "serde = { version = \"1\", features = [] }");
        assert_eq!(places(&check(&Tree::of(&[("a/Cargo.toml", &bad)]))), ["a/Cargo.toml:9"]);
    }
}
