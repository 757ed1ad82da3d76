//! The number of store calls of a request, and that saving calls misses no write of other servers over the same store.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use k1s_env::Env;
use k1s_server::ServerOptions;
use k1s_store::{Range, Store};
use serde_json::{Value, json};

use crate::{
    common::{self, Client, config_map, names},
    spy::Spy,
};

const NAMESPACES: &str = "/api/v1/namespaces";

fn of(namespace: &str, plural: &str) -> String {
    format!("{NAMESPACES}/{namespace}/{plural}")
}

async fn servers<const N: usize>(store: &Arc<Spy>) -> [Client; N] {
    let mut clients = Vec::new();
    for _ in 0..N {
        let server = common::bare(&Env::system(), store.clone(), ServerOptions::default()).await;
        clients.push(common::client(&server));
    }
    clients.try_into().ok().unwrap()
}

async fn namespace(client: &Client, name: &str) {
    client.post(NAMESPACES, json!({"metadata": {"name": name}})).await;
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]}})
}

fn quota(config_maps: u32) -> Value {
    json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": config_maps.to_string()}}})
}

async fn used(client: &Client, namespace: &str) -> Value {
    client.get(&of(namespace, "resourcequotas/q")).await["status"]["used"].clone()
}

#[tokio::test]
async fn a_create_is_one_round_trip() {
    let spy = Spy::new();
    let [client] = servers(&spy).await;
    namespace(&client, "a").await;
    for (plural, object) in
        [("configmaps", config_map("m")), ("pods", pod("p")), ("secrets", json!({"metadata": {}}))]
    {
        let path = of("a", plural);
        let mut cost = Vec::new();
        for number in 0..3 {
            let mut object = object.clone();
            object["metadata"]["name"] = format!("o{number}").into();
            let before = spy.calls();
            client.post(&path, object).await;
            let after = spy.calls();
            cost.push((after.0 - before.0, after.1 - before.1));
        }
        // The first create may have to learn facts.
        assert_eq!(cost[1..], [(0, 1), (0, 1)], "{plural}: {cost:?}");
        let before = spy.calls();
        client.call("DELETE", &format!("{path}/o1"), Value::Null).await;
        let after = spy.calls();
        // A pod is first updated with a grace period of zero.
        let writes = if plural == "pods" { 2 } else { 1 };
        assert_eq!((after.0 - before.0, after.1 - before.1), (1, writes), "{plural}");
    }
}

#[tokio::test]
async fn nothing_is_created_in_a_namespace_that_another_server_deletes() {
    let spy = Spy::new();
    let [one, other] = servers(&spy).await;
    namespace(&one, "a").await;
    one.post(&of("a", "configmaps"), config_map("m")).await;
    other.call("DELETE", &format!("{NAMESPACES}/a"), Value::Null).await;
    // Also for an object that exists: the namespace is checked first.
    for name in ["m", "n"] {
        let (code, refused) = one.call("POST", &of("a", "configmaps"), config_map(name)).await;
        assert_eq!((code, &refused["details"]["causes"][0]["reason"]), (403, &json!("NamespaceTerminating")));
    }
    let mut gone = other.get(&format!("{NAMESPACES}/a")).await;
    gone["spec"]["finalizers"] = json!([]);
    let (code, _) = other.call("PUT", &format!("{NAMESPACES}/a/finalize"), gone).await;
    assert_eq!(code, 200);
    let (code, refused) = one.call("POST", &of("a", "configmaps"), config_map("n")).await;
    assert_eq!((code, &refused["message"]), (404, &json!("namespaces \"a\" not found")));
    namespace(&other, "a").await;
    one.post(&of("a", "configmaps"), config_map("n")).await;
    // A dry run has no transaction that would detect it.
    other.call("DELETE", &format!("{NAMESPACES}/a"), Value::Null).await;
    let (code, _) = one.call("POST", &format!("{}?dryRun=All", of("a", "configmaps")), config_map("o")).await;
    assert_eq!(code, 403);
}

#[tokio::test]
async fn the_labels_of_a_namespace_apply_immediately() {
    let spy = Spy::new();
    let [one, other] = servers(&spy).await;
    namespace(&one, "a").await;
    one.post(&of("a", "pods"), pod("p")).await;
    let label = |level: &str| json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}});
    for (level, code) in [("restricted", 403), ("privileged", 201), ("restricted", 403)] {
        other.call("PATCH", &format!("{NAMESPACES}/a"), label(level)).await;
        let (found, answer) = one.call("POST", &of("a", "pods"), pod(&format!("p-{code}"))).await;
        assert_eq!(found, code, "{answer}");
    }
}

#[tokio::test]
async fn a_quota_created_by_another_server_applies_immediately() {
    let spy = Spy::new();
    let [one, other] = servers(&spy).await;
    namespace(&one, "a").await;
    let maps = of("a", "configmaps");
    one.post(&maps, config_map("m0")).await;
    // The default objects of a namespace count as well.
    other.post(&of("a", "resourcequotas"), quota(4)).await;
    assert_eq!(used(&one, "a").await, json!({"count/configmaps": "2"}));
    let (code, _) = other.call("POST", &format!("{maps}?dryRun=All"), config_map("m1")).await;
    assert_eq!(code, 201);
    for (name, code) in [("m1", 201), ("m2", 201), ("m3", 403)] {
        let (found, answer) = one.call("POST", &maps, config_map(name)).await;
        assert_eq!(found, code, "{answer}");
    }
    let third = servers::<1>(&spy).await;
    let (code, _) = third[0].call("POST", &format!("{maps}?dryRun=All"), config_map("m3")).await;
    assert_eq!(code, 403, "a dry run has no transaction that would detect the quota");
    third[0].call("DELETE", &format!("{maps}/m2"), Value::Null).await;
    assert_eq!(used(&one, "a").await, json!({"count/configmaps": "3"}));
    let marks = async || spy.range(Range::prefix("/default/k1s/quotas/")).await.unwrap().entries.len();
    assert_eq!(marks().await, 1);
    other.call("DELETE", &of("a", "resourcequotas/q"), Value::Null).await;
    assert_eq!(marks().await, 0);
    for number in 3..6 {
        one.post(&maps, config_map(&format!("m{number}"))).await;
    }
    let before = spy.calls();
    one.post(&maps, config_map("free")).await;
    assert_eq!(spy.calls(), (before.0, before.1 + 1), "quotas are no longer read");
}

#[tokio::test]
async fn a_create_that_is_tried_again_prepares_its_object_once() {
    let spy = Spy::new();
    let [one, other] = servers(&spy).await;
    namespace(&one, "a").await;
    let mut spread = pod("p0");
    spread["metadata"]["labels"] = json!({"app": "x"});
    spread["spec"]["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}, "matchLabelKeys": ["app"]}]);
    let pods = of("a", "pods");
    one.post(&pods, spread.clone()).await;
    // What the first server knows of quotas is outdated now: its transaction fails once.
    other.post(&of("a", "resourcequotas"), quota(9)).await;
    spread["metadata"]["name"] = "p1".into();
    let before = spy.calls();
    one.post(&pods, spread).await;
    assert!(spy.calls().1 > before.1 + 1, "the create was not tried again");
    let [first, second] = [0, 1].map(|number| format!("{pods}/p{number}"));
    let constraints = async |path: &str| one.get(path).await["spec"]["topologySpreadConstraints"].clone();
    assert_eq!(constraints(&second).await, constraints(&first).await);
    let expressions = &constraints(&second).await[0]["labelSelector"]["matchExpressions"];
    assert_eq!(*expressions, json!([{"key": "app", "operator": "In", "values": ["x"]}]));
}

#[tokio::test]
async fn a_quota_created_during_many_creates_counts_all_of_them() {
    let spy = Spy::new();
    let [one, other] = servers(&spy).await;
    namespace(&one, "a").await;
    let maps = of("a", "configmaps");
    let create = async |client: &Client, server: usize| {
        for number in 0..60 {
            let path = format!("{maps}/m{server}-{}", number / 2);
            match number % 4 {
                3 => client.send("DELETE", &path, &[], "").await.status,
                _ => client.call("POST", &maps, config_map(&format!("m{server}-{number}"))).await.0,
            };
        }
    };
    let limit = async {
        for round in 0..5 {
            Env::system().sleep(Duration::from_millis(2)).await;
            other.post(&of("a", "resourcequotas"), quota(1000)).await;
            if round < 4 {
                let (code, answer) = other.call("DELETE", &of("a", "resourcequotas/q"), Value::Null).await;
                assert_eq!(code, 200, "{answer}");
            }
        }
    };
    let creates = join_all([create(&one, 0), create(&other, 1), create(&one, 2), create(&other, 3)]);
    tokio::join!(creates, limit);
    common::eventually("what is used is what is there", async || {
        let there = names(&one.get(&maps).await).len().to_string();
        used(&one, "a").await == json!({"count/configmaps": there})
    })
    .await;
}

#[tokio::test]
async fn the_mark_of_quotas_is_deleted_with_its_namespace() {
    let spy = Spy::new();
    let [one] = servers(&spy).await;
    namespace(&one, "a").await;
    one.post(&of("a", "resourcequotas"), quota(1)).await;
    assert!(spy.get(b"/default/k1s/quotas/a", None).await.unwrap().entry.is_some());
    one.call("DELETE", &format!("{NAMESPACES}/a"), Value::Null).await;
    let mut gone = one.get(&format!("{NAMESPACES}/a")).await;
    gone["spec"]["finalizers"] = json!([]);
    one.call("PUT", &format!("{NAMESPACES}/a/finalize"), gone).await;
    assert_eq!(spy.range(Range::prefix("/default/k1s/quotas/")).await.unwrap().entries, []);
}

#[tokio::test]
async fn webhooks_and_policies_read_no_namespace_and_see_its_labels() {
    const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
    let spy = Spy::new();
    let [client, other] = servers(&spy).await;
    namespace(&client, "a").await;
    let of_kind = |kind: &str, mut object: Value| {
        object["apiVersion"] = "admissionregistration.k8s.io/v1".into();
        object["kind"] = kind.into();
        object["metadata"] = json!({"name": "x"});
        object
    };
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]);
    let selector = |value: &str| json!({"matchLabels": {"called": value}});
    let hook = json!({"name": "x.k1s.dev", "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": rules,
        "clientConfig": {"url": "https://127.0.0.1:1"}, "namespaceSelector": selector("yes")});
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        let path = format!("{ADMISSION}/{}s", kind.to_lowercase());
        client.post(&path, of_kind(kind, json!({"webhooks": [hook]}))).await;
    }
    let spec = json!({"matchConstraints": {"resourceRules": rules,
            "namespaceSelector": {"matchExpressions": [{"key": "called", "operator": "NotIn", "values": ["yes"]}]}},
        "validations": [{"expression": "!has(namespaceObject.metadata.labels.full)"}]});
    client
        .post(
            &format!("{ADMISSION}/validatingadmissionpolicies"),
            of_kind("ValidatingAdmissionPolicy", json!({"spec": spec})),
        )
        .await;
    let spec = json!({"policyName": "x", "validationActions": ["Deny"]});
    client
        .post(
            &format!("{ADMISSION}/validatingadmissionpolicybindings"),
            of_kind("ValidatingAdmissionPolicyBinding", json!({"spec": spec})),
        )
        .await;
    let mut cost = Vec::new();
    for number in 0..4 {
        let before = spy.calls();
        client.post(&of("a", "configmaps"), config_map(&format!("m{number}"))).await;
        let after = spy.calls();
        cost.push((after.0 - before.0, after.1 - before.1));
    }
    assert_eq!(cost[1..], [(0, 1); 3], "{cost:?}");
    // What this server has written counts at once.
    let label = |name: &str, value: Value| json!({"metadata": {"labels": {name: value}}});
    let attempt = async |name: &str| client.call("POST", &of("a", "configmaps"), config_map(name)).await.0;
    for round in 0..3 {
        client.call("PATCH", &format!("{NAMESPACES}/a"), label("full", json!("yes"))).await;
        assert_eq!(attempt("refused").await, 422);
        client.call("PATCH", &format!("{NAMESPACES}/a"), label("full", Value::Null)).await;
        assert_eq!(attempt(&format!("n{round}")).await, 201);
        client.call("PATCH", &format!("{NAMESPACES}/a"), label("called", json!("yes"))).await;
        assert_eq!(attempt("failed").await, 500);
        client.call("PATCH", &format!("{NAMESPACES}/a"), label("called", Value::Null)).await;
    }
    // What another one has written, soon after; and a namespace that is new counts at once.
    other.call("PATCH", &format!("{NAMESPACES}/a"), label("full", json!("yes"))).await;
    let mut number = 0;
    common::eventually("the other server's labels count", || {
        number += 1;
        let name = format!("o{number}");
        let attempt = &attempt;
        async move { attempt(&name).await == 422 }
    })
    .await;
    other.post(NAMESPACES, json!({"metadata": {"name": "b", "labels": {"full": "yes"}}})).await;
    assert_eq!(client.call("POST", &of("b", "configmaps"), config_map("m")).await.0, 422);
}
