//! Follow-ups: jobs that come with a `complete` exist exactly if it counts.

use tagwerk_core::idempotency::{OnDuplicate, OnMismatch, Scope};
use tagwerk_core::{Action, ErrorClass, JobId, Rejection, Status};
use tagwerk_engine::command::{
    Claimed, ControlQueue, EnqueueJob, FollowUps, FollowedUp, QueueControl, Refusal, Said, WorkerAnswer,
    WorkerCall,
};
use tagwerk_engine::message::{By, Message};
use tagwerk_engine::row::{Counter, Ordering, TypeSettings};
use tagwerk_engine::settings::{Settings, UnknownTypes};
use tagwerk_engine::store::StoreError;
use tagwerk_engine::testing::memory::Point;

use crate::rig::{Rig, claim, completed, failed, job, keyed, rejection, token};

fn lead(jobs: Vec<EnqueueJob>) -> Said {
    let sent = format!("{jobs:?}");
    Said::Lead { result: Some("7".into()), follow_ups: Box::new(FollowUps::new(jobs, sent)) }
}

fn enqueued(answer: &WorkerAnswer) -> Vec<(i64, bool)> {
    let jobs = answer.enqueued.as_deref().unwrap();
    jobs.iter().map(|FollowedUp { id, created }| (id.0, *created)).collect()
}

fn start(rig: &mut Rig, job: EnqueueJob) -> Claimed {
    rig.create(job);
    rig.take("w")
}

#[test]
fn they_are_created_with_the_completion_and_start_like_any_job() {
    let mut rig = Rig::new();
    let held = start(&mut rig, job("first"));
    let waiting = rig.park(tagwerk_engine::command::Claim { wait_ms: 10_000, ..claim("next") });
    let answer = rig.say(&held, lead(vec![job("second"), keyed("third", "k"), job("second")])).unwrap();
    assert_eq!(enqueued(&answer), [(2, true), (3, true), (4, true)], "consecutive, in their order");
    assert_eq!(answer.job.row.job.status, Status::Completed);
    assert_eq!(answer.job.row.note.result.as_deref(), Some("7"));
    let first = waiting.try_recv().unwrap().unwrap();
    assert_eq!(first.jobs[0].job.row.job.id, JobId(2), "who waits gets one in the same commit");
    assert_eq!(rig.job(JobId(3)).row.lane.kind.as_ref(), "third");
    let tally = rig.tally();
    assert_eq!(
        (
            tally.get(Counter::Enqueued),
            tally.get(Counter::Completed),
            tally.get(Counter::Running),
            tally.get(Counter::Pending)
        ),
        (4, 1, 1, 2)
    );
    rig.assert_clean();
}

#[test]
fn one_that_cannot_be_created_leaves_everything_as_it_was() {
    let mut rig = Rig::with(Settings { unknown_types: UnknownTypes::Refuse, ..Settings::default() });
    for kind in ["known", "next"] {
        let settings = Some(TypeSettings::default());
        let put = tagwerk_engine::command::PutType { kind: kind.into(), settings };
        rig.send(|reply| Message::PutType(put, By::local(), Box::new(reply)))
            .try_recv()
            .unwrap()
            .unwrap()
            .unwrap();
    }
    let held = start(&mut rig, job("known"));
    let before = rig.job(JobId(1));
    let refused = rig.say(&held, lead(vec![keyed("next", "k"), job("unheard-of"), job("next")]));
    let Err(Refusal::FollowUp { index: 1, refusal }) = refused else { panic!("{refused:?}") };
    assert!(matches!(*refusal, Refusal::UnknownType { .. }), "{refusal:?}");
    assert_eq!(rig.job(JobId(1)), before);
    assert!(rig.find(JobId(2)).is_none());
    // The lease lives, the key is free, and the report counts once it is put right.
    let answer = rig.say(&held, lead(vec![keyed("next", "k")])).unwrap();
    assert_eq!(enqueued(&answer), [(2, true)]);
    rig.assert_clean();
}

#[test]
fn a_repeated_report_creates_nothing_again_and_other_follow_ups_contradict_it() {
    let mut rig = Rig::new();
    let held = start(&mut rig, job("first"));
    rig.say(&held, lead(vec![job("second")])).unwrap();
    let again = rig.say(&held, lead(vec![job("second")])).unwrap();
    assert!(again.replayed && again.enqueued.is_none());
    for other in [lead(vec![job("third")]), lead(vec![job("second"), job("second")])] {
        let refused = rejection(rig.say(&held, other));
        assert!(matches!(refused, Rejection::AlreadyReported { .. }), "{refused:?}");
    }
    let refused = rejection(rig.say(&held, completed()));
    assert!(matches!(refused, Rejection::AlreadyReported { .. }), "none is not one: {refused:?}");
    assert_eq!(rig.tally().get(Counter::Enqueued), 2);
    rig.assert_clean();
}

#[test]
fn a_report_that_does_not_count_creates_nothing() {
    // Somebody else has the job.
    let mut rig = Rig::new();
    let lost = start(&mut rig, job("first"));
    rig.advance(62_000);
    let _held = rig.take("other");
    assert!(rig.say(&lost, lead(vec![job("second")])).is_err());
    // It was cancelled, at once or to be told at the next call.
    let mut waiting = Rig::new();
    let held = start(&mut waiting, job("first"));
    waiting.operate(JobId(1), Action::Cancel { wait: true }).unwrap();
    assert!(matches!(rejection(waiting.say(&held, lead(vec![job("second")]))), Rejection::Cancelled));
    assert_eq!(waiting.status(JobId(1)), Status::Cancelled);
    for rig in [rig, waiting] {
        assert_eq!(rig.tally().get(Counter::Enqueued), 1);
        rig.assert_clean();
    }
}

#[test]
fn a_late_report_that_takes_the_place_of_the_loss_brings_its_follow_ups() {
    let mut rig = Rig::new();
    let held = start(&mut rig, job("first"));
    rig.advance(60_500);
    assert_eq!(rig.status(JobId(1)), Status::Pending);
    let answer = rig.say(&held, lead(vec![job("second")])).unwrap();
    assert_eq!((answer.job.row.job.status, enqueued(&answer)), (Status::Completed, vec![(2, true)]));
    rig.assert_clean();
}

#[test]
fn a_known_key_is_no_error_whatever_the_job_says_of_duplicates() {
    let mut rig = Rig::new();
    let old = rig.create(EnqueueJob { payload: Some("1".into()), ..keyed("next", "k") });
    rig.create(job("first"));
    rig.take("w");
    let held = rig.take("w");
    let strict = EnqueueJob {
        on_duplicate: Some(OnDuplicate::Conflict),
        on_mismatch: Some(OnMismatch::Reject),
        payload: Some("2".into()),
        ..keyed("next", "k")
    };
    let here = EnqueueJob { key: Some("new".into()), ..strict.clone() };
    let other = EnqueueJob { payload: Some("3".into()), ..here.clone() };
    let answer = rig.say(&held, lead(vec![strict, here, other])).unwrap();
    assert_eq!(enqueued(&answer), [(old.0, false), (3, true), (3, false)]);
    assert_eq!(rig.job(old).detail.payload, "1");
    rig.assert_clean();
}

#[test]
fn the_key_of_the_completed_job_is_judged_as_it_is_after_the_completion() {
    for (scope, created) in [(Scope::Unfinished, true), (Scope::Waiting, true), (Scope::Forever, false)] {
        let mut rig = Rig::new();
        let chain = EnqueueJob { scope: Some(scope), ..keyed("chain", "k") };
        let held = start(&mut rig, chain.clone());
        let answer = rig.say(&held, lead(vec![chain.clone(), chain])).unwrap();
        let id = if created { 2 } else { 1 };
        assert_eq!(enqueued(&answer), [(id, created), (id, false)], "{scope:?}");
        assert_eq!(rig.tally().get(Counter::Enqueued), if created { 2 } else { 1 });
        rig.assert_clean();
    }
}

#[test]
fn no_bound_of_a_queue_refuses_them() {
    let mut rig = Rig::new();
    let held = start(&mut rig, job("first"));
    let full = tagwerk_core::QueueSettings { max_depth: Some(1), ..tagwerk_core::QueueSettings::default() };
    for control in [QueueControl::Set(full), QueueControl::Drain { reason: None, by: None }] {
        let control = ControlQueue { queue: "default".into(), control };
        let reply = rig.send(|reply| Message::ControlQueue(control, By::local(), Box::new(reply)));
        reply.try_recv().unwrap().unwrap().unwrap();
    }
    assert!(rig.enqueue(vec![job("outside")])[0].is_err());
    let answer = rig.say(&held, lead(vec![job("second"), job("third")])).unwrap();
    assert_eq!(enqueued(&answer), [(2, true), (3, true)]);
    rig.assert_clean();
}

#[test]
fn those_of_one_order_line_up_behind_each_other_and_the_first_may_start() {
    let mut rig = Rig::new();
    let in_order = |kind: &str| EnqueueJob {
        ordering: Some(Box::new(Ordering { key: "order-1".into(), on_head_failure: None })),
        ..job(kind)
    };
    let held = start(&mut rig, in_order("reserve"));
    rig.say(&held, lead(vec![in_order("pay"), in_order("ship")])).unwrap();
    let pay = rig.take("w");
    assert_eq!(pay.job.row.job.id, JobId(2));
    assert!(rig.claim(claim("w")).jobs.is_empty(), "the second waits for the first");
    rig.say(&pay, completed()).unwrap();
    assert_eq!(rig.take("w").job.row.job.id, JobId(3));
    rig.assert_clean();
}

#[test]
fn in_a_bulk_report_each_entry_is_judged_by_itself() {
    let mut rig = Rig::new();
    let held: Vec<Claimed> = (0..3).map(|_| start(&mut rig, job("first"))).collect();
    let too_late = EnqueueJob {
        max_age: Some(tagwerk_engine::command::MaxAge::At(tagwerk_core::Timestamp::from_millis(1))),
        ..job("second")
    };
    let said = [lead(vec![job("second")]), lead(vec![too_late]), failed(ErrorClass::Permanent)];
    let calls = held.iter().zip(said).map(|(held, said)| WorkerCall {
        id: held.job.row.job.id,
        holder: token(held),
        said,
    });
    let answer = rig.work(calls.collect());
    assert_eq!(enqueued(answer.results[0].as_ref().unwrap()), [(4, true)]);
    assert!(matches!(answer.results[1], Err(Refusal::FollowUp { index: 0, .. })), "{:?}", answer.results[1]);
    let states: Vec<Status> = held.iter().map(|held| rig.status(held.job.row.job.id)).collect();
    assert_eq!(states, [Status::Completed, Status::Running, Status::Failed]);
    rig.assert_clean();
}

#[test]
fn a_commit_that_fails_creates_neither() {
    let mut rig = Rig::new();
    let held = start(&mut rig, job("first"));
    rig.disk.faults().fail(Point::BeforeCommit, StoreError::Full, 2);
    let calls = vec![WorkerCall { id: JobId(1), holder: token(&held), said: lead(vec![job("second")]) }];
    let command = tagwerk_engine::command::Work { calls, claim: None };
    let failed = rig.send(|reply| Message::Work(command, Box::new(reply))).try_recv().unwrap();
    assert!(failed.is_err(), "{failed:?}");
    assert_eq!((rig.status(JobId(1)), rig.tally().get(Counter::Enqueued)), (Status::Running, 1));
    assert_eq!(enqueued(&rig.say(&held, lead(vec![job("second")])).unwrap()), [(2, true)]);
    rig.assert_clean();
}
