//! The effect journal of a job: what its workers were about to do to the world, and what became of it.
//!
//! An effect is *open* from its begin until it is finished or aborted. One that is open under a lease which is not the one that
//! began it is *in doubt*: it may have happened. Nothing here ever says that an effect did not happen unless a worker or a
//! person said so.
//!
//! Deliberately absent: the effects themselves. What is done, and how it is looked up, is the worker's business.

use std::sync::Arc;

use crate::Job;

/// What is known of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectState {
    /// Begun, and nobody has said since what became of it.
    Open,
    /// It happened.
    Done,
    /// It certainly did not happen.
    Aborted,
}

/// One effect of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Its name within the job.
    pub name: Arc<str>,
    /// What is known of it.
    pub state: EffectState,
    /// Idempotency key for the remote system; the same in every attempt.
    pub key: Arc<str>,
    /// Sequence number of the lease that began it, since it was last aborted.
    pub seq: u32,
    /// When that was.
    pub begun_at: crate::Timestamp,
    /// When it was finished or aborted.
    pub ended_at: Option<crate::Timestamp>,
    /// A person has looked it up and said how it ended.
    pub assumed: bool,
    /// JSON text of its result, if it is done.
    pub result: Option<Arc<str>>,
}

impl Effect {
    /// Whether it was begun and nobody has said what became of it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state == EffectState::Open
    }
}

/// What a worker says about an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectCall {
    /// It is about to be done.
    Begin {
        /// The key that the worker wants for it.
        own: Option<Arc<str>>,
        /// A random key, in case the worker wants none.
        fresh: Arc<str>,
    },
    /// It happened.
    Finish {
        /// JSON text of the result.
        result: Option<Arc<str>>,
    },
    /// It certainly did not happen.
    Abort,
}

/// What the holder of the newest lease does about an effect that it has just begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Nothing has happened yet: go ahead.
    New,
    /// An earlier attempt began it and never said how it ended: look it up first.
    InDoubt,
    /// It happened: skip it.
    Done,
    /// It certainly did not happen; what is told to who has just aborted it.
    Aborted,
}

/// What a person has found out about an effect in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assume {
    /// It happened.
    Done,
    /// It did not.
    NotDone,
}

/// What a person has found out, and about which effects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assumed {
    /// The same about all that are in doubt.
    All(Assume),
    /// About these, by name. The others stay in doubt.
    Named(Arc<[(Arc<str>, Assume)]>),
}

impl Assumed {
    /// What was found out about the effect with this name, if anything.
    #[must_use]
    pub fn about(&self, name: &str) -> Option<Assume> {
        match self {
            Self::All(assume) => Some(*assume),
            Self::Named(known) => known.iter().find(|(known, _)| **known == *name).map(|(_, assume)| *assume),
        }
    }

    /// The same in words, for the audit log.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::All(assume) => format!("all effects in doubt {}", assume.name()),
            Self::Named(known) => {
                let each: Vec<_> =
                    known.iter().map(|(name, assume)| format!("{name} {}", assume.name())).collect();
                each.join(", ")
            }
        }
    }
}

crate::names::names!(EffectState { Open => "open", Done => "done", Aborted => "aborted" });
crate::names::names!(Begun { New => "new", InDoubt => "in_doubt", Done => "done", Aborted => "aborted" });
crate::names::names!(Assume { Done => "done", NotDone => "not_done" });

impl Job {
    /// An effect by its name.
    #[must_use]
    pub fn effect(&self, name: &str) -> Option<&Effect> {
        self.effects.iter().find(|effect| *effect.name == *name)
    }

    /// Effects that were begun and of which nobody has said what became of them.
    pub fn open_effects(&self) -> impl Iterator<Item = &Effect> {
        self.effects.iter().filter(|effect| effect.is_open())
    }

    /// Open effects that the present holder, if there is one, has not begun itself: they may have happened.
    pub fn effects_in_doubt(&self) -> impl Iterator<Item = &Effect> {
        self.open_effects().filter(|effect| self.standing(effect) == Begun::InDoubt)
    }

    /// What an effect of this job is to whoever works on it, or would.
    #[must_use]
    pub fn standing(&self, effect: &Effect) -> Begun {
        match effect.state {
            EffectState::Done => Begun::Done,
            EffectState::Aborted => Begun::Aborted,
            EffectState::Open if self.lease.is_some() && effect.seq == self.leases => Begun::New,
            EffectState::Open => Begun::InDoubt,
        }
    }
}
