//! All keys in memory, in order, with the newest record of each.
//!
//! Keys of a control plane are long and alike: neighbours have most of their bytes in common. They are packed into leaves,
//! which have that once; about forty bytes for a key, its head included.

use std::{collections::BTreeMap, ops::Bound};

use bytes::Bytes;

use crate::record::Head;

/// A leaf has at most so many keys.
const FULL: usize = 64;

/// A leaf with fewer is put together with the next one, if both fit.
const SPARSE: usize = 16;

/// An ordered map from keys to heads.
#[derive(Clone)]
pub(crate) struct Keys {
    /// By its bound: the keys of a leaf are not before that, and before the bound of the next. The first bound is empty.
    leaves: BTreeMap<Box<[u8]>, Leaf>,
    len: usize,
}

/// Neighbours.
#[derive(Clone, Default)]
struct Leaf {
    /// What all keys begin with.
    prefix: Box<[u8]>,
    /// What follows in each, one behind the other,
    rests: Vec<u8>,
    /// and where each of those ends.
    ends: Vec<u32>,
    heads: Vec<[u8; Head::LEN]>,
}

impl Keys {
    pub(crate) fn new() -> Self {
        Self { leaves: BTreeMap::from([(Box::default(), Leaf::default())]), len: 0 }
    }

    /// How many keys there are, those included that have only a deletion left.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<Head> {
        let (_, leaf) = self.leaves.range::<[u8], _>(up_to(key)).next_back()?;
        leaf.head(leaf.search(key).ok()?)
    }

    /// Gives a key a head; returns the one it had.
    pub(crate) fn insert(&mut self, key: &[u8], head: Head) -> Option<Head> {
        let (_, leaf) = self.leaves.range_mut::<[u8], _>(up_to(key)).next_back()?;
        match leaf.search(key) {
            Ok(at) => leaf.replace(at, head),
            Err(at) => {
                leaf.insert(at, key, head);
                self.len += 1;
                if leaf.len() > FULL {
                    let (bound, right) = leaf.split(at);
                    self.leaves.insert(bound, right);
                }
                None
            }
        }
    }

    /// Forgets a key; returns its head.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<Head> {
        let (bound, leaf) = self.leaves.range_mut::<[u8], _>(up_to(key)).next_back()?;
        let at = leaf.search(key).ok()?;
        let head = leaf.head(at);
        leaf.remove(at);
        self.len -= 1;
        if leaf.len() < SPARSE {
            let bound = bound.clone();
            self.merge(&bound);
        }
        head
    }

    /// Puts a leaf together with the next one, if they fit, or drops it if it is empty.
    fn merge(&mut self, bound: &[u8]) {
        let few = self.leaves.get(bound).map_or(0, Leaf::len);
        let next = self.leaves.range::<[u8], _>((Bound::Excluded(bound), Bound::Unbounded)).next();
        match next.filter(|(_, next)| few + next.len() <= FULL * 3 / 4).map(|(bound, _)| bound.clone()) {
            Some(next) => {
                if let (Some(next), Some(leaf)) = (self.leaves.remove(&next), self.leaves.get_mut(bound)) {
                    *leaf = Leaf::pack(leaf.iter(0).chain(next.iter(0)).collect());
                }
            }
            None if few == 0 && !bound.is_empty() => drop(self.leaves.remove(bound)),
            None => {}
        }
    }

    /// The keys from `first` on, in order.
    pub(crate) fn from(&self, first: &[u8]) -> impl Iterator<Item = (Bytes, Head)> {
        let begin = self.leaves.range::<[u8], _>(up_to(first)).next_back();
        let at = begin.map_or(0, |(_, leaf)| leaf.search(first).unwrap_or_else(|at| at));
        let rest = self
            .leaves
            .range::<[u8], _>((Bound::Excluded(begin.map_or(first, |(bound, _)| bound)), Bound::Unbounded));
        begin
            .into_iter()
            .flat_map(move |(_, leaf)| leaf.iter(at))
            .chain(rest.flat_map(|(_, leaf)| leaf.iter(0)))
    }
}

fn up_to(key: &[u8]) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (Bound::Unbounded, Bound::Included(key))
}

impl Leaf {
    /// A leaf with these keys, which are in order.
    fn pack(entries: Vec<(Bytes, Head)>) -> Self {
        let (Some((first, _)), Some((last, _))) = (entries.first(), entries.last()) else {
            return Self::default();
        };
        let prefix = &first[..common(first, last)];
        let bytes = entries.iter().map(|(key, _)| key.len() - prefix.len()).sum();
        let mut leaf = Self {
            prefix: prefix.into(),
            rests: Vec::with_capacity(bytes),
            ends: Vec::with_capacity(entries.len()),
            heads: Vec::with_capacity(entries.len()),
        };
        for (key, head) in &entries {
            leaf.rests.extend_from_slice(&key[prefix.len()..]);
            leaf.ends.push(leaf.rests.len() as u32);
            leaf.heads.push(head.encode());
        }
        leaf
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    /// Where the rest of the key at a place begins; behind the last one, where that ends.
    fn begin(&self, at: usize) -> usize {
        at.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize)
    }

    fn rest(&self, at: usize) -> &[u8] {
        &self.rests[self.begin(at)..self.begin(at + 1)]
    }

    fn key(&self, at: usize) -> Bytes {
        [&self.prefix, self.rest(at)].concat().into()
    }

    fn head(&self, at: usize) -> Option<Head> {
        Head::decode(self.heads.get(at)?)
    }

    fn iter(&self, first: usize) -> impl Iterator<Item = (Bytes, Head)> {
        (first..self.len()).filter_map(|at| Some((self.key(at), self.head(at)?)))
    }

    /// The place of a key, or the one it would have.
    fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let Some(rest) = key.strip_prefix(&self.prefix[..]) else {
            return Err(if *key < *self.prefix { 0 } else { self.len() });
        };
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.rest(middle).cmp(rest) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    fn replace(&mut self, at: usize, head: Head) -> Option<Head> {
        let place = self.heads.get_mut(at)?;
        Head::decode(&std::mem::replace(place, head.encode()))
    }

    fn insert(&mut self, at: usize, key: &[u8], head: Head) {
        if self.heads.is_empty() {
            *self = Self::pack(vec![(Bytes::copy_from_slice(key), head)]);
            return;
        }
        let shared = common(&self.prefix, key);
        if shared < self.prefix.len() {
            self.shorten(shared);
        }
        let rest = &key[shared..];
        let begin = self.begin(at);
        make_room(&mut self.rests, rest.len(), 64);
        self.rests.splice(begin..begin, rest.iter().copied());
        make_room(&mut self.ends, 1, 8);
        self.ends.insert(at, begin as u32);
        for end in &mut self.ends[at..] {
            *end += rest.len() as u32;
        }
        make_room(&mut self.heads, 1, 8);
        self.heads.insert(at, head.encode());
    }

    /// Keeps only so much of the prefix for all keys.
    fn shorten(&mut self, len: usize) {
        let moved = &self.prefix[len..];
        let mut rests = Vec::with_capacity(self.rests.len() + moved.len() * self.len());
        for at in 0..self.len() {
            rests.extend_from_slice(moved);
            rests.extend_from_slice(self.rest(at));
        }
        let by = moved.len() as u32;
        for (count, end) in (1..).zip(&mut self.ends) {
            *end += count * by;
        }
        self.rests = rests;
        self.prefix = self.prefix[..len].into();
    }

    fn remove(&mut self, at: usize) {
        let (begin, end) = (self.begin(at), self.begin(at + 1));
        self.rests.drain(begin..end);
        self.ends.remove(at);
        for later in &mut self.ends[at..] {
            *later -= (end - begin) as u32;
        }
        self.heads.remove(at);
    }

    /// Splits a leaf in two, after a key was put in at `at`; returns the second with its bound.
    fn split(&mut self, at: usize) -> (Box<[u8]>, Self) {
        // Keys that come in order fill their leaves.
        let middle = if at + 1 == self.len() { at } else { self.len() / 2 };
        let mut left: Vec<_> = self.iter(0).collect();
        let right = left.split_off(middle);
        let bound = match (left.last(), right.first()) {
            // The shortest that tells them apart.
            (Some((before, _)), Some((first, _))) => {
                first[..=common(before, first).min(first.len() - 1)].into()
            }
            _ => Box::default(),
        };
        *self = Self::pack(left);
        (bound, Self::pack(right))
    }
}

/// How many bytes two keys have in common at their beginning.
fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// Room for `more`, and a little beyond: there are many leaves, and they do not grow for ever.
fn make_room<T>(vec: &mut Vec<T>, more: usize, spare: usize) {
    if vec.capacity() < vec.len() + more {
        vec.reserve_exact(more + spare);
    }
}

#[cfg(test)]
mod tests {
    use k1s_env::Env;
    use k1s_store::Revision;

    use super::*;
    use crate::record::Pointer;

    fn head(number: u64) -> Head {
        let size = (!number.is_multiple_of(5)).then_some(number as u32);
        Head { pointer: Pointer::new(Revision::new(number), (number % 3) as u32), size }
    }

    /// Keys that are prefixes of each other, alike, and not alike at all.
    fn key(random: &Env) -> Vec<u8> {
        let number = random.random_below(3000);
        match random.random_below(10) {
            0 => vec![b'a'; number as usize % 200],
            1 => (number * 7_919).to_be_bytes().to_vec(),
            2 => Vec::new(),
            _ => format!("/registry/widgets/namespace-{}/widget-{number}", number % 7).into_bytes(),
        }
    }

    #[test]
    fn it_does_what_an_ordered_map_does() {
        let (random, _clock) = Env::simulated(3);
        let (mut keys, mut model) = (Keys::new(), BTreeMap::<Vec<u8>, Head>::new());
        for round in 0..60_000 {
            let key = key(&random);
            // It grows, shrinks to almost nothing, and grows again.
            let removes = if (20_000..40_000).contains(&round) { 9 } else { 2 };
            if random.random_below(10) < removes {
                assert_eq!(keys.remove(&key), model.remove(&key));
            } else {
                assert_eq!(keys.insert(&key, head(round)), model.insert(key.clone(), head(round)));
            }
            assert_eq!(keys.len(), model.len());
            assert_eq!(keys.get(&key), model.get(&key).copied());
            if round % 500 == 0 {
                let first = self::key(&random);
                let found: Vec<_> = keys.from(&first).map(|(key, head)| (key.to_vec(), head)).collect();
                let expected: Vec<_> = model.range(first..).map(|(key, head)| (key.clone(), *head)).collect();
                assert_eq!(found, expected);
            }
        }
        for key in model.keys() {
            keys.remove(key);
        }
        assert_eq!((keys.len(), keys.leaves.len()), (0, 1), "nothing is left behind");
    }

    #[test]
    fn keys_that_come_in_order_fill_their_leaves() {
        let mut keys = Keys::new();
        for number in 0..10_000 {
            keys.insert(format!("/registry/widgets/widget-{number:06}").as_bytes(), head(number));
        }
        assert_eq!(keys.leaves.len(), 10_000_usize.div_ceil(FULL));
    }
}
