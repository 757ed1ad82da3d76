//! Computes strategic merge patches.
//!
//! How the server merges a list of a built-in kind depends on its type: it is replaced, or merged as a set, or merged by
//! a key. A wrong guess breaks the object, so only the lists below are patched element by element. For any other list that
//! differs, the object that contains it is sent whole with `$patch: replace`, which has the same meaning for every type.

use serde_json::{Map, Value};

#[derive(Clone, Copy)]
enum Rule {
    /// An object with known fields.
    Fields(Fields),
    /// A list that is replaced.
    Atomic,
    /// A list of unique strings.
    Set,
    /// A list of objects with unique values of the key.
    Keyed(&'static str, Fields),
}

type Fields = &'static [(&'static str, Rule)];

const METADATA: (&str, Rule) = (
    "metadata",
    Rule::Fields(&[
        ("finalizers", Rule::Set),
        ("ownerReferences", Rule::Keyed("uid", &[])),
        ("managedFields", Rule::Atomic),
    ]),
);

const CONTAINER: Fields = &[
    ("args", Rule::Atomic),
    ("command", Rule::Atomic),
    ("env", Rule::Keyed("name", &[])),
    ("envFrom", Rule::Atomic),
    ("ports", Rule::Keyed("containerPort", &[])),
    ("resizePolicy", Rule::Atomic),
    ("volumeDevices", Rule::Keyed("devicePath", &[])),
    ("volumeMounts", Rule::Keyed("mountPath", &[])),
];

const POD_SPEC: Fields = &[
    ("containers", Rule::Keyed("name", CONTAINER)),
    ("ephemeralContainers", Rule::Keyed("name", CONTAINER)),
    ("hostAliases", Rule::Keyed("ip", &[("hostnames", Rule::Atomic)])),
    ("imagePullSecrets", Rule::Keyed("name", &[])),
    ("initContainers", Rule::Keyed("name", CONTAINER)),
    ("tolerations", Rule::Atomic),
    ("topologySpreadConstraints", Rule::Keyed("topologyKey", &[])),
    ("volumes", Rule::Keyed("name", &[])),
];

const TEMPLATE: Rule = Rule::Fields(&[METADATA, ("spec", Rule::Fields(POD_SPEC))]);
const TEMPLATED_SPEC: Rule = Rule::Fields(&[("template", TEMPLATE)]);
const CONDITIONS: (&str, Rule) = ("status", Rule::Fields(&[("conditions", Rule::Keyed("type", &[]))]));

const POD: Fields = &[METADATA, ("spec", Rule::Fields(POD_SPEC)), CONDITIONS];
const TEMPLATED: Fields = &[METADATA, ("spec", TEMPLATED_SPEC), CONDITIONS];
const CRON_JOB: Fields = &[
    METADATA,
    ("spec", Rule::Fields(&[("jobTemplate", Rule::Fields(&[METADATA, ("spec", TEMPLATED_SPEC)]))])),
];
const SERVICE: Fields =
    &[METADATA, ("spec", Rule::Fields(&[("ports", Rule::Keyed("port", &[]))])), CONDITIONS];
const ROLE: Fields = &[METADATA, ("rules", Rule::Atomic)];
const BINDING: Fields = &[METADATA, ("subjects", Rule::Atomic)];
const ANY: Fields = &[METADATA];

fn fields_of(group: &str, kind: &str) -> Fields {
    match (group, kind) {
        ("", "Pod") => POD,
        ("", "Service") => SERVICE,
        ("", "ReplicationController")
        | ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("batch", "Job") => TEMPLATED,
        ("batch", "CronJob") => CRON_JOB,
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => ROLE,
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => BINDING,
        _ => ANY,
    }
}

/// The strategic merge patch from `from` to `to`.
pub(super) fn diff(group: &str, kind: &str, from: &Value, to: &Value) -> Value {
    match (from, to) {
        (Value::Object(from), Value::Object(to)) => object(from, to, fields_of(group, kind)).into(),
        _ => to.clone(),
    }
}

type Object = Map<String, Value>;

fn object(from: &Object, to: &Object, fields: Fields) -> Object {
    try_object(from, to, fields).unwrap_or_else(|| {
        let mut whole = Map::from_iter([("$patch".to_owned(), "replace".into())]);
        whole.extend(to.clone());
        whole
    })
}

/// `None` if a list in this object itself differs and has no rule.
fn try_object(from: &Object, to: &Object, fields: Fields) -> Option<Object> {
    let mut patch = Map::new();
    for (name, new) in to {
        let rule = fields.iter().find(|(known, _)| known == name).map(|(_, rule)| *rule);
        match (from.get(name), new) {
            (Some(old), new) if old == new => {}
            (Some(Value::Object(old)), Value::Object(new)) => {
                let fields = if let Some(Rule::Fields(fields)) = rule { fields } else { &[] };
                patch.insert(name.clone(), object(old, new, fields).into());
            }
            (Some(Value::Array(old)), Value::Array(new)) => match rule? {
                Rule::Atomic => drop(patch.insert(name.clone(), new.clone().into())),
                Rule::Set => set(&mut patch, name, old, new),
                Rule::Keyed(key, fields) => keyed(&mut patch, name, (old, new), key, fields)?,
                Rule::Fields(_) => return None,
            },
            (_, new) => drop(patch.insert(name.clone(), new.clone())),
        }
    }
    for name in from.keys().filter(|name| !to.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    Some(patch)
}

fn set(patch: &mut Object, name: &str, old: &[Value], new: &[Value]) {
    let without = |all: &[Value], others: &[Value]| -> Vec<Value> {
        all.iter().filter(|value| !others.contains(value)).cloned().collect()
    };
    let (added, removed) = (without(new, old), without(old, new));
    if !added.is_empty() {
        patch.insert(name.to_owned(), added.into());
    }
    if !removed.is_empty() {
        patch.insert(format!("$deleteFromPrimitiveList/{name}"), removed.into());
    }
    if !new.is_empty() {
        patch.insert(format!("$setElementOrder/{name}"), new.to_vec().into());
    }
}

/// `None` if the key is not unique, as for ports of one number and two protocols, or if an element would have to be
/// replaced: in an element, `$patch: replace` replaces the whole list.
fn keyed(
    patch: &mut Object,
    name: &str,
    (old, new): (&[Value], &[Value]),
    key: &str,
    fields: Fields,
) -> Option<()> {
    let (old, new) = (by_key(old, key)?, by_key(new, key)?);
    let find = |all: &[(Value, &Object)], id: &Value| all.iter().position(|(one, _)| one == id);
    let mut elements = Vec::new();
    for (id, element) in &new {
        match find(&old, id).map(|at| old[at].1) {
            Some(before) if before == *element => {}
            Some(before) => {
                let mut change = try_object(before, element, fields)?;
                change.insert(key.to_owned(), id.clone());
                elements.push(Value::Object(change));
            }
            None => elements.push(Value::Object((*element).clone())),
        }
    }
    for (id, _) in old.iter().filter(|(id, _)| find(&new, id).is_none()) {
        let gone = [("$patch".to_owned(), Value::from("delete")), (key.to_owned(), id.clone())];
        elements.push(Value::Object(gone.into_iter().collect()));
    }
    if !elements.is_empty() {
        patch.insert(name.to_owned(), elements.into());
    }
    if !new.is_empty() {
        let order =
            new.iter().map(|(id, _)| Value::Object([(key.to_owned(), id.clone())].into_iter().collect()));
        patch.insert(format!("$setElementOrder/{name}"), order.collect());
    }
    Some(())
}

fn by_key<'v>(list: &'v [Value], key: &str) -> Option<Vec<(Value, &'v Object)>> {
    let mut out: Vec<(Value, &Object)> = Vec::with_capacity(list.len());
    for element in list {
        let element = element.as_object()?;
        let id = element.get(key).filter(|id| id.is_string() || id.is_number())?;
        if out.iter().any(|(known, _)| known == id) {
            return None;
        }
        out.push((id.clone(), element));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(spec: &Value) -> Value {
        json!({"spec": spec})
    }

    #[test]
    fn containers_are_merged_by_name() {
        let from = pod(&json!({"containers": [
            {"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]},
            {"name": "b", "image": "1"},
        ]}));
        let to = pod(&json!({"containers": [
            {"name": "c", "image": "3"},
            {"name": "a", "image": "2", "env": [{"name": "Y", "value": "2"}]},
        ]}));
        assert_eq!(
            diff("", "Pod", &from, &to),
            json!({"spec": {
                "containers": [
                    {"name": "c", "image": "3"},
                    {"name": "a", "image": "2", "env": [{"$patch": "delete", "name": "X"}],
                     "$setElementOrder/env": [{"name": "Y"}]},
                    {"$patch": "delete", "name": "b"},
                ],
                "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
            }})
        );
    }

    #[test]
    fn finalizers_are_a_set() {
        let from = json!({"metadata": {"finalizers": ["a", "b"]}});
        let to = json!({"metadata": {"finalizers": ["b", "c"]}});
        assert_eq!(
            diff("x", "Y", &from, &to),
            json!({"metadata": {
                "finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"],
                "$setElementOrder/finalizers": ["b", "c"],
            }})
        );
    }

    #[test]
    fn an_object_with_an_unknown_list_is_replaced() {
        let from = json!({"spec": {"a": {"list": [1], "other": 1}, "b": 1}});
        let to = json!({"spec": {"a": {"list": [2], "other": 1}, "b": 2}});
        assert_eq!(
            diff("x", "Y", &from, &to),
            json!({"spec": {"a": {"$patch": "replace", "list": [2], "other": 1}, "b": 2}})
        );
    }

    #[test]
    fn duplicate_keys_fall_back_to_replacing_the_object() {
        let ports = |image: &str| {
            pod(&json!({"hostname": "h", "containers": [{"name": "a", "image": image, "ports": [
                {"containerPort": 53, "protocol": "TCP", "name": image}, {"containerPort": 53, "protocol": "UDP"},
            ]}]}))
        };
        let patch = diff("", "Pod", &ports("1"), &ports("2"));
        let mut expected = ports("2")["spec"].clone();
        expected.as_object_mut().expect("an object").insert("$patch".into(), "replace".into());
        assert_eq!(patch["spec"], expected);
    }

    #[test]
    fn removed_fields_are_null_and_new_ones_are_sent_whole() {
        let from = json!({"spec": {"a": [1], "b": {"c": 1}}});
        let to = json!({"spec": {"b": {"d": [1]}, "e": [{"f": 1}]}});
        assert_eq!(
            diff("x", "Y", &from, &to),
            json!({"spec": {"b": {"d": [1], "c": null}, "e": [{"f": 1}], "a": null}})
        );
    }
}
