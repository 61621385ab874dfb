//! Jobs about versions of one object: a higher version supersedes lower ones, whichever comes first.

use tagwerk_core::{Action, JobId, Rejection, Status, limits};
use tagwerk_engine::command::{BulkMode, Enqueue, EnqueueJob, Enqueued, Refusal, Said};
use tagwerk_engine::message::Message;
use tagwerk_engine::row::Subject;

use crate::rig::{Rig, claim, job};

fn version(version: i64) -> EnqueueJob {
    let subject = Subject { kind: "order".into(), id: "4711".into(), version: Some(version) };
    EnqueueJob { subject: Some(subject), supersede: true, ..job("sync") }
}

fn of(id: &str, job: EnqueueJob) -> EnqueueJob {
    let subject = job.subject.map(|subject| Subject { id: id.into(), ..subject });
    EnqueueJob { subject, ..job }
}

fn superseded_by(rig: &Rig, id: JobId) -> Option<JobId> {
    rig.job(id).row.job.superseded_by
}

#[test]
fn a_higher_version_cancels_what_waits_and_the_holder_of_what_runs_hears_of_it() {
    let mut rig = Rig::new();
    let running = rig.create(version(1));
    let held = rig.take("w");
    let waiting = rig.create(version(2));
    assert_eq!((rig.status(running), superseded_by(&rig, running)), (Status::Running, Some(waiting)));
    let newest = rig.create(version(5));
    assert_eq!((rig.status(waiting), superseded_by(&rig, waiting)), (Status::Cancelled, Some(newest)));
    let beat = rig.say(&held, Said::Heartbeat { progress: None }).unwrap();
    assert_eq!(beat.job.row.job.superseded_by, Some(waiting));
    let failed = crate::rig::failed(tagwerk_core::ErrorClass::Transient);
    let answer = rig.say(&held, failed).unwrap();
    assert_eq!(answer.job.row.job.status, Status::Cancelled, "the newer version runs instead");
    assert_eq!(rig.take("w").job.row.job.id, newest);
    rig.assert_clean();
}

#[test]
fn a_version_that_comes_late_is_created_cancelled_however_late_it_is() {
    let mut rig = Rig::new();
    let newest = rig.create(version(3));
    let held = rig.take("w");
    rig.say(&held, crate::rig::completed()).unwrap();
    let late = rig.create(version(2));
    assert_eq!((rig.status(late), superseded_by(&rig, late)), (Status::Cancelled, Some(newest)));
    assert!(rig.claim(claim("w")).jobs.is_empty());
    rig.operate(newest, Action::Delete).unwrap();
    let mut rig = rig.restart(1_000);
    let later = rig.create(version(1));
    assert_eq!((rig.status(later), superseded_by(&rig, later)), (Status::Cancelled, Some(newest)));
    rig.assert_clean();
}

#[test]
fn equal_versions_stand_beside_each_other_and_fall_together() {
    let mut rig = Rig::new();
    let equal: Vec<JobId> = (0..3).map(|_| rig.create(version(7))).collect();
    assert!(equal.iter().all(|id| rig.status(*id) == Status::Pending));
    let newer = rig.create(version(8));
    for id in equal {
        assert_eq!((rig.status(id), superseded_by(&rig, id)), (Status::Cancelled, Some(newer)));
    }
}

#[test]
fn types_objects_and_jobs_that_did_not_ask_are_left_alone() {
    let mut rig = Rig::new();
    let others = [
        EnqueueJob { kind: "notify".into(), ..version(1) },
        of("4712", version(1)),
        EnqueueJob { supersede: false, ..version(1) },
    ];
    let others: Vec<JobId> = others.into_iter().map(|job| rig.create(job)).collect();
    rig.create(version(9));
    assert!(others.iter().all(|id| rig.status(*id) == Status::Pending));
    let plain = rig.create(EnqueueJob { supersede: false, ..version(2) });
    assert_eq!((rig.status(plain), superseded_by(&rig, plain)), (Status::Pending, None));
}

#[test]
fn a_bulk_is_judged_job_by_job_in_its_order() {
    let mut rig = Rig::new();
    let jobs = vec![version(2), version(1), of("x", version(1)), version(3), version(3)];
    let items = rig.enqueue(jobs);
    let seen: Vec<(Status, Option<JobId>)> = items
        .into_iter()
        .map(|item| match item {
            Ok(Enqueued::Created(full)) => (full.row.job.status, full.row.job.superseded_by),
            other => panic!("{other:?}"),
        })
        .collect();
    let (first, third) = (Some(JobId(1)), Some(JobId(4)));
    let (gone, waits) = (Status::Cancelled, Status::Pending);
    assert_eq!(seen, [(gone, third), (gone, first), (waits, None), (waits, None), (waits, None)]);
    rig.assert_clean();
}

#[test]
fn a_superseded_job_in_review_needs_force_and_is_then_found_by_the_next_version() {
    let mut rig = Rig::new();
    let old = rig.create(EnqueueJob { max_retries: Some(0), ..version(1) });
    let held = rig.take("w");
    rig.say(&held, crate::rig::failed(tagwerk_core::ErrorClass::Transient)).unwrap();
    let second = rig.create(version(2));
    assert_eq!((rig.status(old), superseded_by(&rig, old)), (Status::Failed, Some(second)));
    let refused = rig.operate(old, Action::Retry { max_retries: None }).unwrap_err();
    assert!(matches!(
        refused,
        Refusal::Rejected { rejection: Rejection::Superseded { by, may_force: true }, .. } if by == second
    ));
    rig.operate(old, Action::ForceRetry { max_retries: None }).unwrap();
    assert_eq!((rig.status(old), superseded_by(&rig, old)), (Status::Pending, None));
    let third = rig.create(version(3));
    assert_eq!((rig.status(old), superseded_by(&rig, old)), (Status::Cancelled, Some(third)));
    rig.assert_clean();
}

#[test]
fn a_failed_job_that_was_retried_before_is_superseded_like_any_other() {
    let mut rig = Rig::new();
    let old = rig.create(EnqueueJob { max_retries: Some(0), ..version(1) });
    let held = rig.take("w");
    rig.say(&held, crate::rig::failed(tagwerk_core::ErrorClass::Transient)).unwrap();
    rig.operate(old, Action::Retry { max_retries: None }).unwrap();
    let newer = rig.create(version(2));
    assert_eq!((rig.status(old), superseded_by(&rig, old)), (Status::Cancelled, Some(newer)));
}

#[test]
fn a_key_that_is_repeated_supersedes_nothing_again() {
    let mut rig = Rig::new();
    let keyed = EnqueueJob { key: Some("k".into()), ..version(1) };
    let first = rig.create(keyed.clone());
    rig.enqueue(vec![keyed.clone()]);
    assert_eq!(rig.status(first), Status::Pending);
    let newer = rig.create(version(2));
    let again = rig.enqueue(vec![keyed]).pop().unwrap().unwrap();
    // A job that was cancelled before it started lets go of its key, so this is a new job, and out of date as it comes.
    let Enqueued::Created(full) = again else { panic!("{again:?}") };
    assert_eq!((full.row.job.status, full.row.job.superseded_by), (Status::Cancelled, Some(newer)));
}

#[test]
fn without_a_version_it_is_refused_and_nothing_is_stored() {
    let mut rig = Rig::new();
    let bare = EnqueueJob { supersede: true, ..job("sync") };
    let unversioned = EnqueueJob {
        subject: Some(Subject { kind: "order".into(), id: "1".into(), version: None }),
        ..bare.clone()
    };
    for job in [bare, unversioned] {
        let command = Enqueue { jobs: vec![version(1), job], mode: BulkMode::Atomic, reach: None };
        let answer = rig.send(|reply| Message::Enqueue(command, Box::new(reply))).try_recv().unwrap();
        let items = answer.unwrap();
        assert!(matches!(items[1], Err(Refusal::Invalid { field: "subject.version", .. })), "{items:?}");
    }
    assert_eq!(rig.tally(), tagwerk_engine::row::Tally::default());
}

#[test]
fn a_job_past_its_lease_is_ended_before_it_is_judged() {
    let mut rig = Rig::new();
    let old = rig.create(version(1));
    rig.claim(tagwerk_engine::command::Claim { lease_ms: Some(1_000), ..claim("w") });
    rig.clock.advance(1_000);
    let newer = rig.create(version(2));
    let lost = rig.job(old).row.job;
    assert_eq!((lost.status, lost.superseded_by), (Status::Cancelled, Some(newer)));
    assert_eq!(lost.lease_losses, 1, "its lease was lost, then it waited, then it was superseded");
}

/// However many older ones there are, all of them are dealt with in the transaction of the newer one: who claims in the same
/// moment gets that and none of them.
#[test]
fn many_older_jobs_are_superseded_before_anybody_is_handed_one() {
    let mut rig = Rig::new();
    let count = limits::SUPERSEDED_AT_A_TIME * 2 + 1;
    let many = rig.enqueue(vec![version(1); count]);
    assert!(many.iter().all(Result::is_ok));
    let held = rig.take("w");
    assert_eq!(held.job.row.job.id, JobId(1));
    let (newer, answer) = {
        let (enqueued, created) = std::sync::mpsc::sync_channel(1);
        let (claimed, answer) = std::sync::mpsc::sync_channel(1);
        let newer = Enqueue { jobs: vec![version(2)], mode: BulkMode::Each, reach: None };
        let messages =
            vec![Message::Claim(claim("w"), Box::new(claimed)), Message::Enqueue(newer, Box::new(enqueued))];
        rig.committer.step(messages);
        let Ok(Enqueued::Created(full)) = created.try_recv().unwrap().unwrap().remove(0) else {
            panic!("new")
        };
        (full.row.job.id, answer.try_recv().unwrap().unwrap())
    };
    let given: Vec<JobId> = answer.jobs.iter().map(|claimed| claimed.job.row.job.id).collect();
    assert_eq!(given, [newer]);
    assert_eq!((rig.status(JobId(1)), superseded_by(&rig, JobId(1))), (Status::Running, Some(newer)));
    let cancelled = rig.tally().get(tagwerk_engine::row::Counter::Cancelled);
    assert_eq!(cancelled, i64::try_from(count - 1).unwrap());
    for id in [2, limits::SUPERSEDED_AT_A_TIME, limits::SUPERSEDED_AT_A_TIME + 1, count] {
        let id = JobId(i64::try_from(id).unwrap());
        assert_eq!((rig.status(id), superseded_by(&rig, id)), (Status::Cancelled, Some(newer)), "{id}");
    }
    rig.assert_clean();
}
