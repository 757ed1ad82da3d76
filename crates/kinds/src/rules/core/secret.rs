//! `Secret`: `stringData`, the requirements of the well-known types, size and immutability.

use base64::{Engine, engine::general_purpose::STANDARD};
use k1s_object::{At, names};
use serde_json::{Value, json};

use super::config_map::MAX_SIZE;
use crate::rules::{
    FieldLabelError, Rules, SelectableField,
    helpers::{
        equality::same_pointers,
        go_json,
        immutable::{IMMUTABLE_WHEN_SET, immutable_text},
        json::{bytes_len, find, text_at},
    },
};

pub(super) static RULES: Rules = Rules {
    defaults,
    validate,
    validate_update,
    warnings,
    fields: &[SelectableField { path: "type", read: |secret| text_at(secret, &["type"]).to_owned() }],
    field_error: FieldLabelError::NotSupported,
    ..Rules::PLAIN
};

fn defaults(secret: &mut Value) {
    let Some(secret) = secret.as_object_mut() else { return };
    if secret.get("type").and_then(Value::as_str).unwrap_or_default().is_empty() {
        secret.insert("type".into(), "Opaque".into());
    }
    if let Some(Value::Object(texts)) = secret.shift_remove("stringData") {
        if texts.is_empty() {
            return;
        }
        let data = secret.entry("data").or_insert_with(|| json!({}));
        if data.is_null() {
            *data = json!({});
        }
        if let Some(data) = data.as_object_mut() {
            for (key, value) in texts {
                data.insert(key, STANDARD.encode(value.as_str().unwrap_or_default()).into());
            }
        }
    }
}

fn validate(secret: At<'_, '_>) {
    let data = secret.get("data");
    let mut size = 0usize;
    for (key, value) in data.entries() {
        for message in names::is_config_map_key(key) {
            value.invalid_as(key, message);
        }
        size = size.saturating_add(bytes_len(value.text()));
    }
    if size > MAX_SIZE {
        data.too_long(MAX_SIZE);
    }
    let has = |key: &str| data.map().is_some_and(|data| data.contains_key(key));
    match secret.get("type").text() {
        "kubernetes.io/service-account-token" => {
            let name = secret.get("metadata").get("annotations").key("kubernetes.io/service-account.name");
            if name.text().is_empty() {
                name.required("");
            }
        }
        "kubernetes.io/dockercfg" => docker(data.key(".dockercfg")),
        "kubernetes.io/dockerconfigjson" => docker(data.key(".dockerconfigjson")),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            data.key("username").required("");
            data.key("password").required("");
        }
        "kubernetes.io/ssh-auth" if data.key("ssh-privatekey").text().is_empty() => {
            data.key("ssh-privatekey").required("");
        }
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"] {
                if !has(key) {
                    data.key(key).required("");
                }
            }
        }
        _ => {}
    }
}

fn docker(config: At<'_, '_>) {
    if !config.is_set() {
        return config.required("");
    }
    let bytes = STANDARD.decode(config.text()).unwrap_or_default();
    if let Some(error) = go_json::object_error(&bytes) {
        config.invalid_as("<secret contents redacted>", error);
    }
}

fn validate_update(new: At<'_, '_>, old: At<'_, '_>) {
    immutable_text(new.get("type"), old.get("type"));
    if old.get("immutable").is_true() {
        if !new.get("immutable").is_true() {
            new.get("immutable").forbidden(IMMUTABLE_WHEN_SET);
        }
        if !same_pointers(new.get("data").value(), old.get("data").value()) {
            new.get("data").forbidden(IMMUTABLE_WHEN_SET);
        }
    }
    validate(new);
}

fn warnings(new: &Value, _: Option<&Value>, out: &mut Vec<String>) {
    if text_at(new, &["type"]) == "kubernetes.io/tls" {
        let read = |key| {
            let bytes =
                find(new, &["data", key]).and_then(Value::as_str).and_then(|text| STANDARD.decode(text).ok());
            String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
        };
        out.extend(pem_warning(&read("tls.crt"), &read("tls.key")));
    }
}

/// The types of the PEM blocks in a text.
fn pem_blocks(text: &str) -> Vec<&str> {
    let types =
        text.lines().filter_map(|line| line.trim_end().strip_prefix("-----BEGIN ")?.strip_suffix("-----"));
    types.filter(|kind| text.contains(&format!("-----END {kind}-----"))).collect()
}

/// The error of a TLS library for a pair that is not PEM. The keys themselves are not parsed.
fn pem_warning(certificate: &str, key: &str) -> Option<String> {
    let not_found = |what: &str, wanted: &str, blocks: &[&str]| {
        if blocks.is_empty() {
            format!("tls: failed to find any PEM data in {what} input")
        } else {
            format!(
                "tls: failed to find {wanted} in {what} input after skipping PEM blocks of the following types: [{}]",
                blocks.join(" ")
            )
        }
    };
    let blocks = pem_blocks(certificate);
    if !blocks.contains(&"CERTIFICATE") {
        return Some(match blocks.as_slice() {
            [one] if one.ends_with("PRIVATE KEY") => {
                "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM \
                 inputs may have been switched"
                    .into()
            }
            _ => not_found("certificate", "\"CERTIFICATE\" PEM block", &blocks),
        });
    }
    let blocks = pem_blocks(key);
    if blocks.iter().any(|one| *one == "PRIVATE KEY" || one.ends_with(" PRIVATE KEY")) {
        return None;
    }
    Some(match blocks.as_slice() {
        ["CERTIFICATE"] => "tls: found a certificate rather than a key in the PEM for the private key".into(),
        _ => not_found("key", "PEM block with type ending in \"PRIVATE KEY\"", &blocks),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing;

    #[test]
    fn string_data_wins_over_data_and_is_gone() {
        assert_eq!(
            testing::created(&RULES, json!({"data": {"k": "b2xk"}, "stringData": {"k": "new", "s": "zß"}})),
            json!({"data": {"k": "bmV3", "s": "esOf"}, "type": "Opaque"})
        );
    }

    #[test]
    fn types_have_keys() {
        let said =
            |kind: &str, data: Value| testing::on_create(&RULES, json!({"type": kind, "stringData": data}));
        for (kind, missing) in [
            ("kubernetes.io/tls", &["data[tls.crt]: Required value", "data[tls.key]: Required value"][..]),
            ("kubernetes.io/dockercfg", &["data[.dockercfg]: Required value"]),
            ("kubernetes.io/dockerconfigjson", &["data[.dockerconfigjson]: Required value"]),
            (
                "kubernetes.io/basic-auth",
                &["data[username]: Required value", "data[password]: Required value"],
            ),
            ("kubernetes.io/ssh-auth", &["data[ssh-privatekey]: Required value"]),
            (
                "kubernetes.io/service-account-token",
                &["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
            ),
            ("example.com/own", &[]),
        ] {
            assert_eq!(said(kind, json!({"x": "y"})), missing, "{kind}");
        }
        assert!(said("kubernetes.io/basic-auth", json!({"username": "u"})).is_empty());
        assert!(said("kubernetes.io/tls", json!({"tls.crt": "", "tls.key": ""})).is_empty());
        assert_eq!(
            said("kubernetes.io/dockerconfigjson", json!({".dockerconfigjson": "notjson"})),
            [
                "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": invalid character 'o' in \
                 literal null (expecting 'u')"
            ]
        );
    }

    #[test]
    fn the_type_stays() {
        assert_eq!(
            testing::on_update(&RULES, json!({"type": "x/y"}), json!({})),
            ["type: Invalid value: \"Opaque\": field is immutable"]
        );
    }

    #[test]
    fn a_pair_that_is_no_pem_warns() {
        assert_eq!(
            testing::warnings(
                &RULES,
                json!({"type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}})
            ),
            ["tls: failed to find any PEM data in certificate input"]
        );
    }
}
