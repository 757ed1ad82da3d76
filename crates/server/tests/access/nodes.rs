//! The node authorizer: upstream's cases, by access reviews.

use k1s_server::ServerOptions;
use serde_json::{Value, json};

use super::{admin, by, common::Client, modes, node, review, start};

const CASES: &str = include_str!("node_authorizer.txt");

/// The objects of upstream's cases: two nodes with two pods each, what the pods use, attachments and slices.
async fn populate(admin: &Client) {
    for namespace in ["ns0", "ns1"] {
        admin.post("/api/v1/namespaces", json!({"metadata": {"name": namespace}})).await;
    }
    for node in ["node0", "node1"] {
        admin.post("/api/v1/nodes", json!({"metadata": {"name": node}})).await;
        for number in 0..2 {
            pod(admin, node, number).await;
        }
        let attachment = json!({"metadata": {"name": format!("attachment0-{node}")},
            "spec": {"attacher": "a", "nodeName": node, "source": {"persistentVolumeName": "pv"}}});
        admin.post("/apis/storage.k8s.io/v1/volumeattachments", attachment).await;
        for number in 0..3 {
            let slice = json!({"metadata": {"name": format!("slice{number}-{node}")},
                "spec": {"driver": "d.example.com", "nodeName": node,
                    "pool": {"name": format!("{node}-{number}"), "generation": 1, "resourceSliceCount": 1}}});
            admin.post("/apis/resource.k8s.io/v1/resourceslices", slice).await;
        }
    }
}

async fn pod(admin: &Client, node: &str, number: usize) {
    let (name, namespace) = (format!("pod{number}-{node}"), format!("ns{number}"));
    let pv = format!("pv0-{name}-{namespace}");
    let volume = json!({"metadata": {"name": pv}, "spec": {"capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "flexVolume": {"driver": "example.com/d", "secretRef": {"name": format!("secret-{pv}")}},
        "claimRef": {"name": format!("pvc0-{name}"), "namespace": namespace}}});
    admin.post("/api/v1/persistentvolumes", volume).await;
    let template = format!("claimtemplate0-{name}-{namespace}");
    let pod = json!({"metadata": {"name": name}, "spec": {
        "nodeName": node,
        "serviceAccountName": format!("svcacct{number}-{node}"),
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [
            {"name": "a", "secret": {"secretName": format!("secret0-{name}")}},
            {"name": "b", "secret": {"secretName": "secret0-shared"}},
            {"name": "c", "configMap": {"name": format!("configmap0-{name}")}},
            {"name": "d", "persistentVolumeClaim": {"claimName": format!("pvc0-{name}")}},
        ],
        "resourceClaims": [
            {"name": "claim0", "resourceClaimName": format!("claim0-{name}-{namespace}")},
            {"name": "claimtemplate0", "resourceClaimTemplateName": template},
            {"name": "claimtemplate-with-claim0", "resourceClaimTemplateName": template},
        ],
    }});
    let made = format!("generated-claim-{name}-{namespace}-0");
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    admin.post(&path, pod).await;
    let status = json!({"status": {"resourceClaimStatuses":
        [{"name": "claimtemplate-with-claim0", "resourceClaimName": made}]}});
    let (code, answer) = admin.call("PATCH", &format!("{path}/{name}/status"), status).await;
    assert_eq!(code, 200, "{answer}");
}

#[tokio::test]
async fn nodes_may_do_what_upstreams_cases_say() {
    let mut options = ServerOptions::default();
    options.authorization = modes(&["Node"]);
    let server = start(options).await;
    let admin = admin(&server);
    populate(&admin).await;
    let (mut held, mut wrong) = (0, Vec::new());
    for line in CASES.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let fields: Vec<&str> = line.split('|').collect();
        let [about, user, verb, group, resource, subresource, namespace, name, selector, decision, reason] =
            fields[..]
        else {
            panic!("{line}")
        };
        // Its certificate request would have to be signed by its pod's key; `node_graph` has the case.
        if about.starts_with("allowed pcr get") {
            continue;
        }
        let mut attributes = json!({"verb": verb, "group": group, "resource": resource,
            "subresource": subresource, "namespace": namespace, "name": name});
        if !selector.is_empty() {
            attributes["fieldSelector"] = json!({ "rawSelector": selector });
        }
        let status = review(&admin, &format!("system:node:{user}"), &["system:nodes"], attributes).await;
        let said = status["reason"].as_str().unwrap_or_default();
        let agrees = (status["allowed"] == true) == (decision == "allow");
        if agrees && (reason.is_empty() || said == format!("node: {reason}")) {
            held += 1;
        } else {
            wrong.push(format!("{line}: {status}"));
        }
    }
    assert!(wrong.is_empty(), "{held} hold, these do not:\n{}", wrong.join("\n"));
    assert_eq!(held, 120);
}

#[tokio::test]
async fn a_node_reads_the_secrets_of_its_pods_as_soon_as_they_are_bound() {
    let mut options = ServerOptions::default();
    options.authorization = modes(&["Node", "RBAC"]);
    let server = start(options).await;
    let (admin, kubelet) = (admin(&server), by(&server, node("n")));
    let pods = "/api/v1/namespaces/default/pods";
    for number in 0..20 {
        let secret = format!("s{number}");
        let path = format!("/api/v1/namespaces/default/secrets/{secret}");
        admin.post("/api/v1/namespaces/default/secrets", json!({"metadata": {"name": secret}})).await;
        let (code, answer) = kubelet.call("GET", &path, Value::Null).await;
        assert_eq!(code, 403, "{answer}");
        let pod = json!({"metadata": {"name": secret}, "spec": {"containers": [{"name": "c", "image": "i"}],
            "nodeName": "n", "volumes": [{"name": "v", "secret": {"secretName": secret}}]}});
        admin.post(pods, pod).await;
        assert_eq!(kubelet.call("GET", &path, Value::Null).await.0, 200);
        admin.call("DELETE", &format!("{pods}/{secret}?gracePeriodSeconds=0"), Value::Null).await;
    }
    // With the selector of its own pods alone.
    assert_eq!(kubelet.call("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn", Value::Null).await.0, 200);
    let (code, answer) =
        kubelet.call("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dm", Value::Null).await;
    assert_eq!(code, 403);
    assert!(
        answer["message"]
            .as_str()
            .unwrap()
            .ends_with("node: can only list/watch pods with spec.nodeName field selector"),
        "{answer}"
    );
}
