//! One batch of a server: what it is given, what it answers, what it wrote.

use std::sync::Arc;

use tagwerk_engine::message::Message;

use super::faults::Fate;
use super::{Lived, Stop, World};
use crate::call::{Call, Reply};
use crate::model::{ParkedSeen, Seen, StepSeen};
use crate::witness::{End, Tried};
use crate::words;

/// Requests of one batch at most.
const BATCH: usize = 40;

impl World {
    /// It is this server's turn, if it still is.
    pub(super) fn turn(&mut self, index: usize) -> Lived<()> {
        let mono = self.mono();
        if self.servers[index].next_step != mono {
            return Ok(());
        }
        if self.servers[index].node.is_none() {
            return self.rise(index);
        }
        let fate = self.fate(index);
        let (taken, messages, step) = self.batch(index, fate);
        let step = self.do_batch(index, (taken.clone(), messages), step)?;
        self.note_step(&step);
        self.judges.judge(&step, &mut self.tally).map_err(|(rule, found)| Stop { rule, found })?;
        if step.died {
            self.fall(index);
            return Ok(());
        }
        self.deliver(index, &taken, step);
        if fate == Fate::Stops {
            self.fall(index);
            return Ok(());
        }
        self.plan_next(index);
        self.judges.steps += 1;
        if self.judges.steps.is_multiple_of(super::judges::LOOK_EVERY) {
            self.look_at_all(index)?;
        }
        Ok(())
    }

    /// What the server takes out of its inbox.
    pub(super) fn batch(&mut self, index: usize, fate: Fate) -> (Vec<usize>, Vec<Message>, StepSeen) {
        let (wall, mono) = (self.wall(), self.mono());
        let server = &mut self.servers[index];
        let mut items = Vec::new();
        let mut messages = Vec::new();
        for message in server.node.iter().flat_map(|node| node.inbox.try_iter()) {
            if let Message::GiveBack(leases) = &message {
                items.push(Seen::GiveBack(leases.iter().map(|(id, bits)| (id.0, bits.0)).collect()));
            }
            messages.push(message);
        }
        let most = server.inbox.len().min(BATCH);
        let taken: Vec<usize> = server.inbox.drain(..most).collect();
        for request in &taken {
            let request = &mut self.requests[*request];
            if let Call::Claim(claim) = &*request.call {
                request.deadline = mono + claim.wait_ms;
            }
            items.push(Seen::Call { call: Arc::clone(&request.call), reply: None });
            messages.push(request.call.message(&request.cell));
        }
        if fate == Fate::Stops {
            items.push(Seen::Stop);
            messages.push(Message::Stop);
        }
        let parked = server.holding.iter().map(|request| {
            let request = &self.requests[*request];
            ParkedSeen {
                call: Arc::clone(&request.call),
                deadline: request.deadline,
                reply: None,
                gone: request.cell.is_gone(),
            }
        });
        let parked = parked.collect();
        let step = StepSeen { node: index, wall, mono, items, parked, tries: Vec::new(), died: false };
        (taken, messages, step)
    }

    pub(super) fn do_batch(
        &mut self,
        index: usize,
        (taken, messages): (Vec<usize>, Vec<Message>),
        mut step: StepSeen,
    ) -> Lived<StepSeen> {
        let server = &mut self.servers[index];
        let Some(node) = &mut server.node else { return Err(Stop::world("a server that is down was used")) };
        node.committer.step(messages);
        step.tries = node.journal.take();
        step.died = step.tries.iter().any(|tried| tried.deadly);
        for (parked, request) in step.parked.iter_mut().zip(&server.holding) {
            parked.reply = self.requests[*request].cell.take();
        }
        let mut requests = taken.iter();
        for item in &mut step.items {
            if let Seen::Call { reply, .. } = item
                && let Some(request) = requests.next()
            {
                *reply = self.requests[*request].cell.take();
            }
        }
        Ok(step)
    }

    /// Writes down what was committed and answered.
    pub(super) fn note_step(&mut self, step: &StepSeen) {
        let mono = self.mono();
        for tried in &step.tries {
            self.note_try(tried);
        }
        let calls = step.items.iter().filter_map(|item| match item {
            Seen::Call { call, reply } => Some((call, reply)),
            Seen::GiveBack(_) | Seen::Stop => None,
        });
        let parked = step.parked.iter().map(|parked| (&parked.call, &parked.reply));
        for (call, reply) in calls.chain(parked) {
            let Some(reply) = reply else { continue };
            let text = format!("  server {}: {} -> {}", step.node, call.kind(), words::reply(reply));
            self.trace.line(mono, words::about(call, Some(reply)), &text);
        }
    }

    fn note_try(&mut self, tried: &Tried) {
        let mono = self.mono();
        if tried.shift_ms != 0 {
            let text = format!("  live leases are moved by {} ms", tried.shift_ms);
            self.trace.line(mono, Vec::new(), &text);
        }
        if tried.end != End::Committed {
            let died = if tried.deadly { ", the server dies" } else { "" };
            let text = format!("  a transaction ends: {:?}{died}", tried.end);
            let about = tried.writes.iter().filter_map(words::write).map(|(id, _)| id).collect();
            self.trace.line(mono, about, &text);
        }
        if matches!(tried.end, End::Committed | End::Unknown { committed: true }) {
            for (id, text) in tried.writes.iter().filter_map(words::write) {
                self.trace.line(mono, vec![id], &text);
            }
        }
    }

    /// Sends answers on their way, and keeps the claims that wait.
    pub(super) fn deliver(&mut self, index: usize, taken: &[usize], step: StepSeen) {
        let mut replies: Vec<(usize, Reply)> = Vec::new();
        let mut holding = Vec::new();
        let held = std::mem::take(&mut self.servers[index].holding);
        for (request, parked) in held.into_iter().zip(step.parked) {
            match parked.reply {
                Some(reply) => replies.push((request, reply)),
                None if !self.requests[request].cell.is_gone() => holding.push(request),
                None => {}
            }
        }
        let mut requests = taken.iter();
        for item in step.items {
            let Seen::Call { reply, .. } = item else { continue };
            let Some(request) = requests.next() else { break };
            match reply {
                Some(reply) => replies.push((*request, reply)),
                None => holding.push(*request),
            }
        }
        self.servers[index].holding = holding;
        for (request, reply) in replies {
            self.send_back(request, reply);
        }
    }

    /// As the loop around the committer does: at once if something has come in, else when its patience ends.
    pub(super) fn plan_next(&mut self, index: usize) {
        let mono = self.mono();
        let busy_until = mono + self.duration();
        let Some(node) = &self.servers[index].node else { return };
        let patience = i64::try_from(node.committer.patience().as_millis()).unwrap_or(1_000);
        let server = &mut self.servers[index];
        server.busy_until = busy_until;
        let idle = if server.inbox.is_empty() { patience.max(1) } else { 0 };
        self.step_at(index, busy_until.max(mono + idle));
    }
}
