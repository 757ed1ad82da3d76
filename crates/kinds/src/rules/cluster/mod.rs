//! Rules of the kinds that run a cluster rather than a workload: access control, admission, storage, scheduling,
//! autoscaling, certificates, devices, and the reviews that are asked and answered but never stored.

pub mod admission;
mod apiservice;
pub mod bootstrap;
mod csi;
pub mod csr;
mod flowcontrol;
pub mod hpa;
mod migration;
mod node;
pub mod policy;
mod rbac;
mod resource;
pub mod reviews;
mod scheduling;
mod storage;
mod util;

use super::Rules;

/// The rules of a kind of these groups.
pub(super) fn rules(group: &str, version: &str, kind: &str) -> Option<&'static Rules> {
    match group {
        "rbac.authorization.k8s.io" => rbac::rules(kind),
        "policy" => policy::rules(kind),
        "autoscaling" => hpa::rules(version, kind),
        "storage.k8s.io" => storage::rules(kind).or_else(|| csi::rules(kind)),
        "scheduling.k8s.io" => scheduling::rules(kind),
        "node.k8s.io" => node::rules(kind),
        "certificates.k8s.io" => csr::rules(kind),
        "flowcontrol.apiserver.k8s.io" => flowcontrol::rules(kind),
        "admissionregistration.k8s.io" => admission::rules(kind),
        "apiregistration.k8s.io" => apiservice::rules(kind),
        "resource.k8s.io" => resource::rules(kind),
        "storagemigration.k8s.io" => migration::rules(kind),
        "authentication.k8s.io" | "authorization.k8s.io" => reviews::rules(kind),
        _ => None,
    }
}
