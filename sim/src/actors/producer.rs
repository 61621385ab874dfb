//! Enqueues single jobs and bulks, with keys of every scope; sends again what was not answered.

use tagwerk_engine::command::{BulkMode, Enqueue};

use super::{Actor, Desk, order, turns};
use crate::call::{Call, Reply};

/// See the module.
#[derive(Default)]
pub(super) struct Producer {
    mass_sent: bool,
}

/// More than one batch ends at once.
const MASS: usize = 1_100;

impl Actor for Producer {
    fn wake(&mut self, desk: &mut Desk<'_>) {
        let n = match desk.chance.below(10) {
            0 => 2 + desk.chance.below(12),
            1 => 2 + desk.chance.below(3),
            _ => 1,
        };
        let mode = if desk.chance.percent(30) { BulkMode::Atomic } else { BulkMode::Each };
        let mut jobs: Vec<_> = (0..n).map(|_| order::job(desk)).collect();
        if desk.plan.mass && !self.mass_sent {
            self.mass_sent = true;
            jobs = vec![turns::one_of_many(desk); MASS];
        }
        desk.send(Call::Enqueue(Enqueue { jobs, mode, reach: None }));
        desk.wake_within(20, 4_000);
    }

    fn heard(&mut self, desk: &mut Desk<'_>, call: &Call, reply: Option<&Reply>) {
        if !matches!(reply, Some(Ok(_))) && desk.chance.percent(60) {
            desk.send(call.clone());
        }
    }
}
