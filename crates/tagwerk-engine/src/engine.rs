//! The engine as its callers hold it: a handle that puts commands into the committer's inbox, and what all threads share.

use std::collections::HashMap;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tagwerk_core::{JobId, LeaseBits, Timestamp, limits};

use crate::command::{
    AlertAnswer, AlertCall, Claim, ClaimAnswer, ControlQueue, EngineError, Enqueue, LimitAnswer, LimitCall,
    Operate, OperateAnswer, PutType, QueueAnswer, Refusal, Work, WorkAnswer,
};
use crate::committer::{Committer, Ports, Running};
use crate::exec::retention::RetentionReport;
use crate::message::{By, EnqueueAnswer, Message, ReplyTo, refuse};
use crate::ports::Reply;
use crate::registry::Registry;
use crate::settings::Settings;
use crate::store::{Readers, Store, StoreError, StoreResult};

/// A handle on a running engine. Cheap to clone; usable from any thread.
#[derive(Clone)]
pub struct Engine {
    inbox: SyncSender<Message>,
    shared: Arc<Shared>,
    readers: Arc<dyn Readers>,
}

/// Waits for the committer's thread.
pub struct EngineThread {
    thread: JoinHandle<()>,
}

impl EngineThread {
    /// Waits until the committer has answered everything and closed the store. Call [`Engine::stop`] first.
    ///
    /// # Errors
    /// [`EngineError::Internal`] if it panicked.
    pub fn join(self) -> Result<(), EngineError> {
        self.thread.join().map_err(|_| EngineError::Internal)
    }
}

impl Engine {
    /// Starts an engine on this store, with a thread of its own for the committer.
    pub fn start(
        store: Box<dyn Store>,
        ports: Ports,
        settings: Settings,
    ) -> StoreResult<(Self, EngineThread)> {
        let (inbox, messages) = mpsc::sync_channel(settings.inbox);
        let readers = store.readers();
        let shared = Arc::new(Shared::new(inbox.clone(), ports.clock.monotonic()));
        let committer = Committer::new(store, ports, settings, Arc::clone(&shared))?;
        let thread = std::thread::Builder::new()
            .name("committer".into())
            .spawn(move || run(committer, &messages))
            .map_err(|error| {
                StoreError::Other(format!("the committer's thread could not be started: {error}"))
            })?;
        Ok((Self { inbox, shared, readers }, EngineThread { thread }))
    }

    /// Accepts jobs.
    pub fn enqueue(&self, command: Enqueue, reply: ReplyTo<EnqueueAnswer>) {
        self.send(Message::Enqueue(command, reply));
    }

    /// Hands out jobs; waits for one if the claim says so.
    pub fn claim(&self, command: Claim, reply: ReplyTo<ClaimAnswer>) {
        self.send(Message::Claim(command, reply));
    }

    /// Takes calls of a worker about its jobs.
    pub fn work(&self, command: Work, reply: ReplyTo<WorkAnswer>) {
        self.send(Message::Work(command, reply));
    }

    /// Takes an operator's call.
    pub fn operate(&self, (command, by): (Operate, By), reply: ReplyTo<Result<OperateAnswer, Refusal>>) {
        self.send(Message::Operate(command, by, reply));
    }

    /// Writes or deletes the settings of a type; the answer says whether there were any before.
    pub fn put_type(&self, (command, by): (PutType, By), reply: ReplyTo<Result<bool, Refusal>>) {
        self.send(Message::PutType(command, by, reply));
    }

    /// Takes a call about limits.
    pub fn limit(&self, (command, by): (LimitCall, By), reply: ReplyTo<Result<LimitAnswer, Refusal>>) {
        self.send(Message::Limit(command, by, reply));
    }

    /// Says something about a queue.
    pub fn control_queue(&self, (command, by): (ControlQueue, By), reply: ReplyTo<QueueAnswer>) {
        self.send(Message::ControlQueue(command, by, reply));
    }

    /// Takes a call about alerts.
    pub fn alert(&self, (call, by): (AlertCall, By), reply: ReplyTo<AlertAnswer>) {
        self.send(Message::Alert(call, by, reply));
    }

    /// Has it noted when tokens, by name, were last used. If the inbox is full it is not: the next time will do.
    pub fn touch_tokens(&self, used: Vec<(String, Timestamp)>) {
        drop(self.inbox.try_send(Message::TouchTokens(used)));
    }

    /// Gives back leases whose answer could not be delivered.
    pub fn give_back(&self, leases: Vec<(JobId, LeaseBits)>) {
        self.shared.give_back(leases);
    }

    /// Answers when the job next comes to rest. Register first, then look at the job. `false`: too many wait already.
    #[must_use]
    pub fn watch(&self, id: JobId, reply: Reply<()>) -> bool {
        self.shared.watch(id, reply)
    }

    /// Where to read.
    #[must_use]
    pub fn readers(&self) -> Arc<dyn Readers> {
        Arc::clone(&self.readers)
    }

    /// Who has been seen, and how the engine is.
    #[must_use]
    pub fn vitals(&self) -> Vitals {
        self.shared.vitals()
    }

    /// Refuses new work from now on and answers everybody who waits. Reports are still taken.
    pub fn drain(&self) {
        self.shared.state().draining = true;
        self.force(Message::Drain);
    }

    /// Stops the committer after what was sent before.
    pub fn stop(&self) {
        self.force(Message::Stop);
    }

    fn send(&self, message: Message) {
        match self.inbox.try_send(message) {
            Ok(()) => {}
            Err(TrySendError::Full(message)) => refuse(message, &EngineError::Overloaded),
            Err(TrySendError::Disconnected(message)) => refuse(message, &EngineError::Draining),
        }
    }

    fn force(&self, message: Message) {
        // The receiver is gone only if the committer has already stopped.
        drop(self.inbox.send(message));
    }
}

/// The committer's loop: wait for a command or for time, collect what else is there, do one batch.
fn run(mut committer: Committer, inbox: &Receiver<Message>) {
    loop {
        let mut batch = Vec::new();
        let mut weight = 0;
        if let Ok(first) = inbox.recv_timeout(committer.patience()) {
            weight += first.weight();
            batch.push(first);
        }
        while batch.len() < limits::BATCH_COMMANDS && weight < limits::BATCH_BYTES {
            let Ok(next) = inbox.try_recv() else { break };
            weight += next.weight();
            batch.push(next);
        }
        if committer.step(batch) == Running::Stopped {
            return;
        }
    }
}

/// How the engine is.
#[derive(Clone, Debug)]
pub struct Vitals {
    /// Who has been seen.
    pub registry: Registry,
    /// Claims that wait for a job.
    pub parked: usize,
    /// When the committer last committed, on the monotonic clock.
    pub last_commit: Duration,
    /// The store's error, since when on the monotonic clock, while it lasts.
    pub failing: Option<(String, EngineError, Duration)>,
    /// The server is shutting down.
    pub draining: bool,
    /// The last retention run: when, and what all runs since the start have deleted.
    pub retention: Option<(Timestamp, RetentionReport)>,
}

/// What the committer and the other threads share.
pub struct Shared {
    inbox: SyncSender<Message>,
    state: Mutex<Vitals>,
    said: Mutex<Said>,
    watches: Mutex<Watches>,
}

/// Who waits for jobs to come to rest.
#[derive(Default)]
struct Watches {
    by_job: HashMap<JobId, Vec<Reply<()>>>,
    /// All of them, also those of the same job.
    waits: usize,
}

impl Watches {
    /// `false`: too many wait already.
    fn add(&mut self, id: JobId, reply: Reply<()>) -> bool {
        if self.waits >= limits::WATCHES_MAX {
            self.by_job.retain(|_, replies| {
                replies.retain(|reply| reply.is_waiting());
                !replies.is_empty()
            });
            self.waits = self.by_job.values().map(Vec::len).sum();
        }
        if self.waits >= limits::WATCHES_MAX {
            return false;
        }
        let replies = self.by_job.entry(id).or_default();
        let known = replies.len();
        // Now and then is enough, and costs little each.
        if known.is_power_of_two() {
            replies.retain(|reply| reply.is_waiting());
            self.waits -= known - replies.len();
        }
        replies.push(reply);
        self.waits += 1;
        true
    }

    fn take(&mut self, id: JobId) -> Vec<Reply<()>> {
        let replies = self.by_job.remove(&id).unwrap_or_default();
        self.waits -= replies.len();
        replies
    }
}

impl Shared {
    /// Shared state of an engine whose inbox has this sending end.
    #[must_use]
    pub fn new(inbox: SyncSender<Message>, monotonic: Duration) -> Self {
        let vitals = Vitals {
            registry: Registry::default(),
            parked: 0,
            last_commit: monotonic,
            failing: None,
            draining: false,
            retention: None,
        };
        Self { inbox, state: Mutex::new(vitals), said: Mutex::default(), watches: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, Vitals> {
        // Every writer leaves the state whole at each step, so a poisoned lock holds nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who has been seen, and how the engine is.
    #[must_use]
    pub fn vitals(&self) -> Vitals {
        self.state().clone()
    }

    pub(crate) fn registry(&self) -> RegistryGuard<'_> {
        RegistryGuard(self.state())
    }

    pub(crate) fn committed(&self, at: Duration) {
        let mut state = self.state();
        state.last_commit = at;
        if let Some((text, _, since)) = state.failing.take()
            && self.said().ends()
        {
            tracing::info!(
                error = text,
                for_ms = at.saturating_sub(since).as_millis(),
                "the store works again"
            );
        }
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A transaction failed. Logged when it begins, not for each command.
    pub(crate) fn failed(&self, error: &StoreError, at: Duration) {
        if let StoreError::DamagedRow(why) = error {
            tracing::error!(why, "a command names a row that cannot be read");
            return;
        }
        let mut state = self.state();
        let text = error.to_string();
        if self.said().is_news(&text, at) {
            tracing::error!(error = text, "a transaction failed");
        }
        let known = state.failing.as_ref().is_some_and(|(before, ..)| *before == text);
        if !known {
            let since = state.failing.as_ref().map_or(at, |(.., since)| *since);
            state.failing = Some((text, crate::committer::engine_error(error), since));
        }
    }

    pub(crate) fn parked(&self, n: usize) {
        self.state().parked = n;
    }

    pub(crate) fn retention_ran(&self, report: RetentionReport, at: Timestamp) {
        let mut state = self.state();
        let before = state.retention.map(|(_, report)| report).unwrap_or_default();
        let total =
            RetentionReport { jobs: before.jobs + report.jobs, keys: before.keys + report.keys, ..report };
        state.retention = Some((at, total));
    }

    pub(crate) fn give_back(&self, leases: Vec<(JobId, LeaseBits)>) {
        // A full inbox means that the leases simply run out; nothing is lost, it only takes longer.
        if self.inbox.try_send(Message::GiveBack(leases)).is_err() {
            tracing::warn!("leases of an undelivered claim could not be given back and will run out");
        }
    }

    fn watch(&self, id: JobId, reply: Reply<()>) -> bool {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner).add(id, reply)
    }

    pub(crate) fn settled(&self, ids: &[JobId]) {
        if ids.is_empty() {
            return;
        }
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        for id in ids {
            for reply in watches.take(*id) {
                // Whoever no longer waits needs no answer.
                reply.answer(()).ok();
            }
        }
    }
}

/// An error that comes and goes is told this often at most: on a disk that is nearly full small transactions still fit
/// between large ones that do not.
const SAY_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// What the log was told about a failing store.
#[derive(Debug, Default)]
struct Said {
    error: String,
    at: Duration,
    /// Nothing was told since.
    is_open: bool,
}

impl Said {
    /// Whether this error is to be told; then it has been.
    fn is_news(&mut self, error: &str, at: Duration) -> bool {
        let is_other = self.error != error;
        let is_news = is_other || (!self.is_open && at.saturating_sub(self.at) >= SAY_AGAIN_AFTER);
        if is_news {
            *self = Self { error: error.to_owned(), at, is_open: true };
        }
        is_news
    }

    /// Whether its end is to be told; then it has been.
    const fn ends(&mut self) -> bool {
        std::mem::replace(&mut self.is_open, false)
    }
}

/// The registry under its lock.
pub(crate) struct RegistryGuard<'a>(MutexGuard<'a, Vitals>);

impl std::ops::Deref for RegistryGuard<'_> {
    type Target = Registry;
    fn deref(&self) -> &Registry {
        &self.0.registry
    }
}

impl std::ops::DerefMut for RegistryGuard<'_> {
    fn deref_mut(&mut self) -> &mut Registry {
        &mut self.0.registry
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn f052_an_error_that_comes_and_goes_is_told_once_in_a_while() {
        let at = Duration::from_secs;
        let mut said = Said::default();
        assert!(
            said.is_news("full", at(1)) && !said.is_news("full", at(1)) && !said.is_news("full", at(100))
        );
        assert!(said.ends() && !said.ends());
        // It has been said not long ago.
        assert!(said.is_news("full", at(101)), "it was said at second 1");
        assert!(said.ends());
        assert!(!said.is_news("full", at(110)) && !said.ends());
        // It goes on, and nothing in the log says so yet.
        assert!(said.is_news("full", at(111)) && !said.is_news("full", at(125)));
        assert!(said.is_news("damaged", at(125)), "another error is news");
    }

    #[test]
    fn waits_are_counted_not_jobs() {
        let mut watches = Watches::default();
        let (sender, _receiver) = sync_channel(1);
        let mut wait = |id: i64| watches.add(JobId(id), Box::new(sender.clone()));
        for n in 0..limits::WATCHES_MAX {
            assert!(wait(i64::from(n % 2 == 0)));
        }
        assert!(!wait(1), "one more than the limit, all for two jobs");
        assert_eq!(watches.take(JobId(1)).len(), limits::WATCHES_MAX / 2);
        assert!(watches.add(JobId(1), Box::new(sender.clone())));
    }
}
