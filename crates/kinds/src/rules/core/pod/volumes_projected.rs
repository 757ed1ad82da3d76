//! Projected volumes: several sources in one directory.

use std::collections::BTreeSet;

use k1s_object::{At, names};

use super::volumes::{downward_file, key_to_path, user};
use crate::rules::helpers::{
    labels,
    text::{non_reserved_path, required},
};

const KEY_TYPES: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];

/// The paths in use; each may occur once.
struct Paths<'c, 'v> {
    volume: At<'c, 'v>,
    taken: BTreeSet<String>,
}

impl Paths<'_, '_> {
    fn take(&mut self, path: &str, shown: &str) {
        if !self.taken.insert(path.to_owned()) {
            self.volume.invalid_as(shown, "conflicting duplicate paths");
        }
    }
}

/// The sources of a projected volume.
pub(crate) fn sources(volume: At<'_, '_>) {
    let mut paths = Paths { volume, taken: BTreeSet::new() };
    for source in volume.get("sources").items() {
        let mut count = 0;
        for kind in ["secret", "configMap"] {
            let at = source.get(kind);
            if !at.is_set() {
                continue;
            }
            count += 1;
            required(at.get("name"));
            for item in at.get("items").items() {
                key_to_path(item);
                let path = item.get("path").text();
                if !path.is_empty() {
                    paths.take(path, at.get("name").text());
                }
            }
        }
        let downward = source.get("downwardAPI");
        if downward.is_set() {
            count += 1;
            for file in downward.get("items").items() {
                downward_file(downward.with(file.value()));
                let path = file.get("path").text();
                if !path.is_empty() {
                    paths.take(path, path);
                }
            }
        }
        let token = source.get("serviceAccountToken");
        if token.is_set() {
            count += 1;
            service_account_token(token, volume);
        }
        let bundle = source.get("clusterTrustBundle");
        if bundle.is_set() {
            count += 1;
            trust_bundle(bundle, &mut paths);
        }
        let certificate = source.get("podCertificate");
        if certificate.is_set() {
            count += 1;
            pod_certificate(certificate, &mut paths);
        }
        if count > 1 {
            source.forbidden("may not specify more than 1 volume type per source");
        }
    }
}

fn service_account_token<'v>(token: At<'_, 'v>, volume: At<'_, 'v>) {
    let expiration = token.get("expirationSeconds");
    match expiration.int() {
        None => expiration.required(""),
        Some(seconds) if seconds < 600 => {
            expiration.invalid("may not specify a duration less than 10 minutes")
        }
        Some(seconds) if seconds > 1 << 32 => {
            expiration.invalid("may not specify a duration larger than 2^32 seconds");
        }
        Some(_) => {}
    }
    // The error has the path of the volume, not of the source.
    let path = volume.get("path").with(token.get("path").value());
    if path.is_empty() {
        path.required("");
    } else {
        non_reserved_path(path, path.text());
    }
    user(token.get("user"));
}

fn trust_bundle(bundle: At<'_, '_>, paths: &mut Paths<'_, '_>) {
    let (name, signer) = (bundle.get("name"), bundle.get("signerName"));
    match (name.is_set(), signer.is_set()) {
        (true, true) => bundle.invalid("only one of name and signerName may be used"),
        (true, false) => {
            if name.is_empty() {
                name.required("must be a valid object name");
            }
            // A name that belongs to a signer begins with the name of the signer, with `:` for `/`.
            let own = name.text().rsplit_once(':').map_or(name.text(), |(_, own)| own);
            for message in names::is_dns1123_subdomain(own) {
                name.invalid_text(format!("not a valid clustertrustbundlename: {message}"));
            }
            let selector = bundle.get("labelSelector");
            if selector.is_set() {
                selector.invalid("labelSelector must be unset if name is specified");
            }
        }
        (false, true) => {
            if signer.is_empty() {
                signer.required("must be a valid signer name");
            }
            signer_name(signer);
            labels::selector(bundle.get("labelSelector"));
        }
        (false, false) => bundle.required("either name or signerName must be specified"),
    }
    let path = bundle.get("path");
    required(path);
    user(bundle.get("user"));
    non_reserved_path(path, path.text());
    paths.take(path.text(), path.text());
}

/// `example.com/name`
fn signer_name(at: At<'_, '_>) {
    if at.is_empty() {
        at.required("");
        return;
    }
    match at.text().split_once('/') {
        Some((domain, path)) if !path.is_empty() && !path.contains('/') => {
            for message in names::is_dns1123_subdomain(domain) {
                at.invalid(format!("validating label {domain:?}: {message}"));
            }
        }
        _ => at.invalid("must be a fully qualified domain and path of the form 'example.com/signer-name'"),
    }
}

fn pod_certificate(at: At<'_, '_>, paths: &mut Paths<'_, '_>) {
    signer_name(at.get("signerName"));
    user(at.get("user"));
    if !KEY_TYPES.contains(&at.get("keyType").text()) {
        at.get("keyType").not_supported(&KEY_TYPES);
    }
    let expiration = at.get("maxExpirationSeconds");
    if let Some(seconds) = expiration.int() {
        if seconds < 3600 {
            expiration.invalid("if provided, maxExpirationSeconds must be >= 3600");
        }
        let kubernetes = at.get("signerName").text().starts_with("kubernetes.io/");
        let limit = if kubernetes { 86_400 } else { 91 * 86_400 };
        if seconds > limit {
            expiration.invalid(format!("if provided, maxExpirationSeconds must be <= {limit}"));
        }
    }
    let mut count = 0;
    for name in ["credentialBundlePath", "keyPath", "certificateChainPath"] {
        let path = at.get(name);
        if !path.is_empty() {
            count += 1;
            non_reserved_path(path, path.text());
            paths.take(path.text(), path.text());
        }
    }
    if count == 0 {
        at.required("specify at least one of credentialBundlePath, keyPath, and certificateChainPath");
    }
}
