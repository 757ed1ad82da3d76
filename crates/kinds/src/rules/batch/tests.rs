//! Tests of the rules of `batch`.

use k1s_object::Check;
use serde_json::{Value, json};

use super::{cron_job, job};

fn a_job(extra: &Value) -> Value {
    let mut object = json!({
        "metadata": {"name": "j"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}},
    });
    for (key, value) in extra.as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    object
}

fn created(mut object: Value) -> (Value, Vec<String>) {
    (job::RULES.defaults)(&mut object);
    object["metadata"]["uid"] = "u-1".into();
    (job::RULES.prepare_create)(&mut object);
    let check = Check::new();
    (job::RULES.validate)(check.root(&object));
    let errors = check.take().iter().map(ToString::to_string).collect();
    (object, errors)
}

#[test]
fn a_job_gets_its_selector_and_labels() {
    let (object, errors) = created(a_job(&json!({})));
    assert_eq!(errors, Vec::<String>::new());
    let labels = json!({
        "job-name": "j", "batch.kubernetes.io/job-name": "j",
        "controller-uid": "u-1", "batch.kubernetes.io/controller-uid": "u-1",
    });
    assert_eq!(object["metadata"]["labels"], labels);
    assert_eq!(object["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!(
        object["spec"]["selector"],
        json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u-1"}})
    );
    assert_eq!(object["spec"]["completions"], 1);
    assert_eq!(object["spec"]["backoffLimit"], 6);
}

#[test]
fn a_job_is_refused_in_kubernetes_words() {
    for (extra, expected) in [
        (
            json!({"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}),
            vec!["spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""],
        ),
        (
            json!({"completionMode": "Indexed", "parallelism": 2}),
            vec!["spec.completions: Required value: when completion mode is Indexed"],
        ),
        (
            json!({"manualSelector": true}),
            vec![
                "spec.selector: Required value",
                "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
            ],
        ),
        (
            json!({"podFailurePolicy": {"rules": [{"action": "FailJob"}]}}),
            vec![
                "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
            ],
        ),
    ] {
        assert_eq!(created(a_job(&extra)).1, expected);
    }
}

#[test]
fn completions_and_policies_of_a_job_do_not_change() {
    let (old, _) = created(a_job(&json!({})));
    let mut new = old.clone();
    new["spec"]["completions"] = 3.into();
    new["spec"]["successPolicy"] = json!({"rules": [{"succeededCount": 1}]});
    let check = Check::new();
    (job::RULES.validate_update)(check.root(&new), check.root(&old));
    let errors: Vec<String> = check.take().iter().map(ToString::to_string).collect();
    let shown = "{\"Rules\":[{\"SucceededIndexes\":null,\"SucceededCount\":1}]}";
    assert_eq!(
        errors,
        [
            format!("spec.successPolicy: Invalid value: {shown}: requires indexed completion mode"),
            "spec.completions: Invalid value: 3: field is immutable".into(),
            format!("spec.successPolicy: Invalid value: {shown}: field is immutable"),
        ]
    );
}

#[test]
fn a_status_of_a_job_must_make_sense() {
    let (mut old, _) = created(a_job(&json!({})));
    old["status"] = json!({"active": 1, "ready": 0, "startTime": "2024-01-01T00:00:00Z"});
    let mut new = old.clone();
    new["status"]["conditions"] = json!([{"type": "Complete", "status": "True"}]);
    let check = Check::new();
    (job::RULES.validate_status)(check.root(&new), check.root(&old));
    let errors: Vec<String> = check.take().iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "status.completionTime: Required value: completionTime is required for Complete jobs",
            "status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
            "status.active: Invalid value: 1: active>0 is invalid for finished job",
        ]
    );
}

#[test]
fn a_cron_job_is_refused_in_kubernetes_words() {
    let refused = |spec: Value| {
        let mut object = json!({"metadata": {"name": "cj"}, "spec": spec});
        object["spec"]["jobTemplate"] = json!({"spec": a_job(&json!({}))["spec"]});
        (cron_job::RULES.defaults)(&mut object);
        let check = Check::new();
        (cron_job::RULES.validate)(check.root(&object));
        check.take().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        refused(json!({"schedule": "*/5 * * * *", "timeZone": "Europe/Zurich"})),
        Vec::<String>::new()
    );
    assert_eq!(refused(json!({})), ["spec.schedule: Required value"]);
    assert_eq!(
        refused(json!({"schedule": "TZ=UTC * * * * *", "concurrencyPolicy": "Maybe"})),
        [
            "spec.schedule: Invalid value: \"TZ=UTC * * * * *\": cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
            "spec.concurrencyPolicy: Unsupported value: \"Maybe\": supported values: \"Allow\", \"Forbid\", \"Replace\"",
        ]
    );
    assert_eq!(
        refused(json!({"schedule": "0 0 * * *", "timeZone": "Mars/Phobos"})),
        ["spec.timeZone: Invalid value: \"Mars/Phobos\": unknown time zone Mars/Phobos"]
    );
}
