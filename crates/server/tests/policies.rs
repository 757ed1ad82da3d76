//! Admission policies with CEL: `ValidatingAdmissionPolicy`, `MutatingAdmissionPolicy`, their bindings and parameters.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use common::{Client, client, server};
use serde_json::{Value, json};

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn stage() -> Client {
    client(&server().await)
}

fn constraints(operations: &[&str], group: &str, resources: &[&str]) -> Value {
    json!({"resourceRules": [{"apiGroups": [group], "apiVersions": ["v1"], "operations": operations, "resources": resources}]})
}

/// Creates a policy of this kind (`Validating`, `Mutating`) for ConfigMaps, and a binding of the same name.
async fn policy(client: &Client, kind: &str, name: &str, mut spec: Value, mut binding: Value) {
    let defaults = match kind {
        "Mutating" => json!({"reinvocationPolicy": "Never"}),
        _ => json!({}),
    };
    for (key, value) in defaults.as_object().unwrap() {
        spec.as_object_mut().unwrap().entry(key).or_insert(value.clone());
    }
    let rules = constraints(&["CREATE", "UPDATE"], "", &["configmaps"]);
    spec.as_object_mut().unwrap().entry("matchConstraints").or_insert(rules);
    if kind == "Validating" {
        binding.as_object_mut().unwrap().entry("validationActions").or_insert(json!(["Deny"]));
    }
    binding["policyName"] = name.into();
    let plural = format!("{ADMISSION}/{}admissionpolic", kind.to_lowercase());
    for (path, suffix, spec) in
        [(format!("{plural}ies"), "", spec), (format!("{plural}ybindings"), "Binding", binding)]
    {
        let object = json!({"apiVersion": "admissionregistration.k8s.io/v1",
            "kind": format!("{kind}AdmissionPolicy{suffix}"), "metadata": {"name": name}, "spec": spec});
        client.post(&path, object).await;
    }
}

async fn configmap(client: &Client, name: &str, data: Value) -> (u16, Value) {
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
    client.call("POST", CONFIGMAPS, body).await
}

fn validations(expression: &str) -> Value {
    json!({"validations": [{"expression": expression}]})
}

#[tokio::test]
async fn a_policy_counts_for_the_next_request_and_until_its_binding_is_gone() {
    let client = stage().await;
    policy(&client, "Validating", "p", validations("object.data.x == '1'"), json!({})).await;
    let (code, body) = configmap(&client, "a", json!({"x": "2"})).await;
    assert_eq!(code, 422, "{body}");
    assert_eq!(
        body["message"],
        "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed expression: object.data.x == '1'"
    );
    assert_eq!(configmap(&client, "a", json!({"x": "1"})).await.0, 201);
    let path = format!("{ADMISSION}/validatingadmissionpolicybindings/p");
    assert_eq!(client.call("DELETE", &path, Value::Null).await.0, 200);
    assert_eq!(configmap(&client, "b", json!({"x": "2"})).await.0, 201);
}

#[tokio::test]
async fn rules_exclude_and_name_objects() {
    let client = stage().await;
    let mut criteria = constraints(&["*"], "*", &["*"]);
    criteria["excludeResourceRules"] = json!([{"apiGroups": [""], "apiVersions": ["*"], "operations": ["*"],
        "resources": ["configmaps"], "resourceNames": ["spared"]}]);
    let mut spec = validations("false");
    spec["matchConstraints"] = criteria;
    let binding = json!({"matchResources": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
        "operations": ["CREATE"], "resources": ["configmaps"], "resourceNames": ["spared", "caught"]}]}});
    policy(&client, "Validating", "p", spec, binding).await;
    assert_eq!(configmap(&client, "caught", json!({})).await.0, 422);
    assert_eq!(configmap(&client, "spared", json!({})).await.0, 201);
    assert_eq!(configmap(&client, "other", json!({})).await.0, 201);
}

/// What is for a namespace is remembered, until its labels or the policies change.
#[tokio::test]
async fn selectors_see_the_labels_that_a_namespace_was_just_given() {
    let client = stage().await;
    let prod = json!({"namespaceSelector": {"matchLabels": {"stage": "prod"}}});
    let label = async |stage: Value| {
        let change = json!({"metadata": {"labels": {"stage": stage}}});
        assert_eq!(client.call("PATCH", "/api/v1/namespaces/default", change).await.0, 200);
    };
    let mut of_policy = validations("false");
    of_policy["matchConstraints"] = constraints(&["CREATE"], "", &["configmaps"]);
    of_policy["matchConstraints"]["namespaceSelector"] = prod["namespaceSelector"].clone();
    for (name, spec, binding) in [
        ("of-policy", of_policy, json!({})),
        ("of-binding", validations("false"), json!({"matchResources": prod})),
    ] {
        policy(&client, "Validating", name, spec, binding).await;
        for round in 0..3 {
            let free = format!("{name}-{round}");
            assert_eq!(configmap(&client, &free, json!({})).await.0, 201, "{free}");
            label("prod".into()).await;
            assert_eq!(configmap(&client, "caught", json!({})).await.0, 422, "{free}");
            label(Value::Null).await;
        }
        // Another namespace has its own labels.
        label("prod".into()).await;
        client.post("/api/v1/namespaces", json!({"metadata": {"name": name}})).await;
        let body = json!({"metadata": {"name": "free"}});
        client.post(&format!("/api/v1/namespaces/{name}/configmaps"), body).await;
        let path = format!("{ADMISSION}/validatingadmissionpolicies/{name}");
        assert_eq!(client.call("DELETE", &path, Value::Null).await.0, 200);
        assert_eq!(configmap(&client, &format!("{name}-last"), json!({})).await.0, 201);
        label(Value::Null).await;
    }
    // A policy that is wrong itself says so, also where no binding is for the namespace.
    let mut wrong = validations("true");
    wrong["paramKind"] = json!({"apiVersion": "rules.example.com/v1", "kind": "Limit"});
    policy(&client, "Validating", "wrong", wrong, json!({"matchResources": prod})).await;
    let (code, refused) = configmap(&client, "refused", json!({})).await;
    assert_eq!(code, 422, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("failed to configure policy: "), "{refused}");
}

#[tokio::test]
async fn another_version_of_the_resource_matches_unless_exact_is_asked_for() {
    let client = stage().await;
    for (name, match_policy) in [("equivalent", "Equivalent"), ("exact", "Exact")] {
        let mut spec = validations("request.resource.version == 'v2' || request.name == ''");
        spec["validations"][0]["messageExpression"] =
            "request.requestResource.version + ' is ' + request.resource.version + ' ' + object.apiVersion"
                .into();
        // Autoscalers are served as v1 and v2.
        let mut criteria = constraints(&["CREATE"], "autoscaling", &["horizontalpodautoscalers"]);
        criteria["matchPolicy"] = match_policy.into();
        spec["matchConstraints"] = criteria;
        policy(&client, "Validating", name, spec, json!({})).await;
    }
    let body = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
        "spec": {"maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}});
    let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    let (code, body) = client.call("POST", path, body).await;
    assert_eq!(code, 422, "{body}");
    assert_eq!(
        body["message"],
        "horizontalpodautoscalers.autoscaling \"h\" is forbidden: ValidatingAdmissionPolicy 'equivalent' with binding 'equivalent' denied request: v2 is v1 autoscaling/v1"
    );
}

#[tokio::test]
async fn parameters_are_found_by_name_or_by_labels() {
    let client = stage().await;
    let limit = |name: &str, max: &str, tier: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"tier": tier}}, "data": {"max": max}});
    client.post(CONFIGMAPS, limit("small", "1", "x")).await;
    client.post(CONFIGMAPS, limit("large", "3", "x")).await;
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": constraints(&["CREATE"], "", &["secrets"]),
        "validations": [{"expression": "!has(object.data) || object.data.size() <= int(params.data.max)",
            "messageExpression": "'at most ' + params.data.max"}],
    });
    let by_labels = json!({"selector": {"matchLabels": {"tier": "x"}}, "parameterNotFoundAction": "Deny"});
    policy(&client, "Validating", "p", spec, json!({"paramRef": by_labels})).await;
    let secret = async |name: &str, keys: usize| {
        let data: serde_json::Map<String, Value> =
            (0..keys).map(|at| (format!("k{at}"), "eA==".into())).collect();
        let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data});
        let (code, body) = client.call("POST", "/api/v1/namespaces/default/secrets", body).await;
        (code, body["message"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(secret("one", 1).await.0, 201);
    // Every parameter counts.
    let (code, why) = secret("two", 2).await;
    assert_eq!(code, 422);
    assert!(why.ends_with("denied request: at most 1"), "{why}");
    let path = format!("{ADMISSION}/validatingadmissionpolicybindings/p");
    let by_name = json!({"spec": {"paramRef": {"name": "large", "selector": null}}});
    assert_eq!(client.call("PATCH", &path, by_name).await.0, 200);
    assert_eq!(secret("two", 2).await.0, 201);
    let missing = json!({"spec": {"paramRef": {"name": "none"}}});
    assert_eq!(client.call("PATCH", &path, missing).await.0, 200);
    let (code, why) = secret("three", 1).await;
    assert_eq!(code, 422);
    assert!(
        why.ends_with(
            "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
        ),
        "{why}"
    );
}

#[tokio::test]
async fn a_kind_of_parameters_that_is_not_served_is_an_error_of_the_policy() {
    let client = stage().await;
    let mut spec = validations("true");
    spec["paramKind"] = json!({"apiVersion": "rules.example.com/v1", "kind": "Limit"});
    let reference = json!({"name": "x", "parameterNotFoundAction": "Allow"});
    policy(&client, "Validating", "p", spec, json!({"paramRef": reference})).await;
    let (code, body) = configmap(&client, "a", json!({})).await;
    assert_eq!(code, 422);
    assert_eq!(
        body["message"],
        "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'rules.example.com/v1, Kind=Limit'"
    );
}

#[tokio::test]
async fn policies_can_always_be_corrected() {
    let client = stage().await;
    let mut spec = validations("false");
    spec["matchConstraints"] = constraints(&["*"], "*", &["*/*"]);
    policy(&client, "Validating", "p", spec, json!({})).await;
    assert_eq!(configmap(&client, "a", json!({})).await.0, 422);
    let path = format!("{ADMISSION}/validatingadmissionpolicies/p");
    assert_eq!(client.call("DELETE", &path, Value::Null).await.0, 200);
    assert_eq!(configmap(&client, "a", json!({})).await.0, 201);
}

#[tokio::test]
async fn what_changes_nothing_is_checked_as_well() {
    let client = stage().await;
    assert_eq!(configmap(&client, "a", json!({"x": "1"})).await.0, 201);
    policy(&client, "Validating", "p", validations("false"), json!({})).await;
    let same = json!({"data": {"x": "1"}});
    assert_eq!(client.call("PATCH", &format!("{CONFIGMAPS}/a"), same).await.0, 422);
}

fn applies(expression: &str) -> Value {
    json!({"mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}]})
}

fn patches(expression: &str) -> Value {
    json!({"mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]})
}

#[tokio::test]
async fn mutations_merge_and_patch_one_after_the_other() {
    let client = stage().await;
    let mut spec = applies("Object{metadata: Object.metadata{labels: {'a': object.metadata.name}}}");
    let more = patches(
        "[JSONPatch{op: 'test', path: '/metadata/labels/a', value: 'm'}, JSONPatch{op: 'add', path: '/data', value: {'from': object.metadata.labels.a}}]",
    );
    spec["mutations"].as_array_mut().unwrap().push(more["mutations"][0].clone());
    policy(&client, "Mutating", "p", spec, json!({})).await;
    let (code, object) = configmap(&client, "m", Value::Null).await;
    assert_eq!(code, 201, "{object}");
    assert_eq!((&object["metadata"]["labels"]["a"], &object["data"]), (&json!("m"), &json!({"from": "m"})));
    // Nobody owns what a policy has set.
    assert!(!object["metadata"]["managedFields"].to_string().contains("f:from"), "{object}");
    // The test of the patch fails for another name, so that the rest of it is not applied.
    let (_, object) = configmap(&client, "n", Value::Null).await;
    assert_eq!((&object["metadata"]["labels"]["a"], &object["data"]), (&json!("n"), &Value::Null));
}

/// Mutations that set a label to the number of labels.
fn counts(name: &str, reinvocation: &str) -> Value {
    let mut spec = applies(&format!(
        "Object{{metadata: Object.metadata{{labels: {{'{name}': string(object.metadata.?labels.orValue({{}}).size())}}}}}}"
    ));
    spec["reinvocationPolicy"] = reinvocation.into();
    spec
}

/// The labels of a new object after policies with these names and reinvocation policies.
async fn counted(policies: &[(&str, &str)]) -> Value {
    let client = stage().await;
    for (name, reinvocation) in policies {
        policy(&client, "Mutating", name, counts(name, reinvocation), json!({})).await;
    }
    let (code, mut object) = configmap(&client, "m", json!({})).await;
    assert_eq!(code, 201, "{object}");
    object["metadata"]["labels"].take()
}

#[tokio::test]
async fn policies_see_what_those_before_them_did_and_run_again_if_they_ask_for_it() {
    assert_eq!(counted(&[("a", "IfNeeded"), ("b", "Never")]).await, json!({"a": "2", "b": "1"}));
    // The one that made the last change as well.
    assert_eq!(counted(&[("a", "IfNeeded")]).await, json!({"a": "1"}));
    assert_eq!(counted(&[("a", "Never"), ("b", "IfNeeded")]).await, json!({"a": "0", "b": "2"}));
    assert_eq!(counted(&[("a", "IfNeeded"), ("b", "IfNeeded")]).await, json!({"a": "2", "b": "2"}));
    assert_eq!(counted(&[("a", "Never"), ("b", "Never")]).await, json!({"a": "0", "b": "1"}));
}

#[tokio::test]
async fn match_conditions_count_again_when_policies_run_again() {
    // It holds for the object as it was sent only.
    let without_labels = "object.metadata.?labels.orValue({}).size() == 0";
    let client = stage().await;
    let mut spec = counts("a", "IfNeeded");
    spec["matchConditions"] = json!([{"name": "c", "expression": without_labels}]);
    policy(&client, "Mutating", "a", spec, json!({})).await;
    let (_, object) = configmap(&client, "m", json!({})).await;
    assert_eq!(object["metadata"]["labels"], json!({"a": "0"}));
    // They are evaluated before it is known that the policy does not run again.
    let path = format!("{ADMISSION}/mutatingadmissionpolicies/a");
    let fails = format!("{without_labels} || object.data.nope == ''");
    let change = json!({"spec": {"reinvocationPolicy": "Never", "matchConditions": [{"name": "c", "expression": fails}]}});
    assert_eq!(client.call("PATCH", &path, change).await.0, 200);
    let (code, refused) = configmap(&client, "n", json!({})).await;
    let message = refused["message"].as_str().unwrap();
    assert!(code == 403 && message.starts_with("policy 'a' with binding 'a' denied request: "), "{refused}");
    assert!(message.contains("no such key: "), "{message}");
}

#[tokio::test]
async fn a_mutation_that_fails_denies_the_request_unless_failures_are_ignored() {
    let client = stage().await;
    let cases = [
        (
            "a",
            applies("Object{spec: Object.spec{x: 1}}"),
            "error applying patch: failed to convert patch object to typed object: .spec: field not declared in schema",
        ),
        (
            "b",
            applies("Object{metadata: Object.wrong{labels: {'a': 'b'}}}"),
            "type mismatch: unexpected type name \"Object.wrong\", expected \"Object.metadata\", which matches field name path from root Object type",
        ),
        (
            "c",
            patches("[JSONPatch{op: 'add', path: '/metadata/labels/a', value: object.data.nope}]"),
            "expression '[JSONPatch{op: 'add', path: '/metadata/labels/a', value: object.data.nope}]' resulted in error: no such key: data",
        ),
    ];
    for (name, mut spec, why) in cases {
        spec["matchConditions"] =
            json!([{"name": "own", "expression": format!("object.metadata.name == '{name}'")}]);
        policy(&client, "Mutating", name, spec, json!({})).await;
        let (code, body) = configmap(&client, name, Value::Null).await;
        assert_eq!(code, 403, "{body}");
        assert_eq!(body["message"], format!("policy '{name}' with binding '{name}' denied request: {why}"));
        assert_eq!((&body["reason"], &body["details"]["name"]), (&json!("Invalid"), &json!(name)));
        let path = format!("{ADMISSION}/mutatingadmissionpolicies/{name}");
        let ignore = json!({"spec": {"failurePolicy": "Ignore"}});
        assert_eq!(client.call("PATCH", &path, ignore).await.0, 200);
        assert_eq!(configmap(&client, name, Value::Null).await.0, 201);
    }
}

#[tokio::test]
async fn expressions_are_checked_against_the_kinds_that_rules_name() {
    let client = stage().await;
    client
        .post(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "widgets.example.com"},
                "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                        {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}}]}}),
        )
        .await;
    let mut spec = json!({"validations": [
        {"expression": "object.spec.size < 3"},
        {"expression": "object.spec.replicas < 3", "messageExpression": "'named ' + object.metadata.name"},
        {"expression": "true", "messageExpression": "string(object.nope)"},
    ]});
    let mut criteria = constraints(&["CREATE"], "example.com", &["widgets", "widgets/status"]);
    criteria["resourceRules"]
        .as_array_mut()
        .unwrap()
        .push(json!({"apiGroups": ["apps"], "apiVersions": ["v1"],
        "operations": ["CREATE"], "resources": ["deployments"]}));
    spec["matchConstraints"] = criteria;
    policy(&client, "Validating", "p", spec, json!({})).await;
    let path = format!("{ADMISSION}/validatingadmissionpolicies/p");
    let shown = client.call("GET", &path, Value::Null).await.1;
    assert_eq!(shown["status"]["observedGeneration"], 1);
    let warnings = &shown["status"]["typeChecking"]["expressionWarnings"];
    let undefined = |kind: &str, field: &str, text: &str, column: usize| {
        format!(
            "{kind}: ERROR: <input>:1:{}: undefined field '{field}'\n | {text}\n | {}^\n",
            column + 1,
            ".".repeat(column)
        )
    };
    let [deployment, widget] = ["apps/v1, Kind=Deployment", "example.com/v1, Kind=Widget"];
    let size = "object.spec.size < 3";
    let replicas = "object.spec.replicas < 3";
    assert_eq!(
        *warnings,
        json!([
            {"fieldRef": "spec.validations[0].expression", "warning": undefined(deployment, "size", size, 11)},
            {"fieldRef": "spec.validations[1].expression", "warning": undefined(widget, "replicas", replicas, 11)},
            {"fieldRef": "spec.validations[2].messageExpression", "warning": format!("{}\n{}",
                undefined(deployment, "nope", "string(object.nope)", 13), undefined(widget, "nope", "string(object.nope)", 13))},
        ])
    );
    // What is right again has no warnings.
    let fixed = json!({"spec": {"validations": [{"expression": "true"}]}});
    assert_eq!(client.call("PATCH", &path, fixed).await.0, 200);
    let shown = client.call("GET", &path, Value::Null).await.1;
    assert_eq!(shown["status"], json!({"observedGeneration": 2, "typeChecking": {}}));
}

#[tokio::test]
async fn a_patch_of_a_policy_may_escape_keys() {
    let client = stage().await;
    let expression = "[JSONPatch{op: 'add', path: '/metadata/labels', value: {}}, \
        JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/a~b'), value: 'c'}]";
    let spec = json!({"mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]});
    policy(&client, "Mutating", "m", spec, json!({})).await;
    let (code, body) = configmap(&client, "a", json!({})).await;
    // The key is found, and refused as a label for its tilde.
    assert_eq!(code, 422, "{body}");
    assert!(body["message"].as_str().unwrap().contains("\"example.com/a~b\""), "{body}");
}

#[tokio::test]
async fn metrics_count_what_policies_and_rules_decide() {
    let client = stage().await;
    let mut spec = validations("object.data.x == '1'");
    spec["matchConditions"] = json!([{"name": "c", "expression": "object.metadata.name != 'spared'"}]);
    policy(&client, "Validating", "p", spec, json!({"validationActions": ["Deny", "Audit"]})).await;
    let config = "Object{metadata: Object.metadata{labels: {'a': 'b'}}}";
    let spec = json!({"mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": config}}]});
    policy(&client, "Mutating", "m", spec, json!({})).await;
    assert_eq!(configmap(&client, "a", json!({"x": "2"})).await.0, 422);
    assert_eq!(configmap(&client, "spared", json!({"x": "2"})).await.0, 201);
    let rules = json!([{"rule": "self.size < 3"}]);
    client
        .post(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "widgets.example.com"},
                "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                        {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-validations": rules,
                            "properties": {"size": {"type": "integer"}}}}}}}]}}),
        )
        .await;
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 5}});
    assert_eq!(client.call("POST", "/apis/example.com/v1/namespaces/default/widgets", widget).await.0, 422);
    let text = client.send("GET", "/metrics", &[], String::new()).await.text();
    let of = |action: &str| {
        format!(
            "apiserver_validating_admission_policy_check_total{{enforcement_action=\"{action}\",error_type=\"invalid_error\",policy=\"p\",policy_binding=\"p\"}} 1"
        )
    };
    let conditions = "{kind=\"policy\",name=\"p\",operation=\"CREATE\",type=\"validate\"}";
    for line in [
        of("deny"),
        of("audit"),
        "apiserver_mutating_admission_policy_check_total{error_type=\"no_error\",policy=\"m\",policy_binding=\"m\"} 2".into(),
        format!("apiserver_admission_match_condition_exclusions_total{conditions} 1"),
        format!("apiserver_admission_match_condition_evaluation_seconds_count{conditions} 2"),
        "apiserver_cel_evaluation_duration_seconds_count 1".into(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\nin\n{text}");
    }
}
