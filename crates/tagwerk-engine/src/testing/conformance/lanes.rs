//! Names of queues and types are interned once and for ever.

use std::collections::BTreeSet;

use super::Bench;
use super::steps::{undo, write};
use crate::row::Lane;
use crate::store::Tx;

fn intern(tx: &mut dyn Tx, names: &[(&str, &str)]) -> Vec<Lane> {
    let lanes = tx.intern(names).expect("lanes are interned");
    let given: Vec<(&str, &str)> = lanes.iter().map(|lane| (&*lane.queue, &*lane.kind)).collect();
    assert_eq!(given, names, "a lane carries the names that were asked for, in the same order");
    lanes
}

fn numbers(lanes: &[Lane]) -> BTreeSet<i64> {
    lanes.iter().map(|lane| lane.id.0).collect()
}

/// The same names are the same lane: within a call, in a later call, in a later transaction, after a reopen.
pub fn the_same_names_are_the_same_lane_for_ever(bench: &mut dyn Bench) {
    let names = [("mail", "send"), ("mail", "bounce"), ("pdf", "send"), ("mail", "send")];
    let first = write(bench, |tx| {
        let lanes = intern(tx, &names);
        assert_eq!(lanes[0], lanes[3]);
        assert_eq!(numbers(&lanes).len(), 3);
        assert_eq!(intern(tx, &names), lanes);
        lanes
    });
    assert_eq!(write(bench, |tx| intern(tx, &names)), first);
    bench.reopen();
    assert_eq!(write(bench, |tx| intern(tx, &names)), first);
    let fresh = write(bench, |tx| intern(tx, &[("pdf", "render")]));
    assert!(!numbers(&first).contains(&fresh[0].id.0), "the number of another lane was given again");
}

/// Names that look alike are different lanes, and every printable name works.
pub fn names_are_compared_byte_for_byte(bench: &mut dyn Bench) {
    let long = "ß".repeat(127);
    let names = [
        ("a", "bc"),
        ("ab", "c"),
        ("a", "BC"),
        ("A", "bc"),
        ("a", "bc "),
        ("1", "1"),
        ("1", "01"),
        ("1", "1.0"),
        ("default", "App\\Jobs\\SendInvoice"),
        ("default", "Überweisung 😀"),
        ("default", "U\u{308}berweisung 😀"),
        ("default", "'; drop table job; --"),
        ("default", "%"),
        ("default", long.as_str()),
    ];
    let lanes = write(bench, |tx| intern(tx, &names));
    assert_eq!(numbers(&lanes).len(), names.len());
    bench.reopen();
    assert_eq!(write(bench, |tx| intern(tx, &names)), lanes);
}

/// A lane of a transaction that rolled back is forgotten, also by whatever the store remembers in memory.
pub fn a_lane_of_a_rolled_back_transaction_is_forgotten(bench: &mut dyn Bench) {
    write(bench, |tx| intern(tx, &[("kept", "before")]));
    undo(bench, |tx| intern(tx, &[("lost", "one")]));
    let kept = write(bench, |tx| intern(tx, &[("kept", "after")]));
    let made = write(bench, |tx| intern(tx, &[("lost", "one"), ("kept", "last")]));
    assert_ne!(kept[0].id, made[0].id);
    bench.reopen();
    let names = [("kept", "before"), ("kept", "after"), ("lost", "one"), ("kept", "last")];
    let again = write(bench, |tx| intern(tx, &names));
    assert_eq!(numbers(&again).len(), 4);
    assert_eq!((again[1].id, again[2].id), (kept[0].id, made[0].id));
}

/// An empty call is no call.
pub fn nothing_is_interned_for_no_names(bench: &mut dyn Bench) {
    assert!(write(bench, |tx| intern(tx, &[])).is_empty());
}
