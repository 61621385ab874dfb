//! Jobs as producers make them up.

use tagwerk_core::idempotency::{OnDuplicate, OnMismatch, Scope};
use tagwerk_core::{Jitter, OnUnknown, Priority, RetryOverrides, Timestamp};
use tagwerk_engine::command::{EnqueueJob, MaxAge, Start};
use tagwerk_engine::row::Subject;

use super::{Desk, caps, turns};

/// Priorities in use: several between the levels, several equal.
const PRIORITIES: [u8; 5] = [0, 10, 10, 20, 35];

/// A job with whatever chance gives it.
pub(super) fn job(desk: &mut Desk<'_>) -> EnqueueJob {
    let (now, plan) = (desk.now, desk.plan);
    let chance = &mut *desk.chance;
    let mut job = EnqueueJob { kind: format!("t{}", chance.below(plan.types)), ..EnqueueJob::default() };
    if chance.percent(60) {
        job.queue = Some(format!("q{}", chance.below(plan.queues)));
    }
    if chance.percent(60) {
        job.payload = Some(format!("{{\"n\":{}}}", chance.below(4)));
    }
    if chance.percent(50) {
        job.priority = Priority::from_value(*chance.pick(&PRIORITIES));
    }
    job.start = match chance.below(10) {
        0 | 1 => Start::AfterMs(chance.between(0, 20_000)),
        2 => Start::At(Timestamp::from_millis(now + chance.between(-5_000, 30_000))),
        _ => Start::Now,
    };
    job.max_age = match chance.below(14) {
        0 => Some(MaxAge::AfterMs(chance.between(1, 20_000))),
        1 => Some(MaxAge::At(Timestamp::from_millis(now + chance.between(-100, 30_000)))),
        _ => None,
    };
    if chance.percent(30) {
        job.max_retries = u32::try_from(chance.below(4)).ok();
    }
    if chance.percent(20) {
        job.max_lease_losses = u32::try_from(chance.below(4)).ok();
    }
    if chance.percent(20) {
        job.lease_ms = Some(chance.between(1_000, 8_000));
    }
    if chance.percent(15) {
        job.timeout_ms = Some(chance.between(500, 9_000));
    }
    if chance.percent(20) {
        job.retry = retry(desk);
    }
    if desk.chance.percent(10) {
        job.on_unknown = Some(*desk.chance.pick(&[OnUnknown::Verify, OnUnknown::Review]));
    }
    if desk.chance.percent(50) {
        key(desk, &mut job);
    }
    if desk.chance.percent(20) {
        version(desk, &mut job);
    }
    turns::give_key(desk, &mut job);
    caps::special(desk, &mut job);
    job
}

/// A version of one of few objects; now and then it is forgotten.
fn version(desk: &mut Desk<'_>, job: &mut EnqueueJob) {
    let chance = &mut *desk.chance;
    let version = chance.percent(95).then(|| chance.between(0, 8) + desk.now / 20_000 % 50);
    job.subject = Some(Subject { kind: "order".to_owned(), id: chance.below(2).to_string(), version });
    job.supersede = true;
}

fn retry(desk: &mut Desk<'_>) -> RetryOverrides {
    let chance = &mut *desk.chance;
    RetryOverrides {
        base_ms: chance.percent(50).then(|| chance.between(0, 2_000)),
        factor: chance.percent(50).then(|| *chance.pick(&[1.0, 2.0, 10.0])),
        cap_ms: chance.percent(50).then(|| chance.between(0, 10_000)),
        jitter: chance.percent(50).then(|| *chance.pick(&[Jitter::None, Jitter::Equal, Jitter::Full])),
    }
}

fn key(desk: &mut Desk<'_>, job: &mut EnqueueJob) {
    let plan = desk.plan;
    let chance = &mut *desk.chance;
    job.key = Some(format!("k{}", chance.below(plan.keys)));
    if chance.percent(70) {
        let all = [Scope::Waiting, Scope::Unfinished, Scope::Ttl, Scope::Forever];
        // What holds for ever soon holds everything.
        job.scope = Some(all[chance.weighted(&[4, 4, 4, 1])]);
    }
    if chance.percent(30) {
        job.ttl_ms = Some(*chance.pick(&[0, 1_000, 30_000]));
    }
    if chance.percent(50) {
        job.on_duplicate =
            Some(*chance.pick(&[OnDuplicate::Existing, OnDuplicate::Replace, OnDuplicate::Conflict]));
    }
    if chance.percent(30) {
        job.on_mismatch = Some(*chance.pick(&[OnMismatch::Flag, OnMismatch::Reject]));
    }
    if chance.percent(20) {
        let version = chance.percent(50).then_some(1);
        job.subject = Some(Subject { kind: "order".to_owned(), id: chance.below(2).to_string(), version });
    }
}
