//! What keys, limits, queues and versions hold back, and what a person is told about it: which reason, since when, until
//! when, and what would free the job.

use std::sync::Arc;

use tagwerk_core::gate::{LimitSettings, Rate};
use tagwerk_core::{
    Action, ErrorClass, JobId, OnHeadFailure, Outcome, Priority, QueueSettings, Reserve, Status,
};
use tagwerk_engine::command::{
    Claim, ControlQueue, EnqueueJob, LimitAnswer, LimitCall, LimitState, QueueControl, Refusal, Said, Start,
    Throttle,
};
use tagwerk_engine::message::{By, Message};
use tagwerk_engine::query::{Explanation, Why, WhyKind, explain, place};
use tagwerk_engine::row::{LimitRef, Ordering, Special, Subject};
use tagwerk_engine::settings::{Settings, UnknownLimits};
use tagwerk_engine::store::Store;

use crate::rig::{Rig, claim, completed, failed, job};

fn limit(rig: &mut Rig, call: LimitCall) -> Result<LimitAnswer, Refusal> {
    rig.send(|reply| Message::Limit(call, By::local(), Box::new(reply))).try_recv().unwrap().unwrap()
}

fn put(rig: &mut Rig, name: &str, settings: LimitSettings) {
    limit(rig, LimitCall::Put(name.to_owned(), settings)).unwrap();
}

const ONE_A_SECOND: Rate = Rate { count: 1, per_ms: 1_000, spread: false };

const fn rated(rate: Rate) -> LimitSettings {
    LimitSettings { max_running: None, rate: Some(rate) }
}

const fn slots(max_running: u32) -> LimitSettings {
    LimitSettings { max_running: Some(max_running), rate: None }
}

fn limited(limits: &[&str]) -> EnqueueJob {
    let special =
        Special { limits: limits.iter().map(|limit| LimitRef::parse(limit)).collect(), fair_key: None };
    EnqueueJob { special: Some(Arc::new(special)), ..job("t") }
}

fn ordered(on_head_failure: OnHeadFailure) -> EnqueueJob {
    let ordering = Ordering { key: "order-1".into(), on_head_failure: Some(on_head_failure) };
    EnqueueJob { ordering: Some(Box::new(ordering)), max_retries: Some(0), ..job("t") }
}

fn states(rig: &mut Rig, call: LimitCall) -> Vec<LimitState> {
    match limit(rig, call) {
        Ok(LimitAnswer::Limits(states)) => states,
        other => panic!("{other:?}"),
    }
}

/// As the server explains: from the store, and with what the limits are at this moment.
fn explained(rig: &mut Rig, id: JobId) -> Explanation {
    let states = states(rig, LimitCall::List);
    let row = rig.job(id).row;
    let readers = rig.disk.readers();
    let mut read = readers.snapshot().unwrap();
    let mut explained = explain(&mut *read, &row, &rig.shared.vitals(), rig.now()).unwrap();
    explained.add_limits(&row.lane, &states);
    explained
}

fn kinds(rig: &mut Rig, id: JobId) -> Vec<WhyKind> {
    explained(rig, id).reasons.into_iter().map(|why| why.kind).collect()
}

/// The only reason.
fn why(rig: &mut Rig, id: JobId) -> Why {
    let mut reasons = explained(rig, id).reasons;
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    reasons.remove(0)
}

#[test]
fn a_full_limit_says_how_many_run_and_is_ready_again_when_one_ends() {
    let mut rig = Rig::new();
    put(&mut rig, "crm", slots(1));
    let ids: Vec<JobId> = (0..2).map(|_| rig.create(limited(&["crm"]))).collect();
    let held = rig.take("w");
    let full = why(&mut rig, ids[1]);
    assert_eq!((full.kind, full.since, full.until), (WhyKind::LimitFull, None, None));
    assert_eq!(full.detail, "Limit crm is full: 1 of 1 jobs run.");
    assert_eq!(kinds(&mut rig, ids[0]), [WhyKind::Running], "what runs waits for nothing");
    // A partition counts for itself.
    let other = rig.create(limited(&["crm:b"]));
    assert_eq!(kinds(&mut rig, other), [WhyKind::Ready]);
    rig.say(&held, completed()).unwrap();
    assert_eq!(kinds(&mut rig, ids[1]), [WhyKind::Ready]);
}

#[test]
fn a_rate_that_is_used_up_says_when_it_opens() {
    for (spread, detail) in [
        (false, "Limit mail has started 1 jobs within 1000 ms, as many as may."),
        (true, "Limit mail starts 1 in 1000 ms, evenly spaced; the last start was just now."),
    ] {
        let mut rig = Rig::new();
        put(&mut rig, "mail", rated(Rate { spread, ..ONE_A_SECOND }));
        let ids: Vec<JobId> = (0..2).map(|_| rig.create(limited(&["mail"]))).collect();
        let held = rig.take("w");
        rig.say(&held, completed()).unwrap();
        let spent = why(&mut rig, ids[1]);
        assert_eq!(
            (spent.kind, spent.detail.as_str(), spent.freed_by),
            (WhyKind::RateExhausted, detail, "time")
        );
        let opens = spent.until.unwrap();
        assert!((1_000..=1_063).contains(&opens.since_ms(rig.now())), "{opens:?}");
        rig.advance(u32::try_from(opens.since_ms(rig.now())).unwrap());
        assert_eq!(kinds(&mut rig, ids[1]), [WhyKind::Ready]);
        assert_eq!(rig.take("w").job.row.job.id, ids[1]);
    }
}

/// A job that is not due and keeps to two closed limits is told all of it: first what time decides for the job itself.
#[test]
fn every_closed_limit_is_a_reason_beside_the_others() {
    let mut rig = Rig::new();
    put(&mut rig, "crm", LimitSettings { max_running: Some(1), ..rated(ONE_A_SECOND) });
    put(&mut rig, "mail", rated(ONE_A_SECOND));
    rig.create(limited(&["crm", "mail"]));
    rig.take("w");
    let later = rig.create(EnqueueJob { start: Start::AfterMs(500), ..limited(&["mail", "crm"]) });
    let expected = [WhyKind::Scheduled, WhyKind::RateExhausted, WhyKind::LimitFull, WhyKind::RateExhausted];
    assert_eq!(kinds(&mut rig, later), expected);
    rig.operate(later, Action::Cancel { wait: false }).unwrap();
    assert_eq!(kinds(&mut rig, later), [WhyKind::Cancelled], "it waits for no limit any more");
}

fn throttled(limit: &str, class: ErrorClass) -> Said {
    let throttle = Box::new(Throttle { limit: LimitRef::parse(limit), for_ms: 30_000 });
    Said::Throttle { outcome: Outcome::Failed { class, error: None, retry_after_ms: None }, throttle }
}

#[test]
fn a_worker_closes_a_limit_for_a_while_with_the_report_that_counts() {
    let mut rig = Rig::new();
    put(&mut rig, "crm", LimitSettings::default());
    let first = rig.create(limited(&["crm"]));
    let second = rig.create(limited(&["crm"]));
    let held = rig.take("w");
    rig.say(&held, throttled("crm", ErrorClass::Permanent)).unwrap();
    assert_eq!(rig.status(first), Status::Failed);
    let until = rig.now().plus_ms(30_000);
    let closed = why(&mut rig, second);
    assert_eq!((closed.kind, closed.until, closed.freed_by), (WhyKind::Throttled, Some(until), "time"));
    rig.advance(10_000);
    rig.say(&held, throttled("crm", ErrorClass::Permanent)).unwrap();
    assert_eq!(
        why(&mut rig, second).until,
        Some(until),
        "a report that is repeated holds nothing for longer"
    );
    assert!(rig.claim(claim("w")).jobs.is_empty());
    rig.advance(20_000);
    assert_eq!(rig.take("w").job.row.job.id, second);
}

#[test]
fn a_limit_that_is_not_there_is_not_held_and_the_report_counts() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    let held = rig.take("w");
    let answer = rig.say(&held, throttled("nowhere", ErrorClass::Permanent)).unwrap();
    assert!(answer.unknown_limit);
    assert_eq!(rig.status(id), Status::Failed);
    assert_eq!(states(&mut rig, LimitCall::List), []);
}

#[test]
fn limits_are_made_on_use_where_the_settings_say_so() {
    let mut rig = Rig::with(Settings { unknown_limits: UnknownLimits::Create, ..Settings::default() });
    put(&mut rig, "crm", slots(1));
    rig.enqueue(vec![limited(&["new:a", "crm"]), limited(&["new:b"])])
        .into_iter()
        .for_each(|item| drop(item.unwrap()));
    let names: Vec<String> =
        states(&mut rig, LimitCall::List).into_iter().map(|state| state.row.name).collect();
    assert_eq!(names, ["crm", "new"]);
    let new = states(&mut rig, LimitCall::Show("new".to_owned())).remove(0);
    assert_eq!(new.row.settings, LimitSettings::default(), "it bounds nothing until somebody says more");
    let crm = states(&mut rig, LimitCall::Show("crm".to_owned())).remove(0);
    assert_eq!(crm.row.settings, slots(1), "what was there is left as it is");
    assert_eq!(limit(&mut rig, LimitCall::Show("x".into())), Err(Refusal::NoSuchLimit("x".into())));
}

#[test]
fn a_queue_that_is_full_says_so_to_those_who_may_not_start() {
    let mut rig = Rig::new();
    let urgent = Priority::from_value(30);
    let reserve = Some(Reserve { slots: 1, from_priority: urgent.unwrap() });
    let settings = QueueSettings { max_running: Some(2), reserve, max_depth: None };
    let set = ControlQueue { queue: "default".into(), control: QueueControl::Set(settings) };
    rig.send(|reply| Message::ControlQueue(set, By::local(), Box::new(reply)))
        .try_recv()
        .unwrap()
        .unwrap()
        .unwrap();
    let elsewhere = rig.create(EnqueueJob { queue: Some("other".into()), ..job("t") });
    let ids: Vec<JobId> = (0..2).map(|_| rig.create(job("t"))).collect();
    let held: Vec<JobId> =
        rig.claim(Claim { max_jobs: 9, ..claim("w") }).jobs.iter().map(|held| held.job.row.job.id).collect();
    assert_eq!(held, [elsewhere, ids[0]]);
    let kept = why(&mut rig, ids[1]);
    assert_eq!(kept.kind, WhyKind::QueueFull);
    assert_eq!(kept.detail, "Queue default runs 1 of 2 jobs; slots kept for priority 30 and above: 1.");
    let first = rig.create(EnqueueJob { priority: urgent, ..job("t") });
    assert_eq!(kinds(&mut rig, first), [WhyKind::Ready], "the reserve is for it");
    assert_eq!(rig.take("w").job.row.job.id, first);
    let second = rig.create(EnqueueJob { priority: urgent, ..job("t") });
    for id in [ids[1], second] {
        assert_eq!(why(&mut rig, id).detail, "Queue default is full: 2 of 2 jobs run.");
    }
}

/// What the place of a job says beside its explanation.
fn place_of(rig: &Rig, id: JobId) -> (Option<JobId>, Option<usize>) {
    let readers = rig.disk.readers();
    let mut read = readers.snapshot().unwrap();
    let place = place(&mut *read, &rig.job(id).row).unwrap();
    (place.blocked_by, place.blocks)
}

#[test]
fn a_follower_names_the_job_before_it_and_a_head_in_review_counts_those_behind() {
    let mut rig = Rig::new();
    let [a, b, c] = [(); 3].map(|()| rig.create(ordered(OnHeadFailure::Block)));
    rig.create(job("other"));
    rig.operate(a, Action::Replace { available_at: rig.now().plus_ms(1_000) }).unwrap();
    assert_eq!(rig.take("w").job.row.lane.kind.as_ref(), "other");
    let blocked = why(&mut rig, b);
    let stands = |how: &str| format!("Job {a} with the same ordering key comes first; it {how}.");
    assert_eq!((blocked.kind, blocked.detail), (WhyKind::BlockedByKey, stands("waits")));
    assert_eq!((place_of(&rig, a), place_of(&rig, c)), ((None, None), (Some(a), None)));
    rig.advance(1_000);
    let held = rig.take("w");
    assert_eq!((why(&mut rig, c).detail, place_of(&rig, a)), (stands("runs"), (None, None)));
    rig.say(&held, failed(ErrorClass::Permanent)).unwrap();
    let blocked = why(&mut rig, b);
    assert_eq!(
        (blocked.detail, blocked.freed_by),
        (stands("is in review"), "retry, discard or unblock of that job")
    );
    assert_eq!((place_of(&rig, a), place_of(&rig, b)), ((None, Some(2)), (Some(a), None)));
    let first = why(&mut rig, a);
    assert!(first.detail.ends_with("It blocks 2 jobs of its ordering key."), "{}", first.detail);
    assert_eq!(first.freed_by, "retry or discard; unblock frees the others");
    rig.operate(b, Action::Cancel { wait: false }).unwrap();
    assert!(why(&mut rig, a).detail.ends_with("It blocks 1 job of its ordering key."));
    rig.operate(a, Action::Unblock).unwrap();
    assert_eq!((kinds(&mut rig, c), place_of(&rig, a)), (vec![WhyKind::Ready], (None, None)));
    assert_eq!(why(&mut rig, a).freed_by, "retry or discard");
}

#[test]
fn followers_are_counted_up_to_a_bound() {
    let mut rig = Rig::new();
    let first = rig.create(ordered(OnHeadFailure::Block));
    let held = rig.take("w");
    rig.say(&held, failed(ErrorClass::Permanent)).unwrap();
    rig.enqueue(vec![ordered(OnHeadFailure::Block); 1_002]);
    assert_eq!(place_of(&rig, first), (None, Some(1_001)));
    let text = why(&mut rig, first).detail;
    assert!(text.ends_with("It blocks more than 1000 jobs of its ordering key."), "{text}");
}

#[test]
fn a_version_that_is_out_of_date_says_by_which_job_and_what_is_left_to_do() {
    let mut rig = Rig::new();
    let version = |version| {
        let subject = Subject { kind: "order".into(), id: "4711".into(), version: Some(version) };
        EnqueueJob { subject: Some(subject), supersede: true, ..job("sync") }
    };
    let failing = rig.create(version(1));
    let held = rig.take("w");
    rig.say(&held, failed(ErrorClass::Permanent)).unwrap();
    let done = rig.create(version(1));
    let held = rig.take("w");
    rig.say(&held, completed()).unwrap();
    let running = rig.create(version(1));
    rig.take("w");
    let waiting = rig.create(version(1));
    let newest = rig.create(version(2));
    let newer = format!("Job {newest} carries a newer version of the same subject");
    let mut told = |id| -> Vec<(WhyKind, bool)> {
        let reasons = explained(&mut rig, id).reasons;
        reasons.into_iter().map(|why| (why.kind, why.detail.starts_with(&newer))).collect()
    };
    assert_eq!(told(waiting), [(WhyKind::Superseded, true), (WhyKind::Cancelled, false)], "it decides");
    assert_eq!(told(running), [(WhyKind::Running, false), (WhyKind::Superseded, true)]);
    assert_eq!(told(failing), [(WhyKind::InReview, false), (WhyKind::Superseded, true)]);
    assert_eq!(told(done), [(WhyKind::Completed, false)]);
    assert_eq!(told(newest), [(WhyKind::Ready, false)]);
}
