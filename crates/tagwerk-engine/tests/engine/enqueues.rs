//! Accepting jobs, keys, replace, bulk.

use tagwerk_core::idempotency::{OnDuplicate, OnMismatch, Scope};
use tagwerk_core::{ErrorClass, JobId, Priority, Status};
use tagwerk_engine::command::{BulkMode, Enqueue, EnqueueJob, Enqueued, MaxAge, Refusal, Start};
use tagwerk_engine::message::{By, Message};
use tagwerk_engine::row::Counter;

use crate::rig::{Rig, claim, completed, failed, job, keyed};

fn existing(result: Result<Enqueued, Refusal>) -> (JobId, bool, Option<bool>) {
    match result {
        Ok(Enqueued::Existing { job, payload_differs, replaced }) => {
            (job.row.job.id, payload_differs, replaced)
        }
        other => panic!("not existing: {other:?}"),
    }
}

fn one(rig: &mut Rig, job: EnqueueJob) -> Result<Enqueued, Refusal> {
    rig.enqueue(vec![job]).pop().unwrap()
}

#[test]
fn defaults_come_from_the_server_and_ids_rise() {
    let mut rig = Rig::new();
    let first = rig.create(job("mail"));
    let second = rig.create(job("mail"));
    assert!(first < second);
    let full = rig.job(first);
    assert_eq!(&*full.row.lane.queue, "default");
    assert_eq!(full.detail.payload, "{}");
    assert_eq!(full.row.priority, Priority::DEFAULT);
    assert_eq!((full.row.job.max_retries, full.row.job.max_lease_losses), (3, 4));
    assert_eq!(full.row.job.available_at, rig.now());
    assert_eq!(rig.tally().get(Counter::Enqueued), 2);
    rig.assert_clean();
}

#[test]
fn a_key_is_judged_within_a_request_within_a_batch_and_later() {
    let mut rig = Rig::new();
    let items = rig.enqueue(vec![keyed("mail", "k"), keyed("mail", "k"), keyed("mail", "other")]);
    let [
        Ok(Enqueued::Created(first)),
        Ok(Enqueued::Existing { job: again, payload_differs: false, .. }),
        Ok(Enqueued::Created(_)),
    ] = &items[..]
    else {
        panic!("{items:?}")
    };
    assert_eq!(again.row.job.id, first.row.job.id);
    let id = first.row.job.id;
    let (sent, got) = std::sync::mpsc::sync_channel(9);
    let batch = (0..9)
        .map(|_| {
            let command = Enqueue { jobs: vec![keyed("mail", "batch")], mode: BulkMode::Each, reach: None };
            Message::Enqueue(command, Box::new(sent.clone()))
        })
        .collect();
    rig.committer.step(batch);
    let created =
        got.try_iter().filter(|item| matches!(item.as_ref().unwrap()[0], Ok(Enqueued::Created(_)))).count();
    assert_eq!(created, 1);
    assert_eq!(existing(one(&mut rig, keyed("mail", "k"))), (id, false, None));
    let other = EnqueueJob { payload: Some("{\"a\":1}".into()), ..keyed("mail", "k") };
    assert_eq!(existing(one(&mut rig, other)), (id, true, None));
    assert_eq!(rig.tally().get(Counter::Enqueued), 3);
    rig.assert_clean();
}

#[test]
fn f036_equality_is_by_bytes_and_the_same_in_both_orders() {
    let payloads =
        ["{\"a\":1}", "{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", "{\"a\":1.0}", "{\"a\":null}", "{}"];
    for first in payloads {
        for second in payloads {
            let mut rig = Rig::new();
            rig.create(EnqueueJob { payload: Some(first.into()), ..keyed("t", "k") });
            let (_, differs, _) =
                existing(one(&mut rig, EnqueueJob { payload: Some(second.into()), ..keyed("t", "k") }));
            assert_eq!(differs, first != second, "{first} {second}");
        }
    }
}

#[test]
fn conflict_and_reject_refuse_and_say_whose_key_it_is() {
    let mut rig = Rig::new();
    let id = rig.create(keyed("mail", "k"));
    let conflict = EnqueueJob { on_duplicate: Some(OnDuplicate::Conflict), ..keyed("mail", "k") };
    assert!(matches!(one(&mut rig, conflict.clone()), Err(Refusal::Duplicate(job)) if job.row.job.id == id));
    let reject = EnqueueJob { on_mismatch: Some(OnMismatch::Reject), ..keyed("mail", "k") };
    assert_eq!(existing(one(&mut rig, reject.clone())), (id, false, None));
    let other = EnqueueJob { max_retries: Some(1), ..reject };
    assert_eq!(one(&mut rig, other.clone()), Err(Refusal::KeyReused(id)));
    let twice = |job: EnqueueJob| vec![keyed("mail", "n"), EnqueueJob { key: Some("n".into()), ..job }];
    let items = rig.enqueue(twice(conflict.clone()));
    let [Ok(Enqueued::Created(first)), Err(Refusal::Duplicate(job))] = &items[..] else {
        panic!("{items:?}")
    };
    assert_eq!(job.row.job.id, first.row.job.id, "the earlier job of the request is named like any other");
    let again = |job: EnqueueJob| vec![keyed("mail", "m"), EnqueueJob { key: Some("m".into()), ..job }];
    let items = rig.enqueue(again(other.clone()));
    let [Ok(Enqueued::Created(first)), Err(Refusal::KeyReused(id))] = &items[..] else { panic!("{items:?}") };
    assert_eq!(*id, first.row.job.id);
    // Where nothing was stored there is no id: the place has to do.
    let mut atomic = |second: EnqueueJob| {
        let jobs = vec![keyed("mail", "o"), EnqueueJob { key: Some("o".into()), ..second }];
        let command = Enqueue { jobs, mode: BulkMode::Atomic, reach: None };
        rig.send(|reply| Message::Enqueue(command, Box::new(reply)))
            .try_recv()
            .unwrap()
            .unwrap()
            .pop()
            .unwrap()
    };
    assert_eq!(atomic(conflict), Err(Refusal::DuplicateHere { index: 0 }));
    assert_eq!(atomic(other), Err(Refusal::KeyReusedHere { index: 0 }));
}

#[test]
fn replace_rewrites_a_job_that_never_started_and_no_other() {
    let mut rig = Rig::new();
    let id = rig.create(keyed("mail", "k"));
    let newer = EnqueueJob {
        payload: Some("[1]".into()),
        priority: Priority::from_value(77),
        start: Start::AfterMs(5_000),
        on_duplicate: Some(OnDuplicate::Replace),
        ..keyed("mail", "k")
    };
    assert_eq!(existing(one(&mut rig, newer.clone())), (id, true, Some(true)));
    let full = rig.job(id);
    assert_eq!(
        (full.detail.payload.as_str(), full.row.payload_bytes, full.row.priority.value()),
        ("[1]", 3, 77)
    );
    assert_eq!(full.row.job.available_at, rig.now().plus_ms(5_000));
    assert_eq!(
        existing(one(&mut rig, newer.clone())),
        (id, false, Some(true)),
        "it now equals what it holds"
    );
    rig.advance(5_000);
    rig.take("w");
    assert_eq!(existing(one(&mut rig, newer)), (id, false, Some(false)));
    rig.assert_clean();
    // Within one request the job is not yet in the store when it is replaced.
    let items = rig.enqueue(vec![
        keyed("mail", "n"),
        EnqueueJob {
            payload: Some("[2]".into()),
            on_duplicate: Some(OnDuplicate::Replace),
            ..keyed("mail", "n")
        },
    ]);
    let Ok(Enqueued::Created(first)) = &items[0] else { panic!("{items:?}") };
    assert_eq!(rig.job(first.row.job.id).detail.payload, "[2]");
}

#[test]
fn replace_never_writes_into_a_job_of_another_type_or_queue() {
    let mut rig = Rig::new();
    let id = rig.create(keyed("mail", "k"));
    let before = rig.job(id);
    let newer = EnqueueJob {
        payload: Some("[1]".into()),
        priority: Priority::from_value(77),
        start: Start::AfterMs(5_000),
        on_duplicate: Some(OnDuplicate::Replace),
        ..keyed("mail", "k")
    };
    let to = |queue: &str| Some(queue.to_owned());
    let elsewhere =
        [EnqueueJob { kind: "bill".into(), ..newer.clone() }, EnqueueJob { queue: to("q"), ..newer.clone() }];
    for other in &elsewhere {
        assert_eq!(existing(one(&mut rig, other.clone())), (id, true, Some(false)));
        assert_eq!(rig.job(id), before);
    }
    // The same within one request, whose first job is not there yet.
    for (number, other) in elsewhere.into_iter().enumerate() {
        let key = Some(number.to_string());
        let first = EnqueueJob { key: key.clone(), ..keyed("mail", "k") };
        let items = rig.enqueue(vec![first, EnqueueJob { key, ..other }]);
        let (first, differs, replaced) = existing(items[1].clone());
        assert_eq!((differs, replaced), (true, Some(false)));
        let kept = rig.job(first);
        assert_eq!((&*kept.row.lane.kind, kept.detail.payload.as_str()), ("mail", "{}"));
    }
    // The queue that counts is the one that it would go to, named or not.
    let named = EnqueueJob { queue: to("default"), ..newer };
    assert_eq!(existing(one(&mut rig, named)), (id, true, Some(true)));
    assert_eq!(rig.job(id).detail.payload, "[1]");
    rig.assert_clean();
}

#[test]
fn an_atomic_bulk_takes_all_or_none() {
    let mut rig = Rig::new();
    let id = rig.create(keyed("mail", "k"));
    let conflict = EnqueueJob { on_duplicate: Some(OnDuplicate::Conflict), ..keyed("mail", "k") };
    let jobs = vec![job("a"), conflict, keyed("b", "fresh")];
    let mut send = |jobs| {
        let command = Enqueue { jobs, mode: BulkMode::Atomic, reach: None };
        rig.send(|reply| Message::Enqueue(command, Box::new(reply))).try_recv().unwrap().unwrap()
    };
    let items = send(jobs);
    assert_eq!(items[0], Err(Refusal::NotAtomic { index: 1 }));
    assert!(matches!(&items[1], Err(Refusal::Duplicate(job)) if job.row.job.id == id));
    assert_eq!(items[2], Err(Refusal::NotAtomic { index: 1 }));
    assert!(
        send(vec![job("a"), keyed("b", "fresh")]).iter().all(|item| matches!(item, Ok(Enqueued::Created(_))))
    );
    assert_eq!(rig.tally().get(Counter::Enqueued), 3);
    rig.assert_clean();
}

#[test]
fn a_key_freed_by_its_scope_goes_to_the_next_job_and_a_retry_cannot_take_it_back() {
    let mut rig = Rig::new();
    let scoped = EnqueueJob { scope: Some(Scope::Unfinished), ..keyed("mail", "k") };
    let old = rig.create(scoped.clone());
    let held = rig.take("w");
    rig.say(&held, failed(ErrorClass::Permanent)).unwrap();
    let other = EnqueueJob { payload: Some("[2]".into()), ..scoped.clone() };
    let new = rig.create(other.clone());
    let retry = tagwerk_core::Action::Retry { max_retries: None };
    assert_eq!(rig.operate(old, retry.clone()), Err(Refusal::KeyHeld(new)));
    assert_eq!(rig.status(old), Status::Failed);
    let held = rig.take("w");
    rig.say(&held, completed()).unwrap();
    rig.operate(old, retry).unwrap();
    let again = existing(one(&mut rig, scoped));
    assert_eq!(again, (old, false, None), "the retry took it back, and it knows what was sent with it");
    assert_eq!(existing(one(&mut rig, other)), (old, true, None));
    rig.assert_clean();
}

#[test]
fn times_beyond_reason_are_refused_by_the_servers_clock() {
    let mut rig = Rig::new();
    let now = rig.now();
    let ten_years = tagwerk_core::limits::DELAY_MAX_MS;
    let at = |ms| EnqueueJob { start: Start::At(now.plus_ms(ms)), ..job("t") };
    assert!(matches!(one(&mut rig, at(ten_years + 1)), Err(Refusal::Invalid { field: "run_at", .. })));
    assert!(one(&mut rig, at(ten_years)).is_ok());
    let past = EnqueueJob { max_age: Some(MaxAge::At(now)), ..job("t") };
    assert!(matches!(one(&mut rig, past), Err(Refusal::Invalid { field: "expires_at", .. })));
    let id = rig.create(EnqueueJob { start: Start::At(now.plus_ms(-5)), ..job("t") });
    assert_eq!(rig.job(id).row.job.available_at, now, "f118: never due before it was created");
}

#[test]
fn settings_of_a_type_stand_between_job_and_server() {
    let mut rig = Rig::new();
    let settings = tagwerk_engine::row::TypeSettings {
        queue: Some("bulk".into()),
        priority: Priority::from_value(5),
        max_retries: Some(9),
        lease_ms: Some(7_000),
        timeout_ms: Some(8_000),
        max_age_ms: Some(100_000),
        ..Default::default()
    };
    let put = |settings| tagwerk_engine::command::PutType { kind: "mail".into(), settings };
    let before = rig
        .send(|reply| Message::PutType(put(Some(settings)), By::local(), Box::new(reply)))
        .try_recv()
        .unwrap();
    assert_eq!(before, Ok(Ok(false)));
    let id = rig.create(job("mail"));
    let full = rig.job(id);
    assert_eq!((&*full.row.lane.queue, full.row.priority.value(), full.row.job.max_retries), ("bulk", 5, 9));
    assert_eq!(full.row.job.expires_at, Some(rig.now().plus_ms(100_000)));
    let own = rig.create(EnqueueJob { queue: Some("x".into()), max_retries: Some(0), ..job("mail") });
    assert_eq!((&*rig.job(own).row.lane.queue, rig.job(own).row.job.max_retries), ("x", 0));
    let held = rig.claim(tagwerk_engine::command::Claim { lease_ms: None, ..claim("w") }).jobs.pop().unwrap();
    let lease = held.job.row.job.lease.unwrap();
    assert_eq!(lease.expires_at, rig.now().plus_ms(7_000));
    assert_eq!(lease.time_limit_at, Some(rig.now().plus_ms(8_000)));
    let before =
        rig.send(|reply| Message::PutType(put(None), By::local(), Box::new(reply))).try_recv().unwrap();
    assert_eq!(before, Ok(Ok(true)));
    let later = rig.create(job("mail"));
    assert_eq!(&*rig.job(later).row.lane.queue, "default");
}
