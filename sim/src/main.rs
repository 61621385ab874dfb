//! `tagwerk-sim`: runs seeds on all cores and says what they found.

mod options;
mod system;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tagwerk_sim::{Echo, Report, StoreKind, Tally};

use options::{Amount, HELP, Options};
use system::Watch;

/// Failures that are shown in full; more are only counted.
const SHOWN: usize = 3;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match Options::parse(&arguments) {
        Ok(None) => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        Ok(Some(options)) => run(&options),
        Err(error) => {
            eprintln!("tagwerk-sim: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// What all threads add to.
#[derive(Default)]
struct Sum {
    tally: Tally,
    failures: Vec<Report>,
}

fn run(options: &Options) -> ExitCode {
    let watch = Watch::start();
    let (next, runs) = (AtomicU64::new(options.from), AtomicU64::new(0));
    let stop = AtomicBool::new(false);
    let sum = Mutex::new(Sum::default());
    std::thread::scope(|scope| {
        for _ in 0..system::cores().min(options.most_threads()) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let over = match options.amount {
                        Amount::Seeds(n) => seed >= options.from.saturating_add(n),
                        Amount::Minutes(minutes) => watch.seconds() >= minutes * 60.0,
                    };
                    if over {
                        return;
                    }
                    for store in options.stores_of(seed) {
                        let report = tagwerk_sim::run(seed, store, options.echo);
                        runs.fetch_add(1, Ordering::Relaxed);
                        note(&sum, report, options, &stop);
                    }
                }
            });
        }
    });
    let sum = sum.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    conclude(&sum, runs.into_inner(), &watch)
}

fn note(sum: &Mutex<Sum>, report: Report, options: &Options, stop: &AtomicBool) {
    let mut sum = sum.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    sum.tally.merge(&report.tally);
    if options.echo == Echo::On {
        println!("trace hash {}", report.hash);
    }
    if let Some(complaint) = report.complaint() {
        if sum.failures.len() < SHOWN {
            println!("{complaint}");
        }
        sum.failures.push(report);
        if sum.failures.len() >= options.failures {
            stop.store(true, Ordering::Relaxed);
        }
    }
}

fn conclude(sum: &Sum, runs: u64, watch: &Watch) -> ExitCode {
    println!("{}", sum.tally.table());
    let seconds = watch.seconds();
    let calls = sum.tally.sum("calls");
    println!(
        "{runs} runs in {seconds:.1} s, {calls} calls, {} faults, {} refusals of {} kinds, {} failed.",
        sum.tally.sum("faults") + sum.tally.sum("network"),
        sum.tally.sum("refusals"),
        sum.tally.names("refusals"),
        sum.failures.len()
    );
    if sum.failures.is_empty() {
        return ExitCode::SUCCESS;
    }
    let seeds: Vec<String> = sum
        .failures
        .iter()
        .take(50)
        .map(|report| format!("{} {}", report.seed, report.store.name()))
        .collect();
    println!("failed: {}", seeds.join(", "));
    ExitCode::FAILURE
}

impl Options {
    /// On which stores a seed runs. All of them would make SQLite eat nearly all the time, so it takes its turn.
    fn stores_of(&self, seed: u64) -> Vec<StoreKind> {
        match self.store {
            Some(store) => vec![store],
            None if seed.is_multiple_of(8) => StoreKind::ALL.to_vec(),
            None => vec![if seed % 2 == 1 { StoreKind::Memory } else { StoreKind::Nodes }],
        }
    }

    /// One seed needs one thread.
    const fn most_threads(&self) -> usize {
        match self.amount {
            Amount::Seeds(1) => 1,
            Amount::Seeds(_) | Amount::Minutes(_) => usize::MAX,
        }
    }
}
