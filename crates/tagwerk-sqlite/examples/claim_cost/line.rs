//! A store with a line of waiting jobs, and what a life costs at the end of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tagwerk_core::{Attempt, JobId, Status, Timestamp};
use tagwerk_engine::row::{Counter, JobRow, Special, Tally};
use tagwerk_engine::store::{SpecialName, Store as _, Tx};
use tagwerk_sqlite::{Options, SqliteStore};
use tempfile::TempDir;

use crate::meter::{cpu_us, median, to_f64};
use crate::steps::{Draft, add, at, attempt, detail, inserts, job_of, put, settled, take, write};

pub(crate) const BATCH: usize = 100;
const ROUNDS: usize = 9;
const BATCHES_PER_ROUND: usize = 20;
pub(crate) const TYPES: [&str; 4] = ["mail", "invoice", "thumbnail", "sync"];
const PAYLOAD_BYTES: usize = 150;

/// Which costs of a line are what.
const INSERT: usize = 0;
pub(crate) const CLAIM: usize = 1;
const COMPLETE: usize = 2;
pub(crate) const CLAIM_OF_ONE: usize = 3;

/// All lines take turns; then what was seen is printed.
pub(crate) fn run(lines: &mut [Line]) {
    for _ in 0..ROUNDS {
        for line in &mut *lines {
            line.round();
        }
    }
    println!("      line   insert    claim complete      all  claim of 1   (µs of CPU a job)");
    let sums: Vec<f64> = lines.iter().map(Line::print).collect();
    for (line, sum) in lines.iter().zip(&sums).skip(1) {
        println!("rate at {} / rate at {}: {:.2}", line.name, lines[0].name, sums[0] / sum);
    }
}

fn options() -> Options {
    Options::new(Timestamp::EPOCH, [1; 32])
}

/// See the module.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) store: SqliteStore,
    now: i64,
    fair_keys: usize,
    made: usize,
    costs: [Vec<f64>; 4],
    folder: TempDir,
}

/// A store that was closed.
pub(crate) struct ClosedLine {
    path: PathBuf,
    _folder: TempDir,
    /// The present of its jobs.
    pub(crate) now: Timestamp,
    /// What closing it took.
    pub(crate) cost_us: f64,
}

impl ClosedLine {
    pub(crate) fn open(&self) -> SqliteStore {
        self.open_with(&options())
    }

    /// Opened so that no page is kept when nobody looks at it.
    pub(crate) fn open_without_cache(&self) -> SqliteStore {
        self.open_with(&Options { cache_bytes: 0, ..options() })
    }

    fn open_with(&self, options: &Options) -> SqliteStore {
        SqliteStore::open(&self.path, options).expect("it opens again")
    }
}

impl Line {
    pub(crate) fn new(name: &str, waiting: usize) -> Self {
        Self::of_keys(name, waiting, 0)
    }

    /// A line whose jobs have so many fair keys, in turn.
    pub(crate) fn of_keys(name: &str, waiting: usize, fair_keys: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cost.db");
        let store = SqliteStore::open(&path, &options()).expect("a store");
        let (name, costs) = (name.to_owned(), Default::default());
        let mut line = Self { name, store, now: 0, fair_keys, made: 0, costs, folder };
        let spent: f64 = (0..waiting / 1_000).map(|_| line.insert(1_000)).sum();
        println!("{waiting} jobs inserted by 1000: {:.2} µs each", spent / to_f64(waiting));
        line
    }

    pub(crate) fn close(self) -> ClosedLine {
        let (path, now, from) = (self.folder.path().join("cost.db"), at(self.now), cpu_us());
        drop(self.store);
        ClosedLine { path, _folder: self.folder, now, cost_us: cpu_us() - from }
    }

    /// The median of one of the costs.
    pub(crate) fn cost(&self, which: usize) -> f64 {
        median(&self.costs[which])
    }

    fn round(&mut self) {
        let mut spent = [0.0; 4];
        for _ in 0..BATCHES_PER_ROUND {
            self.store.housekeeping().expect("housekeeping");
            spent[INSERT] += self.insert(BATCH) + self.insert(BATCH);
            let (cost, running) = self.claim(&[BATCH]);
            spent[CLAIM] += cost;
            spent[COMPLETE] += self.complete(&running);
            let (cost, running) = self.claim(&[1; BATCH]);
            spent[CLAIM_OF_ONE] += cost;
            self.complete(&running);
        }
        let jobs = to_f64(BATCH * BATCHES_PER_ROUND);
        let jobs = [2.0 * jobs, jobs, jobs, jobs];
        for ((costs, spent), jobs) in self.costs.iter_mut().zip(spent).zip(jobs) {
            costs.push(spent / jobs);
        }
    }

    fn print(&self) -> f64 {
        let (insert, claim, complete) = (self.cost(INSERT), self.cost(CLAIM), self.cost(COMPLETE));
        let (sum, single) = (insert + claim + complete, self.cost(CLAIM_OF_ONE));
        println!("{:>10} {insert:>8.2} {claim:>8.2} {complete:>8.2} {sum:>8.2} {single:>11.2}", self.name);
        sum
    }

    fn insert(&mut self, n: usize) -> f64 {
        self.now += 1;
        let payload = format!("{{\"order\":\"{}\"}}", "x".repeat(PAYLOAD_BYTES - 12));
        let draft = |n: usize| Draft { due: at(self.now), detail: detail(&payload), ..job_of(TYPES[n % 4]) };
        let drafts: Vec<Draft> = (0..n).map(draft).collect();
        let keys: Vec<Special> = match self.fair_keys {
            0 => Vec::new(),
            keys => (self.made..self.made + n).map(|n| fair((n % keys).to_string())).collect(),
        };
        self.made += n;
        let from = cpu_us();
        write(&mut self.store, |tx| {
            let rows = if keys.is_empty() { add(tx, &drafts) } else { add_fair(tx, &drafts, &keys) };
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

/// A fair key.
pub(crate) fn fair(key: String) -> Special {
    Special { limits: Vec::new(), fair_key: Some(key) }
}

fn add_fair(tx: &mut dyn Tx, drafts: &[Draft], keys: &[Special]) -> Vec<JobRow> {
    let mut jobs = inserts(tx, drafts);
    let name = |(draft, special)| {
        let Draft { queue, kind, .. }: &Draft = draft;
        SpecialName { queue, kind, special, space: None }
    };
    let names: Vec<SpecialName<'_>> = drafts.iter().zip(keys).map(name).collect();
    let lanes = tx.intern_special(&names).expect("lanes");
    for (insert, lane) in jobs.iter_mut().zip(lanes) {
        insert.row.lane = lane;
    }
    tx.insert(&jobs).expect("jobs are inserted");
    jobs.into_iter().map(|job| job.row).collect()
}

/// Counts rows in the ledger.
pub(crate) fn count(tx: &mut dyn Tx, rows: &[JobRow], counters: &[Counter]) {
    let mut deltas: BTreeMap<_, Tally> = BTreeMap::new();
    for row in rows {
        let tally = deltas.entry(row.lane.class).or_default();
        for counter in counters {
            tally.add(*counter, 1);
        }
    }
    tx.add_ledger(&deltas.into_iter().collect::<Vec<_>>()).expect("ledger");
}
