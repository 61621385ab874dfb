//! Claims and is never heard of again; its successor has the same name and knows nothing.

use super::effects::beginning;
use super::hands::{Ask, Hands, contact, outcome};
use super::{Actor, Desk};
use crate::call::{Call, Reply};

/// See the module.
pub(super) struct Dying {
    hands: Hands,
}

impl Dying {
    pub(super) const fn new(name: String) -> Self {
        Self { hands: Hands::new(name) }
    }
}

impl Actor for Dying {
    fn wake(&mut self, desk: &mut Desk<'_>) {
        if !self.hands.held.is_empty() {
            match desk.chance.below(4) {
                0 => {
                    let said = beginning(desk).unwrap_or_else(|| contact(desk));
                    self.hands.tell(desk, 0, said);
                }
                1 => {
                    let said = outcome(desk);
                    self.hands.tell(desk, 0, said);
                    self.hands.held.clear();
                }
                _ => self.hands.held.clear(),
            }
        }
        if !self.hands.asked {
            let max_jobs = match desk.chance.below(8) {
                _ if desk.plan.mass => 1_000,
                0 => 20,
                _ => 1,
            };
            let wait_ms = if desk.chance.percent(20) { desk.chance.between(100, 5_000) } else { 0 };
            self.hands.claim(desk, Ask { max_jobs, wait_ms });
        }
        desk.wake_within(500, 5_000);
    }

    fn heard(&mut self, desk: &mut Desk<'_>, call: &Call, reply: Option<&Reply>) {
        self.hands.heard_claim(desk, call, reply);
    }
}
