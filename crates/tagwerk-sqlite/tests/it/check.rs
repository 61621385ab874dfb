//! What `tagwerk check` finds of damage that somebody has done behind the store's back, and what it says to do about it.

use rusqlite::Connection;
use tagwerk_core::gate::{LimitSettings, Rate};
use tagwerk_core::{Action, JobId};
use tagwerk_engine::command::{ControlQueue, EnqueueJob, LimitCall, QueueControl};
use tagwerk_engine::message::{By, Message};
use tagwerk_engine::query::{Depth, Finding, check};
use tagwerk_engine::row::{LimitRef, Ordering, Special};
use tagwerk_engine::store::Readers as _;
use tagwerk_sqlite::SqliteStore;

use crate::engine::{answered, job};
use crate::rig::Rig;

fn keyed(key: &str) -> EnqueueJob {
    let ordering = Ordering { key: key.into(), on_head_failure: None };
    EnqueueJob { ordering: Some(Box::new(ordering)), ..job() }
}

/// Key `a`: job 1 runs, 3 and 4 are behind it. Key `b`: job 5, and 6 behind it. Key `c`: job 7. Job 2 was done under limit
/// `crm:x`. Queue `other` is paused.
fn rig() -> Rig {
    let mut rig = Rig::new();
    let rate = Some(Rate { count: 5, per_ms: 60_000, spread: false });
    let put = LimitCall::Put("crm".to_owned(), LimitSettings { max_running: Some(3), rate });
    answered(&rig.send(|reply| Message::Limit(put, By::local(), Box::new(reply)))).expect("a limit");
    let pause = QueueControl::Pause { reason: "moving".to_owned(), by: None };
    let pause = ControlQueue { queue: "other".to_owned(), control: pause };
    answered(&rig.send(|reply| Message::ControlQueue(pause, By::local(), Box::new(reply)))).expect("a pause");
    let special = Special { limits: vec![LimitRef::parse("crm:x")], fair_key: None };
    rig.enqueue(vec![keyed("a"), EnqueueJob { special: Some(special.into()), ..job() }]);
    let held = rig.next(&[], 2);
    assert!(rig.next(&held[1..], 1).is_empty());
    rig.enqueue(vec![keyed("a"), keyed("a"), keyed("b"), keyed("b"), keyed("c")]);
    assert_eq!(findings(&rig), []);
    rig
}

/// Does this to the file as `sqlite3` would, and without its checks.
fn spoil(rig: &Rig, sql: &str) {
    let conn = Connection::open(rig.path()).expect("a shell");
    conn.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON").expect("settings");
    conn.execute_batch(sql).expect("SQL");
}

fn findings(rig: &Rig) -> Vec<Finding> {
    let readers = SqliteStore::open_read_only(&rig.path()).expect("readers");
    let mut snapshot = readers.snapshot().expect("a snapshot");
    check(&mut *snapshot, Depth::Jobs).expect("it is checked").findings
}

fn claimed(rig: &mut Rig) -> Vec<JobId> {
    rig.next(&[], 9).iter().map(|held| held.job.row.job.id).collect()
}

/// The first finding of this code has these words.
#[track_caller]
fn found(rig: &Rig, code: &str, words: &[&str]) {
    let findings = findings(rig);
    let of_code = findings.iter().find(|finding| finding.code == code);
    let detail = of_code.map(|finding| &*finding.detail).unwrap_or_default();
    assert!(
        !detail.is_empty() && words.iter().all(|word| detail.contains(word)),
        "{code} {words:?}: {findings:#?}"
    );
}

#[test]
fn a_job_without_its_place_is_found() {
    for id in [1, 3, 7] {
        let rig = rig();
        spoil(&rig, &format!("DELETE FROM job_order WHERE job = {id}"));
        found(&rig, "order-missing", &[&format!("job {id} "), "cancel it and enqueue it again"]);
    }
}

/// The advice is right: afterwards nothing is found.
#[test]
fn a_job_without_its_place_can_be_cancelled() {
    let mut rig = rig();
    spoil(&rig, "DELETE FROM job_order WHERE job = 6");
    rig.operate(JobId(6), Action::Cancel { wait: false });
    rig.enqueue(vec![keyed("b")]);
    assert_eq!(findings(&rig), []);
}

#[test]
fn a_place_without_its_job_is_found() {
    let rig = rig();
    spoil(&rig, "INSERT INTO job_order (okey, job, open) VALUES ('b', 99, 1)");
    let words = ["key \"b\"", "job 99", "not there", "delete the row from table job_order"];
    found(&rig, "order-orphan", &words);
    spoil(&rig, "DELETE FROM job_order WHERE job = 99");
    assert_eq!(findings(&rig), []);
}

/// A place that was left behind by a job that is done holds all others back. The advice frees them.
#[test]
fn a_place_that_was_left_behind_is_found_and_can_be_freed() {
    let mut rig = rig();
    spoil(&rig, "INSERT INTO job_order (okey, job, open) VALUES ('b', 2, 0)");
    found(&rig, "order-stale", &["key \"b\"", "job 2 (completed)", "delete the job, then enqueue"]);
    rig.operate(JobId(5), Action::Cancel { wait: false });
    assert_eq!(claimed(&mut rig), [JobId(7)], "job 6 is held back");
    spoil(&rig, "DELETE FROM job_order WHERE job = 2");
    found(&rig, "order-stuck", &["key \"b\"", "turn of job 6", "enqueue a job with this key and cancel it"]);
    let last = rig.enqueue(vec![keyed("b")]);
    rig.operate(last[0], Action::Cancel { wait: false });
    assert_eq!(findings(&rig), []);
    assert_eq!(claimed(&mut rig), [JobId(6)]);
}

#[test]
fn a_place_that_says_something_else_than_its_job_is_found() {
    for (id, says) in [(1, 0), (3, 1), (5, 0)] {
        let rig = rig();
        spoil(&rig, &format!("UPDATE job_order SET open = {says} WHERE job = {id}"));
        found(&rig, "order-mismatch", &[&format!("the place of job {id} "), "cancel the job"]);
    }
}

#[test]
fn jobs_of_a_key_that_overtake_each_other_are_found() {
    let rig = rig();
    spoil(
        &rig,
        "UPDATE job SET state = 0 WHERE id IN (4, 6); UPDATE job_order SET open = 1 WHERE job IN (4, 6)",
    );
    found(&rig, "order-early", &["key \"a\"", "job 4", "not its turn"]);
    found(&rig, "ledger-mismatch", &["the ledger says 3 blocked, there are 1"]);
    assert_eq!(findings(&rig).len(), 3);
    let lease = "lease_until = l.lease_until, lease_expires = l.lease_expires, lease_ms = l.lease_ms, claimed = l.claimed, \
                 lease_bits = l.lease_bits, worker = l.worker, attempt = 1, leases = 1, flags = l.flags";
    spoil(
        &rig,
        &format!(
            "UPDATE job SET state = 1, {lease} FROM (SELECT * FROM job WHERE id = 1) AS l WHERE job.id = 4"
        ),
    );
    found(&rig, "order-overlap", &["key \"a\"", "jobs 1 and 4 run", "complete or fail them"]);
}

/// Where somebody cannot be read nobody can say whose turn it is: the damage itself is what is found.
#[test]
fn a_damaged_job_makes_no_other_finding_of_its_key() {
    let rig = rig();
    spoil(&rig, "UPDATE job SET prio = 300 WHERE id = 5");
    let codes: Vec<&str> = findings(&rig).iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["damaged-row", "ledger-mismatch"]);
}

/// The statement, and words of what is found.
const LOOSE: &[(&str, &[&str])] = &[
    (
        "UPDATE queue_pause SET queue = 77",
        &["'moving'", "queue number 77", "stops nothing", "pause the queue that was meant"],
    ),
    ("UPDATE lane SET queue = 77 WHERE id = 1", &["lane 1", "queue or a type", "under its number"]),
    ("UPDATE lane SET type = 77 WHERE id = 1", &["lane 1", "queue or a type", "under its number"]),
    ("UPDATE special_lane SET class = 77", &["lane -1 belongs to lane 77", "table lane"]),
    ("UPDATE special_lane SET second = 77", &["lane -1 names limit number 77", "table lim"]),
    ("DELETE FROM lim", &["lane -1 names limit number", "table lim"]),
    ("UPDATE limit_def SET rate_per_ms = NULL", &["limit 'crm' has half a rate", "set the limit anew"]),
    ("UPDATE limit_def SET max_running = 5000000000", &["limit 'crm'", "more than there can be"]),
    ("UPDATE lim SET starts = x'00'", &["the starts of limit crm:x ", "forgets them"]),
    ("UPDATE queue SET reserve_slots = 1", &["has half a reserve", "set the queue's bounds anew"]),
];

#[test]
fn settings_that_name_nothing_or_cannot_be_meant_are_found() {
    for (sql, words) in LOOSE {
        let rig = rig();
        spoil(&rig, sql);
        found(&rig, "loose-end", words);
    }
}

#[test]
fn bounds_of_a_queue_that_cannot_be_meant_are_found() {
    let rig = rig();
    spoil(
        &rig,
        "UPDATE queue SET max_running = 2, reserve_slots = 2, reserve_from = 20 WHERE name = 'other'",
    );
    found(&rig, "unsound-queue", &["queue \"other\"", "at least one slot", "set the bounds anew"]);
    spoil(&rig, "UPDATE queue SET reserve_from = 300 WHERE name = 'other'");
    found(&rig, "damaged-queue", &["reserve_from", "no server starts on it"]);
}
