//! Annotations from admission: webhooks, policies, pod security, deprecations.

use serde_json::{Value, json};

use crate::{CONFIGMAPS, Stage, configmap, policy};

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

fn level(level: &str) -> k1s_server::AuditPolicy {
    policy(&[&format!("{{level: {level}, omitStages: [RequestReceived]}}")])
}

impl Stage {
    /// Serves and registers a webhook for ConfigMaps, whose response is this.
    async fn webhook(&self, kind: &str, name: &str, response: Value, fails_open: bool) {
        let service = tower::service_fn(move |request: http::Request<bytes::Bytes>| {
            let review: Value = serde_json::from_slice(request.body()).unwrap();
            let mut response = response.clone();
            response["uid"] = review["request"]["uid"].clone();
            let answer =
                json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
            async move { Ok(http::Response::new(answer.to_string().into())) }
        });
        let host = format!("{name}.hooks.svc");
        self.local.serve_all(host.clone(), service);
        // A webhook cannot change what is deleted.
        let operations = if kind == "Mutating" { json!(["CREATE"]) } else { json!(["*"]) };
        let policy = if fails_open { "Ignore" } else { "Fail" };
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}WebhookConfiguration"),
            "metadata": {"name": format!("{name}-config")},
            "webhooks": [{"name": format!("{name}.example.com"), "failurePolicy": policy, "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "clientConfig": {"url": format!("https://{host}/")},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": operations, "resources": ["configmaps"]}]}],
        });
        self.client
            .post(&format!("{ADMISSION}/{}webhookconfigurations", kind.to_lowercase()), configuration)
            .await;
        self.events();
    }
}

fn patch() -> Value {
    // [{"op":"add","path":"/data/x","value":"y"}]
    json!({"allowed": true, "patchType": "JSONPatch",
        "patch": "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2RhdGEveCIsInZhbHVlIjoieSJ9XQ=="})
}

#[tokio::test]
async fn webhooks_annotate_events() {
    for (of_level, shows_patch) in [("Metadata", false), ("Request", true)] {
        let stage = Stage::new(level(of_level)).await;
        stage.webhook("Mutating", "m", patch(), false).await;
        let said = json!({"allowed": true, "auditAnnotations": {"seen": "yes"}});
        stage.webhook("Validating", "v", said, false).await;
        stage.client.post(CONFIGMAPS, configmap("a")).await;
        let (_, event) = stage.one();
        let annotations = &event["annotations"];
        let mutation = "mutation.webhook.admission.k8s.io/round_0_index_0";
        assert_eq!(
            annotations[mutation],
            r#"{"configuration":"m-config","webhook":"m.example.com","mutated":true}"#
        );
        let patch = "patch.webhook.admission.k8s.io/round_0_index_0";
        let expected = r#"{"configuration":"m-config","webhook":"m.example.com","patch":[{"op":"add","path":"/data/x","value":"y"}],"patchType":"JSONPatch"}"#;
        assert_eq!(annotations.get(patch), shows_patch.then_some(&json!(expected)), "{of_level}");
        assert_eq!(annotations["v.example.com/seen"], "yes");
        // Objects of a collection, too.
        stage.client.call("DELETE", CONFIGMAPS, Value::Null).await;
        let (_, event) = stage.one();
        assert_eq!(event["annotations"]["v.example.com/seen"], "yes");
        assert_eq!(event["verb"], "deletecollection");
    }
}

#[tokio::test]
async fn webhooks_that_fail_open_are_named() {
    let stage = Stage::new(level("Metadata")).await;
    stage.webhook("Mutating", "m", json!({"allowed": "what"}), true).await;
    stage.webhook("Validating", "v", json!({"allowed": "what"}), true).await;
    stage.client.post(CONFIGMAPS, configmap("a")).await;
    let annotations = &stage.one().1["annotations"];
    for (kind, name) in [("mutation", "m"), ("validating", "v")] {
        let key = format!("failed-open.{kind}.webhook.admission.k8s.io/round_0_index_0");
        assert_eq!(annotations[&key], format!("{name}.example.com"), "{annotations}");
    }
}

#[tokio::test]
async fn policies_annotate_events() {
    let stage = Stage::new(level("Metadata")).await;
    let spec = json!({
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]},
        "validations": [{"expression": "object.metadata.name != 'a'", "message": "not a"}],
        "auditAnnotations": [{"key": "name", "valueExpression": "'it is ' + object.metadata.name"}],
    });
    let (api_version, kind) = ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy");
    let object = |kind: &str, spec: Value| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "p.example.com"}, "spec": spec});
    stage.client.post(&format!("{ADMISSION}/validatingadmissionpolicies"), object(kind, spec)).await;
    let binding = json!({"policyName": "p.example.com", "validationActions": ["Audit"]});
    let path = format!("{ADMISSION}/validatingadmissionpolicybindings");
    stage.client.post(&path, object("ValidatingAdmissionPolicyBinding", binding)).await;
    stage.events();
    stage.client.post(CONFIGMAPS, configmap("a")).await;
    let annotations = stage.one().1["annotations"].clone();
    assert_eq!(annotations["p.example.com/name"], "it is a");
    let failure = annotations["validation.policy.admission.k8s.io/validation_failure"].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(failure).unwrap(),
        json!([{"message": "not a", "policy": "p.example.com", "binding": "p.example.com", "expressionIndex": 0, "validationActions": ["Audit"]}])
    );
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"hostNetwork": true, "containers": [{"name": "c", "image": "i"}]}})
}

#[tokio::test]
async fn pod_security_annotates_events() {
    let stage = Stage::new(level("Metadata")).await;
    let labels = json!({"pod-security.kubernetes.io/audit": "baseline", "pod-security.kubernetes.io/enforce": "privileged"});
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": labels}});
    stage.client.post("/api/v1/namespaces", namespace).await;
    stage.events();
    stage.client.post("/api/v1/namespaces/n/pods", pod("p")).await;
    let annotations = stage.one().1["annotations"].clone();
    assert_eq!(annotations["pod-security.kubernetes.io/enforce-policy"], "privileged:latest");
    assert_eq!(
        annotations["pod-security.kubernetes.io/audit-violations"],
        "would violate PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)"
    );
}

#[tokio::test]
async fn deprecated_versions_are_marked() {
    let stage = Stage::new(level("Metadata")).await;
    stage.client.get("/api/v1/namespaces/default/endpoints").await;
    assert_eq!(stage.one().1["annotations"]["k8s.io/deprecated"], "true");
    stage.client.get(&format!("{CONFIGMAPS}/kube-root-ca.crt")).await;
    assert_eq!(stage.one().1["annotations"].get("k8s.io/deprecated"), None);
}

#[tokio::test]
async fn issued_tokens_are_known_by_their_ids() {
    let stage = Stage::new(level("Metadata")).await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    stage.client.post("/api/v1/namespaces/default/serviceaccounts", account).await;
    stage.events();
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let path = "/api/v1/namespaces/default/serviceaccounts/robot/token";
    let issued = stage.client.post(path, request).await;
    let (_, event) = stage.one();
    let id = event["annotations"]["authentication.kubernetes.io/issued-credential-id"].as_str().unwrap();
    assert!(id.starts_with("JTI=") && id.len() == 40, "{id}");
    // The requests with it have the same id.
    let bearer = format!("Bearer {}", issued["status"]["token"].as_str().unwrap());
    stage.nobody.send("GET", "/api", &[("authorization", &bearer)], "").await;
    assert_eq!(stage.one().1["user"]["extra"]["authentication.kubernetes.io/credential-id"], json!([id]));
}
