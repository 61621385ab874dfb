//! The server is killed at random moments while many clients work, and nothing that any of them was told may be lost.
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `TAGWERK_CRASH_ROUNDS` | how often it is killed | 8 |
//! | `TAGWERK_CRASH_CLIENTS` | how many clients | 32 |
//! | `TAGWERK_CRASH_SECONDS` | how long a round lasts at most | 1 |
//! | `TAGWERK_CRASH_SEED` | what chance begins with | the clock |
//!
//! Beside the kills, with the same clients or with the same way of looking:
//!
//! | module | what happens to the server |
//! |---|---|
//! | `stall`, `start` | it stands still; it is killed while it starts |
//! | `cut`, `cut_at_random`, `cut_worker` | connections end in every place, at a proxy that cuts ([`proxy`]) |
//! | `full` | the disk gets full |
//! | `power` | the power fails: what was not synced is lost in any part |
//! | `synced` | nothing; its system calls show that it syncs before it answers |
//!
//! `cargo xtask crash` runs it for long. Each client writes down every call and what it heard ([`log`]); after each restart
//! the store is read through the server and held against all that ([`model`]), `tagwerk check` has to be content, and the
//! counters have to agree with the rows. What is found is printed with the seed, the round, and everything that was said
//! about that job, in order. At the end the history of all calls is checked as a whole ([`history`]). The seed repeats what clients and killer decide by chance, not the timing of the machine.

mod client;
mod cut;
mod cut_at_random;
mod cut_worker;
mod full;
mod gate;
mod history;
mod lies;
mod log;
mod model;
mod power;
pub(crate) mod proxy;
mod roles;
mod stall;
mod start;
mod synced;
mod world;

use std::collections::{BTreeSet, HashMap};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;
use crate::server::{Server, tagwerk};
use crate::support::dice::Dice;
use crate::support::{Held, claim_all, in_parallel, list, list_after, pass, setting, text};
use client::{Hand, Shared};
use gate::Gate;
use history::Recorder;
use log::{Knowledge, Log};
use model::{Silence, Stored, Violation};
use roles::{Gossip, QUEUE, Role};

/// Longer than any wait of the server.
const PATIENCE: Duration = Duration::from_secs(100);
/// Connections that read the store.
const READERS: usize = 8;
/// Rounds after which the whole store is read, not only what was touched.
const READ_ALL_EVERY: u32 = 10;

/// How the server is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// SIGKILL.
    Kill,
    /// SIGTERM: in order.
    Terminate,
}

/// How much is read after a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    /// What clients have touched since the last time.
    Touched,
    /// Everything.
    Whole,
}

/// A run.
struct Run {
    stop: Stop,
    rounds: u32,
    seed: u64,
    seconds: f64,
    server: Server,
    shared: Shared,
    gossip: Gossip,
    known: Knowledge,
}

#[test]
fn f003_f007_f023_killed_at_random_moments_the_server_keeps_everything_it_acknowledged() {
    Run::new(Stop::Kill, setting("TAGWERK_CRASH_ROUNDS", 8)).play();
}

#[test]
fn f054_stopped_in_order_the_server_answers_what_it_did_and_did_nothing_else() {
    let rounds: u32 = setting("TAGWERK_CRASH_ROUNDS", 8);
    Run::new(Stop::Terminate, rounds.div_ceil(4)).play();
}

impl Run {
    fn new(stop: Stop, rounds: u32) -> Self {
        let seed = seed();
        let silence = if stop == Stop::Kill { Silence::MeansEither } else { Silence::MeansNo };
        eprintln!("{stop:?}: {rounds} rounds, TAGWERK_CRASH_SEED={seed}");
        let server = Server::start();
        roles::prepare(&server);
        Self {
            stop,
            rounds,
            seed,
            seconds: setting("TAGWERK_CRASH_SECONDS", 1.0),
            server,
            shared: Shared { gate: Gate::new(), log: Log::default(), patience: PATIENCE, expected: &[] },
            gossip: Gossip::default(),
            known: Knowledge::new(silence),
        }
    }

    /// All rounds, with the clients beside.
    fn play(self) {
        let Self { stop, rounds, seed, seconds, mut server, shared, gossip, mut known } = self;
        let clients: usize = setting("TAGWERK_CRASH_CLIENTS", 32);
        let (gone, alarm) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            for number in 0..clients {
                let hand =
                    Hand::new(number, Dice::new(seed, 1 + u64::try_from(number).expect("a number")), &shared);
                let (gossip, gone) = (&gossip, gone.clone());
                scope.spawn(move || {
                    // Dropped without a word when the client panics, said when it goes home.
                    Role::of(number).play(hand, gossip);
                    gone.send(()).ok();
                });
            }
            drop(gone);
            let end = EndOfRun(&shared.gate);
            let mut dice = Dice::new(seed, 0);
            for round in 1..=rounds {
                shared.gate.open(server.addr());
                let part = f64::from(u32::try_from(5 + dice.below(96)).expect("a percentage")) / 100.0;
                // Nobody goes home before the end, so this lasts as long as it says.
                let early = alarm.recv_timeout(Duration::from_secs_f64(seconds * part));
                assert_eq!(
                    early,
                    Err(mpsc::RecvTimeoutError::Timeout),
                    "a client went home in round {round}"
                );
                stop_server(&mut server, stop);
                shared.gate.close();
                shared.log.past.still();
                server.start_again();
                let last = round == rounds || round % READ_ALL_EVERY == 0;
                let depth = if last { Depth::Whole } else { Depth::Touched };
                let found = verify(&server, &shared, &mut known, depth);
                report(&found, &server, &known, (seed, round));
                correct(&server, &gossip);
            }
            drop(end);
        });
        let calls: i64 = known.tallies().map(|(_, tally)| tally.done).sum();
        let silent: i64 = known.tallies().map(|(_, tally)| tally.silent).sum();
        eprintln!("{calls} calls were answered, {silent} were not; {} jobs ended", known.settled().len());
        assert!(stop == Stop::Terminate || silent > 0, "nothing was under way when the server was killed");
        let name = if stop == Stop::Kill { "killed" } else { "stopped" };
        shared.log.past.must_be_explained(known.silence(), (name, seed));
        drain(&server);
        assert!(!server.log().contains("panicked"), "the server panicked");
    }
}

/// What chance begins with.
pub(crate) fn seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    setting("TAGWERK_CRASH_SEED", u64::from(now.subsec_nanos()))
}

/// Sends the clients home, also when a round has failed.
struct EndOfRun<'a>(&'a Gate);

impl Drop for EndOfRun<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn stop_server(server: &mut Server, stop: Stop) {
    match stop {
        Stop::Kill => server.kill(),
        Stop::Terminate => {
            let status = server.terminate();
            assert_eq!(status.code(), Some(0), "after SIGTERM: {status}");
        }
    }
}

/// Holds the store against what clients know. The server is up and nobody else calls it.
fn verify(server: &Server, shared: &Shared, known: &mut Knowledge, depth: Depth) -> Vec<Violation> {
    let (entries, surprises) = shared.log.take();
    let mut found: Vec<Violation> = surprises
        .into_iter()
        .map(|what| Violation { id: None, what: format!("an odd answer: {what}") })
        .collect();
    let mut touched = known.take_in(entries);
    let mut client = server.client();
    // Also those that nobody has heard of.
    let new = list_after(&mut client, &format!("?queue={QUEUE}"), known.newest());
    touched.extend(new.iter().map(|job| world::seen(job).id));
    if depth == Depth::Whole {
        touched.extend(known.unsettled());
    }
    for (id, stored) in read_all(server, &touched, &shared.log.past) {
        found.extend(known.judge(id, stored.as_ref()));
    }
    found.extend(known.register());
    if depth == Depth::Whole {
        found.extend(settled_as_before(&mut client, known));
    }
    found.extend(check_command(server));
    found.extend(counters(&mut client, known, depth));
    found
}

/// Reads jobs, several at a time.
fn read_all(server: &Server, ids: &BTreeSet<i64>, past: &Recorder) -> Vec<(i64, Option<Stored>)> {
    let ids: Vec<i64> = ids.iter().copied().collect();
    in_parallel((READERS, &ids), || server.client(), |client, id| (*id, world::read(client, *id, past)))
}

/// Everything that had ended is there as it was.
fn settled_as_before(client: &mut Client, known: &Knowledge) -> Vec<Violation> {
    let mut there: HashMap<i64, model::Seen> = list(client, &format!("?queue={QUEUE}"))
        .iter()
        .map(world::seen)
        .map(|seen| (seen.id, seen))
        .collect();
    let differs = known.settled().iter().filter_map(|(id, before)| {
        let now = there.remove(id);
        (now.as_ref() != Some(before))
            .then(|| Violation { id: Some(*id), what: format!("it had ended as {before:?} and is {now:?}") })
    });
    differs.collect()
}

/// `tagwerk check`, beside the running server.
pub(crate) fn check_command(server: &Server) -> Option<Violation> {
    let output = tagwerk(server.dir(), &["check", "--store", &server.store()]).output().expect("the binary");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code() != Some(0)).then(|| Violation {
        id: None,
        what: format!("check: {} {} {}", output.status, text(&output.stdout), text(&output.stderr)),
    })
}

/// The counters against the rows (where all were read), against themselves, and against what clients have seen.
fn counters(client: &mut Client, known: &Knowledge, depth: Depth) -> Vec<Violation> {
    let mut wrong = Vec::new();
    let mut find = |what: String| wrong.push(Violation { id: None, what });
    let (stats, listed) = loop {
        let before = client.get("/stats").expect(200);
        let listed = if depth == Depth::Whole { list(client, "") } else { Vec::new() };
        let after = client.get("/stats").expect(200);
        // A lease may have ended in between.
        if before["totals"] == after["totals"] && before["counts"] == after["counts"] {
            break (after, listed);
        }
    };
    let count = |group: &str, name: &str| stats[group][name].as_i64().expect("a counter");
    let statuses = ["pending", "running", "completed", "failed", "cancelled"];
    let all = statuses.iter().map(|status| count("counts", status)).sum::<i64>() + count("counts", "pruned");
    if all != count("counts", "enqueued") || all != count("totals", "enqueues") {
        find(format!("the counters do not add up: {} {}", stats["counts"], stats["totals"]));
    }
    for status in statuses.into_iter().filter(|_| depth == Depth::Whole) {
        let rows = listed.iter().filter(|job| job["status"] == status).count();
        if json!(rows) != stats["counts"][status] {
            find(format!("{rows} jobs are {status}, the counters say {}", stats["counts"]));
        }
    }
    for (what, seen) in known.tallies() {
        let counted = count("totals", what);
        // What a silent claim got is not known, and a job is also given back by the server.
        let most = if ["claims", "releases"].contains(&what) { i64::MAX } else { seen.done + seen.silent };
        if counted < seen.done || counted > most {
            find(format!("{what}: clients saw {seen:?}, the counters say {counted}"));
        }
    }
    wrong
}

/// Tells what was found, and fails if anything was.
fn report(found: &[Violation], server: &Server, known: &Knowledge, (seed, round): (u64, u32)) {
    if found.is_empty() {
        return;
    }
    let mut client = server.client();
    for Violation { id, what } in found.iter().take(10) {
        eprintln!("seed {seed}, round {round}, job {id:?}: {what}");
        if let Some(id) = id {
            for line in known.lines(*id, world::read(&mut client, *id, &Recorder::default()).as_ref()) {
                eprintln!("    {line}");
            }
        }
    }
    panic!("{} violations; TAGWERK_CRASH_SEED={seed}, round {round}", found.len());
}

/// Tells producers how much really waits.
fn correct(server: &Server, gossip: &Gossip) {
    let counts = server.get("/stats").expect(200)["counts"].clone();
    gossip.correct(counts["pending"].as_i64().expect("a counter"));
}

/// Claims and completes until there is nothing.
fn claim_everything(client: &mut Client, claimed: &mut BTreeSet<i64>) {
    let wish = json!({"worker_id": "drain", "queues": [QUEUE], "max_jobs": 1000});
    loop {
        let held = claim_all(client, &wish);
        if held.is_empty() {
            return;
        }
        claimed.extend(held.iter().map(|held| held.id));
        let report = |held: &Held| json!({"id": held.id, "lease": held.lease, "outcome": "completed"});
        let reports: Vec<Value> = held.iter().map(report).collect();
        client.post("/jobs/report/bulk", &json!({"reports": reports})).expect(200);
    }
}

/// The job with what its explanation says, unless that is that another has to end first.
fn ready(client: &mut Client, id: i64) -> Option<(i64, Value)> {
    let why = client.get(&format!("/jobs/{id}/explain")).expect(200)["reasons"].clone();
    let mut kinds = why.as_array().into_iter().flatten().map(|why| text(&why["kind"]));
    let is_behind = kinds.any(|kind| kind == "blocked_by_key" || kind == "limit_full");
    (!is_behind).then_some((id, why))
}

/// After all that, a claimer gets what the list says: every pending job, and nothing but those and what is lost meanwhile.
fn drain(server: &Server) {
    let mut client = server.client();
    pass(&mut client, 0.2);
    let ids = |client: &mut Client, status: &str| -> BTreeSet<i64> {
        let jobs = list(client, &format!("?queue={QUEUE}&status={status}"));
        jobs.iter().map(|job| world::seen(job).id).collect()
    };
    let (running, pending) = (ids(&mut client, "running"), ids(&mut client, "pending"));
    let mut claimed = BTreeSet::new();
    loop {
        let before = claimed.len();
        claim_everything(&mut client, &mut claimed);
        // Whoever is left says that another has to end first.
        let left: Vec<_> = pending.difference(&claimed).filter_map(|id| ready(&mut client, *id)).collect();
        if left.is_empty() {
            break;
        }
        // The other may have ended since the last claim, by its lease. Then the next one gets what it held back.
        assert!(claimed.len() > before, "pending and not claimable: {left:?}");
    }
    let odd: Vec<_> = claimed.difference(&pending).filter(|id| !running.contains(id)).collect();
    assert!(odd.is_empty(), "claimed and not listed as pending: {odd:?}");
}
