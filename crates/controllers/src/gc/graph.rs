//! Who owns whom, and what follows from it.
//!
//! The graph is pure: it is told what was stored and deleted and says what is to be done next. It knows only objects
//! that have owners or are being deleted together with their dependents, so one pays for what one uses. Whether an
//! owner is there at all is asked when the first reference to it is seen; from then on events tell.

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
    /// Not asked yet.
    Unknown,
    /// It is there.
    Live {
        /// Whether it lives in the namespace of its dependent.
        namespaced: bool,
    },
    /// Nothing of this kind and name has this uid.
    Absent,
    /// Nobody serves this kind: perhaps somebody will.
    Unserved,
    /// An object of the cluster cannot belong to one of a namespace.
    WrongScope,
}

/// Where an object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) resource: Resource,
    /// Empty for an object of the cluster.
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
    /// It waits until its blocking dependents are gone.
    foreground: bool,
    /// It waits until its dependents have let go of it.
    orphan: bool,
}

impl Node {
    /// How it is deleted: its finalizers may ask for a policy beforehand.
    fn policy(&self) -> Policy {
        let has = |name: &str| self.finalizers.iter().any(|one| **one == *name);
        match (has(ORPHAN), has(FOREGROUND)) {
            (true, _) => Policy::Orphan,
            (_, true) => Policy::Foreground,
            _ => Policy::Background,
        }
    }
}

/// An object that others name as their owner.
#[derive(Debug, Default)]
struct Owner {
    // Sets that are gone through are sorted: what follows from an event follows in the same order each time.
    dependents: BTreeSet<Uid>,
    /// So many of them have to go before it.
    blocking: usize,
    gone: bool,
    /// How it was named when it was found, and in which namespace if it has one.
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

/// Something to do with one object.
#[derive(Debug, PartialEq)]
pub(super) enum Job {
    /// Find out whether these owners are there.
    Check(Vec<Reference>),
    /// Let it have these references to owners, and no other.
    Refer(Vec<Reference>),
    /// Let it have these finalizers, and no other.
    Finish(Vec<Box<str>>),
    /// Delete it.
    Delete(Policy),
}

/// A [`Job`], and the object as it was when the job was decided on.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) place: Place,
    pub(super) version: Box<str>,
    pub(super) job: Job,
    /// Which graph has decided it: what is found out for one that was thrown away says nothing about its successor.
    epoch: u64,
}

/// The owners and dependents of a cluster.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<Uid, Node>,
    owners: HashMap<Uid, Owner>,
    unserved: BTreeSet<Uid>,
    /// Owners that are being asked for: how often, and whether one was deleted meanwhile.
    checking: HashMap<Uid, (usize, bool)>,
    /// Those that have to be looked at.
    due: BTreeSet<Uid>,
    /// While the graph is being filled nothing follows from it: dependents may still be missing.
    loading: bool,
    epoch: u64,
    /// Every object there is, where events of different kinds come in no order: an owner that is found but was never
    /// seen may have gone unseen, too.
    present: Option<HashSet<Uid>>,
}

impl Graph {
    /// A graph for events in the order of their revisions, or (`false`) for such that are in order by kind only.
    pub(super) fn new(ordered: bool) -> Graph {
        Graph { loading: true, present: (!ordered).then(HashSet::new), ..Graph::default() }
    }

    /// Everything will be told anew.
    pub(super) fn reset(&mut self, ordered: bool) {
        *self = Graph { epoch: self.epoch + 1, ..Graph::new(ordered) };
    }

    /// Objects that were there before are about to be told of.
    pub(super) fn begin(&mut self) {
        self.loading = true;
    }

    /// All objects that are there have been told of.
    pub(super) fn loaded(&mut self) {
        self.loading = false;
    }

    /// Those that have to be looked at now.
    pub(super) fn take_due(&mut self) -> Vec<Uid> {
        if self.loading { Vec::new() } else { std::mem::take(&mut self.due).into_iter().collect() }
    }

    /// An object was stored.
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

    /// An object was deleted.
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

    /// A kind may be served now that was not.
    pub(super) fn kinds_changed(&mut self) {
        self.due.extend(std::mem::take(&mut self.unserved));
    }

    /// What was found out about owners of an object. Says whether the object can be looked at again at once: it
    /// cannot if there is an owner about whom nothing can be known now.
    pub(super) fn judge(&mut self, uid: &Uid, work: &Work, verdicts: Vec<(Reference, Verdict)>) -> bool {
        if work.epoch != self.epoch {
            return true;
        }
        let mut all_known = true;
        let mut node = self.nodes.get_mut(uid);
        for (reference, mut verdict) in verdicts {
            if let Some((count, deleted)) = self.checking.get_mut(&reference.uid) {
                if *deleted {
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

    /// What is to be done with an object. A check has to be followed by [`Graph::judge`].
    pub(super) fn next(&mut self, uid: &Uid) -> Option<Work> {
        if self.loading {
            // Its turn comes when everything is there.
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

    /// Objects and owners known.
    #[cfg(test)]
    fn size(&self) -> (usize, usize) {
        (self.nodes.len(), self.owners.len())
    }

    fn queue_dependents(&mut self, uid: &str) {
        if let Some(owner) = self.owners.get(uid) {
            self.due.extend(owner.dependents.iter().cloned());
        }
    }

    /// Replaces the references of an object in the entries of its owners.
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
                _ => self.is_in_circle(uid).then(|| unblock(node)),
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

    /// What its owners mean for an object that is not being deleted.
    fn judge_owners(&self, node: &Node, owned: Option<&Owner>) -> Option<Job> {
        let (mut solid, mut waiting, mut lost, mut unknown) = (0, 0, Vec::new(), Vec::new());
        let mut nonsense = false;
        for (reference, verdict) in &node.references {
            let owner = self.owners.get(&reference.uid);
            let verdict = match (owner, verdict) {
                (Some(owner), _) if owner.gone => Verdict::Absent,
                (Some(owner), Verdict::Unknown) => {
                    owner.is_known_as(reference, &node.place.namespace).unwrap_or(Verdict::Unknown)
                }
                (_, verdict) => *verdict,
            };
            match verdict {
                Verdict::Unknown | Verdict::Unserved => unknown.push(reference.clone()),
                Verdict::WrongScope => nonsense = true,
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
        // One reference that makes no sense, and the object is left alone.
        if nonsense {
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

    /// Whether an object that waits for its dependents is, through others that wait too, one of them.
    fn is_in_circle(&self, uid: &Uid) -> bool {
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

/// Lets no reference block the deletion of its owner.
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
