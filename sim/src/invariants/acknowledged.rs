//! No acknowledged job is lost. Promise 1: a success answer is sent only after the change is durable.
//!
//! Every job that an enqueue was answered with is in the store whenever everything is looked at, until a deletion of it
//! was committed.

use std::collections::BTreeSet;

use tagwerk_core::JobId;
use tagwerk_engine::command::Enqueued;

use super::{At, Broken, Event, Invariant};
use crate::call::Answer;
use crate::witness::Write;

/// See the module.
#[derive(Default)]
pub(super) struct Acknowledged {
    known: BTreeSet<JobId>,
    erased: BTreeSet<JobId>,
}

impl Invariant for Acknowledged {
    fn name(&self) -> &'static str {
        "no acknowledged job is lost"
    }

    fn see(&mut self, _at: At, event: &Event<'_>) -> Result<(), Broken> {
        match event {
            Event::Answered { reply: Ok(Answer::Enqueue(items)), .. } => {
                for item in items.iter().flatten() {
                    if let Enqueued::Created(full) = item {
                        self.known.insert(full.row.job.id);
                    }
                }
            }
            Event::Answered { reply: Ok(Answer::Work(work)), .. } => {
                let led_to =
                    work.results.iter().flatten().filter_map(|answer| answer.enqueued.as_ref()).flatten();
                self.known.extend(led_to.filter(|job| job.created).map(|job| job.id));
            }
            Event::Wrote(Write::Erase(id)) => {
                self.erased.insert(*id);
            }
            Event::Scanned { jobs, .. } => {
                let found: BTreeSet<JobId> = jobs.iter().map(|full| full.row.job.id).collect();
                let lost = self.known.iter().find(|id| !found.contains(id) && !self.erased.contains(id));
                if let Some(id) = lost {
                    return Err((Some(*id), "its enqueue was acknowledged and it is gone".to_owned()));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
