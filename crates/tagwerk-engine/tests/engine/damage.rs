//! Jobs whose rows cannot be read: who names one is refused, nobody else is, and a person can delete it.

use tagwerk_core::idempotency::Scope;
use tagwerk_core::{Action, ErrorClass, JobId, Status};
use tagwerk_engine::command::{
    BulkMode, Claimed, Enqueue, EnqueueJob, Enqueued, KeyFate, Operate, Refusal, Work, WorkerCall,
};
use tagwerk_engine::message::{EnqueueAnswer, Message};
use tagwerk_engine::row::Counter;
use tagwerk_engine::store::{Listed, Store};

use crate::rig::{Rig, claim, completed, failed, job, keyed, token};

/// Which part of a job is damaged.
#[derive(Clone, Copy, Debug)]
enum Part {
    Hot,
    Cold,
}

const PARTS: [Part; 2] = [Part::Hot, Part::Cold];

fn damage(rig: &Rig, id: JobId, part: Part) {
    match part {
        Part::Hot => rig.disk.damage(id),
        Part::Cold => rig.disk.damage_detail(id),
    }
}

fn lasting(kind: &str, key: &str) -> EnqueueJob {
    EnqueueJob { scope: Some(Scope::Forever), ..keyed(kind, key) }
}

fn atomic(
    rig: &mut Rig,
    jobs: Vec<EnqueueJob>,
) -> Result<EnqueueAnswer, tagwerk_engine::command::EngineError> {
    let command = Enqueue { jobs, mode: BulkMode::Atomic, reach: None };
    rig.send(|reply| Message::Enqueue(command, Box::new(reply))).try_recv().unwrap()
}

#[test]
fn a_bulk_enqueue_refuses_only_the_item_whose_key_belongs_to_a_damaged_job() {
    for part in PARTS {
        let mut rig = Rig::new();
        let (bad, good) = (rig.create(lasting("t", "bad")), rig.create(lasting("t", "good")));
        damage(&rig, bad, part);
        let mut answer =
            rig.enqueue(vec![job("t"), lasting("t", "bad"), lasting("t", "good"), lasting("t", "new")]);
        assert!(matches!(answer.pop(), Some(Ok(Enqueued::Created(_)))), "{part:?}");
        assert!(
            matches!(answer.pop(), Some(Ok(Enqueued::Existing { job, .. })) if job.row.job.id == good),
            "{part:?}"
        );
        assert_eq!(answer.pop(), Some(Err(Refusal::JobDamaged(bad))), "{part:?}");
        assert!(matches!(answer.pop(), Some(Ok(Enqueued::Created(_)))), "{part:?}");
        assert_eq!(rig.tally().get(Counter::Enqueued), 4, "{part:?}");
    }
}

#[test]
fn an_atomic_enqueue_with_a_key_of_a_damaged_job_stores_nothing() {
    for part in PARTS {
        let mut rig = Rig::new();
        let bad = rig.create(lasting("t", "bad"));
        damage(&rig, bad, part);
        match (part, atomic(&mut rig, vec![job("t"), lasting("t", "bad")])) {
            (Part::Hot, Ok(answer)) => {
                assert_eq!(answer[1], Err(Refusal::JobDamaged(bad)));
                assert_eq!(answer[0], Err(Refusal::NotAtomic { index: 1 }));
            }
            // It turns out only when the answer is made.
            (Part::Cold, Err(error)) => assert_eq!(error, tagwerk_engine::command::EngineError::JobDamaged),
            other => panic!("{other:?}"),
        }
        assert_eq!(rig.tally().get(Counter::Enqueued), 1, "{part:?}");
    }
}

/// Deleted in every state, with the ledger and the key as they should be, and whoever held it is told.
#[test]
fn a_damaged_job_can_be_deleted() {
    for part in PARTS {
        for status in [Status::Pending, Status::Running, Status::Failed, Status::Completed] {
            let mut rig = Rig::new();
            let id = rig.create(lasting("t", "key"));
            rig.create(job("t"));
            let held = (status != Status::Pending).then(|| rig.take("w"));
            match (&held, status) {
                (Some(held), Status::Failed) => drop(rig.say(held, failed(ErrorClass::Permanent)).unwrap()),
                (Some(held), Status::Completed) => drop(rig.say(held, completed()).unwrap()),
                _ => {}
            }
            assert_eq!(rig.status(id), status);
            damage(&rig, id, part);
            let deleted = rig.operate(id, Action::Delete).unwrap();
            assert!(
                matches!(&deleted.job, Listed::Damaged { id: gone, why } if *gone == id && !why.is_empty()),
                "{part:?} {status:?}: {deleted:?}"
            );
            assert_eq!(rig.find(id), None);
            assert_eq!(rig.operate(id, Action::Delete), Err(Refusal::NoSuchJob(id)));
            if let Some(held) = held {
                assert_eq!(rig.say(&held, completed()).unwrap_err(), Refusal::NoSuchJob(id));
            }
            let tally = rig.tally();
            assert_eq!((tally.get(Counter::Pruned), tally.get(Counter::Enqueued)), (1, 2));
            rig.assert_clean();
            // It may have run, so its key holds.
            let again = rig.enqueue(vec![lasting("t", "key")]).pop().unwrap();
            let Ok(Enqueued::Pruned { id: owner, tombstone, .. }) = again else { panic!("{again:?}") };
            assert_eq!((owner, &*tombstone.kind, tombstone.standing.status), (id, "t", Status::Cancelled));
        }
    }
}

#[test]
fn nothing_else_can_be_done_to_a_damaged_job() {
    for part in PARTS {
        let mut rig = Rig::new();
        let id = rig.create(job("t"));
        damage(&rig, id, part);
        let retry = Action::Retry { max_retries: None };
        for action in [Action::Cancel { wait: false }, retry, Action::Discard] {
            assert_eq!(rig.operate(id, action), Err(Refusal::JobDamaged(id)));
        }
        let guarded = Operate {
            id,
            action: Action::Delete,
            seen_version: Some(1),
            text: None,
            payload: None,
            assume: None,
            key: KeyFate::ByScope,
        };
        assert_eq!(rig.operate_with(guarded), Err(Refusal::JobDamaged(id)), "its version is not known");
        assert!(rig.find(id).is_some());
        rig.operate(id, Action::Delete).unwrap();
        rig.assert_clean();
    }
}

/// The ledger is put right for the one that was deleted, whatever else is damaged, in another lane or in the same.
#[test]
fn deleting_one_of_several_damaged_jobs_counts_one() {
    let mut rig = Rig::new();
    let ids: Vec<JobId> = ["a", "a", "b", "c"].into_iter().map(|kind| rig.create(job(kind))).collect();
    for id in &ids[..3] {
        rig.disk.damage(*id);
    }
    for (gone, id) in (1..).zip(&ids[..3]) {
        rig.operate(*id, Action::Delete).unwrap();
        assert_eq!((rig.tally().get(Counter::Pruned), rig.tally().get(Counter::Pending)), (gone, 4 - gone));
    }
    rig.assert_clean();
}

/// Its back-off stands in its cold part, so its lease cannot be ended; everybody else's is.
#[test]
fn a_job_without_its_cold_part_stops_no_batch() {
    let mut rig = Rig::new();
    let (bad, good) = (rig.create(job("t")), rig.create(job("t")));
    let held =
        rig.claim(tagwerk_engine::command::Claim { max_jobs: 2, lease_ms: Some(5_000), ..claim("w") }).jobs;
    rig.disk.damage_detail(bad);
    // Named in the batch in which its lease is found to be over.
    rig.clock.advance(2_900);
    rig.tick();
    rig.clock.advance(2_900);
    let results = rig.work(
        held.iter()
            .map(|held| tagwerk_engine::command::WorkerCall {
                id: held.job.row.job.id,
                holder: token(held),
                said: completed(),
            })
            .collect(),
    );
    assert_eq!(results.results[0], Err(Refusal::JobDamaged(bad)));
    assert_eq!(results.results[1].as_ref().map(|answer| answer.job.row.job.status), Ok(Status::Completed));
    assert_eq!(rig.status(good), Status::Completed);
    assert!(rig.shared.vitals().failing.is_none(), "a batch has failed");
    let readers = rig.disk.readers();
    assert_eq!(readers.snapshot().unwrap().facts().unwrap().damaged_rows, 1);
}

/// A worker reports three jobs at once, and one of them cannot be read: the other two count, and count once if the worker
/// repeats the call.
#[test]
fn a_bulk_report_counts_for_all_but_the_damaged_job() {
    for part in PARTS {
        let mut rig = Rig::new();
        let ids = [(); 3].map(|()| rig.create(job("t")));
        let held = ids.map(|_| rig.take("w"));
        damage(&rig, ids[1], part);
        for replayed in [false, true] {
            let report = |held: &Claimed| WorkerCall {
                id: held.job.row.job.id,
                holder: token(held),
                said: completed(),
            };
            let command = Work { calls: held.iter().map(report).collect(), claim: Some(claim("w")) };
            let answer =
                rig.send(|reply| Message::Work(command, Box::new(reply))).try_recv().unwrap().unwrap();
            let said: Vec<_> =
                answer.results.into_iter().map(|result| result.map(|answer| answer.replayed)).collect();
            assert_eq!(said, [Ok(replayed), Err(Refusal::JobDamaged(ids[1])), Ok(replayed)]);
            assert_eq!(answer.claimed.map(|claimed| claimed.jobs), Some(vec![]));
        }
        assert_eq!([ids[0], ids[2]].map(|id| rig.status(id)), [Status::Completed; 2]);
        assert_eq!(rig.tally().get(Counter::Completions), 2);
    }
}
