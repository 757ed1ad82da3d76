//! Previous values, which are requested from etcd only while a watch asks for them.
//!
//! etcd looks up the previous value of each event when it sends it, one at a time, and that costs it more than the write itself.
//! So the upstream watch omits them until a watch is opened that asks for them. Changes that were published without are read
//! again from etcd's history by a watch that needs them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k1s_env::{Env, Instant};
use tokio::sync::{Notify, watch};

/// Maximum time that a new watch waits for the upstream watch to be replaced by one with previous values. After that it is served
/// from history for a while, which is slower.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long previous values are still requested after the last watch that asked for them: it may reconnect.
const LINGER: Duration = Duration::from_secs(10);

/// What the upstream watch delivers now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upstream {
    /// Nothing: it is broken.
    Broken,
    /// Changes, with previous values or without.
    Flows { previous: bool },
}

/// Watches that ask for previous values, and whether the upstream watch has them.
#[derive(Debug)]
pub(crate) struct Wishes {
    wanted: AtomicUsize,
    /// Notifies the upstream watch of a new request.
    news: Notify,
    upstream: watch::Sender<Upstream>,
}

/// A request for previous values, until it is dropped.
#[derive(Debug)]
pub(crate) struct Wish {
    wishes: Arc<Wishes>,
}

impl Default for Wishes {
    fn default() -> Self {
        Self {
            wanted: AtomicUsize::new(0),
            news: Notify::new(),
            upstream: watch::Sender::new(Upstream::Flows { previous: false }),
        }
    }
}

impl Wishes {
    /// Requests previous values, and waits a little until all later changes have them.
    pub(crate) async fn want(self: &Arc<Self>, env: &Env) -> Wish {
        self.wanted.fetch_add(1, Ordering::AcqRel);
        let wish = Wish { wishes: self.clone() };
        let mut upstream = self.upstream.subscribe();
        let lacks = |upstream: &Upstream| *upstream == Upstream::Flows { previous: false };
        if lacks(&upstream.borrow()) {
            self.news.notify_one();
            // On a timeout, history has them, too.
            let _ = env.timeout(PATIENCE, upstream.wait_for(|upstream| !lacks(upstream))).await;
        }
        wish
    }

    pub(crate) fn are_there(&self) -> bool {
        self.wanted.load(Ordering::Acquire) > 0
    }

    /// Completes when there may be a new request.
    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }

    /// Records what the upstream watch delivers from now on.
    pub(crate) fn upstream_is(&self, upstream: Upstream) {
        self.upstream.send_if_modified(|current| std::mem::replace(current, upstream) != upstream);
    }
}

impl Drop for Wish {
    fn drop(&mut self) {
        self.wishes.wanted.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Decides whether the upstream watch should have previous values.
#[derive(Debug, Default)]
pub(crate) struct Demand {
    /// Since when previous values are delivered, but not requested.
    idle_since: Option<Instant>,
}

impl Demand {
    /// Whether it should, given whether it does and whether a watch asks for them.
    pub(crate) fn decide(&mut self, now: Instant, has: bool, wanted: bool) -> bool {
        if wanted || !has {
            self.idle_since = None;
            return wanted;
        }
        now - *self.idle_since.get_or_insert(now) < LINGER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn previous_values_are_asked_for_at_once_and_given_up_after_a_while() {
        let (env, _clock) = Env::simulated(1);
        let begin = env.now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut demand = Demand::default();
        assert!(!demand.decide(at(0), false, false));
        assert!(demand.decide(at(0), false, true));
        assert!(demand.decide(at(1), true, true));
        assert!(demand.decide(at(30), true, false), "the pause begins when it is noticed");
        assert!(demand.decide(at(39), true, false));
        assert!(demand.decide(at(39), true, true), "they are requested again");
        assert!(demand.decide(at(45), true, false));
        assert!(demand.decide(at(54), true, false));
        assert!(!demand.decide(at(55), true, false));
    }

    #[tokio::test]
    async fn a_wish_waits_for_the_upstream_watch_unless_that_is_broken() {
        let (env, _clock) = Env::simulated(1);
        let wishes = Arc::new(Wishes::default());
        let upstream = async {
            wishes.news().await;
            assert!(wishes.are_there());
            wishes.upstream_is(Upstream::Flows { previous: true });
        };
        let (wish, ()) = tokio::join!(wishes.want(&env), upstream);
        drop(wish);
        assert!(!wishes.are_there());
        let _at_once = wishes.want(&env).await;
        wishes.upstream_is(Upstream::Broken);
        let _at_once = wishes.want(&env).await;
    }
}
