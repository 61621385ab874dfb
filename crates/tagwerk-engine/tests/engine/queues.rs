//! Controls of queues: pause with several reasons, bounds of depth, drain.

use std::sync::Arc;

use tagwerk_core::gate::LimitSettings;
use tagwerk_core::{Action, Drain, ErrorClass, JobId, Pause, QueueSettings, Status};
use tagwerk_engine::command::{
    BulkMode, Claim, ControlQueue, Enqueue, EnqueueJob, Enqueued, LimitAnswer, LimitCall, QueueAnswer,
    QueueControl, QueueRefusal, Refusal, Start,
};
use tagwerk_engine::message::{By, EnqueueAnswer, Message};
use tagwerk_engine::query::{WhyKind, explain};
use tagwerk_engine::row::{LimitRef, QueueRow, Special};
use tagwerk_engine::store::{Filter, Store, StoreError};
use tagwerk_engine::testing::memory::Point;

use crate::rig::{Rig, claim, completed, failed, job, keyed};

fn control(rig: &mut Rig, queue: &str, control: QueueControl) -> QueueAnswer {
    let command = ControlQueue { queue: queue.into(), control };
    rig.send(|reply| Message::ControlQueue(command, By::local(), Box::new(reply)))
        .try_recv()
        .unwrap()
        .unwrap()
}

fn pause(rig: &mut Rig, reason: &str) -> QueueRow {
    let control_ = QueueControl::Pause { reason: reason.into(), by: Some("ann".into()) };
    control(rig, "default", control_).unwrap()
}

fn resume(rig: &mut Rig, reason: Option<&str>) -> QueueAnswer {
    control(rig, "default", QueueControl::Resume { reason: reason.map(str::to_owned) })
}

fn bound(rig: &mut Rig, max_depth: u64) {
    let settings = QueueSettings { max_depth: Some(max_depth), ..QueueSettings::default() };
    control(rig, "default", QueueControl::Set(settings)).unwrap();
}

fn atomic(rig: &mut Rig, jobs: Vec<EnqueueJob>) -> EnqueueAnswer {
    let command = Enqueue { jobs, mode: BulkMode::Atomic, reach: None };
    rig.send(|reply| Message::Enqueue(command, Box::new(reply))).try_recv().unwrap().unwrap()
}

fn waiting(worker: &str) -> Claim {
    Claim { wait_ms: 60_000, ..claim(worker) }
}

fn elsewhere(kind: &str) -> EnqueueJob {
    EnqueueJob { queue: Some("other".into()), ..job(kind) }
}

fn full() -> Result<(), Refusal> {
    Err(Refusal::QueueFull { queue: "default".into(), max_depth: 3 })
}

fn outcomes(answer: EnqueueAnswer) -> Vec<Result<(), Refusal>> {
    answer.into_iter().map(|item| item.map(|_| ())).collect()
}

#[test]
fn a_paused_queue_hands_out_nothing_and_others_go_on() {
    let mut rig = Rig::new();
    let held = rig.create(job("t"));
    pause(&mut rig, "deploy");
    let also_held = rig.create(job("t"));
    assert_eq!(rig.claim(Claim { max_jobs: 9, ..claim("w") }).jobs, vec![]);
    let open = rig.create(elsewhere("t"));
    assert_eq!(rig.take("w").job.row.job.id, open);
    assert_eq!([held, also_held].map(|id| rig.status(id)), [Status::Pending; 2]);
    resume(&mut rig, None).unwrap();
    assert_eq!(rig.claim(Claim { max_jobs: 9, ..claim("w") }).jobs.len(), 2);
    rig.assert_clean();
}

#[test]
fn f096_what_comes_back_into_a_paused_queue_stays_there() {
    let mut rig = Rig::new();
    let [lost, broken, reviewed] =
        [(); 3].map(|()| rig.create(EnqueueJob { max_retries: Some(1), ..job("t") }));
    let held: Vec<_> = (0..3).map(|_| rig.take("w")).collect();
    rig.say(&held[2], failed(ErrorClass::Permanent)).unwrap();
    pause(&mut rig, "crm down");
    rig.say(&held[1], failed(ErrorClass::Transient)).unwrap();
    rig.operate(reviewed, Action::Retry { max_retries: None }).unwrap();
    // Lease and back-off are over; what a worker reports meanwhile is taken.
    rig.advance(120_000);
    assert_eq!([lost, broken, reviewed].map(|id| rig.status(id)), [Status::Pending; 3]);
    assert_eq!(rig.claim(Claim { max_jobs: 9, ..claim("w") }).jobs, vec![]);
    let mut rig = rig.restart(1_000);
    rig.advance(120_000);
    assert_eq!(rig.claim(Claim { max_jobs: 9, ..claim("w") }).jobs, vec![]);
    resume(&mut rig, Some("crm down")).unwrap();
    assert_eq!(rig.claim(Claim { max_jobs: 9, ..claim("w") }).jobs.len(), 3);
    rig.assert_clean();
}

#[test]
fn a_running_job_of_a_paused_queue_is_reported_as_ever() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    let held = rig.take("w");
    pause(&mut rig, "deploy");
    rig.say(&held, completed()).unwrap();
    assert_eq!(rig.status(id), Status::Completed);
}

#[test]
fn f095_a_queue_goes_on_when_every_reason_is_gone() {
    let mut rig = Rig::new();
    let at = rig.now();
    rig.create(job("t"));
    pause(&mut rig, "deploy");
    rig.advance(10);
    pause(&mut rig, "crm down");
    let again = pause(&mut rig, "deploy");
    let because = |reason: &str, at| Pause { reason: reason.into(), by: Some("ann".into()), at };
    assert_eq!(again.paused, [because("deploy", at), because("crm down", rig.now())]);
    let reasons = vec!["deploy".to_owned(), "crm down".to_owned()];
    let several = QueueRefusal::SeveralReasons { queue: "default".into(), reasons };
    assert_eq!(
        several.to_string(),
        "queue default is paused for several reasons; name one of: \"deploy\", \"crm down\""
    );
    assert_eq!(resume(&mut rig, None), Err(several));
    let mut rig = rig.restart(1_000);
    assert_eq!(resume(&mut rig, Some("deploy")).unwrap().paused.len(), 1);
    assert_eq!(rig.claim(claim("w")).jobs, vec![]);
    let reasons = vec!["crm down".to_owned()];
    let other = Err(QueueRefusal::OtherReasons { queue: "default".into(), reasons });
    assert_eq!(resume(&mut rig, Some("deploy")), other);
    assert_eq!(resume(&mut rig, None).unwrap(), QueueRow::plain("default"));
    assert_eq!(
        resume(&mut rig, Some("deploy")).unwrap(),
        QueueRow::plain("default"),
        "lifting twice is harmless"
    );
    rig.take("w");
}

#[test]
fn f046_resume_serves_waiting_claims_in_its_own_batch() {
    let mut rig = Rig::new();
    pause(&mut rig, "deploy");
    let ids: Vec<JobId> = (0..100).map(|_| rig.create(job("t"))).collect();
    let other = Filter { queues: Some(vec!["other".into()]), types: None, space: None };
    let not_concerned = rig.park(Claim { filter: other, ..waiting("x") });
    let waits: Vec<_> = (0..100).map(|n| rig.park(waiting(&format!("w{n}")))).collect();
    assert!(waits.iter().all(|wait| wait.try_recv().is_err()));
    resume(&mut rig, None).unwrap();
    let first = waits[0].try_recv().unwrap().unwrap();
    assert_eq!(first.jobs[0].job.row.job.id, ids[0], "in the batch of the resume");
    for _ in 0..4 {
        rig.tick();
    }
    let served =
        waits[1..].iter().filter(|wait| wait.try_recv().is_ok_and(|answer| answer.unwrap().jobs.len() == 1));
    assert_eq!(served.count(), 99, "and the others at once, without the clock");
    assert!(not_concerned.try_recv().is_err());
    rig.assert_clean();
}

#[test]
fn f098_pause_and_resume_over_and_over_end_as_the_last_says() {
    let mut rig = Rig::new();
    for round in 0..1_000 {
        let reason = if round % 3 == 0 { "a" } else { "b" };
        if round % 2 == 0 {
            pause(&mut rig, reason);
        } else {
            drop(resume(&mut rig, Some(reason)));
        }
    }
    for reason in ["a", "b"] {
        drop(resume(&mut rig, Some(reason)));
    }
    let wait = rig.park(waiting("w"));
    rig.create(job("t"));
    assert_eq!(wait.try_recv().unwrap().unwrap().jobs.len(), 1);
}

#[test]
fn a_pause_that_is_not_stored_holds_nothing() {
    let mut rig = Rig::new();
    rig.disk.faults().fail(Point::Method("put_queue"), StoreError::Other("a bad page".into()), 2);
    let command = ControlQueue {
        queue: "default".into(),
        control: QueueControl::Pause { reason: "deploy".into(), by: None },
    };
    let answer = rig.send(|reply| Message::ControlQueue(command, By::local(), Box::new(reply)));
    assert!(answer.try_recv().unwrap().is_err());
    rig.create(job("t"));
    rig.take("w");
}

#[test]
fn a_claim_on_a_paused_queue_is_told_of_no_due_time_and_wakes_after_the_resume() {
    let mut rig = Rig::new();
    rig.create(EnqueueJob { start: Start::AfterMs(5_000), ..job("t") });
    pause(&mut rig, "deploy");
    assert_eq!(rig.claim(claim("w")).next_due_at, None);
    let wait = rig.park(waiting("w"));
    rig.advance(2_000);
    resume(&mut rig, None).unwrap();
    rig.tick();
    assert!(wait.try_recv().is_err(), "not due yet");
    let due = rig.now().plus_ms(3_000);
    assert_eq!(rig.claim(claim("v")).next_due_at, Some(due));
    rig.advance(3_000);
    assert_eq!(wait.try_recv().unwrap().unwrap().jobs.len(), 1);
}

#[test]
fn a_full_queue_refuses_item_by_item_and_nothing_of_a_group() {
    let mut rig = Rig::new();
    bound(&mut rig, 3);
    assert_eq!(outcomes(atomic(&mut rig, vec![job("t"), job("u"), job("t"), job("t")]))[3], full());
    assert_eq!(rig.tally(), tagwerk_engine::row::Tally::default(), "nothing is half stored");
    rig.enqueue(vec![keyed("t", "k")]);
    let many = outcomes(rig.enqueue(vec![job("t"), keyed("t", "k"), job("u"), job("t"), elsewhere("t")]));
    assert_eq!(many, [Ok(()), Ok(()), Ok(()), full(), Ok(())]);
    // Known keys are answered by a full queue, too.
    assert!(matches!(rig.enqueue(vec![keyed("t", "k")])[0], Ok(Enqueued::Existing { .. })));
    // What runs counts; what is done does not.
    let held = rig.take("w");
    assert_eq!(outcomes(rig.enqueue(vec![job("t")])), [full()]);
    rig.say(&held, completed()).unwrap();
    assert_eq!(outcomes(rig.enqueue(vec![job("t"), job("t")])), [Ok(()), full()]);
    let mut rig = rig.restart(1_000);
    assert_eq!(outcomes(rig.enqueue(vec![job("t")])), [full()]);
    rig.assert_clean();
}

#[test]
fn a_full_queue_counts_what_one_batch_does_to_it() {
    let mut rig = Rig::new();
    bound(&mut rig, 3);
    let batch: Vec<_> = (0..10)
        .map(|n| {
            let (reply, answer) = std::sync::mpsc::sync_channel(1);
            let jobs = vec![job(&format!("type-{n}"))];
            let command = Enqueue { jobs, mode: BulkMode::Each, reach: None };
            (Message::Enqueue(command, Box::new(reply)), answer)
        })
        .collect();
    let (messages, answers): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
    rig.committer.step(messages);
    let created = answers.iter().map(|answer| outcomes(answer.try_recv().unwrap().unwrap()));
    assert_eq!(
        created.filter(|items| items[0].is_ok()).count(),
        3,
        "each in a lane of its own, all lanes new"
    );
}

#[test]
fn what_was_accepted_may_come_back_into_a_full_or_draining_queue() {
    let mut rig = Rig::new();
    bound(&mut rig, 3);
    let id = rig.create(job("t"));
    let held = rig.take("w");
    rig.say(&held, failed(ErrorClass::Permanent)).unwrap();
    rig.enqueue(vec![job("t"), job("t"), job("t")]);
    control(&mut rig, "default", QueueControl::Drain { reason: None, by: None }).unwrap();
    rig.operate(id, Action::Retry { max_retries: None }).unwrap();
    assert_eq!(rig.claim(Claim { max_jobs: 9, ..claim("w") }).jobs.len(), 4);
}

#[test]
fn f097_a_draining_queue_refuses_producers_and_goes_on() {
    let mut rig = Rig::new();
    rig.enqueue(vec![keyed("t", "k")]);
    let at = rig.now();
    let drain = QueueControl::Drain { reason: Some("moving".into()), by: Some("bob".into()) };
    let row = control(&mut rig, "default", drain).unwrap();
    assert_eq!(row.draining, Some(Drain { reason: Some("moving".into()), by: Some("bob".into()), at }));
    let mut rig = rig.restart(1_000);
    let again = control(&mut rig, "default", QueueControl::Drain { reason: None, by: None }).unwrap();
    assert_eq!(again, row, "who said it first stands");
    let refused = Refusal::QueueDraining { queue: "default".into(), reason: Some("moving".into()) };
    assert_eq!(refused.to_string(), "queue default is being drained and takes no new jobs (moving)");
    assert_eq!(outcomes(rig.enqueue(vec![job("t"), elsewhere("t")])), [Err(refused), Ok(())]);
    assert!(matches!(rig.enqueue(vec![keyed("t", "k")])[0], Ok(Enqueued::Existing { .. })));
    rig.take("w");
    assert_eq!(control(&mut rig, "default", QueueControl::Open).unwrap(), QueueRow::plain("default"));
    rig.create(job("t"));
}

#[test]
fn the_queue_that_counts_is_the_one_that_the_type_names() {
    let mut rig = Rig::new();
    let settings = tagwerk_engine::row::TypeSettings { queue: Some("mail".into()), ..Default::default() };
    let put = tagwerk_engine::command::PutType { kind: "send".into(), settings: Some(settings) };
    rig.send(|reply| Message::PutType(put, By::local(), Box::new(reply)))
        .try_recv()
        .unwrap()
        .unwrap()
        .unwrap();
    control(&mut rig, "mail", QueueControl::Drain { reason: None, by: None }).unwrap();
    let refused = Refusal::QueueDraining { queue: "mail".into(), reason: None };
    assert_eq!(outcomes(rig.enqueue(vec![job("send"), job("t")])), [Err(refused), Ok(())]);
}

#[test]
fn explain_names_every_reason_of_a_pause() {
    let mut rig = Rig::new();
    let id = rig.create(EnqueueJob { start: Start::AfterMs(5_000), ..job("t") });
    rig.claim(claim("w"));
    let at = rig.now();
    pause(&mut rig, "crm down.");
    pause(&mut rig, "deploy");
    let readers = rig.disk.readers();
    let mut read = readers.snapshot().unwrap();
    let told = explain(&mut *read, &rig.job(id).row, &rig.shared.vitals(), rig.now()).unwrap();
    let kinds: Vec<WhyKind> = told.reasons.iter().map(|why| why.kind).collect();
    assert_eq!(kinds, [WhyKind::QueuePaused, WhyKind::QueuePaused, WhyKind::Scheduled]);
    assert_eq!(told.reasons[0].detail, "Queue default was paused by ann: crm down.");
    assert_eq!((told.reasons[0].since, told.reasons[0].until), (Some(at), None));
    assert_eq!(told.reasons[1].detail, "Queue default was paused by ann: deploy.");
}

#[test]
fn a_pause_is_named_before_the_limits_that_a_job_would_wait_for() {
    let mut rig = Rig::new();
    let settings = LimitSettings { max_running: Some(1), rate: None };
    let put = LimitCall::Put("crm".to_owned(), settings);
    rig.send(|reply| Message::Limit(put, By::local(), Box::new(reply))).try_recv().unwrap().unwrap().unwrap();
    let special = Special { limits: vec![LimitRef::parse("crm")], fair_key: None };
    let limited = || EnqueueJob { special: Some(Arc::new(special.clone())), ..job("t") };
    rig.create(limited());
    let id = rig.create(limited());
    rig.take("w");
    pause(&mut rig, "crm down");
    let listed = rig.send(|reply| Message::Limit(LimitCall::List, By::local(), Box::new(reply)));
    let Ok(LimitAnswer::Limits(states)) = listed.try_recv().unwrap().unwrap() else { panic!("a list") };
    let readers = rig.disk.readers();
    let mut read = readers.snapshot().unwrap();
    let row = rig.job(id).row;
    let mut told = explain(&mut *read, &row, &rig.shared.vitals(), rig.now()).unwrap();
    told.add_limits(&row.lane, &states);
    let kinds: Vec<WhyKind> = told.reasons.iter().map(|why| why.kind).collect();
    assert_eq!(kinds, [WhyKind::QueuePaused, WhyKind::LimitFull]);
}
