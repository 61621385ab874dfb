//! A store that fails: nothing acknowledged that is not there, a bad command fails alone.

use std::sync::mpsc::sync_channel;

use tagwerk_core::Status;
use tagwerk_engine::command::{BulkMode, Claim, EngineError, Enqueue, EnqueueJob, PutType};
use tagwerk_engine::message::{By, EnqueueAnswer, Message};
use tagwerk_engine::row::{Counter, TypeSettings};
use tagwerk_engine::store::StoreError;
use tagwerk_engine::testing::memory::{Fault, Point};

use crate::rig::{Rig, completed, job, keyed};

fn send(rig: &mut Rig, jobs: Vec<EnqueueJob>) -> Vec<Result<EnqueueAnswer, EngineError>> {
    let (sender, receiver) = sync_channel(jobs.len());
    let batch = jobs
        .into_iter()
        .map(|job| {
            Message::Enqueue(
                Enqueue { jobs: vec![job], mode: BulkMode::Each, reach: None },
                Box::new(sender.clone()),
            )
        })
        .collect();
    rig.committer.step(batch);
    receiver.try_iter().collect()
}

#[test]
fn a_batch_that_fails_is_taken_apart() {
    let mut rig = Rig::new();
    rig.disk.faults().fail(Point::Method("insert"), StoreError::Other("bad row".into()), 1);
    let answers = send(&mut rig, vec![job("a"), job("b"), job("c")]);
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 3, "each went through alone");
    rig.disk.faults().plan(Fault {
        point: Point::Method("insert"),
        error: StoreError::Other("bad row".into()),
        spare: 0,
        times: 2,
    });
    let answers = send(&mut rig, vec![job("a"), job("b"), job("c")]);
    let failed: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
    assert_eq!(failed, [&EngineError::Internal], "one fails alone");
    assert_eq!(rig.tally().get(Counter::Enqueued), 5);
    rig.assert_clean();
}

#[test]
fn f052_a_full_disk_refuses_and_loses_nothing_and_ends_by_itself() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    let held = rig.take("w");
    rig.disk.faults().fail(Point::BeforeCommit, StoreError::Full, 3);
    let answers = send(&mut rig, vec![keyed("a", "k"), job("b")]);
    assert!(answers.iter().all(|answer| *answer == Err(EngineError::StoreFull)));
    assert_eq!(rig.shared.vitals().failing.map(|(_, error, _)| error), Some(EngineError::StoreFull));
    assert!(rig.disk.faults().are_spent());
    rig.say(&held, completed()).unwrap();
    assert_eq!(rig.status(id), Status::Completed);
    assert_eq!(rig.shared.vitals().failing, None);
    // f037: job and key are one transaction, so the key is free.
    rig.create(keyed("a", "k"));
    rig.assert_clean();
}

#[test]
fn a_commit_without_an_answer_is_not_repeated() {
    let mut rig = Rig::new();
    rig.disk.faults().fail(Point::AfterCommit, StoreError::OutcomeUnknown, 1);
    let answers = send(&mut rig, vec![job("a"), keyed("b", "k")]);
    assert!(answers.iter().all(|answer| *answer == Err(EngineError::OutcomeUnknown)));
    assert_eq!(rig.tally().get(Counter::Enqueued), 2, "once each, whatever was answered");
    let again = send(&mut rig, vec![keyed("b", "k")]);
    assert!(matches!(again[0].as_ref().unwrap()[0], Ok(tagwerk_engine::command::Enqueued::Existing { .. })));
}

#[test]
fn leases_are_moved_once_although_the_commit_got_no_answer() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    rig.take("w");
    let ends = |rig: &Rig| rig.job(id).row.job.lease.unwrap().ends_at();
    let before = ends(&rig);
    rig.clock.set(rig.now().plus_ms(-7_200_000));
    rig.disk.faults().fail(Point::AfterCommit, StoreError::OutcomeUnknown, 1);
    rig.tick();
    rig.tick();
    assert_eq!(ends(&rig), before.plus_ms(-7_200_000), "twice would have taken the job from its worker");
    // One that did not happen is made up for.
    rig.clock.set(rig.now().plus_ms(7_200_000));
    rig.disk.faults().fail(Point::BeforeCommit, StoreError::OutcomeUnknown, 1);
    rig.tick();
    rig.tick();
    assert_eq!(ends(&rig), before);
    assert_eq!(rig.status(id), Status::Running);
}

#[test]
fn settings_hold_as_they_are_stored_although_the_commit_got_no_answer() {
    let mut rig = Rig::new();
    let settings = TypeSettings { max_retries: Some(7), ..TypeSettings::default() };
    rig.disk.faults().fail(Point::AfterCommit, StoreError::OutcomeUnknown, 1);
    let put = PutType { kind: "t".into(), settings: Some(settings) };
    let answer = rig.send(|reply| Message::PutType(put, By::local(), Box::new(reply)));
    assert_eq!(answer.try_recv().unwrap(), Err(EngineError::OutcomeUnknown));
    let id = rig.create(job("t"));
    assert_eq!(rig.job(id).row.job.max_retries, 7);
}

#[test]
fn a_waiting_claim_looks_again_after_a_commit_without_an_answer() {
    let mut rig = Rig::new();
    let waiting = |worker: &str| Claim { wait_ms: 60_000, ..crate::rig::claim(worker) };
    let answers = [rig.park(waiting("a")), rig.park(waiting("b"))];
    rig.disk.faults().fail(Point::AfterCommit, StoreError::OutcomeUnknown, 1);
    send(&mut rig, vec![job("t"), job("t"), job("t")]);
    rig.tick();
    // Two were given away in that batch; nobody knows, so their leases run out. The third is there for the first to wait.
    let served: Vec<bool> = answers.iter().map(|answer| answer.try_recv().is_ok()).collect();
    assert_eq!(served, [true, false]);
}

#[test]
fn a_read_only_store_refuses_at_once() {
    let mut rig = Rig::new();
    rig.disk.faults().fail(Point::Begin, StoreError::ReadOnly, 1);
    let answers = send(&mut rig, vec![job("a"), job("b")]);
    assert!(answers.iter().all(|answer| *answer == Err(EngineError::StoreReadOnly)));
    assert!(rig.disk.faults().are_spent(), "not tried for each of them");
}

#[test]
fn one_job_that_time_cannot_settle_does_not_stop_the_others() {
    let mut rig = Rig::new();
    rig.disk.faults().fail(Point::Method("overdue"), StoreError::Damaged("a page".into()), 1);
    let answers = send(&mut rig, vec![job("a")]);
    assert!(answers[0].is_ok(), "the command goes through without the services");
}

#[test]
fn a_failed_tick_is_noticed_and_made_up_for() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    rig.take("w");
    rig.advance(58_000);
    rig.disk.faults().fail(Point::BeforeCommit, StoreError::Busy, 3);
    rig.advance(3_000);
    assert_eq!(rig.status(id), Status::Running);
    assert!(rig.shared.vitals().failing.is_some());
    rig.advance(1_000);
    assert_eq!(rig.status(id), Status::Running, "for four seconds nobody could report");
    assert!(rig.shared.vitals().failing.is_none());
    rig.advance(1_000);
    assert_eq!(rig.status(id), Status::Running);
    rig.advance(1_000);
    assert_eq!(rig.status(id), Status::Pending);
}

#[test]
fn a_panic_in_a_transaction_fails_one_command_and_not_the_queue() {
    let mut rig = Rig::new();
    rig.enqueue(vec![job("t"), job("t")]);
    rig.entropy.panic(2);
    let (sender, receiver) = sync_channel(2);
    let batch = (0..2)
        .map(|n| Message::Claim(crate::rig::claim(&format!("w{n}")), Box::new(sender.clone())))
        .collect();
    rig.committer.step(batch);
    let answers: Vec<_> = receiver.try_iter().collect();
    assert_eq!(answers.len(), 2);
    assert_eq!(answers.iter().filter(|answer| **answer == Err(EngineError::Internal)).count(), 1);
    assert_eq!(answers.iter().flatten().map(|answer| answer.jobs.len()).sum::<usize>(), 1);
    let held = rig.take("w");
    rig.say(&held, completed()).unwrap();
    rig.assert_clean();
}
