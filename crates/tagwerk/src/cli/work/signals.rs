//! SIGTERM, SIGINT, SIGHUP: the first one finishes, the second one ends.

use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::shared::{Phase, Shared};
use crate::cli::failure::Failure;

/// Begins to listen.
pub(super) fn listen(shared: &Arc<Shared>) -> Result<(), Failure> {
    let open = |kind| {
        signal(kind)
            .map_err(|error| Failure::machine(format!("cannot listen to signals: {error}"), String::new()))
    };
    let mut signals =
        [open(SignalKind::terminate())?, open(SignalKind::interrupt())?, open(SignalKind::hangup())?];
    // Not the whole: what is shared must be able to end while nobody sends a signal.
    let shared = Arc::downgrade(shared);
    tokio::spawn(async move {
        for phase in [Phase::Finish, Phase::Abort] {
            next(&mut signals).await;
            let Some(shared) = shared.upgrade() else { return };
            if shared.go_to(phase) {
                shared.journal.note(phase.announcement());
            }
        }
    });
    Ok(())
}

async fn next(signals: &mut [Signal; 3]) {
    let [term, int, hup] = signals;
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
        _ = hup.recv() => {}
    }
}
