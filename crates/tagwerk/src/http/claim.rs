//! Claims: a worker asks for jobs, and may wait for one.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use http::header::RETRY_AFTER;
use tagwerk_api::answer::BulkClaimAnswer;
use tagwerk_api::door::Door;
use tagwerk_api::{Time, headers};
use tagwerk_core::limits;
use tagwerk_engine::command::{Claim, ClaimAnswer};

use super::ask::{Caller, Leases, ask_for_leases};
use super::problem::Refused;
use super::reply::{self, Answer, off_thread};
use super::sent::{NoQuery, Sent};
use super::{App, decode, view};

/// `POST /jobs/claim`
pub(super) async fn claim(State(app): State<Arc<App>>, _: NoQuery, sent: Sent) -> Answer {
    let claim = sent.rights().claim(decode::claim(sent.decode(&app, Door::claim).await?, sent.agent()))?;
    let caller = sent.caller();
    // A wait must not hold the room of its body.
    drop(sent);
    let (answer, leases, waited) = ask(&app, claim, caller.as_ref()).await?;
    let shown = view::claim(answer, &app.owners);
    if let Some(job) = shown.jobs.first() {
        let body = Bytes::from(reply::encode_job(job)?);
        let mut response = reply::with_body(StatusCode::OK, leases.body(body, caller));
        reply::set_version(&mut response, job.summary.version);
        Ok(response)
    } else {
        let mut response = reply::json(StatusCode::OK, &serde_json::Value::Null)?;
        advise(&app, &mut response, (shown.next_due_at, waited));
        Ok(response)
    }
}

/// `POST /jobs/claim/bulk`
pub(super) async fn claim_bulk(State(app): State<Arc<App>>, _: NoQuery, sent: Sent) -> Answer {
    let claim =
        sent.rights().claim(decode::claim(sent.decode(&app, Door::claim_bulk).await?, sent.agent()))?;
    let caller = sent.caller();
    // A wait must not hold the room of its body.
    drop(sent);
    let (answer, leases, waited) = ask(&app, claim, caller.as_ref()).await?;
    let encoder = Arc::clone(&app);
    let (next_due_at, nothing) = (answer.next_due_at.map(view::time), answer.jobs.is_empty());
    let body = off_thread(move || {
        let shown: BulkClaimAnswer = view::claim(answer, &encoder.owners);
        reply::encode_job(&shown)
    });
    let body = Bytes::from(body.await??);
    let mut response = reply::with_body(StatusCode::OK, leases.body(body, caller));
    if nothing {
        advise(&app, &mut response, (next_due_at, waited));
    }
    Ok(response)
}

/// Whether the claim was ready to wait: then it may be sent again at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waited {
    Yes,
    No,
}

async fn ask(
    app: &App,
    claim: Claim,
    caller: Option<&Caller>,
) -> Result<(ClaimAnswer, Leases, Waited), Refused> {
    let waited = if claim.wait_ms > 0 { Waited::Yes } else { Waited::No };
    let (answer, leases) =
        ask_for_leases(&app.engine, caller, |reply| app.engine.claim(claim, reply)).await?;
    Ok((answer, leases, waited))
}

/// Tells whoever got nothing when to ask again.
fn advise(app: &App, response: &mut Response, hint: (Option<Time>, Waited)) {
    let (next_due_at, waited) = hint;
    let until_due =
        next_due_at.map(|at| (at.ms() - app.clock.now().as_millis()).div_euclid(limits::SECOND_MS) + 1);
    let seconds = match waited {
        Waited::Yes => 1,
        Waited::No => until_due.unwrap_or(limits::CLAIM_AGAIN_MAX_S).clamp(1, limits::CLAIM_AGAIN_MAX_S),
    };
    reply::set(response, RETRY_AFTER.as_str(), &seconds.to_string());
    if let Some(at) = next_due_at {
        reply::set(response, headers::TAGWERK_NEXT_DUE, &at.to_string());
    }
}
