//! A map that forgets its oldest entry when it is full.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// At most `cap` entries; the one that was inserted first leaves first.
#[derive(Debug)]
pub(crate) struct BoundedMap<K, V> {
    entries: HashMap<K, V>,
    order: VecDeque<K>,
    cap: usize,
}

impl<K: Eq + Hash + Clone, V> BoundedMap<K, V> {
    pub(crate) fn new(cap: usize) -> Self {
        Self { entries: HashMap::new(), order: VecDeque::new(), cap }
    }

    pub(crate) fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.entries.get(key)
    }

    pub(crate) fn get_mut<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.entries.get_mut(key)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.entries.insert(key.clone(), value).is_none() {
            self.order.push_back(key);
            // `order` may name entries that `retain` removed; those cost nothing to pass over.
            while self.entries.len() > self.cap
                && let Some(oldest) = self.order.pop_front()
            {
                self.entries.remove(&oldest);
            }
        }
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        let entries = &mut self.entries;
        entries.retain(&mut keep);
        self.order.retain(|key| entries.contains_key(key));
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.order.clear();
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries.values_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entry_leaves_first() {
        let mut map = BoundedMap::new(2);
        for n in 0..3 {
            map.insert(n, n * 10);
        }
        assert_eq!((map.get(&0), map.get(&1), map.get(&2)), (None, Some(&10), Some(&20)));
        map.insert(1, 11);
        map.retain(|key, _| *key != 2);
        map.insert(3, 30);
        map.insert(4, 40);
        assert_eq!((map.get(&1), map.get(&3), map.get(&4)), (None, Some(&30), Some(&40)));
    }
}
