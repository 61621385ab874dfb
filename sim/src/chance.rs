//! Chance that comes from the seed and from nothing else.

/// A stream of numbers that look random (`SplitMix64`). Every part of a world has a stream of its own, so that a change
/// in one part does not shuffle all others.
#[derive(Clone, Debug)]
pub(crate) struct Chance {
    state: u64,
}

impl Chance {
    /// The stream of this seed.
    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A stream of its own for the part with this number.
    pub(crate) fn fork(&mut self, part: u64) -> Self {
        Self::new(self.u64() ^ part.wrapping_mul(0xD6E8_FEB8_6659_FD93))
    }

    /// The next number.
    pub(crate) const fn u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if there is none.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        if end == 0 {
            return 0;
        }
        let drawn = u128::from(self.u64()) * (end as u128);
        usize::try_from(drawn >> 64).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = u128::from(high.abs_diff(low)) + 1;
        let offset = (u128::from(self.u64()) * span) >> 64;
        low.saturating_add(i64::try_from(offset).unwrap_or(0))
    }

    /// True in `percent` of 100 cases.
    pub(crate) fn percent(&mut self, percent: u32) -> bool {
        self.per_mille(percent * 10)
    }

    /// True in `share` of 1000 cases.
    pub(crate) fn per_mille(&mut self, share: u32) -> bool {
        self.below(1_000) < share as usize
    }

    /// One of these. The list must not be empty.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// One of these, if there is one.
    pub(crate) fn any<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }

    /// The index of one of these weights, each as likely as it weighs.
    pub(crate) fn weighted(&mut self, weights: &[u32]) -> usize {
        let sum: usize = weights.iter().map(|weight| *weight as usize).sum();
        let mut left = self.below(sum);
        for (index, weight) in weights.iter().enumerate() {
            if left < *weight as usize {
                return index;
            }
            left -= *weight as usize;
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_itself_and_stays_in_its_bounds() {
        let (mut one, mut two) = (Chance::new(7), Chance::new(7));
        for _ in 0..1_000 {
            assert_eq!(one.u64(), two.u64());
            assert!((-3..=4).contains(&one.between(-3, 4)));
            two.u64();
            assert!(one.below(5) < 5);
            two.u64();
            assert!(one.weighted(&[1, 0, 2]) != 1);
            two.u64();
        }
    }
}
