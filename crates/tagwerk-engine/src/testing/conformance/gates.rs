//! Limits: what is let through, in which order, and when time alone changes that.

use tagwerk_core::gate::{LimitSettings, Rate};
use tagwerk_core::{JobId, Status};

use super::Bench;
use super::steps::{
    Draft, add, add_one, all, at, ids, job, load, of_types, put, requeued, settled, started, take, undo,
    wish, write,
};
use crate::row::{JobRow, LimitRef};
use crate::store::{ClaimQuery, Tx};

pub(super) fn slots(max_running: u32) -> LimitSettings {
    LimitSettings { max_running: Some(max_running), rate: None }
}

fn rate(count: u32, per_ms: i64) -> LimitSettings {
    LimitSettings { max_running: None, rate: Some(Rate { count, per_ms, spread: false }) }
}

pub(super) fn set(bench: &mut dyn Bench, name: &str, settings: &LimitSettings) -> bool {
    write(bench, |tx| tx.put_limit(name, Some(settings)).expect("a limit is written"))
}

pub(super) fn add_all(bench: &mut dyn Bench, drafts: &[Draft]) -> Vec<JobId> {
    write(bench, |tx| ids(&add(tx, drafts)))
}

/// Claims one after the other, each in a transaction of its own.
pub(super) fn claims(bench: &mut dyn Bench, n: usize) -> Vec<JobRow> {
    (0..n).flat_map(|_| write(bench, |tx| take(tx, at(10), wish(&all(), 1)))).collect()
}

fn end(bench: &mut dyn Bench, id: JobId) {
    end_as(bench, id, |row| settled(row, Status::Completed, at(20)));
}

pub(super) fn end_as(bench: &mut dyn Bench, id: JobId, become_of: impl FnOnce(&JobRow) -> JobRow) {
    write(bench, |tx| {
        let before = load(tx, id).expect("the job is there");
        put(tx, &before, &become_of(&before));
    });
}

/// A limited job carries its limits and its fair key, as they were given, over a reopen.
pub fn a_special_lane_carries_its_names(bench: &mut dyn Bench) {
    let draft = || job().limit("crm:tenant-42").limit("api").fair("ß");
    let row = write(bench, |tx| {
        let first = add_one(tx, draft());
        let again = add_one(tx, draft());
        let plain = add_one(tx, job());
        assert_eq!(first.lane, again.lane, "the same names are the same lane");
        assert_eq!(first.lane.class, plain.lane.id, "it counts with the plain lane of its queue and type");
        assert!(first.lane.id.is_special() && !plain.lane.id.is_special());
        first
    });
    bench.reopen();
    let found = write(bench, |tx| tx.load(&[row.job.id]).expect("a row is read").remove(0));
    let found = found.expect("it is there").expect("it can be read");
    assert_eq!(found.lane, row.lane);
    let names: Vec<String> = found.lane.limits().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["api", "crm:tenant-42"]);
    assert_eq!(found.lane.fair_key(), Some("ß"));
}

/// A lane that rolls back was never there, and its number may be anybody's.
pub fn a_special_lane_that_rolls_back_is_not_there(bench: &mut dyn Bench) {
    undo(bench, |tx| add_one(tx, job().limit("lost").fair("lost")));
    let kept = write(bench, |tx| add_one(tx, job().limit("kept")));
    assert_eq!(kept.lane.limits(), [LimitRef::parse("kept")]);
    assert_eq!(write(bench, |tx| take(tx, at(10), wish(&all(), 5))).len(), 1);
}

/// Settings come back, are overwritten and go.
pub fn limits_are_written_and_deleted(bench: &mut dyn Bench) {
    assert!(!set(bench, "b", &slots(3)));
    assert!(!set(
        bench,
        "a",
        &LimitSettings {
            max_running: Some(u32::MAX),
            rate: Some(Rate { count: 1_000_000, per_ms: 86_400_000, spread: true }),
        }
    ));
    assert!(set(bench, "b", &rate(20, 1_000)));
    bench.reopen();
    let found = write(bench, |tx| tx.limits().expect("limits are read"));
    let names: Vec<&str> = found.iter().map(|limit| limit.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(found[1].settings, rate(20, 1_000));
    assert!(found[0].settings.rate.is_some_and(|rate| rate.spread && rate.per_ms == 86_400_000));
    undo(bench, |tx| tx.put_limit("a", None).expect("a limit is deleted"));
    assert!(
        write(bench, |tx| tx.put_limit("a", None).expect("a limit is deleted")),
        "the first was rolled back"
    );
    assert!(!write(bench, |tx| tx.put_limit("a", None).expect("there is none")));
}

/// Never more than `max_running` run, whoever asks and in which order; what ends lets the next one through.
pub fn a_full_limit_holds_back_its_jobs_only(bench: &mut dyn Bench) {
    set(bench, "crm", &slots(2));
    let limited = add_all(bench, &vec![job().limit("crm"); 4]);
    let free = add_all(bench, &[job()]);
    let first = write(bench, |tx| take(tx, at(10), wish(&all(), 10)));
    assert_eq!(ids(&first), [limited[0], limited[1], free[0]], "a limited job never blocks one that is not");
    assert_eq!(claims(bench, 1), []);
    end(bench, limited[1]);
    assert_eq!(ids(&claims(bench, 2)), [limited[2]]);
    bench.reopen();
    assert_eq!(claims(bench, 1), [], "the slots are counted from the rows");
    end(bench, limited[0]);
    end(bench, limited[2]);
    assert_eq!(ids(&claims(bench, 2)), [limited[3]]);
}

/// A slot is given back whatever the running job becomes, and not twice.
pub fn a_slot_is_free_whatever_becomes_of_its_job(bench: &mut dyn Bench) {
    set(bench, "crm", &slots(1));
    let limited = add_all(bench, &vec![job().limit("crm"); 5]);
    for status in [Status::Completed, Status::Failed, Status::Cancelled] {
        let taken = claims(bench, 2);
        assert_eq!(taken.len(), 1);
        end_as(bench, taken[0].job.id, |row| settled(row, status, at(20)));
    }
    assert_eq!(ids(&claims(bench, 2)), limited[3..4]);
    end_as(bench, limited[3], |row| requeued(row, at(5)));
    assert_eq!(ids(&claims(bench, 2)), [limited[4]], "it waits with a later due time by now");
}

/// Partitions count by themselves under the settings of their name.
pub fn partitions_count_by_themselves(bench: &mut dyn Bench) {
    set(bench, "crm", &slots(1));
    let ids_of = |tx: &mut dyn Tx| {
        ids(&add(tx, &[job().limit("crm:a"), job().limit("crm:a"), job().limit("crm:b"), job().limit("crm")]))
    };
    let added = write(bench, ids_of);
    let taken = write(bench, |tx| take(tx, at(10), wish(&all(), 10)));
    assert_eq!(ids(&taken), [added[0], added[2], added[3]]);
    let uses = write(bench, |tx| tx.limit_use("crm").expect("uses are read"));
    let uses: Vec<(String, u32)> = uses.iter().map(|of| (of.limit.to_string(), of.running)).collect();
    assert_eq!(uses, [("crm".to_owned(), 1), ("crm:a".to_owned(), 1), ("crm:b".to_owned(), 1)]);
    assert_eq!(write(bench, |tx| tx.limit_jobs("crm").expect("jobs are counted")), (1, 3));
}

/// A job that waits for its turn in the order of a key names its limits like any other.
pub fn a_blocked_job_counts_for_its_limit(bench: &mut dyn Bench) {
    set(bench, "crm", &slots(5));
    write(bench, |tx| {
        add_one(tx, job().limit("other").ordered("k"));
        let row = add_one(tx, job().limit("crm").ordered("k"));
        let mut blocked = row.clone();
        blocked.order.as_mut().expect("it has a key").blocked = true;
        put(tx, &row, &blocked);
    });
    assert_eq!(write(bench, |tx| tx.limit_jobs("crm").expect("jobs are counted")), (1, 0));
}

/// A job with two limits needs room in both, and takes a slot of neither while it waits.
pub fn a_job_with_two_limits_needs_both(bench: &mut dyn Bench) {
    set(bench, "all", &slots(3));
    set(bench, "one", &slots(1));
    let both = add_all(bench, &vec![job().limit("all").limit("one"); 3]);
    let single = add_all(bench, &vec![job().limit("all"); 3]);
    let taken = write(bench, |tx| take(tx, at(10), wish(&all(), 10)));
    assert_eq!(ids(&taken), [both[0], single[0], single[1]]);
    end(bench, both[0]);
    assert_eq!(ids(&claims(bench, 3)), [both[1]], "the older one, now that both have room");
    end(bench, single[0]);
    assert_eq!(ids(&claims(bench, 3)), [single[2]]);
}

/// Many lanes behind one limit: each free slot goes to the first of all of them in claim order.
pub fn a_crowd_behind_a_limit_is_served_in_order(bench: &mut dyn Bench) {
    set(bench, "crm", &slots(1));
    let kinds: Vec<String> = (0..40).map(|n| format!("t{}", n * 7 % 40)).collect();
    let drafts: Vec<Draft> = kinds.iter().map(|kind| job().limit("crm").kind(kind)).collect();
    let added = add_all(bench, &drafts);
    let urgent = add_all(bench, &[job().limit("crm").kind("t3").priority(30)]);
    let mut order = Vec::new();
    for _ in 0..41 {
        let row = claims(bench, 3);
        assert_eq!(row.len(), 1);
        order.extend(ids(&row));
        end(bench, row[0].job.id);
    }
    assert_eq!(order, [urgent, added].concat());
}

/// A free slot that no worker of one type wants is there for another type.
pub fn a_free_slot_is_not_kept_for_a_type_that_nobody_wants(bench: &mut dyn Bench) {
    set(bench, "crm", &slots(1));
    let mut drafts: Vec<Draft> = (0..20).map(|n| job().limit("crm").kind(&format!("unwanted{n}"))).collect();
    drafts.push(job().limit("crm").kind("wanted"));
    drafts.push(job().limit("crm").kind("wanted"));
    let added = add_all(bench, &drafts);
    let first = claims(bench, 1);
    assert_eq!(ids(&first), added[..1]);
    assert_eq!(claims(bench, 1), []);
    end(bench, added[0]);
    let wanted = of_types(&["wanted"]);
    assert_eq!(ids(&write(bench, |tx| take(tx, at(10), wish(&wanted, 2)))), added[20..21]);
    end(bench, added[20]);
    assert_eq!(ids(&claims(bench, 1)), added[1..2], "all types again");
}

/// What rolls back has taken no slot and spent no start.
pub fn a_claim_that_rolls_back_has_taken_no_slot(bench: &mut dyn Bench) {
    set(
        bench,
        "crm",
        &LimitSettings { max_running: Some(2), rate: Some(Rate { count: 2, per_ms: 60_000, spread: false }) },
    );
    let added = add_all(bench, &vec![job().limit("crm"); 3]);
    for _ in 0..3 {
        let seen = undo(bench, |tx| ids(&take(tx, at(10), wish(&all(), 5))));
        assert_eq!(seen, added[..2]);
    }
    assert_eq!(ids(&claims(bench, 3)), added[..2]);
}

/// A bound that is raised lets jobs through, one that is lowered waits for those that run.
pub fn settings_hold_from_the_moment_they_are_written(bench: &mut dyn Bench) {
    set(bench, "crm", &slots(0));
    let added = add_all(bench, &vec![job().limit("crm"); 4]);
    assert_eq!(claims(bench, 1), []);
    set(bench, "crm", &slots(3));
    assert_eq!(ids(&claims(bench, 4)), added[..3]);
    set(bench, "crm", &slots(1));
    end(bench, added[0]);
    end(bench, added[1]);
    assert_eq!(claims(bench, 1), []);
    end(bench, added[2]);
    assert_eq!(ids(&claims(bench, 1)), added[3..]);
}

/// A rate lets so many start in any window, and the next due time says when it goes on; starts outlive a restart.
pub fn a_rate_spends_starts_and_says_when_it_goes_on(bench: &mut dyn Bench) {
    set(bench, "mail", &rate(2, 1_600));
    let added = add_all(bench, &vec![job().limit("mail"); 3]);
    assert_eq!(ids(&write(bench, |tx| take(tx, at(10), wish(&all(), 5)))), added[..2]);
    end(bench, added[0]);
    end(bench, added[1]);
    bench.reopen();
    let mut next = at(10);
    let mut taken = Vec::new();
    for _ in 0..50 {
        taken = write(bench, |tx| take(tx, next, wish(&all(), 5)));
        if !taken.is_empty() {
            break;
        }
        let due = write(bench, |tx| {
            assert_eq!(take(tx, next, wish(&all(), 5)), []);
            tx.next_due(next, &all()).expect("it is read")
        });
        let due = due.expect("time alone opens a rate");
        assert!(due > next, "{due:?} after {next:?}");
        next = due;
    }
    assert_eq!(ids(&taken), added[2..]);
    let waited = next.since_ms(at(10));
    assert!((1_600..=1_700).contains(&waited), "{waited} ms for a period of 1600 and a sixteenth of it");
}

/// A clock that is put back opens no rate, and holds it for no longer than a period and a sixteenth from then on, however
/// often it is asked meanwhile.
pub fn a_rate_outlives_a_clock_that_is_put_back(bench: &mut dyn Bench) {
    for spread in [false, true] {
        let name = if spread { "even" } else { "mail" };
        let rate = Rate { count: 1, per_ms: 1_600, spread };
        set(bench, name, &LimitSettings { max_running: None, rate: Some(rate) });
        let late = at(100_000_000);
        let added = add_all(bench, &vec![job().limit(name); 2]);
        assert_eq!(ids(&write(bench, |tx| take(tx, late, wish(&all(), 5)))), added[..1]);
        assert_eq!(write(bench, |tx| take(tx, late, wish(&all(), 5))), [], "the lane waits for the limit");
        let mut now = at(10);
        let taken = loop {
            let taken = ids(&write(bench, |tx| take(tx, now, wish(&all(), 5))));
            if !taken.is_empty() || now > at(5_000) {
                break taken;
            }
            now = now.plus_ms(50);
        };
        assert_eq!(taken, added[1..]);
        let waited = now.since_ms(at(10));
        assert!((1_600..=1_750).contains(&waited), "{name}: {waited} ms");
        for id in added {
            end(bench, id);
        }
    }
}

/// A clock that is put back makes due jobs wait again, those with a limit or a fair key as well, and what is due beside them
/// is found.
pub fn a_clock_that_is_put_back_puts_off_what_was_due(bench: &mut dyn Bench) {
    set(bench, "crm", &slots(5));
    let drafts = [job().limit("crm").due(at(500)), job().fair("a").due(at(500)), job().due(at(500))];
    let later = add_all(bench, &drafts);
    // Seen as due, and left out on request.
    let all_jobs = all();
    let query = ClaimQuery { skip: &later, ..wish(&all_jobs, 5) };
    assert_eq!(write(bench, |tx| take(tx, at(600), query)), []);
    assert_eq!(write(bench, |tx| take(tx, at(400), wish(&all(), 5))), []);
    let due = write(bench, |tx| tx.next_due(at(400), &all()).expect("it is read"));
    assert_eq!(due, Some(at(500)));
    let now = add_one_due(bench, job().fair("b").due(at(10)));
    assert_eq!(ids(&write(bench, |tx| take(tx, at(400), wish(&all(), 5)))), [now]);
    let mut given = ids(&write(bench, |tx| take(tx, at(500), wish(&all(), 5))));
    given.sort_unstable();
    assert_eq!(given, later);
}

/// The next due time as well, without a claim between, and without limits.
pub fn the_next_due_time_follows_a_clock_that_is_put_back(bench: &mut dyn Bench) {
    let later = add_all(bench, &[job().due(at(500)), job().due(at(900))]);
    let all_jobs = all();
    let query = ClaimQuery { skip: &later, ..wish(&all_jobs, 5) };
    assert_eq!(write(bench, |tx| take(tx, at(600), query)), [], "seen as due, and left out on request");
    let due = write(bench, |tx| tx.next_due(at(400), &all()).expect("it is read"));
    assert_eq!(due, Some(at(500)));
}

fn add_one_due(bench: &mut dyn Bench, draft: Draft) -> JobId {
    write(bench, |tx| add_one(tx, draft).job.id)
}

/// The end of the first lease under a full limit is when time alone may let something through.
pub fn a_full_limit_is_due_at_the_first_end_of_a_lease(bench: &mut dyn Bench) {
    set(bench, "crm", &slots(2));
    write(bench, |tx| {
        let rows = add(tx, &[job().limit("crm"), job().limit("crm"), job(), job().limit("crm")]);
        for (row, end) in rows.iter().zip([at(9_000), at(5_000), at(1_000)]) {
            put(tx, row, &started(row, end));
        }
    });
    let due = write(bench, |tx| {
        assert_eq!(take(tx, at(10), wish(&all(), 5)), []);
        tx.next_due(at(10), &all()).expect("it is read")
    });
    assert_eq!(due, Some(at(5_000)));
}

/// A limit that is held is closed until then; a shorter hold changes nothing.
pub fn a_held_limit_is_closed_until_then(bench: &mut dyn Bench) {
    set(bench, "crm", &slots(5));
    let added = add_all(bench, &[job().limit("crm:a"), job().limit("crm:b")]);
    let held = LimitRef::parse("crm:a");
    write(bench, |tx| {
        tx.hold_limit(&held, at(4_000)).expect("it is held");
        tx.hold_limit(&held, at(2_000)).expect("it is held");
    });
    bench.reopen();
    let (taken, due) = write(bench, |tx| {
        let taken = ids(&take(tx, at(10), wish(&all(), 5)));
        (taken, tx.next_due(at(10), &all()).expect("it is read"))
    });
    assert_eq!((taken, due), (added[1..].to_vec(), Some(at(4_000))));
    assert_eq!(write(bench, |tx| take(tx, at(3_999), wish(&all(), 5))), []);
    assert_eq!(ids(&write(bench, |tx| take(tx, at(4_000), wish(&all(), 5)))), added[..1]);
}

/// A limit that is held without a partition is closed with all of them, also with those that come later, over a reopen.
pub fn a_limit_held_as_a_whole_holds_its_partitions(bench: &mut dyn Bench) {
    set(bench, "crm", &slots(5));
    set(bench, "api", &slots(5));
    let early = add_all(bench, &[job().limit("crm:a"), job().limit("api:a"), job().limit("crm")]);
    write(bench, |tx| {
        tx.hold_limit(&LimitRef::parse("crm"), at(4_000)).expect("it is held");
        tx.hold_limit(&LimitRef::parse("crm:a"), at(5_000)).expect("it is held");
    });
    bench.reopen();
    let late = add_all(bench, &[job().limit("crm:b")]);
    let (taken, due) = write(bench, |tx| {
        let taken = ids(&take(tx, at(10), wish(&all(), 5)));
        (taken, tx.next_due(at(10), &all()).expect("it is read"))
    });
    assert_eq!((taken, due), (vec![early[1]], Some(at(4_000))));
    let uses = write(bench, |tx| tx.limit_use("crm").expect("it is read"));
    let uses: Vec<_> = uses.iter().map(|of| (of.limit.partition.as_str(), of.hold_until)).collect();
    assert_eq!(uses, [("", Some(at(4_000))), ("a", Some(at(5_000))), ("b", Some(at(4_000)))]);
    assert_eq!(write(bench, |tx| take(tx, at(3_999), wish(&all(), 5))), []);
    assert_eq!(ids(&write(bench, |tx| take(tx, at(4_000), wish(&all(), 5)))), [early[2], late[0]]);
    assert_eq!(ids(&write(bench, |tx| take(tx, at(5_000), wish(&all(), 5)))), [early[0]]);
}

/// What was held is opened again: a partition by itself, or a limit with all of its own. A rollback opens nothing.
pub fn a_held_limit_can_be_opened(bench: &mut dyn Bench) {
    set(bench, "crm", &slots(5));
    let open = |tx: &mut dyn Tx, name: &str| tx.open_limit(&LimitRef::parse(name)).expect("it is opened");
    let added = add_all(bench, &[job().limit("crm:a"), job().limit("crm:b"), job().limit("crm:c")]);
    assert!(!write(bench, |tx| open(tx, "crm")), "there was nothing to open");
    write(bench, |tx| {
        for name in ["crm:a", "crm:b", "crm"] {
            tx.hold_limit(&LimitRef::parse(name), at(4_000)).expect("it is held");
        }
    });
    assert_eq!(write(bench, |tx| take(tx, at(10), wish(&all(), 5))), []);
    undo(bench, |tx| assert!(open(tx, "crm")));
    assert_eq!(write(bench, |tx| take(tx, at(10), wish(&all(), 5))), [], "it was rolled back");
    assert!(write(bench, |tx| open(tx, "crm:a")));
    assert_eq!(write(bench, |tx| take(tx, at(10), wish(&all(), 5))), [], "the whole is closed still");
    assert!(write(bench, |tx| open(tx, "crm")));
    assert_eq!(ids(&write(bench, |tx| take(tx, at(10), wish(&all(), 5)))), added);
    // One that comes later is open as well.
    bench.reopen();
    let late = add_all(bench, &[job().limit("crm:d")]);
    assert_eq!(ids(&write(bench, |tx| take(tx, at(10), wish(&all(), 5)))), late);
}
