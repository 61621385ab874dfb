//! Whether `explain` names a reason that is true. Promise 4: every job that waits can say why.

use tagwerk_core::{AttemptEnd, Status};
use tagwerk_engine::query::{Explanation, WhyKind};

use super::Model;
use super::job::Job;

impl Model {
    /// Judges the explanation of one job.
    pub(crate) fn explained(&self, id: i64, told: &Explanation, now: i64) -> Result<(), String> {
        let Some(job) = self.jobs.get(&id) else { return Ok(()) };
        if told.status != job.status {
            return Err(format!("explain calls it {}, it is {}", told.status.name(), job.status.name()));
        }
        let (is_held, told) = self.held_back(job, told)?;
        let first = match told.reasons.first() {
            Some(first) if is_held && first.kind == WhyKind::Ready => {
                return Err("explain says that it is ready, and why it is held back".to_owned());
            }
            Some(first) => first,
            None if is_held => return self.explained_turn(job, &told),
            None => return Err("explain names no reason".to_owned()),
        };
        let allowed: &[WhyKind] = match job.status {
            Status::Pending if job.is_overdue(now) => &[WhyKind::Expired],
            Status::Pending if job.available_at > now => later(job),
            Status::Pending if self.before(job).is_some() => &[WhyKind::BlockedByKey],
            Status::Pending => &[WhyKind::Ready, WhyKind::NoWorker],
            Status::Running if job.is_overdue(now) => &[WhyKind::AttemptOver],
            Status::Running if job.stopping => &[WhyKind::CancelRequested],
            Status::Running => &[WhyKind::Running],
            Status::Completed => &[WhyKind::Completed],
            Status::Failed => &[WhyKind::InReview],
            Status::Cancelled if job.superseded_by.is_some() => &[WhyKind::Superseded],
            Status::Cancelled => &[WhyKind::Cancelled],
        };
        if !allowed.contains(&first.kind) {
            return Err(format!("explain says {:?}, one of {allowed:?} is true", first.kind));
        }
        let waits = job.status == Status::Pending && job.available_at > now && !job.is_overdue(now);
        if waits && first.until.map(tagwerk_core::Timestamp::as_millis) != Some(job.available_at) {
            return Err(format!("explain says until {:?}, it is due at {}", first.until, job.available_at));
        }
        self.explained_turn(job, &told)
    }
}

/// Why a job is not due yet: its first start, a back-off, or a release with a delay.
fn later(job: &Job) -> &'static [WhyKind] {
    match job.newest_past().map(|past| past.end) {
        None => &[WhyKind::Scheduled],
        Some(AttemptEnd::Released) => &[WhyKind::Released],
        Some(_) => &[WhyKind::Backoff],
    }
}
