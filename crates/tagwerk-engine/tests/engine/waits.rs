//! Claims that wait, many of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tagwerk_engine::command::{Claim, ClaimAnswer, EngineError, EnqueueJob, Start};
use tagwerk_engine::message::Message;
use tagwerk_engine::ports::Responder;
use tagwerk_engine::store::Filter;

use crate::rig::{Rig, claim, job};

/// A client that counts how often it is looked at.
struct Counted(Arc<AtomicUsize>);

impl Responder<Result<ClaimAnswer, EngineError>> for Counted {
    fn is_waiting(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn answer(
        self: Box<Self>,
        _: Result<ClaimAnswer, EngineError>,
    ) -> Result<(), Result<ClaimAnswer, EngineError>> {
        Ok(())
    }
}

fn waits_for(worker: &str, kind: Option<&str>) -> Claim {
    let types = kind.map(|kind| vec![kind.to_owned()]);
    Claim { wait_ms: 60_000, filter: Filter { queues: None, types, space: None }, ..claim(worker) }
}

/// A rig in which many wait for jobs of type `other`, and how often they were looked at since.
fn crowd(n: usize) -> (Rig, Arc<AtomicUsize>) {
    let mut rig = Rig::new();
    let looks = Arc::new(AtomicUsize::new(0));
    let wait = |n: usize| {
        let claim = waits_for(&format!("w{n}"), Some("other"));
        Message::Claim(claim, Box::new(Counted(Arc::clone(&looks))))
    };
    rig.committer.step((0..n).map(wait).collect());
    looks.store(0, Ordering::Relaxed);
    (rig, looks)
}

#[test]
fn many_that_wait_cost_batches_that_do_not_concern_them_nothing() {
    let (mut rig, looks) = crowd(5_000);
    for _ in 0..100 {
        rig.create(job("t"));
    }
    assert_eq!(looks.load(Ordering::Relaxed), 0, "waiting claims were looked at for nothing");
    let id = rig.create(job("other"));
    assert_eq!(rig.job(id).row.job.lease.map(|lease| lease.worker).as_deref(), Some("w0"));
    let looked = looks.load(Ordering::Relaxed);
    assert!(looked <= 2, "{looked} looks for one job");
}

#[test]
fn one_job_that_comes_due_does_not_make_all_try_that_wait_for_it() {
    let (mut rig, looks) = crowd(5_000);
    let id = rig.create(EnqueueJob { start: Start::AfterMs(50), ..job("other") });
    rig.clock.advance(50);
    rig.tick();
    assert_eq!(rig.job(id).row.job.lease.map(|lease| lease.worker).as_deref(), Some("w0"));
    let looked = looks.load(Ordering::Relaxed);
    assert!(looked <= 100, "{looked} looks for one job");
    rig.tick();
    assert!(looks.load(Ordering::Relaxed) <= looked + 100, "they try again for nothing");
}

#[test]
fn many_jobs_that_come_due_at_once_are_all_started_at_once() {
    let (mut rig, _) = crowd(200);
    let later = || EnqueueJob { start: Start::AfterMs(50), ..job("other") };
    let ids: Vec<_> = (0..100).map(|_| rig.create(later())).collect();
    rig.clock.advance(50);
    rig.tick();
    let workers: Vec<_> =
        ids.iter().map(|id| rig.job(*id).row.job.lease.map(|lease| lease.worker).unwrap()).collect();
    let expected: Vec<_> = (0..100).map(|n| format!("w{n}")).collect();
    assert_eq!(workers, expected);
}

#[test]
fn who_came_first_is_served_first_whatever_else_it_would_take() {
    let mut rig = Rig::new();
    let kinds = [Some("b"), None, Some("a"), None, Some("a"), Some("b")];
    let waits: Vec<_> =
        kinds.into_iter().enumerate().map(|(n, kind)| rig.park(waits_for(&format!("w{n}"), kind))).collect();
    for kind in ["a", "a", "a", "b", "a"] {
        rig.create(job(kind));
    }
    let served = |wait: &crate::rig::Answer<ClaimAnswer>| {
        wait.try_recv().ok().map(|answer| answer.unwrap().jobs[0].job.row.job.id.0)
    };
    let got: Vec<_> = waits.iter().map(served).collect();
    assert_eq!(got, [Some(4), Some(1), Some(2), Some(3), Some(5), None]);
}

#[test]
fn a_wait_that_ends_tells_when_time_will_bring_a_job() {
    let mut rig = Rig::new();
    let wait = rig.park(Claim { wait_ms: 1_000, ..waits_for("w", Some("t")) });
    rig.create(EnqueueJob { start: Start::AfterMs(5_000), ..job("t") });
    let due = rig.now().plus_ms(5_000);
    rig.clock.advance(1_000);
    rig.tick();
    assert_eq!(wait.try_recv().unwrap().unwrap().next_due_at, Some(due));
    rig.assert_clean();
}

#[test]
fn a_claim_that_looked_before_another_put_a_job_off_is_woken_for_it() {
    let mut rig = Rig::new();
    // More leases end at once than a batch looks for by itself, and the one of the job that matters is the last.
    let crowd = tagwerk_core::limits::OVERDUE_PER_BATCH;
    rig.enqueue((0..crowd).map(|_| job("x")).collect());
    let short = Claim { lease_ms: Some(1_000), ..claim("dead") };
    rig.claim(Claim { max_jobs: crowd, ..short.clone() });
    let id = rig.create(job("f"));
    rig.claim(Claim { lease_ms: Some(1_001), request_id: Some("its".into()), ..short });
    rig.clock.advance(2_000);
    let none = |request: &str| Claim { request_id: Some(request.into()), ..waits_for("v", Some("none")) };
    let wait = Claim { wait_ms: 60_000, ..waits_for("w", Some("f")) };
    let (sender, answer) = std::sync::mpsc::sync_channel(1);
    let silent =
        || -> Box<dyn Responder<Result<ClaimAnswer, EngineError>>> { Box::new(Counted(Arc::default())) };
    // The same request twice: what follows is looked at after the first claim has looked.
    rig.committer.step(vec![
        Message::Claim(wait, Box::new(sender)),
        Message::Claim(none("r"), silent()),
        Message::Claim(none("r"), silent()),
        Message::Claim(Claim { request_id: Some("its".into()), ..waits_for("dead", Some("none")) }, silent()),
    ]);
    let due = rig.job(id).row.job.available_at;
    assert!(due > rig.now(), "the job was put off");
    rig.clock.advance(u32::try_from(due.since_ms(rig.now())).unwrap());
    rig.tick();
    let served = answer.try_recv().expect("it was woken").unwrap();
    assert_eq!(served.jobs[0].job.row.job.id, id);
}
