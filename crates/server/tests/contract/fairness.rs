//! Priority and fairness: whoever floods the server does not starve others. In simulated time: nothing ends before the
//! clock is advanced, so requests that are answered have not waited.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use k1s_env::{Env, Task, VirtualClock};
use k1s_server::{ApiServer, AuthorizationMode, LocalServices, RequestBody, ServerOptions, User};
use k1s_store::{MemoryOptions, MemoryStore};
use serde_json::{Value, json};
use tower::Service as _;

use crate::common::{self, Client};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
/// How long a request for a resourceVersion that does not exist yet keeps its seat.
const LONG: Duration = Duration::from_secs(5);

struct World {
    env: Env,
    clock: VirtualClock,
    server: ApiServer,
}

/// A server with 40 seats for a tenant, and 10 that it leaves to others, where everybody may do everything.
async fn world() -> World {
    world_with(LocalServices::default()).await
}

/// The same with these services in its process.
async fn world_with(local: LocalServices) -> World {
    let (env, clock) = Env::simulated(11);
    let store = Arc::new(MemoryStore::new(env.clone(), MemoryOptions::default()));
    let mut options = ServerOptions::default();
    options.authorization = AuthorizationMode::AlwaysAllow.into();
    options.max_in_flight = 40;
    options.limits.reserved_in_flight = 10;
    options.future_revision_patience = LONG;
    options.services.local = local;
    let server = common::bare(&env, store, options).await;
    World { env, clock, server }
}

/// An answer: status, headers, body.
type Answer = (u16, http::HeaderMap, Value);

impl World {
    fn client(&self, tenant: Option<&ApiServer>, user: User) -> Client {
        Client { server: tenant.unwrap_or(&self.server).as_user(user), env: self.env.clone() }
    }

    fn admin(&self) -> Client {
        self.client(None, User::admin())
    }

    async fn tenant(&self, name: &str) -> ApiServer {
        self.server.tenant(name).await.unwrap()
    }

    /// Starts a request.
    fn start(&self, client: &Client, method: &str, path: &str) -> Task<Answer> {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(http_body_util::Empty::<Bytes>::new()).unwrap();
        let mut server = client.server.clone();
        self.env.spawn("request", async move {
            let response = server.call(request).await.unwrap();
            let (parts, body) = response.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            (parts.status.as_u16(), parts.headers, serde_json::from_slice(&body).unwrap_or_default())
        })
    }

    /// Starts a request that keeps its seat for [`LONG`].
    fn occupy(&self, client: &Client) -> Task<Answer> {
        self.start(client, "GET", &format!("{MAPS}/none?resourceVersion=1000000"))
    }

    fn flood(&self, client: &Client, requests: usize) -> Vec<Task<Answer>> {
        (0..requests).map(|_| self.occupy(client)).collect()
    }

    /// Lets everything run that needs no time.
    async fn settle(&self) {
        self.clock.advance_and_settle(Duration::from_millis(1)).await;
    }

    async fn metric(&self, client: &Client, name: &str, labels: &[&str]) -> u64 {
        let text = client.send("GET", "/metrics", &[], "").await.text();
        let prefix = format!("apiserver_flowcontrol_{name}{{");
        let matching = text.lines().filter(|line| line.starts_with(&prefix));
        let matching = matching.filter(|line| labels.iter().all(|label| line.contains(label)));
        matching.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    }
}

fn answered(tasks: &[Task<Answer>]) -> usize {
    tasks.iter().filter(|task| task.is_finished()).count()
}

fn user(name: &str) -> User {
    User::new(name, &[])
}

fn account(namespace: &str, name: &str) -> User {
    let group = format!("system:serviceaccounts:{namespace}");
    User::new(format!("system:serviceaccount:{namespace}:{name}"), &["system:serviceaccounts", &group])
}

fn schema(name: &str, level: &str, users: &[&str]) -> Value {
    let subjects: Vec<Value> =
        users.iter().map(|name| json!({"kind": "User", "user": {"name": name}})).collect();
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": name},
        "spec": {"matchingPrecedence": 50, "priorityLevelConfiguration": {"name": level},
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [{"subjects": subjects, "resourceRules": [
                {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true, "namespaces": ["*"]}]}]},
    })
}

fn level(name: &str, response: &Value) -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
        "metadata": {"name": name},
        "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 1, "borrowingLimitPercent": 0,
            "limitResponse": response}},
    })
}

#[tokio::test]
async fn a_flooding_user_does_not_starve_another_of_the_same_level() {
    let world = world().await;
    let (mallory, alice) = (world.client(None, user("mallory")), world.client(None, user("alice")));
    let flood = world.flood(&mallory, 200);
    world.settle().await;
    assert_eq!(answered(&flood), 0);
    let labels = &["flow_schema=\"global-default\""][..];
    let seats = world.metric(&world.admin(), "current_executing_requests", labels).await;
    assert!((20..40).contains(&seats), "what is guaranteed to other levels is left to them: {seats}");
    assert_eq!(world.metric(&world.admin(), "current_inqueue_requests", labels).await, 200 - seats);
    let asked: Vec<_> = (0..5).map(|_| world.start(&alice, "GET", MAPS)).collect();
    world.settle().await;
    assert_eq!(answered(&asked), 0, "all seats of the level are taken");
    // The first seats that are free are shared: half of the first round would be enough for all of hers.
    world.clock.advance_and_settle(LONG).await;
    assert_eq!(answered(&asked), 5);
    for task in asked {
        assert_eq!(task.await.unwrap().0, 200);
    }
    assert!(answered(&flood) <= usize::try_from(seats).unwrap(), "only the first round of the flood");
    // Nobody waits for longer than 15 seconds.
    world.clock.advance_and_settle(Duration::from_secs(60)).await;
    let mut codes = std::collections::BTreeMap::new();
    for task in flood {
        *codes.entry(task.await.unwrap().0).or_insert(0) += 1;
    }
    assert!(codes[&429] > 0 && codes[&504] >= 3 * seats, "{codes:?}");
    assert_eq!(world.metric(&world.admin(), "current_inqueue_requests", labels).await, 0);
    assert_eq!(world.metric(&world.admin(), "current_executing_requests", labels).await, 0);
    let reason = &[labels[0], "reason=\"time-out\""];
    assert_eq!(world.metric(&world.admin(), "rejected_requests_total", reason).await, codes[&429]);
}

#[tokio::test]
async fn a_flood_takes_nothing_from_other_levels_or_from_administrators() {
    let world = world().await;
    let robots = world.client(None, account("default", "robot"));
    let flood = world.flood(&robots, 300);
    world.settle().await;
    // Anything that is answered here has not waited.
    for other in [
        user("alice"),
        account("kube-system", "gc"),
        User::new("system:kube-controller-manager", &[]),
        User::new("system:node:a", &["system:nodes"]),
        User::admin(),
    ] {
        let name = other.name.clone();
        let asked = world.start(&world.client(None, other), "GET", MAPS);
        world.settle().await;
        assert!(asked.is_finished(), "{name} waits");
        assert_eq!(asked.await.unwrap().0, 200);
    }
    // As do probes, whoever asks.
    let probe = world.start(&robots, "GET", "/readyz");
    world.settle().await;
    assert_eq!(probe.await.unwrap().0, 200);
    assert_eq!(answered(&flood), 0);
}

#[tokio::test]
async fn administrators_are_exempt_from_all_limits() {
    let world = world().await;
    let flood = world.flood(&world.admin(), 500);
    world.settle().await;
    let asked = world.start(&world.client(None, user("alice")), "GET", MAPS);
    world.settle().await;
    assert!(asked.is_finished(), "they take no seats of others");
    world.clock.advance_and_settle(LONG).await;
    assert_eq!(answered(&flood), 500, "all at once");
    for task in flood {
        assert_eq!(task.await.unwrap().0, 504);
    }
}

#[tokio::test]
async fn flooding_tenants_do_not_starve_others() {
    let world = world().await;
    let mut floods = Vec::new();
    for number in 0..4 {
        let tenant = world.tenant(&format!("flood-{number}")).await;
        // Its own administrator exempts everything in it: that takes nothing from other tenants.
        let owner = world.client(Some(&tenant), User::admin());
        owner.post(SCHEMAS, schema("all", "exempt", &["*"])).await;
        floods.push(world.flood(&world.client(Some(&tenant), user("mallory")), 100));
        world.settle().await;
    }
    let quiet = world.tenant("quiet").await;
    // The first tenant found the server empty. When its requests end, all have as many seats, and some are left.
    world.clock.advance_and_settle(LONG).await;
    let after: Vec<usize> = floods.iter().map(|flood| answered(flood)).collect();
    assert_eq!(after[0], 40, "a tenant alone: {after:?}");
    let asked = world.start(&world.client(Some(&quiet), user("alice")), "GET", MAPS);
    world.settle().await;
    assert!(asked.is_finished(), "no seat is left");
    assert_eq!(asked.await.unwrap().0, 200);
    world.clock.advance_and_settle(LONG).await;
    let round: Vec<usize> =
        floods.iter().zip(&after).map(|(flood, before)| answered(flood) - before).collect();
    assert!(round.iter().all(|served| (10..=13).contains(served)), "{round:?}");
}

#[tokio::test]
async fn an_impersonated_administrator_of_a_tenant_is_not_one_of_the_server() {
    let world = world().await;
    let (flooded, quiet) = (world.tenant("flooded").await, world.tenant("quiet").await);
    let owner = world.client(Some(&flooded), user("owner"));
    let flood: Vec<_> = (0..200)
        .map(|_| {
            let request = Request::get(format!("{MAPS}/none?resourceVersion=1000000"))
                .header("impersonate-user", "root")
                .header("impersonate-group", "system:masters");
            let request = request.body(http_body_util::Empty::<Bytes>::new()).unwrap();
            let mut server = owner.server.clone();
            world.env.spawn("request", async move { server.call(request).await.unwrap().status().as_u16() })
        })
        .collect();
    world.settle().await;
    world.clock.advance_and_settle(LONG).await;
    let served = flood.iter().filter(|task| task.is_finished()).count();
    assert_eq!(served, 40, "as many as a tenant may have");
    let asked = world.start(&world.client(Some(&quiet), user("alice")), "GET", MAPS);
    world.settle().await;
    assert!(asked.is_finished());
}

#[tokio::test]
async fn a_level_without_queues_rejects() {
    let world = world().await;
    let admin = world.admin();
    let level = admin.post(LEVELS, level("narrow", &json!({"type": "Reject"}))).await;
    let schema = admin.post(SCHEMAS, schema("narrow", "narrow", &["mallory"])).await;
    let uid = |object: &Value| object["metadata"]["uid"].as_str().unwrap().to_owned();
    let mallory = world.client(None, user("mallory"));
    let first = world.occupy(&mallory);
    world.settle().await;
    let second = world.start(&mallory, "GET", MAPS);
    world.settle().await;
    let (status, headers, body) = second.await.unwrap();
    assert_eq!((status, &headers["retry-after"]), (429, &http::HeaderValue::from_static("1")));
    assert_eq!((&body["reason"], &body["code"]), (&json!("TooManyRequests"), &json!(429)));
    assert_eq!(body["message"], "Too many requests, please try again later.");
    assert_eq!(body["details"]["retryAfterSeconds"], 1);
    assert_eq!(headers["x-kubernetes-pf-flowschema-uid"], uid(&schema));
    assert_eq!(headers["x-kubernetes-pf-prioritylevel-uid"], uid(&level));
    let labels = &["flow_schema=\"narrow\"", "priority_level=\"narrow\"", "reason=\"concurrency-limit\""];
    assert_eq!(world.metric(&admin, "rejected_requests_total", labels).await, 1);
    assert_eq!(world.metric(&admin, "nominal_limit_seats", &["\"narrow\""]).await, 1);
    // Others are classified by the schemas after it, and answers of all kinds are marked.
    let other = world.client(None, user("alice")).send("GET", &format!("{MAPS}/none"), &[], "").await;
    assert_eq!(other.status, 404);
    let default = admin.get(&format!("{SCHEMAS}/global-default")).await;
    assert_eq!(other.header("x-kubernetes-pf-flowschema-uid"), uid(&default));
    // A request whose client has gone has no seat.
    first.abort();
    world.settle().await;
    let third = world.start(&mallory, "GET", MAPS);
    world.settle().await;
    assert_eq!(third.await.unwrap().0, 200);
    // As has a change of the configuration an effect on the next request.
    let (status, _) = admin.call("DELETE", &format!("{SCHEMAS}/narrow"), Value::Null).await;
    assert_eq!(status, 200);
    let flood = world.flood(&mallory, 2);
    world.clock.advance_and_settle(LONG).await;
    for task in flood {
        assert_eq!(task.await.unwrap().0, 504);
    }
}

#[tokio::test]
async fn a_full_queue_rejects() {
    let world = world().await;
    let admin = world.admin();
    let queuing = json!({"type": "Queue", "queuing": {"queues": 1, "handSize": 1, "queueLengthLimit": 3}});
    admin.post(LEVELS, level("short", &queuing)).await;
    admin.post(SCHEMAS, schema("short", "short", &["mallory"])).await;
    let flood = world.flood(&world.client(None, user("mallory")), 6);
    world.settle().await;
    assert_eq!(answered(&flood), 2, "one runs, three wait");
    let labels = &["flow_schema=\"short\"", "reason=\"queue-full\""];
    assert_eq!(world.metric(&admin, "rejected_requests_total", labels).await, 2);
    world.clock.advance_and_settle(LONG).await;
    world.clock.advance_and_settle(LONG).await;
    assert_eq!(answered(&flood), 4, "one after the other");
}

#[tokio::test]
async fn a_watch_has_a_seat_only_until_it_has_started() {
    let world = world().await;
    let admin = world.admin();
    admin.post(LEVELS, level("narrow", &json!({"type": "Reject"}))).await;
    admin.post(SCHEMAS, schema("narrow", "narrow", &["mallory"])).await;
    let mallory = world.client(None, user("mallory"));
    let mut watches = Vec::new();
    for _ in 0..10 {
        watches.push(mallory.watch(MAPS).await);
    }
    assert_eq!(mallory.send("GET", MAPS, &[], "").await.status, 200);
    // One that cannot start is limited like any other request.
    let _busy = world.occupy(&mallory);
    world.settle().await;
    assert_eq!(mallory.send("GET", &format!("{MAPS}?watch=true"), &[], "").await.status, 429);
    let labels = &["flow_schema=\"narrow\""];
    assert_eq!(world.metric(&admin, "dispatched_requests_total", labels).await, 12);
}

#[tokio::test]
async fn a_schema_without_its_level_is_dangling_and_ignored() {
    let world = world().await;
    let admin = world.admin();
    let dangling = async || {
        let schema = admin.get(&format!("{SCHEMAS}/early")).await;
        let conditions = schema["status"]["conditions"].as_array().cloned().unwrap_or_default();
        assert_eq!(conditions.len(), 1, "{schema}");
        assert_eq!(conditions[0]["type"], "Dangling");
        let text = |field: &str| conditions[0][field].as_str().unwrap().to_owned();
        (text("status"), text("reason"), text("message"))
    };
    let expected = |status: &str, reason: &str, end: &str| {
        let message =
            format!("This FlowSchema references the PriorityLevelConfiguration object named \"late\" {end}");
        (status.to_owned(), reason.to_owned(), message)
    };
    let missing = || expected("True", "NotFound", "but there is no such object");
    admin.post(SCHEMAS, schema("early", "late", &["mallory"])).await;
    assert_eq!(dangling().await, missing());
    let default = admin.get(&format!("{SCHEMAS}/global-default")).await;
    let mallory = world.client(None, user("mallory"));
    let answer = mallory.send("GET", MAPS, &[], "").await;
    assert_eq!(answer.header("x-kubernetes-pf-flowschema-uid"), default["metadata"]["uid"].as_str().unwrap());
    admin.post(LEVELS, level("late", &json!({"type": "Reject"}))).await;
    assert_eq!(dangling().await, expected("False", "Found", "and it exists"));
    let early = admin.get(&format!("{SCHEMAS}/early")).await;
    let answer = mallory.send("GET", MAPS, &[], "").await;
    assert_eq!(answer.header("x-kubernetes-pf-flowschema-uid"), early["metadata"]["uid"].as_str().unwrap());
    admin.call("DELETE", &format!("{LEVELS}/late"), Value::Null).await;
    world.settle().await;
    assert_eq!(dangling().await, missing());
    // Those of a new tenant are not.
    assert_eq!(default["status"]["conditions"][0]["status"], "False");
}

#[tokio::test]
async fn large_work_is_shared_by_flows() {
    let mut options = ServerOptions::default();
    options.authorization = AuthorizationMode::AlwaysAllow.into();
    options.limits.max_large = 1;
    let env = Env::system();
    let server = common::bare(&env, Arc::new(MemoryStore::default()), options).await;
    let admin = common::client(&server);
    for number in 0..2 {
        let map =
            json!({"metadata": {"name": format!("large-{number}")}, "data": {"a": "x".repeat(500_000)}});
        admin.post(MAPS, map).await;
    }
    let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let ask = |name: &'static str| {
        let (mut server, order) = (server.as_user(user(name)), order.clone());
        env.spawn("request", async move {
            let request = Request::get(MAPS).header("accept", "application/yaml");
            let request = request.body(http_body_util::Empty::<Bytes>::new()).unwrap();
            assert_eq!(server.call(request).await.unwrap().status(), 200);
            order.lock().push(name);
        })
    };
    let mut tasks: Vec<_> = (0..40).map(|_| ask("mallory")).collect();
    common::eventually("the flood waits", || async {
        env.tasks().iter().any(|task| task.name == "large request")
    })
    .await;
    tasks.push(ask("alice"));
    for task in tasks {
        task.await.unwrap();
    }
    let order = order.lock().clone();
    let place = order.iter().position(|name| *name == "alice").unwrap();
    assert!(place < 30, "hers was {place} of {}", order.len());
}

/// A world with an aggregated API that answers nothing but its discovery, and the number of requests that it has.
async fn world_with_a_silent_api() -> (World, Arc<AtomicUsize>) {
    let (local, asked) = (LocalServices::default(), Arc::new(AtomicUsize::new(0)));
    let counted = asked.clone();
    let silent = tower::service_fn(move |request: Request<RequestBody>| {
        let counted = counted.clone();
        async move {
            if request.uri().path().starts_with(USAGES) {
                counted.fetch_add(1, Ordering::SeqCst);
                std::future::pending::<()>().await;
            }
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"{}"))))
        }
    });
    local.serve_streams(None, "silent.ns.svc", silent);
    let world = world_with(local).await;
    let service = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.usage.example.com"}, "spec": {"group": "usage.example.com", "version": "v1",
            "groupPriorityMinimum": 1000, "versionPriority": 15, "insecureSkipTLSVerify": true,
            "service": {"namespace": "ns", "name": "silent"}}});
    world.admin().post("/apis/apiregistration.k8s.io/v1/apiservices", service).await;
    world.settle().await;
    (world, asked)
}

const USAGES: &str = "/apis/usage.example.com/v1/namespaces/default/usages";

#[tokio::test]
async fn requests_for_aggregated_apis_have_seats_like_any_other() {
    let (world, asked) = world_with_a_silent_api().await;
    let (mallory, alice) = (world.client(None, user("mallory")), world.client(None, user("alice")));
    let flood: Vec<_> = (0..90).map(|_| world.start(&mallory, "GET", USAGES)).collect();
    world.settle().await;
    let labels = &["flow_schema=\"global-default\""][..];
    let seats = world.metric(&world.admin(), "current_executing_requests", labels).await;
    assert!((20..40).contains(&seats), "{seats}");
    assert_eq!(asked.load(Ordering::SeqCst) as u64, seats, "the others wait here");
    assert_eq!(
        (answered(&flood), world.metric(&world.admin(), "current_inqueue_requests", labels).await),
        (0, 90 - seats)
    );
    // They are the seats of all requests of the level.
    let own = world.start(&alice, "GET", MAPS);
    world.settle().await;
    assert!(!own.is_finished());
    // Those of requests that are given up are free.
    flood.iter().for_each(Task::abort);
    world.settle().await;
    assert_eq!(own.await.unwrap().0, 200);
    assert_eq!(world.metric(&world.admin(), "current_executing_requests", labels).await, 0);
}

#[tokio::test]
async fn watches_of_aggregated_apis_keep_no_seats() {
    let (world, asked) = world_with_a_silent_api().await;
    let alice = world.client(None, user("alice"));
    let watches: Vec<_> =
        (0..90).map(|_| world.start(&alice, "GET", &format!("{USAGES}?watch=true"))).collect();
    world.settle().await;
    assert_eq!((asked.load(Ordering::SeqCst), answered(&watches)), (90, 0));
    let labels = &["flow_schema=\"global-default\""][..];
    assert_eq!(world.metric(&world.admin(), "current_executing_requests", labels).await, 0);
    assert!(world.metric(&world.admin(), "dispatched_requests_total", labels).await >= 90, "they had one");
}
