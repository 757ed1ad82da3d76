//! The `AdmissionReview` that a webhook is sent, and its answer.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use k1s_object::{
    decode,
    field::quote,
    gvk::{GroupVersionKind, GroupVersionResource},
};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use super::Views;
use crate::{
    admission::Attributes,
    hooks::{Match, Phase, ReviewVersion},
};

const GROUP: &str = "admission.k8s.io";

impl ReviewVersion {
    fn name(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "v1",
            ReviewVersion::V1beta1 => "v1beta1",
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    kind: &'static str,
    api_version: String,
    request: Request<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    uid: &'a str,
    kind: Kind<'a>,
    resource: Resource<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    sub_resource: &'a str,
    request_kind: Kind<'a>,
    request_resource: Resource<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    request_sub_resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    operation: &'static str,
    user_info: User<'a>,
    object: Option<&'a RawValue>,
    old_object: Option<&'a RawValue>,
    dry_run: bool,
    options: Value,
}

#[derive(Serialize)]
struct Kind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

#[derive(Serialize)]
struct Resource<'a> {
    group: &'a str,
    version: &'a str,
    resource: &'a str,
}

#[derive(Serialize)]
struct User<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    username: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    groups: &'a [String],
    #[serde(skip_serializing_if = "Map::is_empty")]
    extra: Map<String, Value>,
}

fn kind<'a>(kind: GroupVersionKind<&'a str>) -> Kind<'a> {
    Kind { group: kind.group, version: kind.version, kind: kind.kind }
}

fn resource<'a>(resource: GroupVersionResource<&'a str>) -> Resource<'a> {
    Resource { group: resource.group, version: resource.version, resource: resource.resource }
}

/// What a review says of a request, for a version of its resource.
fn request_of<'a>(a: &'a Attributes<'a>, matched: &'a crate::resource::Resource) -> Request<'a> {
    let requested = a.resource();
    let user = &a.cx.user;
    let extra = user.extra.iter().map(|(key, values)| (key.clone(), values.clone().into()));
    Request {
        uid: "",
        // A body of its own kind is the same for every version of the resource.
        kind: kind(if a.kind == requested.gvk() { matched.gvk() } else { a.kind }),
        resource: resource(matched.gvr()),
        sub_resource: a.subresource(),
        request_kind: kind(a.kind),
        request_resource: resource(requested.gvr()),
        request_sub_resource: a.subresource(),
        name: &a.name,
        namespace: &a.namespace,
        operation: a.operation.name(),
        user_info: User {
            username: &user.name,
            uid: &user.uid,
            groups: &user.groups,
            extra: extra.collect(),
        },
        object: None,
        old_object: None,
        dry_run: a.dry_run,
        options: a.options(),
    }
}

/// The `request` of expressions: a review without its objects.
pub(in crate::admission) fn request(a: &Attributes<'_>, matched: &crate::resource::Resource) -> Value {
    serde_json::to_value(request_of(a, matched)).unwrap_or_default()
}

/// The body of a call.
pub(super) fn encode(
    a: &Attributes<'_>,
    one: &Match,
    views: &Views,
    version: ReviewVersion,
    uid: &str,
) -> serde_json::Result<Bytes> {
    let review = Review {
        kind: "AdmissionReview",
        api_version: format!("{GROUP}/{}", version.name()),
        request: Request {
            uid,
            object: views.new_json(&one.resource),
            old_object: views.old_json(&one.resource),
            ..request_of(a, &one.resource)
        },
    };
    serde_json::to_vec(&review).map(Bytes::from)
}

/// What a webhook has answered.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Verdict {
    pub(super) allowed: bool,
    /// The patch, as JSON; empty if there is none.
    pub(super) patch: Vec<u8>,
    pub(super) patch_type: String,
    /// The Status of a refusal.
    pub(super) status: Option<Value>,
    pub(super) warnings: Vec<String>,
    pub(super) annotations: Vec<(String, String)>,
}

/// Why an answer is no verdict.
#[derive(Debug, PartialEq)]
pub(super) enum Wrong {
    /// It is not an `AdmissionReview`.
    Undecodable(String),
    /// It is one that breaks the rules.
    Invalid(String),
}

fn mistyped(found: &Value, field: &str, wanted: &str) -> Wrong {
    Wrong::Undecodable(format!(
        "json: cannot unmarshal {} into Go struct field AdmissionReview.response.{field} of type {wanted}",
        decode::type_name(found)
    ))
}

/// Reads the answer to the review with this uid.
pub(super) fn read(body: &[u8], version: ReviewVersion, phase: Phase, uid: &str) -> Result<Verdict, Wrong> {
    let undecodable = |why: String| Err(Wrong::Undecodable(why));
    let review = match decode::json(body) {
        Ok(decoded) => decoded.value,
        Err(why) => return undecodable(format!("couldn't get version/kind; json parse error: {why}")),
    };
    let text = |field: &str| review.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let shown = || String::from_utf8_lossy(body.get(..1024).unwrap_or(body)).into_owned();
    if kind.is_empty() {
        return undecodable(format!("Object 'Kind' is missing in '{}'", shown()));
    }
    if api_version.is_empty() {
        return undecodable(format!("Object 'apiVersion' is missing in '{}'", shown()));
    }
    let Some((GROUP, found)) = api_version.split_once('/').filter(|_| kind == "AdmissionReview") else {
        return undecodable(format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:110\"",
            quote(kind),
            quote(api_version)
        ));
    };
    let invalid = |why: String| Err(Wrong::Invalid(why));
    let response = match &review["response"] {
        Value::Null => return invalid("webhook response was absent".into()),
        response @ Value::Object(_) => response,
        other => return Err(mistyped(other, "", "v1.AdmissionResponse")),
    };
    let verdict = verdict(response)?;
    // The version before this one is not checked.
    if version == ReviewVersion::V1beta1 {
        let patch_type = if verdict.patch.is_empty() { "" } else { "JSONPatch" };
        return Ok(Verdict { patch_type: patch_type.into(), ..verdict });
    }
    let sent = response["uid"].as_str().unwrap_or_default();
    if sent != uid {
        return invalid(format!("expected response.uid={}, got {}", quote(uid), quote(sent)));
    }
    if found != version.name() {
        let wanted = version.name();
        return invalid(format!(
            "expected webhook response of {GROUP}/{wanted}, Kind=AdmissionReview, got {GROUP}/{found}, Kind=AdmissionReview"
        ));
    }
    let has_type = response.get("patchType").is_some_and(|patch_type| !patch_type.is_null());
    let has_patch = !verdict.patch.is_empty();
    let wrong = match (phase, has_patch, has_type) {
        (Phase::Mutating, true, false) => "webhook returned response.patch but not response.patchType",
        (Phase::Mutating, false, true) => "webhook returned response.patchType but not response.patch",
        (Phase::Mutating, true, true) if verdict.patch_type.is_empty() => {
            "webhook returned invalid response.patchType of \"\""
        }
        (Phase::Validating, true, _) => "validating webhook may not return response.patch",
        (Phase::Validating, _, true) => "validating webhook may not return response.patchType",
        _ => return Ok(verdict),
    };
    invalid(wrong.into())
}

fn verdict(response: &Value) -> Result<Verdict, Wrong> {
    let mut verdict = Verdict::default();
    let set = |field: &str| response.get(field).filter(|value| !value.is_null());
    if let Some(allowed) = set("allowed") {
        verdict.allowed = allowed.as_bool().ok_or_else(|| mistyped(allowed, "allowed", "bool"))?;
    }
    if let Some(patch) = set("patch") {
        let text = patch.as_str().ok_or_else(|| mistyped(patch, "patch", "[]uint8"))?;
        verdict.patch = BASE64_STANDARD.decode(text).map_err(|why| {
            let at = match why {
                base64::DecodeError::InvalidByte(at, _) => at,
                _ => text.len(),
            };
            Wrong::Undecodable(format!("illegal base64 data at input byte {at}"))
        })?;
    }
    if let Some(patch_type) = set("patchType") {
        let text = patch_type.as_str().ok_or_else(|| mistyped(patch_type, "patchType", "v1.PatchType"))?;
        verdict.patch_type = text.to_owned();
    }
    if let Some(status) = set("status") {
        if !status.is_object() {
            return Err(mistyped(status, "status", "v1.Status"));
        }
        verdict.status = Some(status.clone());
    }
    if let Some(warnings) = set("warnings") {
        let list = warnings.as_array().ok_or_else(|| mistyped(warnings, "warnings", "[]string"))?;
        let text =
            |one: &Value| one.as_str().map(str::to_owned).ok_or_else(|| mistyped(one, "warnings", "string"));
        verdict.warnings = list.iter().map(text).collect::<Result<_, _>>()?;
    }
    if let Some(annotations) = set("auditAnnotations") {
        let wrong = || mistyped(annotations, "auditAnnotations", "map[string]string");
        for (key, value) in annotations.as_object().ok_or_else(wrong)? {
            let value = value.as_str().ok_or_else(|| mistyped(value, "auditAnnotations", "string"))?;
            verdict.annotations.push((key.clone(), value.to_owned()));
        }
    }
    Ok(verdict)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(version: ReviewVersion, phase: Phase, review: &Value) -> Result<Verdict, String> {
        read(review.to_string().as_bytes(), version, phase, "123").map_err(|wrong| match wrong {
            Wrong::Undecodable(why) => format!("undecodable: {why}"),
            Wrong::Invalid(why) => why,
        })
    }

    /// Upstream's cases of answers.
    #[test]
    fn answers_are_verified() {
        let of = |version: &str, response: Value| json!({"apiVersion": format!("admission.k8s.io/{version}"), "kind": "AdmissionReview", "response": response});
        let v1 = |response: Value| of("v1", response);
        let patch = BASE64_STANDARD.encode("[]");
        use Phase::{Mutating, Validating};
        let wrong: &[(Phase, Value, &str)] = &[
            (Validating, v1(Value::Null), "webhook response was absent"),
            (Validating, v1(json!({"uid": "456"})), "expected response.uid=\"123\", got \"456\""),
            (Validating, v1(json!({})), "expected response.uid=\"123\", got \"\""),
            (
                Validating,
                of("v1beta1", json!({"uid": "123"})),
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v1beta1, Kind=AdmissionReview",
            ),
            (
                Validating,
                v1(json!({"uid": "123", "patch": patch})),
                "validating webhook may not return response.patch",
            ),
            (
                Validating,
                v1(json!({"uid": "123", "patchType": "JSONPatch"})),
                "validating webhook may not return response.patchType",
            ),
            (
                Mutating,
                v1(json!({"uid": "123", "patch": patch})),
                "webhook returned response.patch but not response.patchType",
            ),
            (
                Mutating,
                v1(json!({"uid": "123", "patchType": "JSONPatch"})),
                "webhook returned response.patchType but not response.patch",
            ),
            (
                Mutating,
                v1(json!({"uid": "123", "patch": patch, "patchType": ""})),
                "webhook returned invalid response.patchType of \"\"",
            ),
            (
                Mutating,
                json!({"kind": "AdmissionReview", "response": {"uid": "123"}}),
                "undecodable: Object 'apiVersion' is missing in '{\"kind\":\"AdmissionReview\",\"response\":{\"uid\":\"123\"}}'",
            ),
            (
                Mutating,
                v1(json!({"uid": "123", "allowed": "yes"})),
                "undecodable: json: cannot unmarshal string into Go struct field AdmissionReview.response.allowed of type bool",
            ),
            (
                Mutating,
                v1(json!({"uid": "123", "patch": "?"})),
                "undecodable: illegal base64 data at input byte 0",
            ),
        ];
        for (phase, review, why) in wrong {
            assert_eq!(answer(ReviewVersion::V1, *phase, review), Err((*why).to_owned()), "{review}");
        }
        let found = answer(
            ReviewVersion::V1,
            Mutating,
            &v1(json!({"uid": "123", "allowed": true, "patch": patch, "patchType": "JSONPatch",
                "warnings": ["w"], "auditAnnotations": {"k": "v"}})),
        );
        let expected = Verdict {
            allowed: true,
            patch: b"[]".to_vec(),
            patch_type: "JSONPatch".into(),
            status: None,
            warnings: vec!["w".into()],
            annotations: vec![("k".into(), "v".into())],
        };
        assert_eq!(found, Ok(expected));
        // Neither uid nor version of the older review are checked.
        let old = of("v1", json!({"allowed": true, "patch": patch}));
        let found = answer(ReviewVersion::V1beta1, Mutating, &old).unwrap();
        assert_eq!((found.allowed, &*found.patch_type), (true, "JSONPatch"));
    }

    /// The rest of upstream's `TestVerifyAdmissionResponse`. Its answers of other groups and kinds cannot be decoded.
    #[test]
    fn answers_of_both_versions_are_read() {
        use Phase::{Mutating, Validating};
        let patch = r#"[{"op":"add","path":"/foo","value":"bar"}]"#;
        let sent = BASE64_STANDARD.encode(patch);
        let status = json!({"status": "Failure", "message": "Foo", "code": 401});
        let allowed = || Verdict { allowed: true, ..Verdict::default() };
        let patched = |patch_type: &str| Verdict {
            patch: patch.as_bytes().to_vec(),
            patch_type: patch_type.into(),
            ..allowed()
        };
        let annotated = || Verdict { annotations: vec![("foo".into(), "bar".into())], ..allowed() };
        let refused = || Verdict { status: Some(status.clone()), ..Verdict::default() };
        for (version, name) in [(ReviewVersion::V1, "v1"), (ReviewVersion::V1beta1, "v1beta1")] {
            let check = |phase: Phase, mut response: Value, expected: Result<Verdict, &str>| {
                if version == ReviewVersion::V1 && response.is_object() {
                    response["uid"] = "123".into();
                }
                let review = json!({"apiVersion": format!("admission.k8s.io/{name}"), "kind": "AdmissionReview", "response": response});
                assert_eq!(answer(version, phase, &review), expected.map_err(str::to_owned), "{review}");
            };
            for phase in [Validating, Mutating] {
                check(phase, json!({"allowed": true}), Ok(allowed()));
            }
            let annotations = json!({"allowed": true, "auditAnnotations": {"foo": "bar"}});
            check(Validating, annotations, Ok(annotated()));
            let mut response = json!({"allowed": true, "patch": sent});
            if version == ReviewVersion::V1 {
                response["patchType"] = "JSONPatch".into();
            }
            check(Mutating, response, Ok(patched("JSONPatch")));
            let response = json!({"allowed": false, "status": status});
            check(Validating, response, Ok(refused()));
            check(Validating, Value::Null, Err("webhook response was absent"));
            if version == ReviewVersion::V1 {
                // Noticed when the patch is to be applied.
                check(
                    Mutating,
                    json!({"allowed": true, "patch": sent, "patchType": "Foo"}),
                    Ok(patched("Foo")),
                );
            }
        }
    }
}
