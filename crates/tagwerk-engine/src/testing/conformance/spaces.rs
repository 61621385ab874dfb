//! Spaces: lanes of the same queue and type, each with its own jobs, and claims that see one of them or all.

use tagwerk_core::{JobId, Status};

use super::Bench;
use super::steps::{Draft, add, at, ids, job, owned, read, take, undo, wish, write};
use crate::row::Lane;
use crate::store::{Filter, Tx};

fn intern(tx: &mut dyn Tx, space: Option<&str>) -> Vec<Lane> {
    tx.intern_in(space, &[("q", "t"), ("q", "u")]).expect("lanes are interned")
}

fn of(space: Option<&str>, queues: Option<&[&str]>, types: Option<&[&str]>) -> Filter {
    Filter { queues: queues.map(owned), types: types.map(owned), space: space.map(str::to_owned) }
}

fn add_all(bench: &mut dyn Bench, drafts: &[Draft]) -> Vec<JobId> {
    write(bench, |tx| ids(&add(tx, drafts)))
}

/// Takes what there is, and lets it be taken again.
fn peek(bench: &mut dyn Bench, filter: &Filter) -> Vec<JobId> {
    undo(bench, |tx| ids(&take(tx, at(10), wish(filter, 100))))
}

/// The same queue and type are there once in each space, and carry its name, over a reopen.
pub fn a_space_has_lanes_of_its_own(bench: &mut dyn Bench) {
    let spaces = [None, Some("a"), Some("b"), Some("A")];
    let all = |tx: &mut dyn Tx| spaces.map(|space| intern(tx, space));
    let lanes = write(bench, all);
    for (lanes, space) in lanes.iter().zip(spaces) {
        assert!(lanes.iter().all(|lane| lane.space.as_deref() == space && lane.id == lane.class));
    }
    let mut numbers: Vec<i64> = lanes.iter().flatten().map(|lane| lane.id.0).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 8, "{lanes:?}");
    assert_eq!(write(bench, all), lanes);
    bench.reopen();
    assert_eq!(write(bench, all), lanes);
}

/// What the store remembers of it is forgotten too, and nothing of others is.
pub fn a_lane_of_a_space_that_rolls_back_is_forgotten(bench: &mut dyn Bench) {
    let kept = write(bench, |tx| intern(tx, None));
    undo(bench, |tx| intern(tx, Some("lost")));
    let other = write(bench, |tx| intern(tx, Some("other")));
    let made = write(bench, |tx| intern(tx, Some("lost")));
    bench.reopen();
    let again = write(bench, |tx| [None, Some("other"), Some("lost")].map(|space| intern(tx, space)));
    assert_eq!(again, [kept, other, made]);
}

fn crowd() -> Vec<Draft> {
    let draft = |queue: &str, kind: &str| job().queue(queue).kind(kind);
    vec![
        draft("q", "t"),
        draft("q", "t").space("a"),
        draft("q", "u").space("a"),
        draft("p", "t").space("a"),
        draft("q", "t").space("b"),
        draft("p", "u").space("b"),
        draft("p", "u"),
    ]
}

/// A claim with a space gets jobs of that space, whatever else it names. One without gets all, in order.
pub fn a_claim_takes_from_its_space_only(bench: &mut dyn Bench) {
    let jobs = add_all(bench, &crowd());
    let some = |places: &[usize]| places.iter().map(|place| jobs[*place]).collect::<Vec<_>>();
    for _ in 0..2 {
        for (filter, expected) in [
            (of(None, None, None), some(&[0, 1, 2, 3, 4, 5, 6])),
            (of(Some("a"), None, None), some(&[1, 2, 3])),
            (of(Some("b"), None, None), some(&[4, 5])),
            (of(Some("c"), None, None), vec![]),
            (of(Some("A"), None, None), vec![]),
            (of(Some("a"), Some(&["q"]), None), some(&[1, 2])),
            (of(Some("a"), None, Some(&["t"])), some(&[1, 3])),
            (of(Some("a"), Some(&["q"]), Some(&["t"])), some(&[1])),
            (of(Some("b"), Some(&["q"]), Some(&["u"])), vec![]),
            (of(None, Some(&["q"]), Some(&["t"])), some(&[0, 1, 4])),
            (of(None, Some(&["p"]), None), some(&[3, 5, 6])),
            (of(None, None, Some(&["u"])), some(&[2, 5, 6])),
        ] {
            assert_eq!(peek(bench, &filter), expected, "{filter:?}");
        }
        bench.reopen();
    }
    let late = add_all(bench, &[job().space("late").due(at(500)), job().space("later").due(at(900))]);
    let due = |bench: &mut dyn Bench, space| {
        write(bench, |tx| tx.next_due(at(10), &of(Some(space), None, None)).expect("a time is found"))
    };
    assert_eq!((due(bench, "late"), due(bench, "later")), (Some(at(500)), Some(at(900))));
    assert_eq!(due(bench, "none"), None);
    assert_eq!(peek(bench, &of(Some("late"), None, None)), []);
    let given = undo(bench, |tx| ids(&take(tx, at(600), wish(&of(Some("late"), None, None), 9))));
    assert_eq!(given, [late[0]]);
}

/// Lanes with limits and fair keys belong to the space of their jobs.
pub fn limits_and_fair_keys_are_within_a_space(bench: &mut dyn Bench) {
    let both = |space: &str| [job().space(space).limit("crm"), job().space(space).fair("k")];
    let a = add_all(bench, &both("a"));
    let b = add_all(bench, &both("b"));
    let outside = add_all(bench, &[job().limit("crm"), job().fair("k")]);
    for _ in 0..2 {
        let sorted = |bench: &mut dyn Bench, space: Option<&str>| {
            let mut found = peek(bench, &of(space, None, None));
            found.sort_unstable();
            found
        };
        assert_eq!(sorted(bench, Some("a")), a);
        assert_eq!(sorted(bench, Some("b")), b);
        assert_eq!(sorted(bench, None), [&a[..], &b[..], &outside[..]].concat());
        bench.reopen();
    }
}

/// Rows are counted by lanes, so by space.
pub fn rows_of_spaces_are_counted_apart(bench: &mut dyn Bench) {
    add_all(bench, &crowd());
    let counts = read(bench, |read| read.counts().expect("rows are counted"));
    for (space, expected) in [(None, 2), (Some("a"), 3), (Some("b"), 2)] {
        let of_space = counts.iter().filter(|(lane, ..)| lane.space.as_deref() == space);
        let pending = of_space.filter(|(_, status, _)| *status == Status::Pending);
        assert_eq!(pending.map(|(.., n)| n).sum::<i64>(), expected, "{space:?}");
    }
}
