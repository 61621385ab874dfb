//! Chance that repeats itself.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::lock;
use crate::ports::Entropy;

/// Numbers that look random and are the same in every run with the same seed (`SplitMix64`).
#[derive(Clone, Debug)]
pub struct Seeded {
    state: u64,
}

impl Seeded {
    /// The sequence of this seed.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which must not be 0. Slightly uneven, which tests can bear.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).expect("usize fits in u64");
        usize::try_from(self.next_u64() % end).expect("smaller than a usize")
    }

    /// True once in `n` times, on average.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// Entropy for tests: first what was scripted, then the numbers of a seed. Clones share both.
#[derive(Clone, Debug)]
pub struct ScriptedEntropy {
    source: Arc<Mutex<(VecDeque<u64>, Seeded)>>,
}

impl ScriptedEntropy {
    /// Nothing scripted, then the numbers of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { source: Arc::new(Mutex::new((VecDeque::new(), Seeded::new(seed)))) }
    }

    /// Lets these numbers come next, behind those already scripted.
    pub fn script(&self, numbers: &[u64]) {
        lock(&self.source).0.extend(numbers);
    }
}

impl Entropy for ScriptedEntropy {
    fn u64(&self) -> u64 {
        let (scripted, seeded) = &mut *lock(&self.source);
        scripted.pop_front().unwrap_or_else(|| seeded.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripted_numbers_come_first_and_a_seed_repeats_itself() {
        let (one, two) = (ScriptedEntropy::new(7), ScriptedEntropy::new(7));
        one.script(&[1, 2]);
        assert_eq!((one.u64(), one.clone().u64()), (1, 2));
        assert_eq!(one.u64(), two.u64());
        assert_eq!(one.u64(), two.u64());
    }

    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let mut seeded = Seeded::new(1_234_567);
        assert_eq!(seeded.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(seeded.next_u64(), 3_203_168_211_198_807_973);
    }
}
