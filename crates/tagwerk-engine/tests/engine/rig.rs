//! An engine without a thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tagwerk_core::{Action, JobId, Outcome, Status, Timestamp};
use tagwerk_engine::command::{
    BulkMode, Claim, ClaimAnswer, Claimed, EngineError, Enqueue, EnqueueJob, Enqueued, Holder, Operate,
    OperateAnswer, Refusal, Said, Work, WorkAnswer, WorkerAnswer, WorkerCall,
};
use tagwerk_engine::committer::{Committer, Ports};
use tagwerk_engine::engine::Shared;
use tagwerk_engine::message::{By, EnqueueAnswer, Message};
use tagwerk_engine::ports::{Clock, Entropy, NoObserver};
use tagwerk_engine::query::{Depth, check};
use tagwerk_engine::row::{FullJob, Tally};
use tagwerk_engine::settings::Settings;
use tagwerk_engine::store::{Filter, Listed, Store};
use tagwerk_engine::testing::clock::ManualClock;
use tagwerk_engine::testing::entropy::ScriptedEntropy;
use tagwerk_engine::testing::memory::MemoryStore;

pub(crate) type Answer<T> = Receiver<Result<T, EngineError>>;

/// Chance that panics when it is told to, as a bug somewhere in a transaction would.
#[derive(Clone)]
pub(crate) struct Moody {
    inner: ScriptedEntropy,
    panics: Arc<AtomicUsize>,
}

impl Moody {
    /// Lets these numbers come next.
    pub(crate) fn script(&self, numbers: &[u64]) {
        self.inner.script(numbers);
    }

    pub(crate) fn panic(&self, times: usize) {
        self.panics.store(times, Ordering::Relaxed);
    }
}

impl Entropy for Moody {
    fn u64(&self) -> u64 {
        let left = self.panics.load(Ordering::Relaxed);
        if left > 0 {
            self.panics.store(left - 1, Ordering::Relaxed);
            panic!("a planted bug");
        }
        self.inner.u64()
    }
}

pub(crate) struct Rig {
    pub(crate) entropy: Moody,
    pub(crate) disk: MemoryStore,
    pub(crate) clock: ManualClock,
    pub(crate) shared: Arc<Shared>,
    pub(crate) committer: Committer,
    pub(crate) inbox: Receiver<Message>,
    settings: Settings,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self::on(MemoryStore::new(), ManualClock::default(), settings)
    }

    fn on(disk: MemoryStore, clock: ManualClock, settings: Settings) -> Self {
        let entropy = Moody { inner: ScriptedEntropy::new(1), panics: Arc::default() };
        let (sender, inbox) = sync_channel(1_000);
        let shared = Arc::new(Shared::new(sender, clock.monotonic()));
        let ports = Ports {
            clock: Arc::new(clock.clone()),
            entropy: Arc::new(entropy.clone()),
            observer: Arc::new(NoObserver),
        };
        let store: Box<dyn Store> = Box::new(disk.clone());
        let committer = Committer::new(store, ports, settings.clone(), Arc::clone(&shared)).unwrap();
        Self { entropy, disk, clock, shared, committer, inbox, settings }
    }

    /// The server is killed and started again after `down_ms`.
    pub(crate) fn restart(self, down_ms: u32) -> Self {
        let Self { disk, clock, committer, settings, .. } = self;
        drop(committer);
        clock.advance(down_ms);
        Self::on(disk.reopen(), clock, settings)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn tick(&mut self) {
        self.committer.step(Vec::new());
    }

    pub(crate) fn advance(&mut self, ms: u32) {
        // In steps below the gap that would count as a stall of the server.
        let mut left = ms;
        while left > 0 {
            let step = left.min(1_000);
            self.clock.advance(step);
            self.tick();
            left -= step;
        }
    }

    pub(crate) fn send<T: Send>(&mut self, message: impl FnOnce(SyncSender<T>) -> Message) -> Receiver<T> {
        let (sender, receiver) = sync_channel(1);
        self.committer.step(vec![message(sender)]);
        receiver
    }

    pub(crate) fn enqueue(&mut self, jobs: Vec<EnqueueJob>) -> EnqueueAnswer {
        let command = Enqueue { jobs, mode: BulkMode::Each, reach: None };
        self.send(|reply| Message::Enqueue(command, Box::new(reply))).try_recv().unwrap().unwrap()
    }

    /// Enqueues one job that must be new.
    pub(crate) fn create(&mut self, job: EnqueueJob) -> JobId {
        match self.enqueue(vec![job]).pop().unwrap() {
            Ok(Enqueued::Created(full)) => full.row.job.id,
            other => panic!("not created: {other:?}"),
        }
    }

    pub(crate) fn park(&mut self, claim: Claim) -> Answer<ClaimAnswer> {
        self.send(|reply| Message::Claim(claim, Box::new(reply)))
    }

    pub(crate) fn claim(&mut self, claim: Claim) -> ClaimAnswer {
        self.park(claim).try_recv().unwrap().unwrap()
    }

    /// Claims one job that must be there.
    pub(crate) fn take(&mut self, worker: &str) -> Claimed {
        let mut answer = self.claim(claim(worker));
        assert_eq!(answer.jobs.len(), 1, "nothing to claim");
        answer.jobs.pop().unwrap()
    }

    pub(crate) fn work(&mut self, calls: Vec<WorkerCall>) -> WorkAnswer {
        let command = Work { calls, claim: None };
        self.send(|reply| Message::Work(command, Box::new(reply))).try_recv().unwrap().unwrap()
    }

    pub(crate) fn call(&mut self, id: JobId, holder: Holder, said: Said) -> Result<WorkerAnswer, Refusal> {
        self.work(vec![WorkerCall { id, holder, said }]).results.pop().unwrap()
    }

    pub(crate) fn say(&mut self, held: &Claimed, said: Said) -> Result<WorkerAnswer, Refusal> {
        self.call(held.job.row.job.id, token(held), said)
    }

    pub(crate) fn operate(&mut self, id: JobId, action: Action) -> Result<OperateAnswer, Refusal> {
        self.operate_with(Operate {
            id,
            action,
            seen_version: None,
            text: None,
            payload: None,
            assume: None,
            key: tagwerk_engine::command::KeyFate::ByScope,
        })
    }

    pub(crate) fn operate_with(&mut self, call: Operate) -> Result<OperateAnswer, Refusal> {
        self.send(|reply| Message::Operate(call, By::local(), Box::new(reply))).try_recv().unwrap().unwrap()
    }

    pub(crate) fn job(&self, id: JobId) -> FullJob {
        match self.find(id) {
            Some(Listed::Job(full)) => *full,
            other => panic!("job {id}: {other:?}"),
        }
    }

    pub(crate) fn find(&self, id: JobId) -> Option<Listed> {
        let readers = self.disk.readers();
        let mut read = readers.snapshot().unwrap();
        read.jobs(&[id]).unwrap().pop().unwrap()
    }

    pub(crate) fn attempts(&self, id: JobId) -> Vec<tagwerk_engine::row::AttemptRow> {
        let readers = self.disk.readers();
        let mut read = readers.snapshot().unwrap();
        read.attempts(id, 0, 1_000).unwrap()
    }

    pub(crate) fn status(&self, id: JobId) -> Status {
        self.job(id).row.job.status
    }

    pub(crate) fn tally(&self) -> Tally {
        let readers = self.disk.readers();
        let mut read = readers.snapshot().unwrap();
        let mut sum = Tally::default();
        for (_, tally) in read.ledger().unwrap() {
            sum.merge(&tally);
        }
        sum
    }

    /// The ledger balances and every job has a way out.
    pub(crate) fn assert_clean(&self) {
        let readers = self.disk.readers();
        let mut read = readers.snapshot().unwrap();
        assert_eq!(check(&mut *read, Depth::Integrity).unwrap().findings, vec![]);
    }
}

pub(crate) fn job(kind: &str) -> EnqueueJob {
    EnqueueJob { kind: kind.into(), ..EnqueueJob::default() }
}

pub(crate) fn keyed(kind: &str, key: &str) -> EnqueueJob {
    EnqueueJob { key: Some(key.into()), ..job(kind) }
}

pub(crate) fn claim(worker: &str) -> Claim {
    Claim {
        worker: worker.into(),
        filter: Filter::default(),
        max_jobs: 1,
        lease_ms: Some(60_000),
        handles_verify: false,
        wait_ms: 0,
        request_id: None,
        agent: None,
    }
}

pub(crate) fn token(held: &Claimed) -> Holder {
    Holder { token: Some(held.token.clone()), worker: None }
}

pub(crate) fn completed() -> Said {
    Said::Report { outcome: Outcome::Completed, result: None }
}

pub(crate) fn failed(class: tagwerk_core::ErrorClass) -> Said {
    Said::Report {
        outcome: Outcome::Failed { class, error: Some("it broke".into()), retry_after_ms: None },
        result: None,
    }
}

pub(crate) fn released() -> Said {
    let reason = Some("no time".to_owned());
    Said::Report { outcome: Outcome::Released { delay_ms: 0, reason }, result: None }
}

pub(crate) fn rejection(refused: Result<impl std::fmt::Debug, Refusal>) -> tagwerk_core::Rejection {
    match refused {
        Err(Refusal::Rejected { rejection, .. }) => rejection,
        other => panic!("not rejected: {other:?}"),
    }
}
