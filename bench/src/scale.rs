//! Tagwerk with very many jobs waiting against Tagwerk with few, in one run.
//!
//! Three servers take turns, the others frozen: few jobs waiting, many waiting, few waiting beside many that are
//! scheduled. A step drains a fixed number in bulk and puts as many back, so that the lines keep their length; only the
//! draining is measured. Then memory, the size of the file, and how long a start takes after a clean end and after a
//! kill.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::driver::{Driver, Outcome};
use crate::machine;
use crate::plan::HELP;
use crate::processes::{Process, memory_kb};
use crate::report::{median, to_f64};
use crate::start::serve;
use crate::subject::Place;
use crate::system;

/// Jobs of the short line.
const FEW: u64 = 10_000;

/// Jobs of a step.
const STEP: u64 = 5_000;

/// Steps of each line that are measured, and those before that get it warm.
const STEPS: usize = 24;
const WARM_STEPS: usize = 3;

/// Jobs of one order to fill.
const FILL: u64 = 500_000;

/// Starts that are measured of each kind.
const STARTS: usize = 3;

/// A day, so that nothing that is scheduled becomes due.
const LATER_SECONDS: u64 = 86_400;

/// How many jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    jobs: u64,
    scheduled: u64,
}

impl Plan {
    /// Reads the options.
    pub(crate) fn parse(words: &[String]) -> anyhow::Result<Self> {
        let mut plan = Self { jobs: 1_000_000, scheduled: 1_000_000 };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let target = match word.as_str() {
                "--jobs" => &mut plan.jobs,
                "--scheduled" => &mut plan.scheduled,
                unknown => anyhow::bail!("unknown option `{unknown}`\n\n{HELP}"),
            };
            let value = words.next().with_context(|| format!("`{word}` wants a number"))?;
            *target =
                value.replace(['_', ','], "").parse().with_context(|| format!("`{value}` is no number"))?;
        }
        anyhow::ensure!(plan.jobs >= FEW && plan.scheduled >= STEP, "that is not many");
        Ok(plan)
    }
}

/// A server with its line of jobs.
struct Line {
    name: String,
    folder: PathBuf,
    driver: Driver,
    server: Vec<Process>,
    cpu_us: Vec<f64>,
    per_second: Vec<f64>,
}

/// What was seen of a line.
#[derive(Debug, Serialize)]
struct Seen {
    name: String,
    server_us_a_job: f64,
    per_second: f64,
    rss_mb: f64,
    peak_mb: f64,
    file_mb: f64,
}

/// What was seen.
#[derive(Debug, Serialize)]
struct Report {
    date: String,
    plan: Plan,
    machine: Vec<(String, String)>,
    fill_seconds: f64,
    lines: Vec<Seen>,
    /// Rate at many by rate at few, by processor time, and by the clock.
    ratios: Vec<(String, f64, f64)>,
    start_after_end_ms: Vec<f64>,
    start_after_kill_ms: Vec<f64>,
    rss_after_start_mb: f64,
}

/// Runs the plan, prints and keeps what was seen.
pub(crate) fn run(place: &Place, plan: &Plan) -> anyhow::Result<()> {
    anyhow::ensure!(!machine::is_memory(&place.folder), "target/ is in memory: nothing to compare with");
    let machine = machine::facts(&place.root, &place.folder);
    let began = system::now();
    let mut lines = vec![
        Line::open(place, "few")?.filled((FEW, 0))?,
        Line::open(place, "many")?.filled((plan.jobs, 0))?,
        Line::open(place, "scheduled")?.filled((FEW, 0))?.filled((plan.scheduled, LATER_SECONDS))?,
    ];
    let fill_seconds = system::seconds_since(began);
    for step in 0..WARM_STEPS + STEPS {
        for line in &mut lines {
            line.step(if step < WARM_STEPS { Step::Warm } else { Step::Counts })?;
        }
    }
    let seen: Vec<Seen> = lines.iter().map(Line::seen).collect();
    let ratios = lines[1..].iter().map(|line| compare(&lines[0], line)).collect();
    let many = lines.remove(1);
    drop(lines);
    let (start_after_end_ms, start_after_kill_ms, rss_after_start_mb) = starts(place, many)?;
    let report = Report {
        date: system::date("%Y-%m-%d %H:%M UTC"),
        plan: plan.clone(),
        machine,
        fill_seconds,
        lines: seen,
        ratios,
        start_after_end_ms,
        start_after_kill_ms,
        rss_after_start_mb,
    };
    let text = markdown(&report);
    println!("\n{text}");
    crate::keep(place, "-scale", (&serde_json::to_string_pretty(&report)?, &text))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Warm,
    Counts,
}

impl Line {
    fn open(place: &Place, name: &str) -> anyhow::Result<Self> {
        let folder = place.fresh(name)?;
        let (server, address) = serve(place, &folder)?;
        let driver = place.drive("tagwerk", &address)?;
        let (cpu_us, per_second) = (Vec::new(), Vec::new());
        let line = Self { name: name.to_owned(), folder, driver, server: vec![server], cpu_us, per_second };
        line.rest();
        Ok(line)
    }

    fn rest(&self) {
        self.server.iter().for_each(Process::freeze);
    }

    fn go_on(&self) {
        self.server.iter().for_each(Process::thaw);
    }

    /// With that many more jobs, later ones if so.
    fn filled(mut self, what: (u64, u64)) -> anyhow::Result<Self> {
        let (jobs, delay_seconds) = what;
        self.go_on();
        let mut left = jobs;
        while left > 0 {
            let part = left.min(FILL);
            let order = json!({"do": "fill", "jobs": part, "delay_seconds": delay_seconds});
            let total = self.ask(&order)?.0.max(1);
            left = left.saturating_sub(total);
            println!("{}: {} of {jobs} jobs are in", self.name, jobs - left);
        }
        self.rest();
        Ok(self)
    }

    /// Jobs, seconds, and processor time of the server.
    fn ask(&mut self, order: &serde_json::Value) -> anyhow::Result<(u64, f64, u64)> {
        match self.driver.ask(order, &self.server)? {
            Outcome::Done(answer) => {
                let total = answer.value["total"].as_u64().unwrap_or_default();
                Ok((total, answer.value["seconds"].as_f64().unwrap_or_default(), answer.server_us))
            }
            Outcome::Absent(what) | Outcome::Failed(what) => anyhow::bail!("{}: {what}", self.name),
        }
    }

    /// Takes some out and puts as many back.
    fn step(&mut self, step: Step) -> anyhow::Result<()> {
        self.go_on();
        let drain = json!({"do": "drain_bulk", "ms": 30_000, "batch": 100, "jobs": STEP});
        let (jobs, seconds, us) = self.ask(&drain)?;
        anyhow::ensure!(jobs == STEP, "{}: {jobs} jobs instead of {STEP}", self.name);
        self.ask(&json!({"do": "fill", "jobs": STEP}))?;
        self.rest();
        if step == Step::Counts {
            self.cpu_us.push(to_f64(us) / to_f64(jobs));
            self.per_second.push(to_f64(jobs) / seconds);
        }
        Ok(())
    }

    /// The mean of the processor times: one of them alone is counted in hundredths of a second.
    fn mean_us(&self) -> f64 {
        self.cpu_us.iter().sum::<f64>() / to_f64(self.cpu_us.len().max(1) as u64)
    }

    fn seen(&self) -> Seen {
        let memory =
            |field| self.server.first().and_then(|server| memory_kb(server.pid(), field)).unwrap_or(0);
        Seen {
            name: self.name.clone(),
            server_us_a_job: self.mean_us(),
            per_second: median(self.per_second.clone()).unwrap_or_default(),
            rss_mb: to_f64(memory("VmRSS")) / 1024.0,
            peak_mb: to_f64(memory("VmHWM")) / 1024.0,
            file_mb: to_f64(size(&self.folder)) / (1024.0 * 1024.0),
        }
    }
}

/// How fast claim and completion are there, compared with here.
fn compare(few: &Line, many: &Line) -> (String, f64, f64) {
    let clock = many.per_second.iter().zip(&few.per_second).map(|(many, few)| many / few).collect();
    (many.name.clone(), few.mean_us() / many.mean_us(), median(clock).unwrap_or_default())
}

/// Bytes of all files.
fn size(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

/// Starts the server on that store again and again, after a clean end and after a kill.
fn starts(place: &Place, many: Line) -> anyhow::Result<(Vec<f64>, Vec<f64>, f64)> {
    let Line { folder, driver, server, .. } = many;
    drop(driver);
    drop(server);
    let (mut after_end, mut after_kill) = (Vec::new(), Vec::new());
    let mut rss_mb = 0.0;
    for _ in 0..STARTS {
        let (server, address, ms) = start(place, &folder)?;
        after_end.push(ms);
        rss_mb = to_f64(memory_kb(server.pid(), "VmRSS").unwrap_or_default()) / 1024.0;
        // Something is under way when it is killed.
        let mut driver = place.drive("tagwerk", &address)?;
        driver.ask(&json!({"do": "fill", "jobs": STEP}), &[])?;
        let mut server = server.ended_by(Signal::KILL);
        server.signal(Signal::KILL);
        anyhow::ensure!(server.wait_end(), "a killed server goes on");
        drop((driver, server));
        let (server, _, ms) = start(place, &folder)?;
        after_kill.push(ms);
        drop(server);
    }
    Ok((after_end, after_kill, rss_mb))
}

/// A server and the milliseconds until it said that it was ready.
fn start(place: &Place, folder: &Path) -> anyhow::Result<(Process, String, f64)> {
    let began = system::now();
    let (server, address) = serve(place, folder)?;
    let ready = || {
        use std::io::{Read as _, Write as _};
        let mut answer = [0; 12];
        let asked = std::net::TcpStream::connect(&address).and_then(|mut stream| {
            stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")?;
            stream.read_exact(&mut answer)
        });
        asked.is_ok() && answer.ends_with(b" 200")
    };
    system::wait_until("being ready", Duration::from_mins(2), ready)?;
    Ok((server, address, system::seconds_since(began) * 1e3))
}

fn markdown(report: &Report) -> String {
    let Plan { jobs, scheduled } = report.plan;
    let mut page = format!("# Tagwerk with many jobs: {}\n\n", report.date);
    for (name, value) in &report.machine {
        let _ = writeln!(page, "- {name}: {value}");
    }
    let _ = write!(
        page,
        "\nfew: {FEW} jobs waiting; many: {jobs}; scheduled: {FEW} waiting beside {scheduled} that are scheduled. {STEPS} \
         steps of {STEP} jobs drained by 100 over 4 connections, in turn. All were filled in {:.0} s.\n\n",
        report.fill_seconds
    );
    page.push_str(
        "| line | server µs a job (claim + complete) | jobs a second | RSS MB | peak MB | files MB |\n",
    );
    page.push_str("|---|---|---|---|---|---|\n");
    for Seen { name, server_us_a_job, per_second, rss_mb, peak_mb, file_mb } in &report.lines {
        let _ = writeln!(
            page,
            "| {name} | {server_us_a_job:.1} | {per_second:.0} | {rss_mb:.0} | {peak_mb:.0} | {file_mb:.0} |"
        );
    }
    page.push_str("\n| target | seen | |\n|---|---|---|\n");
    let verdict = |good: bool| if good { "pass" } else { "**FAIL**" };
    for (name, cpu, clock) in &report.ratios {
        let _ = writeln!(
            page,
            "| claim rate, {name} ÷ few ≥ 0.8 | {cpu:.2} by processor time, {clock:.2} by the clock | {} |",
            verdict(*cpu >= 0.8)
        );
    }
    let peak = report.lines.iter().map(|line| line.peak_mb).fold(0.0, f64::max);
    let _ = writeln!(page, "| memory < 150 MB | peak {peak:.0} MB | {} |", verdict(peak < 150.0));
    for (name, times) in
        [("a clean end", &report.start_after_end_ms), ("a kill", &report.start_after_kill_ms)]
    {
        let middle = median(times.clone()).unwrap_or_default();
        let all = times.iter().map(|ms| format!("{ms:.0}")).collect::<Vec<_>>().join(", ");
        let _ =
            writeln!(page, "| start to ready after {name} < 1 s | {all} ms | {} |", verdict(middle < 1e3));
    }
    let _ = writeln!(page, "\nRSS right after a start: {:.0} MB.", report.rss_after_start_mb);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_have_separators() -> anyhow::Result<()> {
        let words = ["--jobs", "10_000_000", "--scheduled", "20000"].map(str::to_owned);
        assert_eq!(Plan::parse(&words)?, Plan { jobs: 10_000_000, scheduled: 20_000 });
        Ok(())
    }

    #[test]
    fn too_few_prove_nothing() {
        assert!(Plan::parse(&["--jobs".to_owned(), "10".to_owned()]).is_err());
    }
}
