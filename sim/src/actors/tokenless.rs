//! The plain loop: claim, work, `complete {}`. No token, sometimes its name, no heartbeat.

use tagwerk_engine::command::Holder;

use super::hands::{Ask, Hands, one, outcome};
use super::{Actor, Desk};
use crate::call::{Answer, Call, Reply};

/// See the module.
pub(super) struct Tokenless {
    hands: Hands,
}

impl Tokenless {
    pub(super) const fn new(name: String) -> Self {
        Self { hands: Hands::new(name) }
    }
}

impl Actor for Tokenless {
    fn wake(&mut self, desk: &mut Desk<'_>) {
        if let Some(place) = self.hands.held.iter().position(|held| held.done_at <= desk.mono) {
            let said = outcome(desk);
            let worker = desk.chance.percent(40).then(|| self.hands.worker.clone());
            let held = &mut self.hands.held[place];
            held.tries += 1;
            held.done_at = desk.mono + 3_000;
            let (id, tries) = (held.id, held.tries);
            desk.send(one(id, Holder { token: None, worker }, said));
            if tries > 3 {
                self.hands.held.remove(place);
            }
        }
        if self.hands.held.is_empty() && !self.hands.asked {
            self.hands.claim(desk, Ask { max_jobs: 1, wait_ms: 0 });
        }
        desk.wake_within(100, 1_500);
    }

    fn heard(&mut self, desk: &mut Desk<'_>, call: &Call, reply: Option<&Reply>) {
        self.hands.heard_claim(desk, call, reply);
        if let (Some(Ok(Answer::Work(_))), Some(place)) = (reply, self.hands.place(call)) {
            self.hands.held.remove(place);
        }
    }
}
