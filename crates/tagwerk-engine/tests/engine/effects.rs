//! The effect journal in the engine: where its keys come from, what is kept of it, and what a refused call leaves.

use tagwerk_core::idempotency::Scope;
use tagwerk_core::{Action, Assume, Assumed, EffectState, ErrorClass, JobId};
use tagwerk_engine::command::{EffectSaid, EnqueueJob, KeyFate, Operate, Refusal, Said, Work, WorkerCall};
use tagwerk_engine::message::Message;
use tagwerk_engine::store::{Store, StoreError};
use tagwerk_engine::testing::memory::Point;

use crate::rig::{Rig, completed, failed, job, keyed, token};

fn begin(name: &str) -> Said {
    Said::Effect(name.into(), EffectSaid::Begin { key: None })
}

fn retry(rig: &Rig, id: JobId, assumed: Assumed) -> Operate {
    Operate {
        id,
        action: Action::Retry { max_retries: None },
        seen_version: Some(rig.job(id).row.job.version),
        text: None,
        payload: None,
        assume: Some(assumed),
        key: KeyFate::ByScope,
    }
}

#[test]
fn a_key_is_made_of_chance_and_is_there_after_a_restart() {
    let mut rig = Rig::new();
    rig.create(job("t"));
    let held = rig.take("w");
    rig.entropy.script(&[0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);
    let answer = rig.say(&held, begin("ship")).unwrap();
    let effect = answer.job.row.job.effects[0].clone();
    assert_eq!(&*effect.key, "0123456789abcdeffedcba9876543210");
    assert_eq!((effect.state, effect.seq), (EffectState::Open, 1));
    let rig = rig.restart(1);
    assert_eq!(rig.job(held.job.row.job.id).row.job.effects, [effect]);
    rig.assert_clean();
}

/// A begin that was not committed is no begin.
#[test]
fn a_begin_whose_commit_failed_is_not_there() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    let held = rig.take("w");
    rig.disk.faults().fail(Point::BeforeCommit, StoreError::Full, 2);
    let call = WorkerCall { id, holder: token(&held), said: begin("ship") };
    let work = Work { calls: vec![call], claim: None };
    let answer = rig.send(|reply| Message::Work(work, Box::new(reply))).try_recv().unwrap();
    assert!(answer.is_err(), "{answer:?}");
    assert_eq!(rig.job(id).row.job.effects, []);
    rig.say(&held, begin("ship")).unwrap();
    assert_eq!(rig.job(id).row.job.effects.len(), 1);
}

/// A retry that is refused for what it assumes has done nothing: it has not even taken its key back.
#[test]
fn a_retry_that_assumes_what_is_not_in_doubt_takes_no_key_back() {
    let mut rig = Rig::new();
    let unfinished = || EnqueueJob { scope: Some(Scope::Unfinished), ..keyed("t", "k") };
    let id = rig.create(unfinished());
    let held = rig.take("w");
    rig.say(&held, failed(ErrorClass::Permanent)).unwrap();
    let other = rig.create(unfinished());
    let held = rig.take("w");
    rig.say(&held, completed()).unwrap();
    let owner = |rig: &Rig| rig.disk.readers().snapshot().unwrap().key("k").unwrap().unwrap().owner;
    for assumed in [Assumed::All(Assume::NotDone), Assumed::Named([("ship".into(), Assume::Done)].into())] {
        let call = retry(&rig, id, assumed);
        assert!(matches!(rig.operate_with(call), Err(Refusal::Invalid { field: "assume", .. })));
        assert_eq!(owner(&rig), other);
    }
    rig.operate(id, Action::Retry { max_retries: None }).unwrap();
    assert_eq!(owner(&rig), id);
}

#[test]
fn what_is_erased_takes_its_effects_along() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    let held = rig.take("w");
    rig.say(&held, begin("ship")).unwrap();
    rig.say(&held, Said::Effect("ship".into(), EffectSaid::Finish { result: None })).unwrap();
    rig.say(&held, completed()).unwrap();
    rig.operate(id, Action::Delete).unwrap();
    assert!(rig.find(id).is_none());
    rig.assert_clean();
}
