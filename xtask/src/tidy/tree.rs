//! The files that belong to the project, read once.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use super::rust_text::RustText;
use crate::command;

/// All files and what cargo says about the crates.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
    /// The answer of `cargo metadata --no-deps`.
    pub(crate) metadata: Value,
}

/// A file of the project.
#[derive(Debug)]
pub(crate) struct File {
    /// From the root, with forward slashes.
    pub(crate) path: String,
    /// `None` when it is no text.
    pub(crate) text: Option<String>,
    /// The views of Rust source.
    pub(crate) rust: Option<RustText>,
}

/// A place where a rule is broken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) found: String,
    pub(crate) instead: String,
}

impl Tree {
    /// Reads what git tracks and what it would track: a new file is checked before it is committed.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        // The checkout may belong to somebody else, as in containers; we only list names.
        let words =
            ["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let names = command::output(&mut command::program("git", &words))
            .context("tidy asks git which files belong to the project")?;
        let mut paths: Vec<&str> = names.split('\0').filter(|name| !name.is_empty()).collect();
        paths.sort_unstable();
        paths.dedup();
        let files = paths.into_iter().filter_map(|path| File::read(root, path)).collect();
        let words = ["metadata", "--no-deps", "--format-version", "1"];
        let metadata = command::output(&mut command::cargo(&words))?;
        Ok(Self { files, metadata: serde_json::from_str(&metadata)? })
    }

    /// A tree from samples, for the tests of the checks.
    #[cfg(test)]
    pub(crate) fn of(samples: &[(&str, &str)]) -> Self {
        let files = samples.iter().map(|(path, text)| File::of(path, Some((*text).to_owned()))).collect();
        Self { files, metadata: Value::Null }
    }

    /// The file of that path.
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The Rust sources.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&File, &RustText)> {
        self.files.iter().filter_map(|file| file.rust.as_ref().map(|rust| (file, rust)))
    }

    /// The text files.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&File, &str)> {
        self.files.iter().filter_map(|file| file.text.as_deref().map(|text| (file, text)))
    }

    /// Whether a file or a folder with files has that path; it may end in `*`.
    pub(crate) fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.files.iter().any(|file| match path.split_once('*') {
            Some((start, end)) => file.path.starts_with(start) && file.path.ends_with(end),
            None => file.path == path || file.path.starts_with(&folder),
        })
    }
}

impl File {
    /// Reads a file; `None` when it is gone or is no file (a link to a folder).
    fn read(root: &Path, path: &str) -> Option<Self> {
        let bytes = std::fs::read(root.join(path)).ok()?;
        Some(Self::of(path, String::from_utf8(bytes).ok()))
    }

    /// A file with its views.
    fn of(path: &str, text: Option<String>) -> Self {
        let text = text.filter(|text| !text.contains('\0'));
        let mut file = Self { path: path.to_owned(), text, rust: None };
        file.rust = file.text.as_deref().filter(|_| file.is("rs")).map(RustText::of);
        file
    }

    /// Whether the file's name ends in `.` and that extension.
    pub(crate) fn is(&self, extension: &str) -> bool {
        self.path.rsplit_once('.').is_some_and(|(_, own)| own.eq_ignore_ascii_case(extension))
    }

    /// Whether the file holds tests only.
    pub(crate) fn is_test(&self) -> bool {
        let mut parts = self.path.split('/').rev();
        let name = parts.next().unwrap_or_default();
        name == "tests.rs" || name.ends_with("_tests.rs") || parts.any(|part| part == "tests")
    }

    /// A finding in this file. Lines count from one.
    pub(crate) fn at(&self, line: usize, found: impl Into<String>, instead: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, found: found.into(), instead: instead.into() }
    }
}

/// The lines with their numbers, which count from one.
pub(crate) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

/// The places as `path:line`, for the tests of the checks.
#[cfg(test)]
pub(crate) fn places(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|finding| format!("{}:{}", finding.path, finding.line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_may_be_files_folders_and_beginnings() {
        let tree = Tree::of(&[("crates/a/src/transition/mod.rs", ""), ("README.md", "")]);
        for path in ["README.md", "crates/a", "crates/a/", "crates/a/src/trans*", "crates/*.rs"] {
            assert!(tree.has(path), "{path}");
        }
        for path in ["README", "crates/b", "crates/a/src/trans", "crates/*.sql"] {
            assert!(!tree.has(path), "{path}");
        }
    }

    #[test]
    fn test_files_are_known_by_their_place() {
        let is_test = |path: &str| File::of(path, None).is_test();
        assert!(is_test("crates/a/tests/it/main.rs"));
        assert!(is_test("crates/a/src/tests.rs"));
        assert!(!is_test("crates/a/src/testing/clock.rs"));
    }

    #[test]
    fn what_is_no_text_has_no_text() {
        assert!(File::of("a.db", Some("SQLite\0".to_owned())).text.is_none());
    }
}
