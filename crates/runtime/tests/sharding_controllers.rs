//! Sharded controllers on a virtual clock, against an in-process server.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod line;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use k1s_env::Task;
use k1s_runtime::{
    Action, BoxError, Client, Context, Controller, Event, Manager, ManagerError, ManagerOptions, ObjectKey,
    Predicate, Request,
    client::ClientOptions,
    kind, reconcile,
    sharding::{ShardToken, Sharding, ShardingOptions},
};
use k1s_server::ApiServer;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::ObjectMeta;
use line::{Line, Network, Time};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

const SECOND: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(15);
const RENEW: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(2);
const OBJECTS: usize = 30;

/// What a replica's reconciles did.
#[derive(Default)]
struct Record {
    counts: Mutex<BTreeMap<Request, usize>>,
    /// Runs wait for it while `blocked`.
    blocked: Mutex<bool>,
    unblock: Notify,
    last: Mutex<Option<(ShardToken, Client)>>,
}

impl Record {
    fn counts(&self) -> BTreeMap<Request, usize> {
        self.counts.lock().clone()
    }

    fn keys(&self) -> BTreeSet<Request> {
        self.counts.lock().keys().cloned().collect()
    }
}

struct Replica {
    record: Arc<Record>,
    sharding: Sharding,
    line: Line,
    controller: Controller,
    stop: CancellationToken,
    task: Task<Result<(), ManagerError>>,
}

struct World {
    time: Time,
    server: ApiServer,
    client: Client,
}

impl World {
    /// A server with some objects.
    async fn new(seed: u64) -> World {
        let (time, server) = (Time::new(seed), line::server().await);
        let kube = kube::Client::new(server.clone(), "default");
        let client = Client::new(kube, ClientOptions { env: time.env.clone(), ..Default::default() });
        let world = World { time, server, client };
        for number in 0..OBJECTS {
            world.create(&format!("object-{number}")).await;
        }
        world
    }

    async fn create(&self, name: &str) {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some("default".to_owned()),
            ..ObjectMeta::default()
        };
        self.client.create(&ConfigMap { metadata, ..ConfigMap::default() }).await.unwrap();
    }

    fn start(&self, identity: &str) -> Replica {
        let line = Line::new(&self.time.env, &self.server);
        let mut options = ManagerOptions::local();
        options.env = Some(self.time.env.clone());
        let manager = Manager::new(line.client(), options).unwrap();
        let mut options = ShardingOptions::new("fleet", "default");
        options.identity = Some(identity.to_owned());
        options.drain_timeout = 20 * SECOND;
        let sharding = Sharding::new(line.client(), self.time.env.clone(), options).unwrap();
        manager.add(sharding.clone());
        let record = Arc::new(Record::default());
        let controller = Controller::managed_by(&manager)
            .for_(kind::<ConfigMap>().with_predicate(Predicate::new(|event: &Event<ConfigMap>| {
                // The server's own.
                event.key().name() != "kube-root-ca.crt"
            })))
            .owns(kind::<Secret>())
            .sharded_by(&sharding)
            .build(reconcile::with_state((manager.client(), Arc::clone(&record)), reconcile_one))
            .unwrap();
        let stop = CancellationToken::new();
        let running = (manager, stop.clone());
        let task = self.time.env.spawn("manager", async move { running.0.start(running.1).await });
        Replica { record, sharding, line, controller, stop, task }
    }
}

async fn reconcile_one(
    (client, record): (Client, Arc<Record>),
    request: Request,
    context: Context,
) -> Result<Action, BoxError> {
    let shard = context.shard().ok_or("no shard")?.clone();
    *record.last.lock() = Some((shard.clone(), client.intercept(shard)));
    while *record.blocked.lock() {
        record.unblock.notified().await;
    }
    *record.counts.lock().entry(request).or_default() += 1;
    Ok(Action::done())
}

fn all_objects() -> BTreeSet<Request> {
    (0..OBJECTS).map(|number| ObjectKey::namespaced("default", format!("object-{number}"))).collect()
}

#[tokio::test]
async fn replicas_share_the_objects_of_a_controller() {
    let world = World::new(1).await;
    let one = world.start("one");
    world.time.pass(3 * SECOND).await;
    assert_eq!(one.record.counts(), all_objects().into_iter().map(|key| (key, 1)).collect());

    // The second one gets its share, and only that. Nothing is reconciled twice by the first one.
    let two = world.start("two");
    world.time.pass(10 * SECOND).await;
    let (share, before) = (two.record.keys(), one.record.counts());
    assert!(!share.is_empty() && share.len() < OBJECTS, "{share:?}");
    assert!(two.record.counts().values().all(|count| *count == 1));
    assert!(before.values().all(|count| *count == 1));
    for key in all_objects() {
        let is_twos = two.sharding.owner_of(&key.to_string()).is_some();
        assert_eq!(
            (share.contains(&key), one.sharding.owner_of(&key.to_string()).is_none()),
            (is_twos, is_twos)
        );
    }

    // Events go to the owner.
    world.create("later-1").await;
    world.create("later-2").await;
    world.create("later-3").await;
    world.time.pass(SECOND).await;
    for key in ["later-1", "later-2", "later-3"].map(|name| ObjectKey::namespaced("default", name)) {
        let owners = [&one, &two].map(|replica| replica.record.counts().contains_key(&key));
        let expected = [&one, &two].map(|replica| replica.sharding.owner_of(&key.to_string()).is_some());
        assert_eq!(owners, expected);
        assert_eq!(owners.iter().filter(|owns| **owns).count(), 1);
    }

    // The second one leaves, and the first one reconciles its objects again, and no others.
    let mut expected = one.record.counts();
    for key in two.record.keys() {
        *expected.entry(key).or_default() += 1;
    }
    two.stop.cancel();
    world.time.until(two.task).await.unwrap().unwrap();
    world.time.pass(3 * RETRY).await;
    assert_eq!(one.record.counts(), expected);
    one.stop.cancel();
    world.time.until(one.task).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_running_reconcile_finishes_before_its_shard_moves() {
    let world = World::new(2).await;
    let (one, two) = (world.start("one"), world.start("two"));
    world.time.pass(10 * SECOND).await;
    let moves = two.record.keys();
    assert!(moves.len() > 2, "{moves:?}");
    two.stop.cancel();
    world.time.until(two.task).await.unwrap().unwrap();
    world.time.pass(3 * RETRY).await;
    assert_eq!(one.sharding.owned().len(), 64);

    // A reconcile of an object that will move is in flight, another one waits.
    *one.record.blocked.lock() = true;
    let (running, waiting) = (moves.first().unwrap(), moves.last().unwrap());
    one.controller.queue().add(running.clone());
    world.time.pass(SECOND).await;
    one.controller.queue().add(running.clone());
    one.controller.queue().add(waiting.clone());
    let before = one.record.counts();
    let two = world.start("two");
    world.time.pass(3 * RETRY).await;
    assert!(one.controller.queue().waiting(9).ready.is_empty(), "requests of other shards are dropped");
    assert!(two.record.keys().contains(waiting), "its shard has moved");
    assert!(!two.record.keys().contains(running), "its shard waits for the reconcile");
    assert!(one.sharding.owner_of(&running.to_string()).is_none());
    let (token, _) = one.record.last.lock().clone().unwrap();
    assert!(token.is_valid());

    *one.record.blocked.lock() = false;
    one.record.unblock.notify_waiters();
    world.time.pass(3 * RETRY).await;
    assert!(two.record.keys().contains(running));
    assert!(!token.is_valid());
    assert_eq!(one.record.counts()[running], before[running] + 1, "it is not queued again");
    assert_eq!(one.record.counts()[waiting], before[waiting]);
}

#[tokio::test]
async fn a_reconcile_that_does_not_stop_is_cancelled_and_its_writes_are_refused() {
    let world = World::new(3).await;
    let one = world.start("one");
    world.time.pass(3 * SECOND).await;
    *one.record.blocked.lock() = true;
    world.create("stuck").await;
    world.time.pass(SECOND).await;
    let (token, client) = one.record.last.lock().clone().unwrap();
    assert_eq!(one.controller.queue().processing().len(), 1);
    // Cut off: the reconcile is cancelled at the renew deadline, before another replica may own the shard.
    one.line.set(Network::Hangs);
    let two = world.start("two");
    world.time.pass(RENEW).await;
    assert!(!token.is_valid());
    assert_eq!(one.controller.queue().processing().len(), 0);
    assert_eq!(one.controller.stats().errors, 1);
    assert!(two.record.keys().is_empty());
    one.line.set(Network::Fine);
    let stuck = ConfigMap {
        metadata: ObjectMeta {
            name: Some("stuck".to_owned()),
            namespace: Some("default".to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    let refused = client.update(&stuck).await.unwrap_err();
    assert!(refused.to_string().contains("is not owned any more"), "{refused}");
    assert!(
        client.get::<ConfigMap>(&ObjectKey::namespaced("default", "stuck")).await.is_ok(),
        "reads are not refused"
    );
    *one.record.blocked.lock() = false;
    one.record.unblock.notify_waiters();
    world.time.pass(2 * LEASE).await;
    let done: BTreeSet<Request> = one.record.keys().union(&two.record.keys()).cloned().collect();
    assert!(done.contains(&ObjectKey::namespaced("default", "stuck")));
    assert!(!two.record.keys().is_empty());
}
