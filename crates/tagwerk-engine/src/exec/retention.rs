//! Deleting what is old: finished jobs by age, and keys whose job is gone and that no longer hold.

use tagwerk_core::idempotency::{self, Standing};
use tagwerk_core::retention::cutoff;
use tagwerk_core::{JobId, Status, limits};

use crate::row::{KeyWrite, Tombstone};
use crate::store::{PruneQuery, StoreResult};
use crate::work::Work;

/// Where the two sweeps stand. Each run does a bounded bit and remembers where to go on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sweep {
    pub(crate) jobs_after: Option<JobId>,
    pub(crate) keys_after: String,
    /// Sweeps over the jobs that have come to their end.
    pub(crate) sweeps: u64,
}

/// What one run did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RetentionReport {
    /// Jobs deleted.
    pub jobs: usize,
    /// Keys deleted.
    pub keys: usize,
    /// Whether the sweep has more to look at right now.
    pub more: bool,
}

/// One bounded run.
pub(crate) fn run(work: &mut Work<'_>, sweep: &mut Sweep) -> StoreResult<RetentionReport> {
    let doomed = find(work, sweep)?;
    erase(work, &doomed)?;
    let keys = free_keys(work, sweep)?;
    Ok(RetentionReport { jobs: doomed.len(), keys, more: sweep.jobs_after.is_some() })
}

/// Goes on with the sweep over the jobs, in id order. Ids rise with time, so a sweep usually ends at the first job that is
/// too young.
fn find(work: &mut Work<'_>, sweep: &mut Sweep) -> StoreResult<Vec<(JobId, Option<String>)>> {
    let policy = &work.env.settings.retention;
    let completed_until = cutoff(Status::Completed, policy, work.env.now);
    let cancelled_until = cutoff(Status::Cancelled, policy, work.env.now);
    let Some(youngest) = completed_until.max(cancelled_until) else { return Ok(Vec::new()) };
    let is_full = sweep.sweeps.is_multiple_of(limits::RETENTION_FULL_SWEEP_EVERY);
    let found = work.tx.prunable(&PruneQuery {
        after: sweep.jobs_after.unwrap_or(JobId(0)),
        completed_until,
        cancelled_until,
        created_until: (!is_full).then_some(youngest),
        scan: limits::RETENTION_SCAN_ROWS,
        wanted: limits::RETENTION_BATCH_ROWS,
    })?;
    sweep.jobs_after = found.next;
    if found.next.is_none() {
        sweep.sweeps += 1;
    }
    let doomed = found.rows.iter().map(|(row, key)| (row.job.id, key.clone())).collect();
    for (row, _) in found.rows {
        work.adopt(row);
    }
    Ok(doomed)
}

/// Erases jobs that have ended. Their keys live on as tombstones where they still hold.
pub(crate) fn erase(work: &mut Work<'_>, doomed: &[(JobId, Option<String>)]) -> StoreResult<()> {
    if doomed.is_empty() {
        return Ok(());
    }
    let keys: Vec<&str> = doomed.iter().filter_map(|(_, key)| key.as_deref()).collect();
    work.load_keys(&keys)?;
    for (id, key) in doomed {
        if let Some(key) = key {
            bury_key(work, *id, key)?;
        }
    }
    let ids: Vec<JobId> = doomed.iter().map(|(id, _)| *id).collect();
    work.erase(&ids)
}

fn bury_key(work: &mut Work<'_>, id: JobId, key: &str) -> StoreResult<()> {
    let Some(mut row) = work.key(key)?.filter(|row| row.owner == id) else { return Ok(()) };
    let Some(job) = work.row(id) else { return Ok(()) };
    let standing =
        Standing { status: job.job.status, started: job.job.started, finished_at: job.job.finished_at };
    let kind = job.lane.kind.to_string();
    let write = if idempotency::holds(row.scope, row.ttl_ms, &standing, work.env.now) {
        row.tombstone = Some(Tombstone { kind, standing });
        KeyWrite::Replace { row, from: id }
    } else {
        KeyWrite::Delete { key: key.to_owned(), owner: id }
    };
    work.write_key(write);
    Ok(())
}

/// Deletes tombstones that no longer hold.
fn free_keys(work: &mut Work<'_>, sweep: &mut Sweep) -> StoreResult<usize> {
    let rows = work.tx.tombstones(&sweep.keys_after, limits::RETENTION_BATCH_ROWS)?;
    sweep.keys_after = match rows.last() {
        Some(last) if rows.len() == limits::RETENTION_BATCH_ROWS => last.key.clone(),
        _ => String::new(),
    };
    let mut freed = 0;
    for row in rows {
        let Some(tombstone) = &row.tombstone else { continue };
        if idempotency::tombstone_free(row.scope, row.ttl_ms, &tombstone.standing, work.env.now) {
            work.write_key(KeyWrite::Delete { key: row.key, owner: row.owner });
            freed += 1;
        }
    }
    Ok(freed)
}
