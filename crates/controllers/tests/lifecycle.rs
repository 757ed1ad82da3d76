//! Namespaces, definitions, default objects and expiry over the API, on a k1s server and on other servers.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::{sync::Arc, time::Duration};

use common::{Api, DEFINITIONS, SECRETS, VIEWS, View, all, definition, held, remove_finalizers};
use http::Method;
use k1s_controllers::ControllersOptions;
use k1s_env::{Env, VirtualClock};
use k1s_store::MemoryStore;
use serde_json::{Value, json};

const NAMESPACES: &str = "/api/v1/namespaces";

fn condition<'a>(object: &'a Value, name: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|one| one["type"] == name).unwrap_or(&Value::Null)
}

#[tokio::test]
async fn a_namespace_is_deleted_with_everything_in_it() {
    for view in VIEWS {
        let api = Api::new(view).await;
        api.create_with(DEFINITIONS, definition("Namespaced")).await;
        api.create(NAMESPACES, "n", &[]).await;
        for place in 0..20 {
            api.create("/api/v1/namespaces/n/configmaps", &format!("c{place}"), &[]).await;
        }
        let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
        api.create_with("/apis/example.com/v1/namespaces/n/widgets", widget).await;
        api.delete(&format!("{NAMESPACES}/n"), "Background").await;
        api.gone(NAMESPACES, "n").await;
        for path in ["/api/v1/configmaps", "/api/v1/serviceaccounts", "/apis/example.com/v1/widgets"] {
            let list = api.get(path).await;
            let items = list["items"].as_array().unwrap();
            assert!(items.iter().all(|item| item["metadata"]["namespace"] != "n"), "{view:?} {list}");
        }
        assert_eq!(api.get(&format!("{NAMESPACES}/default")).await["status"]["phase"], "Active");
    }
}

#[tokio::test]
async fn a_namespace_reports_what_it_waits_for_and_is_deleted_when_that_is_gone() {
    for view in VIEWS {
        let api = Api::new(view).await;
        api.create(NAMESPACES, "n", &[]).await;
        let secrets = "/api/v1/namespaces/n/secrets";
        api.create_with(secrets, held("s", &[])).await;
        api.delete(&format!("{NAMESPACES}/n"), "Background").await;
        api.becomes(NAMESPACES, "n", |item| {
            condition(item, "NamespaceFinalizersRemaining")["status"] == "True"
        })
        .await;
        let namespace = api.get(&format!("{NAMESPACES}/n")).await;
        assert_eq!(namespace["status"]["phase"], "Terminating");
        assert_eq!(
            condition(&namespace, "NamespaceContentRemaining")["message"],
            "Some resources are remaining: secrets. has 1 resource instances"
        );
        assert_eq!(
            condition(&namespace, "NamespaceFinalizersRemaining")["message"],
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
        );
        assert_eq!(condition(&namespace, "NamespaceDeletionContentFailure")["status"], "False");
        let (code, refused) = api.send(Method::POST, secrets, json!({"metadata": {"name": "t"}})).await;
        assert_eq!(code, 403, "{refused}");
        remove_finalizers(&api, &format!("{secrets}/s")).await;
        api.gone(NAMESPACES, "n").await;
    }
}

#[tokio::test]
async fn a_namespace_waits_for_other_finalizers() {
    let api = Api::new(View::K1s).await;
    let namespace =
        json!({"metadata": {"name": "n"}, "spec": {"finalizers": ["kubernetes", "example.com/mine"]}});
    api.create_with(NAMESPACES, namespace).await;
    api.delete(&format!("{NAMESPACES}/n"), "Background").await;
    api.becomes(NAMESPACES, "n", |item| item["spec"]["finalizers"] == json!(["example.com/mine"])).await;
    let mut namespace = api.get(&format!("{NAMESPACES}/n")).await;
    namespace["spec"]["finalizers"] = json!([]);
    let (code, answer) = api.send(Method::PUT, &format!("{NAMESPACES}/n/finalize"), namespace).await;
    assert_eq!(code, 200, "{answer}");
    api.gone(NAMESPACES, "n").await;
}

#[tokio::test]
async fn deletions_begun_before_the_controllers_started_are_finished() {
    for view in VIEWS {
        let api = Api::bare(Env::system(), Arc::new(MemoryStore::default())).await;
        api.create(NAMESPACES, "n", &[]).await;
        api.create("/api/v1/namespaces/n/configmaps", "c", &[]).await;
        api.create_with(DEFINITIONS, definition("Cluster")).await;
        let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
        api.create_with("/apis/example.com/v1/widgets", widget).await;
        api.delete(&format!("{NAMESPACES}/n"), "Background").await;
        api.delete(&format!("{DEFINITIONS}/widgets.example.com"), "Background").await;
        assert_eq!(api.get(&format!("{NAMESPACES}/n")).await["status"]["phase"], "Terminating");
        drop(api.run(view, all()));
        api.gone(NAMESPACES, "n").await;
        api.gone(DEFINITIONS, "widgets.example.com").await;
        // Recreated, it has none of the old objects.
        api.create_with(DEFINITIONS, definition("Cluster")).await;
        assert_eq!(api.get("/apis/example.com/v1/widgets").await["items"], json!([]), "{view:?}");
    }
}

fn pod(name: &str, spec: &Value) -> Value {
    let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    for (field, value) in spec.as_object().unwrap() {
        pod["spec"][field] = value.clone();
    }
    pod
}

#[tokio::test]
async fn the_pods_of_a_namespace_are_deleted_before_everything_else() {
    for view in VIEWS {
        let api = Api::new(view).await;
        api.create(NAMESPACES, "n", &[]).await;
        let (pods, maps) = ("/api/v1/namespaces/n/pods", "/api/v1/namespaces/n/configmaps");
        let mut held = pod("p", &json!({}));
        held["metadata"]["finalizers"] = json!(["example.com/hold"]);
        api.create_with(pods, held).await;
        api.create_with(pods, pod("free", &json!({}))).await;
        api.create(maps, "c", &[]).await;
        api.delete(&format!("{NAMESPACES}/n"), "Background").await;
        api.becomes(NAMESPACES, "n", |item| {
            condition(item, "NamespaceContentRemaining")["message"]
                == "Some resources are remaining: pods. has 1 resource instances"
        })
        .await;
        let namespace = api.get(&format!("{NAMESPACES}/n")).await;
        assert_eq!(condition(&namespace, "NamespaceFinalizersRemaining")["reason"], "SomeFinalizersRemain");
        assert_eq!(condition(&namespace, "NamespaceDeletionContentFailure")["status"], "False");
        api.gone(pods, "free").await;
        let map = api.get(&format!("{maps}/c")).await;
        assert!(
            map["metadata"]["uid"].is_string() && map["metadata"]["deletionTimestamp"].is_null(),
            "{map}"
        );
        remove_finalizers(&api, &format!("{pods}/p")).await;
        api.gone(NAMESPACES, "n").await;
    }
}

#[tokio::test]
async fn a_terminating_pod_without_a_kubelet_does_not_keep_its_namespace() {
    let api = Api::new(View::K1s).await;
    api.create(NAMESPACES, "n", &[]).await;
    let pods = "/api/v1/namespaces/n/pods";
    api.create_with(pods, pod("p", &json!({"nodeName": "somewhere"}))).await;
    api.delete(&format!("{pods}/p"), "Background").await;
    assert!(api.get(&format!("{pods}/p")).await["metadata"]["deletionTimestamp"].is_string());
    api.delete(&format!("{NAMESPACES}/n"), "Background").await;
    api.gone(NAMESPACES, "n").await;
}

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const VOLUMES: &str = "/api/v1/persistentvolumes";
const CLASSES: &str = "/apis/storage.k8s.io/v1/volumeattributesclasses";

fn claim(name: &str, class: &str) -> Value {
    let resources = json!({"requests": {"storage": "1Gi"}});
    let mut claim = json!({"metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}});
    if !class.is_empty() {
        claim["spec"]["volumeAttributesClassName"] = class.into();
    }
    claim
}

#[tokio::test]
async fn a_claim_is_deleted_when_no_pod_uses_it() {
    for view in VIEWS {
        let api = Api::new(view).await;
        let pods = "/api/v1/namespaces/default/pods";
        for name in ["used", "free"] {
            api.create_with(CLAIMS, claim(name, "")).await;
        }
        let of = |claim: &str| json!([{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]);
        api.create_with(pods, pod("user", &json!({"nodeName": "n", "volumes": of("used")}))).await;
        api.create_with(pods, pod("nowhere", &json!({"volumes": of("free")}))).await;
        for name in ["used", "free"] {
            api.delete(&format!("{CLAIMS}/{name}"), "Background").await;
        }
        api.gone(CLAIMS, "free").await;
        let used = api.get(&format!("{CLAIMS}/used")).await;
        assert_eq!(used["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]), "{view:?}");
        let (code, answer) =
            api.send(Method::DELETE, &format!("{pods}/user?gracePeriodSeconds=0"), Value::Null).await;
        assert_eq!(code, 200, "{answer}");
        api.gone(CLAIMS, "used").await;
    }
}

#[tokio::test]
async fn a_namespace_with_a_claim_is_deleted() {
    for view in VIEWS {
        let api = Api::new(view).await;
        api.create(NAMESPACES, "n", &[]).await;
        api.create_with("/api/v1/namespaces/n/persistentvolumeclaims", claim("c", "")).await;
        api.delete(&format!("{NAMESPACES}/n"), "Background").await;
        api.gone(NAMESPACES, "n").await;
    }
}

#[tokio::test]
async fn a_volume_is_deleted_when_unbound_and_a_class_when_unused() {
    for view in VIEWS {
        let api = Api::new(view).await;
        for name in ["bound", "free"] {
            let spec = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/x"}, "persistentVolumeReclaimPolicy": "Retain"});
            api.create_with(VOLUMES, json!({"metadata": {"name": name}, "spec": spec})).await;
        }
        let set_phase = |phase: &str| json!({"status": {"phase": phase}});
        api.patch(&format!("{VOLUMES}/bound/status"), set_phase("Bound")).await;
        for name in ["gold", "silver"] {
            api.create_with(
                CLASSES,
                json!({"metadata": {"name": name}, "driverName": "d.example.com",
                "parameters": {"a": "b"}}),
            )
            .await;
        }
        api.create_with(CLAIMS, claim("c", "gold")).await;
        for path in [VOLUMES, CLASSES] {
            let names = if path == VOLUMES { ["bound", "free"] } else { ["gold", "silver"] };
            for name in names {
                api.delete(&format!("{path}/{name}"), "Background").await;
            }
        }
        api.gone(VOLUMES, "free").await;
        api.gone(CLASSES, "silver").await;
        let kept = |object: &Value| object["metadata"]["finalizers"].is_array();
        assert!(kept(&api.get(&format!("{VOLUMES}/bound")).await), "{view:?}");
        assert!(kept(&api.get(&format!("{CLASSES}/gold")).await), "{view:?}");
        api.patch(&format!("{VOLUMES}/bound/status"), set_phase("Released")).await;
        api.delete(&format!("{CLAIMS}/c"), "Background").await;
        api.gone(VOLUMES, "bound").await;
        api.gone(CLASSES, "gold").await;
    }
}

#[tokio::test]
async fn a_definition_waits_until_its_last_object_is_gone() {
    for view in VIEWS {
        let api = Api::new(view).await;
        let widgets = "/apis/example.com/v1/namespaces/default/widgets";
        api.create_with(DEFINITIONS, definition("Namespaced")).await;
        let mut widget = held("w", &[]);
        widget["apiVersion"] = "example.com/v1".into();
        widget["kind"] = "Widget".into();
        api.create_with(widgets, widget).await;
        api.delete(&format!("{DEFINITIONS}/widgets.example.com"), "Background").await;
        api.becomes(DEFINITIONS, "widgets.example.com", |item| {
            condition(item, "Terminating")["reason"] == "InstanceDeletionInProgress"
        })
        .await;
        api.becomes(widgets, "w", |item| item["metadata"]["deletionTimestamp"].is_string()).await;
        remove_finalizers(&api, &format!("{widgets}/w")).await;
        api.gone(DEFINITIONS, "widgets.example.com").await;
    }
}

#[tokio::test]
async fn default_objects_are_recreated_and_corrected() {
    for view in VIEWS {
        let api = Api::new(view).await;
        api.create(NAMESPACES, "n", &[]).await;
        let (accounts, maps) = ("/api/v1/namespaces/n/serviceaccounts", "/api/v1/namespaces/n/configmaps");
        let account = api.get(&format!("{accounts}/default")).await["metadata"]["uid"].clone();
        assert!(account.is_string(), "it exists as soon as the namespace does");
        api.delete(&format!("{accounts}/default"), "Background").await;
        api.becomes(accounts, "default", |item| item["metadata"]["uid"] != account).await;
        api.patch(&format!("{maps}/kube-root-ca.crt"), json!({"data": {"ca.crt": "another", "more": "x"}}))
            .await;
        api.becomes(maps, "kube-root-ca.crt", |item| item["data"] == json!({"ca.crt": "the authority"}))
            .await;
        let map = api.get(&format!("{maps}/kube-root-ca.crt")).await["metadata"]["uid"].clone();
        api.delete(&format!("{maps}/kube-root-ca.crt"), "Background").await;
        api.becomes(maps, "kube-root-ca.crt", |item| {
            item["metadata"]["uid"] != map && item["data"] == json!({"ca.crt": "the authority"})
        })
        .await;
        let note = &api.get(&format!("{maps}/kube-root-ca.crt")).await["metadata"]["annotations"];
        assert!(note["kubernetes.io/description"].as_str().unwrap().starts_with("Contains a CA bundle"));
    }
}

const EVENTS: &str = "/api/v1/namespaces/default/events";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const MINUTE: Duration = Duration::from_secs(60);

/// The current time of a simulation.
fn time(env: &Env) -> String {
    let at = jiff::Timestamp::try_from(env.wall()).unwrap();
    at.strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string()
}

async fn names(api: &Api, path: &str) -> Vec<String> {
    let list = api.get(path).await;
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

async fn pass(clock: &VirtualClock, minutes: u64) {
    for _ in 0..minutes {
        clock.advance_and_settle(MINUTE).await;
    }
}

#[tokio::test]
async fn events_are_kept_for_an_hour_after_their_last_occurrence() {
    for view in VIEWS {
        let options = ControllersOptions { event_ttl: Some(60 * MINUTE), ..ControllersOptions::none() };
        let (api, clock) = Api::simulated(view, options).await;
        clock.settle().await;
        for name in ["once", "again"] {
            let event = json!({"metadata": {"name": name}, "involvedObject": {"namespace": "default", "kind": "Pod"},
                "type": "Normal", "reason": "Tested"});
            api.create_with(EVENTS, event).await;
        }
        pass(&clock, 40).await;
        let now = time(&api.env).replace(".000000", "");
        api.patch(&format!("{EVENTS}/again"), json!({"count": 2, "lastTimestamp": now})).await;
        pass(&clock, 19).await;
        assert_eq!(names(&api, EVENTS).await, ["again", "once"], "{view:?}");
        pass(&clock, 2).await;
        assert_eq!(names(&api, EVENTS).await, ["again"], "{view:?}");
        pass(&clock, 38).await;
        assert_eq!(names(&api, EVENTS).await, ["again"], "{view:?}");
        pass(&clock, 3).await;
        assert_eq!(names(&api, EVENTS).await, [""; 0], "{view:?}");
    }
}

#[tokio::test]
async fn leases_are_kept_forever_by_default_and_else_until_they_expire() {
    for (ttl, left) in [(None, 2), (Some(60 * MINUTE), 1)] {
        let options = ControllersOptions { lease_ttl: ttl, ..ControllersOptions::default() };
        let (api, clock) = Api::simulated(View::K1s, options).await;
        clock.settle().await;
        for name in ["dead", "alive"] {
            let spec =
                json!({"holderIdentity": "x", "leaseDurationSeconds": 15, "renewTime": time(&api.env)});
            api.create_with(LEASES, json!({"metadata": {"name": name}, "spec": spec})).await;
        }
        for _ in 0..3 {
            pass(&clock, 30).await;
            api.patch(&format!("{LEASES}/alive"), json!({"spec": {"renewTime": time(&api.env)}})).await;
        }
        let names = names(&api, LEASES).await;
        assert_eq!(names.len(), left, "{names:?}");
        assert!(names.contains(&"alive".to_owned()));
    }
}

#[tokio::test]
async fn each_controller_can_be_turned_off() {
    let api = Api::bare(Env::system(), Arc::new(MemoryStore::default())).await;
    drop(api.run(View::K1s, ControllersOptions { garbage_collection: true, ..ControllersOptions::none() }));
    api.create(NAMESPACES, "n", &[]).await;
    api.delete(&format!("{NAMESPACES}/n"), "Background").await;
    api.delete("/api/v1/namespaces/default/serviceaccounts/default", "Background").await;
    api.settle().await;
    assert_eq!(api.get(&format!("{NAMESPACES}/n")).await["status"]["phase"], "Terminating");
    assert_eq!(api.get("/api/v1/namespaces/default/serviceaccounts/default").await["reason"], "NotFound");
    let api = Api::bare(Env::system(), Arc::new(MemoryStore::default())).await;
    drop(api.run(View::K1s, ControllersOptions { garbage_collection: false, ..all() }));
    let uid = api.create(SECRETS, "o", &[]).await;
    let owner = json!({"apiVersion": "v1", "kind": "Secret", "name": "o", "uid": uid});
    api.create(SECRETS, "d", &[owner]).await;
    api.delete(&format!("{SECRETS}/o"), "Background").await;
    api.create(NAMESPACES, "n", &[]).await;
    api.delete(&format!("{NAMESPACES}/n"), "Background").await;
    api.gone(NAMESPACES, "n").await;
    assert_eq!(api.get(&format!("{SECRETS}/d")).await["kind"], "Secret");
}
