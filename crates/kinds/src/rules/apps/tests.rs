//! Tests of the rules of `apps`.

use k1s_object::Check;
use serde_json::{Value, json};

use super::{daemon_set, deployment, replica_set, stateful_set};
use crate::rules::Rules;

fn workload(extra: &Value) -> Value {
    let mut object = json!({
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {
                "metadata": {"labels": {"app": "a"}},
                "spec": {"containers": [{"name": "c", "image": "nginx:1.25"}]},
            },
        },
    });
    for (key, value) in extra.as_object().into_iter().flatten() {
        if value.is_null() {
            object["spec"].as_object_mut().unwrap().shift_remove(key);
        } else {
            object["spec"][key] = value.clone();
        }
    }
    object
}

fn created(rules: &Rules, mut object: Value) -> (Value, Vec<String>) {
    (rules.defaults)(&mut object);
    (rules.prepare_create)(&mut object);
    let check = Check::new();
    (rules.validate)(check.root(&object));
    let errors = check.take().iter().map(ToString::to_string).collect();
    (object, errors)
}

fn updated(rules: &Rules, old: &Value, extra: &Value) -> Vec<String> {
    let mut new = workload(extra);
    (rules.defaults)(&mut new);
    (rules.prepare_update)(&mut new, old);
    let check = Check::new();
    (rules.validate_update)(check.root(&new), check.root(old));
    check.take().iter().map(ToString::to_string).collect()
}

#[test]
fn a_deployment_gets_its_defaults() {
    let (object, errors) = created(&deployment::RULES, workload(&json!({})));
    assert_eq!(errors, Vec::<String>::new());
    assert_eq!(object["spec"]["replicas"], 1);
    assert_eq!(
        object["spec"]["strategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}})
    );
    assert_eq!(object["spec"]["template"]["spec"]["restartPolicy"], "Always");
}

#[test]
fn a_deployment_is_refused_in_kubernetes_words() {
    for (extra, expected) in [
        (
            json!({"selector": null}),
            vec![
                "spec.selector: Required value",
                "spec.template.metadata.labels: Invalid value: {\"app\":\"a\"}: `selector` does not match template `labels`",
            ],
        ),
        (
            json!({"selector": {}}),
            vec!["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
        ),
        (
            json!({"selector": {"matchExpressions": [{"operator": "Within", "key": "app", "values": ["a"]}]}}),
            vec![
                "spec.selector.matchExpressions[0].operator: Invalid value: \"Within\": not a valid selector operator",
                "spec.selector: Invalid value: {\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"Within\",\"values\":[\"a\"]}]}: invalid label selector",
            ],
        ),
        (
            json!({"strategy": {"type": "Nope"}}),
            vec![
                "spec.strategy: Unsupported value: {\"Type\":\"Nope\",\"RollingUpdate\":null}: supported values: \"Recreate\", \"RollingUpdate\"",
            ],
        ),
        (
            json!({"strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": "0%"}}}),
            vec![
                "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
            ],
        ),
        (
            json!({"minReadySeconds": 600}),
            vec!["spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds"],
        ),
    ] {
        assert_eq!(created(&deployment::RULES, workload(&extra)).1, expected);
    }
}

#[test]
fn selectors_do_not_change() {
    for rules in [&deployment::RULES, &replica_set::RULES, &daemon_set::RULES, &stateful_set::RULES] {
        let (old, _) = created(rules, workload(&json!({})));
        let other = json!({
            "selector": {"matchLabels": {"app": "b"}},
            "template": {"metadata": {"labels": {"app": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        });
        assert_eq!(
            updated(rules, &old, &other),
            ["spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"b\"}}: field is immutable"]
        );
    }
}

#[test]
fn a_stateful_set_keeps_its_service_and_knows_its_claims() {
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let mounts = json!({
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}]},
    });
    let extra = json!({"serviceName": "svc", "volumeClaimTemplates": [claim], "template": mounts});
    let (old, errors) = created(&stateful_set::RULES, workload(&extra));
    assert_eq!(errors, Vec::<String>::new());
    assert_eq!(old["spec"]["volumeClaimTemplates"][0]["status"], json!({"phase": "Pending"}));
    let mut other = extra.clone();
    other["serviceName"] = "other".into();
    assert_eq!(
        updated(&stateful_set::RULES, &old, &other),
        ["spec.serviceName: Invalid value: \"other\": field is immutable"]
    );
    let mut wrong = extra;
    wrong["template"]["spec"]["containers"][0]["volumeMounts"][0]["name"] = "nope".into();
    assert_eq!(
        created(&stateful_set::RULES, workload(&wrong)).1,
        ["spec.template.spec.containers[0].volumeMounts[0].name: Not found: \"nope\""]
    );
}

#[test]
fn a_daemon_set_counts_the_changes_of_its_template() {
    let (old, errors) = created(&daemon_set::RULES, workload(&json!({})));
    assert_eq!(errors, Vec::<String>::new());
    let count = |set: &Value| set["metadata"]["annotations"][daemon_set::TEMPLATE_GENERATION].clone();
    assert_eq!(count(&old), "1");
    let mut new = old.clone();
    new["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1.into();
    (daemon_set::RULES.prepare_update)(&mut new, &old);
    assert_eq!(count(&new), "2");
    let wrong = json!({"updateStrategy": {"rollingUpdate": {"maxSurge": 1}}});
    assert_eq!(
        created(&daemon_set::RULES, workload(&wrong)).1,
        [
            "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"
        ]
    );
}
