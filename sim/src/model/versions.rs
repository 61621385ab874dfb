//! Versions of objects: the highest is remembered for good, and which jobs the next one makes out of date.

use std::collections::BTreeSet;

use tagwerk_core::Status;
use tagwerk_engine::command::{Enqueue, EnqueueJob};

use super::Model;
use super::eye::Eye;

/// Type, and kind and id of the object.
pub(super) type Object = (String, String, String);

/// What is known of an object.
#[derive(Clone, Debug)]
pub(super) struct Known {
    version: i64,
    /// The first job with it.
    job: i64,
    /// Jobs that the next higher version meets.
    open: BTreeSet<i64>,
}

fn object(job: &EnqueueJob) -> Option<(Object, i64)> {
    let subject = job.subject.as_ref().filter(|_| job.supersede)?;
    Some(((job.kind.clone(), subject.kind.clone(), subject.id.clone()), subject.version?))
}

impl Model {
    /// Places the jobs of a request that were created, in its order.
    pub(super) fn judge_versions(&mut self, request: &Enqueue, ids: &[Option<i64>], eye: &Eye<'_>) {
        for (job, id) in request.jobs.iter().zip(ids) {
            if let (Some((of, version)), Some(id)) = (object(job), id) {
                self.judge_version(of, (version, *id), eye);
            }
        }
    }

    fn judge_version(&mut self, of: Object, (version, id): (i64, i64), eye: &Eye<'_>) {
        let known = self.objects.get(&of).cloned();
        match known {
            Some(known) if version < known.version => self.supersede(id, known.job),
            Some(known) if version == known.version => {
                if let Some(known) = self.objects.get_mut(&of) {
                    known.open.insert(id);
                }
            }
            known => {
                let older: Vec<i64> = known.into_iter().flat_map(|known| known.open).collect();
                // All are brought up to date before the first is judged.
                for old in &older {
                    self.settle(*old, eye);
                }
                for old in older {
                    self.supersede(old, id);
                }
                self.objects.insert(of, Known { version, job: id, open: BTreeSet::from([id]) });
            }
        }
    }

    fn supersede(&mut self, id: i64, by: i64) {
        let now = self.now;
        let status = self.jobs.get(&id).map(|job| job.status);
        if matches!(status, Some(Status::Pending | Status::Running | Status::Failed)) {
            self.change(id, |job| {
                job.superseded_by = Some(by);
                if job.status == Status::Pending {
                    job.rest(Status::Cancelled, None, now);
                }
            });
        }
    }

    /// A retry by force: the next version meets it again.
    pub(super) fn reopen(&mut self, id: i64) {
        let of = self.jobs.get(&id).and_then(|job| object(&job.sent));
        if let Some(known) = of.and_then(|(of, _)| self.objects.get_mut(&of)) {
            known.open.insert(id);
        }
    }

    /// The job is gone.
    pub(super) fn close(&mut self, id: i64) {
        for known in self.objects.values_mut() {
            known.open.remove(&id);
        }
    }
}
