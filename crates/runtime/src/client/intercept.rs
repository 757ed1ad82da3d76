//! Interceptors observe, refuse or fail calls: for tests, audits and quotas.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::{Call, Error};

/// Observes the calls of a client: those to the server, and those that the cache answers.
///
/// Interceptors are called in the order in which they were added, `after` in the opposite one.
#[async_trait]
pub trait Interceptor: Send + Sync + 'static {
    /// Called before the call. An error ends it: nothing is sent.
    async fn before(&self, call: &Call<'_>) -> Result<(), Error> {
        let _ = call;
        Ok(())
    }

    /// Called after the call, with the server's response (empty for a cached read and for the start of a watch) or the
    /// error. An error replaces the response: a test can lose the response to a write that succeeded.
    async fn after(&self, call: &Call<'_>, outcome: Result<&Bytes, &Error>) -> Result<(), Error> {
        let _ = (call, outcome);
        Ok(())
    }
}

/// So that a caller can share an interceptor with the client, and inspect it later.
#[async_trait]
impl<T: Interceptor + ?Sized> Interceptor for Arc<T> {
    async fn before(&self, call: &Call<'_>) -> Result<(), Error> {
        (**self).before(call).await
    }

    async fn after(&self, call: &Call<'_>, outcome: Result<&Bytes, &Error>) -> Result<(), Error> {
        (**self).after(call, outcome).await
    }
}
