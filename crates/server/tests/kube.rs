//! kube-rs, unmodified, with the server in the same process: the client, watchers, reflectors and controllers.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use common::HANG;
use futures_util::{StreamExt as _, TryStreamExt as _, pin_mut};
use k1s_env::Env;
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Namespace, Pod, Secret},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResource, CustomResourceExt as _, Resource as _, ResourceExt as _,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
        PostParams, PropagationPolicy, WatchEvent, WatchParams,
    },
    core::PartialObjectMeta,
    discovery::Discovery,
    runtime::{Controller, WatchStreamExt as _, controller::Action, reflector, watcher, watcher::Event},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

async fn client() -> Client {
    Client::new(common::server().await, "default")
}

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn config_map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    let data: BTreeMap<&str, &str> = data.iter().copied().collect();
    from(json!({"metadata": {"name": name, "labels": {"app": "test"}}, "data": data}))
}

fn code(error: &kube::Error) -> (u16, String) {
    match error {
        kube::Error::Api(status) => (status.code, status.reason.clone()),
        other => panic!("not a response of the server: {other}"),
    }
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    Env::system().timeout(HANG, future).await.unwrap_or_else(|_| panic!("{what}: still not done"))
}

/// A set of config maps, managed by the controller below.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[kube(
    group = "test.k1s.dev",
    version = "v1",
    kind = "ConfigSet",
    plural = "configsets",
    shortname = "cs",
    namespaced,
    status = "ConfigSetStatus",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".spec.replicas")
)]
struct ConfigSetSpec {
    replicas: i32,
    #[serde(default)]
    text: String,
}

/// The state that the controller has observed.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
struct ConfigSetStatus {
    replicas: i32,
}

/// Installs the derived definition, and waits until it is established.
async fn install(client: &Client) -> Api<ConfigSet> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.create(&PostParams::default(), &ConfigSet::crd()).await.unwrap();
    let established = kube::runtime::conditions::is_crd_established();
    let wait = kube::runtime::wait::await_condition(crds, "configsets.test.k1s.dev", established);
    within("the definition", wait).await.unwrap();
    Api::default_namespaced(client.clone())
}

#[tokio::test]
async fn a_built_in_kind_is_created_read_updated_and_deleted() {
    let api: Api<ConfigMap> = Api::default_namespaced(client().await);
    let post = PostParams::default();
    let created = api.create(&post, &config_map("one", &[("a", "1")])).await.unwrap();
    assert!(created.metadata.uid.is_some() && created.metadata.creation_timestamp.is_some());
    let again = api.create(&post, &config_map("one", &[])).await.unwrap_err();
    assert_eq!(code(&again), (409, "AlreadyExists".into()));

    assert_eq!(api.get("one").await.unwrap(), created);
    assert_eq!(api.get_opt("none").await.unwrap(), None);
    assert_eq!(code(&api.get("none").await.unwrap_err()), (404, "NotFound".into()));

    let mut changed = created.clone();
    changed.data.get_or_insert_default().insert("b".into(), "2".into());
    let replaced = api.replace("one", &post, &changed).await.unwrap();
    assert_ne!(replaced.resource_version(), created.resource_version());
    assert_eq!(code(&api.replace("one", &post, &changed).await.unwrap_err()), (409, "Conflict".into()));

    let merge = Patch::Merge(json!({"data": {"a": null, "c": "3"}}));
    let patched = api.patch("one", &PatchParams::default(), &merge).await.unwrap();
    assert_eq!(patched.data.unwrap().keys().collect::<Vec<_>>(), ["b", "c"]);
    let operations =
        json!([{"op": "test", "path": "/data/b", "value": "2"}, {"op": "remove", "path": "/data/b"}]);
    let patch = Patch::<()>::Json(from(operations));
    let patched = api.patch("one", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.data.unwrap().keys().collect::<Vec<_>>(), ["c"]);
    let patch = Patch::Strategic(json!({"metadata": {"finalizers": ["k1s.dev/test"]}}));
    api.patch("one", &PatchParams::default(), &patch).await.unwrap();

    let marked = api.delete("one", &DeleteParams::default()).await.unwrap().left().expect("the object");
    assert!(marked.metadata.deletion_timestamp.is_some());
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch("one", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(api.get_opt("one").await.unwrap(), None);
}

#[tokio::test]
async fn lists_are_paged_selected_and_deleted_as_collections() {
    let client = client().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    for number in 0..5 {
        api.create(&PostParams::default(), &config_map(&format!("page-{number}"), &[])).await.unwrap();
    }
    let mut params = ListParams::default().labels("app=test").limit(2);
    let mut seen = Vec::new();
    loop {
        let page = api.list(&params).await.unwrap();
        seen.extend(page.items.iter().map(|item| item.name_any()));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(seen, ["page-0", "page-1", "page-2", "page-3", "page-4"]);
    let one = api.list(&ListParams::default().fields("metadata.name=page-3")).await.unwrap();
    assert_eq!(one.items.len(), 1);
    let metadata = api.list_metadata(&ListParams::default().labels("app in (test)")).await.unwrap();
    assert_eq!(metadata.items.len(), 5);
    assert_eq!(metadata.items[0].metadata.labels.as_ref().unwrap()["app"], "test");

    let deleted =
        api.delete_collection(&DeleteParams::default(), &ListParams::default().labels("app=test")).await;
    assert_eq!(deleted.unwrap().left().expect("a list").items.len(), 5);
    assert!(api.list(&ListParams::default().labels("app=test")).await.unwrap().items.is_empty());
    let all: Api<ConfigMap> = Api::all(client);
    assert!(
        all.list(&ListParams::default())
            .await
            .unwrap()
            .items
            .iter()
            .all(|map| map.name_any() == "kube-root-ca.crt")
    );
}

#[tokio::test]
async fn status_and_scale_are_updated_separately() {
    let client = client().await;
    let api: Api<Deployment> = Api::default_namespaced(client.clone());
    let labels = json!({"app": "web"});
    let deployment: Deployment = from(json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}},
    }));
    let created = api.create(&PostParams::default(), &deployment).await.unwrap();
    let scale = api.get_scale("web").await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(2));
    let patch = Patch::Merge(json!({"spec": {"replicas": 5}}));
    api.patch_scale("web", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(api.get("web").await.unwrap().spec.replicas, Some(5));

    let patch =
        Patch::Merge(json!({"spec": {"replicas": 1}, "status": {"observedGeneration": 2, "replicas": 5}}));
    let patched = api.patch_status("web", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!((patched.spec.replicas, patched.status.unwrap().replicas), (Some(5), Some(5)));
    let mut whole = api.get_status("web").await.unwrap();
    whole.status.get_or_insert_default().ready_replicas = Some(3);
    let replaced = api.replace_status("web", &PostParams::default(), &whole).await.unwrap();
    assert_eq!(replaced.status.unwrap().ready_replicas, Some(3));
    assert_eq!(replaced.metadata.uid, created.metadata.uid);

    // A strategic merge patch merges lists by their key.
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "log", "image": "log:1"}]}}}});
    let patched = api.patch("web", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
    let names = |spec: &Deployment| -> Vec<String> {
        let template = &spec.spec.template;
        template.spec.as_ref().unwrap().containers.iter().map(|one| one.name.clone()).collect()
    };
    assert_eq!(names(&patched).len(), 2);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let pods: Api<Pod> = Api::default_namespaced(client);
    let pod: Pod = from(
        json!({"metadata": {"generateName": "web-"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}),
    );
    assert!(pods.create(&dry, &pod).await.unwrap().name_any().starts_with("web-"));
    assert!(pods.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn objects_are_applied_with_conflicts_and_force() {
    let deployments: Api<Deployment> = Api::default_namespaced(client().await);
    let config = |replicas: i32| {
        Patch::Apply(
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}),
        )
    };
    let created = deployments.patch("web", &PatchParams::apply("one"), &config(2)).await.unwrap();
    assert_eq!(created.managed_fields()[0].manager.as_deref(), Some("one"));
    let version = created.resource_version();
    let again = deployments.patch("web", &PatchParams::apply("one"), &config(2)).await.unwrap();
    assert_eq!(again.resource_version(), version);

    // Another manager adds a container; then it wants the field of the first.
    let sidecar = Patch::Apply(json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {
        "template": {"spec": {"containers": [{"name": "sidecar", "image": "s"}]}}}}));
    let both = deployments.patch("web", &PatchParams::apply("two"), &sidecar).await.unwrap();
    let names: Vec<String> =
        both.spec.template.spec.unwrap().containers.into_iter().map(|c| c.name).collect();
    assert_eq!(names, ["c", "sidecar"]);
    let wanted =
        Patch::Apply(json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 5}}));
    let error = deployments.patch("web", &PatchParams::apply("two"), &wanted).await.unwrap_err();
    assert_eq!(code(&error), (409, "Conflict".to_owned()));
    assert!(error.to_string().contains("conflict with \"one\": .spec.replicas"), "{error}");
    let forced = deployments.patch("web", &PatchParams::apply("two").force(), &wanted).await.unwrap();
    let spec = forced.spec;
    // Its container is gone: it does not apply it any more.
    assert_eq!((spec.replicas, spec.template.spec.unwrap().containers.len()), (Some(5), 1));

    let status =
        Patch::Apply(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "status": {"replicas": 5}}));
    let shown = deployments.patch_status("web", &PatchParams::apply("controller"), &status).await.unwrap();
    assert_eq!(shown.status.as_ref().unwrap().replicas, Some(5));
    let entry = shown.managed_fields().iter().find(|entry| entry.subresource.as_deref() == Some("status"));
    assert_eq!(entry.unwrap().manager.as_deref(), Some("controller"));
}

#[tokio::test]
async fn derived_kinds_are_applied() {
    let sets = install(&client().await).await;
    let set = ConfigSet::new("set", ConfigSetSpec { replicas: 1, text: String::new() });
    let params = PatchParams::apply("one");
    let created = sets.patch("set", &params, &Patch::Apply(&set)).await.unwrap();
    assert_eq!(created.spec.replicas, 1);
    let others = json!({"apiVersion": "test.k1s.dev/v1", "kind": "ConfigSet", "metadata": {"labels": {"tier": "web"}}});
    let labelled = sets.patch("set", &PatchParams::apply("two"), &Patch::Apply(others)).await.unwrap();
    assert_eq!((labelled.labels()["tier"].as_str(), labelled.spec.replicas), ("web", 1));
    assert_eq!(labelled.managed_fields().len(), 2);
}

#[tokio::test]
async fn dynamic_objects_and_partial_metadata_can_be_used() {
    let client = client().await;
    install(&client).await;
    let discovery = Discovery::new(client.clone()).run_aggregated().await.unwrap();
    let gvk = GroupVersionKind::gvk("test.k1s.dev", "v1", "ConfigSet");
    let (resource, capabilities) = discovery.resolve_gvk(&gvk).expect("the kind is discovered");
    assert_eq!(resource.plural, "configsets");
    assert!(capabilities.supports_operation(kube::discovery::verbs::WATCH));
    let legacy = Discovery::new(client.clone()).run().await.unwrap();
    assert!(legacy.resolve_gvk(&gvk).is_some() && legacy.has_group("apps"));

    let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    let object = DynamicObject::new("dynamic", &resource).data(json!({"spec": {"replicas": 3}}));
    let created = api.create(&PostParams::default(), &object).await.unwrap();
    assert_eq!(created.types.as_ref().unwrap().kind, "ConfigSet");
    // With the default of the derived schema.
    assert_eq!(created.data["spec"], json!({"replicas": 3, "text": ""}));
    let metadata: PartialObjectMeta<DynamicObject> = api.get_metadata("dynamic").await.unwrap();
    assert_eq!(metadata.metadata.uid, created.metadata.uid);
    let listed = api.list_metadata(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    assert!(api.get_metadata_opt("none").await.unwrap().is_none());

    let secrets: Api<DynamicObject> =
        Api::default_namespaced_with(client.clone(), &ApiResource::erase::<Secret>(&()));
    let secret =
        DynamicObject::new("s", &ApiResource::erase::<Secret>(&())).data(json!({"stringData": {"a": "b"}}));
    assert_eq!(secrets.create(&PostParams::default(), &secret).await.unwrap().data["data"]["a"], "Yg==");
    assert_eq!(client.apiserver_version().await.unwrap().major, "1");
    assert!(client.list_api_groups().await.unwrap().groups.iter().any(|group| group.name == "test.k1s.dev"));
}

#[tokio::test]
async fn a_derived_kind_has_its_schema_status_and_scale() {
    let client = client().await;
    let api = install(&client).await;
    let mut set = ConfigSet::new("mine", ConfigSetSpec { replicas: 2, text: "x".into() });
    set.status = Some(ConfigSetStatus { replicas: 9 });
    let created = api.create(&PostParams::default(), &set).await.unwrap();
    assert_eq!((created.metadata.generation, &created.status), (Some(1), &None));

    let patch = Patch::Merge(json!({"status": {"replicas": 2}}));
    let patched = api.patch_status("mine", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!((patched.metadata.generation, patched.status.unwrap().replicas), (Some(1), 2));
    let scale = api.get_scale("mine").await.unwrap();
    assert_eq!((scale.spec.unwrap().replicas, scale.status.unwrap().replicas), (Some(2), 2));
    let patch = Patch::Merge(json!({"spec": {"replicas": 7}}));
    api.patch_scale("mine", &PatchParams::default(), &patch).await.unwrap();
    let patched = api.get("mine").await.unwrap();
    assert_eq!((patched.metadata.generation, patched.spec.replicas), (Some(2), 7));

    let wrong = Patch::Merge(json!({"spec": {"replicas": "many"}}));
    let refused = api.patch("mine", &PatchParams::default(), &wrong).await.unwrap_err();
    assert_eq!(code(&refused), (422, "Invalid".into()));
    let strategic = Patch::Strategic(json!({"spec": {"replicas": 1}}));
    let refused = api.patch("mine", &PatchParams::default(), &strategic).await.unwrap_err();
    assert_eq!(code(&refused), (415, "UnsupportedMediaType".into()));
}

#[tokio::test]
async fn a_bare_watch_sees_every_change() {
    let client = client().await;
    let api: Api<Namespace> = Api::all(client);
    let from_list = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let params = WatchParams::default().timeout(20);
    let events = api.watch(&params, &from_list).await.unwrap();
    pin_mut!(events);
    api.create(&PostParams::default(), &from(json!({"metadata": {"name": "seen"}}))).await.unwrap();
    let Some(WatchEvent::Added(added)) = within("the event", events.try_next()).await.unwrap() else {
        panic!()
    };
    assert_eq!(added.name_any(), "seen");
    let error = within("the error", async {
        let events = api.watch(&params, "1").await.unwrap();
        pin_mut!(events);
        events.try_next().await.unwrap()
    });
    // This store is not compacted, so a watch can start from the first revision.
    assert!(matches!(error.await, Some(WatchEvent::Added(_))));
}

/// Polls a watcher until its store holds exactly `wanted`.
async fn until<K>(
    events: &mut (impl futures_util::Stream<Item = watcher::Result<Event<K>>> + Unpin),
    wanted: &[&str],
) where
    K: kube::Resource<DynamicType = ()> + Clone,
{
    let mut have: BTreeMap<String, ()> = BTreeMap::new();
    let mut ready = false;
    let follow = async {
        while let Some(event) = events.next().await {
            match event.unwrap() {
                Event::Init => have.clear(),
                Event::InitApply(object) | Event::Apply(object) => drop(have.insert(object.name_any(), ())),
                Event::Delete(object) => drop(have.remove(&object.name_any())),
                Event::InitDone => ready = true,
            }
            if ready && have.keys().eq(wanted) {
                return;
            }
        }
        panic!("the watcher ended with {have:?}");
    };
    within("the watcher", follow).await;
}

#[tokio::test]
async fn watchers_sync_by_list_and_by_stream() {
    for config in [
        watcher::Config::default(),
        watcher::Config::default().page_size(2),
        watcher::Config::default().any_semantic(),
        watcher::Config::default().streaming_lists(),
        // The server ends the watch every second, and the watcher resumes.
        watcher::Config::default().streaming_lists().timeout(1),
    ] {
        let client = client().await;
        let api: Api<ConfigMap> = Api::default_namespaced(client);
        for name in ["a", "b", "c"] {
            api.create(&PostParams::default(), &config_map(name, &[])).await.unwrap();
        }
        let short = config.timeout == Some(1);
        let events = watcher(api.clone(), config.labels("app=test"));
        pin_mut!(events);
        until(&mut events, &["a", "b", "c"]).await;
        api.create(&PostParams::default(), &config_map("d", &[])).await.unwrap();
        api.delete("a", &DeleteParams::default()).await.unwrap();
        let leaves = Patch::Merge(json!({"metadata": {"labels": {"app": "other"}}}));
        api.patch("b", &PatchParams::default(), &leaves).await.unwrap();
        // `until` starts with an empty set, so it counts only changes since then.
        let mut changes = Vec::new();
        while changes.len() < 3 {
            match within("a change", events.next()).await.expect("the watcher ended").unwrap() {
                Event::Apply(map) => changes.push(format!("+{}", map.name_any())),
                Event::Delete(map) => changes.push(format!("-{}", map.name_any())),
                other => assert!(short, "the watcher restarted: {other:?}"),
            }
        }
        assert_eq!(changes, ["+d", "-a", "-b"]);
        if short {
            Env::system().sleep(Duration::from_millis(1500)).await;
            api.create(&PostParams::default(), &config_map("e", &[])).await.unwrap();
            let next = within("a change after the timeout", events.next())
                .await
                .expect("the watcher ended")
                .unwrap();
            assert!(matches!(next, Event::Apply(map) if map.name_any() == "e"));
        }
    }
}

#[tokio::test]
async fn metadata_watchers_see_metadata() {
    let client = client().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let metadata: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(client.clone());
    let events = watcher(metadata, watcher::Config::default().streaming_lists().labels("app"));
    pin_mut!(events);
    api.create(&PostParams::default(), &config_map("a", &[("k", "v")])).await.unwrap();
    until(&mut events, &["a"]).await;
    api.create(&PostParams::default(), &config_map("b", &[("k", "v")])).await.unwrap();
    let next = within("the change", events.next()).await.unwrap().unwrap();
    assert!(matches!(next, Event::Apply(object) if object.name_any() == "b"));
}

#[tokio::test]
async fn the_store_of_a_reflector_follows_changes() {
    let client = client().await;
    let api = install(&client).await;
    for streaming in [false, true] {
        let config = match streaming {
            true => watcher::Config::default().streaming_lists(),
            false => watcher::Config::default(),
        };
        let (store, writer) = reflector::store();
        let follow = reflector(writer, watcher(api.clone(), config)).applied_objects().for_each(|_| async {});
        let task = Env::system().spawn("reflector", follow);
        within("the store", store.wait_until_ready()).await.unwrap();
        let name = format!("set-{streaming}");
        let set = ConfigSet::new(&name, ConfigSetSpec { replicas: 1, text: String::new() });
        api.create(&PostParams::default(), &set).await.unwrap();
        let at = reflector::ObjectRef::new(&name).within("default");
        common::eventually("the store has it", || async { store.get(&at).is_some() }).await;
        api.delete(&name, &DeleteParams::default()).await.unwrap();
        common::eventually("the store has lost it", || async { store.get(&at).is_none() }).await;
        task.abort();
    }
}

struct Context {
    client: Client,
}

/// Creates the config maps of a set, deletes surplus ones, and writes their number to the status.
async fn reconcile(set: Arc<ConfigSet>, context: Arc<Context>) -> Result<Action, kube::Error> {
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), &set.namespace().unwrap());
    let wanted: Vec<String> =
        (0..set.spec.replicas).map(|number| format!("{}-{number}", set.name_any())).collect();
    for name in &wanted {
        let map: ConfigMap = from(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {"set": set.name_any()}, "ownerReferences": [set.controller_owner_ref(&()).unwrap()]},
            "data": {"text": set.spec.text},
        }));
        match maps.get_opt(name).await? {
            None => drop(maps.create(&PostParams::default(), &map).await?),
            Some(now) if now.data != map.data => {
                drop(maps.patch(name, &PatchParams::default(), &Patch::Merge(&map)).await?);
            }
            Some(_) => {}
        }
    }
    let mine = ListParams::default().labels(&format!("set={}", set.name_any()));
    for map in maps.list(&mine).await?.items {
        if !wanted.contains(&map.name_any()) {
            maps.delete(&map.name_any(), &DeleteParams::default()).await?;
        }
    }
    let status = ConfigSetStatus { replicas: set.spec.replicas };
    if set.status.as_ref() != Some(&status) {
        let sets: Api<ConfigSet> = Api::namespaced(context.client.clone(), &set.namespace().unwrap());
        let patch = Patch::Merge(json!({"status": status}));
        sets.patch_status(&set.name_any(), &PatchParams::default(), &patch).await?;
    }
    Ok(Action::await_change())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_converges() {
    let client = client().await;
    let sets = install(&client).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let controller = Controller::new(sets.clone(), watcher::Config::default())
        .owns(maps.clone(), watcher::Config::default())
        // A Secret named like a set triggers its reconciliation.
        .watches(secrets.clone(), watcher::Config::default().streaming_lists(), |secret: Secret| {
            Some(reflector::ObjectRef::new(&secret.name_any()).within("default"))
        });
    let looked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let run = controller
        .run(
            reconcile,
            |_, _, _| Action::requeue(Duration::from_millis(50)),
            Arc::new(Context { client: client.clone() }),
        )
        .for_each({
            let looked = looked.clone();
            move |_| {
                looked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                std::future::ready(())
            }
        });
    let task = Env::system().spawn("controller", run);

    let set = ConfigSet::new("web", ConfigSetSpec { replicas: 3, text: "one".into() });
    sets.create(&PostParams::default(), &set).await.unwrap();
    let converged = |replicas: i32, text: &'static str| {
        let (maps, sets) = (maps.clone(), sets.clone());
        move || {
            let (maps, sets) = (maps.clone(), sets.clone());
            async move {
                let found = maps.list(&ListParams::default().labels("set=web")).await.unwrap().items;
                let status = sets.get("web").await.unwrap().status.map(|status| status.replicas);
                found.len() == replicas as usize
                    && found.iter().all(|map| map.data.as_ref().unwrap()["text"] == text)
                    && status == Some(replicas)
            }
        }
    };
    common::eventually("there are three", converged(3, "one")).await;
    // Owned objects that are deleted or changed by others are restored.
    maps.delete("web-1", &DeleteParams::default()).await.unwrap();
    let patch = Patch::Merge(json!({"data": {"text": "spoilt"}}));
    maps.patch("web-2", &PatchParams::default(), &patch).await.unwrap();
    common::eventually("the changes are undone", converged(3, "one")).await;
    let patch = Patch::Merge(json!({"spec": {"replicas": 1, "text": "two"}}));
    sets.patch("web", &PatchParams::default(), &patch).await.unwrap();
    common::eventually("there is one", converged(1, "two")).await;
    let before = looked.load(std::sync::atomic::Ordering::Relaxed);
    secrets.create(&PostParams::default(), &from(json!({"metadata": {"name": "web"}}))).await.unwrap();
    common::eventually("the Secret was seen", || async {
        looked.load(std::sync::atomic::Ordering::Relaxed) > before
    })
    .await;
    let orphan =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    sets.delete("web", &orphan).await.unwrap();
    task.abort();
}
