//! Looks for an order that explains a part: depth first over (calls that are placed, state), each such pair once.
//!
//! A call may be placed next if no call that is still to be placed had ended before it began. A call without an answer may be
//! placed, with any outcome, or left out; not after a server was gone that it was sent to. Steps that no call asks for are
//! placed between calls when their time can have come. A call that fits and changes nothing is placed at once: to place it
//! later explains no more.

use std::collections::{BTreeMap, HashSet};

use crate::call::{Call, Told};
use crate::rules::{Rules, When};
use crate::spec::{Circumstance, Facts, Hidden, Strictness, World};

/// A call in a part.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) call: Call,
    /// Its answer is to be explained; else it happened or did not.
    pub(crate) answered: bool,
    /// Without an answer: it did not happen later.
    pub(crate) deadline_ns: u64,
    /// Ids that an enqueue may give.
    pub(crate) births: Vec<i64>,
    /// The job that a claim got.
    pub(crate) claims: Option<i64>,
}

/// Calls that can influence each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// In the order of their ends.
    pub(crate) ops: Vec<Op>,
    pub(crate) facts: BTreeMap<i64, Facts>,
    /// Claims without an answer of which nobody knows what they got: from, until.
    pub(crate) unknown: Vec<(u64, u64)>,
}

/// What a search comes to.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    Explained,
    Contradiction(Stuck),
    GaveUp,
}

impl Verdict {
    pub(crate) const fn is_contradiction(&self) -> bool {
        matches!(self, Self::Contradiction(_))
    }
}

/// The furthest that any order comes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stuck {
    placed: usize,
    /// What happened in that order.
    pub(crate) story: Vec<Placed>,
    /// Calls that would have to come next, and why they cannot.
    pub(crate) next: Vec<(usize, String)>,
}

/// A step of an order.
#[derive(Clone, Debug)]
pub(crate) enum Placed {
    /// The call of that index.
    Call(usize),
    /// A step that no call asks for.
    Hidden(i64, &'static str),
}

/// Claims of unknown fate that one part may use.
const UNKNOWN_CLAIMS: usize = 6;

/// Looks for an order.
pub(crate) fn explain(part: &Part, rules: &Rules, strictness: Strictness) -> Verdict {
    let ids = part.facts.keys().copied();
    let mut search = Search {
        part,
        rules,
        strictness,
        seen: HashSet::new(),
        path: Vec::new(),
        stuck: Stuck::default(),
        steps: 0,
    };
    let node = Node { placed: vec![false; part.ops.len()], floor: 0, world: World::empty(ids) };
    match search.visit(&node) {
        Found::Order => Verdict::Explained,
        Found::Nothing => Verdict::Contradiction(search.stuck),
        Found::NoPatience => Verdict::GaveUp,
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Node {
    placed: Vec<bool>,
    /// Nothing that is placed from now on happened before.
    floor: u64,
    world: World,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Order,
    Nothing,
    NoPatience,
}

struct Search<'a> {
    part: &'a Part,
    rules: &'a Rules,
    strictness: Strictness,
    seen: HashSet<Node>,
    path: Vec<Placed>,
    stuck: Stuck,
    steps: usize,
}

impl Search<'_> {
    fn visit(&mut self, node: &Node) -> Found {
        let waiting =
            || self.part.ops.iter().zip(&node.placed).filter(|(op, placed)| op.answered && !**placed);
        let Some(horizon) = waiting().map(|(op, _)| op.call.end_ns).min() else { return Found::Order };
        if waiting().any(|(op, _)| self.is_past(op, &node.world)) {
            return Found::Nothing;
        }
        self.steps += 1;
        if self.steps > self.rules.patience {
            return Found::NoPatience;
        }
        if !self.seen.insert(node.clone()) {
            return Found::Nothing;
        }
        let mut why = Vec::new();
        for answered in [true, false] {
            if !answered {
                match self.visit_hidden(node, horizon) {
                    Found::Nothing => {}
                    found => return found,
                }
            }
            for index in 0..self.part.ops.len() {
                let op = &self.part.ops[index];
                let in_time = op.call.start_ns <= horizon && (answered || op.deadline_ns >= node.floor);
                if node.placed[index] || op.answered != answered || !in_time {
                    continue;
                }
                match self.place(node, (index, horizon), &mut why) {
                    (Found::Nothing, false) => {}
                    (found, _) => return found,
                }
            }
        }
        self.remember(node, why);
        Found::Nothing
    }

    /// Whether an answer shows a version that is over already.
    fn is_past(&self, op: &Op, world: &World) -> bool {
        let shown = op.call.told.view().filter(|_| self.strictness == Strictness::All);
        shown.is_some_and(|view| world.job(view.id).is_some_and(|job| job.version > view.version))
    }

    /// Places a call in every way in which it can go. The second value: no other call needs to be tried here.
    fn place(
        &mut self,
        node: &Node,
        (index, horizon): (usize, u64),
        why: &mut Vec<(usize, String)>,
    ) -> (Found, bool) {
        let op = &self.part.ops[index];
        let floor = node.floor.max(op.call.start_ns);
        let hi = if op.answered { op.call.end_ns } else { op.deadline_ns };
        let (worlds, reasons) = self.ways(op, &node.world, When { lo: floor, hi: hi.max(floor) });
        if op.answered && worlds.is_empty() {
            why.push((index, reasons.join("; or ")));
        }
        let quiet = op.answered
            && !worlds.is_empty()
            && (!op.call.asked.changes() || matches!(op.call.told, Told::Refused { .. }))
            && worlds.iter().all(|world| *world == node.world)
            && !self.something_began_earlier(node, (index, horizon));
        for world in worlds {
            let mut next = Node { placed: node.placed.clone(), floor, world };
            next.placed[index] = true;
            self.path.push(Placed::Call(index));
            let found = self.visit(&next);
            self.path.pop();
            if found != Found::Nothing {
                return (found, true);
            }
        }
        (Found::Nothing, quiet)
    }

    /// Whether something else could be placed here that began earlier. Then placing this call first would let that happen
    /// later than it may have.
    fn something_began_earlier(&self, node: &Node, (index, horizon): (usize, u64)) -> bool {
        let start = self.part.ops[index].call.start_ns;
        if start <= node.floor {
            return false;
        }
        let ops = self.part.ops.iter().zip(&node.placed).enumerate();
        let mut earlier = ops.filter(|(other, (op, placed))| {
            *other != index && !**placed && op.call.start_ns < start && op.deadline_ns >= node.floor
        });
        let can_change = |op: &Op| {
            let lo = node.floor.max(op.call.start_ns);
            let (worlds, _) = self.ways(op, &node.world, When { lo, hi: op.deadline_ns.max(lo) });
            worlds.iter().any(|world| *world != node.world)
        };
        earlier.any(|(_, (op, _))| can_change(op))
            || self.hidden(node, horizon).iter().any(|(_, _, step)| step.lo < start)
    }

    /// The worlds that a call can lead to; for an answered one those that its answer fits, or why none does.
    fn ways(&self, op: &Op, world: &World, at: When) -> (Vec<World>, Vec<String>) {
        let told = &op.call.told;
        if op.answered && is_from_outside(told) {
            return (vec![world.clone()], Vec::new());
        }
        let by = Circumstance {
            facts: &self.part.facts,
            rules: self.rules,
            at,
            births: &op.births,
            claims: op.claims,
            token: match told {
                Told::Lease { lease, .. } => Some(lease),
                _ => None,
            },
        };
        let outcomes = world.outcomes(&op.call.asked, &by);
        if !op.answered {
            let changed = outcomes.into_iter().map(|outcome| outcome.world);
            return (changed.filter(|next| next != world).collect(), Vec::new());
        }
        let mut fitting = Vec::new();
        let mut reasons = Vec::new();
        if outcomes.is_empty() {
            reasons.push(world.why_not(&op.call.asked, op.claims));
        }
        for outcome in outcomes {
            match outcome.agree((&op.call.asked, told), self.rules, self.strictness) {
                Ok(world) => fitting.push(world),
                Err(reason) => reasons.push(reason),
            }
        }
        (fitting, reasons)
    }

    /// The steps that no call asks for and that may come next.
    fn hidden(&self, node: &Node, horizon: u64) -> Vec<(World, i64, Hidden)> {
        let open = self.part.unknown.iter().filter(|(from, until)| *from <= horizon && *until >= node.floor);
        let used = usize::try_from(node.world.unknown_claims).unwrap_or(usize::MAX);
        let most = self.part.unknown.len().min(UNKNOWN_CLAIMS);
        let since = open.map(|(from, _)| *from).min().filter(|_| used < most);
        let mut steps = node.world.hidden(&self.part.facts, self.rules, (node.floor, since));
        steps.retain(|(_, _, step)| step.lo <= horizon);
        steps
    }

    fn visit_hidden(&mut self, node: &Node, horizon: u64) -> Found {
        for (world, job, step) in self.hidden(node, horizon) {
            self.path.push(Placed::Hidden(job, step.what));
            let found = self.visit(&Node { placed: node.placed.clone(), floor: step.lo, world });
            self.path.pop();
            if found != Found::Nothing {
                return found;
            }
        }
        Found::Nothing
    }

    /// Keeps the end of this order if none came further.
    fn remember(&mut self, node: &Node, why: Vec<(usize, String)>) {
        let ops = self.part.ops.iter().zip(&node.placed);
        let placed = ops.filter(|(op, placed)| op.answered && **placed).count();
        if self.stuck.next.is_empty() || placed > self.stuck.placed {
            self.stuck = Stuck { placed, story: self.path.clone(), next: why };
        }
    }
}

/// Refusals that say nothing of any job: busy, draining, not understood, refused with its neighbours.
fn is_from_outside(told: &Told) -> bool {
    let Told::Refused { status, code, .. } = told else { return false };
    let about_a_job = matches!(status, 404 | 409) || code == "idempotency-key-reused";
    !about_a_job
}
