//! What a job costs the store in CPU time, behind a short and behind a long line.
//!
//! `cargo run --release -p tagwerk-sqlite --example claim_cost [-- ROWS…]` prints microseconds of the committer's thread
//! per job for insert, claim and complete in transactions of 100 with real commits, at 10^4 and 10^6 waiting jobs unless
//! other numbers are given. `mixed` instead of numbers: 10^4 against 10^4 beside 10^6 scheduled jobs, 10^5 more urgent ones
//! behind 10^3 full limits and 10^5 less urgent ones of 10^4 fair keys. All stores are open at once and take turns, so that noise hits them alike; medians of rounds.
#![expect(clippy::expect_used, reason = "an example may fail loudly")]

#[path = "../tests/it/steps.rs"]
mod steps;

use std::collections::BTreeMap;

use steps::{Draft, add, at, attempt, detail, inserts, job_of, put, settled, take, write};
use tagwerk_core::gate::LimitSettings;
use tagwerk_core::{Attempt, JobId, Status, Timestamp};
use tagwerk_engine::row::{Counter, JobRow, LimitRef, Special, Tally};
use tagwerk_engine::store::{SpecialName, Store as _, Tx};
use tagwerk_sqlite::{Options, SqliteStore};
use tempfile::TempDir;

const BATCH: usize = 100;
const ROUNDS: usize = 9;
const BATCHES_PER_ROUND: usize = 20;
const TYPES: [&str; 4] = ["mail", "invoice", "thumbnail", "sync"];
const PAYLOAD_BYTES: usize = 150;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut lines = if arguments == ["mixed"] {
        let mut crowded = Line::new(10_000);
        crowded.crowd();
        vec![Line::new(10_000), crowded]
    } else {
        let rows = arguments.iter().map(|n| n.parse().expect("a number of waiting jobs"));
        let rows: Vec<usize> = if arguments.is_empty() { vec![10_000, 1_000_000] } else { rows.collect() };
        rows.into_iter().map(Line::new).collect()
    };
    for _ in 0..ROUNDS {
        for line in &mut lines {
            line.round();
        }
    }
    println!("   waiting   insert    claim complete      all  claim of 1   (µs of CPU a job)");
    let sums: Vec<f64> = lines.iter().map(Line::print).collect();
    for (line, sum) in lines.iter().zip(&sums).skip(1) {
        println!("rate at {} / rate at {}: {:.2}", line.waiting, lines[0].waiting, sums[0] / sum);
    }
    for line in lines {
        let (path, from) = (line.folder.path().join("cost.db"), cpu_us());
        drop(line.store);
        let closed = cpu_us();
        let store = SqliteStore::open(&path, &options()).expect("it opens again");
        let opened = cpu_us();
        println!(
            "{}: closing {:.1} ms, opening {:.1} ms of CPU",
            line.waiting,
            (closed - from) / 1e3,
            (opened - closed) / 1e3
        );
        drop(store);
    }
    println!("memory of all stores together: {} MB", rss_mb());
}

fn options() -> Options {
    Options::new(Timestamp::EPOCH, [1; 32])
}

/// A store with a line of waiting jobs.
struct Line {
    waiting: usize,
    store: SqliteStore,
    now: i64,
    costs: [Vec<f64>; 4],
    folder: TempDir,
}

impl Line {
    fn new(waiting: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cost.db");
        let store = SqliteStore::open(&path, &options()).expect("a store");
        let mut line = Self { waiting, store, now: 0, costs: Default::default(), folder };
        let spent: f64 = (0..waiting / 1_000).map(|_| line.insert(1_000)).sum();
        println!("{waiting} jobs inserted by 1000: {:.2} µs each", spent / to_f64(waiting));
        line
    }

    /// Everything that may stand in the way of a claim.
    fn crowd(&mut self) {
        let far = at(i64::from(u32::MAX) * 1_000);
        let closed = LimitSettings { max_running: Some(0), rate: None };
        write(&mut self.store, |tx| tx.put_limit("closed", Some(&closed)).expect("a limit"));
        for n in 0..1_000 {
            self.add_special(&vec![Draft { due: far, ..job_of(TYPES[n % 4]) }; 1_000], None);
        }
        for n in 0..1_000 {
            let limits = vec![LimitRef::parse(&format!("closed:{n}"))];
            let urgent = Draft { priority: 20, ..job_of(TYPES[n % 4]) };
            self.add_special(&vec![urgent; 100], Some(&Special { limits, fair_key: None }));
        }
        for n in 0..10_000 {
            let low = Draft { priority: 0, ..job_of(TYPES[n % 4]) };
            self.add_special(
                &vec![low; 10],
                Some(&Special { limits: Vec::new(), fair_key: Some(n.to_string()) }),
            );
        }
    }

    fn add_special(&mut self, drafts: &[Draft], special: Option<&Special>) {
        write(&mut self.store, |tx| {
            let mut jobs = inserts(tx, drafts);
            if let Some(special) = special {
                let name = SpecialName { queue: &drafts[0].queue, kind: &drafts[0].kind, special };
                let lane = tx.intern_special(&[name]).expect("a lane").remove(0);
                for insert in &mut jobs {
                    insert.row.lane = lane.clone();
                }
            }
            tx.insert(&jobs).expect("jobs are inserted");
        });
    }

    fn round(&mut self) {
        let mut spent = [0.0; 4];
        for _ in 0..BATCHES_PER_ROUND {
            self.store.housekeeping().expect("housekeeping");
            spent[0] += self.insert(BATCH) + self.insert(BATCH);
            let (cost, running) = self.claim(&[BATCH]);
            spent[1] += cost;
            spent[2] += self.complete(&running);
            let (cost, running) = self.claim(&[1; BATCH]);
            spent[3] += cost;
            self.complete(&running);
        }
        let jobs = to_f64(BATCH * BATCHES_PER_ROUND);
        let jobs = [2.0 * jobs, jobs, jobs, jobs];
        for ((costs, spent), jobs) in self.costs.iter_mut().zip(spent).zip(jobs) {
            costs.push(spent / jobs);
        }
    }

    fn print(&self) -> f64 {
        let [insert, claim, complete, single] = self.costs.each_ref().map(|costs| median(costs));
        let sum = insert + claim + complete;
        println!("{:>10} {insert:>8.2} {claim:>8.2} {complete:>8.2} {sum:>8.2} {single:>11.2}", self.waiting);
        sum
    }

    fn insert(&mut self, n: usize) -> f64 {
        self.now += 1;
        let payload = format!("{{\"order\":\"{}\"}}", "x".repeat(PAYLOAD_BYTES - 12));
        let draft = |n: usize| Draft { due: at(self.now), detail: detail(&payload), ..job_of(TYPES[n % 4]) };
        let drafts: Vec<Draft> = (0..n).map(draft).collect();
        let from = cpu_us();
        write(&mut self.store, |tx| {
            let rows = add(tx, &drafts);
            count(tx, &rows, &[Counter::Enqueued, Counter::Pending]);
        });
        cpu_us() - from
    }

    /// Claims of these sizes that share a commit.
    fn claim(&mut self, sizes: &[usize]) -> (f64, Vec<JobRow>) {
        let now = at(self.now);
        let from = cpu_us();
        let running = write(&mut self.store, |tx| {
            let rows: Vec<JobRow> = sizes.iter().flat_map(|n| take(tx, now, *n)).collect();
            count(tx, &rows, &[Counter::Running, Counter::Claims]);
            rows
        });
        assert_eq!(running.len(), BATCH);
        (cpu_us() - from, running)
    }

    fn complete(&mut self, running: &[JobRow]) -> f64 {
        let now = at(self.now);
        let ids: Vec<JobId> = running.iter().map(|row| row.job.id).collect();
        let from = cpu_us();
        write(&mut self.store, |tx| {
            let rows: Vec<JobRow> = tx.load(&ids).expect("rows").into_iter().flatten().flatten().collect();
            let changes: Vec<(JobRow, JobRow)> =
                rows.iter().map(|row| (row.clone(), settled(row, Status::Completed, now))).collect();
            put(tx, &changes);
            let attempts: Vec<(JobId, Attempt)> =
                rows.iter().map(|row| (row.job.id, attempt(row, now))).collect();
            tx.put_attempts(&attempts).expect("attempts");
            count(tx, &rows, &[Counter::Completed, Counter::Completions]);
        });
        cpu_us() - from
    }
}

fn count(tx: &mut dyn Tx, rows: &[JobRow], counters: &[Counter]) {
    let mut deltas: BTreeMap<_, Tally> = BTreeMap::new();
    for row in rows {
        let tally = deltas.entry(row.lane.class).or_default();
        for counter in counters {
            tally.add(*counter, 1);
        }
    }
    tx.add_ledger(&deltas.into_iter().collect::<Vec<_>>()).expect("ledger");
}

/// CPU time of this thread in microseconds.
fn cpu_us() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let ns = stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("a number");
    ns / 1_000.0
}

/// Memory of this process in MB.
fn rss_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn to_f64(n: usize) -> f64 {
    f64::from(u32::try_from(n).expect("small"))
}
