//! A sorted map whose clone is cheap, so that every transaction can work on its own copy of the whole store.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// Entries per leaf before it is cut in two.
const LEAF: usize = 128;

/// A `BTreeMap` cut into leaves that clones share until one of them writes.
///
/// Each leaf stands under a key that is not above any of its own, and below every key of the next leaf.
#[derive(Clone, Debug)]
pub(super) struct CowMap<K, V> {
    leaves: BTreeMap<K, Arc<BTreeMap<K, V>>>,
}

impl<K, V> Default for CowMap<K, V> {
    fn default() -> Self {
        Self { leaves: BTreeMap::new() }
    }
}

impl<K: Ord + Clone, V: Clone> CowMap<K, V> {
    /// The entry of this key.
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.leaves.range(..=key).next_back().and_then(|(_, leaf)| leaf.get(key))
    }

    /// Adds or overwrites an entry.
    pub(super) fn insert(&mut self, key: K, value: V) {
        let place = self.place_for(&key);
        let leaf = Arc::make_mut(self.leaves.entry(place).or_default());
        leaf.insert(key, value);
        if leaf.len() > LEAF {
            let middle = leaf.keys().nth(LEAF / 2).expect("the leaf is full").clone();
            let upper = leaf.split_off(&middle);
            self.leaves.insert(middle, Arc::new(upper));
        }
    }

    /// Takes an entry out.
    pub(super) fn remove(&mut self, key: &K) {
        let Some(place) = self.leaves.range(..=key).next_back().map(|(place, _)| place.clone()) else {
            return;
        };
        let leaf = Arc::make_mut(self.leaves.get_mut(&place).expect("it was just found"));
        leaf.remove(key);
        if leaf.is_empty() {
            self.leaves.remove(&place);
        }
    }

    /// All entries in key order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.leaves.values().flat_map(|leaf| leaf.iter())
    }

    /// The entries behind `key` in key order.
    pub(super) fn behind<'a>(&'a self, key: &K) -> impl Iterator<Item = (&'a K, &'a V)> + use<'a, K, V> {
        let first = self.leaves.range(..=key).next_back().map_or(key, |(place, _)| place).clone();
        let key = key.clone();
        self.leaves
            .range(first..)
            .flat_map(move |(_, leaf)| leaf.range((Bound::Excluded(key.clone()), Bound::Unbounded)))
    }

    /// Where the leaf for this key stands; a key below all leaves pulls the lowest leaf down to itself.
    fn place_for(&mut self, key: &K) -> K {
        if let Some((place, _)) = self.leaves.range(..=key).next_back() {
            return place.clone();
        }
        if let Some((_, lowest)) = self.leaves.pop_first() {
            self.leaves.insert(key.clone(), lowest);
        }
        key.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::entropy::Seeded;

    #[test]
    fn it_does_what_a_btree_map_does_and_clones_stay_as_they_were() {
        let mut chance = Seeded::new(1);
        let (mut ours, mut theirs) = (CowMap::default(), BTreeMap::new());
        let mut copies = Vec::new();
        for step in 0..20_000 {
            let key = chance.below(3_000);
            if chance.one_in(3) {
                ours.remove(&key);
                theirs.remove(&key);
            } else {
                ours.insert(key, step);
                theirs.insert(key, step);
            }
            assert_eq!(ours.get(&key), theirs.get(&key));
            if step % 1_000 == 0 {
                copies.push((ours.clone(), theirs.clone()));
            }
        }
        copies.push((ours, theirs));
        for (ours, theirs) in &copies {
            assert!(ours.iter().eq(theirs.iter()));
            let from = chance.below(3_000);
            assert!(ours.behind(&from).eq(theirs.range(from + 1..)));
        }
    }
}
