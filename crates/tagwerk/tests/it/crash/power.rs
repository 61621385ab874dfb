//! The power fails. What was written and not yet synced may be lost in any part, and what was acknowledged is there.
//!
//! No machine is switched off. The server is stopped at a random moment in the middle of a transaction, its files are copied
//! as they are, and in the copy everything is spoilt that a power cut may spoil:
//!
//! - bytes of the log behind those that were synced when the last call was acknowledged: cut off, zeroed, replaced by
//!   noise, sector by sector;
//! - pages of the database that were written since the log was begun: each is as it was before or as it is now, for as long as
//!   the log goes on, it has them too;
//! - the log's index, which is memory.
//!
//! Deliberately absent: disks that lie about a sync.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::server::{JSON, Options, Server, tagwerk};
use crate::support::dice::Dice;
use crate::support::{Held, claim_all, enqueue_all, id_of, list, setting, text};

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;
/// Size of the header of the log, and of each of its frames.
const WAL_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// Power cuts that are made out of one copy.
const CUTS: usize = 3;

/// The files of a store at one moment.
#[derive(Clone)]
struct Files {
    db: Vec<u8>,
    wal: Vec<u8>,
}

impl Files {
    fn read(server: &Server) -> Self {
        let read = |path: &Path| std::fs::read(path).expect("a file of the store");
        Self { db: read(&server.file()), wal: read(&server.file().with_extension("db-wal")) }
    }

    fn write(&self, dir: &Path) {
        std::fs::write(dir.join("tagwerk.db"), &self.db).expect("to write");
        std::fs::write(dir.join("tagwerk.db-wal"), &self.wal).expect("to write");
    }

    fn number(&self, at: usize) -> u32 {
        self.wal.get(at..at + 4).map_or(0, |bytes| u32::from_be_bytes(bytes.try_into().expect("four bytes")))
    }

    /// Tells one log from the one that was begun before in the same file.
    fn generation(&self) -> (u32, u32) {
        (self.number(16), self.number(20))
    }

    fn page_bytes(&self) -> usize {
        usize::try_from(self.number(8)).expect("a size")
    }

    /// Waits until something more is written to the log, and this much longer. Returns the answer if it comes before.
    fn wait_for_more<T>(
        &self,
        server: &Server,
        answered: &mpsc::Receiver<T>,
        longer: Duration,
    ) -> Result<T, ()> {
        let log = std::fs::File::open(server.file().with_extension("db-wal")).expect("the log");
        let (at, mut next) = (self.committed(), [0; FRAME_HEADER]);
        let before = self
            .wal
            .get(at..at + FRAME_HEADER)
            .map_or([0; FRAME_HEADER], |bytes| bytes.try_into().expect("a header"));
        loop {
            // Behind the end of the file there is nothing yet.
            let is_there = log.read_exact_at(&mut next, u64::try_from(at).expect("a place")).is_ok();
            if is_there && next != before {
                return answered.recv_timeout(longer).map_err(drop);
            }
            if let Ok(answer) = answered.try_recv() {
                return Ok(answer);
            }
            std::thread::yield_now();
        }
    }

    /// Where the last transaction of this generation ends.
    fn committed(&self) -> usize {
        let (step, mut at, mut end) = (FRAME_HEADER + self.page_bytes(), WAL_HEADER, WAL_HEADER);
        while at + step <= self.wal.len() && (self.number(at + 8), self.number(at + 12)) == self.generation()
        {
            at += step;
            // The size of the database stands in the last frame of a transaction only.
            if self.number(at - step + 4) > 0 {
                end = at;
            }
        }
        end
    }
}

/// What may have become of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Expected {
    /// It was acknowledged like this.
    Is(&'static str),
    /// It was like this, and a call that would make it like that is under way.
    Becomes(&'static str, &'static str),
}

/// One after the other, what was acknowledged.
struct Story {
    server: Server,
    client: Client,
    dice: Dice,
    jobs: BTreeMap<i64, Expected>,
    held: Vec<Held>,
    number: usize,
}

/// A call that is under way when the server stops.
enum Underway {
    /// New jobs with this mark, all or none.
    Enqueue { mark: String, count: usize },
    /// Reports about these.
    Complete(Vec<i64>),
}

impl Story {
    fn new(seed: u64) -> Self {
        let server = Server::start();
        let client = server.client();
        Self { client, server, dice: Dice::new(seed, 0), jobs: BTreeMap::new(), held: Vec::new(), number: 0 }
    }

    fn new_jobs(&mut self, count: u64) -> Vec<Value> {
        let bytes = usize::try_from(self.dice.below(3_000)).expect("a size");
        self.number += 1;
        let payload = format!("{:-^bytes$}", self.number);
        vec![
            json!({"type": "t", "queue": "q", "correlation_id": format!("m-{}", self.number), "payload": payload});
            usize::try_from(count).expect("a number")
        ]
    }

    /// Some calls of every kind, one after the other, all of them acknowledged.
    fn go_on(&mut self) {
        let count = 1 + self.dice.below(40);
        let jobs = self.new_jobs(count);
        let ids = enqueue_all(&mut self.client, &jobs);
        self.jobs.extend(ids.into_iter().map(|id| (id, Expected::Is("pending"))));
        let wish = json!({"worker_id": "w", "queues": ["q"], "lease_seconds": 3600, "max_jobs": 1 + self.dice.below(20)});
        let held = claim_all(&mut self.client, &wish);
        self.jobs.extend(held.iter().map(|held| (held.id, Expected::Is("running"))));
        self.held.extend(held);
        for _ in 0..self.dice.below(10) {
            let Some(held) = self.held.pop() else { break };
            if self.dice.percent(80) {
                held.complete(&mut self.client);
                self.jobs.insert(held.id, Expected::Is("completed"));
            } else {
                held.fail(&mut self.client, "permanent");
                self.jobs.insert(held.id, Expected::Is("failed"));
            }
        }
    }

    /// A call whose transaction is large, so that it takes a while to write.
    fn begin(&mut self) -> (Underway, mpsc::Receiver<std::io::Result<Answer>>) {
        let (underway, path, body) = if self.held.len() > 5 && self.dice.percent(50) {
            let reports: Vec<Value> = self.held.iter().map(|held| {
                json!({"id": held.id, "lease": held.lease, "outcome": "completed", "result": "x".repeat(2_000)})
            }).collect();
            let ids: Vec<i64> = self.held.drain(..).map(|held| held.id).collect();
            for id in &ids {
                self.jobs.insert(*id, Expected::Becomes("running", "completed"));
            }
            (Underway::Complete(ids), "/jobs/report/bulk", json!({"reports": reports}))
        } else {
            let jobs = self.new_jobs(300);
            let mark = text(&jobs[0]["correlation_id"]).to_owned();
            (
                Underway::Enqueue { mark, count: jobs.len() },
                "/jobs/bulk",
                json!({"jobs": jobs, "atomic": true}),
            )
        };
        let (mut client, body) = (self.server.client(), body.to_string());
        let (answer, answered) = mpsc::channel();
        std::thread::spawn(move || {
            answer.send(client.try_send(&format!("POST {path}"), &[JSON], body.as_bytes()))
        });
        (underway, answered)
    }

    /// What was under way has been acknowledged after all.
    fn acknowledged(&mut self, underway: Underway, answer: &Value) {
        match underway {
            Underway::Complete(ids) => {
                self.jobs.extend(ids.into_iter().map(|id| (id, Expected::Is("completed"))));
            }
            Underway::Enqueue { .. } => {
                let results = answer["results"].as_array().expect("results");
                self.jobs
                    .extend(results.iter().map(|result| (id_of(&result["job"]), Expected::Is("pending"))));
            }
        }
    }

    /// A server on what the power cut has left: it has everything that was acknowledged, of the call that was under way all or
    /// nothing, and nothing else.
    fn assert_kept(&self, files: &Files, underway: &Underway) {
        let dir = tempfile::tempdir().expect("a folder");
        files.write(dir.path());
        // Before any server has put it right, and after.
        check(dir.path());
        let server = Server::in_dir(dir, Options::default());
        let mut client = server.client();
        let found: BTreeMap<i64, Value> =
            list(&mut client, "").into_iter().map(|job| (id_of(&job), job)).collect();
        let mut became = Vec::new();
        for (id, expected) in &self.jobs {
            let status = found.get(id).map_or("lost", |job| text(&job["status"]));
            match expected {
                Expected::Is(is) => assert_eq!(status, *is, "job {id} was acknowledged"),
                Expected::Becomes(before, after) => {
                    assert!(status == *before || status == *after, "job {id} is {status}: {expected:?}");
                    became.push(status == *after);
                }
            }
        }
        let new: Vec<&Value> =
            found.iter().filter(|(id, _)| !self.jobs.contains_key(id)).map(|(_, job)| job).collect();
        match underway {
            Underway::Complete(_) => {
                assert!(became.windows(2).all(|two| two[0] == two[1]), "half a transaction: {became:?}");
                assert!(new.is_empty(), "{new:?}");
            }
            Underway::Enqueue { mark, count } => {
                assert!(new.iter().all(|job| text(&job["correlation_id"]) == mark), "{new:?}");
                assert!(new.is_empty() || new.len() == *count, "{} of {count} jobs were taken", new.len());
            }
        }
        for held in &self.held {
            held.complete(&mut client);
        }
        check(server.dir());
    }
}

/// `tagwerk check --integrity`
fn check(dir: &Path) {
    let output =
        tagwerk(dir, &["check", "--integrity", "--store", "sqlite:tagwerk.db"]).output().expect("the binary");
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    assert_eq!(output.status.code(), Some(0), "{said:?}");
}

/// What is left of the files when the power fails: `then` is as they were at an acknowledgement, `now` as they are.
fn cut((then, now): (&Files, &Files), dice: &mut Dice) -> Files {
    let below = |dice: &mut Dice, n: usize| usize::try_from(dice.below(n.max(1) as u64)).expect("a size");
    let mut left = now.clone();
    let safe = then.committed();
    let lost = safe + below(dice, now.wal.len() - safe + 1);
    match dice.below(4) {
        0 => left.wal.truncate(lost),
        1 => left.wal[lost..].fill(0),
        2 => {
            // Any sector may have come to the disk or not, whatever their order.
            let first = safe.div_ceil(SECTOR);
            for sector in left.wal[(first * SECTOR).min(now.wal.len())..].chunks_mut(SECTOR) {
                if dice.percent(50) {
                    sector.fill(0);
                }
            }
        }
        _ => {
            for byte in &mut left.wal[lost..] {
                *byte = dice.next().to_le_bytes()[0];
            }
            left.wal.extend(std::iter::repeat_n(0xA5, below(dice, 9_000)));
        }
    }
    let page = now.page_bytes();
    let old = dice.below(101);
    if old == 100 {
        left.db.truncate(then.db.len());
    }
    for (page, before) in left.db.chunks_mut(page).zip(then.db.chunks(page)) {
        if page.len() == before.len() && dice.percent(old) {
            page.copy_from_slice(before);
        }
    }
    left
}

#[test]
fn f003_after_a_power_cut_everything_acknowledged_is_there() {
    let (rounds, seed): (u32, u64) = (setting::<u32>("TAGWERK_CRASH_ROUNDS", 8).div_ceil(2), super::seed());
    eprintln!("{rounds} rounds, TAGWERK_CRASH_SEED={seed}");
    let mut story = Story::new(seed);
    let (mut cuts, mut in_the_middle) = (0, 0);
    for round in 1..=rounds {
        eprintln!("round {round}");
        story.go_on();
        let then = Files::read(&story.server);
        let (underway, answered) = story.begin();
        let early =
            then.wait_for_more(&story.server, &answered, Duration::from_micros(story.dice.below(4_000)));
        story.server.stand_still();
        let now = Files::read(&story.server);
        // A log that was begun anew has been copied into the database and synced there: that is another story.
        if then.generation() == now.generation() && early.is_err() {
            for _ in 0..CUTS {
                let left = cut((&then, &now), &mut story.dice);
                story.assert_kept(&left, &underway);
                cuts += 1;
            }
            in_the_middle +=
                u32::from(now.wal[then.committed()..] != then.wal[then.committed().min(then.wal.len())..]);
        }
        story.server.signal("CONT");
        let answer = early.unwrap_or_else(|()| answered.recv().expect("an answer"));
        let answer = answer.expect("an answer").expect(200);
        story.acknowledged(underway, &answer);
    }
    eprintln!("{cuts} power cuts, {in_the_middle} of {rounds} moments while the log was being written");
    assert!(cuts > 0 && in_the_middle > 0, "nothing was under way: {cuts} {in_the_middle}");
    story.assert_kept(&Files::read(&story.server), &Underway::Complete(Vec::new()));
}

/// What it could not find would not be proved by it.
#[test]
fn the_loss_of_what_was_acknowledged_is_found() {
    let mut story = Story::new(1);
    story.go_on();
    let before = Files::read(&story.server);
    story.go_on();
    let after = Files::read(&story.server);
    assert_eq!(before.generation(), after.generation());
    let lost = Files { db: before.db.clone(), wal: after.wal[..before.committed()].to_vec() };
    let nothing = Underway::Complete(Vec::new());
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| story.assert_kept(&lost, &nothing)));
    let said = found.expect_err("the loss was not found");
    let said = said.downcast_ref::<String>().map(String::as_str).unwrap_or_default();
    assert!(said.contains("was acknowledged"), "{said}");
    story.assert_kept(&after, &nothing);
}
