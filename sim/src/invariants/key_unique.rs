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
}

impl KeyUnique {
    fn taken(&self, key: &str, by: JobId, now: i64) -> Result<(), Broken> {
        let Some((owner, scope, ttl_ms)) = self.owners.get(key).filter(|(owner, ..)| *owner != by) else {
            return Ok(());
        };
        let Some(job) = self.jobs.get(owner) else { return Ok(()) };
        let young = job.finished_at.is_some_and(|at| now < at.as_millis() + ttl_ms);
        let holds = match (scope, job.status) {
            (Scope::Waiting, status) => status == Status::Pending && !job.started,
            (Scope::Unfinished, status) => matches!(status, Status::Pending | Status::Running),
            (Scope::Forever, _) | (Scope::Ttl, Status::Pending | Status::Running | Status::Failed) => true,
            (Scope::Ttl, Status::Completed) => young,
            (Scope::Ttl, Status::Cancelled) => young && job.started,
        };
        if holds {
            return Err((Some(by), format!("it takes key {key}, which job {owner} still holds")));
        }
        Ok(())
    }
}

impl Invariant for KeyUnique {
    fn name(&self) -> &'static str {
        "a key is unique by its scope"
    }

    fn see(&mut self, at: At, event: &Event<'_>) -> Result<(), Broken> {
        match event {
            Event::Wrote(Write::Insert(insert)) => {
                self.jobs.insert(insert.row.job.id, insert.row.job.clone());
            }
            Event::Wrote(Write::Change(change)) => {
                self.jobs.insert(change.after.job.id, change.after.job.clone());
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
