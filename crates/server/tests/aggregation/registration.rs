//! The cases of `TestSync` of Kubernetes' own test of the registration of `APIService`s, through the API: 14 cases. Those of custom
//! resources are kept as they should be always, built-in ones are completed at the start.

use super::*;

const LABEL: &str = "kube-aggregator.kubernetes.io/automanaged";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const START: &str = "onstart";

fn at(name: &str) -> String {
    format!("{SERVICES}/{name}")
}

async fn exists(client: &Client, name: &str) -> bool {
    client.call("GET", &at(name), Value::Null).await.0 == 200
}

/// A local `APIService` with the label, unless that is empty.
fn local(group: &str, label: &str) -> Value {
    let mut service = service(group);
    service["spec"] =
        json!({"group": group, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100});
    if !label.is_empty() {
        service["metadata"]["labels"] = json!({ LABEL: label });
    }
    service
}

async fn define(client: &Client, group: &str) {
    client.post(DEFINITIONS, common::definition(group)).await;
    let name = format!("v1.{group}");
    eventually(&format!("{group} is registered"), || exists(client, &name)).await;
}

async fn undefine(client: &Client, group: &str) {
    let path = format!("{DEFINITIONS}/things.{group}");
    assert_eq!(client.call("DELETE", &path, Value::Null).await.0, 200);
}

#[tokio::test]
async fn test_sync() {
    let store = Arc::new(MemoryStore::default());
    let start = async || {
        common::client(&common::server_with(&Env::system(), store.clone(), ServerOptions::default()).await)
    };
    let client = start().await;
    let get = async |name: &str| client.get(&at(name)).await;
    let label = async |name: &str| get(name).await["metadata"]["labels"][LABEL].clone();
    let priority = async |name: &str| get(name).await["spec"]["versionPriority"].clone();

    // Adding an API service which isn't auto-managed does nothing.
    client.post(SERVICES, local("mine.example.com", "")).await;
    // Adding one to auto-register should create.
    define(&client, "a.example.com").await;
    assert_eq!(label("v1.a.example.com").await, "true");
    // Modifying it should result in stomping.
    let right = priority("v1.a.example.com").await;
    let change = json!({"spec": {"versionPriority": 7}});
    assert_eq!(client.call("PATCH", &at("v1.a.example.com"), change.clone()).await.0, 200);
    // Create managed apiservice without a matching request: it goes.
    client.post(SERVICES, local("stray.example.com", "true")).await;
    // The next definition brings all of them in step.
    define(&client, "b.example.com").await;
    eventually("the priority is restored", || async { priority("v1.a.example.com").await == right }).await;
    eventually("what nobody asked for goes", || async { !exists(&client, "v1.stray.example.com").await })
        .await;
    // Removing auto-managed then RemoveAPIService should not touch APIService.
    let unlabelled = json!({"metadata": {"labels": {LABEL: null}}});
    assert_eq!(client.call("PATCH", &at("v1.b.example.com"), unlabelled).await.0, 200);
    undefine(&client, "b.example.com").await;
    // Duplicate AddAPIServiceToSync and RemoveAPIServiceToSync: two definitions of one group version.
    let mut second = common::definition("a.example.com");
    second["metadata"]["name"] = "others.a.example.com".into();
    second["spec"]["names"] = json!({"plural": "others", "kind": "Other"});
    client.post(DEFINITIONS, second).await;
    assert_eq!(
        client.call("DELETE", &format!("{DEFINITIONS}/others.a.example.com"), Value::Null).await.0,
        200
    );
    undefine(&client, "a.example.com").await;
    eventually("it goes with its definitions", || async { !exists(&client, "v1.a.example.com").await }).await;
    assert!(exists(&client, "v1.mine.example.com").await && exists(&client, "v1.b.example.com").await);

    // Adding one to auto-register on start should create.
    assert_eq!(label("v1.apps").await, START);
    let of_batch = priority("v1.batch").await;
    // Modifying onstart already synced should no-op.
    assert_eq!(client.call("PATCH", &at("v1.batch"), change).await.0, 200);
    // Adding one to auto-register on start already synced should do nothing.
    assert_eq!(client.call("DELETE", &at("v1.apps"), Value::Null).await.0, 200);
    // Managed onstart apiservice not present at start without a matching request should no-op, as after the first time.
    client.post(SERVICES, local("late.example.com", START)).await;
    define(&client, "c.example.com").await;
    assert!(!exists(&client, "v1.apps").await && exists(&client, "v1.late.example.com").await);
    assert_eq!(priority("v1.batch").await, 7);
    // After a start, all three are as they should be: managed onstart apiservice present at start without a matching request
    // should delete; modifying onstart it should result in stomping.
    let again = start().await;
    eventually("a built-in one is there again", || async { exists(&again, "v1.apps").await }).await;
    eventually("it is as it should be", || async {
        again.get(&at("v1.batch")).await["spec"]["versionPriority"] == of_batch
    })
    .await;
    eventually("what is not built in goes", || async { !exists(&again, "v1.late.example.com").await }).await;
    assert!(exists(&again, "v1.mine.example.com").await);
}
