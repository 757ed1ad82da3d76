//! The names of definitions: within a group a name belongs to one definition.

use std::collections::HashSet;

use k1s_object::field::quote;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The result of a comparison of names.
#[derive(Debug, Clone, PartialEq)]
pub struct NamesConditions {
    /// `status.acceptedNames`
    pub accepted: Value,
    /// The condition `NamesAccepted`, without a time.
    pub names_accepted: Value,
    /// The condition `Established`, without a time unless it is unchanged.
    pub established: Value,
}

fn text<'v>(value: Option<&'v Value>, key: &str) -> &'v str {
    value.and_then(|value| value.get(key)).and_then(Value::as_str).unwrap_or_default()
}

fn texts<'v>(value: Option<&'v Value>, key: &str) -> Vec<&'v str> {
    let list = value.and_then(|value| value.get(key)).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Decodes the parts of a definition that names depend on: all but its versions, which are most of its bytes.
///
/// # Errors
/// Bytes that are not a definition.
pub fn outline(json: &[u8]) -> serde_json::Result<Value> {
    #[derive(Deserialize)]
    struct Definition {
        metadata: Metadata,
        spec: Spec,
        #[serde(default)]
        status: Value,
    }
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(default)]
        name: String,
    }
    #[derive(Deserialize)]
    struct Spec {
        #[serde(default)]
        group: Value,
        #[serde(default)]
        names: Value,
        #[serde(default)]
        conversion: Value,
    }
    let Definition { metadata, spec, status } = serde_json::from_slice(json)?;
    let mut outline = json!({
        "metadata": {"name": metadata.name},
        "spec": {"group": spec.group, "names": spec.names},
    });
    // Parts that are missing in the definition stay missing.
    if !spec.conversion.is_null() {
        outline["spec"]["conversion"] = spec.conversion;
    }
    if !status.is_null() {
        outline["status"] = status;
    }
    Ok(outline)
}

fn accepted(crd: &Value) -> Option<&Value> {
    crd.get("status").and_then(|status| status.get("acceptedNames"))
}

fn condition_of<'v>(crd: &'v Value, kind: &str) -> Option<&'v Value> {
    let conditions = crd.get("status")?.get("conditions")?.as_array()?;
    conditions.iter().find(|condition| text(Some(condition), "type") == kind)
}

/// Whether this condition of the definition is true.
pub fn is_true(crd: &Value, kind: &str) -> bool {
    condition_of(crd, kind).is_some_and(|condition| text(Some(condition), "status") == "True")
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message})
}

/// Compares the names that `crd` requests with those accepted for `others` (other groups are skipped).
pub fn names_conditions<'v>(crd: &Value, others: impl Iterator<Item = &'v Value>) -> NamesConditions {
    let group = text(crd.get("spec"), "group");
    let mut resources: HashSet<String> = HashSet::new();
    let mut kinds: HashSet<String> = HashSet::new();
    let mut claim = |names: Option<&Value>| {
        for key in ["plural", "singular"] {
            resources.insert(text(names, key).to_owned());
        }
        resources.extend(texts(names, "shortNames").into_iter().map(str::to_owned));
        for key in ["kind", "listKind"] {
            kinds.insert(text(names, key).to_owned());
        }
    };
    others.filter(|other| text(other.get("spec"), "group") == group).for_each(|other| claim(accepted(other)));
    claim(accepted(crd));

    let wanted = crd.get("spec").and_then(|spec| spec.get("names"));
    let has = accepted(crd);
    let mut names = has.and_then(Value::as_object).cloned().unwrap_or_default();
    let mut conflict: Option<(&str, String)> = None;
    let in_use = |name: &str| format!("{} is already in use", quote(name));
    let mut one =
        |names: &mut Map<String, Value>, key: &str, used: &HashSet<String>, reason: &'static str| {
            let name = text(wanted, key);
            if name != text(has, key) && used.contains(name) {
                conflict = Some((reason, in_use(name)));
            } else {
                set(names, key, Value::from(name), name.is_empty());
            }
        };
    one(&mut names, "plural", &resources, "PluralConflict");
    one(&mut names, "singular", &resources, "SingularConflict");
    let (short, has_short) = (texts(wanted, "shortNames"), texts(has, "shortNames"));
    if short != has_short {
        let mut errors: Vec<String> = Vec::new();
        let known: HashSet<&str> = has_short.iter().copied().collect();
        let mut told = HashSet::new();
        for name in &short {
            if !known.contains(name) && resources.contains(*name) && told.insert(*name) {
                errors.push(in_use(name));
            }
        }
        match errors.as_slice() {
            [] => set(&mut names, "shortNames", Value::from(short.clone()), short.is_empty()),
            [error] => conflict = Some(("ShortNamesConflict", error.clone())),
            many => conflict = Some(("ShortNamesConflict", format!("[{}]", many.join(", ")))),
        }
    }
    let mut one =
        |names: &mut Map<String, Value>, key: &str, used: &HashSet<String>, reason: &'static str| {
            let name = text(wanted, key);
            if name != text(has, key) && used.contains(name) {
                conflict = Some((reason, in_use(name)));
            } else {
                set(names, key, Value::from(name), name.is_empty());
            }
        };
    one(&mut names, "kind", &kinds, "KindConflict");
    one(&mut names, "listKind", &kinds, "ListKindConflict");
    let categories = texts(wanted, "categories");
    set(&mut names, "categories", Value::from(categories.clone()), categories.is_empty());

    let free = conflict.is_none();
    let names_accepted = match conflict {
        None => condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
        Some((reason, message)) => condition("NamesAccepted", "False", reason, &message),
    };
    let mut established = condition_of(crd, "Established")
        .cloned()
        .unwrap_or_else(|| condition("Established", "False", "NotAccepted", "not all names are accepted"));
    if free && text(Some(&established), "status") != "True" {
        established = condition("Established", "False", "Installing", "the initial names have been accepted");
    }
    NamesConditions { accepted: Value::Object(names), names_accepted, established }
}

fn set(names: &mut Map<String, Value>, key: &str, value: Value, empty: bool) {
    if empty && !matches!(key, "plural" | "kind") {
        names.shift_remove(key);
    } else {
        names.insert(key.to_owned(), value);
    }
}

fn status_mut(crd: &mut Value) -> Option<&mut Map<String, Value>> {
    let status = crd.as_object_mut()?.entry("status").or_insert_with(|| json!({}));
    if !status.is_object() {
        *status = json!({});
    }
    status.as_object_mut()
}

/// Sets a condition. Its time (RFC 3339) is that of the last change of its status.
pub fn set_condition(crd: &mut Value, condition: &Value, now: &str) {
    let Some(status) = status_mut(crd) else { return };
    let conditions = status.entry("conditions").or_insert(Value::Null);
    if !conditions.is_array() {
        *conditions = Value::Array(Vec::new());
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    let kind = text(Some(condition), "type");
    let field = |key: &str| text(Some(condition), key);
    match conditions.iter_mut().find(|existing| text(Some(existing), "type") == kind) {
        Some(existing) => {
            let changed = text(Some(existing), "status") != field("status")
                || text(Some(existing), "lastTransitionTime").is_empty();
            let Some(existing) = existing.as_object_mut() else { return };
            if changed {
                existing.insert("lastTransitionTime".to_owned(), Value::from(now));
            }
            for key in ["status", "reason", "message"] {
                existing.insert(key.to_owned(), Value::from(field(key)));
            }
        }
        None => conditions.push(json!({
            "type": kind,
            "status": field("status"),
            "lastTransitionTime": now,
            "reason": field("reason"),
            "message": field("message"),
        })),
    }
}

/// Updates the accepted names and the conditions of a definition; returns whether anything changed.
pub fn accept_names<'v>(crd: &mut Value, others: impl Iterator<Item = &'v Value>, now: &str) -> bool {
    let wanted = crd.get("spec").and_then(|spec| spec.get("names"));
    if wanted.is_some() && wanted == accepted(crd) {
        return false;
    }
    let result = names_conditions(crd, others);
    let same = |key: &str| {
        let existing = condition_of(crd, "NamesAccepted");
        text(existing, key) == text(Some(&result.names_accepted), key)
    };
    if accepted(crd) == Some(&result.accepted)
        && ["type", "status", "reason", "message"].into_iter().all(same)
    {
        return false;
    }
    if let Some(status) = status_mut(crd) {
        status.insert("acceptedNames".to_owned(), result.accepted);
    }
    set_condition(crd, &result.names_accepted, now);
    set_condition(crd, &result.established, now);
    true
}

/// Establishes a definition whose names are accepted; returns whether anything changed.
pub fn establish(crd: &mut Value, now: &str) -> bool {
    if !is_true(crd, "NamesAccepted") || is_true(crd, "Established") {
        return false;
    }
    let conversion = crd.get("spec").and_then(|spec| spec.get("conversion"));
    let established = if conversion.and_then(crate::crd::conversion::ca_bundle_error).is_some() {
        condition("Established", "False", "InvalidCABundle", "The conversion webhook CABundle is invalid")
    } else {
        condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
    };
    let before = crd.get("status").cloned();
    set_condition(crd, &established, now);
    crd.get("status") != before.as_ref()
}

/// The progress of the deletion of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Termination {
    /// It was requested.
    Pending,
    /// Its objects are being deleted.
    InProgress,
    /// All objects are deleted.
    Completed,
    /// There were no objects.
    NeverEstablished,
}

/// Sets the condition `Terminating`.
pub fn set_terminating(crd: &mut Value, how: Termination, now: &str) {
    let (status, reason, message) = match how {
        Termination::Pending => (
            "True",
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        ),
        Termination::InProgress => {
            ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
        }
        Termination::Completed => ("False", "InstanceDeletionCompleted", "removed all instances"),
        Termination::NeverEstablished => ("False", "NeverEstablished", "resource was never established"),
    };
    set_condition(crd, &condition("Terminating", status, reason, message), now);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(names: &Value, accepted: &Value) -> Value {
        json!({"spec": {"group": "example.com", "names": names}, "status": {"conditions": null, "acceptedNames": accepted}})
    }

    #[test]
    fn the_outline_of_a_definition_is_judged_like_the_whole() {
        let names = json!({"plural": "as", "singular": "a", "kind": "A", "listKind": "AList"});
        let mut whole = crd(&names, &json!({"plural": "", "kind": ""}));
        whole["metadata"] = json!({"name": "as.example.com", "annotations": {"a": "b"}});
        whole["spec"]["versions"] = json!([{"name": "v1", "schema": {}}]);
        whole["spec"]["conversion"] = json!({"strategy": "None"});
        let mut outline = outline(whole.to_string().as_bytes()).unwrap();
        assert_eq!(
            outline["spec"],
            json!({"group": "example.com", "names": names, "conversion": {"strategy": "None"}})
        );
        assert_eq!(outline["metadata"], json!({"name": "as.example.com"}));
        for crd in [&mut whole, &mut outline] {
            assert!(accept_names(crd, [].into_iter(), "t1") && establish(crd, "t1"));
        }
        assert_eq!(outline["status"], whole["status"]);
        let bare = super::outline(br#"{"metadata":{"name":"x"},"spec":{"group":"g"}}"#).unwrap();
        assert!(bare.get("status").is_none() && bare["spec"].get("conversion").is_none());
    }

    #[test]
    fn free_names_are_accepted_and_then_established() {
        let names =
            json!({"plural": "as", "singular": "a", "kind": "A", "listKind": "AList", "categories": ["all"]});
        let mut one = crd(&names, &json!({"plural": "", "kind": ""}));
        assert!(accept_names(&mut one, [].into_iter(), "t1"));
        assert_eq!(one["status"]["acceptedNames"], names);
        assert!(establish(&mut one, "t2"));
        assert_eq!(
            one["status"]["conditions"],
            json!([
                {"type": "NamesAccepted", "status": "True", "lastTransitionTime": "t1", "reason": "NoConflicts", "message": "no conflicts found"},
                {"type": "Established", "status": "True", "lastTransitionTime": "t2", "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"},
            ])
        );
        assert!(!accept_names(&mut one, [].into_iter(), "t3"));
        assert!(!establish(&mut one, "t3"));
    }

    #[test]
    fn taken_names_are_refused_with_the_last_conflict_as_reason() {
        let taken = json!({"plural": "ws", "singular": "w", "kind": "W", "listKind": "WList", "shortNames": ["wd", "we"]});
        let other = crd(&taken, &taken);
        let empty = json!({"plural": "", "kind": ""});
        for (names, reason, message) in [
            (
                json!({"plural": "ws", "singular": "g", "kind": "G", "listKind": "GList"}),
                "PluralConflict",
                "\"ws\" is already in use",
            ),
            (
                json!({"plural": "gs", "singular": "w", "kind": "G", "listKind": "GList"}),
                "SingularConflict",
                "\"w\" is already in use",
            ),
            (
                json!({"plural": "gs", "singular": "g", "kind": "G", "listKind": "GList", "shortNames": ["wd", "gd"]}),
                "ShortNamesConflict",
                "\"wd\" is already in use",
            ),
            (
                json!({"plural": "gs", "singular": "g", "kind": "G", "listKind": "GList", "shortNames": ["wd", "we"]}),
                "ShortNamesConflict",
                "[\"wd\" is already in use, \"we\" is already in use]",
            ),
            (
                json!({"plural": "gs", "singular": "g", "kind": "W", "listKind": "GList"}),
                "KindConflict",
                "\"W\" is already in use",
            ),
            (
                json!({"plural": "ws", "singular": "g", "kind": "G", "listKind": "WList"}),
                "ListKindConflict",
                "\"WList\" is already in use",
            ),
        ] {
            let result = names_conditions(&crd(&names, &empty), [&other].into_iter());
            assert_eq!(
                result.names_accepted,
                json!({"type": "NamesAccepted", "status": "False", "reason": reason, "message": message})
            );
            assert_eq!(result.established["reason"], "NotAccepted");
        }
    }
}
