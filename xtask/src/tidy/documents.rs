//! Documents that keep their word: links, laws, decisions, places.

use super::tree::{File, Finding, Tree, numbered};

/// The names of the five laws, as ARCHITECTURE.md must carry them.
const LAWS: &[&str] = &[
    "One decider",
    "No ambient anything",
    "Stores know rows, not rules",
    "Plain code inside, async at the rim",
    "Everything has a limit",
];

/// Where decisions are listed.
const DECISIONS: &str = "docs/adr/README.md";

/// The first cell of the table that leads people to a file.
const PLACES_TABLE: &str = "| I want to change";

/// Every relative link leads to a file or folder of the project.
pub(crate) fn links(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, text) in markdown(tree) {
        for (number, line) in prose(text) {
            let broken = targets(&line).into_iter().filter(|target| !leads_somewhere(tree, file, target));
            let instead = "correct the path (from the folder of this file)";
            findings
                .extend(broken.map(|target| file.at(number, format!("`{target}` does not exist"), instead)));
        }
    }
    findings
}

/// The documents.
fn markdown(tree: &Tree) -> impl Iterator<Item = (&File, &str)> {
    tree.texts().filter(|(file, _)| file.is("md"))
}

/// The numbered lines outside of code blocks, without code in backticks.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut in_block = false;
    numbered(text).filter_map(move |(number, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        let code_free = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        (!in_block && !is_fence).then_some((number, code_free))
    })
}

/// The targets of `[text](target)` and `[name]: target` in a line.
fn targets(line: &str) -> Vec<&str> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let reference = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
    inline.chain(reference.map(|(_, target)| target.trim())).collect()
}

/// Whether a target is an address elsewhere, a heading of the same page, or a file that is there.
fn leads_somewhere(tree: &Tree, from: &File, target: &str) -> bool {
    let path = target.split('#').next().unwrap_or_default();
    if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
        return true;
    }
    from_folder_of(&from.path, path).is_some_and(|path| path.is_empty() || tree.has(&path))
}

/// The path from the root; `None` when it leaves the project.
fn from_folder_of(document: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// ARCHITECTURE.md names the five laws.
pub(crate) fn laws(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file("ARCHITECTURE.md") else {
        return vec![missing("ARCHITECTURE.md", "write it: the laws, the map, the walk of one job")];
    };
    let text = file.text.as_deref().unwrap_or_default().to_lowercase();
    let lost = LAWS.iter().filter(|law| !text.contains(&law.to_lowercase()));
    lost.map(|law| file.at(1, format!("the law \"{law}\" is not there"), "carry all five by name")).collect()
}

/// A file that must exist.
fn missing(path: &str, instead: &str) -> Finding {
    let (path, instead) = (path.to_owned(), instead.to_owned());
    Finding { path, line: 1, found: "the file does not exist".to_owned(), instead }
}

/// Every decision is in the list.
pub(crate) fn decisions(tree: &Tree) -> Vec<Finding> {
    let list = tree.file(DECISIONS).and_then(|file| file.text.as_deref()).unwrap_or_default();
    let records = tree
        .files
        .iter()
        .filter(|file| file.path.starts_with("docs/adr/") && file.is("md") && file.path != DECISIONS);
    records
        .filter(|file| !list.contains(&format!("({})", file.path.trim_start_matches("docs/adr/"))))
        .map(|file| file.at(1, "a decision that is not listed", format!("link it in {DECISIONS}")))
        .collect()
}

/// The table "I want to change … → file" of CONTRIBUTING.md leads to files that exist.
pub(crate) fn places(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file("CONTRIBUTING.md") else {
        return vec![missing("CONTRIBUTING.md", "write it: how to build, test and change things")];
    };
    let text = file.text.as_deref().unwrap_or_default();
    let table = numbered(text).skip_while(|(_, line)| !line.starts_with(PLACES_TABLE));
    let rows: Vec<_> = table.take_while(|(_, line)| line.starts_with('|')).collect();
    if rows.is_empty() {
        return vec![file.at(1, "the table of places is gone", format!("begin it with `{PLACES_TABLE}`"))];
    }
    let cells = rows.iter().flat_map(|(number, row)| paths_in(row).map(|path| (*number, path)));
    cells
        .filter(|(_, path)| !tree.has(path))
        .map(|(number, path)| file.at(number, format!("`{path}` does not exist"), "name the file of today"))
        .collect()
}

/// What stands in backticks and looks like a path, outside of the first cell.
fn paths_in(row: &str) -> impl Iterator<Item = &str> {
    let cells = row.splitn(3, '|').nth(2).unwrap_or_default();
    cells
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|text| text.contains('/') && !text.contains(' ') && !text.contains("://"))
}

#[cfg(test)]
mod tests {
    use super::super::tree::places as places_of;
    use super::*;

    #[test]
    fn links_lead_somewhere() {
        let page = "[a](b.md) [c](../README.md#top) [d](https://x.org/y) [e](#here) [f](mailto:x@y.z)\n\
                    [g](gone.md)\n`[h](gone.md)`\n```\n[i](gone.md)\n```\n[j](../../out.md)\n[k]: gone.md\n[l](../docs/)\n";
        let tree = Tree::of(&[("docs/a.md", page), ("docs/b.md", ""), ("README.md", "[docs](docs)\n")]);
        assert_eq!(places_of(&links(&tree)), [2, 7, 8].map(|line| format!("docs/a.md:{line}")));
    }

    #[test]
    fn the_laws_are_written() {
        let all = LAWS.join("\n");
        assert_eq!(laws(&Tree::of(&[("ARCHITECTURE.md", &all)])), []);
        let four = LAWS[1..].join("\n");
        assert_eq!(laws(&Tree::of(&[("ARCHITECTURE.md", &four)])).len(), 1);
        assert_eq!(laws(&Tree::of(&[])).len(), 1);
    }

    #[test]
    fn decisions_are_listed() {
        let records = [("docs/adr/0001-a.md", ""), ("docs/adr/0002-b.md", "")];
        let list = [(DECISIONS, "- [a](0001-a.md)\n")];
        assert_eq!(
            places_of(&decisions(&Tree::of(&[records.as_slice(), &list].concat()))),
            ["docs/adr/0002-b.md:1"]
        );
        assert_eq!(decisions(&Tree::of(&records)).len(), 2);
    }

    #[test]
    fn the_table_of_places_is_right() {
        let table = "# x\n\n| I want to change … | file |\n|---|---|\n| `a/b` thing | `src/a.rs`, `src/b*` |\n\
                     | else | `src/gone.rs` and `POST /x` |\n\nlater `src/gone.rs`\n";
        let tree = Tree::of(&[("CONTRIBUTING.md", table), ("src/a.rs", ""), ("src/bc.rs", "")]);
        assert_eq!(places_of(&places(&tree)), ["CONTRIBUTING.md:6"]);
        assert_eq!(places_of(&places(&Tree::of(&[("CONTRIBUTING.md", "# x\n")]))), ["CONTRIBUTING.md:1"]);
    }
}
