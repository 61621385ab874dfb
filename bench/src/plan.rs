//! How long, how often, and what beside Tagwerk.

use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::start::PEERS;

/// What `tagwerk-bench help` prints.
pub(crate) const HELP: &str = "\
cargo xtask bench [--quick] [--only NAME,…]
    measures the ceilings, Tagwerk and the peers in turn, prints the tables, keeps them in bench/results
    NAME: beanstalkd, bullmq, graphile-worker, pg-boss, rabbitmq, or none; Tagwerk and the ceilings are always measured
    --rounds N, --seconds S    instead of 5 rounds of 4 s (--quick: 3 rounds of 1.5 s)
    --no-results               prints only
cargo xtask bench scale [--jobs N] [--scheduled N]
    Tagwerk with N jobs waiting (1,000,000) against 10,000, and with scheduled ones: rate, memory, file, start
";

/// The plan of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// Rounds that count.
    pub(crate) rounds: u32,
    /// Length of one measure.
    pub(crate) seconds: f64,
    /// No new round begins when it would end after this many seconds.
    pub(crate) most_seconds: f64,
    /// Names of peers.
    pub(crate) peers: Vec<String>,
    /// Whether the results are kept.
    pub(crate) keep: bool,
}

impl Plan {
    fn full() -> Self {
        let peers = PEERS.iter().map(|(name, _)| (*name).to_owned()).collect();
        Self { rounds: 5, seconds: 4.0, most_seconds: 24.0 * 60.0, peers, keep: true }
    }

    /// Reads the options.
    pub(crate) fn parse(words: &[String]) -> anyhow::Result<Self> {
        let mut plan = Self::full();
        let mut words = words.iter();
        let (mut rounds, mut seconds) = (None, None);
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("`{word}` wants a value"));
            match word.as_str() {
                "--quick" => plan = Self { rounds: 3, seconds: 1.5, most_seconds: 7.5 * 60.0, ..plan },
                "--only" => plan.peers = names(value()?)?,
                "--rounds" => rounds = Some(value()?.parse().context("`--rounds` wants a number")?),
                "--seconds" => seconds = Some(value()?.parse().context("`--seconds` wants a number")?),
                "--no-results" => plan.keep = false,
                unknown => anyhow::bail!("unknown option `{unknown}`\n\n{HELP}"),
            }
        }
        plan.rounds = rounds.unwrap_or(plan.rounds);
        plan.seconds = seconds.unwrap_or(plan.seconds);
        anyhow::ensure!(plan.rounds > 0 && plan.seconds >= 0.2, "at least one round of 0.2 s");
        Ok(plan)
    }

    /// How long a measure takes.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

/// Names of peers; an unknown one is an error.
fn names(list: &str) -> anyhow::Result<Vec<String>> {
    let names: Vec<String> = list.split(',').filter(|name| *name != "none").map(str::to_owned).collect();
    for name in &names {
        let known = PEERS.iter().any(|(peer, _)| peer == name);
        anyhow::ensure!(known, "there is no peer `{name}`\n\n{HELP}");
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> anyhow::Result<Plan> {
        Plan::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read() -> anyhow::Result<()> {
        assert_eq!(parsed("")?, Plan::full());
        let plan = parsed("--rounds 2 --quick --only bullmq,pg-boss --no-results")?;
        let peers = vec!["bullmq".to_owned(), "pg-boss".to_owned()];
        assert_eq!(plan, Plan { rounds: 2, seconds: 1.5, most_seconds: 450.0, peers, keep: false });
        assert_eq!(parsed("--only none")?.peers, Vec::<String>::new());
        Ok(())
    }

    #[test]
    fn nonsense_is_refused() {
        for line in ["--only", "--only sidekiq", "--rounds 0", "--rounds x", "--seconds 0", "--fast", "7"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
