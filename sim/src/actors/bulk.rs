//! A large worker: reports many jobs in one call and claims the next ones in the same round trip.

use tagwerk_engine::command::{Work, WorkerCall};

use super::hands::{Ask, Hands, contact, outcome, token};
use super::{Actor, Desk};
use crate::call::{Answer, Call, Reply, is_report};

/// See the module.
pub(super) struct Bulk {
    hands: Hands,
    waiting: bool,
}

impl Bulk {
    pub(super) const fn new(name: String) -> Self {
        Self { hands: Hands::new(name), waiting: false }
    }
}

impl Actor for Bulk {
    fn wake(&mut self, desk: &mut Desk<'_>) {
        desk.wake_within(200, 2_000);
        if self.waiting {
            return;
        }
        let mut calls = Vec::new();
        for held in &self.hands.held {
            let said = if held.done_at <= desk.mono { outcome(desk) } else { contact(desk) };
            calls.push(WorkerCall { id: held.id, holder: token(&held.token), said });
        }
        let max_jobs = 1 + desk.chance.below(12);
        let room = self.hands.held.len() < 20 && desk.chance.percent(80);
        let claim = room.then(|| self.hands.next_claim(desk, Ask { max_jobs, wait_ms: 0 }));
        if calls.is_empty() && claim.is_none() {
            return;
        }
        self.waiting = true;
        desk.send(Call::Work(Work { calls, claim }));
    }

    fn heard(&mut self, desk: &mut Desk<'_>, call: &Call, reply: Option<&Reply>) {
        let Call::Work(work) = call else { return };
        let Some(Ok(Answer::Work(answer))) = reply else {
            if desk.chance.percent(70) {
                desk.send(call.clone());
            } else {
                self.waiting = false;
            }
            return;
        };
        self.waiting = false;
        for (call, result) in work.calls.iter().zip(&answer.results) {
            let goes_on = result.is_ok() && !is_report(&call.said);
            self.hands.held.retain(|held| held.id != call.id || goes_on);
        }
        if let Some(claimed) = &answer.claimed {
            self.hands.take(desk, claimed);
        }
    }
}
