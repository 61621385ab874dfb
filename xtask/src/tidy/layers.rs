//! Laws 1, 2 and 4 as far as the text of a layer shows them.

use super::rust_text::{find_word, has_word, is_word};
use super::tree::{File, Finding, Tree, numbered};

/// Crates that are synchronous and pure of the outside world.
const INSIDE: &[&str] = &[CORE, "crates/tagwerk-engine/", "crates/tagwerk-sqlite/"];

/// The crate of the rules.
const CORE: &str = "crates/tagwerk-core/";

/// Crates that hold SQL.
const STORES: &[&str] = &["crates/tagwerk-sqlite/", "crates/tagwerk-postgres/"];

/// The files where the real clock, randomness and environment come in, each with what it may touch.
const RIM: &[(&str, &[Sense])] = &[
    ("crates/tagwerk/src/system.rs", &[Sense::Clock, Sense::Entropy, Sense::Environment]),
    ("crates/tagwerk/src/config.rs", &[Sense::Environment]),
    ("crates/tagwerk-client/src/nonce.rs", &[Sense::Entropy]),
    ("sim/src/system.rs", &[Sense::Clock]),
    ("bench/src/system.rs", &[Sense::Clock]),
    ("xtask/src/system.rs", &[Sense::Clock, Sense::Environment]),
];

/// What the outside world is noticed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sense {
    Clock,
    Entropy,
    Environment,
}

/// Calls that notice the outside world, each beginning with a word.
const AMBIENT: &[(&str, Sense)] = &[
    ("SystemTime::now", Sense::Clock),
    ("Instant::now", Sense::Clock),
    ("Timestamp::now", Sense::Clock),
    ("Zoned::now", Sense::Clock),
    ("rand::", Sense::Entropy),
    ("thread_rng", Sense::Entropy),
    ("getrandom::", Sense::Entropy),
    ("RandomState::new", Sense::Entropy),
    ("env::var", Sense::Environment),
    ("env::var_os", Sense::Environment),
    ("env::vars", Sense::Environment),
    ("env::vars_os", Sense::Environment),
];

impl Sense {
    /// What to use in its place.
    fn instead(self) -> &'static str {
        match self {
            Self::Clock => "take the injected Clock; the real one lives in crates/tagwerk/src/system.rs",
            Self::Entropy => "take the injected Entropy; the real one lives in crates/tagwerk/src/system.rs",
            Self::Environment => "read it in crates/tagwerk/src/config.rs and hand the value in",
        }
    }
}

/// Whether the file lies in one of the crates.
fn lies_in(file: &File, crates: &[&str]) -> bool {
    crates.iter().any(|start| file.path.starts_with(start))
}

/// Law 4: no async in core, engine and stores, not even in their tests.
pub(crate) fn no_async(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust().filter(|(file, _)| lies_in(file, INSIDE)) {
        for (number, line) in numbered(&rust.code) {
            let words = ["async", "await", "tokio"].into_iter().filter(|word| has_word(line, word));
            findings.extend(words.map(|word| {
                file.at(
                    number,
                    format!("`{word}` inside"),
                    "make it a plain call; crates/tagwerk bridges to async",
                )
            }));
        }
    }
    findings
}

/// Law 1: engine and stores put a job as `decide` returned it, and change nothing in it. Tests set scenes.
pub(crate) fn one_decider(tree: &Tree) -> Vec<Finding> {
    let instead = "make it an event, and let tagwerk_core::transition::decide return the changed job";
    let mut findings = Vec::new();
    let is_bound = |file: &File| lies_in(file, INSIDE) && !lies_in(file, &[CORE]) && !sets_scenes(file);
    for (file, rust) in tree.rust().filter(|(file, _)| is_bound(file)) {
        let lines = numbered(&rust.code).zip(&rust.in_test).filter(|(_, in_test)| !**in_test);
        let changes = lines.filter(|((_, line), _)| changes_job(line));
        findings.extend(changes.map(|((number, _), _)| file.at(number, "a job changed by hand", instead)));
    }
    findings
}

/// Whether the file is a test or part of what tests are made with.
fn sets_scenes(file: &File) -> bool {
    file.is_test() || file.path.contains("/testing/")
}

/// Whether the line assigns to a field of something named `job`.
fn changes_job(line: &str) -> bool {
    line.match_indices("job.").any(|(at, start)| {
        let before = line[..at].chars().next_back().is_some_and(is_word);
        let rest = line[at + start.len()..]
            .trim_start_matches(|letter| is_word(letter) || letter == '.')
            .trim_start();
        let assigns = ["=", "+=", "-=", "|=", "&="].iter().any(|sign| rest.starts_with(sign));
        !before && assigns && !rest.starts_with("==") && !rest.starts_with("=>")
    })
}

/// Law 1: no SQL that chooses a value by cases. Views may, since they only name things for people.
pub(crate) fn no_sql_case(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, text) in tree.texts().filter(|(file, _)| !is_view(&file.path)) {
        let sql = match &file.rust {
            Some(rust) if lies_in(file, STORES) => rust.strings.as_str(),
            None if file.is("sql") => text,
            _ => continue,
        };
        let instead = "let tagwerk_core::transition::decide answer it, and store the result";
        findings
            .extend(cases(sql).into_iter().map(|line| file.at(line, "SQL that decides by CASE", instead)));
    }
    findings
}

/// A file of migrations that holds views.
fn is_view(path: &str) -> bool {
    path.rsplit_once('/')
        .is_some_and(|(folder, name)| folder.ends_with("migrations") && name.contains("view"))
}

/// The lines where a `CASE … WHEN` or an `iif(` begins.
fn cases(sql: &str) -> Vec<usize> {
    let lower = without_sql_comments(&sql.to_lowercase());
    let mut lines = Vec::new();
    let mut at = 0;
    while let Some(found) = next_case(&lower[at..]) {
        lines.push(lower[..at + found].matches('\n').count() + 1);
        at += found + 3;
    }
    lines
}

/// Where the next one begins.
fn next_case(lower: &str) -> Option<usize> {
    let starts = lower.match_indices("case").map(|(at, _)| at);
    let case = starts.filter(|&at| find_word(&lower[at..], "case") == Some(0)).find(|&at| {
        let before = lower[..at].chars().next_back().is_some_and(is_word);
        !before && branches(&lower[at..])
    });
    [case, find_word(lower, "iif")].into_iter().flatten().min()
}

/// Whether `when` and `then` follow within the statement: an English sentence with "case" has no such branches.
fn branches(from_case: &str) -> bool {
    let mut words = from_case.split_whitespace().take(60).take_while(|word| !word.contains([';', '"']));
    words.any(|word| word == "when") && words.any(|word| word == "then")
}

/// `-- …` comments become blank.
fn without_sql_comments(sql: &str) -> String {
    sql.split_inclusive('\n').map(|line| line.split_once("--").map_or(line, |(code, _)| code)).fold(
        String::new(),
        |text, line| {
            let end = if line.ends_with('\n') { "" } else { "\n" };
            text + line + end
        },
    )
}

/// Law 2: outside of tests only the rim reads clock, randomness and environment.
pub(crate) fn no_ambient(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let sources = tree.rust().filter(|(file, _)| !file.is_test() && !file.path.ends_with("build.rs"));
    for (file, rust) in sources {
        let lines = numbered(&rust.code).zip(&rust.in_test).filter(|(_, in_test)| !**in_test);
        for ((number, line), _) in lines {
            let calls = AMBIENT.iter().filter(|(call, sense)| calls(line, call) && !may(file, *sense));
            findings.extend(calls.map(|(call, sense)| file.at(number, format!("`{call}`"), sense.instead())));
        }
    }
    findings
}

/// Whether the line makes the call: the name begins with a word and, unless it ends in `::`, ends with one.
fn calls(line: &str, call: &str) -> bool {
    line.match_indices(call).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(is_word);
        let after = line[at + call.len()..].chars().next().is_some_and(is_word);
        !before && (!after || call.ends_with("::"))
    })
}

/// Whether the file stands at the rim for that sense.
fn may(file: &File, sense: Sense) -> bool {
    RIM.iter().any(|(path, senses)| file.path == *path && senses.contains(&sense))
}

#[cfg(test)]
mod tests {
    use super::super::tree::places;
    use super::*;

    #[test]
    fn async_is_for_the_rim() {
        let source = "// async is not for here\nasync fn f() {}\nfn g() { \"tokio\"; h().await }\n";
        let tree = Tree::of(&[("crates/tagwerk-core/src/a.rs", source), ("crates/tagwerk/src/a.rs", source)]);
        let inside = ["crates/tagwerk-core/src/a.rs:2", "crates/tagwerk-core/src/a.rs:3"];
        assert_eq!(places(&no_async(&tree)), inside);
    }

    #[test]
    fn only_the_decider_changes_a_job() {
        let source = "fn f() {\n    row.job.status = Status::Failed;\n    if job.status == x && job.a.b >= y {}\n    \
                      job.retry_count += 1;\n    my_job.x = 1;\n    row.job = step.job;\n}\n";
        let tree =
            Tree::of(&[("crates/tagwerk-engine/src/a.rs", source), ("crates/tagwerk-core/src/a.rs", source)]);
        let bad = ["crates/tagwerk-engine/src/a.rs:2", "crates/tagwerk-engine/src/a.rs:4"];
        assert_eq!(places(&one_decider(&tree)), bad);
    }

    #[test]
    fn sql_does_not_decide() {
        let sql = "-- CASE x WHEN y THEN\nSELECT 1;\nSELECT CASE a + b WHEN 1 THEN 2 END;\n\
                   SELECT case\n  when x then y end;\nSELECT iif(a, b, c)\n";
        let path = "crates/tagwerk-sqlite/migrations/0001_start.sql";
        let found = places(&no_sql_case(&Tree::of(&[(path, sql)])));
        assert_eq!(found, [3, 4, 6].map(|line| format!("{path}:{line}")));
        let view = "crates/tagwerk-sqlite/migrations/0002_views.sql";
        assert_eq!(no_sql_case(&Tree::of(&[(view, sql)])), []);
    }

    #[test]
    fn sql_in_strings_of_stores_does_not_decide() {
        let source = "// CASE WHEN\nconst A: &str = \"UPDATE job SET s = CASE WHEN a THEN 1 END\";\n\
                      const B: &str = \"in case it is late when it comes, wait\";\n";
        let store = "crates/tagwerk-sqlite/src/jobs.rs";
        let tree = Tree::of(&[(store, source), ("crates/tagwerk/src/cli.rs", source)]);
        assert_eq!(places(&no_sql_case(&tree)), [format!("{store}:2")]);
    }

    #[test]
    fn the_outside_world_comes_in_at_the_rim() {
        let source = "fn f() {\n    let a = Instant::now();\n    let b = std::env::var(\"X\");\n    \
                      let c = getrandom::u64();\n    operand::new();\n}\n\
                      #[cfg(test)]\nmod tests {\n    fn g() { Instant::now(); }\n}\n";
        let found = |path: &str| {
            let lines = no_ambient(&Tree::of(&[(path, source)]));
            lines.iter().map(|finding| finding.line).collect::<Vec<_>>()
        };
        assert_eq!(found("crates/tagwerk-engine/src/a.rs"), [2, 3, 4]);
        assert_eq!(found("crates/tagwerk/src/config.rs"), [2, 4]);
        assert_eq!(found("crates/tagwerk/src/system.rs"), [0; 0]);
        assert_eq!(found("crates/tagwerk/tests/it/main.rs"), [0; 0]);
    }
}
