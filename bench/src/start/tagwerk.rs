//! Tagwerk itself, with what `tagwerk serve` sets without being told.

use std::path::Path;
use std::process::Command;

use super::{announced, lines};
use crate::measure::Measure;
use crate::processes::{Process, first_line, program};
use crate::subject::{About, Kind, Place, Reset, Subject};

/// Everything of a queue, and the report that claims the next job in the same call.
const MEASURES: [Measure; 7] = [
    Measure::Latency,
    Measure::Enqueue64,
    Measure::Enqueue512,
    Measure::Bulk,
    Measure::DrainOne,
    Measure::DrainTurn,
    Measure::DrainBulk,
];

/// Starts the server on a store in that folder; answers it and its address.
pub(crate) fn serve(place: &Place, folder: &Path) -> anyhow::Result<(Process, String)> {
    let mut command = program(&place.tagwerk);
    let store = format!("sqlite:{}", folder.join("tagwerk.db").display());
    command.args(["serve", "--listen", "127.0.0.1:0", "--store", &store]);
    announced(place, command, "tagwerk")
}

pub(super) fn start(place: &Place) -> anyhow::Result<Subject> {
    let folder = place.fresh("tagwerk")?;
    let (server, address) = serve(place, &folder)?;
    let about = About {
        name: "tagwerk".to_owned(),
        kind: Kind::Product,
        version: first_line(Command::new(&place.tagwerk).arg("--version")),
        settings: lines(&[
            "defaults of `tagwerk serve`: SQLite, WAL, synchronous = FULL; completed jobs stay for 7 days",
            "drain in bulk: 4 connections, report of 100 with claim of 100 in a call",
            "drain, one a call: a call that claims and a call that completes, 64 connections",
        ]),
    };
    Ok(Subject {
        about,
        measures: &MEASURES,
        reset: Reset::Restart,
        driver: place.drive("tagwerk", &address)?,
        servers: vec![server],
        pending: 0,
    })
}
