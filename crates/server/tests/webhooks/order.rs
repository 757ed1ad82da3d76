//! The order of the admission chain: each step sees what those before it have done, and nothing that they refuse.

use super::*;

const PODS: &str = "/api/v1/namespaces/default/pods";

/// What was called, with the number of containers and the labels that it has seen.
type Log = Arc<Mutex<Vec<String>>>;

fn note(log: &Log, who: &str, request: &Value) {
    let object = &request["object"];
    let mut labels: Vec<&str> =
        object["metadata"]["labels"].as_object().unwrap().keys().map(String::as_str).collect();
    labels.sort_unstable();
    let containers = object["spec"]["containers"].as_array().unwrap();
    let limited = containers.iter().filter(|one| one["resources"]["limits"]["cpu"] == "100m").count();
    let text = format!("{who}: {limited} of {} limited, {}", containers.len(), labels.join(" "));
    log.lock().push(text);
}

/// A server with a plugin, a policy and two webhooks that change pods, and a policy, a webhook and a quota that check them.
async fn stage() -> (Stage, Log) {
    let stage = Stage::new().await;
    let log = Log::default();
    let limits = json!({"limits": [{"type": "Container", "default": {"cpu": "100m"}}]});
    let in_default = |plural: &str| format!("/api/v1/namespaces/default/{plural}");
    stage.client.post(&in_default("limitranges"), json!({"metadata": {"name": "l"}, "spec": limits})).await;
    stage
        .client
        .post(
            &in_default("resourcequotas"),
            json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}),
        )
        .await;

    let rules = rule(&["CREATE"], "", &["pods"]);
    let constraints = json!({"resourceRules": [rules]});
    // A label for each number of containers that are all limited.
    let expression = "object.spec.containers.all(c, has(c.resources.limits)) ? [JSONPatch{op: 'add', \
         path: '/metadata/labels/p' + string(object.spec.containers.size()), value: 'seen'}] : []";
    let mutating = json!({"reinvocationPolicy": "IfNeeded", "matchConstraints": constraints,
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]});
    let validating = json!({"matchConstraints": constraints, "validations": [
        {"expression": "!has(object.metadata.labels.policy)", "message": "refused by the policy"}]});
    for (kind, spec, binding) in [
        ("Mutating", mutating, json!({"policyName": "p"})),
        ("Validating", validating, json!({"policyName": "p", "validationActions": ["Deny"]})),
    ] {
        let of = |suffix: &str, spec: Value| {
            json!({"apiVersion": "admissionregistration.k8s.io/v1",
                "kind": format!("{kind}AdmissionPolicy{suffix}"), "metadata": {"name": "p"}, "spec": spec})
        };
        let plural = format!("{ADMISSION}/{}admissionpolic", kind.to_lowercase());
        stage.client.post(&format!("{plural}ies"), of("", spec)).await;
        stage.client.post(&format!("{plural}ybindings"), of("Binding", binding)).await;
    }

    let first = log.clone();
    stage.serve("first.k1s.dev", move |request| {
        note(&first, "first", request);
        allow()
    });
    let second = log.clone();
    stage.serve("second.k1s.dev", move |request| {
        note(&second, "second", request);
        let name =
            if request["object"]["metadata"]["labels"]["schema"].is_string() { "Not Valid" } else { "d" };
        patch(&json!([{"op": "add", "path": "/spec/containers/-", "value": {"name": name, "image": "i"}}]))
    });
    let checking = log.clone();
    stage.serve("checking.k1s.dev", move |request| {
        note(&checking, "checking", request);
        json!({"allowed": !request["object"]["metadata"]["labels"]["webhook"].is_string()})
    });
    let hook = |name: &str, reinvocation: &str| {
        let mut hook = json!({"name": name, "rules": [rules]});
        if !reinvocation.is_empty() {
            hook["reinvocationPolicy"] = reinvocation.into();
        }
        hook
    };
    stage
        .register("Mutating", "m", &[hook("first.k1s.dev", "IfNeeded"), hook("second.k1s.dev", "Never")])
        .await;
    stage.register("Validating", "v", &[hook("checking.k1s.dev", "")]).await;
    (stage, log)
}

/// Creates a pod with these labels: the status, the message, and what was called.
async fn create(stage: &Stage, log: &Log, labels: &[&str]) -> (u16, Value, Vec<String>) {
    let labels: serde_json::Map<String, Value> =
        labels.iter().map(|label| ((*label).to_owned(), "x".into())).collect();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-", "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let (code, answer) = stage.client.call("POST", PODS, pod).await;
    (code, answer, std::mem::take(&mut *log.lock()))
}

async fn used(stage: &Stage) -> Value {
    stage.client.get("/api/v1/namespaces/default/resourcequotas/q").await["status"]["used"]["pods"].clone()
}

/// Labels are in the order of the alphabet, and `pN` are those of the policy.
fn mutations(labels: &str) -> Vec<String> {
    vec![
        format!("first: 1 of 1 limited, p1{labels}"),
        format!("second: 1 of 1 limited, p1{labels}"),
        // The second time, plugins and policies come first again, and only who asked for it.
        format!("first: 2 of 2 limited, p1 p2{labels}"),
    ]
}

#[tokio::test]
async fn the_chain_has_the_order_of_kubernetes() {
    let (stage, log) = stage().await;
    // What mutates is checked by the schema, before anything that validates.
    let (code, answer, called) = create(&stage, &log, &["policy", "schema", "webhook"]).await;
    let message = answer["message"].as_str().unwrap();
    assert!(
        code == 422 && message.contains("spec.containers[1].name: Invalid value: \"Not Valid\""),
        "{message}"
    );
    assert_eq!(called.len(), 3, "{called:?}");
    // Then validating policies, and only then validating webhooks.
    let (code, answer, called) = create(&stage, &log, &["policy", "webhook"]).await;
    let message = answer["message"].as_str().unwrap();
    assert!(code == 422 && message.ends_with("refused by the policy"), "{message}");
    assert_eq!(called.len(), 3, "{called:?}");
    let (code, answer, called) = create(&stage, &log, &["webhook"]).await;
    let message = answer["message"].as_str().unwrap();
    assert!(
        code == 400 && message.starts_with("admission webhook \"checking.k1s.dev\" denied"),
        "{code} {message}"
    );
    assert_eq!(called.last().unwrap(), "checking: 2 of 2 limited, p1 p2 webhook");
    assert_eq!(called[..3], mutations(" webhook")[..]);
    // What was refused has not been charged.
    assert_eq!(used(&stage).await, "0");
    let (code, answer, called) = create(&stage, &log, &["z"]).await;
    assert_eq!(code, 201, "{answer}");
    assert_eq!(called[..3], mutations(" z")[..]);
    assert_eq!(called[3..], ["checking: 2 of 2 limited, p1 p2 z"]);
    assert_eq!(answer["spec"]["containers"].as_array().unwrap().len(), 2);
    assert_eq!(used(&stage).await, "1");
    // The quota is last: everybody else has been asked.
    let (code, answer, called) = create(&stage, &log, &["z"]).await;
    let message = answer["message"].as_str().unwrap();
    assert!(code == 403 && message.contains("exceeded quota: q"), "{message}");
    assert_eq!(called.last().unwrap(), "checking: 2 of 2 limited, p1 p2 z");
    let (code, answer, _) = create(&stage, &log, &["policy"]).await;
    assert_eq!(code, 422, "{answer}");
}
