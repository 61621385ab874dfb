//! Changes limits and bounds of queues while everything runs; pauses queues for several reasons and lifts them; drains.

use tagwerk_engine::command::{ControlQueue, LimitCall, QueueControl};
use tagwerk_engine::row::LimitRef;

use super::{Actor, Desk};
use crate::call::{Call, Reply};
use crate::chance::Chance;
use crate::plan::{Caps, LIMITS, bounds, limit_settings};

/// See the module.
pub(super) struct Keeper;

/// Reasons for a pause.
const REASONS: [&str; 3] = ["deploy", "crm down", "night"];

impl Actor for Keeper {
    fn wake(&mut self, desk: &mut Desk<'_>) {
        desk.wake_within(200, 5_000);
        let (queues, caps) = (desk.plan.queues, desk.plan.caps.as_ref());
        let chance = &mut *desk.chance;
        let call = if chance.percent(40) {
            Call::Limit(about_limit(chance, caps))
        } else {
            let queue =
                if chance.percent(15) { "default".to_owned() } else { format!("q{}", chance.below(queues)) };
            Call::Queue(ControlQueue { queue, control: control(chance) })
        };
        desk.send_by_hand(call);
    }

    fn heard(&mut self, desk: &mut Desk<'_>, call: &Call, reply: Option<&Reply>) {
        desk.repeat_by_hand(call, reply);
    }
}

fn about_limit(chance: &mut Chance, caps: Option<&Caps>) -> LimitCall {
    let name = (*chance.pick(&LIMITS)).to_owned();
    match chance.weighted(&[50, 20, 15, 15, 10]) {
        0 => {
            let first = caps.and_then(|caps| caps.rate_of(&name));
            let mut settings = limit_settings(chance);
            // What a change of the rate makes of the starts before it is not simulated yet: a limit keeps its first rate.
            settings.rate = first;
            LimitCall::Put(name, settings)
        }
        1 => LimitCall::Delete(name),
        2 => LimitCall::Show(name),
        3 => LimitCall::List,
        _ => {
            let partition = chance.pick(&["", "", "north"]);
            LimitCall::Open(LimitRef { name, partition: (*partition).to_owned() })
        }
    }
}

fn control(chance: &mut Chance) -> QueueControl {
    let reason = |chance: &mut Chance| (*chance.pick(&REASONS)).to_owned();
    let by = |chance: &mut Chance| chance.percent(50).then(|| "ann".to_owned());
    match chance.weighted(&[24, 34, 20, 8, 14]) {
        0 => QueueControl::Pause { reason: reason(chance), by: by(chance) },
        1 => QueueControl::Resume { reason: chance.percent(70).then(|| reason(chance)) },
        2 => QueueControl::Set(bounds(chance)),
        3 => {
            let reason = chance.percent(50).then(|| reason(chance));
            QueueControl::Drain { reason, by: by(chance) }
        }
        _ => QueueControl::Open,
    }
}
