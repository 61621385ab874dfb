//! The peers, each as its own documentation says a fast user would run it, and never without fsync.

use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use rustix::process::Signal;

use super::{free_port, lines, listens};
use crate::install;
use crate::measure::Measure;
use crate::processes::{Process, first_line, output, program};
use crate::subject::{About, Kind, Place, Reset, Subject};

/// Where Debian puts the broker's own start script; the one in the path changes the user.
const RABBIT: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";

/// Runs in the folder with the clients; prints a version.
fn client_version(folder: &Path, package: &str) -> String {
    let line = first_line(Command::new("node").args(["versions.mjs", package]).current_dir(folder));
    format!("{package} {line}")
}

fn peer(name: &str, version: String, settings: &[&str]) -> About {
    About { name: name.to_owned(), kind: Kind::Peer, version, settings: lines(settings) }
}

pub(super) fn beanstalkd(place: &Place) -> anyhow::Result<Subject> {
    install::debian(Path::new("/usr/bin/beanstalkd"), "beanstalkd")?;
    let (folder, port) = (place.fresh("beanstalkd")?, free_port()?);
    let mut command = program("/usr/bin/beanstalkd");
    command.arg("-b").arg(&folder).args(["-f", "0", "-l", "127.0.0.1", "-p", &port.to_string()]);
    let mut server = place.roster.start(command, &place.log("beanstalkd"))?;
    listens(&mut server, port)?;
    let settings = [
        "-b DIR -f 0: an fsync for each write",
        "one call at a time on each of 64 (512) connections; put, reserve, delete; client of our own",
        "no idempotency keys; a deleted job is gone",
    ];
    Ok(Subject {
        about: peer("beanstalkd", first_line(Command::new("/usr/bin/beanstalkd").arg("-v")), &settings),
        measures: &Measure::QUEUE,
        reset: Reset::Restart,
        driver: place.drive("beanstalkd", &format!("127.0.0.1:{port}"))?,
        servers: vec![server],
        pending: 0,
    })
}

pub(super) fn bullmq(place: &Place) -> anyhow::Result<Subject> {
    install::debian(Path::new("/usr/bin/redis-server"), "redis-server")?;
    let node = install::node(&place.root)?;
    let (folder, port) = (place.fresh("redis")?, free_port()?);
    let mut command = program("/usr/bin/redis-server");
    let durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
    command
        .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
        .args(durable)
        .arg("--dir")
        .arg(&folder);
    let mut server = place.roster.start(command, &place.log("redis"))?;
    listens(&mut server, port)?;
    let redis = first_line(Command::new("/usr/bin/redis-server").arg("--version"));
    let redis = redis.split_whitespace().nth(2).unwrap_or_default().replace("v=", "Redis ");
    let settings = [
        "appendonly yes, appendfsync always, no RDB snapshots",
        "enqueue: Queue.add, keys as custom jobId; bulk: addBulk of 250, 4 at once",
        "drain: one Worker with concurrency 64; removeOnComplete as its guide advises, so completed jobs are gone",
    ];
    Ok(Subject {
        about: peer("bullmq", format!("{}, {redis}", client_version(&node, "bullmq")), &settings),
        measures: &Measure::QUEUE,
        reset: Reset::Ask,
        driver: place.node(&node, ["bullmq", &port.to_string()])?,
        servers: vec![server],
        pending: 0,
    })
}

pub(super) fn graphile_worker(place: &Place) -> anyhow::Result<Subject> {
    let node = install::node(&place.root)?;
    let (server, address, postgres) = postgres(place, "graphile-worker")?;
    let settings = [
        "PostgreSQL's own defaults (fsync, synchronous_commit on, full_page_writes), max_connections = 200",
        "enqueue: addJob over a pool of 64, keys as jobKey; bulk: addJobs of 1,000, 2 at once",
        "drain, one a call: defaults with 64 concurrent jobs and a pool of 65",
        "drain in bulk: the preset of its page on performance (24 concurrent, localQueue 500, batched completion)",
        "a completed job is gone",
    ];
    Ok(Subject {
        about: peer(
            "graphile-worker",
            format!("{}, {postgres}", client_version(&node, "graphile-worker")),
            &settings,
        ),
        measures: &Measure::QUEUE,
        reset: Reset::Ask,
        driver: place.node(&node, ["graphile-worker", &address])?,
        servers: vec![server],
        pending: 0,
    })
}

pub(super) fn pg_boss(place: &Place) -> anyhow::Result<Subject> {
    let node = install::node(&place.root)?;
    let (server, address, postgres) = postgres(place, "pg-boss")?;
    let settings = [
        "PostgreSQL's own defaults (fsync, synchronous_commit on, full_page_writes), max_connections = 200",
        "enqueue: send over a pool of 64, keys as the job's own id; bulk: insert of 1,000, 2 at once",
        "drain, one a call: fetch and complete of one in 64 loops; in bulk: of 100 in 4 loops; no supervision, no cron",
        "latency: work() at its shortest polling interval, 0.5 s",
    ];
    Ok(Subject {
        about: peer("pg-boss", format!("{}, {postgres}", client_version(&node, "pg-boss")), &settings),
        measures: &Measure::QUEUE,
        reset: Reset::Ask,
        driver: place.node(&node, ["pg-boss", &address])?,
        servers: vec![server],
        pending: 0,
    })
}

/// A cluster of its own: the server, how to reach it, its version.
fn postgres(place: &Place, name: &str) -> anyhow::Result<(Process, String, String)> {
    let programs = install::postgres()?;
    let (folder, port) = (place.fresh(&format!("postgres-{name}"))?, free_port()?);
    let user = unprivileged(&folder)?;
    let data = folder.join("data");
    let mut initdb = as_user(user, &programs.join("initdb"));
    initdb.args(["--auth=trust", "--username=bench", "--encoding=UTF8", "--locale=C", "-D"]).arg(&data);
    output(initdb.current_dir(&folder)).context("initdb; can the user postgres reach the folder?")?;
    let mut command = as_user(user, &programs.join("postgres"));
    command.arg("-D").arg(&data).args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
    command.args(["-c", "unix_socket_directories=", "-c", "max_connections=200"]).current_dir(&folder);
    let server = place.roster.start(command, &place.log(name))?;
    // "Fast shutdown": connections are closed.
    let mut server = server.ended_by(Signal::INT);
    listens(&mut server, port)?;
    let address = format!("postgres://bench@127.0.0.1:{port}/postgres");
    crate::system::wait_until("PostgreSQL's start", super::PATIENCE, || {
        let words = ["-h", "127.0.0.1", "-p", &port.to_string(), "-q"];
        output(Command::new(programs.join("pg_isready")).args(words)).is_ok()
    })?;
    let version = first_line(Command::new(programs.join("postgres")).arg("--version"));
    let version = version.split_whitespace().nth(2).unwrap_or_default();
    Ok((server, address, format!("PostgreSQL {version}")))
}

/// PostgreSQL refuses to run as root: its folder then belongs to the user that Debian made for it.
fn unprivileged(folder: &Path) -> anyhow::Result<Option<(u32, u32)>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let id = |flag: &str| first_line(Command::new("id").args([flag, "postgres"])).parse::<u32>();
    let (user, group) =
        id("-u").and_then(|user| Ok((user, id("-g")?))).context("there is no user postgres")?;
    chown(folder, Some(user), Some(group))?;
    Ok(Some((user, group)))
}

/// A call of a program as that user, or as we are.
fn as_user(user: Option<(u32, u32)>, name: &Path) -> Command {
    let Some((user, group)) = user else { return program(name) };
    let mut command = program("setpriv");
    let (user, group) = (format!("--reuid={user}"), format!("--regid={group}"));
    command.args([&user, &group, "--clear-groups", "--pdeathsig=KILL", "--"]).arg(name);
    command
}

pub(super) fn rabbitmq(place: &Place) -> anyhow::Result<Subject> {
    install::debian(Path::new(RABBIT), "rabbitmq-server")?;
    let node = install::node(&place.root)?;
    let (folder, port) = (place.fresh("rabbitmq")?, free_port()?);
    let (mut servers, version) = rabbit_servers(place, (&folder, port))?;
    if let Some(server) = servers.last_mut() {
        listens(server, port)?;
    }
    let settings = [
        "a durable quorum queue of one node: its log is synced before a publisher's confirm",
        "own node, epmd and folder; schedulers do not spin (+sbwt none), as its guide advises for shared cores",
        "noDelay; enqueue: confirmed one by one, 64 (512) unconfirmed; bulk: 1,000 published at once, 2 at once",
        "drain, one a call: prefetch 64, an ack each; in bulk: prefetch 500, an ack for 100; acks are not confirmed",
        "a broker, not a job ledger: no idempotency keys, an acknowledged message is gone",
    ];
    Ok(Subject {
        about: peer(
            "rabbitmq",
            format!("RabbitMQ {version}, {}", client_version(&node, "amqplib")),
            &settings,
        ),
        measures: &Measure::QUEUE,
        reset: Reset::Ask,
        driver: place.node(&node, ["rabbitmq", &port.to_string()])?,
        servers,
        pending: 0,
    })
}

/// The name server of Erlang and the broker, with nothing of the machine's own installation but the programs.
fn rabbit_servers(place: &Place, at: (&PathBuf, u16)) -> anyhow::Result<(Vec<Process>, String)> {
    let (folder, port) = at;
    let names = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let mut command = program("epmd");
    command.args(["-address", "127.0.0.1", "-port", &names]);
    let epmd = place.roster.start(command, &place.log("epmd"))?;
    std::fs::write(folder.join("enabled_plugins"), "[].\n")?;
    std::fs::write(folder.join("rabbitmq.conf"), "vm_memory_high_watermark.relative = 0.6\n")?;
    std::fs::write(folder.join("env.conf"), "")?;
    let mut command = program(RABBIT);
    let path = |name: &str| folder.join(name);
    command
        .env("HOME", folder)
        .env("ERL_EPMD_PORT", &names)
        .env("RABBITMQ_CONF_ENV_FILE", path("env.conf"))
        .env("RABBITMQ_CONFIG_FILE", path("rabbitmq.conf"))
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", path("enabled_plugins"))
        .env("RABBITMQ_MNESIA_BASE", path("mnesia"))
        .env("RABBITMQ_LOG_BASE", path("log"))
        .env("RABBITMQ_PID_FILE", path("pid"))
        .env("RABBITMQ_NODENAME", format!("tagwerk_bench_{port}@localhost"))
        .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
        .env("RABBITMQ_NODE_PORT", port.to_string())
        .env("RABBITMQ_DIST_PORT", free_port()?.to_string())
        .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "+sbwt none +sbwtdcpu none +sbwtdio none");
    let broker = place.roster.start(command, &place.log("rabbitmq"))?.ended_by(Signal::KILL);
    let version = first_line(Command::new("dpkg-query").args(["-W", "-f", "${Version}", "rabbitmq-server"]));
    Ok((vec![epmd, broker], version))
}
