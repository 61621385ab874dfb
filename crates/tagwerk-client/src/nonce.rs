//! Names that no other process and no earlier run of this one has given.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts behind 128 random bits: those with which the standard library seeds its hash maps. They keep names apart; they are no
/// secret. Clones share the count.
#[derive(Clone, Debug)]
pub(crate) struct Nonce {
    random: u128,
    count: Arc<AtomicU64>,
}

impl Nonce {
    pub(crate) fn new() -> Self {
        let half = || u128::from(RandomState::new().hash_one(0_u8));
        Self { random: half() << 64 | half(), count: Arc::default() }
    }

    /// The next name: at most 49 characters.
    pub(crate) fn next(&self) -> String {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        format!("{:032x}-{number:x}", self.random)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_differ_between_and_within() {
        let nonces = [Nonce::new(), Nonce::new(), Nonce::new()];
        let shared = nonces[0].clone();
        let names: HashSet<String> =
            nonces.iter().chain([&shared]).flat_map(|nonce| (0..100).map(|_| nonce.next())).collect();
        assert_eq!(names.len(), 400);
        assert!(names.iter().all(|name| name.len() <= 49));
    }
}
