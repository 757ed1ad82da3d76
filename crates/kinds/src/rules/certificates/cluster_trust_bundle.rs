//! `ClusterTrustBundle`. Signatures are not verified.

use super::{
    certificate_signing_request::{signer_form, signer_name},
    pem,
};
use crate::rules::{FieldLabelError, NameRule, Rules, SelectableField, helpers::errors::invalid_each};
use k1s_object::{
    field::{At, ErrorKind, FieldError, Shown},
    names,
};

const MAX_BUNDLE: usize = 1024 * 1024;

pub(super) static RULES: Rules = Rules {
    validate,
    validate_update,
    name: NameRule::PathSegment,
    unconditional_update: false,
    fields: &[SelectableField { path: "spec.signerName", read: signer_name }],
    field_error: FieldLabelError::NotSupported,
    ..Rules::PLAIN
};

fn validate(bundle: At<'_, '_>) {
    bundle_names(bundle);
    trust_bundle(bundle.get("spec").get("trustBundle"));
}

fn validate_update(bundle: At<'_, '_>, old: At<'_, '_>) {
    bundle_names(bundle);
    let (spec, before) = (bundle.get("spec"), old.get("spec"));
    if spec.get("trustBundle").text() != before.get("trustBundle").text() {
        trust_bundle(spec.get("trustBundle"));
    }
    if spec.get("signerName").text() != before.get("signerName").text() {
        spec.get("signerName").invalid_text("field is immutable");
    }
}

fn bundle_names(bundle: At<'_, '_>) {
    let (name, signer) = (bundle.get("metadata").get("name"), bundle.get("spec").get("signerName"));
    let text = name.text();
    if signer.is_empty() {
        if text.contains(':') {
            name.invalid("ClusterTrustBundle without signer name must not have \":\" in its name");
        } else if !text.is_empty() {
            invalid_each(name, names::is_dns1123_subdomain(text));
        }
        return;
    }
    let prefix = format!("{}:", signer.text().replace('/', ":"));
    match text.strip_prefix(&prefix) {
        Some(rest) => invalid_each(name, names::is_dns1123_subdomain(rest)),
        None if text.is_empty() => {}
        None => name.invalid(format!(
            "ClusterTrustBundle for signerName {} must be named with prefix {prefix}",
            signer.text()
        )),
    }
    signer_form(signer);
}

/// CA certificates without duplicates.
fn trust_bundle(at: At<'_, '_>) {
    if at.text().len() > MAX_BUNDLE {
        return at.too_long(MAX_BUNDLE);
    }
    let mut anchors: Vec<(Vec<u8>, Vec<usize>)> = Vec::new();
    let mut wrong = false;
    let mut rest = at.text();
    let mut index = 0;
    while let Some((block, after)) = pem::decode(rest) {
        rest = after;
        let fault = if block.kind != "CERTIFICATE" {
            Some(format!("entry {index} has bad block type: {}", block.kind))
        } else if block.has_headers {
            Some(format!("entry {index} has PEM block headers"))
        } else {
            match pem::is_authority(&block.bytes) {
                Err(_) => Some(format!("entry {index} does not parse as X.509")),
                Ok(false) => Some(format!("entry {index} does not have the CA bit set")),
                Ok(true) => None,
            }
        };
        if let Some(fault) = fault {
            wrong = true;
            at.invalid_as("<value omitted>", fault);
        } else if let Some((_, indices)) = anchors.iter_mut().find(|(bytes, _)| *bytes == block.bytes) {
            indices.push(index);
        } else {
            anchors.push((block.bytes, vec![index]));
        }
        index += 1;
    }
    if wrong {
        return;
    }
    if anchors.is_empty() {
        at.invalid_as("<value omitted>", "at least one trust anchor must be provided");
    }
    for (_, indices) in anchors.iter().filter(|(_, indices)| indices.len() > 1) {
        let indices: Vec<String> = indices.iter().map(ToString::to_string).collect();
        at.invalid_as("<value omitted>", format!("duplicate trust anchor (indices [{}])", indices.join(" ")));
    }
}

/// `Invalid value` that does not show the value.
pub(super) fn invalid_hidden(at: At<'_, '_>, why: &str) {
    at.check().push(FieldError::new(ErrorKind::Invalid, at.path(), Shown::Nothing, why));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing::*;
    use serde_json::json;

    #[test]
    fn a_bundle_is_named_after_its_signer() {
        let bundle = |name: &str, signer: &str| {
            let bundle = json!({"metadata": {"name": name}, "spec": {"signerName": signer}});
            on_create(&RULES, bundle).join("; ")
        };
        let empty = "spec.trustBundle: Invalid value: \"<value omitted>\": at least one trust anchor must be provided";
        assert_eq!(bundle("a", ""), empty);
        assert_eq!(bundle("example.com:s:a", "example.com/s"), empty);
        assert_eq!(
            bundle("a", "example.com/s"),
            format!(
                "metadata.name: Invalid value: \"a\": ClusterTrustBundle for signerName example.com/s must be named with prefix example.com:s:; {empty}"
            )
        );
    }
}
