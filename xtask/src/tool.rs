//! Tools that a single chore needs: kept under `target/tools`, so that nothing on the machine changes.
//!
//! Versions are fixed here. What cannot be had is said in a sentence, and the chore did *not run*.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::{command, system};

/// Where all of them are.
pub(crate) fn folder() -> PathBuf {
    system::root().join("target/tools")
}

/// A program from crates.io.
pub(crate) struct Crate {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

impl Crate {
    /// The program, built if it is not there yet; or why it cannot be had.
    pub(crate) fn provide(&self) -> Result<PathBuf, String> {
        let program = folder().join("bin").join(self.name);
        if program.is_file() {
            return Ok(program);
        }
        let root = folder().display().to_string();
        println!("building {} {} (some minutes, once)", self.name, self.version);
        let words = ["install", self.name, "--version", self.version, "--locked", "--root", &root];
        let built = command::succeeds(&mut polite(command::cargo(&words))).unwrap_or(false);
        if built && program.is_file() {
            Ok(program)
        } else {
            Err(format!("`cargo {}` did not work", words.join(" ")))
        }
    }
}

/// A package from `PyPI` in an environment of its own.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

/// What schemathesis judges answers with.
pub(crate) const SCHEMATHESIS: Package = Package { name: "schemathesis", version: "4.32.5" };

impl Package {
    /// Installs it; or why it cannot be had. Asks Debian for the one part of Python that Debian splits off.
    pub(crate) fn install(&self) -> Result<(), String> {
        let environment = python();
        let pip = environment.join("bin/pip").display().to_string();
        if !command::answers(&[&pip, "--version"]) {
            let words = ["-m", "venv", "--clear", &environment.display().to_string()];
            let made = command::succeeds(&mut command::program("python3", &words)).unwrap_or(false);
            if !made {
                return Err("`python3 -m venv` does not work: apt-get install python3-venv".to_owned());
            }
        }
        println!("installing {} {} into target/tools", self.name, self.version);
        let wanted = format!("{}=={}", self.name, self.version);
        let words = ["install", "--quiet", "--disable-pip-version-check", &wanted];
        let good = command::succeeds(&mut command::program(&pip, &words)).unwrap_or(false);
        if good { Ok(()) } else { Err(format!("`pip install {wanted}` did not work")) }
    }
}

/// The environment that Python's packages are in.
pub(crate) fn python() -> PathBuf {
    folder().join("python")
}

/// The same call, giving way to everything else that the machine does, where `nice` exists.
pub(crate) fn polite(call: std::process::Command) -> std::process::Command {
    if !command::answers(&["nice", "-n", "15", "true"]) {
        return call;
    }
    let mut polite = command::program("nice", &["-n", "15"]);
    polite.arg(call.get_program()).args(call.get_args());
    for (name, value) in call.get_envs() {
        match value {
            Some(value) => polite.env(name, value),
            None => polite.env_remove(name),
        };
    }
    polite
}

/// Says that a chore did not run, and why. Never the same as success.
pub(crate) fn not_run(chore: &str, why: &str) -> ExitCode {
    println!("{chore}: not run: {why}");
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_polite_call_is_the_same_call() {
        let mut call = command::program("cargo", &["mutants", "--list"]);
        call.env("A", "b");
        let polite = polite(call);
        assert!(command::typed(&polite).ends_with("cargo mutants --list"), "{polite:?}");
        assert!(polite.get_envs().any(|(name, value)| name == "A" && value.is_some_and(|text| text == "b")));
    }
}
