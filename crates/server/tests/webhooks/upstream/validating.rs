//! The tests of the plugin of validating policies: parameters, bindings that change, actions, annotations.

use super::*;

/// Objects of a namespaced and of a cluster-scoped kind, both of which are parameters and what requests are about.
const NAMESPACED: &str = "ParamsConfig";
const CLUSTER: &str = "ClusterScopedParamsConfig";

fn plural(kind: &str) -> String {
    kind.to_lowercase() + "s"
}

fn path(kind: &str, namespace: &str) -> String {
    let plural = plural(kind);
    match kind {
        CLUSTER => format!("/apis/example.com/v1/{plural}"),
        _ => format!("/apis/example.com/v1/namespaces/{namespace}/{plural}"),
    }
}

struct World {
    audited: Audited,
}

impl World {
    async fn new() -> World {
        let audited = Audited::new().await;
        let client = &audited.stage.client;
        for (kind, scope) in [(NAMESPACED, "Namespaced"), (CLUSTER, "Cluster")] {
            let schema =
                json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
            let names = json!({"plural": plural(kind), "singular": kind.to_lowercase(), "kind": kind});
            let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{}.example.com", plural(kind))},
                "spec": {"group": "example.com", "scope": scope, "names": names,
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
            client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
        }
        for namespace in ["mynamespace", "othernamespace"] {
            client.post("/api/v1/namespaces", json!({"metadata": {"name": namespace}})).await;
        }
        World { audited }
    }

    fn client(&self) -> &Client {
        &self.audited.stage.client
    }

    async fn create(&self, kind: &str, namespace: &str, name: &str, labels: Value) {
        let object = json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": name, "labels": labels}});
        self.client().post(&path(kind, namespace), object).await;
    }

    /// A policy that refuses both kinds, with this message. What it says of parameters is `paramKind`.
    async fn policy(&self, name: &str, kind: Option<(&str, &str)>, message: &str) {
        let mut spec = json!({
            "matchConstraints": {"resourceRules": [rule(&["CREATE"], "example.com", &["*"])]},
            "validations": [{"expression": "false", "messageExpression": message}],
        });
        if let Some((version, kind)) = kind {
            spec["paramKind"] = json!({"apiVersion": version, "kind": kind});
        }
        self.put("", name, spec).await;
    }

    async fn bind(&self, name: &str, policy: &str, param_ref: Value, actions: &[&str]) {
        let mut spec = json!({"policyName": policy, "validationActions": actions});
        if !param_ref.is_null() {
            spec["paramRef"] = param_ref;
        }
        self.put("Binding", name, spec).await;
    }

    /// Creates or replaces a policy or a binding.
    async fn put(&self, suffix: &str, name: &str, spec: Value) {
        let mut object = json!({"apiVersion": "admissionregistration.k8s.io/v1",
            "kind": format!("ValidatingAdmissionPolicy{suffix}"), "metadata": {"name": name}, "spec": spec});
        let path = policies(suffix, name);
        let (code, before) = self.client().call("GET", &path, Value::Null).await;
        if code == 404 {
            self.client().post(path.rsplit_once('/').unwrap().0, object).await;
            return;
        }
        object["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
        let (code, answer) = self.client().call("PUT", &path, object).await;
        assert_eq!(code, 200, "{answer}");
    }

    async fn delete(&self, path: &str) {
        let (code, answer) = self.client().call("DELETE", path, Value::Null).await;
        assert_eq!(code, 200, "{answer}");
    }

    /// Creates an object, without keeping it: the message of its refusal, and the warnings.
    async fn dispatch(&self, kind: &str, namespace: &str, name: &str) -> (Option<String>, Vec<String>) {
        let object = json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": name}});
        self.audited.events();
        let path = path(kind, namespace) + "?dryRun=All";
        let answer = self.audited.stage.send("POST", &path, &object).await;
        let warnings = answer.headers.get_all("warning").iter();
        let warnings = warnings.map(|one| one.to_str().unwrap().to_owned()).collect();
        let message = (answer.status != 201).then(|| answer.json()["message"].as_str().unwrap().to_owned());
        (message, warnings)
    }

    /// Dispatches an object in `default` that has to be refused with a message that ends like this.
    async fn refuses(&self, ends: &str) {
        let (message, _) = self.dispatch(NAMESPACED, "default", "object").await;
        let message = message.unwrap_or_else(|| panic!("not refused: {ends}"));
        assert!(message.ends_with(ends), "{message}");
    }

    async fn allows(&self) {
        assert_eq!(self.dispatch(NAMESPACED, "default", "object").await.0, None);
    }

    /// The annotations of the last request, without those of every request.
    fn annotations(&self) -> Value {
        let mut annotations = self.audited.events().pop().unwrap()["annotations"].take();
        annotations.as_object_mut().unwrap().retain(|key, _| !key.starts_with("authorization."));
        annotations
    }
}

fn policies(suffix: &str, name: &str) -> String {
    let plural = if suffix.is_empty() { "ies" } else { "ybindings" };
    format!("{ADMISSION}/validatingadmissionpolic{plural}/{name}")
}

const DENIED: &str = "'Denied'";
const PARAMS: Option<(&str, &str)> = Some(("example.com/v1", NAMESPACED));
const NOT_FOUND: &str = "no params found for policy binding with `Deny` parameterNotFoundAction";

fn by_name(name: &str) -> Value {
    json!({"name": name, "namespace": "default", "parameterNotFoundAction": "Deny"})
}

/// `TestBasicPolicyDefinitionFailure`
#[tokio::test]
async fn a_denial_has_no_warnings_and_no_annotations() {
    let world = World::new().await;
    world.create(NAMESPACED, "default", "p", json!({})).await;
    world.policy("deny", PARAMS, DENIED).await;
    world.bind("deny", "deny", by_name("p"), &["Deny"]).await;
    let (message, warnings) = world.dispatch(NAMESPACED, "default", "x").await;
    assert!(message.unwrap().ends_with("denied request: Denied"));
    assert!(warnings.is_empty());
    assert_eq!(world.annotations(), json!({}));
}

/// `TestDefinitionDoesntMatch`
#[tokio::test]
async fn a_policy_is_evaluated_for_what_it_matches() {
    let world = World::new().await;
    let spec = json!({
        "matchConstraints": {"resourceRules": [rule(&["CREATE"], "example.com", &["*"])]},
        "matchConditions": [{"name": "even", "expression": "object.metadata.name.size() % 2 == 0"}],
        "validations": [{"expression": "false", "message": "Denied"}],
    });
    world.put("", "deny", spec).await;
    world.bind("deny", "deny", Value::Null, &["Deny"]).await;
    assert_eq!(world.dispatch(NAMESPACED, "default", "oddlength").await.0, None);
    let message = world.dispatch(NAMESPACED, "default", "evenlength").await.0.unwrap();
    assert!(message.ends_with("Denied"), "{message}");
}

/// `TestReconfigureBinding`, `TestRemoveBinding`, `TestRemoveDefinition`, `TestInvalidParamSourceInstanceName`
#[tokio::test]
async fn bindings_and_policies_count_as_they_are_now() {
    let world = World::new().await;
    world.create(NAMESPACED, "default", "p", json!({})).await;
    world.create(NAMESPACED, "othernamespace", "p2", json!({})).await;
    world.policy("deny", PARAMS, DENIED).await;
    world.bind("deny", "deny", by_name("p"), &["Deny"]).await;
    world.refuses("Denied").await;
    world.bind("deny", "deny", by_name("p2"), &["Deny"]).await;
    world.refuses(NOT_FOUND).await;
    // What is a parameter is matched itself.
    world.delete(&policies("Binding", "deny")).await;
    world.create(NAMESPACED, "default", "p2", json!({})).await;
    world.allows().await;
    world.bind("deny", "deny", by_name("p2"), &["Deny"]).await;
    world.refuses("Denied").await;
    world.delete(&policies("", "deny")).await;
    world.allows().await;
}

/// `TestInvalidParamSourceGVK`
#[tokio::test]
async fn a_kind_of_parameters_has_to_be_served() {
    let world = World::new().await;
    world.policy("deny", Some(("example.com/v1", "BadParamKind")), DENIED).await;
    world.bind("deny", "deny", by_name("p"), &["Deny"]).await;
    world
        .refuses("failed to configure policy: failed to find resource referenced by paramKind: 'example.com/v1, Kind=BadParamKind'")
        .await;
}

/// `TestEmptyParamRef`, `TestEmptyParamSource`
#[tokio::test]
async fn without_a_reference_or_a_kind_parameters_are_null() {
    for kind in [PARAMS, None] {
        let world = World::new().await;
        world
            .policy("deny", kind, if kind.is_some() { "'Denied ' + string(params == null)" } else { DENIED })
            .await;
        world.bind("deny", "deny", Value::Null, &["Deny"]).await;
        world.refuses(if kind.is_some() { "Denied true" } else { "Denied" }).await;
    }
}

/// `TestMultiplePoliciesSharedParamType`
#[tokio::test]
async fn policies_share_a_kind_of_parameters() {
    let world = World::new().await;
    world.create(NAMESPACED, "default", "p", json!({})).await;
    for (name, message) in [("policy1", "''"), ("policy2", "'Policy2Denied ' + params.metadata.name")] {
        world.policy(name, PARAMS, message).await;
        world.bind(name, name, by_name("p"), &["Deny"]).await;
    }
    let allows = json!({"spec": {"validations": [{"expression": "true"}]}});
    assert_eq!(world.client().call("PATCH", &policies("", "policy1"), allows).await.0, 200);
    world.refuses("Policy2Denied p").await;
    let none = json!({"spec": {"paramKind": null}});
    assert_eq!(world.client().call("PATCH", &policies("", "policy1"), none).await.0, 200);
    world.bind("policy1", "policy1", Value::Null, &["Deny"]).await;
    world.refuses("Policy2Denied p").await;
}

/// `TestNativeTypeParam`, `TestNamespaceParamRefName`
#[tokio::test]
async fn parameters_of_a_built_in_kind_are_those_of_the_namespace_of_the_request() {
    let world = World::new().await;
    let namespaces = ["default", "mynamespace", "othernamespace"];
    for namespace in namespaces {
        let body = json!({"metadata": {"name": "replicas-test.example.com"}, "data": {"coolkey": namespace}});
        world.client().post(&format!("/api/v1/namespaces/{namespace}/configmaps"), body).await;
    }
    world.policy("deny", Some(("v1", "ConfigMap")), "string(params.data.coolkey)").await;
    let reference = json!({"name": "replicas-test.example.com", "parameterNotFoundAction": "Deny"});
    world.bind("deny", "deny", reference, &["Deny"]).await;
    for namespace in namespaces.into_iter().chain(["default"]) {
        let message = world.dispatch(NAMESPACED, namespace, "x").await.0.unwrap();
        assert!(message.ends_with(&format!("denied request: {namespace}")), "{message}");
    }
}

/// `TestConvertParamToInformerRepresentation`
#[tokio::test]
async fn parameters_of_built_in_kinds_do_not_say_what_they_are() {
    let world = World::new().await;
    world.create(NAMESPACED, "default", "p", json!({})).await;
    world.client().post(CONFIGMAPS, json!({"metadata": {"name": "p"}})).await;
    let says = "'kind: ' + params.?kind.orValue('none') + ', ' + params.?apiVersion.orValue('none')";
    for (kind, expected) in
        [(("v1", "ConfigMap"), "kind: none, none"), (PARAMS.unwrap(), "kind: ParamsConfig, example.com/v1")]
    {
        world.policy("deny", Some(kind), says).await;
        world.bind("deny", "deny", by_name("p"), &["Deny"]).await;
        world.refuses(expected).await;
    }
}

fn failure(policy: &str, message: &str, actions: &[&str]) -> Value {
    json!({"message": message, "policy": policy, "binding": policy, "expressionIndex": 0, "validationActions": actions})
}

/// `TestAuditValidationAction`, `TestWarnValidationAction`, `TestAllValidationActions`: Deny and Warn at once are not valid.
#[tokio::test]
async fn actions_of_bindings() {
    let annotation = "validation.policy.admission.k8s.io/validation_failure";
    let world = World::new().await;
    let sorry = ("one", "I'm sorry Dave");
    let both = [sorry, ("two", "I can't do that")];
    for (failing, actions) in [
        (&both[..], &["Audit"][..]),
        (&both[..1], &["Warn"]),
        (&both[..1], &["Deny", "Audit"]),
        (&both[..1], &["Warn", "Audit"]),
    ] {
        for (name, message) in failing {
            world.policy(name, None, &format!("{message:?}")).await;
            world.bind(name, name, Value::Null, actions).await;
        }
        let (message, warnings) = world.dispatch(NAMESPACED, "default", "x").await;
        let denies = message.as_ref().is_some_and(|message| message.ends_with(sorry.1));
        assert_eq!((denies, message.is_some()), (actions.contains(&"Deny"), actions.contains(&"Deny")));
        let warning = "299 - \"Validation failed for ValidatingAdmissionPolicy 'one' with binding 'one': I'm sorry Dave\"";
        assert_eq!(warnings, if actions.contains(&"Warn") { vec![warning] } else { vec![] });
        let annotations = world.annotations();
        let recorded =
            annotations.get(annotation).map(|text| serde_json::from_str(text.as_str().unwrap()).unwrap());
        let expected: Vec<Value> = failing.iter().map(|(name, why)| failure(name, why, actions)).collect();
        assert_eq!(recorded, actions.contains(&"Audit").then_some(Value::Array(expected)));
        for (name, _) in failing {
            world.delete(&policies("Binding", name)).await;
        }
    }
    let (code, _) = world
        .client()
        .call(
            "POST",
            &format!("{ADMISSION}/validatingadmissionpolicybindings"),
            json!({"metadata": {"name": "all"}, "spec": {"policyName": "one", "validationActions": ["Deny", "Warn", "Audit"]}}),
        )
        .await;
    assert_eq!(code, 422);
}

/// `TestNamespaceParamRefClusterScopedParamError`
#[tokio::test]
async fn a_cluster_scoped_parameter_has_no_namespace() {
    let world = World::new().await;
    let kind = ("admissionregistration.k8s.io/v1beta1", "ValidatingAdmissionPolicy");
    for kind in [("admissionregistration.k8s.io/v1", kind.1), ("example.com/v1", CLUSTER)] {
        world.policy("deny", Some(kind), DENIED).await;
        world.bind("deny", "deny", by_name("p"), &["Deny"]).await;
        world.refuses("paramRef.namespace must not be provided for a cluster-scoped `paramKind`").await;
    }
}

/// `TestAuditAnnotations`
#[tokio::test]
async fn audit_annotations_of_all_bindings_are_joined() {
    let world = World::new().await;
    for name in ["p1", "p2", "p3"] {
        world.create(NAMESPACED, "default", name, json!({})).await;
    }
    let spec = json!({
        "paramKind": {"apiVersion": "example.com/v1", "kind": NAMESPACED},
        "matchConstraints": {"resourceRules": [rule(&["CREATE"], "example.com", &["*"])]},
        "auditAnnotations": [
            {"key": "example-key", "valueExpression": "params.metadata.name == 'p2' ? 'special-value' : 'normal-value'"},
            {"key": "excluded-key", "valueExpression": "null"},
            {"key": "error-key", "valueExpression": "string(params.missing)"},
        ],
    });
    world.put("", "deny.example.com", spec).await;
    for name in ["p1", "p2", "p3"] {
        world.bind(name, "deny.example.com", by_name(name), &["Deny"]).await;
    }
    world.refuses("resulted in error: no such key: missing").await;
    assert_eq!(world.annotations(), json!({"deny.example.com/example-key": "normal-value, special-value"}));
}

/// `TestParamRef`: every form of a reference, for requests in a namespace and outside.
#[tokio::test]
async fn every_form_of_a_reference_to_parameters() {
    const NAME: &str = "replicas-test.example.com";
    let label = |text: &str| match text {
        "" => json!({"notaffiliated": "no"}),
        text => json!({"doesitmatch": text}),
    };
    let namespaces = ["default", "mynamespace", "othernamespace"];
    // Suffixes of names, with the labels in each namespace, and outside of namespaces.
    let inside = [("", ["no"; 3]), ("1", ["yes"; 3]), ("2", [""; 3]), ("3", ["", "yes", "yes"])];
    let outside = [("", "yes"), ("1", "no"), ("2", ""), ("3", "yes"), ("4", "no"), ("5", "")];
    for (kind, reference, found) in [
        (NAMESPACED, json!({"name": NAME}), &["othernamespace/"][..]),
        (NAMESPACED, json!({"name": NAME, "namespace": "mynamespace"}), &["mynamespace/"]),
        (
            NAMESPACED,
            json!({"selector": {"matchLabels": {"doesitmatch": "yes"}}}),
            &["othernamespace/1", "othernamespace/3"],
        ),
        (
            NAMESPACED,
            json!({"selector": {"matchLabels": {"doesitmatch": "yes"}}, "namespace": "mynamespace"}),
            &["mynamespace/1", "mynamespace/3"],
        ),
        (
            NAMESPACED,
            json!({"selector": {}}),
            &["othernamespace/", "othernamespace/1", "othernamespace/2", "othernamespace/3"],
        ),
        (
            NAMESPACED,
            json!({"selector": {}, "namespace": "mynamespace"}),
            &["mynamespace/", "mynamespace/1", "mynamespace/2", "mynamespace/3"],
        ),
        (CLUSTER, json!({"name": NAME}), &["/"]),
        (CLUSTER, json!({"selector": {"matchLabels": {"doesitmatch": "yes"}}}), &["/", "/3"]),
        (CLUSTER, json!({"selector": {}}), &["/", "/1", "/2", "/3", "/4", "/5"]),
    ] {
        let world = World::new().await;
        for (suffix, labels) in inside {
            for (namespace, text) in namespaces.into_iter().zip(labels) {
                world.create(NAMESPACED, namespace, &format!("{NAME}{suffix}"), label(text)).await;
            }
        }
        for (suffix, text) in outside {
            world.create(CLUSTER, "", &format!("{NAME}{suffix}"), label(text)).await;
        }
        let shown = format!(
            "params.metadata.?namespace.orValue('') + '/' + params.metadata.name.substring({})",
            NAME.len()
        );
        world.policy("warn", Some(("example.com/v1", kind)), &shown).await;
        world.policy("deny", Some(("example.com/v1", kind)), "'Denied by policy'").await;
        let bind = async |action: &str| {
            let mut reference = reference.clone();
            reference["parameterNotFoundAction"] = action.into();
            world.bind("warn", "warn", reference.clone(), &["Warn"]).await;
            world.bind("deny", "deny", reference, &["Deny"]).await;
        };
        bind("Allow").await;
        // Without a namespace, the parameters are in that of the request.
        let needs_namespace = kind == NAMESPACED && reference["namespace"].is_null();
        let no_namespace = "failed to configure binding: cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
        for (requested, namespace) in [(NAMESPACED, "othernamespace"), (CLUSTER, "")] {
            let what = format!("{requested} {kind} {reference}");
            let (message, warnings) = world.dispatch(requested, namespace, "some-param").await;
            let message = message.unwrap_or_else(|| panic!("{what}"));
            let mut seen: Vec<&str> = warnings
                .iter()
                .map(|warning| warning.rsplit_once(": ").unwrap().1.trim_end_matches('"'))
                .collect();
            seen.sort_unstable();
            if requested == CLUSTER && needs_namespace {
                assert!(message.ends_with(no_namespace), "{what}: {message}");
                assert!(seen.is_empty(), "{what}: {seen:?}");
            } else {
                assert!(message.ends_with("Denied by policy"), "{what}: {message}");
                assert_eq!(seen, found, "{what}");
            }
        }
        for param in found {
            let (namespace, suffix) = param.split_once('/').unwrap();
            world.delete(&format!("{}/{NAME}{suffix}", path(kind, namespace))).await;
        }
        for action in ["Allow", "Deny"] {
            bind(action).await;
            for (requested, namespace) in [(NAMESPACED, "othernamespace"), (CLUSTER, "")] {
                let (message, warnings) = world.dispatch(requested, namespace, "some-param").await;
                assert!(warnings.is_empty(), "{warnings:?}");
                let expected = match action {
                    _ if requested == CLUSTER && needs_namespace => Some(no_namespace),
                    "Deny" => Some(NOT_FOUND),
                    _ => None,
                };
                match (message, expected) {
                    (Some(message), Some(expected)) => assert!(message.ends_with(expected), "{message}"),
                    (message, expected) => assert_eq!(message.as_deref(), expected),
                }
            }
        }
    }
}
