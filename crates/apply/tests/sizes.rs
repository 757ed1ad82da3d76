//! Large objects: every operation has to be close to linear. Quadratic ones would take minutes here.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use k1s_apply::{
    FieldSet, PathElement,
    managed::{FieldManager, Single, decode, encode},
    merge::{ManagerId, Managers, Operation, Owned, Updater},
    schema::Schema,
    typed::{Duplicates, Typed},
};
use serde_json::{Value, json};

const ITEMS: usize = 100_000;
/// For operations that have several passes: quadratic ones would still take long.
const FEWER: usize = 10_000;

fn set(from: usize, to: usize) -> Value {
    (from..to).map(|i| format!("s{i}")).collect()
}

fn items(from: usize, to: usize, value: usize) -> Value {
    (from..to).map(|i| json!({"name": format!("n{i}"), "value": value})).collect()
}

/// A set, and a list with keys.
fn lists(from: usize, to: usize) -> Value {
    json!({"set": set(from, to), "nested": {"items": items(from, to, 1)}})
}

fn id(name: &str) -> ManagerId {
    ManagerId {
        name: name.into(),
        operation: Operation::Apply,
        api_version: String::new(),
        subresource: String::new(),
    }
}

/// Runs each operation on two lists that have half of their items in common, in another order. An item has `fields` fields,
/// of which `modified` differ.
fn check_lists(old: Value, mut new: Value, at: &str, fields: usize, modified: usize) {
    let (schema, ty) = common::schema();
    new.pointer_mut(at).and_then(Value::as_array_mut).unwrap().reverse();
    let len = |value: &Value| value.pointer(at).and_then(Value::as_array).unwrap().len();
    let typed = |value: Value| Typed::new(&Value::Null, &schema, ty, "v1").with(value);
    let (old, new) = (typed(old), typed(new));

    new.validate(Duplicates::Refuse).unwrap();
    let comparison = old.compare(&new).unwrap();
    assert_eq!(comparison.removed.len(), ITEMS / 2 * fields);
    assert_eq!(comparison.added.len(), ITEMS / 2 * fields);
    assert_eq!(comparison.modified.len(), ITEMS / 2 * modified);

    let merged = old.merge(&new).unwrap();
    assert_eq!(len(&merged.value), ITEMS + ITEMS / 2);
    let owned = new.field_set();
    assert_eq!(owned.len(), ITEMS * fields);
    assert_eq!(FieldSet::from_fields_v1(&owned.to_fields_v1()).unwrap(), owned);
    assert_eq!(len(&merged.remove(&owned).value), ITEMS / 2);
}

#[test]
fn sets_with_many_values() {
    let object = |from, to| json!({"set": set(from, to)});
    check_lists(object(0, ITEMS), object(ITEMS / 2, ITEMS + ITEMS / 2), "/set", 1, 0);
}

#[test]
fn lists_with_many_keys() {
    let object = |from, to, value| json!({"nested": {"items": items(from, to, value)}});
    // The item itself, its name and its value.
    check_lists(object(0, ITEMS, 1), object(ITEMS / 2, ITEMS + ITEMS / 2, 2), "/nested/items", 3, 1);
}

#[test]
fn sets_with_many_paths() {
    let (schema, ty) = common::schema();
    let object = lists(0, FEWER);
    let object = Typed::new(&object, &schema, ty, "v1");
    let fields = object.field_set();
    assert_eq!(fields.paths().into_iter().rev().collect::<FieldSet>(), fields);
    assert_eq!(object.extract(&fields).value["set"].as_array().unwrap().len(), FEWER);
    assert!(object.reconcile(&fields).is_none());
    assert_eq!(fields.union(&fields), fields);
    assert!(fields.difference(&fields).is_empty());
}

#[test]
fn lists_with_many_duplicates() {
    let (schema, ty) = common::schema();
    let items: Vec<Value> = (0..FEWER).map(|i| json!({"name": "same", "value": i})).collect();
    let old = json!({"set": vec!["a"; FEWER], "nested": {"items": items}});
    let old = Typed::new(&old, &schema, ty, "v1");
    assert!(old.validate(Duplicates::Refuse).is_err());
    old.validate(Duplicates::Allow).unwrap();
    assert_eq!(old.field_set().len(), 2);
    let new = lists(0, FEWER);
    let new = Typed::new(&new, &schema, ty, "v1");
    assert_eq!(old.compare(&new).unwrap().removed.len(), 2);
    let merged = old.merge(&new).unwrap();
    assert_eq!(merged.value["set"].as_array().unwrap().len(), FEWER * 2);
}

/// No schema allows keys that are objects; they must not take long to refuse.
#[test]
fn keys_that_are_objects() {
    let (schema, ty) = common::schema();
    let items: Vec<Value> = (0..FEWER).map(|i| json!({"name": {"a": i}})).collect();
    let object = json!({"nested": {"items": items}});
    let object = Typed::new(&object, &schema, ty, "v1");
    // The first errors are kept.
    assert_eq!(object.validate(Duplicates::Refuse).unwrap_err().0.len(), 100);
    assert!(object.merge(&object).is_err());
    assert_eq!(object.field_set().len(), 2 * FEWER);
}

#[test]
fn many_items_are_applied_by_two_managers() {
    let (schema, ty) = common::schema();
    let versions = Single::new("v1", &schema, ty);
    let updater = Updater::new(&versions);
    let mut managers = Managers::new();
    let mut live = json!({});
    for (name, config) in [
        ("a", lists(0, FEWER / 2)),
        ("b", lists(FEWER / 4, FEWER / 4 * 3)),
        ("a", lists(0, FEWER / 4)),
        ("a", lists(0, 1)),
    ] {
        let typed = |value| Typed::new(value, &schema, ty, "v1");
        let new = updater.apply(&typed(&live), &typed(&config), &mut managers, &id(name), false).unwrap();
        live = new.map(|new| new.value.into_owned()).unwrap_or(live);
    }
    assert_eq!(live["set"].as_array().unwrap().len(), FEWER / 2 + 1);
}

#[test]
fn maps_with_many_keys() {
    let (schema, ty) = common::schema();
    let labels = |from: usize, to: usize| {
        (from..to).map(|i| (format!("k{i}"), Value::from("v"))).collect::<serde_json::Map<_, _>>()
    };
    let old = json!({"labels": labels(0, FEWER)});
    let new = json!({"labels": labels(FEWER / 2, FEWER * 2)});
    let (old, new) = (Typed::new(&old, &schema, ty, "v1"), Typed::new(&new, &schema, ty, "v1"));
    assert_eq!(old.compare(&new).unwrap().added.len(), FEWER);
    assert_eq!(old.merge(&new).unwrap().value["labels"].as_object().unwrap().len(), FEWER * 2);
    let fields = new.field_set();
    assert_eq!(old.remove(&fields).value["labels"].as_object().unwrap().len(), FEWER / 2);
    assert_eq!(new.extract(&fields).value, new.value);
}

#[test]
fn deep_objects() {
    let (schema, ty) = common::schema();
    let deep = |levels: usize, leaf: &str| {
        let mut value = json!({"a": leaf, "items": [{"name": "x", "value": 1}]});
        for _ in 0..levels {
            value = json!({"child": value, "a": leaf});
        }
        json!({"nested": value})
    };
    let (old, new) = (deep(100, "a"), deep(100, "b"));
    let (old, new) = (Typed::new(&old, &schema, ty, "v1"), Typed::new(&new, &schema, ty, "v1"));
    assert_eq!(old.compare(&new).unwrap().modified.len(), 101);
    assert_eq!(old.merge(&new).unwrap().value, new.value);
    let fields = new.field_set();
    let text = fields.to_fields_v1().to_string();
    assert_eq!(FieldSet::from_fields_v1(&serde_json::from_str(&text).unwrap()).unwrap(), fields);
    assert!(new.remove(&fields.with_named_fields(&schema, ty)).value.is_null());
}

#[test]
fn many_managers() {
    const MANAGERS: usize = 1000;
    let (schema, ty) = common::schema();
    let versions = Single::new("v1", &schema, ty);
    let mut managers = Managers::new();
    for i in 0..MANAGERS {
        let mut fields = FieldSet::new();
        for label in [i, i + 1] {
            fields.insert(&[PathElement::field("labels"), PathElement::field(format!("k{label}"))]);
        }
        managers.insert(id(&format!("m{i}")), Owned { fields, version: "v1".into(), time: None });
    }
    let labels =
        (0..=MANAGERS).map(|i| (format!("k{i}"), Value::from("v"))).collect::<serde_json::Map<_, _>>();
    let mut live = json!({"labels": labels});
    let updater = Updater::new(&versions);
    for i in 0..20 {
        // Each gives up what it has: what the next one owns stays.
        let typed = |value| Typed::new(value, &schema, ty, "v1");
        let config = json!({"text": "a"});
        let applier = id(&format!("m{i}"));
        let new = updater.apply(&typed(&live), &typed(&config), &mut managers, &applier, false).unwrap();
        live = new.map(|new| new.value.into_owned()).unwrap_or(live);
    }
    assert_eq!(live["labels"].as_object().unwrap().len(), MANAGERS + 1 - 20);
    let entries = encode(&managers);
    assert_eq!(decode(entries.as_ref()).unwrap(), managers);
}

#[test]
fn many_updaters_are_merged() {
    const UPDATERS: usize = 5000;
    let schema = Schema::new();
    let versions = Single::new("v1", &schema, Schema::deduced());
    let entries: Vec<Value> = (0..UPDATERS)
        .map(|i| {
            json!({"manager": format!("m{i}"), "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:data": {format!("f:k{i}"): {}}}})
        })
        .collect();
    let data = (0..UPDATERS).map(|i| (format!("k{i}"), Value::from("v"))).collect::<serde_json::Map<_, _>>();
    let live = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"uid": "u", "managedFields": entries}, "data": data});
    let mut new = live.clone();
    new["data"]["more"] = "v".into();
    FieldManager::new(&versions, "v1", "ConfigMap", "2024-01-01T00:00:00Z").update(&live, &mut new, "me");
    assert_eq!(new["metadata"]["managedFields"].as_array().unwrap().len(), 10);
    assert_eq!(
        decode(new["metadata"].get("managedFields"))
            .unwrap()
            .values()
            .map(|owned| owned.fields.len())
            .sum::<usize>(),
        UPDATERS + 1
    );
}
