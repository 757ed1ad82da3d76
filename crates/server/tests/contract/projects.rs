//! The control planes of projects at their own path: who may enter, and when. The controller of projects is not there; the
//! tests write what it would.

use std::sync::Arc;

use k1s_controllers::projects::DEFINITIONS;
use k1s_env::Env;
use k1s_object::yaml;
use k1s_server::{ApiServer, ServerOptions, User};
use k1s_store::MemoryStore;
use serde_json::{Value, json};

use crate::common::{self, Client, config_map, names};

const PROJECTS: &str = "/apis/resourcemanager.miloapis.com/v1alpha1/projects";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn path(project: &str, rest: &str) -> String {
    format!("{PROJECTS}/{project}/control-plane{rest}")
}

/// A server with projects, the anonymous user and alice, and a client of the administrator.
async fn host(projects: bool) -> (ApiServer, Client) {
    let mut options = ServerOptions::default();
    options.projects = projects;
    options.tokens.insert("alice", User::new("alice", &[]));
    let server = ApiServer::new(Env::system(), Arc::new(MemoryStore::default()), options).await.unwrap();
    let admin = common::client(&server.as_user(User::admin()));
    for document in DEFINITIONS.split("\n---\n") {
        let definition = yaml::decode(document.as_bytes()).unwrap().value;
        admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    }
    (server, admin)
}

async fn create(admin: &Client, name: &str) {
    let spec = json!({"ownerRef": {"kind": "Organization", "name": "acme"}});
    admin.post(PROJECTS, json!({"apiVersion": "resourcemanager.miloapis.com/v1alpha1", "kind": "Project", "metadata": {"name": name}, "spec": spec})).await;
}

/// Sets `ControlPlaneReady` as the controller does.
async fn report(admin: &Client, name: &str, status: &str, reason: &str, message: &str) {
    let condition = json!({"type": "ControlPlaneReady", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let patch = json!({"status": {"conditions": [condition]}});
    let (code, body) = admin.call("PATCH", &format!("{PROJECTS}/{name}/status"), patch).await;
    assert_eq!(code, 200, "{body}");
}

fn brief((code, body): (u16, Value)) -> (u16, String) {
    (code, body["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_ready_project_is_served_at_its_path_with_every_verb() {
    let (server, admin) = host(true).await;
    create(&admin, "p").await;
    server.create_tenant("p").await.unwrap();
    report(&admin, "p", "True", "Ready", "").await;
    let maps = path("p", MAPS);
    admin.post(&maps, config_map("a")).await;
    assert_eq!(admin.get(&format!("/clusters/p{MAPS}/a")).await["metadata"]["name"], "a");
    assert!(names(&admin.get(MAPS).await).iter().all(|name| name != "a"), "the host does not have it");
    let mut watch = admin.watch(&format!("{maps}?fieldSelector=metadata.name=a")).await;
    assert_eq!(watch.brief().await.0, "ADDED");
    let (code, _) = admin.call("PATCH", &format!("{maps}/a"), json!({"data": {"k": "v"}})).await;
    assert_eq!((code, watch.brief().await.0), (200, "MODIFIED".to_owned()));
    let (code, _) = admin.call("DELETE", &format!("{maps}/a"), Value::Null).await;
    assert_eq!((code, watch.brief().await.0), (200, "DELETED".to_owned()));
    for document in
        ["", "/", "/api", "/apis", "/api/v1", "/apis/apps/v1", "/openapi/v2", "/openapi/v3", "/version"]
    {
        assert_eq!(admin.send("GET", &path("p", document), &[], "").await.status, 200, "{document}");
    }
    for probe in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(admin.send("GET", &path("p", probe), &[], "").await.text(), "ok", "{probe}");
    }
    // Within a project there are no further ones, and the object itself is still the host's.
    assert_eq!(admin.send("GET", &path("p", &path("p", MAPS)), &[], "").await.status, 404);
    assert_eq!(admin.get(&format!("{PROJECTS}/p")).await["metadata"]["name"], "p");
}

#[tokio::test]
async fn a_control_plane_that_cannot_be_used_answers_with_a_status() {
    let (server, admin) = host(true).await;
    let get = async |project: &str| brief(admin.call("GET", &path(project, MAPS), Value::Null).await);
    assert_eq!(
        get("none").await,
        (404, "projects.resourcemanager.miloapis.com \"none\" not found".to_owned())
    );
    // A tenant that is no project's has no path, nor has the host itself.
    server.create_tenant("bare").await.unwrap();
    assert_eq!(get("bare").await.0, 404);
    assert_eq!(get("default").await.0, 404);
    assert_eq!(admin.send("GET", &format!("/clusters/bare{MAPS}"), &[], "").await.status, 200);

    create(&admin, "p").await;
    let is_new = (503, "the control plane of project \"p\" is not ready: it is being created".to_owned());
    assert_eq!(get("p").await, is_new);
    let answer = admin.send("POST", &path("p", MAPS), &[], config_map("a").to_string()).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, "1"));
    assert!(!server.stored_tenants().await.unwrap().contains(&"p".to_owned()), "a write creates no tenant");
    server.create_tenant("p").await.unwrap();
    report(&admin, "p", "False", "Creating", "soon").await;
    assert_eq!(
        get("p").await,
        (503, "the control plane of project \"p\" is not ready: soon (Creating)".to_owned())
    );
    report(&admin, "p", "True", "Ready", "").await;
    assert_eq!(get("p").await.0, 200);

    // A suspended one has no other entrance.
    report(&admin, "p", "False", "Suspended", "the project is suspended").await;
    let suspended = (
        403,
        "projects.resourcemanager.miloapis.com \"p\" is forbidden: the project is suspended".to_owned(),
    );
    assert_eq!(get("p").await, suspended);
    assert_eq!(brief(admin.call("GET", &format!("/clusters/p{MAPS}"), Value::Null).await), suspended);
    assert_eq!(brief(admin.call("POST", &format!("/clusters/p{MAPS}"), config_map("a")).await), suspended);
    report(&admin, "p", "True", "Ready", "").await;
    assert_eq!(get("p").await.0, 200);
}

#[tokio::test]
async fn watches_in_a_project_end_when_it_is_suspended() {
    let (server, admin) = host(true).await;
    for name in ["p", "q"] {
        create(&admin, name).await;
        server.create_tenant(name).await.unwrap();
        report(&admin, name, "True", "Ready", "").await;
        admin.post(&path(name, MAPS), config_map("before")).await;
    }
    let one = "fieldSelector=metadata.name=before";
    let own = common::client(&server.find_tenant("p").await.unwrap().as_user(User::admin()));
    let mut own = own.watch(&format!("{MAPS}?{one}")).await;
    assert_eq!(own.brief().await.0, "ADDED");
    let mut other = admin.watch(&format!("{}?{one}", path("q", MAPS))).await;
    assert_eq!(other.brief().await.0, "ADDED");
    // Once more after it was resumed.
    for round in ["first", "second"] {
        let (by_project, by_cluster) = (path("p", MAPS), format!("/clusters/p{MAPS}"));
        let mut watches = Vec::new();
        for entrance in [by_project, by_cluster] {
            let mut watch = admin.watch(&format!("{entrance}?{one}")).await;
            assert_eq!(watch.brief().await.0, "ADDED");
            watches.push(watch);
        }
        report(&admin, "p", "False", "Suspended", "the project is suspended").await;
        for mut watch in watches {
            let event = watch.event().await;
            assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(403)), "{event}");
            let message = event["object"]["message"].as_str().unwrap();
            assert!(message.ends_with("the project is suspended"), "{message}");
            assert_eq!(watch.next().await, None);
        }
        report(&admin, "p", "True", "Ready", "").await;
        // Those of other projects, and of the program itself, go on.
        for (project, watch) in [("p", &mut own), ("q", &mut other)] {
            let changed = json!({"data": {"round": round}});
            admin.call("PATCH", &path(project, &format!("{MAPS}/before")), changed).await;
            let event = watch.event().await;
            assert_eq!(event["object"]["data"]["round"], round, "{event}");
        }
    }
}

#[tokio::test]
async fn who_may_enter_is_decided_as_for_clusters() {
    let (server, admin) = host(true).await;
    create(&admin, "p").await;
    server.create_tenant("p").await.unwrap();
    report(&admin, "p", "True", "Ready", "").await;
    let outside = common::client(&server);
    for headers in
        [&[][..], &[("authorization", "Bearer alice")][..], &[("authorization", "Bearer nobody")][..]]
    {
        for (project, rest) in
            [("p", MAPS), ("p", "/api"), ("p", "/version"), ("none", MAPS), ("none", "/api")]
        {
            let by_project = outside.send("GET", &path(project, rest), headers, "").await;
            let by_cluster = outside.send("GET", &format!("/clusters/{project}{rest}"), headers, "").await;
            assert_eq!(by_project.status, by_cluster.status, "{project}{rest} {headers:?}");
            assert!(rest != MAPS || by_project.status >= 401, "{project}{rest} {headers:?}");
        }
    }
    // Impersonation is the host administrator's right here as well.
    let impersonated = [("impersonate-user", "alice")];
    assert_eq!(admin.send("GET", &path("p", MAPS), &impersonated, "").await.status, 403);
}

#[tokio::test]
async fn a_handle_reaches_the_projects_of_its_own_tenant_alone() {
    let (server, admin) = host(true).await;
    create(&admin, "p").await;
    server.create_tenant("p").await.unwrap();
    report(&admin, "p", "True", "Ready", "").await;
    let bound = async |tenant: &str| {
        let handle = server.tenant(tenant).await.unwrap().as_user(User::admin());
        common::client(&handle).send("GET", &path("p", MAPS), &[], "").await.status
    };
    assert_eq!(bound("default").await, 200);
    assert_eq!(bound("p").await, 404);
    assert_eq!(bound("other").await, 404);
    let (_, off) = host(false).await;
    create(&off, "p").await;
    assert_eq!(off.send("GET", &path("p", MAPS), &[], "").await.status, 404, "projects are turned off");
}

#[tokio::test]
async fn a_tenant_is_created_for_one_owner_and_deleted_by_its_uid() {
    let (_, admin) = host(true).await;
    let tenants = "/k1s/v1/tenants";
    let owned = |name: &str, uid: &str| json!({"metadata": {"name": name, "ownerReferences": [{"apiVersion": "v1", "kind": "Project", "name": name, "uid": uid}]}});
    let made = admin.post(tenants, owned("t", "1")).await;
    assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], "1");
    assert_eq!(admin.get(&format!("{tenants}/t")).await, made);
    assert_eq!(admin.call("POST", tenants, owned("t", "1")).await.0, 409);
    let mut two = owned("u", "1");
    let one = two["metadata"]["ownerReferences"][0].clone();
    two["metadata"]["ownerReferences"].as_array_mut().unwrap().push(one);
    assert_eq!(admin.call("POST", tenants, two).await.0, 400);
    let (code, body) = admin.call("DELETE", &format!("{tenants}/t"), Value::Null).await;
    assert_eq!(code, 403, "its owner deletes it: {body}");
    let by_uid = |uid: &Value| json!({"preconditions": {"uid": uid}});
    let (code, body) = admin.call("DELETE", &format!("{tenants}/t"), by_uid(&json!("another"))).await;
    assert_eq!(code, 409, "{body}");
    assert_eq!(admin.get(&format!("{tenants}/t")).await, made);
    let (code, _) = admin.call("DELETE", &format!("{tenants}/t"), by_uid(&made["metadata"]["uid"])).await;
    assert_eq!((code, admin.call("GET", &format!("{tenants}/t"), Value::Null).await.0), (200, 404));
}
