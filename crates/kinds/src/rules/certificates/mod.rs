//! `certificates.k8s.io`.

pub mod certificate_signing_request;
mod cluster_trust_bundle;
mod pem;
mod pod_certificate_request;
mod request;

use crate::rules::Rules;

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "CertificateSigningRequest" => &certificate_signing_request::RULES,
        "ClusterTrustBundle" => &cluster_trust_bundle::RULES,
        "PodCertificateRequest" => &pod_certificate_request::RULES,
        _ => return None,
    })
}
