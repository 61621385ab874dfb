//! What is measured with, and what figures are held against.

use std::process::ExitCode;

/// CPU time of this thread in microseconds.
pub(crate) fn cpu_us() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let ns = stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("a number");
    ns / 1_000.0
}

/// Bytes that this thread has read from files.
pub(crate) fn bytes_read() -> u64 {
    let io = std::fs::read_to_string("/proc/thread-self/io").expect("Linux");
    let line = io.lines().find_map(|line| line.strip_prefix("rchar: ")).expect("a line");
    line.parse().expect("a number")
}

/// Memory of this process in MB.
pub(crate) fn rss_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

pub(crate) fn to_f64(n: usize) -> f64 {
    f64::from(u32::try_from(n).expect("small"))
}

/// Figures with their bounds.
#[derive(Default)]
pub(crate) struct Verdicts {
    rows: Vec<(String, f64, String, bool)>,
}

impl Verdicts {
    pub(crate) fn at_least(&mut self, what: &str, seen: f64, least: f64) {
        self.rows.push((what.to_owned(), seen, format!(">= {least}"), seen >= least));
    }

    pub(crate) fn at_most(&mut self, what: &str, seen: f64, most: f64) {
        self.rows.push((what.to_owned(), seen, format!("<= {most}"), seen <= most));
    }

    pub(crate) fn print(&self) -> ExitCode {
        println!();
        for (what, seen, bound, holds) in &self.rows {
            println!("{what:<50} {seen:>6.2}  {bound:<7} {}", if *holds { "pass" } else { "FAIL" });
        }
        if self.rows.iter().all(|(.., holds)| *holds) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
