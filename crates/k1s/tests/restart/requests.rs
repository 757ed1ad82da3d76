//! Users make themselves certificates: `CertificateSigningRequests`.

use std::time::Duration;

use k1s::{
    CertificatesOptions, ControllersOptions,
    k8s_openapi::{
        ByteString,
        api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition},
    },
    kube::api::{DeleteParams, Patch, PatchParams},
};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

use super::*;

/// A key, and a request for its certificate.
struct Pair {
    key: String,
    request: String,
}

fn pair(name: &str, group: &str) -> Pair {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, group);
    params.distinguished_name.push(DnType::CommonName, name);
    let request = params.serialize_request(&key).unwrap().pem().unwrap();
    Pair { key: key.serialize_pem(), request }
}

fn requests(client: &kube::Client) -> Api<CertificateSigningRequest> {
    Api::all(client.clone())
}

async fn ask(client: &kube::Client, name: &str, pair: &Pair, signer: &str, usages: &[&str]) {
    let mut request: CertificateSigningRequest = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"request": "", "signerName": signer, "usages": usages, "expirationSeconds": 3600},
    }))
    .unwrap();
    request.spec.request = ByteString(pair.request.clone().into_bytes());
    requests(client).create(&PostParams::default(), &request).await.unwrap();
}

/// As `kubectl certificate approve`.
async fn approve(client: &kube::Client, name: &str) {
    let condition =
        json!({"type": "Approved", "status": "True", "reason": "KubectlApprove", "message": "by hand"});
    let patch = Patch::Merge(json!({"status": {"conditions": [condition]}}));
    let requests = requests(client);
    requests.patch_subresource("approval", name, &PatchParams::default(), &patch).await.unwrap();
}

/// Waits until a request has a certificate or a condition.
async fn decided(client: &kube::Client, name: &str) -> Result<String, CertificateSigningRequestCondition> {
    use futures_util::StreamExt as _;
    let requests = requests(client);
    let params = kube::api::WatchParams::default().fields(&format!("metadata.name={name}"));
    let mut events = requests.watch(&params, "0").await.unwrap().boxed();
    loop {
        let event = Env::system().timeout(Duration::from_secs(60), events.next()).await;
        let (kube::api::WatchEvent::Added(found) | kube::api::WatchEvent::Modified(found)) =
            event.expect("nothing happens").unwrap().unwrap()
        else {
            continue;
        };
        let status = found.status.unwrap_or_default();
        if let Some(certificate) = status.certificate {
            return Ok(String::from_utf8(certificate.0).unwrap());
        }
        let failed = status.conditions.into_iter().flatten().find(|one| one.type_ == "Failed");
        if let Some(failed) = failed {
            return Err(failed);
        }
    }
}

/// A client with a certificate.
async fn with_certificate(runtime: &Runtime, pair: &Pair, certificate: &str, path: &str) -> kube::Client {
    let mut kubeconfig = Kubeconfig::from_yaml(runtime.kubeconfig().unwrap()).unwrap();
    let cluster = kubeconfig.clusters[0].cluster.as_mut().unwrap();
    cluster.server = cluster.server.take().map(|server| server + path);
    let base64 = |text: &str| serde_json::to_value(ByteString(text.as_bytes().to_vec())).unwrap();
    let auth = json!({"client-certificate-data": base64(certificate), "client-key-data": base64(&pair.key)});
    kubeconfig.auth_infos[0].auth_info = serde_json::from_value(auth).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

const CLIENT: &str = "kubernetes.io/kube-apiserver-client";

#[tokio::test]
async fn an_approved_request_is_signed_and_names_a_user_in_its_tenant_alone() {
    let runtime = Runtime::builder().listen(ANY_PORT).start().await.unwrap();
    let admin = runtime.client();
    let alice = pair("alice", "devs");
    ask(&admin, "alice", &alice, CLIENT, &["client auth"]).await;
    approve(&admin, "alice").await;
    let certificate = decided(&admin, "alice").await.unwrap();
    let here = with_certificate(&runtime, &alice, &certificate, "").await;
    assert_eq!(code(&here).await, 403, "she has no rights yet");
    let binding = json!({"metadata": {"name": "devs"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "devs"}]});
    let bindings = Api::<RoleBinding>::default_namespaced(admin.clone());
    bindings.create(&PostParams::default(), &serde_json::from_value(binding.clone()).unwrap()).await.unwrap();
    assert_eq!(code(&here).await, 200);
    // In another tenant it is no certificate, whatever its roles say.
    let other = runtime.tenant_client("other").await.unwrap();
    let bindings = Api::<RoleBinding>::default_namespaced(other.clone());
    bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();
    let there = with_certificate(&runtime, &alice, &certificate, "/clusters/other").await;
    assert_eq!(code(&there).await, 401);
    // And the other way round.
    ask(&other, "alice", &alice, CLIENT, &["client auth"]).await;
    approve(&other, "alice").await;
    let certificate = decided(&other, "alice").await.unwrap();
    let there = with_certificate(&runtime, &alice, &certificate, "/clusters/other").await;
    assert_eq!(code(&there).await, 200);
    let here = with_certificate(&runtime, &alice, &certificate, "").await;
    assert_eq!(code(&here).await, 401);
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn what_a_signer_does_not_sign_fails_with_the_reason() {
    let runtime = Runtime::builder().listen(ANY_PORT).start().await.unwrap();
    let admin = runtime.client();
    ask(&admin, "server", &pair("alice", "devs"), CLIENT, &["server auth"]).await;
    approve(&admin, "server").await;
    let failed = decided(&admin, "server").await.unwrap_err();
    assert_eq!(
        (failed.reason.as_deref(), failed.message.as_deref()),
        (Some("SignerValidationFailure"), Some("invalid usage for client certificate: server auth"))
    );
    // Servers get certificates in the default tenant alone: clients of all tenants trust them.
    let other = runtime.tenant_client("other").await.unwrap();
    let node = pair("system:node:a", "system:nodes");
    let kubelet = "kubernetes.io/kube-apiserver-client-kubelet";
    ask(&other, "node", &node, kubelet, &["digital signature", "client auth"]).await;
    approve(&other, "node").await;
    decided(&other, "node").await.unwrap();
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn requests_are_approved_automatically_for_whoever_may_have_that() {
    let mut certificates = CertificatesOptions::default();
    certificates.auto_approve = true;
    let options = ControllersOptions { certificates: Some(certificates), ..ControllersOptions::default() };
    let runtime = Runtime::builder().listen(ANY_PORT).controllers(options).start().await.unwrap();
    // The administrator may approve requests to any signer.
    let admin = runtime.client();
    let alice = pair("alice", "devs");
    ask(&admin, "alice", &alice, CLIENT, &["client auth"]).await;
    let certificate = decided(&admin, "alice").await.unwrap();
    // Alice may make requests, and not approve them.
    let rules = json!([{"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"],
        "verbs": ["create", "get", "list", "watch"]}]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "asks"}, "rules": rules});
    let binding = |name: &str, role: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]})
    };
    for object in [role, binding("asks", "asks")] {
        runtime.apply(&object.to_string()).await.unwrap();
    }
    let client = with_certificate(&runtime, &alice, &certificate, "").await;
    ask(&client, "bob", &pair("bob", "devs"), CLIENT, &["client auth"]).await;
    let node = pair("system:node:a", "system:nodes");
    let kubelet = "kubernetes.io/kube-apiserver-client-kubelet";
    let usages = ["digital signature", "client auth"];
    ask(&client, "node-1", &node, kubelet, &usages).await;
    let role = "system:certificates.k8s.io:certificatesigningrequests:nodeclient";
    runtime.apply(&binding("nodes", role).to_string()).await.unwrap();
    ask(&client, "node-2", &node, kubelet, &usages).await;
    decided(&client, "node-2").await.unwrap();
    // The others came before, and are still not decided.
    for name in ["bob", "node-1"] {
        let status = requests(&client).get(name).await.unwrap().status.unwrap_or_default();
        assert_eq!((status.conditions, status.certificate), (None, None), "{name}");
    }
    let approved = requests(&client).get("node-2").await.unwrap().status.unwrap().conditions.unwrap();
    assert_eq!(
        approved[0].message.as_deref(),
        Some("Auto approving kubelet client certificate after SubjectAccessReview.")
    );
    requests(&admin).delete("bob", &DeleteParams::default()).await.unwrap();
    runtime.stop().await.unwrap();
}
