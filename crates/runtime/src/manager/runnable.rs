//! What a manager starts and stops besides its controllers.

use std::{fmt, future::Future, sync::Arc};

use tokio_util::sync::CancellationToken;

use crate::{BoxError, sharding::Sharding};

/// Something that runs as long as its manager does: a server, a loop, a controller of another library.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a runnable",
    label = "not a runnable",
    note = "a closure becomes one by `runnable(name, |stop| async move {{ … }})`; a controller adds itself when it is completed"
)]
#[async_trait::async_trait]
pub trait Runnable: Send + Sync + 'static {
    /// Its name in logs and errors.
    fn name(&self) -> String;

    /// Whether it runs on the leader only, as by default.
    fn needs_leader_election(&self) -> bool {
        true
    }

    /// Runs until `stop` is cancelled. An error ends the manager.
    async fn run(self: Arc<Self>, stop: CancellationToken) -> Result<(), BoxError>;
}

/// A runnable made from a function by [`runnable`].
pub struct FnRunnable<F> {
    name: String,
    needs_leader_election: bool,
    run: F,
}

/// Makes a runnable from a function that runs until the given token is cancelled.
pub fn runnable<F, Fut>(name: impl Into<String>, run: F) -> FnRunnable<F>
where
    F: Fn(CancellationToken) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), BoxError>> + Send,
{
    FnRunnable { name: name.into(), needs_leader_election: true, run }
}

impl<F> FnRunnable<F> {
    /// Runs on every replica, not on the leader only.
    #[must_use]
    pub fn without_leader_election(mut self) -> FnRunnable<F> {
        self.needs_leader_election = false;
        self
    }
}

#[async_trait::async_trait]
impl<F, Fut> Runnable for FnRunnable<F>
where
    F: Fn(CancellationToken) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), BoxError>> + Send,
{
    fn name(&self) -> String {
        self.name.clone()
    }

    fn needs_leader_election(&self) -> bool {
        self.needs_leader_election
    }

    async fn run(self: Arc<Self>, stop: CancellationToken) -> Result<(), BoxError> {
        (self.run)(stop).await
    }
}

impl<F> fmt::Debug for FnRunnable<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnRunnable").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Every replica takes part in sharing work.
#[async_trait::async_trait]
impl Runnable for Sharding {
    fn name(&self) -> String {
        format!("sharding {}", Sharding::name(self))
    }

    fn needs_leader_election(&self) -> bool {
        false
    }

    async fn run(self: Arc<Self>, stop: CancellationToken) -> Result<(), BoxError> {
        Ok(Sharding::run(&self, stop).await?)
    }
}
