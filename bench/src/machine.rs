//! On what it was measured.

use std::path::Path;
use std::process::Command;

use crate::processes::{first_line, output};

/// Facts as pairs of name and value.
pub(crate) fn facts(root: &Path, folder: &Path) -> Vec<(String, String)> {
    let file = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
    };
    let load = file("/proc/loadavg").split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    [
        ("commit", commit(root)),
        ("processor", field(&file("/proc/cpuinfo"), "model name")),
        ("cores", cores().to_string()),
        ("memory", field(&file("/proc/meminfo"), "MemTotal")),
        ("system", first_line(Command::new("uname").args(["-srm"]))),
        ("disk", disk(folder)),
        ("load before", load),
        ("rust", first_line(Command::new("rustc").arg("--version"))),
        ("node", first_line(Command::new("node").arg("--version"))),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn commit(root: &Path) -> String {
    let git = |words: &[&str]| output(Command::new("git").args(words).current_dir(root)).unwrap_or_default();
    let commit = git(&["rev-parse", "--short", "HEAD"]);
    // Results of earlier runs change nothing of what is measured.
    let changes = git(&["status", "--porcelain", "--", ".", ":!bench/results"]);
    let mark = if changes.trim().is_empty() { "" } else { " with changes" };
    format!("{}{mark}", commit.trim())
}

/// The file system of the folder.
fn disk(folder: &Path) -> String {
    let words = ["--output=fstype,source"];
    let text = output(Command::new("df").args(words).arg(folder)).unwrap_or_default();
    text.lines().nth(1).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" on ")
}

/// Whether what is written there is kept in memory only, so that an fsync means nothing.
pub(crate) fn is_memory(folder: &Path) -> bool {
    let kind = disk(folder);
    kind.starts_with("tmpfs") || kind.starts_with("ramfs")
}
