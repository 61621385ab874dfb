//! A map for ids that the server has made itself. The standard hasher defends against keys that an attacker chose; nobody
//! chooses these, and half a dozen look-ups a job are paid for.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose keys are [`tagwerk_core::JobId`] or plain integers of the server's own.
pub type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Spreads one integer over all bits by multiplication (Fibonacci hashing: 2^64 divided by the golden ratio).
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        // The map takes its bucket from the low bits and its tag from the high ones; the product is best in the high ones.
        self.0.rotate_left(32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_i64(&mut self, id: i64) {
        self.write_u64(id.cast_unsigned());
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = (self.0 ^ id).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn neighbours_fall_into_different_buckets_with_different_tags() {
        let hash = |id: i64| BuildHasherDefault::<IdHasher>::default().hash_one(id);
        let buckets: HashSet<u64> = (0..4_096).map(|id| hash(id) & 0xFFFF).collect();
        let tags: HashSet<u64> = (0..4_096).map(|id| hash(id) >> 57).collect();
        assert!(buckets.len() > 3_900, "{} of 65,536 buckets for 4,096 ids", buckets.len());
        assert_eq!(tags.len(), 128);
    }
}
