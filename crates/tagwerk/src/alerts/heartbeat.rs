//! `alerts.heartbeat_url`: a call each minute while the server does its work, so that somebody outside notices when it does
//! not. A server that cannot write, or whose looking stands still, does not call.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use tagwerk_core::limits;
use tokio::sync::watch;

use super::outgoing::{CallError, Outgoing, System};
use super::target::Target;
use super::{Shared, stopped};

/// How often it is looked again when there was nothing to call for.
const NOT_YET: Duration = Duration::from_secs(1);

/// Calls until the server stops.
pub(super) async fn run(
    shared: Arc<Shared>,
    (outgoing, to): (Arc<Outgoing<System>>, Target),
    mut stopping: watch::Receiver<bool>,
) {
    let every = Duration::from_millis(shared.settings.heartbeat_ms.unsigned_abs());
    let mut is_failing = false;
    loop {
        let wait = if is_well(&shared) {
            let called = outgoing.call(&to, Request::default()).await;
            match (&called, is_failing) {
                (Err(error), false) => {
                    let error = said(error);
                    tracing::warn!(url = %to, error, "the heartbeat did not come through");
                }
                (Ok(()), true) => tracing::info!(url = %to, "the heartbeat comes through again"),
                (Err(_), true) | (Ok(()), false) => {}
            }
            is_failing = called.is_err();
            every
        } else {
            NOT_YET
        };
        tokio::select! {
            // tidy: sleep because that is what a heartbeat is
            () = tokio::time::sleep(wait) => {}
            () = stopped(&mut stopping) => return,
        }
    }
}

fn said(error: &CallError) -> String {
    match error {
        CallError::Refused(why) | CallError::NoAnswer(why) => why.clone(),
        CallError::Status(status) => format!("it answered {status}"),
    }
}

/// Whether the committer commits and it is looked whether something rings.
fn is_well(shared: &Shared) -> bool {
    let vitals = shared.engine.vitals();
    let silence = shared.clock.monotonic().saturating_sub(vitals.last_commit);
    let looked = shared.metrics.last_look();
    let patience_ms = shared.settings.every_ms.saturating_mul(3).max(limits::STANDSTILL_MS);
    vitals.failing.is_none()
        && silence <= Duration::from_millis(limits::STANDSTILL_MS.unsigned_abs())
        && looked.is_some_and(|at| shared.clock.now().since_ms(at) <= patience_ms)
}
