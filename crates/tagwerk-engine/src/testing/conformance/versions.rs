//! Versions of the objects that jobs are about.

use tagwerk_core::JobId;

use super::Bench;
use super::steps::{job, prepare, undo, write};
use crate::row::{Subject, VersionRow, VersionWrite, Versioned};

fn object(kind: &str, subject_kind: &str, subject_id: &str) -> Versioned {
    Versioned {
        kind: kind.to_owned(),
        subject_kind: subject_kind.to_owned(),
        subject_id: subject_id.to_owned(),
    }
}

fn order() -> Versioned {
    object("sync", "order", "4711")
}

fn raise(of: &Versioned, version: i64, job: i64) -> VersionWrite {
    VersionWrite::Raise { of: of.clone(), version, job: JobId(job) }
}

fn open(of: &Versioned, job: i64) -> VersionWrite {
    VersionWrite::Open { of: of.clone(), job: JobId(job) }
}

fn row(version: i64, job: i64, open: &[i64]) -> VersionRow {
    VersionRow { version, job: JobId(job), open: open.iter().copied().map(JobId).collect() }
}

fn put(bench: &mut dyn Bench, writes: &[VersionWrite]) {
    write(bench, |tx| tx.put_versions(writes).expect("versions are written"));
}

fn found(bench: &mut dyn Bench, of: &[&Versioned]) -> Vec<Option<VersionRow>> {
    undo(bench, |tx| tx.versions(of).expect("versions are read"))
}

/// What was written comes back, also after a restart; open jobs in ascending order, each once.
pub fn a_version_comes_back_with_its_open_jobs(bench: &mut dyn Bench) {
    let of = order();
    assert_eq!(found(bench, &[&of]), [None]);
    put(bench, &[raise(&of, i64::MAX, 5), open(&of, 9), open(&of, 7), open(&of, 9), open(&of, 5)]);
    assert_eq!(found(bench, &[&of]), [Some(row(i64::MAX, 5, &[5, 7, 9]))]);
    bench.reopen();
    put(bench, &[open(&of, 2)]);
    assert_eq!(found(bench, &[&of]), [Some(row(i64::MAX, 5, &[2, 5, 7, 9]))]);
}

/// The open jobs of the version before are forgotten.
pub fn a_higher_version_leaves_one_job_open(bench: &mut dyn Bench) {
    let of = order();
    put(bench, &[raise(&of, 0, 1), open(&of, 2)]);
    put(bench, &[raise(&of, 1, 3)]);
    assert_eq!(found(bench, &[&of]), [Some(row(1, 3, &[3]))]);
    put(bench, &[raise(&of, 2, 4), open(&of, 5), raise(&of, 3, 6), open(&of, 7)]);
    assert_eq!(found(bench, &[&of]), [Some(row(3, 6, &[6, 7]))], "writes of one call are done in order");
}

/// No field stands for another, and no two spellings are one.
pub fn objects_and_types_are_kept_apart_byte_for_byte(bench: &mut dyn Bench) {
    let objects = [
        order(),
        object("sync", "order", "4711 "),
        object("sync", "Order", "4711"),
        object("SYNC", "order", "4711"),
        object("order", "sync", "4711"),
        object("sync", "4711", "order"),
        object("sync", "order4711", ""),
        object("sync", "order", "\u{e4}"),
        object("sync", "order", "a\u{308}"),
    ];
    for (of, n) in objects.iter().zip(1..) {
        put(bench, &[raise(of, n, 10 * n), open(of, 10 * n + 1)]);
    }
    for (of, n) in objects.iter().zip(1..) {
        assert_eq!(found(bench, &[of]), [Some(row(n, 10 * n, &[10 * n, 10 * n + 1]))], "{of:?}");
    }
}

/// One answer for each question, repeated or not.
pub fn versions_answer_in_the_order_of_the_question(bench: &mut dyn Bench) {
    let (one, two, none) = (order(), object("sync", "order", "1"), object("sync", "order", "0"));
    put(bench, &[raise(&one, 1, 1), raise(&two, 2, 2)]);
    let (of_one, of_two) = (Some(row(1, 1, &[1])), Some(row(2, 2, &[2])));
    assert_eq!(found(bench, &[&two, &none, &one, &two]), [of_two.clone(), None, of_one, of_two]);
    assert_eq!(found(bench, &[]), []);
}

/// A job that was never stored has superseded nothing.
pub fn a_version_that_rolls_back_was_not_seen(bench: &mut dyn Bench) {
    let (known, new) = (order(), object("sync", "order", "1"));
    put(bench, &[raise(&known, 1, 1)]);
    undo(bench, |tx| {
        tx.put_versions(&[raise(&known, 2, 2), raise(&new, 1, 3)]).expect("versions are written");
        assert_eq!(
            tx.versions(&[&known, &new]).expect("they are read"),
            [Some(row(2, 2, &[2])), Some(row(1, 3, &[3]))]
        );
    });
    assert_eq!(found(bench, &[&known, &new]), [Some(row(1, 1, &[1])), None]);
}

/// Retention takes the job; what is newer than it must still be known.
pub fn an_erased_job_is_no_longer_open_and_its_version_stays_known(bench: &mut dyn Bench) {
    let of = order();
    let ids = write(bench, |tx| {
        let mut inserts = prepare(tx, &[job().kind("sync"), job().kind("sync")]);
        for insert in &mut inserts {
            let (kind, id) = (of.subject_kind.clone(), of.subject_id.clone());
            insert.detail.subject = Some(Subject { kind, id, version: Some(1) });
            insert.detail.supersede = true;
        }
        tx.insert(&inserts).expect("jobs are inserted");
        inserts.iter().map(|insert| insert.row.job.id.0).collect::<Vec<_>>()
    });
    put(bench, &[raise(&of, 1, ids[0]), open(&of, ids[1])]);
    write(bench, |tx| tx.erase(&[JobId(ids[0])]).expect("it is erased"));
    assert_eq!(found(bench, &[&of]), [Some(row(1, ids[0], &[ids[1]]))]);
}
