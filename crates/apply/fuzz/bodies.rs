//! What the fuzz targets do with bytes. `tests/fuzz.rs` does the same with generated ones.

use k1s_apply::{
    FieldSet, Path, PathElement,
    managed::{ApplyError, FieldManager, ScaleManagers, Single, decode, encode},
    merge::{ManagerId, Managers, Operation, Updater},
    schema::{Atom, Field, List, Map, Relationship, Scalar, Schema, TypeRef},
    typed::{Duplicates, Typed},
};
use serde_json::{Value, json};

/// `FieldsV1`: what can be read is written in one form, and read as the same set.
pub(crate) fn fields_v1(data: &[u8]) {
    let Ok(json) = serde_json::from_slice::<Value>(data) else { return };
    let Ok(set) = FieldSet::from_fields_v1(&json) else { return };
    let written = set.to_fields_v1();
    let again = FieldSet::from_fields_v1(&written).expect("what was written can be read");
    assert_eq!(again, set);
    assert_eq!(again.to_fields_v1().to_string(), written.to_string());
    assert_eq!(set.paths().len(), set.len());
    assert_eq!(set.paths().into_iter().collect::<FieldSet>(), set);
    assert!(set.difference(&set).is_empty());
    assert_eq!(set.union(&set.leaves()), set);
}

/// `FieldsV1` as text, as a server stores it: read as the set that its JSON value is.
pub(crate) fn fields_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = FieldSet::from_fields_v1_json(text);
    let expected =
        serde_json::from_str::<Value>(text).ok().and_then(|json| FieldSet::from_fields_v1(&json).ok());
    match (read, expected) {
        (Ok(read), Some(expected)) => {
            assert_eq!(read, expected);
            let written = read.to_fields_v1_json();
            assert_eq!(FieldSet::from_fields_v1_json(&written).expect("what was written can be read"), read);
        }
        (Err(_), None) => {}
        (read, expected) => panic!("{text:?} is read as {read:?}, its value as {expected:?}"),
    }
}

/// A key of `FieldsV1`.
pub(crate) fn path_element(data: &[u8]) {
    let Ok(key) = std::str::from_utf8(data) else { return };
    let Ok(element) = PathElement::from_key(key) else { return };
    let written = element.to_key();
    let again = PathElement::from_key(&written).expect("what was written can be read");
    assert_eq!(again, element);
    assert_eq!(again.to_key(), written);
    let _ = element.to_string();
}

/// `metadata.managedFields`, as it is stored and as a client sends it.
pub(crate) fn entries(data: &[u8]) {
    let Ok(json) = serde_json::from_slice::<Value>(data) else { return };
    if let Ok(managers) = decode(Some(&json)) {
        let written = encode(&managers);
        assert_eq!(decode(written.as_ref()).expect("what was written can be read"), managers);
    }
    let schema = Schema::new();
    let versions = Single::new("v1", &schema, Schema::deduced());
    let manager = FieldManager::new(&versions, "v1", "ConfigMap", "2024-01-01T00:00:00Z");
    let object = |entries: Option<&Value>, value: &str| {
        let mut object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": value}});
        if let (Some(entries), Some(metadata)) = (entries, object["metadata"].as_object_mut()) {
            metadata.insert("managedFields".into(), entries.clone());
        }
        object
    };
    for (live, sent) in [(Some(&json), None), (None, Some(&json)), (Some(&json), Some(&json))] {
        let live = object(live, "a");
        let mut new = object(sent, "b");
        manager.update(&live, &mut new, "me");
        let _ = manager.apply(&new, &object(None, "c"), "you", true);
        let _ = manager.extract(&live, "you");
    }
    stored(&json, &object);
}

/// The annotation of a client-side apply, with any text: kubectl's first server-side apply takes a field from it if the annotation
/// has that field with the value that it still has.
pub(crate) fn last_applied(data: &[u8]) {
    const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let Ok(text) = std::str::from_utf8(data) else { return };
    let schema = Schema::new();
    let versions = Single::new("v1", &schema, Schema::deduced());
    let manager = FieldManager::new(&versions, "v1", "ConfigMap", "2024-01-01T00:00:00Z");
    let empty = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let mut live = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "annotations": {ANNOTATION: text}}, "data": {"k": "a", "l": "a"}});
    manager.update(&empty, &mut live, "kubectl-client-side-apply");
    let config =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "b"}});

    let last = serde_json::from_str::<Value>(text).unwrap_or_default();
    let is_kubectls = last["apiVersion"] == "v1" && last["data"]["k"] == "a";
    match manager.apply(&live, &config, "kubectl", false) {
        Ok(applied) => {
            assert!(is_kubectls, "{text:?} gives kubectl a field");
            assert_eq!(applied.object["data"], json!({"k": "b", "l": "a"}));
            let annotation = applied.object["metadata"]["annotations"][ANNOTATION].as_str();
            let annotated =
                annotation.map(|text| serde_json::from_str::<Value>(text).expect("JSON was written"));
            assert_eq!(annotated.as_ref(), Some(&config));
        }
        Err(ApplyError::Conflicts(conflicts)) => {
            assert!(!is_kubectls, "{text:?} gives kubectl nothing");
            let paths: Vec<String> = conflicts.0.iter().map(|conflict| conflict.path.to_string()).collect();
            assert_eq!(paths, [".data.k"]);
        }
        Err(other) => panic!("{text:?}: {other}"),
    }
    let other = manager.apply(&live, &config, "other", false);
    assert!(matches!(other, Err(ApplyError::Conflicts(_))), "{text:?} is about kubectl alone");
}

/// Entries as a server stores them, with `fieldsV1` as text that may be anything.
fn stored(entries: &Value, object: &dyn Fn(Option<&Value>, &str) -> Value) {
    let schema = Schema::new();
    let versions = Single::new("v1", &schema, Schema::deduced());
    let manager = FieldManager::new(&versions, "v1", "ConfigMap", "2024-01-01T00:00:00Z")
        .fields_as_json()
        .schemas_are_unchanged(true);
    let mut entries = entries.clone();
    for entry in entries.as_array_mut().into_iter().flatten() {
        if let Some(fields) = entry.get_mut("fieldsV1").filter(|fields| !fields.is_string()) {
            *fields = fields.to_string().into();
        }
    }
    let mut live = object(Some(&entries), "a");
    live["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": object(None, "a").to_string()});
    for name in ["you", "kubectl"] {
        for value in ["a", "b"] {
            let config = object(None, value);
            if let (Ok(true), Ok(applied)) =
                (manager.is_applied(&live, &config, name), manager.apply(&live, &config, name, false))
            {
                assert!(
                    !applied.changed,
                    "{name} has applied {config} to {live}, and is told that it changes something"
                );
            }
            let _ = manager.apply(&live, &config, name, true);
        }
        let mut new = object(None, "b");
        manager.update(&live, &mut new, name);
    }

    let paths = [("v1".to_owned(), Some(Path::fields(["data", "k"])))];
    let scale = ScaleManagers { version: "v1", paths: &paths };
    if let Ok(of_scale) = scale.of_scale(Some(&entries)) {
        // Who wrote the Scale as it was keeps what they had.
        let _ = scale.of_parent(Some(&entries), of_scale.as_ref()).expect("both can be read");
        let _ = scale.of_parent(Some(&entries), None);
    }
    let _ = scale.of_parent(None, Some(&entries));
}

/// Three objects of a fixed schema, of which none has to match it: nothing panics, and what was applied is there.
pub(crate) fn merge(data: &[u8]) {
    let values: Vec<Value> =
        serde_json::Deserializer::from_slice(data).into_iter().map_while(Result::ok).take(3).collect();
    let [old, new, config] = &*values else { return };
    let (schema, ty) = schema();
    let typed = |value| Typed::new(value, &schema, ty, "v1");
    let (old, new, config) = (typed(old), typed(new), typed(config));
    let all_valid = old.validate(Duplicates::Allow).is_ok()
        && new.validate(Duplicates::Allow).is_ok()
        && config.validate(Duplicates::Refuse).is_ok();

    let comparison = old.compare(&new);
    let merged = old.merge(&config);
    if all_valid {
        // A difference is none in the other direction.
        let (there, back) = (comparison.expect("valid"), new.compare(&old).expect("valid"));
        assert_eq!((&there.added, &there.removed), (&back.removed, &back.added));
        assert_eq!(there.modified, back.modified);
        assert!(merged.is_ok());
    }
    let fields = config.field_set();
    for object in [&old, &new, &config] {
        let _ = object.remove(&fields);
        let _ = object.extract(&fields);
        let _ = object.remove(&fields.with_named_fields(&schema, ty));
        let _ = object.reconcile(&fields);
    }

    let versions = Single::new("v1", &schema, ty);
    let updater = Updater::new(&versions);
    let id = |name: &str| ManagerId {
        name: name.into(),
        operation: Operation::Apply,
        api_version: String::new(),
        subresource: String::new(),
    };
    let mut managers = Managers::new();
    let empty = json!({});
    let _ = updater.apply(&typed(&empty), &config, &mut managers, &id("a"), true);
    let _ = updater.update(&config, &old, &mut managers);
    let _ = updater.apply(&old, &new, &mut managers, &id("b"), true);
    let _ = updater.apply(&old, &config, &mut managers, &id("b"), false);
    let _ = updater.apply(&old, &config, &mut managers, &id("a"), true);
}

/// One letter per field, so that a fuzzer finds them: `s`calar, `n`umber, se`t`, `k`eyed list, `a`tomic list, `m`ap,
/// `d`educed, `r`ecursive.
fn schema() -> (Schema, TypeRef) {
    use Relationship::{Atomic, Granular};
    let mut schema = Schema::new();
    let string: TypeRef = schema.add(Atom::scalar(Scalar::String)).into();
    let number: TypeRef = schema.add(Atom::scalar(Scalar::Numeric)).into();
    let list = |element, relationship, keys| Atom::list(List { element, relationship, keys });
    let set: TypeRef = schema.add(list(string, Granular, Vec::new())).into();
    let atomic: TypeRef = schema.add(list(Schema::deduced(), Atomic, Vec::new())).into();
    let root = schema.reserve();
    let keyed: TypeRef = schema.add(list(root.into(), Granular, vec!["s".into(), "n".into()])).into();
    let map: TypeRef = schema
        .add(Atom::map(Map { fields: Vec::new(), element: Some(root.into()), relationship: Granular }))
        .into();
    let fields = [
        ("a", atomic, None),
        ("d", Schema::deduced(), None),
        ("k", keyed, None),
        ("m", map, None),
        ("n", number, Some(json!(1))),
        ("r", TypeRef::from(root).with(Atomic), None),
        ("s", string, None),
        ("t", set, None),
    ];
    let fields = fields.map(|(name, ty, default)| Field { name: name.into(), ty, default }).to_vec();
    schema.set(root, Atom::map(Map { fields, element: None, relationship: Granular }));
    (schema, root.into())
}
