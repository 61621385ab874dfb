//! Works longer than its lease, without a heartbeat, and reports late; or far too late.

use super::effects::beginning;
use super::hands::{Ask, Hands, contact, outcome};
use super::{Actor, Desk};
use crate::call::{Call, Reply, is_report};

/// See the module.
pub(super) struct Slow {
    hands: Hands,
}

impl Slow {
    pub(super) const fn new(name: String) -> Self {
        Self { hands: Hands::new(name) }
    }
}

impl Actor for Slow {
    fn wake(&mut self, desk: &mut Desk<'_>) {
        if let Some(place) =
            self.hands.held.iter().position(|held| held.done_at <= desk.mono && held.said.is_none())
        {
            // First it looks whether it may go on, sometimes.
            let late = desk.chance.percent(30) && self.hands.held[place].tries == 0;
            let said = beginning(desk).unwrap_or_else(|| if late { contact(desk) } else { outcome(desk) });
            self.hands.tell(desk, place, said);
        }
        if self.hands.held.len() < 3 && !self.hands.asked {
            self.hands.claim(desk, Ask { max_jobs: 1, wait_ms: 0 });
        }
        desk.wake_within(200, 2_000);
    }

    fn heard(&mut self, desk: &mut Desk<'_>, call: &Call, reply: Option<&Reply>) {
        if self.hands.heard_claim(desk, call, reply) {
            let (mono, chance) = (desk.mono, &mut *desk.chance);
            for held in self.hands.held.iter_mut().filter(|held| held.tries == 0) {
                held.done_at = mono + held.lease_ms + chance.between(-300, held.lease_ms);
            }
        }
        let Some(place) = self.hands.place(call) else { return };
        let held = &mut self.hands.held[place];
        let is_report = held.said.as_ref().is_some_and(is_report);
        held.said = None;
        if is_report && desk.chance.percent(80) {
            self.hands.held.remove(place);
        }
    }
}
