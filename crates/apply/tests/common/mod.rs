//! A schema with every kind of type, and objects of it.

#![allow(dead_code, reason = "each test uses a part of it")]

use k1s_apply::schema::{Atom, Field, List, Map, Relationship, Scalar, Schema, TypeRef};
use proptest::{collection, option, prelude::*};
use serde_json::{Value, json};

fn scalar(schema: &mut Schema, scalar: Scalar) -> TypeRef {
    schema.add(Atom::scalar(scalar)).into()
}

fn list(schema: &mut Schema, element: TypeRef, relationship: Relationship, keys: &[&'static str]) -> TypeRef {
    let keys = keys.iter().map(|key| (*key).into()).collect();
    schema.add(Atom::list(List { element, relationship, keys })).into()
}

fn map_of(schema: &mut Schema, element: TypeRef, relationship: Relationship) -> TypeRef {
    schema.add(Atom::map(Map { fields: Vec::new(), element: Some(element), relationship })).into()
}

fn fields(fields: Vec<(&'static str, TypeRef, Option<Value>)>) -> Atom {
    let fields =
        fields.into_iter().map(|(name, ty, default)| Field { name: name.into(), ty, default }).collect();
    Atom::map(Map { fields, element: None, relationship: Relationship::Granular })
}

/// A schema, and the type of its objects.
pub(crate) fn schema() -> (Schema, TypeRef) {
    use Relationship::{Atomic, Granular};
    let mut schema = Schema::new();
    let string = scalar(&mut schema, Scalar::String);
    let number = scalar(&mut schema, Scalar::Numeric);
    let flag = scalar(&mut schema, Scalar::Boolean);
    let untyped = scalar(&mut schema, Scalar::Untyped);
    let set = list(&mut schema, string, Granular, &[]);
    let numbers = list(&mut schema, number, Granular, &[]);
    let atomic_list = list(&mut schema, string, Atomic, &[]);
    let atomic_map = map_of(&mut schema, string, Atomic);
    let labels = map_of(&mut schema, string, Granular);

    let nested = schema.reserve();
    let item = schema.reserve();
    schema.set(
        item,
        fields(vec![
            ("name", string, None),
            ("value", number, None),
            ("labels", labels, None),
            ("nested", nested.into(), None),
        ]),
    );
    let items = list(&mut schema, item.into(), Granular, &["name"]);
    schema.set(
        nested,
        fields(vec![
            ("a", string, None),
            ("set", set, None),
            ("child", nested.into(), None),
            ("items", items, None),
        ]),
    );
    let maps = map_of(&mut schema, nested.into(), Granular);
    let port = schema.reserve();
    schema.set(
        port,
        fields(vec![
            ("port", number, None),
            ("protocol", string, Some(json!("TCP"))),
            ("name", string, None),
        ]),
    );
    let ports = list(&mut schema, port.into(), Granular, &["port", "protocol"]);

    let root = schema.reserve();
    schema.set(
        root,
        fields(vec![
            ("text", string, None),
            ("number", number, None),
            ("flag", flag, None),
            ("intOrString", untyped, None),
            ("set", set, None),
            ("numbers", numbers, None),
            ("ports", ports, None),
            ("atomicList", atomic_list, None),
            ("atomicMap", atomic_map, None),
            ("labels", labels, None),
            ("maps", maps, None),
            ("nested", nested.into(), None),
            ("overridden", TypeRef::from(nested).with(Atomic), None),
            ("free", Schema::deduced(), None),
        ]),
    );
    (schema, root.into())
}

fn text() -> impl Strategy<Value = Value> {
    prop_oneof![19 => prop_oneof![Just("a"), Just("b"), Just("c")].prop_map(Value::from), 1 => Just(Value::Null)]
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![Just(json!(1)), Just(json!(2)), Just(json!(1.5)), Just(json!(3.0))]
}

fn map(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    collection::btree_map("[xyz]", value, 0..3).prop_map(|entries| entries.into_iter().collect::<Value>())
}

/// A list in which no two items have the same key.
fn keyed(
    item: impl Strategy<Value = Value>,
    key: impl Fn(&Value) -> String + Clone + 'static,
) -> impl Strategy<Value = Value> {
    collection::vec(item, 0..4).prop_map(move |items| {
        let mut seen = std::collections::BTreeSet::new();
        items.into_iter().filter(|item| !item.is_null() && seen.insert(key(item))).collect::<Value>()
    })
}

fn object_of(fields: Vec<(&'static str, BoxedStrategy<Value>)>, share: f64) -> impl Strategy<Value = Value> {
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| {
            option::weighted(share, value).prop_map(move |value| Some((name.to_owned(), value?)))
        })
        .collect();
    fields.prop_map(|fields| fields.into_iter().flatten().collect::<Value>())
}

fn set_of(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    keyed(value, |value| value.as_f64().map_or_else(|| value.to_string(), |number| number.to_string()))
}

fn nested() -> impl Strategy<Value = Value> {
    let leaf = object_of(vec![("a", text().boxed()), ("set", set_of(text()).boxed())], 0.5);
    leaf.prop_recursive(3, 12, 3, |inner| {
        let item = object_of(
            vec![
                ("value", number().boxed()),
                ("labels", map(text()).boxed()),
                ("nested", inner.clone().boxed()),
            ],
            0.4,
        );
        let item = (item, prop_oneof![Just("a"), Just("b"), Just("c")]).prop_map(|(mut item, name)| {
            item["name"] = name.into();
            item
        });
        object_of(
            vec![
                ("a", text().boxed()),
                ("set", set_of(text()).boxed()),
                ("child", inner.boxed()),
                ("items", keyed(item, |item| item["name"].to_string()).boxed()),
            ],
            0.5,
        )
    })
}

fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![text(), number(), any::<bool>().prop_map(Value::from)].prop_recursive(3, 10, 3, |inner| {
        prop_oneof![map(inner.clone()), collection::vec(inner, 0..3).prop_map(Value::from)]
    })
}

/// A valid object without duplicates in its lists, that has about `share` of all fields in `only`.
pub(crate) fn object_with(only: &[&str], share: f64) -> impl Strategy<Value = Value> + use<> {
    let port = object_of(
        vec![
            ("protocol", prop_oneof![Just(json!("TCP")), Just(json!("UDP"))].boxed()),
            ("name", text().boxed()),
        ],
        0.5,
    );
    let port = (port, 80..82_i64).prop_map(|(mut item, port)| {
        item["port"] = port.into();
        item
    });
    let port_key =
        |item: &Value| format!("{}{}", item["port"], item.get("protocol").unwrap_or(&json!("TCP")));
    let mut all = vec![
        ("text", text().boxed()),
        ("number", number().boxed()),
        ("flag", any::<bool>().prop_map(Value::from).boxed()),
        ("intOrString", prop_oneof![text(), number()].boxed()),
        ("set", set_of(text()).boxed()),
        ("numbers", set_of(number()).boxed()),
        ("ports", keyed(port, port_key).boxed()),
        ("atomicList", collection::vec(text(), 0..3).prop_map(Value::from).boxed()),
        ("atomicMap", map(text()).boxed()),
        ("labels", map(text()).boxed()),
        ("maps", map(nested()).boxed()),
        ("nested", nested().boxed()),
        ("overridden", nested().boxed()),
        ("free", anything().boxed()),
    ];
    all.retain(|(name, _)| only.is_empty() || only.contains(name));
    object_of(all, share)
}

/// A valid object without duplicates in its lists.
pub(crate) fn object() -> impl Strategy<Value = Value> {
    object_with(&[], 0.35)
}
