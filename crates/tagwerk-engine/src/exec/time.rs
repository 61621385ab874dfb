//! What time alone brings about: ends of attempts and of waiting.

use tagwerk_core::limits;

use crate::store::StoreResult;
use crate::work::Work;

/// Whether more than a batch's worth of jobs was overdue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backlog {
    /// All that was overdue has been dealt with.
    None,
    /// There is more; the next batch goes on at once.
    More,
}

/// Ends overdue attempts and expires pending jobs past their maximum age, oldest first, a bounded number of each.
pub(crate) fn end_overdue(work: &mut Work<'_>) -> StoreResult<Backlog> {
    let overdue = work.tx.overdue(work.env.now, limits::OVERDUE_PER_BATCH)?;
    let expired = work.tx.expired(work.env.now, limits::OVERDUE_PER_BATCH)?;
    let full = overdue.len().max(expired.len()) >= limits::OVERDUE_PER_BATCH;
    let rows: Vec<_> = overdue.into_iter().chain(expired).collect();
    let ids: Vec<_> = rows.iter().map(|row| row.job.id).collect();
    for row in rows {
        work.adopt(row);
    }
    for id in ids {
        work.settle_if_readable(id)?;
    }
    work.flush()?;
    Ok(if full { Backlog::More } else { Backlog::None })
}
