//! A persistent ordered set that knows the rank of a key: a B+ tree whose nodes count the items below them.
//!
//! A clone is a pointer; a change copies the nodes on its way that a clone shares. Finding a key, and counting the items
//! between two keys, take time logarithmic in the size of the set.

use std::sync::Arc;

/// An item that is ordered by its key.
pub(crate) trait Keyed: Clone {
    fn key(&self) -> &[u8];
}

/// Maximum number of items in a leaf, and of children of a branch: as many pointers are copied on each level by a change.
const MAX_WIDTH: usize = 32;
/// Minimum width of a node that has a neighbour; a narrower one is joined with it.
const MIN_WIDTH: usize = MAX_WIDTH / 4;

#[derive(Clone)]
pub(crate) struct Tree<T> {
    root: Arc<Node<T>>,
}

enum Node<T> {
    Leaf(Vec<T>),
    Branch(Vec<Child<T>>),
}

/// A node and what its parent has to know of it.
#[derive(Clone)]
struct Child<T> {
    /// The first item below it.
    first: T,
    /// The number of items below it.
    len: usize,
    node: Arc<Node<T>>,
}

/// Copied in order to be changed, perhaps by one item more.
impl<T: Clone> Clone for Node<T> {
    fn clone(&self) -> Self {
        fn with_room<I: Clone>(items: &[I]) -> Vec<I> {
            let mut copy = Vec::with_capacity((items.len() + 1).min(MAX_WIDTH + 1));
            copy.extend_from_slice(items);
            copy
        }
        match self {
            Node::Leaf(items) => Node::Leaf(with_room(items)),
            Node::Branch(children) => Node::Branch(with_room(children)),
        }
    }
}

impl<T> Default for Tree<T> {
    fn default() -> Self {
        Tree { root: Arc::new(Node::Leaf(Vec::new())) }
    }
}

impl<T: Keyed> Tree<T> {
    pub(crate) fn len(&self) -> usize {
        self.root.len()
    }

    /// Whether both are the same by identity. `false` may be said of equal sets.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.root, &other.root)
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&T> {
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(items) => {
                    return items
                        .binary_search_by(|item| item.key().cmp(key))
                        .ok()
                        .and_then(|at| items.get(at));
                }
                Node::Branch(children) => node = &children.get(place(children, key))?.node,
            }
        }
    }

    /// Adds an item, in the place of one with the same key.
    pub(crate) fn insert(&mut self, item: T) {
        let Some(right) = insert(&mut self.root, item) else { return };
        let left = std::mem::replace(&mut self.root, Arc::new(Node::Leaf(Vec::new())));
        let children = [left, right].into_iter().filter_map(Child::new).collect();
        self.root = Arc::new(Node::Branch(children));
    }

    pub(crate) fn remove(&mut self, key: &[u8]) {
        // Nothing is copied for a key that is not there.
        if self.get(key).is_none() {
            return;
        }
        remove(&mut self.root, key);
        while let Node::Branch(children) = &*self.root {
            let only = match &**children {
                [] => Arc::new(Node::Leaf(Vec::new())),
                [only] => only.node.clone(),
                _ => break,
            };
            self.root = only;
        }
    }

    /// The number of items whose keys are before `key`.
    pub(crate) fn rank(&self, key: &[u8]) -> usize {
        let (mut node, mut before) = (&*self.root, 0);
        loop {
            match node {
                Node::Leaf(items) => return before + items.partition_point(|item| item.key() < key),
                Node::Branch(children) => {
                    let at = place(children, key);
                    before += children.iter().take(at).map(|child| child.len).sum::<usize>();
                    let Some(child) = children.get(at) else { return before };
                    node = &child.node;
                }
            }
        }
    }

    /// The items whose keys are not before `start`, in order.
    pub(crate) fn from<'a>(&'a self, start: &[u8]) -> Iter<'a, T> {
        let (mut node, mut above) = (&*self.root, Vec::new());
        loop {
            match node {
                Node::Leaf(items) => {
                    let at = items.partition_point(|item| item.key() < start);
                    return Iter { above, leaf: items.get(at..).unwrap_or_default().iter() };
                }
                Node::Branch(children) => {
                    let at = place(children, start);
                    above.push(children.get(at + 1..).unwrap_or_default().iter());
                    match children.get(at) {
                        Some(child) => node = &child.node,
                        None => return Iter { above, leaf: [].iter() },
                    }
                }
            }
        }
    }
}

impl<T> Node<T> {
    fn len(&self) -> usize {
        match self {
            Node::Leaf(items) => items.len(),
            Node::Branch(children) => children.iter().map(|child| child.len).sum(),
        }
    }

    /// The number of items or children in this node itself.
    fn width(&self) -> usize {
        match self {
            Node::Leaf(items) => items.len(),
            Node::Branch(children) => children.len(),
        }
    }
}

impl<T: Keyed> Node<T> {
    fn first(&self) -> Option<&T> {
        match self {
            Node::Leaf(items) => items.first(),
            Node::Branch(children) => children.first().map(|child| &child.first),
        }
    }

    /// Cuts a node that is too wide in two, and gives the second part. A node that grew at its end is left full: keys
    /// often come in order.
    fn split(&mut self, at_end: bool) -> Option<Arc<Node<T>>> {
        fn cut<I>(items: &mut Vec<I>, at_end: bool) -> Vec<I> {
            let rest = items.split_off(if at_end { items.len() - 1 } else { items.len() / 2 });
            items.shrink_to_fit();
            rest
        }
        if self.width() <= MAX_WIDTH {
            return None;
        }
        Some(Arc::new(match self {
            Node::Leaf(items) => Node::Leaf(cut(items, at_end)),
            Node::Branch(children) => Node::Branch(cut(children, at_end)),
        }))
    }
}

impl<T: Keyed> Child<T> {
    /// `None` for an empty node.
    fn new(node: Arc<Node<T>>) -> Option<Self> {
        let first = node.first()?.clone();
        Some(Child { first, len: node.len(), node })
    }
}

/// Where among children a key belongs: the last whose first item is not after it, or the first.
fn place<T: Keyed>(children: &[Child<T>], key: &[u8]) -> usize {
    children.partition_point(|child| child.first.key() <= key).saturating_sub(1)
}

/// Adds an item below a node; the second part of the node if it had to be cut in two.
fn insert<T: Keyed>(node: &mut Arc<Node<T>>, item: T) -> Option<Arc<Node<T>>> {
    let node = Arc::make_mut(node);
    let at_end = match node {
        Node::Leaf(items) => match items.binary_search_by(|other| other.key().cmp(item.key())) {
            Ok(at) => {
                if let Some(place) = items.get_mut(at) {
                    *place = item;
                }
                return None;
            }
            Err(at) => {
                items.insert(at, item);
                at + 1 == items.len()
            }
        },
        Node::Branch(children) => {
            let at = place(children, item.key());
            let child = children.get_mut(at)?;
            let right = insert(&mut child.node, item);
            let parts = [Child::new(child.node.clone()), right.and_then(Child::new)];
            let more = parts.iter().flatten().count() > 1;
            children.splice(at..=at, parts.into_iter().flatten());
            more && at + 2 == children.len()
        }
    };
    node.split(at_end)
}

/// Removes the item with this key, which is there.
fn remove<T: Keyed>(node: &mut Arc<Node<T>>, key: &[u8]) {
    match Arc::make_mut(node) {
        Node::Leaf(items) => {
            if let Ok(at) = items.binary_search_by(|item| item.key().cmp(key)) {
                items.remove(at);
            }
        }
        Node::Branch(children) => {
            let mut at = place(children, key);
            let mut end = at + 1;
            let Some(child) = children.get_mut(at) else { return };
            remove(&mut child.node, key);
            let mut parts = [Some(child.node.clone()), None];
            if child.node.width() < MIN_WIDTH && children.len() > 1 {
                at = at.min(children.len() - 2);
                end = at + 2;
                if let Some([left, right]) = children.get(at..end) {
                    parts = join(&left.node, &right.node);
                }
            }
            children.splice(at..end, parts.into_iter().flatten().filter_map(Child::new));
        }
    }
}

/// Two neighbours as one node, or as two of equal width if that were too wide.
fn join<T: Keyed>(left: &Node<T>, right: &Node<T>) -> [Option<Arc<Node<T>>>; 2] {
    let mut joined = match (left, right) {
        (Node::Leaf(left), Node::Leaf(right)) => Node::Leaf([&**left, right].concat()),
        (Node::Branch(left), Node::Branch(right)) => Node::Branch([&**left, right].concat()),
        // All leaves are equally deep, so neighbours are of one kind.
        (left, right) => return [Some(Arc::new(left.clone())), Some(Arc::new(right.clone()))],
    };
    let right = joined.split(false);
    [Some(Arc::new(joined)), right]
}

/// The items of a tree from a key on.
pub(crate) struct Iter<'a, T> {
    /// What follows on each level, the root's first.
    above: Vec<std::slice::Iter<'a, Child<T>>>,
    leaf: std::slice::Iter<'a, T>,
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        loop {
            if let Some(item) = self.leaf.next() {
                return Some(item);
            }
            let mut node = loop {
                match self.above.last_mut()?.next() {
                    Some(child) => break &*child.node,
                    None => drop(self.above.pop()),
                }
            };
            while let Node::Branch(children) = node {
                let mut children = children.iter();
                let first = children.next()?;
                self.above.push(children);
                node = &first.node;
            }
            if let Node::Leaf(items) = node {
                self.leaf = items.iter();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Item(Bytes, u32);

    impl Keyed for Item {
        fn key(&self) -> &[u8] {
            &self.0
        }
    }

    fn key(number: u16) -> Bytes {
        format!("/{}/{:04}", number % 7, number / 7).into()
    }

    /// What a reader relies on: widths, counts, first items, order and depth.
    fn check(node: &Node<Item>, is_root: bool) -> usize {
        assert!(node.width() <= MAX_WIDTH);
        match node {
            Node::Leaf(items) => {
                assert!(is_root || !items.is_empty());
                assert!(items.is_sorted_by(|a, b| a.0 < b.0));
                0
            }
            Node::Branch(children) => {
                assert!(
                    children.len() > usize::from(is_root)
                        && children.is_sorted_by(|a, b| a.first.0 < b.first.0)
                );
                let depths: Vec<usize> = children
                    .iter()
                    .map(|child| {
                        assert_eq!(child.len, child.node.len());
                        assert_eq!(Some(&child.first), child.node.first());
                        check(&child.node, false)
                    })
                    .collect();
                assert!(depths.iter().all(|depth| *depth == depths[0]));
                depths[0] + 1
            }
        }
    }

    fn compare(tree: &Tree<Item>, model: &BTreeMap<Bytes, u32>, probes: &[u16]) {
        check(&tree.root, true);
        assert_eq!(tree.len(), model.len());
        for probe in probes.iter().map(|number| key(*number)) {
            assert_eq!(tree.get(&probe).map(|item| item.1), model.get(&probe).copied());
            assert_eq!(tree.rank(&probe), model.range(..probe.clone()).count());
            let found: Vec<_> = tree.from(&probe).map(|item| (item.0.clone(), item.1)).collect();
            let expected: Vec<_> = model.range(probe..).map(|(key, value)| (key.clone(), *value)).collect();
            assert_eq!(found, expected);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn it_is_an_ordered_map_whose_older_copies_stay_as_they_were(
            first in prop::collection::vec(any::<u16>(), 0..3000),
            then in prop::collection::vec((0..4_u8, any::<u16>()), 0..3000),
            probes in prop::collection::vec(any::<u16>(), 5),
        ) {
            let (mut tree, mut model) = (Tree::default(), BTreeMap::new());
            for number in first {
                tree.insert(Item(key(number), 0));
                model.insert(key(number), 0);
            }
            let (kept, kept_model) = (tree.clone(), model.clone());
            prop_assert!(kept.is_same(&tree));
            let keys: Vec<Bytes> = model.keys().cloned().collect();
            for (value, (what, number)) in (1..).zip(then) {
                let known = keys.get(usize::from(number) % keys.len().max(1)).cloned().unwrap_or_default();
                match what {
                    0 => {
                        tree.insert(Item(key(number), value));
                        model.insert(key(number), value);
                    }
                    1 => {
                        tree.remove(&key(number));
                        model.remove(&key(number));
                    }
                    // Most of what is removed was there.
                    _ => {
                        tree.remove(&known);
                        model.remove(&known);
                    }
                }
            }
            compare(&tree, &model, &probes);
            compare(&kept, &kept_model, &probes);
        }
    }

    #[test]
    fn keys_in_order_fill_the_leaves() {
        let mut tree = Tree::default();
        for number in 0..10_000_u32 {
            tree.insert(Item(format!("{number:05}").into(), number));
        }
        assert_eq!(check(&tree.root, true), 2);
        let Node::Branch(children) = &*tree.root else { panic!() };
        assert_eq!(children.len(), 10_000_usize.div_ceil(MAX_WIDTH * MAX_WIDTH));
        for number in 0..10_000_u32 {
            tree.remove(format!("{number:05}").as_bytes());
        }
        assert_eq!((tree.len(), check(&tree.root, true)), (0, 0));
    }
}
