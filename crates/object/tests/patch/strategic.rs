//! Strategic merge patch.

use k1s_object::patch::{PatchError, printed, strategic};
use serde_json::{Value, json};

use crate::schema::OBJECT;

fn patched(mut doc: Value, patch: Value) -> Result<Value, PatchError> {
    strategic::apply(&mut doc, patch, OBJECT).map(|()| doc)
}

/// Documents, patches and results.
fn table(cases: impl IntoIterator<Item = (Value, Value, Value)>) {
    for (doc, patch, expected) in cases {
        assert_eq!(patched(doc.clone(), patch.clone()), Ok(expected), "{doc} {patch}");
    }
}

fn spec(spec: Value) -> Value {
    json!({"spec": spec})
}

fn containers(containers: Value) -> Value {
    json!({"spec": {"containers": containers}})
}

/// Items with these names.
fn names(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name})).collect()
}

fn finalizers(finalizers: Value) -> Value {
    json!({"metadata": {"finalizers": finalizers}})
}

#[test]
fn objects_merge_and_null_deletes() {
    table([
        (json!({"data": {"a": "1"}}), json!({"data": {"b": "2"}}), json!({"data": {"a": "1", "b": "2"}})),
        (json!({"data": {"a": "1", "b": "2"}}), json!({"data": {"a": null}}), json!({"data": {"b": "2"}})),
        (json!({"data": {"a": "1"}}), json!({"data": null}), json!({})),
        (json!({}), json!({"data": {"a": null, "b": {"c": null}}}), json!({"data": {"b": {}}})),
        (json!({"data": {"a": "1"}}), json!({"data": []}), json!({"data": []})),
        (json!({"data": {"a": "1"}}), json!(null), json!({"data": {"a": "1"}})),
        (spec(json!({"replicas": 1})), spec(json!({"replicas": 3.0})), spec(json!({"replicas": 3.0}))),
        (
            spec(json!({"selector": {"matchLabels": {"a": "1"}}})),
            spec(json!({"selector": {"matchLabels": {"b": "2"}}})),
            spec(json!({"selector": {"matchLabels": {"b": "2"}}})),
        ),
    ]);
}

#[test]
fn lists_with_a_merge_key_merge_and_new_items_go_first() {
    table([
        (
            containers(json!([{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}])),
            containers(json!([{"name": "c", "image": "c:1"}, {"name": "b", "image": "b:2"}])),
            containers(json!([
                {"name": "c", "image": "c:1"}, {"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"},
            ])),
        ),
        (containers(names(&["a", "b"])), containers(names(&["c"])), containers(names(&["c", "a", "b"]))),
        (containers(names(&["a", "b"])), containers(names(&["b", "a"])), containers(names(&["b", "a"]))),
        (
            containers(names(&["a", "b", "c"])),
            containers(names(&["c", "a"])),
            containers(names(&["b", "c", "a"])),
        ),
        (containers(names(&["a", "b"])), containers(names(&["b", "x"])), containers(names(&["a", "b", "x"]))),
        (
            containers(names(&["a", "b", "a"])),
            containers(names(&["c"])),
            containers(names(&["c", "a", "a", "b"])),
        ),
        (
            spec(json!({"ports": [{"port": 53, "name": "dns", "protocol": "UDP"}]})),
            spec(json!({"ports": [{"port": 53, "name": "dns-tcp", "protocol": "TCP"}]})),
            spec(json!({"ports": [{"port": 53, "name": "dns-tcp", "protocol": "TCP"}]})),
        ),
        (
            spec(json!({"ports": [{"port": 80}]})),
            spec(json!({"ports": [{"port": 80.0}]})),
            spec(json!({"ports": [{"port": 80.0}, {"port": 80}]})),
        ),
        (
            containers(json!([{"name": "a", "env": [{"name": "X", "value": "1"}], "args": ["x"]}])),
            containers(json!([{"name": "a", "env": [{"name": "Y", "value": "2"}], "args": ["y"]}])),
            containers(json!([
                {"name": "a", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}], "args": ["y"]},
            ])),
        ),
        // A new item keeps its nulls: they become zero values when it is decoded.
        (
            containers(names(&["a"])),
            containers(json!([{"name": "b", "image": null}])),
            containers(json!([{"name": "b", "image": null}, {"name": "a"}])),
        ),
        (
            containers(names(&["a"])),
            containers(json!([{"name": null, "image": "x"}])),
            containers(json!([{"name": null, "image": "x"}, {"name": "a"}])),
        ),
        (
            spec(json!({"tolerations": [{"key": "k"}]})),
            spec(json!({"tolerations": [{"key": "l"}]})),
            spec(json!({"tolerations": [{"key": "l"}]})),
        ),
    ]);
}

#[test]
fn long_lists_merge_the_same_way() {
    let item = |n: usize| json!({"name": format!("c{n}")});
    let live: Value = (0..100).map(item).collect();
    let patch: Value = (50..150).map(item).collect();
    let result: Value = (0..150).map(item).collect();
    table([(containers(live), containers(patch), containers(result))]);
    let text = |n: usize| json!(format!("f{n}"));
    let live: Value = (0..100).map(text).collect();
    let patch: Value = (50..150).chain(50..60).map(text).collect();
    let result: Value = (0..150).map(text).collect();
    table([(finalizers(live), finalizers(patch), finalizers(result))]);
}

#[test]
fn lists_of_scalars_merge_without_duplicates() {
    table([
        (finalizers(json!(["a", "b"])), finalizers(json!(["c", "a"])), finalizers(json!(["c", "a", "b"]))),
        (finalizers(json!(["a"])), finalizers(json!(["a", "a"])), finalizers(json!(["a"]))),
        (finalizers(json!([])), finalizers(json!([])), finalizers(json!([]))),
        (json!({"metadata": {}}), finalizers(json!(["b", "b"])), finalizers(json!(["b", "b"]))),
    ]);
}

#[test]
fn scalars_are_deleted_from_lists() {
    let delete = |list: Value| json!({"metadata": {"$deleteFromPrimitiveList/finalizers": list}});
    table([
        (finalizers(json!(["a", "b", "a"])), delete(json!(["a", "absent"])), finalizers(json!(["b"]))),
        (finalizers(json!(["a"])), delete(json!("a")), finalizers(json!(["a"]))),
        (finalizers(json!(["a"])), delete(json!(null)), json!({"metadata": {}})),
        (json!({"metadata": {}}), delete(json!(["a"])), json!({"metadata": {}})),
        (
            finalizers(json!(["c", "b"])),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["b"], "finalizers": ["d"]}}),
            finalizers(json!(["d", "c"])),
        ),
        (
            json!({"metadata": {"labels": {"x": "1"}}}),
            json!({"metadata": {"$deleteFromPrimitiveList/labels": ["x"]}}),
            json!({"metadata": {"labels": {"x": "1"}}}),
        ),
        (
            json!({"metadata": {}}),
            json!({"metadata": {"$deleteFromPrimitiveList/": ["x"]}}),
            json!({"metadata": {}}),
        ),
    ]);
}

#[test]
fn directives_replace_and_delete() {
    let labels = |labels: Value| json!({"metadata": {"labels": labels}});
    table([
        (
            labels(json!({"a": "1"})),
            labels(json!({"$patch": "replace", "c": "3"})),
            labels(json!({"c": "3"})),
        ),
        (labels(json!({"a": "1"})), labels(json!({"$patch": "replace"})), labels(json!({}))),
        (labels(json!({"a": "1"})), labels(json!({"$patch": "delete", "c": "3"})), labels(json!({}))),
        (json!({"data": {"a": "1"}}), json!({"$patch": "replace", "x": null}), json!({"x": null})),
        (json!({"data": {"a": "1"}}), json!({"$patch": "delete"}), json!({})),
        (
            containers(names(&["a", "b", "a"])),
            containers(json!([{"name": "a", "$patch": "delete"}, {"name": "c"}])),
            containers(names(&["c", "b"])),
        ),
        (
            containers(names(&["a", "b"])),
            containers(json!([{"name": "x"}, {"$patch": "replace"}, {"name": "a"}])),
            containers(names(&["x", "a"])),
        ),
        (
            containers(names(&["a", "b"])),
            containers(json!([{"name": "only", "image": "only:2", "$patch": "replace"}])),
            containers(json!([])),
        ),
    ]);
}

#[test]
fn a_patch_value_without_a_counterpart_loses_its_directives() {
    let labels = |labels: Value| json!({"metadata": {"labels": labels}});
    table([
        (json!({"metadata": {}}), labels(json!({"$patch": "bogus", "a": "1"})), json!({"metadata": {}})),
        (json!({"metadata": {}}), labels(json!({"$patch": null, "a": "1"})), labels(json!({"a": "1"}))),
        (labels(json!("text")), labels(json!({"$patch": "delete"})), json!({"metadata": {}})),
        (
            json!({"spec": {}}),
            containers(json!([{"$patch": "replace"}, {"name": "v", "image": null}])),
            containers(names(&["v"])),
        ),
        (
            json!({"spec": {}}),
            spec(json!({"strategy": {"$retainKeys": ["type"], "type": "x"}})),
            spec(json!({"strategy": {"$retainKeys": ["type"], "type": "x"}})),
        ),
    ]);
}

#[test]
fn retained_keys_are_all_that_is_left() {
    let strategy = |strategy: Value| json!({"spec": {"strategy": strategy}});
    let live = strategy(json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}));
    table([
        (
            live.clone(),
            strategy(json!({"$retainKeys": ["type"], "type": "Recreate", "rollingUpdate": null})),
            strategy(json!({"type": "Recreate"})),
        ),
        (live.clone(), strategy(json!({"$retainKeys": [1]})), strategy(json!({}))),
        (
            spec(json!({"volumes": [{"name": "v", "emptyDir": {}}]})),
            spec(
                json!({"volumes": [{"$retainKeys": ["name", "configMap"], "name": "v", "configMap": {"name": "x"}}]}),
            ),
            spec(json!({"volumes": [{"name": "v", "configMap": {"name": "x"}}]})),
        ),
    ]);
    for bad in [
        json!({"$retainKeys": ["type"], "rollingUpdate": {}}),
        json!({"$retainKeys": "type"}),
        json!({"$retainKeys": ["a", 1], "type": "Recreate"}),
    ] {
        let error = patched(live.clone(), strategy(bad)).expect_err("bad keys");
        assert_eq!(error, PatchError::Shape("invalid patch format of retainKeys".into()));
        assert_eq!(error.to_status().code, 400);
    }
}

#[test]
fn the_order_can_be_set() {
    let ordered = |order: &[&str], items: Value| json!({"spec": {"$setElementOrder/containers": names(order), "containers": items}});
    let only = |order: &[&str]| json!({"spec": {"$setElementOrder/containers": names(order)}});
    table([
        (containers(names(&["a", "b"])), only(&["b", "a"]), containers(names(&["b", "a"]))),
        (containers(names(&["a", "b", "c"])), only(&["c", "a"]), containers(names(&["b", "c", "a"]))),
        (containers(names(&["a", "b", "c"])), only(&["c", "b"]), containers(names(&["a", "c", "b"]))),
        (
            containers(names(&["a", "b"])),
            ordered(&["a", "b", "x"], names(&["x"])),
            containers(names(&["a", "b", "x"])),
        ),
        (
            containers(names(&["c", "side"])),
            ordered(&["c"], json!([{"name": "c", "image": "c:2"}, {"name": "side", "$patch": "delete"}])),
            containers(json!([{"name": "c", "image": "c:2"}])),
        ),
        (spec(json!({})), ordered(&["i"], names(&["i"])), containers(names(&["i"]))),
        (spec(json!({})), only(&["i"]), spec(json!({}))),
        // Without an order the items are reversed.
        (containers(names(&["a"])), ordered(&[], names(&["x", "y"])), containers(names(&["a", "y", "x"]))),
        (
            finalizers(json!(["a", "b"])),
            json!({"metadata": {"$setElementOrder/finalizers": ["c", "b"], "finalizers": ["c"]}}),
            finalizers(json!(["c", "a", "b"])),
        ),
    ]);
}

/// Failing patches: the status code and the message.
fn failures(doc: &Value, cases: &[(Value, u16, &str)]) {
    for (patch, code, text) in cases {
        let error = patched(doc.clone(), patch.clone()).expect_err(text);
        assert_eq!((error.to_string().as_str(), error.to_status().code), (*text, *code), "{patch}");
    }
}

#[test]
fn directives_that_make_no_sense_are_refused() {
    let doc = json!({
        "metadata": {"labels": {"a": "1"}, "finalizers": ["f"]},
        "spec": {"containers": [{"name": "c", "image": "c:1"}, {"name": "side"}], "strategy": {"rollingUpdate": {}}},
        "matrix": [["x"]],
    });
    let labels = |labels: Value| json!({"metadata": {"labels": labels}});
    failures(
        &doc,
        &[
            (labels(json!({"$patch": "bogus"})), 500, "unknown patch type: bogus in map: map[$patch:bogus]"),
            (labels(json!({"$patch": 5})), 500, "unknown patch type: %!s(int64=5) in map: map[$patch:5]"),
            (
                labels(json!({"$patch": null})),
                500,
                "unknown patch type: %!s(<nil>) in map: map[$patch:<nil>]",
            ),
            (
                labels(json!({"$patch": ["a", true, null, {"b": 1.5}]})),
                500,
                "unknown patch type: [a %!s(bool=true) <nil> map[b:%!s(float64=1.5)]] in map: map[$patch:[a true <nil> map[b:1.5]]]",
            ),
            (
                json!({"$patch": "merge", "spec": {"replicas": 2}}),
                500,
                "unknown patch type: merge in map: map[$patch:merge spec:map[replicas:2]]",
            ),
            (
                containers(json!([{"name": "c", "$patch": "bogus"}])),
                500,
                "unknown patch type: bogus in map: map[$patch:bogus name:c]",
            ),
            (
                containers(json!([{"name": "c", "$patch": "merge"}])),
                500,
                "merging lists cannot yet be specified in the patch",
            ),
            (
                containers(json!([{"$patch": "delete"}])),
                500,
                "map: map[$patch:delete] does not contain declared merge key: name",
            ),
            (
                json!({"metadata": {"$deleteFromPrimitiveList": ["x"]}}),
                400,
                "invalid patch format of primitive list",
            ),
            (
                json!({"metadata": {"$setElementOrder": []}}),
                400,
                "invalid patch format of setElementOrder list",
            ),
            (
                json!({"metadata": {"$setElementOrder/finalizers": "text"}}),
                500,
                "expected a []interface {}, but received a string",
            ),
            (
                spec(json!({"$setElementOrder/containers": [], "containers": null})),
                500,
                "expected a []interface {}, but received a %!s(<nil>)",
            ),
            (
                spec(json!({"$setElementOrder/strategy": []})),
                500,
                "expected a []interface {}, but received a map[string]interface {}",
            ),
            (
                spec(json!({"$setElementOrder/replicas": []})),
                500,
                "expected slice or array type, but got: struct",
            ),
            (
                spec(json!({"$setElementOrder/nope": []})),
                500,
                "unable to find api field in struct Spec for the json field \"nope\"",
            ),
            (
                spec(json!({"$setElementOrder/containers": [{"image": "x"}]})),
                500,
                "map: map[image:x] does not contain declared merge key: name",
            ),
            (spec(json!({"$setElementOrder/containers": ["x"]})), 500, "value for key 0 is not a map"),
            (
                spec(
                    json!({"$setElementOrder/containers": [{"name": "c"}], "containers": [{"name": "side", "image": "s:2"}]}),
                ),
                500,
                "The order in patch list:\n[map[image:s:2 name:side]]\n doesn't match $setElementOrder list:\n[map[name:c]]\n",
            ),
            (
                spec(
                    json!({"$setElementOrder/containers": names(&["side", "c"]), "containers": names(&["c", "side"])}),
                ),
                500,
                "The order in patch list:\n[map[name:c] map[name:side]]\n doesn't match $setElementOrder list:\n[map[name:side] map[name:c]]\n",
            ),
            (json!({"matrix": []}), 500, "unexpected slice of slice"),
            (json!([]), 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
            (json!("x"), 400, "json: cannot unmarshal string into Go value of type map[string]interface {}"),
        ],
    );
}

#[test]
fn lists_that_do_not_go_together_are_refused() {
    let doc = json!({
        "metadata": {"finalizers": ["f"]},
        "spec": {"containers": [{"name": "c", "image": "c:1"}], "odd": [{"a": 1}], "ports": [{"name": "p"}]},
    });
    failures(
        &doc,
        &[
            (
                containers(json!([{"image": "x"}])),
                500,
                "map: map[image:x] does not contain declared merge key: name",
            ),
            (containers(json!([{}])), 500, "map: map[] does not contain declared merge key: name"),
            (
                containers(json!(["text"])),
                500,
                "list element types are not identical: [[map[image:c:1 name:c]] [text]]",
            ),
            (
                containers(json!([null])),
                500,
                "list element types are not identical: [[map[image:c:1 name:c]] [<nil>]]",
            ),
            (finalizers(json!([1])), 500, "list element types are not identical: [[f] [1]]"),
            (spec(json!({"odd": [{}]})), 500, "cannot merge lists without merge key for struct"),
            (
                spec(json!({"ports": [{"port": 1}]})),
                500,
                "map: map[name:p] does not contain declared merge key: port",
            ),
        ],
    );
    let error = patched(finalizers(json!([["x"]])), finalizers(json!(["y"]))).expect_err("a list of lists");
    assert_eq!(error, PatchError::Apply("lists of lists are not supported".into()));
    assert_eq!(error.to_status().code, 422);
    let error = patched(containers(names(&["a"])), containers(json!([{"name": {}}]))).expect_err("no scalar");
    assert_eq!(error.to_status().code, 500);
}

#[test]
fn a_500_has_no_reason() {
    assert_eq!(
        PatchError::Internal("x".into()).to_status().to_json(),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "x", "code": 500})
    );
}

#[test]
fn values_print_as_in_go() {
    let cases = [
        (json!({"b": [1, "x", null], "a": {"c": true}}), "map[a:map[c:true] b:[1 x <nil>]]"),
        (json!(3.0), "3"),
        (json!(0.5), "0.5"),
        (json!(123456.5), "123456.5"),
        (json!(1_000_000.0), "1e+06"),
        (json!(1.5e300), "1.5e+300"),
        (json!(0.0001), "0.0001"),
        (json!(0.00001), "1e-05"),
        (json!(u64::MAX), "1.8446744073709552e+19"),
        (json!(i64::MIN), "-9223372036854775808"),
    ];
    for (value, expected) in cases {
        assert_eq!(printed(&value), expected);
    }
}

#[test]
fn errors_quote_the_remaining_patch() {
    let doc = json!({
        "metadata": {"labels": {"a": "1"}},
        "spec": {"containers": [{"name": "c"}], "strategy": {"type": "x"}},
    });
    let cases = [
        (json!({"data": []}), "map[data:[]]"),
        (json!(null), "map[]"),
        (
            json!({"metadata": {"labels": {"$patch": "replace", "b": 5}}}),
            "map[metadata:map[labels:map[b:5]]]",
        ),
        (json!({"metadata": {"labels": {"a": null}}}), "map[metadata:map[labels:map[a:<nil>]]]"),
        (json!({"data": {"a": null, "b": {"$patch": "x"}, "c": 1}}), "map[data:map[c:1]]"),
        (
            spec(json!({"strategy": {"$retainKeys": ["type"], "type": 5}})),
            "map[spec:map[strategy:map[type:5]]]",
        ),
        (
            spec(
                json!({"$setElementOrder/containers": names(&["c"]), "containers": names(&["c"]), "replicas": "x"}),
            ),
            "map[spec:map[replicas:x]]",
        ),
        (
            containers(json!([{"name": "c", "env": [{"name": null}]}, {"name": "d", "image": null}])),
            "map[spec:map[containers:[map[env:[map[]] name:c] map[image:<nil> name:d]]]]",
        ),
    ];
    for (patch, expected) in cases {
        assert_eq!(printed(&strategic::leftover(&doc, patch.clone(), OBJECT)), expected, "{patch}");
    }
}
