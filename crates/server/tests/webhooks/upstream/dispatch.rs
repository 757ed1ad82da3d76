//! The tables of `TestAdmit` and `TestValidate`: what webhooks answer, and what becomes of the update of a pod or of a custom
//! resource. The API accepts no webhook without full names, so those of the tables have a suffix.

use super::*;
use crate::https::{Remote, Way};

const NAMESPACE: &str = "webhook-test";
const SUFFIX: &str = ".example.com";

/// What the webhooks of the tables answer at a path.
fn respond(path: &str) -> (u16, String) {
    let response = match path {
        "/disallow" => json!({"allowed": false, "status": {"code": 403}}),
        "/disallowreason" => {
            json!({"allowed": false, "status": {"message": "you shall not pass", "code": 403}})
        }
        "/shouldnotbecalled" => {
            json!({"allowed": false, "status": {"message": "doesn't expect labels to match object selector", "code": 403}})
        }
        "/allow" => json!({"allowed": true, "auditAnnotations": {"key1": "value1"}}),
        "/removelabel" => {
            let mut answer = patch(&json!([{"op": "remove", "path": "/metadata/labels/remove"}]));
            answer["auditAnnotations"] = json!({"key1": "value1"});
            answer
        }
        "/addlabel" => patch(&json!([{"op": "add", "path": "/metadata/labels/added", "value": "test"}])),
        "/invalidpatch" => {
            json!({"allowed": true, "patchType": "JSONPatch", "patch": BASE64_STANDARD.encode("[{")})
        }
        "/invalidmutation" => {
            let patch = BASE64_STANDARD.encode(r#"[{"op": "add", "CORRUPTED_KEY":}]"#);
            json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
        }
        "/nilresponse" => Value::Null,
        "/invalidannotation" => json!({"allowed": true, "auditAnnotations": {"invalid*key": "value1"}}),
        "/noop" => json!({"allowed": true}),
        _ => return (500, "webhook internal server error".into()),
    };
    let review =
        json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "response": response});
    (200, review.to_string())
}

/// A server with an object to update, and the number of calls by path.
struct World {
    audited: Audited,
    broken: Remote,
    called: Arc<Mutex<Vec<String>>>,
}

/// The collection and the object of a case.
fn object(custom: bool) -> (String, Value) {
    if custom {
        let path = format!("/apis/custom.resource/v1/namespaces/{NAMESPACE}/testcrds");
        (
            path,
            json!({"apiVersion": "custom.resource/v1", "kind": "TestCRD", "metadata": {"name": "my-test-crd"}}),
        )
    } else {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "my-pod"},
            "spec": {"containers": [{"name": "c", "image": "i"}]}});
        (format!("/api/v1/namespaces/{NAMESPACE}/pods"), pod)
    }
}

impl World {
    async fn new(custom: bool) -> World {
        let audited = Audited::new().await;
        let broken = Remote::start(&["127.0.0.1"], Way::Close, |_| Value::Null).await;
        let called = Arc::new(Mutex::new(Vec::new()));
        let kept = called.clone();
        let service = tower::service_fn(move |request: Request<Bytes>| {
            let path = request.uri().path().to_owned();
            let (code, body) = respond(&path);
            kept.lock().push(path);
            async move { Ok::<_, Infallible>(Response::builder().status(code).body(Bytes::from(body)).unwrap()) }
        });
        for host in ["webhook-test.default.svc", "webhook.test"] {
            audited.stage.local.serve("default", host, service.clone());
        }
        let client = &audited.stage.client;
        let namespace = json!({"metadata": {"name": NAMESPACE, "labels": {"runlevel": "0"}}});
        client.post("/api/v1/namespaces", namespace).await;
        if custom {
            let schema = json!({"openAPIV3Schema": {"type": "object"}});
            let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "testcrds.custom.resource"},
                "spec": {"group": "custom.resource", "scope": "Namespaced",
                    "names": {"plural": "testcrds", "singular": "testcrd", "kind": "TestCRD"},
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
            client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
        }
        let (path, object) = object(custom);
        client.post(&path, object).await;
        World { audited, broken, called }
    }

    /// A webhook of a table as the API takes it.
    fn hook(&self, webhook: &Value) -> Value {
        let mut hook = json!({
            "admissionReviewVersions": ["v1beta1"], "sideEffects": "None",
            "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}],
        });
        merge(&mut hook, webhook);
        hook["name"] = full(webhook["name"].as_str().unwrap()).into();
        let path = hook.as_object_mut().unwrap().remove("path").unwrap();
        // Paths of services are lowercase.
        let path = path.as_str().unwrap().to_lowercase();
        let url = hook.as_object_mut().unwrap().remove("url").is_some();
        hook["clientConfig"] = match (&*path, url) {
            ("nonstatuserror", _) => {
                json!({"url": self.broken.url("127.0.0.1"), "caBundle": self.broken.bundle()})
            }
            ("", _) => json!({}),
            (_, true) => json!({"url": format!("https://webhook.test/{path}")}),
            _ => {
                json!({"service": {"namespace": "default", "name": "webhook-test", "path": format!("/{path}")}})
            }
        };
        hook
    }
}

/// A name of the tables as the API takes it.
fn full(name: &str) -> String {
    match name.ends_with(SUFFIX) {
        true => name.to_owned(),
        false => name.to_lowercase().replace(' ', "-") + SUFFIX,
    }
}

/// Plays a case with webhooks of this kind.
async fn play(case: &Value, kind: &str) {
    let what = format!("{kind}: {}", name(case));
    let custom = case["custom"] == true;
    let world = World::new(custom).await;
    let client = &world.audited.stage.client;
    let webhooks: Vec<Value> =
        case["webhooks"].as_array().unwrap().iter().map(|one| world.hook(one)).collect();
    let body = json!({"metadata": {"name": "test-webhooks"}, "webhooks": webhooks});
    if let Some(why) = case["refused"].as_str() {
        // As upstream's API, that of this server refuses what could only fail.
        let (code, answer) = client.call("POST", &configurations(kind), body).await;
        assert_eq!(code, 422, "{what}: {answer}");
        assert!(answer["message"].as_str().unwrap().contains(why), "{what}: {answer}");
        return;
    }
    client.post(&configurations(kind), body).await;
    let (path, object) = object(custom);
    let path = format!("{path}/{}", object["metadata"]["name"].as_str().unwrap());
    let mut object = client.get(&path).await;
    object["metadata"]["labels"] = case["labels"].clone();
    world.audited.events();
    let (code, answer) = match case["dryRun"] == true {
        true => client.call("PUT", &format!("{path}?dryRun=All"), object).await,
        false => client.call("PUT", &path, object).await,
    };
    let expected = &case["expect"];
    assert_eq!(u64::from(code), expected["code"].as_u64().unwrap(), "{what}: {answer}");
    if let Some(error) = expected["error"].as_str() {
        let message = answer["message"].as_str().unwrap();
        assert!(message.contains(error), "{what}: {message}");
    }
    if expected["labels"].is_object() {
        assert_eq!(answer["metadata"]["labels"], expected["labels"], "{what}");
    }
    let mut annotations = world.audited.events().pop().unwrap()["annotations"].take();
    annotations.as_object_mut().unwrap().retain(|key, _| !key.starts_with("authorization."));
    assert_eq!(annotations, expected["annotations"], "{what}");
    if let Some(metric) = expected["metric"].as_str() {
        let phase = if kind == "Mutating" { "admit" } else { "validating" };
        let metric = metric.replace("PHASE", phase);
        let (counter, labels) = metric.trim_end_matches("} 1").split_once('{').unwrap();
        let found = client.send("GET", "/metrics", &[], "").await.text();
        let is_it = |line: &str| {
            line.starts_with(counter)
                && line.ends_with("} 1")
                && labels.split(',').all(|label| line.contains(label))
        };
        assert!(found.lines().any(is_it), "{what}: {metric}");
    }
    if let Some(calls) = expected["calls"].as_array() {
        assert_eq!(json!(*world.called.lock()), json!(calls), "{what}");
    }
}

#[tokio::test]
async fn validating_webhooks() {
    let cases = cases(include_str!("validating_webhooks.json"));
    assert_eq!(cases.len(), 23);
    for case in &cases {
        play(case, "Validating").await;
    }
}

#[tokio::test]
async fn mutating_webhooks() {
    let cases = cases(include_str!("mutating_webhooks.json"));
    assert_eq!(cases.len(), 39);
    for case in &cases {
        play(case, "Mutating").await;
    }
}
