//! `TokenRequest`, the body of a POST to `serviceaccounts/token`.

use crate::rules::{
    Rules,
    helpers::json::{default, structure},
};
use k1s_object::{
    field::{At, Check, FieldError},
    names,
    status::Status,
};
use serde_json::Value;

pub(super) static RULES: Rules = Rules { defaults, validate, ..Rules::PLAIN };

/// A `TokenRequest` may not name another service account than `name` in `namespace`, those of its path.
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

/// Validates the body of a `TokenRequest`; the Status names no object.
pub fn check_token_request(request: &Value) -> Result<(), Status> {
    let check = Check::new();
    validate(check.root(request));
    match check.take() {
        errors if errors.is_empty() => Ok(()),
        errors => Err(Status::invalid("authentication.k8s.io", "TokenRequest", "", &errors)),
    }
}

fn defaults(request: &mut Value) {
    if let Some(spec) = structure(request, "spec") {
        default(spec, "expirationSeconds", 3600);
    }
}

/// The lifetime of a token, if set.
pub(in crate::rules) fn token_lifetime(seconds: At<'_, '_>) {
    match seconds.int() {
        Some(..600) => seconds.invalid("may not specify a duration less than 10 minutes"),
        Some(4_294_967_297..) => seconds.invalid("may not specify a duration larger than 2^32 seconds"),
        _ => {}
    }
}

fn validate(request: At<'_, '_>) {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::helpers::testing::*;

    #[test]
    fn a_token_lives_between_ten_minutes_and_136_years() {
        let wrong =
            |seconds: i64| on_create(&RULES, json!({"spec": {"expirationSeconds": seconds}})).join("");
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
}
