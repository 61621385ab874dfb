//! What the settings of a type let its jobs ask for.

use std::sync::Arc;

use tagwerk_core::gate::LimitSettings;
use tagwerk_core::idempotency::OnDuplicate;
use tagwerk_core::{Action, ErrorClass, OnHeadFailure, Priority};
use tagwerk_engine::command::{
    BulkMode, Enqueue, EnqueueJob, Enqueued, LimitAnswer, LimitCall, Operate, PutType, Refusal,
};
use tagwerk_engine::message::{By, Message};
use tagwerk_engine::row::{LimitRef, Ordering, Special, TypeSettings};
use tagwerk_engine::settings::{Settings, UnknownLimits, UnknownTypes};

use crate::rig::{Rig, failed, job, keyed};

fn put(rig: &mut Rig, kind: &str, settings: TypeSettings) {
    let command = PutType { kind: kind.to_owned(), settings: Some(settings) };
    rig.send(|reply| Message::PutType(command, By::local(), Box::new(reply)))
        .try_recv()
        .unwrap()
        .unwrap()
        .unwrap();
}

fn refused(rig: &mut Rig, job: EnqueueJob) -> Refusal {
    rig.enqueue(vec![job]).pop().unwrap().unwrap_err()
}

fn level(value: u8) -> Option<Priority> {
    Priority::from_value(value)
}

#[test]
fn a_job_for_a_queue_that_its_type_does_not_allow_is_refused() {
    let mut rig = Rig::new();
    let queues = Some(vec!["mail".to_owned(), "bulk".to_owned()]);
    put(&mut rig, "send", TypeSettings { queues: queues.clone(), ..TypeSettings::default() });
    let to = |queue: Option<&str>| EnqueueJob { queue: queue.map(str::to_owned), ..job("send") };
    for queue in [Some("critical"), Some("Mail"), None] {
        let Refusal::Invalid { field: "queue", message } = refused(&mut rig, to(queue)) else {
            panic!("{queue:?}")
        };
        assert!(message.contains("mail, bulk") && message.contains(queue.unwrap_or("default")), "{message}");
    }
    rig.create(to(Some("bulk")));
    put(&mut rig, "send", TypeSettings { queues, queue: Some("mail".into()), ..TypeSettings::default() });
    let id = rig.create(to(None));
    assert_eq!(&*rig.job(id).row.lane.queue, "mail");
    rig.create(EnqueueJob { queue: Some("critical".into()), ..job("other") });
}

#[test]
fn a_replacement_that_would_go_to_another_queue_by_now_changes_nothing() {
    let mut rig = Rig::new();
    let sent = EnqueueJob { on_duplicate: Some(OnDuplicate::Replace), ..keyed("send", "k") };
    let id = rig.create(sent.clone());
    let before = rig.job(id);
    put(&mut rig, "send", TypeSettings { queue: Some("mail".into()), ..TypeSettings::default() });
    let newer = EnqueueJob { payload: Some("[1]".into()), ..sent };
    let answer = rig.enqueue(vec![newer.clone()]).pop().unwrap();
    let Ok(Enqueued::Existing { payload_differs: true, replaced: Some(false), .. }) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(rig.job(id), before);
    // A rule of another type refuses nothing that is not stored.
    let queues = Some(vec!["only".to_owned()]);
    put(&mut rig, "strict", TypeSettings { queues, ..TypeSettings::default() });
    let other = EnqueueJob { kind: "strict".into(), ..newer };
    let answer = rig.enqueue(vec![other]).pop().unwrap();
    assert!(matches!(answer, Ok(Enqueued::Existing { replaced: Some(false), .. })), "{answer:?}");
    assert_eq!(rig.job(id), before);
}

#[test]
fn a_priority_above_the_ceiling_is_refused_and_never_lowered() {
    let mut rig = Rig::new();
    put(&mut rig, "import", TypeSettings { priority_ceiling: level(5), ..TypeSettings::default() });
    let at = |value| EnqueueJob { priority: level(value), ..job("import") };
    assert!(matches!(refused(&mut rig, at(6)), Refusal::Invalid { field: "priority", .. }));
    let id = rig.create(at(5));
    assert_eq!(rig.job(id).row.priority, level(5).unwrap());
    let id = rig.create(job("import"));
    assert_eq!(rig.job(id).row.priority, level(5).unwrap(), "the default of 10 is nobody's wish");
    put(&mut rig, "import", TypeSettings { priority_ceiling: level(100), ..TypeSettings::default() });
    let id = rig.create(job("import"));
    assert_eq!(rig.job(id).row.priority, Priority::default());
}

#[test]
fn a_payload_over_the_limit_of_its_type_is_refused_wherever_it_comes_in() {
    let mut rig = Rig::new();
    put(&mut rig, "note", TypeSettings { payload_max_bytes: Some(7), ..TypeSettings::default() });
    let with = |payload: &str| EnqueueJob { payload: Some(payload.to_owned()), ..job("note") };
    assert_eq!(refused(&mut rig, with(r#"{"a":10}"#)), Refusal::PayloadTooLarge { bytes: 8, max: 7 });
    let id = rig.create(EnqueueJob { key: Some("k".into()), max_retries: Some(0), ..with(r#"{"a":1}"#) });
    let again = |payload: &str| EnqueueJob {
        key: Some("k".into()),
        on_duplicate: Some(OnDuplicate::Replace),
        ..with(payload)
    };
    assert_eq!(refused(&mut rig, again(r#"{"a":10}"#)), Refusal::PayloadTooLarge { bytes: 8, max: 7 });
    assert_eq!(rig.job(id).detail.payload, r#"{"a":1}"#);
    rig.claim(crate::rig::claim("w"));
    rig.operate(id, Action::ForceFail { error: "stuck".into() }).unwrap();
    let retry = |payload: &str| Operate {
        id,
        action: Action::Retry { max_retries: None },
        seen_version: None,
        text: None,
        payload: Some(payload.to_owned()),
        assume: None,
        key: tagwerk_engine::command::KeyFate::ByScope,
    };
    let large = rig.operate_with(retry(r#"{"a":10}"#));
    assert_eq!(large.unwrap_err(), Refusal::PayloadTooLarge { bytes: 8, max: 7 });
    assert_eq!(rig.status(id), tagwerk_core::Status::Failed);
    rig.operate_with(retry(r#"{"a":2}"#)).unwrap();
}

#[test]
fn a_job_that_was_accepted_before_the_rule_still_answers_to_its_key() {
    let mut rig = Rig::new();
    let first = EnqueueJob { key: Some("k".into()), queue: Some("old".into()), ..job("send") };
    let id = rig.create(first.clone());
    put(&mut rig, "send", TypeSettings { queues: Some(vec!["new".into()]), ..TypeSettings::default() });
    let again = rig.enqueue(vec![first.clone()]).pop().unwrap().unwrap();
    assert!(
        matches!(again, tagwerk_engine::command::Enqueued::Existing { job, .. } if job.row.job.id == id),
        "a producer that repeats a call whose answer was lost must hear of its job"
    );
    assert!(matches!(
        refused(&mut rig, EnqueueJob { key: None, ..first }),
        Refusal::Invalid { field: "queue", .. }
    ));
}

#[test]
fn strict_types_refuse_what_has_no_settings_and_know_the_names() {
    let mut rig = Rig::with(Settings { unknown_types: UnknownTypes::Refuse, ..Settings::default() });
    assert!(matches!(refused(&mut rig, job("send")), Refusal::UnknownType { known, .. } if known.is_empty()));
    put(&mut rig, "send-mail", TypeSettings::default());
    put(&mut rig, "import", TypeSettings::default());
    let Refusal::UnknownType { kind, known } = refused(&mut rig, job("send-mial")) else { panic!() };
    assert_eq!((&*kind, &*known), ("send-mial", &["import".to_owned(), "send-mail".to_owned()][..]));
    rig.create(job("send-mail"));
    let items = {
        let jobs = vec![job("import"), job("improt")];
        let command = Enqueue { jobs, mode: BulkMode::Atomic, reach: None };
        rig.send(|reply| Message::Enqueue(command, Box::new(reply))).try_recv().unwrap().unwrap()
    };
    assert_eq!(items[0].as_ref().unwrap_err(), &Refusal::NotAtomic { index: 1 });
    let items = rig.enqueue(vec![job("improt"), job("import")]);
    assert!(items[0].is_err() && items[1].is_ok());
}

fn limits_of(rig: &Rig, id: tagwerk_core::JobId) -> Vec<String> {
    rig.job(id).row.lane.limits().iter().map(ToString::to_string).collect()
}

#[test]
fn a_job_gets_limits_and_keys_from_its_type_where_it_has_none() {
    let mut rig = Rig::new();
    for name in ["crm", "api"] {
        let put = LimitCall::Put(name.to_owned(), LimitSettings::default());
        rig.send(|reply| Message::Limit(put, By::local(), Box::new(reply)))
            .try_recv()
            .unwrap()
            .unwrap()
            .unwrap();
    }
    let settings = TypeSettings {
        limits: vec![LimitRef::parse("crm:t")],
        fair_key: Some("shop".into()),
        ordering_key: Some("all".into()),
        on_head_failure: Some(OnHeadFailure::Skip),
        ..TypeSettings::default()
    };
    put(&mut rig, "sync", settings);
    let first = rig.create(job("sync"));
    let full = rig.job(first);
    assert_eq!((limits_of(&rig, first), full.row.lane.fair_key()), (vec!["crm:t".to_owned()], Some("shop")));
    let order = full.row.order.unwrap();
    assert_eq!((&*order.key, order.on_head_failure, order.blocked), ("all", OnHeadFailure::Skip, false));
    let special = Special { limits: vec![LimitRef::parse("api")], fair_key: None };
    let ordering = Ordering { key: "own".into(), on_head_failure: None };
    let own =
        EnqueueJob { special: Some(Arc::new(special)), ordering: Some(Box::new(ordering)), ..job("sync") };
    let own = rig.create(own);
    let full = rig.job(own);
    assert_eq!((limits_of(&rig, own), full.row.lane.fair_key()), (vec!["api".to_owned()], Some("shop")));
    let order = full.row.order.unwrap();
    assert_eq!((&*order.key, order.on_head_failure, order.blocked), ("own", OnHeadFailure::Skip, false));
    // All jobs of the type stand in one order, and go back to their places in it.
    let second = rig.create(job("sync"));
    assert!(rig.job(second).row.is_blocked());
    let held = rig.take("w");
    assert_eq!(held.job.row.job.id, first);
    rig.say(&held, failed(ErrorClass::Permanent)).unwrap();
    assert!(!rig.job(second).row.is_blocked(), "a head that fails is skipped");
    // What is said later is for later jobs.
    put(
        &mut rig,
        "sync",
        TypeSettings { on_head_failure: Some(OnHeadFailure::Block), ..TypeSettings::default() },
    );
    rig.operate(first, Action::Retry { max_retries: None }).unwrap();
    let order = rig.job(first).row.order.unwrap();
    assert_eq!((&*order.key, order.on_head_failure), ("all", OnHeadFailure::Skip));
    let plain = rig.create(job("sync"));
    assert!(rig.job(plain).row.order.is_none() && limits_of(&rig, plain).is_empty());
    rig.assert_clean();
}

#[test]
fn a_type_that_names_an_unknown_limit_is_refused_and_keeps_what_it_had() {
    let mut rig = Rig::new();
    let before = TypeSettings { max_retries: Some(7), ..TypeSettings::default() };
    put(&mut rig, "sync", before.clone());
    let named = |names: &[&str]| TypeSettings {
        limits: names.iter().map(|name| LimitRef::parse(name)).collect(),
        ..TypeSettings::default()
    };
    let send = |rig: &mut Rig, settings| {
        let command = PutType { kind: "sync".to_owned(), settings: Some(settings) };
        rig.send(|reply| Message::PutType(command, By::local(), Box::new(reply))).try_recv().unwrap().unwrap()
    };
    let unknown = Refusal::UnknownLimit { name: "crm".to_owned(), known: vec![] };
    assert_eq!(send(&mut rig, named(&["crm:t"])), Err(unknown));
    let id = rig.create(job("sync"));
    assert_eq!(rig.job(id).row.job.max_retries, 7);
    // With `limits.create_on_use` it comes into being with the first job.
    let settings = Settings { unknown_limits: UnknownLimits::Create, ..Settings::default() };
    let mut rig = Rig::with(settings);
    assert_eq!(send(&mut rig, named(&["crm:t"])), Ok(false));
    let list = |rig: &mut Rig| {
        let answer =
            rig.send(|reply| Message::Limit(LimitCall::List, By::local(), Box::new(reply))).try_recv();
        let Ok(LimitAnswer::Limits(limits)) = answer.unwrap().unwrap() else { panic!("a list") };
        limits.into_iter().map(|limit| limit.row.name).collect::<Vec<_>>()
    };
    assert_eq!(list(&mut rig), Vec::<String>::new());
    rig.create(job("sync"));
    assert_eq!(list(&mut rig), ["crm"]);
}

#[test]
fn a_limit_that_types_name_cannot_be_deleted() {
    let mut rig = Rig::new();
    let limit = |rig: &mut Rig, call| {
        rig.send(|reply| Message::Limit(call, By::local(), Box::new(reply))).try_recv().unwrap().unwrap()
    };
    limit(&mut rig, LimitCall::Put("crm".to_owned(), LimitSettings::default())).unwrap();
    let settings = TypeSettings { limits: vec![LimitRef::parse("crm:t")], ..TypeSettings::default() };
    for kind in ["b", "a"] {
        put(&mut rig, kind, settings.clone());
    }
    let in_use = Refusal::LimitInUse {
        name: "crm".to_owned(),
        waiting: 0,
        running: 0,
        types: vec!["a".to_owned(), "b".to_owned()],
    };
    assert_eq!(limit(&mut rig, LimitCall::Delete("crm".to_owned())), Err(in_use.clone()));
    assert!(in_use.to_string().contains("the settings of 2 types"), "{in_use}");
    for kind in ["a", "b"] {
        put(&mut rig, kind, TypeSettings::default());
    }
    assert_eq!(limit(&mut rig, LimitCall::Delete("crm".to_owned())), Ok(LimitAnswer::Deleted));
}
