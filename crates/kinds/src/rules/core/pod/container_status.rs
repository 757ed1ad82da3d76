//! Container statuses reported by nodes: users, and the health of allocated resources.

use std::collections::BTreeSet;

use k1s_object::{At, FieldError, names};

use crate::rules::helpers::numbers::range;

/// `user` of container statuses.
pub(crate) fn users(list: At<'_, '_>, os: &str) {
    for container in list.items() {
        let linux = container.get("user").get("linux");
        if !linux.is_set() {
            continue;
        }
        if os == "windows" {
            linux.forbidden("cannot be set for a windows pod");
            continue;
        }
        range(linux.get("uid"), 0, i64::from(u32::MAX));
        let group = |at: At<'_, '_>| {
            names::is_valid_group_id(at.number())
                .into_iter()
                .for_each(|message| at.invalid_as(at.number(), message));
        };
        group(linux.get("gid"));
        linux.get("supplementalGroups").items().for_each(group);
    }
}

/// `allocatedResourcesStatus` of container statuses.
pub(crate) fn allocated_resources(list: At<'_, '_>, containers: At<'_, '_>) {
    for status in list.items() {
        let container = containers.items().find(|one| one.get("name").text() == status.get("name").text());
        for resource in status.get("allocatedResourcesStatus").items() {
            let name = resource.get("name");
            if let Some(container) = container {
                let (found, why) = match name.text().strip_prefix("claim:") {
                    Some(claim) => (
                        container.get("resources").get("claims").items().any(|one| {
                            let (own, request) = (one.get("name").text(), one.get("request").text());
                            if request.is_empty() {
                                own == claim
                            } else {
                                format!("{own}/{request}") == claim
                            }
                        }),
                        "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty",
                    ),
                    None => (
                        container
                            .get("resources")
                            .get("requests")
                            .map()
                            .is_some_and(|requests| requests.contains_key(name.text())),
                        "must match one of the container's resource requests",
                    ),
                };
                if !found {
                    name.invalid_text(why);
                }
            }
            let mut seen = BTreeSet::new();
            for one in resource.get("resources").items() {
                let (health, message, id) = (one.get("health"), one.get("message"), one.get("resourceID"));
                if !matches!(health.text(), "Healthy" | "Unhealthy" | "Unknown") {
                    health.not_supported(&["Healthy", "Unhealthy", "Unknown"]);
                }
                if message.is_set() && message.is_empty() {
                    message.required("must be non-empty if specified");
                } else if message.text().len() > 1024 {
                    message.too_long(1024);
                }
                if !seen.insert(id.text()) {
                    id.check().push(FieldError::duplicate(id.path(), id.text()));
                }
            }
        }
    }
}

/// Ephemeral containers have no allocated resources.
pub(crate) fn no_allocated_resources(list: At<'_, '_>) {
    for status in list.items() {
        let allocated = status.get("allocatedResourcesStatus");
        if !allocated.is_empty() {
            allocated.forbidden("must not be specified in container status");
        }
    }
}
