//! Telling on one way: what is still to be told stands in the store.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tagwerk_core::limits;
use tagwerk_engine::command::{AlertCall, Turn};
use tagwerk_engine::message::By;
use tagwerk_engine::row::{AlertQuery, AlertRow, Ways, Which};
use tokio::sync::{mpsc, watch};

use super::message::Message;
use super::{Shared, command, stopped, webhook};
use crate::http::ask;

/// Pauses between tries. After the last one it is given up: what is still so is told in `GET /alerts`.
const PAUSES: [Duration; 4] =
    [Duration::from_secs(5), Duration::from_secs(30), Duration::from_mins(2), Duration::from_mins(10)];
/// How often the store is asked without news: marks that could not be written, rows of before a restart.
const WITHOUT_NEWS: Duration = Duration::from_secs(30);

/// Why a try has failed.
#[derive(Debug)]
pub(super) struct Failed {
    why: String,
    /// It may be tried again.
    again: bool,
}

impl Failed {
    /// Another try may do.
    pub(super) fn again(why: impl Into<String>) -> Self {
        Self { why: why.into(), again: true }
    }

    /// Another try would do the same, or harm.
    pub(super) fn for_good(why: impl Into<String>) -> Self {
        Self { why: why.into(), again: false }
    }
}

/// What one way remembers.
struct Teller {
    shared: Arc<Shared>,
    way: Ways,
    /// Tries so far, and when the next one is, on the monotonic clock.
    tries: HashMap<(i64, Turn), (usize, Duration)>,
    /// Told, and not yet written down.
    told: HashSet<(i64, Turn)>,
}

/// Tells until the server stops.
pub(super) async fn run(
    shared: Arc<Shared>,
    (way, mut memory): (Ways, mpsc::Receiver<(AlertRow, Turn)>),
    mut stopping: watch::Receiver<bool>,
) {
    let mut teller = Teller { shared: Arc::clone(&shared), way, tries: HashMap::new(), told: HashSet::new() };
    loop {
        // Registered before it is looked, so that nothing that comes meanwhile is missed.
        let news = shared.news.notified();
        let wait = teller.round(&stopping).await;
        tokio::select! {
            () = news => {}
            // tidy: sleep because the next try has its time, and rows of before a restart come without news
            () = tokio::time::sleep(wait) => {}
            Some((row, turn)) = memory.recv() => teller.tell_once(&row, turn).await,
            () = stopped(&mut stopping) => return,
        }
    }
}

impl Teller {
    /// Tells what is due; says how long there is nothing to do.
    async fn round(&mut self, stopping: &watch::Receiver<bool>) -> Duration {
        let due = match self.due().await {
            Ok(due) => due,
            Err(error) => {
                tracing::debug!(%error, "who is to be told of alerts could not be read");
                return WITHOUT_NEWS;
            }
        };
        self.tries.retain(|(id, _), _| due.iter().any(|row| row.id == *id));
        let mut wait = WITHOUT_NEWS;
        for row in due {
            for (turn, ways) in [(Turn::Opened, row.due_opened), (Turn::Closed, row.due_closed)] {
                if !ways.meets(self.way) {
                    continue;
                }
                if *stopping.borrow() {
                    return wait;
                }
                if let Some(until) = self.turn(&row, turn).await {
                    wait = wait.min(until);
                    // That it closed is told behind that it opened.
                    break;
                }
            }
        }
        wait
    }

    async fn due(&self) -> Result<Vec<AlertRow>, String> {
        let readers = self.shared.engine.readers();
        let query = AlertQuery { after: 0, which: Which::Due, limit: limits::ALERTS_KEPT_MAX };
        let read = tokio::task::spawn_blocking(move || readers.snapshot()?.alerts(&query)).await;
        read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }

    /// Tells of one turn, if it is time. Returns how long it has to wait if it is not settled.
    async fn turn(&mut self, row: &AlertRow, turn: Turn) -> Option<Duration> {
        let key = (row.id, turn);
        if !self.told.contains(&key) {
            let now = self.shared.clock.monotonic();
            let (tries, next) = self.tries.get(&key).copied().unwrap_or_default();
            let left = next.saturating_sub(now);
            if !left.is_zero() {
                return Some(left);
            }
            let failed = self.deliver(row, turn).await.err();
            let again = failed.filter(|failed| failed.again).and_then(|_| PAUSES.get(tries));
            if let Some(pause) = again {
                let now = self.shared.clock.monotonic();
                self.tries.insert(key, (tries + 1, now + *pause));
                return Some(*pause);
            }
            self.tries.remove(&key);
            self.told.insert(key);
        }
        let call = AlertCall::Told { id: row.id, turn, way: self.way };
        match ask(|reply| self.shared.engine.alert((call, By::local()), reply)).await {
            Ok(_) => {
                self.told.remove(&key);
                None
            }
            // It is written down later; nobody is told again meanwhile.
            Err(_) => None,
        }
    }

    /// One try.
    async fn deliver(&self, row: &AlertRow, turn: Turn) -> Result<(), Failed> {
        let message = Message::new(row, turn).map_err(|error| Failed::for_good(error.to_string()))?;
        let done = self.send(&message).await;
        let (way, id) = (self.name(), &message.id);
        match &done {
            Ok(()) => {
                self.shared.metrics.alert_told(way, "delivered");
                tracing::debug!(way, id, "told of an alert");
            }
            Err(Failed { why, again }) => {
                self.shared.metrics.alert_told(way, "failed");
                tracing::error!(way, id, again, why, "telling of an alert failed");
            }
        }
        done
    }

    async fn send(&self, message: &Message) -> Result<(), Failed> {
        let Shared { settings, outgoing, clock, .. } = &*self.shared;
        if self.way == Ways::COMMAND {
            return command::run(settings, message).await;
        }
        match (&settings.webhook, &settings.secret) {
            (Some(to), Some(secret)) => {
                webhook::send((&**outgoing, to), secret, (message, clock.now())).await
            }
            _ => Err(Failed::for_good("alerts.webhook is not set")),
        }
    }

    /// The store cannot be written, so this is not in it. Tried once: it is told again by the next start, and by its end.
    async fn tell_once(&self, row: &AlertRow, turn: Turn) {
        drop(self.deliver(row, turn).await);
    }

    fn name(&self) -> &'static str {
        if self.way == Ways::COMMAND { "command" } else { "webhook" }
    }
}
