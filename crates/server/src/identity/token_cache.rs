//! What is remembered of tokens that were checked at a price, and checks that are under way.

use std::{
    collections::HashMap,
    future::Future,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use k1s_env::{Env, Instant};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

/// Maximum number of tokens that are remembered.
const MAX_REMEMBERED: usize = 4096;

type Key = [u8; 32];

/// A call under way, and its number.
type Running<V> = (u64, Shared<BoxFuture<'static, V>>);

/// Answers by token and audiences, for a time. Callers that ask for one token at the same time share a call.
///
/// Tokens are not kept, only digests with a random salt: nobody can prepare tokens that meet in one place of a table.
pub(super) struct TokenCache<V> {
    env: Env,
    ttl: Duration,
    salt: [u8; 16],
    known: Mutex<HashMap<Key, (V, Instant)>>,
    calls: Mutex<HashMap<Key, Running<V>>>,
    number: AtomicU64,
}

impl<V: Clone + Send + Sync + 'static> TokenCache<V> {
    /// Remembers answers for this time.
    pub(super) fn new(env: &Env, ttl: Duration) -> TokenCache<V> {
        let mut salt = [0; 16];
        env.fill_random(&mut salt);
        TokenCache {
            env: env.clone(),
            ttl,
            salt,
            known: Mutex::default(),
            calls: Mutex::default(),
            number: AtomicU64::new(0),
        }
    }

    fn key(&self, token: &str, audiences: &[String]) -> Key {
        let mut hash = Sha256::new();
        hash.update(self.salt);
        for text in std::iter::once(token).chain(audiences.iter().map(String::as_str)) {
            hash.update(text.len().to_le_bytes());
            hash.update(text);
        }
        hash.finalize().into()
    }

    /// The answer for a token: a remembered one, that of a call under way, or of a new one. `keep`: which are remembered.
    pub(super) async fn get<F>(
        &self,
        token: &str,
        audiences: &[String],
        call: impl FnOnce() -> F,
        keep: impl Fn(&V) -> bool,
    ) -> V
    where
        F: Future<Output = V> + Send + 'static,
    {
        let key = self.key(token, audiences);
        if let Some((answer, until)) = self.known.lock().get(&key)
            && self.env.now() < *until
        {
            return answer.clone();
        }
        let (number, shared) = {
            let mut calls = self.calls.lock();
            calls
                .entry(key)
                .or_insert_with(|| (self.number.fetch_add(1, Ordering::Relaxed), call().boxed().shared()))
                .clone()
        };
        let _done = Done { cache: self, key, number };
        let answer = shared.await;
        if keep(&answer) && !self.ttl.is_zero() {
            self.remember(key, &answer);
        }
        answer
    }

    fn remember(&self, key: Key, answer: &V) {
        let now = self.env.now();
        let mut known = self.known.lock();
        if known.len() >= MAX_REMEMBERED {
            known.retain(|_, (_, until)| now < *until);
            if known.len() >= MAX_REMEMBERED {
                known.clear();
            }
        }
        known.entry(key).or_insert_with(|| (answer.clone(), now + self.ttl)).0 = answer.clone();
    }
}

/// Forgets a call when its first caller is done, or gone: one that nobody polls any more must not be joined.
struct Done<'a, V> {
    cache: &'a TokenCache<V>,
    key: Key,
    number: u64,
}

impl<V> Drop for Done<'_, V> {
    fn drop(&mut self) {
        let mut calls = self.cache.calls.lock();
        if calls.get(&self.key).is_some_and(|(number, _)| *number == self.number) {
            calls.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::future::join_all;
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn answers_are_remembered_for_a_time_and_concurrent_callers_share_one_call() {
        let (env, clock) = Env::simulated(1);
        let cache: TokenCache<Result<u64, String>> = TokenCache::new(&env, Duration::from_secs(10));
        let (calls, gate) = (Arc::new(AtomicU64::new(0)), Arc::new(Semaphore::new(0)));
        let ask = |token: &'static str, audiences: &'static [&'static str], good: bool| {
            let audiences: Vec<String> = audiences.iter().map(|one| (*one).to_owned()).collect();
            let (calls, gate, cache) = (calls.clone(), gate.clone(), &cache);
            async move {
                let call = || async move {
                    gate.acquire().await.unwrap().forget();
                    let number = calls.fetch_add(1, Ordering::SeqCst);
                    if good { Ok(number) } else { Err(number.to_string()) }
                };
                cache.get(token, &audiences, call, Result::is_ok).await
            }
        };
        let mut many = Box::pin(join_all((0..50).map(|_| ask("a", &[], true))));
        assert!((&mut many).now_or_never().is_none());
        gate.add_permits(1);
        assert_eq!(many.await, vec![Ok(0); 50]);
        assert_eq!(ask("a", &[], true).await, Ok(0));
        gate.add_permits(100);
        // Another token, and other audiences, are other questions, however they are cut.
        assert_eq!(ask("b", &[], true).await, Ok(1));
        assert_eq!(ask("a", &["b"], true).await, Ok(2));
        assert_eq!(ask("ab", &[], true).await, Ok(3));
        clock.advance(Duration::from_secs(11));
        assert_eq!(ask("a", &[], true).await, Ok(4));
        // Failures are not remembered.
        assert_eq!(ask("c", &[], false).await, Err("5".into()));
        assert_eq!(ask("c", &[], true).await, Ok(6));
        // A caller that is gone takes nobody with it.
        let mut first = Box::pin(ask("d", &[], true));
        gate.forget_permits(usize::MAX);
        assert!((&mut first).now_or_never().is_none());
        drop(first);
        gate.add_permits(1);
        assert_eq!(ask("d", &[], true).await, Ok(7));
    }
}
