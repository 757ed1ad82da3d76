//! A program that runs until idle also waits for the resulting work of the control plane's own controllers.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use k1s::{
    Action, Context, Controller, ControllersOptions, IdleOptions, Manager, ManagerOptions, Request, Runtime,
    controller::{
        client::{self, DeleteOptions, PropagationPolicy},
        manager::IdleReport,
    },
    env::{Env, VirtualClock},
    k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret},
    kind,
    kube::{
        Api, ResourceExt as _,
        api::{DeleteParams, PostParams},
    },
};
use serde_json::json;
use std::time::Duration;

async fn simulated() -> (Runtime, VirtualClock) {
    let (env, clock) = Env::simulated(11);
    (Runtime::builder().env(env).start().await.unwrap(), clock)
}

/// A root and two more levels of two kinds; each level blocks the deletion of the one above.
async fn tree(runtime: &Runtime, root: &str) {
    let maps = Api::<ConfigMap>::default_namespaced(runtime.client());
    let secrets = Api::<Secret>::default_namespaced(runtime.client());
    let made = |name: &str, owner: Option<(&str, &str, String)>| {
        let owners = owner.map(|(kind, name, uid)| {
            json!([{"apiVersion": "v1", "kind": kind, "name": name, "uid": uid, "blockOwnerDeletion": true}])
        });
        json!({"metadata": {"name": name, "ownerReferences": owners}})
    };
    let create = PostParams::default();
    let top = maps.create(&create, &serde_json::from_value(made(root, None)).unwrap()).await.unwrap();
    for branch in ["a", "b"] {
        let name = format!("{root}-{branch}");
        let owner = Some(("ConfigMap", root, top.uid().unwrap()));
        let middle = serde_json::from_value(made(&name, owner)).unwrap();
        let middle = secrets.create(&create, &middle).await.unwrap();
        for leaf in ["1", "2"] {
            let owner = Some(("Secret", &*name, middle.uid().unwrap()));
            let leaf = serde_json::from_value(made(&format!("{name}-{leaf}"), owner)).unwrap();
            maps.create(&create, &leaf).await.unwrap();
        }
    }
}

/// The remaining objects of the trees.
async fn left(runtime: &Runtime) -> Vec<String> {
    let maps = Api::<ConfigMap>::default_namespaced(runtime.client());
    let secrets = Api::<Secret>::default_namespaced(runtime.client());
    let all = Default::default();
    let mut names: Vec<String> =
        maps.list(&all).await.unwrap().iter().map(|one| format!("map {}", one.name_any())).collect();
    names.extend(secrets.list(&all).await.unwrap().iter().map(|one| format!("secret {}", one.name_any())));
    names.retain(|name| name != "map kube-root-ca.crt");
    names
}

/// A manager whose controller deletes every `ConfigMap` with this name prefix.
fn deletes(runtime: &Runtime, prefix: &'static str, policy: PropagationPolicy) -> Manager {
    let manager = Manager::new(runtime, ManagerOptions::local()).unwrap();
    let client = manager.client();
    Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>())
        .complete(move |key: Request, _: Context| {
            let client = client.clone();
            async move {
                let Some(map) = client.get_opt::<ConfigMap>(&key).await? else { return Ok(Action::done()) };
                if key.name().starts_with(prefix)
                    && !key.name().contains('-')
                    && map.metadata.deletion_timestamp.is_none()
                {
                    let options = DeleteOptions { propagation_policy: Some(policy), ..Default::default() };
                    client.delete_with::<ConfigMap>(&key, options).await?;
                }
                Ok::<_, client::Error>(Action::done())
            }
        })
        .unwrap();
    manager
}

async fn run(manager: &Manager) -> IdleReport {
    manager.run_until_idle(IdleOptions::default()).await.unwrap()
}

#[tokio::test]
async fn objects_deleted_by_a_program_are_collected_to_the_last_level_before_it_ends() {
    for policy in [PropagationPolicy::Background, PropagationPolicy::Foreground] {
        let (runtime, _clock) = simulated().await;
        for root in ["root1", "root2", "kept"] {
            tree(&runtime, root).await;
        }
        let report = run(&deletes(&runtime, "root", policy)).await;
        let left = left(&runtime).await;
        assert!(
            left.len() == 7 && left.iter().all(|name| name.contains("kept")),
            "{policy:?}: {left:?} after {report}"
        );
        assert!(report.control_plane["garbage-collector"].reconciles >= 12, "{report}");
        runtime.stop().await.unwrap();
    }
}

#[tokio::test]
async fn consecutive_programs_leave_no_work_for_the_next() {
    let (runtime, _clock) = simulated().await;
    for policy in [PropagationPolicy::Foreground, PropagationPolicy::Background].into_iter().cycle().take(10)
    {
        tree(&runtime, "root").await;
        let report = run(&deletes(&runtime, "root", policy)).await;
        assert_eq!(left(&runtime).await, [""; 0], "{report}");
    }
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_long_running_manager_waits_for_garbage_collection_too() {
    let (runtime, _clock) = simulated().await;
    let manager = deletes(&runtime, "root", PropagationPolicy::Foreground);
    let stop = tokio_util::sync::CancellationToken::new();
    let (started, told) = (manager.clone(), stop.clone());
    let running = runtime.env().spawn("manager", async move { started.start(told).await });
    for _ in 0..10 {
        tree(&runtime, "root").await;
        manager.wait_until_idle(IdleOptions::default()).await.unwrap();
        assert_eq!(left(&runtime).await, [""; 0]);
        // A program that ends does not stop the work of another, even if their controllers have the same
        // name.
        run(&deletes(&runtime, "other", PropagationPolicy::Background)).await;
    }
    stop.cancel();
    running.await.unwrap().unwrap();
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_namespace_deleted_by_a_program_is_gone_before_it_ends() {
    let (runtime, _clock) = simulated().await;
    runtime
        .apply(
            "{apiVersion: v1, kind: Namespace, metadata: {name: blue}}\n---\n\
             {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: blue}}",
        )
        .await
        .unwrap();
    let manager = Manager::new(&runtime, ManagerOptions::local()).unwrap();
    let client = manager.client();
    Controller::managed_by(&manager)
        .for_(kind::<Namespace>())
        .complete(move |key: Request, _: Context| {
            let client = client.clone();
            async move {
                if key.name() == "blue" && client.get_opt::<Namespace>(&key).await?.is_some() {
                    client.delete::<Namespace>(&key).await?;
                }
                Ok::<_, client::Error>(Action::done())
            }
        })
        .unwrap();
    let report = run(&manager).await;
    let namespaces = Api::<Namespace>::all(runtime.client());
    assert!(namespaces.get_opt("blue").await.unwrap().is_none(), "{report}");
    assert!(report.control_plane["namespace"].reconciles > 0, "{report}");
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn an_object_with_a_foreign_finalizer_is_not_waited_for() {
    let (runtime, _clock) = simulated().await;
    runtime
        .apply(
            "{apiVersion: v1, kind: Namespace, metadata: {name: blue}}\n---\n\
             {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: blue, finalizers: [example.com/hold]}}",
        )
        .await
        .unwrap();
    let namespaces = Api::<Namespace>::all(runtime.client());
    namespaces.delete("blue", &DeleteParams::default()).await.unwrap();
    let report = run(&deletes(&runtime, "nothing", PropagationPolicy::Background)).await;
    let namespace = namespaces.get("blue").await.unwrap();
    let conditions = namespace.status.unwrap().conditions.unwrap();
    assert!(conditions.iter().any(|one| one.type_ == "NamespaceContentRemaining"), "{conditions:?}");
    assert!(report.control_plane["namespace"].reconciles > 0, "{report}");
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn controllers_without_work_are_not_waited_for() {
    let (runtime, _clock) = simulated().await;
    runtime.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: plain}}").await.unwrap();
    let report = run(&deletes(&runtime, "root", PropagationPolicy::Background)).await;
    assert!(report.control_plane.is_empty(), "{report}");
    runtime.stop().await.unwrap();
    let runtime = Runtime::builder().controllers(ControllersOptions::none()).start().await.unwrap();
    tree(&runtime, "root").await;
    let report = run(&deletes(&runtime, "root", PropagationPolicy::Background)).await;
    assert!(report.control_plane.is_empty(), "{report}");
    assert_eq!(left(&runtime).await.len(), 6);
    runtime.stop().await.unwrap();
}

/// Six objects that are requeued every minute for an hour, each time with a write, without real time passing.
async fn an_hour_of_requeues(runtime: Runtime, clock: VirtualClock) {
    for name in 0..6 {
        let text = format!("{{apiVersion: v1, kind: Secret, metadata: {{name: s{name}}}}}");
        runtime.apply(&text).await.unwrap();
    }
    let manager = Manager::new(&runtime, ManagerOptions::local()).unwrap();
    let (client, plain) = (manager.client(), runtime.client());
    Controller::managed_by(&manager)
        .for_(kind::<Secret>())
        .complete(move |key: Request, context: Context| {
            let (client, plain) = (client.clone(), plain.clone());
            async move {
                let seen = json!({"metadata": {"name": context.id().to_string(), "namespace": "default"}});
                client.create::<ConfigMap>(&serde_json::from_value(seen).unwrap()).await?;
                // Also bypasses the runtime's own client.
                Api::<Secret>::default_namespaced(plain).get(key.name()).await.unwrap();
                Ok::<_, client::Error>(Action::requeue_after(Duration::from_secs(60)))
            }
        })
        .unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let (started, told) = (manager.clone(), stop.clone());
    let running = runtime.env().spawn("manager", async move { started.start(told).await });
    manager.wait_until_idle(IdleOptions::default()).await.unwrap();
    let before = manager.stats()["secret"].reconciles;
    clock.advance_and_settle(Duration::from_secs(3600)).await;
    let after = manager.wait_until_idle(IdleOptions::default()).await.unwrap();
    assert_eq!(after.errors(), 0, "{after}");
    assert_eq!(after.reconciles() - before, 360, "{after}");
    stop.cancel();
    running.await.unwrap().unwrap();
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn an_hour_of_requeues_completes_in_memory() {
    let (runtime, clock) = simulated().await;
    an_hour_of_requeues(runtime, clock).await;
}

#[tokio::test]
async fn an_hour_of_requeues_completes_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (env, clock) = Env::simulated(11);
    an_hour_of_requeues(Runtime::builder().env(env).disk(folder.path()).start().await.unwrap(), clock).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_hour_of_requeues_completes_on_disk_with_many_threads() {
    let folder = tempfile::tempdir().unwrap();
    let (env, clock) = Env::simulated(11);
    an_hour_of_requeues(Runtime::builder().env(env).disk(folder.path()).start().await.unwrap(), clock).await;
}

#[tokio::test]
async fn a_store_outside_of_the_simulation_is_refused() {
    let (env, _clock) = Env::simulated(12);
    let started = Runtime::builder().env(env).etcd(["http://127.0.0.1:1"]).start().await;
    let error = started.map(drop).unwrap_err().to_string();
    assert!(error.contains("etcd") && error.contains("simulated"), "{error}");
}
