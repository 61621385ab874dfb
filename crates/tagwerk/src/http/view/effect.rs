//! Effects as they are shown.

use tagwerk_api::answer::{Effect, EffectAnswer, EffectInDoubt};
use tagwerk_api::{EffectState, Json};
use tagwerk_core::{Begun, Job};

use super::{json, time};

const fn state(begun: Begun) -> EffectState {
    match begun {
        Begun::New => EffectState::New,
        Begun::InDoubt => EffectState::InDoubt,
        Begun::Done => EffectState::Done,
        Begun::Aborted => EffectState::Aborted,
    }
}

fn result(effect: &tagwerk_core::Effect) -> Option<Json> {
    effect.result.as_deref().map(|text| json(text.to_owned()))
}

/// With what came of it.
pub(super) fn shown(job: &Job, effect: &tagwerk_core::Effect) -> Effect {
    Effect {
        name: effect.name.to_string(),
        state: state(job.standing(effect)),
        key: effect.key.to_string(),
        result: result(effect),
        begun_at: time(effect.begun_at),
        ended_at: effect.ended_at.map(time),
        assumed: effect.assumed,
    }
}

/// In lists too.
pub(super) fn in_doubt(effect: &tagwerk_core::Effect) -> EffectInDoubt {
    EffectInDoubt {
        name: effect.name.to_string(),
        key: effect.key.to_string(),
        begun_at: time(effect.begun_at),
    }
}

/// The answer to a call about it.
pub(in crate::http) fn answer(job: &Job, effect: &tagwerk_core::Effect) -> EffectAnswer {
    EffectAnswer { state: state(job.standing(effect)), key: effect.key.to_string(), result: result(effect) }
}
