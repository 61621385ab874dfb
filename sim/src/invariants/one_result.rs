//! Never two accepted results. Promise 2: of all reports about a job one completes it, and of all reports with one
//! token one counts.

use std::collections::BTreeSet;

use tagwerk_core::{JobId, Outcome};
use tagwerk_engine::command::Said;

use super::{At, Broken, Event, Invariant};
use crate::call::{Answer, Call};

/// See the module.
#[derive(Default)]
pub(super) struct OneResult {
    completed: BTreeSet<JobId>,
    /// Tokens whose report counted.
    used: BTreeSet<(JobId, String)>,
}

impl Invariant for OneResult {
    fn name(&self) -> &'static str {
        "no two accepted results"
    }

    fn see(&mut self, _at: At, event: &Event<'_>) -> Result<(), Broken> {
        let Event::Answered { call: Call::Work(work), reply: Ok(Answer::Work(answer)), .. } = event else {
            return Ok(());
        };
        for (call, result) in work.calls.iter().zip(&answer.results) {
            let outcome = match &call.said {
                Said::Report { outcome, .. } | Said::Throttle { outcome, .. } => outcome,
                Said::Lead { .. } => &Outcome::Completed,
                Said::Heartbeat { .. } | Said::Checkpoint(_) | Said::Effect(..) => continue,
            };
            if !result.as_ref().is_ok_and(|answer| !answer.replayed) {
                continue;
            }
            if self.completed.contains(&call.id) {
                return Err((
                    Some(call.id),
                    "a report was accepted though it was completed before".to_owned(),
                ));
            }
            if matches!(outcome, Outcome::Completed) {
                self.completed.insert(call.id);
            }
            let token = call.holder.token.clone();
            if token.is_some_and(|token| !self.used.insert((call.id, token))) {
                return Err((Some(call.id), "two reports with one token counted".to_owned()));
            }
        }
        Ok(())
    }
}
