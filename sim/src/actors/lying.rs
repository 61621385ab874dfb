//! Reports twice, with other content, with tokens of others and old ones, with made-up ones, after a cancel.

use tagwerk_core::JobId;
use tagwerk_engine::command::Holder;

use super::hands::{Ask, Hands, contact, one, outcome, token};
use super::{Actor, Desk, effects};
use crate::call::{Call, Reply};

/// See the module.
pub(super) struct Lying {
    hands: Hands,
    /// What it has sent before, to be sent again.
    sent: Vec<Call>,
}

impl Lying {
    pub(super) const fn new(name: String) -> Self {
        Self { hands: Hands::new(name), sent: Vec::new() }
    }

    fn lie(&mut self, desk: &mut Desk<'_>) {
        let said = effects::lie(desk)
            .unwrap_or_else(|| if desk.chance.percent(70) { outcome(desk) } else { contact(desk) });
        let call = match desk.chance.below(6) {
            // The same again.
            0 if !self.sent.is_empty() => desk.chance.pick(&self.sent).clone(),
            // Somebody's token, living or dead, on its job or on another.
            1..=3 => {
                let Some((id, stolen, _)) = desk.chance.any(&desk.board.leases).cloned() else { return };
                let other = desk.chance.any(&desk.board.jobs).copied().unwrap_or(id);
                one(if desk.chance.percent(85) { id } else { other }, token(&stolen), said)
            }
            4 => one(some_job(desk), token("0123456789abcdef0123456789abcdef"), said),
            _ => {
                let worker = desk.chance.percent(50).then(|| self.hands.worker.clone());
                one(some_job(desk), Holder { token: None, worker }, said)
            }
        };
        self.sent.push(call.clone());
        desk.send(call);
    }
}

fn some_job(desk: &mut Desk<'_>) -> JobId {
    // Sometimes one that does not exist.
    let known = if desk.chance.percent(95) { desk.chance.any(&desk.board.jobs).copied() } else { None };
    known.unwrap_or(JobId(999_999))
}

impl Actor for Lying {
    fn wake(&mut self, desk: &mut Desk<'_>) {
        if let Some(place) = self.hands.held.iter().position(|held| held.done_at <= desk.mono) {
            let said = outcome(desk);
            self.hands.tell(desk, place, said.clone());
            let held = self.hands.held.remove(place);
            self.sent.push(one(held.id, token(&held.token), said));
            let other = outcome(desk);
            self.sent.push(one(held.id, token(&held.token), other));
        }
        self.lie(desk);
        if self.hands.held.len() < 2 && !self.hands.asked {
            self.hands.claim(desk, Ask { max_jobs: 1, wait_ms: 0 });
        }
        desk.wake_within(200, 1_500);
    }

    fn heard(&mut self, desk: &mut Desk<'_>, call: &Call, reply: Option<&Reply>) {
        self.hands.heard_claim(desk, call, reply);
    }
}
