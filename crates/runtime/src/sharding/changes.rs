//! The shards that this replica owns, and those who follow them.

use std::{fmt, sync::Arc};

use parking_lot::{Mutex, RwLock};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::ShardToken;

/// A change of the shards that this replica owns.
#[derive(Debug)]
#[non_exhaustive]
pub enum Change {
    /// This replica owns the shard: work begins.
    Acquired(ShardToken),
    /// Work on the shard has to stop. No other replica begins before every subscriber has dropped this, or the drain timeout
    /// has passed; if the shard was lost rather than released, others may begin when its token is invalid.
    Released(Release),
}

/// A shard that is about to be released, or was lost. Dropping it confirms that work on the shard has stopped.
#[derive(Debug)]
pub struct Release {
    token: ShardToken,
    _confirms: Arc<DropGuard>,
}

impl Release {
    /// The token that was [acquired](Change::Acquired). Work in flight may go on as long as it is valid.
    #[must_use]
    pub fn token(&self) -> &ShardToken {
        &self.token
    }

    /// Confirms that work on the shard has stopped. Dropping it does the same.
    pub fn confirm(self) {}
}

/// Receives the shards that this replica acquires and releases, beginning with those that it owns.
///
/// Dropping it confirms everything that it has not received yet.
pub struct Changes {
    receiver: mpsc::UnboundedReceiver<Change>,
}

impl Changes {
    /// The next change. `None` when the [`Sharding`](super::Sharding) is gone.
    pub async fn next(&mut self) -> Option<Change> {
        self.receiver.recv().await
    }

    /// All changes that are available, at least one; none when the [`Sharding`](super::Sharding) is gone. Shards often move
    /// together.
    pub async fn next_all(&mut self) -> Vec<Change> {
        let mut all = Vec::new();
        self.receiver.recv_many(&mut all, usize::MAX).await;
        all
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Changes")
    }
}

/// The tokens of all owned shards, and the subscribers to their changes.
pub(super) struct Owned {
    slots: Box<[RwLock<Option<ShardToken>>]>,
    /// Locked while slots change, so that subscribers see the changes in order.
    subscribers: Mutex<Vec<mpsc::UnboundedSender<Change>>>,
}

impl Owned {
    pub(super) fn new(shards: u32) -> Owned {
        Owned { slots: (0..shards).map(|_| RwLock::default()).collect(), subscribers: Mutex::default() }
    }

    pub(super) fn get(&self, shard: u32) -> Option<ShardToken> {
        self.slots.get(shard as usize)?.read().clone()
    }

    pub(super) fn all(&self) -> Vec<ShardToken> {
        self.slots.iter().filter_map(|slot| slot.read().clone()).collect()
    }

    pub(super) fn subscribe(&self) -> Changes {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut subscribers = self.subscribers.lock();
        for token in self.all() {
            let _ = sender.send(Change::Acquired(token));
        }
        subscribers.push(sender);
        Changes { receiver }
    }

    pub(super) fn acquired(&self, token: &ShardToken) {
        let mut subscribers = self.subscribers.lock();
        if let Some(slot) = self.slots.get(token.shard() as usize) {
            *slot.write() = Some(token.clone());
        }
        subscribers.retain(|to| to.send(Change::Acquired(token.clone())).is_ok());
    }

    /// Takes a shard away. The returned token is cancelled when all subscribers have confirmed.
    pub(super) fn released(&self, token: &ShardToken) -> CancellationToken {
        let confirmed = CancellationToken::new();
        let confirms = Arc::new(confirmed.clone().drop_guard());
        let mut subscribers = self.subscribers.lock();
        if let Some(slot) = self.slots.get(token.shard() as usize) {
            *slot.write() = None;
        }
        subscribers.retain(|to| {
            let release = Release { token: token.clone(), _confirms: Arc::clone(&confirms) };
            to.send(Change::Released(release)).is_ok()
        });
        confirmed
    }
}
