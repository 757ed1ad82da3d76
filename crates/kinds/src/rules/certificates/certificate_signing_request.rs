//! `CertificateSigningRequest`: the rules, its requester and the `/approval` subresource.

pub use super::request::{Request, Subject};
use super::{pem, request};
use crate::rules::{
    FieldLabelError, NameRule, Rules, SelectableField,
    helpers::{
        equality::same,
        json::{keep, structure, text_at},
    },
    only_status,
};
use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k1s_object::{
    field::{At, FieldError},
    names,
};
use serde_json::{Map, Value};

const APPROVAL_TYPES: [&str; 2] = ["Approved", "Denied"];
const TRUE_TYPES: [&str; 3] = ["Approved", "Denied", "Failed"];
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

pub(super) static RULES: Rules = Rules {
    prepare_create,
    prepare_update,
    prepare_status,
    stamp_times,
    validate: create,
    validate_update: update,
    validate_status: status_update,
    name: NameRule::PathSegment,
    fields: &[SelectableField { path: "spec.signerName", read: signer_name }],
    field_error: FieldLabelError::NotSupported,
    ..Rules::PLAIN
};

pub(super) fn signer_name(request: &Value) -> String {
    text_at(request, &["spec", "signerName"]).to_owned()
}

/// Records the requester. The server calls this after `prepare_create`, which drops the values the client sent.
pub fn stamp(
    request: &mut Value,
    username: &str,
    groups: &[String],
    uid: &str,
    extra: &[(String, Vec<String>)],
) {
    let Some(spec) = structure(request, "spec").and_then(Value::as_object_mut) else { return };
    for (name, text) in [("username", username), ("uid", uid)] {
        if !text.is_empty() {
            spec.insert(name.into(), text.into());
        }
    }
    if !groups.is_empty() {
        spec.insert("groups".into(), groups.to_vec().into());
    }
    if !extra.is_empty() {
        let extra: Map<String, Value> =
            extra.iter().cloned().map(|(key, values)| (key, values.into())).collect();
        spec.insert("extra".into(), extra.into());
    }
}

/// The certificate request in a `CertificateSigningRequest`; `base64` is its `spec.request`.
///
/// # Errors
/// What is malformed, in Go's words.
pub fn parse(base64: &str) -> Result<Request, Cow<'static, str>> {
    match pem::decode(&text_of(base64)) {
        Some((block, _)) if block.kind == "CERTIFICATE REQUEST" => request::parse(&block.bytes),
        _ => Err("PEM block type must be CERTIFICATE REQUEST".into()),
    }
}

/// The reason to reject a client certificate in the group `system:masters`, which bypasses authorization.
pub fn forbidden_subject(request: &Value) -> Option<String> {
    const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
    if signer_name(request) != SIGNER {
        return None;
    }
    match parse(text_at(request, &["spec", "request"])) {
        Err(why) => Some(format!("failed to parse CSR: {why}")),
        Ok(request) => request
            .subject
            .organizations()
            .contains(&"system:masters")
            .then(|| format!("use of {SIGNER} signer with system:masters group is not allowed")),
    }
}

/// Before an update of `/approval`: only conditions may change.
pub fn prepare_approval(new: &mut Value, old: &Value) {
    let conditions = new.get("status").and_then(|status| status.get("conditions")).cloned();
    keep(new, old, "spec");
    keep(new, old, "status");
    if let Some(status) = structure(new, "status").and_then(Value::as_object_mut) {
        match conditions {
            Some(conditions) => {
                status.insert("conditions".into(), conditions);
            }
            None => {
                status.shift_remove("conditions");
            }
        }
    }
}

/// Validates an update of `/approval`.
pub fn validate_approval(new: At<'_, '_>, old: At<'_, '_>) {
    changed(new, old, Allowed { approval: true, certificate: false });
}

fn prepare_create(request: &mut Value) {
    crate::rules::drop_status(request);
    if let Some(spec) = structure(request, "spec").and_then(Value::as_object_mut) {
        for name in ["username", "uid", "groups", "extra"] {
            spec.shift_remove(name);
        }
    }
}

fn prepare_update(new: &mut Value, old: &Value) {
    keep(new, old, "spec");
    keep(new, old, "status");
}

fn prepare_status(new: &mut Value, old: &Value) {
    only_status(new, old);
    for kind in APPROVAL_TYPES {
        let of_kind = |one: &&Value| one.get("type").and_then(Value::as_str) == Some(kind);
        let list = old.pointer("/status/conditions").and_then(Value::as_array);
        let before: Vec<Value> = list.into_iter().flatten().filter(of_kind).cloned().collect();
        let Some(now) = new.pointer_mut("/status/conditions").and_then(Value::as_array_mut) else { continue };
        if now.iter().filter(of_kind).count() != before.len() {
            continue;
        }
        let same_kind = now.iter_mut().filter(|one| one.get("type").and_then(Value::as_str) == Some(kind));
        for (slot, condition) in same_kind.zip(before) {
            *slot = condition;
        }
    }
}

fn stamp_times(new: &mut Value, old: Option<&Value>, now: &str) {
    let list = old.and_then(|old| old.pointer("/status/conditions")).and_then(Value::as_array);
    let before = list.map_or(&[][..], Vec::as_slice);
    let conditions = new.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let same_as = |other: &&Value| {
            ["type", "status"].iter().all(|name| same(other.get(*name), condition.get(*name)))
        };
        let time = |value: &Value| value.get("lastTransitionTime").filter(|time| !time.is_null()).cloned();
        let transition = before.iter().filter(same_as).find_map(time).unwrap_or_else(|| now.into());
        let Some(condition) = condition.as_object_mut() else { continue };
        for (name, time) in [("lastUpdateTime", Value::from(now)), ("lastTransitionTime", transition)] {
            if condition.get(name).is_none_or(Value::is_null) {
                condition.insert(name.into(), time);
            }
        }
    }
}

/// The parts that an update may change.
#[derive(Debug, Clone, Copy, Default)]
struct Allowed {
    approval: bool,
    certificate: bool,
}

fn create(request: At<'_, '_>) {
    written(request, None);
    approved_or_denied(request, None);
}

fn update(new: At<'_, '_>, old: At<'_, '_>) {
    changed(new, old, Allowed::default());
}

fn status_update(new: At<'_, '_>, old: At<'_, '_>) {
    changed(new, old, Allowed { approval: false, certificate: true });
}

fn changed(new: At<'_, '_>, old: At<'_, '_>, allowed: Allowed) {
    written(new, Some(old));
    let conditions = new.get("status").get("conditions");
    for kind in TRUE_TYPES {
        if of_kind(new, kind).len() < of_kind(old, kind).len() {
            conditions.forbidden(format!("updates may not remove a condition of type {kind:?}"));
        }
    }
    if !allowed.approval {
        for kind in APPROVAL_TYPES {
            let (now, before) = (of_kind(new, kind), of_kind(old, kind));
            if now.len() > before.len() {
                conditions.forbidden(format!("updates may not add a condition of type {kind:?}"));
            } else if now.len() == before.len()
                && !now.iter().zip(&before).all(|(now, before)| same(Some(now), Some(before)))
            {
                conditions.forbidden(format!("updates may not modify a condition of type {kind:?}"));
            }
        }
    }
    let (certificate, before) = (new.get("status").get("certificate"), old.get("status").get("certificate"));
    if certificate.text() != before.text() {
        if !allowed.certificate {
            certificate.forbidden("updates may not set certificate content");
        } else if !before.is_empty() {
            certificate.forbidden("updates may not modify existing certificate content");
        }
    }
    approved_or_denied(new, Some(old));
}

fn of_kind<'v>(request: At<'_, 'v>, kind: &str) -> Vec<&'v Value> {
    let conditions = request.get("status").get("conditions").items();
    conditions.filter(|one| one.get("type").text() == kind).filter_map(At::value).collect()
}

/// Declarative validation: reported last, and skipped if the stored request already violates it.
fn approved_or_denied(request: At<'_, '_>, old: Option<At<'_, '_>>) {
    let both = |request: At<'_, '_>| APPROVAL_TYPES.iter().all(|kind| !of_kind(request, kind).is_empty());
    if both(request) && !old.is_some_and(both) {
        request.get("status").get("conditions").invalid_as(
            r#"{conditions[{"type": "Approved"}], conditions[{"type": "Denied"}]}"#,
            r#"must specify at most one of: `conditions[{"type": "Approved"}]`, `conditions[{"type": "Denied"}]`"#,
        );
    }
}

fn written(request: At<'_, '_>, old: Option<At<'_, '_>>) {
    let spec = request.get("spec");
    let before = old.map(|old| old.get("spec"));
    if let Err(why) = parse(spec.get("request").text()) {
        spec.get("request").invalid(why);
    }
    let usages = spec.get("usages");
    if usages.is_empty() {
        usages.required("");
    }
    let unknown = |usage: &At<'_, '_>| !USAGES.contains(&usage.text());
    if !before.is_some_and(|before| before.get("usages").items().any(|usage| unknown(&usage))) {
        for usage in usages.items().filter(unknown) {
            usage.not_supported(&USAGES);
        }
    }
    if before.is_none_or(|before| repeated(before.get("usages").items().map(At::text)).is_empty()) {
        for index in repeated(usages.items().map(At::text)) {
            usages.index(index).duplicate();
        }
    }
    let signer = spec.get("signerName");
    let legacy = before.is_some_and(|before| before.get("signerName").text() == LEGACY_SIGNER);
    if signer.text() == LEGACY_SIGNER && !legacy {
        signer.invalid("the legacy signerName is not allowed via this API version");
    } else {
        signer_form(signer);
    }
    let expiration = spec.get("expirationSeconds");
    if expiration.int().is_some_and(|seconds| seconds < 600) {
        expiration.invalid("may not specify a duration less than 600 seconds (10 minutes)");
    }
    conditions(request, old);
    let certificate = request.get("status").get("certificate");
    let stored = old.map(|old| old.get("status").get("certificate").text());
    let leave =
        stored.is_some_and(|stored| stored == certificate.text() || certificate_error(stored).is_some());
    if !leave && let Some(why) = certificate_error(certificate.text()) {
        certificate.invalid_as("<certificate data>", why);
    }
}

fn repeated<'v>(values: impl Iterator<Item = &'v str>) -> Vec<usize> {
    let mut seen = std::collections::HashSet::new();
    let mut again = Vec::new();
    for (index, value) in values.enumerate() {
        if seen.contains(&value) {
            again.push(index);
        }
        seen.insert(value);
    }
    again
}

fn conditions(request: At<'_, '_>, old: Option<At<'_, '_>>) {
    let list = request.get("status").get("conditions");
    let before = old.map(|old| old.get("status").get("conditions"));
    let types = |list: At<'_, '_>| repeated(list.items().map(|one| one.get("type").text()));
    let empty_allowed = before.is_some_and(|before| before.items().any(|one| one.get("type").is_empty()));
    let duplicates =
        if before.is_some_and(|before| !types(before).is_empty()) { Vec::new() } else { types(list) };
    for (index, condition) in list.items().enumerate() {
        let (kind, status) = (condition.get("type"), condition.get("status"));
        if kind.is_empty() && !empty_allowed {
            kind.required("");
        }
        let allowed: &[&str] =
            if TRUE_TYPES.contains(&kind.text()) { &["True"] } else { &["False", "True", "Unknown"] };
        if status.is_empty() {
            status.required("");
        } else if !allowed.contains(&status.text()) {
            status.not_supported(allowed);
        }
        if duplicates.binary_search(&index).is_ok() {
            kind.check().push(FieldError::duplicate(kind.path(), kind.text()));
        }
    }
}

/// `example.com/signer-name`
pub(super) fn signer_form(at: At<'_, '_>) {
    let name = at.text();
    if name.is_empty() {
        return at.required("");
    }
    let Some((domain, path)) = name.split_once('/').filter(|(_, path)| !path.contains('/')) else {
        return at.invalid("must be a fully qualified domain and path of the form 'example.com/signer-name'");
    };
    if domain.len() > names::DNS1123_SUBDOMAIN_MAX_LENGTH {
        at.too_long(names::DNS1123_SUBDOMAIN_MAX_LENGTH);
    }
    let first_wrong = |part: &str, look: fn(&str) -> Vec<String>| {
        for label in part.split('.') {
            let wrong = look(label);
            if !wrong.is_empty() {
                for message in wrong {
                    at.invalid_as(part, format!("validating label {label:?}: {message}"));
                }
                break;
            }
        }
    };
    first_wrong(domain, names::is_dns1123_label);
    if !domain.contains('.') {
        at.invalid_as(domain, "should be a domain with at least two segments separated by dots");
    }
    first_wrong(path, names::is_dns1123_subdomain);
    let longest = 2 * names::DNS1123_SUBDOMAIN_MAX_LENGTH + names::DNS1123_LABEL_MAX_LENGTH + 2;
    if name.len() > longest {
        at.too_long(longest);
    }
}

/// The PEM text behind a base64 field.
fn text_of(base64: &str) -> String {
    String::from_utf8_lossy(&STANDARD.decode(base64).unwrap_or_default()).into_owned()
}

fn certificate_error(base64: &str) -> Option<String> {
    if base64.is_empty() {
        return None;
    }
    let text = text_of(base64);
    let mut rest = text.as_str();
    let mut blocks = 0;
    while let Some((block, after)) = pem::decode(rest) {
        if block.kind != "CERTIFICATE" {
            return Some(format!("only CERTIFICATE PEM blocks are allowed, found {:?}", block.kind));
        }
        if block.has_headers {
            return Some("no PEM block headers are permitted".into());
        }
        blocks += 1;
        match pem::certificates(&block.bytes) {
            Ok(0) => return Some("found CERTIFICATE PEM block containing 0 certificates".into()),
            Ok(_) => {}
            Err(why) => return Some(why.into()),
        }
        rest = after;
    }
    (blocks == 0).then(|| "must contain at least one CERTIFICATE PEM block".into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::helpers::testing::*;

    /// `O = devs, CN = alice`
    const PEM: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIYk1JR0JBZ0VBTUI4eERUQUxCZ05WQkFvTUJHUmxkbk14RGpBTUJnTlZCQU1NQldGc2FXTmxNRmt3RXdZSApLb1pJemowQ0FRWUlLb1pJemowREFRY0RRZ0FFRU4vbGpLbjZXUjEvUXBRVlZTM3FPYXpZN2hQbjlkRC95Wk0rCkMvUDdndHFjaFNkZDB0cXdqeDAwUlJQKzk3cGtTaFlxZEx2N25HU2s3MHptR2c4N0lxQUFNQW9HQ0NxR1NNNDkKQkFNQ0Ewa0FNRVlDSVFDY2E0Z0ltWGcyMytmRHR3c2IxZDVWWUJPSXZrcFlWSW1nMmNubXFhYUZLZ0loQUplcAo0ZVlWYzR5TUNlOWg4d1dSVFcvQk9HSm1JZHZSa09hSkdNUVIxMDg5Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";

    fn request() -> Value {
        json!({"metadata": {"name": "c"},
            "spec": {"request": PEM, "signerName": "example.com/s", "usages": ["client auth"]}})
    }

    fn with(path: &str, value: Value) -> Value {
        let mut request = request();
        request["spec"][path] = value;
        request
    }

    #[test]
    fn a_request_says_whose_certificate_it_wants() {
        let subject = parse(PEM).unwrap().subject;
        assert_eq!((subject.common_name(), subject.organizations()), ("alice", vec!["devs"]));
    }

    #[test]
    fn a_request_is_stamped_with_who_asks() {
        let mut request = with("username", "root".into());
        prepare_create(&mut request);
        stamp(&mut request, "alice", &["devs".into()], "7", &[("a".into(), vec!["b".into()])]);
        assert_eq!(request["spec"]["username"], "alice");
        assert_eq!(request["spec"]["uid"], "7");
        assert_eq!(request["spec"]["groups"], json!(["devs"]));
        assert_eq!(request["spec"]["extra"], json!({"a": ["b"]}));
    }

    #[test]
    fn a_request_is_validated() {
        assert!(on_create(&RULES, request()).is_empty());
        assert_eq!(
            on_create(&RULES, json!({"spec": {}})),
            [
                "spec.request: Invalid value: null: PEM block type must be CERTIFICATE REQUEST",
                "spec.usages: Required value",
                "spec.signerName: Required value",
            ]
        );
        let one = |path, value| on_create(&RULES, with(path, value)).join("; ");
        assert_eq!(
            one("signerName", "nodomain".into()),
            "spec.signerName: Invalid value: \"nodomain\": must be a fully qualified domain and path of the form 'example.com/signer-name'"
        );
        assert_eq!(
            one("signerName", LEGACY_SIGNER.into()),
            "spec.signerName: Invalid value: \"kubernetes.io/legacy-unknown\": the legacy signerName is not allowed via this API version"
        );
        assert_eq!(
            one("expirationSeconds", 10.into()),
            "spec.expirationSeconds: Invalid value: 10: may not specify a duration less than 600 seconds (10 minutes)"
        );
        assert!(one("usages", json!(["juggling"])).starts_with(
            "spec.usages[0]: Unsupported value: \"juggling\": supported values: \"any\", \"cert sign\""
        ));
        assert_eq!(one("usages", json!(["any", "any"])), "spec.usages[1]: Duplicate value: \"any\"");
    }

    fn decided(conditions: &Value) -> Value {
        let mut request = request();
        request["status"] = json!({"conditions": conditions});
        request
    }

    fn on_approval(new: &Value, old: &Value) -> Vec<String> {
        let mut new = new.clone();
        prepare_approval(&mut new, old);
        stamp_times(&mut new, Some(old), "now");
        let (check, before) = (k1s_object::field::Check::new(), k1s_object::field::Check::new());
        validate_approval(check.root(&new), before.root(old));
        check.take().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn approval_needs_the_approval_subresource() {
        let approved = decided(&json!([{"type": "Approved", "status": "True"}]));
        assert_eq!(
            on_status(&RULES, approved.clone(), &request()),
            ["status.conditions: Forbidden: updates may not add a condition of type \"Approved\""]
        );
        assert!(on_approval(&approved, &request()).is_empty());
        assert_eq!(
            on_approval(&decided(&json!([{"type": "Approved", "status": "False"}])), &request()),
            ["status.conditions[0].status: Unsupported value: \"False\": supported values: \"True\""]
        );
        assert_eq!(
            on_approval(&decided(&json!([])), &approved),
            ["status.conditions: Forbidden: updates may not remove a condition of type \"Approved\""]
        );
        let both =
            decided(&json!([{"type": "Approved", "status": "True"}, {"type": "Denied", "status": "True"}]));
        assert_eq!(
            on_approval(&both, &approved),
            [
                r#"status.conditions: Invalid value: "{conditions[{\"type\": \"Approved\"}], conditions[{\"type\": \"Denied\"}]}": must specify at most one of: `conditions[{"type": "Approved"}]`, `conditions[{"type": "Denied"}]`"#
            ]
        );
    }

    #[test]
    fn conditions_get_times_and_keep_them() {
        let mut first = decided(&json!([{"type": "Approved", "status": "True"}]));
        stamp_times(&mut first, None, "1");
        let mut second = decided(&json!([{"type": "Approved", "status": "True"}]));
        stamp_times(&mut second, Some(&first), "2");
        let times = |one: &Value| {
            let condition = &one["status"]["conditions"][0];
            (condition["lastUpdateTime"].clone(), condition["lastTransitionTime"].clone())
        };
        assert_eq!(times(&first), ("1".into(), "1".into()));
        assert_eq!(times(&second), ("2".into(), "1".into()));
    }

    #[test]
    fn a_certificate_is_pem() {
        let mut signed = request();
        signed["status"] = json!({"certificate": "bm90IHBlbQ=="});
        assert_eq!(
            on_status(&RULES, signed, &request()),
            [
                "status.certificate: Invalid value: \"<certificate data>\": must contain at least one CERTIFICATE PEM block"
            ]
        );
    }
}
