//! Lives on long polls: always one or two claims that wait, and short work.

use super::hands::{Ask, Hands, outcome};
use super::{Actor, Desk};
use crate::call::{Call, Reply};

/// See the module.
pub(super) struct Poller {
    hands: Hands,
}

impl Poller {
    pub(super) const fn new(name: String) -> Self {
        Self { hands: Hands::new(name) }
    }
}

impl Actor for Poller {
    fn wake(&mut self, desk: &mut Desk<'_>) {
        while let Some(place) = self.hands.held.iter().position(|held| held.said.is_none()) {
            let said = outcome(desk);
            self.hands.tell(desk, place, said);
        }
        // What was said once is forgotten here; the answer does not matter to it.
        self.hands.held.clear();
        if !self.hands.asked {
            let ask = Ask { max_jobs: 1 + desk.chance.below(3), wait_ms: desk.chance.between(500, 15_000) };
            self.hands.claim(desk, ask);
        }
        desk.wake_within(500, 5_000);
    }

    fn heard(&mut self, desk: &mut Desk<'_>, call: &Call, reply: Option<&Reply>) {
        if self.hands.heard_claim(desk, call, reply) {
            desk.wake_within(0, 500);
        }
    }
}
