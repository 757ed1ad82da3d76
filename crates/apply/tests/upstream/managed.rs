//! `metadata.managedFields`, as the tests of kube-apiserver's field manager have them.
//!
//! A step is `{"apply": manager, "now": time, "object": o}`, or `force` or `update` instead of `apply`. After it, the object is
//! `live` (without it: `object`) with the entries in `managed`; or `error` is the text of the error.

use std::collections::HashMap;

use k1s_apply::{
    Path, PathElement,
    managed::{ApplyError, FieldManager, ScaleManagers, Single, decode, encode},
    merge::{Conflict, Conflicts, ManagerId, Operation},
};
use serde_json::{Value, json};

use crate::support::{Check, Named, expect, path, run};

/// Removes the entries of an object, and returns them as the case files have them.
fn take_entries(object: &mut Value) -> Value {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let mut entries =
        metadata.and_then(|metadata| metadata.remove("managedFields")).unwrap_or_else(|| json!([]));
    for entry in entries.as_array_mut().unwrap() {
        assert_eq!(entry.as_object_mut().unwrap().remove("fieldsType"), Some("FieldsV1".into()));
    }
    entries
}

fn field_manager(case: &Value, schemas: &HashMap<String, Named>) -> Check {
    let text = |name: &str| case[name].as_str().unwrap();
    let schema = &schemas[text("schema")];
    let versions = Single::new(text("version"), &schema.schema, schema.root(Some(text("type"))).unwrap());
    let mut live = json!({"apiVersion": text("version"), "kind": text("resource")});
    for (i, step) in case["steps"].as_array().unwrap().iter().enumerate() {
        let manager =
            FieldManager::new(&versions, text("version"), text("resource"), step["now"].as_str().unwrap())
                .subresource(case.get("subresource").and_then(Value::as_str).unwrap_or_default());
        let object = &step["object"];
        let name = |what: &str| step.get(what).and_then(Value::as_str);
        let result = if let Some(name) = name("update") {
            let mut new = object.clone();
            manager.update(&live, &mut new, name);
            Ok(new)
        } else {
            let force = name("force").is_some();
            manager
                .apply(&live, object, name("apply").or(name("force")).unwrap(), force)
                .map(|applied| applied.object)
        };
        let check = |result: Result<Value, ApplyError>| match (result, step.get("error")) {
            (Err(error), Some(expected)) => {
                expect("error", &error.to_string().as_str(), &expected.as_str().unwrap()).map(|()| None)
            }
            (Err(error), None) => Err(error.to_string()),
            (Ok(_), Some(error)) => Err(format!("expected {error}")),
            (Ok(new), None) => {
                let mut actual = new.clone();
                let entries = take_entries(&mut actual);
                let mut expected = step.get("live").unwrap_or(object).clone();
                if let Some(metadata) = expected.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.remove("managedFields");
                }
                expect("object", &actual, &expected)?;
                expect("managed", &entries, &step["managed"])?;
                Ok(Some(new))
            }
        };
        if let Some(new) = check(result).map_err(|why| format!("step {i}: {why}"))? {
            live = new;
        }
    }
    Ok(())
}

fn check(case: &Value, schemas: &HashMap<String, Named>) -> Check {
    let entries = Some(&case["entries"]);
    let same = |what: &str, actual: Option<Value>| {
        let actual = actual.unwrap_or(Value::Null);
        expect(what, &actual, &case["expect"])
    };
    match case["kind"].as_str().unwrap() {
        "field_manager" => field_manager(case, schemas),
        "round_trip" => {
            let managers = decode(entries).map_err(|why| why.to_string())?;
            expect("entries", &encode(&managers).unwrap_or(Value::Null), &case["entries"])
        }
        "sort" => {
            // Only names, operations, times and subresources matter; the others are required.
            let complete = |entries: &Value| {
                let mut entries = entries.clone();
                for entry in entries.as_array_mut().into_iter().flatten() {
                    let entry = entry.as_object_mut().unwrap();
                    entry.insert("apiVersion".into(), "v1".into());
                    entry.insert("fieldsType".into(), "FieldsV1".into());
                    entry.insert("fieldsV1".into(), json!({"f:a": {}}));
                }
                entries
            };
            let managers = decode(Some(&complete(&case["entries"]))).map_err(|why| why.to_string())?;
            let expected = complete(&case["expect"]);
            let expected = if expected == json!([]) { Value::Null } else { expected };
            expect("entries", &encode(&managers).unwrap_or(Value::Null), &expected)
        }
        kind @ ("to_scale" | "to_parent") => {
            let paths: Vec<(String, Option<Path>)> = case["paths"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(version, keys)| (version.clone(), (!keys.is_null()).then(|| path(keys))))
                .collect();
            let scale = ScaleManagers { version: case["version"].as_str().unwrap(), paths: &paths };
            let result = if kind == "to_scale" {
                scale.of_scale(entries)
            } else {
                scale.of_parent(entries, Some(&case["scale"]))
            };
            same("entries", result.map_err(|why| why.to_string())?)
        }
        other => panic!("unknown kind {other}"),
    }
}

#[test]
fn managed_fields_of_objects() {
    run("managed_", check);
}

fn manager(name: &str, operation: Operation, api_version: &str, subresource: &str) -> ManagerId {
    ManagerId {
        name: name.into(),
        operation,
        api_version: api_version.into(),
        subresource: subresource.into(),
    }
}

/// `TestNewConflictError`, without times: no manager that kube-apiserver prints has one. `TestNewFromSets`.
#[test]
fn conflicts_are_printed_by_manager() {
    let replicas = || Path::fields(["spec", "replicas"]);
    let text = |conflicts: Vec<(ManagerId, Path)>| {
        let conflicts = conflicts.into_iter().map(|(manager, path)| Conflict { manager, path });
        Conflicts(conflicts.collect()).to_string()
    };
    assert_eq!(
        text(vec![(manager("foo", Operation::Update, "v1", ""), replicas())]),
        "Apply failed with 1 conflict: conflict with \"foo\" using v1: .spec.replicas"
    );
    assert_eq!(
        text(vec![
            (manager("bar", Operation::Apply, "", ""), Path::fields(["metadata", "labels", "app"])),
            (manager("foo", Operation::Update, "v1", ""), replicas()),
        ]),
        "Apply failed with 2 conflicts: conflicts with \"bar\":\n- .metadata.labels.app\nconflicts with \"foo\" using v1:\n- .spec.replicas"
    );
    let item = |field: &str| {
        let key = PathElement::key([("key", json!("a")), ("id", json!(2))]);
        Path(vec![PathElement::field("list"), key, PathElement::field(field)])
    };
    let alice = || manager("Alice", Operation::Apply, "", "");
    let bob = || manager("Bob", Operation::Apply, "", "");
    assert_eq!(
        text(vec![
            (alice(), Path::fields(["value"])),
            (alice(), item("key")),
            (bob(), Path::fields(["key"])),
            (bob(), item("id")),
        ]),
        "Apply failed with 4 conflicts: conflicts with \"Alice\":\n- .value\n- .list[id=2,key=\"a\"].key\nconflicts with \"Bob\":\n- .key\n- .list[id=2,key=\"a\"].id"
    );
    assert_eq!(
        text(vec![(manager("foo", Operation::Update, "v1", "scale"), replicas())]),
        "Apply failed with 1 conflict: conflict with \"foo\" with subresource \"scale\" using v1: .spec.replicas"
    );
}

/// `TestLargeLastApplied`: the annotation is removed if it becomes too large.
#[test]
fn a_large_last_applied_annotation_is_removed() {
    const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let config = |keys: usize, annotations: usize| {
        let name = |i| format!("this-key-is-very-long-so-as-to-create-a-very-large-serialized-fieldset-{i}");
        let entries =
            |count| (0..count).map(|i| (name(i), Value::from("A"))).collect::<serde_json::Map<_, _>>();
        let mut object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "large", "namespace": "default", "annotations": entries(annotations)},
            "data": entries(keys),
        });
        object["metadata"]["annotations"][ANNOTATION] = "nonempty".into();
        object
    };
    let schema = k1s_apply::schema::Schema::new();
    let versions = Single::new("v1", &schema, k1s_apply::schema::Schema::deduced());
    let manager = FieldManager::new(&versions, "v1", "ConfigMap", "2024-01-01T00:00:00Z");
    for (old, new, annotations) in [(1, 9999, 0), (2000, 2000, 2000)] {
        let empty = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        let live = manager.apply(&empty, &config(old, 0), "kubectl", false).unwrap().object;
        let text = live["metadata"]["annotations"][ANNOTATION].as_str().unwrap();
        assert!(text.starts_with(r#"{"apiVersion":"v1","data":{"this"#), "{text}");
        let live = manager.apply(&live, &config(new, annotations), "kubectl", false).unwrap().object;
        assert_eq!(live["metadata"]["annotations"].as_object().unwrap().len(), annotations);
    }
}

/// `TestHasFieldsType`, `TestHasAPIVersion` and `TestHasOperation`.
#[test]
fn entries_have_a_type_a_version_and_an_operation() {
    let entry = json!({
        "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:field": {}}, "manager": "foo", "operation": "Apply",
    });
    let result = |name: &str, value: Option<&str>| {
        let mut entry = entry.clone();
        match value {
            Some(value) => entry[name] = value.into(),
            None => drop(entry.as_object_mut().unwrap().remove(name)),
        }
        decode(Some(&json!([entry]))).map(drop).map_err(|why| why.to_string())
    };
    let error = |text: &str| Err(text.to_owned());
    assert_eq!(result("fieldsType", Some("FieldsV1")), Ok(()));
    assert_eq!(
        result("fieldsType", Some("FieldsV2")),
        error("invalid fieldsType \"FieldsV2\" in managed fields entry 0")
    );
    assert_eq!(result("fieldsType", None), error("missing fieldsType in managed fields entry 0"));
    assert_eq!(result("apiVersion", None), error("apiVersion must not be empty"));
    assert_eq!(result("operation", Some("Invalid")), error("operation must be `Apply` or `Update`"));
    assert_eq!(result("operation", None), error("operation must be `Apply` or `Update`"));
}

/// `TestExtractInto`: objects of Go types are the same in JSON.
#[test]
fn extract_finds_the_entry_of_the_manager_and_the_subresource() {
    let deployment = json!({
        "deployment": {"map": {"fields": {
            "metadata": {"map": {"fields": {"managedFields": {"ref": "entries"}}}},
            "spec": {"map": {"fields": {"replicas": "numeric", "paused": "boolean"}}},
            "status": {"map": {"fields": {"replicas": "numeric"}}},
        }}},
        "entries": {"list": {"of": "untyped", "atomic": true}},
    });
    let schema = Named::parse(&deployment);
    let versions = Single::new("apps/v1", &schema.schema, schema.root(Some("deployment")).unwrap());
    let entry = |name: &str, fields: Value, subresource: &str| {
        json!({"manager": name, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields,
            "subresource": subresource})
    };
    let replicas = || json!({"f:spec": {"f:replicas": {}}});
    let extract = |object: Value, entries: Vec<Value>, name: &str, subresource: &str| {
        let mut object = object;
        object["metadata"] = json!({"managedFields": entries});
        let manager = FieldManager::new(&versions, "apps/v1", "Deployment", "").subresource(subresource);
        let mut extracted = manager.extract(&object, name).unwrap()?;
        let parts = extracted.as_object_mut().unwrap();
        for name in ["apiVersion", "kind", "metadata"] {
            parts.remove(name);
        }
        Some(extracted)
    };
    let one = json!({"spec": {"replicas": 1}});
    assert_eq!(extract(one.clone(), vec![entry("mgr999", replicas(), "")], "mgr1", ""), None);
    assert_eq!(extract(one.clone(), vec![entry("mgr1", replicas(), "")], "mgr1", ""), Some(one));
    let both = json!({"spec": {"replicas": 1, "paused": true}});
    let paused = json!({"f:spec": {"f:paused": {}}});
    assert_eq!(
        extract(both, vec![entry("mgr1", replicas(), ""), entry("mgr2", paused, "")], "mgr2", ""),
        Some(json!({"spec": {"paused": true}}))
    );
    let status = json!({"spec": {"replicas": null}, "status": {"replicas": 1}});
    let fields = json!({"f:status": {"f:replicas": {}}});
    assert_eq!(
        extract(status, vec![entry("mgr1", fields, "status")], "mgr1", "status"),
        Some(json!({"status": {"replicas": 1}}))
    );
}

/// The order of upstream's identifiers, which are JSON: `{"manager":"a","operation":"Apply","subresource":"status"}`.
#[test]
fn managers_are_sorted_as_their_identifiers() {
    let sorted = [
        manager("a b", Operation::Apply, "", ""),
        manager("a", Operation::Apply, "", "scale"),
        manager("a", Operation::Apply, "", "status"),
        manager("a", Operation::Apply, "", ""),
        manager("a", Operation::Update, "v1", "status"),
        manager("a", Operation::Update, "v1", ""),
        manager("a", Operation::Update, "v1beta1", ""),
        manager("ab", Operation::Apply, "", ""),
        manager("", Operation::Apply, "", ""),
    ];
    assert!(sorted.is_sorted(), "{sorted:?}");
}

/// `TestFieldManagerUpdateNoErrors`: if owners cannot be computed, they stay.
#[test]
fn an_update_that_cannot_be_tracked_keeps_the_managers() {
    let pod = json!({"pod": {"map": {"fields": {
        "apiVersion": "string", "kind": "string",
        "metadata": {"map": {"fields": {"labels": {"map": {"of": "string"}}}}},
    }}}});
    let schema = Named::parse(&pod);
    let versions = Single::new("v1", &schema.schema, schema.root(Some("pod")).unwrap());
    let manager = FieldManager::new(&versions, "v1", "Pod", "2024-01-01T00:00:00Z");
    let pod = |labels: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": labels}});
    let mut live = pod(json!({"one": "true"}));
    manager.update(&json!({"apiVersion": "v1", "kind": "Pod"}), &mut live, "me");
    let entries = live["metadata"]["managedFields"].clone();
    assert!(entries.is_array());
    let mut new = pod(json!({"one": "true", "two": 2}));
    manager.update(&live, &mut new, "you");
    assert_eq!(new["metadata"]["managedFields"], entries);
}
