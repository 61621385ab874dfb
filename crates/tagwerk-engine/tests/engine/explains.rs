//! Why a job is where it is: every kind of reason, with its times.

use tagwerk_core::{Action, ErrorClass, JobId, Outcome, Status, Timestamp, limits};
use tagwerk_engine::command::{EnqueueJob, MaxAge, Said, Start};
use tagwerk_engine::engine::Vitals;
use tagwerk_engine::query::{Explanation, Why, WhyKind, explain};
use tagwerk_engine::store::{Filter, Store};

use crate::rig::{Rig, claim, completed, failed, job};

/// Judged now, from what the store holds and what this node has seen.
fn explained(rig: &Rig, id: JobId) -> Explanation {
    let readers = rig.disk.readers();
    let mut read = readers.snapshot().unwrap();
    explain(&mut *read, &rig.job(id).row, &rig.shared.vitals(), rig.now()).unwrap()
}

/// The only reason.
fn why(rig: &Rig, id: JobId) -> Why {
    let mut reasons = explained(rig, id).reasons;
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    reasons.pop().unwrap()
}

fn kinds(rig: &Rig, id: JobId) -> Vec<WhyKind> {
    explained(rig, id).reasons.into_iter().map(|why| why.kind).collect()
}

fn times(why: &Why) -> (WhyKind, Option<Timestamp>, Option<Timestamp>) {
    (why.kind, why.since, why.until)
}

/// A claim that gets nothing, so that somebody has asked.
fn ask(rig: &mut Rig, worker: &str) {
    assert!(rig.claim(claim(worker)).jobs.is_empty());
}

#[test]
fn a_ready_job_knows_its_place() {
    let mut rig = Rig::new();
    ask(&mut rig, "w");
    let first = rig.create(job("t"));
    let start = rig.now();
    rig.create(job("t"));
    let third = rig.create(job("t"));
    assert_eq!(times(&why(&rig, first)), (WhyKind::Ready, Some(start), None));
    assert_eq!(why(&rig, first).detail, "It can be handed out; in its queue it stands behind 0 ready jobs.");
    assert_eq!(why(&rig, third).detail, "It can be handed out; in its queue it stands behind 2 ready jobs.");
    let many = usize::try_from(limits::POSITION_EXACT_MAX).unwrap();
    rig.enqueue(vec![job("t"); many]);
    let last = rig.create(job("t"));
    assert!(
        why(&rig, last).detail.contains("behind more than 1000 ready jobs"),
        "{}",
        why(&rig, last).detail
    );
}

#[test]
fn what_waits_for_time_says_until_when_and_for_what() {
    let mut rig = Rig::new();
    ask(&mut rig, "w");
    let start = rig.now();
    let later = rig.create(EnqueueJob { start: Start::AfterMs(5_000), ..job("t") });
    let until = Some(start.plus_ms(5_000));
    assert_eq!(times(&why(&rig, later)), (WhyKind::Scheduled, Some(start), until));

    let released = rig.create(job("t"));
    let held = rig.take("w");
    rig.say(&held, Said::Report { outcome: Outcome::Released { delay_ms: 700, reason: None }, result: None })
        .unwrap();
    assert_eq!(times(&why(&rig, released)), (WhyKind::Released, Some(start), Some(start.plus_ms(700))));

    let failing = rig.create(job("t"));
    let held = rig.take("w");
    assert_eq!(held.job.row.job.id, failing);
    rig.say(&held, failed(ErrorClass::Transient)).unwrap();
    let due = rig.job(failing).row.job.available_at;
    assert!(due > start);
    assert_eq!(times(&why(&rig, failing)), (WhyKind::Backoff, Some(start), Some(due)));
    assert_eq!(why(&rig, failing).detail, "It waits before its next attempt; 3 left.");
}

#[test]
fn a_running_job_names_its_holder_and_the_end_of_its_lease() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    let start = rig.now();
    rig.take("w-7");
    let until = Some(start.plus_ms(60_000));
    assert_eq!(times(&why(&rig, id)), (WhyKind::Running, Some(start), until));
    assert_eq!(why(&rig, id).detail, "Worker w-7 holds it.");
    rig.operate(id, Action::Cancel { wait: true }).unwrap();
    assert_eq!(times(&why(&rig, id)), (WhyKind::CancelRequested, Some(start), until));
    // Over, and not yet rewritten: the clock has moved and no batch has run.
    rig.advance(59_000);
    rig.clock.advance(1_000);
    assert_eq!(times(&why(&rig, id)), (WhyKind::AttemptOver, until, None));
    rig.tick();
    assert_eq!(explained(&rig, id).status, Status::Cancelled);
}

#[test]
fn a_job_past_its_age_is_expired_whether_or_not_it_was_swept() {
    let mut rig = Rig::new();
    ask(&mut rig, "w");
    let id = rig.create(EnqueueJob { max_age: Some(MaxAge::AfterMs(2_000)), ..job("t") });
    let end = rig.now().plus_ms(2_000);
    assert_eq!(kinds(&rig, id), [WhyKind::Ready]);
    rig.clock.advance(2_000);
    assert_eq!(times(&why(&rig, id)), (WhyKind::Expired, Some(end), None));
    rig.tick();
    assert_eq!(times(&why(&rig, id)), (WhyKind::InReview, Some(end), None));
    assert_eq!(why(&rig, id).detail, "It is in review (expired, transient, max_age) until somebody decides.");
}

#[test]
fn what_is_over_says_since_when() {
    let mut rig = Rig::new();
    let done = rig.create(job("t"));
    let held = rig.take("w");
    rig.advance(500);
    rig.say(&held, completed()).unwrap();
    let end = Some(rig.now());
    let cancelled = rig.create(job("t"));
    rig.operate(cancelled, Action::Cancel { wait: false }).unwrap();
    let lost = rig.create(job("t"));
    let held = rig.take("w");
    rig.say(&held, failed(ErrorClass::Permanent)).unwrap();
    assert_eq!(times(&why(&rig, done)), (WhyKind::Completed, end, None));
    assert_eq!(times(&why(&rig, cancelled)), (WhyKind::Cancelled, end, None));
    assert_eq!(times(&why(&rig, lost)), (WhyKind::InReview, end, None));
}

#[test]
fn nobody_who_would_take_it_is_a_reason() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    let never = why(&rig, id);
    assert_eq!(times(&never), (WhyKind::NoWorker, None, None));
    assert!(never.detail.contains("since the server was started"), "{}", never.detail);
    // Others have asked, for another queue or another type: that helps nobody.
    let only = |queues: &[&str], types: &[&str]| {
        let names =
            |names: &[&str]| (!names.is_empty()).then(|| names.iter().map(ToString::to_string).collect());
        Filter { queues: names(queues), types: names(types), space: None }
    };
    for (worker, filter) in [("a", only(&["mail"], &[])), ("b", only(&["default"], &["u"]))] {
        assert!(rig.claim(tagwerk_engine::command::Claim { filter, ..claim(worker) }).jobs.is_empty());
    }
    assert_eq!(kinds(&rig, id), [WhyKind::NoWorker]);
    let asked = rig.now();
    let held =
        rig.claim(tagwerk_engine::command::Claim { filter: only(&["default"], &["t"]), ..claim("c") }).jobs;
    rig.say(
        &held[0],
        Said::Report { outcome: Outcome::Released { delay_ms: 0, reason: None }, result: None },
    )
    .unwrap();
    assert_eq!(kinds(&rig, id), [WhyKind::Ready]);
    // The last moment at which it counts as lately, and the first at which it does not.
    let lately = u32::try_from(limits::NO_WORKER_AFTER_MS).unwrap();
    rig.advance(lately);
    assert_eq!(kinds(&rig, id), [WhyKind::Ready]);
    rig.advance(1);
    let again = why(&rig, id);
    assert_eq!(times(&again), (WhyKind::NoWorker, Some(asked), None));
    assert!(again.detail.ends_with("in queue default lately."), "{}", again.detail);
}

#[test]
fn after_a_restart_the_stored_time_of_the_last_claim_counts() {
    let mut rig = Rig::new();
    ask(&mut rig, "w");
    let asked = rig.now();
    let id = rig.create(job("t"));
    rig.advance(2_000);
    let rig = rig.restart(100_000);
    let why = why(&rig, id);
    assert_eq!((why.kind, why.since.is_some_and(|at| at >= asked)), (WhyKind::NoWorker, true));
    assert!(why.detail.ends_with("in queue default lately."), "{}", why.detail);
}

#[test]
fn a_server_that_shuts_down_says_so_beside_the_other_reasons() {
    let mut rig = Rig::new();
    let id = rig.create(EnqueueJob { start: Start::AfterMs(5_000), ..job("t") });
    let vitals = Vitals { draining: true, ..rig.shared.vitals() };
    let readers = rig.disk.readers();
    let mut read = readers.snapshot().unwrap();
    let explained = explain(&mut *read, &rig.job(id).row, &vitals, rig.now()).unwrap();
    let kinds: Vec<_> = explained.reasons.iter().map(|why| why.kind).collect();
    assert_eq!(kinds, [WhyKind::Scheduled, WhyKind::Draining, WhyKind::NoWorker]);
}
