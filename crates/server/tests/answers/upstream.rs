//! Upstream's integration tests of definitions: pruning, defaulting, list types and validation, each with its schemas.

use k1s_server::ApiServer;
use serde_json::{Value, json};

use crate::client::{Answer, call, create, server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const FOOS: &str = "/apis/tests.example.com/v1beta1/foos";
const DEFINED: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.tests.example.com";

/// Versions with their schemas, the first of which is stored.
fn versions(schemas: &[(&str, Value)]) -> Value {
    let version = |(at, (name, schema)): (usize, &(&str, Value))| {
        json!({"name": name, "served": true, "storage": at == 0, "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}})
    };
    schemas.iter().enumerate().map(version).collect()
}

fn definition(versions: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.tests.example.com"},
        "spec": {"group": "tests.example.com", "scope": "Cluster", "versions": versions,
            "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"}},
    })
}

/// A server with a definition of foos in one version.
async fn defined(schema: Value) -> ApiServer {
    let server = server().await;
    create(&server, DEFINITIONS, definition(&versions(&[("v1beta1", schema)]))).await;
    server
}

/// A merge patch.
async fn patch(server: &ApiServer, path: &str, body: Value) -> Answer {
    crate::client::patch(server, "merge", path, body).await
}

/// A foo with these fields.
fn foo(fields: &Value) -> Value {
    let mut object =
        json!({"apiVersion": "tests.example.com/v1beta1", "kind": "Foo", "metadata": {"name": "foo"}});
    merge(&mut object, fields);
    object
}

fn merge(object: &mut Value, fields: &Value) {
    for (key, value) in fields.as_object().unwrap() {
        match (object.get_mut(key), value) {
            (Some(inner @ Value::Object(_)), Value::Object(_)) => merge(inner, value),
            _ => object[key] = value.clone(),
        }
    }
}

/// Checks which of these paths an object has.
#[track_caller]
fn has(object: &Value, there: &[&str], gone: &[&str]) {
    let found = |path: &&str| object.pointer(&format!("/{}", path.replace('.', "/"))).is_some();
    for path in there {
        assert!(found(path), "{path} is missing: {object}");
    }
    for path in gone {
        assert!(!found(path), "{path} is there: {object}");
    }
}

fn two_fields() -> Value {
    json!({"type": "object", "properties": {"alpha": {"type": "string"}, "beta": {"type": "number"}}})
}

fn unspecified() -> Value {
    json!({"unspecified": "bar", "alpha": "abc", "beta": 42.0, "metadata": {"unspecified": "bar", "labels": {"foo": "bar"}}})
}

/// `TestPruningCreate`, `TestPruningPatch`, `TestPruningStatus`, `TestPruningFromStorage`
#[tokio::test]
async fn unknown_fields_are_pruned() {
    let server = defined(two_fields()).await;
    let (there, gone) = (["alpha", "beta", "metadata.labels.foo"], ["unspecified", "metadata.unspecified"]);
    has(&create(&server, FOOS, foo(&unspecified())).await, &there, &gone);
    let other = json!({"metadata": {"name": "other"}});
    create(&server, FOOS, foo(&other)).await;
    let patched = patch(&server, &format!("{FOOS}/other"), unspecified()).await;
    assert_eq!(patched.code, 200);
    has(&patched.body, &there, &gone);

    let status = json!({"type": "object", "properties": {"status": two_fields()}});
    let server = defined(status).await;
    let mut created = create(&server, FOOS, foo(&json!({}))).await;
    merge(
        &mut created,
        &json!({"status": {"unspecified": "bar", "alpha": "abc", "beta": 42.0}, "metadata": {"unspecified": "bar"}}),
    );
    let updated = call(&server, "PUT", &format!("{FOOS}/foo/status"), created).await;
    has(&updated.body, &["status.alpha", "status.beta"], &["status.unspecified", "metadata.unspecified"]);

    // What was stored while it was known.
    let mut wider = two_fields();
    wider["properties"]["unspecified"] = json!({"type": "string"});
    let server = defined(wider).await;
    has(&create(&server, FOOS, foo(&unspecified())).await, &["unspecified"], &[]);
    let narrower = json!({"spec": {"versions": versions(&[("v1beta1", two_fields())])}});
    assert_eq!(patch(&server, DEFINED, narrower).await.code, 200);
    let read = call(&server, "GET", &format!("{FOOS}/foo"), Value::Null).await;
    has(&read.body, &there, &["unspecified"]);
}

/// `TestPruningCreatePreservingUnknownFields`
#[tokio::test]
async fn unknown_fields_are_preserved_where_the_schema_says_so() {
    let object = |preserves: bool| match preserves {
        true => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        false => json!({"type": "object"}),
    };
    let mut schema = two_fields();
    schema["x-kubernetes-preserve-unknown-fields"] = true.into();
    for (name, preserves) in [("preserving", true), ("pruning", false)] {
        let mut outer = object(preserves);
        outer["properties"] = json!({"preserving": object(true), "pruning": object(false)});
        schema["properties"][name] = outer;
    }
    let server = defined(schema).await;
    let inner = json!({"unspecified": "bar", "unspecifiedObject": {"unspecified": "bar"},
        "pruning": {"unspecified": "bar"}, "preserving": {"unspecified": "bar"}});
    let mut fields = unspecified();
    merge(&mut fields, &json!({"pruning": inner, "preserving": inner}));
    has(
        &create(&server, FOOS, foo(&fields)).await,
        &[
            "unspecified",
            "alpha",
            "beta",
            "metadata.labels.foo",
            "pruning.pruning",
            "pruning.preserving.unspecified",
            "preserving.unspecified",
            "preserving.unspecifiedObject.unspecified",
            "preserving.pruning",
            "preserving.preserving.unspecified",
        ],
        &[
            "metadata.unspecified",
            "pruning.unspecified",
            "pruning.unspecifiedObject",
            "pruning.pruning.unspecified",
            "preserving.pruning.unspecified",
        ],
    );
}

/// `TestPruningEmbeddedResources`
#[tokio::test]
async fn embedded_resources_are_pruned() {
    let pruning = json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"specified": {"type": "string"}}});
    let preserving = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    let mut nested = preserving.clone();
    nested["properties"] = json!({"embeddedPruning": pruning});
    let properties =
        json!({"embeddedPruning": pruning, "embeddedPreserving": preserving, "embeddedNested": nested});
    let server = defined(json!({"type": "object", "properties": properties})).await;
    let own = |metadata: Value| json!({"apiVersion": "foo/v1", "kind": "Foo", "metadata": metadata});
    let embedded = |metadata: &Value, more: Value| {
        let mut object = own(metadata.clone());
        merge(&mut object, &more);
        object
    };
    let before = json!({"name": "foo", "unspecified": "bar"});
    let sent = |more: Value| {
        let mut object = embedded(&before, more);
        object["unspecified"] = "bar".into();
        object
    };
    let created = create(
        &server,
        FOOS,
        foo(&json!({
            "embeddedPruning": sent(json!({"specified": "bar"})),
            "embeddedPreserving": sent(json!({})),
            "embeddedNested": sent(json!({"embeddedPruning": sent(json!({"specified": "bar"}))})),
        })),
    )
    .await;
    let after = json!({"name": "foo"});
    let pruned = embedded(&after, json!({"specified": "bar"}));
    assert_eq!(created["embeddedPruning"], pruned);
    assert_eq!(created["embeddedPreserving"], embedded(&after, json!({"unspecified": "bar"})));
    assert_eq!(
        created["embeddedNested"],
        embedded(&after, json!({"unspecified": "bar", "embeddedPruning": pruned}))
    );
}

/// `TestListTypes`
#[tokio::test]
async fn lists_that_are_maps_or_sets_have_no_duplicates() {
    let map = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"],
        "items": {"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}});
    let set = json!({"type": "array", "x-kubernetes-list-type": "set",
        "items": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "integer"}}});
    let properties = json!({"correct-map": map, "correct-set": set, "invalid-map": map, "invalid-set": set});
    let server = defined(json!({"type": "object", "properties": properties})).await;
    let maps = json!([{"a": 1, "b": 1, "c": "1"}, {"a": 1, "b": 2, "c": "2"}, {"a": 1, "b": 3, "c": "3"}]);
    let sets = json!([{"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 1}, {"a": 1, "b": 4}]);
    let and = |list: &Value, more: Value| {
        let mut list = list.clone();
        list.as_array_mut().unwrap().push(more);
        list
    };
    let correct = json!({"correct-map": maps, "correct-set": sets});
    let invalid = json!({"invalid-map": and(&maps, json!({"a": 1, "b": 1, "c": "4"})),
        "invalid-set": and(&sets, json!({"a": 1, "b": 1}))});
    let refused = async |method: &str, place: &str, body: Value| {
        let answer = call(&server, method, place, body).await;
        assert_eq!(answer.code, 422);
        let message = answer.message();
        assert!(message.contains("invalid-map") && message.contains("invalid-set"), "{message}");
        assert!(!message.contains("correct-"), "{message}");
    };
    let mut both = foo(&correct);
    merge(&mut both, &invalid);
    refused("POST", FOOS, both).await;
    let mut created = create(&server, FOOS, foo(&correct)).await;
    merge(&mut created, &invalid);
    refused("PUT", &format!("{FOOS}/foo"), created).await;
}

/// The schema of `testDefaulting`, in which `own` has a default, and other fields as well.
fn defaulting(own: &str, more: &[&str]) -> Value {
    let part = |replicas: i64| {
        let mut properties =
            json!({"replicas": {"type": "integer", "format": "int32", "minimum": 0, "default": replicas}});
        for name in ["a", "b", "c", "v1beta1", "v1beta2"] {
            properties[name] = json!({"type": "string"});
            if name == own || more.contains(&name) {
                properties[name]["default"] = name.to_uppercase().into();
            }
        }
        json!({"type": "object", "properties": properties})
    };
    json!({"type": "object", "properties": {"spec": part(1), "status": part(0)}})
}

/// `testDefaulting`: v1beta2 is stored, and not served.
#[tokio::test]
async fn objects_have_the_defaults_of_the_request_and_those_of_the_storage() {
    let of = |stored: &[&str], requested: &[&str]| {
        let mut versions = versions(&[
            ("v1beta2", defaulting("v1beta2", stored)),
            ("v1beta1", defaulting("v1beta1", requested)),
        ]);
        versions[0]["served"] = false.into();
        versions
    };
    let server = server().await;
    create(&server, DEFINITIONS, definition(&of(&["a", "b"], &["a", "b"]))).await;
    let change = async |stored: &[&str], requested: &[&str]| {
        let answer = patch(&server, DEFINED, json!({"spec": {"versions": of(stored, requested)}})).await;
        assert_eq!(answer.code, 200);
    };
    let get = async |query: &str| call(&server, "GET", &format!("{FOOS}{query}"), Value::Null).await.body;
    let one = "/foo";
    let both = ["spec.a", "spec.b", "status.a", "status.b"];
    let with_c = ["spec.a", "spec.b", "spec.c", "status.a", "status.b", "status.c"];

    let mut created = create(&server, FOOS, foo(&json!({"spec": {"a": "a"}, "status": {"b": "b"}}))).await;
    has(&created, &["spec.a", "spec.b", "spec.v1beta1", "spec.v1beta2", "spec.replicas"], &["status"]);
    let revision = created["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    created["status"] = json!({});
    let updated = call(&server, "PUT", &format!("{FOOS}/foo/status"), created).await.body;
    has(&updated, &[&both[..], &["status.replicas"]].concat(), &[]);
    // A default of the storage version is seen at once, whatever an object is read from.
    change(&["a", "b", "c"], &["a", "b"]).await;
    for query in ["/foo", "/foo?resourceVersion=0"] {
        has(&get(query).await, &with_c, &[]);
    }
    for query in ["", "?resourceVersion=0"] {
        has(&get(query).await["items"][0], &with_c, &[]);
    }
    let watch = format!("{FOOS}?watch=true&timeoutSeconds=1&resourceVersion={revision}");
    let event = call(&server, "GET", &watch, Value::Null).await.body;
    let version = json!("tests.example.com/v1beta1");
    assert_eq!((&event["type"], &event["object"]["apiVersion"]), (&json!("MODIFIED"), &version), "{event}");
    has(&event["object"], &with_c, &[]);
    // One of the version of the request is not, until something is written.
    change(&["a", "b"], &["a", "b", "c"]).await;
    let read = get(one).await;
    has(&read, &both, &["spec.c", "status.c"]);
    let updated = call(&server, "PUT", &format!("{FOOS}/foo/status"), read).await.body;
    has(&updated, &[&both[..], &["status.c"]].concat(), &["spec.c"]);
    change(&["a", "b"], &[]).await;
    has(&get(one).await, &[&both[..], &["status.c"]].concat(), &["spec.c"]);
}

/// `TestCustomResourceDefaultingOfMetaFields`
#[tokio::test]
async fn defaults_of_embedded_metadata_are_pruned() {
    let metadata = json!({"name": "Bar", "unknown": "unknown"});
    let object = json!({"apiVersion": "foos/v1", "kind": "Foo", "metadata": metadata});
    let text = |default: &str| json!({"type": "string", "default": default});
    let mut properties = json!({});
    for prefix in ["", "preserve-"] {
        let embedded = |more: Value| {
            let mut schema = json!({"type": "object", "x-kubernetes-embedded-resource": true});
            if prefix.is_empty() {
                schema["properties"] = json!({"foo": {"type": "string"}});
            } else {
                schema["x-kubernetes-preserve-unknown-fields"] = true.into();
            }
            merge(&mut schema, &more);
            schema
        };
        let with = |metadata: Value| json!({"properties": {"apiVersion": text("foos/v1"), "kind": text("Foo"), "metadata": metadata}});
        properties[format!("{prefix}fields")] = embedded(with(
            json!({"type": "object", "properties": {"name": text("Bar"), "unknown": text("unknown")}}),
        ));
        properties[format!("{prefix}fullMetadata")] =
            embedded(with(json!({"type": "object", "default": metadata})));
        properties[format!("{prefix}fullObject")] = embedded(json!({"default": object}));
        properties[format!("{prefix}spanning")] = json!({"type": "object", "properties": {"embedded": embedded(json!({}))}, "default": {"embedded": object}});
    }
    let server = defined(json!({"type": "object", "properties": properties})).await;
    let sent = json!({"fields": {"metadata": {}}, "fullMetadata": {}, "preserve-fields": {"metadata": {}}, "preserve-fullMetadata": {}});
    create(&server, FOOS, foo(&sent)).await;
    // As it is stored, without what a default would add again.
    let preserving = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let answers = [call(&server, "GET", &format!("{FOOS}/foo"), Value::Null).await.body, {
        let change = json!({"spec": {"versions": versions(&[("v1beta1", preserving)])}});
        assert_eq!(patch(&server, DEFINED, change).await.code, 200);
        call(&server, "GET", &format!("{FOOS}/foo"), Value::Null).await.body
    }];
    let expected = json!({"apiVersion": "foos/v1", "kind": "Foo", "metadata": {"name": "Bar"}});
    for answer in answers {
        for prefix in ["", "preserve-"] {
            for place in ["fields", "fullMetadata", "fullObject", "spanning/embedded"] {
                assert_eq!(answer.pointer(&format!("/{prefix}{place}")), Some(&expected), "{prefix}{place}");
            }
        }
    }
}

/// The schema of noxus.
fn noxu(required: &[&str]) -> Value {
    json!({"type": "object", "required": required, "properties": {
        "alpha": {"type": "string", "pattern": "^[a-zA-Z0-9_]*$"}, "beta": {"type": "number", "minimum": 10},
        "gamma": {"type": "string", "enum": ["foo", "bar", "baz"]}}})
}

/// `TestForProperValidationErrors`, `TestCustomResourceValidation`, `TestCustomResourceUpdateValidation`,
/// `TestCustomResourceValidationErrors`, `TestCRValidationOnCRDUpdate`, for equal and different schemas of two versions
#[tokio::test]
async fn objects_are_validated_by_the_schema_of_their_version() {
    for description in [Value::Null, json!("test")] {
        let of = |required: &[&str]| {
            let mut second = noxu(required);
            if description.is_string() {
                second["description"] = description.clone();
            }
            versions(&[("v1beta1", noxu(required)), ("v1", second)])
        };
        let server = server().await;
        create(&server, DEFINITIONS, definition(&of(&["alpha", "beta"]))).await;
        for version in ["v1beta1", "v1"] {
            let path = format!("/apis/tests.example.com/{version}/foos");
            let with = |fields: Value| {
                let mut object =
                    foo(&json!({"alpha": "foo_123", "beta": 10, "gamma": "bar", "delta": "hello"}));
                object["apiVersion"] = format!("tests.example.com/{version}").into();
                merge(&mut object, &fields);
                object.as_object_mut().unwrap().retain(|_, value| !value.is_null());
                object
            };
            let absent = json!({"alpha": null, "beta": null});
            for (fields, errors) in [
                (json!({"alpha": "foo_123!"}), &["alpha in body should match '^[a-zA-Z0-9_]*$'"][..]),
                (json!({"beta": 5}), &["beta in body should be greater than or equal to 10"]),
                (
                    json!({"gamma": "qux"}),
                    &["gamma: Unsupported value: \"qux\": supported values: \"foo\", \"bar\", \"baz\""],
                ),
                (absent.clone(), &["alpha: Required value", "beta: Required value"]),
                (
                    json!({"apiVersion": "tests.example.com/v2"}),
                    &[
                        "the API version in the data (tests.example.com/v2) does not match the expected API version",
                    ],
                ),
                (
                    json!({"kind": "SomethingElse"}),
                    &[
                        "SomethingElse.tests.example.com \"foo\" is invalid: kind: Invalid value: \"SomethingElse\": must be Foo",
                    ],
                ),
            ] {
                let answer = call(&server, "POST", &path, with(fields)).await;
                assert!(answer.code == 422 || answer.code == 400);
                for error in errors {
                    assert!(answer.message().contains(error), "{error}: {}", answer.message());
                }
            }
            let created = create(&server, &path, with(json!({}))).await;
            let mut changed = with(absent);
            changed["metadata"] = created["metadata"].clone();
            assert_eq!(call(&server, "PUT", &format!("{path}/foo"), changed).await.code, 422);
            call(&server, "DELETE", &format!("{path}/foo"), Value::Null).await;

            // A definition that becomes less strict counts for the next object.
            let strict = json!({"spec": {"versions": of(&["alpha", "beta", "gamma"])}});
            assert_eq!(patch(&server, DEFINED, strict).await.code, 200);
            let without = with(json!({"gamma": null}));
            assert_eq!(call(&server, "POST", &path, without.clone()).await.code, 422);
            let relaxed = json!({"spec": {"versions": of(&["alpha", "beta"])}});
            assert_eq!(patch(&server, DEFINED, relaxed).await.code, 200);
            create(&server, &path, without).await;
            call(&server, "DELETE", &format!("{path}/foo"), Value::Null).await;
        }
    }
}

/// `TestCustomResourceItemsValidation`: fields that are named like words of schemas
#[tokio::test]
async fn fields_may_have_the_names_of_words_of_schemas() {
    let list = |items: Value| json!({"type": "array", "items": items});
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let text = json!({"type": "string"});
    let plain = json!({"type": "object"});
    let mut defaulted = object(json!({"type": text, "items": list(plain.clone())}));
    defaulted["default"] = json!({"items": []});
    let mut path = object(json!({"path": text}));
    path["required"] = json!(["path"]);
    let downward = object(json!({"downwardAPI": object(json!({"items": list(path)}))}));
    let server = defined(object(json!({
        "items-no-type": object(json!({"items": list(plain.clone())})),
        "items-items-no-type": object(json!({"items": list(list(plain.clone()))})),
        "items-properties-items-no-type": object(json!({"items": list(object(json!({"items": list(plain.clone())})))})),
        "type-array-no-items": object(json!({"type": text})),
        "items-and-type": object(json!({"type": text, "items": list(plain)})),
        "default-with-items-and-no-type": defaulted,
        "issue-84880": object(json!({"volumes": list(downward)})),
    })))
    .await;
    let fields = json!({
        "items-no-type": {"items": [{}]}, "items-items-no-type": {"items": [[{}]]},
        "items-properties-items-no-type": {"items": [{"items": [{}]}]}, "type-array-no-items": {"type": "array"},
        "items-and-type": {"items": [{}], "type": "array"},
        "issue-84880": {"volumes": [{"downwardAPI": {"items": [{"path": "annotations"}]}}]},
    });
    let created = create(&server, FOOS, foo(&fields)).await;
    for (field, value) in fields.as_object().unwrap() {
        assert_eq!(created[field], *value);
    }
    assert_eq!(created["default-with-items-and-no-type"], json!({"items": []}));
}

/// `TestZeroValueValidation`
#[tokio::test]
async fn zero_values_stay_and_are_defaults() {
    let mut properties = json!({});
    let (mut sent, mut expected) = (json!({}), json!({}));
    for (name, zero, more) in [
        ("string", json!(""), json!({})),
        ("boolean", json!(false), json!({})),
        ("number", json!(0), json!({})),
        ("integer", json!(0), json!({})),
        ("array", json!([]), json!({"items": {"type": "string"}})),
        ("object", json!({}), json!({"properties": {"a": {"type": "string"}}})),
    ] {
        let mut schema = json!({"type": name});
        merge(&mut schema, &more);
        properties[name] = schema.clone();
        properties[format!("{name}_default")] = schema.clone();
        properties[format!("{name}_default")]["default"] = zero.clone();
        properties[format!("{name}_null")] = schema;
        properties[format!("{name}_null")]["nullable"] = true.into();
        sent[name] = zero.clone();
        sent[format!("{name}_null")] = Value::Null;
        expected[format!("{name}_default")] = zero;
    }
    let server = defined(json!({"type": "object", "properties": properties})).await;
    let mut created = create(&server, FOOS, foo(&sent)).await;
    merge(&mut expected, &sent);
    created
        .as_object_mut()
        .unwrap()
        .retain(|field, _| !["apiVersion", "kind", "metadata"].contains(&&**field));
    assert_eq!(created, expected);
}

/// `TestForbiddenFieldsInSchema`
#[tokio::test]
async fn schemas_may_not_use_everything_of_json_schema() {
    let server = server().await;
    let zeta = |unique: bool| {
        let mut schema = noxu(&["alpha", "beta"]);
        schema["properties"]["zeta"] =
            json!({"type": "array", "items": {"type": "object"}, "uniqueItems": unique});
        schema
    };
    let closed = json!({"type": "object", "required": ["alpha", "beta"], "additionalProperties": false});
    let mut reference = zeta(false);
    reference["$ref"] = "#/definition/zeta".into();
    for (schema, field) in
        [(closed, "additionalProperties"), (zeta(true), "uniqueItems"), (reference, "$ref")]
    {
        let body = definition(&versions(&[("v1beta1", noxu(&[])), ("v1", schema)]));
        let answer = call(&server, "POST", DEFINITIONS, body).await;
        assert_eq!(answer.code, 422);
        assert!(answer.message().contains(field), "{}", answer.message());
    }
    create(&server, DEFINITIONS, definition(&versions(&[("v1beta1", noxu(&[])), ("v1", zeta(false))]))).await;
}

/// `TestNonStructuralSchemaConditionForCRDV1`: two versions with the same schema
#[tokio::test]
async fn schemas_have_to_be_structural() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("structural_schemas.json")).unwrap();
    assert_eq!(cases.len(), 16);
    for case in &cases {
        let schema = &case["schema"];
        let mut versions = versions(&[("v1beta1", schema.clone()), ("v1", schema.clone())]);
        for version in versions.as_array_mut().unwrap() {
            version.as_object_mut().unwrap().remove("subresources");
        }
        let server = server().await;
        let answer = call(&server, "POST", DEFINITIONS, definition(&versions)).await;
        let texts = |field: &str| {
            let list = case[field].as_array().into_iter().flatten();
            list.map(|text| text.as_str().unwrap()).collect::<Vec<_>>()
        };
        let errors = texts("errors");
        assert_eq!(
            answer.code,
            if errors.is_empty() { 201 } else { 422 },
            "{}: {}",
            case["name"],
            answer.body
        );
        for error in errors {
            assert!(
                answer.message().contains(error),
                "{}: {error} is not in {}",
                case["name"],
                answer.message()
            );
        }
        for error in texts("unlike") {
            assert!(
                !answer.message().contains(error),
                "{}: {error} is in {}",
                case["name"],
                answer.message()
            );
        }
    }
}
