//! How many jobs have ordering keys, and which.

use tagwerk_core::OnHeadFailure;

use crate::chance::Chance;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns {
    /// So many of 100 jobs have a key. In some worlds none has.
    pub(crate) share: u32,
    /// Different keys in use: few, so that jobs meet.
    pub(crate) keys: usize,
    /// So many of 100 jobs with a key do not hold back the others when they fail.
    skip: u32,
}

impl Turns {
    /// What this seed decides. From a stream of its own, so that worlds without ordering keys stay what they were.
    pub(super) fn of(seed: u64) -> Self {
        let chance = &mut Chance::new(seed ^ 0x07DE_12ED);
        let shares = [0, 15, 40, 90];
        Self {
            share: shares[chance.weighted(&[30, 30, 30, 10])],
            keys: 1 + chance.below(6),
            skip: *chance.pick(&[10, 50, 90]),
        }
    }

    /// What a job says about its failure; nothing means `block`.
    pub(crate) fn mode(self, chance: &mut Chance) -> Option<OnHeadFailure> {
        if chance.percent(self.skip) {
            return Some(OnHeadFailure::Skip);
        }
        chance.percent(50).then_some(OnHeadFailure::Block)
    }
}
