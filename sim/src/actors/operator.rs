//! Does everything that people do, with versions it saw a moment ago or long ago, and twice.

use tagwerk_core::{Action, Jitter, JobId, OnUnknown, Priority, RetryOverrides};
use tagwerk_engine::command::{KeyFate, Operate, PutType};
use tagwerk_engine::row::TypeSettings;

use super::{Actor, Desk, effects, turns};
use crate::call::{Call, Reply};

/// See the module.
pub(super) struct Operator;

impl Actor for Operator {
    fn wake(&mut self, desk: &mut Desk<'_>) {
        desk.wake_within(200, 4_000);
        if desk.chance.percent(10) && desk.plan.nodes == 1 {
            let call = settings(desk);
            desk.send(call);
            return;
        }
        let Some(id) = choose(desk) else { return };
        let call = act(desk, id);
        desk.send_by_hand(call);
    }

    fn heard(&mut self, desk: &mut Desk<'_>, call: &Call, reply: Option<&Reply>) {
        desk.repeat_by_hand(call, reply);
    }
}

/// Any job, or one that was handed out not long ago: whoever has it, or has lost it, may still have something to say.
fn choose(desk: &mut Desk<'_>) -> Option<JobId> {
    if let Some(id) = turns::holder(desk) {
        return Some(id);
    }
    // In most worlds there are none.
    if !desk.board.doubts.is_empty() && desk.chance.percent(40) {
        let in_doubt: Vec<JobId> = desk.board.doubts.keys().copied().collect();
        return Some(*desk.chance.pick(&in_doubt));
    }
    let leases = &desk.board.leases;
    let newest = &leases[leases.len().saturating_sub(6)..];
    if desk.chance.percent(60)
        && let Some((id, ..)) = desk.chance.any(newest)
    {
        return Some(*id);
    }
    desk.chance.any(&desk.board.jobs).copied()
}

fn act(desk: &mut Desk<'_>, id: JobId) -> Call {
    let known = desk.board.versions.get(&id).copied();
    let unblock = turns::is_to_unblock(desk);
    if let Some(assumed) = effects::assumed(desk, id) {
        let seen_version = desk.board.doubts.get(&id).map(|(version, _)| *version);
        let action = Action::Retry { max_retries: None };
        let (text, payload, key) = (None, None, KeyFate::ByScope);
        return Call::Operate(Operate {
            id,
            action,
            seen_version,
            text,
            payload,
            assume: Some(assumed),
            key,
        });
    }
    let chance = &mut *desk.chance;
    let action = match chance.weighted(&[15, 10, 40, 12, 12, 5]) {
        _ if unblock => Action::Unblock,
        0 => Action::Cancel { wait: false },
        1 => Action::Cancel { wait: true },
        2 => {
            let max_retries = chance.percent(30).then(|| u32::try_from(chance.below(3)).unwrap_or(0));
            if chance.percent(25) {
                Action::ForceRetry { max_retries }
            } else {
                Action::Retry { max_retries }
            }
        }
        3 => Action::Discard,
        4 => Action::ForceFail { error: "forced".to_owned() },
        _ => Action::Delete,
    };
    let is_retry = matches!(action, Action::Retry { .. } | Action::ForceRetry { .. });
    let seen_version = match chance.below(4) {
        0 => None,
        1 => known.map(|version| version + chance.between(-2, 2)),
        _ => known,
    };
    Call::Operate(Operate {
        id,
        action,
        seen_version,
        text: chance.percent(50).then(|| "because".to_owned()),
        payload: (is_retry && chance.percent(20)).then(|| "{\"new\":true}".to_owned()),
        assume: None,
        key: if chance.percent(20) { KeyFate::Free } else { KeyFate::ByScope },
    })
}

fn settings(desk: &mut Desk<'_>) -> Call {
    let plan = desk.plan;
    let chance = &mut *desk.chance;
    let kind = format!("t{}", chance.below(plan.types));
    let settings = chance.percent(70).then(|| TypeSettings {
        queue: chance.percent(30).then(|| format!("q{}", chance.below(plan.queues))),
        priority: chance.percent(30).then(Priority::default),
        max_retries: chance.percent(30).then(|| u32::try_from(chance.below(4)).unwrap_or(0)),
        max_lease_losses: chance.percent(30).then(|| u32::try_from(chance.below(4)).unwrap_or(0)),
        lease_ms: chance.percent(30).then(|| chance.between(1_000, 9_000)),
        timeout_ms: chance.percent(20).then(|| chance.between(1_000, 9_000)),
        max_age_ms: chance.percent(10).then(|| chance.between(5_000, 60_000)),
        retry: RetryOverrides {
            base_ms: chance.percent(30).then(|| chance.between(0, 3_000)),
            jitter: chance.percent(30).then_some(Jitter::None),
            ..RetryOverrides::default()
        },
        on_unknown: chance.percent(20).then_some(OnUnknown::Review),
        handles_verify: plan.effects > 0 && chance.percent(30),
        ..TypeSettings::default()
    });
    Call::PutType(PutType { kind, settings })
}
