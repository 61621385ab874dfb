//! What a job costs the store in CPU time, behind a short and behind a long line.
//!
//! | `cargo run --release -p tagwerk-sqlite --example claim_cost --` | what is compared |
//! |---|---|
//! | `[ROWS…]` | lines of so many waiting jobs; 10^4 and 10^6 unless other numbers are given |
//! | `mixed` | 10^4 jobs alone, and beside everything that may stand in the way of a claim (`crowd.rs`) |
//! | `turns` | 10^5 plain jobs, and 10^5 jobs of 10^4 fair keys that take turns |
//! | `keys` | jobs of 5,000 ordering keys, each with several, against jobs without a key (`keys.rs`) |
//!
//! Lines print microseconds of the committer's thread per job for insert, claim and complete in transactions of 100 with
//! real commits. All stores are open at once and take turns, so that noise hits them alike; medians of rounds. `mixed` and
//! `keys` hold their figures against bounds and exit with 1 when one is missed.
#![expect(clippy::expect_used, reason = "an example may fail loudly")]

mod crowd;
#[path = "../../tests/it/engine.rs"]
mod engine;
mod keys;
mod line;
mod meter;
mod pages;
#[path = "../../tests/it/steps.rs"]
mod steps;

use std::process::ExitCode;

use line::Line;
use meter::{Verdicts, cpu_us, rss_mb};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is = |case: &str| arguments == [case];
    if is("keys") {
        return keys::compare();
    }
    if is("mixed") {
        return mixed();
    }
    if is("turns") {
        let mut lines = [Line::new("plain", 100_000), Line::of_keys("turns", 100_000, 10_000)];
        line::run(&mut lines);
        return ExitCode::SUCCESS;
    }
    let rows = arguments.iter().map(|n| n.parse().expect("a number of waiting jobs"));
    let rows: Vec<usize> = if arguments.is_empty() { vec![10_000, 1_000_000] } else { rows.collect() };
    let mut lines: Vec<Line> = rows.into_iter().map(|n| Line::new(&n.to_string(), n)).collect();
    line::run(&mut lines);
    reopen(lines);
    ExitCode::SUCCESS
}

/// The least part of the rate of plain jobs alone that is left beside a crowd.
const RATE_MIN: f64 = 0.8;
/// The most pages that a claim may read more.
const MORE_PAGES_MAX: f64 = 3.0;

fn mixed() -> ExitCode {
    let mut crowded = Line::new("mixed", 10_000);
    crowd::add(&mut crowded);
    let mut lines = vec![Line::new("plain", 10_000), crowded];
    line::run(&mut lines);
    let costs = |n: usize| (lines[0].cost(n), lines[1].cost(n));
    let mut verdicts = Verdicts::default();
    for (what, n) in [("claims of 100", line::CLAIM), ("claims of 1", line::CLAIM_OF_ONE)] {
        let (plain, mixed) = costs(n);
        verdicts.at_least(&format!("rate of {what}, mixed / plain"), plain / mixed, RATE_MIN);
    }
    let read: Vec<pages::Read> = lines.into_iter().map(pages::read).collect();
    println!("pages read a job, no page kept between two looks at it:");
    for (name, read) in ["plain", "mixed"].iter().zip(&read) {
        let pages::Read { look_for_one, claim_of_one, claim_of_many } = read;
        println!(
            "{name:>10}  finding 1: {look_for_one:.1}  claim of 1: {claim_of_one:.1}  claim of 100: {claim_of_many:.1}"
        );
    }
    let (plain, mixed) = (&read[0], &read[1]);
    let more = [
        ("finding a job", mixed.look_for_one - plain.look_for_one),
        ("a job claimed alone", mixed.claim_of_one - plain.claim_of_one),
        ("a job claimed with 99 others", mixed.claim_of_many - plain.claim_of_many),
    ];
    for (what, more) in more {
        verdicts.at_most(&format!("more pages read by {what}"), more, MORE_PAGES_MAX);
    }
    verdicts.print()
}

/// What it costs to close and to open the stores, and the memory that they take.
fn reopen(lines: Vec<Line>) {
    for line in lines {
        let (name, closed) = (line.name.clone(), line.close());
        let from = cpu_us();
        let store = closed.open();
        println!(
            "{name}: closing {:.1} ms, opening {:.1} ms of CPU",
            closed.cost_us / 1e3,
            (cpu_us() - from) / 1e3
        );
        drop(store);
    }
    println!("memory of all stores together: {} MB", rss_mb());
}
