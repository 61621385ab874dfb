//! Ordering keys: whose turn it is, whatever becomes of the job before.

use tagwerk_core::{Action, ErrorClass, JobId, OnHeadFailure, Status};
use tagwerk_engine::command::{Claimed, EnqueueJob, MaxAge, Operate, Refusal, Start};
use tagwerk_engine::row::Ordering;

use crate::rig::{Rig, claim, completed, failed, job, released, token};

fn ordered(key: &str, mode: OnHeadFailure) -> EnqueueJob {
    let ordering = Box::new(Ordering { key: key.into(), on_head_failure: Some(mode) });
    EnqueueJob { ordering: Some(ordering), max_retries: Some(0), ..job("work") }
}

/// Jobs A, B and C of one key.
fn three(rig: &mut Rig, mode: OnHeadFailure) -> [JobId; 3] {
    [rig.create(ordered("k", mode)), rig.create(ordered("k", mode)), rig.create(ordered("k", mode))]
}

/// What a worker that asks for anything gets.
fn next(rig: &mut Rig) -> Option<Claimed> {
    rig.claim(claim("w")).jobs.pop()
}

fn id(held: &Claimed) -> JobId {
    held.job.row.job.id
}

fn next_id(rig: &mut Rig) -> Option<JobId> {
    next(rig).as_ref().map(id)
}

/// The jobs are handed out in this order, each after the one before was reported.
fn run_out(rig: &mut Rig, order: &[JobId]) {
    for expected in order {
        let held = next(rig).unwrap();
        assert_eq!(id(&held), *expected);
        assert_eq!(next_id(rig), None, "nobody runs beside job {expected}");
        rig.say(&held, completed()).unwrap();
    }
    assert_eq!(next_id(rig), None);
    rig.assert_clean();
}

#[test]
fn jobs_of_a_key_run_one_after_the_other() {
    let mut rig = Rig::new();
    let ids = three(&mut rig, OnHeadFailure::Block);
    let plain = rig.create(job("work"));
    let other = rig.create(ordered("other", OnHeadFailure::Block));
    let mut answer = rig.claim(tagwerk_engine::command::Claim { max_jobs: 10, ..claim("w") });
    assert_eq!(answer.jobs.iter().map(id).collect::<Vec<_>>(), [ids[0], plain, other]);
    for held in answer.jobs.drain(..) {
        rig.say(&held, completed()).unwrap();
    }
    run_out(&mut rig, &ids[1..]);
}

#[test]
fn jobs_of_one_request_stand_in_its_order() {
    let mut rig = Rig::new();
    let jobs = (0..5).map(|_| ordered("k", OnHeadFailure::Block)).collect();
    let ids: Vec<JobId> = rig
        .enqueue(jobs)
        .into_iter()
        .map(|item| match item.unwrap() {
            tagwerk_engine::command::Enqueued::Created(full) => full.row.job.id,
            other => panic!("not created: {other:?}"),
        })
        .collect();
    run_out(&mut rig, &ids);
}

/// Priority and due time do not change the order within a key; who is scheduled for later holds those behind it.
#[test]
fn a_head_that_is_scheduled_holds_the_others() {
    let mut rig = Rig::new();
    let late = EnqueueJob { start: Start::AfterMs(5_000), ..ordered("k", OnHeadFailure::Block) };
    let head = rig.create(late);
    let urgent = tagwerk_core::Priority::from_value(100);
    let second = rig.create(EnqueueJob { priority: urgent, ..ordered("k", OnHeadFailure::Block) });
    assert_eq!(next_id(&mut rig), None);
    assert_eq!(rig.claim(claim("w")).next_due_at, Some(rig.now().plus_ms(5_000)));
    rig.advance(5_000);
    run_out(&mut rig, &[head, second]);
}

type Way = fn(&mut Rig, &Claimed);

/// Every way in which an attempt of A can end in review.
fn ways_into_review() -> [(&'static str, Way); 6] {
    fn fail(rig: &mut Rig, held: &Claimed, class: ErrorClass) {
        rig.say(held, failed(class)).unwrap();
    }
    [
        ("transient", |rig, held| fail(rig, held, ErrorClass::Transient)),
        ("permanent", |rig, held| fail(rig, held, ErrorClass::Permanent)),
        ("unknown", |rig, held| fail(rig, held, ErrorClass::Unknown)),
        ("forced", |rig, held| {
            rig.operate(id(held), Action::ForceFail { error: "stuck".into() }).unwrap();
        }),
        ("lost", |rig, held| {
            rig.advance(61_000);
            assert_eq!(rig.status(id(held)), Status::Failed);
        }),
        ("late", |rig, held| {
            rig.advance(61_000);
            rig.say(held, failed(ErrorClass::Permanent)).unwrap();
        }),
    ]
}

/// A, taken and brought into review in one of these ways.
fn bring_into_review(rig: &mut Rig, mode: OnHeadFailure, way: Way) -> [JobId; 3] {
    let one = |rig: &mut Rig| {
        let lost = EnqueueJob { max_lease_losses: Some(1), ..ordered("k", mode) };
        rig.create(lost)
    };
    let ids = [one(rig), one(rig), one(rig)];
    let held = rig.take("w");
    assert_eq!(id(&held), ids[0]);
    way(rig, &held);
    assert_eq!(rig.status(ids[0]), Status::Failed);
    ids
}

#[test]
fn f092_a_head_that_fails_blocks_those_behind_it_until_somebody_decides() {
    for (name, way) in ways_into_review() {
        let mut rig = Rig::new();
        let [a, b, c] = bring_into_review(&mut rig, OnHeadFailure::Block, way);
        assert_eq!(next_id(&mut rig), None, "{name}");
        rig.operate(a, Action::Retry { max_retries: None }).unwrap();
        run_out(&mut rig, &[a, b, c]);

        let mut rig = Rig::new();
        let [a, b, c] = bring_into_review(&mut rig, OnHeadFailure::Block, way);
        rig.operate(a, Action::Discard).unwrap();
        run_out(&mut rig, &[b, c]);

        let mut rig = Rig::new();
        let [a, b, c] = bring_into_review(&mut rig, OnHeadFailure::Block, way);
        let unblocked = rig.operate(a, Action::Unblock).unwrap();
        assert!(!unblocked.replayed, "{name}");
        assert_eq!(rig.status(a), Status::Failed);
        run_out(&mut rig, &[b, c]);

        let mut rig = Rig::new();
        let [a, b, c] = bring_into_review(&mut rig, OnHeadFailure::Block, way);
        rig.operate(a, Action::Delete).unwrap();
        run_out(&mut rig, &[b, c]);
    }
}

#[test]
fn f092_a_head_that_fails_is_skipped_if_it_says_so() {
    for (name, way) in ways_into_review() {
        let mut rig = Rig::new();
        let [a, b, c] = bring_into_review(&mut rig, OnHeadFailure::Skip, way);
        let second = next(&mut rig).unwrap();
        assert_eq!(id(&second), b, "{name}");
        // A comes back while B runs: it waits for it, then goes first.
        rig.operate(a, Action::Retry { max_retries: None }).unwrap();
        assert_eq!(next_id(&mut rig), None, "{name}");
        rig.say(&second, completed()).unwrap();
        run_out(&mut rig, &[a, c]);
    }
}

/// A comes back before B was handed out: it has the lower id, so it takes the turn.
#[test]
fn a_job_that_comes_back_takes_the_turn_of_one_that_has_not_started() {
    let mut rig = Rig::new();
    let [a, b, c] = bring_into_review(&mut rig, OnHeadFailure::Skip, ways_into_review()[1].1);
    rig.operate(a, Action::Retry { max_retries: None }).unwrap();
    run_out(&mut rig, &[a, b, c]);
}

#[test]
fn attempts_that_are_repeated_keep_their_place() {
    for mode in [OnHeadFailure::Block, OnHeadFailure::Skip] {
        let mut rig = Rig::new();
        let retried = EnqueueJob { max_retries: Some(5), ..ordered("k", mode) };
        let (a, b) = (rig.create(retried), rig.create(ordered("k", mode)));
        // Failed, with a back-off; given back; lost.
        let held = rig.take("w");
        rig.say(&held, failed(ErrorClass::Transient)).unwrap();
        assert_eq!(next_id(&mut rig), None);
        rig.advance(120_000);
        let held = rig.take("w");
        assert_eq!(id(&held), a);
        rig.say(&held, released()).unwrap();
        let held = rig.claim(claim("other")).jobs.pop().unwrap();
        assert_eq!(id(&held), a);
        rig.advance(61_000);
        assert_eq!(rig.status(a), Status::Pending);
        let again = rig.take("w");
        assert_eq!(id(&again), a);
        rig.say(&again, completed()).unwrap();
        run_out(&mut rig, &[b]);
    }
}

/// A lost its lease and waits for its repetition when its worker reports that it was done.
#[test]
fn a_late_report_of_success_lets_the_next_go() {
    let mut rig = Rig::new();
    let patient =
        EnqueueJob { max_retries: Some(3), max_lease_losses: Some(9), ..ordered("k", OnHeadFailure::Block) };
    let (a, b) = (rig.create(patient), rig.create(ordered("k", OnHeadFailure::Block)));
    let held = rig.take("w");
    rig.advance(61_000);
    assert_eq!(rig.status(a), Status::Pending);
    rig.say(&held, completed()).unwrap();
    assert_eq!(rig.status(a), Status::Completed);
    run_out(&mut rig, &[b]);
}

/// A was skipped as lost; B runs when A's worker reports a failure that can be repeated. A waits for B.
#[test]
fn a_late_report_that_requeues_stands_behind_who_runs() {
    let mut rig = Rig::new();
    let lost = |retries| EnqueueJob {
        max_lease_losses: Some(1),
        max_retries: Some(retries),
        ..ordered("k", OnHeadFailure::Skip)
    };
    let (a, b, c) = (rig.create(lost(3)), rig.create(lost(0)), rig.create(lost(0)));
    let held = rig.take("w");
    rig.advance(61_000);
    assert_eq!(rig.status(a), Status::Failed);
    let second = rig.take("w");
    assert_eq!(id(&second), b);
    rig.say(&held, failed(ErrorClass::Transient)).unwrap();
    assert_eq!(rig.status(a), Status::Pending);
    assert_eq!(next_id(&mut rig), None);
    rig.say(&second, completed()).unwrap();
    rig.advance(120_000);
    run_out(&mut rig, &[a, c]);
}

#[test]
fn cancelled_jobs_leave_no_gap() {
    let mut rig = Rig::new();
    let [a, b, c] = three(&mut rig, OnHeadFailure::Block);
    rig.operate(b, Action::Cancel { wait: false }).unwrap();
    let held = next(&mut rig).unwrap();
    assert_eq!(id(&held), a);
    rig.operate(a, Action::Cancel { wait: true }).unwrap();
    assert_eq!(next_id(&mut rig), None);
    rig.call(a, token(&held), completed()).unwrap_err();
    run_out(&mut rig, &[c]);
}

/// Who waits for its turn grows old; a head that is too old holds or is skipped like any other in review.
#[test]
fn maximum_ages_hold_for_those_who_wait_for_their_turn() {
    for mode in [OnHeadFailure::Block, OnHeadFailure::Skip] {
        let mut rig = Rig::new();
        let old = || EnqueueJob { max_age: Some(MaxAge::AfterMs(1_000)), ..ordered("k", mode) };
        let (a, b) = (rig.create(old()), rig.create(old()));
        let c = rig.create(ordered("k", mode));
        let held = rig.take("w");
        assert_eq!(id(&held), a);
        rig.advance(2_000);
        assert_eq!((rig.status(a), rig.status(b)), (Status::Running, Status::Failed));
        rig.say(&held, completed()).unwrap();
        match mode {
            OnHeadFailure::Skip => run_out(&mut rig, &[c]),
            OnHeadFailure::Block => assert_eq!(next_id(&mut rig), None),
        }
    }
}

/// The one behind is handed to a claim that waits, in the batch in which its turn comes.
#[test]
fn a_claim_that_waits_is_woken_by_a_turn() {
    let mut rig = Rig::new();
    let [a, b, _] = three(&mut rig, OnHeadFailure::Block);
    let held = rig.take("w");
    assert_eq!(id(&held), a);
    let waiting = rig.park(tagwerk_engine::command::Claim { wait_ms: 30_000, ..claim("other") });
    assert!(waiting.try_recv().is_err());
    rig.say(&held, completed()).unwrap();
    let answer = waiting.try_recv().unwrap().unwrap();
    assert_eq!(answer.jobs.iter().map(id).collect::<Vec<_>>(), [b]);
}

#[test]
fn only_a_job_that_holds_somebody_back_can_be_unblocked() {
    let mut rig = Rig::new();
    let plain = rig.create(EnqueueJob { max_retries: Some(0), ..job("work") });
    assert!(matches!(rig.operate(plain, Action::Unblock), Err(Refusal::Rejected { .. })));
    let held = rig.take("w");
    rig.say(&held, failed(ErrorClass::Permanent)).unwrap();
    assert!(matches!(rig.operate(plain, Action::Unblock), Err(Refusal::NotHolding(_))));
    let [a, _, _] = bring_into_review(&mut rig, OnHeadFailure::Block, ways_into_review()[1].1);
    let version = rig.job(a).row.job.version;
    let call = |seen| Operate {
        id: a,
        action: Action::Unblock,
        seen_version: Some(seen),
        text: Some("it was done by hand".into()),
        payload: None,
        assume: None,
        key: tagwerk_engine::command::KeyFate::ByScope,
    };
    assert!(matches!(rig.operate_with(call(version - 1)), Err(Refusal::Rejected { .. })));
    rig.operate_with(call(version)).unwrap();
    assert_eq!(rig.job(a).row.job.version, version + 1);
    assert!(matches!(rig.operate(a, Action::Unblock), Err(Refusal::NotHolding(_))));
}

/// An unblocked job that is retried stands in its place again.
#[test]
fn a_retry_puts_an_unblocked_job_back_into_the_order() {
    let mut rig = Rig::new();
    let [a, b, c] = bring_into_review(&mut rig, OnHeadFailure::Block, ways_into_review()[1].1);
    rig.operate(a, Action::Unblock).unwrap();
    rig.operate(a, Action::Retry { max_retries: None }).unwrap();
    let held = rig.take("w");
    assert_eq!(id(&held), a);
    rig.say(&held, failed(ErrorClass::Permanent)).unwrap();
    assert_eq!(next_id(&mut rig), None);
    rig.operate(a, Action::Discard).unwrap();
    run_out(&mut rig, &[b, c]);
}

#[test]
fn a_damaged_head_that_is_deleted_lets_the_next_go() {
    let mut rig = Rig::new();
    let [a, b, c] = three(&mut rig, OnHeadFailure::Block);
    rig.disk.damage(a);
    assert_eq!(next_id(&mut rig), None);
    rig.operate(a, Action::Delete).unwrap();
    run_out(&mut rig, &[b, c]);
}

#[test]
fn the_order_survives_a_restart() {
    let mut rig = Rig::new();
    let [a, b, c] = three(&mut rig, OnHeadFailure::Block);
    let held = rig.take("w");
    let mut rig = rig.restart(500);
    rig.tick();
    assert_eq!(next_id(&mut rig), None);
    assert_eq!(id(&held), a);
    rig.call(a, token(&held), completed()).unwrap();
    run_out(&mut rig, &[b, c]);
}

/// Those who wait for their turn are counted, in the transaction in which they begin and cease to.
#[test]
fn blocked_jobs_are_counted() {
    let mut rig = Rig::new();
    let blocked = |rig: &Rig| rig.tally().get(tagwerk_engine::row::Counter::Blocked);
    let [head, second, third] = three(&mut rig, OnHeadFailure::Block);
    rig.create(job("work"));
    assert_eq!(blocked(&rig), 2);
    let first = next(&mut rig).unwrap();
    assert_eq!((id(&first), blocked(&rig)), (head, 2));
    rig.say(&first, failed(ErrorClass::Permanent)).unwrap();
    assert_eq!(blocked(&rig), 2, "its failure holds them back");
    rig.operate(third, Action::Cancel { wait: false }).unwrap();
    assert_eq!(blocked(&rig), 1);
    let last = rig.create(ordered("k", OnHeadFailure::Block));
    assert_eq!(blocked(&rig), 2);
    rig.operate(head, Action::Discard).unwrap();
    assert_eq!(blocked(&rig), 1);
    rig.operate(second, Action::Delete).unwrap();
    assert_eq!(blocked(&rig), 0);
    let newer = rig.create(ordered("k", OnHeadFailure::Block));
    assert_eq!(blocked(&rig), 1);
    rig.operate(newer, Action::Delete).unwrap();
    assert_eq!(blocked(&rig), 0);
    rig.assert_clean();
    let mut rig = rig.restart(10);
    assert_eq!((blocked(&rig), rig.tally().get(tagwerk_engine::row::Counter::Pending)), (0, 2));
    rig.create(ordered("k", OnHeadFailure::Block));
    assert_eq!(blocked(&rig), 1);
    assert_eq!(rig.status(last), Status::Pending);
    rig.assert_clean();
}
