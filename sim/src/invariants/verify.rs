//! No repetition is hidden. Promise 3: after an end that nobody knows the outcome of, the next attempt is told to verify,
//! and that stays so until an attempt ends with a known outcome.

use std::collections::BTreeMap;

use tagwerk_core::{AttemptEnd, ErrorClass, JobId};

use super::{At, Broken, Event, Invariant};
use crate::witness::Write;

/// See the module.
#[derive(Default)]
pub(super) struct Verify {
    /// How each lease of a job ended.
    ends: BTreeMap<JobId, BTreeMap<u32, AttemptEnd>>,
    /// Jobs as this transaction leaves them: told to verify or not.
    told: BTreeMap<JobId, bool>,
}

impl Verify {
    /// Whether the last end that says anything leaves the outcome open.
    fn is_open(&self, id: JobId) -> bool {
        let ends = self.ends.get(&id);
        let known = |end: &AttemptEnd| match end {
            AttemptEnd::Completed | AttemptEnd::Failed(ErrorClass::Transient | ErrorClass::Permanent) => {
                Some(false)
            }
            AttemptEnd::Failed(ErrorClass::Unknown)
            | AttemptEnd::LeaseExpired
            | AttemptEnd::TimedOut
            | AttemptEnd::Forced => Some(true),
            // Who gives a job back has looked up nothing.
            AttemptEnd::Released | AttemptEnd::Cancelled => None,
        };
        ends.and_then(|ends| ends.values().rev().find_map(known)).unwrap_or(false)
    }
}

impl Invariant for Verify {
    fn name(&self) -> &'static str {
        "an unknown end is told to the next attempt"
    }

    fn see(&mut self, _at: At, event: &Event<'_>) -> Result<(), Broken> {
        match event {
            Event::Began => self.told.clear(),
            Event::Wrote(Write::Attempt(id, attempt)) => {
                self.ends.entry(*id).or_default().insert(attempt.seq, attempt.end);
            }
            Event::Wrote(Write::Change(change)) => {
                self.told.insert(change.after.job.id, change.after.job.verify);
            }
            Event::Committed { rows } => {
                for (id, told) in &self.told {
                    let lives = rows.get(id).is_some_and(|row| row.job.finished_at.is_none());
                    if lives && self.is_open(*id) && !told {
                        return Err((Some(*id), "its next attempt is not told to verify".to_owned()));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}
