//! `AuthenticationConfiguration` of `apiserver.config.k8s.io`: the issuers of tokens, and who may be anonymous.

use std::fmt;

use k1s_object::{field::quote, yaml};
use serde::Deserialize;
use serde_json::Value;

use super::super::AnonymousOptions;

/// The contents of a file for `--authentication-config`, or what the flags `--oidc-…` say.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct AuthenticationConfiguration {
    /// The issuers of tokens.
    pub jwt: Vec<JwtAuthenticator>,
    /// Requests without credentials, if the configuration says something about them.
    pub anonymous: Option<AnonymousOptions>,
}

/// An issuer of tokens, and how its claims become a user.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JwtAuthenticator {
    /// The issuer.
    pub issuer: Issuer,
    /// What has to hold for the claims.
    pub claim_validation_rules: Vec<ClaimValidationRule>,
    /// Which claims make the user.
    pub claim_mappings: ClaimMappings,
    /// What has to hold for the user.
    pub user_validation_rules: Vec<UserValidationRule>,
}

/// An issuer.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Issuer {
    /// Its address, which tokens name.
    pub url: String,
    /// Where its discovery document is, if not below its address.
    #[serde(rename = "discoveryURL")]
    pub discovery_url: String,
    /// The authorities of its certificate, as PEM. Empty: those of the system.
    pub certificate_authority: String,
    /// The audiences of which a token has to have one.
    pub audiences: Vec<String>,
    /// `MatchAny`, or empty for one audience.
    pub audience_match_policy: String,
    /// How to reach it. There are no egress selectors here, so it has to be empty.
    pub egress_selector_type: String,
}

/// Something that has to hold for the claims: either a claim with a value, or an expression.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimValidationRule {
    /// The claim.
    pub claim: String,
    /// Its value.
    pub required_value: String,
    /// An expression that yields a bool.
    pub expression: String,
    /// What to say if it does not hold.
    pub message: String,
}

/// Which claims make the user.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimMappings {
    /// The name.
    pub username: PrefixedClaimOrExpression,
    /// The groups.
    pub groups: PrefixedClaimOrExpression,
    /// The uid.
    pub uid: ClaimOrExpression,
    /// Additional attributes.
    pub extra: Vec<ExtraMapping>,
}

/// A claim, whose values get a prefix, or an expression.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PrefixedClaimOrExpression {
    /// The claim.
    pub claim: String,
    /// The prefix: needed with a claim, even if it is empty.
    pub prefix: Option<String>,
    /// The expression.
    pub expression: String,
}

/// A claim or an expression.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimOrExpression {
    /// The claim.
    pub claim: String,
    /// The expression.
    pub expression: String,
}

/// An additional attribute of the user.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExtraMapping {
    /// Its key.
    pub key: String,
    /// An expression that yields its values.
    pub value_expression: String,
}

/// Something that has to hold for the user.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct UserValidationRule {
    /// An expression that yields a bool.
    pub expression: String,
    /// What to say if it does not hold.
    pub message: String,
}

/// Why a configuration cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigurationError {
    /// The file is empty.
    #[error("empty config data")]
    Empty,
    /// It cannot be decoded.
    #[error("{0}")]
    Decode(String),
    /// It is something else.
    #[error("no kind {kind:?} is registered for version {version:?}")]
    Kind {
        /// The kind.
        kind: String,
        /// Its group and version.
        version: String,
    },
}

const GROUP: &str = "apiserver.config.k8s.io";
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// The file, as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct File {
    jwt: Vec<JwtAuthenticator>,
    anonymous: Option<Anonymous>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Anonymous {
    enabled: bool,
    conditions: Vec<Condition>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    path: String,
}

/// The fields of the file: those of an object, or of the items of a list.
enum Fields {
    Leaf,
    Object(&'static [(&'static str, Fields)]),
}

use Fields::{Leaf, Object};

const MAPPING: Fields = Object(&[("claim", Leaf), ("prefix", Leaf), ("expression", Leaf)]);
const RULE: Fields =
    Object(&[("claim", Leaf), ("requiredValue", Leaf), ("expression", Leaf), ("message", Leaf)]);
const FIELDS: Fields = Object(&[
    ("apiVersion", Leaf),
    ("kind", Leaf),
    (
        "jwt",
        Object(&[
            (
                "issuer",
                Object(&[
                    ("url", Leaf),
                    ("discoveryURL", Leaf),
                    ("certificateAuthority", Leaf),
                    ("audiences", Leaf),
                    ("audienceMatchPolicy", Leaf),
                    ("egressSelectorType", Leaf),
                ]),
            ),
            ("claimValidationRules", RULE),
            (
                "claimMappings",
                Object(&[
                    ("username", MAPPING),
                    ("groups", MAPPING),
                    ("uid", Object(&[("claim", Leaf), ("expression", Leaf)])),
                    ("extra", Object(&[("key", Leaf), ("valueExpression", Leaf)])),
                ]),
            ),
            ("userValidationRules", Object(&[("expression", Leaf), ("message", Leaf)])),
        ]),
    ),
    ("anonymous", Object(&[("enabled", Leaf), ("conditions", Object(&[("path", Leaf)]))])),
]);

/// Notes the fields that the file does not have.
fn unknown(value: &Value, fields: &Fields, path: &str, found: &mut Vec<String>) {
    match (value, fields) {
        (Value::Array(items), _) => {
            for (at, item) in items.iter().enumerate() {
                unknown(item, fields, &format!("{path}[{at}]"), found);
            }
        }
        (Value::Object(map), Object(known)) => {
            for (name, value) in map {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match known.iter().find(|(one, _)| one == name) {
                    Some((_, fields)) => unknown(value, fields, &path, found),
                    None => found.push(format!("unknown field {}", quote(&path))),
                }
            }
        }
        _ => {}
    }
}

/// The same without nulls, which count as absent.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name, without_nulls(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

impl AuthenticationConfiguration {
    /// Reads a file: YAML or JSON.
    ///
    /// # Errors
    /// If it is no configuration, or has fields that a configuration does not have.
    pub fn parse(bytes: &[u8]) -> Result<AuthenticationConfiguration, ConfigurationError> {
        let failed = |error: &dyn fmt::Display| ConfigurationError::Decode(error.to_string());
        if bytes.is_empty() {
            return Err(ConfigurationError::Empty);
        }
        // JSON is YAML, too.
        let decoded = yaml::decode(bytes).map_err(|error| failed(&error))?;
        let (value, mut strict) = (decoded.value, decoded.duplicates);
        let text = |field: &str| value[field].as_str().unwrap_or_default();
        for (field, name) in [("kind", "Kind"), ("apiVersion", "apiVersion")] {
            if text(field).is_empty() {
                return Err(failed(&format_args!("Object '{name}' is missing in '{value}'")));
            }
        }
        let (version, kind) = (text("apiVersion"), text("kind"));
        let known = version
            .strip_prefix(GROUP)
            .and_then(|version| version.strip_prefix('/'))
            .is_some_and(|version| VERSIONS.contains(&version));
        if !known || kind != "AuthenticationConfiguration" {
            return Err(ConfigurationError::Kind { kind: kind.to_owned(), version: version.to_owned() });
        }
        unknown(&value, &FIELDS, "", &mut strict);
        if !strict.is_empty() {
            return Err(failed(&format_args!("strict decoding error: {}", strict.join(", "))));
        }
        let file: File = serde_json::from_value(without_nulls(value)).map_err(|error| failed(&error))?;
        let anonymous = file.anonymous.map(|anonymous| AnonymousOptions {
            enabled: anonymous.enabled,
            paths: anonymous.conditions.into_iter().map(|condition| condition.path).collect(),
        });
        Ok(AuthenticationConfiguration { jwt: file.jwt, anonymous })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: https://issuer.example
    discoveryURL: https://other.example/.well-known/openid-configuration
    certificateAuthority: PEM
    audiences: [a, b]
    audienceMatchPolicy: MatchAny
  claimValidationRules:
  - {claim: hd, requiredValue: example.com}
  - {expression: 'claims.a == 1', message: never}
  claimMappings:
    username: {claim: sub, prefix: ''}
    groups: {expression: claims.groups}
    uid: {claim: uid}
    extra:
    - {key: example.org/a, valueExpression: claims.a}
  userValidationRules:
  - {expression: 'true'}
anonymous:
  enabled: true
  conditions:
  - path: /livez
";

    #[test]
    fn a_file_is_read() {
        let read = AuthenticationConfiguration::parse(FILE.as_bytes()).unwrap();
        let jwt = &read.jwt[0];
        assert_eq!(jwt.issuer.discovery_url, "https://other.example/.well-known/openid-configuration");
        assert_eq!((jwt.issuer.audiences.len(), &*jwt.issuer.audience_match_policy), (2, "MatchAny"));
        assert_eq!(jwt.claim_mappings.username.prefix.as_deref(), Some(""));
        assert_eq!(jwt.claim_mappings.groups.prefix, None);
        assert_eq!(jwt.claim_mappings.extra[0].value_expression, "claims.a");
        assert_eq!(jwt.claim_validation_rules[0].required_value, "example.com");
        assert_eq!(read.anonymous, Some(AnonymousOptions { enabled: true, paths: vec!["/livez".into()] }));
        for version in ["v1beta1", "v1alpha1"] {
            let file = FILE.replace("k8s.io/v1", &format!("k8s.io/{version}"));
            assert_eq!(AuthenticationConfiguration::parse(file.as_bytes()).unwrap(), read);
        }
    }

    #[test]
    fn what_is_no_configuration_is_refused() {
        let head =
            "{\"apiVersion\": \"apiserver.config.k8s.io/v1\", \"kind\": \"AuthenticationConfiguration\"";
        let cases = [
            (String::new(), "empty config data"),
            ("{}".into(), "Object 'Kind' is missing in '{}'"),
            ("{\"kind\":\"A\"}".into(), "Object 'apiVersion' is missing in '{\"kind\":\"A\"}'"),
            (
                head.replace("Authentication", "Authorization") + "}",
                "no kind \"AuthorizationConfiguration\" is registered for version \"apiserver.config.k8s.io/v1\"",
            ),
            (
                head.replace("/v1", "/v2") + "}",
                "no kind \"AuthenticationConfiguration\" is registered for version \"apiserver.config.k8s.io/v2\"",
            ),
            (
                format!("{head}, \"jwt\": [{{\"issuer\": {{\"uri\": \"x\"}}}}], \"more\": 1}}"),
                "strict decoding error: unknown field \"jwt[0].issuer.uri\", unknown field \"more\"",
            ),
        ];
        for (file, expected) in cases {
            let refused = AuthenticationConfiguration::parse(file.as_bytes()).unwrap_err();
            assert_eq!(refused.to_string(), expected, "{file}");
        }
        for wrong in [
            "\"jwt\": 1",
            "\"jwt\": [{\"issuer\": {\"audiences\": \"a\"}}]",
            "\"anonymous\": {\"enabled\": \"yes\"}",
        ] {
            let file = format!("{head}, {wrong}}}");
            assert!(matches!(
                AuthenticationConfiguration::parse(file.as_bytes()),
                Err(ConfigurationError::Decode(_))
            ));
        }
        let empty = AuthenticationConfiguration::parse(format!("{head}, \"jwt\": null}}").as_bytes());
        assert_eq!(empty, Ok(AuthenticationConfiguration::default()));
    }
}
