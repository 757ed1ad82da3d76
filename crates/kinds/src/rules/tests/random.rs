//! Random documents for kinds other than workloads.

use k1s_object::field::Check;
use proptest::prelude::*;
use serde_json::Value;

use crate::rules::{autoscaling::horizontal_pod_autoscaler as hpa, find};

const KINDS: [(&str, &str, &str); 38] = [
    ("rbac.authorization.k8s.io", "v1", "Role"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
    ("policy", "v1", "PodDisruptionBudget"),
    ("autoscaling", "v1", "HorizontalPodAutoscaler"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler"),
    ("autoscaling", "v1", "Scale"),
    ("storage.k8s.io", "v1", "StorageClass"),
    ("storage.k8s.io", "v1", "VolumeAttributesClass"),
    ("storage.k8s.io", "v1", "VolumeAttachment"),
    ("storage.k8s.io", "v1", "CSIDriver"),
    ("storage.k8s.io", "v1", "CSINode"),
    ("storage.k8s.io", "v1", "CSIStorageCapacity"),
    ("scheduling.k8s.io", "v1", "PriorityClass"),
    ("node.k8s.io", "v1", "RuntimeClass"),
    ("certificates.k8s.io", "v1", "CertificateSigningRequest"),
    ("certificates.k8s.io", "v1", "ClusterTrustBundle"),
    ("certificates.k8s.io", "v1", "PodCertificateRequest"),
    ("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration"),
    ("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicyBinding"),
    ("apiregistration.k8s.io", "v1", "APIService"),
    ("resource.k8s.io", "v1", "DeviceClass"),
    ("resource.k8s.io", "v1", "ResourceClaim"),
    ("resource.k8s.io", "v1", "ResourceClaimTemplate"),
    ("resource.k8s.io", "v1", "ResourceSlice"),
    ("resource.k8s.io", "v1", "DeviceTaintRule"),
    ("storagemigration.k8s.io", "v1", "StorageVersionMigration"),
    ("authentication.k8s.io", "v1", "TokenRequest"),
    ("authorization.k8s.io", "v1", "SubjectAccessReview"),
    ("authorization.k8s.io", "v1", "SelfSubjectAccessReview"),
    ("authorization.k8s.io", "v1", "LocalSubjectAccessReview"),
];

#[test]
fn every_kind_has_rules() {
    for (group, version, kind) in KINDS {
        assert!(find(group, version, kind).is_some(), "{kind}");
    }
}

/// Random documents whose field names the rules know.
fn anything() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[a-z*/.:-]{0,8}",
        Just("Limited".to_owned()),
        Just("Resource".to_owned()),
        Just("-----BEGIN A-----\n".to_owned()),
        Just("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K".to_owned()),
    ];
    let name = prop::sample::select(vec![
        "spec",
        "status",
        "metadata",
        "name",
        "rules",
        "subjects",
        "roleRef",
        "metrics",
        "type",
        "resource",
        "target",
        "behavior",
        "scaleUp",
        "policies",
        "conditions",
        "webhooks",
        "clientConfig",
        "url",
        "service",
        "path",
        "devices",
        "requests",
        "exactly",
        "limited",
        "limitResponse",
        "queuing",
        "queues",
        "handSize",
        "request",
        "usages",
        "signerName",
        "matchConstraints",
        "resourceRules",
        "selector",
        "matchExpressions",
        "values",
        "annotations",
        "drivers",
        "minAvailable",
        "value",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((name.clone(), inner), 0..6).prop_map(|entries| {
                entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_document_makes_a_rule_panic(new in anything(), old in anything(), kind in 0..KINDS.len()) {
        let (group, version, kind) = KINDS[kind];
        let rules = find(group, version, kind).unwrap();
        let mut new = new;
        (rules.defaults)(&mut new);
        let mut created = new.clone();
        (rules.prepare_create)(&mut created);
        (rules.stamp_times)(&mut created, None, "2026-01-01T00:00:00Z");
        let mut updated = new.clone();
        (rules.prepare_update)(&mut updated, &old);
        let mut status = new.clone();
        (rules.prepare_status)(&mut status, &old);
        (rules.stamp_times)(&mut status, Some(&old), "2026-01-01T00:00:00Z");
        let mut warnings = Vec::new();
        (rules.warnings)(&updated, Some(&old), &mut warnings);
        let (check, before) = (Check::new(), Check::new());
        (rules.validate)(check.root(&created));
        (rules.validate_update)(check.root(&updated), before.root(&old));
        (rules.validate_status)(check.root(&status), before.root(&old));
        for field in rules.fields {
            (field.read)(&new);
        }
        hpa::v2_to_v1(&hpa::v1_to_v2(&new));
    }
}
