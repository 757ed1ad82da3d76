//! List and watch against a model: at any time, a list plus the watch from its revision equals the current list.
//!
//! Writers change a few objects while watchers start from all kinds of revisions, with selectors, and lists are read in
//! pages. A second server over the same store is the oracle: it reads the objects at a revision from the store's history. The
//! state of a watcher at a bookmark has to equal that, filtered by the test's own implementation of selectors.
//!
//! The runs on a memory store are simulated: a seed (printed on failure) determines the time and all actions.
//! `K1S_MODEL_SEEDS=500` runs longer.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use common::{Client, Watch, revision};
use k1s_env::{Env, Task, VirtualClock};
use k1s_server::{ApiServer, ServerOptions};
use k1s_store::{MemoryOptions, MemoryStore, Revision, Store, feed::FeedOptions};
use k1s_store_disk::{DiskOptions, DiskStore};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// The result of a check, with a message on failure.
type Check<T = ()> = Result<T, String>;

const NAMESPACES: [&str; 2] = ["ns-a", "ns-b"];
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const COLORS: [&str; 3] = ["red", "blue", ""];

/// Objects by namespace and name.
type State = BTreeMap<(String, String), Value>;

/// A fault injected to verify that the checks detect it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sabotage {
    None,
    /// An event is not delivered to the watcher.
    LoseEvent,
    /// An event is delivered twice.
    RepeatEvent,
    /// A DELETED event becomes MODIFIED.
    ChangeType,
    /// An object is lost between two pages.
    LoseItem,
}

/// The configuration of a run.
#[derive(Clone)]
struct Setup {
    /// The path and plural of the objects: `/api/v1` and `configmaps`, or those of a custom resource.
    root: &'static str,
    plural: &'static str,
    writers: usize,
    writes: usize,
    watchers: usize,
    restarts: usize,
    compactions: usize,
    /// Whether history may be compacted; otherwise no watcher gets 410.
    compacts: bool,
    sabotage: Sabotage,
}

const MAPS: Setup = Setup {
    root: "/api/v1",
    plural: "configmaps",
    writers: 3,
    writes: 60,
    watchers: 5,
    restarts: 0,
    compactions: 0,
    compacts: false,
    sabotage: Sabotage::None,
};

const CUSTOM: Setup = Setup { root: "/apis/model.k1s.dev/v1", plural: "things", ..MAPS };

/// State shared by all tasks of a run.
struct World {
    setup: Setup,
    env: Env,
    /// The source of randomness.
    dice: Env,
    store: Arc<dyn Store>,
    server: Mutex<ApiServer>,
    /// Another replica, which reads past states.
    oracle: Client,
    /// Revisions that some task has seen.
    seen: Mutex<Vec<u64>>,
    /// Acknowledged writes: the revision, and the object at it.
    acknowledged: Mutex<BTreeMap<u64, Value>>,
    finished: Mutex<bool>,
    gone: Mutex<usize>,
    spoilt: Mutex<bool>,
}

impl World {
    fn client(&self) -> Client {
        Client { server: self.server.lock().clone(), env: self.env.clone() }
    }

    fn below(&self, bound: usize) -> usize {
        usize::try_from(self.dice.random_below(bound as u64)).unwrap()
    }

    fn pick<T: Copy>(&self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    async fn pause(&self) {
        self.env.sleep(Duration::from_micros(self.dice.random_below(4000))).await;
    }

    fn path(&self, namespace: &str) -> String {
        let Setup { root, plural, .. } = &self.setup;
        if namespace.is_empty() {
            format!("{root}/{plural}")
        } else {
            format!("{root}/namespaces/{namespace}/{plural}")
        }
    }

    /// Whether to inject the fault now, at most once per run.
    fn spoil(&self, how: Sabotage) -> bool {
        self.setup.sabotage == how && self.below(8) == 0 && !std::mem::replace(&mut *self.spoilt.lock(), true)
    }

    /// All objects at a revision, read by the oracle from the store's history; `None` if it was compacted.
    async fn truth(&self, at: u64) -> Check<Option<State>> {
        let path = format!("{}?resourceVersion={at}&resourceVersionMatch=Exact", self.path(""));
        let (status, body) = self.oracle.call("GET", &path, Value::Null).await;
        match status {
            200 => Ok(Some(state(&body)?)),
            410 if self.setup.compacts => Ok(None),
            _ => Err(format!("{path}: {body}")),
        }
    }
}

fn state(list: &Value) -> Check<State> {
    let items = list["items"].as_array().ok_or_else(|| format!("no list: {list}"))?;
    let mut state = State::new();
    for item in items {
        if state.insert(key(item), bare(item)).is_some() {
            return Err(format!("{:?} is in a list twice", key(item)));
        }
    }
    Ok(state)
}

fn key(object: &Value) -> (String, String) {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

/// An object without its type, which items of built-in lists do not have.
fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(object) = object.as_object_mut() {
        object.shift_remove("kind");
        object.shift_remove("apiVersion");
    }
    object
}

/// The test's own implementation of a selector.
type Matches = fn(&Value) -> bool;

/// A selection of objects: as a query, and in the test's own implementation.
#[derive(Clone)]
struct Filter {
    namespace: &'static str,
    query: &'static str,
    matches: Matches,
}

fn color(object: &Value) -> &str {
    object["metadata"]["labels"]["color"].as_str().unwrap_or_default()
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

impl Filter {
    fn choose(world: &World) -> Filter {
        let mut choices: Vec<(&'static str, Matches)> = vec![
            ("", |_| true),
            ("", |_| true),
            ("labelSelector=color%3Dred", |object| color(object) == "red"),
            ("labelSelector=color!%3Dred", |object| color(object) != "red"),
            ("labelSelector=color+in+(red,blue)", |object| matches!(color(object), "red" | "blue")),
            ("labelSelector=!color", |object| color(object).is_empty()),
            ("fieldSelector=metadata.name%3Da", |object| name(object) == "a"),
            ("fieldSelector=metadata.name!%3Da", |object| name(object) != "a"),
            ("fieldSelector=metadata.namespace%3Dns-b", |object| object["metadata"]["namespace"] == "ns-b"),
            ("labelSelector=color&fieldSelector=metadata.name%3Db", |object| {
                !color(object).is_empty() && name(object) == "b"
            }),
        ];
        if world.setup.plural == "things" {
            choices.push(("fieldSelector=spec.color%3Dred", |object| object["spec"]["color"] == "red"));
            choices.push(("fieldSelector=spec.color!%3Dred", |object| object["spec"]["color"] != "red"));
        }
        let (query, matches) = world.pick(&choices);
        Filter { namespace: world.pick(&["", "", NAMESPACES[0]]), query, matches }
    }

    fn selects(&self, object: &Value) -> bool {
        (self.namespace.is_empty() || object["metadata"]["namespace"] == self.namespace)
            && (self.matches)(object)
    }

    fn of(&self, all: &State) -> State {
        all.iter()
            .filter(|(_, object)| self.selects(object))
            .map(|(key, object)| (key.clone(), object.clone()))
            .collect()
    }
}

fn same(what: &str, have: &State, want: &State) -> Check {
    if have == want {
        return Ok(());
    }
    let show = |state: &State| {
        let rows: Vec<String> =
            state.iter().map(|(key, object)| format!("{}/{}@{}", key.0, key.1, revision(object))).collect();
        rows.join(" ")
    };
    Err(format!("{what}:\n have {}\n want {}", show(have), show(want)))
}

/// The state of a client that lists and watches.
struct Follower {
    filter: Filter,
    state: State,
    /// The revision up to which the state is complete.
    reached: u64,
    /// Whether initial events are being received, whose revisions are not ordered.
    initial: bool,
}

impl Follower {
    /// Applies an event; `true` for a bookmark, at which the state is a consistent snapshot.
    fn apply(&mut self, event: &Value) -> Check<bool> {
        let (kind, object) = (event["type"].as_str().unwrap_or_default(), &event["object"]);
        let at = revision(object);
        if kind == "BOOKMARK" {
            if at < self.reached {
                return Err(format!("a bookmark goes back from {} to {at}", self.reached));
            }
            (self.reached, self.initial) = (at, false);
            return Ok(true);
        }
        if at <= self.reached && !self.initial {
            return Err(format!("after revision {} came one of {at}: {event}", self.reached));
        }
        self.reached = self.reached.max(at);
        let known = self.state.contains_key(&key(object));
        match (kind, known) {
            ("ADDED", false) | ("MODIFIED", true) => {
                if !self.filter.selects(object) {
                    return Err(format!("an object that is not selected ({}): {event}", self.filter.query));
                }
                self.state.insert(key(object), bare(object));
            }
            ("DELETED", true) => {
                self.state.remove(&key(object));
            }
            _ => {
                return Err(format!(
                    "{kind} of an object that is {}known: {event}",
                    if known { "" } else { "un" }
                ));
            }
        }
        Ok(false)
    }
}

/// The start of a watch: the client's state, and the query.
async fn begin(world: &World, filter: Filter) -> Check<Option<(Follower, String)>> {
    let client = world.client();
    let path = world.path(filter.namespace);
    let new = |state: State, reached: u64, initial: bool| Follower {
        filter: filter.clone(),
        state,
        reached,
        initial,
    };
    let old = world.seen.lock().clone();
    let how = world.below(6);
    let (follower, query) = match how {
        0 => (new(State::new(), 0, true), String::new()),
        1 => (new(State::new(), 0, true), "resourceVersion=0".into()),
        2 => {
            let version = match old.last() {
                Some(last) if world.below(2) == 0 => format!("&resourceVersion={last}"),
                _ => world.pick(&["", "&resourceVersion=0"]).into(),
            };
            (
                new(State::new(), 0, true),
                format!("sendInitialEvents=true&resourceVersionMatch=NotOlderThan{version}"),
            )
        }
        // A revision that some task has seen, perhaps long ago.
        3 if !old.is_empty() => {
            let at = world.pick(&old);
            let Some(all) = world.truth(at).await? else {
                // The store has compacted it: the server returns 410, unless its cache still has the events.
                let mut events =
                    client.watch(&format!("{path}?allowWatchBookmarks=true&resourceVersion={at}")).await;
                match next(world, &mut events).await? {
                    Some(event) if event["type"] == "ERROR" && event["object"]["code"] != 410 => {
                        return Err(format!("the watch from {at}: {event}"));
                    }
                    Some(event) if event["type"] == "ERROR" => *world.gone.lock() += 1,
                    _ => {}
                }
                return Ok(None);
            };
            (new(filter.of(&all), at, false), format!("resourceVersion={at}"))
        }
        _ => {
            let separator = if how == 4 { "resourceVersion=0&" } else { "" };
            let (status, list) =
                client.call("GET", &format!("{path}?{separator}{}", filter.query), Value::Null).await;
            if status != 200 {
                return Err(format!("a list: {list}"));
            }
            let at = revision(&list);
            (new(state(&list)?, at, false), format!("resourceVersion={at}"))
        }
    };
    Ok(Some((follower, query)))
}

/// A client that watches, checks its state at each bookmark, and sometimes starts over.
async fn watch(world: Arc<World>) -> Check {
    let mut last_of_all = false;
    loop {
        let Some((mut follower, mut query)) = begin(&world, Filter::choose(&world)).await? else { continue };
        if !follower.initial {
            check(&world, &follower).await?;
        }
        // One start, perhaps several connections.
        'connections: loop {
            let filter = follower.filter.query;
            let path = format!(
                "{}?allowWatchBookmarks=true&{query}&{filter}",
                world.path(follower.filter.namespace)
            );
            let mut events = world.client().watch(&path).await;
            let leave_after = 1 + world.below(40);
            let mut count = 0;
            let mut held: Option<Value> = None;
            while let Some(mut event) = match held.take() {
                Some(event) => Some(event),
                None => next(&world, &mut events).await?,
            } {
                count += 1;
                if event["type"] == "ERROR" {
                    if event["object"]["code"] != 410 || !world.setup.compacts {
                        return Err(format!("{path}: {event}"));
                    }
                    *world.gone.lock() += 1;
                    break 'connections;
                }
                if event["type"] != "BOOKMARK" && world.spoil(Sabotage::LoseEvent) {
                    continue;
                }
                if event["type"] != "BOOKMARK" && world.spoil(Sabotage::RepeatEvent) {
                    held = Some(event.clone());
                }
                if event["type"] == "DELETED" && world.spoil(Sabotage::ChangeType) {
                    event["type"] = "MODIFIED".into();
                }
                if follower.apply(&event).map_err(|why| format!("{path}: {why}"))? {
                    check(&world, &follower).await.map_err(|why| format!("{path}: {why}"))?;
                    if last_of_all {
                        return Ok(());
                    }
                    last_of_all = *world.finished.lock();
                    if count > leave_after && !last_of_all {
                        break 'connections;
                    }
                }
            }
            // The stream ended: the client resumes from its revision, or starts over if the initial events were incomplete.
            if follower.initial {
                break;
            }
            query = format!("resourceVersion={}", follower.reached);
        }
    }
}

async fn next(world: &World, events: &mut Watch) -> Check<Option<Value>> {
    match world.env.timeout(Duration::from_secs(20), events.next()).await {
        Ok(event) => Ok(event),
        Err(_) => Err("a watch is silent: not even a bookmark comes".into()),
    }
}

/// Checks that the state of a client equals the objects at its revision.
async fn check(world: &World, follower: &Follower) -> Check {
    let Some(all) = world.truth(follower.reached).await? else { return Ok(()) };
    let what = format!(
        "at {} with {:?} in {:?}",
        follower.reached, follower.filter.query, follower.filter.namespace
    );
    same(&what, &follower.state, &follower.filter.of(&all))
}

/// A client that writes.
async fn write(world: Arc<World>) -> Check {
    for _ in 0..world.setup.writes {
        if world.below(3) > 0 {
            world.pause().await;
        }
        // Both replicas accept writes.
        let client = if world.below(4) == 0 { world.oracle.clone() } else { world.client() };
        let (namespace, name, color) = (world.pick(&NAMESPACES), world.pick(&NAMES), world.pick(&COLORS));
        let (path, number) = (world.path(namespace), world.dice.random_below(1000));
        let labels = if color.is_empty() { json!({}) } else { json!({"color": color}) };
        let mut object = json!({"metadata": {"name": name, "labels": labels}, "spec": {"color": color},
            "data": {"number": number.to_string()}});
        if world.setup.plural == "things" {
            object["apiVersion"] = "model.k1s.dev/v1".into();
            object["kind"] = "Thing".into();
        }
        let one = format!("{path}/{name}");
        let (status, body) = match world.below(8) {
            0..3 => client.call("POST", &path, object).await,
            3 => match client.call("GET", &one, Value::Null).await {
                (200, mut now) => {
                    now["metadata"]["labels"] = labels;
                    now["spec"] = json!({"color": color});
                    now["data"] = json!({"number": number.to_string()});
                    client.call("PUT", &one, now).await
                }
                other => other,
            },
            4 => {
                let color = if color.is_empty() { Value::Null } else { color.into() };
                let patch = json!({"metadata": {"labels": {"color": color}}, "spec": {"color": color}});
                client.call("PATCH", &one, patch).await
            }
            5 => client.call("PATCH", &one, json!([{"op": "add", "path": "/metadata/annotations", "value": {"n": number.to_string()}}])).await,
            6 => {
                let (status, body) = client.call("DELETE", &one, Value::Null).await;
                if !matches!(status, 200 | 404 | 409) {
                    return Err(format!("DELETE {one}: {status} {body}"));
                }
                continue;
            }
            _ if world.below(6) == 0 => {
                let (status, body) = client.call("DELETE", &format!("{path}?labelSelector=color%3Dred"), Value::Null).await;
                if status != 200 {
                    return Err(format!("DELETE {path}: {status} {body}"));
                }
                continue;
            }
            _ => client.call("GET", &one, Value::Null).await,
        };
        match status {
            200 | 201 => {
                let at = revision(&body);
                world.seen.lock().push(at);
                if let Some(before) = world.acknowledged.lock().insert(at, bare(&body))
                    && before != bare(&body)
                {
                    return Err(format!("two objects at revision {at}"));
                }
            }
            404 | 409 => {}
            _ => return Err(format!("{one}: {status} {body}")),
        }
    }
    Ok(())
}

/// A client that lists in pages, which are all of the same revision.
async fn page(world: Arc<World>) -> Check {
    while !*world.finished.lock() {
        world.pause().await;
        let filter = Filter::choose(&world);
        let path = format!("{}?limit={}&{}", world.path(filter.namespace), 1 + world.below(3), filter.query);
        let (mut have, mut at, mut token) = (State::new(), 0, String::new());
        loop {
            let (status, list) =
                world.client().call("GET", &format!("{path}&continue={token}"), Value::Null).await;
            if status == 410 && world.setup.compacts {
                break;
            }
            if status != 200 {
                return Err(format!("{path}: {list}"));
            }
            if at != 0 && revision(&list) != at {
                return Err(format!("{path}: pages of {at} and of {}", revision(&list)));
            }
            at = revision(&list);
            for (key, object) in state(&list)? {
                if have.insert(key.clone(), object).is_some() {
                    return Err(format!("{path}: {key:?} is on two pages"));
                }
            }
            token = list["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
            if token.is_empty() {
                world.seen.lock().push(at);
                if let Some(all) = world.truth(at).await? {
                    same(&format!("pages of {path} at {at}"), &have, &filter.of(&all))?;
                }
                break;
            }
            world.pause().await;
            if world.spoil(Sabotage::LoseItem) {
                have.pop_last();
            }
        }
    }
    Ok(())
}

/// Starts new servers over the same store, and compacts its history.
async fn disturb(world: Arc<World>) -> Check {
    let mut deeds = vec![true; world.setup.restarts];
    deeds.extend(vec![false; world.setup.compactions]);
    for restart in deeds {
        world.env.sleep(Duration::from_millis(10 + world.dice.random_below(40))).await;
        if restart {
            let new = common::server_with(&world.env, world.store.clone(), options()).await;
            std::mem::replace(&mut *world.server.lock(), new).shutdown();
        } else {
            let stats = world.store.stats().await.map_err(|error| error.to_string())?;
            let (oldest, newest) = (stats.oldest.get(), stats.revision.get());
            let to = oldest + world.dice.random_below(newest - oldest + 1);
            world.store.compact(Revision::new(to)).await.map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

fn options() -> ServerOptions {
    let mut options = ServerOptions::default();
    options.bookmark_interval = Duration::from_millis(15);
    options
}

/// A whole run; returns the number of watches that got 410.
async fn run(env: Env, dice: Env, store: Arc<dyn Store>, setup: Setup) -> Check<usize> {
    let server = common::server_with(&env, store.clone(), options()).await;
    let oracle =
        Client { server: common::server_with(&env, store.clone(), options()).await, env: env.clone() };
    for namespace in NAMESPACES {
        oracle.call("POST", "/api/v1/namespaces", json!({"metadata": {"name": namespace}})).await;
    }
    let mut definition = common::definition("model.k1s.dev");
    definition["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] =
        json!({"spec": {"type": "object", "properties": {"color": {"type": "string"}}}});
    let (status, body) =
        oracle.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    if !matches!(status, 201 | 409) {
        return Err(format!("the definition: {body}"));
    }
    let world = Arc::new(World {
        env: env.clone(),
        dice,
        store,
        server: Mutex::new(server),
        oracle,
        seen: Mutex::default(),
        acknowledged: Mutex::default(),
        finished: Mutex::new(false),
        gone: Mutex::default(),
        spoilt: Mutex::new(false),
        setup,
    });
    // A watcher of all events from the start, to be compared with the acknowledged writes.
    let list = world.client().get(&world.path("")).await;
    let all = env.spawn("witness", witness(world.clone(), state(&list)?, revision(&list)));
    let spawn = |name: &'static str,
                 count: usize,
                 start: &dyn Fn() -> Task<Check>|
     -> Vec<(&'static str, Task<Check>)> { (0..count).map(|_| (name, start())).collect() };
    let writers = spawn("writer", world.setup.writers, &|| env.spawn("writer", write(world.clone())));
    let mut others = spawn("watcher", world.setup.watchers, &|| env.spawn("watcher", watch(world.clone())));
    others.extend(spawn("pages", 2, &|| env.spawn("pages", page(world.clone()))));
    let disturber = spawn("disturber", 1, &|| env.spawn("disturber", disturb(world.clone())));
    let mut failed = None;
    for (name, task) in writers.into_iter().chain(disturber) {
        failed = failed.or(task
            .await
            .map_err(|error| error.to_string())?
            .err()
            .map(|why| format!("{name}: {why}")));
    }
    *world.finished.lock() = true;
    for (name, task) in others {
        failed = failed.or(task
            .await
            .map_err(|error| error.to_string())?
            .err()
            .map(|why| format!("{name}: {why}")));
    }
    let witnessed = all.await.map_err(|error| error.to_string())?;
    match failed {
        Some(why) => Err(why),
        None => witnessed.map(|()| *world.gone.lock()),
    }
}

/// Receives every event, and finally compares them with the acknowledged writes.
async fn witness(world: Arc<World>, state: State, mut reached: u64) -> Check {
    let filter = Filter { namespace: "", query: "", matches: |_| true };
    let mut follower = Follower { filter, state, reached, initial: false };
    let mut events: BTreeMap<u64, Value> = BTreeMap::new();
    let start = reached;
    'connections: loop {
        let path = format!("{}?allowWatchBookmarks=true&resourceVersion={reached}", world.path(""));
        let mut stream = world.client().watch(&path).await;
        while let Some(event) = next(&world, &mut stream).await? {
            if event["type"] == "ERROR" {
                // Compacted between two connections: this run cannot be checked any further.
                return if world.setup.compacts { Ok(()) } else { Err(format!("the witness: {event}")) };
            }
            let bookmark = follower.apply(&event).map_err(|why| format!("the witness: {why}"))?;
            reached = follower.reached;
            if !bookmark {
                events.insert(reached, event);
            } else if *world.finished.lock() {
                let newest = world.store.revision().await.map_err(|error| error.to_string())?.get();
                if reached >= newest {
                    break 'connections;
                }
            }
        }
    }
    for (at, object) in world.acknowledged.lock().range(start + 1..) {
        let event = events.get(at).ok_or_else(|| format!("no event of the acknowledged write at {at}"))?;
        if *object != bare(&event["object"]) {
            return Err(format!(
                "the write of {at} returned another object than the watch: {object} {event}"
            ));
        }
    }
    Ok(())
}

/// Runs in simulated time; returns the number of watches that got 410.
fn simulate(seed: u64, memory: MemoryOptions, setup: &Setup) -> Check<usize> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (env, clock) = Env::simulated(seed);
    let (dice, _) = Env::simulated(seed ^ 0x5eed);
    runtime.block_on(async {
        let store = Arc::new(MemoryStore::new(env.clone(), memory));
        let task = env.spawn("run", run(env.clone(), dice, store, setup.clone()));
        drive(&clock, task).await
    })
}

async fn drive(clock: &VirtualClock, task: Task<Check<usize>>) -> Check<usize> {
    for _ in 0..200_000 {
        clock.advance_and_settle(Duration::from_millis(1)).await;
        if task.is_finished() {
            return task.await.map_err(|error| error.to_string())?;
        }
    }
    Err("the run does not come to its end".into())
}

/// The seeds of each kind of run.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    0..std::env::var("K1S_MODEL_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn holds(usual: u64, memory: MemoryOptions, setup: &Setup) -> usize {
    let mut gone = 0;
    for seed in seeds(usual) {
        match simulate(seed, memory, setup) {
            Ok(count) => gone += count,
            Err(why) => panic!("seed {seed}: {why}"),
        }
    }
    gone
}

#[test]
fn a_list_plus_the_watch_from_it_equals_the_current_list() {
    holds(4, MemoryOptions::default(), &MAPS);
    holds(4, MemoryOptions::default(), &CUSTOM);
}

#[test]
fn a_list_plus_the_watch_from_it_survives_restarts_of_servers() {
    holds(3, MemoryOptions::default(), &Setup { restarts: 4, ..MAPS });
    holds(3, MemoryOptions::default(), &Setup { restarts: 4, ..CUSTOM });
}

#[test]
fn compacted_revisions_get_410_and_a_new_list_recovers() {
    let compacted = Setup { compactions: 6, restarts: 3, compacts: true, ..MAPS };
    let mut gone = holds(4, MemoryOptions::default(), &compacted);
    // A store with little history, in which even its own watchers lag too far behind.
    let small = MemoryOptions {
        history_revisions: 12,
        feed: FeedOptions { changes: 4, ..FeedOptions::default() },
        ..MemoryOptions::default()
    };
    // Whether a watcher is too late is not determined by the seed; several rounds make it all but certain.
    for _ in 0..20 {
        gone += holds(4, small, &Setup { restarts: 2, compacts: true, ..MAPS });
        if gone > 0 {
            break;
        }
    }
    assert!(gone > 0, "no watch got 410, so the test showed nothing");
}

#[test]
fn lists_and_watches_hold_on_disk_and_after_a_restart() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let (env, folder) = (Env::system(), tempfile::tempdir().unwrap());
        let setup = Setup { writes: 25, restarts: 1, ..MAPS };
        let mut before: Option<(u64, Value)> = None;
        for seed in 0..2 {
            let store =
                Arc::new(DiskStore::open(env.clone(), folder.path(), DiskOptions::default()).unwrap());
            let (dice, _) = Env::simulated(seed);
            if let Some((at, list)) = before {
                let client = common::client(&common::server_with(&env, store.clone(), options()).await);
                let exact = format!("/api/v1/configmaps?resourceVersion={at}&resourceVersionMatch=Exact");
                assert_eq!(
                    client.get(&exact).await["items"],
                    list["items"],
                    "a list from before the restart"
                );
                client.server.shutdown();
            }
            if let Err(why) = run(env.clone(), dice, store.clone(), setup.clone()).await {
                panic!("on disk, round {seed}: {why}");
            }
            let server = common::server_with(&env, store.clone(), options()).await;
            let list = common::client(&server).get("/api/v1/configmaps").await;
            before = Some((revision(&list), list));
            server.shutdown();
            store.close().await.unwrap();
            drop((server, store));
            // The last tasks of the servers drop the store, which unlocks it.
            common::eventually("the tasks have ended", || async { env.tasks().is_empty() }).await;
        }
    });
}

#[test]
fn the_checks_detect_injected_faults() {
    for sabotage in [Sabotage::LoseEvent, Sabotage::RepeatEvent, Sabotage::ChangeType, Sabotage::LoseItem] {
        for seed in 0..3 {
            let outcome = simulate(seed, MemoryOptions::default(), &Setup { sabotage, ..MAPS });
            assert!(outcome.is_err(), "{sabotage:?} with seed {seed} was not noticed");
        }
    }
}
