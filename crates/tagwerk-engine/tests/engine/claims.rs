//! Handing out: filters, order, long polls, request ids, the release hint, answers that nobody received.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tagwerk_core::{Priority, Status};
use tagwerk_engine::command::{Claim, ClaimAnswer, EngineError, EnqueueJob, MaxAge, Said, Start, Work};
use tagwerk_engine::message::Message;
use tagwerk_engine::ports::Responder;
use tagwerk_engine::row::Counter;
use tagwerk_engine::store::Filter;
use tagwerk_engine::testing::memory::Point;

use crate::rig::{Rig, claim, completed, job, released, token};

fn many(worker: &str, max_jobs: usize) -> Claim {
    Claim { max_jobs, ..claim(worker) }
}

fn waiting(worker: &str, wait_ms: i64) -> Claim {
    Claim { wait_ms, ..claim(worker) }
}

fn ids(answer: &ClaimAnswer) -> Vec<i64> {
    answer.jobs.iter().map(|claimed| claimed.job.row.job.id.0).collect()
}

#[test]
fn priority_then_due_then_id_and_filters_choose() {
    let mut rig = Rig::new();
    let low = rig.create(EnqueueJob { priority: Priority::from_value(0), ..job("a") });
    let late = rig.create(EnqueueJob { start: Start::AfterMs(10), ..job("a") });
    let first = rig.create(job("a"));
    let high =
        rig.create(EnqueueJob { priority: Priority::from_value(20), queue: Some("q".into()), ..job("b") });
    rig.advance(10);
    let only = |queue: &str| Filter { queues: Some(vec![queue.into()]), types: None, space: None };
    assert_eq!(ids(&rig.claim(Claim { filter: only("other"), ..many("w", 9) })), Vec::<i64>::new());
    assert_eq!(ids(&rig.claim(many("w", 9))), [high.0, first.0, late.0, low.0]);
    assert_eq!(rig.tally().get(Counter::Claims), 4);
    rig.assert_clean();
}

#[test]
fn f076_the_lease_tells_the_attempt_and_whether_it_is_the_last() {
    let mut rig = Rig::new();
    let id = rig.create(EnqueueJob {
        max_retries: Some(3),
        retry: tagwerk_core::RetryOverrides { base_ms: Some(0), ..Default::default() },
        ..job("t")
    });
    let mut seen = Vec::new();
    for _ in 0..4 {
        let held = rig.take("w");
        seen.push((held.job.row.job.attempt, held.job.row.job.is_last_attempt()));
        rig.say(&held, crate::rig::failed(tagwerk_core::ErrorClass::Transient)).unwrap();
    }
    assert_eq!(seen, [(1, false), (2, false), (3, false), (4, true)]);
    assert_eq!(rig.status(id), Status::Failed);
    assert_eq!(rig.job(id).row.job.attempt, 4);
}

#[test]
fn a_waiting_claim_is_served_by_the_transaction_of_the_enqueue() {
    let mut rig = Rig::new();
    let answer = rig.park(waiting("w", 60_000));
    assert!(answer.try_recv().is_err(), "it waits");
    rig.disk.faults().clear();
    let id = rig.create(job("t"));
    // One step, one transaction: the claim was answered by the step that took the enqueue.
    assert_eq!(ids(&answer.try_recv().unwrap().unwrap()), [id.0]);
    assert_eq!(rig.status(id), Status::Running);
}

#[test]
fn f046_a_waiting_claim_gets_what_becomes_due_and_what_comes_back() {
    let mut rig = Rig::new();
    let scheduled = rig.create(EnqueueJob { start: Start::AfterMs(2_500), ..job("t") });
    let answer = rig.park(waiting("w", 60_000));
    assert_eq!(rig.committer.patience().as_millis(), 1_000);
    rig.advance(2_000);
    assert_eq!(rig.committer.patience().as_millis(), 500, "it wakes exactly when the job is due");
    assert!(answer.try_recv().is_err());
    rig.advance(500);
    let held = answer.try_recv().unwrap().unwrap().jobs.pop().unwrap();
    assert_eq!(held.job.row.job.id, scheduled);
    // The lease runs out: after the first loss it is due again within a second.
    let answer = rig.park(waiting("v", 60_000));
    rig.advance(59_000);
    assert!(answer.try_recv().is_err());
    let answer = {
        drop(answer);
        rig.park(waiting("v", 60_000))
    };
    rig.advance(2_000);
    let again = answer.try_recv().unwrap().unwrap().jobs.pop().unwrap();
    assert_eq!(
        (again.job.row.job.id, again.job.row.job.attempt, again.job.row.job.verify),
        (scheduled, 2, true)
    );
}

#[test]
fn f048_a_nearer_due_time_re_arms_the_wait() {
    let mut rig = Rig::new();
    let answer = rig.park(waiting("w", 60_000));
    rig.create(EnqueueJob { start: Start::AfterMs(21_600_000), ..job("t") });
    rig.create(EnqueueJob { start: Start::AfterMs(60_000), ..job("t") });
    let near = rig.create(EnqueueJob { start: Start::AfterMs(700), ..job("t") });
    assert_eq!(rig.committer.patience().as_millis(), 700);
    rig.advance(700);
    assert_eq!(ids(&answer.try_recv().unwrap().unwrap()), [near.0]);
}

#[test]
fn a_wait_ends_empty_with_the_next_due_time() {
    let mut rig = Rig::new();
    let due = rig.now().plus_ms(90_000);
    rig.create(EnqueueJob { start: Start::AfterMs(90_000), ..job("t") });
    let now = rig.claim(claim("w"));
    assert_eq!((now.jobs.len(), now.next_due_at), (0, Some(due)));
    let answer = rig.park(waiting("w", 1_500));
    rig.advance(1_400);
    assert!(answer.try_recv().is_err());
    rig.advance(100);
    let ended = answer.try_recv().unwrap().unwrap();
    assert_eq!((ended.jobs.len(), ended.next_due_at), (0, Some(due)));
}

#[test]
fn as_many_waiting_claims_wake_as_there_are_jobs_first_come_first_served() {
    let mut rig = Rig::new();
    let answers: Vec<_> = (0..5).map(|n| rig.park(waiting(&format!("w{n}"), 60_000))).collect();
    rig.enqueue(vec![job("t"), job("t")]);
    let served: Vec<bool> = answers.iter().map(|answer| answer.try_recv().is_ok()).collect();
    assert_eq!(served, [true, true, false, false, false]);
}

#[test]
fn a_repeated_claim_that_waits_takes_nobodys_turn() {
    let mut rig = Rig::new();
    let same = || Claim { request_id: Some("r".into()), ..waiting("w", 60_000) };
    // Both arrive in one batch, as when a proxy sends a request twice.
    let (sender, receiver) = std::sync::mpsc::sync_channel(2);
    let batch = (0..2).map(|_| Message::Claim(same(), Box::new(sender.clone()))).collect();
    rig.committer.step(batch);
    let other = rig.park(waiting("v", 60_000));
    let first = rig.create(job("t"));
    assert_eq!(ids(&receiver.try_recv().unwrap().unwrap()), [first.0]);
    let second = rig.create(job("t"));
    let repeated = receiver.try_recv().unwrap().unwrap();
    assert_eq!((ids(&repeated), repeated.replayed), (vec![first.0], true));
    assert_eq!(
        ids(&other.try_recv().unwrap().unwrap()),
        [second.0],
        "it is not left to wait for its deadline"
    );
}

#[test]
fn the_release_hint_counts_time_and_not_the_wall_clock() {
    let mut rig = Rig::new();
    let first = rig.create(job("t"));
    let held = rig.take("w");
    rig.say(&held, released()).unwrap();
    let second = rig.create(EnqueueJob { priority: Priority::from_value(0), ..job("t") });
    rig.clock.set(rig.now().plus_ms(-3_600_000));
    rig.advance(30_000);
    rig.clock.set(rig.now().plus_ms(3_600_000));
    rig.clock.set(rig.now().plus_ms(-10));
    assert_eq!(rig.take("w").job.row.job.id, first, "the half minute is over, whatever the wall clock shows");
    assert_eq!(rig.take("w").job.row.job.id, second);
}

#[test]
fn a_job_wakes_a_claim_that_it_fits_even_behind_others_that_wait_for_another() {
    let mut rig = Rig::new();
    let types = |kinds: &[&str]| Filter {
        queues: None,
        types: Some(kinds.iter().map(|kind| (*kind).to_owned()).collect()),
        space: None,
    };
    let mut wait = |worker: &str, kinds| rig.park(Claim { filter: types(kinds), ..waiting(worker, 60_000) });
    let answers = [wait("p1", &["a"]), wait("p2", &["a"]), wait("p3", &["b"])];
    rig.enqueue(vec![job("a"), job("b")]);
    assert_eq!(answers.map(|answer| answer.try_recv().is_ok()), [true, false, true]);

    // The first takes the more urgent job of the other type, so the one that it was woken by is free for the next.
    let mut rig = Rig::new();
    let mut wait = |worker: &str, kinds| rig.park(Claim { filter: types(kinds), ..waiting(worker, 60_000) });
    let answers = [wait("p1", &["a", "b"]), wait("p2", &["a"])];
    rig.enqueue(vec![job("a"), EnqueueJob { priority: Priority::from_value(30), ..job("b") }]);
    assert_eq!(answers.map(|answer| answer.try_recv().is_ok()), [true, true]);
}

#[test]
fn more_waiting_claims_than_a_batch_serves_are_served_by_the_next_at_once() {
    let mut rig = Rig::new();
    let answers: Vec<_> = (0..500).map(|n| rig.park(waiting(&format!("w{n}"), 60_000))).collect();
    rig.enqueue((0..400).map(|_| job("t")).collect());
    let mut served: usize = answers.iter().filter(|answer| answer.try_recv().is_ok()).count();
    assert_eq!(served, 128);
    let mut steps = 0;
    while rig.committer.patience().is_zero() {
        rig.tick();
        steps += 1;
        served += answers.iter().filter(|answer| answer.try_recv().is_ok()).count();
    }
    assert_eq!((served, steps), (400, 3));
    rig.assert_clean();
}

#[test]
fn a_waiting_claim_of_another_type_does_not_stand_in_the_way() {
    let mut rig = Rig::new();
    let types = |kind: &str| Filter { queues: None, types: Some(vec![kind.into()]), space: None };
    let other = rig.park(Claim { filter: types("x"), ..waiting("a", 60_000) });
    let fits = rig.park(Claim { filter: types("t"), ..waiting("b", 60_000) });
    rig.create(job("t"));
    assert!(other.try_recv().is_err());
    assert_eq!(fits.try_recv().unwrap().unwrap().jobs.len(), 1);
}

#[test]
fn a_repeated_claim_gets_its_leases_again_also_after_a_restart() {
    let mut rig = Rig::new();
    rig.enqueue(vec![job("t"), job("t"), job("t")]);
    let request = Claim { request_id: Some("r1".into()), ..many("w", 2) };
    let first = rig.claim(request.clone());
    let again = rig.claim(request.clone());
    assert!(!first.replayed && again.replayed);
    let tokens = |answer: &ClaimAnswer| answer.jobs.iter().map(|job| job.token.clone()).collect::<Vec<_>>();
    assert_eq!(tokens(&first), tokens(&again));
    let mut rig = rig.restart(10);
    let after = rig.claim(request.clone());
    assert_eq!(tokens(&first), tokens(&after), "the token is made from the store's secret");
    let another = rig.claim(Claim { worker: "v".into(), ..request.clone() });
    assert_eq!(
        (another.replayed, another.jobs.len()),
        (false, 1),
        "another worker's request is another request"
    );
    for held in &first.jobs {
        rig.say(held, completed()).unwrap();
    }
    let fresh = rig.claim(request);
    assert_eq!((fresh.replayed, fresh.jobs.len()), (false, 0));
}

#[test]
fn a_claim_repeated_while_it_waits_or_in_one_batch_gets_one_set_of_leases() {
    let mut rig = Rig::new();
    let request = Claim { request_id: Some("r".into()), ..waiting("w", 60_000) };
    let first = rig.park(request.clone());
    let second = rig.park(request.clone());
    assert!(first.try_recv().unwrap().unwrap().jobs.is_empty(), "the first connection is given up");
    rig.enqueue(vec![job("t"), job("t")]);
    assert_eq!(second.try_recv().unwrap().unwrap().jobs.len(), 1);

    let (sender, receiver) = std::sync::mpsc::sync_channel(2);
    let other = Claim { request_id: Some("s".into()), ..claim("w") };
    let batch = (0..2).map(|_| Message::Claim(other.clone(), Box::new(sender.clone()))).collect();
    rig.committer.step(batch);
    let answers: Vec<ClaimAnswer> = receiver.try_iter().map(Result::unwrap).collect();
    assert_eq!((answers[0].replayed, answers[1].replayed), (false, true));
    assert_eq!(ids(&answers[0]), ids(&answers[1]));
}

#[test]
fn a_released_job_goes_to_another_worker_first() {
    let mut rig = Rig::new();
    let first = rig.create(job("t"));
    let held = rig.take("w");
    rig.say(&held, released()).unwrap();
    let second = rig.create(job("t"));
    let full = rig.job(first);
    assert_eq!((full.row.job.error, full.row.job.attempt), (None, 0));
    let reason = rig.attempts(first).pop().unwrap().attempt.error;
    assert_eq!(reason.as_deref(), Some("no time"), "the reason stands with the attempt");
    assert_eq!(rig.take("w").job.row.job.id, second, "another is claimable");
    assert_eq!(rig.take("w").job.row.job.id, first, "no other is left");
    let held = rig.claim(claim("w"));
    assert!(held.jobs.is_empty());
}

#[test]
fn the_release_hint_ends_after_thirty_seconds() {
    let mut rig = Rig::new();
    let first = rig.create(job("t"));
    let held = rig.take("w");
    rig.say(&held, released()).unwrap();
    rig.create(job("t"));
    rig.advance(30_000);
    assert_eq!(rig.take("w").job.row.job.id, first);
}

#[test]
fn an_expired_job_is_never_handed_out_and_makes_room_for_the_next() {
    let mut rig = Rig::new();
    let old = rig.create(EnqueueJob { max_age: Some(MaxAge::AfterMs(1_000)), ..job("t") });
    let next = rig.create(job("t"));
    rig.clock.advance(1_000);
    let got = rig.claim(claim("w"));
    assert_eq!(ids(&got), [next.0]);
    assert_eq!(rig.status(old), Status::Failed);
}

#[test]
fn the_answer_has_a_budget_but_always_one_job() {
    let mut rig = Rig::new();
    let big = || EnqueueJob { payload: Some(format!("\"{}\"", "x".repeat(3 << 20))), ..job("t") };
    rig.enqueue((0..5).map(|_| big()).collect());
    assert_eq!(rig.claim(many("w", 5)).jobs.len(), 2);
    rig.enqueue(vec![EnqueueJob {
        payload: Some(format!("\"{}\"", "x".repeat(9 << 20))),
        priority: Priority::from_value(90),
        ..job("t")
    }]);
    assert_eq!(rig.claim(many("w", 5)).jobs.len(), 1);
}

#[test]
fn what_workers_left_behind_counts_in_the_budget_of_an_answer() {
    let mut rig = Rig::new();
    rig.enqueue((0..300).map(|_| job("t")).collect());
    for held in rig.claim(many("w", 300)).jobs {
        rig.say(&held, Said::Checkpoint(format!("\"{}\"", "x".repeat(60_000)))).unwrap();
        rig.say(&held, released()).unwrap();
    }
    let answer = rig.claim(many("v", 300));
    let bytes: u64 = answer.jobs.iter().map(|claimed| claimed.job.row.answer_bytes()).sum();
    assert!((6 << 20..8 << 20).contains(&bytes), "{bytes} bytes in {} jobs", answer.jobs.len());
}

/// A client that is gone.
struct Gone {
    noticed: Arc<AtomicBool>,
}

impl Responder<Result<ClaimAnswer, EngineError>> for Gone {
    fn is_waiting(&self) -> bool {
        !self.noticed.load(Ordering::Relaxed)
    }

    fn answer(
        self: Box<Self>,
        answer: Result<ClaimAnswer, EngineError>,
    ) -> Result<(), Result<ClaimAnswer, EngineError>> {
        Err(answer)
    }
}

#[test]
fn f047_an_answer_that_nobody_received_gives_its_job_back_at_once() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    let gone = Gone { noticed: Arc::new(AtomicBool::new(false)) };
    rig.committer.step(vec![Message::Claim(claim("w"), Box::new(gone))]);
    assert_eq!(rig.status(id), Status::Running);
    let back: Vec<Message> = rig.inbox.try_iter().collect();
    rig.committer.step(back);
    let full = rig.job(id);
    assert_eq!(
        (full.row.job.status, full.row.job.attempt, full.row.job.release_count),
        (Status::Pending, 0, 1)
    );
    assert_eq!(rig.take("w").job.row.job.id, id, "the worker's next claim may have it");
}

#[test]
fn a_waiting_claim_whose_client_is_gone_is_not_served() {
    let mut rig = Rig::new();
    let noticed = Arc::new(AtomicBool::new(false));
    let gone = Gone { noticed: Arc::clone(&noticed) };
    rig.committer.step(vec![Message::Claim(waiting("w", 60_000), Box::new(gone))]);
    noticed.store(true, Ordering::Relaxed);
    let id = rig.create(job("t"));
    assert_eq!(rig.status(id), Status::Pending);
}

#[test]
fn a_claim_behind_reports_takes_what_they_freed_in_the_same_transaction() {
    let mut rig = Rig::new();
    rig.create(job("t"));
    let held = rig.take("w");
    let calls = vec![tagwerk_engine::command::WorkerCall {
        id: held.job.row.job.id,
        holder: token(&held),
        said: crate::rig::released(),
    }];
    let command = Work { calls, claim: Some(claim("v")) };
    let answer = rig.send(|reply| Message::Work(command, Box::new(reply))).try_recv().unwrap().unwrap();
    assert!(answer.results[0].is_ok());
    assert_eq!(answer.claimed.unwrap().jobs.len(), 1);
    rig.assert_clean();
}

#[test]
fn a_draining_server_refuses_new_work_answers_waits_and_takes_reports() {
    let mut rig = Rig::new();
    rig.create(job("t"));
    let held = rig.take("w");
    let answer = rig.park(waiting("v", 60_000));
    rig.committer.step(vec![Message::Drain]);
    assert!(answer.try_recv().unwrap().unwrap().jobs.is_empty());
    assert_eq!(rig.park(claim("v")).try_recv().unwrap(), Err(EngineError::Draining));
    assert!(rig.say(&held, completed()).is_ok());
}

#[test]
fn a_failed_transaction_leaves_waiting_claims_waiting() {
    let mut rig = Rig::new();
    let answer = rig.park(waiting("w", 60_000));
    rig.disk.faults().fail(Point::BeforeCommit, tagwerk_engine::store::StoreError::Busy, 1);
    let command = tagwerk_engine::command::Enqueue {
        jobs: vec![job("t")],
        mode: tagwerk_engine::command::BulkMode::Each,
        reach: None,
    };
    let refused = rig.send(|reply| Message::Enqueue(command, Box::new(reply))).try_recv().unwrap();
    assert_eq!(refused.unwrap_err(), EngineError::StoreBusy);
    assert!(answer.try_recv().is_err());
    let id = rig.create(job("t"));
    assert_eq!(ids(&answer.try_recv().unwrap().unwrap()), [id.0]);
}
