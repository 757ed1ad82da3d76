//! `ValidatingWebhookConfiguration` and `MutatingWebhookConfiguration`.

use k1s_object::{field::At, names, selector::validate_label_selector};
use serde_json::Value;

use super::matching::{
    FAILURE_POLICIES, MATCH_POLICIES, REINVOCATION_POLICIES, match_conditions, rule_with_operations,
};
use crate::expressions::{Compiler, Scope};
use crate::rules::helpers::{
    equality::unchanged,
    errors::finds_fault,
    json::{default, items, pointer},
    text::one_of_or_unset,
};

const NO_SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];

pub(super) fn defaults(configuration: &mut Value, mutating: bool) {
    for hook in items(configuration, "webhooks") {
        default(hook, "failurePolicy", "Fail");
        default(hook, "matchPolicy", "Equivalent");
        default(hook, "namespaceSelector", serde_json::json!({}));
        default(hook, "objectSelector", serde_json::json!({}));
        default(hook, "timeoutSeconds", 10);
        if mutating {
            default(hook, "reinvocationPolicy", "Never");
        }
        if let Some(service) = pointer(hook, "clientConfig").and_then(|config| pointer(config, "service")) {
            default(service, "port", 443);
        }
        for rule in items(hook, "rules") {
            default(rule, "scope", "*");
        }
    }
}

/// The checks to make: on update, fewer where the stored object already fails them.
#[derive(Debug, Clone, Copy)]
struct Options {
    skip_match_conditions: bool,
    no_side_effects: bool,
    known_review_version: bool,
    unique_names: bool,
    any_label_value: bool,
}

impl Options {
    fn on_create() -> Options {
        Options {
            skip_match_conditions: false,
            no_side_effects: true,
            known_review_version: true,
            unique_names: true,
            any_label_value: false,
        }
    }

    fn on_update(new: At<'_, '_>, old: At<'_, '_>) -> Options {
        let hooks = || old.get("webhooks").items();
        let (count, before) = (new.get("webhooks").len(), old.get("webhooks").len());
        let same_conditions = new
            .get("webhooks")
            .items()
            .zip(hooks())
            .all(|(new, old)| unchanged(new.get("matchConditions"), old.get("matchConditions")));
        let mut names: Vec<&str> = hooks().map(|hook| hook.get("name").text()).collect();
        names.sort_unstable();
        names.dedup();
        let known = |hook: At<'_, '_>| {
            let versions = hook.get("admissionReviewVersions");
            versions.is_empty() || versions.items().any(|version| is_known_version(version.text()))
        };
        let bad_selector = |hook: At<'_, '_>| {
            ["namespaceSelector", "objectSelector"]
                .iter()
                .any(|name| finds_fault(hook.get(name).value(), |at| validate_label_selector(at, false)))
        };
        Options {
            skip_match_conditions: count == before && same_conditions,
            no_side_effects: hooks().all(|hook| NO_SIDE_EFFECTS.contains(&hook.get("sideEffects").text())),
            known_review_version: hooks().all(known),
            unique_names: names.len() == before,
            any_label_value: hooks().any(bad_selector),
        }
    }
}

fn is_known_version(version: &str) -> bool {
    matches!(version, "v1" | "v1beta1")
}

pub(super) fn validate(new: At<'_, '_>, old: Option<At<'_, '_>>, mutating: bool) {
    let options = old.map_or_else(Options::on_create, |old| Options::on_update(new, old));
    let mut seen = std::collections::HashSet::new();
    for hook in new.get("webhooks").items() {
        webhook(hook, options, mutating);
        review_versions(hook.get("admissionReviewVersions"), options.known_review_version);
        let name = hook.get("name");
        if options.unique_names && !name.is_empty() {
            if seen.contains(&name.text()) {
                name.duplicate();
            }
            seen.insert(name.text());
        }
    }
}

fn webhook(hook: At<'_, '_>, options: Options, mutating: bool) {
    names::is_fully_qualified_name(hook.get("name"));
    for rule in hook.get("rules").items() {
        rule_with_operations(rule);
    }
    one_of_or_unset(hook.get("failurePolicy"), &FAILURE_POLICIES);
    one_of_or_unset(hook.get("matchPolicy"), &MATCH_POLICIES);
    let allowed: &[&str] = if options.no_side_effects { &NO_SIDE_EFFECTS } else { &SIDE_EFFECTS };
    if hook.get("sideEffects").is_set() {
        one_of_or_unset(hook.get("sideEffects"), allowed);
    } else {
        hook.get("sideEffects").required(format!("must specify one of {}", allowed.join(", ")));
    }
    let timeout = hook.get("timeoutSeconds");
    if timeout.int().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
        timeout.invalid("the timeout value must be between 1 and 30 seconds");
    }
    validate_label_selector(hook.get("namespaceSelector"), options.any_label_value);
    validate_label_selector(hook.get("objectSelector"), options.any_label_value);
    if mutating {
        one_of_or_unset(hook.get("reinvocationPolicy"), &REINVOCATION_POLICIES);
    }
    let client = hook.get("clientConfig");
    match (client.get("url").is_set(), client.get("service").is_set()) {
        (true, false) => url(client.get("url")),
        (false, true) => service(client.get("service")),
        _ => client.required("exactly one of url or service is required"),
    }
    if !options.skip_match_conditions {
        let scope = Scope { authorizer: true, ..Scope::default() };
        match_conditions(hook.get("matchConditions"), &Compiler::new(scope));
    }
}

fn review_versions(list: At<'_, '_>, known: bool) {
    if list.is_empty() {
        return list.required("must specify one of v1, v1beta1");
    }
    let mut seen = std::collections::HashSet::new();
    for version in list.items() {
        if seen.contains(&version.text()) {
            version.invalid("duplicate version");
            continue;
        }
        seen.insert(version.text());
        crate::rules::helpers::errors::invalid_each(version, names::is_dns1035_label(version.text()));
    }
    if known && !seen.iter().any(|version| is_known_version(version)) {
        list.invalid("must include at least one of v1, v1beta1");
    }
}

/// Each `Required value` names the field of the other one, as in Kubernetes.
fn service(at: At<'_, '_>) {
    if at.get("namespace").is_empty() {
        at.get("name").required("");
    }
    if at.get("name").is_empty() {
        at.get("namespace").required("");
    }
    let port = at.get("port");
    let wrong = names::is_valid_port_num(port.number());
    if !wrong.is_empty() {
        port.invalid_as(port.number(), format!("port is not valid: {}", wrong.join(", ")));
    }
    let path = at.get("path");
    match path.text() {
        "" | "/" => return,
        "//" => return path.invalid("segment[0] may not be empty"),
        text if !text.starts_with('/') => path.invalid("must start with a '/'"),
        _ => {}
    }
    let mut rest = path.text().chars();
    rest.next();
    let rest = rest.as_str();
    for (i, step) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if step.is_empty() {
            path.invalid(format!("segment[{i}] may not be empty"));
            continue;
        }
        for failure in names::is_dns1123_subdomain(step) {
            path.invalid(format!("segment[{i}]: {failure}"));
        }
    }
}

/// The parts of a URL that a webhook may or may not have.
#[derive(Debug, Default, PartialEq, Eq)]
struct Url<'t> {
    scheme: &'t str,
    user: Option<&'t str>,
    host: &'t str,
    query: &'t str,
    fragment: &'t str,
}

fn parse_url(text: &str) -> Result<Url<'_>, String> {
    let failed = |why: &str| Err(format!("parse {text:?}: {why}"));
    if text.chars().any(|c| c.is_ascii_control()) {
        return failed("net/url: invalid control character in URL");
    }
    let mut url = Url::default();
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    url.fragment = fragment;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    url.query = query;
    let mut rest = rest;
    if let Some(end) = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))) {
        let (scheme, after) = rest.split_at(end);
        if let Some(after) = after.strip_prefix(':') {
            if scheme.is_empty() {
                return failed("missing protocol scheme");
            }
            if scheme.starts_with(|c: char| c.is_ascii_alphabetic()) {
                url.scheme = scheme;
                rest = after;
            }
        }
    }
    if let Some(after) = rest.strip_prefix("//") {
        let authority = after.split('/').next().unwrap_or_default();
        let host = match authority.rsplit_once('@') {
            Some((user, host)) => {
                url.user = Some(user);
                host
            }
            None => authority,
        };
        url.host = host;
        let port = host.rsplit_once(']').map_or(host, |(_, after)| after).rsplit_once(':');
        if let Some((_, port)) = port
            && !port.bytes().all(|byte| byte.is_ascii_digit())
        {
            return failed(&format!("invalid port {:?} after host", format!(":{port}")));
        }
        if host.contains(' ') {
            return failed("invalid character \" \" in host name");
        }
    } else if url.scheme.is_empty() && rest.split('/').next().is_some_and(|first| first.contains(':')) {
        return failed("first path segment in URL cannot contain colon");
    }
    Ok(url)
}

fn url(at: At<'_, '_>) {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match parse_url(at.text()) {
        Ok(url) => url,
        Err(why) => return at.required(format!("url must be a valid URL: {why}{FORM}")),
    };
    let scheme = url.scheme.to_ascii_lowercase();
    if scheme != "https" {
        at.invalid_as(scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if url.host.is_empty() {
        at.invalid_as("", format!("host must be specified{FORM}"));
    }
    if let Some(user) = url.user {
        at.invalid_as(user, "user information is not permitted in the URL");
    }
    if !url.fragment.is_empty() {
        at.invalid_as(url.fragment, "fragments are not permitted in the URL");
    }
    if !url.query.is_empty() {
        at.invalid_as(url.query, "query parameters are not permitted in the URL");
    }
}

/// Resources that no webhook is called for, because a failing one could not be repaired through the API.
const EXCLUDED: [(&str, &str); 6] = [
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

pub(super) fn warnings(configuration: &Value, out: &mut Vec<String>) {
    fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
        value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
    let texts = |value: &Value, name: &str| -> Vec<String> {
        list(value, name).iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    for (i, hook) in list(configuration, "webhooks").iter().enumerate() {
        for (j, rule) in list(hook, "rules").iter().enumerate() {
            let (groups, resources) = (texts(rule, "apiGroups"), texts(rule, "resources"));
            if groups.iter().chain(&resources).any(|text| text == "*") {
                continue;
            }
            // The index in the cross product of groups and resources, without building it: it can be very large.
            let place = |list: &[String], text: &str| list.iter().position(|one| one == text);
            let mut found: Vec<_> = EXCLUDED
                .iter()
                .filter_map(|(group, resource)| {
                    Some((place(&groups, group)?, place(&resources, resource)?, group, resource))
                })
                .collect();
            found.sort_unstable();
            for (_, _, group, resource) in found {
                out.push(format!(
                    "webhooks[{i}].rules[{j}]: {resource}.{group} is excluded from admission webhooks; this rule will have no effect"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart_as_go_does() {
        assert_eq!(
            parse_url("https://u@h:1/p?q#f"),
            Ok(Url { scheme: "https", user: Some("u"), host: "h:1", query: "q", fragment: "f" })
        );
        assert_eq!(parse_url("h/p"), Ok(Url::default()));
        assert_eq!(parse_url("://x").unwrap_err(), "parse \"://x\": missing protocol scheme");
        assert_eq!(
            parse_url("https://h:x").unwrap_err(),
            "parse \"https://h:x\": invalid port \":x\" after host"
        );
    }

    #[test]
    fn a_rule_for_reviews_gets_a_warning() {
        let rule = serde_json::json!({"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"]});
        let mut out = Vec::new();
        warnings(&serde_json::json!({"webhooks": [{"rules": [rule]}]}), &mut out);
        assert_eq!(
            out,
            [
                "webhooks[0].rules[0]: tokenreviews.authentication.k8s.io is excluded from admission webhooks; this rule will have no effect"
            ]
        );
    }
}
