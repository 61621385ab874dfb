//! The run: rounds, in each round all measures, in each measure all systems in turn, one at a time.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::driver::Outcome;
use crate::machine;
use crate::measure::Measure;
use crate::plan::Plan;
use crate::report::{Cell, Report, System, values};
use crate::start::{OWN, PEERS, Start};
use crate::subject::{Place, Reset, Subject};
use crate::system;

/// How long fsyncs before and after a measure that is compared with them are looked at.
const FSYNC_TIME: Duration = Duration::from_millis(250);

/// How long the idle latency is looked at, unless measures are so short that figures are not wanted.
const LATENCY_TIME: Duration = Duration::from_secs(5);
const LONG_ENOUGH: Duration = Duration::from_millis(1_500);

/// How long a measure of the round before the first one takes: programs that are compiled while they run get warm.
const WARM_TIME: Duration = Duration::from_millis(700);

/// Jobs that are put in for a drain at most.
const FILL_MAX: u64 = 500_000;

/// Measures of Tagwerk that are compared with fsyncs of the same moment.
const FSYNC_BESIDE: [Measure; 3] = [Measure::Latency, Measure::Enqueue64, Measure::Enqueue512];

/// Everything that runs, and what was measured.
struct Run<'a> {
    place: &'a Place,
    plan: &'a Plan,
    subjects: Vec<(Start, Subject)>,
    report: Report,
    /// Jobs per second at the last time.
    rates: HashMap<(String, Measure), u64>,
}

/// Runs the plan.
pub(crate) fn run(place: &Place, plan: &Plan) -> anyhow::Result<Report> {
    let start = system::now();
    anyhow::ensure!(!machine::is_memory(&place.folder), "target/ is in memory: an fsync there means nothing");
    let report = Report {
        date: system::date("%Y-%m-%d %H:%M UTC"),
        minutes: 0.0,
        plan: plan.clone(),
        machine: machine::facts(&place.root, &place.folder),
        systems: Vec::new(),
        not_run: Vec::new(),
    };
    let mut run = Run { place, plan, subjects: Vec::new(), report, rates: HashMap::new() };
    run.start_all()?;
    run.rounds(start)?;
    run.report.minutes = system::seconds_since(start) / 60.0;
    Ok(run.report)
}

impl Run<'_> {
    /// Starts everything. A peer that does not start is noted with its reason.
    fn start_all(&mut self) -> anyhow::Result<()> {
        for (name, start) in OWN {
            println!("starting {name}");
            self.add(start, start(self.place)?);
        }
        for (name, start) in PEERS {
            if !self.plan.peers.iter().any(|peer| peer == name) {
                self.report.not_run.push((name.to_owned(), "left out by --only".to_owned()));
                continue;
            }
            println!("starting {name}");
            match start(self.place) {
                Ok(subject) => self.add(start, subject),
                Err(error) => self.drop_out(name, &format!("{error:#}")),
            }
        }
        Ok(())
    }

    fn add(&mut self, start: Start, subject: Subject) {
        subject.freeze();
        self.report.systems.push(System { about: subject.about.clone(), cells: BTreeMap::new() });
        self.subjects.push((start, subject));
    }

    fn drop_out(&mut self, name: &str, why: &str) {
        println!("{name} is out: {why}");
        self.report.not_run.push((name.to_owned(), why.to_owned()));
        self.subjects.retain(|(_, subject)| subject.about.name != name);
    }

    /// A round to get warm, then those that count, as many as there is time for.
    fn rounds(&mut self, start: Instant) -> anyhow::Result<()> {
        println!("getting warm");
        self.round(0)?;
        for round in 1..=self.plan.rounds {
            let began = system::now();
            println!("round {round} of {}", self.plan.rounds);
            self.round(round)?;
            let (took, so_far) = (system::seconds_since(began), system::seconds_since(start));
            if round < self.plan.rounds && so_far + took > self.plan.most_seconds {
                println!("there is no time for another round");
                break;
            }
        }
        Ok(())
    }

    fn round(&mut self, round: u32) -> anyhow::Result<()> {
        let mut names: Vec<String> =
            self.subjects.iter().map(|(_, subject)| subject.about.name.clone()).collect();
        // Nobody is always the first.
        let first = round as usize % names.len();
        names.rotate_left(first);
        for name in &names {
            self.guarded(name, Self::reset)?;
        }
        for measure in Measure::ALL {
            for name in &names {
                self.guarded(name, |run, at| {
                    let takes_part = run.subjects[at].1.measures.contains(&measure);
                    if takes_part { run.measure(at, (measure, round)) } else { Ok(()) }
                })?;
            }
        }
        Ok(())
    }

    /// Acts on a system that still takes part. A peer that fails drops out; for Tagwerk and the ceilings it is the end.
    fn guarded(
        &mut self,
        name: &str,
        act: impl Fn(&mut Self, usize) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let at = self.subjects.iter().position(|(_, subject)| subject.about.name == name);
        let Some(at) = at else { return Ok(()) };
        if let Err(error) = act(self, at) {
            let is_peer = PEERS.iter().any(|(peer, _)| *peer == name);
            anyhow::ensure!(is_peer && !self.place.roster.is_ending(), error.context(name.to_owned()));
            self.drop_out(name, &format!("it failed: {error:#}"));
        }
        Ok(())
    }

    fn reset(&mut self, at: usize) -> anyhow::Result<()> {
        if self.subjects[at].1.reset == Reset::Ask {
            let subject = &mut self.subjects[at].1;
            subject.thaw();
            subject.empty()?;
            subject.freeze();
            return Ok(());
        }
        // The old one must have let go of its folder before the new one gets it.
        let (start, old) = self.subjects.remove(at);
        drop(old);
        let fresh = start(self.place)?;
        fresh.freeze();
        self.subjects.insert(at, (start, fresh));
        Ok(())
    }

    /// One measure of one system.
    fn measure(&mut self, at: usize, what: (Measure, u32)) -> anyhow::Result<()> {
        let (measure, round) = what;
        let name = self.subjects[at].1.about.name.clone();
        if self.report.cell(&name, measure).is_some_and(|cell| cell.absent.is_some()) {
            return Ok(());
        }
        let time = self.time(measure, round);
        if measure.drains() {
            self.line_up(at, (measure, time))?;
        }
        let with_fsync = round > 0 && name == "tagwerk" && FSYNC_BESIDE.contains(&measure);
        let mut fsyncs = if with_fsync { self.fsyncs_now()? } else { Vec::new() };
        let subject = &mut self.subjects[at].1;
        subject.thaw();
        let outcome = subject.driver.ask(&measure.command(time, subject.pending), &subject.servers)?;
        subject.freeze();
        if with_fsync {
            fsyncs.extend(self.fsyncs_now()?);
        }
        let subject = &mut self.subjects[at].1;
        let system = self.report.systems.iter_mut().find(|system| system.about.name == name);
        let Some(system) = system else { return Ok(()) };
        let cell = system.cells.entry(measure).or_default();
        match outcome {
            Outcome::Absent(why) => cell.absent = Some(why),
            Outcome::Failed(what) => anyhow::bail!("{}: {what}", measure.heading()),
            Outcome::Done(answer) => {
                let total = answer.value["total"].as_u64().unwrap_or_default();
                if measure.drains() {
                    subject.pending = subject.pending.saturating_sub(total);
                } else if measure != Measure::Latency {
                    subject.pending += total;
                }
                let mut warm = Cell::default();
                let rate = if round == 0 { &mut warm } else { &mut *cell }.keep(round, &answer);
                cell.keep_fsyncs(round, fsyncs);
                println!("  {:<38} {name:<16} {rate:>9.0}/s", measure.heading());
                let jobs = answer.value["jobs"].as_u64().unwrap_or_default();
                let took = Duration::from_secs_f64(answer.value["seconds"].as_f64().unwrap_or_default());
                let rate = jobs * 1_000 / u64::try_from(took.as_millis())?.max(1);
                self.rates.insert((name, measure), rate);
            }
        }
        Ok(())
    }

    /// Lets as many jobs wait as the drain will take at its speed, and a third more: a longer line would slow down those
    /// whose claims get dearer with its length.
    fn line_up(&mut self, at: usize, what: (Measure, Duration)) -> anyhow::Result<()> {
        let (measure, time) = what;
        let name = self.subjects[at].1.about.name.clone();
        let rate = self.rates.get(&(name, measure)).copied().unwrap_or(2_000);
        let wanted = (rate * u64::try_from(time.as_millis())? * 4 / 3_000).clamp(1_000, FILL_MAX);
        if self.subjects[at].1.pending > wanted * 3 / 2 {
            self.reset(at)?;
        }
        let subject = &mut self.subjects[at].1;
        subject.thaw();
        subject.fill(wanted)?;
        subject.freeze();
        Ok(())
    }

    fn time(&self, measure: Measure, round: u32) -> Duration {
        let full = self.plan.time();
        match measure {
            _ if round == 0 => WARM_TIME.min(full),
            // Some systems serve twenty a second, and three hundred samples are wanted.
            Measure::Latency if full >= LONG_ENOUGH => full.max(LATENCY_TIME),
            Measure::FsyncAppend | Measure::FsyncOverwrite => full / 4,
            Measure::Insert1 | Measure::Insert64 | Measure::Insert512 | Measure::Claim512 => full / 2,
            _ => full,
        }
    }

    /// How long an fsync takes at this moment, in the way that is quicker on most disks.
    fn fsyncs_now(&mut self) -> anyhow::Result<Vec<f64>> {
        let disk = self.subjects.iter_mut().find(|(_, subject)| subject.about.name == "disk");
        let Some((_, disk)) = disk else { return Ok(Vec::new()) };
        disk.thaw();
        let order = json!({"do": "fsync_overwrite", "ms": FSYNC_TIME.as_millis()});
        let outcome = disk.driver.ask(&order, &[])?;
        disk.freeze();
        let Outcome::Done(answer) = outcome else { return Ok(Vec::new()) };
        Ok(values(&answer.value["waits_ms"]))
    }
}
