//! Comparing what the model expects with rows and answers, field by field.

use tagwerk_core::{JobId, Timestamp};
use tagwerk_engine::command::Refusal;
use tagwerk_engine::row::{FullJob, JobRow, KeyRow};

use super::effects::Effect;
use super::job::{Job, Past};
use super::keys::Key;
use super::{Contradiction, Judged, turns};
use crate::call::refusal_code;

/// Whether an answer shows payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    /// It is about one job.
    Shown,
    /// It is about several, or a heartbeat's.
    Hidden,
}

impl Payload {
    /// Shown in the answer about one job.
    pub(crate) const fn of(items: usize) -> Self {
        if items == 1 { Self::Shown } else { Self::Hidden }
    }
}

/// Says which field differs.
fn differ<T: PartialEq + std::fmt::Debug>(name: &str, want: &T, got: &T) -> Result<(), String> {
    if want == got { Ok(()) } else { Err(format!("{name} must be {want:?}, it is {got:?}")) }
}

const fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// A job as an answer shows it.
pub(crate) fn shown(job: &Job, full: &FullJob, payload: Payload) -> Judged {
    row(job, &full.row)
        .map_err(|what| Contradiction::of(Some(job.id), format!("the answer is wrong: {what}")))?;
    let want = if payload == Payload::Shown { job.payload.as_str() } else { "" };
    if full.detail.payload != want {
        let what = format!("the answer shows payload `{}` for `{want}`", full.detail.payload);
        return Err(Contradiction::of(Some(job.id), what));
    }
    Ok(())
}

/// A job as the store has it.
pub(crate) fn stored(job: &Job, row: &JobRow) -> Result<(), String> {
    self::row(job, row)?;
    turns::compare(job, row)
}

/// All of it that an answer shows, too.
pub(crate) fn row(job: &Job, row: &JobRow) -> Result<(), String> {
    let got = &row.job;
    differ("id", &JobId(job.id), &got.id)?;
    differ("status", &job.status, &got.status)?;
    differ("version", &job.version, &got.version)?;
    differ("queue", &job.queue.as_str(), &&*row.lane.queue)?;
    differ("type", &job.kind.as_str(), &&*row.lane.kind)?;
    differ("priority", &job.priority, &row.priority.value())?;
    differ("limits", &job.limits(), &row.lane.limits())?;
    differ("fair key", &job.fair_key(), &row.lane.fair_key())?;
    differ("attempt", &job.attempt, &got.attempt)?;
    differ("leases", &job.leases, &got.leases)?;
    differ("started", &(job.leases > 0), &got.started)?;
    differ("retry_count", &job.retry_count, &got.retry_count)?;
    differ("max_retries", &job.max_retries, &got.max_retries)?;
    differ("lease_losses", &job.lease_losses, &got.lease_losses)?;
    differ("max_lease_losses", &job.max_lease_losses, &got.max_lease_losses)?;
    differ("release_count", &job.release_count, &got.release_count)?;
    differ("available_at", &at(job.available_at), &got.available_at)?;
    differ("expires_at", &job.expires_at.map(at), &got.expires_at)?;
    differ("verify", &job.verify, &got.verify)?;
    differ("cancel requested", &job.stopping, &got.cancel_requested)?;
    differ("superseded by", &job.superseded_by.map(JobId), &got.superseded_by)?;
    differ("failure", &job.failure, &got.failure)?;
    differ("error", &job.error, &got.error)?;
    differ("created_at", &at(job.created_at), &got.created_at)?;
    differ("updated_at", &at(job.updated_at), &got.updated_at)?;
    differ("finished_at", &job.finished_at.map(at), &got.finished_at)?;
    differ("result", &job.result, &row.note.result)?;
    differ("checkpoint", &job.checkpoint, &row.note.checkpoint)?;
    differ("progress", &job.progress, &row.note.progress)?;
    differ("payload bytes", &job.payload.len(), &(row.payload_bytes as usize))?;
    differ("handles_verify", &job.knows_doubt, &got.handles_verify)?;
    effects(job, row)?;
    lease(job, row)
}

fn effects(job: &Job, row: &JobRow) -> Result<(), String> {
    let shown = |effect: &tagwerk_core::Effect| Effect {
        name: effect.name.to_string(),
        state: effect.state,
        key: effect.key.to_string(),
        lease: effect.seq,
        begun_at: effect.begun_at.as_millis(),
        ended_at: effect.ended_at.map(Timestamp::as_millis),
        assumed: effect.assumed,
        result: effect.result.as_deref().map(ToOwned::to_owned),
    };
    let got: Vec<Effect> = row.job.effects.iter().map(shown).collect();
    differ("effects", &job.effects, &got)
}

fn lease(job: &Job, row: &JobRow) -> Result<(), String> {
    let (want, got) = match (&job.lease, &row.job.lease) {
        (None, None) => return Ok(()),
        (Some(want), Some(got)) => (want, got),
        (want, got) => {
            return Err(format!("a lease must be there: {}, it is: {}", want.is_some(), got.is_some()));
        }
    };
    differ("worker", &want.worker, &got.worker)?;
    differ("request_id", &want.request_id, &got.request_id)?;
    differ("claimed_at", &at(want.claimed_at), &got.claimed_at)?;
    differ("lease_expires_at", &at(want.expires_at), &got.expires_at)?;
    differ("time limit", &want.limit_at.map(at), &got.time_limit_at)?;
    differ("lease_ms", &want.length_ms, &got.lease_ms)
}

/// An attempt as the history keeps it.
pub(crate) fn attempt(past: &Past, got: &tagwerk_core::Attempt) -> Result<(), String> {
    differ("number of the attempt", &past.number, &got.number)?;
    differ("worker of the attempt", &past.worker, &got.worker)?;
    differ("claimed_at of the attempt", &at(past.claimed_at), &got.claimed_at)?;
    differ("lease end of the attempt", &at(past.lease_expires_at), &got.lease_expires_at)?;
    differ("end of the attempt", &past.end, &got.end)?;
    differ("ended_at of the attempt", &at(past.ended_at), &got.ended_at)?;
    differ("late", &past.late, &got.late)?;
    differ("error of the attempt", &past.error, &got.error)
}

/// A key as the store has it.
pub(crate) fn key(name: &str, want: Option<&Key>, got: Option<&KeyRow>) -> Result<(), String> {
    match (want, got) {
        (None, None) => Ok(()),
        (Some(want), Some(got)) => {
            differ("owner of the key", &JobId(want.owner), &got.owner)?;
            differ("scope of the key", &want.scope, &got.scope)?;
            differ("ttl of the key", &want.ttl_ms, &got.ttl_ms)?;
            differ("a tombstone of the key", &want.tombstone.is_some(), &got.tombstone.is_some())
        }
        (want, got) => Err(format!("key {name} must be there: {}, it is: {}", want.is_some(), got.is_some())),
    }
}

/// An item that must be refused with this code, and for some codes about this job or item.
pub(crate) fn refused<T>(
    code: &'static str,
    about: Option<i64>,
    item: Option<&Result<T, Refusal>>,
) -> Judged {
    let refusal = match item {
        None => return Ok(()),
        Some(Ok(_)) => {
            return Err(Contradiction::of(
                about,
                format!("a call must be refused ({code}), it was accepted"),
            ));
        }
        Some(Err(refusal)) => refusal,
    };
    let names = match refusal {
        Refusal::NoSuchJob(id)
        | Refusal::KeyReused(id)
        | Refusal::KeyHeld(id)
        | Refusal::KeyReusedPruned(id, _)
        | Refusal::DuplicatePruned(id, _) => Some(id.0),
        Refusal::Duplicate(job) => Some(job.row.job.id.0),
        Refusal::DuplicateHere { index }
        | Refusal::KeyReusedHere { index }
        | Refusal::NotAtomic { index } => i64::try_from(*index).ok(),
        Refusal::JobDamaged(_)
        | Refusal::FollowUp { .. }
        | Refusal::NotHolding(_)
        | Refusal::Rejected { .. }
        | Refusal::UnknownType { .. }
        | Refusal::PayloadTooLarge { .. }
        | Refusal::QueueFull { .. }
        | Refusal::QueueDraining { .. }
        | Refusal::Invalid { .. }
        | Refusal::UnknownLimit { .. }
        | Refusal::NoSuchLimit(_)
        | Refusal::LimitInUse { .. }
        | Refusal::OutOfReach(_)
        | Refusal::KeyTaken => None,
    };
    if refusal_code(refusal) == code && names == about {
        return Ok(());
    }
    let what = format!("a call must be refused with {code} ({about:?}), the refusal is: {refusal}");
    Err(Contradiction::of(about, what))
}
