//! One call for all who wait for the same answer.

use std::{
    future::Future,
    sync::atomic::{AtomicU64, Ordering},
};

use tokio::sync::Mutex;

/// Callers who wait at the same time share one call. Nobody gets the answer of a call that began before they asked: it might
/// be older than what they know already.
#[derive(Debug)]
pub(crate) struct SharedCall<T> {
    asked: AtomicU64,
    /// The last answer, and how many had asked when its call began.
    last: Mutex<Option<(u64, T)>>,
}

impl<T> Default for SharedCall<T> {
    fn default() -> SharedCall<T> {
        SharedCall { asked: AtomicU64::new(0), last: Mutex::new(None) }
    }
}

impl<T: Clone> SharedCall<T> {
    /// The answer of a call that began after this one was asked for.
    pub(crate) async fn call<F: Future<Output = T>>(&self, work: impl FnOnce() -> F) -> T {
        let ticket = self.asked.fetch_add(1, Ordering::SeqCst);
        let mut last = self.last.lock().await;
        if let Some((covered, answer)) = &*last
            && *covered > ticket
        {
            return answer.clone();
        }
        let covered = self.asked.load(Ordering::SeqCst);
        let answer = work().await;
        *last = Some((covered, answer.clone()));
        answer
    }

    /// Does something while no call is under way.
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
    async fn those_who_wait_share_the_next_call_and_not_the_one_under_way() {
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
        // A caller that gives up leaves nothing behind.
        let mut given_up = Box::pin(ask());
        assert!((&mut given_up).now_or_never().is_none());
        drop(given_up);
        gate.add_permits(1);
        assert_eq!(ask().await, 3);
    }
}
