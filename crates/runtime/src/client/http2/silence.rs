//! How long a server may send nothing.

use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use k1s_env::{Env, Sleep};

use crate::BoxError;

/// An error that counts as a timeout.
fn silent(after: Duration) -> BoxError {
    let what = format!("the server sent nothing for {} s", after.as_secs_f64());
    io::Error::new(io::ErrorKind::TimedOut, what).into()
}

/// Limits the time to an answer, and between its parts.
pub(super) struct Silence {
    env: Env,
    limit: Duration,
    /// Since the last part.
    timer: Option<Sleep>,
}

impl Silence {
    pub(super) fn new(env: &Env, limit: Duration) -> Silence {
        Silence { env: env.clone(), limit, timer: None }
    }

    /// Waits for an answer.
    pub(super) async fn limit<T>(&self, answer: impl Future<Output = T>) -> Result<T, BoxError> {
        self.env.timeout(self.limit, answer).await.map_err(|_| silent(self.limit))
    }

    /// Fails if the next part has been waited for too long.
    pub(super) fn watch<T>(
        &mut self,
        cx: &mut Context<'_>,
        part: Poll<Option<Result<T, BoxError>>>,
    ) -> Poll<Option<Result<T, BoxError>>> {
        if part.is_ready() {
            self.timer = None;
            return part;
        }
        let timer = self.timer.get_or_insert_with(|| self.env.sleep(self.limit));
        Pin::new(timer).poll(cx).map(|()| Some(Err(silent(self.limit))))
    }
}

impl Clone for Silence {
    /// The same limit, for another answer.
    fn clone(&self) -> Silence {
        Silence::new(&self.env, self.limit)
    }
}

impl fmt::Debug for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Silence").field("limit", &self.limit).finish_non_exhaustive()
    }
}
