//! What the tests and steps need beyond Rust, a C compiler and git.
//!
//! One table, [`REQUIREMENTS`]: what a new test needs is one row here. The convention that ties tests to it: a test
//! that needs a program has `needs_<name>` in its path (the module, or the function). Where the program is missing
//! and cannot be installed, exactly those tests are left out by name and reported as `not run`; started by hand they
//! fail, because a test that quietly passes without having run is a lie.

use std::process::ExitCode;

use crate::{command, tool};

/// A program that something here needs.
#[derive(Debug)]
pub(crate) struct Requirement {
    /// The name in `needs_<name>`.
    pub(crate) name: &'static str,
    /// A call that succeeds when the program is there.
    probe: &'static [&'static str],
    /// Where it comes from.
    source: Source,
    /// Who cannot run without it.
    pub(crate) wanted_by: WantedBy,
}

/// Where a program comes from.
#[derive(Debug)]
enum Source {
    /// A package of Debian; other systems have it under a similar name.
    Debian(&'static str),
    /// A component of the Rust toolchain.
    Rustup(&'static str),
    /// A package of Python, put into `target/tools`.
    Python(tool::Package),
    /// Nothing can be installed: a right that the caller has or has not, and how to get it.
    Right(&'static str),
}

/// Who cannot run without a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WantedBy {
    /// The tests with `needs_<name>` in their path.
    Tests,
    /// The step of the same name.
    Step,
}

/// Everything. Only what something uses: an unused row makes every machine install it for nothing.
const REQUIREMENTS: &[Requirement] = &[
    rust_component("fmt", &["cargo", "fmt", "--version"], "rustfmt"),
    rust_component("clippy", &["cargo", "clippy", "--version"], "clippy"),
    test_program("curl", &["curl", "--version"], "curl"),
    test_program("faketime", &["faketime", "--version"], "faketime"),
    test_program("php", &["php", "--version"], "php-cli"),
    test_program("promtool", &["promtool", "--version"], "prometheus"),
    test_program("python3", &["python3", "--version"], "python3"),
    // Not its version: it may be there and not be allowed to look at processes.
    test_program("strace", &["strace", "-o", "/dev/null", "true"], "strace"),
    test_program("systemd", &["systemd-analyze", "--version"], "systemd"),
    test_program("sqlite3", &["sqlite3", "--version"], "sqlite3"),
    Requirement {
        name: "schemathesis",
        probe: &["target/tools/python/bin/schemathesis", "--version"],
        source: Source::Python(tool::SCHEMATHESIS),
        wanted_by: WantedBy::Tests,
    },
    Requirement {
        name: "setpriv",
        probe: &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "true"],
        source: Source::Right("run as root, with setpriv of util-linux"),
        wanted_by: WantedBy::Tests,
    },
    // In a name space of its own, so that nothing is left of the attempt.
    Requirement {
        name: "tmpfs",
        probe: &["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
        source: Source::Right("run as root where mounting is allowed"),
        wanted_by: WantedBy::Tests,
    },
];

/// A row for a program that tests call.
const fn test_program(
    name: &'static str,
    probe: &'static [&'static str],
    package: &'static str,
) -> Requirement {
    Requirement { name, probe, source: Source::Debian(package), wanted_by: WantedBy::Tests }
}

/// A row for a part of the toolchain that the step of the same name calls.
const fn rust_component(
    name: &'static str,
    probe: &'static [&'static str],
    component: &'static str,
) -> Requirement {
    Requirement { name, probe, source: Source::Rustup(component), wanted_by: WantedBy::Step }
}

impl Requirement {
    /// What to type to get it.
    pub(crate) fn how(&self) -> String {
        match &self.source {
            Source::Debian(package) => format!("apt-get install {package} (or its like from your system)"),
            Source::Rustup(component) => format!("rustup component add {component}"),
            Source::Python(package) => format!(
                "python3 -m venv target/tools/python && target/tools/python/bin/pip install {}=={}",
                package.name, package.version
            ),
            Source::Right(how) => (*how).to_owned(),
        }
    }

    /// Why something did not run.
    pub(crate) fn why_not(&self) -> String {
        format!("`{}` does not work: {}", self.probe.join(" "), self.how())
    }
}

/// Whether a test may say `needs_<name>`.
pub(crate) fn is_known(name: &str) -> bool {
    REQUIREMENTS.iter().any(|row| row.wanted_by == WantedBy::Tests && row.name == name)
}

/// `cargo xtask setup`.
pub(crate) fn setup() -> anyhow::Result<ExitCode> {
    let missing = provide()?;
    if missing.is_empty() {
        println!("Everything that the tests need is here.");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

/// Installs what is missing where that is possible, and says what is still missing and how to get it.
pub(crate) fn provide() -> anyhow::Result<Vec<&'static Requirement>> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(missing);
    }
    install(&missing)?;
    let still = self::missing();
    for row in &still {
        println!("missing: {}", row.why_not());
    }
    Ok(still)
}

/// The rows whose probe does not answer.
fn missing() -> Vec<&'static Requirement> {
    REQUIREMENTS.iter().filter(|row| !command::answers(row.probe)).collect()
}

/// Asks the package managers. That one of them fails is no error: the probes afterwards tell the truth.
fn install(rows: &[&Requirement]) -> anyhow::Result<()> {
    let (packages, components) = by_source(rows);
    if !components.is_empty() && command::answers(&["rustup", "--version"]) {
        let words = [&["component", "add"], components.as_slice()].concat();
        command::succeeds(&mut command::program("rustup", &words))?;
    }
    if !packages.is_empty() && is_root() && is_debian() {
        println!("installing {}", packages.join(", "));
        command::succeeds(&mut apt_get(&["-qq", "update"]))?;
        let words = [&["-qq", "install", "--yes", "--no-install-recommends"], packages.as_slice()].concat();
        command::succeeds(&mut apt_get(&words))?;
    }
    for row in rows {
        if let Source::Python(package) = &row.source
            && let Err(why) = package.install()
        {
            println!("{why}");
        }
    }
    Ok(())
}

/// The names of Debian packages and those of toolchain components.
fn by_source(rows: &[&Requirement]) -> (Vec<&'static str>, Vec<&'static str>) {
    let mut names = (Vec::new(), Vec::new());
    for row in rows {
        match &row.source {
            Source::Debian(package) => names.0.push(*package),
            Source::Rustup(component) => names.1.push(*component),
            // Debian splits it off from Python.
            Source::Python(_) if !command::answers(&["python3", "-c", "import venv, ensurepip"]) => {
                names.0.push("python3-venv");
            }
            Source::Python(_) | Source::Right(_) => {}
        }
    }
    names
}

/// A call of apt-get that asks no questions.
fn apt_get(words: &[&str]) -> std::process::Command {
    let mut command = command::program("apt-get", words);
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// Installing needs the superuser; we never call sudo by ourselves.
fn is_root() -> bool {
    command::output(&mut command::program("id", &["-u"])).is_ok_and(|id| id.trim() == "0")
}

/// Debian or a system that says it is like it.
fn is_debian() -> bool {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    says_debian(&release) && command::answers(&["apt-get", "--version"])
}

/// Reads `ID=` and `ID_LIKE=` of os-release.
fn says_debian(release: &str) -> bool {
    release
        .lines()
        .filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")))
        .any(|value| value.trim_matches('"').split(' ').any(|id| id == "debian"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_the_beginning_of_another() {
        for (index, one) in REQUIREMENTS.iter().enumerate() {
            for (other_index, other) in REQUIREMENTS.iter().enumerate() {
                let clash = index != other_index && other.name.starts_with(one.name);
                assert!(!clash, "needs_{} would also leave out needs_{}", one.name, other.name);
            }
        }
    }

    #[test]
    fn debian_and_its_children_are_recognised() {
        assert!(says_debian("NAME=\"Debian GNU/Linux\"\nID=debian\n"));
        assert!(says_debian("ID=ubuntu\nID_LIKE=debian\n"));
        assert!(says_debian("ID=pop\nID_LIKE=\"ubuntu debian\"\n"));
        assert!(!says_debian("ID=fedora\nNAME=\"not debian\"\n"));
    }

    #[test]
    fn tests_may_only_name_rows_for_tests() {
        assert!(is_known("php"));
        assert!(!is_known("clippy"));
        assert!(!is_known("perl"));
    }
}
