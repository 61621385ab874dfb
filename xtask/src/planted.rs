//! `cargo xtask planted`: the simulator must find faults that are planted on purpose.
//!
//! Each file of `sim/planted/` is one fault: texts of the sources and what they are replaced by. The sources are copied
//! into a folder under `target/`, the copy is changed, the simulator is built there and runs its seeds until it finds
//! something. The copy without a fault must be clean first. The workspace itself is never changed.

mod copy;
mod fault;
mod hunt;

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Context;

use crate::{options, system};
use copy::Copy;
use fault::Fault;
use hunt::Hunt;

/// Where the faults are.
pub(crate) const FOLDER: &str = "sim/planted";

/// Seeds within which each fault has to be found.
const SEEDS: u128 = 200;

/// Plants the named faults, or all.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let options = options::parse(arguments, &["--seeds"])?;
    let seeds = options.numbers.first().copied().flatten().unwrap_or(SEEDS);
    let root = system::root();
    let faults = chosen(fault::read_all(&root.join(FOLDER))?, &options.words)?;
    let copy = Copy::of(&root)?;
    println!("==> without a fault");
    let clean = hunt::hunt(&copy, seeds)?;
    println!("    {}", clean.words());
    anyhow::ensure!(clean == Hunt::Clean, "without a planted fault nothing may be found");
    let mut rows = Vec::new();
    for fault in &faults {
        println!("==> {}: {}", fault.name, fault.what);
        let start = system::now();
        let hunt = match copy.plant(fault) {
            Ok(()) => hunt::hunt(&copy, seeds)?,
            Err(error) => Hunt::Broken(format!("{error:#}")),
        };
        copy.restore(fault)?;
        let seconds = system::seconds_since(start);
        println!("    {} ({seconds:.0} s)", hunt.words());
        rows.push(Row { fault, hunt, seconds });
    }
    print!("{}", table(&rows));
    let found = rows.iter().all(|row| row.hunt.is_found());
    Ok(if found { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The faults that were named; all if none was.
fn chosen(all: Vec<Fault>, names: &[String]) -> anyhow::Result<Vec<Fault>> {
    if names.is_empty() {
        return Ok(all);
    }
    let find = |name: &String| {
        let fault = all.iter().find(|fault| fault.name == *name).cloned();
        fault.with_context(|| format!("there is no {FOLDER}/{name}.toml"))
    };
    names.iter().map(find).collect()
}

/// One fault and what became of it.
struct Row<'a> {
    fault: &'a Fault,
    hunt: Hunt,
    seconds: f64,
}

fn table(rows: &[Row<'_>]) -> String {
    let mut text = format!("\n{:<34} {:>5}  {:<44} {:>7}\n", "fault", "seed", "found by", "seconds");
    for Row { fault, hunt, seconds } in rows {
        let (seed, rule) = match hunt {
            Hunt::Found { seed, rule } => (seed.to_string(), rule.clone()),
            Hunt::Clean => ("-".to_owned(), format!("NOT FOUND (once by: {})", fault.finds)),
            Hunt::Broken(_) => ("-".to_owned(), "BROKEN".to_owned()),
        };
        let _ = writeln!(text, "{:<34} {seed:>5}  {rule:<44} {seconds:>7.0}", fault.name);
    }
    let found = rows.iter().filter(|row| row.hunt.is_found()).count();
    let _ = writeln!(text, "{found} of {} planted faults were found.", rows.len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sources change and the faults have to follow: each text is there exactly once.
    #[test]
    fn every_planted_fault_applies() -> anyhow::Result<()> {
        let root = system::root();
        let faults = fault::read_all(&root.join(FOLDER))?;
        assert!(faults.len() >= 16, "only {} faults", faults.len());
        for fault in faults {
            fault.changed(|file| Ok(std::fs::read_to_string(root.join(file))?))?;
        }
        Ok(())
    }

    #[test]
    fn what_is_not_found_shows_in_the_table() {
        let fault = Fault { name: "lost".to_owned(), ..Fault::default() };
        let found = Hunt::Found { seed: 7, rule: "due".to_owned() };
        let rows = [
            Row { fault: &fault, hunt: found, seconds: 1.0 },
            Row { fault: &fault, hunt: Hunt::Clean, seconds: 2.0 },
        ];
        let text = table(&rows);
        assert!(text.contains("7  due") && text.contains("NOT FOUND"), "{text}");
        assert!(text.ends_with("1 of 2 planted faults were found.\n"), "{text}");
    }

    #[test]
    fn an_unknown_name_is_refused() {
        assert!(chosen(Vec::new(), &["nothing".to_owned()]).is_err());
    }
}
