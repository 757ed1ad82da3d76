//! Definitions and the objects they define.

use k1s_server::ApiServer;
use serde_json::{Value, json};

use crate::client::{call, create, patch, send, server, watch_to_the_end};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

fn definition(scope: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": scope, "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}],
        },
    })
}

fn spec() -> Value {
    json!({"type": "object", "properties": {"x": {"type": "string"}, "replicas": {"type": "integer"}, "n": {"type": "number"}}})
}

async fn with_widgets(scope: &str) -> ApiServer {
    let server = server().await;
    create(&server, DEFINITIONS, definition(scope, &spec())).await;
    server
}

fn widget(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"x": "1"}})
}

fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[field] = value;
    object
}

#[tokio::test]
async fn a_body_of_another_kind_or_version_is_rejected() {
    let server = with_widgets("Namespaced").await;
    let post = async |body: Value| call(&server, "POST", WIDGETS, body).await;
    let wrong_kind = post(with(widget("a"), "/kind", json!("Gadget"))).await;
    assert_eq!(wrong_kind.code, 422);
    assert_eq!(
        wrong_kind.message(),
        "Gadget.example.com \"a\" is invalid: kind: Invalid value: \"Gadget\": must be Widget"
    );
    let wrong_version = post(with(widget("a"), "/apiVersion", json!("example.com/v2"))).await;
    assert_eq!(wrong_version.code, 400);
    assert_eq!(
        wrong_version.message(),
        "the API version in the data (example.com/v2) does not match the expected API version (example.com/v1)"
    );
    for (body, message) in [
        (
            r#"{"metadata": {"name": "b"}}"#,
            "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in \
             '{\"metadata\": {\"name\": \"b\"}}' ({\"metadata\": {\"name\": \"b\"}})",
        ),
        (
            "{nope",
            "the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse \
             error: invalid character 'n' looking for beginning of object key string ({nope)",
        ),
    ] {
        let answer = send(&server, "POST", WIDGETS, "application/json", body).await;
        assert_eq!((answer.code, answer.message()), (400, message));
    }
    let text = send(&server, "POST", WIDGETS, "text/plain", "{}").await;
    assert_eq!(
        text.message(),
        "the body of the request was in an unknown format - accepted media types include: application/json, \
         application/yaml, application/vnd.kubernetes.protobuf"
    );
}

#[tokio::test]
async fn unknown_fields_of_the_metadata_are_reported_first() {
    let server = with_widgets("Namespaced").await;
    let body = with(with(widget("a"), "/metadata/zzz", json!(1)), "/spec/nope", json!(1));
    let body = with(body, "/extra", json!({}));
    let strict = call(&server, "POST", &format!("{WIDGETS}?fieldValidation=Strict"), body.clone()).await;
    assert_eq!(
        strict.message(),
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \
         \"metadata.zzz\", unknown field \"extra\", unknown field \"spec.nope\""
    );
    let warned = call(&server, "POST", WIDGETS, body).await;
    assert_eq!(warned.code, 201);
    assert_eq!(
        warned.warnings,
        [
            r#"299 - "unknown field \"metadata.zzz\"""#,
            r#"299 - "unknown field \"extra\"""#,
            r#"299 - "unknown field \"spec.nope\"""#
        ]
    );
    assert_eq!(warned.body["spec"], json!({"x": "1"}));
}

#[tokio::test]
async fn whole_floats_are_stored_as_integers() {
    let server = with_widgets("Namespaced").await;
    let body = json!({"n": 2.0}).to_string();
    let body = format!(
        r#"{{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {{"name": "a"}}, "spec": {body}}}"#
    );
    let made = send(&server, "POST", WIDGETS, "application/json", &body).await;
    assert_eq!(made.body["spec"].to_string(), r#"{"n":2}"#);
}

#[tokio::test]
async fn cluster_scoped_objects_are_not_served_in_namespaces() {
    let server = with_widgets("Cluster").await;
    let body = with(widget("a"), "/metadata/namespace", json!("default"));
    let made = create(&server, "/apis/example.com/v1/widgets", body).await;
    assert_eq!(made["metadata"].get("namespace"), None);
    for method in ["GET", "POST"] {
        let answer = call(&server, method, WIDGETS, Value::Null).await;
        assert_eq!((answer.code, answer.body), (404, json!("404 page not found\n")));
    }
}

#[tokio::test]
async fn a_put_of_another_object_names_both_uids() {
    let server = with_widgets("Namespaced").await;
    let made = create(&server, WIDGETS, widget("a")).await;
    let uid = made["metadata"]["uid"].as_str().unwrap();
    let other = with(made.clone(), "/metadata/uid", json!("0-0"));
    let answer = call(&server, "PUT", &format!("{WIDGETS}/a"), other).await;
    assert_eq!(
        (answer.code, answer.message()),
        (
            409,
            &*format!(
                "Operation cannot be fulfilled on widgets.example.com \"a\": StorageError: invalid object, Code: 4, \
                 Key: /registry/example.com/widgets/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
                 failed: UID in precondition: 0-0, UID in object meta: {uid}"
            )
        )
    );
    let without = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
    let answer = call(&server, "PUT", &format!("{WIDGETS}/a"), without).await;
    assert_eq!(
        answer.message(),
        "widgets.example.com \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    );
}

#[tokio::test]
async fn metadata_is_checked_twice_on_update_and_finalizers_are_warned_about_when_new() {
    let server = with_widgets("Namespaced").await;
    let held = with(widget("a"), "/metadata/finalizers", json!(["plain", "example.com/x", "has.dot"]));
    let made = call(&server, "POST", WIDGETS, held).await;
    assert_eq!(
        made.warnings,
        [
            r#"299 - "metadata.finalizers: \"has.dot\": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers""#,
            r#"299 - "metadata.finalizers: \"plain\": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers""#,
        ]
    );
    let path = format!("{WIDGETS}/a");
    let same = patch(&server, "merge", &path, json!({"spec": {"x": "2"}})).await;
    assert_eq!((same.code, same.warnings.len()), (200, 0));
    call(&server, "DELETE", &path, Value::Null).await;
    let more =
        patch(&server, "merge", &path, json!({"metadata": {"finalizers": ["plain", "example.com/y"]}})).await;
    assert_eq!(more.code, 422);
    assert_eq!(more.body["details"]["causes"].as_array().unwrap().len(), 2);
    assert_eq!(more.body["details"]["causes"][0], more.body["details"]["causes"][1]);
}

#[tokio::test]
async fn a_scale_of_unset_replicas_can_be_written_but_not_read() {
    let server = with_widgets("Namespaced").await;
    create(&server, WIDGETS, widget("a")).await;
    let path = format!("{WIDGETS}/a/scale");
    let answer = call(&server, "GET", &path, Value::Null).await;
    assert_eq!(
        answer.message(),
        "Internal error occurred: the spec replicas field \".spec.replicas\" does not exist"
    );
    let answer = patch(&server, "merge", &path, json!({"metadata": {}})).await;
    assert_eq!(
        (answer.code, answer.message()),
        (400, "the spec replicas field \".spec.replicas\" cannot be empty")
    );
    let answer = patch(&server, "merge", &path, json!({"spec": {"replicas": 3}})).await;
    assert_eq!((answer.code, &answer.body["spec"]), (200, &json!({"replicas": 3})));
    let object = call(&server, "GET", &format!("{WIDGETS}/a"), Value::Null).await.body;
    assert_eq!((&object["spec"]["replicas"], &object["metadata"]["generation"]), (&json!(3), &json!(2)));
}

#[tokio::test]
async fn watches_end_when_their_definition_is_deleted() {
    let server = with_widgets("Namespaced").await;
    create(&server, WIDGETS, widget("a")).await;
    let watch = watch_to_the_end(&server, &format!("{WIDGETS}?watch=true")).await;
    let deleted = call(&server, "DELETE", &format!("{DEFINITIONS}/widgets.example.com"), Value::Null).await;
    let conditions = deleted.body["status"]["conditions"].as_array().unwrap();
    assert_eq!(conditions.last().unwrap()["reason"], "InstanceDeletionPending");
    assert_eq!(deleted.body["metadata"]["generation"], 1);
    let event = |kind: &str| (kind.to_owned(), "a".to_owned());
    assert_eq!(watch.await, [event("ADDED"), event("DELETED")]);
}

#[tokio::test]
async fn a_changed_definition_ends_watches_and_applies_to_stored_objects() {
    let server = with_widgets("Namespaced").await;
    create(&server, WIDGETS, widget("a")).await;
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let watch = watch_to_the_end(&server, &format!("{WIDGETS}?watch=true")).await;
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let change = json!([
        {"op": "add", "path": format!("{schema}/fresh"), "value": {"type": "string", "default": "yes"}},
        {"op": "remove", "path": format!("{schema}/x")},
    ]);
    assert_eq!(patch(&server, "json", &path, change).await.code, 200);
    assert_eq!(watch.await, [("ADDED".to_owned(), "a".to_owned())]);
    let object = call(&server, "GET", &format!("{WIDGETS}/a"), Value::Null).await.body;
    assert_eq!(object["spec"], json!({"fresh": "yes"}));
}

#[tokio::test]
async fn versions_with_other_schemas_show_only_their_own_fields() {
    let server = server().await;
    let mut two = definition("Namespaced", &spec());
    let mut second = two["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    second["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({"type": "object", "properties": {"replicas": {"type": "integer"}, "y": {"type": "string", "default": "d"}}});
    two["spec"]["versions"].as_array_mut().unwrap().push(second);
    create(&server, DEFINITIONS, two).await;
    create(&server, WIDGETS, with(widget("a"), "/spec/replicas", json!(2))).await;
    let seen = call(&server, "GET", &format!("{}/a", WIDGETS.replace("v1", "v2")), Value::Null).await.body;
    assert_eq!((&seen["apiVersion"], &seen["spec"]), (&json!("example.com/v2"), &json!({"replicas": 2})));
    let sent =
        with(with(widget("b"), "/apiVersion", json!("example.com/v2")), "/spec", json!({"replicas": 1}));
    let made = create(&server, &WIDGETS.replace("v1", "v2"), sent).await;
    // The response is the stored object: the storage version does not have the field with the default.
    assert_eq!(made["spec"], json!({"replicas": 1}));
}
