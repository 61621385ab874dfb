//! Stale tokens change nothing. Promise 2: a call with a token counts only while its lease is the newest of the job. That an effect
//! happened any of its workers may say.

use std::collections::BTreeMap;

use tagwerk_core::JobId;
use tagwerk_engine::command::{EffectSaid, Said};

use super::{At, Broken, Event, Invariant};
use crate::call::{Answer, Call, Reply, is_report};

/// See the module.
#[derive(Default)]
pub(super) struct Fenced {
    /// The lease to which a token belongs, by its number.
    tokens: BTreeMap<(JobId, String), u32>,
    /// The newest lease before this step.
    newest: BTreeMap<JobId, u32>,
}

impl Fenced {
    fn granted(&mut self, reply: &Reply) {
        let claimed = match reply {
            Ok(Answer::Claim(answer)) => Some(answer),
            Ok(Answer::Work(work)) => work.claimed.as_ref(),
            _ => None,
        };
        for claimed in claimed.iter().flat_map(|answer| &answer.jobs) {
            let job = &claimed.job.row.job;
            self.tokens.insert((job.id, claimed.token.clone()), job.leases);
        }
    }
}

impl Invariant for Fenced {
    fn name(&self) -> &'static str {
        "stale tokens change nothing"
    }

    fn see(&mut self, _at: At, event: &Event<'_>) -> Result<(), Broken> {
        match event {
            Event::Answered { call, reply, .. } => {
                self.granted(reply);
                let (Call::Work(work), Ok(Answer::Work(answer))) = (call, reply) else { return Ok(()) };
                for (call, result) in work.calls.iter().zip(&answer.results) {
                    let Some(token) = &call.holder.token else { continue };
                    let Ok(answer) = result else { continue };
                    let (lease, newest) =
                        (self.tokens.get(&(call.id, token.clone())), self.newest.get(&call.id));
                    if answer.replayed && is_report(&call.said) {
                        continue;
                    }
                    // That an effect happened is a fact, whoever knows it.
                    if matches!(call.said, Said::Effect(_, EffectSaid::Finish { .. })) && lease.is_some() {
                        continue;
                    }
                    // One that was never answered may have been guessed by nobody.
                    if lease.is_none() || lease < newest {
                        let what = format!(
                            "a call with the token of lease {lease:?} counted, the newest is {newest:?}"
                        );
                        return Err((Some(call.id), what));
                    }
                }
            }
            Event::Granted { rows } => {
                self.newest = rows.values().map(|row| (row.job.id, row.job.leases)).collect();
            }
            _ => {}
        }
        Ok(())
    }
}
