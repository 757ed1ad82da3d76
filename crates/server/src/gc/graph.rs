//! Who owns whom, as of one revision of the store, and what follows from it.
//!
//! The graph is pure: it is told what was stored and deleted, in the store's order, and says what is to be done next.
//! It knows only objects that have owners or are being deleted together with their dependents, so a tenant pays for
//! what it uses. Whether an owner is there at all is asked once, when the first reference to it is seen; from then
//! on the order of events tells.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use k1s_store::Revision;

use super::object::{Meta, Reference};
use crate::delete::Policy;

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

/// An object that has owners, or waits for its dependents.
#[derive(Debug)]
struct Node {
    key: Bytes,
    namespace: Box<str>,
    revision: Revision,
    references: Vec<(Reference, Verdict)>,
    deleting: bool,
    /// How it is deleted: its finalizers may ask for a policy beforehand.
    policy: Policy,
    /// It waits until its blocking dependents are gone.
    foreground: bool,
    /// It waits until its dependents have let go of it.
    orphan: bool,
}

/// An object that others name as their owner.
#[derive(Debug, Default)]
struct Owner {
    dependents: HashSet<Uid>,
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
    /// Remove the references to these owners.
    Release(Vec<Uid>),
    /// Let no reference block the deletion of its owner.
    Unblock,
    /// Remove this finalizer.
    Finish(&'static str),
    /// Delete it.
    Delete(Policy),
}

/// A [`Job`], and the object as it was when the job was decided on.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) uid: Uid,
    pub(super) key: Bytes,
    pub(super) namespace: Box<str>,
    pub(super) revision: Revision,
    pub(super) job: Job,
}

/// The finalizer of an object that waits for its dependents to go.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an object that waits for its dependents to let go.
pub(super) const ORPHAN: &str = "orphan";

/// The owners and dependents of a tenant, and the queue of those to look at.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<Uid, Node>,
    owners: HashMap<Uid, Owner>,
    queue: VecDeque<Uid>,
    queued: HashSet<Uid>,
    /// Those whose work is under way, and whether they have to be looked at again after it.
    busy: HashMap<Uid, bool>,
    unserved: HashSet<Uid>,
    /// Owners that are being asked for: how often, and whether one was deleted meanwhile.
    checking: HashMap<Uid, (usize, bool)>,
}

impl Graph {
    /// An object was stored.
    pub(super) fn put(&mut self, key: &Bytes, namespace: &str, revision: Revision, meta: Meta) {
        let uid: Uid = meta.uid.into();
        let (foreground, orphan) = (meta.deleting && meta.foreground, meta.deleting && meta.orphan);
        let old = self.nodes.remove(&uid);
        let was = old.as_ref().map_or((false, false), |old| (old.foreground, old.orphan));
        let known: &[(Reference, Verdict)] = old.as_ref().map_or(&[], |old| &old.references);
        let references: Vec<(Reference, Verdict)> = meta
            .references
            .into_iter()
            .map(|new| {
                let before = known.iter().find(|(old, _)| old.uid == new.uid && old.names_the_same(&new));
                let verdict = before.map_or(Verdict::Unknown, |(_, verdict)| *verdict);
                (new, verdict)
            })
            .collect();
        self.link(&uid, known, &references);
        if references.is_empty() && !foreground && !orphan {
            self.unserved.remove(&uid);
            return;
        }
        let node = Node {
            key: key.clone(),
            namespace: namespace.into(),
            revision,
            references,
            deleting: meta.deleting,
            policy: match (meta.orphan, meta.foreground) {
                (true, _) => Policy::Orphan,
                (_, true) => Policy::Foreground,
                _ => Policy::Background,
            },
            foreground,
            orphan,
        };
        self.nodes.insert(uid.clone(), node);
        if was != (foreground, orphan) {
            self.queue_dependents(&uid);
        }
        self.enqueue(&uid);
    }

    /// An object was deleted.
    pub(super) fn delete(&mut self, uid: &str) {
        if let Some((_, deleted)) = self.checking.get_mut(uid) {
            *deleted = true;
        }
        if let Some((uid, node)) = self.nodes.remove_entry(uid) {
            self.unserved.remove(&uid);
            self.link(&uid, &node.references, &[]);
        }
        if let Some(owner) = self.owners.get_mut(uid) {
            owner.gone = true;
            self.queue_dependents(uid);
        }
    }

    /// A kind may be served now that was not.
    pub(super) fn kinds_changed(&mut self) {
        for uid in std::mem::take(&mut self.unserved) {
            let Some(node) = self.nodes.get_mut(&uid) else { continue };
            for (_, verdict) in &mut node.references {
                if *verdict == Verdict::Unserved {
                    *verdict = Verdict::Unknown;
                }
            }
            self.enqueue(&uid);
        }
    }

    /// What was found out about owners of an object. Look at it again if that is something new.
    pub(super) fn judge(&mut self, uid: &Uid, verdicts: Vec<(Reference, Verdict)>) {
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
            if let Some((_, known)) = node.references.iter_mut().find(|(one, _)| *one == reference) {
                *known = verdict;
            }
            match (verdict, self.owners.get_mut(&reference.uid)) {
                (Verdict::Live { namespaced }, Some(owner)) => {
                    owner.live_as = Some((reference, namespaced.then(|| node.namespace.clone())));
                }
                (Verdict::Unserved, _) => {
                    self.unserved.insert(uid.clone());
                }
                _ => {}
            }
        }
    }

    /// Looks at an object, now or when the work on it is done.
    pub(super) fn enqueue(&mut self, uid: &Uid) {
        if let Some(again) = self.busy.get_mut(uid) {
            *again = true;
        } else if self.queued.insert(uid.clone()) {
            self.queue.push_back(uid.clone());
        }
    }

    /// The next thing to do. Tell [`Graph::done`] when it is done.
    pub(super) fn next(&mut self) -> Option<Work> {
        while let Some(uid) = self.queue.pop_front() {
            self.queued.remove(&uid);
            let Some(job) = self.plan(&uid) else { continue };
            let Some(node) = self.nodes.get(&uid) else { continue };
            if let Job::Check(references) = &job {
                for reference in references {
                    self.checking.entry(reference.uid.clone()).or_default().0 += 1;
                }
            }
            let (key, namespace, revision) = (node.key.clone(), node.namespace.clone(), node.revision);
            self.busy.insert(uid.clone(), false);
            return Some(Work { uid, key, namespace, revision, job });
        }
        None
    }

    /// The work on an object is over.
    pub(super) fn done(&mut self, uid: &Uid) {
        if self.busy.remove(uid) == Some(true) {
            self.enqueue(uid);
        }
    }

    /// Whether there is still something to know about an object.
    pub(super) fn knows(&self, uid: &Uid) -> bool {
        self.nodes.contains_key(uid)
    }

    /// Objects and owners known.
    #[cfg(test)]
    fn size(&self) -> (usize, usize) {
        (self.nodes.len(), self.owners.len())
    }

    fn queue_dependents(&mut self, uid: &str) {
        let dependents =
            self.owners.get(uid).map(|owner| owner.dependents.iter().cloned().collect::<Vec<_>>());
        for dependent in dependents.unwrap_or_default() {
            self.enqueue(&dependent);
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
                self.enqueue(&reference.uid);
            }
        }
    }

    fn plan(&self, uid: &Uid) -> Option<Job> {
        let node = self.nodes.get(uid)?;
        let orphaned: Vec<Uid> = self.owners_where(node, |owner| owner.orphan);
        if !orphaned.is_empty() {
            return Some(Job::Release(orphaned));
        }
        let owned = self.owners.get(uid);
        if node.orphan {
            return owned.is_none().then_some(Job::Finish(ORPHAN));
        }
        if node.foreground {
            return match owned.map_or(0, |owned| owned.blocking) {
                0 => Some(Job::Finish(FOREGROUND)),
                _ => self.is_in_circle(uid).then_some(Job::Unblock),
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
        for (reference, verdict) in &node.references {
            let owner = self.owners.get(&reference.uid);
            let verdict = match (owner, verdict) {
                (Some(owner), _) if owner.gone => Verdict::Absent,
                (Some(owner), Verdict::Unknown) => {
                    owner.is_known_as(reference, &node.namespace).unwrap_or(Verdict::Unknown)
                }
                (_, verdict) => *verdict,
            };
            match verdict {
                Verdict::Unknown => unknown.push(reference.clone()),
                // One reference that nobody understands, and the object is left alone.
                Verdict::Unserved | Verdict::WrongScope => return None,
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
        if !unknown.is_empty() {
            return Some(Job::Check(unknown));
        }
        match (solid, waiting) {
            (1.., _) if lost.is_empty() => None,
            (1.., _) => Some(Job::Release(lost)),
            (0, 1..) if owned.is_some() => Some(Job::Delete(Policy::Foreground)),
            _ => Some(Job::Delete(node.policy)),
        }
    }

    /// Whether an object that waits for its dependents is, through others that wait too, one of them.
    fn is_in_circle(&self, uid: &Uid) -> bool {
        let mut seen: HashSet<&Uid> = HashSet::new();
        let mut ahead: Vec<&Uid> = vec![uid];
        while let Some(at) = ahead.pop() {
            let Some(node) = self.nodes.get(at).filter(|node| node.foreground) else { continue };
            for (reference, _) in node.references.iter().filter(|(reference, _)| reference.blocking) {
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

fn names(references: &[(Reference, Verdict)], uid: &Uid) -> bool {
    references.iter().any(|(reference, _)| reference.uid == *uid)
}

fn blocks(references: &[(Reference, Verdict)], uid: &Uid) -> bool {
    references.iter().any(|(reference, _)| reference.uid == *uid && reference.blocking)
}

/// Whether this is the first of the references to its owner.
fn first(references: &[(Reference, Verdict)], reference: &Reference) -> bool {
    let place = references.iter().find(|(one, _)| one.uid == reference.uid);
    place.is_some_and(|(one, _)| std::ptr::eq(one, reference))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(uid: &str, blocking: bool) -> Reference {
        Reference {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            name: uid.into(),
            uid: uid.into(),
            blocking,
        }
    }

    fn meta(uid: &str, owners: &[(&str, bool)]) -> Meta {
        let references = owners.iter().map(|(uid, blocking)| reference(uid, *blocking)).collect();
        Meta { uid: uid.into(), references, ..Meta::default() }
    }

    fn put(graph: &mut Graph, revision: u64, meta: Meta) {
        let key = format!("/t/core/configmaps/n/{}", meta.uid).into();
        graph.put(&key, "n", Revision::new(revision), meta);
    }

    /// All there is to do, with every owner that is asked for judged like this.
    fn work(graph: &mut Graph, verdict: Verdict) -> Vec<(String, Job)> {
        let mut jobs = Vec::new();
        while let Some(work) = graph.next() {
            if let Job::Check(references) = work.job {
                graph.judge(&work.uid, references.into_iter().map(|one| (one, verdict)).collect());
                graph.enqueue(&work.uid);
            } else {
                jobs.push((work.uid.to_string(), work.job));
            }
            graph.done(&work.uid);
        }
        jobs.sort_by(|a, b| a.0.cmp(&b.0));
        jobs
    }

    const LIVE: Verdict = Verdict::Live { namespaced: true };

    #[test]
    fn the_first_dependent_asks_for_its_owner_and_the_others_know() {
        let mut graph = Graph::default();
        for uid in ["a", "b", "c"] {
            put(&mut graph, 2, meta(uid, &[("o", false)]));
            let asked = matches!(graph.next(), Some(Work { job: Job::Check(_), .. }));
            assert_eq!(asked, uid == "a");
            if asked {
                graph.judge(&"a".into(), vec![(reference("o", false), LIVE)]);
                graph.done(&"a".into());
            }
        }
        assert_eq!(work(&mut graph, Verdict::Absent), []);
        graph.delete("o");
        let all = work(&mut graph, Verdict::Unknown);
        assert_eq!(all.iter().map(|(uid, _)| &**uid).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert!(all.iter().all(|(_, job)| *job == Job::Delete(Policy::Background)));
        for uid in ["a", "b", "c"] {
            graph.delete(uid);
        }
        assert_eq!(graph.size(), (0, 0));
    }

    #[test]
    fn an_owner_that_goes_while_it_is_asked_for_is_gone() {
        let mut graph = Graph::default();
        put(&mut graph, 2, meta("a", &[("o", false)]));
        let asked = graph.next().unwrap();
        graph.delete("o");
        graph.judge(&asked.uid, vec![(reference("o", false), LIVE)]);
        graph.enqueue(&asked.uid);
        graph.done(&asked.uid);
        assert_eq!(work(&mut graph, LIVE), [("a".to_owned(), Job::Delete(Policy::Background))]);
        assert!(graph.checking.is_empty() && graph.busy.is_empty());
    }

    #[test]
    fn blocking_dependents_are_counted_as_their_references_change() {
        let mut graph = Graph::default();
        put(&mut graph, 2, meta("a", &[("o", true), ("o", false)]));
        put(&mut graph, 3, meta("b", &[("o", false)]));
        assert_eq!(graph.owners["o"].blocking, 1);
        put(&mut graph, 4, meta("b", &[("o", true)]));
        assert_eq!(graph.owners["o"].blocking, 2);
        put(&mut graph, 5, meta("a", &[("o", false)]));
        assert_eq!(graph.owners["o"].blocking, 1);
        put(&mut graph, 6, meta("b", &[]));
        assert_eq!((graph.owners["o"].blocking, graph.owners["o"].dependents.len()), (0, 1));
        put(&mut graph, 7, meta("a", &[]));
        assert_eq!(graph.size(), (0, 0));
    }

    #[test]
    fn those_who_wait_for_each_other_are_unblocked_and_those_who_wait_in_a_row_are_not() {
        let waiting = |uid: &str, owners: &[(&str, bool)]| Meta {
            deleting: true,
            foreground: true,
            ..meta(uid, owners)
        };
        let mut graph = Graph::default();
        put(&mut graph, 2, waiting("o", &[]));
        put(&mut graph, 3, waiting("m", &[("o", true)]));
        put(&mut graph, 4, waiting("d", &[("m", true)]));
        put(&mut graph, 5, Meta { deleting: true, ..meta("e", &[("d", true)]) });
        assert_eq!(work(&mut graph, LIVE), []);
        let mut graph = Graph::default();
        put(&mut graph, 2, waiting("a", &[("c", true)]));
        put(&mut graph, 3, waiting("b", &[("a", true)]));
        put(&mut graph, 4, waiting("c", &[("b", true)]));
        let unblocked = work(&mut graph, LIVE);
        assert!(unblocked.contains(&("a".to_owned(), Job::Unblock)), "{unblocked:?}");
    }

    #[test]
    fn a_reference_to_a_kind_that_nobody_serves_is_looked_at_when_kinds_change() {
        let mut graph = Graph::default();
        put(&mut graph, 2, meta("a", &[("o", false)]));
        assert_eq!(work(&mut graph, Verdict::Unserved), []);
        assert_eq!(work(&mut graph, Verdict::Absent), []);
        graph.kinds_changed();
        assert_eq!(work(&mut graph, Verdict::Absent), [("a".to_owned(), Job::Delete(Policy::Background))]);
    }
}
