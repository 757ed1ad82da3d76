//! List and watch against a model: at any moment, a list and the watch from its revision make the list of now.
//!
//! Writers change a few objects while watchers start from all kinds of revisions, with selectors, and reads come in
//! pages. Beside the server that everybody uses there is a second one over the same store, which answers one question
//! alone: what was there at this revision, read from the store's history. Whatever a watcher believes at a bookmark
//! has to be that, filtered by the test's own understanding of selectors.
//!
//! The runs on a memory store are simulated: a seed (printed on failure) fixes the time and what is done.
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

/// What a check says when it fails.
type Check<T = ()> = Result<T, String>;

const NAMESPACES: [&str; 2] = ["ns-a", "ns-b"];
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const COLORS: [&str; 3] = ["red", "blue", ""];

/// Objects by namespace and name.
type State = BTreeMap<(String, String), Value>;

/// What is done wrong on purpose, to see that the checks notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sabotage {
    None,
    /// An event is lost on its way to the watcher.
    LoseEvent,
    /// An event comes twice.
    RepeatEvent,
    /// A deletion is shown as a change.
    ChangeType,
    /// An object is lost between two pages.
    LoseItem,
}

/// How a run is set up.
#[derive(Clone)]
struct Setup {
    /// Where the objects are: `/api/v1` and `configmaps`, or a custom resource's.
    root: &'static str,
    plural: &'static str,
    writers: usize,
    writes: usize,
    watchers: usize,
    restarts: usize,
    compactions: usize,
    /// Whether history may be forgotten: else no watcher ever hears 410.
    forgets: bool,
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
    forgets: false,
    sabotage: Sabotage::None,
};

const CUSTOM: Setup = Setup { root: "/apis/model.k1s.dev/v1", plural: "things", ..MAPS };

/// What all parts of a run share.
struct World {
    setup: Setup,
    env: Env,
    /// What the run is decided by.
    dice: Env,
    store: Arc<dyn Store>,
    server: Mutex<ApiServer>,
    /// Another replica, for questions about the past.
    oracle: Client,
    /// Revisions that were seen somewhere.
    seen: Mutex<Vec<u64>>,
    /// What writers were told: the revision, and the object at it.
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

    /// Once in a run, something is done wrong.
    fn spoil(&self, how: Sabotage) -> bool {
        self.setup.sabotage == how && self.below(8) == 0 && !std::mem::replace(&mut *self.spoilt.lock(), true)
    }

    /// All objects at a revision, by the other replica's reading of the store's history; `None`: it is forgotten.
    async fn truth(&self, at: u64) -> Check<Option<State>> {
        let path = format!("{}?resourceVersion={at}&resourceVersionMatch=Exact", self.path(""));
        let (status, body) = self.oracle.call("GET", &path, Value::Null).await;
        match status {
            200 => Ok(Some(state(&body)?)),
            410 if self.setup.forgets => Ok(None),
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

/// An object without its type, which items of lists of built-in kinds do not carry.
fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(object) = object.as_object_mut() {
        object.shift_remove("kind");
        object.shift_remove("apiVersion");
    }
    object
}

/// This test's understanding of a selector.
type Matches = fn(&Value) -> bool;

/// A choice of objects: as the query says it, and as this test understands it.
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

/// What a client knows who lists and watches.
struct Follower {
    filter: Filter,
    state: State,
    /// Everything up to here is known.
    reached: u64,
    /// While objects of the beginning come in, their revisions are in no order.
    initial: bool,
}

impl Follower {
    /// Takes in an event; `true` when it was a bookmark, at which the state is that of one moment.
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

/// Where a watch begins: the client's state, and what its query says.
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
        // A moment that somebody has seen, perhaps long ago.
        3 if !old.is_empty() => {
            let at = world.pick(&old);
            let Some(all) = world.truth(at).await? else {
                // The store has forgotten it; the server says so, unless its own memory is longer.
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

/// A client that watches, checks what it believes at each bookmark, and now and then starts again.
async fn watch(world: Arc<World>) -> Check {
    let mut last_of_all = false;
    loop {
        let Some((mut follower, mut query)) = begin(&world, Filter::choose(&world)).await? else { continue };
        if !follower.initial {
            check(&world, &follower).await?;
        }
        // One beginning, perhaps several connections.
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
                    if event["object"]["code"] != 410 || !world.setup.forgets {
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
            // The stream ended: the client goes on from what it knows. What was only begun begins again.
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

/// Whether a client believes what was so at the revision that it has reached.
async fn check(world: &World, follower: &Follower) -> Check {
    let Some(all) = world.truth(follower.reached).await? else { return Ok(()) };
    let what = format!(
        "at {} with {:?} in {:?}",
        follower.reached, follower.filter.query, follower.filter.namespace
    );
    same(&what, &follower.state, &follower.filter.of(&all))
}

/// A client that changes things.
async fn write(world: Arc<World>) -> Check {
    for _ in 0..world.setup.writes {
        if world.below(3) > 0 {
            world.pause().await;
        }
        // Either replica takes writes.
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

/// A client that lists in pages: they are all of the moment of the first.
async fn page(world: Arc<World>) -> Check {
    while !*world.finished.lock() {
        world.pause().await;
        let filter = Filter::choose(&world);
        let path = format!("{}?limit={}&{}", world.path(filter.namespace), 1 + world.below(3), filter.query);
        let (mut have, mut at, mut token) = (State::new(), 0, String::new());
        loop {
            let (status, list) =
                world.client().call("GET", &format!("{path}&continue={token}"), Value::Null).await;
            if status == 410 && world.setup.forgets {
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

/// New servers over the same store, and history that is forgotten.
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

/// A run from the beginning to the end; how many watches were told 410.
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
    // One that sees everything from the beginning, to be held against what writers were told.
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

/// Sees every event, and at the end holds them against what writers were told.
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
                // Compacted while it was between two connections: it has seen enough.
                return if world.setup.forgets { Ok(()) } else { Err(format!("the witness: {event}")) };
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
                "the writer of {at} was told of another object than the watcher: {object} {event}"
            ));
        }
    }
    Ok(())
}

/// Runs in simulated time; the outcome, and how many watches were told 410.
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

/// How many seeds each kind of run gets.
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
fn a_list_and_the_watch_from_it_make_the_list_of_now() {
    holds(4, MemoryOptions::default(), &MAPS);
    holds(4, MemoryOptions::default(), &CUSTOM);
}

#[test]
fn so_they_do_when_servers_come_and_go() {
    holds(3, MemoryOptions::default(), &Setup { restarts: 4, ..MAPS });
    holds(3, MemoryOptions::default(), &Setup { restarts: 4, ..CUSTOM });
}

#[test]
fn what_is_forgotten_is_told_and_listing_again_heals() {
    let compacted = Setup { compactions: 6, restarts: 3, forgets: true, ..MAPS };
    let mut gone = holds(4, MemoryOptions::default(), &compacted);
    // A store that keeps almost nothing, with a ring that its own watchers fall off.
    let small = MemoryOptions {
        history_revisions: 12,
        feed: FeedOptions { changes: 4, ..FeedOptions::default() },
        ..MemoryOptions::default()
    };
    // Whether somebody is too late is a matter of luck, which a seed does not fix: a few rounds make it all but sure.
    for _ in 0..20 {
        gone += holds(4, small, &Setup { restarts: 2, forgets: true, ..MAPS });
        if gone > 0 {
            break;
        }
    }
    assert!(gone > 0, "nobody was told 410, so nothing was shown");
}

#[test]
fn on_disk_too_and_after_it_was_closed_and_opened_again() {
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
            // The last tasks of the servers let go of the store, which is then unlocked.
            common::eventually("the tasks have ended", || async { env.tasks().is_empty() }).await;
        }
    });
}

#[test]
fn the_checks_notice_what_is_done_wrong() {
    for sabotage in [Sabotage::LoseEvent, Sabotage::RepeatEvent, Sabotage::ChangeType, Sabotage::LoseItem] {
        for seed in 0..3 {
            let outcome = simulate(seed, MemoryOptions::default(), &Setup { sabotage, ..MAPS });
            assert!(outcome.is_err(), "{sabotage:?} with seed {seed} was not noticed");
        }
    }
}
