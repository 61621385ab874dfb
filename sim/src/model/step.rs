//! One step of a server as it was seen from outside, and how the model goes through it.

use std::sync::Arc;

use tagwerk_core::limits;
use tagwerk_engine::command::{Claim, ClaimAnswer, EngineError};
use tagwerk_engine::row::JobRow;

use super::compare::Payload;
use super::eye::Eye;
use super::handout::{Asking, Stage};
use super::starts::Counts;
use super::{AVOID_MS, Contradiction, Judged, Model};
use crate::call::{Answer, Call, Reply};
use crate::witness::{End, Kind, Tried, Write};

/// A message that was given to the server, and the answer that it put down in this step.
pub(crate) enum Seen {
    Call {
        call: Arc<Call>,
        reply: Option<Reply>,
    },
    /// The server gives back leases that nobody took: job and bits.
    GiveBack(Vec<(i64, u64)>),
    /// It was told to stop.
    Stop,
}

/// A claim that waited when the step began.
pub(crate) struct ParkedSeen {
    pub(crate) call: Arc<Call>,
    /// On the clock that never jumps.
    pub(crate) deadline: i64,
    pub(crate) reply: Option<Reply>,
    /// Its client is gone.
    pub(crate) gone: bool,
}

/// See the module.
pub(crate) struct StepSeen {
    pub(crate) node: usize,
    pub(crate) wall: i64,
    pub(crate) mono: i64,
    pub(crate) items: Vec<Seen>,
    pub(crate) parked: Vec<ParkedSeen>,
    pub(crate) tries: Vec<Tried>,
    /// The server died in this step: nobody got an answer.
    pub(crate) died: bool,
}

/// One transaction with the messages that were in it.
pub(super) struct Run<'a> {
    tried: &'a Tried,
    pub(super) items: Vec<usize>,
    /// Whether time and retention were looked after.
    services: bool,
    /// Whether it was acknowledged, so that there are answers to be judged.
    pub(super) known: bool,
}

impl<'a> Run<'a> {
    fn of(step: &StepSeen, tried: &'a Tried, items: Vec<usize>) -> Self {
        Self { tried, items, services: false, known: tried.end == End::Committed && !step.died }
    }
}

impl StepSeen {
    /// The server was told to stop in this step.
    fn stops(&self) -> bool {
        self.items.iter().any(|item| matches!(item, Seen::Stop))
    }
}

impl Model {
    /// Judges a step and takes over what was committed in it.
    pub(crate) fn step(&mut self, step: &StepSeen) -> Judged {
        self.capacity.read_clock(step.wall);
        let items = Self::refused_when_stopping(step)?;
        Self::parked_ended(step)?;
        let Some(first) = step.tries.first() else {
            return Err(Contradiction::of(None, "a step was made without a transaction"));
        };
        self.run(step, &Run { services: true, ..Run::of(step, first, items.clone()) })?;
        let Some(kind) = failed(first) else {
            self.learn_tokens(step);
            return only(step, 1);
        };
        let hopeless = matches!(kind, Kind::Busy | Kind::ReadOnly | Kind::OutcomeUnknown);
        if hopeless || items.is_empty() {
            only(step, 1)?;
            return if step.died { Ok(()) } else { all_told(step, &items, kind) };
        }
        only(step, 1 + items.len())?;
        for (item, tried) in items.iter().zip(step.tries.iter().skip(1)) {
            self.run(step, &Run::of(step, tried, vec![*item]))?;
            if let Some(kind) = failed(tried).filter(|_| !step.died) {
                all_told(step, &[*item], kind)?;
            }
        }
        self.learn_tokens(step);
        Ok(())
    }

    /// A server that stops refuses what would begin new work. Gives back the places of the rest.
    fn refused_when_stopping(step: &StepSeen) -> Result<Vec<usize>, Contradiction> {
        let (mut rest, stops) = (Vec::new(), step.stops());
        for (index, item) in step.items.iter().enumerate() {
            match item {
                Seen::Call { call, reply }
                    if stops && matches!(**call, Call::Enqueue(_) | Call::Claim(_)) =>
                {
                    if !matches!(reply, Some(Err(EngineError::Draining))) {
                        return Err(Contradiction::of(None, "a server that stops took on new work"));
                    }
                }
                _ => rest.push(index),
            }
        }
        Ok(rest)
    }

    /// Claims that waited end empty at their deadline, when the server stops, or when they are sent again; not before.
    fn parked_ended(step: &StepSeen) -> Judged {
        let stops = step.stops();
        for parked in &step.parked {
            let Call::Claim(claim) = &*parked.call else { continue };
            let over = step.mono >= parked.deadline || stops || again(step, claim);
            match &parked.reply {
                None if over && !parked.gone && !step.died => {
                    let what = format!("the claim of {} waits past its end", claim.worker);
                    return Err(Contradiction::of(None, what));
                }
                Some(Ok(Answer::Claim(answer))) if answer.jobs.is_empty() && !over => {
                    let what = format!("the claim of {} was ended before its time", claim.worker);
                    return Err(Contradiction::of(None, what));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn run(&mut self, step: &StepSeen, run: &Run<'_>) -> Judged {
        let tried = run.tried;
        match tried.end {
            End::Committed | End::Unknown { committed: true } => {}
            End::Failed(_) if tried.struck => return Ok(()),
            End::Unknown { committed: false } => return Ok(()),
            End::Failed(kind) => {
                return Err(Contradiction::of(None, format!("a transaction failed by itself: {kind:?}")));
            }
            End::Dropped => {
                return Err(Contradiction::of(None, "a transaction was dropped: the engine panicked"));
            }
        }
        self.begin(step, tried)?;
        let mut eye = Eye::new(tried);
        for index in run.items.iter().filter(|_| run.known) {
            if let Seen::Call { reply: Some(reply), .. } = &step.items[*index] {
                eye.read(reply);
            }
        }
        self.put_types(step, run)?;
        self.put_bounds(step, run)?;
        self.pass_time(run, &eye);
        for index in &run.items {
            self.act(&step.items[*index], (step, run), &eye)?;
        }
        let mut open = self.open(step, run);
        self.hand_out(&mut open, &eye)?;
        self.replayed(step.node, &open);
        drop(open);
        self.prune(&eye)?;
        self.give_turns();
        self.compare_written(&eye)?;
        self.finish(step, run)
    }

    fn begin(&mut self, step: &StepSeen, tried: &Tried) -> Judged {
        self.now = step.wall;
        self.created_here = 0;
        self.inserted_here = tried.writes.iter().filter(|write| matches!(write, Write::Insert(_))).count();
        self.touched.clear();
        self.fresh.clear();
        self.released.clear();
        let shift = self.nodes[step.node].clock.shift(step.wall, step.mono);
        if shift != tried.shift_ms {
            let what =
                format!("live leases must be moved by {shift} ms, they were moved by {} ms", tried.shift_ms);
            return Err(Contradiction::of(None, what));
        }
        for lease in self.jobs.values_mut().filter_map(|job| job.lease.as_mut()) {
            lease.expires_at += shift;
            lease.limit_at = lease.limit_at.map(|limit| limit + shift);
        }
        Ok(())
    }

    /// With the services everything that is over ends, up to a bound. Without them, and beyond it, only what the transaction
    /// looked at.
    fn pass_time(&mut self, run: &Run<'_>, eye: &Eye<'_>) {
        let now = self.now;
        let limit = limits::OVERDUE_PER_BATCH;
        let over = |running: bool| {
            let mut over: Vec<(i64, i64)> = self
                .jobs
                .values()
                .filter(|job| job.is_overdue(now) && job.lease.is_some() == running)
                .filter(|job| run.services || eye.moved(job.id, job.version))
                .map(|job| {
                    (
                        job.lease.as_ref().map_or(job.expires_at.unwrap_or(now), super::job::Lease::ends_at),
                        job.id,
                    )
                })
                .collect();
            over.sort_unstable();
            let mut more = over.split_off(limit.min(over.len()));
            more.retain(|(_, id)| eye.moved(*id, self.jobs.get(id).map_or(0, |job| job.version)));
            (over, more)
        };
        let ((attempts, more), (ages, older)) = (over(true), over(false));
        // Whether a claim of the same transaction sees them already is free.
        self.fresh = more.iter().chain(&older).map(|(_, id)| *id).collect();
        if !run.services {
            self.fresh.extend(attempts.iter().chain(&ages).map(|(_, id)| *id));
            // A claim that met one of these may have spent a start on it.
            for (_, id) in &ages {
                if let Some(job) = self.jobs.get(id) {
                    self.capacity.started(job, Counts::Perhaps);
                }
            }
        }
        for (_, id) in attempts.into_iter().chain(more).chain(ages).chain(older) {
            self.settle(id, eye);
        }
    }

    fn act(&mut self, item: &Seen, at: (&StepSeen, &Run<'_>), eye: &Eye<'_>) -> Judged {
        let (step, run) = at;
        let (call, reply) = match item {
            Seen::Call { call, reply } => (call, reply.as_ref().filter(|_| run.known)),
            Seen::GiveBack(leases) => {
                for (id, bits) in leases {
                    if !self.nodes[step.node].replayed.contains(&(*id, *bits)) {
                        self.give_back(*id, *bits, eye);
                    }
                }
                return Ok(());
            }
            Seen::Stop => return Ok(()),
        };
        match (&**call, reply) {
            (Call::Enqueue(request), None) => self.enqueue(request, None, eye),
            (Call::Enqueue(request), Some(Ok(Answer::Enqueue(answer)))) => {
                self.enqueue(request, Some(answer), eye)
            }
            (Call::Work(work), reply) => {
                let answer = match reply {
                    Some(Ok(Answer::Work(answer))) => Some(answer),
                    None => None,
                    Some(_) => return Err(surprise(call, reply)),
                };
                // A server that stops drops the claim, and answers as if there had been none.
                let alone = work.claim.is_none() || step.stops();
                let whole = if alone { Payload::of(work.calls.len()) } else { Payload::Hidden };
                if answer.is_some_and(|answer| answer.results.len() != work.calls.len()) {
                    return Err(Contradiction::of(
                        None,
                        "calls were answered with another number of results",
                    ));
                }
                for (index, call) in work.calls.iter().enumerate() {
                    let result = answer.and_then(|answer| answer.results.get(index));
                    self.worker_call(call, (result, whole), eye)?;
                }
                Ok(())
            }
            (Call::Operate(call), None) => self.operate(call, None, eye),
            (Call::Operate(call), Some(Ok(Answer::Operate(answer)))) => self.operate(call, Some(answer), eye),
            (Call::Claim(_), None | Some(Ok(Answer::Claim(_))))
            | (Call::PutType(_), None | Some(Ok(Answer::PutType(_))))
            | (Call::Limit(_), None | Some(Ok(Answer::Limit(_))))
            | (Call::Queue(_), None | Some(Ok(Answer::Queue(_)))) => Ok(()),
            _ => Err(surprise(call, reply)),
        }
    }

    /// The claims that may be served in a transaction: those in it, and those that wait.
    fn open<'a>(&self, step: &'a StepSeen, run: &Run<'_>) -> Vec<Asking<'a>> {
        let mut open = Vec::new();
        let (known, stops) = (run.known, step.stops());
        let stage = |answered: bool| match (known, answered) {
            (false, _) => Stage::Unknown,
            (true, true) => Stage::Answered,
            (true, false) => Stage::Waiting,
        };
        let single = self.nodes.len() == 1;
        for parked in &step.parked {
            let Call::Claim(claim) = &*parked.call else { continue };
            let answer = claim_answer(parked.reply.as_ref());
            if step.mono >= parked.deadline || parked.gone || stops || again(step, claim) {
                continue;
            }
            // Served in one of the transactions of the step; in the others it waits.
            let again = |answer: &ClaimAnswer| known && step.tries.len() == 1 && self.is_repeated(answer);
            let mine = answer.filter(|answer| served_here(answer, run.tried) || again(answer));
            let waits = mine.is_none() && known;
            if waits && !(run.services && single && answer.is_none()) {
                continue;
            }
            let avoid = self.avoided(step, claim);
            open.push(Asking { claim, answer: mine, stage: stage(mine.is_some()), avoid, got: Vec::new() });
        }
        for (index, item) in step.items.iter().enumerate() {
            let Seen::Call { call, reply } = item else { continue };
            let here = run.items.contains(&index);
            let reply = reply.as_ref().filter(|_| known);
            let (claim, answer) = match &**call {
                // One that found nothing in its own transaction may wait, and be served by another of the same step.
                Call::Claim(claim) => {
                    let again = |answer: &ClaimAnswer| here && self.is_repeated(answer);
                    let mine = |answer: &&ClaimAnswer| {
                        answer.jobs.is_empty() || served_here(answer, run.tried) || again(answer)
                    };
                    (claim, claim_answer(reply).filter(mine))
                }
                Call::Work(work) if !stops => match (&work.claim, reply) {
                    (Some(claim), Some(Ok(Answer::Work(answer)))) => (claim, answer.claimed.as_ref()),
                    (Some(claim), _) => (claim, None),
                    (None, _) => continue,
                },
                _ => continue,
            };
            let later = answer.is_some_and(|answer| !answer.jobs.is_empty());
            if here || (later && matches!(**call, Call::Claim(_))) {
                let avoid = self.avoided(step, claim);
                open.push(Asking { claim, answer, stage: stage(answer.is_some()), avoid, got: Vec::new() });
            }
        }
        open
    }

    fn avoided(&self, step: &StepSeen, claim: &Claim) -> Vec<i64> {
        let held = self.nodes[step.node].avoid.iter().filter(|(_, _, until)| *until > step.mono);
        let mut avoid: Vec<i64> =
            held.filter(|(worker, ..)| *worker == claim.worker).map(|(_, id, _)| *id).collect();
        avoid.extend(self.released.iter().filter(|(worker, _)| *worker == claim.worker).map(|(_, id)| *id));
        avoid
    }

    fn replayed(&mut self, node: usize, open: &[Asking<'_>]) {
        for answer in open.iter().filter_map(|open| open.answer).filter(|answer| answer.replayed) {
            for claimed in &answer.jobs {
                if let Some(lease) = &claimed.job.row.job.lease {
                    self.nodes[node].replayed.insert((claimed.job.row.job.id.0, lease.bits.0));
                }
            }
        }
    }

    fn finish(&mut self, step: &StepSeen, run: &Run<'_>) -> Judged {
        let tried = run.tried;
        if let Some(until) = tried.served {
            self.served_until = Some(until);
        }
        let node = &mut self.nodes[step.node];
        if !run.known {
            // The server finds out by what it wrote; leases are not moved twice.
            if tried.shift_ms != 0 && !step.died {
                let _ = node.clock.committed((step.wall, step.mono), tried.served);
            }
            return Ok(());
        }
        let until = step.mono + AVOID_MS;
        node.avoid.extend(self.released.drain(..).map(|(worker, id)| (worker, id, until)));
        node.clock
            .committed((step.wall, step.mono), tried.served)
            .map_err(|what| Contradiction::of(None, what))
    }
}

/// The answer of a claim, if it is one.
pub(super) const fn claim_answer(reply: Option<&Reply>) -> Option<&ClaimAnswer> {
    match reply {
        Some(Ok(Answer::Claim(answer))) => Some(answer),
        _ => None,
    }
}

/// Whether this transaction granted the leases of the answer.
fn served_here(answer: &ClaimAnswer, tried: &Tried) -> bool {
    let eye = Eye::new(tried);
    answer.jobs.first().is_some_and(|claimed| {
        let row = &claimed.job.row;
        // The version, too: a transaction that writes something else about a job leaves its lease as it was.
        let is_granted = |written: &JobRow| {
            let (written, given) = (&written.job, &row.job);
            (written.id, written.version, &written.lease) == (given.id, given.version, &given.lease)
        };
        eye.written.iter().any(|written| is_granted(written))
    })
}

/// Whether the claim is sent again in this step under its `request_id`.
fn again(step: &StepSeen, claim: &Claim) -> bool {
    claim.request_id.is_some()
        && step.items.iter().any(|item| match item {
            Seen::Call { call, .. } => matches!(
                &**call,
                Call::Claim(other) if other.worker == claim.worker && other.request_id == claim.request_id
            ),
            Seen::GiveBack(_) | Seen::Stop => false,
        })
}

/// The error of a transaction that was not acknowledged.
const fn failed(tried: &Tried) -> Option<Kind> {
    match tried.end {
        End::Committed => None,
        End::Unknown { .. } => Some(Kind::OutcomeUnknown),
        End::Failed(kind) => Some(kind),
        End::Dropped => Some(Kind::Other),
    }
}

/// No more transactions were tried than there may be; fewer only if the server died.
fn only(step: &StepSeen, most: usize) -> Judged {
    if step.tries.len() == most || (step.died && step.tries.len() < most) {
        return Ok(());
    }
    let what = format!("{} transactions were tried where {most} must be", step.tries.len());
    Err(Contradiction::of(None, what))
}

/// Whoever was in a transaction that failed is told so.
fn all_told(step: &StepSeen, items: &[usize], kind: Kind) -> Judged {
    let want = match kind {
        Kind::Busy => EngineError::StoreBusy,
        Kind::Full => EngineError::StoreFull,
        Kind::ReadOnly => EngineError::StoreReadOnly,
        Kind::Damaged => EngineError::StoreDamaged,
        Kind::OutcomeUnknown => EngineError::OutcomeUnknown,
        Kind::Conflict | Kind::Other => EngineError::Internal,
    };
    for index in items {
        let Seen::Call { call, reply } = &step.items[*index] else { continue };
        if !matches!(reply, Some(Err(error)) if *error == want) {
            let what = format!("a {} failed with {kind:?} and must be told `{want}`", call.kind());
            let told = match reply {
                None => "nothing".to_owned(),
                Some(Ok(_)) => "that it was done".to_owned(),
                Some(Err(error)) => error.to_string(),
            };
            return Err(Contradiction::of(
                call.jobs().first().map(|id| id.0),
                format!("{what}, it was told {told}"),
            ));
        }
    }
    Ok(())
}

fn surprise(call: &Call, reply: Option<&Reply>) -> Contradiction {
    let told = match reply {
        Some(Err(error)) => format!("it was told: {error}"),
        _ => "its answer is of another kind".to_owned(),
    };
    let what = format!("the {} was committed, but {told}", call.kind());
    Contradiction::of(call.jobs().first().map(|id| id.0), what)
}
