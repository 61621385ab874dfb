//! Who a caller is and what it may do, once the store has API tokens.
//!
//! Guarantees: without a token in the store nothing here asks anything. With one, every route but the bare probes needs a
//! valid token, looked for in constant time, before the route is looked for. The table of routes says which scope a call
//! needs and what it is about; what it is about must be within the token's patterns, else it is not there (404). A token
//! that is made or revoked beside the server counts within half a second.
//!
//! Without `payload`, payload, result, checkpoint, results of effects and error text of a job are `null` wherever it is shown, except in what a
//! claim hands out: that is the work itself.
//!
//! Deliberately absent: sessions, and anything that a caller could learn about jobs out of its reach.

mod guard;
mod known;
mod meter;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use tagwerk_api::problem::Code;
use tagwerk_core::Timestamp;
use tagwerk_core::access::{Patterns, Reach, Scope};
use tagwerk_engine::command::{Claim, Said, WorkerCall};
use tagwerk_engine::message::By;
use tagwerk_engine::row::{FullJob, Lane};

use super::App;
use super::problem::Refused;

pub(super) use guard::{About, Need, guard};
pub(super) use known::{Known, authenticate, is_probe, refuse_token_in_url};

/// Whether a caller with a token may report without the lease token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaseless {
    /// `require_lease = false` was said: then it must be the token that claimed.
    SameToken,
    /// Never.
    Refused,
}

/// What a token grants.
#[derive(Debug)]
pub(super) struct Grant {
    name: Arc<str>,
    scopes: BTreeSet<Scope>,
    reach: Arc<Reach>,
    leaseless: Leaseless,
    meter: meter::Meter,
}

/// What the caller may do.
#[derive(Clone, Debug)]
pub(super) struct Rights(Option<Arc<Grant>>);

impl Rights {
    /// Of a caller of a server without tokens: everything.
    pub(super) const ALL: Self = Self(None);

    fn granted(grant: &Arc<Grant>) -> Self {
        Self(Some(Arc::clone(grant)))
    }

    /// Those that came with a request.
    pub(super) fn of(extensions: &http::Extensions) -> Self {
        extensions.get::<Self>().cloned().unwrap_or(Self::ALL)
    }

    /// Whether they come with a token.
    pub(super) const fn are_granted(&self) -> bool {
        self.0.is_some()
    }

    /// Counts one request, if there may be one more.
    pub(super) fn spend(&self, now: Timestamp) -> Result<(), Refused> {
        self.0.as_ref().map_or(Ok(()), |grant| grant.meter.spend(now))
    }

    /// Whether calls of this scope are allowed.
    pub(super) fn has(&self, scope: Scope) -> bool {
        self.0.as_ref().is_none_or(|grant| grant.scopes.contains(&scope))
    }

    /// The same, or why not.
    pub(super) fn need(&self, scope: Scope, what: &str) -> Result<(), Refused> {
        if self.has(scope) {
            return Ok(());
        }
        Err(Refused::new(Code::Forbidden, format!("{what} needs a token with the scope {}", scope.name())))
    }

    /// Who it is, for the audit log.
    pub(super) fn by(&self) -> By {
        self.0.as_ref().map_or_else(By::local, |grant| By::token(Arc::clone(&grant.name)))
    }

    /// The jobs that may be made and seen; `None`: all.
    pub(super) fn reach(&self) -> Option<Arc<Reach>> {
        self.0.as_ref().map(|grant| Arc::clone(&grant.reach))
    }

    /// Whether jobs of every queue and type are within reach.
    pub(super) fn reach_everything(&self) -> bool {
        self.0.as_ref().is_none_or(|grant| grant.reach.is_everything())
    }

    /// Whether jobs of this lane may be seen.
    pub(super) fn see(&self, lane: &Lane) -> bool {
        self.0
            .as_ref()
            .is_none_or(|grant| grant.reach.covers((&lane.queue, &lane.kind), lane.space.as_deref()))
    }

    /// The space that it is in, if it is in one.
    pub(super) fn space(&self) -> Option<&str> {
        self.0.as_ref()?.reach.space.as_deref()
    }

    /// Whether this queue, or with `types` this type, may be seen. They are the same in all spaces, and so are their figures.
    pub(super) fn see_name(&self, of: fn(&Reach) -> &Patterns, name: &str) -> bool {
        let may = |grant: &Arc<Grant>| grant.reach.space.is_none() && of(&grant.reach).fits(name);
        self.0.as_ref().is_none_or(may)
    }

    /// A job as it may be shown.
    pub(super) fn veiled(&self, mut job: FullJob) -> FullJob {
        if !self.has(Scope::Payload) {
            "null".clone_into(&mut job.detail.payload);
            job.row.note.result = None;
            job.row.note.checkpoint = None;
            job.row.job.error = None;
            for effect in &mut job.row.job.effects {
                effect.result = None;
            }
        }
        job
    }

    /// The name under which a worker is known: with that of its token before it, so that nobody passes for another's.
    fn worker(&self, name: String) -> String {
        match &self.0 {
            Some(grant) => format!("{}/{name}", grant.name),
            None => name,
        }
    }

    /// A claim, kept within reach. What it names must be within it; who names nothing gets what the patterns name.
    pub(super) fn claim(&self, mut claim: Claim) -> Result<Claim, Refused> {
        let Some(grant) = &self.0 else { return Ok(claim) };
        claim.worker = self.worker(claim.worker);
        claim.filter.space.clone_from(&grant.reach.space);
        claim.filter.queues = named("queues", &grant.reach.queues, claim.filter.queues)?;
        claim.filter.types = named("types", &grant.reach.types, claim.filter.types)?;
        Ok(claim)
    }

    /// A call of a worker as this caller may make it.
    pub(super) fn call(&self, mut call: WorkerCall) -> Result<WorkerCall, Refused> {
        let Some(grant) = &self.0 else { return Ok(call) };
        let is_vouched = call.holder.token.is_some()
            || (grant.leaseless == Leaseless::SameToken && call.holder.worker.is_some());
        if !is_vouched {
            return Err(Refused::of(Code::LeaseRequired));
        }
        call.holder.worker = call.holder.worker.map(|name| self.worker(name));
        if let Said::Lead { follow_ups, .. } = &mut call.said {
            follow_ups.enqueue.reach = Some(Arc::clone(&grant.reach));
        }
        Ok(call)
    }
}

/// The names that a claim asks for.
fn named(
    field: &str,
    patterns: &Patterns,
    asked: Option<Vec<String>>,
) -> Result<Option<Vec<String>>, Refused> {
    let forbidden = |detail| Err(Refused::new(Code::Forbidden, detail));
    match asked {
        Some(names) => match names.iter().find(|name| !patterns.fits(name)) {
            Some(name) => forbidden(format!("{field}: the token may not use {name:?}")),
            None => Ok(Some(names)),
        },
        None if patterns.is_all() => Ok(None),
        None => match patterns.names() {
            Some(names) => Ok(Some(names.to_vec())),
            None => forbidden(format!(
                "{field}: the token is for {} only; name those that are meant",
                patterns.list().unwrap_or_default().join(", ")
            )),
        },
    }
}

impl FromRequestParts<Arc<App>> for Rights {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}
