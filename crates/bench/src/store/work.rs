//! The workloads.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use bytes::Bytes;
use k1s_env::{Env, Task};
use k1s_store::{Precondition, Range, Store, Txn, WatchItem, WatchRequest};

use super::backend::Writer;
use crate::{Failure, report::quantile};

const PREFIX: &str = "/registry/example.dev/widgets/";

fn key(number: u64) -> String {
    format!("{PREFIX}default/widget-{number:08}")
}

/// A small generator of its own: drawing from `Env` would be measured too.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 31)
    }
}

/// Values of 2 KB of JSON that compress to about half.
struct Values(Vec<Bytes>);

impl Values {
    fn new() -> Self {
        let value = |number: u64| {
            let mut numbers = Numbers(number);
            let mut text = String::from(r#"{"apiVersion":"example.dev/v1","kind":"Widget","spec":{"#);
            while text.len() < 2000 {
                let (name, value) = (numbers.next() % 100, numbers.next());
                text.push_str(&format!(r#""field{name:02}":"{value:016x}","#));
            }
            text.truncate(2045);
            text.push_str("}}\n");
            Bytes::from(text)
        };
        Self((0..64).map(value).collect())
    }

    /// An unshared value, as an encoder would make it: shared ones would cost no memory.
    fn get(&self, number: u64) -> Bytes {
        Bytes::copy_from_slice(&self.0[(number % self.0.len() as u64) as usize])
    }
}

/// Writes objects 0 to `size`, not in the order of their keys. The writing tasks allocate the values, as they do later: memory
/// is freed to the arena it came from.
pub(super) async fn fill(env: &Env, writer: &Writer, size: u64) -> Result<(), Failure> {
    const TOGETHER: u64 = 100;
    let values = Arc::new(Values::new());
    let mut under_way = std::collections::VecDeque::<Task<k1s_store::Result<_>>>::new();
    for first in (0..size).step_by(TOGETHER as usize) {
        if under_way.len() >= 16
            && let Some(oldest) = under_way.pop_front()
        {
            oldest.await??;
        }
        let (writer, values) = (writer.clone(), values.clone());
        under_way.push_back(env.spawn("fill", async move {
            // A step that has no divisor in common with a round number visits every object once.
            let numbers =
                (first..(first + TOGETHER).min(size)).map(|number| number.wrapping_mul(7919) % size);
            writer.fill(numbers.map(|number| (key(number), values.get(number))).collect()).await
        }));
    }
    for rest in under_way {
        rest.await??;
    }
    Ok(())
}

/// Runs `clients` copies of a loop for some time; the iterations per second of all of them.
async fn rate<F>(
    env: &Env,
    clients: u64,
    seconds: f64,
    client: impl Fn(u64, Arc<AtomicBool>) -> F,
) -> Result<f64, Failure>
where
    F: Future<Output = Result<u64, Failure>> + Send + 'static,
{
    let stop = Arc::new(AtomicBool::new(false));
    let began = env.now();
    let clients: Vec<_> =
        (0..clients).map(|number| env.spawn("client", client(number, stop.clone()))).collect();
    env.sleep(std::time::Duration::from_secs_f64(seconds)).await;
    stop.store(true, Ordering::Relaxed);
    let mut rounds = 0;
    for client in clients {
        rounds += client.await??;
    }
    Ok(rounds as f64 / (env.now() - began).as_secs_f64())
}

/// Writes to random objects among `size`.
pub(super) async fn puts(
    env: &Env,
    writer: &Writer,
    writers: u64,
    size: u64,
    seconds: f64,
) -> Result<f64, Failure> {
    let values = Arc::new(Values::new());
    rate(env, writers, seconds, |id, stop| {
        let (writer, values) = (writer.clone(), values.clone());
        async move {
            let mut numbers = Numbers(id);
            let mut rounds = 0;
            while !stop.load(Ordering::Relaxed) {
                let number = numbers.next();
                writer.put(key(number % size), values.get(number >> 20)).await?;
                rounds += 1;
            }
            Ok(rounds)
        }
    })
    .await
}

/// Writes beside a reader that lists 10,000 objects over and over.
pub(super) async fn puts_beside_lists(
    env: &Env,
    store: &Arc<dyn Store>,
    size: u64,
    seconds: f64,
) -> Result<f64, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let reader = {
        let (store, stop) = (store.clone(), stop.clone());
        env.spawn("lister", async move {
            while !stop.load(Ordering::Relaxed) {
                store.range(Range::prefix(PREFIX).limit(10_000)).await?;
            }
            Ok::<_, Failure>(())
        })
    };
    let writes = puts(env, &Writer::Store(store.clone()), 1, size, seconds).await;
    stop.store(true, Ordering::Relaxed);
    reader.await??;
    writes
}

/// Reads random objects among `size`.
pub(super) async fn gets(
    env: &Env,
    store: &Arc<dyn Store>,
    readers: u64,
    size: u64,
    seconds: f64,
) -> Result<f64, Failure> {
    rate(env, readers, seconds, |reader, stop| {
        let store = store.clone();
        async move {
            let mut numbers = Numbers(reader);
            let mut rounds = 0;
            while !stop.load(Ordering::Relaxed) {
                let key = key(numbers.next() % size);
                if store.get(key.as_bytes(), None).await?.entry.is_none() {
                    return Err(Failure(format!("{key} is not there")));
                }
                rounds += 1;
            }
            Ok(rounds)
        }
    })
    .await
}

/// The median of the milliseconds it takes to list `limit` objects.
pub(super) async fn range(env: &Env, store: &Arc<dyn Store>, limit: usize) -> Result<f64, Failure> {
    let mut times = Vec::new();
    for _ in 0..11 {
        let began = env.now();
        let listed = store.range(Range::prefix(PREFIX).limit(limit)).await?.entries.len();
        times.push((env.now() - began).as_secs_f64() * 1e3);
        if listed != limit {
            return Err(Failure(format!("listed {listed} objects instead of {limit}")));
        }
    }
    Ok(quantile(&mut times, 0.5))
}

/// Writes seen by every one of many watches; deliveries per second.
pub(super) async fn fan_out(
    env: &Env,
    store: &Arc<dyn Store>,
    watches: u64,
    seconds: f64,
) -> Result<f64, Failure> {
    let delivered = Arc::new(AtomicU64::new(0));
    let last = Arc::new(AtomicU64::new(u64::MAX));
    let mut readers = Vec::new();
    for _ in 0..watches {
        let mut watch = store.watch(WatchRequest::prefix(PREFIX)).await?;
        let (delivered, last) = (delivered.clone(), last.clone());
        readers.push(env.spawn("watch", async move {
            let mut seen = 0;
            while let Some(item) = watch.next().await {
                if let WatchItem::Change(change) = item? {
                    seen += 1;
                    if change.revision().get() >= last.load(Ordering::Acquire) {
                        break;
                    }
                }
            }
            delivered.fetch_add(seen, Ordering::Relaxed);
            Ok::<_, Failure>(())
        }));
    }
    let values = Values::new();
    let began = env.now();
    let mut number = 0;
    while (env.now() - began).as_secs_f64() < seconds / 2.0 {
        // A typical number of writers: the watches are what is measured.
        let batch: Vec<_> = (0..16)
            .map(|_| {
                number += 1;
                let txn = Txn::new().put(key(number % 10_000), values.get(number), Precondition::Any);
                let store = store.clone();
                env.spawn("write", async move { store.txn(txn).await })
            })
            .collect();
        for write in batch {
            write.await??;
        }
    }
    // Watchers wait up to the next write; its revision is published before it is made.
    let newest = store.revision().await?;
    last.store(newest.get() + 1, Ordering::Release);
    store.txn(Txn::new().put(key(0), values.get(0), Precondition::Any)).await?;
    for reader in readers {
        reader.await??;
    }
    Ok(delivered.load(Ordering::Relaxed) as f64 / (env.now() - began).as_secs_f64())
}
