//! Rules that depend on other objects: quotas, limit ranges, classes, aggregated roles, addresses of services.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use http::Request;
use http_body_util::{BodyExt as _, Full};
use k1s_env::Env;
use k1s_server::{ApiServer, ServerOptions, User};
use k1s_store::MemoryStore;
use serde_json::{Value, json};
use tower::Service as _;

const PODS: &str = "/api/v1/namespaces/default/pods";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

async fn server() -> ApiServer {
    let server = ApiServer::new(Env::system(), Arc::new(MemoryStore::default()), ServerOptions::default());
    server.await.unwrap().as_user(User::admin())
}

/// Sends a request; returns the status code and body.
async fn send(server: &ApiServer, method: &str, path: &str, body: Value) -> (u16, Value) {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let bytes = if body.is_null() { String::new() } else { body.to_string() };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .body(Full::new(bytes::Bytes::from(bytes)))
        .unwrap();
    let response = server.clone().call(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

async fn create(server: &ApiServer, path: &str, body: Value) -> Value {
    let (code, answer) = send(server, "POST", path, body).await;
    assert_eq!(code, 201, "{answer}");
    answer
}

async fn refused(server: &ApiServer, path: &str, body: Value) -> String {
    let (code, answer) = send(server, "POST", path, body).await;
    assert_eq!(code, 403, "{answer}");
    answer["message"].as_str().unwrap().to_owned()
}

async fn get(server: &ApiServer, path: &str) -> Value {
    let (code, answer) = send(server, "GET", path, Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    answer
}

fn pod(name: &str, spec: &Value) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]}});
    for (key, value) in spec.as_object().into_iter().flatten() {
        pod["spec"][key] = value.clone();
    }
    pod
}

fn with_cpu(name: &str, cpu: &str) -> Value {
    let containers = json!([{"name": "c", "image": "i:1", "resources": {"requests": {"cpu": cpu}}}]);
    pod(name, &json!({ "containers": containers }))
}

async fn quota(server: &ApiServer, hard: Value) {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}});
    create(server, QUOTAS, quota).await;
}

async fn used(server: &ApiServer) -> Value {
    get(server, &format!("{QUOTAS}/q")).await["status"]["used"].clone()
}

#[tokio::test]
async fn a_quota_counts_existing_new_and_deleted_objects() {
    let server = server().await;
    create(&server, PODS, with_cpu("before", "100m")).await;
    quota(&server, json!({"pods": "2", "requests.cpu": "1"})).await;
    assert_eq!(used(&server).await, json!({"pods": "1", "requests.cpu": "100m"}));
    assert_eq!(
        refused(&server, PODS, pod("p", &json!({}))).await,
        "pods \"p\" is forbidden: failed quota: q: must specify requests.cpu for: c"
    );
    create(&server, PODS, with_cpu("p", "600m")).await;
    assert_eq!(used(&server).await, json!({"pods": "2", "requests.cpu": "700m"}));
    assert_eq!(
        refused(&server, PODS, with_cpu("more", "600m")).await,
        "pods \"more\" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=600m, used: \
         pods=2,requests.cpu=700m, limited: pods=2,requests.cpu=1"
    );
    send(&server, "DELETE", &format!("{PODS}/before"), Value::Null).await;
    assert_eq!(used(&server).await, json!({"pods": "1", "requests.cpu": "600m"}));
    let (code, _) =
        send(&server, "PATCH", &format!("{PODS}/p/status"), json!({"status": {"phase": "Succeeded"}})).await;
    assert_eq!(code, 200);
    assert_eq!(used(&server).await, json!({"pods": "0", "requests.cpu": "0"}));
    send(&server, "DELETE", &format!("{PODS}/p"), Value::Null).await;
    assert_eq!(used(&server).await, json!({"pods": "0", "requests.cpu": "0"}));
}

#[tokio::test]
async fn a_quota_counts_devices_by_their_class() {
    let server = server().await;
    let gpus = "gpu.deviceclass.resource.k8s.io/devices";
    quota(&server, json!({ gpus: "4" })).await;
    let claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
    let claim = |name: &str, count: i64| {
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}, "spec": {"devices": {
            "requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}}]}}})
    };
    create(&server, claims, claim("a", 3)).await;
    assert_eq!(used(&server).await, json!({ gpus: "3" }));
    assert_eq!(
        refused(&server, claims, claim("b", 2)).await,
        format!(
            "resourceclaims.resource.k8s.io \"b\" is forbidden: exceeded quota: q, requested: {gpus}=2, used: {gpus}=3, limited: {gpus}=4"
        )
    );
    send(&server, "DELETE", &format!("{claims}/a"), Value::Null).await;
    assert_eq!(used(&server).await, json!({ gpus: "0" }));
    create(&server, claims, claim("b", 2)).await;
    assert_eq!(used(&server).await, json!({ gpus: "2" }));
}

#[tokio::test]
async fn a_changed_quota_is_recalculated() {
    let server = server().await;
    quota(&server, json!({"pods": "2"})).await;
    send(&server, "PATCH", &format!("{QUOTAS}/q"), json!({"spec": {"hard": {"count/configmaps": "5"}}}))
        .await;
    assert_eq!(used(&server).await, json!({"count/configmaps": "1", "pods": "0"}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_holds_under_concurrent_creates() {
    let server = server().await;
    quota(&server, json!({"count/secrets": "10"})).await;
    let path = "/api/v1/namespaces/default/secrets";
    let writes = (0..40).map(|i| {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("s{i}")}});
        send(&server, "POST", path, secret)
    });
    let codes: Vec<u16> =
        futures_util::future::join_all(writes).await.into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes.iter().filter(|code| **code == 201).count(), 10, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 403).count(), 30, "{codes:?}");
    assert_eq!(used(&server).await, json!({"count/secrets": "10"}));
    let (code, _) = send(&server, "DELETE", path, Value::Null).await;
    assert_eq!(code, 200);
    assert_eq!(used(&server).await, json!({"count/secrets": "0"}));
}

#[tokio::test]
async fn a_dry_run_is_checked_but_not_charged() {
    let server = server().await;
    quota(&server, json!({"pods": "1"})).await;
    create(&server, &format!("{PODS}?dryRun=All"), pod("p", &json!({}))).await;
    assert_eq!(used(&server).await, json!({"pods": "0"}));
}

#[tokio::test]
async fn a_limit_range_sets_defaults_and_bounds() {
    let server = server().await;
    let range = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "500m"}}]}});
    create(&server, "/api/v1/namespaces/default/limitranges", range).await;
    let made = create(&server, PODS, pod("p", &json!({}))).await;
    assert_eq!(
        made["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    );
    assert_eq!(made["spec"]["containers"][0]["resources"]["limits"], json!({"cpu": "500m"}));
    let containers = json!([{"name": "c", "image": "i:1", "resources": {"limits": {"cpu": "2"}}}]);
    assert_eq!(
        refused(&server, PODS, pod("q", &json!({ "containers": containers }))).await,
        "pods \"q\" is forbidden: maximum cpu usage per Container is 1, but limit is 2"
    );
}

#[tokio::test]
async fn pods_get_their_priority_from_a_class() {
    let server = server().await;
    let path = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let class = |name: &str, value: i64| {
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value, "globalDefault": true})
    };
    assert_eq!(
        refused(&server, PODS, pod("p", &json!({"priority": 5}))).await,
        "pods \"p\" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority admission \
         controller computed 0 from the given PriorityClass name"
    );
    create(&server, path, class("usual", 7)).await;
    let made = create(&server, PODS, pod("p", &json!({}))).await;
    assert_eq!(made["spec"]["priority"], 7);
    assert_eq!(made["spec"]["priorityClassName"], "usual");
    assert_eq!(
        refused(&server, path, class("another", 8)).await,
        "priorityclasses.scheduling.k8s.io \"another\" is forbidden: PriorityClass usual is already marked as default. \
         Only one default can exist"
    );
}

#[tokio::test]
async fn pods_get_the_overhead_of_their_runtime_class() {
    let server = server().await;
    let class = json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "rt"},
        "handler": "runsc", "overhead": {"podFixed": {"memory": "10Mi"}}});
    create(&server, "/apis/node.k8s.io/v1/runtimeclasses", class).await;
    let made = create(&server, PODS, pod("p", &json!({"runtimeClassName": "rt"}))).await;
    assert_eq!(made["spec"]["overhead"], json!({"memory": "10Mi"}));
    assert_eq!(
        refused(&server, PODS, pod("q", &json!({"runtimeClassName": "none"}))).await,
        "pods \"q\" is forbidden: pod rejected: RuntimeClass \"none\" not found"
    );
    assert_eq!(
        refused(&server, PODS, pod("q", &json!({"overhead": {"memory": "1Mi"}}))).await,
        "pods \"q\" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
    );
}

#[tokio::test]
async fn claims_and_ingresses_get_the_default_class() {
    let server = server().await;
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "x",
        "metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}});
    create(&server, "/apis/storage.k8s.io/v1/storageclasses", class).await;
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    assert_eq!(create(&server, claims, claim.clone()).await["spec"]["storageClassName"], "fast");
    let grow = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    let (code, answer) = send(&server, "PATCH", &format!("{claims}/c"), grow).await;
    assert!(matches!(code, 403 | 422), "{answer}");
    let class = json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "spec": {"controller": "x.com/y"},
        "metadata": {"name": "front", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}});
    create(&server, "/apis/networking.k8s.io/v1/ingressclasses", class).await;
    let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"},
        "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}});
    let made = create(&server, "/apis/networking.k8s.io/v1/namespaces/default/ingresses", ingress).await;
    assert_eq!(made["spec"]["ingressClassName"], "front");
}

#[tokio::test]
async fn a_cluster_role_aggregates_others() {
    let server = server().await;
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let role = |name: &str, label: &str, rest: &Value| {
        let mut role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name, "labels": {label: "true"}}});
        for (key, value) in rest.as_object().into_iter().flatten() {
            role[key] = value.clone();
        }
        role
    };
    let sum = |label: &str| json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]}});
    let rules = json!([{"apiGroups": ["a.example.com"], "resources": ["things"], "verbs": ["get"]}]);
    create(&server, path, role("a-top", "none", &sum("in-top"))).await;
    create(&server, path, role("middle", "in-top", &sum("in-middle"))).await;
    create(&server, path, role("part", "in-middle", &json!({ "rules": rules }))).await;
    assert_eq!(get(&server, &format!("{path}/a-top")).await["rules"], rules);
}

#[tokio::test]
async fn a_service_holds_its_address_as_an_ip_address_object() {
    let server = server().await;
    let services = "/api/v1/namespaces/default/services";
    let service = |name: &str, ip: &Value| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"clusterIP": ip, "ports": [{"port": 80}]}})
    };
    let made = create(&server, services, service("s", &Value::Null)).await;
    let ip = made["spec"]["clusterIP"].as_str().unwrap();
    let path = format!("/apis/networking.k8s.io/v1/ipaddresses/{ip}");
    assert_eq!(
        get(&server, &path).await["spec"],
        json!({"parentRef": {"resource": "services", "namespace": "default", "name": "s"}})
    );
    let (code, answer) = send(&server, "POST", services, service("t", &json!(ip))).await;
    assert_eq!(code, 422);
    assert_eq!(
        answer["message"],
        format!(
            "Service \"t\" is invalid: spec.clusterIPs: Invalid value: [\"{ip}\"]: failed to allocate IP {ip}: provided IP is already allocated"
        )
    );
    send(&server, "DELETE", &format!("{services}/s"), Value::Null).await;
    assert_eq!(send(&server, "GET", &path, Value::Null).await.0, 404);
}

#[tokio::test]
async fn a_new_control_plane_has_the_objects_that_clients_expect() {
    let server = server().await;
    for path in [
        "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps",
        "/apis/networking.k8s.io/v1/servicecidrs/kubernetes",
        "/apis/networking.k8s.io/v1/ipaddresses/10.0.0.1",
        "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/catch-all",
        "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/exempt",
        "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical",
    ] {
        get(&server, path).await;
    }
}

#[tokio::test]
async fn pod_security_levels_follow_the_labels_of_the_namespace() {
    let server = server().await;
    let label = |level: &str| json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}});
    let namespace = "/api/v1/namespaces/default";
    let (code, answer) = send(&server, "PATCH", namespace, label("odd")).await;
    assert_eq!(
        (code, answer["message"].as_str().unwrap()),
        (
            422,
            "Namespace \"default\" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \
             \"odd\": must be one of privileged, baseline, restricted"
        )
    );
    assert_eq!(send(&server, "PATCH", namespace, label("baseline")).await.0, 200);
    create(&server, PODS, pod("plain", &json!({}))).await;
    assert_eq!(
        refused(&server, PODS, pod("host", &json!({"hostNetwork": true}))).await,
        "pods \"host\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)"
    );
}
