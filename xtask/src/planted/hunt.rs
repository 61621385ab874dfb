//! Builds the simulator of the copy and lets it look for something.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Context;

use super::copy::Copy;
use crate::{command, system, tool};

/// A fault may make the simulator run for ever; then it has not found it.
const PATIENCE: Duration = Duration::from_mins(10);

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hunt {
    /// Nothing was found.
    Clean,
    /// This was.
    Found {
        /// The seed that was the first to fail.
        seed: u64,
        /// What it violated.
        rule: String,
    },
    /// It does not apply, or does not build, or the simulator came to no end.
    Broken(String),
}

impl Hunt {
    pub(crate) const fn is_found(&self) -> bool {
        matches!(self, Self::Found { .. })
    }

    /// In a line.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Clean => "nothing was found".to_owned(),
            Self::Found { seed, rule } => format!("found at seed {seed} by {rule}"),
            Self::Broken(why) => format!("broken: {why}"),
        }
    }
}

/// Builds and runs.
pub(crate) fn hunt(copy: &Copy, seeds: u128) -> anyhow::Result<Hunt> {
    let target = system::root().join("target/planted/build");
    let words = ["build", "--release", "--locked", "--quiet", "--package", "tagwerk-sim"];
    let mut build = command::program(&system::cargo(), &words);
    build.current_dir(copy.folder()).env("CARGO_TARGET_DIR", &target);
    // Twenty small builds: linking fast matters more than the last tenth of speed. A fault may leave things unused.
    build.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    build.env("CARGO_PROFILE_RELEASE_DEBUG", "0").env("CARGO_PROFILE_RELEASE_INCREMENTAL", "true");
    let mut build = in_folder(tool::polite(build), copy);
    let ended = build.stderr(Stdio::piped()).output().context("cannot start cargo")?;
    if !ended.status.success() {
        let complaint = String::from_utf8_lossy(&ended.stderr).into_owned();
        return Ok(Hunt::Broken(format!("it does not build\n{complaint}")));
    }
    let program = target.join("release/tagwerk-sim").display().to_string();
    let seeds = seeds.to_string();
    let run = command::program(&program, &["--seeds", &seeds, "--failures", "1"]);
    watch(in_folder(tool::polite(run), copy))
}

/// A call that gives way is made anew, in the workspace's root.
fn in_folder(mut call: Command, copy: &Copy) -> Command {
    call.current_dir(copy.folder());
    call
}

/// Waits for the end of the simulator or of our patience.
fn watch(mut call: Command) -> anyhow::Result<Hunt> {
    let mut child =
        call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context("cannot start the simulator")?;
    let (say, hear) = mpsc::channel();
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let errors = std::thread::spawn(move || err.map(lines).unwrap_or_default());
    std::thread::spawn(move || say.send(out.map(lines).unwrap_or_default()).ok());
    let Ok(lines) = hear.recv_timeout(PATIENCE) else {
        child.kill()?;
        child.wait()?;
        return Ok(Hunt::Broken("the simulator came to no end".to_owned()));
    };
    let status = child.wait()?;
    let complaint = errors.join().unwrap_or_default().join("\n");
    Ok(match (first_failure(&lines), status.success()) {
        (Some(found), false) => found,
        (None, true) => Hunt::Clean,
        _ => Hunt::Broken(format!("the simulator ended with {status} and said no seed\n{complaint}")),
    })
}

fn lines(pipe: impl std::io::Read) -> Vec<String> {
    BufReader::new(pipe).lines().map_while(Result::ok).collect()
}

/// `FAILED seed 255 on memory: model, job 16`
fn first_failure(lines: &[String]) -> Option<Hunt> {
    let said = lines.iter().find_map(|line| line.strip_prefix("FAILED seed "))?;
    let (seed, rest) = said.split_once(' ')?;
    let (_, rule) = rest.split_once(": ")?;
    let rule = rule.split(',').next().unwrap_or(rule).to_owned();
    Some(Hunt::Found { seed: seed.parse().ok()?, rule })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulators_first_line_is_read() {
        let lines = ["x".to_owned(), "FAILED seed 255 on memory: model, job 16".to_owned()];
        assert_eq!(first_failure(&lines), Some(Hunt::Found { seed: 255, rule: "model".to_owned() }));
        let lines = ["FAILED seed 3 on nodes: liveness".to_owned()];
        assert_eq!(first_failure(&lines), Some(Hunt::Found { seed: 3, rule: "liveness".to_owned() }));
        assert_eq!(first_failure(&["100 runs, 0 failed.".to_owned()]), None);
    }
}
