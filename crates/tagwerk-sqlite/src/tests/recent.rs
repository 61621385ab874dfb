//! What is remembered of jobs that run is what stands in the file.

use tagwerk_core::{Effect, EffectState, JobId, Status, Timestamp};
use tagwerk_engine::row::{Detail, JobRow};
use tagwerk_engine::store::{OldPayload, PayloadWrite};
use tagwerk_engine::testing::entropy::Seeded;

use super::Place;
use super::book::step;
use super::steps::{add, at, job_of, put, settled, take, undo, write};
use crate::recent::Recent;

type Known = (Vec<Option<JobRow>>, Vec<Option<Detail>>);

fn read(place: &mut Place, ids: &[JobId]) -> Known {
    undo(&mut place.store, |tx| {
        let rows = tx.load(ids).expect("rows").into_iter();
        let details = tx.details(ids).expect("details").into_iter();
        let readable = "they can be read";
        (
            rows.map(|row| row.transpose().expect(readable)).collect(),
            details.map(|detail| detail.transpose().expect(readable)).collect(),
        )
    })
}

/// The same with nothing remembered.
fn read_anew(place: &mut Place, ids: &[JobId]) -> Known {
    place.store.writer.recent = Recent::default();
    read(place, ids)
}

#[test]
fn rows_from_memory_are_rows_of_the_file_whatever_happens() {
    let mut hits = 0;
    for seed in 0..20 {
        let mut place = Place::new();
        place.sql("PRAGMA synchronous = OFF");
        let mut chance = Seeded::new(seed);
        for round in 0..150 {
            step(&mut place, &mut chance, round);
            if chance.one_in(15) {
                write(&mut place.store, |tx| tx.shift_leases(1_000).expect("leases are moved"));
            }
            if chance.one_in(10) {
                let ids: Vec<JobId> = (1..=200).map(JobId).collect();
                let known = |id: &&JobId| place.store.writer.recent.row(id.0).is_some();
                hits += ids.iter().filter(known).count();
                assert_eq!(read(&mut place, &ids), read_anew(&mut place, &ids), "seed {seed}, round {round}");
            }
        }
    }
    assert!(hits > 300, "only {hits} rows came from memory");
}

fn running(place: &mut Place) -> JobRow {
    write(&mut place.store, |tx| add(tx, &[job_of("a")]));
    let row = write(&mut place.store, |tx| take(tx, at(0), 1)).remove(0);
    undo(&mut place.store, |tx| tx.details(&[row.job.id]).expect("details"));
    row
}

#[test]
fn a_job_is_remembered_while_it_runs() {
    let mut place = Place::new();
    let row = running(&mut place);
    let id = row.job.id.0;
    // `details` was read in a transaction that was dropped, which forgets everything.
    assert!(place.store.writer.recent.row(id).is_none());
    write(&mut place.store, |tx| {
        let changed =
            JobRow { job: tagwerk_core::Job { updated_at: at(5), ..row.job.clone() }, ..row.clone() };
        put(tx, &[(row.clone(), changed)]);
        tx.details(&[row.job.id]).expect("details")
    });
    let held = place.store.writer.recent.row(id).cloned().expect("it is remembered");
    assert_eq!(held.job.updated_at, at(5));
    assert!(place.store.writer.recent.detail(id).is_some());
    write(&mut place.store, |tx| put(tx, &[(held.clone(), settled(&held, Status::Completed, at(9)))]));
    assert!(place.store.writer.recent.row(id).is_none());
    assert!(place.store.writer.recent.detail(id).is_none());
}

#[test]
fn a_new_payload_is_not_missed() {
    let mut place = Place::new();
    let id = running(&mut place).job.id;
    let payload = "[1]".to_owned();
    let new = write(&mut place.store, |tx| {
        tx.details(&[id]).expect("details");
        let at = Timestamp::EPOCH;
        tx.put_payloads(&[PayloadWrite { job: id, payload, old: OldPayload::Keep, at }]).expect("a payload");
        tx.details(&[id]).expect("details").remove(0).expect("it is there").expect("it can be read")
    });
    assert_eq!(new.payload, "[1]");
}

#[test]
fn what_somebody_with_a_shell_has_changed_is_seen() {
    let mut place = Place::new();
    let row = running(&mut place);
    write(&mut place.store, |tx| put(tx, &[(row.clone(), row.clone())]));
    assert!(place.store.writer.recent.row(row.job.id.0).is_some());
    let shell = rusqlite::Connection::open(place.path()).expect("a shell");
    shell.execute("UPDATE job SET max_retries = 77", []).expect("a change");
    let (rows, _) = read(&mut place, &[row.job.id]);
    assert_eq!(rows[0].as_ref().map(|row| row.job.max_retries), Some(77));
}

#[test]
fn memory_is_bounded_in_rows_and_in_bytes() {
    let mut place = Place::new();
    let row = running(&mut place);
    let known = |recent: &Recent| (0..100_000).filter(|id| recent.row(*id).is_some()).count();
    let fill = |recent: &mut Recent, error: Option<String>| {
        for id in 0..100_000 {
            let mut row = row.clone();
            (row.job.id, row.job.error) = (JobId(id), error.clone());
            recent.wrote(&row);
        }
    };
    let mut recent = Recent::default();
    fill(&mut recent, None);
    assert!((8_192..=16_384).contains(&known(&recent)), "{}", known(&recent));
    assert!(recent.row(99_999).is_some(), "the newest is known");
    let mut recent = Recent::default();
    fill(&mut recent, Some("x".repeat(4_096)));
    assert!((1_024..=2_048).contains(&known(&recent)), "{}", known(&recent));
    let mut recent = Recent::default();
    fill(&mut recent, Some("x".repeat(4_097)));
    assert_eq!(known(&recent), 0, "what is too long is left to the file");
    // Effects count too, with what came of them.
    let of = |results: usize| {
        let result = "x".repeat(results);
        let effect = |n: usize| Effect {
            name: format!("e{n}").into(),
            state: EffectState::Done,
            key: "k".into(),
            seq: 1,
            begun_at: Timestamp::EPOCH,
            ended_at: Some(Timestamp::EPOCH),
            assumed: false,
            result: Some(result.as_str().into()),
        };
        let mut row = row.clone();
        row.job.effects = (0..10).map(effect).collect();
        let mut recent = Recent::default();
        recent.wrote(&row);
        recent.row(row.job.id.0).is_some()
    };
    assert!(of(100) && !of(410));
}
