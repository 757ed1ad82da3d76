//! Decoding and encoding, with messages recorded from kube-apiserver.

use serde_json::{Value, json};

use super::{decode, decode_strict, finish, from_unstructured, scalars};
use crate::table::Type;

fn ty(name: &str) -> &'static Type {
    crate::types().iter().find(|ty| ty.name.ends_with(name)).unwrap_or_else(|| panic!("no type {name}"))
}

fn error(name: &str, mut doc: Value) -> String {
    decode(ty(name), &mut doc, None).map_or_else(|error| error.to_string(), |()| format!("decoded: {doc}"))
}

fn decoded(name: &str, mut doc: Value) -> Value {
    decode(ty(name), &mut doc, None).unwrap();
    doc
}

fn finished(name: &str, doc: Value) -> Value {
    let mut doc = decoded(name, doc);
    finish(ty(name), &mut doc);
    doc
}

#[test]
fn a_value_of_the_wrong_type_is_named_as_go_names_it() {
    for (name, doc, want) in [
        (
            "core.v1.Pod",
            json!({"spec": {"terminationGracePeriodSeconds": "x"}}),
            "string into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64",
        ),
        (
            "core.v1.Pod",
            json!({"spec": {"containers": [{"ports": [{"containerPort": 99_999_999_999_u64}]}]}}),
            "number 99999999999 into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
        ),
        (
            "core.v1.Pod",
            json!({"spec": {"containers": {}}}),
            "object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        ("core.v1.Pod", json!({"spec": []}), "array into Go struct field Pod.spec of type v1.PodSpec"),
        ("core.v1.Pod", json!([]), "array into Go value of type v1.Pod"),
        (
            "core.v1.Pod",
            json!({"spec": {"volumes": [{"emptyDir": 1}]}}),
            "number into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource",
        ),
        (
            "core.v1.Pod",
            json!({"spec": {"containers": [{"resources": {"limits": []}}]}}),
            "array into Go struct field ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList",
        ),
        (
            "core.v1.Pod",
            json!({"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": 1.5}}}]}}),
            "number 1.5 into Go struct field HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
        ),
        (
            "core.v1.ConfigMap",
            json!({"metadata": {"labels": {"a": 1}}}),
            "number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            "core.v1.ConfigMap",
            json!({"metadata": {"creationTimestamp": 1}}),
            "number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        (
            "core.v1.ConfigMap",
            json!({"metadata": {"generation": 3.0}}),
            "number 3.0 into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
        (
            "core.v1.Secret",
            json!({"data": {"a": 1}}),
            "number into Go struct field Secret.data of type []uint8",
        ),
        (
            "v1.CustomResourceDefinition",
            json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"items": {"type": 5}}}}]}}),
            "number into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items.type of type string",
        ),
        (
            "v1.ValidatingAdmissionPolicy",
            json!({"spec": {"matchConstraints": {"resourceRules": [{"apiGroups": 1}]}}}),
            "number into Go struct field NamedRuleWithOperations.spec.matchConstraints.resourceRules.RuleWithOperations.Rule.apiGroups of type []string",
        ),
    ] {
        assert_eq!(error(name, doc), format!("json: cannot unmarshal {want}"));
    }
}

#[test]
fn types_with_a_decoder_of_their_own_have_their_own_words() {
    for (name, doc, want) in [
        (
            "core.v1.ConfigMap",
            json!({"metadata": {"creationTimestamp": "yesterday"}}),
            r#"parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006""#,
        ),
        (
            "coordination.v1.Lease",
            json!({"spec": {"renewTime": "2026-01-02T03:04:05Z"}}),
            r#"parsing time "2026-01-02T03:04:05Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#,
        ),
        ("core.v1.Secret", json!({"data": {"a": "abc"}}), "illegal base64 data at input byte 0"),
        ("core.v1.Secret", json!({"data": {"a": "not base64"}}), "illegal base64 data at input byte 3"),
        (
            "core.v1.ResourceQuota",
            json!({"spec": {"hard": {"cpu": "lots"}}}),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            "v1.CustomResourceDefinition",
            json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"additionalProperties": 5}}}]}}),
            "boolean or JSON schema expected",
        ),
        // Their errors take precedence over earlier type errors.
        (
            "core.v1.ResourceQuota",
            json!({"metadata": {"name": 5}, "spec": {"hard": {"cpu": "1Q"}}}),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ] {
        assert_eq!(error(name, doc), want);
    }
}

#[test]
fn unknown_fields_go_and_are_reported_in_the_order_of_the_document() {
    let mut doc = json!({
        "Data": 1,
        "spec": {
            "bogus": 1,
            "containers": [{"name": "a", "ports": [{"port": 1}]}, {"securitycontext": {}, "resources": {"zzz": 1}}],
            "nodeSelector": {"any": "thing"},
        },
    });
    let mut strict = Vec::new();
    decode(ty("core.v1.Pod"), &mut doc, Some(&mut strict)).unwrap();
    let want = [
        r#"unknown field "Data""#,
        r#"unknown field "spec.bogus""#,
        r#"unknown field "spec.containers[0].ports[0].port""#,
        r#"unknown field "spec.containers[1].securitycontext""#,
        r#"unknown field "spec.containers[1].resources.zzz""#,
    ];
    assert_eq!(strict, want);
    let left = json!({"spec": {
        "containers": [{"name": "a", "ports": [{}]}, {"resources": {}}],
        "nodeSelector": {"any": "thing"},
    }});
    assert_eq!(doc, left);
}

#[test]
fn unknown_fields_below_items_are_not_reported() {
    let mut doc = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {
        "properties": {"a": {"odd": 1}}, "items": {"odd": 1},
    }}}]}});
    let mut strict = Vec::new();
    decode(ty("v1.CustomResourceDefinition"), &mut doc, Some(&mut strict)).unwrap();
    assert_eq!(strict, [r#"unknown field "spec.versions[0].schema.openAPIV3Schema.properties.a.odd""#]);
}

#[test]
fn nulls_leave_zero_values() {
    let doc = json!({"metadata": null, "data": {"a": null}, "binaryData": null, "immutable": null});
    assert_eq!(decoded("core.v1.ConfigMap", doc), json!({"data": {"a": ""}}));
    let doc = json!({"spec": {"containers": [null, {"command": ["a", null]}]}});
    let want = json!({"spec": {"containers": [{}, {"command": ["a", ""]}]}});
    assert_eq!(decoded("core.v1.Pod", doc), want);
    assert_eq!(decoded("core.v1.Pod", Value::Null), json!({}));
}

#[test]
fn texts_become_canonical() {
    let doc = json!({
        "metadata": {"creationTimestamp": "2024-02-29T01:00:00.5+02:00"},
        "spec": {"containers": [{"resources": {"limits": {"cpu": 1.5, "memory": "1024Mi"}}}]},
    });
    let want = json!({
        "metadata": {"creationTimestamp": "2024-02-28T23:00:00Z"},
        "spec": {"containers": [{"resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}}}]},
    });
    assert_eq!(decoded("core.v1.Pod", doc), want);
    let doc = json!({"data": {"a": "YR==", "b": "aGVs\nbG8=", "c": [104, 105]}});
    assert_eq!(decoded("core.v1.Secret", doc), json!({"data": {"a": "YQ==", "b": "aGVsbG8=", "c": "aGk="}}));
}

#[test]
fn quantities_print_as_go_prints_them() {
    for (text, want) in [
        ("0", "0"),
        ("-0", "0"),
        ("1000", "1k"),
        ("0.5", "500m"),
        ("1.500", "1.500"),
        ("+5", "+5"),
        ("1e3", "1e3"),
        ("1500m", "1500m"),
        ("2000m", "2"),
        ("1.5Gi", "1536Mi"),
        ("0.1Ki", "102400m"),
        ("100Ki", "100Ki"),
        ("8Ki", "8Ki"),
        ("0.0000000001", "1n"),
        ("-1.0000000001", "-1000000001n"),
        ("9223372036854775808Ki", "9223372036854775807"),
        ("123456789012345678901", "123456789012345678901"),
        ("  2Gi ", "2Gi"),
    ] {
        assert_eq!(scalars::quantity(text).unwrap().as_deref().unwrap_or(text), want, "{text}");
    }
    for (text, want) in [
        ("", "quantities must match"),
        ("1Q", "quantities must match"),
        ("1Kim", "unable to parse quantity's suffix"),
    ] {
        assert!(scalars::quantity(text).unwrap_err().starts_with(want), "{text}");
    }
}

#[test]
fn times_that_go_does_not_know_are_refused_in_its_words() {
    for (text, want) in [
        ("2024-02-30T00:00:00Z", ": day out of range"),
        ("2024-13-01T00:00:00Z", ": month out of range"),
        ("2024-01-01T25:00:00Z", ": hour out of range"),
        ("2024-01-01T00:00:00Zx", r#": extra text: "x""#),
        ("2024-01-01", r#" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T""#),
    ] {
        let error = scalars::time(text, scalars::Layout::Seconds).unwrap_err();
        assert_eq!(error, format!("parsing time {text:?}{want}"));
    }
}

#[test]
fn durations_print_as_go_prints_them() {
    for (text, want) in [
        ("90s", "1m30s"),
        ("1h", "1h0m0s"),
        ("1.5s", "1.5s"),
        ("-250ms", "-250ms"),
        ("0", "0s"),
        ("1500ns", "1.5µs"),
    ] {
        assert_eq!(scalars::duration(text).unwrap().as_deref().unwrap_or(text), want, "{text}");
    }
    assert_eq!(scalars::duration("1d").unwrap_err(), r#"time: unknown unit "d" in duration "1d""#);
    assert_eq!(scalars::duration("5").unwrap_err(), r#"time: missing unit in duration "5""#);
    assert_eq!(scalars::duration("").unwrap_err(), r#"time: invalid duration """#);
}

#[test]
fn fields_without_omitempty_are_printed() {
    assert_eq!(
        finished("core.v1.Pod", json!({})),
        json!({"metadata": {}, "spec": {"containers": null}, "status": {}})
    );
    assert_eq!(finished("rbac.v1.Role", json!({"rules": []})), json!({"metadata": {}, "rules": null}));
    assert_eq!(
        finished("core.v1.Event", json!({"count": 0})),
        json!({
            "metadata": {}, "involvedObject": {}, "source": {}, "firstTimestamp": null, "lastTimestamp": null,
            "eventTime": null, "reportingComponent": "", "reportingInstance": "",
        })
    );
}

#[test]
fn empty_values_are_omitted_unless_they_are_pointers() {
    let doc = json!({
        "metadata": {"labels": {}, "name": "", "creationTimestamp": null},
        "spec": {
            "replicas": 0,
            "paused": false,
            "selector": {"matchLabels": {}},
            "template": {"spec": {"containers": [{"name": "c", "tty": false, "securityContext": {}, "env": []}]}},
        },
    });
    let want = json!({
        "metadata": {},
        "spec": {
            "replicas": 0,
            "selector": {},
            "strategy": {},
            "template": {
                "metadata": {},
                "spec": {"containers": [{"name": "c", "resources": {}, "securityContext": {}}]},
            },
        },
        "status": {},
    });
    assert_eq!(finished("apps.v1.Deployment", doc), want);
}

#[test]
fn a_document_in_maps_and_lists_has_errors_of_its_own() {
    for (name, doc, want) in [
        ("core.v1.ConfigMap", json!({"data": {"x": 5}}), "cannot convert int64 to string"),
        ("core.v1.ConfigMap", json!({"data": []}), "cannot restore map from slice"),
        ("core.v1.ConfigMap", json!({"metadata": "x"}), "cannot restore struct from: string"),
        ("core.v1.Pod", json!({"spec": {"containers": "text"}}), "cannot restore slice from string"),
        ("core.v1.Pod", json!({"spec": {"restartPolicy": 5}}), "cannot convert int64 to v1.RestartPolicy"),
        ("apps.v1.Deployment", json!({"spec": {"replicas": "two"}}), "unrecognized type: int32"),
        ("apps.v1.Deployment", json!({"spec": {"replicas": 1.5}}), "cannot convert float64 to int32"),
        (
            "core.v1.Secret",
            json!({"data": {"a": "not base64!"}}),
            "error decoding from json: illegal base64 data at input byte 3",
        ),
        (
            "core.v1.ConfigMap",
            json!({"metadata": {"creationTimestamp": 5}}),
            "json: cannot unmarshal number into Go value of type string",
        ),
    ] {
        let mut doc = doc;
        assert_eq!(from_unstructured(ty(name), &mut doc, None).unwrap_err().to_string(), want);
    }
}

#[test]
fn a_document_in_maps_and_lists_may_have_whole_floats() {
    let mut doc = json!({"spec": {"replicas": 3.0, "zzz": 1, "template": null}, "aaa": 1});
    let mut strict = Vec::new();
    from_unstructured(ty("apps.v1.Deployment"), &mut doc, Some(&mut strict)).unwrap();
    assert_eq!(doc, json!({"spec": {"replicas": 3}}));
    assert_eq!(strict, [r#"unknown field "aaa""#, r#"unknown field "spec.zzz""#]);
}

#[test]
fn duplicates_stand_between_unknown_fields_where_the_document_has_them() {
    // The keys before the second image: spec, bogus, x, containers, name and the first image.
    let mut doc = json!({"spec": {"bogus": {"x": 1}, "containers": [
        {"name": "c", "image": "b", "ports": [{"port": 1}], "resources": {"limits": {"cpu": "2"}, "zzz": 1}},
        {"securitycontext": {}},
    ]}});
    let duplicates = [("spec.containers[0].image", 6), ("spec.containers[0].resources.limits.cpu", 11)];
    let strict = decode_strict(ty("core.v1.Pod"), &mut doc, duplicates).unwrap();
    let want = [
        r#"unknown field "spec.bogus""#,
        r#"duplicate field "spec.containers[0].image""#,
        r#"unknown field "spec.containers[0].ports[0].port""#,
        r#"duplicate field "spec.containers[0].resources.limits.cpu""#,
        r#"unknown field "spec.containers[0].resources.zzz""#,
        r#"unknown field "spec.containers[1].securitycontext""#,
    ];
    assert_eq!(strict, want);
}

#[test]
fn a_deep_document_does_not_exhaust_the_stack() {
    type Nest = fn(Value) -> Value;
    let nestings: [(usize, Nest); 3] = [
        (490, |schema| json!({"not": schema})),
        (245, |schema| json!({"properties": {"a": schema}})),
        (245, |schema| json!({"items": [schema]})),
    ];
    for (times, nest) in nestings {
        let schema = (0..times).fold(json!({"type": "string"}), |schema, _| nest(schema));
        let mut doc = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
        let ty = ty("v1.CustomResourceDefinition");
        assert_eq!(decode_strict(ty, &mut doc, []), Ok(vec![]));
        from_unstructured(ty, &mut doc, None).unwrap();
        finish(ty, &mut doc);
        let bytes = crate::protobuf::encode(ty, &doc, "v1", "CustomResourceDefinition");
        assert!(crate::protobuf::decode(&bytes, |_, _| Some(ty)).is_err(), "deeper than protobuf may be");
    }
}
