//! Names of compute resources and of what quotas count.

use k1s_object::{At, names, quantity::Quantity};

use super::{
    errors::not_supported,
    quantities::{amount, is_whole},
};

/// Objects that quotas count: integers.
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

/// Whether this is the resource of huge pages of some size.
pub(crate) fn is_huge_page(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

fn is_quota_huge_page(name: &str) -> bool {
    is_huge_page(name) || name.starts_with("requests.hugepages-")
}

fn is_standard(name: &str) -> bool {
    COUNTED.contains(&name)
        || COMPUTE.contains(&name)
        || matches!(name, "storage" | "requests.storage")
        || is_quota_huge_page(name)
}

/// Whether a quota may limit this without a domain in its name.
pub(crate) fn is_standard_quota(name: &str) -> bool {
    COUNTED.contains(&name)
        || COMPUTE.contains(&name)
        || name == "requests.storage"
        || is_quota_huge_page(name)
}

/// Whether the resource is defined by Kubernetes: without a domain, or with its own.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::is_qualified_name(&format!("requests.{name}")).is_empty()
}

/// Whether the amount of this resource must be an integer.
pub(crate) fn is_integer_resource(name: &str) -> bool {
    COUNTED.contains(&name) || is_extended(name)
}

/// Whether limits may be greater than requests.
pub(crate) fn is_overcommit_allowed(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// Whether a pod as a whole can request this resource.
pub(crate) fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_page(name)
}

/// The amount of a resource: not negative, and an integer where objects or devices are counted.
pub(crate) fn resource_amount(name: &str, at: At<'_, '_>) {
    let amount = amount(at);
    if amount < Quantity::default() {
        at.invalid_as(amount.to_string(), "must be greater than or equal to 0");
    }
    if is_integer_resource(name) && !is_whole(&amount) {
        at.invalid_as(amount.to_string(), "must be an integer");
    }
}

/// A standard resource, or a qualified one; errors are reported at `at`. Returns whether it is valid.
pub(crate) fn resource_name(name: &str, at: At<'_, '_>) -> bool {
    let messages = names::is_qualified_name(name);
    if messages.is_empty() && !name.contains('/') && !is_standard(name) {
        at.invalid_as(name, "must be a standard resource type or fully qualified");
        return false;
    }
    let valid = messages.is_empty();
    for message in messages {
        at.invalid_as(name, message);
    }
    valid
}

/// A resource that containers can request.
pub(crate) fn container_resource_name(name: &str, at: At<'_, '_>) {
    resource_name(name, at);
    if !name.contains('/') {
        if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !is_huge_page(name) {
            at.invalid_as(name, "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        at.invalid_as(name, "doesn't follow extended resource name standard");
    }
}

/// A key of the resources in the status of a volume claim. Returns whether it is valid.
pub(crate) fn claim_resource_key(name: &str, at: At<'_, '_>) -> bool {
    let before = at.check().count();
    for message in names::is_qualified_name(name) {
        at.invalid_as(name, message);
    }
    if at.check().count() == before && is_native(name) && name != "storage" {
        not_supported(at, name, &["storage"]);
    }
    at.check().count() == before
}
