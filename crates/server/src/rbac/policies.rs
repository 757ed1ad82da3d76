//! Keeps the index of a tenant's policy up to date.
//!
//! The index is a function of the four watch caches of the policy kinds. It is brought up to date by whoever needs it, from
//! the events since the last time; most requests find that there are none. A cache that lacks a write of this server is
//! waited for, so a change counts for the next request. Over a store that other servers write to as well, a decision needs the
//! revision of the store's newest policy, which is that of one key, and waits for it: a right which another server has just taken
//! away is gone here, too.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use futures_util::future::try_join4;
use k1s_object::Status;
use k1s_store::{Revision, Store};
use parking_lot::RwLock;
use serde::Deserialize;

use super::{
    index::{Index, RoleRef, Subject},
    rule::Rule,
};
use crate::{
    cache::{Cache, Entry, Snapshot},
    errors,
    shared_call::SharedCall,
};

/// A policy kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    ClusterRole,
    Role,
    ClusterRoleBinding,
    RoleBinding,
}

const KINDS: [Kind; 4] = [Kind::ClusterRole, Kind::Role, Kind::ClusterRoleBinding, Kind::RoleBinding];

/// The resources of the policy kinds, in the order of their caches.
pub(crate) const RESOURCES: [&str; 4] = ["clusterroles", "roles", "clusterrolebindings", "rolebindings"];

/// The caches of the policy kinds.
type Caches = [Arc<Cache>; 4];

/// The index, and the revisions of the caches that it is made of.
#[derive(Default)]
struct State {
    index: Index,
    reached: [Revision; 4],
}

/// Maximum number of events that are applied to the index; with more, it is built anew.
const MAX_EVENTS: usize = 10_000;

/// The policy of a tenant. Costs nothing until it is used.
#[derive(Default)]
pub(crate) struct Policies {
    caches: OnceLock<Caches>,
    state: RwLock<State>,
    /// Held while the initial policy is written.
    pub(crate) bootstrap: tokio::sync::Mutex<()>,
    bootstrapped: AtomicBool,
    /// Concurrent requests share one read of the store.
    newest: SharedCall<Result<Newest, Status>>,
}

/// The newest policy in the store, for a request.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Newest {
    /// The revision that the policy has to have reached. Any will do where nobody else writes.
    pub(crate) policy: Revision,
    /// The store's revision when that was read, which is not older than the request.
    pub(crate) store: Option<Revision>,
}

impl Policies {
    /// Whether the initial policy was written, or found, by this server.
    pub(crate) fn is_bootstrapped(&self) -> bool {
        self.bootstrapped.load(Ordering::Acquire)
    }

    pub(crate) fn set_bootstrapped(&self) {
        self.bootstrapped.store(true, Ordering::Release);
    }

    /// The newest policy; `mark` is the key that changes with it.
    pub(crate) async fn newest(&self, store: &dyn Store, mark: &[u8]) -> Result<Newest, Status> {
        if !store.is_shared() {
            return Ok(Newest::default());
        }
        let ask = || async {
            let found = store.get(mark, None).await.map_err(|error| errors::store(&error))?;
            let policy = found.entry.map(|entry| entry.revision).unwrap_or_default();
            Ok(Newest { policy, store: Some(found.revision) })
        };
        self.newest.call(ask).await
    }

    /// Reads the index, if it can be brought up to date, and to `at`, without waiting.
    pub(crate) fn try_read<T>(&self, at: Revision, read: impl FnOnce(&Index) -> T) -> Option<T> {
        let caches = self.caches.get()?;
        let reached = reached(caches, at)?;
        {
            let state = self.state.read();
            if state.reached == reached {
                return Some(read(&state.index));
            }
        }
        self.update(&settled(caches, at)?);
        Some(read(&self.state.read().index))
    }

    /// Reads the index, which then has all writes of this server, and all writes up to `at`; waits for them. `caches` are those
    /// of [`RESOURCES`].
    pub(crate) async fn read<T>(
        &self,
        caches: Vec<Arc<Cache>>,
        at: Revision,
        read: impl FnOnce(&Index) -> T,
    ) -> Result<T, Status> {
        let caches = Caches::try_from(caches).map_err(|_| Status::internal("there are four policy kinds"))?;
        let [a, b, c, d] = self.caches.get_or_init(|| caches);
        // At the same time: one answer of the store moves all of them on.
        let (a, b, c, d) =
            try_join4(a.with_writes_to(at), b.with_writes_to(at), c.with_writes_to(at), d.with_writes_to(at))
                .await?;
        self.update(&[a, b, c, d]);
        Ok(read(&self.state.read().index))
    }

    fn update(&self, snapshots: &[Arc<Snapshot>; 4]) {
        let Some(caches) = self.caches.get() else { return };
        let mut state = self.state.write();
        for (place, ((kind, cache), snapshot)) in KINDS.into_iter().zip(caches).zip(snapshots).enumerate() {
            let Some(reached) = state.reached.get(place).copied() else { continue };
            // Another request may have brought it further.
            if snapshot.revision <= reached {
                continue;
            }
            let events = match reached {
                never if never == Revision::default() => None,
                _ => cache.ring(|ring| ring.between(reached, snapshot.revision, MAX_EVENTS)),
            };
            match events {
                Some(events) => {
                    for event in &events {
                        match (&event.new, &event.old) {
                            (Some(new), _) => set(&mut state.index, kind, new, true),
                            (None, Some(old)) => set(&mut state.index, kind, old, false),
                            (None, None) => {}
                        }
                    }
                }
                None => {
                    state
                        .index
                        .clear(matches!(kind, Kind::ClusterRole | Kind::ClusterRoleBinding), kind.is_role());
                    for entry in snapshot.entries.iter() {
                        set(&mut state.index, kind, entry, true);
                    }
                }
            }
            if let Some(reached) = state.reached.get_mut(place) {
                *reached = snapshot.revision;
            }
        }
    }
}

impl Kind {
    fn is_role(self) -> bool {
        matches!(self, Kind::ClusterRole | Kind::Role)
    }
}

/// The revisions of the caches, if all of them have the writes of this server, and those up to `at`.
fn reached([a, b, c, d]: &Caches, at: Revision) -> Option<[Revision; 4]> {
    Some([a.reached(at)?, b.reached(at)?, c.reached(at)?, d.reached(at)?])
}

/// The snapshots of the caches, if all of them have the writes of this server, and those up to `at`.
fn settled(caches: &Caches, at: Revision) -> Option<[Arc<Snapshot>; 4]> {
    let [a, b, c, d] = caches;
    Some([a.settled_to(at)?, b.settled_to(at)?, c.settled_to(at)?, d.settled_to(at)?])
}

#[derive(Deserialize)]
struct Role {
    #[serde(default)]
    rules: Option<Vec<Rule>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Binding {
    #[serde(default)]
    subjects: Option<Vec<Subject>>,
    #[serde(default)]
    role_ref: RoleRef,
}

/// Sets an object of the index to its stored state, or removes it. An object that cannot be read grants nothing.
fn set(index: &mut Index, kind: Kind, entry: &Entry, exists: bool) {
    let namespace = match kind {
        Kind::ClusterRole | Kind::ClusterRoleBinding => "",
        Kind::Role | Kind::RoleBinding => entry.namespace(),
    };
    let at = (namespace, entry.name());
    let json = entry.stored.json();
    if kind.is_role() {
        let role = exists.then(|| serde_json::from_slice::<Role>(json).ok()).flatten();
        index.set_role(at, role.map(|role| role.rules.unwrap_or_default()));
    } else {
        let binding = exists.then(|| serde_json::from_slice::<Binding>(json).ok()).flatten();
        index
            .set_binding(at, binding.map(|binding| (binding.role_ref, binding.subjects.unwrap_or_default())));
    }
}
