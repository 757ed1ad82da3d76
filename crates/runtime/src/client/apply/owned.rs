//! What a field set selects of an object. Pure: JSON and a `FieldsV1` tree are walked together, without a schema.
//!
//! A field set is a tree of path elements: `f:name` is a field, `k:{"name":"x"}` the list item with these keys, `v:"x"` the
//! item of a set with this value, `i:0` the item at an index, and `.` the node itself. A node without other children
//! selects its whole value: it is a scalar, or a list or struct that has one owner. It may also be a map that is owned as an
//! empty one, while others own fields in it. Only a schema tells these apart with certainty; without one, the sets of the
//! other managers do, since nobody owns a part of what has one owner.

use serde_json::{Map, Value};

/// Why a field set cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FieldsError {
    /// A node is not a JSON object.
    #[error("the node {node} is not an object")]
    Node {
        /// The node, as JSON.
        node: String,
    },
    /// A path element is none of `f:`, `k:`, `v:`, `i:` and `.`, or its value is not what its prefix announces.
    #[error("{element:?} is not a path element")]
    Element {
        /// The element.
        element: String,
    },
}

/// A path element, without `.`.
enum Element<'a> {
    Field(&'a str),
    /// The item of a list with these values of its key fields.
    Key(Map<String, Value>),
    /// The item of a set.
    Value(Value),
    Index(usize),
}

impl Element<'_> {
    fn parse(text: &str) -> Result<Element<'_>, FieldsError> {
        let unreadable = || FieldsError::Element { element: text.to_owned() };
        let (prefix, rest) = text.split_once(':').ok_or_else(unreadable)?;
        match prefix {
            "f" => Ok(Element::Field(rest)),
            "k" => serde_json::from_str(rest).map(Element::Key).map_err(|_| unreadable()),
            "v" => serde_json::from_str(rest).map(Element::Value).map_err(|_| unreadable()),
            "i" => rest.parse().map(Element::Index).map_err(|_| unreadable()),
            _ => Err(unreadable()),
        }
    }

    /// Whether this is the element of an item of a list.
    fn selects(&self, index: usize, item: &Value) -> bool {
        match self {
            Element::Field(_) => false,
            Element::Index(at) => *at == index,
            Element::Value(value) => equal(value, item),
            Element::Key(keys) => item.as_object().is_some_and(|item| {
                keys.iter().all(|(name, key)| equal(key, item.get(name).unwrap_or(&Value::Null)))
            }),
        }
    }
}

/// A child of a node.
struct Child<'a> {
    element: Element<'a>,
    subset: &'a Value,
    /// The same child in the sets of other managers.
    others: Vec<&'a Value>,
}

impl Child<'_> {
    fn select(&self, value: &Value) -> Result<Option<Value>, FieldsError> {
        select(value, self.subset, &self.others)
    }
}

/// Whether a node has children other than `.`.
fn is_inner(node: &Value) -> bool {
    node.as_object().is_some_and(|node| node.keys().any(|element| element != "."))
}

/// The part of a value that a field set selects; `None` if the value has none of it. `others` are the sets of the other
/// managers. Fields that the value does not have are skipped, and items of lists keep the value's order. An item that is
/// selected by its keys keeps them.
pub(super) fn select(value: &Value, set: &Value, others: &[&Value]) -> Result<Option<Value>, FieldsError> {
    let Some(node) = set.as_object() else { return Err(FieldsError::Node { node: set.to_string() }) };
    let children = node.iter().filter(|(element, _)| *element != ".");
    let children = children
        .map(|(text, subset)| {
            let others = others.iter().filter_map(|other| other.get(text)).collect();
            Ok(Child { element: Element::parse(text)?, subset, others })
        })
        .collect::<Result<Vec<_>, FieldsError>>()?;
    if children.is_empty() {
        let shared = others.iter().any(|other| is_inner(other));
        return Ok(Some(match value {
            Value::Object(_) if shared => Map::new().into(),
            Value::Array(_) if shared => Vec::<Value>::new().into(),
            whole => whole.clone(),
        }));
    }
    let selected = match value {
        Value::Object(fields) => Value::Object(select_fields(fields, &children)?),
        Value::Array(items) => Value::Array(select_items(items, &children)?),
        // The value is not what it was when the set was recorded.
        other => return Ok(node.contains_key(".").then(|| other.clone())),
    };
    let is_empty = match &selected {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    Ok((!is_empty || node.contains_key(".")).then_some(selected))
}

fn select_fields(
    fields: &Map<String, Value>,
    children: &[Child<'_>],
) -> Result<Map<String, Value>, FieldsError> {
    let mut selected = Map::new();
    for child in children {
        if let Element::Field(name) = child.element
            && let Some(value) = fields.get(name)
            && let Some(part) = child.select(value)?
        {
            selected.insert(name.to_owned(), part);
        }
    }
    Ok(selected)
}

fn select_items(items: &[Value], children: &[Child<'_>]) -> Result<Vec<Value>, FieldsError> {
    let mut selected = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(child) = children.iter().find(|child| child.element.selects(index, item)) else { continue };
        let Some(mut part) = child.select(item)? else { continue };
        if let (Element::Key(keys), Value::Object(part), Value::Object(item)) =
            (&child.element, &mut part, item)
        {
            for name in keys.keys().filter(|name| item.contains_key(*name)) {
                part.entry(name.as_str()).or_insert_with(|| item[name].clone());
            }
        }
        selected.push(part);
    }
    Ok(selected)
}

/// Whether two values are equal; numbers by value, since `1` and `1.0` are the same key.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.as_f64() == b.as_f64() && (a.is_f64() || b.is_f64()))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selected(value: &Value, set: &Value) -> Option<Value> {
        select(value, set, &[]).expect("a field set")
    }

    #[test]
    fn a_leaf_selects_its_whole_value() {
        let object =
            json!({"spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "paused": true}});
        let set = json!({"f:spec": {"f:replicas": {}, "f:selector": {}}});
        let expected = json!({"spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}}});
        assert_eq!(selected(&object, &set), Some(expected));
        assert_eq!(selected(&json!({"a": [1, 2]}), &json!({"f:a": {".": {}}})), Some(json!({"a": [1, 2]})));
    }

    #[test]
    fn fields_that_are_gone_are_skipped_with_their_parents() {
        let object = json!({"metadata": {"name": "a"}, "spec": {"other": 1}});
        assert_eq!(selected(&object, &json!({"f:spec": {"f:replicas": {}}, "f:data": {"f:k": {}}})), None);
        let owned = json!({"f:spec": {".": {}, "f:replicas": {}}});
        assert_eq!(selected(&object, &owned), Some(json!({"spec": {}})), "the parent itself is owned");
        assert_eq!(
            selected(&json!({"spec": 1}), &json!({"f:spec": {"f:a": {}}})),
            None,
            "no longer an object"
        );
        assert_eq!(selected(&json!({"l": {"a": 1}}), &json!({"f:l": {"i:0": {}}})), None, "no longer a list");
    }

    #[test]
    fn an_item_keeps_its_owned_fields_and_its_keys() {
        let object = json!({"containers": [
            {"name": "sidecar", "image": "s:1"},
            {"name": "app", "image": "a:1", "imagePullPolicy": "Always", "ports": [
                {"containerPort": 53, "protocol": "UDP", "name": "dns"},
                {"containerPort": 53, "protocol": "TCP", "name": "tcp"},
            ]},
        ]});
        let set = json!({"f:containers": {r#"k:{"name":"app"}"#: {
            ".": {}, "f:image": {}, "f:name": {},
            "f:ports": {r#"k:{"containerPort":53,"protocol":"TCP"}"#: {".": {}, "f:containerPort": {}}},
        }}});
        assert_eq!(
            selected(&object, &set),
            Some(json!({"containers": [
                {"image": "a:1", "name": "app", "ports": [{"containerPort": 53, "protocol": "TCP"}]},
            ]}))
        );
        let only_itself = json!({"f:containers": {r#"k:{"name":"sidecar"}"#: {".": {}, "f:command": {}}}});
        assert_eq!(selected(&object, &only_itself), Some(json!({"containers": [{"name": "sidecar"}]})));
        let atomic = json!({"f:containers": {r#"k:{"name":"sidecar"}"#: {}}});
        assert_eq!(
            selected(&object, &atomic),
            Some(json!({"containers": [{"name": "sidecar", "image": "s:1"}]}))
        );
        let gone = json!({"f:containers": {r#"k:{"name":"gone"}"#: {".": {}, "f:name": {}}}});
        assert_eq!(selected(&object, &gone), None);
    }

    #[test]
    fn sets_and_indexes_select_items_in_the_order_of_the_list() {
        let object =
            json!({"tags": ["c", "a", "b"], "nums": [1, 2.0, 3], "atomic": [{"x": 1, "y": 2}, {"x": 3}]});
        let set = json!({
            "f:tags": {r#"v:"a""#: {}, r#"v:"c""#: {}, r#"v:"gone""#: {}},
            "f:nums": {"v:2": {}, "v:3.0": {}},
            "f:atomic": {"i:0": {"f:y": {}}, "i:7": {}},
        });
        assert_eq!(
            selected(&object, &set),
            Some(json!({"tags": ["c", "a"], "nums": [2.0, 3], "atomic": [{"y": 2}]}))
        );
        let emptied = json!({"f:tags": {".": {}, r#"v:"gone""#: {}}});
        assert_eq!(selected(&object, &emptied), Some(json!({"tags": []})));
    }

    #[test]
    fn a_map_that_was_applied_empty_does_not_take_the_fields_of_others() {
        let object = json!({"data": {"k": "v"}, "selector": {"a": "b"}, "tags": ["x"]});
        let set = json!({"f:data": {}, "f:selector": {}, "f:tags": {".": {}}});
        let other = json!({"f:data": {"f:k": {}}, "f:selector": {}, "f:tags": {r#"v:"x""#: {}}});
        assert_eq!(
            select(&object, &set, &[&json!({}), &other]).expect("a field set"),
            Some(json!({"data": {}, "selector": {"a": "b"}, "tags": []}))
        );
        assert_eq!(selected(&object, &set), Some(object));
    }

    #[test]
    fn field_names_may_contain_anything() {
        let object = json!({"labels": {"example.com/x:y": "1", "": "2"}});
        let set = json!({"f:labels": {"f:example.com/x:y": {}, "f:": {}}});
        assert_eq!(selected(&object, &set), Some(object));
    }

    #[test]
    fn what_is_not_a_field_set_is_an_error() {
        let error = |set: Value| select(&json!({"a": [1]}), &set, &[]).unwrap_err().to_string();
        assert_eq!(error(json!({"f:a": 1})), "the node 1 is not an object");
        for element in ["x:a", "a", "k:1", "k:{", "v:", "i:-1"] {
            assert_eq!(error(json!({"f:a": {element: {}}})), format!("{element:?} is not a path element"));
        }
    }
}
