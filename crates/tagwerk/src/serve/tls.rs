//! TLS of the server: certificate and key out of files, and the handshake of each connection.
//!
//! Guarantees: what cannot serve (a file that is missing, a key of another certificate, a certificate that has expired) is
//! refused by name, at a start as on SIGHUP; then the certificate before it goes on to serve. A handshake has a time
//! limit, is never waited for by those who accept, and when too many are under way the oldest is given up.
//!
//! Deliberately absent: certificates of clients (tokens say who they are), several certificates by name.

mod crowd;
mod encrypted;
mod files;
mod handshake;
mod validity;

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use tagwerk_engine::ports::Clock;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

pub(super) use crowd::Crowd;
pub(crate) use files::TlsError;

/// Remaining days of a certificate from which on its end is worth a warning: enough to renew it in office hours.
const DAYS_TO_WARN: i64 = 14;

/// The files as the configuration names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// Certificates in PEM form, the server's own first.
    pub(crate) cert: Option<PathBuf>,
    /// Its private key in PEM form.
    pub(crate) key: Option<PathBuf>,
}

/// What connections are encrypted with.
pub(super) struct Tls {
    files: files::Pair,
    current: RwLock<Arc<ServerConfig>>,
    stopping: watch::Receiver<bool>,
    clock: Arc<dyn Clock>,
}

impl Tls {
    /// Reads the files that the configuration names; `None` if it names none.
    pub(super) fn load(
        named: &TlsFiles,
        clock: Arc<dyn Clock>,
        stopping: watch::Receiver<bool>,
    ) -> Result<Option<Arc<Self>>, TlsError> {
        let Some(files) = files::Pair::of(named)? else { return Ok(None) };
        let loaded = files.load(clock.now())?;
        loaded.tell(clock.now());
        let current = RwLock::new(loaded.config);
        Ok(Some(Arc::new(Self { files, current, stopping, clock })))
    }

    /// Reads the files anew at each SIGHUP, for ever. From the return of this function on none is missed.
    pub(super) fn renew_on_hangup(self: &Arc<Self>) -> std::io::Result<()> {
        let mut hangup = signal(SignalKind::hangup())?;
        let tls = Arc::clone(self);
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                let tls = Arc::clone(&tls);
                // A panic in there would leave the certificate as it is, which is what we want.
                drop(tokio::task::spawn_blocking(move || tls.renew()).await);
            }
        });
        Ok(())
    }

    fn renew(&self) {
        let now = self.clock.now();
        match self.files.load(now) {
            Ok(loaded) => {
                loaded.tell(now);
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = loaded.config;
            }
            Err(error) => tracing::error!(
                %error,
                "the certificate was not renewed; the one before goes on to serve"
            ),
        }
    }

    fn current(&self) -> Arc<ServerConfig> {
        // It is replaced whole, so a poisoned lock holds nothing half done.
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}
