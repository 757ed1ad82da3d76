//! The conventional paths of webhooks: `/mutate-<group>-<version>-<kind>`, `/validate-…`, `/convert`.

use kube::api::ApiResource;

use crate::{Kind, Object, kind};

/// The path of the conversion webhook.
pub const CONVERT: &str = "/convert";

/// The path of the defaulter of `K`.
#[must_use]
pub fn mutate<K: Object<DynamicType: Default>>() -> String {
    mutate_kind(&kind::<K>())
}

/// The path of the validator of `K`.
#[must_use]
pub fn validate<K: Object<DynamicType: Default>>() -> String {
    validate_kind(&kind::<K>())
}

/// The path of a kind's defaulter.
#[must_use]
pub fn mutate_kind<K: Object>(kind: &Kind<K>) -> String {
    path("mutate", kind.resource())
}

/// The path of a kind's validator.
#[must_use]
pub fn validate_kind<K: Object>(kind: &Kind<K>) -> String {
    path("validate", kind.resource())
}

/// The core group has an empty name, also in the path: `/mutate--v1-pod`.
fn path(what: &str, resource: &ApiResource) -> String {
    let group = resource.group.replace('.', "-");
    format!("/{what}-{group}-{}-{}", resource.version, resource.kind.to_lowercase())
}

/// Whether a path can be registered: `/`, or segments of letters, digits, `-` and `_`.
pub(super) fn is_valid(path: &str) -> bool {
    let valid = |segment: &str| {
        !segment.is_empty() && segment.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    path == "/" || path.strip_prefix('/').is_some_and(|path| path.split('/').all(valid))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod, networking::v1::Ingress};

    use super::*;

    #[test]
    fn paths_are_those_of_controller_runtime() {
        assert_eq!(mutate::<Deployment>(), "/mutate-apps-v1-deployment");
        assert_eq!(validate::<Ingress>(), "/validate-networking-k8s-io-v1-ingress");
        assert_eq!(mutate::<Pod>(), "/mutate--v1-pod");
    }

    #[test]
    fn a_path_has_segments_of_letters_digits_and_dashes() {
        for path in ["/", "/convert", "/a/b_c-d", "/mutate--v1-pod"] {
            assert!(is_valid(path), "{path}");
        }
        for path in ["", "convert", "//", "/a/", "/a b", "/a.b", "/ä"] {
            assert!(!is_valid(path), "{path}");
        }
    }
}
