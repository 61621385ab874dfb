//! The chance of a world's servers, and a memory of what was drawn.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use tagwerk_engine::ports::Entropy;
use tagwerk_engine::testing::entropy::ScriptedEntropy;

/// Numbers that look random, all of which it remembers. Clones share both.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    source: ScriptedEntropy,
    drawn: Arc<Mutex<HashSet<u64>>>,
}

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self { source: ScriptedEntropy::new(seed), drawn: Arc::default() }
    }

    /// Whether it was drawn.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner).contains(&number)
    }
}

impl Entropy for Draws {
    fn u64(&self) -> u64 {
        let number = self.source.u64();
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner).insert(number);
        number
    }
}
