//! Admission plugins of access: service accounts of pods, owners, certificates.

use k1s_server::User;
use serde_json::{Value, json};

use super::{admin, by, common::Client, message, start, with_plugins};

const PODS: &str = "/api/v1/namespaces/default/pods";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

async fn refused(client: &Client, path: &str, body: Value) -> String {
    let (code, answer) = client.call("POST", path, body).await;
    assert_eq!(code, 403, "{answer}");
    message(&answer).rsplit_once(" is forbidden: ").unwrap().1.to_owned()
}

#[tokio::test]
async fn pods_get_their_service_account_and_its_token() {
    let server = start(with_plugins(&["ServiceAccount"])).await;
    let admin = admin(&server);
    let plain = admin.post(PODS, pod("plain")).await;
    assert_eq!(
        (&plain["spec"]["serviceAccountName"], &plain["spec"]["serviceAccount"]),
        (&json!("default"), &json!("default"))
    );
    let volume = &plain["spec"]["volumes"][0];
    assert!(volume["name"].as_str().unwrap().starts_with("kube-api-access-"), "{volume}");
    assert_eq!(
        volume["projected"],
        json!({"defaultMode": 420, "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
            {"downwardAPI": {"items": [{"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                "path": "namespace"}]}}]})
    );
    assert_eq!(
        plain["spec"]["containers"][0]["volumeMounts"],
        json!([{"name": volume["name"], "readOnly": true,
            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}])
    );
    // The pod's preference wins over that of the account.
    let account = json!({"metadata": {"name": "quiet"}, "automountServiceAccountToken": false,
        "imagePullSecrets": [{"name": "pull"}]});
    admin.post(ACCOUNTS, account).await;
    let of = |name: &str, automount: Option<bool>| {
        let mut pod = pod(name);
        pod["spec"]["serviceAccountName"] = "quiet".into();
        if let Some(automount) = automount {
            pod["spec"]["automountServiceAccountToken"] = automount.into();
        }
        pod
    };
    let quiet = admin.post(PODS, of("quiet", None)).await;
    assert!(quiet["spec"].get("volumes").is_none(), "{quiet}");
    assert_eq!(quiet["spec"]["imagePullSecrets"], json!([{"name": "pull"}]));
    let loud = admin.post(PODS, of("loud", Some(true))).await;
    assert_eq!(loud["spec"]["volumes"].as_array().unwrap().len(), 1);
    // A mount at that path is left alone.
    let mut own = pod("own");
    own["spec"]["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
    own["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "v", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]);
    assert_eq!(admin.post(PODS, own).await["spec"]["volumes"].as_array().unwrap().len(), 1);
    let mut missing = pod("missing");
    missing["spec"]["serviceAccountName"] = "nobody".into();
    assert_eq!(
        refused(&admin, PODS, missing).await,
        "error looking up service account default/nobody: serviceaccount \"nobody\" not found"
    );
    let mut mirror = pod("mirror");
    mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "true".into();
    mirror["spec"]["serviceAccountName"] = "default".into();
    assert_eq!(refused(&admin, PODS, mirror).await, "a mirror pod may not reference service accounts");
}

#[tokio::test]
async fn an_account_may_limit_the_secrets_of_its_pods() {
    let server = start(with_plugins(&["ServiceAccount"])).await;
    let admin = admin(&server);
    let account = json!({"metadata": {"name": "strict",
            "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}},
        "automountServiceAccountToken": false, "secrets": [{"name": "good"}], "imagePullSecrets": []});
    admin.post(ACCOUNTS, account).await;
    let of = |change: &dyn Fn(&mut Value)| {
        let mut pod = pod("p");
        pod["spec"]["serviceAccountName"] = "strict".into();
        change(&mut pod["spec"]);
        pod
    };
    let volume = |name: &'static str| {
        move |spec: &mut Value| spec["volumes"] = json!([{"name": "v", "secret": {"secretName": name}}])
    };
    admin.post(PODS, of(&volume("good"))).await;
    let is_not = "is not allowed because service account strict does not reference that";
    let env = json!([{"name": "E", "valueFrom": {"secretKeyRef": {"name": "bad", "key": "k"}}}]);
    let from = json!([{"secretRef": {"name": "bad"}}]);
    let cases: [(Value, String); 5] = [
        (of(&volume("bad")), format!("volume with secret.secretName=\"bad\" {is_not} secret")),
        (
            of(&|spec| spec["containers"][0]["env"] = env.clone()),
            format!("container c with envVar E referencing secret.secretName=\"bad\" {is_not} secret"),
        ),
        (
            of(&|spec| {
                spec["initContainers"] = json!([{"name": "i", "image": "i", "env": env}]);
            }),
            format!("init container i with envVar E referencing secret.secretName=\"bad\" {is_not} secret"),
        ),
        (
            of(&|spec| spec["containers"][0]["envFrom"] = from.clone()),
            format!("container c with envFrom referencing secret.secretName=\"bad\" {is_not} secret"),
        ),
        (
            of(&|spec| spec["imagePullSecrets"] = json!([{"name": "pull"}])),
            format!("imagePullSecrets[0].name=\"pull\" {is_not} imagePullSecret"),
        ),
    ];
    for (pod, expected) in cases {
        assert_eq!(refused(&admin, PODS, pod).await, expected);
    }
}

#[tokio::test]
async fn without_the_plugin_pods_are_stored_as_they_are_sent() {
    let server = start(with_plugins(&[])).await;
    let pod = admin(&server).post(PODS, pod("p")).await;
    assert!(pod["spec"].get("volumes").is_none() && pod["spec"].get("serviceAccountName").is_none(), "{pod}");
}

/// Grants a user rules.
async fn grant(admin: &Client, user: &str, rules: Value) {
    let mut role = json!({"metadata": {"name": user}});
    role["rules"] = rules;
    admin.post(&format!("{RBAC}/clusterroles"), role).await;
    let binding = json!({"metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]});
    admin.post(&format!("{RBAC}/clusterrolebindings"), binding).await;
}

fn rule(group: &str, resource: &str, verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
}

#[tokio::test]
async fn owners_are_set_by_whoever_could_delete_and_finalize() {
    let server = start(with_plugins(&["OwnerReferencesPermissionEnforcement"])).await;
    let admin = admin(&server);
    let writes = ["create", "get", "update", "patch"];
    grant(&admin, "plain", json!([rule("", "configmaps", &writes)])).await;
    grant(&admin, "deleter", json!([rule("", "configmaps", &[&writes[..], &["delete"]].concat())])).await;
    grant(
        &admin,
        "finalizer",
        json!([
            rule("", "configmaps", &[&writes[..], &["delete"]].concat()),
            rule("", "pods/finalizers", &["update"])
        ]),
    )
    .await;
    grant(
        &admin,
        "anything",
        json!([
            rule("", "configmaps", &[&writes[..], &["delete"]].concat()),
            rule("*", "*/finalizers", &["update"])
        ]),
    )
    .await;
    let users = ["plain", "deleter", "finalizer", "anything"].map(|name| by(&server, User::new(name, &[])));
    let [plain, deleter, finalizer, anything] = &users;
    let owner = |kind: &str, blocks: bool| json!({"apiVersion": "v1", "kind": kind, "name": "o", "uid": "u", "blockOwnerDeletion": blocks});
    let owned = |name: &str, owner: Value| json!({"metadata": {"name": name, "ownerReferences": [owner]}});
    // Whoever creates an object may say who owns it.
    plain.post(MAPS, owned("a", owner("Pod", false))).await;
    let change = |owner: Value| json!({"metadata": {"ownerReferences": [owner]}});
    let said = async |client: &Client, path: &str, body: Value| {
        let (code, answer) = client.call("PATCH", path, body).await;
        (code, message(&answer).split(" is forbidden: ").last().unwrap_or_default().to_owned())
    };
    let path = format!("{MAPS}/a");
    assert_eq!(
        said(plain, &path, change(owner("Node", false))).await,
        (403, "cannot set an ownerRef on a resource you can't delete: , <nil>".into())
    );
    assert_eq!(said(plain, &path, json!({"data": {"a": "b"}})).await.0, 200);
    assert_eq!(said(deleter, &path, change(owner("Node", false))).await.0, 200);
    let blocks = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>";
    assert_eq!(refused(plain, MAPS, owned("b", owner("Pod", true))).await, blocks);
    assert_eq!(refused(deleter, MAPS, owned("b", owner("Pod", true))).await, blocks);
    finalizer.post(MAPS, owned("b", owner("Pod", true))).await;
    assert_eq!(refused(finalizer, MAPS, owned("c", owner("Node", true))).await, blocks);
    anything.post(MAPS, owned("c", owner("Node", true))).await;
    assert_eq!(
        refused(finalizer, MAPS, owned("d", owner("Nothing", true))).await,
        "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion v1 Kind Nothing: no matches for kind \"Nothing\" in version \"v1\""
    );
    // Without the plugin, nobody asks.
    let open = start(with_plugins(&[])).await;
    let admin = super::admin(&open);
    grant(&admin, "plain", json!([rule("", "configmaps", &writes)])).await;
    by(&open, User::new("plain", &[])).post(MAPS, owned("a", owner("Node", true))).await;
}

#[tokio::test]
async fn approving_and_signing_need_permission_on_the_signer() {
    const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    const PEM: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIYk1JR0JBZ0VBTUI4eERUQUxCZ05WQkFvTUJHUmxkbk14RGpBTUJnTlZCQU1NQldGc2FXTmxNRmt3RXdZSApLb1pJemowQ0FRWUlLb1pJemowREFRY0RRZ0FFRU4vbGpLbjZXUjEvUXBRVlZTM3FPYXpZN2hQbjlkRC95Wk0rCkMvUDdndHFjaFNkZDB0cXdqeDAwUlJQKzk3cGtTaFlxZEx2N25HU2s3MHptR2c4N0lxQUFNQW9HQ0NxR1NNNDkKQkFNQ0Ewa0FNRVlDSVFDY2E0Z0ltWGcyMytmRHR3c2IxZDVWWUJPSXZrcFlWSW1nMmNubXFhYUZLZ0loQUplcAo0ZVlWYzR5TUNlOWg4d1dSVFcvQk9HSm1JZHZSa09hSkdNUVIxMDg5Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";
    let server = start(with_plugins(&[])).await;
    let admin = admin(&server);
    let parts = ["certificatesigningrequests/approval", "certificatesigningrequests/status"];
    let resources = json!({"apiGroups": ["certificates.k8s.io"], "resources": parts, "verbs": ["patch"]});
    let signers = |name: &str, verb: &str| {
        json!({"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "resourceNames": [name],
            "verbs": [verb]})
    };
    grant(&admin, "approver", json!([resources, signers("example.com/*", "approve")])).await;
    grant(&admin, "signer", json!([resources, signers("example.com/s", "sign")])).await;
    let request = json!({"metadata": {"name": "r"},
        "spec": {"request": PEM, "signerName": "example.com/s", "usages": ["client auth"]}});
    admin.post(REQUESTS, request).await;
    let (approver, signer) = (by(&server, User::new("approver", &[])), by(&server, User::new("signer", &[])));
    let (approval, status) = (format!("{REQUESTS}/r/approval"), format!("{REQUESTS}/r/status"));
    let approve = json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "r", "message": "m"}]}});
    let fail = json!({"status": {"conditions": [
        {"type": "Approved", "status": "True", "reason": "r", "message": "m"},
        {"type": "Failed", "status": "True", "reason": "r", "message": "m"}]}});
    let (code, answer) = signer.call("PATCH", &approval, approve.clone()).await;
    assert_eq!(
        (code, message(&answer)),
        (
            403,
            "certificatesigningrequests.certificates.k8s.io \"r\" is forbidden: user not permitted to approve requests with signerName \"example.com/s\""
        )
    );
    assert_eq!(approver.call("PATCH", &approval, approve.clone()).await.0, 200);
    // Approving what is approved needs the permission, too, in whatever way.
    assert_eq!(signer.call("PATCH", &approval, approve.clone()).await.0, 403);
    assert_eq!(approver.call("PATCH", &approval, approve.clone()).await.0, 200);
    let mut config = approve;
    config["apiVersion"] = "certificates.k8s.io/v1".into();
    config["kind"] = "CertificateSigningRequest".into();
    config["metadata"] = json!({"name": "r"});
    let apply = async |client: &Client| {
        let headers = [("content-type", "application/apply-patch+yaml")];
        let path = format!("{approval}?fieldManager=m&force=true");
        client.send("PATCH", &path, &headers, config.to_string()).await.status
    };
    assert_eq!(apply(&signer).await, 403);
    for _ in 0..2 {
        assert_eq!(apply(&approver).await, 200);
        assert_eq!(apply(&signer).await, 403, "it would change nothing");
    }
    let (code, answer) = approver.call("PATCH", &status, fail.clone()).await;
    assert_eq!(
        (code, message(&answer)),
        (
            403,
            "certificatesigningrequests.certificates.k8s.io \"r\" is forbidden: user not permitted to sign requests with signerName \"example.com/s\""
        )
    );
    assert_eq!(signer.call("PATCH", &status, fail).await.0, 200);
}
