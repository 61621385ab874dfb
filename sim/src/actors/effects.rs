//! Side effects of workers, in worlds where they have such: begin in the journal, do it or look it up, say what came of it.
//!
//! The other side knows no idempotency keys and can be asked what it has done. So a worker does nothing after the end of its lease,
//! which it counts from the moment at which it asked for it: whoever comes after looks then.

use tagwerk_core::{Assume, Assumed, EffectState, Job};
use tagwerk_engine::command::{EffectSaid, Said};

use super::hands::Held;
use super::{Act, Board, Desk};

/// What is still to be said about an effect.
#[derive(Clone, Debug)]
pub(super) enum Next {
    Finish(String, Option<String>),
    Abort(String),
}

fn begin(desk: &mut Desk<'_>) -> Said {
    let chance = &mut *desk.chance;
    let name = format!("e{}", chance.below(2));
    let key = chance.percent(10).then(|| format!("own-{}", chance.below(1_000_000)).into());
    Said::Effect(name.into(), EffectSaid::Begin { key })
}

/// Whether it is time for an effect.
fn is_time(desk: &mut Desk<'_>) -> bool {
    desk.plan.effects > 0 && desk.chance.percent(desk.plan.effects)
}

/// Begins an effect and does nothing more about it.
pub(super) fn beginning(desk: &mut Desk<'_>) -> Option<Said> {
    is_time(desk).then(|| begin(desk))
}

/// What a worker that keeps to the journal says next about the effects of its job, if anything.
pub(super) fn next(desk: &mut Desk<'_>, held: &mut Held) -> Option<Said> {
    match held.next.take() {
        // It may forget, and then it hears of it.
        Some(_) if desk.chance.percent(10) => None,
        Some(Next::Finish(name, result)) => {
            let result = result.map(Into::into);
            Some(Said::Effect(name.into(), EffectSaid::Finish { result }))
        }
        Some(Next::Abort(name)) => Some(Said::Effect(name.into(), EffectSaid::Abort)),
        // What was aborted is left alone: the network may bring the abort once more.
        None => beginning(desk).filter(|said| {
            !matches!(said, Said::Effect(name, _) if held.aborted.iter().any(|known| **known == **name))
        }),
    }
}

/// The answer to a begin: does it, looks it up, or leaves it.
pub(super) fn heard(desk: &mut Desk<'_>, (held, job): (&mut Held, &Job), said: &Said) {
    let Said::Effect(name, EffectSaid::Begin { .. }) = said else { return };
    let Some(effect) = job.effect(name) else { return };
    let name = name.to_string();
    if effect.state != EffectState::Open {
        return;
    }
    let (key, is_new) = (effect.key.to_string(), job.lease.is_some() && effect.seq == job.leases);
    if let Some(known) = looked_up(desk.board, &key) {
        held.next = Some(Next::Finish(name, Some(known)));
    } else if desk.mono >= held.ends_at {
        // Whoever has the job now may have begun already.
    } else if is_new && desk.chance.percent(15) {
        held.aborted.push(name.clone());
        held.next = Some(Next::Abort(name));
    } else if !held.aborted.contains(&name) {
        let result = format!("\"done {}\"", desk.chance.below(1_000));
        desk.acts.push(Act { job: held.id, name: name.clone(), key, result: result.clone() });
        held.next = Some(Next::Finish(name, Some(result)));
    }
}

fn looked_up(board: &Board, key: &str) -> Option<String> {
    board.done.get(key).cloned()
}

/// A liar's: about effects that nobody else has.
pub(super) fn lie(desk: &mut Desk<'_>) -> Option<Said> {
    if !is_time(desk) {
        return None;
    }
    let chance = &mut *desk.chance;
    let said = match chance.below(4) {
        0 | 1 => EffectSaid::Begin { key: chance.percent(30).then(|| "lie".into()) },
        2 => EffectSaid::Finish { result: chance.percent(50).then(|| "\"a lie\"".into()) },
        _ => EffectSaid::Abort,
    };
    // Finishing what others have begun would be true only by chance.
    let name = if matches!(said, EffectSaid::Begin { .. }) && chance.percent(20) { "e0" } else { "lie" };
    Some(Said::Effect(name.into(), said))
}

/// What a person says who has looked at the other side, about the effects of a job as it was seen in review.
pub(super) fn assumed(desk: &mut Desk<'_>, job: tagwerk_core::JobId) -> Option<Assumed> {
    let (_, open) = desk.board.doubts.get(&job)?;
    let found = |key: &String| if desk.board.done.contains_key(key) { Assume::Done } else { Assume::NotDone };
    let all: Vec<Assume> = open.values().map(found).collect();
    match desk.chance.below(10) {
        0..4 => None,
        // Of a single one it can be said without its name.
        4..7 if all.windows(2).all(|pair| pair[0] == pair[1]) => all.first().copied().map(Assumed::All),
        // Sometimes of one that is not in doubt.
        7 => Some(Assumed::Named([("e7".into(), Assume::Done)].into())),
        _ => {
            let named = open.iter().map(|(name, key)| (name.as_str().into(), found(key)));
            Some(Assumed::Named(named.collect()))
        }
    }
}
