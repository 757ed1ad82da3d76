//! `ValidatingAdmissionPolicy` and `MutatingAdmissionPolicy`.

use super::{
    cel::{check, is_identifier},
    matching::{
        FAILURE_POLICIES, REINVOCATION_POLICIES, match_conditions, match_resources, mutating_operations,
    },
};
use crate::expressions::{Compiler, Purpose, Scope};
use crate::rules::helpers::{
    equality::unchanged,
    go_values::go_texts,
    json::{default, items, pointer, structure},
    text::one_of_or_unset,
};
use k1s_object::meta::validate_conditions as conditions;
use k1s_object::{field::At, names};
use serde_json::{Value, json};

/// Maximum number of variables of a policy. Upstream has no limit, but each is declared for all that follow it.
const MAX_VARIABLES: usize = 256;

const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

pub(super) fn default_policy(policy: &mut Value) {
    if let Some(spec) = structure(policy, "spec") {
        default(spec, "failurePolicy", "Fail");
        default_match(spec, "matchConstraints");
    }
}

pub(super) fn default_match(spec: &mut Value, name: &str) {
    let Some(matching) = pointer(spec, name) else { return };
    default(matching, "matchPolicy", "Equivalent");
    default(matching, "namespaceSelector", json!({}));
    default(matching, "objectSelector", json!({}));
    for name in ["resourceRules", "excludeResourceRules"] {
        for rule in items(matching, name) {
            default(rule, "scope", "*");
        }
    }
}

fn same_conditions(new: At<'_, '_>, old: Option<At<'_, '_>>) -> bool {
    old.is_some_and(|old| {
        ["paramKind", "matchConditions"].iter().all(|name| unchanged(new.get(name), old.get(name)))
    })
}

/// The checks that both kinds of policy begin with. Returns the compiler for their other expressions.
fn common(spec: At<'_, '_>, old: Option<At<'_, '_>>, mutating: bool) -> Compiler {
    if spec.get("failurePolicy").is_set() {
        one_of_or_unset(spec.get("failurePolicy"), &FAILURE_POLICIES);
    } else {
        spec.get("failurePolicy").required("");
    }
    let params = spec.get("paramKind").is_set();
    if params {
        param_kind(spec.get("paramKind"));
    }
    let constraints = spec.get("matchConstraints");
    if constraints.is_set() {
        match_resources(constraints);
        if constraints.get("resourceRules").is_empty() {
            constraints.get("resourceRules").required("");
        }
        if mutating {
            mutating_operations(constraints);
        }
    } else {
        constraints.required("");
    }
    let scope = Scope { params, authorizer: true, patches: false };
    if !same_conditions(spec, old) {
        match_conditions(spec.get("matchConditions"), &Compiler::new(scope));
    }
    // As upstream: a validating policy without variables does not know `variables`.
    let mut compiler = match mutating || !spec.get("variables").is_empty() {
        true => Compiler::of_policy(scope),
        false => Compiler::new(scope),
    };
    let variables = spec.get("variables");
    if variables.len() > MAX_VARIABLES {
        variables.too_many(MAX_VARIABLES);
        return compiler;
    }
    for variable in variables.items() {
        let (name, expression) = (variable.get("name"), variable.get("expression"));
        if name.text().trim().is_empty() {
            name.required("name is not specified");
        } else if !is_identifier(name.text()) {
            name.invalid("must be a valid CEL identifier");
        }
        if expression.text().trim().is_empty() {
            expression.required("expression is not specified");
        } else if let Some(fault) = compiler.add_variable(name.text(), expression.text()) {
            expression.invalid(fault.to_string());
        }
    }
    compiler
}

fn param_kind(at: At<'_, '_>) {
    let (version, kind) = (at.get("apiVersion"), at.get("kind"));
    let text = version.text();
    if text.is_empty() {
        version.required("");
    } else if text.matches('/').count() > 1 {
        version.invalid(format!("unexpected GroupVersion string: {text}"));
    } else {
        let (group, number) = text.split_once('/').unwrap_or(("", text));
        let wrong = names::is_dns1123_subdomain(group);
        if !group.is_empty() && !wrong.is_empty() {
            version.invalid_as(group, wrong.join(","));
        }
        let wrong = names::is_dns1035_label(number);
        if number.is_empty() {
            version.invalid("version must be specified");
        } else if !wrong.is_empty() {
            version.invalid_as(number, wrong.join(","));
        }
    }
    let wrong = names::is_dns1035_label(&kind.text().to_lowercase());
    if kind.is_empty() {
        kind.required("");
    } else if !wrong.is_empty() {
        kind.invalid(format!("may have mixed case, but should otherwise match: {}", wrong.join(",")));
    }
}

pub(super) fn validating(new: At<'_, '_>, old: Option<At<'_, '_>>) {
    let spec = new.get("spec");
    let compiler = common(spec, old.map(|old| old.get("spec")), false);
    let (validations, annotations) = (spec.get("validations"), spec.get("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        let why = "validations or auditAnnotations must contain at least one item";
        validations.required(why);
        annotations.required(why);
        return;
    }
    for one in validations.items() {
        validation(one, &compiler);
    }
    if annotations.len() > 20 {
        let shown: Vec<Value> = annotations
            .items()
            .map(|one| go_texts(one, &[("Key", "key"), ("ValueExpression", "valueExpression")]))
            .collect();
        annotations.invalid_as(shown, "must not have more than 20 auditAnnotations");
    }
    let name = new.get("metadata").get("name").text();
    let mut seen = std::collections::HashSet::new();
    for annotation in annotations.items() {
        audit_annotation(annotation, name, &compiler);
        let key = annotation.get("key");
        if seen.contains(&key.text()) {
            key.duplicate();
        }
        seen.insert(key.text());
    }
}

fn validation(at: At<'_, '_>, compiler: &Compiler) {
    let expression = at.get("expression");
    if expression.text().trim().is_empty() {
        expression.required("expression is not specified");
    } else {
        check(expression, compiler, expression.text(), Purpose::Validation);
    }
    let words = at.get("messageExpression");
    if !words.text().trim().is_empty() {
        check(words, compiler, words.text(), Purpose::Message);
    } else if !words.is_empty() {
        words.invalid("must be non-empty if specified");
    }
    let message = at.get("message");
    let trimmed = message.text().trim();
    if !message.is_empty() && trimmed.is_empty() {
        message.invalid("must be non-empty if specified");
    } else if trimmed.contains(['\n', '\r']) {
        message.invalid("must not contain line breaks");
    }
    one_of_or_unset(at.get("reason"), &REASONS);
}

fn audit_annotation(at: At<'_, '_>, policy: &str, compiler: &Compiler) {
    let (key, value) = (at.get("key"), at.get("valueExpression"));
    if policy.is_empty() {
        key.invalid_text("requires metadata.name be non-empty");
    } else {
        let qualified = format!("{policy}/{}", key.text());
        for message in names::is_qualified_name(&qualified) {
            key.invalid_as(qualified.as_str(), message);
        }
    }
    match value.text().trim().len() {
        0 => value.required("valueExpression is not specified"),
        5121.. => value.required("must not exceed 5120 bytes in length"),
        _ => check(value, compiler, value.text(), Purpose::AuditAnnotation),
    }
}

pub(super) fn mutating(new: At<'_, '_>, old: Option<At<'_, '_>>) {
    let spec = new.get("spec");
    let compiler = common(spec, old.map(|old| old.get("spec")), true);
    let mutations = spec.get("mutations");
    if mutations.is_empty() {
        mutations.required("mutations must contain at least one item");
    }
    for one in mutations.items() {
        mutation(one, &compiler);
    }
    let policy = spec.get("reinvocationPolicy");
    if policy.is_empty() {
        policy.required("");
    } else {
        one_of_or_unset(policy, &REINVOCATION_POLICIES);
    }
}

fn mutation(at: At<'_, '_>, compiler: &Compiler) {
    let kind = at.get("patchType");
    let (own, other, purpose) = match kind.text() {
        "" => return kind.required(""),
        "JSONPatch" => ("jsonPatch", "applyConfiguration", Purpose::JsonPatch),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Purpose::ApplyConfiguration),
        _ => return kind.not_supported(&["ApplyConfiguration", "JSONPatch"]),
    };
    if at.get(own).is_set() {
        let expression = at.get(own).get("expression");
        match expression.text().trim() {
            "" => expression.required(""),
            text => check(expression, compiler, text, purpose),
        }
    } else {
        at.get(own).required(format!("must be specified when patchType is {}", kind.text()));
    }
    if at.get(other).is_set() {
        at.get(other).invalid_as(
            format!("{{{other}}}"),
            format!("must not be specified when patchType is {}", kind.text()),
        );
    }
}

pub(super) fn policy_status(policy: At<'_, '_>, _: At<'_, '_>) {
    let status = policy.get("status");
    for warning in status.get("typeChecking").get("expressionWarnings").items() {
        for (name, text) in
            [("warning", warning.get("warning").text()), ("fieldRef", warning.get("fieldRef").text().trim())]
        {
            if text.is_empty() {
                warning.get(name).required("");
            }
        }
    }
    conditions(status.get("conditions"));
}
