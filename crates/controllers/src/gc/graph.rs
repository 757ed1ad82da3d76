//! The graph of owners and dependents, and the work that follows from it.
//!
//! The graph is pure: it receives stored and deleted objects and returns the next job. It only holds objects
//! that have owners or wait for their dependents, so its cost is proportional to use. Whether an owner exists
//! is requested from the server when the first reference to it is seen; after that, events tell.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use k1s_runtime::client::PropagationPolicy as Policy;

use crate::meta::{FOREGROUND, Meta, ORPHAN, Reference, Resource};

/// The uid of an object.
pub(super) type Uid = Arc<str>;

/// What is known about the owner that a reference names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Not checked yet.
    Unknown,
    /// It exists.
    Live {
        /// Whether it is in the namespace of its dependent.
        namespaced: bool,
    },
    /// No object of this kind and name has this uid.
    Absent,
    /// The kind is not served, but may be later.
    Unserved,
    /// A cluster-scoped object cannot have a namespaced owner.
    WrongScope,
}

/// The location of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) resource: Resource,
    /// Empty for a cluster-scoped object.
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
}

/// An object that has owners, or waits for its dependents.
#[derive(Debug)]
struct Node {
    place: Place,
    version: Box<str>,
    references: Vec<(Reference, Verdict)>,
    finalizers: Vec<Box<str>>,
    deleting: bool,
    /// Waits until its blocking dependents are deleted.
    foreground: bool,
    /// Waits until its dependents no longer reference it.
    orphan: bool,
}

impl Node {
    /// The propagation policy to delete it with, which its finalizers may determine.
    fn policy(&self) -> Policy {
        let has = |name: &str| self.finalizers.iter().any(|one| **one == *name);
        match (has(ORPHAN), has(FOREGROUND)) {
            (true, _) => Policy::Orphan,
            (_, true) => Policy::Foreground,
            _ => Policy::Background,
        }
    }
}

/// An object that others reference as their owner.
#[derive(Debug, Default)]
struct Owner {
    // Iterated sets are sorted, so that the same event always leads to the same order of work.
    dependents: BTreeSet<Uid>,
    /// Number of dependents that block its deletion.
    blocking: usize,
    gone: bool,
    /// The reference by which it was found, and its namespace if it has one.
    live_as: Option<(Reference, Option<Box<str>>)>,
}

impl Owner {
    fn is_known_as(&self, reference: &Reference, namespace: &str) -> Option<Verdict> {
        let (known, within) = self.live_as.as_ref()?;
        let same =
            known.names_the_same(reference) && within.as_deref().is_none_or(|within| within == namespace);
        same.then_some(Verdict::Live { namespaced: within.is_some() })
    }
}

/// The next step for an object.
#[derive(Debug, PartialEq)]
pub(super) enum Job {
    /// Check whether these owners exist.
    Check(Vec<Reference>),
    /// Set these owner references.
    Refer(Vec<Reference>),
    /// Set these finalizers.
    Finish(Vec<Box<str>>),
    /// Delete it.
    Delete(Policy),
}

/// A [`Job`], with the object's state at the time of the decision.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) place: Place,
    pub(super) version: Box<str>,
    pub(super) job: Job,
    /// The graph that decided it: results for a graph that was reset do not apply to its successor.
    epoch: u64,
}

/// The owners and dependents of a cluster.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<Uid, Node>,
    owners: HashMap<Uid, Owner>,
    unserved: BTreeSet<Uid>,
    /// Owners being checked: the number of checks, and whether the owner was deleted meanwhile.
    checking: HashMap<Uid, (usize, bool)>,
    /// Objects to process.
    due: BTreeSet<Uid>,
    /// Set while the graph is being filled: dependents may still be missing, so nothing is decided.
    loading: bool,
    epoch: u64,
    /// All existing objects, where events of different kinds are not ordered: an owner that exists but was
    /// never observed may also be deleted unobserved.
    present: Option<HashSet<Uid>>,
}

impl Graph {
    /// A graph for events in revision order, or (`false`) for events that are only ordered per kind.
    pub(super) fn new(ordered: bool) -> Graph {
        Graph { loading: true, present: (!ordered).then(HashSet::new), ..Graph::default() }
    }

    /// Clears the graph: all objects will be delivered again.
    pub(super) fn reset(&mut self, ordered: bool) {
        *self = Graph { epoch: self.epoch + 1, ..Graph::new(ordered) };
    }

    /// Existing objects are about to be delivered.
    pub(super) fn begin(&mut self) {
        self.loading = true;
    }

    /// All existing objects have been delivered.
    pub(super) fn loaded(&mut self) {
        self.loading = false;
    }

    /// The objects to process now.
    pub(super) fn take_due(&mut self) -> Vec<Uid> {
        if self.loading { Vec::new() } else { std::mem::take(&mut self.due).into_iter().collect() }
    }

    /// Processes a stored object.
    pub(super) fn put(&mut self, resource: &Resource, meta: &Meta) {
        let uid: Uid = meta.uid.clone();
        if let Some(present) = &mut self.present {
            present.insert(uid.clone());
        }
        let deleting = meta.is_deleting();
        let (foreground, orphan) =
            (deleting && meta.has_finalizer(FOREGROUND), deleting && meta.has_finalizer(ORPHAN));
        let needed = !meta.owner_references.is_empty() || foreground || orphan;
        if !needed && !self.nodes.contains_key(&uid) {
            return;
        }
        let old = self.nodes.remove(&uid);
        let was = old.as_ref().map_or((false, false), |old| (old.foreground, old.orphan));
        let known: &[(Reference, Verdict)] = old.as_ref().map_or(&[], |old| &old.references);
        let references: Vec<(Reference, Verdict)> = meta
            .owner_references
            .iter()
            .map(|new| {
                let before = known.iter().find(|(old, _)| old.uid == new.uid && old.names_the_same(new));
                let verdict = before.map_or(Verdict::Unknown, |(_, verdict)| *verdict);
                (new.clone(), verdict)
            })
            .collect();
        self.link(&uid, known, &references);
        if !needed {
            self.unserved.remove(&uid);
            return;
        }
        let place = match old {
            Some(old) => old.place,
            None => Place {
                resource: resource.clone(),
                namespace: meta.namespace.clone(),
                name: meta.name.clone(),
            },
        };
        let (version, finalizers) = (meta.resource_version.clone(), meta.finalizers.clone());
        let node = Node { place, version, references, finalizers, deleting, foreground, orphan };
        self.nodes.insert(uid.clone(), node);
        if was != (foreground, orphan) {
            self.queue_dependents(&uid);
        }
        self.due.insert(uid);
    }

    /// Processes a deleted object.
    pub(super) fn delete(&mut self, uid: &str) {
        if let Some(present) = &mut self.present {
            present.remove(uid);
        }
        if let Some((_, deleted)) = self.checking.get_mut(uid) {
            *deleted = true;
        }
        if let Some((uid, node)) = self.nodes.remove_entry(uid) {
            self.unserved.remove(&uid);
            self.due.remove(&uid);
            self.link(&uid, &node.references, &[]);
        }
        if let Some(owner) = self.owners.get_mut(uid) {
            owner.gone = true;
            self.queue_dependents(uid);
        }
    }

    /// A kind may be served now that was not before.
    pub(super) fn kinds_changed(&mut self) {
        self.due.extend(std::mem::take(&mut self.unserved));
    }

    /// Records the results of checking an object's owners. Returns whether the object can be processed again
    /// at once: not if an owner is still unknown.
    pub(super) fn judge(&mut self, uid: &Uid, work: &Work, verdicts: Vec<(Reference, Verdict)>) -> bool {
        if work.epoch != self.epoch {
            return true;
        }
        let mut all_known = true;
        let mut node = self.nodes.get_mut(uid);
        for (reference, mut verdict) in verdicts {
            if let Some((count, deleted)) = self.checking.get_mut(&reference.uid) {
                // A reference that cannot be right is not made right by the deletion of what it names.
                if *deleted && verdict != Verdict::WrongScope {
                    verdict = Verdict::Absent;
                }
                *count -= 1;
                if *count == 0 {
                    self.checking.remove(&reference.uid);
                }
            }
            let Some(node) = node.as_deref_mut() else { continue };
            let unseen = self.present.as_ref().is_some_and(|present| !present.contains(&reference.uid));
            match verdict {
                Verdict::Unserved => {
                    self.unserved.insert(uid.clone());
                    all_known = false;
                    verdict = Verdict::Unknown;
                }
                Verdict::Live { .. } if unseen => {
                    all_known = false;
                    verdict = Verdict::Unknown;
                }
                Verdict::Unknown => all_known = false,
                _ => {}
            }
            if let Some((_, known)) = node.references.iter_mut().find(|(one, _)| *one == reference) {
                *known = verdict;
            }
            if let (Verdict::Live { namespaced }, Some(owner)) =
                (verdict, self.owners.get_mut(&reference.uid))
            {
                let within = namespaced.then(|| node.place.namespace.clone());
                owner.live_as = Some((reference, within));
            }
        }
        all_known
    }

    /// The next job for an object. A check must be followed by [`Graph::judge`].
    pub(super) fn next(&mut self, uid: &Uid) -> Option<Work> {
        if self.loading {
            // It is processed once the graph is filled.
            if self.nodes.contains_key(uid) {
                self.due.insert(uid.clone());
            }
            return None;
        }
        let job = self.plan(uid)?;
        let node = self.nodes.get(uid)?;
        if let Job::Check(references) = &job {
            for reference in references {
                self.checking.entry(reference.uid.clone()).or_default().0 += 1;
            }
        }
        let (place, version) = (node.place.clone(), node.version.clone());
        Some(Work { place, version, job, epoch: self.epoch })
    }

    /// Number of objects and owners in the graph.
    #[cfg(test)]
    fn size(&self) -> (usize, usize) {
        (self.nodes.len(), self.owners.len())
    }

    fn queue_dependents(&mut self, uid: &str) {
        if let Some(owner) = self.owners.get(uid) {
            self.due.extend(owner.dependents.iter().cloned());
        }
    }

    /// Updates the entries of an object's owners for its new references.
    fn link(&mut self, uid: &Uid, old: &[(Reference, Verdict)], new: &[(Reference, Verdict)]) {
        for (reference, _) in new {
            let owner = self.owners.entry(reference.uid.clone()).or_default();
            if owner.dependents.insert(uid.clone()) {
                owner.blocking += usize::from(blocks(new, &reference.uid));
            } else if first(new, reference) && names(old, &reference.uid) {
                owner.blocking += usize::from(blocks(new, &reference.uid));
                owner.blocking -= usize::from(blocks(old, &reference.uid));
            }
        }
        for (reference, _) in old.iter().filter(|(reference, _)| first(old, reference)) {
            let Some(owner) = self.owners.get_mut(&reference.uid) else { continue };
            if !names(new, &reference.uid) && owner.dependents.remove(uid) {
                owner.blocking -= usize::from(blocks(old, &reference.uid));
            }
            let (blocking, empty) = (owner.blocking, owner.dependents.is_empty());
            if empty {
                self.owners.remove(&reference.uid);
            }
            let waits = self
                .nodes
                .get(&reference.uid)
                .is_some_and(|owner| (owner.foreground && blocking == 0) || (owner.orphan && empty));
            if waits {
                self.due.insert(reference.uid.clone());
            }
        }
    }

    fn plan(&self, uid: &Uid) -> Option<Job> {
        let node = self.nodes.get(uid)?;
        let orphaned: Vec<Uid> = self.owners_where(node, |owner| owner.orphan);
        if !orphaned.is_empty() {
            return Some(release(node, &orphaned));
        }
        let owned = self.owners.get(uid);
        if node.orphan {
            return owned.is_none().then(|| finish(node, ORPHAN));
        }
        if node.foreground {
            return match owned.map_or(0, |owned| owned.blocking) {
                0 => Some(finish(node, FOREGROUND)),
                _ => self.is_in_cycle(uid).then(|| unblock(node)),
            };
        }
        if node.deleting || node.references.is_empty() {
            return None;
        }
        self.judge_owners(node, owned)
    }

    fn owners_where(&self, node: &Node, test: impl Fn(&Node) -> bool) -> Vec<Uid> {
        let uids = node.references.iter().map(|(reference, _)| &reference.uid);
        uids.filter(|uid| self.nodes.get(*uid).is_some_and(&test)).cloned().collect()
    }

    /// Decides from its owners what happens to an object that is not being deleted.
    fn judge_owners(&self, node: &Node, owned: Option<&Owner>) -> Option<Job> {
        let (mut solid, mut waiting, mut lost, mut unknown) = (0, 0, Vec::new(), Vec::new());
        let mut invalid = false;
        for (reference, verdict) in &node.references {
            let owner = self.owners.get(&reference.uid);
            let verdict = match (owner, verdict) {
                (_, Verdict::WrongScope) => Verdict::WrongScope,
                // Whether a cluster-scoped object may have this owner at all is known after a check.
                (Some(owner), verdict)
                    if owner.gone && (*verdict != Verdict::Unknown || !node.place.namespace.is_empty()) =>
                {
                    Verdict::Absent
                }
                (Some(owner), Verdict::Unknown) => {
                    owner.is_known_as(reference, &node.place.namespace).unwrap_or(Verdict::Unknown)
                }
                (_, verdict) => *verdict,
            };
            match verdict {
                Verdict::Unknown | Verdict::Unserved => unknown.push(reference.clone()),
                Verdict::WrongScope => invalid = true,
                Verdict::Absent => lost.push(reference.uid.clone()),
                Verdict::Live { .. } => match self.nodes.get(&reference.uid) {
                    Some(owner) if owner.foreground => {
                        waiting += 1;
                        lost.push(reference.uid.clone());
                    }
                    _ => solid += 1,
                },
            }
        }
        // An object with an invalid reference is not touched.
        if invalid {
            return None;
        }
        if !unknown.is_empty() {
            return Some(Job::Check(unknown));
        }
        match (solid, waiting) {
            (1.., _) if lost.is_empty() => None,
            (1.., _) => Some(release(node, &lost)),
            (0, 1..) if owned.is_some() => Some(Job::Delete(Policy::Foreground)),
            _ => Some(Job::Delete(node.policy())),
        }
    }

    /// Whether an object waits for itself, through a cycle of blocking dependents that also wait.
    fn is_in_cycle(&self, uid: &Uid) -> bool {
        let mut seen: HashSet<&Uid> = HashSet::new();
        let mut ahead: Vec<&Uid> = vec![uid];
        while let Some(at) = ahead.pop() {
            let Some(node) = self.nodes.get(at).filter(|node| node.foreground) else { continue };
            for (reference, _) in node.references.iter().filter(|(reference, _)| reference.is_blocking()) {
                if reference.uid == *uid {
                    return true;
                }
                if seen.insert(&reference.uid) {
                    ahead.push(&reference.uid);
                }
            }
        }
        false
    }
}

/// Removes the references to these owners.
fn release(node: &Node, owners: &[Uid]) -> Job {
    let kept = node.references.iter().filter(|(one, _)| !owners.contains(&one.uid));
    Job::Refer(kept.map(|(one, _)| one.clone()).collect())
}

/// Makes all references non-blocking.
fn unblock(node: &Node) -> Job {
    let mut references: Vec<Reference> = node.references.iter().map(|(one, _)| one.clone()).collect();
    for reference in references.iter_mut().filter(|one| one.is_blocking()) {
        reference.block_owner_deletion = Some(false);
    }
    Job::Refer(references)
}

/// Removes a finalizer.
fn finish(node: &Node, finalizer: &str) -> Job {
    Job::Finish(node.finalizers.iter().filter(|one| ***one != *finalizer).cloned().collect())
}

fn names(references: &[(Reference, Verdict)], uid: &Uid) -> bool {
    references.iter().any(|(reference, _)| reference.uid == *uid)
}

fn blocks(references: &[(Reference, Verdict)], uid: &Uid) -> bool {
    references.iter().any(|(reference, _)| reference.uid == *uid && reference.is_blocking())
}

/// Whether this is the first of the references to its owner.
fn first(references: &[(Reference, Verdict)], reference: &Reference) -> bool {
    let place = references.iter().find(|(one, _)| one.uid == reference.uid);
    place.is_some_and(|(one, _)| std::ptr::eq(one, reference))
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
