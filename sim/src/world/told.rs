//! What a server says of its limits: part of every explanation, as in the product, where the committer is asked for it.

use std::sync::Arc;

use tagwerk_engine::command::{LimitAnswer, LimitCall, LimitState};

use super::faults::Fate;
use super::{Lived, Stop, World};
use crate::call::{Answer, Call};
use crate::model::Seen;

impl World {
    /// Asks a server for its limits at this moment, as a client would whom no fault meets.
    pub(super) fn limits_told(&mut self, index: usize) -> Lived<Vec<LimitState>> {
        if self.plan.caps.is_none() {
            return Ok(Vec::new());
        }
        // What is over ends first: the answer comes before that in its own batch.
        self.ask_at_once(index, None)?;
        match self.ask_at_once(index, Some(Call::Limit(LimitCall::List)))? {
            Some(Answer::Limit(Ok(LimitAnswer::Limits(states)))) => Ok(states),
            _ => Err(Stop::world("the limits could not be listed though nothing was broken")),
        }
    }

    /// One batch of its own, with this call or with nothing.
    fn ask_at_once(&mut self, index: usize, call: Option<Call>) -> Lived<Option<Answer>> {
        if let Some(node) = &self.servers[index].node {
            node.journal.plan([]);
        }
        let waiting = std::mem::take(&mut self.servers[index].inbox);
        if let Some(call) = call {
            let request = self.request(0, &Arc::new(call));
            self.requests[request].waiting = false;
            self.requests[request].node = index;
            self.servers[index].inbox.push_back(request);
        }
        let (taken, messages, step) = self.batch(index, Fate::Fine);
        self.servers[index].inbox = waiting;
        let step = self.do_batch(index, (taken.clone(), messages), step)?;
        self.note_step(&step);
        self.judges.judge(&step, &mut self.tally).map_err(|(rule, found)| Stop { rule, found })?;
        let told = step.items.iter().rev().find_map(|item| match item {
            Seen::Call { reply: Some(Ok(answer)), .. } => Some(answer.clone()),
            _ => None,
        });
        self.deliver(index, &taken, step);
        self.plan_next(index);
        Ok(told)
    }
}
