//! `PodCertificateRequest`. Signatures are not verified.

use super::{
    certificate_signing_request::{signer_form, signer_name},
    cluster_trust_bundle::invalid_hidden,
    pem,
};
use crate::rules::{
    FieldLabelError, Rules, SelectableField, drop_status,
    helpers::{
        equality::{same, unchanged},
        errors::invalid_each,
        json::text_at,
        metadata::status_alone,
    },
    keep_status,
};
use k1s_object::meta::validate_conditions as conditions;
use k1s_object::{
    field::{At, FieldError},
    names,
};
use serde_json::Value;

pub(super) static RULES: Rules = Rules {
    prepare_create: drop_status,
    prepare_update: keep_status,
    prepare_status: status_alone,
    validate,
    validate_update,
    validate_status,
    unconditional_update: false,
    fields: &[
        SelectableField { path: "spec.signerName", read: signer_name },
        SelectableField {
            path: "spec.podName",
            read: |request| text_at(request, &["spec", "podName"]).to_owned(),
        },
        SelectableField {
            path: "spec.nodeName",
            read: |request| text_at(request, &["spec", "nodeName"]).to_owned(),
        },
    ],
    field_error: FieldLabelError::NotSupported,
    ..Rules::PLAIN
};

fn validate(request: At<'_, '_>) {
    let spec = request.get("spec");
    signer_form(spec.get("signerName"));
    for (name, uid) in
        [("podName", "podUID"), ("serviceAccountName", "serviceAccountUID"), ("nodeName", "nodeUID")]
    {
        invalid_each(spec.get(name), names::is_dns1123_subdomain(spec.get(name).text()));
        let uid = spec.get(uid);
        if uid.is_empty() {
            uid.invalid_text("must not be empty");
        }
        if uid.text().len() > 128 {
            uid.too_long(128);
        }
    }
    let longest = spec.get("maxExpirationSeconds");
    let Some(seconds) = longest.int() else { return longest.required("must be set") };
    let host = spec.get("signerName").text().split('/').next().unwrap_or_default();
    let limit =
        if host == "kubernetes.io" || host.ends_with(".kubernetes.io") { 24 * 3600 } else { 91 * 24 * 3600 };
    if !(3600..=limit).contains(&seconds) {
        longest.invalid(format!("must be in the range [3600, {limit}]"));
    }
    let [stub, key, proof] =
        ["stubPKCS10Request", "pkixPublicKey", "proofOfPossession"].map(|name| !spec.get(name).is_empty());
    if !matches!((stub, key, proof), (true, false, false) | (false, true, true)) {
        let why = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set";
        invalid_hidden(spec, why);
    }
}

fn validate_update(request: At<'_, '_>, old: At<'_, '_>) {
    let spec = request.get("spec");
    if !unchanged(spec, old.get("spec")) {
        spec.invalid_as(spec.value().cloned().unwrap_or(Value::Null), "field is immutable");
    }
}

const OUTCOMES: [&str; 3] = ["Issued", "Denied", "Failed"];

fn has_outcome(request: At<'_, '_>, outcomes: &[&str]) -> bool {
    let mut conditions = request.get("status").get("conditions").items();
    conditions.any(|one| outcomes.contains(&one.get("type").text()) && one.get("status").text() == "True")
}

fn validate_status(request: At<'_, '_>, old: At<'_, '_>) {
    let status = request.get("status");
    let list = status.get("conditions");
    let before = list.check().count();
    let mut known = 0;
    for (i, condition) in list.items().enumerate() {
        let at = |name: &str| format!("status.conditions.[{i}].{name}");
        let kind = condition.get("type").text();
        if !OUTCOMES.contains(&kind) {
            list.check().push(FieldError::not_supported(at("type"), kind, &OUTCOMES));
            continue;
        }
        known += 1;
        if known > 1 {
            let why = "There may be at most one condition with type \"Issued\", \"Denied\", or \"Failed\"";
            list.check().push(FieldError::invalid(at("type"), kind, why));
        }
        let value = condition.get("status").text();
        if value != "True" {
            list.check().push(FieldError::not_supported(at("status"), value, &["True"]));
        }
    }
    conditions(list);
    if list.check().count() > before {
        return;
    }
    if has_outcome(old, &OUTCOMES) {
        if !same(status.value(), old.get("status").value()) {
            invalid_hidden(status, "immutable after PodCertificateRequest is issued, denied, or failed");
        }
        return;
    }
    let rest = ["certificateChain", "notBefore", "notAfter", "beginRefreshAt"].map(|name| status.get(name));
    if has_outcome(request, &["Denied", "Failed"]) {
        if rest.iter().any(|at| at.is_set()) {
            invalid_hidden(
                status,
                "non-condition status fields must be empty when denying or failing the PodCertificateRequest",
            );
        }
    } else if has_outcome(request, &["Issued"]) {
        issued(status);
    }
}

fn issued(status: At<'_, '_>) {
    let chain = status.get("certificateChain");
    match pem::decode(chain.text()) {
        None => {
            return chain.invalid_text("issued certificate chain must contain at least one certificate");
        }
        Some((leaf, _)) if leaf.kind != "CERTIFICATE" => {
            return chain.invalid("issued certificate chain must consist entirely of CERTIFICATE PEM blocks");
        }
        Some((leaf, _)) if pem::certificates(&leaf.bytes) != Ok(1) => {
            return chain.invalid("leaf certificate does not parse as valid X.509");
        }
        Some(_) => {}
    }
    for (name, why) in [
        ("notBefore", "must be present and consistent with the issued certificate"),
        ("notAfter", "must be present and consistent with the issued certificate"),
        ("beginRefreshAt", "must be present and in the range [notbefore+10min, notafter-10min]"),
    ] {
        if !status.get(name).is_set() {
            status.get(name).required(why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing::*;
    use serde_json::json;

    #[test]
    fn a_pod_request_names_its_pod_and_a_key() {
        let spec = json!({"signerName": "example.com/s", "podName": "p", "podUID": "1", "serviceAccountName": "s",
            "serviceAccountUID": "2", "nodeName": "n", "nodeUID": "3", "maxExpirationSeconds": 60});
        assert_eq!(
            on_create(&RULES, json!({"spec": spec})),
            [
                "spec.maxExpirationSeconds: Invalid value: 60: must be in the range [3600, 7862400]",
                "spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set",
            ]
        );
    }
}
