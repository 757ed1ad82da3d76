//! The operator on the embedded runtime, in virtual time.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{collections::BTreeMap, time::Duration};

use application::{
    Application, ApplicationSpec, ApplicationStatus, Options, Phase, Run, Strategy, children::CONFIG_HASH,
    reconciler::FINALIZER,
};
use k1s::{
    Client, ControllersOptions, IdleOptions, Manager, ManagerError, ManagerOptions, ObjectKey, Runtime,
    RuntimeBuilder,
    controller::{
        client::{ClientOptions, ListOptions, Patch},
        util::{controller_of, find_status_condition, is_status_condition_true},
    },
    env::{Env, Task, VirtualClock},
};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        batch::v1::Job,
        core::v1::{ConfigMap, Service},
        events::v1::Event,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::Resource as _;
use serde_json::json;
use tokio_util::sync::CancellationToken;

const STEP: Duration = Duration::from_secs(1);

/// A control plane with the operator on it.
struct World {
    env: Env,
    clock: VirtualClock,
    runtime: Runtime,
    manager: Manager,
    /// Reads from the server, never from a cache.
    client: Client,
    stop: CancellationToken,
    running: Task<Result<(), ManagerError>>,
}

impl World {
    async fn new() -> World {
        World::with(|builder| builder).await
    }

    async fn with(change: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder) -> World {
        let (env, clock) = Env::simulated(11);
        let runtime = change(Runtime::builder().env(env.clone())).start().await.unwrap();
        runtime.install::<Application>().await.unwrap();
        let manager = Manager::new(&runtime, ManagerOptions::local()).unwrap();
        let options = Options { simulated_rollout: Some(STEP), ..Options::default() };
        application::add_to(&manager, &options).unwrap();
        let client =
            Client::new(runtime.client(), ClientOptions { env: env.clone(), ..ClientOptions::default() });
        let (stop, started) = (CancellationToken::new(), manager.clone());
        let token = stop.clone();
        let running = env.spawn("manager", async move { started.start(token).await });
        World { env, clock, runtime, manager, client, stop, running }
    }

    /// Waits until the operator only waits for timers.
    async fn idle(&self) {
        self.manager.wait_until_idle(IdleOptions::default()).await.unwrap();
    }

    /// Advances the clock by this many rollout steps.
    async fn steps(&self, count: u32) {
        for _ in 0..count {
            self.clock.advance_and_settle(STEP).await;
            self.idle().await;
        }
    }

    /// Waits for a condition that other tasks bring about without time passing.
    async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        for _ in 0..10_000 {
            if holds().await {
                return;
            }
            self.env.yield_now().await;
        }
        panic!("never happened: {what}");
    }

    async fn create(&self, name: &str, replicas: i32, config: &[(&str, &str)]) -> Application {
        let spec = ApplicationSpec {
            replicas,
            image: "nginx:1".into(),
            run: Run::Always,
            strategy: Strategy::RollingUpdate,
            config: config.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        };
        self.create_with(name, spec).await
    }

    async fn create_with(&self, name: &str, spec: ApplicationSpec) -> Application {
        let mut app = Application::new(name, spec);
        app.metadata.namespace = Some("default".into());
        let app = self.client.create(&app).await.unwrap();
        self.idle().await;
        app
    }

    async fn app(&self, name: &str) -> Application {
        self.client.live().get(&key(name)).await.unwrap()
    }

    async fn status(&self, name: &str) -> ApplicationStatus {
        self.app(name).await.status.unwrap_or_default()
    }

    async fn change(&self, name: &str, spec: serde_json::Value) {
        let patch = Patch::merge(&json!({"spec": spec}));
        self.client.patch::<Application>(&key(name), patch).await.unwrap();
        self.idle().await;
    }

    async fn children(&self, name: &str) -> (Deployment, Service, ConfigMap) {
        let live = self.client.live();
        (
            live.get(&key(name)).await.unwrap(),
            live.get(&key(name)).await.unwrap(),
            live.get(&key(&format!("{name}-config"))).await.unwrap(),
        )
    }

    /// Number of objects with an Application's label.
    async fn left(&self, name: &str) -> usize {
        let live = self.client.live();
        let of = || {
            ListOptions::in_namespace("default").matching_labels([("app.kubernetes.io/name", name)]).unwrap()
        };
        live.list::<Deployment>(of()).await.unwrap().items.len()
            + live.list::<Job>(of()).await.unwrap().items.len()
            + live.list::<Service>(of()).await.unwrap().items.len()
            + live.list::<ConfigMap>(of()).await.unwrap().items.len()
    }

    /// Stops the operator and returns all events it recorded.
    async fn end(self) -> Vec<Event> {
        self.stop.cancel();
        self.running.await.unwrap().unwrap();
        let events = self.client.live().list::<Event>(ListOptions::default()).await.unwrap().items;
        self.runtime.stop().await.unwrap();
        events
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

fn config_hash(deployment: &Deployment) -> String {
    let template = deployment.spec.template.metadata.clone().unwrap_or_default();
    template.annotations.unwrap_or_default().remove(CONFIG_HASH).unwrap()
}

#[tokio::test]
async fn an_application_gets_its_children_and_is_rolled_out_step_by_step() {
    let world = World::new().await;
    let app = world.create("web", 2, &[("GREETING", "hello")]).await;
    let (deployment, service, config) = world.children("web").await;
    for owner in [controller_of(&deployment), controller_of(&service), controller_of(&config)] {
        assert_eq!(Some(&owner.unwrap().uid), app.metadata.uid.as_ref());
    }
    assert_eq!(config.data, Some(BTreeMap::from([("GREETING".to_owned(), "hello".to_owned())])));
    assert_eq!(deployment.spec.replicas, Some(2));
    let container = &deployment.spec.template.spec.as_ref().unwrap().containers[0];
    assert_eq!(container.image.as_deref(), Some("nginx:1"));
    assert_eq!(service.spec.unwrap().selector, deployment.spec.selector.match_labels);
    assert_eq!(world.app("web").await.metadata.finalizers, Some(vec![FINALIZER.to_owned()]));

    let status = world.status("web").await;
    assert_eq!((status.phase, status.ready_replicas), (Phase::Pending, 0));
    assert!(is_status_condition_true(&status.conditions, "Progressing"));
    world.steps(1).await;
    assert_eq!(
        (world.status("web").await.phase, world.status("web").await.ready_replicas),
        (Phase::Pending, 1)
    );
    world.steps(1).await;
    let status = world.status("web").await;
    assert_eq!((status.phase, status.replicas, status.ready_replicas), (Phase::Running, 2, 2));
    assert_eq!(status.observed_generation, app.metadata.generation);
    for (type_, holds) in [("Ready", "True"), ("Progressing", "False")] {
        let condition = find_status_condition(&status.conditions, type_).unwrap();
        assert_eq!((&*condition.status, &*condition.reason), (holds, "ReconciliationSucceeded"));
    }
    // Nothing is scheduled, not even later.
    let report = world.manager.wait_until_idle(IdleOptions::default()).await.unwrap();
    assert_eq!((report.delayed, report.errors()), (0, 0), "{report}");

    let events = world.end().await;
    let mut told: Vec<(String, String)> = events
        .into_iter()
        .filter(|event| {
            event.regarding.as_ref().is_some_and(|object| object.kind.as_deref() == Some("Application"))
        })
        .map(|event| (event.reason.unwrap_or_default(), event.note.unwrap_or_default()))
        .collect();
    told.sort();
    let told: Vec<(&str, &str)> = told.iter().map(|(reason, note)| (&**reason, &**note)).collect();
    assert_eq!(
        told,
        [
            ("Created", "ConfigMap default/web-config created"),
            ("Created", "Deployment default/web created"),
            ("Created", "Service default/web created"),
            ("Running", "2 of 2 replicas are ready"),
        ]
    );
}

#[tokio::test]
async fn a_change_of_the_configuration_is_rolled_out() {
    let world = World::new().await;
    world.create("web", 1, &[("A", "1")]).await;
    world.steps(1).await;
    assert_eq!(world.status("web").await.phase, Phase::Running);
    let (before, ..) = world.children("web").await;

    world.change("web", json!({"config": {"A": "2"}})).await;
    let (after, _, config) = world.children("web").await;
    assert_eq!(config.data.unwrap()["A"], "2");
    assert_ne!(config_hash(&before), config_hash(&after));
    assert_eq!(after.metadata.generation, Some(2), "one change, one new generation");
    let status = world.status("web").await;
    assert_eq!((status.phase, status.ready_replicas), (Phase::Pending, 1), "the old replica still serves");
    world.steps(1).await;
    assert_eq!(world.status("web").await.phase, Phase::Running);
    world.end().await;
}

#[tokio::test]
async fn recreate_stops_the_old_replicas_first() {
    let world = World::new().await;
    world.create("web", 2, &[]).await;
    world.steps(2).await;
    world.change("web", json!({"strategy": "Recreate", "image": "nginx:2"})).await;
    let status = world.status("web").await;
    assert_eq!((status.phase, status.ready_replicas), (Phase::Pending, 0));
    world.steps(2).await;
    assert_eq!(world.status("web").await.phase, Phase::Running);
    let (deployment, ..) = world.children("web").await;
    let strategy = deployment.spec.strategy.unwrap();
    assert_eq!((strategy.type_.as_deref(), strategy.rolling_update), (Some("Recreate"), None));
    // Back again: the server's defaults for rolling updates return.
    world.change("web", json!({"strategy": "RollingUpdate"})).await;
    let (deployment, ..) = world.children("web").await;
    assert!(deployment.spec.strategy.unwrap().rolling_update.is_some());
    world.end().await;
}

#[tokio::test]
async fn an_application_with_zero_replicas_has_succeeded() {
    let world = World::new().await;
    world.create("web", 2, &[]).await;
    world.steps(2).await;
    world.change("web", json!({"replicas": 0})).await;
    let status = world.status("web").await;
    assert_eq!((status.phase, status.replicas), (Phase::Succeeded, 0));
    assert!(is_status_condition_true(&status.conditions, "Ready"));
    world.end().await;
}

#[tokio::test]
async fn an_application_that_runs_once_succeeds_when_its_replicas_have_completed() {
    let world = World::new().await;
    let spec = |image: &str| ApplicationSpec {
        replicas: 2,
        image: image.into(),
        run: Run::Once,
        ..ApplicationSpec::default()
    };
    let app = world.create_with("report", spec("nginx:1")).await;
    let live = world.client.live();
    let job: Job = live.get(&key("report")).await.unwrap();
    assert_eq!(Some(&controller_of(&job).unwrap().uid), app.metadata.uid.as_ref());
    assert!(live.get_opt::<Deployment>(&key("report")).await.unwrap().is_none());
    let status = world.status("report").await;
    assert_eq!((status.phase, status.replicas, status.ready_replicas), (Phase::Running, 2, 2));
    assert!(is_status_condition_true(&status.conditions, "Progressing"));
    assert!(!is_status_condition_true(&status.conditions, "Ready"));

    world.steps(2).await;
    let status = world.status("report").await;
    assert_eq!((status.phase, status.replicas, status.ready_replicas), (Phase::Succeeded, 0, 0));
    for (type_, holds) in [("Ready", "True"), ("Progressing", "False")] {
        let condition = find_status_condition(&status.conditions, type_).unwrap();
        assert_eq!((&*condition.status, &*condition.reason), (holds, "ReconciliationSucceeded"));
        assert_eq!(condition.message, "2 of 2 replicas have completed");
    }
    let other: Job = live.get(&key("report")).await.unwrap();
    assert_eq!(other.metadata.generation, job.metadata.generation, "it is not applied differently");

    for (change, why) in [
        (json!({"image": "nginx:2"}), "an application that runs once cannot be changed"),
        (json!({"run": "Always"}), "spec.run: Invalid value: cannot be changed"),
    ] {
        let patch = Patch::merge(&json!({"spec": change}));
        let error = world.client.patch::<Application>(&key("report"), patch).await.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    world.client.delete::<Application>(&key("report")).await.unwrap();
    world.idle().await;
    assert_eq!(world.left("report").await, 0);

    world.create_with("broken", spec("nginx:broken")).await;
    world.steps(1).await;
    let status = world.status("broken").await;
    assert_eq!(status.phase, Phase::Failed);
    let ready = find_status_condition(&status.conditions, "Ready").unwrap();
    assert_eq!(
        (&*ready.reason, &*ready.message),
        ("RunFailed", "the image \"nginx:broken\" cannot be pulled")
    );
    world.end().await;
}

#[tokio::test]
async fn drift_is_corrected_and_what_others_add_stays() {
    let world = World::new().await;
    world.create("web", 1, &[("A", "1")]).await;
    world.steps(1).await;
    let client = &world.client;
    client.delete::<Service>(&key("web")).await.unwrap();
    let drift = json!({"spec": {"replicas": 9, "template": {"spec": {"containers": [
        {"name": "app", "image": "evil:1"}, {"name": "sidecar", "image": "proxy:1"}]}}}});
    client.patch::<Deployment>(&key("web"), Patch::merge(&drift)).await.unwrap();
    client
        .patch::<ConfigMap>(&key("web-config"), Patch::merge(&json!({"data": {"A": "x", "B": "y"}})))
        .await
        .unwrap();
    world.idle().await;
    let (deployment, _, config) = world.children("web").await;
    assert_eq!(deployment.spec.replicas, Some(1));
    let containers = deployment.spec.template.spec.unwrap().containers;
    let images: BTreeMap<_, _> = containers.iter().map(|one| (&*one.name, one.image.as_deref())).collect();
    assert_eq!(images, BTreeMap::from([("app", Some("nginx:1")), ("sidecar", Some("proxy:1"))]));
    let data = BTreeMap::from([("A".to_owned(), "1".to_owned()), ("B".to_owned(), "y".to_owned())]);
    assert_eq!(config.data, Some(data));
    world.steps(1).await;
    assert_eq!(world.status("web").await.phase, Phase::Running);
    world.end().await;
}

#[tokio::test]
async fn a_deleted_application_leaves_nothing_behind() {
    // Even without garbage collection, because of the finalizer.
    for garbage_collection in [true, false] {
        let options = ControllersOptions { garbage_collection, ..ControllersOptions::default() };
        let world = World::with(|builder| builder.controllers(options)).await;
        world.create("web", 1, &[]).await;
        world.create("other", 1, &[]).await;
        assert_eq!(world.left("web").await, 3);
        world.client.delete::<Application>(&key("web")).await.unwrap();
        world.idle().await;
        assert!(world.client.live().get_opt::<Application>(&key("web")).await.unwrap().is_none());
        assert_eq!(world.left("web").await, 0);
        assert_eq!(world.left("other").await, 3);
        let events = world.end().await;
        assert!(events.iter().any(|event| event.reason.as_deref() == Some("CleanedUp")));
    }
}

#[tokio::test]
async fn an_application_stays_until_the_last_child_is_gone() {
    let world = World::new().await;
    world.create("web", 1, &[]).await;
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    world.client.patch::<Service>(&key("web"), Patch::merge(&held)).await.unwrap();
    world.client.delete::<Application>(&key("web")).await.unwrap();
    world.idle().await;
    assert!(world.app("web").await.metadata.deletion_timestamp.is_some());
    assert_eq!(world.left("web").await, 1, "the service is held");
    let free = json!({"metadata": {"finalizers": null}});
    world.client.patch::<Service>(&key("web"), Patch::merge(&free)).await.unwrap();
    world.idle().await;
    assert_eq!(world.left("web").await, 0);
    assert!(world.client.live().get_opt::<Application>(&key("web")).await.unwrap().is_none());
    world.end().await;
}

#[tokio::test]
async fn a_child_with_another_owner_is_a_failure_that_is_retried_with_backoff() {
    let world = World::new().await;
    let other = world.create("other", 0, &[]).await;
    let taken: Service = serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "default", "ownerReferences": [{
            "apiVersion": "cloudnative.elide.dev/v1", "kind": "Application", "name": "other", "controller": true,
            "uid": other.metadata.uid}]},
        "spec": {"ports": [{"name": "other", "port": 1}]},
    }))
    .unwrap();
    world.client.create(&taken).await.unwrap();
    let mut app =
        Application::new("web", ApplicationSpec { image: "nginx:1".into(), ..ApplicationSpec::default() });
    app.metadata.namespace = Some("default".into());
    world.client.create(&app).await.unwrap();
    let failures = || world.manager.stats()["application"].errors;
    world.until("a first failure", async || world.status("web").await.phase == Phase::Failed).await;
    let status = world.status("web").await;
    let ready = find_status_condition(&status.conditions, "Ready").unwrap();
    assert_eq!((&*ready.status, &*ready.reason), ("False", "ReconciliationFailed"));
    assert!(
        ready.message.contains("Only one reference can have Controller set to true"),
        "{}",
        ready.message
    );

    // 5 ms, doubled each time: after 10 s there were about eleven attempts, not thousands.
    for _ in 0..100 {
        world.clock.advance_and_settle(Duration::from_millis(100)).await;
        for _ in 0..200 {
            world.env.yield_now().await;
        }
    }
    let tried = failures();
    assert!((8..=13).contains(&tried), "{tried} tries");
    let service: Service = world.client.live().get(&key("web")).await.unwrap();
    assert_eq!(controller_of(&service).unwrap().name, "other", "it was not changed");

    // The obstacle is removed, and the next attempt succeeds.
    world.client.delete::<Service>(&key("web")).await.unwrap();
    world.clock.advance_and_settle(Duration::from_secs(60)).await;
    world.idle().await;
    assert_eq!(world.status("web").await.phase, Phase::Succeeded);
    let events = world.end().await;
    let warnings: Vec<&Event> =
        events.iter().filter(|event| event.type_.as_deref() == Some("Warning")).collect();
    assert_eq!(warnings.len(), 1, "one event, however often it failed");
}

#[tokio::test]
async fn a_stuck_rollout_is_a_failure_until_the_image_is_corrected() {
    let world = World::new().await;
    world.create("web", 1, &[]).await;
    world.steps(1).await;
    world.change("web", json!({"image": "nginx:broken"})).await;
    world.steps(3).await;
    let status = world.status("web").await;
    assert_eq!((status.phase, status.ready_replicas), (Phase::Failed, 1));
    let ready = find_status_condition(&status.conditions, "Ready").unwrap();
    assert_eq!(ready.reason, "RolloutFailed");
    assert!(ready.message.ends_with("the image \"nginx:broken\" cannot be pulled"), "{}", ready.message);
    world.change("web", json!({"image": "nginx:2"})).await;
    world.steps(2).await;
    assert_eq!(world.status("web").await.phase, Phase::Running);
    world.end().await;
}

#[tokio::test]
async fn the_definition_validates_and_has_printer_columns() {
    let world = World::new().await;
    let refused = async |spec: serde_json::Value| {
        let text = json!({"apiVersion": "cloudnative.elide.dev/v1", "kind": "Application", "metadata": {"name": "x"}, "spec": spec});
        world.runtime.apply(&text.to_string()).await.unwrap_err().to_string()
    };
    for (spec, why) in [
        (json!({"replicas": -1, "image": "a"}), "spec.replicas"),
        (json!({"image": "a"}), "spec.replicas"),
        (json!({"replicas": 1}), "spec.image"),
        (json!({"replicas": 1, "image": "a", "strategy": "Never"}), "spec.strategy"),
        (json!({"replicas": 1, "image": "a", "config": {"a": 1}}), "spec.config.a"),
    ] {
        let error = refused(spec.clone()).await;
        assert!(error.contains(why), "{spec}: {error}");
    }
    let name = ObjectKey::cluster("applications.cloudnative.elide.dev");
    let crd: CustomResourceDefinition = world.client.live().get(&name).await.unwrap();
    assert_eq!(crd.spec.names.short_names, Some(vec!["app".to_owned()]));
    assert_eq!(crd.spec.scope, "Namespaced");
    let version = &crd.spec.versions[0];
    assert!(version.subresources.as_ref().is_some_and(|sub| sub.status.is_some()));
    let columns: Vec<&str> =
        version.additional_printer_columns.iter().flatten().map(|column| &*column.name).collect();
    assert_eq!(columns, ["Desired", "Ready", "Phase", "Image", "Age"]);
    assert_eq!(Application::plural(&()), "applications");
    world.end().await;
}

#[tokio::test]
async fn an_operator_stopped_midway_continues_at_its_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let (env, _clock) = Env::simulated(5);
    let mut phases = Vec::new();
    for start in 0..4 {
        let runtime = Runtime::builder().env(env.clone()).disk(folder.path()).start().await.unwrap();
        if start == 0 {
            runtime.install::<Application>().await.unwrap();
            runtime.apply(include_str!("../manifests/web.yaml")).await.unwrap();
        }
        let manager = Manager::new(&runtime, ManagerOptions::local()).unwrap();
        let options = Options { simulated_rollout: Some(STEP), ..Options::default() };
        application::add_to(&manager, &options).unwrap();
        // Runs until only timers are left, and does not wait for them.
        let report = manager.run_until_idle(IdleOptions::default()).await.unwrap();
        assert_eq!(report.errors(), 0, "{report}");
        let apps: kube::Api<Application> = kube::Api::default_namespaced(runtime.client());
        let status = apps.get("web").await.unwrap().status.unwrap();
        phases.push((status.phase, status.ready_replicas));
        assert_eq!(report.delayed, usize::from(status.phase == Phase::Pending), "{report}");
        runtime.stop().await.unwrap();
    }
    let expected = [(Phase::Pending, 0), (Phase::Pending, 1), (Phase::Pending, 2), (Phase::Running, 3)];
    assert_eq!(phases, expected, "each start makes one step");
}
