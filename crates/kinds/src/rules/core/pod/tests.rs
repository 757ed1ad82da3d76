//! Tests of the rules of pods.

use k1s_object::Check;
use serde_json::{Value, json};

use super::RULES;

fn created(mut pod: Value) -> Value {
    (RULES.defaults)(&mut pod);
    (RULES.prepare_create)(&mut pod);
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

fn texts(errors: &[k1s_object::FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn refused(spec: &Value) -> Vec<String> {
    let pod = created(json!({"metadata": {"name": "p"}, "spec": spec}));
    let check = Check::new();
    (RULES.validate)(check.root(&pod));
    texts(&check.take())
}

#[test]
fn a_pod_is_refused_in_kubernetes_words() {
    for (spec, expected) in [
        (json!({}), vec!["spec.containers: Required value"]),
        (
            json!({"containers": [{}]}),
            vec!["spec.containers[0].name: Required value", "spec.containers[0].image: Required value"],
        ),
        (
            json!({"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/a"}]}]}),
            vec!["spec.containers[0].volumeMounts[0].name: Not found: \"v\""],
        ),
        (
            json!({
                "volumes": [{"name": "v", "emptyDir": {}, "secret": {"secretName": "s"}}, {"name": "w", "configMap": {}}],
                "containers": [{"name": "c", "image": "i"}],
            }),
            vec![
                "spec.volumes[0].secret: Forbidden: may not specify more than 1 volume type",
                "spec.volumes[1].configMap.name: Required value",
            ],
        ),
        (
            json!({"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}}]}),
            vec![
                "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
            ],
        ),
        (
            json!({"containers": [{"name": "c", "image": "i", "readinessProbe": {}}]}),
            vec!["spec.containers[0].readinessProbe: Required value: must specify a handler type"],
        ),
        (
            json!({
                "containers": [{"name": "c", "image": "i"}],
                "initContainers": [{"name": "c", "image": "i", "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}}],
            }),
            vec![
                "spec.initContainers[0].name: Duplicate value: \"c\"",
                "spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always",
            ],
        ),
        (
            json!({"containers": [{"name": "c", "image": " x "}], "dnsPolicy": "None"}),
            vec![
                "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
                "spec.containers[0].image: Invalid value: \" x \": must not have leading or trailing whitespace",
            ],
        ),
    ] {
        assert_eq!(refused(&spec), expected, "{spec}");
    }
}

fn updated(old: &Value, new: &Value) -> Vec<String> {
    let mut new = new.clone();
    (RULES.prepare_update)(&mut new, old);
    let check = Check::new();
    (RULES.validate_update)(check.root(&new), check.root(old));
    texts(&check.take())
}

#[test]
fn few_fields_of_a_pod_may_change() {
    let old =
        created(json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}));
    let mut new = old.clone();
    new["spec"]["containers"][0]["image"] = "i:2".into();
    new["spec"]["activeDeadlineSeconds"] = 100.into();
    assert_eq!(updated(&old, &new), Vec::<String>::new());
    let mut longer = new.clone();
    longer["spec"]["activeDeadlineSeconds"] = 200.into();
    assert_eq!(
        updated(&new, &longer),
        ["spec.activeDeadlineSeconds: Invalid value: 200: must be less than or equal to previous value"]
    );
    let mut cleared = old.clone();
    cleared["spec"]["tolerations"] = json!([]);
    assert_eq!(updated(&old, &cleared), Vec::<String>::new());
    let mut command = old.clone();
    command["spec"]["containers"][0]["command"] = json!(["x"]);
    let errors = updated(&old, &command);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with(
        "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    ));
    let mut more = old.clone();
    more["spec"]["containers"] = json!([{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]);
    super::defaults::pod(&mut more);
    assert_eq!(
        updated(&old, &more),
        ["spec.containers: Forbidden: pod updates may not add or remove containers"]
    );
}

#[test]
fn resizing_changes_cpu_and_memory_only() {
    let resources = json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}});
    let old = created(json!({
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i:1", "resources": resources}]},
    }));
    let resized = |resources: Value| {
        let mut new = old.clone();
        new["spec"]["containers"][0]["resources"] = resources;
        new["spec"]["containers"][0]["image"] = "ignored".into();
        super::prepare_resize(&mut new, &old);
        let check = Check::new();
        super::validate_resize(check.root(&new), check.root(&old));
        assert_eq!(new["spec"]["containers"][0]["image"], "i:1");
        texts(&check.take())
    };
    assert_eq!(
        resized(json!({"requests": {"cpu": "150m"}, "limits": {"cpu": "200m"}})),
        Vec::<String>::new()
    );
    assert_eq!(
        resized(json!({"requests": {"cpu": "100m", "memory": "10Mi"}})),
        ["spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed"]
    );
}

#[test]
fn a_binding_assigns_a_node_once() {
    let mut pod = json!({"metadata": {"name": "p"}, "status": {"phase": "Pending"}});
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    super::apply_binding(&mut pod, &binding, "2026-01-01T00:00:00Z").unwrap();
    assert_eq!(pod["spec"]["nodeName"], "n");
    assert_eq!(
        pod["status"]["conditions"],
        json!([{
            "type": "PodScheduled", "status": "True",
            "lastProbeTime": null, "lastTransitionTime": "2026-01-01T00:00:00Z",
        }])
    );
    let again = super::apply_binding(&mut pod, &binding, "").unwrap_err();
    assert_eq!(
        (again.code, again.message.as_str()),
        (409, "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n\"")
    );
    let wrong = super::apply_binding(&mut pod, &json!({"target": {"kind": "Pod"}}), "").unwrap_err();
    assert_eq!(
        (wrong.code, wrong.message.as_str()),
        (
            500,
            "[target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\", target.name: Required value]"
        )
    );
}

#[test]
fn budgets_decide_on_evictions() {
    let pod = json!({
        "metadata": {"name": "p", "labels": {"app": "a"}},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    });
    let budget = |status: Value| {
        json!({
            "metadata": {"name": "b", "generation": 1},
            "spec": {"selector": {"matchLabels": {"app": "a"}}}, "status": status,
        })
    };
    let decide = |budgets: &[Value]| super::eviction_decision(&pod, budgets, "2026-01-01T00:00:00Z");
    assert_eq!(decide(&[]), Ok(super::Eviction::Delete));
    let refusal = |status: Value| {
        let status = decide(&[budget(status)]).unwrap_err();
        let details = status.details.unwrap();
        (status.code, details.retry_after_seconds, details.causes[0].message.clone())
    };
    assert_eq!(
        refusal(json!({})),
        (429, 10, "The disruption budget b is still being processed by the server.".into())
    );
    let status = json!({"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1});
    assert_eq!(
        refusal(status),
        (429, 0, "The disruption budget b needs 1 healthy pods and has 1 currently".into())
    );
    let status =
        json!({"observedGeneration": 1, "currentHealthy": 2, "desiredHealthy": 1, "disruptionsAllowed": 1});
    let Ok(super::Eviction::Spend(spent)) = decide(&[budget(status.clone())]) else { panic!("not spent") };
    assert_eq!(spent["status"]["disruptionsAllowed"], 0);
    assert_eq!(spent["status"]["disruptedPods"], json!({"p": "2026-01-01T00:00:00Z"}));
    assert_eq!(spent["status"]["conditions"][0]["reason"], "InsufficientPods");
    assert_eq!(decide(&[budget(status.clone()), budget(status)]).unwrap_err().code, 500);
}

#[test]
fn surprising_fields_are_warned_about() {
    let pod = json!({
        "metadata": {"name": "dup"},
        "spec": {
            "containers": [{
                "name": "c", "image": "i:1",
                "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
                "ports": [{"containerPort": 80}, {"containerPort": 80}],
            }],
            "nodeSelector": {"beta.kubernetes.io/arch": "amd64"},
        },
    });
    let mut out = Vec::new();
    (RULES.warnings)(&pod, None, &mut out);
    assert_eq!(
        out,
        [
            "spec.nodeSelector[beta.kubernetes.io/arch]: deprecated since v1.14; use \"kubernetes.io/arch\" instead",
            "spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
            "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
        ]
    );
}

#[test]
fn logs_and_exec_need_a_container_and_a_node() {
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}, {"name": "b"}]}});
    let message = |asked: &str| super::container_name(&pod, asked).map_err(|status| status.message);
    assert_eq!(message(""), Err("a container name must be specified for pod p, choose one of: [a b]".into()));
    assert_eq!(message("zz"), Err("container zz is not valid for pod p".into()));
    assert_eq!(message("a"), Ok("a".into()));
    assert_eq!(super::host_of(&pod).unwrap_err().message, "pod p does not have a host assigned");
    let options =
        super::LogOptions { tail_lines: Some(-1), since_seconds: Some(0), ..super::LogOptions::default() };
    assert_eq!(
        texts(&super::validate_log_options(&options)),
        [
            "tailLines: Invalid value: -1: must be greater than or equal to 0",
            "sinceSeconds: Invalid value: 0: must be greater than 0",
        ]
    );
}

#[test]
fn a_pod_without_a_node_ends_at_once() {
    let mut pod = json!({"spec": {"terminationGracePeriodSeconds": 30}, "status": {"phase": "Running"}});
    assert_eq!(super::grace_period(&pod, Some(5)), 0);
    pod["spec"]["nodeName"] = "n".into();
    assert_eq!(super::grace_period(&pod, None), 30);
    assert_eq!(super::grace_period(&pod, Some(5)), 5);
    assert_eq!(super::grace_period(&pod, Some(-1)), 1);
}
