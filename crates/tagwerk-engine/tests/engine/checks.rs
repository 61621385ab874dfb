//! `check` finds what must not be. All other tests end with it, so it has to be shown that it can.

use tagwerk_core::{Effect, EffectState, ErrorClass, Job, JobId, Lease, Status, Timestamp, limits};
use tagwerk_engine::query::{Checked, Depth, check};
use tagwerk_engine::row::Counter;
use tagwerk_engine::store::Store;

use crate::rig::{Rig, completed, failed, job};

fn checked(rig: &Rig) -> Checked {
    let readers = rig.disk.readers();
    let mut read = readers.snapshot().unwrap();
    check(&mut *read, Depth::Integrity).unwrap()
}

/// Codes and texts of all findings.
fn found(rig: &Rig) -> Vec<(&'static str, String)> {
    checked(rig).findings.into_iter().map(|finding| (finding.code, finding.detail)).collect()
}

/// A rig with a job in every status but cancelled, and a second type.
fn scene() -> (Rig, [JobId; 4]) {
    let mut rig = Rig::new();
    let done = rig.create(job("t"));
    let held = rig.take("w");
    rig.say(&held, completed()).unwrap();
    let lost = rig.create(job("t"));
    let held = rig.take("w");
    rig.say(&held, failed(ErrorClass::Permanent)).unwrap();
    let running = rig.create(job("u"));
    rig.take("w");
    let waiting = rig.create(job("u"));
    (rig, [waiting, running, done, lost])
}

#[test]
fn a_sound_store_is_clean_and_all_of_it_was_looked_at() {
    let (rig, _) = scene();
    assert_eq!(checked(&rig), Checked { jobs: 4, lanes: 2, findings: Vec::new(), more: 0 });
}

fn effect(name: &str, seq: u32, state: EffectState) -> Effect {
    let at = Timestamp::from_millis(1_780_000_000_000);
    let ended_at = (state != EffectState::Open).then_some(at);
    Effect {
        name: name.into(),
        state,
        key: "k".into(),
        seq,
        begun_at: at,
        ended_at,
        assumed: false,
        result: None,
    }
}

type Forgery = fn(&mut Job);

/// What is written over which job (waiting, running, done, lost), and what is to be said of it.
const CONTRADICTIONS: [(usize, Forgery, &str); 17] = [
    (1, |job| job.lease = None, "a job has a lease exactly while it is running"),
    (3, |job| job.failure = None, "a job has a failure exactly while it is in review"),
    (2, |job| job.finished_at = None, "a job has an end exactly when it has come to rest"),
    (0, |job| job.finished_at = Some(job.created_at), "a job has an end exactly when it has come to rest"),
    (0, |job| job.started = true, "a job is started exactly when it was ever handed out"),
    (2, |job| job.started = false, "a job is started exactly when it was ever handed out"),
    (2, |job| job.attempt = 2, "its attempt number does not fit its leases"),
    (1, |job| job.attempt = 0, "its attempt number does not fit its leases"),
    (0, |job| job.cancel_requested = true, "a cancel waits for an attempt that is not there"),
    (
        2,
        |job| job.effects = vec![effect("a", 1, EffectState::Open)],
        "nobody has said what became of an effect of a completed job",
    ),
    (
        1,
        |job| job.effects = vec![effect("a", 2, EffectState::Open)],
        "a lease that never was has begun an effect",
    ),
    (
        0,
        |job| job.effects = vec![effect("a", 0, EffectState::Done)],
        "a lease that never was has begun an effect",
    ),
    (
        1,
        |job| job.effects = vec![effect("a", 1, EffectState::Open); 2],
        "its effects are too many, or two have the same name",
    ),
    (2, |job| job.version = 0, "its id or version is out of range"),
    (2, |job| job.id = JobId(0), "its id or version is out of range"),
    (2, |job| job.id = JobId(limits::JOB_ID_MAX + 1), "its id or version is out of range"),
    (2, |job| job.id = JobId(-1), "its id or version is out of range"),
];

#[test]
fn a_job_that_contradicts_itself_is_found() {
    for (which, forgery, what) in CONTRADICTIONS {
        let (rig, ids) = scene();
        let status = rig.status(ids[which]);
        let mut id = ids[which];
        rig.disk.forge(ids[which], |job| {
            forgery(job);
            id = job.id;
        });
        let expected = format!("job {id} ({}): {what}", status.name());
        assert_eq!(found(&rig), [("contradiction", expected)]);
    }
}

/// A lease on a job that does not run, and a failure of one that is not in review.
#[test]
fn what_belongs_to_another_status_is_found() {
    let (rig, [waiting, running, ..]) = scene();
    let lease: Option<Lease> = rig.job(running).row.job.lease;
    rig.disk.forge(waiting, |job| job.lease = lease);
    assert_eq!(found(&rig)[0].0, "contradiction");
    let (rig, [waiting, _, _, lost]) = scene();
    let failure = rig.job(lost).row.job.failure;
    rig.disk.forge(waiting, |job| job.failure = failure);
    assert_eq!(found(&rig)[0].0, "contradiction");
}

#[test]
fn a_job_that_is_due_in_more_than_ten_years_is_found() {
    let (rig, [waiting, ..]) = scene();
    rig.disk.forge(waiting, |job| job.available_at = job.updated_at.plus_ms(limits::DELAY_MAX_MS));
    assert_eq!(found(&rig), []);
    rig.disk.forge(waiting, |job| job.available_at = job.available_at.plus_ms(1));
    let text = format!("job {waiting} is due more than ten years after its last change");
    assert_eq!(found(&rig), [("never-due", text)]);
}

/// A minute is allowed for, and no more.
#[test]
fn what_should_have_ended_long_ago_is_found() {
    let (mut rig, [waiting, running, ..]) = scene();
    rig.advance(1_000);
    let served = {
        let readers = rig.disk.readers();
        readers.snapshot().unwrap().served_until().unwrap().unwrap()
    };
    let late = |ms: i64| {
        rig.disk.forge(running, |job| {
            job.lease.as_mut().unwrap().expires_at = served.plus_ms(-ms);
        });
        rig.disk.forge(waiting, |job| job.expires_at = Some(served.plus_ms(-ms)));
        found(&rig).into_iter().map(|(code, _)| code).collect::<Vec<_>>()
    };
    assert_eq!(late(60_000), [""; 0]);
    assert_eq!(late(60_001), ["overdue-lease", "overdue-expiry"]);
}

#[test]
fn a_ledger_that_does_not_agree_with_the_rows_is_found() {
    let (rig, _) = scene();
    // A pending job more than there is.
    rig.disk.forge_ledger(|tally| {
        let waits = tally.get(Counter::Pending) > 0;
        tally.add(Counter::Pending, i64::from(waits));
        true
    });
    let text = |what: &str| format!("queue default, type u: {what}");
    assert_eq!(
        found(&rig),
        [
            ("ledger-imbalance", text("-1 jobs are unaccounted for")),
            ("ledger-mismatch", text("the ledger says 2 pending, there are 1")),
        ]
    );
    // Balanced, but not so.
    let (rig, _) = scene();
    rig.disk.forge_ledger(|tally| {
        let waits = tally.get(Counter::Pending);
        tally.add(Counter::Pending, -waits);
        tally.add(Counter::Pruned, waits);
        true
    });
    assert_eq!(found(&rig), [("ledger-mismatch", text("the ledger says 0 pending, there are 1"))]);
    // Rows that no ledger knows.
    let (rig, _) = scene();
    rig.disk.forge_ledger(|tally| tally.get(Counter::Pending) == 0);
    let unknown = ["pending", "running"]
        .map(|name| ("ledger-mismatch", text(&format!("the ledger says 0 {name}, there are 1"))));
    assert_eq!((found(&rig), checked(&rig).lanes), (unknown.to_vec(), 1));
}

#[test]
fn a_damaged_row_is_found_and_missing_from_the_count() {
    let (rig, [waiting, ..]) = scene();
    rig.disk.damage(waiting);
    let codes: Vec<_> = found(&rig).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, ["damaged-row", "ledger-mismatch"]);
    assert_eq!(checked(&rig).jobs, 4);
}

/// More of a kind than anybody reads are counted only, and hide no other kind.
#[test]
fn findings_of_one_kind_are_listed_up_to_a_hundred() {
    let (mut rig, [waiting, ..]) = scene();
    for _ in 0..105 {
        let id = rig.create(job("t"));
        rig.disk.forge(id, |job| job.version = 0);
    }
    rig.disk.forge(waiting, |job| job.available_at = job.updated_at.plus_ms(limits::DELAY_MAX_MS + 1));
    let checked = checked(&rig);
    let count = |code| checked.findings.iter().filter(|finding| finding.code == code).count();
    assert_eq!((count("contradiction"), count("never-due"), checked.more), (100, 1, 5));
    assert_eq!(rig.status(waiting), Status::Pending);
}
