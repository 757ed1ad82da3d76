//! The cases of Kubernetes' own tests of its aggregator, under the names of these tests, through the API. Which of them are elsewhere
//! or have no equivalent is in docs/architecture.md.

#![allow(clippy::type_complexity, reason = "tables")]

use super::{extension::GROUP, *};
use crate::extension::Way;

/// A server that finds extensions by the endpoints of their Services.
async fn routing() -> Stage {
    let mut options = ServerOptions::default();
    options.aggregation.routing = true;
    Stage::with(options).await
}

/// An `APIService` with priorities, and the Service `foo/bar` unless it is local.
fn api(group: &str, version: &str, priorities: (u32, u32), port: Option<u16>) -> Value {
    let mut spec = json!({"group": group, "version": version, "groupPriorityMinimum": priorities.0, "versionPriority": priorities.1});
    if let Some(port) = port {
        spec["service"] = json!({"namespace": "foo", "name": "bar", "port": port});
        spec["insecureSkipTLSVerify"] = true.into();
    }
    let metadata = json!({"name": format!("{version}.{group}")});
    json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": metadata, "spec": spec})
}

/// `TestSync` of the availability of remote `APIService`s, and that of local ones, with `TestBuildCache`: 14 cases. The addresses
/// of an `EndpointSlice` cannot be on this machine: what is asked is in this process.
#[tokio::test]
async fn test_available_condition_sync() {
    const PORT: &str = "test-port";
    let slice = |name: &str, ready: bool, addresses: &[&str]| {
        let endpoints: Vec<Value> =
            addresses.iter().map(|one| json!({"addresses": [one], "conditions": {"ready": ready}})).collect();
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "bar", "labels": {"kubernetes.io/service-name": "bar"}},
            "endpoints": endpoints, "ports": [{"name": name, "port": 1234}]})
    };
    let no_addresses =
        format!("endpointslices for service/bar in \"foo\" have no addresses with port name {PORT:?}");
    let address: &[&str] = &["192.0.2.1"];
    /// The name, the Service and its port, its slice, and the reason and message.
    type Case<'a> = (&'a str, &'a str, u16, Option<Value>, &'a str, &'a str);
    let by_objects: [Case<'_>; 6] = [
        ("no service", "not-bar", 1234, None, "ServiceNotFound", "service/bar in \"foo\" is not present"),
        (
            "service on bad port",
            "bar",
            6443,
            Some(slice(PORT, true, address)),
            "ServicePortError",
            "service/bar in \"foo\" is not listening on port 1234",
        ),
        (
            "no endpoints",
            "bar",
            1234,
            None,
            "EndpointsNotFound",
            "cannot find endpointslices for service/bar in \"foo\"",
        ),
        ("missing endpoints", "bar", 1234, Some(slice(PORT, true, &[])), "MissingEndpoints", &no_addresses),
        (
            "wrong endpoint port name",
            "bar",
            1234,
            Some(slice("wrong-name", true, address)),
            "MissingEndpoints",
            &no_addresses,
        ),
        (
            "endpoints not ready",
            "bar",
            1234,
            Some(slice(PORT, false, address)),
            "MissingEndpoints",
            &no_addresses,
        ),
    ];
    let mut played = 0;
    for (name, service, port, slice, reason, message) in by_objects {
        let stage = routing().await;
        stage.client.post("/api/v1/namespaces", json!({"metadata": {"name": "foo"}})).await;
        let object =
            json!({"metadata": {"name": service}, "spec": {"ports": [{"port": port, "name": PORT}]}});
        stage.client.post("/api/v1/namespaces/foo/services", object).await;
        if let Some(slice) = slice {
            stage.client.post("/apis/discovery.k8s.io/v1/namespaces/foo/endpointslices", slice).await;
        }
        stage.client.post(SERVICES, api("remote.group", "v1", (1000, 15), Some(1234))).await;
        let found = stage.reason("remote.group", reason).await;
        assert_eq!(found, ("False".to_owned(), message.to_owned()), "{name}");
        played += 1;
    }
    // The name, what the server does, and the status, reason and beginning of the message.
    let failing = "failing or missing response from";
    for (name, way, status, reason, message) in [
        ("remote", Way::Well, "True", "Passed", "all checks passed"),
        ("remote-bad-return", Way::Refuse(403), "False", "FailedDiscoveryCheck", failing),
        ("remote-redirect", Way::Redirect, "False", "FailedDiscoveryCheck", failing),
        ("remote-304", Way::Refuse(304), "False", "FailedDiscoveryCheck", failing),
    ] {
        let stage = Stage::new().await;
        stage.serve(&Extension::new(way));
        stage.register(GROUP).await;
        let (found, why) = stage.reason(GROUP, reason).await;
        assert!(found == status && why.starts_with(message), "{name}: {found} {why}");
        played += 1;
    }
    // Both tests have a local one, that of local ones a remote one too, and `TestBuildCache` one that is played above.
    let stage = Stage::new().await;
    stage.client.post(SERVICES, api("local.group", "v1", (1000, 15), None)).await;
    let (status, message) = stage.reason("local.group", "Local").await;
    assert_eq!((&*status, &*message), ("True", "Local APIServices are always available"));
    assert_eq!(played + 4, 14);
}

/// The names of groups with their versions, the preferred one first, as `/apis` has them.
async fn groups(stage: &Stage, of: &[&str]) -> Vec<(String, Vec<String>)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = stage.client.get("/apis").await;
    let all = list["groups"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|group| of.iter().any(|name| group["name"] == *name));
    let mut found = Vec::new();
    for group in all {
        let versions: Vec<String> =
            group["versions"].as_array().unwrap().iter().map(|version| text(&version["version"])).collect();
        let name = text(&group["name"]);
        assert_eq!(group["preferredVersion"]["version"], versions[0]);
        assert_eq!(group["preferredVersion"]["groupVersion"], format!("{name}/{}", versions[0]));
        // `TestAPIGroup`: the group's own document says the same.
        let mut own = stage.client.get(&format!("/apis/{name}")).await;
        assert_eq!((own["kind"].take(), own["apiVersion"].take()), (json!("APIGroup"), json!("v1")));
        assert_eq!(
            (&own["versions"], &own["preferredVersion"]),
            (&group["versions"], &group["preferredVersion"])
        );
        found.push((name, versions));
    }
    found
}

/// `TestAPIs` and `TestAPIGroup`: groups in the order of their priorities, whether their servers are available or not. Priorities
/// that upstream's cases leave out are 1, since there are none of 0.
#[tokio::test]
async fn test_apis() {
    /// The group, the version, and the priorities.
    type Service = (&'static str, &'static str, (u32, u32));
    type Cases =
        [(&'static str, bool, &'static [Service], &'static [(&'static str, &'static [&'static str])]); 4];
    let cases: Cases = [
        ("empty", true, &[], &[]),
        (
            "simple add",
            true,
            &[("foo", "v1", (11, 1)), ("bar", "v1", (10, 1))],
            &[("foo", &["v1"]), ("bar", &["v1"])],
        ),
        (
            "sorting",
            true,
            &[
                ("foo", "v1", (20, 10)),
                ("bar", "v2", (11, 1)),
                ("foo", "v2", (1, 15)),
                ("bar", "v1", (11, 1)),
            ],
            &[("foo", &["v2", "v1"]), ("bar", &["v2", "v1"])],
        ),
        ("unavailable service", false, &[("foo", "v1", (11, 1))], &[("foo", &["v1"])]),
    ];
    for (name, available, services, expected) in cases {
        let stage = Stage::new().await;
        if available {
            stage.local.serve_streams(Some("default"), "bar.foo.svc", Extension::new(Way::Well));
        }
        for (group, version, priorities) in services {
            stage.client.post(SERVICES, api(group, version, *priorities, Some(443))).await;
        }
        let expected: Vec<(String, Vec<String>)> = expected
            .iter()
            .map(|(group, versions)| {
                ((*group).to_owned(), versions.iter().map(|one| (*one).to_owned()).collect())
            })
            .collect();
        assert_eq!(groups(&stage, &["foo", "bar"]).await, expected, "{name}");
        // Its fifth case, `v1 only`: the group of `APIService`s.
        let own = ("apiregistration.k8s.io".to_owned(), vec!["v1".to_owned()]);
        assert_eq!(groups(&stage, &["apiregistration.k8s.io"]).await, [own]);
    }
}

/// `TestSortedAPIServicesByVersion`.
#[tokio::test]
async fn test_sorted_api_services_by_version() {
    let cases: [(&[&str], &[&str]); 5] = [
        (&["v1", "v2"], &["v2", "v1"]),
        (&["v2", "v10"], &["v10", "v2"]),
        (
            &["v2", "v2beta1", "v10beta2", "v10beta1", "v10alpha1", "v1"],
            &["v2", "v1", "v10beta2", "v10beta1", "v2beta1", "v10alpha1"],
        ),
        (
            &["v1", "v2", "test", "foo10", "final", "foo2", "foo1"],
            &["v2", "v1", "final", "foo1", "foo10", "foo2", "test"],
        ),
        (
            &[
                "v12alpha1",
                "v10",
                "v11beta2",
                "v10beta3",
                "v3beta1",
                "v2",
                "v11alpha2",
                "foo1",
                "v1",
                "foo10",
            ],
            &[
                "v10",
                "v2",
                "v1",
                "v11beta2",
                "v10beta3",
                "v3beta1",
                "v12alpha1",
                "v11alpha2",
                "foo1",
                "foo10",
            ],
        ),
    ];
    let stage = Stage::new().await;
    for (place, (versions, expected)) in cases.into_iter().enumerate() {
        let group = format!("case{}", place + 1);
        for version in versions {
            stage.client.post(SERVICES, api(&group, version, (100, 100), Some(443))).await;
        }
        let [(_, found)] = &groups(&stage, &[&group]).await[..] else { panic!("{group} is missing") };
        assert_eq!(found, expected, "{group}");
    }
}

/// `TestAPIGroupMissing`: what no `APIService` is for, the server itself answers.
#[tokio::test]
async fn test_api_group_missing() {
    let stage = Stage::new().await;
    for path in ["/apis/groupName/foo", "/apis/groupName/", "/apis/missing"] {
        assert_eq!(stage.client.send("GET", path, &[], "").await.status, 404, "{path}");
    }
}

/// `TestProxyHandler` and `TestProxyUpgrade`. Of the first, ten cases: a request without a user cannot be here, and the uid is always
/// sent, which a feature can prevent in two cases; certificates, three cases, are in `remote.rs`. Upgrades, the five cases of the
/// second, are refused. Nobody's address is added to `X-Forwarded-For`.
#[tokio::test]
async fn test_proxy_handler() {
    let stage = Stage::new().await;
    let path = format!("/apis/{GROUP}/v1/things");
    assert_eq!(stage.client.send("GET", &path, &[], "").await.status, 404, "no target");
    let user = || User {
        name: "username".into(),
        uid: "6b60d791-1af9-4513-92e5-e4252a1e0a78".into(),
        groups: vec!["one".into(), "two".into()],
        extra: Vec::new(),
    };
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "u"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "username"}]});
    stage.client.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await;
    stage.register(GROUP).await;
    stage.reason(GROUP, "ServiceNotFound").await;
    assert_eq!(stage.as_user(user(), "GET", &path).await.status, 503, "service unresolveable");
    let extension = Extension::new(Way::Well);
    stage.serve(&extension);
    stage.reason(GROUP, "Passed").await;
    let client = common::client(&stage.server.as_user(user()));
    let answer = client.send("GET", &path, &[("user-agent", "Go-http-client/1.1")], "").await;
    assert_eq!(answer.status, 200, "proxy with user, insecure");
    let mut headers: Vec<(String, String)> = answer.json()["headers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|header| (header[0].as_str().unwrap().to_owned(), header[1].as_str().unwrap().to_owned()))
        // It ends loops, which upstream does not notice.
        .filter(|(name, _)| name != "via")
        .collect();
    headers.sort();
    let expected = [
        ("user-agent", "Go-http-client/1.1"),
        ("x-forwarded-host", "ext.ns.svc"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-uri", &*path),
        ("x-remote-group", "one"),
        ("x-remote-group", "two"),
        ("x-remote-uid", "6b60d791-1af9-4513-92e5-e4252a1e0a78"),
        ("x-remote-user", "username"),
    ];
    assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let upgrade = [("connection", "Upgrade"), ("upgrade", "websocket")];
    assert_eq!(client.send("GET", &path, &upgrade, "").await.status, 501, "TestProxyUpgrade");
    extension.down.store(true, std::sync::atomic::Ordering::SeqCst);
    stage.serve(&extension);
    stage.reason(GROUP, "FailedDiscoveryCheck").await;
    assert_eq!(client.send("GET", &path, &[], "").await.status, 503, "service unavailable");
}
