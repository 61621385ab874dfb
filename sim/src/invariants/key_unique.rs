//! A key is unique by its scope: while the job that has it holds it, no second job with the key is accepted. Section 4.

use std::collections::BTreeMap;

use tagwerk_core::idempotency::Scope;
use tagwerk_core::{Job, JobId, Status};
use tagwerk_engine::row::KeyWrite;

use super::{At, Broken, Event, Invariant};
use crate::witness::Write;

/// See the module.
#[derive(Default)]
pub(super) struct KeyUnique {
    /// Who has which key, with its scope and the length of its life after the end.
    owners: BTreeMap<String, (JobId, Scope, i64)>,
    /// Jobs as they were last written, also of those that were deleted.
    jobs: BTreeMap<JobId, Job>,
    /// The same for jobs that this transaction changes, at every earlier stage in it: which of its writes was decided first
    /// is not known, and a requeue does not take a key back.
    before: BTreeMap<JobId, Vec<Job>>,
}

impl KeyUnique {
    fn taken(&self, key: &str, by: JobId, now: i64) -> Result<(), Broken> {
        let Some((owner, scope, ttl_ms)) = self.owners.get(key).filter(|(owner, ..)| *owner != by) else {
            return Ok(());
        };
        let Some(job) = self.jobs.get(owner) else { return Ok(()) };
        let held = |job: &Job| holds((*scope, *ttl_ms), job, now);
        if held(job) && self.before.get(owner).is_none_or(|stages| stages.iter().all(held)) {
            return Err((Some(by), format!("it takes key {key}, which job {owner} still holds")));
        }
        Ok(())
    }

    fn wrote(&mut self, job: &Job) {
        if let Some(old) = self.jobs.insert(job.id, job.clone()) {
            self.before.entry(job.id).or_default().push(old);
        }
    }
}

/// The table of section 4.
fn holds((scope, ttl_ms): (Scope, i64), job: &Job, now: i64) -> bool {
    let young = job.finished_at.is_some_and(|at| now < at.as_millis() + ttl_ms);
    match (scope, job.status) {
        (Scope::Waiting, status) => status == Status::Pending && !job.started,
        (Scope::Unfinished, status) => matches!(status, Status::Pending | Status::Running),
        (Scope::Forever, _) | (Scope::Ttl, Status::Pending | Status::Running | Status::Failed) => true,
        (Scope::Ttl, Status::Completed) => young,
        (Scope::Ttl, Status::Cancelled) => young && job.started,
    }
}

impl Invariant for KeyUnique {
    fn name(&self) -> &'static str {
        "a key is unique by its scope"
    }

    fn see(&mut self, at: At, event: &Event<'_>) -> Result<(), Broken> {
        match event {
            Event::Began => self.before.clear(),
            Event::Wrote(Write::Insert(insert)) => {
                self.wrote(&insert.row.job);
            }
            Event::Wrote(Write::Change(change)) => {
                self.wrote(&change.after.job);
            }
            Event::Wrote(Write::Key(KeyWrite::Insert(row) | KeyWrite::Replace { row, .. })) => {
                self.taken(&row.key, row.owner, at.now)?;
                self.owners.insert(row.key.clone(), (row.owner, row.scope, row.ttl_ms));
            }
            Event::Wrote(Write::Key(KeyWrite::Delete { key, .. })) => {
                self.owners.remove(key);
            }
            _ => {}
        }
        Ok(())
    }
}
