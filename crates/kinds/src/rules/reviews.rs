//! Questions that are answered and forgotten: reviews of tokens and of access, and requests for tokens.
//!
//! They have no strategy: the server looks at a body with one of these, and answers.

use k1s_object::{
    field::{At, Check, FieldError},
    names,
    status::Status,
};
use serde_json::{Map, Value, json};

use crate::rules::Rules;
use crate::rules::helpers::cluster_util::{
    default, go_texts, label_requirement, nothing, structure, values_for_operator,
};

static TOKEN_REQUEST: Rules =
    Rules { defaults: default_token_request, validate: validate_token_request, ..Rules::PLAIN };
static ACCESS: Rules = Rules { validate: validate_subject_access_review, ..Rules::PLAIN };
static SELF_ACCESS: Rules = Rules { validate: validate_self_subject_access_review, ..Rules::PLAIN };
static LOCAL_ACCESS: Rules = Rules { validate: validate_local_subject_access_review, ..Rules::PLAIN };

pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "TokenRequest" => &TOKEN_REQUEST,
        "SubjectAccessReview" => &ACCESS,
        "SelfSubjectAccessReview" => &SELF_ACCESS,
        "LocalSubjectAccessReview" => &LOCAL_ACCESS,
        _ => return None,
    })
}

/// The answer to an access review whose body is wrong: it does not say of which kind.
pub fn invalid_access_review(errors: &[FieldError]) -> Status {
    Status::invalid("authorization.k8s.io", "", "", errors)
}

/// A `TokenReview` has a token.
pub fn validate_token_review(review: &Value) -> Result<(), Status> {
    let token = review.pointer("/spec/token").and_then(Value::as_str).unwrap_or_default();
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    Ok(())
}

/// A `SelfSubjectRulesReview` names a namespace.
pub fn validate_self_subject_rules_review(review: &Value) -> Result<(), Status> {
    let namespace = review.pointer("/spec/namespace").and_then(Value::as_str).unwrap_or_default();
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    Ok(())
}

/// A `TokenRequest` for the service account `name` in `namespace` may name no other.
pub fn validate_token_request_names(request: &Value, namespace: &str, name: &str) -> Result<(), Status> {
    for (field, expected) in [("name", name), ("namespace", namespace)] {
        let text = request.get("metadata").and_then(|meta| meta.get(field)).and_then(Value::as_str);
        if let Some(text) = text.filter(|text| !text.is_empty() && *text != expected) {
            let why = format!("must match the service account {field} if specified");
            let error = FieldError::invalid(format!("metadata.{field}"), text, why);
            return Err(Status::invalid("authentication.k8s.io", "TokenRequest", name, &[error]));
        }
    }
    Ok(())
}

/// The body of a `TokenRequest`, as the Status that refuses it: it does not say whose.
pub fn check_token_request(request: &Value) -> Result<(), Status> {
    let check = Check::new();
    validate_token_request(check.root(request));
    match check.take() {
        errors if errors.is_empty() => Ok(()),
        errors => Err(Status::invalid("authentication.k8s.io", "TokenRequest", "", &errors)),
    }
}

fn default_token_request(request: &mut Value) {
    if let Some(spec) = structure(request, "spec") {
        default(spec, "expirationSeconds", 3600);
    }
}

/// How long a token may live, when it says so.
pub(super) fn token_lifetime(seconds: At<'_, '_>) {
    match seconds.int() {
        Some(..600) => seconds.invalid("may not specify a duration less than 10 minutes"),
        Some(4_294_967_297..) => seconds.invalid("may not specify a duration larger than 2^32 seconds"),
        _ => {}
    }
}

/// The body of a `TokenRequest`.
pub fn validate_token_request(request: At<'_, '_>) {
    let spec = request.get("spec");
    let attestations = spec.get("attestations");
    let reference = spec.get("boundObjectRef");
    let webhook = reference.get("apiVersion").text() == "admissionregistration.k8s.io/v1"
        && matches!(
            reference.get("kind").text(),
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration"
        );
    if !webhook && !attestations.is_empty() {
        return attestations
            .invalid("attestations may only be specified with a webhook bound object reference");
    }
    token_lifetime(spec.get("expirationSeconds"));
    if webhook {
        if spec.get("audiences").len() != 1 {
            spec.get("audiences").invalid("must be length 1 when bound to a webhook config");
        }
        webhook_attestations(attestations);
    }
}

fn webhook_attestations(at: At<'_, '_>) {
    const GROUPS: &str = "admissionReviewAPIGroups";
    if at.len() != 1 {
        return at.invalid("webhook bound requests require exactly one admissionReviewAPIGroups attestation");
    }
    for (key, values) in at.entries() {
        if key != GROUPS {
            values.check().push(FieldError::not_supported(values.path(), key, &[GROUPS]));
        } else if values.len() != 1 {
            values.invalid("must specify a single value");
        } else {
            let group = values.index(0);
            match group.text() {
                "" => group.invalid_text("may not be an empty string"),
                "*" => {}
                text => {
                    for reason in names::is_dns1123_subdomain(text) {
                        group.invalid(format!("must specify a valid API Group: {reason}"));
                    }
                }
            }
        }
    }
}

/// The body of a `SubjectAccessReview`.
pub fn validate_subject_access_review(review: At<'_, '_>) {
    attributes(review.get("spec"), true);
    empty_metadata(review, false);
}

/// The body of a `SelfSubjectAccessReview`.
pub fn validate_self_subject_access_review(review: At<'_, '_>) {
    attributes(review.get("spec"), false);
    empty_metadata(review, false);
}

/// The body of a `LocalSubjectAccessReview`; its metadata has the namespace of the path.
pub fn validate_local_subject_access_review(review: At<'_, '_>) {
    let spec = review.get("spec");
    attributes(spec, true);
    empty_metadata(review, true);
    let namespace = spec.get("resourceAttributes").get("namespace");
    if spec.get("resourceAttributes").is_set()
        && namespace.text() != review.get("metadata").get("namespace").text()
    {
        namespace.invalid_text("must match metadata.namespace");
    }
    let paths = spec.get("nonResourceAttributes");
    if paths.is_set() {
        paths.invalid_as(non_resource(paths), "disallowed on this kind of request");
    }
}

fn non_resource(at: At<'_, '_>) -> Value {
    if at.is_set() { go_texts(at, &[("Path", "path"), ("Verb", "verb")]) } else { Value::Null }
}

fn attributes(spec: At<'_, '_>, of_a_subject: bool) {
    let (resource, paths) = (spec.get("resourceAttributes"), spec.get("nonResourceAttributes"));
    if resource.is_set() == paths.is_set() {
        let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        spec.invalid_as(non_resource(paths), why);
    }
    if of_a_subject && spec.get("user").is_empty() && spec.get("groups").is_empty() {
        spec.get("user").invalid_text("at least one of user or group must be specified");
    }
    for (name, labels) in [("fieldSelector", false), ("labelSelector", true)] {
        let selector = resource.get(name);
        if !selector.is_set() {
            continue;
        }
        let (raw, requirements) = (selector.get("rawSelector"), selector.get("requirements"));
        if !raw.is_empty() && !requirements.is_empty() {
            raw.invalid("may not specified at the same time as requirements");
        }
        if raw.is_empty() && requirements.is_empty() {
            let path = selector.path();
            requirements
                .required(format!("when {path} is specified, requirements or rawSelector is required"));
        }
        for requirement in requirements.items() {
            if labels {
                label_requirement(requirement);
            } else {
                if requirement.get("key").is_empty() {
                    requirement.get("key").required("must be specified");
                }
                values_for_operator(requirement);
            }
        }
    }
}

fn empty_metadata(review: At<'_, '_>, namespace_allowed: bool) {
    let metadata = review.get("metadata");
    let counts = |(name, value): &(&String, &Value)| {
        !nothing(value)
            && name.as_str() != "managedFields"
            && !(namespace_allowed && name.as_str() == "namespace")
    };
    if metadata.map().into_iter().flatten().any(|entry| counts(&entry)) {
        let why = if namespace_allowed { "must be empty except for namespace" } else { "must be empty" };
        metadata.invalid(why);
    }
}

/// What a `SelfSubjectReview` answers.
pub fn self_subject_review(
    username: &str,
    uid: &str,
    groups: &[String],
    extra: &[(String, Vec<String>)],
) -> Value {
    let mut user = Map::new();
    for (name, text) in [("username", username), ("uid", uid)] {
        if !text.is_empty() {
            user.insert(name.into(), text.into());
        }
    }
    if !groups.is_empty() {
        user.insert("groups".into(), groups.to_vec().into());
    }
    if !extra.is_empty() {
        let extra: Map<String, Value> =
            extra.iter().cloned().map(|(key, values)| (key, values.into())).collect();
        user.insert("extra".into(), extra.into());
    }
    json!({"userInfo": user})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::cluster_util::testing::*;

    #[test]
    fn a_token_lives_between_ten_minutes_and_136_years() {
        let wrong = |seconds: i64| {
            on_create(&TOKEN_REQUEST, json!({"spec": {"expirationSeconds": seconds}})).join("")
        };
        assert_eq!(
            wrong(60),
            "spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes"
        );
        assert_eq!(wrong(4_294_967_296), "");
        assert_eq!(
            wrong(4_294_967_297),
            "spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds"
        );
    }

    #[test]
    fn a_token_request_is_for_the_account_of_its_path() {
        let request = json!({"metadata": {"name": "other"}});
        assert_eq!(
            validate_token_request_names(&request, "ns", "robot").unwrap_err().message,
            "TokenRequest.authentication.k8s.io \"robot\" is invalid: metadata.name: Invalid value: \"other\": must match the service account name if specified"
        );
    }

    #[test]
    fn an_access_review_asks_one_thing_of_somebody() {
        assert_eq!(
            on_create(&ACCESS, json!({"spec": {}})),
            [
                "spec: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified",
                "spec.user: Invalid value: \"\": at least one of user or group must be specified",
            ]
        );
        let review = json!({"metadata": {"name": "x"}, "spec": {"nonResourceAttributes": {"path": "/x"}}});
        assert_eq!(
            on_create(&SELF_ACCESS, review),
            ["metadata: Invalid value: {\"name\":\"x\"}: must be empty"]
        );
    }

    #[test]
    fn a_local_review_stays_in_its_namespace() {
        let review = |spec: Value| json!({"metadata": {"namespace": "ns"}, "spec": spec});
        assert_eq!(
            on_create(
                &LOCAL_ACCESS,
                review(json!({"user": "a", "resourceAttributes": {"namespace": "default"}}))
            ),
            ["spec.resourceAttributes.namespace: Invalid value: \"default\": must match metadata.namespace"]
        );
        assert_eq!(
            on_create(
                &LOCAL_ACCESS,
                review(json!({"user": "a", "nonResourceAttributes": {"path": "/x", "verb": "get"}}))
            ),
            [
                "spec.nonResourceAttributes: Invalid value: {\"Path\":\"/x\",\"Verb\":\"get\"}: disallowed on this kind of request"
            ]
        );
    }

    #[test]
    fn selectors_of_a_review_are_raw_or_requirements() {
        let review = |selector: Value| {
            let attributes = json!({"namespace": "ns", "fieldSelector": selector});
            on_create(&ACCESS, json!({"spec": {"user": "a", "resourceAttributes": attributes}}))
        };
        assert_eq!(
            review(json!({})),
            [
                "spec.resourceAttributes.fieldSelector.requirements: Required value: when spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required"
            ]
        );
        assert_eq!(
            review(
                json!({"rawSelector": "a=b", "requirements": [{"key": "a", "operator": "In", "values": ["b"]}]})
            ),
            [
                "spec.resourceAttributes.fieldSelector.rawSelector: Invalid value: \"a=b\": may not specified at the same time as requirements"
            ]
        );
    }
}
