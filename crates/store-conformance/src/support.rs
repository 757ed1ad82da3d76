//! What cases have in common: the backend with its profile, random numbers, and ways to expect an error.

use std::{fmt::Debug, sync::Arc};

use bytes::Bytes;
use k1s_env::Env;
use k1s_store::{Conflict, Error, KeyValue, Precondition, Range, Result, Revision, Store, WatchRequest};

use super::{Backend, Fresh, Profile, probe::Probe};

/// What a case is given.
pub(super) struct Suite {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) profile: Profile,
    /// For tasks and for patience; randomness comes from [`Dice`].
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

    /// Opens a watch that must open.
    pub(super) async fn watch(&self, store: &Arc<dyn Store>, request: WatchRequest) -> Probe {
        match store.watch(request.clone()).await {
            Ok(watch) => Probe::new(watch, self.profile.patience),
            Err(error) => panic!("broken promise: {request:?} can be watched\n  the store said: {error}"),
        }
    }

    /// Why a watch that must not open does not: `watch` itself may say so, or its first item.
    pub(super) async fn watch_refused(&self, store: &Arc<dyn Store>, request: WatchRequest) -> Error {
        match store.watch(request.clone()).await {
            Err(error) => error,
            Ok(watch) => match Probe::new(watch, self.profile.patience).next().await {
                Some(Err(error)) => error,
                other => panic!("broken promise: {request:?} is refused\n  its first item was {other:?}"),
            },
        }
    }

    /// Checks that a write took the revision after `before`, or a later one where others write too.
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

    /// Checks that nothing was written between two looks at the revision.
    #[track_caller]
    pub(super) fn unmoved(&self, before: Revision, after: Revision, by: &str) {
        if self.profile.shared {
            assert!(after >= before, "broken promise: revisions only grow\n  {before}, then {after}");
        } else {
            assert_eq!(after, before, "broken promise: {by} takes no revision");
        }
    }

    /// Checks for [`Error::Compacted`] with what was asked and what is left.
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

    /// Checks for [`Error::FutureRevision`] with what was asked and what is newest.
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

    /// A revision the store will not reach in this case.
    pub(super) fn far_future(&self, newest: Revision) -> Revision {
        Revision::new(newest.get() + if self.profile.shared { 1_000_000_000 } else { 1 })
    }
}

/// Says that a case does nothing on this backend.
#[allow(clippy::print_stderr, reason = "a skipped test should be seen by the one who runs it")]
pub(super) fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

/// Checks for a conflict on `key`, with `current` there.
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
            panic!("broken promise: a conflict tells what is there now\n  wanted {wanted:?}\n  got {other:?}")
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

/// An entry, for comparison.
pub(super) fn entry(key: impl Into<Bytes>, value: impl Into<Bytes>, revision: Revision) -> KeyValue {
    KeyValue { key: key.into(), value: value.into(), revision }
}

/// The entry of a key now.
pub(super) async fn now(store: &Arc<dyn Store>, key: &str) -> Option<KeyValue> {
    store.get(key.as_bytes(), None).await.expect("the newest state can be read").entry
}

/// Gives a key a value, whatever it had.
pub(super) async fn put(store: &Arc<dyn Store>, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Revision {
    let txn = k1s_store::Txn::new().put(key, value, Precondition::Any);
    store.txn(txn).await.expect("an unconditional put goes through")
}

/// Takes the value of a key away, whatever it had.
pub(super) async fn remove(store: &Arc<dyn Store>, key: impl Into<Bytes>) -> Revision {
    let txn = k1s_store::Txn::new().delete(key, Precondition::Any);
    store.txn(txn).await.expect("an unconditional delete goes through")
}

/// The keys of a range, as text that shows every byte.
pub(super) async fn keys(store: &Arc<dyn Store>, range: Range) -> Vec<String> {
    let result = store.range(range).await.expect("the range can be read");
    result.entries.iter().map(|entry| entry.key.escape_ascii().to_string()).collect()
}

/// Random numbers that follow from a seed.
#[derive(Clone)]
pub(super) struct Dice(Env);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(Env::simulated(seed).0)
    }

    /// The dice of one of several who roll at the same time: what it rolls does not depend on the others.
    pub(super) fn of(seed: u64, who: usize) -> Self {
        Self::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(who as u64 + 1))
    }

    pub(super) fn below(&self, bound: usize) -> usize {
        self.0.random_below(bound as u64) as usize
    }

    pub(super) fn byte(&self) -> u8 {
        self.0.random_below(256) as u8
    }

    /// True in so many of 100 rolls.
    pub(super) fn chance(&self, percent: usize) -> bool {
        self.below(100) < percent
    }
}
