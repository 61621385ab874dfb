//! What goes wrong at the servers: the store refuses, a commit gets no answer, a server dies or is stopped and comes back,
//! stands still, or its clock steps.

use super::{Event, Lived, Stop, World};
use crate::witness::{Fault, Kind, Strike};

/// What a server has before it when it takes its next batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Fine,
    /// It is told to stop, as for a deploy.
    Stops,
}

/// Transactions for which faults are planned at most: the batch and its commands one by one.
const PLANNED: usize = 6;

impl World {
    /// Decides what goes wrong in the next batch of this server, and tells its store.
    pub(super) fn fate(&mut self, index: usize) -> Fate {
        let rates = self.plan.rates;
        if !self.open {
            return Fate::Fine;
        }
        let mut faults: Vec<Option<Fault>> = Vec::new();
        if self.chance.per_mille(rates.crash) {
            faults = self.deadly();
        } else if self.chance.per_mille(rates.commit_unknown) {
            let at = if self.chance.percent(60) { Strike::AfterCommit } else { Strike::BeforeCommit };
            self.tally.count("faults", "commit without an answer");
            faults.push(Some(Fault { at, kind: Kind::OutcomeUnknown, deadly: false }));
        } else if self.chance.per_mille(rates.store_error) {
            faults = self.errors();
        }
        let house = self.chance.per_mille(rates.housekeeping);
        if let Some(node) = &self.servers[index].node {
            node.journal.plan(faults);
            if house {
                node.journal.fail_housekeeping(Kind::Busy);
            }
        }
        if self.chance.per_mille(rates.stop) {
            self.tally.count("faults", "server stopped");
            return Fate::Stops;
        }
        Fate::Fine
    }

    /// The server dies in the batch, or in one of the transactions that follow a batch that failed.
    fn deadly(&mut self) -> Vec<Option<Fault>> {
        let at = match self.chance.below(3) {
            0 => Strike::Method(1 + u32::try_from(self.chance.below(20)).unwrap_or(0)),
            1 => Strike::BeforeCommit,
            _ => Strike::AfterCommit,
        };
        let name = match at {
            Strike::AfterCommit => "crash after commit",
            Strike::BeforeCommit => "crash before commit",
            Strike::Begin | Strike::Method(_) => "crash in a transaction",
        };
        self.tally.count("faults", name);
        let death = Some(Fault { at, kind: Kind::OutcomeUnknown, deadly: true });
        if self.chance.percent(80) {
            return vec![death];
        }
        vec![Some(Fault { at: Strike::BeforeCommit, kind: Kind::Full, deadly: false }), death]
    }

    fn errors(&mut self) -> Vec<Option<Fault>> {
        let kinds = [
            (Kind::Busy, "store busy"),
            (Kind::Full, "store full"),
            (Kind::ReadOnly, "store read-only"),
            (Kind::Damaged, "store damaged"),
            (Kind::Conflict, "store conflict"),
            (Kind::Other, "store failed"),
        ];
        let (kind, name) = *self.chance.pick(&kinds);
        let mut faults = Vec::new();
        for _ in 0..=self.chance.below(PLANNED) {
            let at = match self.chance.below(4) {
                0 => Strike::Begin,
                1 => Strike::BeforeCommit,
                _ => Strike::Method(1 + u32::try_from(self.chance.below(12)).unwrap_or(0)),
            };
            let strikes = faults.is_empty() || self.chance.percent(50);
            if strikes {
                self.tally.count("faults", name);
            }
            faults.push(strikes.then_some(Fault { at, kind, deadly: false }));
        }
        faults
    }

    /// The server is gone: its memory, its connections, and whatever it had not answered.
    pub(super) fn fall(&mut self, index: usize) {
        let down = match self.chance.below(4) {
            0 => 0,
            1 | 2 => self.chance.between(1, 3_000),
            _ if self.plan.nodes > 1 => 0,
            _ => self.chance.between(3_000, 90_000),
        };
        let mono = self.mono();
        let server = &mut self.servers[index];
        server.node = None;
        server.inbox.clear();
        server.holding.clear();
        server.down_until = mono + down;
        let text = format!("server {index} is down for {down} ms");
        self.trace.line(mono, Vec::new(), &text);
        self.step_at(index, mono + down);
    }

    /// A server that was down comes back.
    pub(super) fn rise(&mut self, index: usize) -> Lived<()> {
        self.tally.count("faults", "restart");
        let text = format!("server {index} starts");
        self.trace.line(self.mono(), Vec::new(), &text);
        self.start(index).map_err(|error| Stop::world(format!("{error:#}")))?;
        self.look_at_all(index)
    }

    /// How long a batch takes. Sometimes the server stands still.
    pub(super) fn duration(&mut self) -> i64 {
        if self.open && self.chance.per_mille(self.plan.rates.stall) {
            self.tally.count("faults", "stall");
            return self.chance.between(3_001, 40_000);
        }
        self.chance.between(0, self.plan.commit_ms)
    }

    /// The wall clock is put forward or back.
    pub(super) fn step_clock(&mut self) {
        if !self.open {
            return;
        }
        // In some worlds the clock is never quite right, in others it jumps now and then.
        let restless = self.plan.rates.clock_step.is_multiple_of(2);
        let next =
            if restless { self.chance.between(200, 3_000) } else { self.chance.between(5_000, 60_000) };
        self.later(next, Event::ClockStep);
        let ms = match self.chance.below(if restless { 40 } else { 3 }) {
            // Slewing: too little to be called a step.
            0 | 3.. => self.chance.between(-450, 450),
            1 => self.chance.between(600, 120_000),
            _ => self.chance.between(-120_000, -600),
        };
        self.tally.count("faults", if ms < 0 { "clock back" } else { "clock forward" });
        let text = format!("the wall clock steps by {ms} ms");
        self.trace.line(self.mono(), Vec::new(), &text);
        self.clock.set(tagwerk_core::Timestamp::from_millis(self.wall() + ms));
    }
}
