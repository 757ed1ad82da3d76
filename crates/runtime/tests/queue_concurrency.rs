//! The queue under concurrency, and with a million keys.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use k1s_env::Env;
use k1s_runtime::queue::{AddOptions, LOW_PRIORITY, Queue, QueueOptions, RateLimiter};

const KEYS: usize = 50;
const PRODUCERS: u64 = 4;
const WORKERS: u64 = 8;
const ADDS: u64 = 5_000;

/// A random wait of up to a fifth of a millisecond, or none.
struct Random(Env);

impl RateLimiter<usize> for Random {
    fn when(&self, _: &usize) -> Duration {
        Duration::from_micros(self.0.random_below(200).saturating_sub(100))
    }
    fn forget(&self, _: &usize) {}
    fn retries(&self, _: &usize) -> u32 {
        0
    }
}

/// A reconciler's view of a key: the wanted generation and the observed one.
#[derive(Default)]
struct Target {
    wanted: AtomicU64,
    seen: AtomicU64,
    busy: AtomicBool,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_key_is_processed_concurrently_and_no_change_is_missed() {
    let env = Env::system();
    let options =
        QueueOptions { rate_limiter: Arc::new(Random(env.clone())), ..QueueOptions::named("concurrency") };
    let queue = Queue::new(&env, options);
    let targets: Arc<Vec<Target>> = Arc::new((0..KEYS).map(|_| Target::default()).collect());

    let producers: Vec<_> = (0..PRODUCERS)
        .map(|_| {
            let (env, queue, targets) = (env.clone(), queue.clone(), Arc::clone(&targets));
            env.clone().spawn("producer", async move {
                for add in 0..ADDS {
                    let key = env.random_below(KEYS as u64) as usize;
                    targets[key].wanted.fetch_add(1, SeqCst);
                    let priority = Some(env.random_below(3) as i32);
                    let rate_limited = env.random_below(4) == 0;
                    queue.add_with(AddOptions { priority, rate_limited, ..AddOptions::default() }, key);
                    if add % 64 == 0 {
                        env.yield_now().await;
                    }
                }
            })
        })
        .collect();
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| {
            let (env, queue, targets) = (env.clone(), queue.clone(), Arc::clone(&targets));
            env.clone().spawn("worker", async move {
                loop {
                    // Some workers time out and wait again.
                    let next = if worker % 4 == 0 {
                        match env.timeout(Duration::from_micros(50), queue.next()).await {
                            Ok(next) => next,
                            Err(_) => continue,
                        }
                    } else {
                        queue.next().await
                    };
                    let Some(item) = next else { return };
                    let target = &targets[*item.key()];
                    assert!(!target.busy.swap(true, SeqCst), "{item:?} is processed twice concurrently");
                    target.seen.store(target.wanted.load(SeqCst), SeqCst);
                    if env.random_below(2) == 0 {
                        env.yield_now().await;
                    }
                    target.busy.store(false, SeqCst);
                }
            })
        })
        .collect();

    for producer in producers {
        producer.await.unwrap();
    }
    queue.idle().await;
    for (key, target) in targets.iter().enumerate() {
        assert_eq!(target.seen.load(SeqCst), target.wanted.load(SeqCst), "key {key}");
    }
    assert!(queue.state().is_empty());
    queue.shut_down();
    for worker in workers {
        worker.await.unwrap();
    }
    assert!(env.tasks().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_shutdown_under_load_ends_every_worker() {
    for round in 0..50 {
        let env = Env::system();
        let queue = Queue::new(&env, QueueOptions::named("shutdown"));
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                let queue = queue.clone();
                env.spawn("worker", async move {
                    while let Some(item) = queue.next().await {
                        queue.add_after(*item.key(), Duration::from_micros(10));
                    }
                })
            })
            .collect();
        for key in 0..100 {
            queue.add(key);
        }
        env.yield_now().await;
        if round % 2 == 0 {
            queue.shut_down();
        } else {
            queue.shut_down_with_drain();
        }
        for worker in workers {
            worker.await.unwrap();
        }
        queue.idle().await;
        assert!(queue.state().is_empty());
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_worker_that_never_waits_lets_other_tasks_run() {
    let env = Env::system();
    let queue = Queue::new(&env, QueueOptions::named("greedy"));
    for key in 0..100_000 {
        queue.add(key);
    }
    queue.shut_down_with_drain();
    let worker = env.spawn("worker", {
        let queue = queue.clone();
        async move { while queue.next().await.is_some() {} }
    });
    let left = env.spawn("other", async move { queue.len() });
    assert!(left.await.unwrap() > 90_000);
    worker.await.unwrap();
}

#[test]
fn a_million_keys_come_out_in_order() {
    const N: u32 = 1_000_000;
    let (env, clock) = Env::simulated(1);
    let queue = Queue::new(&env, QueueOptions::named("million"));
    let low = || AddOptions { priority: Some(LOW_PRIORITY), ..AddOptions::default() };
    for key in 0..N {
        match key % 4 {
            0 => queue.add_with(low(), key),
            1 => queue.add(key),
            // Far from the order of due times.
            _ => queue.add_after(key, Duration::from_micros(u64::from(1 + key.wrapping_mul(7919) % N))),
        }
    }
    let state = queue.state();
    assert_eq!((state.ready, state.delayed), (500_000, 500_000));
    assert_eq!(queue.retain(|key| key % 4 != 3), 250_000);

    let mut last = [None, None];
    let mut low_in_between = 0;
    for _ in 0..100_000 {
        let item = queue.try_next().unwrap();
        let class = (*item.key() % 4) as usize;
        assert!(last[class] < Some(*item.key()), "first in, first out");
        last[class] = Some(*item.key());
        low_in_between += usize::from(class == 0);
    }
    assert_eq!(low_in_between, 10_000, "every tenth is the oldest");
    assert_eq!(queue.retain(|key| key % 4 == 2), 400_000);

    clock.advance(Duration::from_secs(2));
    assert_eq!(queue.len(), 250_000);
    let mut due = None;
    for _ in 0..100_000 {
        let item = queue.try_next().unwrap();
        assert!(due <= Some(item.queued_at()));
        due = Some(item.queued_at());
    }
    queue.shut_down();
    assert!(queue.state().is_empty());
}
