//! Tests of the rules of pods.

use serde_json::{Value, json};

use super::POD;

fn created(mut pod: Value) -> Value {
    (POD.defaults)(&mut pod);
    (POD.prepare_create)(&mut pod);
    pod
}

#[test]
fn a_minimal_pod_gets_its_defaults() {
    let pod = created(
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}),
    );
    assert_eq!(
        pod["spec"],
        json!({
            "containers": [{
                "name": "c", "image": "nginx", "imagePullPolicy": "Always",
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            }],
            "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "securityContext": {},
            "terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler", "enableServiceLinks": true,
            "priority": 0, "preemptionPolicy": "PreemptLowerPriority",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ],
        })
    );
    assert_eq!(pod["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
}

#[test]
fn requests_follow_limits_and_make_the_class() {
    let with = |resources: Value| {
        created(json!({"spec": {"containers": [{"name": "c", "image": "i:1", "resources": resources}]}}))
    };
    let pod = with(json!({"limits": {"cpu": "500m", "memory": "1Gi"}}));
    assert_eq!(
        pod["spec"]["containers"][0]["resources"]["requests"],
        json!({"cpu": "500m", "memory": "1Gi"})
    );
    assert_eq!(pod["status"]["qosClass"], "Guaranteed");
    let pod = with(json!({"requests": {"cpu": "1u"}}));
    assert_eq!(pod["spec"]["containers"][0]["resources"]["requests"], json!({"cpu": "1m"}));
    assert_eq!(pod["status"]["qosClass"], "Burstable");
}
