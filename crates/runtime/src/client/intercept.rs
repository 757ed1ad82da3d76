//! Seeing, refusing and failing calls: for tests, audits and quotas.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::{Call, Error};

/// Sees the calls of a client: those to the server, and those that the cache answers.
///
/// Interceptors are called in the order in which they were added, `after` in the opposite one.
#[async_trait]
pub trait Interceptor: Send + Sync + 'static {
    /// Before the call. An error ends it: nothing is sent.
    async fn before(&self, call: &Call<'_>) -> Result<(), Error> {
        let _ = call;
        Ok(())
    }

    /// After the call, with the server's answer (empty for a cached read and for the start of a watch) or the error.
    /// An error takes the place of the answer: how a test loses the answer of a write that happened.
    async fn after(&self, call: &Call<'_>, outcome: Result<&Bytes, &Error>) -> Result<(), Error> {
        let _ = (call, outcome);
        Ok(())
    }
}

/// For who wants to keep a hand on it.
#[async_trait]
impl<T: Interceptor + ?Sized> Interceptor for Arc<T> {
    async fn before(&self, call: &Call<'_>) -> Result<(), Error> {
        (**self).before(call).await
    }

    async fn after(&self, call: &Call<'_>, outcome: Result<&Bytes, &Error>) -> Result<(), Error> {
        (**self).after(call, outcome).await
    }
}
