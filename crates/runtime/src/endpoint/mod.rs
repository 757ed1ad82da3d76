//! Stub until the real one is merged.
use std::{future::Future, net::SocketAddr};
use k1s_env::{Env, Task};
use tokio_util::sync::CancellationToken;
use crate::{BoxError, Metrics};
/// x
#[derive(Default, Debug, Clone)]
pub struct Checks;
impl Checks {
    /// x
    pub fn add<F, Fut>(&self, _: &str, _: F) where F: Fn() -> Fut + Send + Sync + 'static, Fut: Future<Output = Result<(), String>> + Send + 'static {}
}
/// x
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct ServeError;
/// x
#[derive(Debug)]
pub struct Server;
impl Server {
    /// x
    pub fn address(&self) -> SocketAddr { SocketAddr::from(([0,0,0,0],0)) }
    /// x
    pub fn run(self, _: CancellationToken) -> Task<Result<(), BoxError>> { Env::system().spawn("x", async { Ok(()) }) }
}
/// x
pub async fn health(_: &Env, _: &str, _: &Checks, _: &Checks) -> Result<Option<Server>, ServeError> { Ok(None) }
/// x
pub async fn metrics(_: &Env, _: &str, _: &Metrics) -> Result<Option<Server>, ServeError> { Ok(None) }
