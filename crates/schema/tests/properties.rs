//! Properties of all schemas and objects: nothing panics, and operations are idempotent.

use k1s_object::field::Check;
use k1s_schema::{CustomKind, Structural, crd, names, openapi};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "spec", "status", "metadata", "kind", "apiVersion", "", "é"])
        .prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-5i64..5).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-3.0f64..3.0).prop_map(Value::from),
        "[a-c.:/@é-]{0,6}".prop_map(Value::from),
        prop::sample::select(vec!["2024-01-02T03:04:05Z", "1h", "::1", "10.0.0.0/8", "{}", "[", "%"])
            .prop_map(Value::from),
    ]
}

fn object() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Random schemas, not always valid.
fn schema() -> impl Strategy<Value = Value> {
    let word = |words: &[&'static str]| prop::sample::select(words.to_vec()).prop_map(Value::from);
    let leaf = prop_oneof![
        word(&["string", "integer", "number", "boolean", "object", "array", "null", ""])
            .prop_map(|kind| ("type".to_owned(), kind)),
        (prop::sample::select(vec!["minimum", "maximum", "multipleOf"]), any::<f64>())
            .prop_map(|(key, limit)| (key.to_owned(), Value::from(limit))),
        (
            prop::sample::select(vec![
                "minLength",
                "maxLength",
                "minItems",
                "maxItems",
                "minProperties",
                "maxProperties"
            ]),
            -1i64..4
        )
            .prop_map(|(key, limit)| (key.to_owned(), Value::from(limit))),
        (
            prop::sample::select(vec![
                "nullable",
                "uniqueItems",
                "exclusiveMinimum",
                "x-kubernetes-preserve-unknown-fields",
                "x-kubernetes-embedded-resource",
                "x-kubernetes-int-or-string"
            ]),
            any::<bool>()
        )
            .prop_map(|(key, flag)| (key.to_owned(), Value::from(flag))),
        "[\\[\\]a-c(){}^$.*+?|\\\\1,pdw!=<-]{0,8}"
            .prop_map(|pattern| ("pattern".to_owned(), Value::from(pattern))),
        word(&["date-time", "uri", "ipv4", "duration", "int32", "float", "email", "x"])
            .prop_map(|format| ("format".to_owned(), format)),
        word(&["set", "map", "atomic"]).prop_map(|kind| ("x-kubernetes-list-type".to_owned(), kind)),
        prop::collection::vec(key(), 0..3)
            .prop_map(|keys| ("x-kubernetes-list-map-keys".to_owned(), Value::from(keys))),
        prop::collection::vec(key(), 0..3).prop_map(|keys| ("required".to_owned(), Value::from(keys))),
        prop::collection::vec(scalar(), 0..3).prop_map(|values| ("enum".to_owned(), Value::from(values))),
        object().prop_map(|default| ("default".to_owned(), default)),
        any::<bool>().prop_map(|flag| ("additionalProperties".to_owned(), Value::from(flag))),
    ];
    let leaves = prop::collection::vec(leaf, 0..5).boxed();
    let flat = leaves.clone().prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>()));
    flat.prop_recursive(4, 40, 4, move |inner| {
        let nested = prop_oneof![
            prop::collection::vec((key(), inner.clone()), 0..5)
                .prop_map(|fields| ("properties".to_owned(), Value::Object(fields.into_iter().collect()))),
            inner.clone().prop_map(|items| ("items".to_owned(), items)),
            inner.clone().prop_map(|additional| ("additionalProperties".to_owned(), additional)),
            inner.clone().prop_map(|not| ("not".to_owned(), not)),
            (prop::sample::select(vec!["allOf", "anyOf", "oneOf"]), prop::collection::vec(inner, 0..3))
                .prop_map(|(key, branches)| (key.to_owned(), Value::from(branches))),
        ];
        (leaves.clone(), prop::collection::vec(nested, 0..3)).prop_map(|(leaves, nested)| {
            Value::Object(leaves.into_iter().chain(nested).collect::<Map<_, _>>())
        })
    })
}

fn resource() -> impl Strategy<Value = Value> {
    prop::collection::vec((key(), object()), 0..6)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn validation_never_panics(schema in schema(), new in object(), old in object()) {
        let schema = Structural::compile(&schema);
        let check = Check::new();
        schema.validate(check.root(&new), None);
        schema.validate(check.root(&new), Some(check.root(&old)));
        schema.validate_status(check.root(&new), Some(check.root(&old)));
    }

    #[test]
    fn defaulting_twice_is_defaulting_once(schema in schema(), object in resource()) {
        let schema = Structural::compile(&schema);
        let mut once = object;
        schema.default(&mut once).unwrap();
        let mut twice = once.clone();
        schema.default(&mut twice).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn a_pruned_object_has_no_unknown_fields(schema in schema(), object in resource()) {
        let schema = Structural::compile(&schema);
        let mut once = object;
        if schema.prune(&mut once, None).is_ok() {
            let mut twice = once.clone();
            let mut unknown = Vec::new();
            prop_assert!(schema.prune(&mut twice, Some(&mut unknown)).is_ok());
            prop_assert_eq!(once, twice);
            prop_assert_eq!(unknown, Vec::<String>::new());
        }
    }

    #[test]
    fn an_unchanged_field_is_never_complained_about(schema in schema(), value in object()) {
        let schema = Structural::compile(&json!({"type": "object", "properties": {"spec": schema}}));
        let object = json!({"spec": value});
        let check = Check::new();
        schema.validate(check.root(&object), Some(check.root(&object)));
        let errors = check.take();
        // Embedded objects are validated on every write, and unknown fields are never unchanged.
        let scalar = !matches!(object["spec"], Value::Object(_) | Value::Array(_));
        prop_assert!(!scalar || errors.is_empty(), "{:?}", errors);
    }

    #[test]
    fn definitions_never_panic(schema in schema(), other in object(), junk in object(), other_junk in object()) {
        let crd = json!({"metadata": {"name": "as.b.c"}, "spec": {"group": "b.c", "scope": "Cluster", "names": {"plural": "as", "kind": "A", "x": junk},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}, "selectableFields": [{"jsonPath": ".spec.a"}], "subresources": {"status": {}}},
                {"name": "v2", "schema": {"openAPIV3Schema": other}}]}, "status": other_junk});
        let junk = [crd.clone(), crd["status"].clone(), json!({"spec": crd["status"].clone()})];
        for mut crd in junk {
            crd::default(&mut crd);
            let old = crd.clone();
            crd::prepare_create(&mut crd);
            let check = Check::new();
            crd::validate_create(check.root(&crd));
            crd::validate_update(check.root(&crd), check.root(&old));
            crd::validate_status_update(check.root(&old));
            crd::warnings(&crd, Some(&old), &mut Vec::new());
            let _ = CustomKind::compile(&crd);
            let _ = openapi::openapi_v3(&crd, "v1");
            let mut updated = crd.clone();
            crd::prepare_update(&mut updated, &old);
            crd::prepare_status(&mut updated, &old);
            names::accept_names(&mut updated, [&old].into_iter(), "t");
            names::establish(&mut updated, "t");
        }
    }
}
