//! A world: everything that a seed brings about, until its end or until somebody objects.

mod faults;
mod finish;
mod judges;
mod network;
mod steps;
mod told;
mod turns;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tagwerk_core::Timestamp;
use tagwerk_engine::committer::Ports;
use tagwerk_engine::ports::{Clock, NoObserver};
use tagwerk_engine::testing::clock::ManualClock;

use crate::actors::{self, Actor, Board, Desk};
use crate::chance::Chance;
use crate::draws::Draws;
use crate::invariants::At;
use crate::model::Contradiction;
use crate::node::{Disk, Node};
use crate::plan::{Plan, StoreKind};
use crate::tally::Tally;
use crate::trace::Trace;

use judges::Judges;
use network::Request;

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// On which store.
    pub store: StoreKind,
    /// Hash over all lines of the trace.
    pub hash: String,
    /// Whether the world had limits or bounds of queues.
    pub is_bounded: bool,
    /// What was exercised.
    pub tally: Tally,
    /// What went wrong, if anything did.
    pub failure: Option<Failure>,
}

impl Report {
    /// A failure for people: what was violated, the story of the job, and how to see it again. `None` if it is clean.
    #[must_use]
    pub fn complaint(&self) -> Option<String> {
        let failure = self.failure.as_ref()?;
        let (seed, store) = (self.seed, self.store.name());
        let job = failure.job.map_or(String::new(), |id| format!(", job {id}"));
        let about = if failure.job.is_some() { " to it" } else { "" };
        let lines = failure.story.join("\n    ");
        Some(format!(
            "FAILED seed {seed} on {store}: {}{job}\n  {}\n  the last that happened{about}:\n    {lines}\n  \
             again: cargo xtask sim --seed {seed} --store {store} --trace",
            failure.rule, failure.what
        ))
    }
}

/// What went wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The invariant that was violated, or `model`.
    pub rule: String,
    /// The job that it is about.
    pub job: Option<i64>,
    /// What must not be.
    pub what: String,
    /// The last lines about that job.
    pub story: Vec<String>,
}

/// Whether the trace is printed while it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// It is.
    On,
    /// It is not.
    Off,
}

/// Runs one seed on one store.
#[must_use]
pub fn run(seed: u64, store: StoreKind, echo: Echo) -> Report {
    let mut world = match World::new(seed, store, echo) {
        Ok(world) => world,
        Err(error) => return stillborn(seed, store, &error),
    };
    let failure = world.live().err().map(|stop| {
        let lines = world.trace.story(stop.found.job);
        Failure { rule: stop.rule, job: stop.found.job, what: stop.found.what, story: lines }
    });
    let ends = world.judges.model.ends();
    for (end, n) in ends {
        world.tally.add("jobs by end", end, n);
    }
    let is_bounded = world.plan.caps.is_some();
    Report { seed, store, hash: world.trace.hash(), is_bounded, tally: world.tally, failure }
}

fn stillborn(seed: u64, store: StoreKind, error: &anyhow::Error) -> Report {
    let what = format!("the world could not be made: {error:#}");
    let failure = Failure { rule: "world".to_owned(), job: None, what, story: Vec::new() };
    Report {
        seed,
        store,
        hash: String::new(),
        is_bounded: false,
        tally: Tally::default(),
        failure: Some(failure),
    }
}

/// Why a run was stopped.
struct Stop {
    rule: String,
    found: Contradiction,
}

type Lived<T> = Result<T, Stop>;

impl Stop {
    fn world(what: impl Into<String>) -> Self {
        Self { rule: "world".to_owned(), found: Contradiction::of(None, what) }
    }
}

/// Something that comes at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A request reaches its server.
    Arrive(usize),
    /// An answer reaches its client.
    Answer(usize),
    /// A client has waited long enough.
    GiveUp(usize),
    /// An actor wakes up.
    Wake(usize),
    /// A server may do its next batch.
    Step(usize),
    /// The wall clock steps.
    ClockStep,
}

/// A server, or the place of one that is down.
struct Server {
    node: Option<Node>,
    inbox: VecDeque<usize>,
    /// Requests that it holds without having answered: claims that wait.
    holding: Vec<usize>,
    busy_until: i64,
    next_step: i64,
    down_until: i64,
}

/// Somebody who takes part.
struct Player {
    name: String,
    actor: Box<dyn Actor>,
    chance: Chance,
}

struct World {
    plan: Plan,
    clock: ManualClock,
    ports: Ports,
    disk: Disk,
    servers: Vec<Server>,
    players: Vec<Player>,
    board: Board,
    requests: Vec<Request>,
    agenda: BTreeSet<(i64, u64, Event)>,
    /// Orders events of the same instant.
    ticket: u64,
    chance: Chance,
    judges: Judges,
    trace: Trace,
    tally: Tally,
    /// Actors and faults take part.
    open: bool,
    seed: u64,
}

/// The wall clock at the start: a moment in 2026, so that 64-bit milliseconds are in play.
const START: i64 = 1_780_000_000_000;

impl World {
    fn new(seed: u64, store: StoreKind, echo: Echo) -> anyhow::Result<Self> {
        let plan = Plan::of(seed, store);
        let mut chance = Chance::new(seed ^ 0x5EED);
        let clock = ManualClock::new(Timestamp::from_millis(START));
        let entropy = Draws::new(chance.u64());
        let ports = Ports {
            clock: Arc::new(clock.clone()),
            entropy: Arc::new(entropy.clone()),
            observer: Arc::new(NoObserver),
        };
        let disk = Disk::new(store)?;
        if let Some(caps) = &plan.caps {
            disk.set_up(caps, clock.now())?;
        }
        let judges = Judges::new(&plan, entropy);
        let mut world = Self {
            clock,
            ports,
            disk,
            servers: Vec::new(),
            players: Vec::new(),
            board: Board::default(),
            requests: Vec::new(),
            agenda: BTreeSet::new(),
            ticket: 0,
            chance,
            judges,
            trace: Trace::new(echo),
            tally: Tally::default(),
            open: true,
            seed,
            plan,
        };
        world.people();
        for index in 0..world.plan.nodes {
            let server = Server {
                node: None,
                inbox: VecDeque::new(),
                holding: Vec::new(),
                busy_until: 0,
                next_step: 0,
                down_until: 0,
            };
            world.servers.push(server);
            world.start(index)?;
        }
        if world.plan.rates.clock_step > 0 {
            world.later(20_000, Event::ClockStep);
        }
        Ok(world)
    }

    fn people(&mut self) {
        let mut numbers: BTreeMap<&'static str, usize> = BTreeMap::new();
        for role in self.plan.roles.clone() {
            let number = numbers.entry(role.name()).or_default();
            *number += 1;
            let name = format!("{}-{number}", role.name());
            let chance = self.chance.fork(self.players.len() as u64);
            self.players.push(Player { actor: actors::new(role, name.clone()), name, chance });
            let first = self.chance.between(0, 2_000);
            self.later(first, Event::Wake(self.players.len() - 1));
        }
    }

    fn start(&mut self, index: usize) -> anyhow::Result<()> {
        let node = Node::start(&self.disk, &self.ports, &self.plan.settings)?;
        let at = At { now: self.wall(), mono: self.mono() };
        self.judges.started(index, at).map_err(|(rule, found)| anyhow::anyhow!("{rule}: {}", found.what))?;
        let server = &mut self.servers[index];
        server.node = Some(node);
        server.down_until = 0;
        server.busy_until = 0;
        self.step_at(index, self.mono());
        Ok(())
    }

    fn wall(&self) -> i64 {
        self.clock.now().as_millis()
    }

    fn mono(&self) -> i64 {
        i64::try_from(self.clock.monotonic().as_millis()).unwrap_or(i64::MAX)
    }

    fn later(&mut self, ms: i64, event: Event) {
        let at = self.mono() + ms.max(0);
        self.ticket += 1;
        self.agenda.insert((at, self.ticket, event));
    }

    /// Lets a server do its next batch then, or earlier if it was to already.
    fn step_at(&mut self, index: usize, at: i64) {
        let server = &mut self.servers[index];
        server.next_step = at;
        self.ticket += 1;
        self.agenda.insert((at, self.ticket, Event::Step(index)));
    }

    /// From the first event to the last word of the judges.
    fn live(&mut self) -> Lived<()> {
        let seed = self.seed;
        let text = format!("seed {seed}: {} servers, {:?}", self.plan.nodes, self.plan.rates);
        self.trace.line(0, Vec::new(), &text);
        while self.requests.len() < self.plan.calls && self.mono() < self.plan.length_ms {
            self.next()?;
        }
        self.finish()
    }

    /// The next event of the agenda.
    fn next(&mut self) -> Lived<()> {
        let Some((at, _, event)) = self.agenda.pop_first() else {
            return Err(Stop::world("nothing is left to happen"));
        };
        let ms = at - self.mono();
        if ms > 0 {
            self.clock.advance(u32::try_from(ms).unwrap_or(u32::MAX));
        }
        match event {
            Event::Arrive(request) => self.arrive(request),
            Event::Answer(request) => self.answered(request),
            Event::GiveUp(request) => self.give_up(request),
            Event::Wake(player) => self.wake(player),
            Event::Step(index) => return self.turn(index),
            Event::ClockStep => self.step_clock(),
        }
        Ok(())
    }

    fn wake(&mut self, player: usize) {
        if self.open {
            self.at_desk(player, |actor, desk| actor.wake(desk));
        }
    }

    /// Lets an actor do something, and takes what it wants to send.
    fn at_desk(&mut self, player: usize, act: impl FnOnce(&mut dyn Actor, &mut Desk<'_>)) {
        let (now, mono) = (self.wall(), self.mono());
        let who = &mut self.players[player];
        let mut desk = Desk {
            now,
            mono,
            chance: &mut who.chance,
            board: &self.board,
            plan: &self.plan,
            out: Vec::new(),
            acts: Vec::new(),
            wake_in: None,
        };
        act(who.actor.as_mut(), &mut desk);
        let (out, acts, wake_in) = (desk.out, desk.acts, desk.wake_in);
        let name = who.name.clone();
        for act in acts {
            self.tally.count("effects", "done");
            let text = format!("{name} does {} with key {}", act.name, act.key);
            self.trace.line(mono, vec![act.job], &text);
            self.board.done.insert(act.key.clone(), act.result.clone());
            self.judges.acts.push((name.clone(), act));
        }
        if let Some(ms) = wake_in {
            self.later(ms, Event::Wake(player));
        }
        for letter in out {
            self.post(player, letter);
        }
    }
}
