//! Names and amounts of resources: which are standard, which are whole numbers.

use k1s_object::{At, names, quantity::Quantity};
use serde_json::Value;

use super::core_util::qualified_name;

const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

const COMPUTE: [&str; 9] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

const HUGE_PAGES: &str = "hugepages-";

fn is_quota_huge_page(name: &str) -> bool {
    name.starts_with(HUGE_PAGES) || name.starts_with("requests.hugepages-")
}

fn is_standard(name: &str) -> bool {
    COUNTED.contains(&name)
        || COMPUTE.contains(&name)
        || matches!(name, "storage" | "requests.storage")
        || is_quota_huge_page(name)
}

/// Whether a quota may limit this by its short name.
pub(crate) fn is_standard_quota(name: &str) -> bool {
    COUNTED.contains(&name)
        || COMPUTE.contains(&name)
        || name == "requests.storage"
        || is_quota_huge_page(name)
}

/// A resource of Kubernetes itself.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::is_qualified_name(&format!("requests.{name}")).is_empty()
}

/// Whether limits may be greater than requests.
pub(crate) fn is_overcommit_allowed(name: &str) -> bool {
    is_native(name) && !name.starts_with(HUGE_PAGES)
}

/// The amount here, 0 when missing.
pub(crate) fn amount(at: At<'_, '_>) -> Quantity {
    Quantity::parse(at.text()).unwrap_or_default()
}

/// Rounds the amounts of a list up to thousandths, which is the least that Kubernetes counts.
pub(crate) fn round_up(list: Option<&mut Value>) {
    for amount in list.and_then(Value::as_object_mut).into_iter().flat_map(|map| map.values_mut()) {
        let Some(text) = amount.as_str().filter(|text| text.contains(['n', 'u', '.', 'e', 'E'])) else {
            continue;
        };
        let Ok(exact) = Quantity::parse(text) else { continue };
        let rounded = Quantity::from_milli(exact.milli_value());
        if !exact.is_integer() && rounded != exact {
            *amount = rounded.to_string().into();
        }
    }
}

/// Whether it is a whole number.
pub(crate) fn is_whole(amount: &Quantity) -> bool {
    amount.milli_value() % 1000 == 0
}

/// The amount of a resource: not negative, and whole when things are counted.
pub(crate) fn resource_amount(name: &str, at: At<'_, '_>) {
    let amount = amount(at);
    if amount < Quantity::default() {
        at.invalid_as(amount.to_string(), "must be greater than or equal to 0");
    }
    if (COUNTED.contains(&name) || is_extended(name)) && !is_whole(&amount) {
        at.invalid_as(amount.to_string(), "must be an integer");
    }
}

/// More than nothing.
pub(crate) fn positive_amount(at: At<'_, '_>) {
    let amount = amount(at);
    if amount <= Quantity::default() {
        at.invalid_as(amount.to_string(), "must be greater than zero");
    }
}

/// Not negative, shown as a number.
pub(crate) fn basic_amount(at: At<'_, '_>) {
    let value = amount(at).value();
    if value < 0 {
        at.invalid_as(value, "must be a valid resource quantity");
    }
}

/// A standard resource, or a qualified one. `at` is where the error goes.
pub(crate) fn resource_name(name: &str, at: At<'_, '_>) {
    let messages = names::is_qualified_name(name);
    if messages.is_empty() && !name.contains('/') && !is_standard(name) {
        at.invalid_as(name, "must be a standard resource type or fully qualified");
    }
    for message in messages {
        at.invalid_as(name, message);
    }
}

/// A resource that containers can have.
pub(crate) fn container_resource_name(name: &str, at: At<'_, '_>) {
    resource_name(name, at);
    if !name.contains('/') {
        if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !name.starts_with(HUGE_PAGES) {
            at.invalid_as(name, "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        at.invalid_as(name, "doesn't follow extended resource name standard");
    }
}

/// A key of a claim's resources in its status.
pub(crate) fn claim_resource_key(name: &str, at: At<'_, '_>) -> bool {
    let before = at.check().count();
    for message in names::is_qualified_name(name) {
        at.invalid_as(name, message);
    }
    if at.check().count() == before && is_native(name) && name != "storage" {
        super::core_util::not_supported(at, name, &["storage"]);
    }
    at.check().count() == before
}

/// A selector of nodes by their labels and fields; `any_value` when its values were wrong before.
pub(crate) fn node_selector(at: At<'_, '_>, any_value: bool) {
    let terms = at.get("nodeSelectorTerms");
    if terms.is_empty() {
        return terms.required("must have at least one node selector term");
    }
    for term in terms.items() {
        for expression in term.get("matchExpressions").items() {
            expression_of_labels(expression, any_value);
        }
        for expression in term.get("matchFields").items() {
            expression_of_fields(expression);
        }
    }
}

fn expression_of_labels(expression: At<'_, '_>, any_value: bool) {
    let (operator, values) = (expression.get("operator"), expression.get("values"));
    match operator.text() {
        "In" | "NotIn" => {
            if values.is_empty() {
                values.required("must be specified when `operator` is 'In' or 'NotIn'");
            }
        }
        "Exists" | "DoesNotExist" => {
            if !values.is_empty() {
                values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
            }
        }
        "Gt" | "Lt" => {
            if values.len() != 1 {
                values.required("must be specified single value when `operator` is 'Lt' or 'Gt'");
            }
        }
        _ => operator.invalid_text("not a valid selector operator"),
    }
    qualified_name(expression.get("key"));
    for value in values.items().filter(|_| !any_value) {
        super::core_util::each(value, names::is_valid_label_value(value.text()));
    }
}

fn expression_of_fields(expression: At<'_, '_>) {
    let (operator, values, key) =
        (expression.get("operator"), expression.get("values"), expression.get("key"));
    match operator.text() {
        "In" | "NotIn" => {
            if values.len() != 1 {
                values.required(
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
                );
            }
        }
        _ => operator.invalid_text("not a valid selector operator"),
    }
    if key.text() == "metadata.name" {
        for value in values.items() {
            super::core_util::each(value, names::is_dns1123_subdomain(value.text()));
        }
    } else {
        key.invalid_text("not a valid field selector key");
    }
}
