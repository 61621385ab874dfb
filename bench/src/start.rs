//! How each system is installed, configured and started. Only settings that write an acknowledged job to disk first.

mod ceilings;
mod peers;
mod tagwerk;

use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;

use crate::processes::Process;
use crate::subject::{Place, Subject};
use crate::system;

/// How long a server may take to be ready.
const PATIENCE: Duration = Duration::from_mins(1);

/// How a system is started.
pub(crate) type Start = fn(&Place) -> anyhow::Result<Subject>;

/// Tagwerk and the ceilings, which are always measured.
pub(crate) const OWN: [(&str, Start); 4] = [
    ("tagwerk", tagwerk::start),
    ("echo", ceilings::echo),
    ("disk", ceilings::disk),
    ("rows", ceilings::rows),
];

/// The peers.
pub(crate) const PEERS: [(&str, Start); 5] = [
    ("beanstalkd", peers::beanstalkd),
    ("bullmq", peers::bullmq),
    ("graphile-worker", peers::graphile_worker),
    ("pg-boss", peers::pg_boss),
    ("rabbitmq", peers::rabbitmq),
];

pub(crate) use tagwerk::serve;

/// A port that nobody listens on.
fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0").context("no free port")?.local_addr()?.port())
}

/// Waits until somebody listens there.
fn listens(server: &mut Process, port: u16) -> anyhow::Result<()> {
    let mut gone = false;
    system::wait_until("starting", PATIENCE, || {
        gone = server.has_ended();
        gone || TcpStream::connect(("127.0.0.1", port)).is_ok()
    })?;
    anyhow::ensure!(!gone, "it ended while it started; its log says why");
    Ok(())
}

/// Starts a server that says on stdout where it listens; answers its address without the scheme.
fn announced(place: &Place, mut command: Command, name: &str) -> anyhow::Result<(Process, String)> {
    command.stdout(Stdio::piped());
    let mut server = place.roster.start(command, &place.log(name))?;
    let stdout = server.child.stdout.take().context("no stdout")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let address = line.trim().strip_prefix("listening on http://");
    let address =
        address.with_context(|| format!("{name} did not start; see {}", place.log(name).display()))?;
    Ok((server, address.to_owned()))
}

/// Settings as the report shows them.
fn lines(settings: &[&str]) -> Vec<String> {
    settings.iter().map(|line| (*line).to_owned()).collect()
}
