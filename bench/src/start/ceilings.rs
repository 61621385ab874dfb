//! What could be reached at most: HTTP without a queue, SQLite without HTTP, the disk alone.

use super::{announced, lines};
use crate::measure::Measure;
use crate::subject::{About, Kind, Place, Reset, Subject};

/// The echo route.
const ECHO: [Measure; 2] = [Measure::Enqueue64, Measure::Enqueue512];

/// The disk, and SQLite on it.
const DISK: [Measure; 6] = [
    Measure::FsyncAppend,
    Measure::FsyncOverwrite,
    Measure::Insert1,
    Measure::Insert64,
    Measure::Insert512,
    Measure::Claim512,
];

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
    let folder = place.fresh("disk")?;
    let about = About {
        name: "disk".to_owned(),
        kind: Kind::Ceiling,
        version: format!("SQLite {}", rusqlite::version()),
        settings: lines(&[
            "one table, one index of ready rows, 150 bytes of payload; WAL, synchronous = FULL; no keys, no history",
        ]),
    };
    Ok(Subject {
        about,
        measures: &DISK,
        reset: Reset::Restart,
        driver: place.drive("disk", &folder.to_string_lossy())?,
        servers: Vec::new(),
        pending: 0,
    })
}
