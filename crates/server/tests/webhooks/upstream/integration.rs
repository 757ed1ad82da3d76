//! Cases of upstream's integration tests: `TestMatchConditions` and `testWebhookReinvocationPolicy`.

use super::*;

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(name: &str, namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "test", "image": "i"}]}})
}

#[tokio::test]
async fn webhooks_are_called_where_their_conditions_hold() {
    let not_in_system = "object.metadata.namespace != 'kube-system'";
    let (wrong, test1, test2) =
        ("object.nonExistentProperty == 'someval'", ("test1", "kube-system"), ("test2", "default"));
    let mixed = &[wrong, "true", "true", wrong][..];
    for (name, conditions, policy, pods, matched, fails) in [
        (
            "pods in namespace kube-system is ignored",
            &[not_in_system][..],
            None,
            &[test1, test2][..],
            &["test2"][..],
            false,
        ),
        (
            "matchConditions are ANDed together",
            &[not_in_system, "object.metadata.name == 'test1'"],
            None,
            &[test1, ("test1", "default"), test2],
            &["test1"],
            false,
        ),
        (
            "mix of true, error and false should not match and not call webhook",
            &[wrong, "true", "false", "true", wrong],
            None,
            &[test1, test2],
            &[],
            false,
        ),
        (
            "mix of true and error should reject request without fail policy",
            mixed,
            None,
            &[test1, test2],
            &[],
            true,
        ),
        (
            "mix of true and error should reject request with fail policy fail",
            mixed,
            Some("Fail"),
            &[test1, test2],
            &[],
            true,
        ),
        (
            "mix of true and error should match request and call webhook with fail policy ignore",
            mixed,
            Some("Ignore"),
            &[test1, test2],
            &[],
            false,
        ),
        ("has access to oldObject", &["oldObject == null"], None, &[test2], &["test2"], false),
    ] {
        for kind in ["Validating", "Mutating"] {
            let stage = Stage::new().await;
            let calls = stage.serve("a.k1s.dev", |_| allow());
            let conditions: Vec<Value> = conditions
                .iter()
                .enumerate()
                .map(|(at, text)| json!({"name": format!("test{at}"), "expression": text}))
                .collect();
            let mut hook = json!({"name": "a.k1s.dev", "matchConditions": conditions, "rules": [rule(&["CREATE"], "", &["pods"])]});
            if let Some(policy) = policy {
                hook["failurePolicy"] = policy.into();
            }
            stage.register(kind, "c", &[hook]).await;
            for (pod_name, namespace) in pods {
                let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
                let (code, answer) = stage.client.call("POST", &path, pod(pod_name, namespace)).await;
                assert_eq!(code, if fails { 403 } else { 201 }, "{kind}: {name}: {answer}");
            }
            let called: Vec<Value> =
                calls.lock().iter().map(|call| call["object"]["metadata"]["name"].clone()).collect();
            assert_eq!(json!(called), json!(matched), "{kind}: {name}");
        }
    }
}

/// What the webhooks of the reinvocation test answer.
fn answer(path: &str, request: &Value) -> Value {
    let (metadata, spec) = (&request["object"]["metadata"], &request["object"]["spec"]);
    let set = |op: &str, path: &str, value: &str| json!({"op": op, "path": path, "value": value});
    let operations = match path {
        "settrue" => json!([set("replace", "/metadata/labels/fight", "true")]),
        "setfalse" => json!([set("replace", "/metadata/labels/fight", "false")]),
        "addlabel" if metadata["labels"]["a"] != "true" => json!([set("add", "/metadata/labels/a", "true")]),
        "conditionaladdlabel" if metadata["labels"]["a"].is_string() => {
            json!([set("add", "/metadata/labels/b", "true")])
        }
        "setpriority" if spec["priorityClassName"] != "high-priority" => {
            json!([set("add", "/spec/priorityClassName", "high-priority"), {"op": "remove", "path": "/spec/priority"}])
        }
        "setinvalidpriority" => json!([set("add", "/spec/priorityClassName", "invalid")]),
        _ => return allow(),
    };
    patch(&operations)
}

/// A webhook that is called: its path, its reinvocation policy, and the label that it wants.
type Called = (&'static str, Option<&'static str>, Option<&'static str>);

/// A case: whether the pod has a priority class, the webhooks, the labels at the end, the calls, and the annotations about
/// mutations: round, index, and whether the object was changed.
type Case =
    (&'static str, bool, &'static [Called], Value, &'static [&'static str], &'static [(u8, u8, bool)]);

#[tokio::test]
async fn webhooks_are_called_again_when_others_have_changed_the_object() {
    let needed = Some("IfNeeded");
    let cases: [Case; 8] = [
        (
            "no reinvocation for in-tree only mutation",
            true,
            &[("noop", Some("IfNeeded"), None)],
            json!({"x": "true"}),
            &["noop"],
            &[(0, 0, false)],
        ),
        (
            "no webhook reinvocation for webhook when no in-tree reinvocation mutations",
            true,
            &[("addlabel", Some("IfNeeded"), None)],
            json!({"x": "true", "a": "true"}),
            &["addlabel"],
            &[(0, 0, true)],
        ),
        (
            "webhook is reinvoked after in-tree reinvocation",
            true,
            &[("setpriority", Some("IfNeeded"), None)],
            json!({"x": "true"}),
            &["setpriority", "setpriority"],
            &[(0, 0, true), (1, 0, false)],
        ),
        (
            "no reinvocation of webhook B when in-tree or prior webhook mutations",
            true,
            &[("addlabel", Some("IfNeeded"), None), ("conditionaladdlabel", Some("IfNeeded"), None)],
            json!({"x": "true", "a": "true", "b": "true"}),
            &["addlabel", "conditionaladdlabel", "addlabel"],
            &[(0, 0, true), (0, 1, true), (1, 0, false)],
        ),
        (
            "all webhooks reinvoked when any webhook reinvocation causes mutation",
            true,
            &[("settrue", Some("IfNeeded"), None), ("setfalse", Some("IfNeeded"), None)],
            json!({"x": "true", "fight": "false"}),
            &["settrue", "setfalse", "settrue", "setfalse"],
            &[(0, 0, true), (0, 1, true), (1, 0, true), (1, 1, true)],
        ),
        (
            "skipped in the first round because of its selector, and therefore in the second",
            true,
            &[("conditionaladdlabel", Some("IfNeeded"), Some("a")), ("addlabel", Some("IfNeeded"), None)],
            json!({"x": "true", "a": "true"}),
            &["addlabel"],
            &[(0, 1, true)],
        ),
        (
            "'reinvoke never' policy respected",
            false,
            &[("conditionaladdlabel", Some("Never"), None), ("addlabel", Some("Never"), None)],
            json!({"x": "true", "a": "true"}),
            &["conditionaladdlabel", "addlabel"],
            &[(0, 0, false), (0, 1, true)],
        ),
        (
            "'reinvoke never' (by default) policy respected",
            false,
            &[("conditionaladdlabel", None, None), ("addlabel", None, None)],
            json!({"x": "true", "a": "true"}),
            &["conditionaladdlabel", "addlabel"],
            &[(0, 0, false), (0, 1, true)],
        ),
    ];
    for (name, has_class, webhooks, labels, calls, mutations) in cases {
        let (code, answer, called, annotations) = reinvoke(has_class, webhooks).await;
        assert_eq!((code, &answer["metadata"]["labels"]), (201, &labels), "{name}: {answer}");
        assert_eq!(called, calls, "{name}");
        if called.contains(&"setpriority") {
            assert_eq!(answer["spec"]["priority"], 10);
        }
        let mutated =
            |annotation: &(String, Value)| annotation.0.starts_with("mutation.").then(|| annotation.clone());
        let found: Vec<(String, Value)> = annotations.iter().filter_map(mutated).collect();
        let expected: Vec<(String, Value)> = mutations
            .iter()
            .map(|(round, index, changed)| {
                let hook = format!("{}.test.k1s.dev", webhooks[usize::from(*index)].0);
                let value = format!(r#"{{"configuration":"c","webhook":"{hook}","mutated":{changed}}}"#);
                (format!("mutation.webhook.admission.k8s.io/round_{round}_index_{index}"), value.into())
            })
            .collect();
        assert_eq!(found, expected, "{name}");
        // Each patch that was sent is recorded.
        let patches = annotations.iter().filter(|(key, _)| key.starts_with("patch.")).count();
        assert_eq!(patches, mutations.iter().filter(|(_, _, changed)| *changed).count(), "{name}");
    }
    let invalid = [("setinvalidpriority", needed, None)];
    let (code, answer, called, _) = reinvoke(false, &invalid).await;
    assert_eq!((code, called), (403, vec!["setinvalidpriority"]));
    assert!(
        answer["message"].as_str().unwrap().contains("no PriorityClass with name invalid was found"),
        "{answer}"
    );
}

/// Creates a pod: status, answer, the webhooks that were called, and the annotations, sorted.
async fn reinvoke(
    has_class: bool,
    webhooks: &[Called],
) -> (u16, Value, Vec<&'static str>, Vec<(String, Value)>) {
    let audited = Audited::new().await;
    let client = &audited.stage.client;
    for (name, value) in [("low-priority", 1), ("high-priority", 10)] {
        client
            .post(
                "/apis/scheduling.k8s.io/v1/priorityclasses",
                json!({"metadata": {"name": name}, "value": value}),
            )
            .await;
    }
    let log = Arc::new(Mutex::new(Vec::new()));
    let mut hooks = Vec::new();
    for (path, policy, label) in webhooks.iter().copied() {
        let host = format!("{path}.test.k1s.dev");
        let log = log.clone();
        audited.stage.serve(&host, move |request| {
            log.lock().push(path);
            answer(path, request)
        });
        let mut hook = json!({"name": host, "rules": [rule(&["*"], "", &["pods"])]});
        if let Some(policy) = policy {
            hook["reinvocationPolicy"] = policy.into();
        }
        if let Some(label) = label {
            hook["objectSelector"] = json!({"matchLabels": {label: "true"}});
        }
        hooks.push(hook);
    }
    audited.stage.register("Mutating", "c", &hooks).await;
    let mut body = pod("labeled", "default");
    body["metadata"]["labels"] = json!({"x": "true"});
    if has_class {
        body["spec"]["priorityClassName"] = "low-priority".into();
    }
    audited.events();
    let (code, answer) = client.call("POST", PODS, body).await;
    let event = audited.events().pop().unwrap();
    let mut annotations: Vec<(String, Value)> = event["annotations"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    annotations.sort_by(|one, other| one.0.cmp(&other.0));
    let called = log.lock().clone();
    (code, answer, called, annotations)
}
