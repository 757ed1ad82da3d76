//! A replica's membership: joins the group, works, leaves, and joins again after it was lost.

use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use super::{
    Inner, InvalidShardingOptions,
    members::{GROUP, SESSION, SHARDS, WEIGHT, session_name},
    session::{Ended, Session},
};
use crate::leader::LeaderElector;

/// Why a replica cannot take part.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ShardingError {
    /// It runs already.
    #[error("the sharding {0} runs already")]
    AlreadyRunning(String),
    /// The replicas that are alive have another number of shards.
    #[error(
        "the sharding {name} has {recorded} shards, and this replica is configured with {configured}: all replicas need the \
         same number; stop those with {recorded} shards to change it"
    )]
    ShardsDiffer {
        /// The name of the group.
        name: String,
        /// The number of the others.
        recorded: u32,
        /// The number of this replica.
        configured: u32,
    },
    /// The table was damaged.
    #[error("the lease {lease}: {problem}")]
    InvalidTable {
        /// Namespace and name of the table's Lease.
        lease: String,
        /// What is wrong.
        problem: String,
    },
    /// The options are invalid.
    #[error(transparent)]
    Options(#[from] InvalidShardingOptions),
}

pub(super) async fn run(inner: &Inner, stop: &CancellationToken) -> Result<(), ShardingError> {
    if inner.running.swap(true, Ordering::AcqRel) {
        return Err(ShardingError::AlreadyRunning(inner.options.name.clone()));
    }
    let ended = take_part(inner, stop).await;
    inner.running.store(false, Ordering::Release);
    ended
}

async fn take_part(inner: &Inner, stop: &CancellationToken) -> Result<(), ShardingError> {
    loop {
        let name = session_name(&inner.identity, &inner.env.uuid().to_string());
        let elector = LeaderElector::new(inner.client.clone(), inner.env.clone(), inner.member.clone());
        let elector = elector.map_err(InvalidShardingOptions::from)?.with_metadata(
            [(GROUP.to_owned(), inner.options.name.clone())],
            [
                (SESSION.to_owned(), name.clone()),
                (SHARDS.to_owned(), inner.options.shards.to_string()),
                (WEIGHT.to_owned(), inner.options.weight.to_string()),
            ],
        );
        let Some(membership) = elector.acquire(stop).await else { return Ok(()) };
        let mut session = Session::new(inner, name, membership.fence());
        let ended = session.work(stop).await;
        match ended {
            Ended::Stopped | Ended::Failed(_) => {
                session.leave().await;
                inner.forget_members();
                if let Err(error) = membership.release().await {
                    tracing::warn!(%error, "the membership was not released; it will expire");
                }
                if let Ended::Failed(error) = ended {
                    return Err(error);
                }
                return Ok(());
            }
            Ended::Lost(reason) => {
                tracing::error!(
                    sharding = %inner.options.name,
                    identity = %inner.identity,
                    %reason,
                    "lost all shards; joining again"
                );
                inner.forget_members();
                // Until its work has stopped: this replica may get the same shards again.
                session.abandon(&reason).await;
            }
        }
        drop(membership);
    }
}

impl Inner {
    fn forget_members(&self) {
        self.members.lock().clear();
        self.metrics.members.set(0);
    }
}
