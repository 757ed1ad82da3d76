//! The devices that a claim requests.

use super::super::checks::{DeclarativeErrors, fully_qualified_name, label, toleration};
use crate::rules::helpers::{errors::invalid_each, text::driver_name};
use k1s_object::{field::At, names};
use serde_json::Value;

const MAX_EXPRESSION: usize = 10 * 1024;

const MAX_PARAMETERS: usize = 10 * 1024;

/// The names of the requests of a claim, and of its subrequests as `request/subrequest`.
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

/// A reference to a request of the claim.
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

/// The requests that a constraint or a configuration refers to.
pub(super) fn request_references(list: At<'_, '_>, requests: &[String], later: &DeclarativeErrors) {
    if later.at_most(list, 32) {
        for name in list.items() {
            request_reference(name, requests);
        }
        later.unique(list, At::text);
    }
}

pub(in crate::rules::resource) fn device_claim(devices: At<'_, '_>, later: &DeclarativeErrors) {
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
                later.collect(same, || fully_qualified_name(same));
            } else if distinct.is_set() {
                later.collect(distinct, || fully_qualified_name(distinct));
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

fn device_request(request: At<'_, '_>, later: &DeclarativeErrors) {
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

/// Checks shared by exact requests and alternatives.
fn one_request(request: At<'_, '_>, later: &DeclarativeErrors) {
    selectors(request.get("selectors"), false, later);
    let (mode, count) = (request.get("allocationMode"), request.get("count"));
    match mode.text() {
        "All" if count.number() != 0 => {
            count.invalid("must not be specified when allocationMode is 'All'");
        }
        "All" => {}
        "ExactCount" if count.number() <= 0 => count.invalid_as(count.number(), "must be greater than zero"),
        "ExactCount" => {}
        _ => later.collect(mode, || mode.not_supported(&["All", "ExactCount"])),
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

pub(in crate::rules::resource) fn selectors(list: At<'_, '_>, stored: bool, later: &DeclarativeErrors) {
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

/// The configuration for a driver.
pub(in crate::rules::resource) fn configuration(config: At<'_, '_>, stored: bool, later: &DeclarativeErrors) {
    let opaque = config.get("opaque");
    if !opaque.is_set() {
        return opaque.required("");
    }
    let driver = opaque.get("driver");
    if driver.is_empty() {
        later.collect(driver, || driver_name(driver));
    } else {
        later.driver(driver);
    }
    raw_object(opaque.get("parameters"), stored, MAX_PARAMETERS);
}

/// A JSON object of limited size.
pub(super) fn raw_object(at: At<'_, '_>, stored: bool, longest: usize) {
    match at.value() {
        None | Some(Value::Null) => at.required(""),
        Some(value) if !stored && value.to_string().len() > longest => at.too_long(longest),
        Some(Value::Object(_)) => {}
        Some(_) => at.invalid_as("<value omitted>", "must be a valid JSON object"),
    }
}
