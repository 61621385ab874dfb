//! The effect journal: who may begin, finish and abort, and what is told. Section 5 of the semantics.

use tagwerk_core::{Assume, Assumed, EffectState, Rejection, Status};
use tagwerk_engine::command::EffectSaid;

use super::eye::Eye;
use super::job::Job;
use super::report::{Standpoint, may_contact, stale_effect};
use super::{Contradiction, Model};

/// Effects that a job has at most.
const EFFECTS: usize = 100;
/// Digits of a key that the server made: 128 bits.
const KEY_DIGITS: usize = 32;

/// An effect as the model knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) name: String,
    pub(crate) state: EffectState,
    pub(crate) key: String,
    /// The lease that began it.
    pub(crate) lease: u32,
    pub(crate) begun_at: i64,
    pub(crate) ended_at: Option<i64>,
    pub(crate) assumed: bool,
    pub(crate) result: Option<String>,
}

impl Job {
    /// Effects that were begun and of which nobody has said what became of them.
    pub(crate) fn open_effects(&self) -> impl Iterator<Item = &Effect> {
        self.effects.iter().filter(|effect| effect.state == EffectState::Open)
    }

    fn effect(&mut self, name: &str) -> Option<&mut Effect> {
        self.effects.iter_mut().find(|effect| effect.name == name)
    }
}

impl Model {
    /// `Ok` with whether it changes nothing, or the refusal.
    pub(super) fn effect(
        &mut self,
        (id, point): (i64, Standpoint),
        (name, said): (&str, &EffectSaid),
        eye: &Eye<'_>,
    ) -> Result<Result<bool, Rejection>, Contradiction> {
        match said {
            EffectSaid::Begin { key } => self.begin_effect((id, point), (name, key.as_deref()), eye),
            EffectSaid::Finish { result } => Ok(self.finish_effect((id, point), name, result.as_deref())),
            EffectSaid::Abort => Ok(self.abort_effect((id, point), name)),
        }
    }

    fn begin_effect(
        &mut self,
        (id, point): (i64, Standpoint),
        (name, own): (&str, Option<&str>),
        eye: &Eye<'_>,
    ) -> Result<Result<bool, Rejection>, Contradiction> {
        let now = self.now;
        let job = self.job(id)?;
        if let Err(rejection) = may_contact(job, point) {
            return Ok(Err(rejection));
        }
        let known = job.effects.iter().find(|effect| effect.name == name).map(|effect| effect.state);
        let lease = job.leases;
        match known {
            Some(EffectState::Open | EffectState::Done) => return Ok(Ok(true)),
            Some(EffectState::Aborted) => self.note(id, |job| {
                if let Some(effect) = job.effect(name) {
                    (effect.state, effect.lease) = (EffectState::Open, lease);
                    (effect.begun_at, effect.ended_at, effect.assumed) = (now, None, false);
                }
            }),
            None if job.effects.len() >= EFFECTS => return Ok(Err(Rejection::TooManyEffects)),
            None => {
                let key = match own {
                    Some(own) => own.to_owned(),
                    None => self.fresh_key(id, eye.effect_key(id, name))?,
                };
                let effect = Effect {
                    name: name.to_owned(),
                    state: EffectState::Open,
                    key,
                    lease,
                    begun_at: now,
                    ended_at: None,
                    assumed: false,
                    result: None,
                };
                self.note(id, |job| job.effects.push(effect));
            }
        }
        Ok(Ok(false))
    }

    /// Nothing but chance is in a key that the server makes, and no two effects get the same.
    fn fresh_key(&mut self, id: i64, seen: Option<&str>) -> Result<String, Contradiction> {
        let wrong = |what: String| Contradiction::of(Some(id), what);
        let Some(key) = seen else {
            return Err(wrong("it has begun an effect, but nobody can see its key".to_owned()));
        };
        let halves = key.split_at_checked(KEY_DIGITS / 2);
        let drawn = halves.is_some_and(|(high, low)| {
            let drawn = |half: &str| u64::from_str_radix(half, 16).is_ok_and(|half| self.drawn.has(half));
            key.len() == KEY_DIGITS && drawn(high) && drawn(low)
        });
        if !drawn {
            return Err(wrong(format!("the key of its effect is not made of 128 random bits: {key}")));
        }
        if !self.effect_keys.insert(key.to_owned()) {
            return Err(wrong(format!("another effect had the key of its effect: {key}")));
        }
        Ok(key.to_owned())
    }

    /// That it happened is a fact, whichever of its workers says so.
    fn finish_effect(
        &mut self,
        (id, point): (i64, Standpoint),
        name: &str,
        result: Option<&str>,
    ) -> Result<bool, Rejection> {
        let now = self.now;
        let Some(job) = self.jobs.get(&id) else { return Ok(false) };
        if matches!(point, Standpoint::Stranger) {
            return Err(stale_effect(job));
        }
        let known = job.effects.iter().find(|effect| effect.name == name).ok_or(Rejection::EffectNotBegun)?;
        let is_known = known.state == EffectState::Done && !(known.assumed && known.result.is_none());
        if is_known {
            return if known.result.as_deref() == result { Ok(true) } else { Err(Rejection::EffectFinished) };
        }
        if job.status == Status::Completed {
            return Err(stale_effect(job));
        }
        self.note(id, |job| {
            if let Some(effect) = job.effect(name) {
                effect.state = EffectState::Done;
                effect.result = result.map(ToOwned::to_owned);
                (effect.ended_at, effect.assumed) = (Some(now), false);
            }
        });
        Ok(false)
    }

    /// That it did not happen only who may still report can say.
    fn abort_effect(&mut self, (id, point): (i64, Standpoint), name: &str) -> Result<bool, Rejection> {
        let now = self.now;
        let Some(job) = self.jobs.get(&id) else { return Ok(false) };
        if !matches!(point, Standpoint::Holder | Standpoint::Late(_)) {
            return Err(stale_effect(job));
        }
        let known = job.effects.iter().find(|effect| effect.name == name).ok_or(Rejection::EffectNotBegun)?;
        match known.state {
            EffectState::Aborted => return Ok(true),
            EffectState::Done => return Err(Rejection::EffectFinished),
            EffectState::Open => {}
        }
        self.note(id, |job| {
            if let Some(effect) = job.effect(name) {
                (effect.state, effect.ended_at) = (EffectState::Aborted, Some(now));
            }
        });
        Ok(false)
    }

    /// Whether a person speaks of something that is in doubt.
    pub(super) fn may_assume(&self, id: i64, assumed: &Assumed) -> bool {
        let Some(job) = self.jobs.get(&id) else { return false };
        let in_doubt = |name: &str| job.open_effects().any(|effect| effect.name == name);
        match assumed {
            Assumed::All(_) => job.open_effects().next().is_some(),
            Assumed::Named(known) => known.iter().all(|(name, _)| in_doubt(name)),
        }
    }

    /// What a person has looked up.
    pub(super) fn assume(&mut self, id: i64, assumed: &Assumed) {
        let now = self.now;
        self.note(id, |job| {
            for effect in job.effects.iter_mut().filter(|effect| effect.state == EffectState::Open) {
                let said = match assumed {
                    Assumed::All(said) => Some(*said),
                    Assumed::Named(known) => {
                        known.iter().find(|(name, _)| **name == *effect.name).map(|(_, said)| *said)
                    }
                };
                effect.state = match said {
                    Some(Assume::Done) => EffectState::Done,
                    Some(Assume::NotDone) => EffectState::Aborted,
                    None => continue,
                };
                (effect.ended_at, effect.assumed) = (Some(now), true);
            }
        });
    }
}
