//! Rules in CEL: the definition of a kube-rs operator with `#[x_kube(validation = …)]`, unmodified, and the operator.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;
#[path = "common/listening.rs"]
mod listening;

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use k1s_env::Env;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, CustomResource, CustomResourceExt as _, KubeSchema, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
    runtime::{Controller, controller::Action, watcher},
};
use parking_lot::Mutex;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
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
    refusal(&result.unwrap_err())
}

fn refusal(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => {
            assert_eq!((status.code, &*status.reason), (422, "Invalid"));
            status.message.clone()
        }
        other => panic!("not a response of the server: {other}"),
    }
}

fn invalid(name: &str, what: &str) -> String {
    format!("Cache.test.k1s.dev \"{name}\" is invalid: {what}")
}

/// Installs the derived definition, and waits until it is established.
async fn install(client: Client) -> Api<Cache> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.create(&PostParams::default(), &Cache::crd()).await.unwrap();
    let established = kube::runtime::conditions::is_crd_established();
    kube::runtime::wait::await_condition(crds, "caches.test.k1s.dev", established).await.unwrap();
    Api::default_namespaced(client)
}

#[tokio::test]
async fn the_rules_of_a_derived_kind_are_evaluated() {
    let api = install(Client::new(common::server().await, "default")).await;
    let post = PostParams::default();
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

/// The annotation that tells the operator which `max` to set.
const WANTED: &str = "test.k1s.dev/max";

/// What the operator works with: its client, and what the server has refused.
struct Operator {
    caches: Api<Cache>,
    refused: Mutex<Vec<String>>,
}

/// Sets `max` to what is wanted, and then the room between both as the status.
async fn reconcile(cache: Arc<Cache>, operator: Arc<Operator>) -> Result<Action, kube::Error> {
    let (name, params) = (cache.name_any(), PatchParams::default());
    let wanted = cache.annotations().get(WANTED).map_or(cache.spec.max, |text| text.parse().unwrap());
    if wanted != cache.spec.max {
        let patch = Patch::Merge(json!({"spec": {"max": wanted}}));
        operator.caches.patch(&name, &params, &patch).await?;
        return Ok(Action::await_change());
    }
    let ready = cache.spec.max - cache.spec.min;
    if cache.status.as_ref().is_none_or(|status| status.ready != ready) {
        let patch = Patch::Merge(json!({"status": {"ready": ready}}));
        operator.caches.patch_status(&name, &params, &patch).await?;
    }
    Ok(Action::await_change())
}

/// What clients see of a cache: `max`, and `ready` if there is a status.
async fn shows(caches: &Api<Cache>, max: i64, ready: i64) {
    common::eventually(&format!("max is {max} and {ready} are ready"), || async {
        let cache = caches.get("c").await.unwrap();
        cache.spec.max == max && cache.status.is_some_and(|status| status.ready == ready)
    })
    .await;
}

#[tokio::test]
async fn an_operator_over_https_meets_refusals_of_spec_and_status_and_recovers() {
    let files = k1s_server::certificate(&["127.0.0.1".to_owned()]).unwrap();
    let served = listening::served(Some(&files), |_| {}).await;
    let mut config = kube::Config::new(format!("https://{}", served.address).parse().unwrap());
    let roots = CertificateDer::pem_slice_iter(files.authority.as_bytes());
    config.root_cert = Some(roots.map(|one| one.unwrap().to_vec()).collect());
    config.auth_info.token = Some("admin".to_owned().into());
    let caches = install(Client::try_from(config).unwrap()).await;

    let operator = Arc::new(Operator { caches: caches.clone(), refused: Mutex::default() });
    let failed = |_: Arc<Cache>, error: &kube::Error, operator: Arc<Operator>| {
        operator.refused.lock().push(refusal(error));
        Action::requeue(Duration::from_millis(20))
    };
    let run = Controller::new(caches.clone(), watcher::Config::default())
        .run(reconcile, failed, operator.clone())
        .for_each(|_| std::future::ready(()));
    let _task = Env::system().spawn("operator", run);
    let refuses = async |what: &str| {
        let wanted = invalid("c", what);
        common::eventually(what, || {
            let found = operator.refused.lock().contains(&wanted);
            std::future::ready(found)
        })
        .await;
    };
    let (params, merge) = (PatchParams::default(), |patch| Patch::Merge(patch));
    let want = async |max: &str| {
        let patch = merge(json!({"metadata": {"annotations": {WANTED: max}}}));
        caches.patch("c", &params, &patch).await.unwrap();
    };

    caches.create(&PostParams::default(), &cache("c", 1, 2, None)).await.unwrap();
    shows(&caches, 2, 1).await;
    // Its spec is refused until somebody wants something else.
    want("1").await;
    refuses("spec.max: Invalid value: 1: a cache cannot shrink").await;
    shows(&caches, 2, 1).await;
    want("5").await;
    shows(&caches, 5, 4).await;
    // Its status is refused, and the old one stays, until the spec leaves less room.
    want("14").await;
    refuses("status: Invalid value: failed rule: self.ready <= 10").await;
    shows(&caches, 14, 4).await;
    caches.patch("c", &params, &merge(json!({"spec": {"min": 6}}))).await.unwrap();
    shows(&caches, 14, 8).await;
    // It met nothing else.
    let mut refused = operator.refused.lock().clone();
    refused.sort_unstable();
    refused.dedup();
    assert_eq!(refused.len(), 2, "{refused:?}");
}
