//! Versions of the object that jobs are about: a higher one supersedes the jobs with lower ones, whichever comes first.
//!
//! Guarantees: what an event does to a job is asked of the decider; here is only who is concerned. A job without `supersede`
//! costs one comparison. All older jobs are dealt with in the transaction of the newer one, so that none of them is handed out
//! beside it, however many they are; that many rows are never in memory at the same time.
//!
//! Deliberately absent: an end of the memory. The highest version of an object is kept for good, or an old event that comes
//! after its successor was done and pruned would be taken for new.

use tagwerk_core::supersede::{Standing, standing};
use tagwerk_core::{Event, JobId, Status, limits};

use crate::command::EnqueueJob;
use crate::row::{JobRow, Lane, Subject, VersionWrite, Versioned, in_space};
use crate::store::{StoreError, StoreResult};
use crate::work::Work;

/// Compares jobs that were just created, in order, with what was seen of their objects.
pub(crate) fn judge<'j>(
    work: &mut Work<'_>,
    created: impl Iterator<Item = (&'j EnqueueJob, JobId)>,
) -> StoreResult<()> {
    let new: Vec<(Versioned, i64, JobId)> = created
        .filter(|(job, _)| job.supersede)
        .filter_map(|(job, id)| {
            let (of, version) = versioned(&work.row(id)?.lane, job.subject.as_ref()?)?;
            Some((of, version, id))
        })
        .collect();
    if new.is_empty() {
        return Ok(());
    }
    work.load_versions(&new.iter().map(|(of, ..)| of).collect::<Vec<_>>())?;
    for (of, version, id) in new {
        place(work, of, (version, id))?;
    }
    Ok(())
}

/// A retry by force makes a superseded job one like any other, so the next higher version must find it.
pub(crate) fn reopen(work: &mut Work<'_>, id: JobId) -> StoreResult<()> {
    let Some(lane) = work.row(id).map(|row| row.lane.clone()) else { return Ok(()) };
    let detail = work.detail(id)?;
    let Some((of, _)) =
        detail.subject.as_ref().filter(|_| detail.supersede).and_then(|subject| versioned(&lane, subject))
    else {
        return Ok(());
    };
    work.load_versions(&[&of])?;
    if work.version(&of).is_some() {
        work.write_version(VersionWrite::Open { of, job: id });
    }
    Ok(())
}

/// What another space calls the same is another object.
fn versioned(lane: &Lane, subject: &Subject) -> Option<(Versioned, i64)> {
    let subject_id = in_space(lane.space.as_deref(), &subject.id).into_owned();
    let (kind, subject_kind) = (lane.kind.to_string(), subject.kind.clone());
    Some((Versioned { kind, subject_kind, subject_id }, subject.version?))
}

fn place(work: &mut Work<'_>, of: Versioned, job: (i64, JobId)) -> StoreResult<()> {
    let (version, id) = job;
    let highest = work.version(&of).map(|row| (row.version, row.job, row.open.clone()));
    match (standing(highest.as_ref().map(|(version, ..)| *version), version), highest) {
        (Standing::Older, Some((_, newer, _))) => supersede(work, id, newer)?,
        (Standing::Equal, _) => work.write_version(VersionWrite::Open { of, job: id }),
        (Standing::Newest | Standing::Older, highest) => {
            let older = highest.map(|(.., open)| open).unwrap_or_default();
            for some in older.chunks(limits::SUPERSEDED_AT_A_TIME) {
                work.pass_through(some, |work| some.iter().try_for_each(|old| supersede(work, *old, id)))?;
            }
            work.write_version(VersionWrite::Raise { of, version, job: id });
        }
    }
    Ok(())
}

/// One job is out of date, unless it has come to its end, or is gone or damaged: then nobody will run it.
fn supersede(work: &mut Work<'_>, id: JobId, by: JobId) -> StoreResult<()> {
    let is_open = |row: &JobRow| !matches!(row.job.status, Status::Completed | Status::Cancelled);
    if !work.row(id).is_some_and(is_open) || work.absent(id).is_some() {
        return Ok(());
    }
    let event = Event::Supersede { by };
    match work.judge(id, &event)? {
        Ok(step) => work.record(id, &event, step),
        Err(rejection) => {
            return Err(StoreError::Other(format!("job {id} cannot be superseded: {rejection}")));
        }
    }
    Ok(())
}
