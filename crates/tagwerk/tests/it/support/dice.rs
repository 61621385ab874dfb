//! Chance that can be repeated: the same seed throws the same dice.

/// `splitmix64`: small, and good enough to shuffle what clients do.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Dice of a seed; those of another `number` are independent.
    pub(crate) const fn new(seed: u64, number: u64) -> Self {
        let mut dice =
            Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number.wrapping_mul(0xD1B5_4A32_D192_ED03));
        dice.next();
        dice
    }

    /// 64 random bits.
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// Below `n`, which is not 0.
    pub(crate) const fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// True in so many of a hundred cases.
    pub(crate) const fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// One of them.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let count = u64::try_from(items.len()).expect("a length");
        &items[usize::try_from(self.below(count)).expect("an index")]
    }
}

#[test]
fn the_same_seed_throws_the_same_dice() {
    let throw = |seed, number| {
        let mut dice = Dice::new(seed, number);
        (0..8).map(|_| dice.below(6)).collect::<Vec<_>>()
    };
    assert_eq!(throw(1, 2), throw(1, 2));
    assert_ne!(throw(1, 2), throw(1, 3));
    assert_ne!(throw(1, 2), throw(2, 2));
}
