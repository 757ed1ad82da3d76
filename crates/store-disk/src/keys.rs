//! All keys in memory, in order, with the newest record of each.
//!
//! A control plane's keys are long and share prefixes. They are packed into the nodes of a tree, and a node
//! stores its common prefix once: about fifty bytes for a key, including its head. Packed keys also occupy
//! few cache lines, which dominate the cost of a lookup among a million keys.

use std::cmp::Ordering;

use bytes::Bytes;

use crate::record::Head;

/// Maximum number of keys in a node.
const FULL: usize = 64;

/// A node with fewer keys is merged with a neighbour, if both fit.
const SPARSE: usize = 16;

/// An ordered map from keys to heads.
#[derive(Clone)]
pub(crate) struct Keys {
    root: Node,
}

#[derive(Clone)]
enum Node {
    Leaf(Packed<[u8; Head::LEN]>),
    /// A child's keys are >= its own key here, and < the next child's key.
    Inner(Packed<Node>),
}

/// An ordered list of keys with a value for each.
#[derive(Clone)]
struct Packed<T> {
    /// The common prefix of all keys.
    prefix: Box<[u8]>,
    /// The suffixes, concatenated,
    rests: Vec<u8>,
    /// and the end of each.
    ends: Vec<u32>,
    values: Vec<T>,
}

impl Keys {
    pub(crate) fn new() -> Self {
        Self { root: Node::Leaf(Packed::new()) }
    }

    /// Number of keys, including deleted keys whose head is still kept.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let mut len = 0;
        self.each(b"", |_, _| {
            len += 1;
            true
        });
        len
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<Head> {
        let mut node = &self.root;
        loop {
            match node {
                Node::Inner(children) => node = children.values.get(children.child_for(key))?,
                Node::Leaf(heads) => return Head::decode(heads.values.get(heads.search(key).ok()?)?),
            }
        }
    }

    /// Sets the head of a key; returns the previous one.
    pub(crate) fn insert(&mut self, key: &[u8], head: Head) -> Option<Head> {
        let (before, split) = self.root.insert(key, head);
        if let Some((bound, right)) = split {
            let left = std::mem::replace(&mut self.root, Node::Leaf(Packed::new()));
            self.root = Node::Inner(Packed::pack(vec![(Bytes::new(), left), (bound, right)]));
        }
        before
    }

    /// Removes a key; returns its head.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<Head> {
        let head = self.root.remove(key)?;
        while let Node::Inner(children) = &mut self.root
            && children.len() == 1
            && let Some(only) = children.values.pop()
        {
            self.root = only;
        }
        Some(head)
    }

    /// Calls `each` for the keys from `first` on, in order, until it returns false.
    pub(crate) fn each(&self, first: &[u8], mut each: impl FnMut(&[u8], Head) -> bool) {
        self.root.each(first, &mut Vec::new(), &mut each);
    }
}

impl Node {
    fn len(&self) -> usize {
        match self {
            Self::Leaf(heads) => heads.len(),
            Self::Inner(children) => children.len(),
        }
    }

    /// Returns the key's previous head. If the node had to be split, also returns its second half and the key
    /// that separates the halves.
    fn insert(&mut self, key: &[u8], head: Head) -> (Option<Head>, Option<(Bytes, Self)>) {
        match self {
            Self::Leaf(heads) => match heads.search(key) {
                Ok(at) => {
                    let before =
                        heads.values.get_mut(at).map(|place| std::mem::replace(place, head.encode()));
                    (before.and_then(|before| Head::decode(&before)), None)
                }
                Err(at) => {
                    heads.insert(at, key, head.encode());
                    let split = heads.split_if_full(at).map(|(first, right)| {
                        // The shortest key that separates them.
                        let before = heads.len().checked_sub(1).map_or(Bytes::new(), |last| heads.key(last));
                        let bound = first.slice(..(common(&before, &first) + 1).min(first.len()));
                        (bound, Self::Leaf(right))
                    });
                    (None, split)
                }
            },
            Self::Inner(children) => {
                let at = match children.search(key) {
                    Ok(at) => at,
                    Err(0) => {
                        children.rename_first(&Bytes::new());
                        0
                    }
                    Err(next) => next - 1,
                };
                let Some(child) = children.values.get_mut(at) else { return (None, None) };
                let (before, split) = child.insert(key, head);
                let split = split.and_then(|(bound, right)| {
                    children.insert(at + 1, &bound, right);
                    let (bound, right) = children.split_if_full(at + 1)?;
                    Some((bound, Self::Inner(right)))
                });
                (before, split)
            }
        }
    }

    fn remove(&mut self, key: &[u8]) -> Option<Head> {
        match self {
            Self::Leaf(heads) => Head::decode(&heads.remove(heads.search(key).ok()?)),
            Self::Inner(children) => {
                let at = children.child_for(key);
                let child = children.values.get_mut(at)?;
                let head = child.remove(key)?;
                if child.len() < SPARSE {
                    children.merge(at);
                }
                Some(head)
            }
        }
    }

    /// Returns false if `each` did. `key` is a scratch buffer.
    fn each(&self, first: &[u8], key: &mut Vec<u8>, each: &mut dyn FnMut(&[u8], Head) -> bool) -> bool {
        match self {
            Self::Leaf(heads) => {
                let begin = heads.search(first).unwrap_or_else(|at| at);
                (begin..heads.len()).all(|at| {
                    key.clear();
                    key.extend_from_slice(&heads.prefix);
                    key.extend_from_slice(heads.rest(at));
                    Head::decode(&heads.values[at]).is_none_or(|head| each(key, head))
                })
            }
            Self::Inner(children) => {
                children.values[children.child_for(first)..].iter().all(|child| child.each(first, key, each))
            }
        }
    }
}

impl Packed<Node> {
    /// The index of the only child that can hold a key.
    fn child_for(&self, key: &[u8]) -> usize {
        self.search(key).unwrap_or_else(|next| next.saturating_sub(1))
    }

    /// Merges a child with a neighbour, if both fit, or drops it if it is empty.
    fn merge(&mut self, at: usize) {
        let len = |at: usize| self.values.get(at).map(Node::len);
        let fit = |left: usize| Some(len(left)? + len(left + 1)? <= FULL * 3 / 4);
        if len(at) == Some(0) && self.len() > 1 {
            self.remove(at);
        } else if fit(at) == Some(true) {
            self.merge_with_next(at);
        } else if let Some(before) = at.checked_sub(1).filter(|before| fit(*before) == Some(true)) {
            self.merge_with_next(before);
        }
    }

    fn merge_with_next(&mut self, at: usize) {
        let bound = self.key(at + 1);
        let next = self.remove(at + 1);
        match (&mut self.values[at], next) {
            (Node::Leaf(heads), Node::Leaf(next)) => heads.append(next),
            (Node::Inner(children), Node::Inner(mut next)) => {
                // Lowers the first child's key to the separator: no key lies between the two.
                next.rename_first(&bound);
                children.append(next);
            }
            // Cannot happen: all leaves have the same depth.
            (_, next) => self.insert(at + 1, &bound, next),
        }
    }
}

impl<T> Packed<T> {
    fn new() -> Self {
        Self { prefix: Box::default(), rests: Vec::new(), ends: Vec::new(), values: Vec::new() }
    }

    /// Packs keys, which must be in order.
    fn pack(entries: Vec<(Bytes, T)>) -> Self {
        debug_assert!(entries.is_sorted_by(|(one, _), (next, _)| one < next), "keys are in order");
        let (Some((first, _)), Some((last, _))) = (entries.first(), entries.last()) else {
            return Self::new();
        };
        let prefix = &first[..common(first, last)];
        let bytes = entries.iter().map(|(key, _)| key.len() - prefix.len()).sum();
        let mut packed = Self {
            prefix: prefix.into(),
            rests: Vec::with_capacity(bytes),
            ends: Vec::with_capacity(entries.len()),
            values: Vec::with_capacity(entries.len()),
        };
        for (key, value) in entries {
            packed.rests.extend_from_slice(&key[packed.prefix.len()..]);
            packed.ends.push(packed.rests.len() as u32);
            packed.values.push(value);
        }
        packed
    }

    fn unpack(&mut self) -> Vec<(Bytes, T)> {
        let keys: Vec<_> = (0..self.len()).map(|at| self.key(at)).collect();
        let all = std::mem::replace(self, Self::new());
        keys.into_iter().zip(all.values).collect()
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    /// The offset of a key's suffix; for the index after the last, the end of all suffixes.
    fn begin(&self, at: usize) -> usize {
        at.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize)
    }

    fn rest(&self, at: usize) -> &[u8] {
        &self.rests[self.begin(at)..self.begin(at + 1)]
    }

    fn key(&self, at: usize) -> Bytes {
        [&self.prefix, self.rest(at)].concat().into()
    }

    /// The index of a key, or where it would be inserted.
    fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let Some(rest) = key.strip_prefix(&self.prefix[..]) else {
            return Err(if *key < *self.prefix { 0 } else { self.len() });
        };
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.rest(middle).cmp(rest) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    fn insert(&mut self, at: usize, key: &[u8], value: T) {
        if self.values.is_empty() {
            *self = Self::pack(vec![(Bytes::copy_from_slice(key), value)]);
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
        make_room(&mut self.values, 1, 8);
        self.values.insert(at, value);
    }

    /// Shortens the common prefix to `len` bytes.
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

    fn remove(&mut self, at: usize) -> T {
        let (begin, end) = (self.begin(at), self.begin(at + 1));
        self.rests.drain(begin..end);
        self.ends.remove(at);
        for later in &mut self.ends[at..] {
            *later -= (end - begin) as u32;
        }
        self.values.remove(at)
    }

    fn rename_first(&mut self, key: &Bytes) {
        let mut entries = self.unpack();
        if let Some((first, _)) = entries.first_mut() {
            *first = key.clone();
        }
        *self = Self::pack(entries);
    }

    fn append(&mut self, mut next: Self) {
        let mut entries = self.unpack();
        entries.extend(next.unpack());
        *self = Self::pack(entries);
    }

    /// Splits the node if it is full, after an insertion at `at`; returns the second half with its first key.
    fn split_if_full(&mut self, at: usize) -> Option<(Bytes, Self)> {
        if self.len() <= FULL {
            return None;
        }
        // Keys inserted in order fill their nodes.
        let middle = if at + 1 == self.len() { at } else { self.len() / 2 };
        let mut left = self.unpack();
        let right = left.split_off(middle);
        let first = right.first().map_or(Bytes::new(), |(first, _)| first.clone());
        *self = Self::pack(left);
        Some((first, Self::pack(right)))
    }
}

/// Length of the common prefix of two keys.
pub(crate) fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// Reserves room for `more` and a little spare: there are many nodes, and their size is bounded.
fn make_room<T>(vec: &mut Vec<T>, more: usize, spare: usize) {
    if vec.capacity() < vec.len() + more {
        vec.reserve_exact(more + spare);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k1s_env::Env;
    use k1s_store::Revision;

    use super::*;
    use crate::record::Pointer;

    fn head(number: u64) -> Head {
        let size = (!number.is_multiple_of(5)).then_some(number as u32);
        Head { pointer: Pointer::new(Revision::new(number), (number % 3) as u32), size }
    }

    /// Keys that are prefixes of each other, similar, or unrelated.
    fn key(random: &Env) -> Vec<u8> {
        let number = random.random_below(20_000);
        match random.random_below(10) {
            0 => vec![b'a'; number as usize % 200],
            1 => (number * 7_919).to_be_bytes().to_vec(),
            2 => Vec::new(),
            _ => format!("/registry/widgets/namespace-{}/widget-{number}", number % 7).into_bytes(),
        }
    }

    fn leaves(node: &Node) -> usize {
        match node {
            Node::Leaf(_) => 1,
            Node::Inner(children) => children.values.iter().map(leaves).sum(),
        }
    }

    #[test]
    fn it_behaves_like_an_ordered_map() {
        let (random, _clock) = Env::simulated(3);
        let (mut keys, mut model) = (Keys::new(), BTreeMap::<Vec<u8>, Head>::new());
        for round in 0..60_000 {
            let key = key(&random);
            // Grows, shrinks to almost nothing, and grows again.
            let removes = if (20_000..40_000).contains(&round) { 9 } else { 2 };
            if random.random_below(10) < removes {
                assert_eq!(keys.remove(&key), model.remove(&key));
            } else {
                assert_eq!(keys.insert(&key, head(round)), model.insert(key.clone(), head(round)));
            }
            assert_eq!(keys.get(&key), model.get(&key).copied());
            if round % 500 == 0 {
                let first = self::key(&random);
                let mut found = Vec::new();
                keys.each(&first, |key, head| {
                    found.push((key.to_vec(), head));
                    true
                });
                let expected: Vec<_> = model.range(first..).map(|(key, head)| (key.clone(), *head)).collect();
                assert!(
                    found == expected,
                    "round {round}: {} keys instead of {}",
                    found.len(),
                    expected.len()
                );
            }
        }
        for key in model.keys() {
            keys.remove(key);
        }
        assert_eq!((keys.len(), leaves(&keys.root)), (0, 1), "nothing is left behind");
    }

    /// Keys of a whole prefix come and go: nodes lose their first children, and get smaller keys again.
    #[test]
    fn it_behaves_like_an_ordered_map_when_whole_prefixes_come_and_go() {
        for seed in 0..4 {
            let (random, _clock) = Env::simulated(seed);
            let (mut keys, mut model) = (Keys::new(), BTreeMap::<Vec<u8>, Head>::new());
            let kinds =
                ["/registry/a/", "/registry/b/", "/registry/configmaps/", "/x/", "/registry/pods/space/"];
            for round in 0..40 {
                let kind = kinds[random.random_below(5) as usize];
                let (begin, count) = (random.random_below(4000), random.random_below(4000));
                let (removes, down) = (random.random_below(2) == 0, random.random_below(2) == 0);
                for step in 0..count {
                    let number = begin + if down { count - step } else { step };
                    let key = format!("{kind}{number:05}").into_bytes();
                    let (found, expected) = if removes {
                        (keys.remove(&key), model.remove(&key))
                    } else {
                        (keys.insert(&key, head(round)), model.insert(key, head(round)))
                    };
                    assert_eq!(found, expected, "seed {seed}, round {round}");
                }
                let mut listed = Vec::new();
                keys.each(b"", |key, head| {
                    listed.push((key.to_vec(), head));
                    true
                });
                assert!(
                    listed.iter().map(|(key, head)| (key, head)).eq(&model),
                    "seed {seed}, round {round}"
                );
                for (key, head) in &model {
                    assert_eq!(keys.get(key), Some(*head), "seed {seed}, round {round}");
                }
            }
        }
    }

    #[test]
    fn keys_inserted_in_order_fill_their_leaves() {
        let mut keys = Keys::new();
        for number in 0..10_000 {
            keys.insert(format!("/registry/widgets/widget-{number:06}").as_bytes(), head(number));
        }
        assert_eq!(leaves(&keys.root), 10_000_usize.div_ceil(FULL));
    }
}
