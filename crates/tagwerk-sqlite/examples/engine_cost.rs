//! What a job costs the committer, counted in machine instructions.
//!
//! Run it under callgrind, which counts the same for the same work however busy the machine is:
//! `cargo xtask instructions` does that and divides. By itself it only does the work: enqueue, claim and complete the given
//! number of jobs through the engine over a store in a temporary folder, one job a call in batches of 64, then in bulk.
#![expect(clippy::expect_used, reason = "an example may fail loudly")]

#[path = "../tests/it/engine.rs"]
mod engine;

use std::hint::black_box;
use std::sync::mpsc::sync_channel;

use engine::{Answer, answered, claim, completion};
use tagwerk_engine::command::{BulkMode, ClaimAnswer, Claimed, Enqueue, EnqueueJob, Work};
use tagwerk_engine::committer::Committer;
use tagwerk_engine::message::Message;
use tagwerk_engine::testing::clock::ManualClock;

/// Calls in one batch, as 64 clients make them.
const CALLS: usize = 64;
/// Jobs of a call in bulk.
const BULK: usize = 100;

fn main() {
    let jobs: usize = std::env::args().nth(1).map_or(6_400, |n| n.parse().expect("a number of jobs"));
    let folder = tempfile::tempdir().expect("a folder");
    let mut rig = Rig::new(&folder.path().join("cost.db"));
    // What is made once (lanes, statements, the first pages of the log) is not what a job costs.
    rig.singles(CALLS * 10, Counted::No);
    rig.bulks(BULK * 10, Counted::No);
    rig.singles(jobs, Counted::Yes);
    rig.bulks(jobs, Counted::Yes);
}

/// Whether callgrind is to see it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    Yes,
    No,
}

impl Counted {
    fn then(self, phase: Phase) -> Phase {
        if self == Self::Yes { phase } else { uncounted }
    }
}

type Phase = fn(&mut Committer, Vec<Message>);

struct Rig {
    committer: Committer,
    clock: ManualClock,
    made: usize,
}

impl Rig {
    fn new(path: &std::path::Path) -> Self {
        let (committer, clock) = engine::committer(path);
        Self { committer, clock, made: 0 }
    }

    fn job(&mut self) -> EnqueueJob {
        self.made += 1;
        let key = self.made.is_multiple_of(2).then(|| format!("order-{}", self.made));
        EnqueueJob { key, ..engine::job() }
    }

    fn singles(&mut self, jobs: usize, counted: Counted) {
        for _ in 0..jobs.div_ceil(CALLS) {
            let (messages, answers) = (0..CALLS)
                .map(|_| {
                    let (sender, receiver) = sync_channel(1);
                    let enqueue = Enqueue { jobs: vec![self.job()], mode: BulkMode::Each, reach: None };
                    (Message::Enqueue(enqueue, Box::new(sender)), receiver)
                })
                .unzip::<_, _, Vec<_>, Vec<_>>();
            self.run(messages, counted.then(enqueue_one));
            for answer in answers {
                assert!(answered(&answer).iter().all(Result::is_ok));
            }
            let (messages, answers) = claims(CALLS, 1);
            self.run(messages, counted.then(claim_one));
            let claimed = taken(&answers);
            assert_eq!(claimed.len(), CALLS);
            let (messages, answers) = claimed
                .iter()
                .map(|held| {
                    let (sender, receiver) = sync_channel(1);
                    let work = Work { calls: vec![completion(held)], claim: None };
                    (Message::Work(work, Box::new(sender)), receiver)
                })
                .unzip::<_, _, Vec<_>, Vec<_>>();
            self.run(messages, counted.then(complete_one));
            for answer in answers {
                let answer = answered(&answer);
                assert!(answer.results.iter().all(Result::is_ok));
            }
        }
    }

    fn bulks(&mut self, jobs: usize, counted: Counted) {
        for _ in 0..jobs.div_ceil(BULK) {
            let (sender, answer) = sync_channel(1);
            let enqueue =
                Enqueue { jobs: (0..BULK).map(|_| self.job()).collect(), mode: BulkMode::Each, reach: None };
            let message = Message::Enqueue(enqueue, Box::new(sender));
            self.run(vec![message], counted.then(enqueue_bulk));
            assert!(answered(&answer).iter().all(Result::is_ok));
            let (messages, answers) = claims(1, BULK);
            self.run(messages, counted.then(claim_bulk));
            let claimed = taken(&answers);
            assert_eq!(claimed.len(), BULK);
            let (sender, answer) = sync_channel(1);
            let work = Work { calls: claimed.iter().map(completion).collect(), claim: None };
            let message = Message::Work(work, Box::new(sender));
            self.run(vec![message], counted.then(complete_bulk));
            let answer = answered(&answer);
            assert!(answer.results.iter().all(Result::is_ok));
        }
    }

    fn run(&mut self, messages: Vec<Message>, phase: Phase) {
        self.clock.advance(1);
        phase(&mut self.committer, messages);
    }
}

fn claims(calls: usize, max_jobs: usize) -> (Vec<Message>, Vec<Answer<ClaimAnswer>>) {
    (0..calls)
        .map(|n| {
            let (sender, receiver) = sync_channel(1);
            (Message::Claim(claim(n, max_jobs), Box::new(sender)), receiver)
        })
        .unzip()
}

fn taken(answers: &[Answer<ClaimAnswer>]) -> Vec<Claimed> {
    answers.iter().flat_map(|answer| answered(answer).jobs).collect()
}

/// The phases are functions of their own so that callgrind can count one of them alone.
macro_rules! phases {
    ($($name:ident)+) => {
        $(#[inline(never)]
        fn $name(committer: &mut Committer, messages: Vec<Message>) {
            committer.step(messages);
            black_box(stringify!($name));
        })+
    };
}

phases! { uncounted enqueue_one claim_one complete_one enqueue_bulk claim_bulk complete_bulk }
