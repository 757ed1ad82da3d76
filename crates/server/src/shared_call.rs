//! Coalesces concurrent calls.

use std::{
    future::Future,
    sync::atomic::{AtomicU64, Ordering},
};

use tokio::sync::Mutex;

/// Coalesces concurrent calls: callers that wait at the same time share one. No caller gets the result of a call that began
/// before its own, which might be stale.
#[derive(Debug)]
pub(crate) struct SharedCall<T> {
    calls: AtomicU64,
    /// The last result, and the number of callers when its call began.
    last: Mutex<Option<(u64, T)>>,
}

impl<T> Default for SharedCall<T> {
    fn default() -> SharedCall<T> {
        SharedCall { calls: AtomicU64::new(0), last: Mutex::new(None) }
    }
}

impl<T: Clone> SharedCall<T> {
    /// The result of a call that begins after this one.
    pub(crate) async fn call<F: Future<Output = T>>(&self, work: impl FnOnce() -> F) -> T {
        let ticket = self.calls.fetch_add(1, Ordering::SeqCst);
        let mut last = self.last.lock().await;
        if let Some((covered, answer)) = &*last
            && *covered > ticket
        {
            return answer.clone();
        }
        let covered = self.calls.load(Ordering::SeqCst);
        let answer = work().await;
        *last = Some((covered, answer.clone()));
        answer
    }

    /// Runs something while no call is in progress.
    pub(crate) async fn alone<F: Future>(&self, work: impl FnOnce() -> F) -> F::Output {
        let _turn = self.last.lock().await;
        work().await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::{FutureExt as _, future::join_all};
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn waiting_callers_share_the_next_call_and_not_the_one_in_progress() {
        let calls = AtomicU64::new(0);
        let shared = SharedCall::default();
        let gate = Arc::new(Semaphore::new(0));
        let ask = || {
            shared.call(|| async {
                let number = calls.fetch_add(1, Ordering::SeqCst);
                gate.acquire().await.unwrap().forget();
                number
            })
        };
        let mut first = Box::pin(ask());
        assert!((&mut first).now_or_never().is_none());
        let mut others = Box::pin(join_all((0..100).map(|_| ask())));
        assert!((&mut others).now_or_never().is_none());
        gate.add_permits(2);
        assert_eq!(first.await, 0);
        assert_eq!(others.await, vec![1; 100]);
        // A cancelled caller does not block later ones.
        let mut given_up = Box::pin(ask());
        assert!((&mut given_up).now_or_never().is_none());
        drop(given_up);
        gate.add_permits(1);
        assert_eq!(ask().await, 3);
    }
}
