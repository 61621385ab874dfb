//! `tagwerk serve`: opens the store, starts the engine, listens, and ends in order.
//!
//! # How it ends
//!
//! SIGTERM or SIGINT: no connection is accepted any more, claims that wait are answered at once (empty), new work is
//! refused, reports are still taken; requests that are under way get their answer (10 s at most), then the committer
//! finishes what it has and the store is closed. A second signal skips the waiting, never the committer.
//!
//! SIGHUP reads the TLS certificate anew, where there is one.
//!
//! # Exit codes
//!
//! | code | meaning |
//! |---|---|
//! | 0 | ended as it was told |
//! | 1 | something unexpected; the message says what |
//! | 2 | the command line or the configuration is not usable, or asks for what this version refuses |
//! | 3 | the store is in use by another process |
//! | 4 | the store cannot be used: damaged, not a store, from a newer version, not writable |
//! | 5 | it is not possible to listen there: the address is in use or not allowed |

mod connection;
mod listen;
mod reach;
mod socket;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use hyper_util::server::graceful::GracefulShutdown;
use tagwerk_api::door::Door;
use tagwerk_core::limits;
use tagwerk_engine::Engine;
use tagwerk_engine::command::EngineError;
use tagwerk_engine::committer::Ports;
use tagwerk_engine::ports::{Clock, Entropy};
use tagwerk_engine::settings::LeaseToken;
use tagwerk_sqlite::{OpenError, Options, SqliteStore};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::alerts::Alerts;
use crate::config::{Config, Listen, LogLevel, StoreUrl};
use crate::http::{Gate, Leaseless, Parts};
use crate::metrics::Metrics;
use crate::system::{self, SystemClock, SystemEntropy};
use connection::Connections;
use listen::{ListenError, Listener};
use tls::{Tls, TlsError};

pub(crate) use tls::TlsFiles;

/// How long the process waits for alerts that are being told.
const LAST_TOLD: Duration = Duration::from_secs(3);
/// How long the process waits for threads that still read, after everything has been answered and stored.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why the server did not start, by its exit code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// It would have to listen where others can reach it, unprotected.
    #[error(transparent)]
    Open(#[from] reach::OpenToOthers),
    /// The certificate or its key is not usable.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A store that this version does not have.
    #[error("{0}: PostgreSQL is not in this version; use sqlite:FILE")]
    NoSuchStore(String),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The address cannot be had.
    #[error(transparent)]
    Listen(#[from] ListenError),
}

impl StartError {
    /// The exit code of the table above.
    pub(crate) const fn code(&self) -> u8 {
        match self {
            Self::Open(_) | Self::Tls(_) | Self::NoSuchStore(_) => 2,
            Self::Store(OpenError::InUse { .. }) => 3,
            Self::Store(_) => 4,
            Self::Listen(_) => 5,
        }
    }
}

/// Serves until it is told to stop. What keeps it from starting is a [`StartError`], or something unexpected.
pub(crate) fn run(config: Config) -> anyhow::Result<()> {
    log_to_stderr(config.log);
    start(config)
}

/// Our own lines from `level` on, other libraries' warnings. They know nothing of what must not be logged, so they are
/// never asked for more.
fn log_to_stderr(level: LogLevel) {
    let own = level.name();
    let others = if level == LogLevel::Error { "error" } else { "warn" };
    let filter = format!("{others},tagwerk={own},tagwerk_engine={own},tagwerk_sqlite={own}");
    let subscriber = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_env_filter(tracing_subscriber::EnvFilter::new(filter));
    // Only a second call in one process could fail, and then the first subscriber stays.
    drop(subscriber.try_init());
}

fn start(config: Config) -> anyhow::Result<()> {
    let callers = reach::callers(&config).map_err(StartError::from)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let entropy: Arc<dyn Entropy> =
        Arc::new(SystemEntropy::new().context("the operating system gives no randomness")?);
    let (stop, stopping) = watch::channel(false);
    let tls = tls(&config, (&clock, &stopping))?;
    let store = open(&config.store, &*clock, &*entropy)?;
    reach::require_tokens(callers, &config, &store)?;
    let door = Door::new(config.door_limits());
    let may_lack = config.is_set("require_lease") && config.engine.lease_token == LeaseToken::Optional;
    let leaseless = if may_lack { Leaseless::SameToken } else { Leaseless::Refused };
    let metrics = Arc::new(Metrics::default());
    let ports = Ports { clock: Arc::clone(&clock), entropy, observer: Arc::clone(&metrics) as _ };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(limits::BLOCKING_THREADS)
        .build()
        .context("the runtime could not be started")?;
    let ended = runtime.block_on(async {
        // Bound before the engine starts: who cannot listen must not have touched a lease.
        let listener = Listener::bind(&config.listen).map_err(StartError::from)?;
        let (engine, thread) = Engine::start(Box::new(store), ports, config.engine)
            .context("the engine could not be started")?;
        let (alert_clock, watched) = (Arc::clone(&clock), stopping.clone());
        let gate = Gate::new(Parts {
            engine: engine.clone(),
            door,
            clock,
            metrics: Arc::clone(&metrics),
            hosts: reach::hosts(&config.listen, config.hosts),
            callers,
            token_rate: config.token_rate,
            leaseless,
            stopping,
        });
        let alerts =
            Alerts::start(engine.clone(), (alert_clock, Arc::clone(&metrics)), config.alerts, &watched)?;
        gate.prepare().await?;
        if let Some(tls) = &tls {
            tls.renew_on_hangup().context("signals cannot be received")?;
        }
        let scheme = if tls.is_some() { "https" } else { "http" };
        let connections = Connections::new((gate, tls), metrics, system::raise_file_limit());
        let mut committer = tokio::task::spawn_blocking(move || thread.join());
        serve((listener, scheme), connections, (&engine, &stop, &mut committer)).await?;
        alerts.end(LAST_TOLD).await;
        end(engine, committer).await
    });
    // A read that is still under way has nobody left to answer.
    runtime.shutdown_timeout(LAST_WORDS);
    ended
}

/// What connections are encrypted with, if they are.
fn tls(
    config: &Config,
    (clock, stopping): (&Arc<dyn Clock>, &watch::Receiver<bool>),
) -> Result<Option<Arc<Tls>>, StartError> {
    let tls = Tls::load(&config.tls, Arc::clone(clock), stopping.clone())?;
    match (&tls, &config.listen) {
        (Some(_), Listen::Unix(_)) => Err(TlsError::Socket.into()),
        _ => Ok(tls),
    }
}

/// Opens the store that the configuration names.
fn open(url: &StoreUrl, clock: &dyn Clock, entropy: &dyn Entropy) -> anyhow::Result<SqliteStore> {
    let path = match url {
        StoreUrl::Sqlite(path) => path,
        StoreUrl::Postgres(_) => return Err(StartError::NoSuchStore(url.to_string()).into()),
    };
    let mut secret = [0; 32];
    for chunk in secret.as_chunks_mut().0 {
        *chunk = entropy.u64().to_le_bytes();
    }
    let mut options = Options::new(clock.now(), secret);
    options.readers = limits::READS_AT_ONCE;
    let store = SqliteStore::open(path, &options).map_err(StartError::from)?;
    tracing::info!(store = %url, version = env!("CARGO_PKG_VERSION"), "opened the store");
    Ok(store)
}

/// Accepts connections until a signal comes, then lets what is under way end.
async fn serve(
    (listener, scheme): (Listener, &str),
    connections: Connections,
    engine: (&Engine, &watch::Sender<bool>, &mut Committer),
) -> anyhow::Result<()> {
    let (engine, stop, committer) = engine;
    let mut signals = Signals::new()?;
    let open = GracefulShutdown::new();
    announce(&listener.shown(scheme));
    tokio::select! {
        () = connections.accept(&listener, &open) => {}
        name = signals.next() => tracing::info!(signal = name, "stopping: no new work, finishing what is under way"),
        // Without it nothing can be served; whoever started the server starts it again.
        _ = committer => anyhow::bail!("the committer has ended by itself; this is a bug"),
    }
    drop(listener);
    stop.send_replace(true);
    engine.drain();
    let patience = Duration::from_millis(limits::SHUTDOWN_MS.unsigned_abs());
    tokio::select! {
        ended = tokio::time::timeout(patience, open.shutdown()) => {
            if ended.is_err() {
                tracing::warn!("some requests did not end in time; their connections are closed");
            }
        }
        name = signals.next() => tracing::warn!(signal = name, "a second signal: connections are closed at once"),
    }
    Ok(())
}

/// Says on stdout where the server listens. Whoever started it may not be reading, and that is no reason to stop.
fn announce(address: &str) {
    use std::io::Write as _;
    let mut stdout = std::io::stdout().lock();
    drop(writeln!(stdout, "listening on {address}").and_then(|()| stdout.flush()));
    tracing::info!(address, "listening");
}

/// The committer's thread, awaited.
type Committer = JoinHandle<Result<(), EngineError>>;

/// Stops the committer and waits until the store is closed.
async fn end(engine: Engine, committer: Committer) -> anyhow::Result<()> {
    engine.stop();
    drop(engine);
    committer.await.context("waiting for the committer")?.context("the committer has ended with a panic")?;
    tracing::info!("stopped");
    Ok(())
}

/// The signals that end the server.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> anyhow::Result<Self> {
        let on = |kind| signal(kind).context("signals cannot be received");
        Ok(Self { terminate: on(SignalKind::terminate())?, interrupt: on(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
