//! Counts, and who is there.

use tagwerk_engine::command::{Claim, EnqueueJob, PutType, Start};
use tagwerk_engine::message::{By, Message};
use tagwerk_engine::query::{overview, queues, types, workers};
use tagwerk_engine::row::{Counter, Tally, TypeSettings};
use tagwerk_engine::store::{Filter, Read, Store};

use crate::rig::{Rig, claim, completed, job};

fn asked<T>(rig: &Rig, ask: impl FnOnce(&mut dyn Read) -> T) -> T {
    let readers = rig.disk.readers();
    let mut read = readers.snapshot().unwrap();
    ask(&mut *read)
}

fn in_queue(kind: &str, queue: &str) -> EnqueueJob {
    EnqueueJob { queue: Some(queue.to_owned()), ..job(kind) }
}

/// Accepted, pending, running, completed.
fn counts(tally: &Tally) -> [i64; 4] {
    [Counter::Enqueued, Counter::Pending, Counter::Running, Counter::Completed].map(|what| tally.get(what))
}

fn put(rig: &mut Rig, kind: &str) {
    let settings = Some(TypeSettings { max_retries: Some(9), ..TypeSettings::default() });
    let command = PutType { kind: kind.to_owned(), settings };
    let before =
        rig.send(|reply| Message::PutType(command, By::local(), Box::new(reply))).try_recv().unwrap();
    assert_eq!(before, Ok(Ok(false)));
}

/// Two jobs in `a` (one done, one later), two in `b` (one of them held), and a type that has only settings.
fn filled() -> Rig {
    let mut rig = Rig::new();
    rig.create(in_queue("t", "a"));
    let held = rig.take("first");
    rig.say(&held, completed()).unwrap();
    rig.advance(1_000);
    rig.create(EnqueueJob { start: Start::AfterMs(60_000), ..in_queue("t", "a") });
    rig.create(in_queue("u", "b"));
    rig.create(in_queue("u", "b"));
    let filter = Filter { queues: Some(vec!["b".to_owned()]), types: None, space: None };
    assert_eq!(rig.claim(Claim { filter, agent: Some("sdk/1".to_owned()), ..claim("second") }).jobs.len(), 1);
    put(&mut rig, "v");
    rig
}

#[test]
fn sums_over_everything() {
    let mut rig = Rig::new();
    let nothing = asked(&rig, |read| overview(read, rig.now())).unwrap();
    assert_eq!((nothing.tally, nothing.oldest_ready), (Tally::default(), None));
    rig = filled();
    let all = asked(&rig, |read| overview(read, rig.now())).unwrap();
    assert_eq!((counts(&all.tally), all.oldest_ready), ([4, 2, 1, 1], Some(rig.now())));
}

#[test]
fn queues_are_listed_with_their_own_counts() {
    let rig = filled();
    let now = rig.now();
    let all = asked(&rig, |read| queues(read, &rig.shared.vitals().registry, now)).unwrap();
    let shown: Vec<_> =
        all.iter().map(|queue| (queue.queue.as_str(), counts(&queue.tally), queue.oldest_ready)).collect();
    assert_eq!(shown, [("a", [2, 1, 0, 1], None), ("b", [2, 1, 1, 0], Some(now))]);
    // The first claim named no queue, so it asked `a` too; the second asked only `b`.
    let claims: Vec<_> = all.iter().map(|queue| queue.last_claim_at).collect();
    assert_eq!(claims, [Some(now.plus_ms(-1_000)), Some(now)]);
}

#[test]
fn a_queue_that_was_only_asked_for_is_listed() {
    let mut rig = Rig::new();
    let filter = Filter { queues: Some(vec!["empty".to_owned()]), types: None, space: None };
    rig.claim(Claim { filter, ..claim("w") });
    let start = rig.now();
    rig.advance(2_000);
    let rig = rig.restart(10);
    let all = asked(&rig, |read| queues(read, &rig.shared.vitals().registry, rig.now())).unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].queue.as_str(), &all[0].tally), ("empty", &Tally::default()));
    assert_eq!(all[0].last_claim_at, Some(start), "it outlives the restart");
}

#[test]
fn types_are_listed_with_settings_and_counts() {
    let rig = filled();
    let now = rig.now();
    let all = asked(&rig, |read| types(read, now)).unwrap();
    let shown: Vec<_> = all
        .iter()
        .map(|kind| (kind.kind.as_str(), counts(&kind.tally), kind.oldest_ready, kind.settings.is_some()))
        .collect();
    assert_eq!(
        shown,
        [
            ("t", [2, 1, 0, 1], None, false),
            ("u", [2, 1, 1, 0], Some(now), false),
            ("v", [0, 0, 0, 0], None, true)
        ]
    );
    assert_eq!(all[2].settings.as_ref().and_then(|settings| settings.max_retries), Some(9));
}

#[test]
fn workers_are_those_seen_and_those_that_hold() {
    let rig = filled();
    let now = rig.now();
    let all = asked(&rig, |read| workers(read, &rig.shared.vitals().registry)).unwrap();
    let names: Vec<_> = all.iter().map(|worker| (worker.worker.as_str(), worker.holds.len())).collect();
    assert_eq!(names, [("first", 0), ("second", 1)]);
    let first = all[0].seen.as_ref().unwrap();
    let then = Some(now.plus_ms(-1_000));
    assert_eq!((first.last_claim_at, first.last_report_at, first.agent.as_deref()), (then, then, None));
    let second = all[1].seen.as_ref().unwrap();
    assert_eq!((second.last_claim_at, second.last_report_at), (Some(now), None));
    assert_eq!(
        (second.agent.as_deref(), second.queues.as_deref()),
        (Some("sdk/1"), Some(&["b".to_owned()][..]))
    );

    // After a restart nobody has been seen, but a lease still names its holder.
    let rig = rig.restart(10);
    let all = asked(&rig, |read| workers(read, &rig.shared.vitals().registry)).unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].worker.as_str(), &all[0].seen, all[0].holds.len()), ("second", &None, 1));
}
