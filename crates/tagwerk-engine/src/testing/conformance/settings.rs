//! Settings of types, the mark of service, the last claims of queues.

use tagwerk_core::idempotency::Scope;
use tagwerk_core::{Jitter, OnHeadFailure, OnUnknown, RetryOverrides, Timestamp};

use super::Bench;
use super::steps::{at, priority, read, undo, write};
use crate::row::{LimitRef, TypeSettings};

/// Settings with everything set.
fn odd_settings(salt: i64) -> TypeSettings {
    let small = u32::try_from(salt).expect("salts are small") * 100;
    TypeSettings {
        queue: Some(format!("queue-{salt}")),
        priority: Some(priority(42)),
        max_retries: Some(small + 1),
        max_lease_losses: Some(small + 2),
        lease_ms: Some(1_000 * salt + 3),
        timeout_ms: Some(1_000 * salt + 4),
        max_age_ms: Some(1_000 * salt + 5),
        retry: RetryOverrides {
            base_ms: Some(1_000 * salt + 6),
            factor: Some(1.7),
            cap_ms: Some(1_000 * salt + 7),
            jitter: Some(Jitter::None),
        },
        on_unknown: Some(OnUnknown::Review),
        handles_verify: true,
        scope: Some(Scope::Waiting),
        ttl_ms: Some(1_000 * salt + 8),
        owner: Some(format!("team {salt} 😀")),
        queues: Some(vec![format!("queue-{salt}"), "Q.2_-".to_owned()]),
        priority_ceiling: Some(priority(43)),
        payload_max_bytes: Some(small + 9),
        limits: vec![LimitRef::parse("api"), LimitRef::parse(&format!("crm:a b,c:{salt} ß"))],
        fair_key: Some(format!("fair {salt}")),
        ordering_key: Some(format!("order:{salt}").into()),
        on_head_failure: Some(OnHeadFailure::Skip),
    }
}

fn types(bench: &mut dyn Bench) -> Vec<(String, TypeSettings)> {
    let in_tx = undo(bench, |tx| tx.types().expect("types are read"));
    assert_eq!(read(bench, |view| view.types().expect("types are read")), in_tx);
    in_tx
}

fn put(bench: &mut dyn Bench, kind: &str, settings: Option<&TypeSettings>) -> bool {
    write(bench, |tx| tx.put_type(kind, settings).expect("settings are written"))
}

/// Every field of a type's settings comes back, by name in byte order; nothing set stays nothing set.
pub fn f119_every_setting_of_a_type_comes_back(bench: &mut dyn Bench) {
    assert_eq!(types(bench), []);
    let settings = [
        ("send-invoice", odd_settings(1)),
        ("App\\Jobs\\Send", TypeSettings::default()),
        ("ärger", odd_settings(2)),
        ("Send", TypeSettings { max_retries: Some(0), ..TypeSettings::default() }),
    ];
    for (kind, settings) in &settings {
        assert!(!put(bench, kind, Some(settings)), "there were none before");
    }
    bench.reopen();
    let named = |index: usize| (settings[index].0.to_owned(), settings[index].1.clone());
    assert_eq!(types(bench), [named(1), named(3), named(0), named(2)]);
}

/// Settings are overwritten as a whole and deleted; each write says whether there were any before.
pub fn settings_are_overwritten_and_deleted(bench: &mut dyn Bench) {
    assert!(!put(bench, "a", None), "there was nothing to delete");
    assert!(!put(bench, "a", Some(&odd_settings(1))));
    assert!(!put(bench, "b", Some(&odd_settings(2))));
    let other = TypeSettings { owner: Some("somebody".to_owned()), ..TypeSettings::default() };
    assert!(put(bench, "a", Some(&other)));
    undo(bench, |tx| {
        assert!(tx.put_type("a", None).expect("settings are deleted"));
        assert_eq!(tx.types().expect("types are read").len(), 1);
    });
    bench.reopen();
    assert_eq!(types(bench), [("a".to_owned(), other), ("b".to_owned(), odd_settings(2))]);
    assert!(put(bench, "a", None));
    assert!(!put(bench, "a", None));
    assert_eq!(types(bench), [("b".to_owned(), odd_settings(2))]);
}

fn served(bench: &mut dyn Bench) -> Option<Timestamp> {
    let in_tx = undo(bench, |tx| tx.served_until().expect("the mark is read"));
    assert_eq!(read(bench, |view| view.served_until().expect("the mark is read")), in_tx);
    in_tx
}

/// The mark of service: none at first, then what was written last, also backwards.
pub fn the_mark_of_service_is_what_was_written_last(bench: &mut dyn Bench) {
    assert_eq!(served(bench), None);
    write(bench, |tx| {
        tx.set_served(at(5), &[]).expect("the mark is written");
        assert_eq!(tx.served_until().expect("the mark is read"), Some(at(5)));
    });
    undo(bench, |tx| tx.set_served(at(9), &[]).expect("the mark is written"));
    assert_eq!(served(bench), Some(at(5)));
    bench.reopen();
    assert_eq!(served(bench), Some(at(5)));
    write(bench, |tx| tx.set_served(at(3), &[]).expect("the mark is written"));
    assert_eq!(served(bench), Some(at(3)));
}

/// F045: a queue is known from its first job or its first claim on, with the last claim as it was last written.
pub fn f045_queues_are_known_with_their_last_claim(bench: &mut dyn Bench) {
    write(bench, |tx| tx.intern(&[("b", "x"), ("a", "x"), ("b", "y")]).expect("lanes are interned"));
    assert_eq!(queues(bench), [("a".to_owned(), None), ("b".to_owned(), None)]);
    let claims = |claims: &[(&str, i64)]| -> Vec<(String, Timestamp)> {
        claims.iter().map(|(queue, ms)| ((*queue).to_owned(), at(*ms))).collect()
    };
    write(bench, |tx| tx.set_served(at(9), &claims(&[("b", 4), ("c", 5)])).expect("claims are written"));
    write(bench, |tx| tx.set_served(at(9), &[]).expect("the mark is written"));
    undo(bench, |tx| tx.set_served(at(9), &claims(&[("a", 7)])).expect("claims are written"));
    bench.reopen();
    let expected = [("a".to_owned(), None), ("b".to_owned(), Some(at(4))), ("c".to_owned(), Some(at(5)))];
    assert_eq!(queues(bench), expected);
    write(bench, |tx| tx.set_served(at(9), &claims(&[("b", 8)])).expect("claims are written"));
    assert_eq!(queues(bench)[1], ("b".to_owned(), Some(at(8))));
}

fn queues(bench: &mut dyn Bench) -> Vec<(String, Option<Timestamp>)> {
    let mut queues = read(bench, |view| view.queues().expect("queues are read"));
    queues.sort();
    queues
}
