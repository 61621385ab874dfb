//! Runs are bounded: at most `max_retries` + 1 between the enqueue (or a retry by an operator) and the end, whatever ends
//! a run. What was released was no run, and a late report takes the place of its loss.

use std::collections::BTreeMap;

use tagwerk_core::{AttemptEnd, JobId, Status};

use super::{At, Broken, Event, Invariant};
use crate::witness::Write;

/// See the module.
#[derive(Default)]
pub(super) struct RunsBounded {
    /// Runs since the enqueue or the last retry from review, and the lease of the newest.
    runs: BTreeMap<JobId, (u32, u32)>,
}

impl Invariant for RunsBounded {
    fn name(&self) -> &'static str {
        "runs are at most max_retries + 1"
    }

    fn see(&mut self, _at: At, event: &Event<'_>) -> Result<(), Broken> {
        match event {
            Event::Wrote(Write::Attempt(id, attempt)) => {
                // Given back: it never ran. By the server itself too.
                let (runs, newest) = self.runs.entry(*id).or_default();
                if attempt.end == AttemptEnd::Released && attempt.seq == *newest {
                    *runs = runs.saturating_sub(1);
                }
            }
            Event::Wrote(Write::Change(change)) => {
                let after = &change.after.job;
                let (runs, newest) = self.runs.entry(after.id).or_default();
                // Only a retry from review does that; the attempt before may have ended in the same transaction.
                if after.status == Status::Pending && after.acted {
                    *runs = 0;
                }
                if after.leases > *newest {
                    *newest = after.leases;
                    *runs += 1;
                    if *runs > after.max_retries + 1 {
                        let what = format!("run {runs} of at most {} begins", after.max_retries + 1);
                        return Err((Some(after.id), what));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}
