//! Upstream's integration tests of conversion: `testWebhookConverter`, with its definition, converters and checks.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use k1s_env::Env;
use k1s_server::{LocalServices, ServerOptions};
use k1s_store::MemoryStore;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::common::{self, Client};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUP: &str = "stable.example.com";
const SERVED: [&str; 3] = ["v1beta1", "v1alpha1", "v1beta2"];

/// A converter: the response to a review.
type Converter = fn(&Value) -> Value;

struct World {
    client: Client,
    /// The versions that objects were converted to.
    desired: Arc<Mutex<Vec<String>>>,
}

/// The versions, of which one is stored: the schema of v1beta2 is another one, and each has a default of its own.
fn versions(storage: &str, served: &[&str]) -> Value {
    let version = |name: &str| {
        let suffix = if name == "v1beta2" { "v2" } else { "" };
        let number = json!({"type": "integer"});
        let mut defaults = json!({});
        for other in ["v1alpha1", "v1alpha2", "v1beta1", "v1beta2"] {
            defaults[other] = json!({"type": "boolean"});
        }
        defaults[name]["default"] = true.into();
        let mut properties = json!({"defaults": {"type": "object", "properties": defaults}});
        properties[format!("content{suffix}")] =
            json!({"type": "object", "properties": {"key": {"type": "string"}}});
        properties[format!("num{suffix}")] =
            json!({"type": "object", "properties": {"num1": number, "num2": number}});
        json!({"name": name, "served": served.contains(&name), "storage": name == storage,
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.num.num1", "statusReplicasPath": ".status.num.num2"}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}})
    };
    ["v1beta1", "v1alpha1", "v1beta2", "v1alpha2"].map(version).to_vec().into()
}

/// An object of a version, as clients see it.
fn content(version: &str) -> Value {
    let suffix = if version == "v1beta2" { "v2" } else { "" };
    let mut object = json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "MultiVersion"});
    object[format!("content{suffix}")] = json!({"key": "value"});
    object[format!("num{suffix}")] = json!({"num1": 1, "num2": 1_000_000});
    object
}

fn object(version: &str, name: &str) -> Value {
    let mut object = content(version);
    object["metadata"] = json!({"name": name});
    object
}

fn path(version: &str) -> String {
    format!("/apis/{GROUP}/{version}/namespaces/default/multiversion")
}

fn one(version: &str, name: &str) -> String {
    format!("{}/{name}", path(version))
}

#[track_caller]
fn verify(version: &str, found: &Value) {
    let mut found = found.clone();
    found.as_object_mut().unwrap().remove("metadata");
    assert_eq!(found, content(version));
}

/// Converts each object of a review.
fn each(review: &Value, convert: impl Fn(Value, &str) -> Value) -> Value {
    let desired = review["request"]["desiredAPIVersion"].as_str().unwrap();
    let objects = review["request"]["objects"].as_array().unwrap();
    let converted: Vec<Value> = objects.iter().map(|object| convert(object.clone(), desired)).collect();
    json!({"result": {"status": "Success"}, "convertedObjects": converted})
}

fn noop(review: &Value) -> Value {
    each(review, |mut object, desired| {
        object["apiVersion"] = desired.into();
        object
    })
}

fn renamed(mut object: Value, desired: &str) -> Value {
    let version = |text: &str| text.ends_with("v1beta2");
    let from = version(object["apiVersion"].as_str().unwrap());
    let fields = object.as_object_mut().unwrap();
    for field in ["num", "content"] {
        let v2 = format!("{field}v2");
        let moved = match (from, version(desired)) {
            (false, true) => fields.remove(field).map(|value| (v2, value)),
            (true, false) => fields.remove(&v2).map(|value| (field.to_owned(), value)),
            _ => None,
        };
        fields.extend(moved);
    }
    object["apiVersion"] = desired.into();
    object
}

fn nontrivial(review: &Value) -> Value {
    each(review, renamed)
}

fn metadata_mutating(review: &Value) -> Value {
    each(review, |object, desired| {
        let mut object = renamed(object, desired);
        let of = |text: &str| json!({"from": text, "to": text});
        let metadata = &mut object["metadata"];
        metadata["annotations"] = of(desired);
        metadata["labels"] = of(&desired.replace('/', "."));
        metadata["generation"] = 42.into();
        metadata["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "1234"}]);
        metadata["resourceVersion"] = "42".into();
        metadata["finalizers"] = json!(["foo"]);
        metadata["garbage"] = "foo".into();
        object
    })
}

fn uid_mutating(review: &Value) -> Value {
    each(review, |mut object, desired| {
        object["metadata"]["uid"] = "42".into();
        object["apiVersion"] = desired.into();
        object
    })
}

fn empty(_: &Value) -> Value {
    json!({"result": {"status": "Success"}, "convertedObjects": []})
}

fn failing(_: &Value) -> Value {
    json!({"result": {"status": "Failure", "message": "custom webhook conversion error"}, "convertedObjects": []})
}

/// No response: the server of the webhook rejects the request.
fn unhandled(_: &Value) -> Value {
    Value::Null
}

impl World {
    /// `review`: the version of reviews that the converter prefers.
    async fn new(converter: Converter, review: &str) -> World {
        let desired = Arc::<Mutex<Vec<String>>>::default();
        let local = LocalServices::default();
        let noted = desired.clone();
        let service = tower::service_fn(move |request: Request<Bytes>| {
            let mut review: Value = serde_json::from_slice(request.body()).unwrap();
            noted.lock().push(review["request"]["desiredAPIVersion"].as_str().unwrap().to_owned());
            let mut response = converter(&review);
            let answer = if response.is_null() {
                Response::builder().status(400).body(Bytes::new()).unwrap()
            } else {
                response["uid"] = review["request"]["uid"].clone();
                review["response"] = response;
                Response::new(review.to_string().into())
            };
            async move { Ok::<_, Infallible>(answer) }
        });
        local.serve_all("hook.system.svc", service);
        let mut options = ServerOptions::default();
        options.services.local = local;
        let server = common::server_with(&Env::system(), Arc::new(MemoryStore::default()), options).await;
        let world = World { client: common::client(&server), desired };
        let other = if review == "v1" { "v1beta1" } else { "v1" };
        let hook = json!({"service": {"namespace": "system", "name": "hook", "path": "/convert"}});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("multiversion.{GROUP}")},
            "spec": {"group": GROUP, "scope": "Namespaced",
                "names": {"plural": "multiversion", "singular": "multiversion", "kind": "MultiVersion", "listKind": "MultiVersionList"},
                "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": hook, "conversionReviewVersions": [review, other]}},
                "versions": versions("v1beta1", &SERVED)},
        });
        world.client.post(CRDS, definition).await;
        world
    }

    async fn change(&self, storage: &str, served: &[&str]) {
        self.replace(versions(storage, served)).await;
    }

    async fn replace(&self, versions: Value) {
        let patch = json!({"spec": {"versions": versions}});
        let (code, answer) = self.client.call("PATCH", &format!("{CRDS}/multiversion.{GROUP}"), patch).await;
        assert_eq!(code, 200, "{answer}");
    }

    async fn create(&self, version: &str, name: &str) -> Value {
        let mut object = object(version, name);
        object["foo"] = "garbage".into();
        self.client.post(&path(version), object).await
    }

    async fn get(&self, version: &str, name: &str) -> Value {
        self.client.get(&one(version, name)).await
    }
}

/// `validateStorageVersion`, `validateServed`: what is created in any version is read after the storage version has changed,
/// and where its version is served.
async fn versions_change(world: &World) {
    for version in SERVED {
        let name = format!("storageversion-{version}");
        world.create(version, &name).await;
        world.change("v1beta2", &SERVED).await;
        world.get(version, &name).await;
        world.change("v1beta1", &SERVED).await;
        let others: Vec<&str> = SERVED.into_iter().filter(|other| *other != version).collect();
        world.change("v1beta1", &others).await;
        assert_eq!(world.client.send("GET", &one(version, &name), &[], "").await.status, 404);
        world.change("v1beta1", &SERVED).await;
        world.get(version, &name).await;
    }
}

/// `validateMixedStorageVersions`: the same object is the same in every version, whatever it was stored as.
async fn mixed_storage(world: &World, stored: &[&str]) {
    for version in stored {
        world.change(version, &SERVED).await;
        world.client.post(&path(version), object(version, &format!("mixed-{version}"))).await;
    }
    for version in SERVED {
        let mut seen = Vec::new();
        for stored in stored {
            let mut found = world.get(version, &format!("mixed-{stored}")).await;
            found.as_object_mut().unwrap().remove("metadata");
            seen.push(found);
        }
        assert!(seen.windows(2).all(|two| two[0] == two[1]), "{version}: {seen:?}");
    }
    world.change("v1beta1", &SERVED).await;
}

/// `validateNonTrivialConverted`, `validateNonTrivialConvertedList`
async fn converted(world: &World) {
    for created in SERVED {
        let name = format!("converted-{created}");
        world.create(created, &name).await;
        let patches = [
            Value::Null,
            json!({"metadata": {"annotations": {"main": "true"}}}),
            json!({"metadata": {"annotations": {"status": "true"}}}),
        ];
        for (patch, subresource) in patches.into_iter().zip(["", "", "/status"]) {
            if !patch.is_null() {
                let path = one(created, &name) + subresource;
                assert_eq!(world.client.call("PATCH", &path, patch).await.0, 200);
            }
            // Read in the storage version, an object is as it was stored.
            for version in SERVED {
                verify(version, &world.get(version, &name).await);
            }
        }
    }
    for version in SERVED {
        let list = world.client.get(&path(version)).await;
        let items: Vec<&Value> = list["items"].as_array().unwrap().iter().collect();
        let found: Vec<&&Value> = items
            .iter()
            .filter(|item| item["metadata"]["name"].as_str().unwrap().starts_with("converted-"))
            .collect();
        assert_eq!(found.len(), 3);
        found.iter().for_each(|item| verify(version, item));
    }
}

/// `validateDefaulting`: an object gets the defaults of the version of the request, which are stored, and when it is read those
/// of the storage version.
async fn defaulted(world: &World) {
    for created in SERVED {
        let name = format!("defaulting-{created}");
        let mut body = object(created, &name);
        body["defaults"] = json!({});
        let answer = world.client.post(&path(created), body).await;
        let mut expected = json!({"v1beta1": true});
        expected[created] = true.into();
        assert_eq!(answer["defaults"], expected, "{created}");
        for version in SERVED.into_iter().filter(|version| *version != created) {
            let found = &world.get(version, &name).await["defaults"];
            assert_eq!(found["v1beta1"], true, "{created} as {version}: {found}");
            assert!(version == "v1beta1" || found.get(version).is_none(), "{created} as {version}: {found}");
        }
    }
}

/// `validateObjectMetaMutation`
async fn metadata_of_converters(world: &World) {
    let check = |object: &Value, converted: bool| {
        let metadata = &object["metadata"];
        for map in ["annotations", "labels"] {
            for field in ["from", "to"] {
                assert_eq!(metadata[map][field].is_string(), converted, "{metadata}");
            }
        }
        assert!(metadata["finalizers"].is_null() && metadata["garbage"].is_null(), "{metadata}");
        assert!(metadata["generation"] != 42 && metadata["ownerReferences"].is_null(), "{metadata}");
    };
    check(&world.client.post(&path("v1beta1"), object("v1beta1", "mutation-v1beta1")).await, false);
    check(&world.get("v1beta2", "mutation-v1beta1").await, true);
    check(&world.client.post(&path("v1beta2"), object("v1beta2", "mutation-v1beta2")).await, true);
    let list = world.client.get(&path("v1beta2")).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    list["items"].as_array().unwrap().iter().for_each(|item| check(item, true));
}

/// `validateUIDMutation`
async fn uids_of_converters(world: &World) {
    let (code, answer) = world.client.call("POST", &path("v1beta2"), object("v1beta2", "uid-mutation")).await;
    assert_eq!(code, 500);
    assert!(answer["message"].as_str().unwrap().contains("must have the same UID"), "{answer}");
}

/// `expectConversionFailureMessage`. Unlike upstream, what cannot be converted can be deleted.
async fn fails(world: &World, message: &str) {
    let created = world.client.post(&path("v1beta1"), object("v1beta1", "failing")).await;
    let mut changed = object("v1beta2", "failing");
    changed["metadata"] = created["metadata"].clone();
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "failing"}, "spec": {"replicas": 42}});
    let annotate = json!({"metadata": {"annotations": {"patch": "true"}}});
    let it = one("v1beta2", "failing");
    let (status, scales) = (format!("{it}/status"), format!("{it}/scale"));
    for (method, place, body) in [
        ("GET", &it, Value::Null),
        ("GET", &path("v1beta2"), Value::Null),
        ("POST", &path("v1beta2"), object("v1beta2", "other")),
        ("PUT", &it, changed.clone()),
        ("PATCH", &it, annotate.clone()),
        ("GET", &status, Value::Null),
        ("PUT", &status, changed),
        ("PATCH", &status, annotate.clone()),
        ("GET", &scales, Value::Null),
        ("PUT", &scales, scale),
        ("PATCH", &scales, annotate),
    ] {
        let (code, answer) = world.client.call(method, place, body).await;
        let found = answer["message"].as_str().unwrap_or_default();
        assert!(code >= 400 && found.contains(message), "{method} {place}: {code} {answer}");
    }
    assert_eq!(world.client.call("DELETE", &it, Value::Null).await.0, 200);
    world.client.post(&path("v1beta1"), object("v1beta1", "failing")).await;
    assert_eq!(world.client.call("DELETE", &path("v1beta2"), Value::Null).await.0, 200);
}

#[tokio::test]
async fn converters_that_work() {
    for review in ["v1", "v1beta1"] {
        let world = World::new(noop, review).await;
        versions_change(&world).await;
        mixed_storage(&world, &["v1alpha1", "v1beta1"]).await;
        let world = World::new(nontrivial, review).await;
        versions_change(&world).await;
        mixed_storage(&world, &["v1alpha1", "v1beta1", "v1beta2"]).await;
        converted(&world).await;
        defaulted(&world).await;
    }
}

#[tokio::test]
async fn converters_that_change_metadata() {
    for review in ["v1", "v1beta1"] {
        metadata_of_converters(&World::new(metadata_mutating, review).await).await;
        uids_of_converters(&World::new(uid_mutating, review).await).await;
    }
}

#[tokio::test]
async fn converters_that_fail() {
    for review in ["v1", "v1beta1"] {
        fails(&World::new(empty, review).await, "returned 0 objects, expected 1").await;
        fails(&World::new(failing, review).await, "custom webhook conversion error").await;
        fails(&World::new(unhandled, review).await, "the server rejected our request").await;
    }
}

/// `validateStoragePruning`: what was stored before a field was dropped is pruned when it is read.
#[tokio::test]
async fn what_is_stored_is_pruned_when_it_is_read() {
    for review in ["v1", "v1beta1"] {
        let world = World::new(nontrivial, review).await;
        let mut declaring = versions("v1beta1", &SERVED);
        for version in declaring.as_array_mut().unwrap() {
            version["schema"]["openAPIV3Schema"]["properties"]["foo"] = json!({"type": "string"});
        }
        world.replace(declaring).await;
        for created in SERVED {
            let name = format!("storagepruning-{created}");
            assert_eq!(world.create(created, &name).await["foo"], "garbage");
        }
        world.change("v1beta1", &SERVED).await;
        for created in SERVED {
            for version in SERVED {
                verify(version, &world.get(version, &format!("storagepruning-{created}")).await);
            }
        }
    }
}

/// `TestWebhookNotCalledForUnusedVersions`
#[tokio::test]
async fn versions_that_are_neither_stored_nor_served_are_never_asked_for() {
    let world = World::new(nontrivial, "v1").await;
    world.change("v1alpha2", &["v1beta1", "v1alpha1", "v1beta2", "v1alpha2"]).await;
    world.client.post(&path("v1alpha2"), object("v1alpha2", "marker")).await;
    world.change("v1beta1", &SERVED).await;
    let mut marker = world.get("v1alpha1", "marker").await;
    marker["metadata"]["managedFields"] = json!([{}]);
    assert_eq!(world.client.call("PUT", &one("v1alpha1", "marker"), marker).await.0, 200);
    world.desired.lock().clear();
    for version in SERVED {
        world.get(version, "marker").await;
    }
    for version in SERVED {
        let headers = [("content-type", "application/apply-patch+yaml")];
        let body = object(version, "marker").to_string();
        let apply = one(version, "marker") + "?fieldManager=applier&force=true";
        let answer = world.client.send("PATCH", &apply, &headers, body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let desired = world.desired.lock().clone();
    assert!(!desired.is_empty());
    assert!(desired.iter().all(|version| !version.ends_with("v1alpha2")), "{desired:?}");
}
