//! `CertificateApproval`, `CertificateSigning` and `ClusterTrustBundleAttest`: the verbs `approve` and `sign` on the signer that a certificate signing request names,
//! and `attest` on that of a trust bundle.

use k1s_object::{Status, field::quote};
use serde_json::Value;

use crate::{
    authz::{Attributes, Target},
    context::Cx,
    errors::Error,
    escalation::only_for_garbage_collection,
    request::Verb,
};

const GROUP: &str = "certificates.k8s.io";

/// Checks a trust bundle: 403 if the user may not attest for its signer.
pub(super) async fn attest(cx: &Cx, object: &Value, old: Option<&Value>) -> Result<(), Error> {
    if cx.user.is_admin() || old.is_some_and(|old| only_for_garbage_collection(object, old)) {
        return Ok(());
    }
    let signer = object["spec"]["signerName"].as_str().unwrap_or_default();
    if signer.is_empty() {
        return Ok(());
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let why = format!("user not permitted to attest for signerName {}", quote(signer));
    check(cx, "attest", signer, name, why).await
}

/// Checks an approval: 403 if the user may not approve requests to the signer that the request names already.
pub(super) async fn approve(cx: &Cx, old: &Value) -> Result<(), Error> {
    on_signer(cx, "approve", old).await
}

/// Checks an update of the status: 403 if it changes the certificate or the conditions, and the user may not sign.
pub(super) async fn sign(cx: &Cx, new: &Value, old: &Value) -> Result<(), Error> {
    if signs(new, old) { on_signer(cx, "sign", old).await } else { Ok(()) }
}

async fn on_signer(cx: &Cx, verb: &str, request: &Value) -> Result<(), Error> {
    if cx.user.is_admin() {
        return Ok(());
    }
    let signer = request["spec"]["signerName"].as_str().unwrap_or_default();
    let why = format!("user not permitted to {verb} requests with signerName {}", quote(signer));
    check(cx, verb, signer, &cx.name, why).await
}

/// 403 if the user has this verb neither on the signer nor on all of its domain.
async fn check(cx: &Cx, verb: &str, signer: &str, name: &str, why: String) -> Result<(), Error> {
    let domain = signer.split('/').next().unwrap_or_default();
    for signer in [signer, &format!("{domain}/*")] {
        if is_allowed(cx, verb, signer).await? {
            return Ok(());
        }
    }
    Err(Status::forbidden(GROUP, &cx.resource.plural, name, why).into())
}

/// Whether an update of the status changes the certificate or the conditions.
fn signs(new: &Value, old: &Value) -> bool {
    let empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    let differs = |field: &str| {
        let (new, old) = (&new["status"][field], &old["status"][field]);
        new != old && !(empty(new) && empty(old))
    };
    differs("certificate") || differs("conditions")
}

async fn is_allowed(cx: &Cx, verb: &str, name: &str) -> Result<bool, Error> {
    let target = Target::Resource { group: GROUP, resource: "signers", subresource: "", namespace: "", name };
    let wanted = Attributes::new(Verb::named(verb), target);
    let authorizer = &cx.tenant.shared.authorizer;
    let decision = authorizer.authorize(Some(&cx.tenant), &cx.user, &wanted).await;
    decision.failure.map_or(Ok(decision.allowed), |failure| Err(failure.into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_of_certificate_or_conditions_is_a_signature() {
        let status = |status: Value| json!({ "status": status });
        let none = status(json!({}));
        assert!(!signs(&none, &json!({})) && !signs(&status(json!({"conditions": []})), &none));
        assert!(signs(&status(json!({"certificate": "eA=="})), &none));
        assert!(signs(&none, &status(json!({"conditions": [{"type": "Failed"}]}))));
    }
}
