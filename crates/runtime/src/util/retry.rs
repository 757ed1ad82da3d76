//! Retries with backoff.

use std::{future::Future, time::Duration};

use k1s_env::Env;

use crate::client;

/// The pauses between attempts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// The pause after the first attempt.
    pub initial: Duration,
    /// The factor by which each pause is longer than the one before.
    pub factor: f64,
    /// The maximum fraction of a pause that is added to it at random.
    pub jitter: f64,
    /// Maximum number of attempts, including the first.
    pub steps: u32,
    /// Maximum pause.
    pub cap: Duration,
}

impl Backoff {
    /// For conflicts: client-go's `DefaultRetry`. Five attempts, 10 ms apart.
    pub const DEFAULT_RETRY: Backoff = Backoff {
        initial: Duration::from_millis(10),
        factor: 1.0,
        jitter: 0.1,
        steps: 5,
        cap: Duration::MAX,
    };

    /// For conflicts with many other clients: client-go's `DefaultBackoff`. Four attempts; 10, 50 and 250 ms apart.
    pub const DEFAULT_BACKOFF: Backoff = Backoff { factor: 5.0, steps: 4, ..Backoff::DEFAULT_RETRY };

    /// The pause after this many attempts.
    fn wait(&self, env: &Env, tried: u32) -> Duration {
        let exponent = i32::try_from(tried.saturating_sub(1)).unwrap_or(i32::MAX);
        let grown = self.initial.as_secs_f64() * self.factor.powi(exponent);
        let jittered = grown * (1.0 + self.jitter.max(0.0) * env.random_f64());
        Duration::try_from_secs_f64(jittered).unwrap_or(Duration::MAX).min(self.cap)
    }
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff::DEFAULT_RETRY
    }
}

/// An error that may be a conflict: the object has changed in the meantime.
pub trait Conflict {
    /// Whether it is a conflict that a retry may resolve. Those of server-side apply are not: another manager owns a field,
    /// and will the next time.
    fn is_conflict(&self) -> bool;
}

impl Conflict for client::Error {
    fn is_conflict(&self) -> bool {
        client::Error::is_conflict(self) && !self.is_apply_conflict()
    }
}

impl Conflict for kube::Error {
    fn is_conflict(&self) -> bool {
        matches!(self, kube::Error::Api(status) if status.reason == "Conflict" && !client::is_field_conflict(status))
    }
}

/// Retries while the error is a conflict. Each attempt has to read the object again, so read, change and write belong in
/// the closure. Read from the server there ([`Client::live`](client::Client::live)): a conflict means that the read was
/// stale.
///
/// ```
/// # use k1s_runtime::{ObjectKey, client::{Client, Error}, util::{Backoff, retry_on_conflict}};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # async fn example(client: Client, key: ObjectKey) -> Result<(), Error> {
/// retry_on_conflict(client.env(), Backoff::DEFAULT_RETRY, async || {
///     let mut counter: ConfigMap = client.live().get(&key).await?;
///     counter.data.get_or_insert_default().insert("seen".into(), "yes".into());
///     client.update(&counter).await
/// })
/// .await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The last error, when all attempts are used up; or the first that is not a conflict.
pub async fn retry_on_conflict<T, E: Conflict, F: Future<Output = Result<T, E>>>(
    env: &Env,
    backoff: Backoff,
    attempt: impl FnMut() -> F,
) -> Result<T, E> {
    retry_on_error(env, backoff, E::is_conflict, attempt).await
}

/// Retries while `is_retriable` accepts the error.
///
/// # Errors
/// The last error, when all attempts are used up; or the first that is not retriable.
pub async fn retry_on_error<T, E, F: Future<Output = Result<T, E>>>(
    env: &Env,
    backoff: Backoff,
    is_retriable: impl Fn(&E) -> bool,
    mut attempt: impl FnMut() -> F,
) -> Result<T, E> {
    let mut tried = 0;
    loop {
        let error = match attempt().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        tried += 1;
        if tried >= backoff.steps || !is_retriable(&error) {
            return Err(error);
        }
        env.sleep(backoff.wait(env, tried)).await;
    }
}
