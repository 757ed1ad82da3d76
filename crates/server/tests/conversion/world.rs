//! A server with a custom resource of three versions, and its converter in this process.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{Request, Response};
use k1s_env::Env;
use k1s_server::{ApiServer, LocalServices, ServerOptions};
use k1s_store::{MemoryStore, Store};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::common::{self, Client};

pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/hosts.example.com";

/// What the converter does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Mode {
    Convert,
    /// Answers with a failure.
    Fail(&'static str),
    /// Changes the answer of a conversion.
    Change(fn(&mut Value)),
    /// Answers with these bytes.
    Answer(&'static str),
    Hang,
}

/// A converter that counts.
#[derive(Clone)]
pub(crate) struct Hook {
    pub(crate) calls: Arc<AtomicUsize>,
    pub(crate) objects: Arc<AtomicUsize>,
    pub(crate) mode: Arc<Mutex<Mode>>,
    /// The objects that it was sent.
    pub(crate) seen: Arc<Mutex<Vec<Value>>>,
}

impl Hook {
    fn new() -> Hook {
        Hook {
            calls: Arc::default(),
            objects: Arc::default(),
            mode: Arc::new(Mutex::new(Mode::Convert)),
            seen: Arc::default(),
        }
    }

    pub(crate) fn set(&self, mode: Mode) {
        *self.mode.lock() = mode;
    }

    /// The calls since the last look.
    pub(crate) fn calls(&self) -> usize {
        self.calls.swap(0, Ordering::SeqCst)
    }

    async fn answer(self, request: Request<Bytes>) -> Response<Bytes> {
        let review: Value = serde_json::from_slice(request.body()).unwrap();
        self.calls.fetch_add(1, Ordering::SeqCst);
        let objects = review["request"]["objects"].as_array().unwrap();
        self.objects.fetch_add(objects.len(), Ordering::SeqCst);
        self.seen.lock().extend_from_slice(objects);
        let mut answer = convert_review(&review);
        let mode = self.mode.lock().clone();
        match mode {
            Mode::Convert => {}
            Mode::Fail(message) => {
                answer["response"]["result"] = json!({"status": "Failure", "message": message});
            }
            Mode::Change(change) => change(&mut answer),
            Mode::Answer(text) => return Response::new(Bytes::from_static(text.as_bytes())),
            Mode::Hang => std::future::pending().await,
        }
        Response::new(answer.to_string().into())
    }
}

/// The answer of a converter that works.
pub(crate) fn convert_review(review: &Value) -> Value {
    let request = &review["request"];
    let desired = request["desiredAPIVersion"].as_str().unwrap();
    let objects = request["objects"].as_array().unwrap();
    let converted: Vec<Value> = objects.iter().map(|object| convert(object, desired)).collect();
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted}})
}

/// v1 has `spec.host` and `spec.port`, v1beta1 has `spec.hostPort`, v1alpha1 has `spec.address`, a list of both.
fn convert(object: &Value, desired: &str) -> Value {
    let mut object = object.clone();
    let from = object["apiVersion"].as_str().unwrap().to_owned();
    let spec = object.as_object_mut().unwrap().entry("spec").or_insert_with(|| json!({}));
    let (host, port) = match &*from {
        "example.com/v1" => (spec["host"].clone(), spec["port"].clone()),
        "example.com/v1beta1" => match spec["hostPort"].as_str().and_then(|text| text.split_once(':')) {
            Some((host, port)) => (host.into(), port.parse::<i64>().unwrap().into()),
            None => (spec["hostPort"].clone(), Value::Null),
        },
        _ => (
            spec["address"][0].clone(),
            spec["address"][1].as_str().and_then(|text| text.parse::<i64>().ok()).into(),
        ),
    };
    let replicas = spec.get("replicas").cloned();
    *spec = match desired {
        "example.com/v1" => json!({"host": host, "port": port}),
        "example.com/v1beta1" => match port.as_i64() {
            Some(port) => json!({"hostPort": format!("{}:{port}", host.as_str().unwrap_or_default())}),
            None => json!({"hostPort": host}),
        },
        _ => json!({"address": [host, port.to_string()]}),
    };
    spec.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    if let Some(replicas) = replicas {
        spec["replicas"] = replicas;
    }
    object["apiVersion"] = desired.into();
    object
}

fn version(name: &str, storage: bool, spec: &Value, column: &str, field: &str) -> Value {
    json!({"name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": spec},
            "status": {"type": "object", "properties": {"phase": {"type": "string"}, "replicas": {"type": "integer"}}}}}},
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
        "selectableFields": [{"jsonPath": field}],
        "additionalPrinterColumns": [{"name": column, "type": "string", "jsonPath": field}]})
}

/// The definition, with one storage version.
pub(crate) fn definition(storage: &str) -> Value {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let list = json!({"type": "array", "items": {"type": "string"}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "hosts.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "hosts", "kind": "Host"},
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {"namespace": "system", "name": "hook", "path": "/convert"}}}},
            "versions": [
                version("v1", storage == "v1",
                    &json!({"host": text, "port": number, "replicas": number}), "Host", ".spec.host"),
                version("v1beta1", storage == "v1beta1",
                    &json!({"hostPort": text, "replicas": number}), "HostPort", ".spec.hostPort"),
                version("v1alpha1", storage == "v1alpha1",
                    &json!({"address": list, "replicas": number, "name": text}), "Name", ".spec.name"),
            ],
        },
    })
}

/// A server with the definition, stored as v1.
pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) hook: Hook,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) local: LocalServices,
}

impl World {
    pub(crate) async fn new() -> World {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let world = World::over(&Env::system(), store).await;
        world.client.post(CRDS, definition("v1")).await;
        world
    }

    /// Another server over the same store.
    pub(crate) async fn over(env: &Env, store: Arc<dyn Store>) -> World {
        let hook = Hook::new();
        let local = LocalServices::default();
        let called = hook.clone();
        local.serve_all(
            "hook.system.svc",
            tower::service_fn(move |request: Request<Bytes>| {
                let called = called.clone();
                async move { Ok::<_, Infallible>(called.answer(request).await) }
            }),
        );
        let mut options = ServerOptions::default();
        options.services.local = local.clone();
        let server: ApiServer = common::server_with(env, store.clone(), options).await;
        World { client: Client { server, env: env.clone() }, hook, store, local }
    }

    /// Creates hosts in v1.
    pub(crate) async fn fill(&self, count: usize) {
        for number in 0..count {
            self.client.post(&path("v1"), host("v1", &format!("h{number:04}"))).await;
        }
        self.hook.calls();
    }
}

pub(crate) fn path(version: &str) -> String {
    format!("/apis/example.com/{version}/namespaces/default/hosts")
}

/// A host in a version.
pub(crate) fn host(version: &str, name: &str) -> Value {
    let spec = match version {
        "v1" => json!({"host": "a.b", "port": 80}),
        "v1beta1" => json!({"hostPort": "a.b:80"}),
        _ => json!({"address": ["a.b", "80"]}),
    };
    json!({"apiVersion": format!("example.com/{version}"), "kind": "Host", "metadata": {"name": name}, "spec": spec})
}
