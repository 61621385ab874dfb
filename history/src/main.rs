//! `tagwerk-history FILE`: checks a history that was kept. Exit code 0: explained, 1: contradictions, 2: no history.

use std::fs::File;
use std::io::BufReader;
use std::process::ExitCode;

use tagwerk_history::{History, check};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), None) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: tagwerk-history FILE");
        return ExitCode::from(2);
    };
    let read = File::open(&path).map_err(Into::into).and_then(|file| History::read(BufReader::new(file)));
    let history = match read {
        Ok(history) => history,
        Err(error) => {
            eprintln!("{path}: {error}");
            return ExitCode::from(2);
        }
    };
    let report = check(&history);
    for contradiction in &report.contradictions {
        println!("{contradiction}");
    }
    for undecided in &report.undecided {
        println!("not decided: {undecided}");
    }
    let (calls, parts) = (history.calls.len(), report.parts);
    println!(
        "{calls} calls in {parts} parts: {} contradictions, {} not decided",
        report.contradictions.len(),
        report.undecided.len()
    );
    if report.is_explained() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
