//! The claims of a service account's token.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::objectmeta::meta_text;

/// A reference to an object that a token is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub(crate) struct ObjectRef {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) uid: String,
}

impl ObjectRef {
    /// The reference to this object.
    pub(crate) fn to(object: &Value) -> ObjectRef {
        ObjectRef { name: meta_text(object, "name").to_owned(), uid: meta_text(object, "uid").to_owned() }
    }

    /// A reference without a UID.
    pub(crate) fn named(name: &str) -> ObjectRef {
        ObjectRef { name: name.to_owned(), uid: String::new() }
    }
}

/// The claims of a token: of one that was requested, or of one in a Secret.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum AccountClaims {
    Bound(Claims),
    Legacy(LegacyClaims),
}

/// The claims, with the names that Kubernetes uses.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Claims {
    #[serde(default, deserialize_with = "one_or_many")]
    pub(crate) aud: Vec<String>,
    pub(crate) exp: i64,
    pub(crate) iat: i64,
    pub(crate) iss: String,
    #[serde(default)]
    pub(crate) jti: String,
    #[serde(rename = "kubernetes.io")]
    pub(crate) kubernetes: Private,
    pub(crate) nbf: i64,
    pub(crate) sub: String,
}

fn one_or_many<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(from)? {
        OneOrMany::One(one) => vec![one],
        OneOrMany::Many(many) => many,
    })
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Private {
    pub(crate) namespace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<ObjectRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pod: Option<ObjectRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<ObjectRef>,
    pub(crate) serviceaccount: ObjectRef,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) warnafter: Option<i64>,
}

/// The claims of a token that is kept in a Secret. It does not expire, and its Secret has to hold it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LegacyClaims {
    pub(crate) iss: String,
    pub(crate) sub: String,
    #[serde(deserialize_with = "one_or_many")]
    pub(crate) aud: Vec<String>,
    #[serde(rename = "kubernetes.io/serviceaccount/namespace")]
    pub(crate) namespace: String,
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name")]
    pub(crate) secret: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.name")]
    pub(crate) account: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.uid")]
    pub(crate) uid: String,
}
