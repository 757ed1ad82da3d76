//! Helpers shared by the cases: the backend with its profile, random numbers, and checks for errors.

use std::{fmt::Debug, sync::Arc};

use bytes::Bytes;
use k1s_env::Env;
use k1s_store::{Conflict, Error, KeyValue, Precondition, Range, Result, Revision, Store, WatchRequest};

use super::{Backend, Fresh, Profile, probe::Probe};

/// The context of a case.
pub(super) struct Suite {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) profile: Profile,
    /// For tasks and timeouts; randomness comes from [`Dice`].
    pub(super) env: Env,
}

impl Suite {
    pub(super) fn new(backend: Arc<dyn Backend>) -> Self {
        let profile = backend.profile();
        Self { backend, profile, env: Env::system() }
    }

    pub(super) async fn fresh(&self) -> Fresh {
        self.backend.fresh().await
    }

    /// Opens a watch, which must succeed.
    pub(super) async fn watch(&self, store: &Arc<dyn Store>, request: WatchRequest) -> Probe {
        match store.watch(request.clone()).await {
            Ok(watch) => Probe::new(watch, self.profile.patience),
            Err(error) => panic!("broken promise: {request:?} can be watched\n  the store returned: {error}"),
        }
    }

    /// The error of a watch that must not open: returned by `watch` itself, or as its first item.
    pub(super) async fn watch_refused(&self, store: &Arc<dyn Store>, request: WatchRequest) -> Error {
        match store.watch(request.clone()).await {
            Err(error) => error,
            Ok(watch) => match Probe::new(watch, self.profile.patience).next().await {
                Some(Err(error)) => error,
                other => panic!("broken promise: {request:?} is refused\n  its first item was {other:?}"),
            },
        }
    }

    /// Checks that a write took the revision after `before`, or a later one if the server is shared.
    #[track_caller]
    pub(super) fn follows(&self, before: Revision, after: Revision) {
        if self.profile.shared {
            assert!(
                after > before,
                "broken promise: a write takes a later revision\n  {before}, then {after}"
            );
        } else {
            assert_eq!(
                after,
                before.next(),
                "broken promise: each write takes the next revision\n  the store was at {before}"
            );
        }
    }

    /// Checks that nothing was written between two readings of the revision.
    #[track_caller]
    pub(super) fn unmoved(&self, before: Revision, after: Revision, by: &str) {
        if self.profile.shared {
            assert!(after >= before, "broken promise: revisions only grow\n  {before}, then {after}");
        } else {
            assert_eq!(after, before, "broken promise: {by} takes no revision");
        }
    }

    /// Checks for [`Error::Compacted`] with the requested and the oldest revision.
    #[track_caller]
    pub(super) fn compacted<T: Debug>(&self, result: Result<T>, requested: Revision, oldest: Revision) {
        match result {
            Err(Error::Compacted { requested: asked, oldest: left })
                if asked == requested && left == oldest => {}
            other => panic!(
                "broken promise: revision {requested} is compacted, {oldest} is the oldest\n  got {other:?}"
            ),
        }
    }

    /// Checks for [`Error::FutureRevision`] with the requested and the newest revision.
    #[track_caller]
    pub(super) fn future<T: Debug>(&self, result: Result<T>, requested: Revision, newest: Revision) {
        match result {
            Err(Error::FutureRevision { requested: asked, current })
                if asked == requested && (current == newest || self.profile.shared && current > newest) => {}
            other => {
                panic!("broken promise: revision {requested} is in the future of {newest}\n  got {other:?}")
            }
        }
    }

    /// A revision that the store will not reach in this case.
    pub(super) fn far_future(&self, newest: Revision) -> Revision {
        Revision::new(newest.get() + if self.profile.shared { 1_000_000_000 } else { 1 })
    }
}

/// Reports that a case is skipped on this backend.
#[allow(clippy::print_stderr, reason = "a skipped test should be visible to its user")]
pub(super) fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

/// Checks for a conflict on `key` whose current entry is `current`.
#[track_caller]
pub(super) fn conflict<T: Debug>(
    result: Result<T>,
    key: impl Into<Bytes>,
    expected: Precondition,
    current: Option<KeyValue>,
) {
    let wanted = Conflict { key: key.into(), expected, current };
    match result {
        Err(Error::Conflict(conflict)) if *conflict == wanted => {}
        other => {
            panic!(
                "broken promise: a conflict returns the current entry\n  wanted {wanted:?}\n  got {other:?}"
            )
        }
    }
}

/// Checks for [`Error::Invalid`].
#[track_caller]
pub(super) fn invalid<T: Debug>(result: Result<T>, what: &str) {
    match result {
        Err(Error::Invalid { .. }) => {}
        other => panic!("broken promise: {what} is refused as invalid\n  got {other:?}"),
    }
}

/// Checks for [`Error::TooLarge`].
#[track_caller]
pub(super) fn too_large<T: Debug>(result: Result<T>, what: &str) {
    match result {
        Err(Error::TooLarge { .. }) => {}
        other => panic!("broken promise: {what} is refused as too large\n  got {other:?}"),
    }
}

/// Checks for [`Error::Closed`].
#[track_caller]
pub(super) fn closed<T: Debug>(result: Result<T>, what: &str) {
    match result {
        Err(Error::Closed) => {}
        other => panic!("broken promise: {what} on a closed store fails with Closed\n  got {other:?}"),
    }
}

/// Builds an entry for comparison.
pub(super) fn entry(key: impl Into<Bytes>, value: impl Into<Bytes>, revision: Revision) -> KeyValue {
    KeyValue { key: key.into(), value: value.into(), revision }
}

/// The current entry of a key.
pub(super) async fn now(store: &Arc<dyn Store>, key: &str) -> Option<KeyValue> {
    store.get(key.as_bytes(), None).await.expect("the newest state can be read").entry
}

/// Puts a value unconditionally.
pub(super) async fn put(store: &Arc<dyn Store>, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Revision {
    let txn = k1s_store::Txn::new().put(key, value, Precondition::Any);
    store.txn(txn).await.expect("an unconditional put succeeds")
}

/// Deletes a key unconditionally.
pub(super) async fn remove(store: &Arc<dyn Store>, key: impl Into<Bytes>) -> Revision {
    let txn = k1s_store::Txn::new().delete(key, Precondition::Any);
    store.txn(txn).await.expect("an unconditional delete succeeds")
}

/// The keys of a range, as text with all other bytes escaped.
pub(super) async fn keys(store: &Arc<dyn Store>, range: Range) -> Vec<String> {
    let result = store.range(range).await.expect("the range can be read");
    result.entries.iter().map(|entry| entry.key.escape_ascii().to_string()).collect()
}

/// Random numbers determined by a seed.
#[derive(Clone)]
pub(super) struct Dice(Env);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(Env::simulated(seed).0)
    }

    /// Independent dice for one of several concurrent tasks.
    pub(super) fn of(seed: u64, task: usize) -> Self {
        Self::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(task as u64 + 1))
    }

    pub(super) fn below(&self, bound: usize) -> usize {
        self.0.random_below(bound as u64) as usize
    }

    pub(super) fn byte(&self) -> u8 {
        self.0.random_below(256) as u8
    }

    /// True with a probability of `percent` in 100.
    pub(super) fn chance(&self, percent: usize) -> bool {
        self.below(100) < percent
    }
}
