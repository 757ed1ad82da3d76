//! Every verb in every version.

use serde_json::{Value, json};

use crate::world::{World, host, path};

const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

fn spec(version: &str) -> Value {
    host(version, "")["spec"].clone()
}

#[tokio::test]
async fn an_object_created_in_one_version_is_read_in_all() {
    let world = World::new().await;
    for created in VERSIONS {
        let name = format!("by-{created}");
        let answer = world.client.post(&path(created), host(created, &name)).await;
        assert_eq!(
            (&answer["apiVersion"], &answer["spec"]),
            (&json!(format!("example.com/{created}")), &spec(created))
        );
        let mut metadata = answer["metadata"].clone();
        metadata.as_object_mut().unwrap().remove("managedFields");
        for read in VERSIONS {
            let mut found = world.client.get(&format!("{}/{name}", path(read))).await;
            found["metadata"].as_object_mut().unwrap().remove("managedFields");
            assert_eq!(found["apiVersion"], format!("example.com/{read}"), "{created} {read}");
            assert_eq!((&found["spec"], &found["metadata"]), (&spec(read), &metadata), "{created} {read}");
        }
    }
    // Stored once, in the storage version: it is read there without the converter.
    world.hook.calls();
    let list = world.client.get(&path("v1")).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 3);
    assert_eq!(world.hook.calls(), 0);
}

#[tokio::test]
async fn the_storage_version_never_calls_the_converter() {
    let world = World::new().await;
    let (client, one) = (&world.client, format!("{}/a", path("v1")));
    let created = client.post(&path("v1"), host("v1", "a")).await;
    let mut watch = client.watch(&path("v1")).await;
    watch.event().await;
    client.get(&one).await;
    let mut changed = created.clone();
    changed["spec"]["port"] = 81.into();
    assert_eq!(client.call("PUT", &one, changed).await.0, 200);
    assert_eq!(client.call("PATCH", &one, json!({"spec": {"port": 82}})).await.0, 200);
    assert_eq!(client.call("PUT", &format!("{one}/status"), created.clone()).await.0, 409);
    let status = json!({"status": {"phase": "up"}});
    assert_eq!(client.call("PATCH", &format!("{one}/status"), status).await.0, 200);
    let apply = [("content-type", "application/apply-patch+yaml")];
    let body = host("v1", "a").to_string();
    assert_eq!(
        client.send("PATCH", &format!("{one}?fieldManager=m&force=true"), &apply, body).await.status,
        200
    );
    for _ in 0..4 {
        watch.event().await;
    }
    assert_eq!(client.call("DELETE", &one, Value::Null).await.0, 200);
    assert_eq!(watch.brief().await.0, "DELETED");
    assert_eq!(world.hook.calls(), 0);
}

#[tokio::test]
async fn changes_in_another_version_reach_the_stored_object() {
    let world = World::new().await;
    let client = &world.client;
    client.post(&path("v1"), host("v1", "a")).await;
    let (v1, beta) = (format!("{}/a", path("v1")), format!("{}/a", path("v1beta1")));
    // PUT
    let mut changed = client.get(&beta).await;
    changed["spec"]["hostPort"] = "c.d:81".into();
    let (code, answer) = client.call("PUT", &beta, changed.clone()).await;
    assert_eq!((code, &answer["spec"]), (200, &json!({"hostPort": "c.d:81"})), "{answer}");
    assert_eq!(answer["metadata"]["generation"], 2);
    assert_eq!(client.get(&v1).await["spec"], json!({"host": "c.d", "port": 81}));
    // The old resourceVersion is outdated in every version.
    assert_eq!(client.call("PUT", &beta, changed).await.0, 409);
    // Patches
    let (code, answer) = client.call("PATCH", &beta, json!({"spec": {"hostPort": "e.f:82"}})).await;
    assert_eq!((code, &answer["spec"]["hostPort"]), (200, &json!("e.f:82")), "{answer}");
    let patch = json!([{"op": "test", "path": "/spec/hostPort", "value": "e.f:82"},
        {"op": "replace", "path": "/spec/hostPort", "value": "e.f:83"}]);
    assert_eq!(client.call("PATCH", &beta, patch).await.0, 200);
    assert_eq!(client.get(&v1).await["spec"], json!({"host": "e.f", "port": 83}));
    // What does not change is not written.
    let before = client.get(&beta).await;
    let (code, answer) = client.call("PATCH", &beta, json!({"spec": {"hostPort": "e.f:83"}})).await;
    assert_eq!((code, answer), (200, before.clone()));
    // Status
    let (code, answer) =
        client.call("PATCH", &format!("{beta}/status"), json!({"status": {"phase": "up"}})).await;
    assert_eq!((code, &answer["status"]["phase"]), (200, &json!("up")), "{answer}");
    assert_eq!(client.get(&v1).await["status"]["phase"], "up");
    // Scale
    let (code, scale) =
        client.call("PATCH", &format!("{beta}/scale"), json!({"spec": {"replicas": 3}})).await;
    assert_eq!((code, &scale["spec"]["replicas"]), (200, &json!(3)), "{scale}");
    let scale = client.get(&format!("{beta}/scale")).await;
    assert_eq!(scale["spec"]["replicas"], 3);
    assert_eq!(client.get(&v1).await["spec"]["replicas"], 3);
    // A field of another version is unknown in this one.
    let wrong = json!({"spec": {"host": "x"}});
    let (code, answer) = client.call("PATCH", &format!("{beta}?fieldValidation=Strict"), wrong).await;
    assert_eq!(code, 422, "{answer}");
    // Validation is that of the version of the request.
    let (code, answer) = client.call("PATCH", &beta, json!({"spec": {"hostPort": 5}})).await;
    assert_eq!((code, &answer["reason"]), (422, &json!("Invalid")), "{answer}");
}

#[tokio::test]
async fn appliers_in_several_versions_own_their_fields() {
    let world = World::new().await;
    let client = &world.client;
    let apply = async |version: &str, manager: &str, force: bool, spec: Value| {
        let mut body = host(version, "a");
        body["spec"] = spec;
        let path = format!("{}/a?fieldManager={manager}&force={force}", path(version));
        let headers = [("content-type", "application/apply-patch+yaml")];
        let answer = client.send("PATCH", &path, &headers, body.to_string()).await;
        (answer.status, answer.json())
    };
    let (code, answer) = apply("v1", "one", false, json!({"host": "a.b", "port": 80})).await;
    assert_eq!(code, 201, "{answer}");
    // Another manager in another version: the field it sets is a conversion of fields that the first one owns.
    let (code, answer) = apply("v1beta1", "two", false, json!({"hostPort": "a.b:81"})).await;
    assert_eq!((code, &answer["reason"]), (409, &json!("Conflict")), "{answer}");
    let (code, answer) = apply("v1beta1", "two", true, json!({"hostPort": "a.b:81"})).await;
    assert_eq!((code, &answer["spec"]), (200, &json!({"hostPort": "a.b:81"})), "{answer}");
    let managers = answer["metadata"]["managedFields"].as_array().unwrap().clone();
    let of = |name: &str| managers.iter().find(|entry| entry["manager"] == name).cloned().unwrap_or_default();
    assert_eq!(of("two")["apiVersion"], "example.com/v1beta1");
    assert_eq!(of("two")["fieldsV1"], json!({"f:spec": {"f:hostPort": {}}}));
    // What the first one still owns is what did not change.
    assert_eq!(of("one")["fieldsV1"]["f:spec"].get("f:port"), None, "{answer}");
    // Again, in another version than the live object was: nothing changes.
    let before = client.get(&format!("{}/a", path("v1"))).await;
    let (code, _) = apply("v1beta1", "two", false, json!({"hostPort": "a.b:81"})).await;
    assert_eq!(code, 200);
    assert_eq!(
        client.get(&format!("{}/a", path("v1"))).await["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
}

#[tokio::test]
async fn a_create_in_another_version_may_be_a_dry_run() {
    let world = World::new().await;
    let dry = format!("{}?dryRun=All", path("v1beta1"));
    let answer = world.client.post(&dry, host("v1beta1", "a")).await;
    assert_eq!(answer["spec"], json!({"hostPort": "a.b:80"}));
    assert_eq!(world.client.call("GET", &format!("{}/a", path("v1")), Value::Null).await.0, 404);
    assert!(world.hook.calls() > 0, "the result is what would be read");
}

#[tokio::test]
async fn an_object_with_finalizers_is_shown_in_the_version_of_the_delete() {
    let world = World::new().await;
    let mut object = host("v1", "a");
    object["metadata"]["finalizers"] = json!(["example.com/wait"]);
    world.client.post(&path("v1"), object).await;
    let (code, answer) = world.client.call("DELETE", &format!("{}/a", path("v1beta1")), Value::Null).await;
    assert_eq!(
        (code, &answer["kind"], &answer["spec"]),
        (200, &json!("Host"), &json!({"hostPort": "a.b:80"}))
    );
    assert!(answer["metadata"]["deletionTimestamp"].is_string());
    // Its last finalizer is removed through another version.
    let patch = json!({"metadata": {"finalizers": null}});
    let (code, _) = world.client.call("PATCH", &format!("{}/a", path("v1alpha1")), patch).await;
    assert_eq!(code, 200);
    assert_eq!(world.client.call("GET", &format!("{}/a", path("v1")), Value::Null).await.0, 404);
    // A collection is shown in the version of the request, too.
    world.fill(3).await;
    let (code, answer) = world.client.call("DELETE", &path("v1beta1"), Value::Null).await;
    assert_eq!((code, &answer["items"][2]["spec"]), (200, &json!({"hostPort": "a.b:80"})), "{answer}");
}
