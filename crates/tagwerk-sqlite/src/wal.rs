//! Keeping the write-ahead log short.
//!
//! A thread of its own copies the log back into the file while the committer goes on writing (a *passive* checkpoint), so
//! that no commit pays for it. A log that is never empty is never written from its start again, so beyond a bound the
//! committer, between two transactions, lets the little that is left be copied and waits a moment for readers on old
//! snapshots (*restart*). When hardly anything is written, a long log is cut to nothing (*truncate*). A short one is
//! left alone, copied or not: a log that starts anew costs its next commit one more sync.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use crate::connect::{self, Setup};
use crate::error::{Fail, Res};
use crate::open::{Options, beside};

const LOOK: &str = "PRAGMA wal_checkpoint(NOOP)";
const PASSIVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";
const RESTART: &str = "PRAGMA wal_checkpoint(RESTART)";
const TRUNCATE: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// Pages not yet copied that are worth a passive checkpoint at once.
const PASSIVE_PAGES: i64 = 1024;
/// Pages not yet copied that are worth a passive checkpoint at the next housekeeping.
const LEISURELY_PAGES: i64 = 256;
/// Pages written from one housekeeping to the next that still count as quiet: whoever serves a store writes down every
/// second that it does, so a log never stands quite still.
const QUIET_PAGES: i64 = 64;
/// How long a restart waits for readers on old snapshots.
const RESTART_WAIT: Duration = Duration::from_millis(100);
/// Each failed restart doubles the growth after which the next is tried, so that a reader that never ends (somebody's
/// forgotten shell) does not slow commits down; this often at most.
const MOST_DOUBLINGS: u32 = 6;

/// State of the log, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Log {
    pages: i64,
    copied: i64,
}

/// Keeps the log of one store short.
pub(crate) struct Checkpointer {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Held during a checkpoint, so that a restart does not find a passive one in its way.
    turn: Arc<Mutex<()>>,
    busy_timeout: Duration,
    restart_pages: i64,
    /// A restart failed: the next is tried when the log has grown to this.
    patience: i64,
    /// Restarts that failed since the last that did not.
    failed_restarts: u32,
    at_last_housekeeping: Log,
    path: PathBuf,
    warm_bytes: u64,
}

impl Checkpointer {
    /// Starts the thread.
    pub(crate) fn start(path: &Path, options: &Options) -> Res<Self> {
        let setup = Setup { cache_bytes: 1024 * 1024, busy_timeout: options.busy_timeout };
        let conn = connect::writing(path, setup)?;
        conn.pragma_update(None, "synchronous", "FULL")?;
        conn.pragma_update(None, "wal_autocheckpoint", 0)?;
        let page_bytes: i64 = conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let restart_bytes = i64::try_from(options.wal_restart_bytes).unwrap_or(i64::MAX);
        let turn = Arc::new(Mutex::new(()));
        let (wake, woken) = sync_channel(1);
        let thread = std::thread::Builder::new().name("tagwerk-wal".to_owned());
        let thread = thread.spawn({
            let turn = Arc::clone(&turn);
            move || run(&conn, &woken, &turn)
        });
        let thread = thread.map_err(|error| {
            Fail::Store(tagwerk_engine::store::StoreError::Other(format!(
                "no thread could be started: {error}"
            )))
        })?;
        Ok(Self {
            wake: Some(wake),
            thread: Some(thread),
            turn,
            busy_timeout: options.busy_timeout,
            restart_pages: restart_bytes / page_bytes,
            patience: 0,
            failed_restarts: 0,
            at_last_housekeeping: Log::default(),
            path: beside(path, "-wal"),
            warm_bytes: options.wal_warm_bytes,
        })
    }

    /// Called by the committer before it begins a transaction.
    pub(crate) fn before_transaction(&mut self, conn: &Connection) {
        let Ok(log) = checkpoint(conn, LOOK) else { return };
        if log.pages > log.copied && log.pages >= self.restart_pages.max(self.patience) {
            self.restart(conn, log);
        } else if log.pages - log.copied >= PASSIVE_PAGES {
            self.wake();
        }
    }

    /// Called by the committer about once a second.
    pub(crate) fn housekeeping(&mut self, conn: &Connection) -> Res<()> {
        let log = checkpoint(conn, LOOK)?;
        let is_quiet = (0..=QUIET_PAGES).contains(&(log.pages - self.at_last_housekeeping.pages));
        let is_long = std::fs::metadata(&self.path).is_ok_and(|file| file.len() > self.warm_bytes);
        if is_quiet && is_long && log.pages - log.copied <= QUIET_PAGES {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            conn.busy_timeout(Duration::ZERO)?;
            let truncated = checkpoint(conn, TRUNCATE);
            conn.busy_timeout(self.busy_timeout)?;
            truncated?;
        } else if log.pages - log.copied >= LEISURELY_PAGES || (is_quiet && is_long) {
            self.wake();
        }
        self.at_last_housekeeping = log;
        Ok(())
    }

    fn wake(&self) {
        if let Some(wake) = &self.wake {
            // Full: it is awake already.
            let _ = wake.try_send(());
        }
    }

    /// Copies what is left and waits a moment for readers, so that the next transaction writes to the log's start.
    fn restart(&mut self, conn: &Connection, before: Log) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let restarted =
            conn.busy_timeout(RESTART_WAIT).map_err(Fail::from).and_then(|()| checkpoint(conn, RESTART));
        if let Err(error) = conn.busy_timeout(self.busy_timeout) {
            tracing::warn!(%error, "the busy timeout could not be set");
        }
        let done = restarted.is_ok_and(|log| log.pages == log.copied);
        self.failed_restarts = if done { 0 } else { (self.failed_restarts + 1).min(MOST_DOUBLINGS) };
        self.patience =
            if done { 0 } else { before.pages + ((self.restart_pages / 8) << self.failed_restarts) };
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(conn: &Connection, woken: &Receiver<()>, turn: &Mutex<()>) {
    let mut is_failing = false;
    while woken.recv().is_ok() {
        let turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let copied = checkpoint(conn, PASSIVE);
        drop(turn);
        match copied {
            Ok(_) => is_failing = false,
            Err(fail) if !is_failing => {
                is_failing = true;
                tracing::warn!(error = ?fail, "the write-ahead log could not be copied back; it grows until this works");
            }
            Err(_) => {}
        }
    }
}

fn checkpoint(conn: &Connection, sql: &str) -> Res<Log> {
    let decode = |row: &rusqlite::Row<'_>| Ok(Log { pages: row.get(1)?, copied: row.get(2)? });
    Ok(conn.prepare_cached(sql)?.query_row([], decode)?)
}
