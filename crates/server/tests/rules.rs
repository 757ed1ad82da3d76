//! Rules in CEL: the definition of a kube-rs operator with `#[x_kube(validation = …)]`, unmodified.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, CustomResource, CustomResourceExt as _, KubeSchema,
    api::{Patch, PatchParams, PostParams},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A cache with a size that may only grow.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "test.k1s.dev",
    version = "v1",
    kind = "Cache",
    plural = "caches",
    namespaced,
    status = "CacheStatus",
    validation = "self.metadata.name.startsWith('c')"
)]
#[x_kube(validation = Rule::new("self.max >= self.min").message("max must not be below min"))]
struct CacheSpec {
    min: i64,
    #[x_kube(validation = Rule::new("self >= oldSelf").message("a cache cannot shrink"))]
    max: i64,
    #[x_kube(validation = ("self != ''", "the zone must have a name"))]
    zone: Option<String>,
}

/// What the operator has seen.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[x_kube(validation = "self.ready <= 10")]
struct CacheStatus {
    ready: i64,
}

fn cache(name: &str, min: i64, max: i64, zone: Option<&str>) -> Cache {
    Cache::new(name, CacheSpec { min, max, zone: zone.map(str::to_owned) })
}

fn message<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> String {
    match result.unwrap_err() {
        kube::Error::Api(status) => {
            assert_eq!((status.code, &*status.reason), (422, "Invalid"));
            status.message.clone()
        }
        other => panic!("not a response of the server: {other}"),
    }
}

#[tokio::test]
async fn the_rules_of_a_derived_kind_are_evaluated() {
    let client = Client::new(common::server().await, "default");
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let post = PostParams::default();
    crds.create(&post, &Cache::crd()).await.unwrap();
    let established = kube::runtime::conditions::is_crd_established();
    kube::runtime::wait::await_condition(crds, "caches.test.k1s.dev", established).await.unwrap();
    let api: Api<Cache> = Api::default_namespaced(client);

    let invalid = |name: &str, what: &str| format!("Cache.test.k1s.dev \"{name}\" is invalid: {what}");
    assert_eq!(
        message(api.create(&post, &cache("a", 1, 2, None)).await),
        invalid("a", "<nil>: Invalid value: failed rule: self.metadata.name.startsWith('c')")
    );
    assert_eq!(
        message(api.create(&post, &cache("c", 3, 2, Some(""))).await),
        invalid(
            "c",
            "[spec: Invalid value: max must not be below min, spec.zone: Invalid value: \"\": the zone must have a name]"
        )
    );
    api.create(&post, &cache("c", 1, 2, None)).await.unwrap();

    let (params, merge) = (PatchParams::default(), |patch| Patch::Merge(patch));
    let shrunk = api.patch("c", &params, &merge(json!({"spec": {"max": 1}}))).await;
    assert_eq!(message(shrunk), invalid("c", "spec.max: Invalid value: 1: a cache cannot shrink"));
    let grown = api.patch("c", &params, &merge(json!({"spec": {"max": 5}}))).await.unwrap();
    assert_eq!(grown.spec.max, 5);
    let failed = api.patch_status("c", &params, &merge(json!({"status": {"ready": 11}}))).await;
    assert_eq!(message(failed), invalid("c", "status: Invalid value: failed rule: self.ready <= 10"));
    let applied = json!({"apiVersion": "test.k1s.dev/v1", "kind": "Cache", "spec": {"min": 6}});
    let applied = api.patch("c", &PatchParams::apply("test").force(), &Patch::Apply(applied)).await;
    assert_eq!(message(applied), invalid("c", "spec: Invalid value: max must not be below min"));
}
