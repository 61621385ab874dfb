//! The engine over a store in a folder of its own, called message by message.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tagwerk_core::{Action, JobId};
use tagwerk_engine::command::{BulkMode, Claimed, Enqueue, EnqueueJob, Enqueued, KeyFate, Operate, Work};
use tagwerk_engine::committer::Committer;
use tagwerk_engine::message::{By, Message};
use tagwerk_engine::testing::clock::ManualClock;
use tempfile::TempDir;

use crate::engine::{answered, claim, committer, completion};

/// See the module.
pub(crate) struct Rig {
    committer: Committer,
    clock: ManualClock,
    folder: TempDir,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (committer, clock) = committer(&folder.path().join("t.db"));
        Self { committer, clock, folder }
    }

    /// The store's file.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("t.db")
    }

    /// One batch with one message.
    pub(crate) fn send<T: Send>(&mut self, message: impl FnOnce(SyncSender<T>) -> Message) -> Receiver<T> {
        let (sender, receiver) = sync_channel(1);
        self.clock.advance(1);
        self.committer.step(vec![message(sender)]);
        receiver
    }

    /// Enqueues new jobs, all or none.
    pub(crate) fn enqueue(&mut self, jobs: Vec<EnqueueJob>) -> Vec<JobId> {
        let command = Enqueue { jobs, mode: BulkMode::Atomic, reach: None };
        let answer = answered(&self.send(|reply| Message::Enqueue(command, Box::new(reply))));
        let id = |made| match made {
            Ok(Enqueued::Created(job)) => job.row.job.id,
            other => unreachable!("not created: {other:?}"),
        };
        answer.into_iter().map(id).collect()
    }

    /// Completes what is held and claims up to so many.
    pub(crate) fn next(&mut self, held: &[Claimed], wanted: usize) -> Vec<Claimed> {
        let work = Work { calls: held.iter().map(completion).collect(), claim: Some(claim(1, wanted)) };
        let answer = answered(&self.send(|reply| Message::Work(work, Box::new(reply))));
        assert!(answer.results.iter().all(Result::is_ok));
        answer.claimed.expect("it claims").jobs
    }

    /// What a person does to a job.
    pub(crate) fn operate(&mut self, id: JobId, action: Action) {
        let (seen_version, text, payload, assume) = (None, None, None, None);
        let operate = Operate { id, action, seen_version, text, payload, assume, key: KeyFate::ByScope };
        answered(&self.send(|reply| Message::Operate(operate, By::local(), Box::new(reply))))
            .expect("it is done");
    }
}
