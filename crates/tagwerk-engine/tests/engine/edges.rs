//! Where commands meet: replays and lost answers, services and claims, a store that fails while claims wait.

use tagwerk_core::{Action, JobId, RetryOverrides, Status};
use tagwerk_engine::command::{
    Claim, ClaimAnswer, EngineError, EnqueueJob, MaxAge, PutType, Refusal, Start, Work, WorkerCall,
};
use tagwerk_engine::message::{By, Message};
use tagwerk_engine::ports::Responder;
use tagwerk_engine::row::TypeSettings;
use tagwerk_engine::store::{Filter, StoreError};
use tagwerk_engine::testing::memory::Point;

use crate::rig::{Answer, Rig, claim, completed, job, released, token};

/// A client that is gone when its answer comes.
struct Gone;
impl Responder<Result<ClaimAnswer, EngineError>> for Gone {
    fn is_waiting(&self) -> bool {
        true
    }
    fn answer(
        self: Box<Self>,
        a: Result<ClaimAnswer, EngineError>,
    ) -> Result<(), Result<ClaimAnswer, EngineError>> {
        Err(a)
    }
}

#[test]
fn a_lease_that_was_replayed_is_not_given_back_under_its_worker() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    let request = Claim { request_id: Some("r".into()), ..claim("w") };
    // The first answer is on its way over a connection that is dead, which nobody has noticed yet.
    let first = rig.claim(request.clone());
    let bits = first.jobs[0].job.row.job.lease.as_ref().unwrap().bits;
    // The client asks again and gets the lease.
    let second = rig.claim(request);
    assert!(second.replayed);
    // Now the first connection breaks.
    rig.committer.step(vec![Message::GiveBack(vec![(id, bits)])]);
    let other = rig.claim(claim("v"));
    assert!(other.jobs.is_empty(), "two workers hold the job");
    rig.say(&second.jobs[0], completed()).unwrap();
}

#[test]
fn a_lease_that_was_replayed_in_the_same_batch_is_not_given_back() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    let request = Claim { request_id: Some("r".into()), ..claim("w") };
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    rig.committer.step(vec![
        Message::Claim(request.clone(), Box::new(Gone)),
        Message::Claim(request, Box::new(sender)),
    ]);
    let got = receiver.try_recv().unwrap().unwrap();
    assert_eq!(got.jobs.len(), 1);
    let back: Vec<Message> = rig.inbox.try_iter().collect();
    rig.committer.step(back);
    assert_eq!(rig.status(id), Status::Running, "taken away from the worker that has it");
}

#[test]
fn release_and_claim_in_one_call_goes_to_another_job() {
    let mut rig = Rig::new();
    let first = rig.create(job("t"));
    let second = rig.create(job("t"));
    let held = rig.take("w");
    assert_eq!(held.job.row.job.id, first);
    let calls = vec![WorkerCall { id: first, holder: token(&held), said: released() }];
    let command = Work { calls, claim: Some(claim("w")) };
    let answer = rig.send(|reply| Message::Work(command, Box::new(reply))).try_recv().unwrap().unwrap();
    assert_eq!(answer.claimed.unwrap().jobs[0].job.row.job.id, second);
}

#[test]
fn giving_back_a_cancelled_job_keeps_others_hints() {
    let mut rig = Rig::new();
    let a = rig.create(job("t"));
    let b = rig.create(job("t"));
    let held_a = rig.take("w");
    let held_b = rig.take("v");
    rig.operate(b, Action::Cancel { wait: true }).unwrap();
    let bits = held_b.job.row.job.lease.as_ref().unwrap().bits;
    let calls = vec![WorkerCall { id: a, holder: token(&held_a), said: released() }];
    let (sender, _receiver) = std::sync::mpsc::sync_channel(1);
    rig.committer.step(vec![
        Message::Work(Work { calls, claim: None }, Box::new(sender)),
        Message::GiveBack(vec![(b, bits)]),
    ]);
    let c = rig.create(job("t"));
    assert_eq!(rig.take("w").job.row.job.id, c);
}

#[test]
fn a_claim_ends_a_bounded_number_of_expired_jobs() {
    let mut rig = Rig::new();
    for _ in 0..5 {
        rig.enqueue(
            (0..1_000).map(|_| EnqueueJob { max_age: Some(MaxAge::AfterMs(1_000)), ..job("t") }).collect(),
        );
    }
    rig.clock.advance(1_000);
    rig.claim(claim("w"));
    let failed = rig.tally().get(tagwerk_engine::row::Counter::Failed);
    assert!(failed <= 2_000, "{failed} in one transaction");
}

#[test]
fn a_store_that_fails_is_not_asked_without_pause() {
    let mut rig = Rig::new();
    rig.create(EnqueueJob { start: Start::AfterMs(500), ..job("t") });
    let _waits = rig.park(Claim { wait_ms: 60_000, ..claim("w") });
    rig.disk.faults().fail(Point::Begin, StoreError::ReadOnly, 1_000);
    rig.clock.advance(600);
    rig.tick();
    assert!(rig.committer.patience().as_millis() > 0, "spins as fast as it can");
}

#[test]
fn a_store_that_is_full_is_not_asked_without_pause_about_a_backlog() {
    let mut rig = Rig::new();
    for _ in 0..2 {
        rig.enqueue(
            (0..1_000).map(|_| EnqueueJob { max_age: Some(MaxAge::AfterMs(1_000)), ..job("t") }).collect(),
        );
    }
    rig.clock.advance(1_000);
    rig.tick();
    assert!(rig.committer.patience().is_zero(), "there is more");
    rig.disk.faults().fail(Point::BeforeCommit, StoreError::Full, 1_000);
    rig.tick();
    assert!(rig.committer.patience().as_millis() > 0, "spins as fast as it can");
}

#[test]
fn expiring_reads_no_payloads() {
    let mut rig = Rig::new();
    let id = rig.create(EnqueueJob { max_age: Some(MaxAge::AfterMs(1_000)), ..job("t") });
    rig.disk.faults().fail(Point::Method("details"), StoreError::Other("read".into()), 1);
    rig.clock.advance(1_000);
    rig.tick();
    assert_eq!(rig.status(id), Status::Failed);
}

#[test]
fn deleting_a_type_in_the_batch_that_put_it_says_that_it_was_there() {
    let mut rig = Rig::new();
    let (sender, receiver) = std::sync::mpsc::sync_channel(2);
    rig.committer.step(vec![
        Message::PutType(
            PutType { kind: "t".into(), settings: Some(TypeSettings::default()) },
            By::local(),
            Box::new(sender.clone()),
        ),
        Message::PutType(PutType { kind: "t".into(), settings: None }, By::local(), Box::new(sender)),
    ]);
    let answers: Vec<bool> = receiver.try_iter().map(|answer| answer.unwrap().unwrap()).collect();
    assert_eq!(answers, [false, true]);
}

/// A job whose lease ends right now, behind a thousand others that ended before it and come first; `w` held it by the claim
/// that is returned, and another claim waits for it.
fn lost_behind_a_thousand() -> (Rig, JobId, Claim, Answer<ClaimAnswer>) {
    let mut rig = Rig::new();
    let at_once = RetryOverrides { base_ms: Some(0), ..RetryOverrides::default() };
    let id = rig.create(EnqueueJob { retry: at_once, ..job("t") });
    let first = Claim { request_id: Some("r".into()), lease_ms: Some(10_000), ..claim("w") };
    assert_eq!(rig.claim(first.clone()).jobs.len(), 1);
    rig.enqueue((0..1_000).map(|_| EnqueueJob { max_retries: Some(0), ..job("u") }).collect());
    let others = rig.claim(Claim { max_jobs: 1_000, lease_ms: Some(9_000), ..claim("x") });
    assert_eq!(others.jobs.len(), 1_000);
    let waits = rig.park(Claim { wait_ms: 60_000, ..claim("p") });
    rig.advance(8_000);
    // In one step to the end of both leases, so that all are over in the same batch.
    rig.clock.advance(2_000);
    (rig, id, first, waits)
}

/// The two batches that come next serve the claim that waits.
#[track_caller]
fn is_served_soon(rig: &mut Rig, id: JobId, waits: &Answer<ClaimAnswer>) {
    rig.tick();
    rig.tick();
    let Ok(served) = waits.try_recv() else { panic!("never woken") };
    let served = served.unwrap().jobs;
    assert_eq!(served.iter().map(|held| held.job.row.job.id).collect::<Vec<_>>(), [id]);
    assert_eq!(rig.status(id), Status::Running);
}

#[test]
fn what_a_replay_brings_back_wakes_waiting_claims() {
    let (mut rig, id, first, waits) = lost_behind_a_thousand();
    let nothing = Filter { queues: None, types: Some(vec!["nothing".into()]), space: None };
    let got = rig.claim(Claim { filter: nothing, ..first });
    assert!(got.jobs.is_empty(), "the lease that it repeats is over");
    is_served_soon(&mut rig, id, &waits);
}

#[test]
fn a_tick_alone_wakes_waiting_claims_for_what_came_back() {
    let (mut rig, id, _, waits) = lost_behind_a_thousand();
    is_served_soon(&mut rig, id, &waits);
}

#[test]
fn a_replayed_report_writes_nothing() {
    let mut rig = Rig::new();
    rig.create(job("t"));
    let held = rig.take("w");
    rig.say(&held, completed()).unwrap();
    rig.disk.faults().fail(Point::Method("put"), StoreError::Conflict, 1);
    assert!(rig.say(&held, completed()).unwrap().replayed);
    assert!(!rig.disk.faults().are_spent(), "put was called");
}

#[test]
fn a_draining_server_hands_out_nothing_behind_reports() {
    let mut rig = Rig::new();
    rig.create(job("t"));
    rig.committer.step(vec![Message::Drain]);
    let command = Work { calls: vec![], claim: Some(claim("w")) };
    let answer = rig.send(|reply| Message::Work(command, Box::new(reply))).try_recv().unwrap().unwrap();
    assert!(answer.claimed.unwrap_or_default().jobs.is_empty());
}

#[test]
fn a_heartbeat_reads_no_payload() {
    let mut rig = Rig::new();
    rig.create(job("t"));
    let held = rig.take("w");
    rig.disk.faults().fail(Point::Method("details"), StoreError::Other("read".into()), 1);
    rig.say(&held, tagwerk_engine::command::Said::Heartbeat { progress: None }).unwrap();
    assert!(!rig.disk.faults().are_spent(), "details was called");
}

#[test]
fn made_up_queue_names_do_not_hide_the_claims_of_a_real_queue() {
    let mut rig = Rig::new();
    for n in 0..100 {
        let queues = (0..100).map(|k| format!("made-up-{n}-{k}")).collect();
        rig.claim(Claim { filter: Filter { queues: Some(queues), types: None, space: None }, ..claim("w") });
    }
    rig.advance(2_000);
    rig.claim(Claim {
        filter: Filter { queues: Some(vec!["real".into()]), types: None, space: None },
        ..claim("w")
    });
    assert!(
        rig.shared.vitals().registry.last_claim("real").is_some(),
        "explain says no_worker although one asks all the time"
    );
}

#[test]
fn a_waiting_claim_gets_what_stands_behind_many_expired_jobs() {
    let mut rig = Rig::new();
    for _ in 0..5 {
        rig.enqueue(
            (0..1_000).map(|_| EnqueueJob { max_age: Some(MaxAge::AfterMs(1_000)), ..job("t") }).collect(),
        );
    }
    rig.create(job("t"));
    rig.clock.advance(1_000);
    let waits = rig.park(Claim { wait_ms: 60_000, ..claim("w") });
    for _ in 0..4 {
        assert!(rig.committer.patience().is_zero());
        rig.tick();
        if let Ok(a) = waits.try_recv() {
            assert_eq!(a.unwrap().jobs.len(), 1);
            return;
        }
    }
    panic!("not woken");
}

#[test]
fn a_damaged_job_fails_alone_in_a_bulk_report() {
    let mut rig = Rig::new();
    rig.enqueue(vec![job("t"), job("t"), job("t")]);
    let held = rig.claim(Claim { max_jobs: 3, ..claim("w") }).jobs;
    let ids: Vec<_> = held.iter().map(|held| held.job.row.job.id).collect();
    rig.disk.damage(ids[1]);
    let calls = held.iter().map(|held| WorkerCall {
        id: held.job.row.job.id,
        holder: token(held),
        said: completed(),
    });
    let results = rig.work(calls.collect()).results;
    assert_eq!(results[1], Err(Refusal::JobDamaged(ids[1])));
    assert!(results[0].is_ok() && results[2].is_ok());
    assert_eq!([rig.status(ids[0]), rig.status(ids[2])], [Status::Completed; 2]);
}
