//! Extensions that are dead, hang or lie: they break neither discovery nor other requests.

use std::{sync::atomic::Ordering, time::Duration};

use http_body_util::BodyExt as _;

use super::{extension::GROUP, *};
use crate::extension::{OpenApi, Way};

const USAGES: &str = "/apis/usage.example.com/v1/namespaces/default/usages";

/// Everything else works, and discovery is complete, within seconds.
async fn others_are_served(stage: &Stage, way: Way) {
    let env = Env::system();
    let served = env.timeout(Duration::from_secs(120), async {
        let group = stage.discovered(GROUP).await.expect("the group is listed");
        let apps = stage.discovered("apps").await.unwrap();
        assert_eq!(apps["versions"][0]["freshness"], "Current");
        stage.client.get("/apis").await;
        stage.client.get("/api/v1/namespaces").await;
        stage.client.get(SERVICES).await;
        let described = stage.client.get("/openapi/v2").await;
        let deployment = &described["definitions"]["io.k8s.api.apps.v1.Deployment"];
        let spec = &deployment["properties"]["spec"]["$ref"];
        assert_eq!(spec, "#/definitions/io.k8s.api.apps.v1.DeploymentSpec");
        assert_acceptable(&described["definitions"]["com.example.usage.v1.Usage"]);
        stage.client.get("/openapi/v3/apis/apps/v1").await;
        group
    });
    let group = served.await.unwrap_or_else(|_| panic!("{way:?} holds up others"));
    let freshness = if matches!(way, Way::CutOff | Way::Publish(_)) { "Current" } else { "Stale" };
    assert_eq!(group["versions"][0]["freshness"], freshness, "{way:?}");
}

/// Schemas have types that kubectl accepts; `crates/kinds/src/openapi/foreign.rs` tests this for every place of a document.
fn assert_acceptable(schema: &Value) {
    let properties = schema["properties"].as_object().into_iter().flatten();
    for (name, property) in properties {
        let ty = &property["type"];
        assert!(property.is_object() && (ty.is_null() || ty == "string"), "{name}: {property}");
    }
}

#[tokio::test]
async fn hostile_extensions_harm_only_themselves() {
    let ways = [
        (Way::Refuse(500), "FailedDiscoveryCheck"),
        (Way::Refuse(401), "FailedDiscoveryCheck"),
        (Way::Redirect, "FailedDiscoveryCheck"),
        (Way::Panic, "FailedDiscoveryCheck"),
        (Way::Hang, "FailedDiscoveryCheck"),
        // They answer, so they are available; what they say is not used.
        (Way::Lie, "Passed"),
        (Way::Flood, "Passed"),
        (Way::CutOff, "Passed"),
        (Way::Publish(OpenApi::Bad), "Passed"),
        (Way::Publish(OpenApi::NoJson), "Passed"),
        (Way::Publish(OpenApi::Huge), "Passed"),
        (Way::Publish(OpenApi::Hang), "Passed"),
        (Way::Publish(OpenApi::Refuse), "Passed"),
    ];
    let checks = ways.map(|(way, reason)| async move {
        let stage = Stage::new().await;
        stage.serve(&Extension::new(way));
        stage.register(GROUP).await;
        others_are_served(&stage, way).await;
        let (status, message) = stage.reason(GROUP, reason).await;
        assert_eq!(status == "True", reason == "Passed", "{way:?}: {message}");
        if way == Way::Panic {
            assert!(message.ends_with("the service panicked"), "{message}");
        }
    });
    futures_util::future::join_all(checks).await;
}

#[tokio::test]
async fn a_body_that_is_cut_off_is_no_complete_one() {
    let stage = Stage::new().await;
    stage.serve(&Extension::new(Way::CutOff));
    stage.register(GROUP).await;
    let response = stage.client.open("GET", USAGES, &[], "").await;
    assert_eq!(response.status(), 200);
    assert!(response.into_body().collect().await.is_err());
}

#[tokio::test]
async fn a_response_has_to_be_complete_in_time() {
    let mut options = ServerOptions::default();
    options.aggregation.request_timeout = Duration::from_millis(200);
    let stage = Stage::with(options).await;
    let extension = Extension::new(Way::Well);
    stage.serve(&extension);
    stage.register(GROUP).await;
    let response = stage.client.open("GET", &format!("{USAGES}?hang"), &[], "").await;
    assert_eq!(response.status(), 200);
    let why = response.into_body().collect().await.unwrap_err().to_string();
    assert_eq!(why, "the response of the aggregated API was not complete in time");
    assert!(!extension.watched.load(Ordering::SeqCst));
}

/// One extension's requests are limited; others, and this server's own, are not affected.
#[tokio::test]
async fn requests_that_hang_are_limited() {
    let stage = Stage::new().await;
    stage.serve(&Extension::new(Way::Well));
    stage.register(GROUP).await;
    let mut held = Vec::new();
    let busy = loop {
        let response = stage.client.open("GET", &format!("{USAGES}?hang"), &[], "").await;
        match response.status().as_u16() {
            200 => held.push(response),
            _ => break response,
        }
        assert!(held.len() <= 1000, "there is a limit");
    };
    assert_eq!((busy.status().as_u16(), busy.headers()["retry-after"].to_str().unwrap()), (429, "1"));
    assert_eq!(held.len(), 100);
    stage.client.get("/api/v1/namespaces").await;
    // Watches are counted apart.
    stage.client.watch(USAGES).await.event().await;
    drop(held);
    assert_eq!(stage.client.send("GET", USAGES, &[], "").await.status, 200);
}

/// Paths that a server could read as others than the one that was authorized.
#[tokio::test]
async fn ambiguous_paths_are_refused() {
    let stage = Stage::new().await;
    let extension = Extension::new(Way::Well);
    stage.serve(&extension);
    stage.register(GROUP).await;
    stage.reason(GROUP, "Passed").await;
    let before = extension.requests.load(Ordering::SeqCst);
    let segments =
        ["a/../../../secrets", "%2e%2e/b", "a/%2E", "a%2f..%2fb", "/a", "%2Fa", "a//b", "a/%2Fb", "a//"];
    let malformed = ["a%", "a%2", "%zz", "%+f", "%-1", "%ff", "a/%2e%2"];
    for path in segments.into_iter().chain(malformed) {
        let answer = stage.client.send("GET", &format!("{USAGES}/{path}"), &[], "").await;
        assert_eq!(answer.status, 400, "{path}: {}", answer.text());
    }
    assert_eq!(extension.requests.load(Ordering::SeqCst), before);
}

/// An escaped slash separates segments for the authorizer as it does for the extension.
#[tokio::test]
async fn an_extension_reads_the_path_that_was_authorized() {
    let stage = Stage::new().await;
    let extension = Extension::new(Way::Well);
    stage.serve(&extension);
    stage.register(GROUP).await;
    stage.reason(GROUP, "Passed").await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let rules = json!([{"apiGroups": [GROUP], "resources": ["usages"], "verbs": ["get"]}]);
    stage
        .client
        .post(&format!("{rbac}/roles"), json!({"metadata": {"name": "reader"}, "rules": rules}))
        .await;
    let binding = json!({"metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}]});
    stage.client.post(&format!("{rbac}/rolebindings"), binding).await;
    let ask = |path: String| {
        let stage = &stage;
        async move { stage.as_user(User::new("bob", &[]), "GET", &path).await }
    };
    let before = extension.requests.load(Ordering::SeqCst);
    let forbidden = [
        format!("{USAGES}/a/detail"),
        format!("{USAGES}/a%2Fdetail"),
        format!("{USAGES}/a%2fdetail"),
        format!("/apis/{GROUP}/v1/namespaces/default%2Fusages"),
        format!("/apis/{GROUP}/v1/namespaces%2Fother%2Fusages%2Fa"),
        format!("/apis/{GROUP}%2Fv1%2Fnamespaces%2Fother%2fusages%2fa"),
        format!("/apis%2F{GROUP}/v1/nodes"),
    ];
    for path in forbidden {
        let answer = ask(path.clone()).await;
        assert_eq!(answer.status, 403, "{path}: {}", answer.text());
    }
    assert_eq!(extension.requests.load(Ordering::SeqCst), before);
    for (sent, forwarded) in [
        ("a", "a"),
        ("a%252Fdetail", "a%252Fdetail"),
        ("a%252e%252e", "a%252e%252e"),
        ("%61%3F%23%20", "a%3F%23%20"),
        ("a/", "a/"),
    ] {
        let answer = ask(format!("{USAGES}/{sent}")).await;
        assert_eq!(answer.status, 200, "{sent}: {}", answer.text());
        assert_eq!(answer.json()["path"], format!("{USAGES}/{forwarded}"));
    }
    let answer = ask(format!("/apis/{GROUP}/v1/namespaces%2Fdefault%2Fusages%2Fa")).await;
    assert_eq!((answer.status, answer.json()["path"].clone()), (200, format!("{USAGES}/a").into()));
}

#[tokio::test]
async fn paths_that_are_no_resources_are_decoded_as_well() {
    let stage = Stage::new().await;
    stage.serve(&Extension::new(Way::Well));
    stage.register(GROUP).await;
    let plain = stage.client.get(&format!("/apis/{GROUP}/v1")).await;
    for path in [format!("/apis/{GROUP}%2fv1"), format!("/%61pis%2F{GROUP}/v1")] {
        assert_eq!(stage.client.get(&path).await, plain, "{path}");
    }
    for path in ["/metrics", "/%6detrics", "/metric%73"] {
        let answer = stage.as_user(User::new("bob", &[]), "GET", path).await;
        let message = "forbidden: User \"bob\" cannot get path \"/metrics\"";
        assert_eq!((answer.status, answer.json()["message"].as_str()), (403, Some(message)), "{path}");
    }
    // A role for a path is one for nothing else.
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let rules = json!([{"nonResourceURLs": ["/custom"], "verbs": ["get"]}]);
    stage
        .client
        .post(&format!("{rbac}/clusterroles"), json!({"metadata": {"name": "c"}, "rules": rules}))
        .await;
    let binding = json!({"metadata": {"name": "c"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "c"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}]});
    stage.client.post(&format!("{rbac}/clusterrolebindings"), binding).await;
    for (path, status) in [
        ("/custom", 404),
        ("/cu%73tom", 404),
        ("/custom%2Fx", 403),
        ("/custom%252F", 403),
        ("/custom%+f", 400),
    ] {
        let answer = stage.as_user(User::new("bob", &[]), "GET", path).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
    }
}
