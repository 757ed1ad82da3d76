//! Sets of field paths.

use std::{borrow::Cow, cmp::Ordering, mem};

use crate::{
    path::{Path, PathElement},
    schema::{Schema, TypeRef},
};

/// A set of field paths, as a tree.
///
/// A path is in the set if it is a *member*. That a longer path is a member says nothing about its prefixes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// The paths of one element that are in the set, sorted.
    pub(crate) members: Vec<PathElement>,
    /// The longer paths by their first element, sorted; no set in it is empty.
    pub(crate) children: Vec<(PathElement, FieldSet)>,
}

/// The place of an element in a sorted list, or where it belongs. The end is tried first.
fn place<T>(sorted: &[T], order: impl Fn(&T) -> Ordering) -> Result<usize, usize> {
    match sorted.last().map(&order) {
        None => Err(0),
        Some(Ordering::Less) => Err(sorted.len()),
        Some(Ordering::Equal) => Ok(sorted.len() - 1),
        Some(Ordering::Greater) => sorted.binary_search_by(order),
    }
}

/// Visits two sorted lists in order: elements of the left one only, of both, of the right one only.
fn zip<T>(
    left: &[T],
    right: &[T],
    order: impl Fn(&T, &T) -> Ordering,
    mut visit: impl FnMut(Option<&T>, Option<&T>),
) {
    let (mut i, mut j) = (0, 0);
    loop {
        match (left.get(i), right.get(j)) {
            (None, None) => return,
            (Some(a), None) => {
                visit(Some(a), None);
                i += 1;
            }
            (None, Some(b)) => {
                visit(None, Some(b));
                j += 1;
            }
            (Some(a), Some(b)) => match order(a, b) {
                Ordering::Less => {
                    visit(Some(a), None);
                    i += 1;
                }
                Ordering::Greater => {
                    visit(None, Some(b));
                    j += 1;
                }
                Ordering::Equal => {
                    visit(Some(a), Some(b));
                    i += 1;
                    j += 1;
                }
            },
        }
    }
}

/// Visits all elements of a sorted list with the same element of another one. The other one may be much longer.
fn find<'t, T>(
    left: &'t [T],
    right: &'t [T],
    order: impl Fn(&T, &T) -> Ordering,
    mut visit: impl FnMut(&'t T, Option<&'t T>),
) {
    if left.len() < right.len() / 16 {
        for a in left {
            let at = right.binary_search_by(|b| order(b, a)).ok();
            visit(a, at.and_then(|at| right.get(at)));
        }
        return;
    }
    let mut rest = right;
    for a in left {
        while let Some((b, tail)) = rest.split_first()
            && order(b, a).is_lt()
        {
            rest = tail;
        }
        visit(a, rest.first().filter(|b| order(b, a).is_eq()));
    }
}

impl FieldSet {
    /// The empty set.
    #[must_use]
    pub fn new() -> FieldSet {
        FieldSet::default()
    }

    /// Whether no path is in the set.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }

    /// The number of paths.
    pub fn len(&self) -> usize {
        self.members.len() + self.children.iter().map(|(_, child)| child.len()).sum::<usize>()
    }

    /// Adds a path. The empty path is ignored. To add many, collect them: it takes less time.
    pub fn insert(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => {
                if let Err(at) = place(&self.members, |member| member.cmp(last)) {
                    self.members.insert(at, last.clone());
                }
            }
            [first, rest @ ..] => {
                let at = match place(&self.children, |(element, _)| element.cmp(first)) {
                    Ok(at) => at,
                    Err(at) => {
                        self.children.insert(at, (first.clone(), FieldSet::new()));
                        at
                    }
                };
                if let Some((_, child)) = self.children.get_mut(at) {
                    child.insert(rest);
                }
            }
        }
    }

    /// Whether a path is in the set.
    pub fn has(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.has_member(last),
            [first, rest @ ..] => self.child(first).is_some_and(|child| child.has(rest)),
        }
    }

    /// Whether the path of this one element is in the set.
    pub(crate) fn has_member(&self, element: &PathElement) -> bool {
        self.members.binary_search(element).is_ok()
    }

    /// The paths that begin with an element, without it.
    pub fn child(&self, element: &PathElement) -> Option<&FieldSet> {
        let at = self.children.binary_search_by(|(key, _)| key.cmp(element)).ok()?;
        self.children.get(at).map(|(_, child)| child)
    }

    /// Appends what is known of an element: the paths below it, and whether it is a member itself.
    pub(crate) fn push(&mut self, element: PathElement, below: FieldSet, is_member: bool) {
        match (below.is_empty(), is_member) {
            (true, false) => {}
            (true, true) => self.members.push(element),
            (false, false) => self.children.push((element, below)),
            (false, true) => {
                self.members.push(element.clone());
                self.children.push((element, below));
            }
        }
    }

    /// Restores the order after elements were appended, and drops empty children. Of children with the same element, the
    /// last stays: `1` and `1.0` are the same value.
    pub(crate) fn normalize(&mut self) {
        if !self.members.is_sorted() {
            self.members.sort_unstable();
        }
        self.members.dedup();
        if !self.children.is_sorted_by(|a, b| a.0 < b.0) {
            self.children.sort_by(|a, b| a.0.cmp(&b.0));
            self.children.dedup_by(|later, earlier| {
                let is_same = later.0 == earlier.0;
                if is_same {
                    mem::swap(later, earlier);
                }
                is_same
            });
        }
        self.children.retain(|(_, child)| !child.is_empty());
    }

    /// The paths in either set.
    #[must_use]
    pub fn union(&self, other: &FieldSet) -> FieldSet {
        let mut out = FieldSet {
            members: Vec::with_capacity(self.members.len() + other.members.len()),
            children: Vec::with_capacity(self.children.len() + other.children.len()),
        };
        zip(&self.members, &other.members, Ord::cmp, |a, b| out.members.extend(a.or(b).cloned()));
        zip(
            &self.children,
            &other.children,
            |a, b| a.0.cmp(&b.0),
            |a, b| match (a, b) {
                (Some(a), Some(b)) => out.children.push((a.0.clone(), a.1.union(&b.1))),
                (a, b) => out.children.extend(a.or(b).cloned()),
            },
        );
        out
    }

    /// The paths in either set, without copying what only one of them has.
    #[must_use]
    pub(crate) fn into_union(self, other: FieldSet) -> FieldSet {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => self.union(&other),
        }
    }

    /// Removes the paths that are in the other set or begin with a path in it.
    pub(crate) fn remove_recursive(&mut self, other: &FieldSet) {
        self.members.retain(|member| !other.has_member(member));
        self.children.retain_mut(|(element, child)| {
            if other.has_member(element) {
                return false;
            }
            if let Some(other) = other.child(element) {
                child.remove_recursive(other);
            }
            !child.is_empty()
        });
    }

    /// The paths in any of the sets.
    pub(crate) fn union_all<'s>(sets: impl IntoIterator<Item = &'s FieldSet>) -> FieldSet {
        // In pairs, as a tree: one after the other, each path would be copied as often as there are sets.
        let mut sets: Vec<Cow<'s, FieldSet>> = sets.into_iter().map(Cow::Borrowed).collect();
        while sets.len() > 1 {
            sets = sets
                .chunks(2)
                .map(|pair| match pair {
                    [a, b] => Cow::Owned(a.union(b)),
                    other => other.first().cloned().unwrap_or_default(),
                })
                .collect();
        }
        sets.pop().unwrap_or_default().into_owned()
    }

    /// The paths in both sets.
    #[must_use]
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        let mut out = FieldSet::new();
        find(&self.members, &other.members, Ord::cmp, |a, b| {
            if b.is_some() {
                out.members.push(a.clone());
            }
        });
        find(
            &self.children,
            &other.children,
            |a, b| a.0.cmp(&b.0),
            |(element, child), other| {
                let child = other.map(|(_, other)| child.intersection(other)).unwrap_or_default();
                if !child.is_empty() {
                    out.children.push((element.clone(), child));
                }
            },
        );
        out
    }

    /// Whether a path is in both sets.
    pub fn intersects(&self, other: &FieldSet) -> bool {
        let mut found = false;
        find(&self.members, &other.members, Ord::cmp, |_, b| found |= b.is_some());
        if !found {
            find(
                &self.children,
                &other.children,
                |a, b| a.0.cmp(&b.0),
                |(_, child), other| found = found || other.is_some_and(|(_, other)| child.intersects(other)),
            );
        }
        found
    }

    /// The paths of this set that are not in the other one.
    #[must_use]
    pub fn difference(&self, other: &FieldSet) -> FieldSet {
        self.subtract(other, false)
    }

    /// The paths of this set that neither are in the other one nor begin with a path in it.
    #[must_use]
    pub fn recursive_difference(&self, other: &FieldSet) -> FieldSet {
        self.subtract(other, true)
    }

    fn subtract(&self, other: &FieldSet, recursive: bool) -> FieldSet {
        let mut out = FieldSet::new();
        find(&self.members, &other.members, Ord::cmp, |a, b| {
            if b.is_none() {
                out.members.push(a.clone());
            }
        });
        find(
            &self.children,
            &other.children,
            |a, b| a.0.cmp(&b.0),
            |(element, child), below| {
                if recursive && other.has_member(element) {
                    return;
                }
                let child = match below {
                    Some((_, other)) => child.subtract(other, recursive),
                    None => child.clone(),
                };
                if !child.is_empty() {
                    out.children.push((element.clone(), child));
                }
            },
        );
        out
    }

    /// The paths that are no prefix of another path in the set.
    #[must_use]
    pub fn leaves(&self) -> FieldSet {
        FieldSet {
            members: self.members.iter().filter(|member| self.child(member).is_none()).cloned().collect(),
            children: self
                .children
                .iter()
                .map(|(element, child)| (element.clone(), child.leaves()))
                .filter(|(_, child)| !child.is_empty())
                .collect(),
        }
    }

    /// The set with those prefixes of its paths that are named fields of a struct: such fields are owned by the owners of
    /// what is in them, without being listed.
    #[must_use]
    pub fn with_named_fields(&self, schema: &Schema, ty: TypeRef) -> FieldSet {
        let map = schema.atom(ty).and_then(|atom| atom.map.as_ref());
        let list = schema.atom(ty).and_then(|atom| atom.list.as_ref());
        let mut out = FieldSet {
            members: Vec::with_capacity(self.members.len() + self.children.len()),
            children: Vec::with_capacity(self.children.len()),
        };
        out.members.extend(self.members.iter().cloned());
        for (element, child) in &self.children {
            let child_type = match element {
                PathElement::Field(name) => map.and_then(|map| {
                    let field = map.field(name);
                    if field.is_some() {
                        out.members.push(element.clone());
                    }
                    field.map(|field| field.ty).or(map.element)
                }),
                _ => list.map(|list| list.element),
            };
            let child = match child_type {
                Some(ty) => child.with_named_fields(schema, ty),
                None => child.clone(),
            };
            out.children.push((element.clone(), child));
        }
        out.normalize();
        out
    }

    /// All paths, sorted: members before longer paths.
    pub fn paths(&self) -> Vec<Path> {
        let mut out = Vec::with_capacity(self.len());
        self.collect(&mut Vec::new(), &mut out);
        out
    }

    fn collect(&self, prefix: &mut Vec<PathElement>, out: &mut Vec<Path>) {
        for member in &self.members {
            prefix.push(member.clone());
            out.push(Path(prefix.clone()));
            prefix.pop();
        }
        for (element, child) in &self.children {
            prefix.push(element.clone());
            child.collect(prefix, out);
            prefix.pop();
        }
    }
}

impl FromIterator<Path> for FieldSet {
    fn from_iter<I: IntoIterator<Item = Path>>(paths: I) -> FieldSet {
        let mut paths: Vec<Path> = paths.into_iter().collect();
        // In order, each path is appended; in any other, the rest would move.
        paths.sort_unstable();
        let mut set = FieldSet::new();
        for path in paths {
            set.insert(&path.0);
        }
        set
    }
}
