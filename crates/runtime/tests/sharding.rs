//! Sharding on a virtual clock, against an in-process server.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod line;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use k1s_env::{Env, Task};
use k1s_runtime::{
    Metrics,
    sharding::{Change, ShardToken, Sharding, ShardingError, ShardingMetrics, ShardingOptions},
};
use k1s_server::ApiServer;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams},
};
use line::{BROKEN, Line, Network, Time};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

const SECOND: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(15);
const RENEW: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(2);
const SHARDS: u32 = 16;

/// Who works on each shard, with what token.
type Working = Arc<Mutex<BTreeMap<(u32, String), ShardToken>>>;

struct World {
    time: Time,
    server: ApiServer,
    leases: Api<Lease>,
    working: Working,
    /// The highest token of each shard so far, and its owner.
    highest: Mutex<BTreeMap<u32, (u64, String)>>,
}

impl std::ops::Deref for World {
    type Target = Time;

    fn deref(&self) -> &Time {
        &self.time
    }
}

struct Replica {
    sharding: Sharding,
    line: Line,
    stop: CancellationToken,
    task: Task<Result<(), ShardingError>>,
    _worker: Task<()>,
}

impl World {
    async fn new(seed: u64) -> World {
        let server = line::server().await;
        let leases = Api::namespaced(Client::new(server.clone(), "default"), "default");
        World {
            time: Time::new(seed),
            server,
            leases,
            working: Working::default(),
            highest: Mutex::default(),
        }
    }

    /// Starts a replica whose work takes up to `slow` to stop.
    fn start_with(
        &self,
        identity: &str,
        slow: Duration,
        change: impl FnOnce(&mut ShardingOptions),
    ) -> Replica {
        let line = Line::new(&self.env, &self.server);
        let mut options = ShardingOptions::new("fleet", "default");
        options.identity = Some(identity.to_owned());
        options.shards = SHARDS;
        change(&mut options);
        let sharding = Sharding::new(line.client(), self.env.clone(), options).unwrap();
        let stop = CancellationToken::new();
        let running = (sharding.clone(), stop.clone());
        let task = self.env.spawn("replica", async move { running.0.run(running.1).await });
        let worker =
            self.env.spawn("worker", work(self.env.clone(), &sharding, Arc::clone(&self.working), slow));
        Replica { sharding, line, stop, task, _worker: worker }
    }

    fn start(&self, identity: &str) -> Replica {
        self.start_with(identity, Duration::ZERO, |_| {})
    }

    /// Lets time pass, and checks at every step that no shard has two owners and that tokens increase.
    async fn pass_checked(&self, d: Duration) {
        let target = self.env.now() + d;
        self.settle().await;
        self.check();
        while let Some(next) = self.clock.next_deadline().filter(|next| *next <= target) {
            self.clock.advance(next - self.env.now());
            self.check();
            self.settle().await;
            self.check();
        }
        self.clock.advance(target - self.env.now());
        self.settle().await;
        self.check();
    }

    fn check(&self) {
        let working = self.working.lock();
        let mut owners: BTreeMap<u32, &str> = BTreeMap::new();
        let mut highest = self.highest.lock();
        for ((shard, identity), token) in working.iter().filter(|(_, token)| token.is_valid()) {
            if let Some(other) = owners.insert(*shard, identity) {
                panic!("shard {shard} is owned by {other} and {identity}");
            }
            let (value, last) = highest.entry(*shard).or_insert((token.value(), identity.clone()));
            assert!(*value <= token.value(), "the token of shard {shard} went back");
            assert!(*value < token.value() || last == identity, "two owners of shard {shard} had one token");
            (*value, *last) = (token.value(), identity.clone());
        }
    }

    /// Whether these replicas own all shards between them.
    fn all_owned(replicas: &[&Replica]) -> bool {
        let owned: BTreeSet<u32> =
            replicas.iter().flat_map(|one| one.sharding.owned()).map(|token| token.shard()).collect();
        owned.len() == SHARDS as usize
    }

    /// Waits until these replicas own all shards, and returns how long it took.
    async fn until_owned(&self, replicas: &[&Replica]) -> Duration {
        let began = self.env.now();
        while !World::all_owned(replicas) {
            assert!(self.env.now() - began < Duration::from_secs(300), "shards without an owner");
            self.pass_checked(SECOND / 10).await;
        }
        self.env.now() - began
    }

    async fn lease_names(&self) -> Vec<String> {
        let all = self.leases.list(&ListParams::default()).await.unwrap();
        all.items.into_iter().filter_map(|lease| lease.metadata.name).collect()
    }
}

/// Works on all shards of a replica, and takes its time to stop.
fn work(
    env: Env,
    sharding: &Sharding,
    working: Working,
    slow: Duration,
) -> impl Future<Output = ()> + Send + 'static {
    let (mut changes, identity) = (sharding.changes(), sharding.identity().to_owned());
    async move {
        while let Some(change) = changes.next().await {
            match change {
                Change::Acquired(token) => {
                    working.lock().insert((token.shard(), identity.clone()), token);
                }
                Change::Released(release) => {
                    let key = (release.token().shard(), identity.clone());
                    let pause = env.sleep(slow.mul_f64(env.random_f64()));
                    let working = Arc::clone(&working);
                    drop(env.spawn("stops", async move {
                        pause.await;
                        working.lock().remove(&key);
                        release.confirm();
                    }));
                }
                _ => {}
            }
        }
    }
}

impl Replica {
    fn owned(&self) -> BTreeSet<u32> {
        self.sharding.owned().iter().map(ShardToken::shard).collect()
    }

    /// Like a crash: neither renews nor releases anything.
    fn crash(self) {
        self.task.abort();
    }
}

#[tokio::test]
async fn a_single_replica_owns_everything_at_once() {
    let world = World::new(1).await;
    let metrics = Metrics::new();
    let shown = ShardingMetrics::register(&metrics);
    let mut options = ShardingOptions::new("fleet", "default");
    options.shards = SHARDS;
    let line = Line::new(&world.env, &world.server);
    let sharding = Sharding::with_metrics(line.client(), world.env.clone(), options, &shown).unwrap();
    let stop = CancellationToken::new();
    let running = (sharding.clone(), stop.clone());
    let task = world.env.spawn("replica", async move { running.0.run(running.1).await });
    world.pass(SECOND).await;
    assert_eq!(sharding.owned().len(), SHARDS as usize);
    let token = sharding.owner_of("default/web").unwrap();
    assert_eq!(token.shard(), sharding.shard_of("default/web"));
    assert_eq!(token.check(), Ok(()));
    assert!(token.valid_for() <= RENEW && !token.valid_for().is_zero());
    assert_eq!(sharding.members().len(), 1);
    for line in [
        "k1s_sharding_owned_shards{name=\"fleet\"} 16",
        "k1s_sharding_members{name=\"fleet\"} 1",
        "k1s_sharding_acquisitions_total{name=\"fleet\"} 16",
    ] {
        assert!(metrics.encode().contains(line), "{line}: {}", metrics.encode());
    }
    let twice = sharding.run(CancellationToken::new()).await.unwrap_err();
    assert_eq!(twice.to_string(), "the sharding fleet runs already");
    stop.cancel();
    world.until(task).await.unwrap().unwrap();
    assert!(!token.is_valid());
    assert_eq!(
        token.check().unwrap_err().to_string(),
        format!("shard {} is not owned any more: it was released", token.shard())
    );
    assert_eq!(&*token.lost().await.reason, "it was released");
    assert!(sharding.owned().is_empty() && sharding.members().is_empty());
    assert!(metrics.encode().contains("k1s_sharding_owned_shards{name=\"fleet\"} 0\n"));
    assert!(metrics.encode().contains("k1s_sharding_releases_total{name=\"fleet\"} 16\n"));
    assert!(world.env.tasks().is_empty());
}

#[tokio::test]
async fn the_write_load_does_not_depend_on_the_number_of_shards() {
    let world = World::new(2).await;
    let one = world.start("one");
    world.pass(10 * SECOND).await;
    let before = one.line.requests();
    world.pass(60 * SECOND).await;
    let requests = one.line.requests() - before;
    // One renewal and one list per retry period.
    assert!((58..=62).contains(&requests), "{requests}");
}

#[tokio::test]
async fn replicas_come_and_go_and_only_their_own_shards_move() {
    let world = World::new(3).await;
    let one = world.start_with("one", SECOND, |_| {});
    let two = world.start_with("two", SECOND, |_| {});
    world.until_owned(&[&one, &two]).await;
    world.pass_checked(10 * SECOND).await;
    let before = [one.owned(), two.owned()];
    assert!(before.iter().all(|owned| !owned.is_empty()), "{before:?}");
    let three = world.start_with("three", SECOND, |_| {});
    while three.owned().is_empty() {
        world.pass_checked(SECOND).await;
    }
    let took = world.until_owned(&[&one, &two, &three]).await;
    assert!(took <= 2 * RETRY + SECOND + SECOND, "{took:?}");
    world.pass_checked(10 * SECOND).await;
    let (moved, kept): (BTreeSet<u32>, _) = (three.owned(), [one.owned(), two.owned()]);
    assert!(!moved.is_empty());
    for (before, kept) in before.iter().zip(&kept) {
        assert_eq!(kept, &before.difference(&moved).copied().collect::<BTreeSet<_>>());
    }
    // It leaves: its shards return to where they were, within two retry periods and the time to stop.
    three.stop.cancel();
    world.until(three.task).await.unwrap().unwrap();
    let took = world.until_owned(&[&one, &two]).await;
    assert!(took <= 2 * RETRY, "{took:?}");
    assert_eq!([one.owned(), two.owned()], before);
    world.pass_checked(10 * SECOND).await;
    assert_eq!(world.lease_names().await.len(), 3, "the Lease of a former member is deleted");
}

#[tokio::test]
async fn a_shard_is_not_released_before_its_work_has_stopped() {
    let world = World::new(4).await;
    let one = world.start("one");
    world.until_owned(&[&one]).await;
    let mut changes = one.sharding.changes();
    let mut held = Vec::new();
    for _ in 0..SHARDS {
        assert!(matches!(changes.next().await, Some(Change::Acquired(_))));
    }
    let two = world.start("two");
    world.pass_checked(10 * SECOND).await;
    for change in changes.next_all().await {
        let Change::Released(release) = change else { panic!("{change:?}") };
        assert!(release.token().is_valid(), "work in flight may finish");
        assert!(one.sharding.owner(release.token().shard()).is_none(), "and none begins");
        held.push(release);
    }
    assert!(!held.is_empty());
    assert!(two.owned().is_empty());
    world.pass_checked(5 * SECOND).await;
    assert!(two.owned().is_empty());
    // One of them stops; the others do not, and are taken when the drain timeout has passed.
    let stopped = held.pop().unwrap();
    let shard = stopped.token().shard();
    drop(stopped);
    world.pass_checked(2 * RETRY).await;
    assert_eq!(two.owned(), BTreeSet::from([shard]));
    world.pass_checked(20 * SECOND).await;
    assert_eq!(two.owned().len(), held.len() + 1);
    for release in &held {
        let lost = release.token().check().unwrap_err();
        assert_eq!(&*lost.reason, "its work did not stop in time");
    }
}

#[tokio::test]
async fn the_shards_of_a_crashed_replica_are_taken_after_its_lease_and_not_before() {
    let world = World::new(5).await;
    let (one, two, three) = (world.start("one"), world.start("two"), world.start("three"));
    world.until_owned(&[&one, &two, &three]).await;
    world.pass_checked(30 * SECOND).await;
    let lost = three.owned();
    assert!(!lost.is_empty());
    let before = [one.owned(), two.owned()];
    let claimed = world.env.now() + three.sharding.owned()[0].valid_for();
    three.crash();
    let took = world.until_owned(&[&one, &two]).await;
    assert!(world.env.now() > claimed);
    assert!(took > LEASE - RETRY && took <= LEASE + 2 * RETRY + SECOND, "{took:?}");
    assert!(before[0].is_subset(&one.owned()) && before[1].is_subset(&two.owned()), "nothing else moves");
}

async fn a_replica_that_is_cut_off_stops_by_itself(network: Network) {
    let world = World::new(6).await;
    let (one, two) = (world.start("one"), world.start("two"));
    world.until_owned(&[&one, &two]).await;
    world.pass_checked(30 * SECOND).await;
    let (token, until) =
        (one.sharding.owned()[0].clone(), world.env.now() + one.sharding.owned()[0].valid_for());
    one.line.set(network);
    let took = world.until_owned(&[&two]).await;
    assert!(!token.is_valid() && world.env.now() > until);
    assert!(took <= LEASE + 2 * RETRY + SECOND, "{network:?}: {took:?}");
    assert!(one.owned().is_empty() && one.sharding.members().is_empty());
    assert!(token.check().unwrap_err().reason.contains("was not renewed within 10s"), "{token:?}");
    world.pass_checked(30 * SECOND).await;
    one.line.set(Network::Fine);
    while one.owned().is_empty() {
        world.pass_checked(SECOND).await;
    }
    let took = world.until_owned(&[&one, &two]).await;
    assert!(took <= 3 * RETRY, "{took:?}");
}

#[tokio::test]
async fn a_replica_without_answers_stops_by_itself() {
    a_replica_that_is_cut_off_stops_by_itself(Network::Hangs).await;
}

#[tokio::test]
async fn a_replica_with_a_failing_server_stops_by_itself() {
    a_replica_that_is_cut_off_stops_by_itself(BROKEN).await;
}

#[tokio::test]
async fn a_paused_replica_knows_it_before_anything_runs() {
    let world = World::new(7).await;
    let one = world.start("one");
    world.until_owned(&[&one]).await;
    let token = one.sharding.owned()[0].clone();
    world.clock.advance(RENEW);
    // No task has run since.
    assert!(!token.is_valid());
    assert!(one.sharding.owned().is_empty());
    assert!(one.sharding.owner(token.shard()).is_none());
    world.until_owned(&[&one]).await;
    assert!(one.sharding.owner(token.shard()).unwrap().value() > token.value());
}

#[tokio::test]
async fn a_replica_that_restarts_with_its_identity_gets_its_shards_again() {
    let world = World::new(8).await;
    let (one, two) = (world.start("one"), world.start("two"));
    world.until_owned(&[&one, &two]).await;
    world.pass_checked(10 * SECOND).await;
    let before = [one.owned(), two.owned()];
    one.crash();
    let one = world.start("one");
    let took = world.until_owned(&[&one, &two]).await;
    assert!(took <= LEASE + 2 * RETRY.mul_f64(2.2), "{took:?}");
    assert_eq!([one.owned(), two.owned()], before);
}

#[tokio::test]
async fn shares_follow_the_weights() {
    let world = World::new(9).await;
    let weighted =
        |weight: u32| move |options: &mut ShardingOptions| (options.weight, options.shards) = (weight, 256);
    let one = world.start_with("one", Duration::ZERO, weighted(3));
    let two = world.start_with("two", Duration::ZERO, weighted(1));
    let none = world.start_with("none", Duration::ZERO, weighted(0));
    world.pass_checked(20 * SECOND).await;
    let owned = [&one, &two, &none].map(|replica| replica.owned().len());
    assert_eq!(owned.iter().sum::<usize>(), 256);
    assert_eq!(owned[2], 0);
    // 192 expected, standard deviation 7.
    assert!((164..=220).contains(&owned[0]), "{owned:?}");
}

#[tokio::test]
async fn replicas_with_different_numbers_of_shards_refuse_clearly() {
    let world = World::new(10).await;
    let one = world.start("one");
    world.until_owned(&[&one]).await;
    let highest = one.sharding.owned().iter().map(ShardToken::value).max().unwrap();
    let mut other = world.start_with("other", Duration::ZERO, |options| options.shards = 8);
    world.pass_checked(LEASE).await;
    assert!(other.owned().is_empty());
    let error = world.until(&mut other.task).await.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the sharding fleet has 16 shards, and this replica is configured with 8: all replicas need the same number; stop \
         those with 16 shards to change it"
    );
    assert!(World::all_owned(&[&one]), "{one_owned:?}", one_owned = one.owned());
    // The last one with 16 shards crashes, and the other one is started again.
    one.crash();
    let other = world.start_with("other", Duration::ZERO, |options| options.shards = 8);
    world.pass_checked(LEASE + 3 * RETRY).await;
    assert_eq!(other.owned().len(), 8);
    assert!(other.sharding.owned().iter().all(|token| token.value() > highest), "tokens continue");
}

#[tokio::test]
async fn a_deleted_table_ends_all_work_until_nobody_can_rely_on_it() {
    let world = World::new(11).await;
    let one = world.start("one");
    world.until_owned(&[&one]).await;
    let token = one.sharding.owned()[0].clone();
    world.pass_checked(30 * SECOND).await;
    world.leases.delete("fleet-shards", &DeleteParams::default()).await.unwrap();
    world.pass_checked(RETRY).await;
    assert_eq!(&*token.check().unwrap_err().reason, "the table of all shards was deleted");
    let took = world.until_owned(&[&one]).await;
    assert!(took >= LEASE - RETRY, "{took:?}");
    assert!(one.sharding.owner(token.shard()).unwrap().value() > token.value(), "tokens increase");
}

#[tokio::test]
async fn a_damaged_table_is_refused() {
    let world = World::new(12).await;
    let mut one = world.start("one");
    world.until_owned(&[&one]).await;
    let damage = serde_json::json!({"metadata": {"annotations": {"sharding.k1s.dev/table": "{}"}}});
    let damage = kube::api::Patch::Merge(damage);
    world.leases.patch("fleet-shards", &kube::api::PatchParams::default(), &damage).await.unwrap();
    let error = world.until(&mut one.task).await.unwrap().unwrap_err().to_string();
    assert!(error.starts_with("the lease default/fleet-shards: the annotation"), "{error}");
    assert!(one.owned().is_empty());
}

#[tokio::test]
async fn the_member_lease_may_be_deleted_by_hand() {
    let world = World::new(13).await;
    let (one, two) = (world.start("one"), world.start("two"));
    world.until_owned(&[&one, &two]).await;
    world.pass_checked(30 * SECOND).await;
    let before = [one.owned(), two.owned()];
    for name in world.lease_names().await.into_iter().filter(|name| name != "fleet-shards") {
        world.leases.delete(&name, &DeleteParams::default()).await.unwrap();
    }
    world.pass_checked(60 * SECOND).await;
    assert_eq!([one.owned(), two.owned()], before);
}

/// Replicas that come, leave, crash, and whose network fails in every way, at random.
async fn chaos(seed: u64) {
    let world = World::new(seed).await;
    let dice = |below: u64| world.env.random_below(below);
    let mut started = 0_u64;
    let mut start = || {
        started += 1;
        world.start_with(&format!("r{started}"), 3 * SECOND, |options| {
            options.weight = 1 + u32::try_from(started % 2).unwrap();
            options.drain_timeout = 2 * SECOND;
        })
    };
    let mut replicas = vec![start(), start(), start()];
    for _ in 0..14 {
        world.pass_checked(Duration::from_millis(dice(25_000))).await;
        let victim = usize::try_from(dice(replicas.len() as u64)).unwrap();
        match dice(8) {
            0 => replicas.push(start()),
            1 if replicas.len() > 1 => replicas.remove(victim).crash(),
            2 if replicas.len() > 1 => replicas[victim].stop.cancel(),
            3 => world.clock.advance(Duration::from_millis(dice(20_000))),
            other => {
                let networks = [
                    Network::Hangs,
                    BROKEN,
                    Network::LosesAnswers,
                    Network::Late(Duration::from_millis(dice(15_000))),
                    Network::Fine,
                    Network::Fine,
                ];
                replicas[victim].line.set(networks[usize::try_from(dice(6)).unwrap()]);
                if other > 5 {
                    replicas[victim].line.set(Network::Fine);
                }
            }
        }
        replicas.retain(|replica| !replica.task.is_finished());
        if replicas.is_empty() {
            replicas.push(start());
        }
    }
    for replica in &replicas {
        replica.line.set(Network::Fine);
    }
    // Leaving replicas finish; then everything has an owner.
    world.pass_checked(2 * LEASE).await;
    replicas.retain(|replica| !replica.task.is_finished());
    if replicas.is_empty() {
        replicas.push(start());
    }
    let all: Vec<&Replica> = replicas.iter().collect();
    let took = world.until_owned(&all).await;
    assert!(took <= LEASE + 2 * RETRY, "seed {seed}: {took:?}");
    world.pass_checked(3 * RETRY).await;
    assert!(World::all_owned(&all), "seed {seed}: shards go on moving");
}

#[tokio::test]
async fn there_are_never_two_owners_whatever_happens() {
    for seed in 100..130 {
        chaos(seed).await;
    }
}
