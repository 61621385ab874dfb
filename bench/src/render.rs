//! The report as a page: tables that say where Tagwerk is ahead and, marked, where it is not.

use std::fmt::Write as _;

use crate::measure::Measure;
use crate::report::{Cell, Report, Round, System};
use crate::subject::Kind;
use crate::targets;

/// Columns of the rates.
const RATES: [Measure; 5] =
    [Measure::Enqueue64, Measure::Enqueue512, Measure::Bulk, Measure::DrainOne, Measure::DrainBulk];

/// What stands where there is nothing.
const NOTHING: &str = "–";

/// The whole page.
pub(crate) fn markdown(report: &Report) -> String {
    let mut page = format!("# Tagwerk, its peers and its ceilings: {}\n\n", report.date);
    head(&mut page, report);
    rates(&mut page, report);
    ratios(&mut page, report);
    processor(&mut page, report);
    waits(&mut page, report);
    ceilings(&mut page, report);
    judged(&mut page, report);
    absent(&mut page, report);
    settings(&mut page, report);
    page
}

/// A table from its rows.
fn table(page: &mut String, heading: &[String], rows: &[Vec<String>]) {
    let mut line = |cells: &[String]| {
        page.push_str("| ");
        page.push_str(&cells.join(" | "));
        page.push_str(" |\n");
    };
    line(heading);
    line(&heading.iter().map(|_| "---".to_owned()).collect::<Vec<_>>());
    for row in rows {
        line(row);
    }
    page.push('\n');
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

fn headings(first: &str, measures: &[Measure]) -> Vec<String> {
    std::iter::once(first)
        .chain(measures.iter().map(|measure| measure.heading()))
        .map(str::to_owned)
        .collect()
}

fn head(page: &mut String, report: &Report) {
    let plan = &report.plan;
    let done =
        report.of(Kind::Product).flat_map(|own| own.cells.values()).map(|cell| cell.rounds.len()).max();
    let (done, seconds) = (done.unwrap_or(0), plan.seconds);
    let facts = report.machine.iter().map(|(name, value)| vec![name.clone(), value.clone()]);
    table(page, &words(&["machine", ""]), &facts.collect::<Vec<_>>());
    let _ = write!(
        page,
        "{done} rounds of {seconds} s a measure, {:.0} minutes in all. In a round each measure is taken of all systems in \
         turn; only the one that is measured runs, the others are frozen. Server, client and peers share the cores. Jobs \
         do nothing, payload 150 bytes, half with an idempotency key where the system has that notion. Figures are \
         medians of rounds, in parentheses the lowest and the highest; ratios are taken round by round. Compare within \
         this page only. **▲** marks where a peer is ahead of Tagwerk.\n\n",
        report.minutes
    );
}

/// Tagwerk and the peers, in the order of the report.
fn queues(report: &Report) -> impl Iterator<Item = &System> {
    report.of(Kind::Product).chain(report.of(Kind::Peer))
}

/// How many times as fast as this peer Tagwerk is.
fn lead(report: &Report, system: &System, measure: Measure) -> Option<f64> {
    if system.about.kind == Kind::Product {
        return None;
    }
    let name = system.about.name.as_str();
    if measure == Measure::Latency {
        let own = report.cell("tagwerk", measure)?.waits?;
        return Some(system.cells.get(&measure)?.waits?.p50_ms / own.p50_ms);
    }
    report.ratio(("tagwerk", measure), (name, measure))
}

fn is_ahead(report: &Report, system: &System, measure: Measure) -> bool {
    lead(report, system, measure).is_some_and(|lead| lead < 1.0)
}

fn rates(page: &mut String, report: &Report) {
    page.push_str("## Jobs a second\n\n");
    let row = |system: &System| {
        let cells = RATES.iter().map(|measure| {
            let shown = rate(system.cells.get(measure));
            if is_ahead(report, system, *measure) { format!("{shown} **▲**") } else { shown }
        });
        std::iter::once(system.about.name.clone()).chain(cells).collect()
    };
    table(page, &headings("", &RATES), &queues(report).map(row).collect::<Vec<_>>());
}

fn rate(cell: Option<&Cell>) -> String {
    let figures = cell.and_then(|cell| {
        let figure = |round: &Round| round.per_second;
        Some((cell.median(figure)?, cell.spread(figure)?))
    });
    match (figures, cell.and_then(|cell| cell.absent.as_ref())) {
        (Some((middle, (low, high))), _) => {
            format!("{} ({}–{})", thousands(middle), thousands(low), thousands(high))
        }
        (None, Some(_)) => "not offered".to_owned(),
        (None, None) => NOTHING.to_owned(),
    }
}

/// With commas.
fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn ratios(page: &mut String, report: &Report) {
    page.push_str(
        "## How many times as fast Tagwerk is\n\nFor the latency: how many times as long the peer takes.\n\n",
    );
    let measures: Vec<Measure> = RATES.iter().copied().chain([Measure::Latency]).collect();
    let row = |system: &System| {
        let cells = measures.iter().map(|measure| match lead(report, system, *measure) {
            Some(lead) if lead < 1.0 => format!("**{lead:.2} ▲ peer ahead**"),
            Some(lead) => format!("{lead:.2}"),
            None => NOTHING.to_owned(),
        });
        std::iter::once(system.about.name.clone()).chain(cells).collect()
    };
    table(page, &headings("", &measures), &report.of(Kind::Peer).map(row).collect::<Vec<_>>());
}

fn processor(page: &mut String, report: &Report) {
    page.push_str("## Microseconds of processor time for a job\n\nServer (all its processes) + client.\n\n");
    let own = |measure: Measure| report.cell("tagwerk", measure)?.median(|round| round.server_us);
    let row = |system: &System| {
        let cells = RATES.iter().map(|measure| {
            let cell = system.cells.get(measure);
            let middle = |figure: fn(&Round) -> f64| cell.and_then(|cell| cell.median(figure));
            match (middle(|round| round.server_us), middle(|round| round.client_us)) {
                (Some(server), Some(client)) => {
                    let is_peer = system.about.kind == Kind::Peer;
                    let mark = if is_peer && own(*measure).is_some_and(|own| server < own) {
                        " **▲**"
                    } else {
                        ""
                    };
                    format!("{server:.0} + {client:.0}{mark}")
                }
                _ => NOTHING.to_owned(),
            }
        });
        std::iter::once(system.about.name.clone()).chain(cells).collect()
    };
    table(page, &headings("", &RATES), &queues(report).map(row).collect::<Vec<_>>());
}

fn waits(page: &mut String, report: &Report) {
    page.push_str("## Milliseconds\n\nIdle: from the call that enqueues to the start at a consumer that waits, on an empty queue. In flight: how long a call that enqueues one job takes.\n\n");
    let heading =
        words(&["", "idle p50", "idle p99", "samples", "64 in flight p50 / p99", "512 in flight p50 / p99"]);
    let row = |system: &System| {
        let idle = system.cells.get(&Measure::Latency).and_then(|cell| cell.waits);
        let mark = if is_ahead(report, system, Measure::Latency) { " **▲**" } else { "" };
        let mut row = vec![system.about.name.clone()];
        row.push(idle.map_or(NOTHING.to_owned(), |waits| format!("{:.2}{mark}", waits.p50_ms)));
        row.push(idle.map_or(NOTHING.to_owned(), |waits| format!("{:.2}", waits.p99_ms)));
        row.push(idle.map_or(NOTHING.to_owned(), |waits| waits.samples.to_string()));
        for measure in [Measure::Enqueue64, Measure::Enqueue512] {
            let cell = system.cells.get(&measure);
            let middle = |figure: fn(&Round) -> Option<f64>| {
                cell.and_then(|cell| cell.median(|round| figure(round).unwrap_or_default()))
            };
            row.push(match (middle(|round| round.p50_ms), middle(|round| round.p99_ms)) {
                (Some(p50), Some(p99)) => format!("{p50:.1} / {p99:.1}"),
                _ => NOTHING.to_owned(),
            });
        }
        row
    };
    table(page, &heading, &queues(report).map(row).collect::<Vec<_>>());
}

fn ceilings(page: &mut String, report: &Report) {
    page.push_str("## Ceilings\n\n");
    let mut rows = Vec::new();
    for system in report.of(Kind::Ceiling) {
        for (measure, cell) in &system.cells {
            let waits = cell
                .waits
                .map_or(NOTHING.to_owned(), |waits| format!("{:.3} / {:.3}", waits.p50_ms, waits.p99_ms));
            let name = match system.about.name.as_str() {
                "echo" => "HTTP echo, ",
                "rows" => "rows of a job, ",
                _ => "",
            };
            rows.push(vec![format!("{name}{}", measure.heading()), rate(Some(cell)), waits]);
        }
    }
    table(page, &words(&["", "a second", "p50 / p99 ms"]), &rows);
    let own = [
        (Measure::Enqueue64, ("echo", Measure::Enqueue64)),
        (Measure::Enqueue512, ("echo", Measure::Enqueue512)),
        (Measure::Bulk, ("disk", Measure::Insert512)),
        (Measure::Bulk, ("rows", Measure::Insert512)),
        (Measure::DrainBulk, ("disk", Measure::Claim512)),
        (Measure::DrainBulk, ("rows", Measure::Claim512)),
    ];
    let row = |(measure, (name, other)): &(Measure, (&str, Measure))| {
        let ratio = report.ratio(("tagwerk", *measure), (name, *other));
        let shown = ratio.map_or(NOTHING.to_owned(), |ratio| format!("{ratio:.2}"));
        vec![measure.heading().to_owned(), format!("{name}: {}", other.heading()), shown]
    };
    table(page, &words(&["Tagwerk's", "as a share of", ""]), &own.iter().map(row).collect::<Vec<_>>());
    let turn = report.cell("tagwerk", Measure::DrainTurn);
    let _ = write!(page, "Tagwerk, {}: {} a second.\n\n", Measure::DrainTurn.heading(), rate(turn));
}

fn judged(page: &mut String, report: &Report) {
    page.push_str("## Targets\n\n");
    let rows = targets::judge(report).into_iter().map(|target| {
        let verdict = match target.reached {
            Some(true) => "pass",
            Some(false) => "**FAIL**",
            None => "not judged",
        };
        vec![target.name, target.threshold, target.seen, verdict.to_owned()]
    });
    table(page, &words(&["", "at least (latency: at most)", "seen", ""]), &rows.collect::<Vec<_>>());
}

fn absent(page: &mut String, report: &Report) {
    let mut lines = Vec::new();
    for (name, why) in &report.not_run {
        lines.push(format!("- {name}: **not run**: {}", why.replace('\n', " ")));
    }
    for system in queues(report) {
        for (measure, cell) in &system.cells {
            if let Some(why) = &cell.absent {
                lines.push(format!("- {}, {}: not offered: {why}", system.about.name, measure.heading()));
            }
        }
    }
    if !lines.is_empty() {
        let _ = write!(page, "## Not run, not offered\n\n{}\n\n", lines.join("\n"));
    }
}

fn settings(page: &mut String, report: &Report) {
    page.push_str("## Versions and settings\n\n");
    for System { about, cells } in &report.systems {
        let notes = cells.iter().filter_map(|(measure, cell)| {
            cell.note.as_ref().map(|note| format!("{}: {note}", measure.heading()))
        });
        let all: Vec<String> = about.settings.iter().cloned().chain(notes).collect();
        let _ = writeln!(page, "- **{}** ({}): {}", about.name, about.version, all.join("; "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::report::tests::cell;
    use crate::subject::About;
    use std::collections::BTreeMap;

    fn system(name: &str, kind: Kind, rate: f64) -> System {
        let about = About { name: name.to_owned(), kind, version: "1".to_owned(), settings: Vec::new() };
        let cells = BTreeMap::from([(Measure::Enqueue64, cell(&[rate, rate, rate]))]);
        System { about, cells }
    }

    fn cell_without(absent: Option<String>) -> Cell {
        let mut cell = Cell::default();
        cell.absent = absent;
        cell
    }

    fn page(peer: f64) -> anyhow::Result<String> {
        let mut systems = vec![system("tagwerk", Kind::Product, 1_000.0), system("rival", Kind::Peer, peer)];
        let why = Some("no such call".to_owned());
        systems[1].cells.insert(Measure::Bulk, cell_without(why));
        let not_run = vec![("other".to_owned(), "cannot be installed".to_owned())];
        let (date, machine) = (String::new(), Vec::new());
        Ok(markdown(&Report { date, minutes: 1.0, plan: Plan::parse(&[])?, machine, systems, not_run }))
    }

    #[test]
    fn a_peer_that_is_ahead_is_marked_and_one_that_is_behind_is_not() -> anyhow::Result<()> {
        let ahead = page(2_000.0)?;
        assert!(ahead.contains("| rival | 2,000 (2,000–2,000) **▲** |"), "{ahead}");
        assert!(ahead.contains("| rival | **0.50 ▲ peer ahead** |"), "{ahead}");
        let behind = page(500.0)?;
        assert!(behind.contains("| rival | 500 (500–500) |"), "{behind}");
        assert!(behind.contains("| rival | 2.00 |"), "{behind}");
        Ok(())
    }

    #[test]
    fn what_is_missing_is_said() -> anyhow::Result<()> {
        let page = page(1.0)?;
        assert!(page.contains("- other: **not run**: cannot be installed"), "{page}");
        assert!(page.contains("- rival, bulk enqueue: not offered: no such call"), "{page}");
        assert!(page.contains("not judged"), "{page}");
        Ok(())
    }

    #[test]
    fn numbers_have_commas() {
        assert_eq!([7.0, 999.0, 1_000.0, 1_234_567.4].map(thousands), ["7", "999", "1,000", "1,234,567"]);
    }
}
