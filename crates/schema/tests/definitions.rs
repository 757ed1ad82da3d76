//! Validation of definitions, and warnings.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use k1s_object::field::Check;
use k1s_schema::crd;
use serde_json::{Value, json};

fn definition(schema: &Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
}

fn prepared(mut crd: Value) -> Value {
    let kind = k1s_kinds::find_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition").unwrap();
    assert_eq!(k1s_kinds::codec::decode(kind.ty, &mut crd, None), Ok(()));
    crd::default(&mut crd);
    crd::prepare_create(&mut crd);
    crd
}

fn errors(crd: Value) -> Vec<String> {
    let crd = prepared(crd);
    let check = Check::new();
    crd::validate_create(check.root(&crd));
    check.take().iter().map(ToString::to_string).collect()
}

#[test]
fn a_definition_is_defaulted_and_given_a_status() {
    let crd = prepared(definition(&json!({"type": "object"})));
    assert_eq!(
        crd["spec"]["names"],
        json!({"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"})
    );
    assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(
        crd["status"],
        json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]})
    );
}

#[test]
fn schemas_must_be_structural() {
    let root = "spec.validation.openAPIV3Schema";
    for (schema, expected) in [
        (json!({"type": "object"}), &[][..]),
        (json!({}), &[".type: Required value: must not be empty at the root"]),
        (json!({"type": "string"}), &[".type: Invalid value: \"string\": must be object at the root"]),
        (
            json!({"type": "object", "properties": {"a": {}}}),
            &[".properties[a].type: Required value: must not be empty for specified object fields"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array"}}}),
            &[".properties[a].items: Required value: must be specified"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {}}}}),
            &[".properties[a].items.type: Required value: must not be empty for specified array items"],
        ),
        (
            json!({"type": "object", "anyOf": [{"type": "string"}]}),
            &[".anyOf[0].type: Forbidden: must be empty to be structural"],
        ),
        (
            json!({"type": "object", "anyOf": [{"properties": {"x": {"minLength": 1}}}]}),
            &[
                ".properties[x]: Required value: because it is defined in spec.validation.openAPIV3Schema.anyOf[0].properties[x]",
            ],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            &[".additionalProperties: Forbidden: must not be used at the root"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "["}}}),
            &[
                ".properties[a].pattern: Invalid value: \"[\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ]: `[`",
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "default": 5}}}),
            &[
                ".properties[a].default: Invalid value: \"integer\":  in body must be of type string: \"integer\"",
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "object", "default": {"z": 1}}}}),
            &[".properties[a].default: Invalid value: {\"z\":1}: must not have unknown fields"],
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
            &[
                ".properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
            ],
        ),
        (
            json!({"type": "object", "properties": {"kind": {"type": "string", "default": "x"}}}),
            &[".properties[kind].default: Forbidden: must not be set in top-level kind"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-validations": [{"rule": " "}]}}}),
            &[".properties[a].x-kubernetes-validations[0].rule: Required value: rule is not specified"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-validations": [{"rule": "self == 'a'"}]}}}),
            &[],
        ),
    ] {
        let expected: Vec<String> = expected.iter().map(|error| format!("{root}{error}")).collect();
        assert_eq!(errors(definition(&schema)), expected, "{schema}");
    }
}

#[test]
fn places_are_named_by_version_only_where_versions_differ() {
    let column = json!([{"name": "X", "type": "string", "jsonPath": "spec.x"}]);
    let mut crd = definition(&json!({"type": "object"}));
    let mut second = crd["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = column.clone();
    crd["spec"]["versions"].as_array_mut().unwrap().push(second);
    let detail = "JSONPath: Invalid value: \"spec.x\": must be a simple json path starting with .";
    assert_eq!(errors(crd.clone()), [format!("spec.versions[0].additionalPrinterColumns[0].{detail}")]);
    crd["spec"]["versions"][1]["additionalPrinterColumns"] = column;
    assert_eq!(errors(crd), [format!("spec.additionalPrinterColumns[0].{detail}")]);
}

#[test]
fn groups_of_the_community_need_approval() {
    let mut crd = definition(&json!({"type": "object"}));
    crd["metadata"]["name"] = json!("widgets.x.k8s.io");
    crd["spec"]["group"] = json!("x.k8s.io");
    assert_eq!(
        errors(crd.clone()),
        [
            "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111"
        ]
    );
    for approval in ["unapproved, experimental", "https://github.com/kubernetes/kubernetes/pull/1"] {
        crd["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": approval});
        assert_eq!(errors(crd.clone()), [""; 0]);
    }
}

#[test]
fn updates_keep_what_is_established() {
    let old = {
        let mut old = prepared(definition(&json!({"type": "object"})));
        old["status"]["conditions"] = json!([{"type": "Established", "status": "True"}]);
        old
    };
    for (pointer, value, expected) in [
        (
            "/spec/scope",
            json!("Cluster"),
            &["spec.scope: Invalid value: \"Cluster\": field is immutable"][..],
        ),
        (
            "/spec/names/kind",
            json!("Gadget"),
            &["spec.names.kind: Invalid value: \"Gadget\": field is immutable"],
        ),
        (
            "/spec/group",
            json!("other.com"),
            &["spec.group: Invalid value: \"other.com\": field is immutable"],
        ),
        ("/spec/names/singular", json!("one"), &[]),
        (
            "/spec/versions/0/name",
            json!("v2"),
            &[
                "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions",
            ],
        ),
    ] {
        let mut new = old.clone();
        *new.pointer_mut(pointer).unwrap() = value;
        crd::prepare_update(&mut new, &old);
        let check = Check::new();
        crd::validate_update(check.root(&new), check.root(&old));
        let errors: Vec<String> = check.take().iter().map(ToString::to_string).collect();
        assert_eq!(errors, expected, "{pointer}");
    }
}

#[test]
fn unchecked_formats_and_sets_of_objects_are_warned_about_once() {
    let old = prepared(definition(
        &json!({"type": "object", "properties": {"x": {"type": "string", "format": "klingon"}}}),
    ));
    let new = prepared(definition(&json!({"type": "object", "properties": {
        "x": {"type": "string", "format": "klingon"},
        "s": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object", "x-kubernetes-map-type": "atomic"}}}})));
    let warnings = |new: &Value, old: Option<&Value>| {
        let mut out = Vec::new();
        crd::warnings(new, old, &mut out);
        out
    };
    assert_eq!(warnings(&old, None), ["unrecognized format \"klingon\""]);
    assert_eq!(
        warnings(&new, Some(&old)),
        [
            "x-kubernetes-list-type: set for items of type \"object\" is not supported by server-side apply or CEL validation rules"
        ]
    );
}
