//! The match criteria of webhooks and policies: rules, selectors, conditions.

use k1s_object::{
    field::{At, FieldError},
    names,
    selector::validate_label_selector,
};

use super::cel::check;
use crate::expressions::{Compiler, Purpose};
use crate::rules::helpers::{errors::invalid_each, text::one_of_or_unset};

pub(super) const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
pub(super) const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];
pub(super) const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const MUTATING_OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];

fn has_star(list: At<'_, '_>) -> bool {
    list.items().any(|item| item.text() == "*")
}

/// A list that is not empty, with `*` only alone.
fn star_alone(list: At<'_, '_>, others: &str) {
    if list.is_empty() {
        list.required("");
    }
    if list.len() > 1 && has_star(list) {
        list.invalid(format!("if '*' is present, must not specify other {others}"));
    }
}

pub(super) fn rule_with_operations(rule: At<'_, '_>) {
    let operations = rule.get("operations");
    star_alone(operations, "operations");
    for operation in operations.items() {
        if !OPERATIONS.contains(&operation.text()) {
            operation.not_supported(&OPERATIONS);
        }
    }
    star_alone(rule.get("apiGroups"), "API groups");
    star_alone(rule.get("apiVersions"), "API versions");
    for version in rule.get("apiVersions").items() {
        if version.is_empty() {
            version.required("");
        }
    }
    resources(rule.get("resources"));
    one_of_or_unset(rule.get("scope"), &["*", "Cluster", "Namespaced"]);
}

fn resources(list: At<'_, '_>) {
    if list.is_empty() {
        list.required("");
    }
    let mut any_sub_of: std::collections::HashSet<&str> = std::collections::HashSet::new();
    let mut sub_of_any: std::collections::HashSet<&str> = std::collections::HashSet::new();
    let (mut both, mut star, mut plain) = (false, false, false);
    for item in list.items() {
        let text = item.text();
        if text.is_empty() {
            item.required("");
            continue;
        }
        both |= text == "*/*";
        star |= text == "*";
        let Some((resource, sub)) = text.split_once('/') else {
            plain = text != "*";
            continue;
        };
        if any_sub_of.contains(&resource) {
            item.invalid(format!("if '{resource}/*' is present, must not specify {text}"));
        }
        if sub_of_any.contains(&sub) {
            item.invalid(format!("if '*/{sub}' is present, must not specify {text}"));
        }
        if sub == "*" {
            any_sub_of.insert(resource);
        }
        if resource == "*" {
            sub_of_any.insert(sub);
        }
    }
    if list.len() > 1 && both {
        list.invalid("if '*/*' is present, must not specify other resources");
    }
    if star && plain {
        list.invalid("if '*' is present, must not specify other resources without subresources");
    }
}

/// `matchConstraints` of a policy, `matchResources` of a binding.
pub(super) fn match_resources(at: At<'_, '_>) {
    if !at.is_set() {
        return;
    }
    if !at.get("matchPolicy").is_set() {
        at.get("matchPolicy").required("");
    } else {
        one_of_or_unset(at.get("matchPolicy"), &MATCH_POLICIES);
    }
    for name in ["namespaceSelector", "objectSelector"] {
        if at.get(name).is_set() {
            validate_label_selector(at.get(name), false);
        } else {
            at.get(name).required("");
        }
    }
    for name in ["resourceRules", "excludeResourceRules"] {
        for rule in at.get(name).items() {
            let mut seen = std::collections::HashSet::new();
            for item in rule.get("resourceNames").items() {
                invalid_each(item, names::is_path_segment_name(item.text()));
                if seen.contains(&item.text()) {
                    item.duplicate();
                }
                seen.insert(item.text());
            }
            rule_with_operations(rule);
        }
    }
}

/// The operations of a mutating policy; the error does not show the index of an invalid one.
pub(super) fn mutating_operations(at: At<'_, '_>) {
    let shown = at.get("resourceRules").get("operations");
    for rule in at.get("resourceRules").items() {
        for operation in rule.get("operations").items() {
            if !MUTATING_OPERATIONS.contains(&operation.text()) {
                let error = FieldError::not_supported(shown.path(), operation.text(), &MUTATING_OPERATIONS);
                shown.check().push(error);
            }
        }
    }
}

pub(super) fn match_conditions(list: At<'_, '_>, compiler: &Compiler) {
    if list.len() > 64 {
        list.too_many(64);
    }
    let mut seen = std::collections::HashSet::new();
    for condition in list.items() {
        let (name, expression) = (condition.get("name"), condition.get("expression"));
        let text = expression.text().trim();
        if text.is_empty() {
            expression.required("");
        } else {
            check(expression, compiler, text, Purpose::MatchCondition);
        }
        if name.is_empty() {
            name.required("");
            continue;
        }
        invalid_each(name, names::is_qualified_name(name.text()));
        if seen.contains(&name.text()) {
            name.duplicate();
        }
        seen.insert(name.text());
    }
}
