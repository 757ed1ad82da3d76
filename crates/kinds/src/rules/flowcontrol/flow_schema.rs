//! `FlowSchema`.

use super::{must_be_fixed, prepare_status, validate_status};
use crate::{
    bootstrap,
    rules::{
        Rules,
        helpers::{
            errors::invalid_each,
            json::{default_zero, structure},
        },
    },
};
use k1s_object::{field::At, names};
use serde_json::{Value, json};

const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

const MAX_PRECEDENCE: i64 = 10_000;

pub(super) static RULES: Rules =
    Rules { defaults, prepare_status, validate, validate_update, validate_status, ..Rules::WITH_STATUS };

fn defaults(schema: &mut Value) {
    if let Some(spec) = structure(schema, "spec") {
        default_zero(spec, "matchingPrecedence", 1000);
    }
}

fn validate(schema: At<'_, '_>) {
    let name = schema.get("metadata").get("name").text();
    let spec = schema.get("spec");
    let precedence = spec.get("matchingPrecedence");
    match precedence.number() {
        ..=0 => precedence.invalid_as(precedence.number(), "must be a positive value"),
        1 if name != "exempt" => {
            precedence.invalid("only the schema named 'exempt' may have matchingPrecedence 1");
        }
        number if number > MAX_PRECEDENCE => {
            precedence.invalid(format!("must not be greater than {MAX_PRECEDENCE}"));
        }
        _ => {}
    }
    let method = spec.get("distinguisherMethod");
    if method.is_set() && !matches!(method.get("type").text(), "ByNamespace" | "ByUser") {
        let shown = json!({"Type": method.get("type").text()});
        method.get("type").check().push(k1s_object::field::FieldError::not_supported(
            method.get("type").path(),
            shown,
            &["ByNamespace", "ByUser"],
        ));
    }
    let level = spec.get("priorityLevelConfiguration").get("name");
    if level.is_empty() {
        level.required("must reference a priority level");
    } else {
        invalid_each(level, names::is_dns1123_subdomain(level.text()));
    }
    for rule in spec.get("rules").items() {
        rule_with_subjects(rule);
    }
    must_be_fixed(schema, bootstrap::mandatory_flow_schema(name), "");
    validate_status(schema, schema);
}

fn validate_update(schema: At<'_, '_>, _: At<'_, '_>) {
    validate(schema);
}

fn rule_with_subjects(rule: At<'_, '_>) {
    let subjects = rule.get("subjects");
    if subjects.is_empty() {
        subjects.required("subjects must contain at least one value");
    }
    for subject in subjects.items() {
        flow_subject(subject);
    }
    let (resources, paths) = (rule.get("resourceRules"), rule.get("nonResourceRules"));
    if resources.is_empty() && paths.is_empty() {
        rule.required("at least one of resourceRules and nonResourceRules has to be non-empty");
    }
    for resource in resources.items() {
        resource_rule(resource);
    }
    for path in paths.items() {
        path_rule(path);
    }
}

fn flow_subject(subject: At<'_, '_>) {
    let parts = [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let kind = subject.get("kind").text();
    let Some((_, own)) = parts.iter().find(|(name, _)| *name == kind) else {
        return subject.get("kind").not_supported(&["Group", "ServiceAccount", "User"]);
    };
    let part = subject.get(own);
    if !part.is_set() {
        part.required(format!("{own} is required when subject kind is '{kind}'"));
    } else {
        let name = part.get("name");
        if name.is_empty() {
            name.required("");
        } else if kind == "ServiceAccount" && name.text() != "*" {
            invalid_each(name, names::is_dns1123_subdomain(name.text()));
        }
        if kind == "ServiceAccount" {
            let namespace = part.get("namespace");
            if namespace.is_empty() {
                namespace.required("must specify namespace for service account");
            } else {
                invalid_each(namespace, names::is_dns1123_label(namespace.text()));
            }
        }
    }
    let order = if kind == "ServiceAccount" {
        ["user", "group"]
    } else {
        ["serviceAccount", if kind == "User" { "group" } else { "user" }]
    };
    for other in order {
        if subject.get(other).is_set() {
            let needed = parts.iter().find(|(_, part)| *part == other).map_or("", |(name, _)| name);
            subject.get(other).forbidden(format!("{other} is forbidden when subject kind is not '{needed}'"));
        }
    }
}

fn has_star(list: At<'_, '_>) -> bool {
    list.items().any(|item| item.text() == "*")
}

fn verbs(rule: At<'_, '_>) {
    let verbs = rule.get("verbs");
    if verbs.is_empty() {
        verbs.required("verbs must contain at least one value");
    } else if has_star(verbs) {
        if verbs.len() > 1 {
            verbs.invalid("if '*' is present, must not specify other verbs");
        }
    } else if !verbs.items().all(|verb| VERBS.contains(&verb.text())) {
        verbs.not_supported(&VERBS);
    }
}

fn path_rule(rule: At<'_, '_>) {
    verbs(rule);
    let urls = rule.get("nonResourceURLs");
    if urls.is_empty() {
        urls.required("nonResourceURLs must contain at least one value");
    } else if has_star(urls) {
        if urls.len() > 1 {
            urls.invalid("if '*' is present, must not specify other non-resource URLs");
        }
    } else {
        for url in urls.items() {
            if let Some(why) = wrong_path(url.text()) {
                url.invalid_text(why);
            }
        }
    }
}

fn wrong_path(path: &str) -> Option<&'static str> {
    let stars = path.matches('*').count();
    if path.is_empty() {
        Some("must not be empty")
    } else if path == "/" {
        None
    } else if !path.starts_with('/') {
        Some("must start with slash")
    } else if path.contains(' ') {
        Some("must not contain white-space")
    } else if path.contains("//") {
        Some("must not contain double slash")
    } else if stars > 1 || stars == 1 && !path.ends_with("/*") {
        Some("wildcard can only do suffix matching")
    } else {
        None
    }
}

fn resource_rule(rule: At<'_, '_>) {
    verbs(rule);
    for (name, none, more) in [
        (
            "apiGroups",
            "resource rules must supply at least one api group",
            "if '*' is present, must not specify other api groups",
        ),
        (
            "resources",
            "resource rules must supply at least one resource",
            "if '*' is present, must not specify other resources",
        ),
    ] {
        let list = rule.get(name);
        if list.is_empty() {
            list.required(none);
        } else if list.len() > 1 && has_star(list) {
            list.invalid(more);
        }
    }
    let namespaces = rule.get("namespaces");
    if namespaces.is_empty() {
        if !rule.get("clusterScope").is_true() {
            namespaces
                .required("resource rules that are not cluster scoped must supply at least one namespace");
        }
    } else if has_star(namespaces) {
        if namespaces.len() > 1 {
            namespaces.invalid("if '*' is present, must not specify other namespaces");
        }
    } else {
        for namespace in namespaces.items() {
            for message in names::is_dns1123_label(namespace.text()) {
                namespace.invalid_text(format!(
                    "each member of this list must be '*' or a DNS-1123 label; {message}"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing::*;

    #[test]
    fn a_schema_says_who_does_what() {
        let spec = json!({"matchingPrecedence": 1, "rules": [{"subjects": [{"kind": "User"}], "nonResourceRules": [{"verbs": ["fly"], "nonResourceURLs": ["x"]}]}]});
        assert_eq!(
            on_create(&RULES, json!({"metadata": {"name": "a"}, "spec": spec})),
            [
                "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
                "spec.priorityLevelConfiguration.name: Required value: must reference a priority level",
                "spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'",
                "spec.rules[0].nonResourceRules[0].verbs: Unsupported value: [\"fly\"]: supported values: \"create\", \"delete\", \"deletecollection\", \"get\", \"list\", \"patch\", \"proxy\", \"update\", \"watch\"",
                "spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: \"x\": must start with slash",
            ]
        );
    }
}
