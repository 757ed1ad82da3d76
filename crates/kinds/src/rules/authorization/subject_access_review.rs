//! `SubjectAccessReview`, `SelfSubjectAccessReview` and `LocalSubjectAccessReview`. They are never stored: the server
//! validates the body and responds with the decision.

use crate::rules::{
    Rules,
    helpers::{
        go_values::go_texts,
        json::is_empty,
        labels::{label_requirement, values_for_operator},
    },
};
use k1s_object::{
    field::{At, FieldError},
    status::Status,
};
use serde_json::Value;

pub(super) static ACCESS: Rules = Rules { validate: validate_subject_access_review, ..Rules::PLAIN };

pub(super) static SELF_ACCESS: Rules =
    Rules { validate: validate_self_subject_access_review, ..Rules::PLAIN };

pub(super) static LOCAL_ACCESS: Rules =
    Rules { validate: validate_local_subject_access_review, ..Rules::PLAIN };

/// The Status for an invalid access review; it names no kind, as in Kubernetes.
pub fn invalid_access_review(errors: &[FieldError]) -> Status {
    Status::invalid("authorization.k8s.io", "", "", errors)
}

/// Validates a `SubjectAccessReview`.
pub fn validate_subject_access_review(review: At<'_, '_>) {
    attributes(review.get("spec"), true);
    empty_metadata(review, false);
}

/// Validates a `SelfSubjectAccessReview`.
pub fn validate_self_subject_access_review(review: At<'_, '_>) {
    attributes(review.get("spec"), false);
    empty_metadata(review, false);
}

/// Validates a `LocalSubjectAccessReview`, whose metadata has the namespace of the path.
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
        !is_empty(value)
            && name.as_str() != "managedFields"
            && !(namespace_allowed && name.as_str() == "namespace")
    };
    if metadata.map().into_iter().flatten().any(|entry| counts(&entry)) {
        let why = if namespace_allowed { "must be empty except for namespace" } else { "must be empty" };
        metadata.invalid(why);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::helpers::testing::*;

    #[test]
    fn an_access_review_has_one_question_and_a_user() {
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
