//! Making sure that the feed has everything up to a revision.
//!
//! The upstream watch delivers only the store's own keys. When other clients write to the etcd, its revision moves on
//! without an event, and silence does not distinguish "nothing happened" from "not delivered yet". etcd's progress
//! notifications would, but in widespread versions (before 3.4.31 and 3.5.13) they can overtake events.
//! So a *fence* is written, a key of the store's own: once its event has arrived, so has everything before it.

use std::time::Duration;

use k1s_store::{Error, Result, Revision};
use tokio::sync::Mutex;

use crate::{client::Client, failure::Failure, proto, shared::Shared};

/// How long to wait for an event before a fence is written. Usually it is under way.
const PATIENCE: Duration = Duration::from_millis(50);

/// The revision of the last fence of this process. Locked while one is written: a task that waits for the
/// lock uses that fence or writes the next.
#[derive(Debug, Default)]
pub(crate) struct Fences {
    last: Mutex<Revision>,
}

impl Shared {
    /// Brings the feed to the newest revision, and returns that.
    pub(crate) async fn sync(&self) -> Result<Revision> {
        let newest = self.revision().await?;
        self.sync_to(newest).await?;
        Ok(newest)
    }

    /// Waits until the feed has everything up to `target`, which etcd has reached.
    pub(crate) async fn sync_to(&self, target: Revision) -> Result<()> {
        if *self.seen.borrow() >= target {
            return Ok(());
        }
        if let Ok(outcome) = self.env.timeout(PATIENCE, self.wait_seen(target)).await {
            return outcome;
        }
        let timeout = self.options.request_timeout;
        let through_a_fence = async {
            // An event that is certain to arrive is as good as a fence. Otherwise a fence at the target or later will do.
            if self.acknowledged() < target {
                self.fence_after(&self.requests, Revision::new(target.get().saturating_sub(1))).await?;
            }
            self.wait_seen(target).await
        };
        self.env.timeout(timeout, through_a_fence).await.unwrap_or_else(|_| {
            Err(Error::unavailable(format!(
                "the changes up to revision {target} did not come from etcd within {timeout:?}"
            )))
        })
    }

    /// Waits until the feed has everything up to `target`.
    pub(crate) async fn wait_seen(&self, target: Revision) -> Result<()> {
        let mut seen = self.seen.subscribe();
        let reached = seen.wait_for(|seen| *seen >= target || self.check_fault().is_err());
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Error::Closed),
            reached = reached => match reached {
                Ok(_) => self.check_fault(),
                Err(_) => Err(Error::Closed),
            },
        }
    }

    /// Makes sure that there is a fence later than `revision`.
    pub(crate) async fn fence_after(&self, client: &Client, revision: Revision) -> Result<()> {
        let mut last = self.fences.last.lock().await;
        if *last > revision {
            return Ok(());
        }
        let known = self.newest();
        let fence = proto::PutRequest { key: self.keys.fence.clone(), ..proto::PutRequest::default() };
        // Writing it twice does no harm.
        let written: proto::PutResponse = client.read(proto::PUT, &fence).await.map_err(Failure::of_read)?;
        *last = self.accept(written.header, known)?;
        Ok(())
    }
}
