//! `NodeRestriction`: upstream's cases, as requests of a node that RBAC lets do everything.

use k1s_server::{AuthorizationMode, User};
use serde_json::{Value, json};

use super::{admin, by, common::Client, message, node, start, with_plugins};

const PODS: &str = "/api/v1/namespaces/ns/pods";
const MIRROR: &str = "kubernetes.io/config.mirror";

/// A pod on a node, perhaps a mirror pod.
fn pod(name: &str, node: &str, mirror: bool) -> Value {
    let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    if !node.is_empty() {
        pod["spec"]["nodeName"] = node.into();
    }
    if mirror {
        pod["metadata"]["annotations"][MIRROR] = "true".into();
    }
    pod
}

fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let mut at = &mut object;
    for part in parent.split('/').filter(|part| !part.is_empty()) {
        at = &mut at[part];
    }
    at[key] = value;
    object
}

/// A request and what is said about it; empty: it is admitted.
struct Case {
    method: &'static str,
    path: String,
    body: Value,
    said: &'static str,
}

fn case(method: &'static str, path: impl Into<String>, body: Value, said: &'static str) -> Case {
    Case { method, path: path.into(), body, said }
}

/// Sends each request as a dry run, where that is possible, so that no case depends on another.
async fn check(client: &Client, cases: Vec<Case>) -> usize {
    let mut wrong = Vec::new();
    let count = cases.len();
    for Case { method, path, body, said } in cases {
        let dry = format!("{path}{}dryRun=All", if path.contains('?') { '&' } else { '?' });
        let (code, answer) = client.call(method, &dry, body).await;
        let text = message(&answer);
        let holds = match said {
            "" => code < 300,
            said => code >= 400 && text.ends_with(said),
        };
        if !holds {
            wrong.push(format!("{method} {path}: expected {said:?}, not {code} {text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    count
}

/// A server with the objects of the cases, its administrator and its node `mynode`.
async fn stage() -> (Client, Client) {
    let mut options = with_plugins(&["NodeRestriction"]);
    options.authorization = AuthorizationMode::AlwaysAllow.into();
    let server = start(options).await;
    let (admin, kubelet) = (admin(&server), by(&server, node("mynode")));
    for namespace in ["ns", "kube-node-lease"] {
        admin.call("POST", "/api/v1/namespaces", json!({"metadata": {"name": namespace}})).await;
    }
    for name in ["mynode", "othernode"] {
        let node = json!({"metadata": {"name": name, "labels": {"a": "b", "kubernetes.io/os": "linux"}}});
        admin.post("/api/v1/nodes", node).await;
    }
    for (name, on, mirror) in [
        ("mypod", "mynode", false),
        ("otherpod", "othernode", false),
        ("unboundpod", "", false),
        ("mymirrorpod", "mynode", true),
        ("othermirrorpod", "othernode", true),
    ] {
        admin.post(PODS, pod(name, on, mirror)).await;
    }
    (admin, kubelet)
}

#[tokio::test]
async fn a_node_changes_pods_of_its_own_alone() {
    let (admin, kubelet) = stage().await;
    let uid = admin.get("/api/v1/nodes/mynode").await["metadata"]["uid"].clone();
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "mynode", "uid": uid, "controller": true});
    let mirror = with(pod("new", "mynode", true), "/metadata/ownerReferences", json!([owner]));
    let owned = |field: &str, value: Value| {
        let mut owner = owner.clone();
        owner[field] = value;
        with(mirror.clone(), "/metadata/ownerReferences", json!([owner]))
    };
    let volume = |source: Value| {
        let mut source = source;
        source["name"] = "v".into();
        with(mirror.clone(), "/spec/volumes", json!([source]))
    };
    let eviction = |name: &str| json!({"metadata": {"name": name, "namespace": "ns"}});
    let only_mirror = "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"mynode\" can only create mirror pods";
    let own_owner = "node \"mynode\" can only create pods with an owner reference set to itself";
    let status = |value: Value| json!({ "status": value });
    let unexpected =
        "unexpected operation \"UPDATE\", node \"mynode\" can only create and delete mirror pods";
    let held = check(
        &kubelet,
        vec![
            case("POST", PODS, mirror.clone(), ""),
            case("POST", PODS, pod("new", "mynode", false), only_mirror),
            case(
                "POST",
                PODS,
                pod("new", "othernode", true),
                "node \"mynode\" can only create pods with spec.nodeName set to itself",
            ),
            case(
                "POST",
                PODS,
                pod("new", "", true),
                "node \"mynode\" can only create pods with spec.nodeName set to itself",
            ),
            case("POST", PODS, pod("new", "mynode", true), own_owner),
            case(
                "POST",
                PODS,
                with(mirror.clone(), "/metadata/ownerReferences", json!([owner, with(owner.clone(), "/uid", "x".into())])),
                "node \"mynode\" can only create pods with a single owner reference set to itself",
            ),
            case("POST", PODS, owned("apiVersion", "v2".into()), own_owner),
            case("POST", PODS, owned("kind", "Pod".into()), own_owner),
            case("POST", PODS, owned("name", "othernode".into()), own_owner),
            case(
                "POST",
                PODS,
                owned("controller", false.into()),
                "node \"mynode\" can only create pods with a controller owner reference set to itself",
            ),
            case(
                "POST",
                PODS,
                owned("controller", Value::Null),
                "node \"mynode\" can only create pods with a controller owner reference set to itself",
            ),
            case(
                "POST",
                PODS,
                owned("blockOwnerDeletion", true.into()),
                "node \"mynode\" must not set blockOwnerDeletion on an owner reference",
            ),
            case("POST", PODS, owned("blockOwnerDeletion", false.into()), ""),
            case(
                "POST",
                PODS,
                with(mirror.clone(), "/spec/serviceAccountName", "foo".into()),
                "node \"mynode\" can not create pods that reference serviceaccounts",
            ),
            case(
                "POST",
                PODS,
                volume(json!({"secret": {"secretName": "foo"}})),
                "node \"mynode\" can not create pods that reference secrets",
            ),
            case(
                "POST",
                PODS,
                volume(json!({"configMap": {"name": "foo"}})),
                "node \"mynode\" can not create pods that reference configmaps",
            ),
            case(
                "POST",
                PODS,
                volume(json!({"persistentVolumeClaim": {"claimName": "foo"}})),
                "node \"mynode\" can not create pods that reference persistentvolumeclaims",
            ),
            case("POST", PODS, volume(json!({"emptyDir": {}})), ""),
            case("PATCH", format!("{PODS}/mypod"), json!({"metadata": {"labels": {"a": "b"}}}), unexpected),
            case("PATCH", format!("{PODS}/mymirrorpod"), json!({"metadata": {"labels": {"a": "b"}}}), unexpected),
            case("PATCH", format!("{PODS}/otherpod"), json!({"metadata": {"labels": {"a": "b"}}}), unexpected),
            case("DELETE", format!("{PODS}/mypod"), Value::Null, ""),
            case("DELETE", format!("{PODS}/mymirrorpod"), Value::Null, ""),
            case(
                "DELETE",
                format!("{PODS}/otherpod"),
                Value::Null,
                "node \"mynode\" can only delete pods with spec.nodeName set to itself",
            ),
            case(
                "DELETE",
                format!("{PODS}/unboundpod"),
                Value::Null,
                "node \"mynode\" can only delete pods with spec.nodeName set to itself",
            ),
            case("PATCH", format!("{PODS}/mypod/status"), status(json!({"message": "x"})), ""),
            case("PATCH", format!("{PODS}/mymirrorpod/status"), status(json!({"message": "x"})), ""),
            case(
                "PATCH",
                format!("{PODS}/otherpod/status"),
                status(json!({"message": "x"})),
                "node \"mynode\" can only update pod status for pods with spec.nodeName set to itself",
            ),
            case(
                "PATCH",
                format!("{PODS}/unboundpod/status"),
                status(json!({"message": "x"})),
                "node \"mynode\" can only update pod status for pods with spec.nodeName set to itself",
            ),
            case(
                "PATCH",
                format!("{PODS}/mypod/status"),
                json!({"metadata": {"labels": {"label-a": "value-a"}}}),
                "node \"mynode\" cannot update labels through pod status",
            ),
            case(
                "PATCH",
                format!("{PODS}/mypod/status"),
                status(json!({"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "b"}]})),
                "node \"mynode\" cannot update resource claim statues",
            ),
            case(
                "PATCH",
                format!("{PODS}/mypod/ephemeralcontainers"),
                json!({"spec": {"ephemeralContainers": []}}),
                "unexpected pod subresource \"ephemeralcontainers\", only 'status' and 'eviction' are allowed",
            ),
            case("POST", format!("{PODS}/mypod/eviction"), eviction("mypod"), ""),
            case("POST", format!("{PODS}/mymirrorpod/eviction"), eviction("mymirrorpod"), ""),
            case(
                "POST",
                format!("{PODS}/otherpod/eviction"),
                eviction("otherpod"),
                "node mynode can only evict pods with spec.nodeName set to itself",
            ),
            case(
                "POST",
                format!("{PODS}/unboundpod/eviction"),
                eviction("unboundpod"),
                "node mynode can only evict pods with spec.nodeName set to itself",
            ),
            case("POST", format!("{PODS}/nosuchpod/eviction"), eviction("nosuchpod"), "pods \"nosuchpod\" not found"),
            case(
                "POST",
                format!("{PODS}/unboundpod/binding"),
                json!({"metadata": {"name": "unboundpod"}, "target": {"kind": "Node", "name": "mynode"}}),
                "unexpected pod subresource \"binding\", only 'status' and 'eviction' are allowed",
            ),
        ],
    )
    .await;
    assert_eq!(held, 38);
}

#[tokio::test]
async fn a_node_changes_its_own_node_lease_and_claims_alone() {
    let (admin, kubelet) = stage().await;
    let claim = json!({"metadata": {"name": "claim"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    admin.post("/api/v1/namespaces/ns/persistentvolumeclaims", claim).await;
    let claim = "/api/v1/namespaces/ns/persistentvolumeclaims/claim";
    let nodes = "/api/v1/nodes";
    let mine = format!("{nodes}/mynode");
    let label = |key: &str| json!({"metadata": {"labels": {key: "v"}}});
    let leases = |namespace: &str| format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
    let named = |name: &str| json!({"metadata": {"name": name}});
    let csi = |name: &str| json!({"metadata": {"name": name}, "spec": {"drivers": []}});
    let slice = |node: &str| {
        json!({"metadata": {"name": "s"}, "spec": {"driver": "d.example.com", "nodeName": node,
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}})
    };
    for name in ["mynode", "othernode"] {
        let mut made = slice(name);
        made["metadata"]["name"] = name.into();
        admin.post("/apis/resource.k8s.io/v1/resourceslices", made).await;
    }
    let slices = "/apis/resource.k8s.io/v1/resourceslices";
    let lease_name = "can only access node lease with the same name as the requesting node";
    let held = check(
        &kubelet,
        vec![
            case("PATCH", &*mine, label("foo"), ""),
            case("PATCH", &*mine, label("kubernetes.io/hostname"), ""),
            case("PATCH", &*mine, label("topology.kubernetes.io/zone"), ""),
            case("PATCH", &*mine, label("foo.kubelet.kubernetes.io/x"), ""),
            case("PATCH", &*mine, label("node.kubernetes.io/x"), ""),
            case(
                "PATCH",
                &*mine,
                label("node-restriction.kubernetes.io/foo"),
                "is not allowed to modify labels: node-restriction.kubernetes.io/foo",
            ),
            case(
                "PATCH",
                &*mine,
                label("foo.node-restriction.kubernetes.io/foo"),
                "is not allowed to modify labels: foo.node-restriction.kubernetes.io/foo",
            ),
            case(
                "PATCH",
                &*mine,
                label("other.kubernetes.io/foo"),
                "is not allowed to modify labels: other.kubernetes.io/foo",
            ),
            case("PATCH", &*mine, label("other.k8s.io/foo"), "is not allowed to modify labels: other.k8s.io/foo"),
            case("PATCH", &*mine, json!({"metadata": {"labels": {"kubernetes.io/os": null}}}), ""),
            case(
                "PATCH",
                &*mine,
                json!({"spec": {"taints": [{"key": "mykey", "effect": "NoSchedule"}]}}),
                "node \"mynode\" is not allowed to modify taints",
            ),
            case(
                "PATCH",
                &*mine,
                json!({"metadata": {"ownerReferences":
                    [{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "b"}]}}),
                "node \"mynode\" is not allowed to modify ownerReferences",
            ),
            case("PATCH", format!("{mine}/status"), json!({"status": {"phase": "Running"}}), ""),
            case(
                "PATCH",
                format!("{nodes}/othernode"),
                label("foo"),
                "node \"mynode\" is not allowed to modify node \"othernode\"",
            ),
            case(
                "PATCH",
                format!("{nodes}/othernode/status"),
                json!({"status": {}}),
                "node \"mynode\" is not allowed to modify node \"othernode\"",
            ),
            case(
                "DELETE",
                format!("{nodes}/othernode"),
                Value::Null,
                "node \"mynode\" is not allowed to modify node \"othernode\"",
            ),
            case("POST", nodes, named("new"), "node \"mynode\" is not allowed to modify node \"new\""),
            case(
                "POST",
                nodes,
                with(named("mynode"), "/metadata/labels", json!({"x.k8s.io/a": "b"})),
                "node \"mynode\" is not allowed to set the following labels: x.k8s.io/a",
            ),
            case("PATCH", format!("{claim}/status"), json!({"status": {"capacity": {"storage": "2Gi"}}}), ""),
            case(
                "PATCH",
                format!("{claim}/status"),
                json!({"metadata": {"labels": {"a": "b"}}}),
                "node \"mynode\" is not allowed to update fields other than status.quantity and status.conditions: metadata",
            ),
            case(
                "PATCH",
                format!("{claim}/status"),
                json!({"status": {"phase": "Lost"}}),
                "node \"mynode\" is not allowed to update fields other than status.quantity and status.conditions: status",
            ),
            case("PATCH", claim, json!({"metadata": {"labels": {"a": "b"}}}), "may only update PVC status"),
            case("DELETE", claim, Value::Null, "may only update PVC status"),
            case("POST", leases("kube-node-lease"), named("mynode"), ""),
            case("POST", leases("kube-node-lease"), named("foo"), lease_name),
            case(
                "POST",
                leases("ns"),
                named("mynode"),
                "can only access leases in the \"kube-node-lease\" system namespace",
            ),
            case("POST", "/apis/storage.k8s.io/v1/csinodes", csi("mynode"), ""),
            case(
                "POST",
                "/apis/storage.k8s.io/v1/csinodes",
                csi("foo"),
                "can only access CSINode with the same name as the requesting node",
            ),
            case("POST", slices, slice("mynode"), ""),
            case(
                "POST",
                slices,
                slice("othernode"),
                "can only create ResourceSlice with the same NodeName as the requesting node",
            ),
            case("DELETE", format!("{slices}/mynode"), Value::Null, ""),
            case(
                "DELETE",
                format!("{slices}/othernode"),
                Value::Null,
                "can only delete ResourceSlice with the same NodeName as the requesting node",
            ),
            // What no case restricts.
            case("POST", "/api/v1/namespaces/ns/configmaps", named("a"), ""),
        ],
    )
    .await;
    assert_eq!(held, 33);
}

#[tokio::test]
async fn a_node_requests_tokens_for_its_pods_alone() {
    let (admin, kubelet) = stage().await;
    admin.post("/api/v1/namespaces/ns/serviceaccounts", json!({"metadata": {"name": "robot"}})).await;
    let mut with_audience = pod("audience", "mynode", false);
    with_audience["spec"]["volumes"] = json!([{"name": "v", "projected": {"sources":
        [{"serviceAccountToken": {"audience": "foo", "path": "t"}}]}}]);
    with_audience["spec"]["serviceAccountName"] = "robot".into();
    admin.post(PODS, with_audience).await;
    let uid = async |name: &str| admin.get(&format!("{PODS}/{name}")).await["metadata"]["uid"].clone();
    let (mine, other) = (uid("mypod").await, uid("otherpod").await);
    let audience = uid("audience").await;
    let token = |name: &str, uid: &Value, audiences: &[&str]| {
        json!({"spec": {"audiences": audiences,
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}}})
    };
    let path = "/api/v1/namespaces/ns/serviceaccounts/robot/token";
    let unbound = "node requested token not bound to a pod";
    let held = check(
        &kubelet,
        vec![
            case("POST", path, json!({"spec": {}}), unbound),
            case(
                "POST",
                path,
                json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "x"}}}),
                unbound,
            ),
            case(
                "POST",
                path,
                json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "mypod"}}}),
                "node requested token with a pod binding without a uid",
            ),
            case("POST", path, token("nopod", &mine, &[]), "pods \"nopod\" not found"),
            case(
                "POST",
                path,
                token("mypod", &"x".into(), &[]),
                "the UID in the bound object reference (x) does not match the UID in record. The object might have been deleted and then recreated",
            ),
            case(
                "POST",
                path,
                token("otherpod", &other, &[]),
                "node requested token bound to a pod scheduled on a different node",
            ),
            case("POST", path, token("audience", &audience, &["foo"]), ""),
            case(
                "POST",
                path,
                token("audience", &audience, &["foo", "bar"]),
                "node may only request 0 or 1 audiences",
            ),
        ],
    )
    .await;
    assert_eq!(held, 8);
}

#[tokio::test]
async fn a_node_without_a_name_may_do_nothing_and_others_are_not_restricted() {
    let mut options = with_plugins(&["NodeRestriction"]);
    options.authorization = AuthorizationMode::AlwaysAllow.into();
    let server = start(options).await;
    admin(&server).post("/api/v1/namespaces", json!({"metadata": {"name": "ns"}})).await;
    let nameless = by(&server, node(""));
    let (code, answer) = nameless.call("POST", PODS, pod("a", "n", true)).await;
    assert_eq!(code, 403);
    assert!(message(&answer).ends_with("could not determine node from user \"system:node:\""), "{answer}");
    // In the group without the name, or with the name and not in the group.
    for user in [User::new("bob", &["system:nodes"]), User::new("system:node:mynode", &[])] {
        let name = format!("p-{}", user.name.len());
        by(&server, user).post(PODS, pod(&name, "othernode", false)).await;
    }
}

/// Applies a configuration as the manager `m`.
async fn apply(client: &Client, path: &str, config: &Value) -> (u16, String) {
    let headers = [("content-type", "application/apply-patch+yaml")];
    let answer = client.send("PATCH", &format!("{path}?fieldManager=m"), &headers, config.to_string()).await;
    let json = answer.json();
    (answer.status, message(&json).to_owned())
}

/// What a node may not write, it may not write again either: an apply that changes nothing is one, too.
#[tokio::test]
async fn a_node_may_not_repeat_what_it_may_not_do() {
    let (admin, kubelet) = stage().await;
    let config = |kind: &str, name: &str| {
        let metadata = json!({"name": name, "labels": {"c": "d"}});
        json!({"apiVersion": "v1", "kind": kind, "metadata": metadata})
    };
    let other = "node \"mynode\" is not allowed to modify node \"othernode\"";
    let update = "unexpected operation \"UPDATE\", node \"mynode\" can only create and delete mirror pods";
    for (path, config, said) in [
        ("/api/v1/nodes/othernode".to_owned(), config("Node", "othernode"), other),
        ("/api/v1/nodes/mynode".to_owned(), config("Node", "mynode"), ""),
        (format!("{PODS}/mypod"), config("Pod", "mypod"), update),
        (format!("{PODS}/otherpod"), config("Pod", "otherpod"), update),
    ] {
        assert_eq!(apply(&admin, &path, &config).await.0, 200, "{path}");
        let before = admin.get(&path).await;
        let (code, text) = apply(&kubelet, &path, &config).await;
        assert_eq!(code, if said.is_empty() { 200 } else { 403 }, "{path}: {text}");
        assert!(text.ends_with(said), "{path}: {text}");
        assert_eq!(admin.get(&path).await, before, "nothing has changed");
    }
    // An update and a patch that change nothing are not allowed either.
    let node = admin.get("/api/v1/nodes/othernode").await;
    for (method, body) in [("PUT", node), ("PATCH", json!({"metadata": {"labels": {"c": "d"}}}))] {
        let (code, answer) = kubelet.call(method, "/api/v1/nodes/othernode", body).await;
        assert!(code == 403 && message(&answer).ends_with(other), "{method}: {answer}");
    }
}
