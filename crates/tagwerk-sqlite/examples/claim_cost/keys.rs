//! What an ordering key costs, and whether many keys in parallel cost each other anything.
//!
//! Four engines are given the same number of jobs: plain ones; jobs that each have a key of their own; 5,000 keys with four
//! jobs each; and the same in portions of 500 keys, each drained before the next comes. Rounds of the keys follow each other,
//! and the store is drained as a worker with batches of 100 does it: every call completes what it holds and claims anew. As
//! long as 100 keys have jobs, each claim must be given 100.
//!
//! Keys that stood in each other's way would show as claims that come back short, or as jobs of 5,000 keys that cost more
//! than those of 500. Against a job with a key of its own they cost one turn more: the next job of the key is looked up and
//! its row written once more.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use tagwerk_engine::command::{BulkMode, Claimed, Enqueue, EnqueueJob, Work};
use tagwerk_engine::committer::Committer;
use tagwerk_engine::message::Message;
use tagwerk_engine::row::Ordering;
use tagwerk_engine::testing::clock::ManualClock;
use tempfile::TempDir;

use crate::engine::{self, answered, claim, completion};
use crate::meter::{Verdicts, cpu_us, median, to_f64};

const KEYS: usize = 5_000;
const OF_EACH_KEY: usize = 4;
const JOBS: usize = KEYS * OF_EACH_KEY;
const BATCH: usize = 100;
const ROUNDS: usize = 5;
/// Keys of a portion.
const FEW_KEYS: usize = 500;
/// The least part of the rate of 500 keys that 5,000 keys are drained at. It would be 1 on a machine without noise.
const RATE_MIN: f64 = 0.9;

/// Which key the jobs have.
#[derive(Clone, Copy, Debug)]
enum Keys {
    None,
    Own,
    /// So many.
    Shared(usize),
}

impl Keys {
    /// How many jobs stand in the store at once.
    const fn portion(self) -> usize {
        match self {
            Self::None | Self::Own => JOBS,
            Self::Shared(keys) => keys * OF_EACH_KEY,
        }
    }

    fn name(self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Own => "own".to_owned(),
            Self::Shared(keys) => keys.to_string(),
        }
    }
}

/// See the module.
pub(crate) fn compare() -> ExitCode {
    let mut lines = [Keys::None, Keys::Own, Keys::Shared(FEW_KEYS), Keys::Shared(KEYS)].map(Line::new);
    for _ in 0..ROUNDS {
        for line in &mut lines {
            line.round();
        }
    }
    println!("      keys  enqueue    drain   (µs of CPU a job, {JOBS} jobs, claims of {BATCH})");
    for line in &lines {
        println!(
            "{:>10} {:>8.2} {:>8.2}",
            line.keys.name(),
            median(&line.enqueue_us),
            median(&line.drain_us)
        );
    }
    let [none, own, few, many] = lines.each_ref().map(|line| median(&line.drain_us));
    println!("drained, a job with a key of its own costs {:.2} of a plain one", own / none);
    println!("drained, a job of {KEYS} keys costs {:.2} of a plain one", many / none);
    let mut verdicts = Verdicts::default();
    verdicts.at_least("drained, rate of 5,000 keys / of 500 keys", few / many, RATE_MIN);
    let short: usize = lines.iter().map(|line| line.short).sum();
    verdicts.at_most("claims that were given less than they could be", to_f64(short), 0.0);
    let misplaced: usize = lines.iter().map(|line| line.misplaced).sum();
    verdicts.at_most("jobs handed out before their turn", to_f64(misplaced), 0.0);
    verdicts.print()
}

struct Line {
    keys: Keys,
    committer: Committer,
    clock: ManualClock,
    made: usize,
    enqueue_us: Vec<f64>,
    drain_us: Vec<f64>,
    /// Claims that were given less than they could be.
    short: usize,
    /// Jobs that were handed out before their turn.
    misplaced: usize,
    _folder: TempDir,
}

impl Line {
    fn new(keys: Keys) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (committer, clock) = engine::committer(&folder.path().join("keys.db"));
        let (enqueue_us, drain_us) = (Vec::new(), Vec::new());
        Self {
            keys,
            committer,
            clock,
            made: 0,
            enqueue_us,
            drain_us,
            short: 0,
            misplaced: 0,
            _folder: folder,
        }
    }

    fn job(&mut self) -> EnqueueJob {
        let key = match self.keys {
            Keys::None => None,
            Keys::Own => Some(self.made),
            Keys::Shared(keys) => Some(self.made % keys),
        };
        self.made += 1;
        let ordering =
            key.map(|key| Box::new(Ordering { key: format!("key-{key}").into(), on_head_failure: None }));
        EnqueueJob { ordering, ..engine::job() }
    }

    fn step(&mut self, message: Message) -> f64 {
        self.clock.advance(1);
        let from = cpu_us();
        self.committer.step(vec![message]);
        cpu_us() - from
    }

    fn round(&mut self) {
        let (mut enqueue, mut drain) = (0.0, 0.0);
        let portion = self.keys.portion();
        for _ in 0..JOBS / portion {
            enqueue += self.fill(portion);
            drain += self.drain(portion);
        }
        self.enqueue_us.push(enqueue / to_f64(JOBS));
        self.drain_us.push(drain / to_f64(JOBS));
    }

    fn fill(&mut self, jobs: usize) -> f64 {
        let mut spent = 0.0;
        for _ in 0..jobs / BATCH {
            let jobs = (0..BATCH).map(|_| self.job()).collect();
            let (sender, answer) = sync_channel(1);
            let enqueue = Enqueue { jobs, mode: BulkMode::Each, reach: None };
            spent += self.step(Message::Enqueue(enqueue, Box::new(sender)));
            assert!(answered(&answer).iter().all(Result::is_ok));
        }
        spent
    }

    fn drain(&mut self, mut left: usize) -> f64 {
        let (mut held, mut spent) = (Vec::new(), 0.0);
        let mut last: BTreeMap<Arc<str>, i64> = BTreeMap::new();
        while left > 0 {
            let (cost, claimed) = self.turn(&held);
            spent += cost;
            // The rounds of the keys follow each other, so 100 keys have jobs until the end.
            self.short += usize::from(claimed.len() < left.min(BATCH));
            assert!(!claimed.is_empty(), "{left} jobs are never handed out");
            left -= claimed.len();
            for row in claimed.iter().map(|claimed| &claimed.job.row) {
                let Some(order) = &row.order else { continue };
                let before = last.insert(Arc::clone(&order.key), row.job.id.0);
                self.misplaced += usize::from(before.is_some_and(|before| before > row.job.id.0));
            }
            held = claimed;
        }
        let (cost, none) = self.turn(&held);
        assert!(none.is_empty());
        spent + cost
    }

    /// Completes what is held and claims.
    fn turn(&mut self, held: &[Claimed]) -> (f64, Vec<Claimed>) {
        let (sender, answer) = sync_channel(1);
        let work = Work { calls: held.iter().map(completion).collect(), claim: Some(claim(1, BATCH)) };
        let cost = self.step(Message::Work(work, Box::new(sender)));
        let answer = answered(&answer);
        assert!(answer.results.iter().all(Result::is_ok));
        (cost, answer.claimed.expect("a claim").jobs)
    }
}
