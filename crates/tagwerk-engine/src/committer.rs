//! The committer: collects commands, executes them in one transaction, commits, answers.
//!
//! Group commit is the performance design: while one commit waits for the disk, the next batch collects. A batch that
//! fails as a whole is tried again one command at a time, so that a bad one fails alone. A commit without an answer is
//! never repeated blindly.
//!
//! [`Committer::step`] does one batch and reads the clock it was given, so that tests and the simulation drive it without
//! a thread; the thread around it is in [`crate::engine`].

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use tagwerk_core::{JobId, Timestamp, limits};

use crate::batch::{self, Done, Output, Services, Surroundings};
use crate::clockwork::{Clockwork, Reading};
use crate::command::{ClaimAnswer, EngineError, Refusal, Work, WorkAnswer};
use crate::engine::Shared;
use crate::exec::retention::Sweep;
use crate::exec::time::Backlog;
use crate::message::{Message, refuse, refuse_new_work};
use crate::parked::{Parked, ParkedClaim};
use crate::policies::Policies;
use crate::ports::{Clock, Entropy, Observer};
use crate::settings::Settings;
use crate::store::{Store, StoreError, StoreResult};
use crate::tokens::Tokens;
use crate::work::Env;

/// What the committer is given by the world.
#[derive(Clone)]
pub struct Ports {
    /// The one clock.
    pub clock: Arc<dyn Clock>,
    /// Lease bits and jitter.
    pub entropy: Arc<dyn Entropy>,
    /// Who counts.
    pub observer: Arc<dyn Observer>,
}

/// Whether the committer goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Running {
    /// It takes further batches.
    Yes,
    /// It was told to stop and has answered everything.
    Stopped,
}

/// See the module.
pub struct Committer {
    store: Box<dyn Store>,
    ports: Ports,
    settings: Settings,
    tokens: Tokens,
    shared: Arc<Shared>,
    parked: Parked,
    policies: Policies,
    clockwork: Clockwork,
    /// Jobs that a worker gave back, and until when on the monotonic clock it is passed over for them.
    avoid: HashMap<String, Vec<(JobId, Duration)>>,
    /// Leases that a repeated claim was given again, and until when that matters: their worker has them, whatever becomes of
    /// the first answer, which a slow connection may hold for a while.
    replayed: HashMap<(JobId, tagwerk_core::LeaseBits), Timestamp>,
    sweep: Sweep,
    retention_due: Duration,
    behind: bool,
    draining: bool,
    /// The last batch failed as a whole: what time asks for is tried again at the next tick, not at once.
    failed: bool,
    /// A commit got no answer: what this reading of the clocks led to may be in the store or not.
    unsure: Option<Reading>,
}

impl Committer {
    /// A committer on this store. Reads policies and makes up for the time in which nobody served the store.
    pub fn new(
        mut store: Box<dyn Store>,
        ports: Ports,
        settings: Settings,
        shared: Arc<Shared>,
    ) -> StoreResult<Self> {
        let tokens = Tokens::new(store.secret());
        let (now, monotonic) = (ports.clock.now(), ports.clock.monotonic());
        let mut tx = store.begin()?;
        let policies = Policies::read(&mut *tx)?;
        let served = tx.served_until()?;
        drop(tx);
        let clockwork = Clockwork::new(now, monotonic, served);
        Ok(Self {
            store,
            ports,
            settings,
            tokens,
            shared,
            parked: Parked::default(),
            policies,
            clockwork,
            avoid: HashMap::new(),
            replayed: HashMap::new(),
            sweep: Sweep::default(),
            retention_due: monotonic,
            behind: false,
            draining: false,
            failed: false,
            unsure: None,
        })
    }

    /// How long the thread may sleep before the next [`Committer::step`] if nothing comes in.
    #[must_use]
    pub fn patience(&self) -> Duration {
        let tick = Duration::from_millis(limits::SERVED_UNTIL_EVERY_MS.unsigned_abs());
        if self.failed {
            return tick;
        }
        if self.behind || self.parked.is_behind() {
            return Duration::ZERO;
        }
        let (due, deadline) = self.parked.next_wake();
        let until_due = due.map_or(tick, |due| {
            let ms = due.since_ms(self.ports.clock.now()).max(0);
            Duration::from_millis(ms.unsigned_abs())
        });
        let until_deadline = deadline.map_or(tick, |at| at.saturating_sub(self.ports.clock.monotonic()));
        tick.min(until_due).min(until_deadline)
    }

    /// Executes a batch, commits it and answers. An empty batch does what time and the services ask for.
    pub fn step(&mut self, mut messages: Vec<Message>) -> Running {
        let stop = messages.iter().any(|message| matches!(message, Message::Stop));
        self.draining |= stop || messages.iter().any(|message| matches!(message, Message::Drain));
        if self.draining {
            messages = refuse_new_work(messages);
            self.answer_parked();
        }
        let monotonic = self.ports.clock.monotonic();
        let ended = self.parked.take_ended(monotonic);
        if !ended.is_empty() {
            self.shared.parked(self.parked.len());
        }
        for parked in ended {
            answer_empty(parked);
        }
        self.replace_repeated(&messages);
        self.keep_replayed(&mut messages);
        let services =
            if monotonic >= self.retention_due { Services::TimeAndRetention } else { Services::Time };
        let done = self.guarded(&messages.iter().collect::<Vec<_>>(), services);
        self.failed = done.is_err();
        match done {
            Ok(done) => self.deliver(messages, done),
            Err(error) => self.recover(messages, &error),
        }
        if services == Services::TimeAndRetention {
            self.keep_house(monotonic);
        }
        self.shared.parked(self.parked.len());
        if stop { Running::Stopped } else { Running::Yes }
    }

    /// One transaction. A panic in it (a bug) rolls it back like any other failure, so that the command that brought it
    /// about fails alone and the queue goes on.
    fn guarded(&mut self, messages: &[&Message], services: Services) -> StoreResult<Done> {
        // What the transaction touched is rolled back when it is dropped; everything else is changed only after it.
        let (done, committed) =
            std::panic::catch_unwind(AssertUnwindSafe(|| self.attempt(messages, services)))
                .unwrap_or_else(|_| Err(StoreError::Other("the engine panicked; this is a bug".into())))?;
        self.after_commit(&committed, messages.len());
        Ok(done)
    }

    /// One transaction.
    fn attempt(&mut self, messages: &[&Message], services: Services) -> StoreResult<(Done, Committed)> {
        let started = self.ports.clock.monotonic();
        let now = self.ports.clock.now();
        let mut tx = self.store.begin()?;
        if let Some(before) = self.unsure {
            // The store knows. Leases must not be moved twice, and policies hold as they are written.
            self.policies = Policies::read(&mut *tx)?;
            if before.shift_ms != 0 && tx.served_until()? == Some(before.wall()) {
                self.clockwork.committed(&before);
            }
            self.unsure = None;
        }
        let reading = self.clockwork.read(now, started);
        let unsaved = if reading.mark_served { self.shared.registry().unsaved() } else { Vec::new() };
        let env = Env {
            now,
            settings: &self.settings,
            types: &self.policies.types,
            limits: &self.policies.limits,
            queues: &self.policies.queues,
            tokens: &self.tokens,
            entropy: &*self.ports.entropy,
        };
        let avoid = |worker: &str| -> Vec<JobId> {
            let held = self.avoid.get(worker).map(Vec::as_slice).unwrap_or_default();
            held.iter().filter(|(_, until)| *until > started).map(|(id, _)| *id).collect()
        };
        let around = Surroundings { parked: &self.parked, avoid: &avoid, services, sweep: &self.sweep };
        let moved = if reading.shift_ms == 0 { 0 } else { tx.shift_leases(reading.shift_ms)? };
        let done = batch::execute(&mut *tx, &env, messages, &around)?;
        if reading.mark_served {
            tx.set_served(now, &unsaved)?;
        }
        match tx.commit() {
            Ok(()) => Ok((done, Committed { reading, moved, started })),
            Err(StoreError::OutcomeUnknown) => {
                self.unsure = Some(reading);
                self.parked.look_again(now);
                Err(StoreError::OutcomeUnknown)
            }
            Err(error) => Err(error),
        }
    }

    /// Books what was committed. Outside of what is tried again: it is done once, whatever happens here.
    fn after_commit(&mut self, committed: &Committed, commands: usize) {
        let Committed { reading, moved, started } = committed;
        self.clockwork.committed(reading);
        if *moved > 0 {
            tracing::info!(ms = reading.shift_ms, leases = moved, "moved live leases along with the clock");
        }
        if reading.mark_served {
            self.shared.registry().saved();
        }
        let finished = self.ports.clock.monotonic();
        self.shared.committed(finished);
        if commands > 0 {
            self.ports.observer.committed(commands, finished.saturating_sub(*started));
        }
    }

    /// A batch failed as a whole. Tries its commands one by one where that can help.
    fn recover(&mut self, messages: Vec<Message>, error: &StoreError) {
        self.shared.failed(error, self.ports.clock.monotonic());
        let hopeless = matches!(error, StoreError::Busy | StoreError::ReadOnly | StoreError::OutcomeUnknown);
        if hopeless || messages.is_empty() {
            let error = engine_error(error);
            for message in messages {
                refuse(message, &error);
            }
            return;
        }
        for message in messages {
            match self.guarded(&[&message], Services::Off) {
                Ok(done) => self.deliver(vec![message], done),
                Err(StoreError::DamagedRow(_)) if has_many_calls(&message) => self.one_by_one(message),
                Err(error) => {
                    self.shared.failed(&error, self.ports.clock.monotonic());
                    refuse(message, &engine_error(&error));
                }
            }
        }
    }

    /// One of the jobs that a bulk call names cannot be read. The others get their own transactions, since their worker would
    /// repeat the whole in vain. A claim that came along is left to the next call.
    fn one_by_one(&mut self, message: Message) {
        let Message::Work(command, reply) = message else { return };
        let mut results = Vec::with_capacity(command.calls.len());
        for call in command.calls {
            let id = call.id;
            let (sender, receiver) = sync_channel(1);
            let single = Message::Work(Work { calls: vec![call], claim: None }, Box::new(sender));
            match self.guarded(&[&single], Services::Off) {
                Ok(done) => self.deliver(vec![single], done),
                Err(StoreError::DamagedRow(_)) => results.push(Err(Refusal::JobDamaged(id))),
                Err(error) => {
                    self.shared.failed(&error, self.ports.clock.monotonic());
                    // Nobody there any more, or told that it may repeat: what was reported is replayed.
                    drop(reply.answer(Err(engine_error(&error))));
                    return;
                }
            }
            if let Ok(Ok(answer)) = receiver.try_recv() {
                results.extend(answer.results);
            }
        }
        let claimed = command.claim.map(|_| ClaimAnswer::default());
        drop(reply.answer(Ok(WorkAnswer { results, claimed })));
    }

    /// After the commit: takes over what the batch did, answers, wakes.
    fn deliver(&mut self, messages: Vec<Message>, done: Done) {
        let (now, monotonic) = (self.ports.clock.now(), self.ports.clock.monotonic());
        self.policies.take(done.types, done.limits, done.queues);
        self.behind = done.overdue == Backlog::More;
        if let Some((report, sweep)) = done.retention {
            // What is old stands together: where some was found there is probably more behind it.
            self.behind |= report.more && report.jobs > 0;
            self.sweep = sweep;
            self.shared.retention_ran(report, now);
        }
        self.remember_releases(&done.effects.released, monotonic);
        for (kind, run_ms) in &done.effects.ended {
            self.ports.observer.attempt_ended(kind, *run_ms);
        }
        for worker in &done.effects.heard {
            self.shared.registry().reported(worker, now);
        }
        self.shared.settled(&done.effects.settled);
        let mut undelivered = Undelivered::default();
        let served = self.parked.settle(done.parked.answers);
        self.shared.parked(self.parked.len());
        for (parked, answer) in served {
            self.shared.registry().claimed(&parked.claim, now);
            self.note_replayed(&answer, now);
            undelivered.keep(parked.reply.answer(Ok(answer)).err());
        }
        self.parked.leave(done.parked.left);
        for (message, output) in messages.into_iter().zip(done.outputs) {
            self.answer((message, output), (now, monotonic), &mut undelivered);
        }
        // Behind the answers: a claim that is parked now may have looked before another one of the batch put a job off.
        self.parked.note_due_later(&done.effects, now);
        if !undelivered.leases.is_empty() {
            self.shared.give_back(undelivered.leases);
        }
    }

    fn answer(
        &mut self,
        answered: (Message, Output),
        at: (Timestamp, Duration),
        undelivered: &mut Undelivered,
    ) {
        let (now, monotonic) = at;
        match answered {
            (Message::Claim(claim, reply), Output::Claim(answer)) => {
                self.shared.registry().claimed(&claim, now);
                self.note_replayed(&answer, now);
                let waits =
                    answer.jobs.is_empty() && claim.wait_ms > 0 && !self.draining && self.parked.has_room();
                if waits {
                    self.shared.registry().waits(&claim.worker, now.plus_ms(claim.wait_ms));
                    let deadline = monotonic + Duration::from_millis(claim.wait_ms.unsigned_abs());
                    self.parked.push(ParkedClaim { claim, deadline, next_due: answer.next_due_at, reply });
                } else {
                    undelivered.keep(reply.answer(Ok(answer)).err());
                }
            }
            (Message::Work(command, reply), Output::Work(answer)) => {
                if let Some(claim) = &command.claim {
                    self.shared.registry().claimed(claim, now);
                }
                if let Some(claimed) = &answer.claimed {
                    self.note_replayed(claimed, now);
                }
                undelivered.keep(
                    reply
                        .answer(Ok(answer))
                        .err()
                        .map(|refused| refused.map(|answer| answer.claimed.unwrap_or_default())),
                );
            }
            (Message::Enqueue(_, reply), Output::Enqueue(answer)) => drop(reply.answer(Ok(answer))),
            (Message::Operate(.., reply), Output::Operate(answer)) => drop(reply.answer(Ok(answer))),
            (Message::PutType(.., reply), Output::PutType(answer)) => drop(reply.answer(Ok(*answer))),
            (Message::Limit(.., reply), Output::Limit(answer)) => drop(reply.answer(Ok(*answer))),
            (Message::ControlQueue(.., reply), Output::ControlQueue(answer)) => {
                drop(reply.answer(Ok(answer)));
            }
            (Message::Alert(.., reply), Output::Alert(answer)) => drop(reply.answer(Ok(answer))),
            (Message::GiveBack(_) | Message::TouchTokens(_) | Message::Drain | Message::Stop, _) => {}
            (message, _) => refuse(message, &EngineError::Internal),
        }
    }

    fn remember_releases(&mut self, released: &[(String, JobId)], now: Duration) {
        if released.is_empty() {
            return;
        }
        self.avoid.retain(|_, jobs| {
            jobs.retain(|(_, until)| *until > now);
            !jobs.is_empty()
        });
        for (worker, id) in released {
            let jobs = self.avoid.entry(worker.clone()).or_default();
            jobs.push((*id, now + Duration::from_millis(limits::RELEASE_AVOID_MS.unsigned_abs())));
            if jobs.len() > limits::RELEASES_REMEMBERED {
                jobs.remove(0);
            }
        }
    }

    fn keep_house(&mut self, monotonic: Duration) {
        self.retention_due = monotonic + Duration::from_millis(limits::OVERDUE_EVERY_MS.unsigned_abs());
        if self.behind {
            self.retention_due = monotonic;
        }
        if let Err(error) = self.store.housekeeping() {
            self.shared.failed(&error, monotonic);
        }
    }

    /// A client that sends a claim again under the same `request_id` has given up waiting on the first connection.
    fn replace_repeated(&mut self, messages: &[Message]) {
        for message in messages {
            let Message::Claim(claim, _) = message else { continue };
            if claim.request_id.is_some() {
                self.parked.take_request(claim).into_iter().for_each(answer_empty);
            }
        }
    }

    /// A lease that was given again under its `request_id` is not given back for the answer that got lost before.
    fn keep_replayed(&mut self, messages: &mut [Message]) {
        for message in messages {
            if let Message::GiveBack(leases) = message {
                leases.retain(|lease| !self.replayed.contains_key(lease));
            }
        }
    }

    fn note_replayed(&mut self, answer: &ClaimAnswer, now: Timestamp) {
        if !answer.replayed {
            return;
        }
        self.replayed.retain(|_, until| *until > now);
        for claimed in &answer.jobs {
            let job = &claimed.job.row.job;
            if let Some(lease) = &job.lease {
                self.replayed.insert((job.id, lease.bits), lease.ends_at().plus_ms(limits::HOUR_MS));
            }
        }
    }

    fn answer_parked(&mut self) {
        self.parked.take_all().into_iter().for_each(answer_empty);
    }
}

/// A transaction that was committed.
struct Committed {
    reading: Reading,
    /// Leases that were moved along with the clock.
    moved: u64,
    started: Duration,
}

/// Leases in answers that nobody received.
#[derive(Default)]
struct Undelivered {
    leases: Vec<(JobId, tagwerk_core::LeaseBits)>,
}

impl Undelivered {
    fn keep(&mut self, refused: Option<Result<ClaimAnswer, EngineError>>) {
        // A replayed answer belongs to a worker that has its leases already.
        let Some(Ok(answer)) = refused.filter(|answer| answer.as_ref().is_ok_and(|answer| !answer.replayed))
        else {
            return;
        };
        for claimed in answer.jobs {
            if let Some(lease) = claimed.job.row.job.lease {
                self.leases.push((claimed.job.row.job.id, lease.bits));
            }
        }
    }
}

const fn has_many_calls(message: &Message) -> bool {
    matches!(message, Message::Work(command, _) if command.calls.len() > 1)
}

fn answer_empty(parked: ParkedClaim) {
    let answer = ClaimAnswer { next_due_at: parked.next_due, ..ClaimAnswer::default() };
    // Nobody there any more: nothing was promised.
    drop(parked.reply.answer(Ok(answer)));
}

pub(crate) const fn engine_error(error: &StoreError) -> EngineError {
    match error {
        StoreError::Busy => EngineError::StoreBusy,
        StoreError::Full => EngineError::StoreFull,
        StoreError::ReadOnly => EngineError::StoreReadOnly,
        StoreError::Damaged(_) => EngineError::StoreDamaged,
        StoreError::Gone(_) => EngineError::StoreGone,
        StoreError::DamagedRow(_) => EngineError::JobDamaged,
        StoreError::OutcomeUnknown => EngineError::OutcomeUnknown,
        StoreError::Conflict | StoreError::Other(_) => EngineError::Internal,
    }
}
