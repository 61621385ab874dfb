//! Limits and fair keys through the engine: who is refused, who waits, and who is woken when something opens.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use tagwerk_core::gate::{LimitSettings, Rate};
use tagwerk_core::{Action, ErrorClass, JobId, Outcome, RetryOverrides, Status};
use tagwerk_engine::command::{
    BulkMode, Claim, Claimed, Enqueue, EnqueueJob, Enqueued, LimitAnswer, LimitCall, PutType, Refusal, Said,
    Throttle, Work, WorkerCall,
};
use tagwerk_engine::message::{By, Message};
use tagwerk_engine::row::{Counter, LimitRef, Special, TypeSettings};
use tagwerk_engine::settings::{Settings, UnknownLimits, UnknownTypes};

use crate::rig::{Rig, claim, completed, job, token};

fn call(rig: &mut Rig, call: LimitCall) -> Result<LimitAnswer, Refusal> {
    rig.send(|reply| Message::Limit(call, By::local(), Box::new(reply))).try_recv().unwrap().unwrap()
}

fn put(rig: &mut Rig, name: &str, settings: LimitSettings) -> bool {
    match call(rig, LimitCall::Put(name.to_owned(), settings)) {
        Ok(LimitAnswer::Put { is_new, limit }) => {
            assert_eq!(limit.row.name, name);
            is_new
        }
        other => panic!("{other:?}"),
    }
}

const fn slots(max_running: u32) -> LimitSettings {
    LimitSettings { max_running: Some(max_running), rate: None }
}

fn limited(limit: &str) -> EnqueueJob {
    let special = Special { limits: vec![LimitRef::parse(limit)], fair_key: None };
    EnqueueJob { special: Some(Arc::new(special)), ..job("t") }
}

fn waiting(worker: &str) -> Claim {
    Claim { wait_ms: 60_000, ..claim(worker) }
}

/// Ids that a claim was given.
fn given(rig: &mut Rig, worker: &str) -> Vec<JobId> {
    rig.claim(claim(worker)).jobs.iter().map(|claimed| claimed.job.row.job.id).collect()
}

#[test]
fn a_job_that_names_an_unknown_limit_is_refused_and_names_are_told() {
    let mut rig = Rig::new();
    put(&mut rig, "crm", slots(1));
    let refused = rig.enqueue(vec![limited("crn:tenant-1"), limited("crm:tenant-1")]);
    let unknown = Refusal::UnknownLimit { name: "crn".to_owned(), known: vec!["crm".to_owned()] };
    assert_eq!(refused[0], Err(unknown));
    assert!(refused[1].is_ok());
    rig.assert_clean();
}

#[test]
fn a_job_sent_again_with_its_key_is_answered_though_its_limit_is_gone() {
    let mut rig = Rig::new();
    put(&mut rig, "crm", slots(1));
    let keyed = EnqueueJob { key: Some("k".to_owned()), ..limited("crm") };
    let id = rig.create(keyed.clone());
    let held = rig.take("w");
    rig.call(id, token(&held), completed()).unwrap();
    assert_eq!(call(&mut rig, LimitCall::Delete("crm".to_owned())), Ok(LimitAnswer::Deleted));
    let again = rig.enqueue(vec![keyed.clone(), EnqueueJob { key: Some("new".to_owned()), ..keyed }]);
    assert!(
        matches!(&again[0], Ok(Enqueued::Existing { job, payload_differs: false, .. }) if job.row.job.id == id)
    );
    assert!(matches!(again[1], Err(Refusal::UnknownLimit { .. })));
    rig.assert_clean();
}

#[test]
fn a_limit_that_jobs_name_cannot_be_deleted() {
    let mut rig = Rig::new();
    assert!(put(&mut rig, "crm", slots(1)) && !put(&mut rig, "crm", slots(1)));
    let first = rig.create(limited("crm"));
    rig.create(limited("crm:b"));
    let held = rig.take("w");
    assert_eq!(held.job.row.job.id, first);
    let delete = || LimitCall::Delete("crm".to_owned());
    let in_use = Refusal::LimitInUse { name: "crm".to_owned(), waiting: 1, running: 1, types: vec![] };
    assert_eq!(call(&mut rig, delete()), Err(in_use));
    rig.call(first, token(&held), completed()).unwrap();
    let held = rig.take("w");
    rig.call(held.job.row.job.id, token(&held), completed()).unwrap();
    assert_eq!(call(&mut rig, delete()), Ok(LimitAnswer::Deleted));
    assert_eq!(call(&mut rig, delete()), Err(Refusal::NoSuchLimit("crm".to_owned())));
    assert!(matches!(call(&mut rig, LimitCall::List), Ok(LimitAnswer::Limits(limits)) if limits.is_empty()));
    let refused = rig.enqueue(vec![limited("crm")]).remove(0);
    assert!(matches!(refused, Err(Refusal::UnknownLimit { .. })), "{refused:?}");
}

/// Whatever ends a run gives its slot to a claim that waits, in the same batch.
#[test]
fn a_slot_that_becomes_free_serves_a_claim_that_waits() {
    let mut rig = Rig::new();
    put(&mut rig, "crm", slots(1));
    let ids: Vec<JobId> = (0..5).map(|_| rig.create(limited("crm"))).collect();
    let held = rig.take("w");
    let answer = rig.park(Claim { lease_ms: Some(30_000), ..waiting("v") });
    assert!(answer.try_recv().is_err(), "the limit is full");
    rig.call(ids[0], token(&held), completed()).unwrap();
    let second = answer.try_recv().unwrap().unwrap().jobs.remove(0);
    assert_eq!(second.job.row.job.id, ids[1]);
    // The end of a lease.
    let answer = rig.park(waiting("v"));
    rig.advance(30_000);
    rig.tick();
    let third = answer.try_recv().unwrap().unwrap().jobs.remove(0);
    assert_eq!(third.job.row.job.id, ids[2], "the second comes back with a later due time");
    // An operator.
    let answer = rig.park(waiting("v"));
    rig.operate(ids[2], Action::Cancel { wait: false }).unwrap();
    let fourth = answer.try_recv().unwrap().unwrap().jobs.remove(0);
    assert!([ids[1], ids[3]].contains(&fourth.job.row.job.id));
    // The settings.
    let answer = rig.park(waiting("v"));
    assert!(answer.try_recv().is_err());
    put(&mut rig, "crm", slots(2));
    assert_eq!(answer.try_recv().unwrap().unwrap().jobs.len(), 1);
    assert_eq!(rig.tally().get(Counter::Running), 2);
    rig.assert_clean();
}

/// A claim that waits is woken when a rate opens, and not told of a time that has passed.
#[test]
fn a_claim_waits_for_a_rate_to_open() {
    let mut rig = Rig::new();
    let rate = Rate { count: 1, per_ms: 1_600, spread: false };
    put(&mut rig, "mail", LimitSettings { max_running: None, rate: Some(rate) });
    let ids: Vec<JobId> = (0..2).map(|_| rig.create(limited("mail"))).collect();
    assert_eq!(given(&mut rig, "w"), ids[..1]);
    let empty = rig.claim(claim("w"));
    let opens = empty.next_due_at.unwrap().since_ms(rig.now());
    assert!((1_600..=1_700).contains(&opens), "{opens}");
    let answer = rig.park(waiting("v"));
    rig.advance(1_599);
    rig.tick();
    assert!(answer.try_recv().is_err());
    rig.advance(101);
    rig.tick();
    assert_eq!(answer.try_recv().unwrap().unwrap().jobs[0].job.row.job.id, ids[1]);
}

/// Slots are counted from rows, so a restart neither loses nor leaks one.
#[test]
fn a_restart_knows_the_slots() {
    let mut rig = Rig::new();
    put(&mut rig, "crm", slots(2));
    let ids: Vec<JobId> = (0..3).map(|_| rig.create(limited("crm"))).collect();
    let held = rig.take("w");
    rig.take("w");
    let mut rig = rig.restart(1_000);
    assert_eq!(given(&mut rig, "w"), []);
    rig.call(ids[0], token(&held), completed()).unwrap();
    assert_eq!(given(&mut rig, "w"), ids[2..]);
    assert_eq!(rig.status(ids[1]), Status::Running);
}

/// The ledger counts jobs of all lanes of a queue and type together.
#[test]
fn the_ledger_counts_by_queue_and_type() {
    let mut rig = Rig::new();
    put(&mut rig, "crm", slots(1));
    let fair = |key: &str| {
        let special = Special { limits: Vec::new(), fair_key: Some(key.to_owned()) };
        EnqueueJob { special: Some(Arc::new(special)), ..job("t") }
    };
    for new in [limited("crm"), fair("a"), fair("b"), job("t")] {
        rig.create(new);
    }
    let held = rig.take("w");
    rig.call(held.job.row.job.id, token(&held), completed()).unwrap();
    rig.assert_clean();
}

/// Thirty workers claim in the same millisecond, two hundred times, while others report: never more than three leases live.
#[test]
fn f081_a_limit_of_three_holds_against_thirty_workers_at_once() {
    let mut rig = Rig::new();
    put(&mut rig, "crm", slots(3));
    let mut held: Vec<Claimed> = Vec::new();
    let mut most = 0;
    for round in 0..200 {
        // A few more than can be given out: the store of these tests looks at every job.
        let missing = 8 - rig.tally().get(Counter::Pending);
        rig.enqueue((0..missing).map(|_| limited("crm")).collect());
        let mut messages = Vec::new();
        let mut answers = Vec::new();
        for worker in 0..30 {
            let (sender, receiver) = sync_channel(1);
            messages.push(Message::Claim(claim(&format!("w{worker}")), Box::new(sender)));
            answers.push(receiver);
        }
        // Some report in the same batch, before, between or behind the claims.
        for done in held.drain(..round % 4 % (held.len() + 1)) {
            let (sender, _) = sync_channel(1);
            let call = WorkerCall { id: done.job.row.job.id, holder: token(&done), said: completed() };
            let at = (round * 7) % messages.len();
            messages.insert(at, Message::Work(Work { calls: vec![call], claim: None }, Box::new(sender)));
        }
        rig.committer.step(messages);
        held.extend(answers.into_iter().flat_map(|answer| answer.try_recv().unwrap().unwrap().jobs));
        assert!(held.len() <= 3, "{} leases in round {round}", held.len());
        most = most.max(held.len());
        rig.clock.advance(1);
    }
    assert_eq!(most, 3);
    rig.assert_clean();
}

/// Twenty a second under steady load for half a minute.
#[test]
fn a_rate_is_kept_in_any_second_and_nearly_reached() {
    let mut rig = Rig::new();
    let rate = Rate { count: 20, per_ms: 1_000, spread: false };
    put(&mut rig, "mail", LimitSettings { max_running: None, rate: Some(rate) });
    let begin = rig.now();
    let mut starts = Vec::new();
    while rig.now().since_ms(begin) < 30_000 {
        if rig.tally().get(Counter::Pending) < 25 {
            rig.enqueue((0..25).map(|_| limited("mail")).collect());
        }
        for worker in ["a", "b", "c"] {
            let now = rig.now().since_ms(begin);
            for claimed in rig.claim(claim(worker)).jobs {
                starts.push(now);
                rig.call(claimed.job.row.job.id, token(&claimed), completed()).unwrap();
            }
        }
        rig.clock.advance(7);
    }
    assert!((563..=600).contains(&starts.len()), "{} starts in 30 s", starts.len());
    for (first, start) in starts.iter().enumerate() {
        let within = starts[first..].iter().take_while(|later| **later < start + 1_000).count();
        assert!(within <= 20, "{within} starts in the second from {start} ms on");
    }
}

/// A worker that dies with a slot gives it back at the end of its lease, a thousand times.
#[test]
fn f083_no_slot_leaks_over_a_thousand_lost_leases() {
    let mut rig = Rig::new();
    put(&mut rig, "crm", slots(2));
    let retry = RetryOverrides { base_ms: Some(0), ..RetryOverrides::default() };
    let tough =
        || EnqueueJob { max_retries: Some(1_000), max_lease_losses: Some(100), retry, ..limited("crm") };
    let mut lost = 0;
    while lost < 1_000 {
        while rig.tally().get(Counter::Pending) < 3 {
            rig.create(tough());
        }
        let dying = rig.claim(Claim { lease_ms: Some(1_000), max_jobs: 9, ..claim("dies") }).jobs.len();
        assert_eq!(dying, 2, "both slots are free after {lost} losses");
        assert_eq!(given(&mut rig, "w"), [], "and no third");
        lost += dying;
        rig.clock.advance(1_000);
        rig.tick();
    }
    rig.assert_clean();
}

/// Ten thousand jobs of one tenant wait, then one of another: it starts within the next two claims.
#[test]
fn a_flood_of_one_tenant_holds_up_no_other() {
    let mut rig = Rig::new();
    let of = |tenant: &str| {
        let special = Special { limits: Vec::new(), fair_key: Some(tenant.to_owned()) };
        EnqueueJob { special: Some(Arc::new(special)), ..job("t") }
    };
    for _ in 0..10 {
        rig.enqueue((0..1_000).map(|_| of("flood")).collect());
    }
    for _ in 0..5 {
        assert_eq!(given(&mut rig, "w").len(), 1);
    }
    let late = rig.create(of("late"));
    let next = [given(&mut rig, "w"), given(&mut rig, "w")].concat();
    assert!(next.contains(&late), "{next:?} without {late}");
}

/// Names of all limits.
fn names(rig: &mut Rig) -> Vec<String> {
    match call(rig, LimitCall::List) {
        Ok(LimitAnswer::Limits(limits)) => limits.into_iter().map(|limit| limit.row.name).collect(),
        other => panic!("{other:?}"),
    }
}

/// A limit comes into being with a job that is accepted, in its transaction, and not with one that is refused.
#[test]
fn limits_made_on_use_are_made_for_accepted_jobs_only() {
    let settings = Settings {
        unknown_limits: UnknownLimits::Create,
        unknown_types: UnknownTypes::Refuse,
        ..Settings::default()
    };
    let mut rig = Rig::with(settings);
    let put = PutType { kind: "t".to_owned(), settings: Some(TypeSettings::default()) };
    rig.send(|reply| Message::PutType(put, By::local(), Box::new(reply)))
        .try_recv()
        .unwrap()
        .unwrap()
        .unwrap();
    let refused = EnqueueJob { kind: "unknown".to_owned(), ..limited("of-the-refused") };
    assert!(rig.enqueue(vec![refused.clone()])[0].is_err());
    let atomic = Enqueue {
        jobs: vec![limited("of-the-atomic"), refused.clone()],
        mode: BulkMode::Atomic,
        reach: None,
    };
    let answer = rig.send(|reply| Message::Enqueue(atomic, Box::new(reply))).try_recv().unwrap().unwrap();
    assert!(answer.iter().all(Result::is_err));
    assert_eq!(names(&mut rig), Vec::<String>::new());
    let keyed = EnqueueJob { key: Some("k".to_owned()), ..limited("first") };
    rig.create(keyed.clone());
    let again = EnqueueJob { special: limited("of-the-second-call").special, ..keyed };
    assert!(rig.enqueue(vec![again])[0].is_ok(), "it exists already");
    let results = rig.enqueue(vec![limited("b:1"), refused, limited("a"), limited("b:2")]);
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 3);
    assert_eq!(names(&mut rig), ["a", "b", "first"]);
    // They are known from then on, and over a restart.
    assert!(!self::put(&mut rig, "b", slots(1)));
    let mut rig = rig.restart(10);
    assert_eq!(names(&mut rig), ["a", "b", "first"]);
    assert_eq!(call(&mut rig, LimitCall::Delete("none".into())), Err(Refusal::NoSuchLimit("none".into())));
    rig.assert_clean();
}

fn throttled(limit: &str, for_ms: i64) -> Said {
    let outcome = Outcome::Failed { class: ErrorClass::Permanent, error: None, retry_after_ms: None };
    Said::Throttle { outcome, throttle: Box::new(Throttle { limit: LimitRef::parse(limit), for_ms }) }
}

/// A worker that holds back a limit without naming a partition means all of it. An operator can lift that at once.
#[test]
fn a_throttle_of_a_limit_holds_its_partitions_until_its_end_or_until_it_is_lifted() {
    let mut rig = Rig::new();
    put(&mut rig, "crm", LimitSettings::default());
    put(&mut rig, "api", LimitSettings::default());
    let [a, b, c] = ["crm:a", "crm:b", "crm"].map(|limit| rig.create(limited(limit)));
    let other = rig.create(limited("api:a"));
    let held = rig.take("w");
    assert_eq!(held.job.row.job.id, a);
    rig.say(&held, throttled("crm", 60_000)).unwrap();
    assert_eq!(given(&mut rig, "w"), [other]);
    assert_eq!(given(&mut rig, "w"), []);
    let open = |partition: &str| {
        LimitCall::Open(LimitRef { name: "crm".to_owned(), partition: partition.to_owned() })
    };
    assert!(call(&mut rig, open("b")).is_ok());
    assert_eq!(given(&mut rig, "w"), [], "the whole is closed, not this partition");
    // Claims that wait get what is lifted, without asking again.
    let answers = [rig.park(waiting("v")), rig.park(waiting("w"))];
    let Ok(LimitAnswer::Limits(limits)) = call(&mut rig, open("")) else { panic!("the limit") };
    assert!(limits[0].uses.iter().all(|of| of.hold_until.is_none()), "{limits:?}");
    let mut served: Vec<JobId> =
        answers.iter().map(|answer| answer.try_recv().unwrap().unwrap().jobs[0].job.row.job.id).collect();
    served.sort_unstable();
    assert_eq!(served, [b, c]);
    assert_eq!(
        call(&mut rig, LimitCall::Open(LimitRef::parse("crn"))),
        Err(Refusal::NoSuchLimit("crn".into()))
    );
    // By itself it ends at its time.
    let held = {
        rig.create(limited("crm:b"));
        rig.take("w")
    };
    rig.say(&held, throttled("crm", 5_000)).unwrap();
    let late = rig.create(limited("crm:new"));
    rig.advance(4_999);
    assert_eq!(given(&mut rig, "w"), []);
    rig.advance(1);
    assert_eq!(given(&mut rig, "w"), [late]);
    rig.assert_clean();
}
