//! `cargo xtask fuzz`: the fuzz targets of `fuzz/`, each for a bounded time.
//!
//! They need a nightly toolchain. Without one their corpus is still replayed by an ordinary test (`fuzz/README.md`).

use std::process::ExitCode;

use crate::{command, options, system, tool};

const TOOL: tool::Crate = tool::Crate { name: "cargo-fuzz", version: "0.13.2" };

/// How long each target runs unless told otherwise.
const SECONDS: u128 = 60;

/// Runs the named targets, or all of them.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let options = options::parse(arguments, &["--seconds"])?;
    let seconds = options.numbers[0].unwrap_or(SECONDS);
    let targets = chosen(&all()?, &options.words)?;
    if !command::answers(NIGHTLY) {
        return Ok(tool::not_run("fuzz", "there is no nightly toolchain: rustup toolchain install nightly"));
    }
    let program = match TOOL.provide() {
        Ok(program) => program.display().to_string(),
        Err(why) => return Ok(tool::not_run("fuzz", &why)),
    };
    let mut found = Vec::new();
    for target in &targets {
        println!("\n==> fuzz {target}: {seconds} s");
        let mut call = command::program(&program, &["run", target]);
        // The cargo that started us is a stable one, and it has told so.
        call.env_remove("CARGO")
            .env("RUSTUP_TOOLCHAIN", "nightly")
            .env("CARGO_TARGET_DIR", system::root().join("target/fuzz"));
        // What is new goes beside the build; the committed corpus is only read.
        let fresh = system::root().join("target/fuzz/corpus").join(target);
        std::fs::create_dir_all(&fresh)?;
        call.arg(&fresh).arg(system::root().join("fuzz/corpus").join(target)).arg("--");
        call.args([&format!("-max_total_time={seconds}"), "-timeout=10", "-rss_limit_mb=2048"]);
        let words = system::root().join("fuzz/dictionaries").join(format!("{target}.dict"));
        if words.is_file() {
            call.arg(format!("-dict={}", words.display()));
        }
        if !command::succeeds(&mut tool::polite(call))? {
            found.push(target.clone());
        }
    }
    if found.is_empty() {
        println!("\n{} targets ran for {seconds} s each and found nothing.", targets.len());
        return Ok(ExitCode::SUCCESS);
    }
    println!("\nFAILED: {}. The input is in fuzz/artifacts; make it a file of the corpus.", found.join(", "));
    Ok(ExitCode::FAILURE)
}

/// A toolchain that rustup manages.
const NIGHTLY: &[&str] = &["rustup", "run", "nightly", "cargo", "--version"];

/// Every target, by the names of their files.
fn all() -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(system::root().join("fuzz/targets"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".rs").map(ToOwned::to_owned));
    }
    names.sort();
    Ok(names)
}

/// The named ones; all when none is named.
fn chosen(all: &[String], named: &[String]) -> anyhow::Result<Vec<String>> {
    for name in named {
        anyhow::ensure!(all.contains(name), "no target `{name}`: there are {}", all.join(", "));
    }
    Ok(if named.is_empty() { all.to_vec() } else { named.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_chosen_by_name() -> anyhow::Result<()> {
        let all = ["config".to_owned(), "door".to_owned()];
        assert_eq!(chosen(&all, &[])?, all);
        assert_eq!(chosen(&all, &["door".to_owned()])?, ["door"]);
        assert!(chosen(&all, &["window".to_owned()]).is_err());
        Ok(())
    }

    #[test]
    fn every_target_has_a_corpus_and_is_built() -> anyhow::Result<()> {
        let manifest = std::fs::read_to_string(system::root().join("fuzz/Cargo.toml"))?;
        for target in all()? {
            assert!(manifest.contains(&format!("name = \"{target}\"")), "{target}");
            let corpus = system::root().join("fuzz/corpus").join(&target);
            assert!(std::fs::read_dir(&corpus)?.count() >= 3, "{}", corpus.display());
        }
        Ok(())
    }
}
