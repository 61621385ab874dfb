//! Fair keys: those of one queue and priority take turns, jobs without a key as if they had one of their own.

use tagwerk_core::{JobId, Status};

use super::Bench;
use super::gates::{add_all, claims, end_as, set, slots};
use super::steps::{all, at, ids, job, settled, take, wish, write};

/// Within a priority keys take turns, jobs without a key are a key of their own; a higher priority goes first.
pub fn fair_keys_take_turns(bench: &mut dyn Bench) {
    let fair = |key: &str| job().fair(key);
    let drafts =
        [fair("a"), fair("a"), fair("a"), fair("b"), fair("b"), job(), job(), fair("b").priority(30)];
    let added = add_all(bench, &drafts);
    let order = ids(&claims(bench, 8));
    let expected: Vec<JobId> = [7, 0, 5, 3, 1, 6, 4, 2].iter().map(|at| added[*at]).collect();
    assert_eq!(order, expected, "{added:?}");
}

/// A job that has gone leaves no trace in the turns: of one key the next in the order goes, wherever it stands.
pub fn a_job_that_has_gone_has_no_turn(bench: &mut dyn Bench) {
    let drafts = [
        job().fair("a").due(at(1)),
        job().fair("a").due(at(5)),
        job().fair("a").kind("other").due(at(3)),
        job().due(at(9)),
    ];
    let added = add_all(bench, &drafts);
    end_as(bench, added[0], |row| settled(row, Status::Cancelled, at(6)));
    let taken: Vec<JobId> = claims(bench, 3).iter().map(|row| row.job.id).collect();
    // The key goes first once, then both have had a turn.
    assert_eq!(taken, [added[2], added[3], added[1]]);
}

/// Nor does it stand for its queue, whether it went before it was due or after.
pub fn a_job_that_has_gone_stands_for_no_queue(bench: &mut dyn Bench) {
    let of_queue = |key: &str| job().queue("x").fair(key);
    let turns = add_all(bench, &[of_queue("a").due(at(1)), of_queue("b").due(at(2))]);
    assert_eq!(
        claims(bench, 2).iter().map(|row| row.job.id).collect::<Vec<_>>(),
        turns,
        "then it is the turn of a"
    );
    let drafts = [
        of_queue("a").due(at(8)),
        of_queue("b").due(at(4)),
        job().queue("y").due(at(6)),
        of_queue("a").due(at(40)),
    ];
    let added = add_all(bench, &drafts);
    end_as(bench, added[0], |row| settled(row, Status::Cancelled, at(6)));
    end_as(bench, added[3], |row| settled(row, Status::Cancelled, at(6)));
    let one =
        |bench: &mut dyn Bench, now: i64| write(bench, |tx| take(tx, at(now), wish(&all(), 1)))[0].job.id;
    assert_eq!(one(bench, 10), added[1]);
    let later = add_all(bench, &[of_queue("b").due(at(30))]);
    assert_eq!(one(bench, 10), added[2]);
    let last = add_all(bench, &[job().queue("y").due(at(35))]);
    assert_eq!([one(bench, 50), one(bench, 50)], [later[0], last[0]]);
}

/// Jobs without a key have a turn too, and one of them that has gone takes it from nobody.
pub fn a_job_without_a_key_that_has_gone_stands_for_no_queue(bench: &mut dyn Bench) {
    set(bench, "crm", &slots(9));
    for (n, without_key) in (0_i64..).zip([job(), job().limit("crm")]) {
        let base = n * 100;
        let of_key = |due: i64| job().queue("x").fair("a").due(at(base + due));
        let one =
            |bench: &mut dyn Bench| write(bench, |tx| take(tx, at(base + 10), wish(&all(), 1)))[0].job.id;
        let turn = add_all(bench, &[of_key(1)]);
        assert_eq!(one(bench), turn[0], "then it is the turn of those without a key");
        let drafts =
            [without_key.queue("x").due(at(base + 8)), of_key(4), job().queue("y").due(at(base + 6))];
        let added = add_all(bench, &drafts);
        end_as(bench, added[0], |row| settled(row, Status::Cancelled, at(base + 6)));
        assert_eq!([one(bench), one(bench)], [added[1], added[2]]);
    }
}

/// The same in one claim of many.
pub fn fair_keys_take_turns_within_a_claim(bench: &mut dyn Bench) {
    let fair = |key: &str| job().fair(key);
    let added = add_all(bench, &[fair("a"), fair("a"), fair("a"), fair("b"), fair("c").kind("other")]);
    let taken = write(bench, |tx| take(tx, at(10), wish(&all(), 5)));
    let expected: Vec<JobId> = [0, 3, 4, 1, 2].iter().map(|at| added[*at]).collect();
    assert_eq!(ids(&taken), expected);
}

/// One tenant's flood does not hold up another's first job.
pub fn a_late_tenant_starts_within_two_claims(bench: &mut dyn Bench) {
    let flood = vec![job().fair("flood"); 300];
    add_all(bench, &flood);
    claims(bench, 50);
    let late = add_all(bench, &[job().fair("late")]);
    assert!(ids(&claims(bench, 2)).contains(&late[0]));
}

/// Queues do not take turns with each other: their best jobs compare by priority, due time and id.
pub fn keys_of_different_queues_do_not_meet(bench: &mut dyn Bench) {
    let added = add_all(
        bench,
        &[
            job().queue("x").fair("a"),
            job().queue("x").fair("a"),
            job().queue("y").fair("a"),
            job().queue("z"),
        ],
    );
    assert_eq!(ids(&claims(bench, 4)), added);
}
