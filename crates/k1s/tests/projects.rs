//! Projects: each has a control plane of its own, from its creation until its deletion.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt as _, future::join_all};
use http::{Request, Uri};
use k1s::{
    Action, BoxError, CancellationToken, Context, Election, ManagerOptions, ProjectsOptions, Runtime,
    async_trait,
    controller::{kind::Kind, leader::LeaderElectionOptions},
    env::Env,
    k8s_openapi::api::core::v1::{ConfigMap, Namespace},
    kube::{
        self, Api, Discovery, ResourceExt as _,
        api::{DynamicObject, ListParams, Patch, PatchParams, WatchEvent, WatchParams},
        core::Status,
    },
    multicluster::{Controller, MultiClusterManager, MultiClusterOptions, providers::ProjectsProvider},
    projects::{self, SUSPEND, TEMPLATE, TEMPLATES},
    server::{ApiServer, User},
    store::{
        Error as StoreError, GetResult, MemoryStore, Range, RangeResult, Result as StoreResult, Revision,
        Stats, Store, Txn, Watch, WatchRequest,
    },
};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tower::ServiceExt as _;

async fn start() -> Runtime {
    Runtime::builder().projects(ProjectsOptions::default()).start().await.unwrap()
}

fn project(name: &str) -> DynamicObject {
    DynamicObject::new(name, &projects::project())
        .data(json!({"spec": {"ownerRef": {"kind": "Organization", "name": "acme"}}}))
}

fn projects_of(runtime: &Runtime) -> Api<DynamicObject> {
    Api::all_with(runtime.client(), &projects::project())
}

fn planes_of(runtime: &Runtime) -> Api<DynamicObject> {
    Api::all_with(runtime.client(), &projects::project_control_plane())
}

async fn create(runtime: &Runtime, name: &str) -> DynamicObject {
    projects_of(runtime).create(&Default::default(), &project(name)).await.unwrap()
}

async fn annotate(runtime: &Runtime, name: &str, annotations: Value) {
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    projects_of(runtime).patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// Timeout for anything that should not hang.
const HANG: Duration = Duration::from_secs(60);

/// Watches until an object, or its absence, is as wanted.
async fn until(
    api: &Api<DynamicObject>,
    name: &str,
    is: impl Fn(Option<&DynamicObject>) -> bool,
) -> Option<DynamicObject> {
    let one = format!("metadata.name={name}");
    let mut seen = String::new();
    let wait = async {
        loop {
            // A server that was killed answers nothing, and the test goes on with the next one.
            let Ok(list) = api.list(&ListParams::default().fields(&one)).await else {
                Env::system().yield_now().await;
                continue;
            };
            if is(list.items.first()) {
                return list.items.into_iter().next();
            }
            seen = format!("{:?}", list.items.first().map(|object| &object.data));
            let version = list.metadata.resource_version.unwrap();
            if let Ok(events) = api.watch(&WatchParams::default().fields(&one), &version).await {
                let _ = events.boxed().next().await;
            }
        }
    };
    let waited = Env::system().timeout(HANG, wait).await;
    waited.unwrap_or_else(|_| panic!("{name} is not as it should be: {seen}"))
}

/// Status, reason and message of a condition.
fn condition(object: &DynamicObject, type_: &str) -> (String, String, String) {
    let all = object.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let one = all.into_iter().find(|one| one["type"] == type_).unwrap_or_default();
    let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}

fn has(
    type_: &'static str,
    status: &'static str,
    reason: &'static str,
) -> impl Fn(Option<&DynamicObject>) -> bool {
    move |object| {
        object.is_some_and(|object| {
            let (is, why, _) = condition(object, type_);
            (&*is, &*why) == (status, reason)
        })
    }
}

async fn ready(runtime: &Runtime, name: &str) -> DynamicObject {
    until(&projects_of(runtime), name, has("Ready", "True", "Ready")).await.unwrap()
}

async fn delete(runtime: &Runtime, name: &str) {
    projects_of(runtime).delete(name, &Default::default()).await.unwrap();
    until(&projects_of(runtime), name, |object| object.is_none()).await;
}

/// A client of the server below a path, as a kubeconfig with that path has it.
fn below(server: &ApiServer, prefix: String) -> kube::Client {
    let service =
        server.as_user(User::admin()).map_request(move |mut request: Request<kube::client::Body>| {
            let rest = request.uri().path_and_query().map_or("/", |path| path.as_str());
            *request.uri_mut() = format!("{prefix}{rest}").parse::<Uri>().unwrap();
            request
        });
    kube::Client::new(service, "default")
}

fn path(name: &str) -> String {
    format!("/apis/resourcemanager.miloapis.com/v1alpha1/projects/{name}/control-plane")
}

/// A client of a project, by its control-plane path.
fn inside(runtime: &Runtime, name: &str) -> kube::Client {
    below(runtime.server(), path(name))
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

async fn maps(client: kube::Client) -> Vec<String> {
    let all = Api::<ConfigMap>::default_namespaced(client).list(&ListParams::default()).await.unwrap();
    all.items.iter().map(|map| map.name_any()).filter(|name| name != "kube-root-ca.crt").collect()
}

async fn write(client: kube::Client, name: &str) -> Result<(), Status> {
    match Api::<ConfigMap>::default_namespaced(client).create(&Default::default(), &map(name)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(*status),
        Err(error) => panic!("{error}"),
    }
}

fn definition(template: &str, fields: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com", "labels": {TEMPLATE: template}},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": fields}},
            }}}],
        },
    })
}

/// The properties of the widgets of a control plane; `None` if it has none.
async fn widget_fields(client: kube::Client) -> Option<Vec<String>> {
    let crds = Api::<DynamicObject>::all_with(client, &definitions());
    let found = crds.get_opt("widgets.example.com").await.unwrap()?;
    let fields =
        &found.data["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    Some(fields.as_object().unwrap().keys().cloned().collect())
}

fn definitions() -> kube::api::ApiResource {
    let gvk = kube::core::GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    kube::api::ApiResource::from_gvk_with_plural(&gvk, "customresourcedefinitions")
}

#[tokio::test]
async fn a_project_has_a_control_plane_from_its_creation_until_its_deletion() {
    let runtime = start().await;
    let created = create(&runtime, "p").await;
    let project = ready(&runtime, "p").await;
    assert_eq!(condition(&project, "ControlPlaneReady").0, "True");
    assert_eq!(condition(&project, "DefinitionsInstalled").0, "True");
    let observed = &project.data["status"]["conditions"][0]["observedGeneration"];
    assert_eq!(observed.as_i64(), project.metadata.generation);
    let plane = planes_of(&runtime).get("p").await.unwrap();
    assert_eq!(condition(&plane, "ControlPlaneReady").0, "True");
    assert_eq!(plane.owner_references()[0].uid, created.uid().unwrap());
    let label = |name: &str| plane.labels().get(&format!("resourcemanager.miloapis.com/{name}")).cloned();
    assert_eq!((label("project-name"), label("project-uid")), (Some("p".to_owned()), created.uid()));

    write(inside(&runtime, "p"), "one").await.unwrap();
    write(below(runtime.server(), "/clusters/p".to_owned()), "two").await.unwrap();
    write(runtime.client(), "of-the-host").await.unwrap();
    assert_eq!(maps(inside(&runtime, "p")).await, ["one", "two"]);
    assert_eq!(maps(runtime.tenant_client("p").await.unwrap()).await, ["one", "two"]);
    assert_eq!(maps(runtime.client()).await, ["of-the-host"]);

    delete(&runtime, "p").await;
    assert_eq!(runtime.server().stored_tenants().await.unwrap(), ["default"]);
    until(&planes_of(&runtime), "p", |plane| plane.is_none()).await;
    assert_eq!(write(inside(&runtime, "p"), "late").await.unwrap_err().code, 404);

    create(&runtime, "p").await;
    ready(&runtime, "p").await;
    assert_eq!(maps(inside(&runtime, "p")).await, [""; 0], "a new project of the same name is empty");
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn clients_discover_and_watch_a_project_through_its_path() {
    let runtime = start().await;
    runtime.apply(&definition("default", &json!({"size": {"type": "integer"}})).to_string()).await.unwrap();
    create(&runtime, "p").await;
    ready(&runtime, "p").await;
    let client = inside(&runtime, "p");
    let found = Discovery::new(client.clone()).run_aggregated().await.unwrap();
    assert!(found.get("apps").is_some() && found.get("resourcemanager.miloapis.com").is_none());
    let widgets = found.get("example.com").unwrap().recommended_kind("Widget").unwrap().0;
    let widgets = Api::<DynamicObject>::default_namespaced_with(client.clone(), &widgets);
    let mut events = widgets.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    let widget = DynamicObject::new("w", &kube::api::ApiResource::erase::<ConfigMap>(&()));
    let mut widget = widget.data(json!({"spec": {"size": 1}}));
    widget.types = Some(kube::core::TypeMeta { api_version: "example.com/v1".into(), kind: "Widget".into() });
    widgets.create(&Default::default(), &widget).await.unwrap();
    let event = Env::system().timeout(HANG, events.next()).await.unwrap().unwrap().unwrap();
    assert!(matches!(event, kube::api::WatchEvent::Added(added) if added.name_any() == "w"));
    assert_eq!(client.apiserver_version().await.unwrap().git_version, "v1.37.0+k1s");
    for probe in ["/healthz", "/livez", "/readyz"] {
        let request = Request::get(probe).body(Vec::new()).unwrap();
        assert_eq!(client.request_text(request).await.unwrap(), "ok");
    }
    Api::<Namespace>::all(client).get("kube-system").await.unwrap();

    let table = Request::get("/apis/resourcemanager.miloapis.com/v1alpha1/projects")
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())
        .unwrap();
    let table: Value = runtime.client().request(table).await.unwrap();
    let columns: Vec<&str> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(columns, ["Name", "Ready", "Reason", "Age"]);
    assert_eq!(table["rows"][0]["cells"][1], "True");
    runtime.stop().await.unwrap();
}

/// Milo's internal service discovery: an address for each project, and no path.
#[tokio::test]
async fn a_project_is_also_found_by_the_host_that_a_client_means() {
    let runtime = start().await;
    create(&runtime, "p").await;
    ready(&runtime, "p").await;
    let host = "milo-apiserver.project-p.svc.cluster.local:6443";
    let client = |by_header: bool, user: User| {
        let to_host = move |mut request: Request<kube::client::Body>| {
            if by_header {
                request.headers_mut().insert("host", host.parse().unwrap());
            } else {
                *request.uri_mut() = format!("https://{host}{}", request.uri()).parse::<Uri>().unwrap();
            }
            request
        };
        kube::Client::new(runtime.server().as_user(user).map_request(to_host), "default")
    };
    write(client(true, User::admin()), "by-header").await.unwrap();
    write(client(false, User::admin()), "by-authority").await.unwrap();
    assert_eq!(maps(inside(&runtime, "p")).await, ["by-authority", "by-header"]);
    assert_eq!(maps(runtime.client()).await, [""; 0]);
    assert_eq!(write(client(true, User::new("nobody", &[])), "x").await.unwrap_err().code, 403);
    annotate(&runtime, "p", json!({SUSPEND: "true"})).await;
    until(&projects_of(&runtime), "p", has("Ready", "False", "Suspended")).await;
    assert_eq!(write(client(true, User::admin()), "x").await.unwrap_err().code, 403);
    delete(&runtime, "p").await;
    assert_eq!(write(client(true, User::admin()), "x").await.unwrap_err().code, 404);
    runtime.stop().await.unwrap();

    // A server without projects has no such hosts.
    let plain = Runtime::builder().start().await.unwrap();
    let to_host = move |mut request: Request<kube::client::Body>| {
        request.headers_mut().insert("host", host.parse().unwrap());
        request
    };
    let client = kube::Client::new(plain.server().as_user(User::admin()).map_request(to_host), "default");
    write(client, "of-the-host").await.unwrap();
    assert_eq!(maps(plain.client()).await, ["of-the-host"]);
    plain.stop().await.unwrap();
}

#[tokio::test]
async fn projects_do_not_see_each_other() {
    let runtime = start().await;
    for name in ["a", "b"] {
        create(&runtime, name).await;
        ready(&runtime, name).await;
        write(inside(&runtime, name), &format!("in-{name}")).await.unwrap();
    }
    assert_eq!(maps(inside(&runtime, "a")).await, ["in-a"]);
    assert_eq!(maps(inside(&runtime, "b")).await, ["in-b"]);
    assert_eq!(maps(runtime.client()).await, [""; 0]);
    // A project has no projects, and no way to those of its host.
    let nested = below(runtime.server(), format!("{}{}", path("a"), path("b")));
    assert_eq!(write(nested, "x").await.unwrap_err().code, 404);
    delete(&runtime, "a").await;
    assert_eq!(maps(inside(&runtime, "b")).await, ["in-b"]);
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_name_that_is_taken_or_impossible_is_reported_and_nothing_is_taken_over() {
    let runtime = start().await;
    let foreign = runtime.tenant_client("foreign").await.unwrap();
    write(foreign.clone(), "kept").await.unwrap();
    let cases = [
        ("default", "ProjectNameConflict", 404),
        ("foreign", "ProjectNameConflict", 503),
        ("a.b", "InvalidName", 400),
    ];
    for (name, reason, code) in cases {
        create(&runtime, name).await;
        let project = until(&projects_of(&runtime), name, has("Ready", "False", reason)).await.unwrap();
        assert_eq!(condition(&project, "ControlPlaneReady"), condition(&project, "Ready"));
        let plane = planes_of(&runtime).get(name).await.unwrap();
        assert_eq!(condition(&plane, "ControlPlaneReady"), condition(&project, "Ready"));
        assert_eq!(write(inside(&runtime, name), "x").await.unwrap_err().code, code);
        delete(&runtime, name).await;
    }
    assert_eq!(maps(foreign).await, ["kept"]);
    assert_eq!(runtime.server().stored_tenants().await.unwrap(), ["default", "foreign"]);

    // Somebody else's ProjectControlPlane is left alone as well.
    let mut plane = DynamicObject::new("q", &projects::project_control_plane());
    plane.data = json!({"spec": {}});
    planes_of(&runtime).create(&Default::default(), &plane).await.unwrap();
    create(&runtime, "q").await;
    let conflict = has("Ready", "False", "ProjectNameConflict");
    until(&projects_of(&runtime), "q", conflict).await;
    delete(&runtime, "q").await;
    planes_of(&runtime).get("q").await.unwrap();
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_project_takes_its_name_once_the_conflict_is_gone() {
    let (env, clock) = Env::simulated(3);
    let runtime = Runtime::builder().env(env).projects(ProjectsOptions::default()).start().await.unwrap();
    runtime.server().create_tenant("p").await.unwrap();
    create(&runtime, "p").await;
    until(&projects_of(&runtime), "p", has("Ready", "False", "ProjectNameConflict")).await;
    runtime.server().delete_tenant("p").await.unwrap();
    clock.advance_and_settle(Duration::from_secs(60)).await;
    ready(&runtime, "p").await;
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_suspended_project_keeps_everything_and_answers_nobody() {
    let runtime = start().await;
    create(&runtime, "p").await;
    ready(&runtime, "p").await;
    write(inside(&runtime, "p"), "kept").await.unwrap();
    annotate(&runtime, "p", json!({SUSPEND: "true"})).await;
    let project = until(&projects_of(&runtime), "p", has("Ready", "False", "Suspended")).await.unwrap();
    assert_eq!(condition(&project, "ControlPlaneReady").1, "Suspended");
    let plane = planes_of(&runtime).get("p").await.unwrap();
    assert_eq!(condition(&plane, "ControlPlaneReady").1, "Suspended");
    for client in [inside(&runtime, "p"), below(runtime.server(), "/clusters/p".to_owned())] {
        let refused = write(client, "x").await.unwrap_err();
        assert_eq!((refused.code, &*refused.reason), (403, "Forbidden"));
        assert!(refused.message.ends_with("the project is suspended"), "{}", refused.message);
    }
    annotate(&runtime, "p", json!({SUSPEND: null})).await;
    ready(&runtime, "p").await;
    assert_eq!(maps(inside(&runtime, "p")).await, ["kept"]);
    // A suspended project can be deleted.
    annotate(&runtime, "p", json!({SUSPEND: "true"})).await;
    until(&projects_of(&runtime), "p", has("Ready", "False", "Suspended")).await;
    delete(&runtime, "p").await;
    assert_eq!(runtime.server().stored_tenants().await.unwrap(), ["default"]);
    runtime.stop().await.unwrap();
}

/// An operator with something outside of the project for each widget: it removes its finalizer when that is released.
async fn releases(request: k1s::Request, context: Context) -> Result<Action, BoxError> {
    let widgets = context.cluster().client().kind(Kind::<DynamicObject>::dynamic(widgets()));
    let Some(widget) = widgets.get_opt(&request).await? else { return Ok(Action::done()) };
    let mut widget = (*widget).clone();
    if widget.metadata.deletion_timestamp.is_some() && widget.metadata.finalizers.is_some() {
        widget.metadata.finalizers = None;
        widgets.update(&widget).await?;
    }
    Ok(Action::done())
}

fn widgets() -> kube::api::ApiResource {
    let gvk = kube::core::GroupVersionKind::gvk("example.com", "v1", "Widget");
    kube::api::ApiResource::from_gvk_with_plural(&gvk, "widgets")
}

/// An object that waits for somebody to remove its finalizer.
async fn hold<K>(api: &Api<K>, object: Value)
where
    K: Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    api.create(&Default::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

/// A widget of the namespace `team`, and a `ConfigMap` of one that cannot be deleted, both with a finalizer.
async fn hold_in(client: kube::Client) {
    let team = serde_json::from_value(json!({"metadata": {"name": "team"}})).unwrap();
    Api::<Namespace>::all(client.clone()).create(&Default::default(), &team).await.unwrap();
    let held = json!({"name": "w", "finalizers": ["example.com/released"]});
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), "team", &widgets());
    hold(&api, json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": held})).await;
    let held = json!({"name": "m", "finalizers": ["example.com/released"]});
    hold(&Api::<ConfigMap>::default_namespaced(client), json!({"metadata": held})).await;
}

async fn begin_to_delete(runtime: &Runtime, name: &str) -> DynamicObject {
    projects_of(runtime).delete(name, &Default::default()).await.unwrap();
    let waits = has("ResourceCleanup", "True", "CleanupAwaitingCompletion");
    until(&projects_of(runtime), name, waits).await.unwrap()
}

#[tokio::test]
async fn operators_finish_in_a_project_that_is_deleted() {
    let runtime = start().await;
    runtime.apply(&definition("default", &json!({})).to_string()).await.unwrap();
    create(&runtime, "p").await;
    ready(&runtime, "p").await;
    hold_in(inside(&runtime, "p")).await;
    let project = begin_to_delete(&runtime, "p").await;
    let left = "Waiting for finalizers: configmaps default/m (example.com/released), namespaces team, \
        widgets.example.com team/w (example.com/released)";
    assert_eq!(condition(&project, "ResourceCleanup").2, left);
    for type_ in ["Ready", "ControlPlaneReady"] {
        let (status, reason, _) = condition(&project, type_);
        assert_eq!((&*status, &*reason), ("True", "Deleting"));
    }
    let plane = planes_of(&runtime).get("p").await.unwrap();
    assert_eq!(
        (&*condition(&plane, "ControlPlaneReady").0, plane.metadata.deletion_timestamp),
        ("True", None)
    );

    // It is engaged in a project that is being deleted already.
    let manager =
        MultiClusterManager::new(&runtime, ManagerOptions::local(), MultiClusterOptions::new()).unwrap();
    manager.add_provider(Arc::new(ProjectsProvider::in_process(runtime.tenant_connector())));
    Controller::managed_by(&manager)
        .for_(Kind::<DynamicObject>::dynamic(widgets()))
        .complete(releases)
        .unwrap();
    let (stop, own) = (CancellationToken::new(), manager.clone());
    let (env, token) = (runtime.env().clone(), stop.clone());
    let running = env.spawn("operator", async move { own.start(token).await });
    let only_map = |project: Option<&DynamicObject>| {
        let message = project.map(|project| condition(project, "ResourceCleanup").2).unwrap_or_default();
        message == "Waiting for finalizers: configmaps default/m (example.com/released)"
    };
    until(&projects_of(&runtime), "p", only_map).await;
    // The last one is removed through the project's path.
    let released = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let maps = Api::<ConfigMap>::default_namespaced(inside(&runtime, "p"));
    maps.patch("m", &PatchParams::default(), &released).await.unwrap();
    until(&projects_of(&runtime), "p", |object| object.is_none()).await;
    assert_eq!(runtime.server().stored_tenants().await.unwrap(), ["default"]);
    stop.cancel();
    running.await.unwrap().unwrap();
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_suspended_project_that_is_deleted_lets_operators_finish() {
    let runtime = start().await;
    create(&runtime, "p").await;
    ready(&runtime, "p").await;
    let held = json!({"name": "m", "finalizers": ["example.com/released"]});
    hold(&Api::<ConfigMap>::default_namespaced(inside(&runtime, "p")), json!({"metadata": held})).await;
    annotate(&runtime, "p", json!({SUSPEND: "true"})).await;
    until(&projects_of(&runtime), "p", has("Ready", "False", "Suspended")).await;
    let project = begin_to_delete(&runtime, "p").await;
    assert_eq!(condition(&project, "Ready").1, "Deleting");
    let released = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let maps = Api::<ConfigMap>::default_namespaced(inside(&runtime, "p"));
    maps.patch("m", &PatchParams::default(), &released).await.unwrap();
    until(&projects_of(&runtime), "p", |object| object.is_none()).await;
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_project_with_a_finalizer_that_nobody_removes_goes_when_its_time_is_over() {
    let (env, clock) = Env::simulated(7);
    let mut options = ProjectsOptions::default();
    options.cleanup_timeout = Duration::from_secs(60);
    let runtime = Runtime::builder().env(env.clone()).projects(options).start().await.unwrap();
    create(&runtime, "p").await;
    ready(&runtime, "p").await;
    let held = json!({"name": "m", "finalizers": ["example.com/released"]});
    hold(&Api::<ConfigMap>::default_namespaced(inside(&runtime, "p")), json!({"metadata": held})).await;
    begin_to_delete(&runtime, "p").await;
    let one = WatchParams::default().fields("metadata.name=p");
    let mut events = projects_of(&runtime).watch(&one, "0").await.unwrap().boxed();
    clock.advance_and_settle(Duration::from_secs(50)).await;
    assert_eq!(condition(&projects_of(&runtime).get("p").await.unwrap(), "Ready").1, "Deleting");
    clock.advance_and_settle(Duration::from_secs(20)).await;
    until(&projects_of(&runtime), "p", |object| object.is_none()).await;
    assert_eq!(runtime.server().stored_tenants().await.unwrap(), ["default"]);
    let mut last = None;
    while let Some(Ok(event)) = events.next().await {
        match event {
            WatchEvent::Added(project) | WatchEvent::Modified(project) => last = Some(project),
            WatchEvent::Deleted(_) => break,
            _ => {}
        }
    }
    let left = "Removed with objects that wait for finalizers: configmaps default/m (example.com/released)";
    let told = condition(&last.unwrap(), "ResourceCleanup");
    assert_eq!(told, ("True".to_owned(), "CleanupTimedOut".to_owned(), left.to_owned()));
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn projects_have_the_definitions_of_their_templates() {
    let runtime = start().await;
    let apply = async |template: &str, fields: Value| {
        runtime.apply(&definition(template, &fields).to_string()).await.unwrap();
    };
    apply("default", json!({"size": {"type": "integer"}})).await;
    create(&runtime, "p").await;
    let mut bare = project("bare");
    bare.annotations_mut().insert(TEMPLATES.to_owned(), "other".to_owned());
    projects_of(&runtime).create(&Default::default(), &bare).await.unwrap();
    ready(&runtime, "p").await;
    ready(&runtime, "bare").await;
    assert_eq!(widget_fields(inside(&runtime, "p")).await.unwrap(), ["size"]);
    assert_eq!(widget_fields(inside(&runtime, "bare")).await, None);

    // A change in the host reaches the projects.
    apply("default", json!({"size": {"type": "integer"}, "color": {"type": "string"}})).await;
    let crds = Api::all_with(inside(&runtime, "p"), &definitions());
    let colored = |object: Option<&DynamicObject>| {
        object.is_some_and(|object| object.data.to_string().contains("color"))
    };
    until(&crds, "widgets.example.com", colored).await;
    // So does a change of template.
    annotate(&runtime, "bare", json!({TEMPLATES: "other, default"})).await;
    let crds = Api::all_with(inside(&runtime, "bare"), &definitions());
    until(&crds, "widgets.example.com", colored).await;

    // A definition that the project refuses is reported; a project that was ready stays so.
    let mut clashing = definition("extra", &json!({}));
    clashing["metadata"]["name"] = "gadgets.example.com".into();
    clashing["spec"]["names"] = json!({"kind": "Widget", "plural": "gadgets", "singular": "gadget"});
    create(&runtime, "late").await;
    ready(&runtime, "late").await;
    let crds = Api::<DynamicObject>::all_with(runtime.client(), &definitions());
    let clashing: DynamicObject = serde_json::from_value(clashing).unwrap();
    crds.create(&Default::default(), &clashing).await.unwrap();
    annotate(&runtime, "late", json!({TEMPLATES: "default,extra"})).await;
    let refused = has("DefinitionsInstalled", "False", "DefinitionsRefused");
    let late = until(&projects_of(&runtime), "late", refused).await.unwrap();
    assert_eq!(condition(&late, "Ready").0, "True");
    assert!(condition(&late, "DefinitionsInstalled").2.starts_with("gadgets.example.com: "), "{late:?}");
    let mut early = project("early");
    early.annotations_mut().insert(TEMPLATES.to_owned(), "default,extra".to_owned());
    projects_of(&runtime).create(&Default::default(), &early).await.unwrap();
    until(&projects_of(&runtime), "early", has("Ready", "False", "DefinitionsRefused")).await;
    write(inside(&runtime, "early"), "usable").await.unwrap();

    // Definitions stay when they leave a template: deleting them would delete objects.
    annotate(&runtime, "late", json!({TEMPLATES: ""})).await;
    until(&projects_of(&runtime), "late", has("DefinitionsInstalled", "True", "Installed")).await;
    assert!(widget_fields(inside(&runtime, "late")).await.is_some());
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn fifty_projects_come_and_go_at_once() {
    let runtime = start().await;
    let names: Vec<String> = (0..50).map(|number| format!("p{number}")).collect();
    join_all(names.iter().map(|name| create(&runtime, name))).await;
    join_all(names.iter().map(|name| ready(&runtime, name))).await;
    join_all(names.iter().map(|name| async { write(inside(&runtime, name), name).await.unwrap() })).await;
    for name in &names {
        assert_eq!(maps(inside(&runtime, name)).await, [name.as_str()]);
    }
    join_all(names.iter().map(|name| delete(&runtime, name))).await;
    assert_eq!(runtime.server().stored_tenants().await.unwrap(), ["default"]);
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn projects_survive_a_restart_in_the_middle() {
    let folder = tempfile::tempdir().unwrap();
    let start = || Runtime::builder().disk(folder.path()).projects(ProjectsOptions::default()).start();
    let runtime = start().await.unwrap();
    create(&runtime, "old").await;
    ready(&runtime, "old").await;
    write(inside(&runtime, "old"), "kept").await.unwrap();
    for number in 0..8 {
        create(&runtime, &format!("p{number}")).await;
    }
    projects_of(&runtime).delete("p0", &Default::default()).await.unwrap();
    runtime.stop().await.unwrap();

    let runtime = start().await.unwrap();
    until(&projects_of(&runtime), "p0", |object| object.is_none()).await;
    for number in 1..8 {
        ready(&runtime, &format!("p{number}")).await;
    }
    assert_eq!(maps(inside(&runtime, "old")).await, ["kept"]);
    let mut tenants = runtime.server().stored_tenants().await.unwrap();
    tenants.retain(|name| name.starts_with('p'));
    assert_eq!(tenants.len(), 7);
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn one_of_several_control_planes_provides_projects_and_all_serve_them() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let start = async || {
        let builder =
            Runtime::builder().shared_store(Arc::clone(&store)).projects(ProjectsOptions::default());
        builder.election(Election::Always(LeaderElectionOptions::default())).start().await.unwrap()
    };
    let (one, other) = (start().await, start().await);
    for (name, writer, reader) in [("a", &one, &other), ("b", &other, &one)] {
        create(writer, name).await;
        ready(reader, name).await;
        write(inside(writer, name), "w").await.unwrap();
        write(inside(reader, name), "r").await.unwrap();
        assert_eq!(maps(inside(writer, name)).await, ["r", "w"]);
    }
    // The other one takes over.
    one.stop().await.unwrap();
    create(&other, "c").await;
    ready(&other, "c").await;
    delete(&other, "a").await;
    assert_eq!(other.server().stored_tenants().await.unwrap(), ["b", "c", "default"]);
    other.stop().await.unwrap();
}

/// A store that fails for ever after a number of writes: what it holds then is what a killed process leaves.
struct Mortal {
    store: Arc<dyn Store>,
    left: AtomicI64,
    dead: Notify,
}

impl Mortal {
    fn alive(&self) -> StoreResult<&dyn Store> {
        if self.left.load(Ordering::SeqCst) < 0 { Err(StoreError::Closed) } else { Ok(&*self.store) }
    }
}

#[async_trait]
impl Store for Mortal {
    async fn revision(&self) -> StoreResult<Revision> {
        self.alive()?.revision().await
    }

    async fn get(&self, key: &[u8], at: Option<Revision>) -> StoreResult<GetResult> {
        self.alive()?.get(key, at).await
    }

    async fn range(&self, range: Range) -> StoreResult<RangeResult> {
        self.alive()?.range(range).await
    }

    async fn txn(&self, txn: Txn) -> StoreResult<Revision> {
        if self.left.fetch_sub(1, Ordering::SeqCst) <= 0 {
            self.left.store(-1, Ordering::SeqCst);
            self.dead.notify_one();
            return Err(StoreError::Closed);
        }
        self.store.txn(txn).await
    }

    async fn watch(&self, request: WatchRequest) -> StoreResult<Watch> {
        self.alive()?.watch(request).await
    }

    async fn compact(&self, revision: Revision) -> StoreResult<()> {
        self.alive()?.compact(revision).await
    }

    async fn stats(&self) -> StoreResult<Stats> {
        self.alive()?.stats().await
    }

    async fn health(&self) -> StoreResult<()> {
        self.alive().map(drop)
    }

    async fn close(&self) -> StoreResult<()> {
        Ok(())
    }

    fn is_shared(&self) -> bool {
        false
    }
}

/// Lets a runtime die after `writes` writes of `work`. Returns whether it lived to the end of it.
async fn killed_after<F: Future<Output = ()>>(
    store: &Arc<dyn Store>,
    writes: i64,
    work: impl FnOnce(Arc<Runtime>) -> F,
) -> bool {
    let mortal =
        Arc::new(Mortal { store: Arc::clone(store), left: AtomicI64::new(i64::MAX), dead: Notify::new() });
    let builder = Runtime::builder().shared_store(Arc::clone(&mortal) as Arc<dyn Store>);
    let runtime = Arc::new(builder.projects(ProjectsOptions::default()).start().await.unwrap());
    mortal.left.store(writes, Ordering::SeqCst);
    let lived = tokio::select! {
        () = work(Arc::clone(&runtime)) => true,
        () = mortal.dead.notified() => false,
    };
    drop(runtime);
    lived
}

#[tokio::test]
async fn projects_converge_after_a_crash_at_any_write() {
    let mut lived = (false, false);
    for writes in 0.. {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let made = killed_after(&store, writes, async |runtime| {
            let _ = projects_of(&runtime).create(&Default::default(), &project("p")).await;
            ready(&runtime, "p").await;
        });
        lived.0 = made.await;
        let restart =
            || Runtime::builder().shared_store(Arc::clone(&store)).projects(ProjectsOptions::default());
        let runtime = restart().start().await.unwrap();
        let _ = projects_of(&runtime).create(&Default::default(), &project("p")).await;
        ready(&runtime, "p").await;
        write(inside(&runtime, "p"), "a").await.unwrap();
        runtime.stop().await.unwrap();

        let gone = killed_after(&store, writes, async |runtime| {
            let _ = projects_of(&runtime).delete("p", &Default::default()).await;
            until(&projects_of(&runtime), "p", |object| object.is_none()).await;
        });
        lived.1 = gone.await;
        let runtime = restart().start().await.unwrap();
        let _ = projects_of(&runtime).delete("p", &Default::default()).await;
        until(&projects_of(&runtime), "p", |object| object.is_none()).await;
        assert_eq!(runtime.server().stored_tenants().await.unwrap(), ["default"], "after {writes} writes");
        create(&runtime, "p").await;
        ready(&runtime, "p").await;
        assert_eq!(maps(inside(&runtime, "p")).await, [""; 0], "after {writes} writes");
        runtime.stop().await.unwrap();
        if lived == (true, true) {
            assert!(writes > 5, "a project takes some writes");
            break;
        }
        assert!(writes < 100, "a project takes too many writes");
    }
}
