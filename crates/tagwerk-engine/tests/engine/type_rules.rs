//! What the settings of a type let its jobs ask for.

use tagwerk_core::idempotency::OnDuplicate;
use tagwerk_core::{Action, Priority};
use tagwerk_engine::command::{BulkMode, Enqueue, EnqueueJob, Enqueued, Operate, PutType, Refusal};
use tagwerk_engine::message::Message;
use tagwerk_engine::row::TypeSettings;
use tagwerk_engine::settings::{Settings, UnknownTypes};

use crate::rig::{Rig, job, keyed};

fn put(rig: &mut Rig, kind: &str, settings: TypeSettings) {
    let command = PutType { kind: kind.to_owned(), settings: Some(settings) };
    rig.send(|reply| Message::PutType(command, Box::new(reply))).try_recv().unwrap().unwrap();
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
        let command = Enqueue { jobs, mode: BulkMode::Atomic };
        rig.send(|reply| Message::Enqueue(command, Box::new(reply))).try_recv().unwrap().unwrap()
    };
    assert_eq!(items[0].as_ref().unwrap_err(), &Refusal::NotAtomic { index: 1 });
    let items = rig.enqueue(vec![job("improt"), job("import")]);
    assert!(items[0].is_err() && items[1].is_ok());
}
