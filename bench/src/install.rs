//! Brings the peers here: servers from Debian, clients from npm at the versions of the lock file.
//!
//! What cannot be had is an error with a reason, which the report shows as *not run*.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::processes::{first_line, output};

/// The oldest Node that the clients run on.
const NODE_MIN: u32 = 20;

/// The files that go where npm installs.
const NODE_FILES: [&str; 8] = [
    "package.json",
    "package-lock.json",
    "protocol.mjs",
    "bullmq.mjs",
    "graphile-worker.mjs",
    "pg-boss.mjs",
    "rabbitmq.mjs",
    "versions.mjs",
];

/// A program of Debian: where it is, or an error that says how to get it.
pub(crate) fn debian(program: &Path, package: &str) -> anyhow::Result<()> {
    if !program.exists() {
        install(package).with_context(|| format!("Debian's package {package} is needed"))?;
    }
    anyhow::ensure!(
        program.exists(),
        "{} is not there; is Debian's package {package} installed?",
        program.display()
    );
    Ok(())
}

fn install(package: &str) -> anyhow::Result<()> {
    let is_root = first_line(Command::new("id").arg("-u")) == "0";
    let is_there = first_line(Command::new("apt-get").arg("--version"));
    anyhow::ensure!(
        is_root && !is_there.is_empty(),
        "installing it takes Debian and root: apt-get install {package}"
    );
    println!("installing {package}");
    let apt =
        |words: &[&str]| output(Command::new("apt-get").args(words).env("DEBIAN_FRONTEND", "noninteractive"));
    // A list that cannot be brought up to date may be good enough.
    drop(apt(&["-qq", "update"]));
    apt(&["-qq", "install", "--yes", "--no-install-recommends", package]).map(drop)
}

/// The folder of PostgreSQL's programs, the newest version that is there.
pub(crate) fn postgres() -> anyhow::Result<PathBuf> {
    let find = || {
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
        let folder = versions.map(|entry| entry.path()).max_by_key(number)?.join("bin");
        folder.join("initdb").exists().then_some(folder)
    };
    if let Some(folder) = find() {
        return Ok(folder);
    }
    install("postgresql")?;
    find().context("there is no /usr/lib/postgresql/<version>/bin/initdb")
}

/// The folder with the drivers in JavaScript and the clients they use.
pub(crate) fn node(root: &Path) -> anyhow::Result<PathBuf> {
    let version = first_line(Command::new("node").arg("--version"));
    let major = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    anyhow::ensure!(
        major.is_some_and(|major| major >= NODE_MIN),
        "Node {NODE_MIN} or newer is needed; here is {}",
        if version.is_empty() { "none" } else { &version }
    );
    let folder = root.join("target/bench/node");
    std::fs::create_dir_all(&folder)?;
    let lock = |place: &Path| std::fs::read(place.join("package-lock.json")).ok();
    let from = root.join("bench/peers");
    let is_fresh = lock(&folder) == lock(&from) && folder.join("node_modules/.package-lock.json").exists();
    for file in NODE_FILES {
        std::fs::copy(from.join(file), folder.join(file)).with_context(|| format!("cannot copy {file}"))?;
    }
    if !is_fresh {
        println!("installing the peers' clients with npm");
        let words = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
        if let Err(error) = output(Command::new("npm").args(words).current_dir(&folder)) {
            // The next run must not take a half of it for the whole.
            drop(std::fs::remove_file(folder.join("package-lock.json")));
            return Err(error);
        }
    }
    Ok(folder)
}
