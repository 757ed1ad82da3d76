//! `RuntimeClass`: overhead, node selector and tolerations of a pod from its class.

use k1s_object::quantity::Quantity;
use serde_json::{Value, json};

use crate::rules::helpers::json::{child, object, text_at};

const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

fn overhead_of(class: &Value) -> Option<&Value> {
    class.get("overhead").filter(|overhead| !overhead.is_null())
}

fn same_amounts(a: Option<&Value>, b: Option<&Value>) -> bool {
    let amounts = |list: Option<&Value>| -> Vec<(String, Option<Quantity>)> {
        let entries = list.and_then(Value::as_object).into_iter().flatten();
        let mut list: Vec<_> =
            entries.map(|(name, amount)| (name.clone(), Quantity::from_json(amount).ok())).collect();
        list.sort_by(|a, b| a.0.cmp(&b.0));
        list
    };
    amounts(a) == amounts(b)
}

/// Applies its class to a new pod. The error is the text after `is forbidden: `.
pub fn apply_runtime_class(pod: &mut Value, class: &Value) -> Result<(), String> {
    let spec = child(object(pod), "spec");
    if let Some(overhead) = overhead_of(class) {
        let sent = spec.get("overhead");
        let said = sent.and_then(Value::as_object).is_some_and(|amounts| !amounts.is_empty());
        let fixed = overhead.get("podFixed");
        if said && !same_amounts(sent, fixed) {
            return Err(MISMATCH.into());
        }
        match fixed {
            Some(fixed) => spec.insert("overhead".into(), fixed.clone()),
            None => spec.shift_remove("overhead"),
        };
    }
    let Some(scheduling) = class.get("scheduling").filter(|scheduling| !scheduling.is_null()) else {
        return Ok(());
    };
    let wanted = scheduling.get("nodeSelector").and_then(Value::as_object);
    for (key, value) in wanted.into_iter().flatten() {
        let selector = child(spec, "nodeSelector");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if let Some(sent) = selector.get(key).filter(|sent| *sent != value) {
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                text(value),
                text(sent)
            ));
        }
        selector.insert(key.clone(), value.clone());
    }
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let more = list(scheduling.get("tolerations"));
    let merged = merge_tolerations(&[list(spec.get("tolerations")), more].concat());
    if merged.is_empty() {
        spec.shift_remove("tolerations");
    } else {
        spec.insert("tolerations".into(), json!(merged));
    }
    Ok(())
}

/// Whether a pod's overhead is that of its class. The error is the text after `is forbidden: `.
pub fn check_overhead(pod: &Value, class: Option<&Value>) -> Result<(), String> {
    let sent = pod.pointer("/spec/overhead").filter(|sent| !sent.is_null());
    match class.and_then(overhead_of) {
        Some(overhead) if same_amounts(sent, overhead.get("podFixed")) => Ok(()),
        Some(_) => Err(MISMATCH.into()),
        None if sent.is_some() => {
            Err("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead".into())
        }
        None => Ok(()),
    }
}

/// Maximum number of tolerations that are merged; longer lists are left as they are.
const MAX_COMPARED: usize = 1000;

/// Drops tolerations that are subsumed by others.
fn merge_tolerations(all: &[Value]) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    if all.len() > MAX_COMPARED {
        return all.to_vec();
    }
    for (i, one) in all.iter().enumerate() {
        let included = merged.iter().any(|other| includes(other, one))
            || all.iter().skip(i + 1).any(|other| other != one && includes(other, one));
        if !included {
            merged.push(one.clone());
        }
    }
    merged
}

fn includes(big: &Value, small: &Value) -> bool {
    if big == small {
        return true;
    }
    let (key, operator, effect) =
        (text_at(big, &["key"]), text_at(big, &["operator"]), text_at(big, &["effect"]));
    if text_at(small, &["key"]) != key && !(key.is_empty() && operator == "Exists") {
        return false;
    }
    if text_at(small, &["effect"]) != effect && !effect.is_empty() {
        return false;
    }
    let seconds = |one: &Value| one.get("tolerationSeconds").and_then(Value::as_i64);
    if effect == "NoExecute"
        && let Some(most) = seconds(big)
        && seconds(small).is_none_or(|asked| asked > most)
    {
        return false;
    }
    match operator {
        "Exists" => true,
        "" | "Equal" => {
            text_at(small, &["operator"]) == "Equal" && text_at(small, &["value"]) == text_at(big, &["value"])
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(memory: &str) -> Value {
        json!({
            "overhead": {"podFixed": {"memory": memory}},
            "scheduling": {"nodeSelector": {"rt": "yes"}, "tolerations": [{"key": "rt", "operator": "Exists"}]},
        })
    }

    #[test]
    fn a_pod_gets_what_its_class_says() {
        let mut pod = json!({"spec": {"tolerations": [{"key": "rt", "operator": "Equal", "value": "x"}]}});
        apply_runtime_class(&mut pod, &class("10Mi")).unwrap();
        assert_eq!(
            pod,
            json!({"spec": {
                "tolerations": [{"key": "rt", "operator": "Exists"}],
                "overhead": {"memory": "10Mi"}, "nodeSelector": {"rt": "yes"},
            }})
        );
        assert_eq!(check_overhead(&pod, Some(&class("10Mi"))), Ok(()));
    }

    #[test]
    fn a_pod_must_not_contradict_its_runtime_class() {
        let mut pod = json!({"spec": {"overhead": {"memory": "1Mi"}}});
        assert_eq!(apply_runtime_class(&mut pod, &class("10Mi")), Err(MISMATCH.into()));
        assert_eq!(
            check_overhead(&pod, None),
            Err("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead".into())
        );
        let mut pod = json!({"spec": {"nodeSelector": {"rt": "no"}}});
        assert_eq!(
            apply_runtime_class(&mut pod, &class("10Mi")),
            Err("conflict: runtimeClass.scheduling.nodeSelector[rt] = yes; pod.spec.nodeSelector[rt] = no"
                .into())
        );
    }
}
