//! Routes of the effect journal.

use super::examples;
use super::route::{Group, Method, Route, answer, body};
use crate::problem::Code;

pub(super) const ROUTES: &[Route] = &[
    Route {
        method: Method::Post,
        path: "/jobs/{id}/effects/{effect}/begin",
        id: "effect_begin",
        group: Group::Workers,
        summary: "Begin a side effect",
        about: "Durable before it is answered. `new`: go ahead, and give `key` to the remote system. `in_doubt`: an earlier \
                attempt began it and never said what became of it; look it up by `key` first. `done`: skip it. At most 100 \
                names per job.",
        body: Some(body("EffectBeginRequest", examples::effect_begin)),
        answers: &[answer(200, "What is known of the effect.", "EffectAnswer", examples::effect_begun)],
        problems: &[
            Code::JobNotFound,
            Code::JobDamaged,
            Code::LeaseLost,
            Code::TimedOut,
            Code::Cancelled,
            Code::Superseded,
            Code::NotRunning,
            Code::LeaseRequired,
            Code::TooManyEffects,
        ],
        ..Route::EMPTY
    },
    Route {
        method: Method::Post,
        path: "/jobs/{id}/effects/{effect}/finish",
        id: "effect_finish",
        group: Group::Workers,
        summary: "Say that a side effect happened",
        about: "That something happened is a fact: it is also taken from a worker that has lost its lease, as long as nobody has \
                said so before.",
        body: Some(body("EffectFinishRequest", examples::effect_finish)),
        answers: &[answer(200, "The effect, done.", "EffectAnswer", examples::effect_finished)],
        problems: &[
            Code::JobNotFound,
            Code::JobDamaged,
            Code::LeaseLost,
            Code::Cancelled,
            Code::Superseded,
            Code::NotRunning,
            Code::LeaseRequired,
            Code::EffectNotBegun,
            Code::EffectFinished,
            Code::ResultTooLarge,
        ],
        ..Route::EMPTY
    },
    Route {
        method: Method::Post,
        path: "/jobs/{id}/effects/{effect}/abort",
        id: "effect_abort",
        group: Group::Workers,
        summary: "Say that a side effect did not happen",
        about: "Only if that is certain. The effect can be begun again, with the same key or one of the worker's own.",
        body: Some(body("EffectAbortRequest", examples::effect_abort)),
        answers: &[answer(200, "The effect, aborted.", "EffectAnswer", examples::effect_aborted)],
        problems: &[
            Code::JobNotFound,
            Code::JobDamaged,
            Code::LeaseLost,
            Code::TimedOut,
            Code::Cancelled,
            Code::Superseded,
            Code::NotRunning,
            Code::LeaseRequired,
            Code::EffectNotBegun,
            Code::EffectFinished,
        ],
        ..Route::EMPTY
    },
];
