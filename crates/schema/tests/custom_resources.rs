//! Pruning, defaulting and validation of custom resources, with the messages of kube-apiserver.

use k1s_object::field::Check;
use k1s_schema::Structural;
use serde_json::{Value, json};

/// The errors of a spec with this schema.
fn errors(spec_schema: &Value, spec: &Value) -> Vec<String> {
    update_errors(spec_schema, None, spec)
}

fn update_errors(spec_schema: &Value, old: Option<&Value>, new: &Value) -> Vec<String> {
    let schema = Structural::compile(&json!({"type": "object", "properties": {"spec": spec_schema}}));
    let check = Check::new();
    let (new, old) = (json!({"spec": new}), old.map(|old| json!({"spec": old})));
    schema.validate(check.root(&new), old.as_ref().map(|old| check.root(old)));
    check.take().iter().map(ToString::to_string).collect()
}

fn field(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"f": schema}})
}

#[test]
fn values_are_refused_with_the_words_of_kube_apiserver() {
    for (schema, value, expected) in [
        (
            json!({"type": "string"}),
            json!(5),
            &["spec.f: Invalid value: \"integer\": spec.f in body must be of type string: \"integer\""][..],
        ),
        (
            json!({"type": "string"}),
            json!(null),
            &["spec.f: Invalid value: \"null\": spec.f in body must be of type string: \"null\""],
        ),
        (
            json!({"type": "integer"}),
            json!(1.5),
            &[
                "spec.f: Invalid value: \"number\": spec.f in body must be of type integer: \"number\"",
                "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in spec.f",
            ],
        ),
        (json!({"type": "integer"}), json!(2.0), &[]),
        (json!({"type": "number"}), json!(2), &[]),
        (
            json!({"type": "integer", "format": "int32"}),
            json!(4_294_967_296_i64),
            &[
                "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec.f",
            ],
        ),
        (
            json!({"type": "boolean"}),
            json!("x"),
            &["spec.f: Invalid value: \"string\": spec.f in body must be of type boolean: \"string\""],
        ),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!("c"),
            &["spec.f: Unsupported value: \"c\": supported values: \"a\", \"b\""],
        ),
        (
            json!({"type": "integer", "enum": [1, 2]}),
            json!(3),
            &["spec.f: Unsupported value: 3: supported values: \"1\", \"2\""],
        ),
        (
            json!({"type": "string", "nullable": true, "enum": ["a", null]}),
            json!(null),
            &["spec.f: Unsupported value: null: supported values: \"a\", \"null\""],
        ),
        (
            json!({"type": "string", "maxLength": 1}),
            json!("éé"),
            &["spec.f: Too long: may not be more than 1 byte"],
        ),
        (json!({"type": "string", "maxLength": 2}), json!("éé"), &[]),
        (
            json!({"type": "string", "minLength": 2}),
            json!("a"),
            &["spec.f: Invalid value: \"a\": spec.f in body should be at least 2 chars long"],
        ),
        (
            json!({"type": "string", "pattern": "^a"}),
            json!("b"),
            &["spec.f: Invalid value: \"b\": spec.f in body should match '^a'"],
        ),
        (
            json!({"type": "integer", "minimum": 1}),
            json!(0),
            &["spec.f: Invalid value: 0: spec.f in body should be greater than or equal to 1"],
        ),
        (
            json!({"type": "integer", "maximum": 1, "exclusiveMaximum": true}),
            json!(1),
            &["spec.f: Invalid value: 1: spec.f in body should be less than 1"],
        ),
        (
            json!({"type": "number", "minimum": 0, "exclusiveMinimum": true}),
            json!(-0.5),
            &["spec.f: Invalid value: -0.5: spec.f in body should be greater than 0"],
        ),
        (
            json!({"type": "integer", "multipleOf": 5}),
            json!(7),
            &["spec.f: Invalid value: 7: spec.f in body should be a multiple of 5"],
        ),
        (json!({"type": "number", "multipleOf": 0.1}), json!(0.3), &[]),
        (
            json!({"type": "number", "multipleOf": 0.5}),
            json!(0.7),
            &["spec.f: Invalid value: 0.7: spec.f in body should be a multiple of 0.5"],
        ),
        (
            json!({"type": "integer", "minimum": 0.5}),
            json!(0),
            &[
                "<nil>: Invalid value: \"\": Minimum boundary value must be of type integer (default format) in spec.f",
                "spec.f: Invalid value: 0: spec.f in body should be greater than or equal to 0.5",
            ],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "maxItems": 1}),
            json!(["a", "b"]),
            &["spec.f: Too many: 2: must have at most 1 item"],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
            json!([]),
            &["spec.f: Invalid value: 0: spec.f in body should have at least 1 items"],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!(["a", 1]),
            &["spec.f[1]: Invalid value: \"integer\": spec.f[1] in body must be of type string: \"integer\""],
        ),
        (
            json!({"type": "object", "maxProperties": 0, "x-kubernetes-preserve-unknown-fields": true}),
            json!({"a": 1}),
            &["spec.f: Too many: 1: must have at most 0 items"],
        ),
        (
            json!({"type": "object", "minProperties": 1}),
            json!({}),
            &["spec.f: Invalid value: 0: spec.f in body should have at least 1 properties"],
        ),
        (
            json!({"type": "object", "required": ["a", "b"]}),
            json!({}),
            &["spec.f.a: Required value", "spec.f.b: Required value"],
        ),
        (
            json!({"type": "object", "additionalProperties": false}),
            json!({"a": 1}),
            &["spec.f: Invalid value: \"a\": spec.f.a in body is a forbidden property"],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            json!({"a.b": "x"}),
            &[
                "spec.f.a.b: Invalid value: \"string\": spec.f.a.b in body must be of type integer: \"string\"",
            ],
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(true),
            &[
                "spec.f: Invalid value: \"boolean\": spec.f in body must be of type integer,string: \"boolean\"",
            ],
        ),
        (json!({"x-kubernetes-int-or-string": true}), json!("1%"), &[]),
        (
            json!({"type": "string", "format": "date-time"}),
            json!("never"),
            &["spec.f: Invalid value: \"never\": spec.f in body must be of type date-time: \"never\""],
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!(5),
            &["spec.f: Invalid value: \"int64\": spec.f in body must be of type date-time: \"int64\""],
        ),
        (json!({"type": "string", "format": "klingon"}), json!("qapla"), &[]),
    ] {
        assert_eq!(errors(&field(&schema), &json!({"f": value})), expected, "{schema} {value}");
    }
}

#[test]
fn alternatives_name_no_field_and_show_what_came_closest() {
    let one_of = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
    for (spec, expected) in [
        (
            json!({}),
            &[
                "<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). Found none valid",
                "spec.a: Required value",
            ][..],
        ),
        (
            json!({"a": "", "b": ""}),
            &[
                "<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
            ],
        ),
        (json!({"a": ""}), &[]),
    ] {
        assert_eq!(errors(&one_of, &spec), expected);
    }
    let any_of = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"properties": {"b": {"minLength": 3}}, "required": ["b"]}]});
    assert_eq!(
        errors(&any_of, &json!({"b": "1"})),
        [
            "<nil>: Invalid value: \"\": \"spec\" must validate at least one schema (anyOf)",
            "spec.b: Invalid value: \"1\": spec.b in body should be at least 3 chars long",
        ]
    );
    let all_of = json!({"type": "object", "properties": {"a": {"type": "string"}}, "allOf": [{"required": ["a"]}], "not": {"required": ["a"]}});
    assert_eq!(
        errors(&all_of, &json!({})),
        [
            "spec.a: Required value",
            "<nil>: Invalid value: \"\": \"spec\" must validate all the schemas (allOf). None validated"
        ]
    );
    assert_eq!(
        errors(&all_of, &json!({"a": ""})),
        ["<nil>: Invalid value: \"\": \"spec\" must not validate the schema (not)"]
    );
}

#[test]
fn sets_and_maps_hold_nothing_twice() {
    let set = field(&json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}));
    assert_eq!(errors(&set, &json!({"f": ["a", "b", "a", "a"]})), ["spec.f[2]: Duplicate value: \"a\""]);
    let map = field(
        &json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"],
        "items": {"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}}}),
    );
    assert_eq!(
        errors(&map, &json!({"f": [{"name": "a", "port": 1}, {"port": 1, "name": "a"}]})),
        ["spec.f[1]: Duplicate value: {\"name\":\"a\",\"port\":1}"]
    );
}

#[test]
fn unchanged_invalid_values_are_tolerated_on_update() {
    let schema = json!({"type": "object", "properties": {
        "x": {"type": "string", "pattern": "^good"},
        "l": {"type": "array", "items": {"type": "string", "maxLength": 2}},
        "m": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer", "maximum": 1}}}}}});
    let old = json!({"x": "bad", "l": ["bad", "ok"], "m": [{"k": "a", "v": 5}, {"k": "b", "v": 6}]});
    for (change, expected) in [
        (json!({}), &[][..]),
        (json!({"x": "worse"}), &["spec.x: Invalid value: \"worse\": spec.x in body should match '^good'"]),
        (json!({"l": ["bad", "no"]}), &["spec.l[0]: Too long: may not be more than 2 bytes"]),
        (json!({"m": [{"k": "b", "v": 6}, {"k": "a", "v": 5}, {"k": "c", "v": 1}]}), &[]),
        (
            json!({"m": [{"k": "a", "v": 7}]}),
            &["spec.m[0].v: Invalid value: 7: spec.m[0].v in body should be less than or equal to 1"],
        ),
    ] {
        let mut new = old.clone();
        for (key, value) in change.as_object().unwrap() {
            new[key] = value.clone();
        }
        assert_eq!(update_errors(&schema, Some(&old), &new), expected, "{change}");
    }
}

#[test]
fn embedded_objects_have_a_type_and_metadata() {
    let schema = field(
        &json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
    );
    for (object, expected) in [
        (json!({}), &["spec.f.apiVersion: Required value", "spec.f.kind: Required value"][..]),
        (
            json!({"apiVersion": "a/b/c", "kind": ""}),
            &[
                "spec.f.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
                "spec.f.kind: Invalid value: \"\": must not be empty",
            ],
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a/b"}}),
            &["spec.f.metadata.name: Invalid value: \"a/b\": may not contain '/'"],
        ),
    ] {
        assert_eq!(errors(&schema, &json!({"f": object})), expected);
    }
    let compiled = Structural::compile(&json!({"type": "object", "properties": {"spec": schema}}));
    let mut object = json!({"spec": {"f": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "foo": 1, "creationTimestamp": null}, "data": 1}}});
    let mut unknown = Vec::new();
    compiled.prune(&mut object, Some(&mut unknown)).unwrap();
    assert_eq!(
        object,
        json!({"spec": {"f": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "data": 1}}})
    );
    assert_eq!(unknown, ["spec.f.metadata.foo"]);
    let mut object = json!({"spec": {"f": {"metadata": {"labels": {"a": 5}}}}});
    assert_eq!(
        compiled.prune(&mut object, None).unwrap_err().to_string(),
        "spec.f.metadata: Invalid value: {\"labels\":{\"a\":5}}: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
    );
}

#[test]
fn unknown_fields_are_pruned_and_reported_in_order() {
    let schema = Structural::compile(
        &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "x": {"type": "string"},
        "l": {"type": "array", "items": {"type": "object", "properties": {"z": {"type": "string"}}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"typed": {"type": "object", "properties": {"t": {"type": "integer"}}}}},
        "any": {"x-kubernetes-preserve-unknown-fields": true}}}}}),
    );
    let mut object = json!({"apiVersion": "a/v1", "kind": "W", "metadata": {"zzz": 1}, "extra": 1,
        "spec": {"x": "1", "u": 1, "l": [{"z": "1", "u": 3}], "free": {"a": {"b": 1}, "typed": {"t": 1, "u": 4}}, "any": [1, {"q": 2}]}});
    let mut unknown = Vec::new();
    schema.prune(&mut object, Some(&mut unknown)).unwrap();
    assert_eq!(unknown, ["extra", "spec.free.typed.u", "spec.l[0].u", "spec.u"]);
    assert_eq!(
        object,
        json!({"apiVersion": "a/v1", "kind": "W", "metadata": {"zzz": 1},
            "spec": {"x": "1", "l": [{"z": "1"}], "free": {"a": {"b": 1}, "typed": {"t": 1}}, "any": [1, {"q": 2}]}})
    );
}

#[test]
fn defaults_fill_in_and_nulls_give_way() {
    let schema = Structural::compile(
        &json!({"type": "object", "properties": {"spec": {"type": "object", "default": {}, "properties": {
        "x": {"type": "string", "default": "dx"},
        "n": {"type": "string", "nullable": true, "default": "dn"},
        "r": {"type": "string"},
        "o": {"type": "object", "default": {}, "properties": {"p": {"type": "integer", "default": 7}}},
        "l": {"type": "array", "items": {"type": "object", "properties": {"d": {"type": "integer", "default": 3}}}},
        "mp": {"type": "object", "additionalProperties": {"type": "object", "properties": {"e": {"type": "string", "default": "de"}}}}}}}}),
    );
    for (spec, expected) in [
        (json!({}), json!({"spec": {"x": "dx", "n": "dn", "o": {"p": 7}}})),
        (
            json!({"spec": {"x": null, "n": null, "r": null, "l": [{}], "mp": {"z": {}}}}),
            json!({"spec": {"x": "dx", "n": null, "o": {"p": 7}, "l": [{"d": 3}], "mp": {"z": {"e": "de"}}}}),
        ),
    ] {
        let mut object = spec;
        schema.default(&mut object).unwrap();
        assert_eq!(object, expected);
    }
}

#[test]
fn errors_through_status_begin_below_it() {
    let schema = Structural::compile(
        &json!({"type": "object", "properties": {"status": {"type": "object", "properties": {"p": {"type": "string"}}}}}),
    );
    let check = Check::new();
    let new = json!({"status": {"p": 5}});
    schema.validate_status(check.root(&new), None);
    let errors: Vec<String> = check.take().iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        ["status.p: Invalid value: \"integer\": p in body must be of type string: \"integer\""]
    );
}

#[test]
fn a_definition_of_twenty_kilobytes_takes_less_than_a_hundred() {
    let mut properties = serde_json::Map::new();
    for i in 0..160 {
        properties.insert(
            format!("field{i}"),
            json!({"type": "object", "description": "What this field is for, in a sentence.", "properties": {"value": {"type": "string", "maxLength": 63}}}),
        );
    }
    let schema =
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
    assert!(schema.to_string().len() > 20_000);
    let memory = Structural::compile(&schema).memory();
    assert!(memory < 100_000, "{memory}");
}

#[test]
fn of_equally_close_alternatives_the_first_is_reported() {
    let schema = field(
        &json!({"nullable": true, "x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
    );
    assert_eq!(
        errors(&schema, &json!({"f": 1.2})),
        [
            "spec.f: Invalid value: \"number\": spec.f in body must be of type integer,string: \"number\"",
            "<nil>: Invalid value: \"\": \"spec.f\" must validate at least one schema (anyOf)",
            "spec.f: Invalid value: \"number\": spec.f in body must be of type integer: \"number\"",
            "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in spec.f",
        ]
    );
    assert_eq!(errors(&schema, &json!({"f": null})), [""; 0]);
}
