//! Who may see whom.
//!
//! Cargo enforces a border once it is drawn; this check keeps it from being moved in passing. A new dependency of an
//! inner crate is a decision for `docs/adr/` and a word in this table.

use serde_json::Value;

use super::tree::{File, Finding, Tree, numbered};

/// A crate and everything it may depend on.
struct Border {
    name: &'static str,
    may_see: Sight,
}

/// How far a crate sees.
enum Sight {
    Only(&'static [&'static str]),
    Everything,
}

/// One row a crate.
const BORDERS: &[Border] = &[
    Border { name: "tagwerk-core", may_see: Sight::Only(&["thiserror"]) },
    Border {
        name: "tagwerk-engine",
        may_see: Sight::Only(&["blake3", "subtle", "tagwerk-core", "thiserror", "tracing"]),
    },
    Border {
        name: "tagwerk-sqlite",
        may_see: Sight::Only(&[
            "blake3",
            "rusqlite",
            "tagwerk-core",
            "tagwerk-engine",
            "thiserror",
            "tracing",
        ]),
    },
    Border { name: "tagwerk-api", may_see: Sight::Only(&["serde", "serde_json", "thiserror", "utoipa"]) },
    Border {
        name: "tagwerk-client",
        may_see: Sight::Only(&[
            "hyper",
            "reqwest",
            "rustls",
            "rustls-native-certs",
            "serde",
            "serde_json",
            "tagwerk-api",
            "thiserror",
            "tokio",
        ]),
    },
    Border { name: "tagwerk", may_see: Sight::Everything },
    Border { name: "tagwerk-history", may_see: Sight::Only(&["serde", "serde_json"]) },
    Border {
        name: "tagwerk-sim",
        may_see: Sight::Only(&[
            "anyhow",
            "blake3",
            "tagwerk-core",
            "tagwerk-engine",
            "tagwerk-sqlite",
            "tempfile",
        ]),
    },
    Border { name: "tagwerk-bench", may_see: Sight::Only(OF_BENCH) },
    Border { name: "xtask", may_see: Sight::Only(&["anyhow", "serde_json", "toml"]) },
];

/// What the bench may see: libraries that the product has, and nothing of the product, which it calls from outside.
const OF_BENCH: &[&str] = &[
    "anyhow",
    "axum",
    "hyper",
    "hyper-util",
    "jiff",
    "rusqlite",
    "rustix",
    "serde",
    "serde_json",
    "tokio",
    "tower",
];

/// A dependency as cargo reports it.
struct Dependency<'a> {
    krate: &'a str,
    name: &'a str,
    /// `dev` or `build`; none for the product itself.
    kind: Option<&'a str>,
    manifest: String,
}

/// Every dependency of every crate stands in the table.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    dependencies(&tree.metadata)
        .into_iter()
        .filter_map(|dependency| complaint(&dependency).map(|words| place(tree, &dependency, words)))
        .collect()
}

/// What is wrong with a dependency, and what to do instead.
fn complaint(dependency: &Dependency<'_>) -> Option<(String, String)> {
    let Dependency { krate, name, kind, .. } = *dependency;
    let Some(border) = BORDERS.iter().find(|border| border.name == krate) else {
        return Some((
            format!("the crate `{krate}` has no border"),
            "add its row to BORDERS in xtask/src/tidy/borders.rs".to_owned(),
        ));
    };
    let Sight::Only(allowed) = border.may_see else { return None };
    // Tests may use any library, but they see no more of our own crates than the crate itself does.
    let free = kind == Some("dev") && (name == krate || !name.starts_with("tagwerk"));
    let allowed_words = allowed.join(", ");
    (!free && !allowed.contains(&name)).then(|| {
        (
            format!("`{krate}` depends on `{name}`"),
            format!("it may see only {allowed_words}; do this in the crate that may, and hand in the result"),
        )
    })
}

/// Reads cargo's answer.
fn dependencies(metadata: &Value) -> Vec<Dependency<'_>> {
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    let mut all = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let krate = package["name"].as_str().unwrap_or_default();
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let manifest =
            manifest.strip_prefix(root).unwrap_or(manifest).trim_start_matches('/').replace('\\', "/");
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let name = dependency["name"].as_str().unwrap_or_default();
            all.push(Dependency {
                krate,
                name,
                kind: dependency["kind"].as_str(),
                manifest: manifest.clone(),
            });
        }
    }
    all
}

/// The line of the manifest that names the dependency.
fn place(tree: &Tree, dependency: &Dependency<'_>, (found, instead): (String, String)) -> Finding {
    let text = tree.file(&dependency.manifest).and_then(|file| file.text.as_deref()).unwrap_or_default();
    let line =
        numbered(text).find(|(_, line)| line.starts_with(dependency.name)).map_or(1, |(number, _)| number);
    Finding { path: dependency.manifest.clone(), line, found, instead }
}

/// Libraries come from crates.io by version: no git revisions, no private registries.
pub(crate) fn lockfile(tree: &Tree) -> Vec<Finding> {
    let Some(File { path, text: Some(text), .. }) = tree.file("Cargo.lock") else { return Vec::new() };
    let foreign = |line: &str| {
        line.strip_prefix("source = ")
            .is_some_and(|source| !source.contains("github.com/rust-lang/crates.io-index"))
    };
    numbered(text)
        .filter(|(_, line)| foreign(line))
        .map(|(line, source)| Finding {
            path: path.clone(),
            line,
            found: format!("`{source}` is not crates.io"),
            instead: "depend on a published version, or do without".to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::places;
    use super::*;
    use serde_json::json;

    fn tree(krate: &str, dependencies: &Value) -> Tree {
        let manifest = format!("crates/{krate}/Cargo.toml");
        let mut tree =
            Tree::of(&[(&manifest, "[dependencies]\nthiserror.workspace = true\ntokio.workspace = true\n")]);
        tree.metadata = json!({
            "workspace_root": "/some/where",
            "packages": [{
                "name": krate,
                "manifest_path": format!("/some/where/{manifest}"),
                "dependencies": dependencies,
            }],
        });
        tree
    }

    #[test]
    fn what_stands_in_the_table_is_fine() {
        let good = json!([{"name": "thiserror", "kind": null}, {"name": "proptest", "kind": "dev"}]);
        assert_eq!(check(&tree("tagwerk-core", &good)), []);
        assert_eq!(check(&tree("tagwerk", &json!([{"name": "anything", "kind": null}]))), []);
        let itself = json!([{"name": "tagwerk-engine", "kind": "dev"}]);
        assert_eq!(check(&tree("tagwerk-engine", &itself)), []);
    }

    #[test]
    fn what_does_not_is_found_at_its_line() {
        let findings = check(&tree("tagwerk-core", &json!([{"name": "tokio", "kind": null}])));
        assert_eq!(places(&findings), ["crates/tagwerk-core/Cargo.toml:3"]);
        let build = json!([{"name": "cc", "kind": "build"}]);
        assert_eq!(check(&tree("tagwerk-core", &build)).len(), 1);
        let upward = json!([{"name": "tagwerk-engine", "kind": "dev"}]);
        assert_eq!(check(&tree("tagwerk-core", &upward)).len(), 1);
    }

    #[test]
    fn a_new_crate_needs_a_row() {
        let findings = check(&tree("tagwerk-new", &json!([{"name": "thiserror", "kind": null}])));
        assert!(findings[0].instead.contains("BORDERS"));
    }

    #[test]
    fn libraries_come_from_crates_io() {
        let lock = "source = \"registry+https://github.com/rust-lang/crates.io-index\"\nsource = \"git+https://x/y\"\n";
        assert_eq!(places(&lockfile(&Tree::of(&[("Cargo.lock", lock)]))), ["Cargo.lock:2"]);
    }
}
