//! `cargo xtask tidy`: the five laws and the habits, as far as a text can show them.
//!
//! What the compiler or clippy can hold is held there (see `clippy.toml` and the workspace's lints). The rest stands
//! here: one small function per rule, over a [`Tree`] that was read once. A remark that is made twice in review
//! becomes a function here. Every finding names the place, the rule, and what to write instead.

mod borders;
mod documents;
mod layers;
mod leaks;
mod limits;
mod manifests;
mod manners;
mod rust_text;
mod shape;
mod tree;

use std::process::ExitCode;

use crate::system;
use tree::{Finding, Tree};

/// A rule and how it is checked.
struct Check {
    name: &'static str,
    rule: &'static str,
    run: fn(&Tree) -> Vec<Finding>,
}

/// All rules.
const CHECKS: &[Check] = &[
    Check { name: "borders", rule: "only the binary sees all crates (ARCHITECTURE.md)", run: borders::check },
    Check { name: "lockfile", rule: "every library comes from crates.io", run: borders::lockfile },
    Check { name: "async-inside", rule: "law 4: plain code inside, async at the rim", run: layers::no_async },
    Check { name: "one-decider", rule: "law 1: only `decide` moves a job", run: layers::one_decider },
    Check { name: "sql-case", rule: "law 1: no SQL decides where a job moves", run: layers::no_sql_case },
    Check { name: "ambient", rule: "law 2: no ambient anything", run: layers::no_ambient },
    Check { name: "limits", rule: "law 5: each limit has its reason beside it", run: limits::check },
    Check { name: "file-length", rule: "a file fits in a head", run: shape::file_length },
    Check { name: "module-name", rule: "a module says what it is about", run: shape::module_names },
    Check { name: "exceptions", rule: "an exception to a lint carries its reason", run: manners::exceptions },
    Check { name: "unfinished", rule: "nothing unfinished is merged", run: manners::unfinished },
    Check { name: "ignored-test", rule: "a test runs, or is said not to run", run: manners::ignored_tests },
    Check { name: "needs", rule: "a test names what it needs by a row of the table", run: manners::needs },
    Check {
        name: "sleep",
        rule: "nothing sleeps where a signal or the manual clock will do",
        run: manners::sleeps,
    },
    Check { name: "links", rule: "a relative link leads somewhere", run: documents::links },
    Check { name: "laws-written", rule: "ARCHITECTURE.md carries the five laws", run: documents::laws },
    Check { name: "adr-listed", rule: "docs/adr/README.md lists every decision", run: documents::decisions },
    Check { name: "where-to-change", rule: "the table in CONTRIBUTING.md is right", run: documents::places },
    Check { name: "workplace", rule: "no path of anybody's machine", run: leaks::paths },
    Check { name: "assets", rule: "no third-party assets", run: leaks::assets },
    Check {
        name: "manifest",
        rule: "every crate takes lints and edition from the workspace",
        run: manifests::check,
    },
];

/// The command.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    Ok(if holds()? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs all checks and prints what they found; true when they found nothing.
pub(crate) fn holds() -> anyhow::Result<bool> {
    let start = system::now();
    let tree = Tree::read(&system::root())?;
    let mut count = 0;
    for check in CHECKS {
        for finding in (check.run)(&tree) {
            println!("{}", explain(check, &finding));
            count += 1;
        }
    }
    let seconds = system::seconds_since(start);
    let (checks, files) = (CHECKS.len(), tree.files.len());
    println!("tidy: {count} findings by {checks} checks in {files} files, {seconds:.1} s");
    Ok(count == 0)
}

/// Place, what is wrong, the rule, what to do.
fn explain(check: &Check, finding: &Finding) -> String {
    let Finding { path, line, found, instead } = finding;
    let Check { name, rule, .. } = check;
    format!("{path}:{line}: {found}\n    rule:    {rule} [{name}]\n    instead: {instead}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_place_rule_and_replacement() {
        let finding = Finding {
            path: "a/b.rs".to_owned(),
            line: 7,
            found: "it sleeps".to_owned(),
            instead: "wait".to_owned(),
        };
        let check = CHECKS.iter().find(|check| check.name == "sleep");
        let text = check.map(|check| explain(check, &finding)).unwrap_or_default();
        assert_eq!(
            text,
            "a/b.rs:7: it sleeps\n    rule:    nothing sleeps where a signal or the manual clock will do [sleep]\n    \
             instead: wait"
        );
    }

    #[test]
    fn names_of_checks_are_unique() {
        for (index, check) in CHECKS.iter().enumerate() {
            assert!(CHECKS[..index].iter().all(|other| other.name != check.name), "{}", check.name);
        }
    }
}
