//! Trying again.

use std::{future::Future, time::Duration};

use k1s_env::Env;

use crate::client;

/// How long to wait between tries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// After the first try.
    pub initial: Duration,
    /// By what each wait is longer than the one before.
    pub factor: f64,
    /// By up to which part of itself a wait is longer, at random.
    pub jitter: f64,
    /// How many tries there are, the first included.
    pub steps: u32,
    /// No wait is longer than this.
    pub cap: Duration,
}

impl Backoff {
    /// For conflicts: client-go's `DefaultRetry`. Five tries, 10 ms apart.
    pub const DEFAULT_RETRY: Backoff = Backoff {
        initial: Duration::from_millis(10),
        factor: 1.0,
        jitter: 0.1,
        steps: 5,
        cap: Duration::MAX,
    };

    /// For conflicts with many others: client-go's `DefaultBackoff`. Four tries; 10, 50 and 250 ms apart.
    pub const DEFAULT_BACKOFF: Backoff = Backoff { factor: 5.0, steps: 4, ..Backoff::DEFAULT_RETRY };

    /// The wait after so many tries.
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

/// An error that may say that the object has changed in the meantime.
pub trait Conflict {
    /// Whether it does.
    fn is_conflict(&self) -> bool;
}

impl Conflict for client::Error {
    fn is_conflict(&self) -> bool {
        client::Error::is_conflict(self)
    }
}

impl Conflict for kube::Error {
    fn is_conflict(&self) -> bool {
        matches!(self, kube::Error::Api(status) if status.reason == "Conflict")
    }
}

/// Tries again while the error is a conflict. Each try has to read the object anew: read, change and write belong into
/// the closure. Read from the server there ([`Client::live`](client::Client::live)): who conflicts has read what is old.
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
/// The last one, when all tries are used up; or the first that is no conflict.
pub async fn retry_on_conflict<T, E: Conflict, F: Future<Output = Result<T, E>>>(
    env: &Env,
    backoff: Backoff,
    attempt: impl FnMut() -> F,
) -> Result<T, E> {
    retry_on_error(env, backoff, E::is_conflict, attempt).await
}

/// Tries again while the error is one that may pass.
///
/// # Errors
/// The last one, when all tries are used up; or the first that will not pass.
pub async fn retry_on_error<T, E, F: Future<Output = Result<T, E>>>(
    env: &Env,
    backoff: Backoff,
    may_pass: impl Fn(&E) -> bool,
    mut attempt: impl FnMut() -> F,
) -> Result<T, E> {
    let mut tried = 0;
    loop {
        let error = match attempt().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        tried += 1;
        if tried >= backoff.steps || !may_pass(&error) {
            return Err(error);
        }
        env.sleep(backoff.wait(env, tried)).await;
    }
}
