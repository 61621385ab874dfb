//! The HTTP interface: decode, hand to the engine, wait, encode.
//!
//! A handler holds no rule about jobs. It reads the request through [`tagwerk_api::door`], turns it into a command of
//! the engine ([`decode`]), waits for the answer ([`ask`]) or reads a snapshot ([`reading`]), and shows it ([`view`]).
//! Whatever is refused becomes a problem in one place ([`problem`]). What holds for every request, whatever its path,
//! stands in [`gate`].
//!
//! Who may do what with which jobs, once there are API tokens, stands in [`access`].
//!
//! Deliberately absent: CORS (no page of another origin has business here), compression.

mod access;
mod alerts;
mod ask;
mod audit;
mod claim;
mod decode;
mod effects;
mod gate;
mod health;
mod jobs;
mod limits;
mod operate;
mod overview;
mod owners;
mod problem;
mod queues;
mod reading;
mod reply;
mod report;
mod review;
mod router;
mod sent;
mod stream;
mod types;
mod view;

use std::sync::Arc;

use tagwerk_api::door::Door;
use tagwerk_core::Timestamp;
use tagwerk_core::rate::Rate;
use tagwerk_engine::Engine;
use tagwerk_engine::ports::Clock;
use tokio::sync::watch;

use crate::metrics::Metrics;

pub(crate) use access::Leaseless;
pub(crate) use ask::{Caller, Connection, ask};
pub(crate) use gate::{Callers, Gate};

/// What the server is made of, as it is handed in.
pub(crate) struct Parts {
    /// The engine, running.
    pub(crate) engine: Engine,
    /// The strict decoder, with the limits of this server.
    pub(crate) door: Door,
    /// The one clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// Who counts.
    pub(crate) metrics: Arc<Metrics>,
    /// Host names besides the loopback ones, in lower case.
    pub(crate) hosts: Vec<String>,
    /// Who may call while there are no tokens.
    pub(crate) callers: Callers,
    /// Requests that tokens allow which have no rate of their own.
    pub(crate) token_rate: Option<Rate>,
    /// Whether callers with a token may report without a lease.
    pub(crate) leaseless: Leaseless,
    /// Turns true when the server is told to stop.
    pub(crate) stopping: watch::Receiver<bool>,
}

/// What handlers share.
pub(crate) struct App {
    engine: Engine,
    door: Arc<Door>,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    stopping: watch::Receiver<bool>,
    started_at: Timestamp,
    owners: owners::Owners,
    known: access::Known,
    turns: reading::Turns,
    rooms: sent::Rooms,
    streams: stream::Streams,
}

impl App {
    fn new(parts: Parts) -> Self {
        Self {
            started_at: parts.clock.now(),
            engine: parts.engine,
            door: Arc::new(parts.door),
            clock: parts.clock,
            metrics: parts.metrics,
            stopping: parts.stopping,
            owners: owners::Owners::default(),
            known: access::Known::new(parts.leaseless, parts.token_rate),
            turns: reading::Turns::default(),
            rooms: sent::Rooms::default(),
            streams: stream::Streams::default(),
        }
    }

    /// Whether the server is shutting down.
    fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }
}
