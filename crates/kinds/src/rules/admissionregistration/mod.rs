//! `admissionregistration.k8s.io`: webhook configurations, admission policies and their bindings.

mod admission_policy;
mod admission_policy_binding;
mod cel;
mod matching;
mod webhook_configuration;

use k1s_object::field::At;
use serde_json::Value;

use crate::rules::{Rules, helpers::metadata::status_alone};

const STATIC_SUFFIX: &str = ".static.k8s.io";

const WEBHOOKS: Rules =
    Rules { generation: true, unconditional_update: false, warnings: webhook_warnings, ..Rules::PLAIN };
const POLICIES: Rules =
    Rules { generation: true, unconditional_update: false, warnings: suffix_warning, ..Rules::PLAIN };

static VALIDATING_WEBHOOKS: Rules = Rules {
    defaults: default_validating_webhooks,
    validate: validating_webhooks_create,
    validate_update: validating_webhooks_update,
    ..WEBHOOKS
};

static MUTATING_WEBHOOKS: Rules = Rules {
    defaults: default_mutating_webhooks,
    validate: mutating_webhooks_create,
    validate_update: mutating_webhooks_update,
    ..WEBHOOKS
};

static VALIDATING_POLICY: Rules = Rules {
    defaults: admission_policy::default_policy,
    prepare_status: status_alone,
    validate: validating_policy_create,
    validate_update: validating_policy_update,
    validate_status: admission_policy::policy_status,
    unconditional_update: false,
    warnings: suffix_warning,
    ..Rules::WITH_STATUS
};

static MUTATING_POLICY: Rules = Rules {
    defaults: admission_policy::default_policy,
    validate: mutating_policy_create,
    validate_update: mutating_policy_update,
    ..POLICIES
};

static VALIDATING_BINDING: Rules = Rules {
    defaults: admission_policy_binding::defaults,
    validate: validating_binding_create,
    validate_update: validating_binding_update,
    ..POLICIES
};

static MUTATING_BINDING: Rules = Rules {
    defaults: admission_policy_binding::defaults,
    validate: mutating_binding_create,
    validate_update: mutating_binding_update,
    ..POLICIES
};

pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "ValidatingWebhookConfiguration" => &VALIDATING_WEBHOOKS,
        "MutatingWebhookConfiguration" => &MUTATING_WEBHOOKS,
        "ValidatingAdmissionPolicy" => &VALIDATING_POLICY,
        "MutatingAdmissionPolicy" => &MUTATING_POLICY,
        "ValidatingAdmissionPolicyBinding" => &VALIDATING_BINDING,
        "MutatingAdmissionPolicyBinding" => &MUTATING_BINDING,
        _ => return None,
    })
}

/// Validates an object of this kind on create (no `old`) or update. The order of the errors is that of Kubernetes.
fn validate(kind: &str, new: At<'_, '_>, old: Option<At<'_, '_>>) {
    match kind {
        "ValidatingWebhookConfiguration" => webhook_configuration::validate(new, old, false),
        "MutatingWebhookConfiguration" => webhook_configuration::validate(new, old, true),
        "ValidatingAdmissionPolicy" => admission_policy::validating(new, old),
        "MutatingAdmissionPolicy" => admission_policy::mutating(new, old),
        "ValidatingAdmissionPolicyBinding" => admission_policy_binding::validate(new, old, false),
        "MutatingAdmissionPolicyBinding" => admission_policy_binding::validate(new, old, true),
        _ => return,
    }
    let name = new.get("metadata").get("name");
    if old.is_none() && name.text().ends_with(STATIC_SUFFIX) {
        name.invalid(format!(
            "names ending with {STATIC_SUFFIX:?} are reserved for static manifest-based configurations and cannot be managed via the API"
        ));
    }
}

/// The validation functions of a kind for [`Rules`].
macro_rules! both {
    ($create:ident, $update:ident, $kind:literal) => {
        fn $create(new: At<'_, '_>) {
            validate($kind, new, None);
        }

        fn $update(new: At<'_, '_>, old: At<'_, '_>) {
            validate($kind, new, Some(old));
        }
    };
}

both!(validating_webhooks_create, validating_webhooks_update, "ValidatingWebhookConfiguration");
both!(mutating_webhooks_create, mutating_webhooks_update, "MutatingWebhookConfiguration");
both!(validating_policy_create, validating_policy_update, "ValidatingAdmissionPolicy");
both!(mutating_policy_create, mutating_policy_update, "MutatingAdmissionPolicy");
both!(validating_binding_create, validating_binding_update, "ValidatingAdmissionPolicyBinding");
both!(mutating_binding_create, mutating_binding_update, "MutatingAdmissionPolicyBinding");

fn default_validating_webhooks(configuration: &mut Value) {
    webhook_configuration::defaults(configuration, false);
}

fn default_mutating_webhooks(configuration: &mut Value) {
    webhook_configuration::defaults(configuration, true);
}

/// On update only: on create it is an error.
fn suffix_warning(object: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if old.is_some() && name.ends_with(STATIC_SUFFIX) {
        out.push(format!(
            "metadata.name: names ending with {STATIC_SUFFIX:?} are reserved for static manifest-based configurations and cannot be managed via the API"
        ));
    }
}

fn webhook_warnings(configuration: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    suffix_warning(configuration, old, out);
    webhook_configuration::warnings(configuration, out);
}

#[cfg(test)]
mod tests {
    use k1s_object::field::Check;
    use serde_json::json;

    use super::*;
    use crate::rules::helpers::testing::*;

    fn hook() -> Value {
        json!({"name": "w.example.com", "clientConfig": {"url": "https://127.0.0.1:1/hook"}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "rules": [{"apiGroups": ["a"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["b"]}]})
    }

    fn with(name: &str, value: Value) -> Vec<String> {
        let mut hook = hook();
        hook[name] = value;
        on_create(&VALIDATING_WEBHOOKS, json!({"webhooks": [hook]}))
    }

    #[test]
    fn webhooks_have_defaults() {
        let mut configuration = json!({"webhooks": [hook()]});
        default_mutating_webhooks(&mut configuration);
        let hook = &configuration["webhooks"][0];
        assert_eq!(hook["failurePolicy"], "Fail");
        assert_eq!(hook["matchPolicy"], "Equivalent");
        assert_eq!(hook["namespaceSelector"], json!({}));
        assert_eq!(hook["timeoutSeconds"], 10);
        assert_eq!(hook["reinvocationPolicy"], "Never");
        assert_eq!(hook["rules"][0]["scope"], "*");
    }

    #[test]
    fn a_webhook_without_required_fields_is_refused() {
        assert_eq!(
            on_create(&VALIDATING_WEBHOOKS, json!({"webhooks": [{"name": "short"}]})),
            [
                "webhooks[0].name: Invalid value: \"short\": should be a domain with at least three segments separated by dots",
                "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
                "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
                "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
            ]
        );
    }

    #[test]
    fn a_wildcard_excludes_other_values() {
        let rules = json!([{"operations": ["CREATE", "*"], "apiGroups": ["*", "a"], "apiVersions": [],
            "resources": ["pods/*", "*/*", "x"], "scope": "Galaxy"}]);
        assert_eq!(
            with("rules", rules),
            [
                "webhooks[0].rules[0].operations: Invalid value: [\"CREATE\",\"*\"]: if '*' is present, must not specify other operations",
                "webhooks[0].rules[0].apiGroups: Invalid value: [\"*\",\"a\"]: if '*' is present, must not specify other API groups",
                "webhooks[0].rules[0].apiVersions: Required value",
                "webhooks[0].rules[0].resources: Invalid value: [\"pods/*\",\"*/*\",\"x\"]: if '*/*' is present, must not specify other resources",
                "webhooks[0].rules[0].scope: Unsupported value: \"Galaxy\": supported values: \"*\", \"Cluster\", \"Namespaced\"",
            ]
        );
    }

    #[test]
    fn a_service_is_reached_by_name_port_and_path() {
        assert_eq!(
            with("clientConfig", json!({"service": {"port": 70000, "path": "x"}})),
            [
                "webhooks[0].clientConfig.service.name: Required value",
                "webhooks[0].clientConfig.service.namespace: Required value",
                "webhooks[0].clientConfig.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive",
                "webhooks[0].clientConfig.service.path: Invalid value: \"x\": must start with a '/'",
                "webhooks[0].clientConfig.service.path: Invalid value: \"x\": segment[0] may not be empty",
            ]
        );
        assert_eq!(
            with("clientConfig", json!({"url": "http://h"})),
            [
                "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]"
            ]
        );
    }

    fn policy(mut spec: Value) -> Value {
        if spec.get("matchConstraints").is_none() {
            let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]});
            spec["matchConstraints"] = json!({"resourceRules": [rule]});
        }
        json!({"metadata": {"name": "p"}, "spec": spec})
    }

    #[test]
    fn a_policy_validates_something() {
        assert_eq!(
            on_create(&VALIDATING_POLICY, policy(json!({}))),
            [
                "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
                "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item",
            ]
        );
        let spec = json!({"failurePolicy": "Maybe", "variables": [{"name": "bad-name", "expression": "1"}],
            "validations": [{"expression": "true", "message": "a\nb", "reason": "Sleepy"}]});
        assert_eq!(
            on_create(&VALIDATING_POLICY, policy(spec)),
            [
                "spec.failurePolicy: Unsupported value: \"Maybe\": supported values: \"Fail\", \"Ignore\"",
                "spec.variables[0].name: Invalid value: \"bad-name\": must be a valid CEL identifier",
                "spec.validations[0].message: Invalid value: \"a\\nb\": must not contain line breaks",
                "spec.validations[0].reason: Unsupported value: \"Sleepy\": supported values: \"Forbidden\", \"Invalid\", \"RequestEntityTooLarge\"",
            ]
        );
    }

    #[test]
    fn a_policy_has_a_limited_number_of_variables() {
        let spec = |count: usize| {
            let variables: Vec<Value> =
                (0..count).map(|number| json!({"name": format!("v{number}"), "expression": "1"})).collect();
            json!({"variables": variables, "validations": [{"expression": "true"}]})
        };
        assert_eq!(on_create(&VALIDATING_POLICY, policy(spec(256))), [""; 0]);
        assert_eq!(
            on_create(&VALIDATING_POLICY, policy(spec(257))),
            ["spec.variables: Too many: 257: must have at most 256 items"]
        );
    }

    #[test]
    fn expressions_may_name_what_they_are_evaluated_with() {
        let mut object = policy(json!({
            "matchConditions": [{"name": "c", "expression": " variables.v "}],
            "variables": [{"name": "v", "expression": "params.x"}, {"name": "w", "expression": "object.spec.size()"}],
            "validations": [
                {"expression": "variables.w > 0 && authorizer.requestResource.check('get').allowed()",
                 "messageExpression": "authorizer"},
                {"expression": "variables.w"},
            ],
        }));
        admission_policy::default_policy(&mut object);
        let check = Check::new();
        validate("ValidatingAdmissionPolicy", check.root(&object), None);
        let errors: Vec<String> = check.take().iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                "spec.matchConditions[0].expression: Invalid value: \"variables.v\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'variables' (in container '')\n | variables.v\n | ^",
                "spec.variables[0].expression: Invalid value: \"params.x\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params.x\n | ^",
                "spec.validations[0].messageExpression: Invalid value: \"authorizer\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'authorizer' (in container '')\n | authorizer\n | ^",
                "spec.validations[1].expression: Invalid value: \"variables.w\": must evaluate to bool but got int",
            ]
        );
    }

    #[test]
    fn a_binding_says_what_to_do() {
        assert_eq!(
            on_create(&VALIDATING_BINDING, json!({"spec": {"paramRef": {}}})),
            [
                "spec.paramRef: Required value: one of name or selector must be specified",
                "spec.paramRef.parameterNotFoundAction: Required value",
                "spec.policyName: Required value",
                "spec.validationActions: Required value",
            ]
        );
    }

    #[test]
    fn a_mutation_patches_one_way() {
        let spec =
            json!({"mutations": [{"patchType": "JSONPatch", "applyConfiguration": {"expression": "x"}}]});
        assert_eq!(
            on_create(&MUTATING_POLICY, policy(spec)),
            [
                "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch",
                "spec.mutations[0].applyConfiguration: Invalid value: \"{applyConfiguration}\": must not be specified when patchType is JSONPatch",
                "spec.reinvocationPolicy: Required value",
            ]
        );
    }
}
