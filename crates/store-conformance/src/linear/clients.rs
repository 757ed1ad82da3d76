//! Clients that race on a few keys.

use std::{
    fmt::Debug,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use k1s_env::Env;
use k1s_store::{Error, KeyValue, Precondition, Result, Revision, Store, Txn, WatchRequest};

use super::{Answer, Call, Request, check_register, check_revisions, project};
use crate::{Backend, probe::Probe, support::Dice, watched::History};

const KEYS: usize = 4;

/// Maximum tries of a read while the store is not available.
const TRIES: usize = 100;

/// What a read returns once the store is available: its connections may just break.
async fn available<T: Debug, F: Future<Output = Result<T>>>(read: impl Fn() -> F) -> T {
    for _ in 1..TRIES {
        match read().await {
            Err(Error::Unavailable { .. }) => {}
            other => return other.expect("the store is open"),
        }
    }
    read().await.expect("the store becomes available")
}

/// Runs `clients` that each do `ops` random operations concurrently on a few keys, and checks that their
/// results are linearizable.
///
/// The requests of each client are determined by `seed` and the results it received; the interleaving is not.
///
/// # Panics
/// If they are not: with the seed and the operation that cannot be explained.
pub async fn linearizability(backend: &dyn Backend, seed: u64, clients: usize, ops: usize) {
    let fresh = backend.fresh().await;
    let store = fresh.store();
    let env = Env::system();
    let base = available(|| store.revision()).await;
    let request = WatchRequest::prefix("").after(base).previous(true);
    let mut everything =
        Probe::new(available(|| store.watch(request.clone())).await, backend.profile().patience);

    let clock = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let client = Client {
                env: env.clone(),
                store: store.clone(),
                clock: clock.clone(),
                dice: Dice::of(seed, client),
                client,
                seen: Vec::new(),
            };
            env.spawn("client", client.run(ops))
        })
        .collect();
    let mut calls = Vec::new();
    for task in tasks {
        match task.await {
            Ok(of_one) => calls.extend(of_one),
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }

    // The history up to here contains everything that any client can have seen. A write with an unknown
    // outcome may still happen later, after the last read.
    let newest = available(|| store.revision()).await;
    let (changes, newest) = everything.mark(newest).await;
    let history = History { changes, newest, compacted: Revision::default() };
    if let Err(violation) = check_revisions(&calls, &history, base) {
        panic!("seed {seed}, {clients} clients, {ops} operations: by revisions, {violation}");
    }
    let keys: Vec<_> = (0..KEYS).map(key).collect();
    for (key, calls) in project(&calls, &keys) {
        if let Err(violation) = check_register(&calls) {
            panic!("seed {seed}, {clients} clients, {ops} operations: by search, key {key:?}: {violation}");
        }
    }
}

fn key(number: usize) -> Bytes {
    format!("/k/{number}").into()
}

struct Client {
    env: Env,
    store: Arc<dyn Store>,
    clock: Arc<AtomicU64>,
    dice: Dice,
    client: usize,
    /// The last entry it saw of each key, on which its updates are based.
    seen: Vec<Option<KeyValue>>,
}

impl Client {
    async fn run(mut self, ops: usize) -> Vec<Call> {
        self.seen = vec![None; KEYS];
        let mut calls = Vec::with_capacity(ops);
        for n in 0..ops {
            let request = self.choose(n);
            let called = self.clock.fetch_add(1, Ordering::SeqCst);
            let answer = request.ask(&*self.store).await;
            let returned = self.clock.fetch_add(1, Ordering::SeqCst);
            self.learn(&request, &answer);
            calls.push(Call { client: self.client, called, returned, request, answer });
            if self.dice.chance(60) {
                self.env.yield_now().await;
            }
        }
        calls
    }

    fn choose(&self, n: usize) -> Request {
        let number = self.dice.below(KEYS);
        let value = Bytes::from(format!("c{}-{n}", self.client));
        match self.dice.below(100) {
            0..25 => Request::Get(key(number)),
            25..32 => Request::Range("/k/".into()),
            32..80 => Request::Txn(self.op(Txn::new(), number, value)),
            _ => {
                let first = self.op(Txn::new(), number, value.clone());
                Request::Txn(self.op(first, (number + 1) % KEYS, value))
            }
        }
    }

    fn op(&self, txn: Txn, number: usize, value: Bytes) -> Txn {
        let known = self.seen[number].as_ref().map(|entry| entry.revision);
        let expected = known.map_or(Precondition::Absent, Precondition::Revision);
        let key = key(number);
        match self.dice.below(100) {
            0..20 => txn.create(key, value),
            20..35 => txn.put(key, value, Precondition::Any),
            35..65 => txn.put(key, value, expected),
            65..75 => txn.delete(key, expected),
            75..85 => txn.delete(key, Precondition::Any),
            85..92 => txn.put(key, value, Precondition::Exists),
            _ => txn.check(key, expected),
        }
    }

    fn learn(&mut self, request: &Request, answer: &Answer) {
        for (number, seen) in self.seen.iter_mut().enumerate() {
            let key = key(number);
            match (request, answer) {
                (Request::Get(asked), Answer::Got(got)) if *asked == key => seen.clone_from(&got.entry),
                (_, Answer::Ranged(ranged)) => {
                    *seen = ranged.entries.iter().find(|entry| entry.key == key).cloned()
                }
                (_, Answer::Refused(conflict)) if conflict.key == key => seen.clone_from(&conflict.current),
                (Request::Txn(txn), Answer::Written(revision)) => {
                    for op in txn.ops().iter().filter(|op| op.key == key) {
                        match &op.action {
                            k1s_store::Action::Put(value) => {
                                let (key, value) = (key.clone(), value.clone());
                                *seen = Some(KeyValue { key, value, revision: *revision });
                            }
                            k1s_store::Action::Delete => *seen = None,
                            k1s_store::Action::Check => {}
                        }
                    }
                }
                _ => {}
            }
        }
    }
}
