//! The command line.

use anyhow::Context;
use tagwerk_sim::{Echo, StoreKind};

/// What `--help` prints.
pub(crate) const HELP: &str = "\
Runs the simulator: the real engine under scripted clients, faults and time; every answer is predicted.

  --seeds N      how many seeds (1000)
  --from S       the first of them (1)
  --seed S       only this one
  --minutes M    as many as pass in this time, instead of a number
  --store KIND   memory, nodes, sqlite or all (all: memory and nodes in turn, every eighth seed on all three)
  --failures N   stop after so many failures (1)
  --trace        print everything that happens; with --seed
  --help         this text

Exit code: 0 nothing found, 1 something found, 2 wrong usage.
";

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Amount {
    Seeds(u64),
    Minutes(f64),
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) amount: Amount,
    pub(crate) from: u64,
    /// `None`: all.
    pub(crate) store: Option<StoreKind>,
    pub(crate) failures: usize,
    pub(crate) echo: Echo,
}

impl Options {
    /// `None` when help is wanted.
    pub(crate) fn parse(arguments: &[String]) -> anyhow::Result<Option<Self>> {
        let mut options =
            Self { amount: Amount::Seeds(1_000), from: 1, store: None, failures: 1, echo: Echo::Off };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("`{word}` needs a value"));
            match word.as_str() {
                "--seeds" => options.amount = Amount::Seeds(number(value()?)?),
                "--from" => options.from = number(value()?)?,
                "--seed" => {
                    options.from = number(value()?)?;
                    options.amount = Amount::Seeds(1);
                }
                "--minutes" => options.amount = Amount::Minutes(number(value()?)?),
                "--store" => options.store = store(value()?)?,
                "--failures" => options.failures = number(value()?)?,
                "--trace" => options.echo = Echo::On,
                "--help" | "-h" => return Ok(None),
                unknown => anyhow::bail!("there is no option `{unknown}`\n\n{HELP}"),
            }
        }
        Ok(Some(options))
    }
}

fn number<T: std::str::FromStr>(text: &str) -> anyhow::Result<T> {
    text.parse().ok().with_context(|| format!("`{text}` is not a number that fits"))
}

fn store(name: &str) -> anyhow::Result<Option<StoreKind>> {
    if name == "all" {
        return Ok(None);
    }
    let kind = StoreKind::from_name(name);
    kind.map(Some).with_context(|| format!("`{name}` is none of memory, nodes, sqlite, all"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> anyhow::Result<Option<Options>> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read() -> anyhow::Result<()> {
        let options = parsed("--seed 7 --store nodes --trace")?.context("options")?;
        assert_eq!((options.from, options.amount, options.echo), (7, Amount::Seeds(1), Echo::On));
        assert_eq!(options.store, Some(StoreKind::Nodes));
        assert_eq!(parsed("--minutes 1.5")?.context("options")?.amount, Amount::Minutes(1.5));
        assert_eq!(parsed("--help")?, None);
        Ok(())
    }

    #[test]
    fn nonsense_is_refused() {
        for line in ["--seeds", "--seeds many", "--store disk", "--fast", "7"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
