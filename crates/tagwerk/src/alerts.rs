//! Alerts in the running server: looking, telling people, and nothing else.
//!
//! | file | what |
//! |---|---|
//! | `settings` | what the operator has said |
//! | `look` | looks every few seconds, has openings and closings written by the committer |
//! | `tell` | tells of them: reads from the store who has still to be told, so that a restart forgets nobody |
//! | `command` | one way: a command with JSON on stdin |
//! | `webhook` | the other: a signed POST |
//! | `heartbeat` | a call each minute, for who watches from outside |
//! | `outgoing`, `guard`, `target` | the client of both, and where it may not go |
//! | `message`, `figures` | what is told |
//!
//! Guarantees: an opening and a closing are each told once on each way, and told again only where nobody knows whether the
//! first time came through (the server was killed in between); a way that hangs, fails or is missing delays neither the
//! queue nor other ways nor the looks. While the store cannot be written, that is told from memory.
//!
//! Deliberately absent: what rings (in `tagwerk_core::alert`), rows (the committer's), clocks.

mod command;
pub(crate) mod figures;
mod guard;
mod heartbeat;
mod look;
mod message;
mod outgoing;
mod settings;
mod target;
mod tell;
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tagwerk_engine::Engine;
use tagwerk_engine::ports::Clock;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;

use crate::metrics::Metrics;

use outgoing::{Outgoing, System};
pub(crate) use settings::AlertSettings;
pub(crate) use target::Target;
pub(crate) use webhook::Secret;

/// How many messages from memory wait for a way: they are about the store, and there are two of them.
const FROM_MEMORY: usize = 16;

/// What looking and telling share.
struct Shared {
    engine: Engine,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    settings: AlertSettings,
    /// Who calls others.
    outgoing: Arc<Outgoing<System>>,
    /// Something is to be told.
    news: Notify,
}

/// The tasks.
pub(crate) struct Alerts(JoinSet<()>);

impl Alerts {
    /// Starts them on the present runtime. They end when `stopping` turns true.
    pub(crate) fn start(
        engine: Engine,
        (clock, metrics): (Arc<dyn Clock>, Arc<Metrics>),
        settings: AlertSettings,
        stopping: &watch::Receiver<bool>,
    ) -> anyhow::Result<Self> {
        settings.warn();
        let ways = settings.ways();
        let patience = Duration::from_millis(settings.webhook_ms.unsigned_abs());
        let outgoing = Outgoing::new(settings.targets(), (settings.internal_hosts.clone(), patience))
            .context("the client of webhooks could not be made")?;
        let outgoing = Arc::new(outgoing);
        let shared = Arc::new(Shared { engine, clock, metrics, settings, outgoing, news: Notify::new() });
        let mut tasks = JoinSet::new();
        let mut outlets = Vec::new();
        for way in ways {
            let (sender, receiver) = mpsc::channel(FROM_MEMORY);
            outlets.push(sender);
            tasks.spawn(tell::run(Arc::clone(&shared), (way, receiver), stopping.clone()));
        }
        if let Some(to) = shared.settings.heartbeat.clone() {
            let call = (Arc::clone(&shared.outgoing), to);
            tasks.spawn(heartbeat::run(Arc::clone(&shared), call, stopping.clone()));
        }
        tasks.spawn(look::run(shared, outlets, stopping.clone()));
        Ok(Self(tasks))
    }

    /// Waits until they have ended, for a while. What is under way then is cut off, and told again at the next start.
    pub(crate) async fn end(mut self, patience: Duration) {
        let all = async { while self.0.join_next().await.is_some() {} };
        if tokio::time::timeout(patience, all).await.is_err() {
            tracing::warn!("telling of an alert was cut off; it is told again at the next start");
        }
    }
}

/// Waits until the server is told to stop.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // A sender that is gone means the same.
    drop(stopping.wait_for(|stop| *stop).await);
}
