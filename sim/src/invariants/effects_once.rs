//! What is in the journal happens once in the world: no worker that keeps to it does a second time what another did, unless
//! somebody has said that it did not happen.

use std::collections::{BTreeMap, BTreeSet};

use tagwerk_core::{AttemptEnd, EffectState, JobId};

use super::{At, Broken, Event, Invariant};
use crate::witness::Write;

/// See the module.
#[derive(Default)]
pub(super) struct EffectsOnce {
    /// What was done, and by whom.
    done: BTreeMap<(JobId, String), String>,
    /// Jobs that a person took from a worker who may not have heard of it: that they have to know.
    taken: BTreeSet<JobId>,
}

impl Invariant for EffectsOnce {
    fn name(&self) -> &'static str {
        "an effect happens once"
    }

    fn see(&mut self, _at: At, event: &Event<'_>) -> Result<(), Broken> {
        match event {
            Event::Wrote(Write::Attempt(id, attempt))
                if matches!(attempt.end, AttemptEnd::Forced | AttemptEnd::Cancelled) =>
            {
                self.taken.insert(*id);
            }
            Event::Wrote(Write::Change(change)) => {
                for effect in &change.after.job.effects {
                    let name = (change.after.job.id, effect.name.to_string());
                    if effect.state == EffectState::Aborted
                        && !effect.assumed
                        && self.done.contains_key(&name)
                    {
                        // Said by who was asked to tell the truth: only actors that did nothing abort.
                        return Err((Some(name.0), format!("{} is aborted though it was done", name.1)));
                    }
                }
            }
            Event::Acted { job, name, who } => {
                let before = self.done.insert((*job, (*name).to_owned()), (*who).to_owned());
                if let Some(before) = before
                    && !self.taken.contains(job)
                {
                    return Err((Some(*job), format!("{who} has done {name} again, after {before}")));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
