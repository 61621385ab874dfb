//! The engine with its thread: what goes in is answered, and a stop is a stop.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use tagwerk_core::{Action, Status};
use tagwerk_engine::command::{
    BulkMode, EngineError, Enqueue, Enqueued, KeyFate, Operate, PutType, Work, WorkerCall,
};
use tagwerk_engine::committer::Ports;
use tagwerk_engine::message::{By, ReplyTo};
use tagwerk_engine::ports::NoObserver;
use tagwerk_engine::row::TypeSettings;
use tagwerk_engine::settings::Settings;
use tagwerk_engine::testing::clock::ManualClock;
use tagwerk_engine::testing::entropy::ScriptedEntropy;
use tagwerk_engine::testing::memory::MemoryStore;
use tagwerk_engine::{Engine, EngineThread};

use crate::rig::{claim, completed, job, token};

fn started() -> (Engine, EngineThread) {
    let ports = Ports {
        clock: Arc::new(ManualClock::default()),
        entropy: Arc::new(ScriptedEntropy::new(1)),
        observer: Arc::new(NoObserver),
    };
    Engine::start(Box::new(MemoryStore::new()), ports, Settings::default()).unwrap()
}

/// Waits for the answer of a call.
fn asked<T: Send + 'static>(call: impl FnOnce(ReplyTo<T>)) -> Result<T, EngineError> {
    let (reply, answer) = sync_channel(1);
    call(Box::new(reply));
    answer.recv().unwrap()
}

fn one_job() -> Enqueue {
    Enqueue { jobs: vec![job("t")], mode: BulkMode::Each, reach: None }
}

#[test]
fn calls_of_every_kind_are_answered_from_the_committers_thread() {
    let (engine, thread) = started();
    let created = asked(|reply| engine.enqueue(one_job(), reply)).unwrap().pop().unwrap();
    let Ok(Enqueued::Created(full)) = created else { panic!("{created:?}") };
    let id = full.row.job.id;
    let (reply, settled) = sync_channel(1);
    assert!(engine.watch(id, Box::new(reply)));
    let held = asked(|reply| engine.claim(claim("w"), reply)).unwrap().jobs.pop().unwrap();
    assert_eq!((held.job.row.job.id, settled.try_recv().is_err()), (id, true));
    assert_eq!(engine.vitals().registry.workers().len(), 1);
    let call = WorkerCall { id, holder: token(&held), said: completed() };
    let done = asked(|reply| engine.work(Work { calls: vec![call], claim: None }, reply)).unwrap();
    assert!(done.results[0].is_ok());
    settled.recv().unwrap();
    let cancel = Operate {
        id,
        action: Action::Cancel { wait: false },
        seen_version: None,
        text: None,
        payload: None,
        assume: None,
        key: KeyFate::ByScope,
    };
    assert!(asked(|reply| engine.operate((cancel, By::local()), reply)).unwrap().is_err(), "it is completed");
    let put = PutType { kind: "t".to_owned(), settings: Some(TypeSettings::default()) };
    assert!(!asked(|reply| engine.put_type((put.clone(), By::local()), reply)).unwrap().unwrap());
    assert!(asked(|reply| engine.put_type((put, By::local()), reply)).unwrap().unwrap());
    let readers = engine.readers();
    let mut read = readers.snapshot().unwrap();
    let row = read.jobs(&[id]).unwrap().pop().unwrap().unwrap();
    let tagwerk_engine::store::Listed::Job(full) = row else { panic!("{row:?}") };
    assert_eq!(full.row.job.status, Status::Completed);
    engine.stop();
    thread.join().unwrap();
}

#[test]
fn a_lease_that_is_given_back_is_handed_out_again() {
    let (engine, thread) = started();
    asked(|reply| engine.enqueue(one_job(), reply)).unwrap();
    let held = asked(|reply| engine.claim(claim("gone"), reply)).unwrap().jobs.pop().unwrap();
    let job = &held.job.row.job;
    engine.give_back(vec![(job.id, job.lease.as_ref().unwrap().bits)]);
    // The inbox keeps the order, so this claim comes after it.
    let again = asked(|reply| engine.claim(claim("here"), reply)).unwrap().jobs.pop().unwrap();
    assert_eq!((again.job.row.job.id, again.job.row.job.attempt), (job.id, 1), "the number was given back");
    engine.stop();
    thread.join().unwrap();
}

#[test]
fn draining_answers_who_waits_and_still_takes_reports() {
    let (engine, thread) = started();
    asked(|reply| engine.enqueue(one_job(), reply)).unwrap();
    let held = asked(|reply| engine.claim(claim("w"), reply)).unwrap().jobs.pop().unwrap();
    let (reply, parked) = sync_channel(1);
    let waiting = tagwerk_engine::command::Claim { wait_ms: 60_000, ..claim("patient") };
    engine.claim(waiting, Box::new(reply));
    // Once a later call is answered the claim is parked: one in the same batch as the drain would be refused.
    let put = PutType { kind: "t".to_owned(), settings: None };
    asked(|reply| engine.put_type((put, By::local()), reply)).unwrap().unwrap();
    engine.drain();
    assert!(parked.recv().unwrap().is_ok_and(|answer| answer.jobs.is_empty()));
    assert!(engine.vitals().draining);
    let refused = asked(|reply| engine.enqueue(one_job(), reply));
    assert!(matches!(refused, Err(EngineError::Draining)), "{refused:?}");
    let call = WorkerCall { id: held.job.row.job.id, holder: token(&held), said: completed() };
    assert!(
        asked(|reply| engine.work(Work { calls: vec![call], claim: None }, reply)).unwrap().results[0]
            .is_ok()
    );
    engine.stop();
    thread.join().unwrap();
    let late = asked(|reply| engine.enqueue(one_job(), reply));
    assert!(matches!(late, Err(EngineError::Draining)), "{late:?}");
}
