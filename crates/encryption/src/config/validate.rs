//! Validation of a configuration, with the errors of kube-apiserver.

use std::collections::HashSet;

use k1s_object::FieldError;
use serde_json::{Value, json};

use super::{Configuration, Key, Kms, Provider};
use crate::resource::GroupResource;

const AES_KEY_BYTES: &[usize] = &[16, 24, 32];
const SECRETBOX_KEY_BYTES: &[usize] = &[32];

/// What is shown of a key.
const REDACTED: &str = "REDACTED";

/// Resources of kube-apiserver that are stored and have no API.
const WITHOUT_API: [&str; 3] = ["apiserveripinfo", "serviceipallocations", "servicenodeportallocations"];

pub(super) fn validate(configuration: &Configuration, reload: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if configuration.resources.is_empty() {
        errors.push(at_least_one("resources", "resources"));
    }
    let mut plugins = HashSet::new();
    for (i, one) in configuration.resources.iter().enumerate() {
        let (resources, providers) =
            (format!("resources[{i}].resources"), format!("resources[{i}].providers"));
        if one.resources.is_empty() {
            errors.push(at_least_one(&resources, &resources));
        }
        overlaps(&one.resources, &resources, &mut errors);
        for (j, name) in one.resources.iter().enumerate() {
            if let Some(why) = wrong_name(name) {
                errors.push(FieldError::invalid(format!("{resources}[{j}]"), name.as_str(), why));
            }
        }
        if one.providers.is_empty() {
            errors.push(at_least_one(&providers, &providers));
        }
        for (j, provider) in one.providers.iter().enumerate() {
            self::provider(provider, &format!("{providers}[{j}]"), &mut plugins, reload, &mut errors);
        }
    }
    errors
}

fn at_least_one(field: &str, what: &str) -> FieldError {
    FieldError::required(field, format!("at least one {what} is required"))
}

fn overlaps(names: &[String], field: &str, errors: &mut Vec<FieldError>) {
    let parsed: Vec<GroupResource<'_>> = names.iter().map(|name| GroupResource::parse(name)).collect();
    let pairs = || {
        let pair = |(i, a): (usize, _)| parsed.iter().skip(i + 1).map(move |b| (a, b));
        parsed.iter().enumerate().flat_map(pair)
    };
    if pairs().any(|(a, b)| a == b) {
        let why = "the same resource cannot be specified multiple times";
        errors.push(FieldError::invalid(field, json!(names), why));
    }
    let is_hidden = |a: &GroupResource<'_>, b: &GroupResource<'_>| {
        a.is_everything()
            || b.is_everything()
            || (a.group == b.group && (a.resource == "*" || b.resource == "*"))
    };
    if pairs().any(|(a, b)| is_hidden(a, b)) {
        let why = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as \
                   they will be masked";
        errors.push(FieldError::invalid(field, json!(names), why));
    }
}

fn wrong_name(name: &str) -> Option<&'static str> {
    let parsed = GroupResource::parse(name);
    if name.to_lowercase() != name {
        Some("resource name should not contain capital letters")
    } else if name == "*" {
        Some("use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources")
    } else if WITHOUT_API.contains(&name) {
        Some("resources which do not have REST API/s cannot be encrypted")
    } else if parsed.group == "events.k8s.io" {
        Some(
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the \
             config file",
        )
    } else if parsed.group == "extensions" {
        Some("'extensions' group has been removed and cannot be used for encryption")
    } else if parsed.group == "*" && parsed.resource != "*" {
        Some("encrypting the same resource across groups is not supported")
    } else {
        None
    }
}

fn provider(
    provider: &Provider,
    field: &str,
    plugins: &mut HashSet<String>,
    reload: bool,
    errors: &mut Vec<FieldError>,
) {
    let set = [
        provider.kms.is_some(),
        provider.aesgcm.is_some(),
        provider.aescbc.is_some(),
        provider.secretbox.is_some(),
        provider.identity,
    ];
    match set.iter().filter(|set| **set).count() {
        0 => {
            let why = "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity";
            errors.push(FieldError::invalid(field, shown(provider), why));
        }
        1 => {}
        _ => {
            let why = "more than one provider specified in a single element, should split into different list elements";
            errors.push(FieldError::invalid(field, shown(provider), why));
        }
    }
    if let Some(one) = &provider.kms {
        kms(one, &format!("{field}.kms"), plugins, reload, errors);
        plugins.insert(one.name.clone());
    } else if let Some(found) = &provider.aesgcm {
        keys(found, &format!("{field}.aesgcm.keys"), AES_KEY_BYTES, errors);
    } else if let Some(found) = &provider.aescbc {
        keys(found, &format!("{field}.aescbc.keys"), AES_KEY_BYTES, errors);
    } else if let Some(found) = &provider.secretbox {
        keys(found, &format!("{field}.secretbox.keys"), SECRETBOX_KEY_BYTES, errors);
    }
}

/// A provider as Go shows its struct, but without keys.
fn shown(provider: &Provider) -> Value {
    let keys = |keys: &Option<Vec<Key>>| match keys {
        None => Value::Null,
        Some(keys) => {
            let keys: Vec<Value> =
                keys.iter().map(|key| json!({"Name": key.name, "Secret": REDACTED})).collect();
            json!({ "Keys": keys })
        }
    };
    let kms = provider.kms.as_ref().map(|kms| {
        json!({"APIVersion": kms.api_version, "Name": kms.name, "CacheSize": kms.cache_size, "Endpoint": kms.endpoint,
            "Timeout": kms.timeout.map(|timeout| timeout.to_string())})
    });
    json!({
        "AESGCM": keys(&provider.aesgcm),
        "AESCBC": keys(&provider.aescbc),
        "Secretbox": keys(&provider.secretbox),
        "Identity": provider.identity.then(|| json!({})),
        "KMS": kms,
    })
}

fn keys(keys: &[Key], field: &str, lengths: &[usize], errors: &mut Vec<FieldError>) {
    if keys.is_empty() {
        errors.push(at_least_one(field, "keys"));
    }
    for (i, key) in keys.iter().enumerate() {
        let (name, secret) = (format!("{field}[{i}].name"), format!("{field}[{i}].secret"));
        if key.name.is_empty() {
            errors.push(FieldError::required(name, "name is a mandatory field for a key"));
        }
        if key.secret.is_empty() {
            errors.push(FieldError::required(secret, "secret is a mandatory field for a key"));
            continue;
        }
        match key.bytes() {
            None => errors.push(FieldError::invalid(secret, REDACTED, "secrets must be base64 encoded")),
            Some(bytes) if !lengths.contains(&bytes.len()) => {
                let expected: Vec<String> = lengths.iter().map(ToString::to_string).collect();
                let why = format!(
                    "secret is not of the expected length, got {}, expected one of [{}]",
                    bytes.len(),
                    expected.join(" ")
                );
                errors.push(FieldError::invalid(secret, REDACTED, why));
            }
            Some(_) => {}
        }
    }
}

fn kms(kms: &Kms, field: &str, others: &HashSet<String>, reload: bool, errors: &mut Vec<FieldError>) {
    let is_v1 = kms.api_version == "v1";
    let name = format!("{field}.name");
    if kms.name.is_empty() {
        errors.push(FieldError::required(name.clone(), "name is a mandatory field for a provider"));
    }
    if !is_v1 && kms.name.contains(':') {
        let why = format!("invalid KMS provider name {}, must not contain ':'", kms.name);
        errors.push(FieldError::invalid(name.clone(), kms.name.as_str(), why));
    }
    if (reload || !is_v1) && others.contains(&kms.name) {
        let why = format!("duplicate KMS provider name {}, names must be unique", kms.name);
        errors.push(FieldError::invalid(name, kms.name.as_str(), why));
    }
    if let Some(timeout) = kms.timeout.filter(|timeout| timeout.0 <= 0) {
        let why = "timeout should be a positive value";
        errors.push(FieldError::invalid(format!("{field}.timeout"), timeout.to_string(), why));
    }
    endpoint(&kms.endpoint, &format!("{field}.endpoint"), errors);
    match kms.cache_size {
        Some(size) if !is_v1 => {
            errors.push(FieldError::invalid(
                format!("{field}.cachesize"),
                size,
                "cachesize is not supported in v2",
            ));
        }
        Some(0) => {
            let why = "cachesize should be a positive value, or negative to disable";
            errors.push(FieldError::invalid(format!("{field}.cachesize"), 0, why));
        }
        _ => {}
    }
    if !matches!(&*kms.api_version, "v1" | "v2") {
        // The name of the field is in the place of the version upstream, too.
        let why = "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported";
        errors.push(FieldError::invalid(format!("{field}.apiVersion"), kms.api_version.as_str(), why));
    }
}

fn endpoint(endpoint: &str, field: &str, errors: &mut Vec<FieldError>) {
    let why = if endpoint.is_empty() {
        "endpoint is a mandatory field for a kms".to_owned()
    } else if endpoint.chars().any(|c| c.is_ascii_control()) {
        format!(
            "invalid endpoint for kms provider, error: parse {}: net/url: invalid control character in URL",
            k1s_object::field::quote(endpoint)
        )
    } else {
        let scheme = endpoint.split_once(':').map_or("", |(scheme, _)| scheme).to_lowercase();
        if scheme == "unix" {
            return;
        }
        format!("unsupported scheme {scheme:?} for KMS provider, only unix is supported")
    };
    errors.push(FieldError::invalid(field, endpoint, why));
}
