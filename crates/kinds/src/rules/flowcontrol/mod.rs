//! Flow control: `FlowSchema` and `PriorityLevelConfiguration`.

use k1s_object::{field::At, names};
use serde_json::{Value, json};

use crate::rules::{Rules, only_status};
use crate::{
    bootstrap,
    rules::helpers::cluster_util::{
        default, default_zero, invalid_each, keep, pointer, same, structure, unchanged,
    },
};

const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
const MAX_PRECEDENCE: i64 = 10_000;
const MAX_QUEUES: i64 = 10_000_000;
/// How much of a hash shuffle sharding can use.
const MAX_HASH_BITS: f64 = 60.0;

static SCHEMA: Rules = Rules {
    defaults: default_schema,
    prepare_status,
    validate: schema_create,
    validate_update: schema_update,
    validate_status,
    ..Rules::WITH_STATUS
};

static LEVEL: Rules = Rules {
    defaults: default_level,
    prepare_status,
    validate: level_create,
    validate_update: level_update,
    validate_status,
    ..Rules::WITH_STATUS
};

pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "FlowSchema" => &SCHEMA,
        "PriorityLevelConfiguration" => &LEVEL,
        _ => return None,
    })
}

fn default_schema(schema: &mut Value) {
    if let Some(spec) = structure(schema, "spec") {
        default_zero(spec, "matchingPrecedence", 1000);
    }
}

fn default_level(level: &mut Value) {
    let Some(spec) = structure(level, "spec") else { return };
    if let Some(exempt) = pointer(spec, "exempt") {
        default(exempt, "nominalConcurrencyShares", 0);
        default(exempt, "lendablePercent", 0);
    }
    if let Some(limited) = pointer(spec, "limited") {
        default(limited, "nominalConcurrencyShares", 30);
        default(limited, "lendablePercent", 0);
        if let Some(queuing) = pointer(limited, "limitResponse").and_then(|answer| pointer(answer, "queuing"))
        {
            default_zero(queuing, "handSize", 8);
            default_zero(queuing, "queues", 64);
            default_zero(queuing, "queueLengthLimit", 50);
        }
    }
}

/// The metadata is the old one, whole.
fn prepare_status(new: &mut Value, old: &Value) {
    only_status(new, old);
    let kept = |name: &str| !matches!(name, "managedFields" | "resourceVersion");
    let (Some(meta), Some(before)) = (structure(new, "metadata"), old.get("metadata")) else { return };
    let mut names: Vec<String> = before.as_object().into_iter().flat_map(|map| map.keys().cloned()).collect();
    names.extend(meta.as_object().into_iter().flat_map(|map| map.keys().cloned()));
    for name in names.iter().filter(|name| kept(name)) {
        keep(meta, before, name);
    }
}

fn validate_status(object: At<'_, '_>, _: At<'_, '_>) {
    let mut seen = std::collections::HashSet::new();
    for condition in object.get("status").get("conditions").items() {
        let kind = condition.get("type");
        if seen.contains(&kind.text()) {
            kind.duplicate();
        }
        seen.insert(kind.text());
        if kind.is_empty() {
            kind.required("");
        }
    }
}

fn must_be_fixed(object: At<'_, '_>, fixed: Option<Value>, but: &str) {
    let Some(fixed) = fixed else { return };
    let spec = object.get("spec");
    let without = |value: Option<&Value>| {
        let mut value = value.cloned().unwrap_or(Value::Null);
        if let Some(map) = value.as_object_mut().filter(|_| !but.is_empty()) {
            map.shift_remove(but);
        }
        value
    };
    if !same(Some(&without(spec.value())), Some(&without(fixed.get("spec")))) {
        let name = object.get("metadata").get("name").text();
        let exception =
            if but.is_empty() { String::new() } else { format!(" except the 'spec.{but}' field") };
        spec.invalid(format!("spec of '{name}'{exception} must equal the fixed value"));
    }
}

fn schema_create(schema: At<'_, '_>) {
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

fn schema_update(schema: At<'_, '_>, _: At<'_, '_>) {
    schema_create(schema);
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

fn level_create(level: At<'_, '_>) {
    level_written(level);
    level_generated(level.get("spec"), None);
}

fn level_update(level: At<'_, '_>, old: At<'_, '_>) {
    level_written(level);
    level_generated(level.get("spec"), Some(old.get("spec")));
}

fn level_written(level: At<'_, '_>) {
    const PRESERVE_ZERO: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";
    let metadata = level.get("metadata");
    let annotations = metadata.get("annotations");
    if annotations.key(PRESERVE_ZERO).is_set() {
        annotations.forbidden(format!("annotation '{PRESERVE_ZERO}' is forbidden"));
    }
    let name = metadata.get("name").text();
    let spec = level.get("spec");
    let kind = spec.get("type");
    if (name == "exempt") != (kind.text() == "Exempt") {
        kind.invalid_text("must be 'Exempt' if and only if `name` is 'exempt'");
    }
    match kind.text() {
        "Exempt" => shares(spec.get("exempt")),
        "Limited" if spec.get("limited").is_set() => limited(spec.get("limited")),
        "Limited" | "" => {}
        _ => kind.not_supported(&["Exempt", "Limited"]),
    }
    let but = if name == "exempt" { "exempt" } else { "" };
    must_be_fixed(level, bootstrap::mandatory_priority_level(name), but);
    validate_status(level, level);
}

fn shares(at: At<'_, '_>) {
    let shares = at.get("nominalConcurrencyShares");
    if shares.number() < 0 {
        shares.invalid("must be a non-negative integer");
    }
    lendable(at);
}

fn lendable(at: At<'_, '_>) {
    let lendable = at.get("lendablePercent");
    if !(0..=100).contains(&lendable.number()) {
        lendable.invalid("must be between 0 and 100, inclusive");
    }
}

fn limited(at: At<'_, '_>) {
    let shares = at.get("nominalConcurrencyShares");
    if shares.number() < 0 {
        shares.invalid("must be a non-negative integer");
    }
    let answer = at.get("limitResponse");
    match answer.get("type").text() {
        "Reject" | "" => {}
        "Queue" => {
            if answer.get("queuing").is_set() {
                queuing(answer.get("queuing"));
            }
        }
        _ => answer.get("type").not_supported(&["Queue", "Reject"]),
    }
    lendable(at);
    let borrowing = at.get("borrowingLimitPercent");
    if borrowing.number() < 0 {
        borrowing.invalid("if specified, must be a non-negative integer");
    }
}

fn queuing(at: At<'_, '_>) {
    let (length, queues, hand) = (at.get("queueLengthLimit"), at.get("queues"), at.get("handSize"));
    if length.number() <= 0 {
        length.invalid_as(length.number(), "must be positive");
    }
    if queues.number() <= 0 {
        queues.invalid_as(queues.number(), "must be positive");
    } else if queues.number() > MAX_QUEUES {
        queues.invalid(format!("must not be greater than {MAX_QUEUES}"));
    }
    let (deck, cards) = (queues.number(), hand.number());
    if cards <= 0 {
        hand.invalid_as(cards, "must be positive");
    } else if cards > deck {
        hand.invalid(format!("should not be greater than queues ({deck})"));
    } else if bits(deck, cards) > MAX_HASH_BITS {
        hand.invalid(format!(
            "required entropy bits of deckSize {deck} and handSize {cards} should not be greater than {MAX_HASH_BITS}"
        ));
    }
}

fn bits(deck: i64, hand: i64) -> f64 {
    let number = |value: i64| i32::try_from(value).map_or(f64::MAX, f64::from);
    (number(deck).log2() * number(hand)).ceil()
}

/// Generated checks: they come last, and leave alone what did not change.
fn level_generated(spec: At<'_, '_>, old: Option<At<'_, '_>>) {
    let kept = |names: &[&'static str]| {
        old.is_some_and(|old| names.iter().all(|name| unchanged(spec.get(name), old.get(name))))
    };
    let kind = spec.get("type");
    if !kept(&["type", "exempt"]) && kind.text() != "Exempt" && spec.get("exempt").is_set() {
        spec.get("exempt").forbidden("");
    }
    if !kept(&["type", "limited"]) {
        match (kind.text() == "Limited", spec.get("limited").is_set()) {
            (true, false) => spec.get("limited").required(""),
            (false, true) => spec.get("limited").forbidden(""),
            _ => {}
        }
    }
    if !kept(&["type"]) && kind.is_empty() {
        kind.required("");
    }
    if kept(&["limited"]) || !spec.get("limited").is_set() {
        return;
    }
    let answer = spec.get("limited").get("limitResponse");
    match (answer.get("type").text() == "Queue", answer.get("queuing").is_set()) {
        (true, false) => answer.get("queuing").required(""),
        (false, true) => answer.get("queuing").forbidden(""),
        _ => {}
    }
    if answer.get("type").is_empty() {
        answer.get("type").required("");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::cluster_util::testing::*;

    fn level(name: &str, spec: &Value) -> Value {
        json!({"metadata": {"name": name}, "spec": spec})
    }

    #[test]
    fn levels_and_schemas_have_defaults() {
        let mut object = level(
            "a",
            &json!({"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}}),
        );
        default_level(&mut object);
        assert_eq!(
            object["spec"]["limited"],
            json!({"limitResponse": {"type": "Queue", "queuing": {"handSize": 8, "queues": 64, "queueLengthLimit": 50}},
                "nominalConcurrencyShares": 30, "lendablePercent": 0})
        );
        let mut schema = json!({"spec": {}});
        default_schema(&mut schema);
        assert_eq!(schema["spec"]["matchingPrecedence"], 1000);
    }

    #[test]
    fn a_level_is_limited_or_exempt() {
        assert_eq!(on_create(&LEVEL, level("a", &json!({}))), ["spec.type: Required value"]);
        assert_eq!(
            on_create(&LEVEL, level("a", &json!({"type": "Exempt", "limited": {}}))),
            [
                "spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'",
                "spec.limited: Forbidden",
                "spec.limited.limitResponse.type: Required value",
            ]
        );
        let deep = json!({"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {"handSize": 12, "queues": 64}}}});
        assert_eq!(
            on_create(&LEVEL, level("a", &deep)),
            [
                "spec.limited.limitResponse.queuing.handSize: Invalid value: 12: required entropy bits of deckSize 64 and handSize 12 should not be greater than 60"
            ]
        );
    }

    #[test]
    fn a_schema_says_who_does_what() {
        let spec = json!({"matchingPrecedence": 1, "rules": [{"subjects": [{"kind": "User"}], "nonResourceRules": [{"verbs": ["fly"], "nonResourceURLs": ["x"]}]}]});
        assert_eq!(
            on_create(&SCHEMA, level("a", &spec)),
            [
                "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
                "spec.priorityLevelConfiguration.name: Required value: must reference a priority level",
                "spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'",
                "spec.rules[0].nonResourceRules[0].verbs: Unsupported value: [\"fly\"]: supported values: \"create\", \"delete\", \"deletecollection\", \"get\", \"list\", \"patch\", \"proxy\", \"update\", \"watch\"",
                "spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: \"x\": must start with slash",
            ]
        );
    }

    #[test]
    fn what_a_cluster_begins_with_is_right_and_partly_fixed() {
        for object in bootstrap::flow_schemas() {
            assert_eq!(on_create(&SCHEMA, object), Vec::<String>::new());
        }
        for object in bootstrap::priority_levels() {
            assert_eq!(on_create(&LEVEL, object), Vec::<String>::new());
        }
        let mut object = bootstrap::mandatory_priority_level("catch-all").unwrap();
        object["spec"]["limited"]["nominalConcurrencyShares"] = 6.into();
        assert_eq!(on_create(&LEVEL, object).len(), 1);
    }
}
