//! `certificates.k8s.io`.

pub mod certificate_signing_request;
mod others;
mod pem;

use crate::rules::Rules;

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "CertificateSigningRequest" => &certificate_signing_request::RULES,
        "ClusterTrustBundle" => &others::BUNDLE,
        "PodCertificateRequest" => &others::POD_REQUEST,
        _ => return None,
    })
}
