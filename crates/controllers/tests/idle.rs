//! A manager with these controllers is idle when they have observed everything and done the resulting work.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::{sync::Arc, time::Duration};

use common::{
    Api, Connected, DEFINITIONS, Intercept, Intercepted, MAPS, SECRETS, VIEWS, all, blocking, definition,
    owner,
};
use http_body_util::BodyExt as _;
use k1s_controllers::{ControllersOptions, add_to_manager};
use k1s_env::{Env, Task};
use k1s_runtime::{
    IdleOptions, Manager, ManagerOptions,
    manager::{IdleReport, ManagerError},
};
use k1s_server::Body;
use k1s_store::{MemoryOptions, MemoryStore};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const NAMESPACES: &str = "/api/v1/namespaces";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// A server with a stopped clock.
async fn simulated() -> Api {
    let (env, _) = Env::simulated(5);
    let store = Arc::new(MemoryStore::new(env.clone(), MemoryOptions::default()));
    Api::bare(env, store).await
}

struct Running {
    manager: Manager,
    stop: CancellationToken,
    task: Task<Result<(), ManagerError>>,
}

fn start(connected: Connected, options: &ControllersOptions) -> Running {
    let manager = Manager::new(connected, ManagerOptions::local()).unwrap();
    add_to_manager(&manager, options).unwrap();
    let (stop, started) = (CancellationToken::new(), manager.clone());
    let told = stop.clone();
    let task = manager.env().spawn("manager", async move { started.start(told).await });
    Running { manager, stop, task }
}

impl Running {
    /// Waits until idle, with a timeout in real time.
    async fn idle(&self) -> IdleReport {
        let idle = self.manager.wait_until_idle(IdleOptions::default());
        let waited = Env::system().timeout(Duration::from_secs(60), idle).await;
        waited.expect("the manager did not become idle").unwrap()
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

/// The names in a collection, without the default objects of a namespace.
async fn names(api: &Api, collection: &str) -> Vec<String> {
    let list = api.get(collection).await;
    let items = list["items"].as_array().unwrap();
    let mut names: Vec<String> =
        items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect();
    names.retain(|name| name != "kube-root-ca.crt");
    names
}

#[tokio::test]
async fn an_idle_manager_leaves_no_garbage() {
    for view in VIEWS {
        let api = simulated().await;
        let running = start(api.connect(view), &all());
        for round in 0..10 {
            let policy = ["Background", "Foreground"][round % 2];
            let top = api.create(MAPS, "top", &[]).await;
            let middle = api.create(SECRETS, "middle", &[blocking("top", &top)]).await;
            let reference = json!({"apiVersion": "v1", "kind": "Secret", "name": "middle", "uid": middle});
            for leaf in ["a", "b"] {
                api.create(MAPS, leaf, std::slice::from_ref(&reference)).await;
            }
            if round % 3 == 0 {
                running.idle().await;
            }
            api.delete(&format!("{MAPS}/top"), policy).await;
            let report = running.idle().await;
            let left = (names(&api, MAPS).await, names(&api, SECRETS).await);
            assert_eq!(left, (vec![], vec![]), "{view:?} {policy} {round}: {report}");
        }
        running.end().await;
    }
}

#[tokio::test]
async fn an_idle_manager_leaves_no_terminating_namespaces_or_definitions() {
    for view in VIEWS {
        let api = simulated().await;
        let running = start(api.connect(view), &all());
        for _ in 0..3 {
            api.create(NAMESPACES, "blue", &[]).await;
            api.create("/api/v1/namespaces/blue/configmaps", "a", &[]).await;
            api.create_with(DEFINITIONS, definition("Namespaced")).await;
            let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
            api.create_with(WIDGETS, widget).await;
            api.delete(&format!("{NAMESPACES}/blue"), "Background").await;
            api.delete(&format!("{DEFINITIONS}/widgets.example.com"), "Background").await;
            let report = running.idle().await;
            assert!(!names(&api, NAMESPACES).await.contains(&"blue".to_owned()), "{view:?}: {report}");
            assert_eq!(names(&api, DEFINITIONS).await, [""; 0], "{view:?}: {report}");
        }
        running.end().await;
    }
}

/// A kind can go between its discovery and its first list.
#[tokio::test]
async fn a_kind_that_goes_before_it_is_listed_blocks_nothing() {
    let api = simulated().await;
    let (lists, mut listed) = watch::channel(false);
    let server = Intercepted::new(&api.server, move |_, uri| {
        if uri.path().starts_with("/k1s/") {
            return Intercept::NotFound;
        }
        // The first list of all widgets.
        let first = uri.path() == "/apis/example.com/v1/widgets" && !lists.send_replace(true);
        if first { Intercept::NotFound } else { Intercept::Pass }
    });
    let connected = Connected { client: kube::Client::new(server, "default"), env: api.env.clone() };
    let running = start(connected, &all());
    running.idle().await;
    api.create_with(DEFINITIONS, definition("Namespaced")).await;
    listed.wait_for(|listed| *listed).await.unwrap();
    // Nobody moves the clock, so the list is not repeated.
    api.delete(&format!("{DEFINITIONS}/widgets.example.com"), "Background").await;
    let report = running.idle().await;
    assert_eq!(names(&api, DEFINITIONS).await, [""; 0], "{report}");
    running.end().await;
}

/// The events of a watch up to its first bookmark; then it stays open and silent.
fn until_bookmark(body: Body) -> Body {
    let chunks = futures_util::stream::unfold((body, false), |(mut body, silent)| async move {
        if silent {
            std::future::pending::<()>().await;
        }
        let chunk = body.frame().await?.unwrap().into_data().unwrap();
        let silent = chunk.windows(8).any(|text| text == b"BOOKMARK");
        Some((chunk, (body, silent)))
    });
    Body::stream(chunks)
}

#[tokio::test]
async fn a_lagging_feed_delays_idleness_until_it_has_caught_up() {
    let api = simulated().await;
    // Its metadata watch falls silent after the first bookmark.
    let server = Intercepted::new(&api.server, |_, uri| {
        let watches = uri.query().is_some_and(|query| query.contains("watch=true"));
        match watches && uri.path() == "/k1s/v1/metadata" {
            true => Intercept::Changed(until_bookmark),
            false => Intercept::Pass,
        }
    });
    let connected = Connected { client: kube::Client::new(server, "default"), env: api.env.clone() };
    let running = start(connected, &all());
    running.idle().await;
    for policy in ["Background", "Foreground"] {
        let top = api.create(MAPS, "top", &[]).await;
        let middle = api.create(MAPS, "middle", &[blocking("top", &top)]).await;
        api.create(SECRETS, "leaf", &[blocking("middle", &middle)]).await;
        api.create(NAMESPACES, "blue", &[]).await;
        api.delete(&format!("{MAPS}/top"), policy).await;
        api.delete(&format!("{NAMESPACES}/blue"), policy).await;
        let report = running.idle().await;
        let left = (names(&api, MAPS).await, names(&api, SECRETS).await);
        assert_eq!(left, (vec![], vec![]), "{policy}: {report}");
        assert!(!names(&api, NAMESPACES).await.contains(&"blue".to_owned()), "{policy}: {report}");
    }
    running.end().await;
}

#[tokio::test]
async fn a_kind_that_moved_is_discovered_again_without_an_error() {
    let env = Env::system();
    let api = Api::bare(env.clone(), Arc::new(MemoryStore::default())).await;
    // The server answers 404 for one request with this method.
    let method = Arc::new(Mutex::new(None));
    let forgets = method.clone();
    let server = Intercepted::new(&api.server, move |method, uri| {
        let wanted = uri.path().starts_with(WIDGETS);
        match forgets.lock().take_if(|one| wanted && one == method) {
            Some(_) => Intercept::NotFound,
            None => Intercept::Pass,
        }
    });
    let running = start(Connected { client: kube::Client::new(server, "default"), env }, &all());
    api.create_with(DEFINITIONS, definition("Namespaced")).await;
    let widget = |name: &str, owners: &[Value]| {
        json!({"apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": name, "ownerReferences": owners}})
    };
    let reference = |name: &str, uid: &str| json!({"apiVersion": "example.com/v1", "kind": "Widget", "name": name, "uid": uid});
    // An owner is checked.
    *method.lock() = Some(http::Method::GET);
    let top = api.create_with(WIDGETS, widget("top", &[])).await;
    api.create_with(WIDGETS, widget("middle", &[reference("top", &top)])).await;
    running.idle().await;
    assert_eq!(*method.lock(), None);
    assert_eq!(names(&api, WIDGETS).await, ["middle", "top"]);
    // A dependent is deleted.
    *method.lock() = Some(http::Method::DELETE);
    api.delete(&format!("{WIDGETS}/top"), "Background").await;
    running.idle().await;
    assert_eq!(*method.lock(), None);
    assert_eq!(names(&api, WIDGETS).await, [""; 0]);
    // The objects of a definition are deleted.
    api.create_with(WIDGETS, widget("w", &[])).await;
    *method.lock() = Some(http::Method::DELETE);
    api.delete(&format!("{DEFINITIONS}/widgets.example.com"), "Background").await;
    let report = running.idle().await;
    assert_eq!(*method.lock(), None);
    assert_eq!(names(&api, DEFINITIONS).await, [""; 0]);
    // A dependent whose owner's kind is gone for good.
    let map = owner("nobody", "no-uid");
    let lost = json!({"apiVersion": "example.com/v1", "kind": "Widget", "name": "lost", "uid": "lost-uid"});
    api.create(MAPS, "waits", &[lost]).await;
    api.create(MAPS, "goes", &[map]).await;
    assert_eq!(report.errors(), 0, "{report}");
    let report = running.idle().await;
    assert_eq!(names(&api, MAPS).await, ["waits"]);
    assert_eq!(report.errors(), 0, "{report}");
    running.end().await;
}
