//! Our own drivers: processes that load a system and speak the lines of `bench/peers/protocol.mjs` on stdin and stdout.
//!
//! Client code that costs little is part of the measure, since client and server share the cores: one thread, requests
//! made ready beforehand, answers read only as far as needed.

mod beanstalkd;
mod bodies;
mod conversation;
mod disk;
mod http;
mod pump;
mod rows;
mod sqlite;
mod tagwerk;

use std::path::Path;

use anyhow::Context as _;
use conversation::converse;

/// Runs the driver of that name until stdin ends.
pub(crate) fn run(words: &[String]) -> anyhow::Result<()> {
    let [name, target] = words else { anyhow::bail!("drive wants a name and a target") };
    match name.as_str() {
        "tagwerk" => converse(&mut tagwerk::Peer::new(target)?),
        "beanstalkd" => converse(&mut beanstalkd::Peer::new(target)?),
        "disk" => converse(&mut disk::Peer::new(Path::new(target))?),
        "rows" => converse(&mut rows::Peer::new(Path::new(target))?),
        unknown => anyhow::bail!("there is no driver `{unknown}`"),
    }
}

/// A runtime with one thread: the client must not take more of the machine than it needs.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")
}
