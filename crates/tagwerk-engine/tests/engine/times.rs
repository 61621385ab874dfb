//! Time: ends of attempts, gaps, steps of the wall clock.

use tagwerk_core::{Cause, Reason, Status};
use tagwerk_engine::command::{EnqueueJob, MaxAge, Start};
use tagwerk_engine::store::Store;

use crate::rig::{Rig, claim, completed, job};

#[test]
fn f022_a_lost_lease_comes_back_without_a_restart_and_without_traffic() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    rig.take("w");
    rig.advance(59_000);
    assert_eq!(rig.status(id), Status::Running);
    rig.advance(1_000);
    assert_eq!(rig.status(id), Status::Pending);
    rig.advance(1_000);
    let again = rig.take("x");
    assert_eq!((again.job.row.job.attempt, again.job.row.job.verify), (2, true));
}

#[test]
fn f026_a_hundred_dead_workers_give_back_a_hundred_jobs() {
    let mut rig = Rig::new();
    rig.enqueue((0..100).map(|_| job("t")).collect());
    for n in 0..100 {
        rig.take(&format!("w{n}"));
    }
    rig.advance(61_000);
    let got = rig.claim(tagwerk_engine::command::Claim { max_jobs: 1_000, ..claim("x") });
    assert_eq!(got.jobs.len(), 100);
    assert_eq!(rig.tally().get(tagwerk_engine::row::Counter::LeaseLosses), 100);
    rig.assert_clean();
}

#[test]
fn more_overdue_attempts_than_a_batch_ends_are_over_all_the_same() {
    let mut rig = Rig::new();
    rig.enqueue((0..1_500).map(|_| job("t")).collect());
    let mut held = rig.claim(tagwerk_engine::command::Claim { max_jobs: 1_000, ..claim("w") }).jobs;
    held.extend(rig.claim(tagwerk_engine::command::Claim { max_jobs: 1_000, ..claim("w") }).jobs);
    for _ in 0..30 {
        rig.clock.advance(2_000);
        if rig.clock_is_before_the_end() {
            rig.tick();
        }
    }
    // All 1,500 are over at this instant; the first batch rewrites 1,000 of them, the call is about one of the others.
    let answer = rig.say(&held[1_400], completed()).unwrap();
    assert_eq!(answer.job.row.job.status, Status::Completed);
    let readers = rig.disk.readers();
    let late = readers.snapshot().unwrap().attempts(answer.job.row.job.id, 0, 9).unwrap();
    assert!(late[0].attempt.late);
    assert!(rig.committer.patience().is_zero(), "the rest is done at once");
    rig.tick();
    assert_eq!(rig.tally().get(tagwerk_engine::row::Counter::LeaseLosses), 1_500);
    rig.assert_clean();
}

impl Rig {
    fn clock_is_before_the_end(&self) -> bool {
        use tagwerk_engine::ports::Clock;
        self.clock.monotonic().as_millis() < 60_000
    }
}

#[test]
fn f041_a_poison_job_goes_to_review_after_its_losses_and_others_flow() {
    let mut rig = Rig::new();
    let poison = rig.create(EnqueueJob { max_retries: Some(25), max_lease_losses: Some(3), ..job("t") });
    for _ in 0..3 {
        while rig.claim(claim("w")).jobs.is_empty() {
            rig.advance(1_000);
        }
        rig.advance(60_000);
    }
    let full = rig.job(poison);
    let failure = full.row.job.failure.unwrap();
    assert_eq!(
        (failure.reason, failure.cause, full.row.job.attempt),
        (Reason::WorkerLost, Cause::LeaseExpired, 3)
    );
    let other = rig.create(job("t"));
    assert_eq!(rig.take("w").job.row.job.id, other);
    rig.assert_clean();
}

#[test]
fn a_pending_job_past_its_maximum_age_goes_to_review() {
    let mut rig = Rig::new();
    let id = rig.create(EnqueueJob {
        max_age: Some(MaxAge::AfterMs(5_000)),
        start: Start::AfterMs(60_000),
        ..job("t")
    });
    rig.advance(4_000);
    assert_eq!(rig.status(id), Status::Pending);
    rig.advance(1_000);
    let failure = rig.job(id).row.job.failure.unwrap();
    assert_eq!((failure.reason, failure.cause), (Reason::Expired, Cause::MaxAge));
}

#[test]
fn down_time_does_not_count_against_a_lease() {
    let mut rig = Rig::new();
    let id = rig.create(EnqueueJob { timeout_ms: Some(70_000), ..job("t") });
    let held = rig.take("w");
    rig.advance(1_000);
    let lease = rig.job(id).row.job.lease.unwrap();
    let mut rig = rig.restart(600_000);
    rig.tick();
    let moved = rig.job(id).row.job.lease.unwrap();
    assert_eq!(moved.expires_at.since_ms(lease.expires_at), 600_000);
    assert_eq!(moved.time_limit_at.unwrap().since_ms(lease.time_limit_at.unwrap()), 600_000);
    rig.say(&held, completed()).unwrap();
    assert_eq!(rig.status(id), Status::Completed);
}

#[test]
fn a_short_restart_moves_nothing_and_an_hour_is_the_most() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    rig.take("w");
    rig.advance(1_000);
    let lease = rig.job(id).row.job.lease.unwrap();
    let mut rig = rig.restart(2_900);
    rig.tick();
    assert_eq!(rig.job(id).row.job.lease.unwrap(), lease);
    let mut rig = rig.restart(3 * 3_600_000);
    rig.tick();
    assert_eq!(rig.status(id), Status::Pending, "a lease of a minute is over after three hours less one");
}

#[test]
fn a_step_of_the_wall_clock_moves_leases_along_and_due_times_not() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    let later = rig.create(EnqueueJob { start: Start::AfterMs(3_600_000), ..job("t") });
    let held = rig.take("w");
    rig.tick();
    rig.clock.set(rig.now().plus_ms(7_200_000));
    assert_eq!(rig.take("x").job.row.job.id, later, "due by the new time at once");
    let lease = rig.job(id).row.job.lease.unwrap();
    assert_eq!(lease.expires_at, rig.now().plus_ms(60_000));
    rig.clock.set(rig.now().plus_ms(-7_200_000));
    rig.tick();
    assert_eq!(rig.job(id).row.job.lease.unwrap().expires_at, rig.now().plus_ms(60_000));
    rig.say(&held, completed()).unwrap();
}
