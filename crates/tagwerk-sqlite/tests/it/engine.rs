//! An engine without a thread over a store in a file, for tests and measurements with many jobs.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use tagwerk_core::{Outcome, Timestamp};
use tagwerk_engine::command::{Claim, Claimed, EngineError, EnqueueJob, Holder, Said, WorkerCall};
use tagwerk_engine::committer::{Committer, Ports};
use tagwerk_engine::engine::Shared;
use tagwerk_engine::ports::{Clock, NoObserver};
use tagwerk_engine::settings::Settings;
use tagwerk_engine::store::Filter;
use tagwerk_engine::testing::clock::ManualClock;
use tagwerk_engine::testing::entropy::ScriptedEntropy;
use tagwerk_sqlite::{Options, SqliteStore};

/// The type of all jobs.
const KIND: &str = "cost";

/// Where an answer arrives.
pub(crate) type Answer<T> = Receiver<Result<T, EngineError>>;

/// A committer over a new store in this file, and its clock.
pub(crate) fn committer(path: &Path) -> (Committer, ManualClock) {
    let clock = ManualClock::default();
    let store = SqliteStore::open(path, &Options::new(Timestamp::EPOCH, [1; 32])).expect("a store");
    let (sender, _) = sync_channel(1);
    let shared = Arc::new(Shared::new(sender, clock.monotonic()));
    let ports = Ports {
        clock: Arc::new(clock.clone()),
        entropy: Arc::new(ScriptedEntropy::new(1)),
        observer: Arc::new(NoObserver),
    };
    let committer = Committer::new(Box::new(store), ports, Settings::default(), shared);
    (committer.expect("a committer"), clock)
}

/// A job with a payload of 150 bytes.
pub(crate) fn job() -> EnqueueJob {
    let payload = format!("{{\"pad\":\"{}\"}}", "x".repeat(140));
    EnqueueJob { kind: KIND.to_owned(), payload: Some(payload), ..EnqueueJob::default() }
}

/// A claim of this worker for up to so many jobs.
pub(crate) fn claim(worker: usize, max_jobs: usize) -> Claim {
    Claim {
        worker: format!("worker-{worker}"),
        filter: Filter { queues: None, types: Some(vec![KIND.to_owned()]), space: None },
        max_jobs,
        lease_ms: Some(60_000),
        handles_verify: false,
        wait_ms: 0,
        request_id: None,
        agent: None,
    }
}

/// The report that a claimed job is done.
pub(crate) fn completion(held: &Claimed) -> WorkerCall {
    WorkerCall {
        id: held.job.row.job.id,
        holder: Holder { token: Some(held.token.clone()), worker: None },
        said: Said::Report { outcome: Outcome::Completed, result: None },
    }
}

/// What was answered.
pub(crate) fn answered<T>(answer: &Answer<T>) -> T {
    answer.try_recv().expect("an answer").expect("it worked")
}
