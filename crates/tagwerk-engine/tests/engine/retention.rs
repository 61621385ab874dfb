//! What is deleted, and what outlives it.

use tagwerk_core::idempotency::Scope;
use tagwerk_core::{Action, ErrorClass, Status, retention};
use tagwerk_engine::command::{EnqueueJob, Enqueued, Start};
use tagwerk_engine::row::Counter;
use tagwerk_engine::settings::Settings;

use crate::rig::{Rig, completed, failed, job, keyed};

fn short() -> Rig {
    let retention = retention::Policy { completed_ms: Some(5_000), cancelled_ms: Some(9_000) };
    Rig::with(Settings { retention, ttl_ms: 30_000, ..Settings::default() })
}

#[test]
fn f058_only_completed_and_cancelled_jobs_are_deleted_each_after_its_time() {
    let mut rig = short();
    let done = rig.create(job("t"));
    let held = rig.take("w");
    rig.say(&held, completed()).unwrap();
    let review = rig.create(job("t"));
    let held = rig.take("w");
    rig.say(&held, failed(ErrorClass::Permanent)).unwrap();
    let cancelled = rig.create(job("t"));
    rig.operate(cancelled, Action::Cancel { wait: false }).unwrap();
    let running = rig.create(job("t"));
    rig.take("w");
    let waiting = rig.create(EnqueueJob { start: Start::AfterMs(86_400_000), ..job("t") });
    rig.advance(4_000);
    assert_eq!(rig.status(done), Status::Completed);
    rig.advance(2_000);
    assert_eq!(rig.find(done), None);
    assert_eq!(rig.status(cancelled), Status::Cancelled);
    rig.advance(4_000);
    assert_eq!(rig.find(cancelled), None);
    rig.advance(40_000);
    assert_eq!(
        [review, running, waiting].map(|id| rig.status(id)),
        [Status::Failed, Status::Running, Status::Pending]
    );
    assert_eq!(rig.tally().get(Counter::Pruned), 2);
    rig.assert_clean();
}

#[test]
fn f034_a_key_follows_its_own_life_and_not_the_retention_of_its_job() {
    let mut rig = short();
    let id = rig.create(keyed("mail", "k"));
    let held = rig.take("w");
    rig.say(&held, completed()).unwrap();
    rig.advance(10_000);
    assert_eq!(rig.find(id), None);
    match rig.enqueue(vec![keyed("mail", "k")]).pop().unwrap() {
        Ok(Enqueued::Pruned { id: of, tombstone, payload_differs, replaced }) => {
            assert_eq!((of, tombstone.kind.as_str()), (id, "mail"));
            assert_eq!((payload_differs, replaced), (false, None));
            assert_eq!(tombstone.standing.status, Status::Completed);
        }
        other => panic!("{other:?}"),
    }
    rig.advance(20_000);
    let again = rig.create(keyed("mail", "k"));
    assert!(again > id);
    rig.assert_clean();
}

#[test]
fn a_key_that_no_longer_holds_goes_with_its_job_and_one_for_ever_stays() {
    let mut rig = short();
    for scope in [Scope::Unfinished, Scope::Forever] {
        let key = scope.name();
        let id = rig.create(EnqueueJob { scope: Some(scope), ..keyed("mail", key) });
        let held = rig.take("w");
        rig.say(&held, completed()).unwrap();
        rig.advance(10_000);
        assert_eq!(rig.find(id), None);
    }
    rig.advance(100_000);
    rig.create(keyed("mail", "unfinished"));
    let kept = rig.enqueue(vec![keyed("mail", "forever")]).pop().unwrap();
    assert!(matches!(kept, Ok(Enqueued::Pruned { .. })), "{kept:?}");
}

#[test]
fn young_jobs_in_front_of_the_sweep_do_not_keep_it_from_the_old_ones() {
    let mut rig = short();
    rig.advance(1_000);
    for second in 0..12 {
        rig.enqueue((0..1_000).map(|_| job("t")).collect());
        for held in
            rig.claim(tagwerk_engine::command::Claim { max_jobs: 1_000, ..crate::rig::claim("w") }).jobs
        {
            rig.say(&held, completed()).unwrap();
        }
        rig.clock.advance(1_000);
        rig.tick();
        while rig.committer.patience().is_zero() {
            rig.tick();
        }
        // Kept are those of the last five seconds and of the second under way.
        let left = rig.tally().get(Counter::Completed);
        assert!(left <= 6_000, "{left} in second {second}");
    }
}

#[test]
fn a_backlog_is_deleted_without_waiting_for_the_next_second() {
    let mut rig = short();
    rig.enqueue((0..2_000).map(|_| job("t")).collect());
    let held = rig.claim(tagwerk_engine::command::Claim { max_jobs: 1_000, ..crate::rig::claim("w") }).jobs;
    let more = rig.claim(tagwerk_engine::command::Claim { max_jobs: 1_000, ..crate::rig::claim("w") }).jobs;
    for held in held.iter().chain(&more) {
        rig.say(held, completed()).unwrap();
    }
    rig.clock.advance(2_500);
    rig.tick();
    rig.clock.advance(2_500);
    let mut steps = 0;
    rig.tick();
    while rig.committer.patience().is_zero() {
        rig.tick();
        steps += 1;
    }
    assert_eq!(rig.tally().get(Counter::Pruned), 2_000);
    assert!(steps < 10, "{steps} steps");
}
