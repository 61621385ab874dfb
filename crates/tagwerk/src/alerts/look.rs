//! Looking: every few seconds figures are read, judged, and what follows is handed to the committer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tagwerk_core::Timestamp;
use tagwerk_core::alert::{Change, Kind, Moment, Reading, Scope, judge, measure};
use tagwerk_engine::Vitals;
use tagwerk_engine::command::{AlertAnswer, AlertCall, Judgement, Turn};
use tagwerk_engine::message::By;
use tagwerk_engine::row::{AlertRow, Ways};
use tagwerk_engine::watch::{Look, Watch};
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

use super::{Shared, stopped};
use crate::http::ask;

/// A way to tell what is not in the store.
type Outlet = mpsc::Sender<(AlertRow, Turn)>;

/// Looks until the server stops.
pub(super) async fn run(shared: Arc<Shared>, outlets: Vec<Outlet>, mut stopping: watch::Receiver<bool>) {
    let mut looker = Looker { shared, outlets, watch: Some(Watch::default()), unwritten: None };
    let every = Duration::from_millis(looker.shared.settings.every_ms.unsigned_abs());
    let mut ticks = tokio::time::interval(every);
    // After a standstill one look tells what many would.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => looker.look().await,
            () = stopped(&mut stopping) => return,
        }
    }
}

struct Looker {
    shared: Arc<Shared>,
    outlets: Vec<Outlet>,
    /// Away during a look.
    watch: Option<Watch>,
    /// The store cannot be written: as it was told from memory, and since when it works again.
    unwritten: Option<(AlertRow, Option<Timestamp>)>,
}

impl Looker {
    async fn look(&mut self) {
        let now = self.shared.clock.now();
        let vitals = self.shared.engine.vitals();
        self.memory(&vitals, now);
        match self.read(vitals, now).await {
            Ok(look) => {
                if self.judged(look).await {
                    self.shared.metrics.looked(now);
                }
            }
            Err(error) => tracing::debug!(%error, "the figures for alerts could not be read"),
        }
    }

    async fn read(&mut self, vitals: Vitals, now: Timestamp) -> Result<Look, String> {
        let mut watch = self.watch.take().unwrap_or_default();
        let shared = Arc::clone(&self.shared);
        let looked = tokio::task::spawn_blocking(move || {
            let looked = shared.engine.readers().snapshot().and_then(|mut snapshot| {
                let seen = (&vitals, shared.metrics.run_times());
                watch.look(&mut *snapshot, seen, (&shared.settings.rules, now))
            });
            (watch, looked)
        });
        let (watch, looked) = looked.await.map_err(|error| error.to_string())?;
        self.watch = Some(watch);
        looked.map_err(|error| error.to_string())
    }

    /// Judges and has it written. `false`: it could not be.
    async fn judged(&mut self, look: Look) -> bool {
        let rules = &self.shared.settings.rules;
        let mut readings = measure(&look.figures, rules);
        if self.unwritten.is_some() {
            readings.retain(|reading| reading.kind != Kind::Store);
        }
        let open: Vec<_> = look.open.iter().map(AlertRow::open).collect();
        let moment = Moment { now: look.at, watched_since: look.since, calm_ms: rules.calm_ms };
        let changes = judge(&readings, &open, moment);
        if changes.is_empty() && look.marks.is_empty() {
            return true;
        }
        let owners = changes.iter().filter_map(|change| {
            let Change::Open(reading) = change else { return None };
            Some((reading.scope.clone(), rules.owner(&reading.scope)?.to_owned()))
        });
        let owners: BTreeMap<Scope, String> = owners.collect();
        let failing = changes.iter().find_map(|change| match change {
            Change::Open(reading) if reading.kind == Kind::Store => Some(reading.clone()),
            _ => None,
        });
        let judgement = Judgement { changes, owners, ways: self.ways(), marks: look.marks };
        let call = AlertCall::Judge(judgement);
        match ask(|reply| self.shared.engine.alert((call, By::local()), reply)).await {
            Ok(AlertAnswer::Judged { opened, closed }) => {
                for row in &opened {
                    say(row, Turn::Opened);
                }
                for row in &closed {
                    say(row, Turn::Closed);
                }
                if !(opened.is_empty() && closed.is_empty()) {
                    self.shared.news.notify_waiters();
                }
                true
            }
            Ok(_) => true,
            Err(error) => {
                tracing::debug!(%error, "what alerts have come to could not be written");
                if let Some(reading) = failing {
                    self.fail(&reading, look.at);
                }
                false
            }
        }
    }

    /// The store cannot be written, and that cannot be written either.
    fn fail(&mut self, reading: &Reading, now: Timestamp) {
        let row = AlertRow {
            id: 0,
            kind: reading.kind,
            scope: reading.scope.clone(),
            opened_at: now,
            seen_at: now,
            calm_since: None,
            closed_at: None,
            acknowledged: None,
            owner: self.shared.settings.rules.owner(&reading.scope).map(str::to_owned),
            detail: reading.detail.clone(),
            value: reading.value,
            threshold: reading.threshold,
            due_opened: Ways::NONE,
            due_closed: Ways::NONE,
        };
        self.tell(&row, Turn::Opened);
        self.unwritten = Some((row, None));
    }

    /// How the alert that is only in memory goes on: the same as one of the store would.
    fn memory(&mut self, vitals: &Vitals, now: Timestamp) {
        let Some((row, calm_since)) = &mut self.unwritten else { return };
        if vitals.failing.is_some() {
            *calm_since = None;
            row.seen_at = now;
            return;
        }
        let since = *calm_since.get_or_insert(now);
        if now.since_ms(since) >= self.shared.settings.rules.calm_ms
            && let Some((mut row, _)) = self.unwritten.take()
        {
            row.closed_at = Some(now);
            self.tell(&row, Turn::Closed);
        }
    }

    fn tell(&self, row: &AlertRow, turn: Turn) {
        say(row, turn);
        for outlet in &self.outlets {
            // A way that hangs with this many waiting has been told enough.
            drop(outlet.try_send((row.clone(), turn)));
        }
    }

    fn ways(&self) -> Ways {
        self.shared.settings.ways().into_iter().fold(Ways::NONE, Ways::with)
    }
}

/// The line in the log.
fn say(row: &AlertRow, turn: Turn) {
    let (alert, kind, detail) = (row.id, row.kind.name(), row.detail.as_str());
    let owner = row.owner.as_deref().unwrap_or_default();
    match turn {
        Turn::Opened => tracing::warn!(alert, kind, owner, detail, "an alert has opened"),
        Turn::Closed => tracing::info!(alert, kind, owner, detail, "an alert has closed"),
    }
}
