//! Sets of field paths.

use std::{cmp::Ordering, mem};

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

/// What to keep of two sorted lists: elements of the left one only, of both, of the right one only.
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

    /// Adds a path. The empty path is ignored.
    pub fn insert(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => {
                if let Err(at) = self.members.binary_search(last) {
                    self.members.insert(at, last.clone());
                }
            }
            [first, rest @ ..] => {
                let at = match self.children.binary_search_by(|(element, _)| element.cmp(first)) {
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

    /// Whether all paths of another set are in this one.
    pub fn contains_all(&self, other: &FieldSet) -> bool {
        other.members.iter().all(|member| self.has_member(member))
            && other
                .children
                .iter()
                .all(|(element, child)| self.child(element).is_some_and(|own| own.contains_all(child)))
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

    /// The paths in both sets.
    #[must_use]
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        let mut out = FieldSet::new();
        zip(&self.members, &other.members, Ord::cmp, |a, b| out.members.extend(a.and(b).cloned()));
        zip(
            &self.children,
            &other.children,
            |a, b| a.0.cmp(&b.0),
            |a, b| {
                if let (Some(a), Some(b)) = (a, b) {
                    let child = a.1.intersection(&b.1);
                    if !child.is_empty() {
                        out.children.push((a.0.clone(), child));
                    }
                }
            },
        );
        out
    }

    /// Whether a path is in both sets.
    pub fn intersects(&self, other: &FieldSet) -> bool {
        let mut found = false;
        zip(&self.members, &other.members, Ord::cmp, |a, b| found |= a.is_some() && b.is_some());
        if !found {
            zip(
                &self.children,
                &other.children,
                |a, b| a.0.cmp(&b.0),
                |a, b| {
                    if let (Some(a), Some(b), false) = (a, b, found) {
                        found = a.1.intersects(&b.1);
                    }
                },
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
        zip(&self.members, &other.members, Ord::cmp, |a, b| {
            if b.is_none() {
                out.members.extend(a.cloned());
            }
        });
        zip(
            &self.children,
            &other.children,
            |a, b| a.0.cmp(&b.0),
            |a, b| {
                let Some((element, child)) = a else { return };
                if recursive && other.has_member(element) {
                    return;
                }
                let child = match b {
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
        let mut set = FieldSet::new();
        for path in paths {
            set.insert(&path.0);
        }
        set
    }
}
