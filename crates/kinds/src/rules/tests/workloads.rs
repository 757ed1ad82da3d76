//! Random documents for pods and workloads.

use k1s_object::Check;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::rules::{core::pod, find};

const KEYS: [&str; 60] = [
    "spec",
    "status",
    "metadata",
    "name",
    "labels",
    "annotations",
    "template",
    "containers",
    "initContainers",
    "ephemeralContainers",
    "image",
    "volumes",
    "volumeMounts",
    "ports",
    "containerPort",
    "hostPort",
    "env",
    "valueFrom",
    "fieldRef",
    "fieldPath",
    "resources",
    "limits",
    "requests",
    "cpu",
    "memory",
    "affinity",
    "nodeAffinity",
    "podAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
    "matchExpressions",
    "matchLabels",
    "selector",
    "operator",
    "values",
    "key",
    "tolerations",
    "topologySpreadConstraints",
    "securityContext",
    "livenessProbe",
    "httpGet",
    "port",
    "lifecycle",
    "replicas",
    "strategy",
    "updateStrategy",
    "rollingUpdate",
    "maxSurge",
    "maxUnavailable",
    "type",
    "schedule",
    "timeZone",
    "jobTemplate",
    "completions",
    "completedIndexes",
    "conditions",
    "projected",
    "sources",
    "path",
    "hostAliases",
];

fn document() -> impl Strategy<Value = Value> {
    let texts =
        ["", "a", "*/5 * * * *", "25%", "1-3,2", "500m", "Always", "In", "../x", "metadata.labels['a']", "é"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..texts.len()).prop_map(move |at| json!(texts[at])),
    ];
    leaf.prop_recursive(7, 120, 6, |inner| {
        let entry = ((0..KEYS.len()).prop_map(|at| KEYS[at].to_owned()), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::Array),
            prop::collection::vec(entry, 0..6).prop_map(|all| Value::Object(Map::from_iter(all))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_document_makes_a_rule_panic(old in document(), new in document()) {
        for (group, kind) in [
            ("", "Pod"), ("", "PodTemplate"), ("", "ReplicationController"), ("apps", "Deployment"),
            ("apps", "ReplicaSet"), ("apps", "StatefulSet"), ("apps", "DaemonSet"), ("apps", "ControllerRevision"),
            ("batch", "Job"), ("batch", "CronJob"),
        ] {
            let rules = find(group, "v1", kind).unwrap();
            let (mut old, mut new) = (old.clone(), new.clone());
            (rules.defaults)(&mut old);
            (rules.prepare_create)(&mut old);
            (rules.defaults)(&mut new);
            let (mut main, mut status) = (new.clone(), new.clone());
            (rules.prepare_update)(&mut main, &old);
            (rules.prepare_status)(&mut status, &old);
            let check = Check::new();
            (rules.validate)(check.root(&old));
            (rules.validate_update)(check.root(&main), check.root(&old));
            (rules.validate_status)(check.root(&status), check.root(&old));
            (rules.warnings)(&main, Some(&old), &mut Vec::new());
            (rules.warnings)(&new, None, &mut Vec::new());
            rules.fields.iter().for_each(|field| drop((field.read)(&new)));
            crate::rules::autoscaling::scale::scale_of(kind, &new);
        }
        let mut resized = new.clone();
        pod::prepare_resize(&mut resized, &old);
        let check = Check::new();
        pod::validate_resize(check.root(&resized), check.root(&old));
        pod::validate_ephemeral_containers(check.root(&new), check.root(&old));
    }
}
