//! What a claim asks for: `DeviceClass`, `ResourceClaim`, `ResourceClaimTemplate`.

use k1s_object::{field::At, names};
use serde_json::Value;

use super::{Later, fully_qualified_name, label, toleration};
use crate::rules::helpers::cluster_util::{driver_name, immutable, invalid_each, unchanged};

const MAX_EXPRESSION: usize = 10 * 1024;
const MAX_PARAMETERS: usize = 10 * 1024;

pub(super) fn class_create(class: At<'_, '_>) {
    let later = Later::default();
    class_spec(class.get("spec"), None, &later);
    later.say(class);
}

pub(super) fn class_update(class: At<'_, '_>, old: At<'_, '_>) {
    let later = Later::default();
    class_spec(class.get("spec"), Some(old.get("spec")), &later);
    if !unchanged(class.get("spec"), old.get("spec")) {
        later.say(class);
    }
}

fn class_spec(spec: At<'_, '_>, old: Option<At<'_, '_>>, later: &Later) {
    let stored = |name: &'static str| old.is_some_and(|old| unchanged(spec.get(name), old.get(name)));
    selectors(spec.get("selectors"), stored("selectors"), later);
    let list = spec.get("config");
    if later.at_most(list, 32) {
        for config in list.items() {
            configuration(config, stored("config"), later);
        }
    }
    let name = spec.get("extendedResourceName");
    if name.is_set() {
        later.keep(name, || extended_resource_name(name));
    }
}

fn extended_resource_name(at: At<'_, '_>) {
    let name = at.text();
    if !name.contains('/') {
        at.invalid_text("a name must be a domain-prefixed path, such as 'example.com/my-prop'");
    } else if name.contains("kubernetes.io/") {
        at.invalid("must not have \"kubernetes.io/\" domain");
    }
    if name.starts_with("requests.") {
        at.invalid("must not have \"requests.\" prefix");
    }
    for message in names::is_qualified_name(&format!("requests.{name}")) {
        at.invalid_text(message);
    }
}

pub(super) fn claim_create(claim: At<'_, '_>) {
    let later = Later::default();
    device_claim(claim.get("spec").get("devices"), &later);
    later.say(claim);
}

pub(super) fn claim_update(claim: At<'_, '_>, old: At<'_, '_>) {
    if !unchanged(claim.get("spec"), old.get("spec")) {
        immutable(claim.get("spec"));
    }
}

pub(super) fn template_create(template: At<'_, '_>) {
    let later = Later::default();
    template_written(template, &later);
    later.say(template);
}

pub(super) fn template_update(template: At<'_, '_>, old: At<'_, '_>) {
    let later = Later::default();
    template_written(template, &later);
    let spec = template.get("spec");
    if !unchanged(spec, old.get("spec")) {
        spec.invalid_as(spec.value().cloned().unwrap_or(Value::Null), "field is immutable");
        later.say(template);
    }
}

fn template_written(template: At<'_, '_>, later: &Later) {
    let spec = template.get("spec");
    k1s_object::meta::validate_labels(spec.get("metadata").get("labels"));
    device_claim(spec.get("spec").get("devices"), later);
}

/// The names of the requests of a claim, and `request/subrequest`.
pub(super) fn request_names(devices: At<'_, '_>) -> Vec<String> {
    let mut names = Vec::new();
    for request in devices.get("requests").items() {
        let name = request.get("name").text();
        names.push(name.to_owned());
        for one in request.get("firstAvailable").items() {
            names.push(format!("{name}/{}", one.get("name").text()));
        }
    }
    names
}

/// A text that names a request of the claim.
pub(super) fn request_reference(at: At<'_, '_>, requests: &[String]) {
    let why = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
    let parts: Vec<&str> = at.text().split('/').collect();
    if parts.len() > 2 {
        return at.invalid(why);
    }
    for part in parts {
        for message in names::is_dns1123_label(part) {
            at.invalid_as(part, message);
        }
    }
    if !requests.iter().any(|name| name == at.text()) {
        at.invalid_text(why);
    }
}

/// Requests that a constraint or a configuration is about.
pub(super) fn request_references(list: At<'_, '_>, requests: &[String], later: &Later) {
    if later.at_most(list, 32) {
        for name in list.items() {
            request_reference(name, requests);
        }
        later.unique(list, At::text);
    }
}

fn device_claim(devices: At<'_, '_>, later: &Later) {
    let requests = request_names(devices);
    let constraints = devices.get("constraints");
    let list = devices.get("requests");
    if later.at_most(list, 32) {
        for request in list.items() {
            device_request(request, later);
        }
        later.unique(list, |request| request.get("name").text());
    }
    if later.at_most(constraints, 32) {
        for constraint in constraints.items() {
            request_references(constraint.get("requests"), &requests, later);
            let (same, distinct) = (constraint.get("matchAttribute"), constraint.get("distinctAttribute"));
            if same.is_set() {
                later.keep(same, || fully_qualified_name(same));
            } else if distinct.is_set() {
                later.keep(distinct, || fully_qualified_name(distinct));
            } else {
                constraint.required(
                    "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set",
                );
            }
        }
    }
    let configs = devices.get("config");
    if later.at_most(configs, 32) {
        for config in configs.items() {
            request_references(config.get("requests"), &requests, later);
            configuration(config, false, later);
        }
    }
}

fn device_request(request: At<'_, '_>, later: &Later) {
    label(request.get("name"));
    let (exactly, first) = (request.get("exactly"), request.get("firstAvailable"));
    match (exactly.is_set(), !first.is_empty()) {
        (false, false) => request.required("exactly one of `exactly` or `firstAvailable` is required"),
        (true, true) => request.invalid_as(
            Value::Null,
            "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
        ),
        (true, false) => {
            let class = exactly.get("deviceClassName");
            if class.is_empty() {
                class.required("");
            } else {
                invalid_each(class, names::is_dns1123_subdomain(class.text()));
            }
            one_request(exactly, later);
        }
        (false, true) => {
            if !later.at_most(first, 8) {
                return;
            }
            for one in first.items() {
                label(one.get("name"));
                later.required(one.get("deviceClassName"), names::is_dns1123_subdomain);
                one_request(one, later);
            }
            later.unique(first, |one| one.get("name").text());
        }
    }
}

/// What exact requests and alternatives share.
fn one_request(request: At<'_, '_>, later: &Later) {
    selectors(request.get("selectors"), false, later);
    let (mode, count) = (request.get("allocationMode"), request.get("count"));
    match mode.text() {
        "All" if count.number() != 0 => {
            count.invalid("must not be specified when allocationMode is 'All'");
        }
        "All" => {}
        "ExactCount" if count.number() <= 0 => count.invalid_as(count.number(), "must be greater than zero"),
        "ExactCount" => {}
        _ => later.keep(mode, || mode.not_supported(&["All", "ExactCount"])),
    }
    for one in request.get("tolerations").items() {
        toleration(one, later);
    }
}

fn expression_length(expression: At<'_, '_>) {
    if expression.text().len() > MAX_EXPRESSION {
        expression.too_long(MAX_EXPRESSION);
    }
}

fn selectors(list: At<'_, '_>, stored: bool, later: &Later) {
    if !later.at_most(list, 32) {
        return;
    }
    for selector in list.items() {
        let cel = selector.get("cel");
        if !cel.is_set() {
            cel.required("");
        } else if !stored {
            expression_length(cel.get("expression"));
        }
    }
}

/// What a driver is told.
pub(super) fn configuration(config: At<'_, '_>, stored: bool, later: &Later) {
    let opaque = config.get("opaque");
    if !opaque.is_set() {
        return opaque.required("");
    }
    let driver = opaque.get("driver");
    if driver.is_empty() {
        later.keep(driver, || driver_name(driver));
    } else {
        later.driver(driver);
    }
    raw_object(opaque.get("parameters"), stored, MAX_PARAMETERS);
}

/// Any JSON object of a bounded size.
pub(super) fn raw_object(at: At<'_, '_>, stored: bool, longest: usize) {
    match at.value() {
        None | Some(Value::Null) => at.required(""),
        Some(value) if !stored && value.to_string().len() > longest => at.too_long(longest),
        Some(Value::Object(_)) => {}
        Some(_) => at.invalid_as("<value omitted>", "must be a valid JSON object"),
    }
}
