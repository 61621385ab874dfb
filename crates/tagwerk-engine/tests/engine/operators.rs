//! What operators do.

use tagwerk_core::{Action, Call, ErrorClass, JobId, Rejection, Status};
use tagwerk_engine::command::{EnqueueJob, KeyFate, Operate, Refusal};
use tagwerk_engine::row::Counter;
use tagwerk_engine::store::{Filter, Store};

use crate::rig::{Rig, completed, failed, job, keyed, rejection};

const RETRY: Action = Action::Retry { max_retries: None };
const CANCEL: Action = Action::Cancel { wait: false };

fn call(id: JobId, action: Action) -> Operate {
    Operate {
        id,
        action,
        seen_version: None,
        text: Some("because".into()),
        payload: None,
        assume: None,
        key: KeyFate::ByScope,
    }
}

fn in_review(rig: &mut Rig) -> JobId {
    let id = rig.create(keyed("t", "key"));
    let held = rig.take("w");
    rig.say(&held, failed(ErrorClass::Permanent)).unwrap();
    id
}

#[test]
fn f019_twenty_clicks_on_retry_make_one_run() {
    let mut rig = Rig::new();
    let id = in_review(&mut rig);
    let seen_version = Some(rig.job(id).row.job.version);
    let results: Vec<_> =
        (0..20).map(|_| rig.operate_with(Operate { seen_version, ..call(id, RETRY) })).collect();
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    for refused in results.into_iter().skip(1) {
        assert_eq!(rejection(refused), Rejection::NotFailed { status: Status::Pending });
    }
    let held = rig.take("w");
    rig.say(&held, failed(ErrorClass::Permanent)).unwrap();
    let late = rig.operate_with(Operate { seen_version, ..call(id, RETRY) });
    assert!(matches!(rejection(late), Rejection::VersionChanged { .. }));
    assert_eq!(rig.tally().get(Counter::ReviewRetries), 1);
    rig.assert_clean();
}

#[test]
fn a_retry_with_a_new_payload_keeps_the_history_and_notes_who_did_what() {
    let mut rig = Rig::new();
    let id = in_review(&mut rig);
    let retry = Action::Retry { max_retries: Some(0) };
    rig.operate_with(Operate { payload: Some("[2]".into()), ..call(id, retry) }).unwrap();
    let full = rig.job(id);
    assert_eq!(
        (full.detail.payload.as_str(), full.row.payload_bytes, full.row.job.max_retries),
        ("[2]", 3, 0)
    );
    assert_eq!((full.row.job.retry_count, full.row.job.attempt), (0, 1));
    let held = rig.take("w");
    assert_eq!((held.job.detail.payload.as_str(), held.job.row.job.attempt), ("[2]", 2));
    let readers = rig.disk.readers();
    let mut read = readers.snapshot().unwrap();
    let actions = read.actions(id).unwrap();
    assert_eq!(actions.len(), 1);
    assert_eq!((actions[0].call, actions[0].text.as_deref()), (Call::Retry, Some("because")));
    assert_eq!(read.attempts(id, 0, 10).unwrap().len(), 1);
}

#[test]
fn cancel_and_discard_free_the_key_when_asked() {
    let mut rig = Rig::new();
    let id = rig.create(keyed("t", "key"));
    rig.take("w");
    rig.operate_with(Operate { key: KeyFate::Free, ..call(id, CANCEL) }).unwrap();
    let next = rig.create(keyed("t", "key"));
    assert_ne!(id, next);
    let held = rig.take("w");
    rig.say(&held, failed(ErrorClass::Permanent)).unwrap();
    rig.operate(next, Action::Discard).unwrap();
    assert!(
        rig.enqueue(vec![keyed("t", "key")])
            .pop()
            .unwrap()
            .is_ok_and(|item| { matches!(item, tagwerk_engine::command::Enqueued::Existing { .. }) })
    );
    assert!(rig.operate(next, Action::Discard).unwrap().replayed);
    rig.operate_with(Operate { key: KeyFate::Free, ..call(next, Action::Discard) }).unwrap();
    rig.create(keyed("t", "key"));
    rig.assert_clean();
}

#[test]
fn f100_delete_is_always_possible_and_tells_the_holder() {
    let mut rig = Rig::new();
    let pending = rig.create(job("t"));
    rig.operate(pending, Action::Delete).unwrap();
    let running = rig.create(job("t"));
    let held = rig.take("w");
    rig.operate(running, Action::Delete).unwrap();
    assert_eq!(rig.say(&held, completed()).unwrap_err(), Refusal::NoSuchJob(running));
    let failed = in_review(&mut rig);
    rig.operate(failed, Action::Delete).unwrap();
    let done = rig.create(job("t"));
    let held = rig.take("w");
    rig.say(&held, completed()).unwrap();
    let answer = rig.operate(done, Action::Delete).unwrap();
    assert!(!answer.replayed);
    for id in [pending, running, failed, done] {
        assert_eq!(rig.find(id), None);
    }
    assert_eq!(rig.operate(done, Action::Delete), Err(Refusal::NoSuchJob(done)));
    let tally = rig.tally();
    assert_eq!((tally.get(Counter::Pruned), tally.get(Counter::Enqueued)), (4, 4));
    rig.assert_clean();
}

#[test]
fn f094_force_fail_voids_the_lease_and_puts_the_job_into_review() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    let held = rig.take("w");
    rig.operate(id, Action::ForceFail { error: "worker is gone".into() }).unwrap();
    let full = rig.job(id);
    assert_eq!(
        (full.row.job.status, full.row.job.error.as_deref()),
        (Status::Failed, Some("worker is gone"))
    );
    assert_eq!(rejection(rig.say(&held, completed())), Rejection::LeaseLost { may_report: false });
    rig.assert_clean();
}

#[test]
fn unknown_jobs_are_named() {
    let mut rig = Rig::new();
    let id = JobId(77);
    assert_eq!(rig.operate(id, CANCEL), Err(Refusal::NoSuchJob(id)));
}

#[test]
fn f021_liveness_belongs_to_the_lease_not_to_the_workers_name() {
    let mut rig = Rig::new();
    let first = rig.create(EnqueueJob { queue: Some("a".into()), ..job("t") });
    rig.take("w1");
    for _ in 0..7 {
        let id = rig.create(EnqueueJob { queue: Some("b".into()), ..job("t") });
        let only = Filter { queues: Some(vec!["b".into()]), types: None, space: None };
        let held =
            rig.claim(tagwerk_engine::command::Claim { filter: only, ..crate::rig::claim("w1") }).jobs.pop();
        assert_eq!(held.as_ref().map(|held| held.job.row.job.id), Some(id));
        rig.advance(10_000);
        rig.say(&held.unwrap(), completed()).unwrap();
    }
    assert_eq!((rig.status(first), rig.job(first).row.job.lease_losses), (Status::Pending, 1));
}
