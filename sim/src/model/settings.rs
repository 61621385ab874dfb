//! What comes first in a transaction: settings of types, what is said about queues, limits.

use tagwerk_engine::command::PutType;

use super::step::{Run, Seen, StepSeen};
use super::{Contradiction, Judged, Model};
use crate::call::{Answer, Call, Reply};

impl Model {
    pub(super) fn put_types(&mut self, step: &StepSeen, run: &Run<'_>) -> Judged {
        for index in &run.items {
            let Seen::Call { call, reply } = &step.items[*index] else { continue };
            let Call::PutType(PutType { kind, settings }) = &**call else { continue };
            let before = match settings {
                Some(settings) => self.types.insert(kind.clone(), settings.clone()),
                None => self.types.remove(kind),
            };
            if let Some(Ok(Answer::PutType(known))) = reply
                && *known != before.is_some()
            {
                return Err(Contradiction::of(
                    None,
                    format!("whether type {kind} had settings is told wrongly"),
                ));
            }
        }
        Ok(())
    }

    /// What is said about queues, then about limits: before everything else, like settings of types.
    pub(super) fn put_bounds(&mut self, step: &StepSeen, run: &Run<'_>) -> Judged {
        let calls: Vec<(&Call, Option<&Reply>)> = run
            .items
            .iter()
            .filter_map(|index| match &step.items[*index] {
                Seen::Call { call, reply } => Some((&**call, reply.as_ref().filter(|_| run.known))),
                Seen::GiveBack(_) | Seen::Stop => None,
            })
            .collect();
        for (call, reply) in &calls {
            match (call, reply) {
                (Call::Queue(control), Some(Ok(Answer::Queue(answer)))) => {
                    self.control(control, Some(answer))?;
                }
                (Call::Queue(control), None) => self.control(control, None)?,
                _ => {}
            }
        }
        for (call, reply) in calls {
            match (call, reply) {
                (Call::Limit(limit), Some(Ok(Answer::Limit(answer)))) => self.limit(limit, Some(answer))?,
                (Call::Limit(limit), None) => self.limit(limit, None)?,
                _ => {}
            }
        }
        Ok(())
    }
}
