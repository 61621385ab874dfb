//! Idempotency keys: one owner each, decided by the store's unique constraint; tombstones outlive their jobs.

use tagwerk_core::idempotency::{Scope, Standing};
use tagwerk_core::{JobId, Status};

use super::Bench;
use super::steps::{add_one, at, job, read, undo, write};
use crate::row::{KeyRow, KeyWrite, Tombstone};
use crate::store::{StoreError, Tx};

fn key(name: &str, owner: i64) -> KeyRow {
    KeyRow {
        key: name.to_owned(),
        owner: JobId(owner),
        scope: Scope::Ttl,
        ttl_ms: 86_400_000,
        fingerprint: [7; 16],
        tombstone: None,
    }
}

fn buried(name: &str, owner: i64) -> KeyRow {
    let standing = Standing { status: Status::Completed, started: true, finished_at: Some(at(5)) };
    KeyRow { tombstone: Some(Tombstone { kind: "work".to_owned(), standing }), ..key(name, owner) }
}

fn put(bench: &mut dyn Bench, writes: &[KeyWrite]) {
    write(bench, |tx| tx.put_keys(writes).expect("keys are written"));
}

fn expect_conflict(bench: &mut dyn Bench, writes: &[KeyWrite]) {
    let refused = undo(bench, |tx| tx.put_keys(writes));
    assert!(matches!(refused, Err(StoreError::Conflict)), "{refused:?} for {writes:?}");
}

fn found(bench: &mut dyn Bench, names: &[&str]) -> Vec<Option<KeyRow>> {
    let in_snapshot: Vec<Option<KeyRow>> =
        read(bench, |view| names.iter().map(|name| view.key(name).expect("a key is read")).collect());
    let in_tx = undo(bench, |tx| tx.keys(names).expect("keys are read"));
    assert_eq!(in_snapshot, in_tx);
    in_tx
}

fn delete(name: &str, owner: i64) -> KeyWrite {
    KeyWrite::Delete { key: name.to_owned(), owner: JobId(owner) }
}

fn replace(row: KeyRow, from: i64) -> KeyWrite {
    KeyWrite::Replace { row, from: JobId(from) }
}

/// Every field comes back, with and without tombstone, for every scope and status, over a reopen.
pub fn f119_every_field_of_a_key_comes_back(bench: &mut dyn Bench) {
    let mut rows = Vec::new();
    for (index, scope) in (1_u8..).zip(Scope::ALL) {
        let live = KeyRow {
            scope: *scope,
            ttl_ms: i64::MAX - i64::from(index),
            fingerprint: [0x80 | index; 16],
            ..key(&format!("live-{index}"), 1_000 + i64::from(index))
        };
        rows.push(live);
    }
    for (index, status) in (1_u8..).zip(Status::ALL) {
        let standing = Standing {
            status,
            started: index % 2 == 0,
            finished_at: (index > 2).then(|| at(i64::from(index))),
        };
        let tombstone = Tombstone { kind: format!("App\\Jobs\\{index}"), standing };
        rows.push(KeyRow {
            tombstone: Some(tombstone),
            ..key(&format!("dead-{index}"), 2_000 + i64::from(index))
        });
    }
    let writes: Vec<KeyWrite> = rows.iter().cloned().map(KeyWrite::Insert).collect();
    put(bench, &writes);
    bench.reopen();
    let names: Vec<&str> = rows.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(found(bench, &names), rows.iter().cloned().map(Some).collect::<Vec<_>>());
}

/// F031: the second insert of a key loses, whoever looked before.
pub fn f031_a_key_is_inserted_once(bench: &mut dyn Bench) {
    put(bench, &[KeyWrite::Insert(key("k", 1))]);
    expect_conflict(bench, &[KeyWrite::Insert(key("k", 2))]);
    expect_conflict(bench, &[KeyWrite::Insert(key("k", 1))]);
    bench.reopen();
    expect_conflict(bench, &[KeyWrite::Insert(key("k", 3))]);
    assert_eq!(found(bench, &["k"]), [Some(key("k", 1))]);
}

/// A key that is given twice in one call loses as well.
pub fn a_key_is_inserted_once_within_a_call(bench: &mut dyn Bench) {
    expect_conflict(bench, &[KeyWrite::Insert(key("k", 1)), KeyWrite::Insert(key("k", 2))]);
    assert_eq!(found(bench, &["k"]), [None]);
}

/// One conflict among several writes: none of them is there.
pub fn keys_are_written_all_or_none(bench: &mut dyn Bench) {
    put(bench, &[KeyWrite::Insert(key("taken", 1)), KeyWrite::Insert(key("mine", 2))]);
    let writes = [
        KeyWrite::Insert(key("new", 3)),
        replace(key("mine", 3), 2),
        KeyWrite::Insert(key("taken", 3)),
        delete("mine", 3),
    ];
    expect_conflict(bench, &writes);
    assert_eq!(found(bench, &["taken", "mine", "new"]), [Some(key("taken", 1)), Some(key("mine", 2)), None]);
}

/// A key is taken over from the owner that was read, and from nobody else.
pub fn a_key_is_replaced_only_from_its_owner(bench: &mut dyn Bench) {
    put(bench, &[KeyWrite::Insert(key("k", 1))]);
    expect_conflict(bench, &[replace(key("k", 3), 2)]);
    expect_conflict(bench, &[replace(key("nobody", 3), 1)]);
    put(bench, &[replace(key("k", 2), 1)]);
    expect_conflict(bench, &[replace(key("k", 3), 1)]);
    assert_eq!(found(bench, &["k", "nobody"]), [Some(key("k", 2)), None]);
    put(bench, &[replace(buried("k", 2), 2)]);
    assert_eq!(found(bench, &["k"]), [Some(buried("k", 2))]);
    put(bench, &[replace(key("k", 9), 2)]);
    bench.reopen();
    assert_eq!(found(bench, &["k"]), [Some(key("k", 9))]);
}

/// Only the owner frees a key.
pub fn a_key_is_deleted_only_by_its_owner(bench: &mut dyn Bench) {
    put(bench, &[KeyWrite::Insert(key("k", 1)), KeyWrite::Insert(key("other", 1))]);
    expect_conflict(bench, &[delete("k", 2)]);
    expect_conflict(bench, &[delete("nobody", 1)]);
    put(bench, &[delete("k", 1)]);
    assert_eq!(found(bench, &["k", "other"]), [None, Some(key("other", 1))]);
    put(bench, &[KeyWrite::Insert(key("k", 5))]);
    bench.reopen();
    assert_eq!(found(bench, &["k"]), [Some(key("k", 5))]);
}

/// Freed and taken again in one call: the writes are done in their order.
pub fn a_key_is_freed_and_taken_in_one_call(bench: &mut dyn Bench) {
    put(bench, &[KeyWrite::Insert(key("k", 1))]);
    put(bench, &[delete("k", 1), KeyWrite::Insert(key("k", 2)), replace(key("k", 3), 2)]);
    assert_eq!(found(bench, &["k"]), [Some(key("k", 3))]);
}

/// Keys are compared byte for byte.
pub fn keys_are_compared_byte_for_byte(bench: &mut dyn Bench) {
    let long = "ä".repeat(127);
    let names = ["k", "K", "k ", " k", "ä", "a\u{308}", "1", "01", "1.0", "%", "'", long.as_str()];
    for (owner, name) in (1..).zip(names) {
        put(bench, &[KeyWrite::Insert(key(name, owner))]);
    }
    let rows: Vec<Option<KeyRow>> = (1..).zip(names).map(|(owner, name)| Some(key(name, owner))).collect();
    bench.reopen();
    assert_eq!(found(bench, &names), rows);
}

/// Keys come in the order of the question, also twice, with a gap for each that is not there.
pub fn keys_answer_in_the_order_of_the_question(bench: &mut dyn Bench) {
    put(bench, &[KeyWrite::Insert(key("a", 1)), KeyWrite::Insert(key("b", 2))]);
    let rows = [Some(key("b", 2)), None, Some(key("a", 1)), Some(key("b", 2))];
    assert_eq!(found(bench, &["b", "x", "a", "b"]), rows);
    assert_eq!(found(bench, &[]), []);
}

/// F037: a key and its job are there together or not at all.
pub fn f037_a_key_that_rolls_back_is_free(bench: &mut dyn Bench) {
    undo(bench, |tx| {
        let row = add_one(tx, job().key("k"));
        tx.put_keys(&[KeyWrite::Insert(key("k", row.job.id.0))]).expect("a key is written");
        assert_eq!(tx.keys(&["k"]).expect("keys are read"), [Some(key("k", row.job.id.0))]);
    });
    assert_eq!(found(bench, &["k"]), [None]);
    put(bench, &[KeyWrite::Insert(key("k", 8))]);
    assert_eq!(found(bench, &["k"]), [Some(key("k", 8))]);
}

fn tombstones(tx: &mut dyn Tx, after: &str, limit: usize) -> Vec<String> {
    let rows = tx.tombstones(after, limit).expect("keys are read");
    assert!(rows.iter().all(|row| row.tombstone.is_some()));
    rows.into_iter().map(|row| row.key).collect()
}

/// Only keys with a tombstone, in byte order, page by page.
pub fn tombstones_are_read_page_by_page_in_key_order(bench: &mut dyn Bench) {
    let names = ["b", "B", "ä", "a", "c", "aa"];
    let mut writes: Vec<KeyWrite> =
        (1..).zip(names).map(|(owner, name)| KeyWrite::Insert(buried(name, owner))).collect();
    writes.extend(["0", "bb", "z"].map(|name| KeyWrite::Insert(key(name, 99))));
    put(bench, &writes);
    undo(bench, |tx| {
        assert_eq!(tombstones(tx, "", 99), ["B", "a", "aa", "b", "c", "ä"]);
        assert_eq!(tombstones(tx, "", 2), ["B", "a"]);
        assert_eq!(tombstones(tx, "a", 2), ["aa", "b"]);
        assert_eq!(tombstones(tx, "ab", 2), ["b", "c"]);
        assert_eq!(tombstones(tx, "ä", 2), Vec::<String>::new());
        assert_eq!(tx.tombstones("b", 1).expect("keys are read"), [buried("c", 5)]);
    });
    put(bench, &[delete("aa", 6), replace(key("a", 7), 4), replace(buried("z", 99), 99)]);
    bench.reopen();
    assert_eq!(undo(bench, |tx| tombstones(tx, "", 99)), ["B", "b", "c", "z", "ä"]);
}
