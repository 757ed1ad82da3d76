//! A persistent ordered set that knows the rank of a key: a B+ tree whose branches count the items below each child.
//!
//! A clone is a pointer; a change copies the nodes on its path that a clone shares. Finding a key, and counting the items
//! between two keys, take time logarithmic in the size of the set.

use std::sync::Arc;

use smallvec::SmallVec;

/// An item that is ordered by its key.
pub(crate) trait Keyed: Clone {
    fn key(&self) -> &[u8];
}

/// Maximum number of items in a leaf, and of children of a branch. A change copies as many pointers on each level.
const MAX_WIDTH: usize = 16;
/// Minimum width of a node that has a neighbour; a narrower one is joined with it.
const MIN_WIDTH: usize = MAX_WIDTH / 4;

/// What a node holds, in the node's own allocation.
type Items<T> = SmallVec<[T; MAX_WIDTH]>;

#[derive(Clone)]
pub(crate) struct Tree<T> {
    root: Node<T>,
}

#[derive(Clone)]
enum Node<T> {
    Leaf(Arc<Items<T>>),
    Branch(Arc<Branch<T>>),
}

/// Children, in separate arrays: a search reads only the first items.
#[derive(Clone)]
struct Branch<T> {
    /// The first item below each child.
    firsts: Items<T>,
    /// The number of items below each child.
    lens: Items<usize>,
    nodes: Items<Node<T>>,
}

impl<T> Default for Tree<T> {
    fn default() -> Self {
        Tree { root: Node::Leaf(Arc::default()) }
    }
}

impl<T: Keyed> Tree<T> {
    pub(crate) fn len(&self) -> usize {
        self.root.len()
    }

    /// Whether both are the same by identity. May be `false` for equal sets.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.root, &other.root) {
            (Node::Leaf(one), Node::Leaf(other)) => Arc::ptr_eq(one, other),
            (Node::Branch(one), Node::Branch(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&T> {
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(items) => {
                    let at = items.binary_search_by(|item| item.key().cmp(key)).ok()?;
                    return items.get(at);
                }
                Node::Branch(branch) => node = branch.nodes.get(branch.place(key))?,
            }
        }
    }

    /// Adds an item, replacing one with the same key.
    pub(crate) fn insert(&mut self, item: T) {
        if let Some(right) = insert(&mut self.root, item) {
            let mut root = Branch { firsts: Items::new(), lens: Items::new(), nodes: Items::new() };
            root.add(0, right);
            root.add(0, self.root.clone());
            self.root = Node::Branch(Arc::new(root));
        }
    }

    pub(crate) fn remove(&mut self, key: &[u8]) {
        // Nothing is copied for a key that is not there.
        if self.get(key).is_none() {
            return;
        }
        remove(&mut self.root, key);
        while let Node::Branch(branch) = &self.root {
            self.root = match &*branch.nodes {
                [] => Node::Leaf(Arc::default()),
                [only] => only.clone(),
                _ => break,
            };
        }
    }

    /// The number of items whose keys are before `key`.
    pub(crate) fn rank(&self, key: &[u8]) -> usize {
        let (mut node, mut before) = (&self.root, 0);
        loop {
            match node {
                Node::Leaf(items) => return before + items.partition_point(|item| item.key() < key),
                Node::Branch(branch) => {
                    let at = branch.place(key);
                    before += branch.lens.iter().take(at).sum::<usize>();
                    let Some(child) = branch.nodes.get(at) else { return before };
                    node = child;
                }
            }
        }
    }

    /// The items whose keys are not before `start`, in order.
    pub(crate) fn from<'a>(&'a self, start: &[u8]) -> Iter<'a, T> {
        let (mut node, mut above) = (&self.root, Vec::new());
        loop {
            match node {
                Node::Leaf(items) => {
                    let at = items.partition_point(|item| item.key() < start);
                    return Iter { above, leaf: items.get(at..).unwrap_or_default().iter() };
                }
                Node::Branch(branch) => {
                    let mut nodes = branch.nodes.get(branch.place(start)..).unwrap_or_default().iter();
                    let Some(child) = nodes.next() else { return Iter { above, leaf: [].iter() } };
                    above.push(nodes);
                    node = child;
                }
            }
        }
    }
}

impl<T> Node<T> {
    fn len(&self) -> usize {
        match self {
            Node::Leaf(items) => items.len(),
            Node::Branch(branch) => branch.lens.iter().sum(),
        }
    }

    /// The number of items or children in this node itself.
    fn width(&self) -> usize {
        match self {
            Node::Leaf(items) => items.len(),
            Node::Branch(branch) => branch.nodes.len(),
        }
    }

    fn first(&self) -> Option<&T> {
        match self {
            Node::Leaf(items) => items.first(),
            Node::Branch(branch) => branch.firsts.first(),
        }
    }
}

/// Splits a node that is too wide, and returns the second part. If the item was added at the end, the first part stays full:
/// keys often come in order.
fn cut<T>(items: &mut Items<T>, at_end: bool) -> Items<T> {
    let at = if at_end { items.len() - 1 } else { items.len() / 2 };
    let rest = items.drain(at..).collect();
    items.shrink_to_fit();
    rest
}

impl<T: Keyed> Branch<T> {
    /// Where a key belongs: the last child whose first item is not after it, or the first child.
    fn place(&self, key: &[u8]) -> usize {
        self.firsts.partition_point(|first| first.key() <= key).saturating_sub(1)
    }

    fn add(&mut self, at: usize, node: Node<T>) {
        let Some(first) = node.first().cloned() else { return };
        self.firsts.insert(at, first);
        self.lens.insert(at, node.len());
        self.nodes.insert(at, node);
    }

    fn remove(&mut self, at: usize) -> Node<T> {
        self.firsts.remove(at);
        self.lens.remove(at);
        self.nodes.remove(at)
    }

    /// Updates the first item and length of a child, which is not empty.
    fn refresh(&mut self, at: usize) {
        let Some(node) = self.nodes.get(at) else { return };
        if let (Some(place), Some(first)) = (self.firsts.get_mut(at), node.first()) {
            *place = first.clone();
        }
        if let Some(place) = self.lens.get_mut(at) {
            *place = node.len();
        }
    }

    fn split(&mut self, at_end: bool) -> Option<Node<T>> {
        if self.nodes.len() <= MAX_WIDTH {
            return None;
        }
        let firsts = cut(&mut self.firsts, at_end);
        let (lens, nodes) = (cut(&mut self.lens, at_end), cut(&mut self.nodes, at_end));
        Some(Node::Branch(Arc::new(Branch { firsts, lens, nodes })))
    }
}

/// Adds an item below a node; returns the second part of the node if it was split.
fn insert<T: Keyed>(node: &mut Node<T>, item: T) -> Option<Node<T>> {
    match node {
        Node::Leaf(items) => {
            let items = Arc::make_mut(items);
            let at = match items.binary_search_by(|other| other.key().cmp(item.key())) {
                Ok(at) => {
                    items[at] = item;
                    return None;
                }
                Err(at) => at,
            };
            items.insert(at, item);
            (items.len() > MAX_WIDTH).then(|| Node::Leaf(Arc::new(cut(items, at == MAX_WIDTH))))
        }
        Node::Branch(branch) => {
            let branch = Arc::make_mut(branch);
            let at = branch.place(item.key());
            let right = insert(branch.nodes.get_mut(at)?, item);
            branch.refresh(at);
            branch.add(at + 1, right?);
            branch.split(at + 1 == MAX_WIDTH)
        }
    }
}

/// Removes the item with this key, which must exist.
fn remove<T: Keyed>(node: &mut Node<T>, key: &[u8]) {
    match node {
        Node::Leaf(items) => {
            if let Ok(at) = items.binary_search_by(|item| item.key().cmp(key)) {
                Arc::make_mut(items).remove(at);
            }
        }
        Node::Branch(branch) => {
            let branch = Arc::make_mut(branch);
            let at = branch.place(key);
            let Some(child) = branch.nodes.get_mut(at) else { return };
            remove(child, key);
            match child.width() {
                0 => drop(branch.remove(at)),
                width if width < MIN_WIDTH && branch.nodes.len() > 1 => {
                    let left = at.min(branch.nodes.len() - 2);
                    let (one, other) = (branch.remove(left), branch.remove(left));
                    let (one, other) = join(one, other);
                    if let Some(other) = other {
                        branch.add(left, other);
                    }
                    branch.add(left, one);
                }
                _ => branch.refresh(at),
            }
        }
    }
}

/// Merges two neighbours into one node, or balances them if that would be too wide.
fn join<T: Keyed>(left: Node<T>, right: Node<T>) -> (Node<T>, Option<Node<T>>) {
    match (left, right) {
        (Node::Leaf(mut left), Node::Leaf(right)) => {
            let items = Arc::make_mut(&mut left);
            items.extend(right.iter().cloned());
            let rest = (items.len() > MAX_WIDTH).then(|| Node::Leaf(Arc::new(cut(items, false))));
            (Node::Leaf(left), rest)
        }
        (Node::Branch(mut left), Node::Branch(right)) => {
            let branch = Arc::make_mut(&mut left);
            branch.firsts.extend(right.firsts.iter().cloned());
            branch.lens.extend(right.lens.iter().copied());
            branch.nodes.extend(right.nodes.iter().cloned());
            let rest = branch.split(false);
            (Node::Branch(left), rest)
        }
        // All leaves have the same depth, so neighbours are both leaves or both branches.
        (left, right) => (left, Some(right)),
    }
}

/// The items of a tree from a key on.
pub(crate) struct Iter<'a, T> {
    /// The remaining nodes on each level, the root's first.
    above: Vec<std::slice::Iter<'a, Node<T>>>,
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
                    Some(node) => break node,
                    None => drop(self.above.pop()),
                }
            };
            while let Node::Branch(branch) = node {
                let mut nodes = branch.nodes.iter();
                node = nodes.next()?;
                self.above.push(nodes);
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

    /// Checks the invariants: widths, counts, first items, order and depth.
    fn check(node: &Node<Item>, is_root: bool) -> usize {
        assert!(node.width() <= MAX_WIDTH && (is_root || node.width() > 0));
        match node {
            Node::Leaf(items) => {
                assert!(items.is_sorted_by(|a, b| a.0 < b.0) && !items.spilled());
                0
            }
            Node::Branch(branch) => {
                assert!(branch.nodes.len() > usize::from(is_root));
                assert!(branch.firsts.is_sorted_by(|a, b| a.0 < b.0) && !branch.nodes.spilled());
                let firsts = branch.nodes.iter().map(|node| node.first().unwrap().clone());
                assert_eq!(firsts.collect::<Vec<_>>(), branch.firsts.to_vec());
                assert_eq!(branch.nodes.iter().map(Node::len).collect::<Vec<_>>(), branch.lens.to_vec());
                let depths: Vec<usize> = branch.nodes.iter().map(|node| check(node, false)).collect();
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
        fn a_tree_is_an_ordered_map_whose_clones_do_not_change(
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
                    // Most removed keys exist.
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
        assert_eq!(check(&tree.root, true), 3);
        let Node::Branch(branch) = &tree.root else { panic!() };
        assert_eq!(branch.nodes.len(), 10_000_usize.div_ceil(MAX_WIDTH.pow(3)));
        for number in 0..10_000_u32 {
            tree.remove(format!("{number:05}").as_bytes());
        }
        assert_eq!((tree.len(), check(&tree.root, true)), (0, 0));
    }
}
