//! What could be reached at most: HTTP without a queue, SQLite without HTTP, the disk alone.

use super::{announced, lines};
use crate::measure::Measure;
use crate::subject::{About, Kind, Place, Reset, Subject};

/// The echo route.
const ECHO: [Measure; 2] = [Measure::Enqueue64, Measure::Enqueue512];

/// The disk, and SQLite on it with as little as a queue can write.
const DISK: [Measure; 6] = [
    Measure::FsyncAppend,
    Measure::FsyncOverwrite,
    Measure::Insert1,
    Measure::Insert64,
    Measure::Insert512,
    Measure::Claim512,
];

/// SQLite with all that is kept of a job.
const ROWS: [Measure; 2] = [Measure::Insert512, Measure::Claim512];

pub(super) fn echo(place: &Place) -> anyhow::Result<Subject> {
    let (server, address) = announced(place, place.own(&["echo"]), "echo")?;
    let about = About {
        name: "echo".to_owned(),
        kind: Kind::Ceiling,
        version: "the product's axum, hyper, tokio and allocator".to_owned(),
        settings: lines(&["reads a job as JSON, answers one as JSON; driven by the same client as tagwerk"]),
    };
    Ok(Subject {
        about,
        measures: &ECHO,
        reset: Reset::Restart,
        driver: place.drive("tagwerk", &address)?,
        servers: vec![server],
        pending: 0,
    })
}

pub(super) fn disk(place: &Place) -> anyhow::Result<Subject> {
    let settings = "one table, one index of ready rows, 150 bytes of payload; WAL, synchronous = FULL; no keys, no history";
    sqlite(place, ("disk", settings), &DISK)
}

pub(super) fn rows(place: &Place) -> anyhow::Result<Subject> {
    let settings = "the rows of a job: a hot one with five partial indexes, a cold one with 150 bytes of payload, a key for \
                    half of the jobs, an attempt at the end; WAL, synchronous = FULL; no rules, no counters, no answers";
    sqlite(place, ("rows", settings), &ROWS)
}

/// A driver that has a folder and no server.
fn sqlite(
    place: &Place,
    (name, settings): (&str, &str),
    measures: &'static [Measure],
) -> anyhow::Result<Subject> {
    let folder = place.fresh(name)?;
    let about = About {
        name: name.to_owned(),
        kind: Kind::Ceiling,
        version: format!("SQLite {}", rusqlite::version()),
        settings: lines(&[settings]),
    };
    Ok(Subject {
        about,
        measures,
        reset: Reset::Restart,
        driver: place.drive(name, &folder.to_string_lossy())?,
        servers: Vec::new(),
        pending: 0,
    })
}
