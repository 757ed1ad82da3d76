//! Lists and watches as the server sends them, parsed no further than needed.

use std::borrow::Cow;

use kube::core::Status;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::ObjectKey;

/// One page of a list.
#[derive(Debug, Deserialize)]
pub(super) struct Page<'a> {
    #[serde(default)]
    pub(super) metadata: PageMeta,
    // Go servers may encode an empty list as null.
    #[serde(borrow, default)]
    pub(super) items: Option<Vec<&'a RawValue>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PageMeta {
    pub(super) resource_version: String,
    pub(super) r#continue: String,
}

/// One line of a watch.
#[derive(Debug, Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow)]
    pub(super) r#type: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) object: &'a RawValue,
}

/// The metadata that identifies an object and its revision.
#[derive(Debug, Deserialize)]
pub(super) struct Head<'a> {
    #[serde(borrow, default)]
    pub(super) metadata: HeadMeta<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct HeadMeta<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) uid: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) resource_version: Cow<'a, str>,
}

impl HeadMeta<'_> {
    pub(super) fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace.as_deref(), &self.name)
    }

    pub(crate) fn revision(&self) -> u64 {
        revision(&self.resource_version)
    }
}

/// The identifying metadata of an object, from its JSON.
pub(super) fn head(raw: &[u8]) -> Result<HeadMeta<'_>, serde_json::Error> {
    serde_json::from_slice::<Head<'_>>(raw).map(|head| head.metadata)
}

/// Parses a resource version: Kubernetes promises that they compare as numbers. 0 if it is not a number.
pub(crate) fn revision(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

/// An error response as a `Status`, whatever its body is.
pub(super) fn status(code: u16, body: &[u8]) -> Status {
    serde_json::from_slice::<Status>(body)
        .ok()
        .filter(|status| status.code != 0 || !status.message.is_empty())
        .map_or_else(
            || {
                let text = String::from_utf8_lossy(&body[..body.len().min(300)]);
                Status { code, message: text.trim().to_owned(), ..Status::default() }
            },
            |mut status| {
                if status.code == 0 {
                    status.code = code;
                }
                status
            },
        )
}

/// An object's JSON with `apiVersion` and `kind`, which servers leave out of list items.
pub(crate) fn with_kind<'a>(raw: &'a [u8], api_version: &str, kind: &str) -> Cow<'a, [u8]> {
    if raw.starts_with(b"{\"apiVersion\"")
        || raw.starts_with(b"{\"kind\"")
        || !raw.starts_with(b"{")
        || raw == b"{}"
    {
        return Cow::Borrowed(raw);
    }
    let mut out = format!("{{\"apiVersion\":\"{api_version}\",\"kind\":\"{kind}\",").into_bytes();
    out.extend_from_slice(&raw[1..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_added_to_an_object_without_one() {
        let with =
            |raw: &str| String::from_utf8(with_kind(raw.as_bytes(), "v1", "Pod").into_owned()).unwrap();
        assert_eq!(with(r#"{"metadata":{}}"#), r#"{"apiVersion":"v1","kind":"Pod","metadata":{}}"#);
        assert_eq!(with(r#"{"kind":"X","apiVersion":"y"}"#), r#"{"kind":"X","apiVersion":"y"}"#);
    }
}
