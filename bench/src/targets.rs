//! What is to be reached, each as a threshold reckoned from what was measured in the same run.

use crate::measure::Measure;
use crate::report::{Report, Waits, median};

/// A target, its threshold in this run, and whether it was reached.
pub(crate) struct Target {
    pub(crate) name: String,
    /// The rule, with its figures.
    pub(crate) threshold: String,
    pub(crate) seen: String,
    /// `None`: something that it needs was not measured.
    pub(crate) reached: Option<bool>,
}

/// All targets of the SQLite store that this run can judge.
pub(crate) fn judge(report: &Report) -> Vec<Target> {
    vec![
        enqueue(report, (Measure::Enqueue64, 64.0)),
        enqueue(report, (Measure::Enqueue512, 512.0)),
        share(report, (Measure::Bulk, "disk", Measure::Insert512), (0.5, "raw SQLite, 512 rows a commit")),
        share(
            report,
            (Measure::Bulk, "rows", Measure::Insert512),
            (0.5, "raw SQLite with the rows of a job, 512 jobs a commit"),
        ),
        share(
            report,
            (Measure::DrainBulk, "disk", Measure::Claim512),
            (0.4, "raw SQLite, claim + complete at 512"),
        ),
        share(
            report,
            (Measure::DrainBulk, "rows", Measure::Claim512),
            (0.4, "raw SQLite with the rows of a job, claim + complete at 512"),
        ),
        share(report, (Measure::DrainOne, "bullmq", Measure::DrainOne), (2.0, "BullMQ with AOF always")),
        share(
            report,
            (Measure::DrainTurn, "bullmq", Measure::DrainOne),
            (2.0, "BullMQ, whose worker also reports and fetches in one call"),
        ),
        latency(report, Part::Middle),
        latency(report, Part::Tail),
    ]
}

/// At least min(half the echo route, three quarters of what the disk allows), judged round by round.
fn enqueue(report: &Report, what: (Measure, f64)) -> Target {
    let (measure, in_flight) = what;
    let mut shares = Vec::new();
    let mut echoes = Vec::new();
    let mut disks = Vec::new();
    let own = report.cell("tagwerk", measure);
    let echo = report.cell("echo", measure);
    for (round, own) in own.iter().flat_map(|cell| &cell.rounds) {
        let echo = echo.and_then(|cell| cell.rounds.get(round));
        if let (Some(echo), Some(fsync_ms)) = (echo, own.fsync_ms) {
            let (half, disk) = (0.5 * echo.per_second, 0.75 * in_flight / (fsync_ms / 1e3));
            echoes.push(half);
            disks.push(disk);
            shares.push(own.per_second / half.min(disk));
        }
    }
    let figure = |values: Vec<f64>| median(values).map_or("?".to_owned(), |value| format!("{value:.0}"));
    let reached = median(shares.clone());
    Target {
        name: measure.heading().to_owned(),
        threshold: format!(
            "min(0.5 × echo = {}/s, 0.75 × {in_flight} ÷ fsync p50 = {}/s)",
            figure(echoes),
            figure(disks)
        ),
        seen: reached.map_or("?".to_owned(), |share| format!("{share:.2} of it")),
        reached: reached.map(|share| share >= 1.0),
    }
}

/// At least that share of another system's rate.
fn share(report: &Report, what: (Measure, &str, Measure), than: (f64, &str)) -> Target {
    let (measure, other, others) = what;
    let (least, words) = than;
    let ratio = report.ratio(("tagwerk", measure), (other, others));
    let rate = report.cell(other, others).and_then(|cell| cell.median(|round| round.per_second));
    Target {
        name: measure.heading().to_owned(),
        threshold: rate.map_or_else(
            || format!("{least} × {words}, which was not measured"),
            |rate| format!("{least} × {words} = {:.0}/s", least * rate),
        ),
        seen: ratio.map_or("?".to_owned(), |ratio| format!("{ratio:.2} ×")),
        reached: ratio.map(|ratio| ratio >= least),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Middle,
    Tail,
}

/// At most that much longer than an fsync of the same moment, in a file whose blocks are there. Appending is only shown.
fn latency(report: &Report, part: Part) -> Target {
    let (factor, words) = if part == Part::Middle { (1.3, "p50") } else { (3.0, "p99") };
    let figure = |waits: Waits| if part == Part::Middle { waits.p50_ms } else { waits.p99_ms };
    let idle = report.cell("tagwerk", Measure::Latency);
    let own = idle.and_then(|cell| cell.waits).map(figure);
    let fsync = idle.and_then(|cell| cell.fsyncs).map(figure);
    let append = report.cell("disk", Measure::FsyncAppend).and_then(|cell| cell.waits).map(figure);
    let shown = |value: Option<f64>| value.map_or("?".to_owned(), |value| format!("{value:.2} ms"));
    Target {
        name: format!("idle latency, {words}"),
        threshold: format!(
            "{factor} × fsync {words} = {} (fsync {}, with an append {})",
            shown(fsync.map(|fsync| factor * fsync)),
            shown(fsync),
            shown(append)
        ),
        seen: shown(own),
        reached: own.zip(fsync).map(|(own, fsync)| own <= factor * fsync),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::report::{System, tests::cell};
    use crate::subject::{About, Kind};

    fn report(rates: &[(&str, Measure, &[f64])]) -> anyhow::Result<Report> {
        let mut systems: Vec<System> = Vec::new();
        for (name, measure, rates) in rates {
            let at = systems.iter().position(|system| system.about.name == *name);
            let at = at.unwrap_or_else(|| {
                let (version, settings) = (String::new(), Vec::new());
                let about = About { name: (*name).to_owned(), kind: Kind::Ceiling, version, settings };
                systems.push(System { about, cells: std::collections::BTreeMap::default() });
                systems.len() - 1
            });
            let mut cell = cell(rates);
            cell.rounds.values_mut().for_each(|round| round.fsync_ms = Some(1.0));
            systems[at].cells.insert(*measure, cell);
        }
        let (date, machine, not_run) = (String::new(), Vec::new(), Vec::new());
        Ok(Report { date, minutes: 0.0, plan: Plan::parse(&[])?, machine, systems, not_run })
    }

    #[test]
    fn the_lower_ceiling_decides() -> anyhow::Result<()> {
        let disk = 0.75 * 64.0 / 1e-3;
        for (own, echo, reached) in [
            (disk + 1.0, 1e6, true),
            (disk - 1.0, 1e6, false),
            (5_001.0, 10_000.0, true),
            (4_999.0, 10_000.0, false),
        ] {
            let report = report(&[
                ("tagwerk", Measure::Enqueue64, &[own, own, own]),
                ("echo", Measure::Enqueue64, &[echo, echo, echo]),
            ])?;
            assert_eq!(enqueue(&report, (Measure::Enqueue64, 64.0)).reached, Some(reached), "{own} {echo}");
        }
        Ok(())
    }

    #[test]
    fn ratios_are_of_the_same_round() -> anyhow::Result<()> {
        // The machine slows down from round to round, and Tagwerk is always twice as fast.
        let report = report(&[
            ("tagwerk", Measure::DrainOne, &[800.0, 400.0, 200.0]),
            ("bullmq", Measure::DrainOne, &[400.0, 200.0, 100.0]),
        ])?;
        let target = share(&report, (Measure::DrainOne, "bullmq", Measure::DrainOne), (2.0, "BullMQ"));
        assert_eq!(target.reached, Some(true));
        Ok(())
    }

    #[test]
    fn both_ceilings_of_sqlite_are_judged() -> anyhow::Result<()> {
        let report = report(&[
            ("tagwerk", Measure::Bulk, &[300.0]),
            ("tagwerk", Measure::DrainBulk, &[90.0]),
            ("disk", Measure::Insert512, &[700.0]),
            ("disk", Measure::Claim512, &[400.0]),
            ("rows", Measure::Insert512, &[500.0]),
            ("rows", Measure::Claim512, &[200.0]),
        ])?;
        let judged = judge(&report);
        let rows = judged.iter().filter_map(|target| Some((target.threshold.as_str(), target.reached?)));
        let expected = [
            ("0.5 × raw SQLite, 512 rows a commit = 350/s", false),
            ("0.5 × raw SQLite with the rows of a job, 512 jobs a commit = 250/s", true),
            ("0.4 × raw SQLite, claim + complete at 512 = 160/s", false),
            ("0.4 × raw SQLite with the rows of a job, claim + complete at 512 = 80/s", true),
        ];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
        Ok(())
    }

    #[test]
    fn what_was_not_measured_is_not_judged() -> anyhow::Result<()> {
        let report = report(&[("tagwerk", Measure::DrainOne, &[800.0])])?;
        assert!(judge(&report).iter().all(|target| target.reached.is_none()));
        Ok(())
    }
}
