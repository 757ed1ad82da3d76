//! Errors: their messages and predicates.

use k1s_env::Env;
use k1s_runtime::{
    ObjectKey,
    client::{Client, ClientOptions, Error, ListOptions, MissingPermission, Patch},
    util::{ignore_already_exists, ignore_not_found},
};
use k1s_server::User;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Pod},
};
use serde_json::json;

use crate::{client, config_map, deployment, key, pod, server};

#[tokio::test]
async fn errors_begin_with_the_call_and_end_with_the_code() {
    let client = client().await;
    let created = client.create(&deployment("web")).await.unwrap();
    let mut changed = created.clone();
    changed.spec.replicas = Some(2);
    client.update(&changed).await.unwrap();
    let conflict = client.update(&changed).await.unwrap_err();
    assert_eq!(
        conflict.to_string(),
        "update deployments.apps default/web: Operation cannot be fulfilled on deployments.apps \"web\": the object has \
         been modified; please apply your changes to the latest version and try again (409 Conflict)"
    );
    assert!(conflict.is_conflict() && !conflict.is_already_exists());

    let exists = client.create(&deployment("web")).await.unwrap_err();
    assert_eq!(
        exists.to_string(),
        r#"create deployments.apps default/web: deployments.apps "web" already exists (409 AlreadyExists)"#
    );
    assert!(exists.is_already_exists() && !exists.is_conflict());

    let missing = client.get::<Deployment>(&key("no")).await.unwrap_err();
    assert_eq!(
        missing.to_string(),
        r#"get deployments.apps default/no: deployments.apps "no" not found (404 NotFound)"#
    );
    let mut invalid = pod("p");
    invalid.spec.as_mut().unwrap().containers.clear();
    let invalid = client.create(&invalid).await.unwrap_err();
    assert!(invalid.is_invalid(), "{invalid}");
    assert!(invalid.to_string().contains("spec.containers"), "{invalid}");
    let Error::Api(api) = &invalid else { panic!("{invalid:?}") };
    assert_eq!(
        (api.target.plural(), api.target.namespace(), api.target.name()),
        ("pods", Some("default"), Some("p"))
    );
    assert_eq!(api.status.code, 422);
}

#[tokio::test]
async fn expected_errors_can_be_ignored() {
    let client = client().await;
    assert_eq!(ignore_not_found(client.get::<ConfigMap>(&key("a")).await).unwrap(), None);
    assert!(ignore_already_exists(client.create(&config_map("a")).await).unwrap().is_some());
    assert!(ignore_already_exists(client.create(&config_map("a")).await).unwrap().is_none());
    assert!(ignore_not_found(client.create(&config_map("a")).await).is_err());
    assert!(ignore_already_exists(client.get::<ConfigMap>(&key("b")).await).is_err());
}

#[tokio::test]
async fn a_forbidden_request_names_the_missing_permission() {
    let (env, _clock) = Env::simulated(3);
    let server = server(&env).await.as_user(User::new("bob", &[]));
    let options = ClientOptions { env, ..ClientOptions::default() };
    let client = Client::new(kube::Client::new(server, "default"), options);
    let error = client.status().update(&deployment("web")).await.unwrap_err();
    assert!(error.is_forbidden());
    let text = error.to_string();
    assert!(
        text.ends_with(
            r#"(403 Forbidden); missing permission: "update" on "deployments/status" in API group "apps" in namespace "default""#
        ),
        "{text}"
    );
    let error = client.list::<ConfigMap>(ListOptions::default()).await.unwrap_err();
    let missing = MissingPermission {
        verb: "list",
        group: String::new(),
        resource: "configmaps".into(),
        namespace: None,
    };
    assert_eq!(error.missing_permission(), Some(missing));
    assert!(error.to_string().ends_with("at the cluster scope"), "{error}");
    let error = client.delete_all_of::<Pod>(ListOptions::in_namespace("default")).await.unwrap_err();
    assert_eq!(error.missing_permission().unwrap().verb, "deletecollection");
    let error = client.delete::<Pod>(&key("x")).await.unwrap_err();
    assert_eq!(error.missing_permission().unwrap().verb, "delete");
}

#[tokio::test]
async fn invalid_requests_are_not_sent() {
    let client = client().await;
    for (key, message) in [
        (ObjectKey::cluster("a"), "get configmaps a: the kind is namespaced: a namespace is needed"),
        (ObjectKey::namespaced("default", ""), "get configmaps default/: the object has no name"),
        (key("../x"), r#"get configmaps default/../x: "../x" cannot be part of a path"#),
        (ObjectKey::namespaced("a/b", "c"), r#"get configmaps a/b/c: "a/b" cannot be part of a path"#),
    ] {
        let error = client.get::<ConfigMap>(&key).await.unwrap_err();
        assert!(matches!(error, Error::InvalidRequest { .. }), "{error:?}");
        assert_eq!(error.to_string(), message);
    }
    let mut bare = config_map("a");
    bare.metadata.namespace = None;
    let error = client.create(&bare).await.unwrap_err();
    assert_eq!(error.to_string(), "create configmaps a: the kind is namespaced: a namespace is needed");
    let mut nameless = config_map("a");
    nameless.metadata.name = None;
    let error = client.patch(&nameless, Patch::merge(&json!({}))).await.unwrap_err();
    assert_eq!(error.to_string(), "patch configmaps in default: the object has no name");
}
