//! The message that is stored: an encrypted value with the encrypted key or seed that encrypted it.

use std::{collections::BTreeMap, fmt::Write as _};

use k1s_object::{field::Check, names};
use prost::Message as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::error::Failure;

const MAX_ANNOTATIONS: usize = 32 << 10;
const MAX_KEY_ID: usize = 1 << 10;
const MAX_SOURCE: usize = 1 << 10;

/// What the source of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum SourceType {
    /// The key itself.
    AesGcmKey = 0,
    /// The seed that keys are derived from.
    HkdfSha256XnonceAesGcmSeed = 1,
}

/// `v2.EncryptedObject`
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct EncryptedObject {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) encrypted_data: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(super) key_id: String,
    /// The encrypted key or seed.
    #[prost(bytes = "vec", tag = "3")]
    pub(super) source: Vec<u8>,
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub(super) annotations: BTreeMap<String, Vec<u8>>,
    #[prost(enumeration = "SourceType", tag = "5")]
    pub(super) source_type: i32,
}

impl EncryptedObject {
    /// Whether both were encrypted with the same key or seed.
    pub(super) fn has_same_source(&self, other: &EncryptedObject) -> bool {
        self.source == other.source
            && self.key_id == other.key_id
            && self.source_type == other.source_type
            && self.annotations == other.annotations
    }

    /// Identifies its key or seed, and all that the plugin is told about it.
    pub(super) fn source_key(&self) -> Vec<u8> {
        EncryptedObject { encrypted_data: Vec::new(), ..self.clone() }.encode_to_vec()
    }
}

/// Decodes and validates a stored message.
pub(super) fn decode(bytes: &[u8]) -> Result<EncryptedObject, Failure> {
    let object = EncryptedObject::decode(bytes)
        .map_err(|error| Failure::value(format!("proto: cannot parse invalid wire-format data: {error}")))?;
    if object.encrypted_data.is_empty() {
        return Err(Failure::value("encrypted data is empty"));
    }
    validate(&object).map_err(Failure::Value)?;
    Ok(object)
}

/// Validates everything but the data.
pub(super) fn validate(object: &EncryptedObject) -> Result<(), String> {
    if SourceType::try_from(object.source_type).is_err() {
        return Err(format!("unknown encryptedDEKSourceType: {}", object.source_type));
    }
    let source = object.source.len();
    if source == 0 {
        return Err("failed to validate encrypted DEK source: encrypted DEK source is empty".into());
    }
    if source > MAX_SOURCE {
        return Err(format!(
            "failed to validate encrypted DEK source: encrypted DEK source is {source} bytes, which exceeds the max size of \
             {MAX_SOURCE}"
        ));
    }
    validate_key_id(&object.key_id).map_err(|why| format!("failed to validate key id: {why}"))?;
    validate_annotations(&object.annotations).map_err(|why| format!("failed to validate annotations: {why}"))
}

pub(super) fn validate_key_id(key_id: &str) -> Result<(), String> {
    match key_id.len() {
        0 => Err("keyID is empty".into()),
        length if length > MAX_KEY_ID => {
            Err(format!("keyID is {length} bytes, which exceeds the max size of {MAX_KEY_ID}"))
        }
        _ => Ok(()),
    }
}

fn validate_annotations(annotations: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
    let size: usize = annotations.iter().map(|(name, value)| name.len() + value.len()).sum();
    let names: Vec<Value> = annotations.keys().map(|name| name.as_str().into()).collect();
    let check = Check::new();
    names.iter().for_each(|name| names::is_fully_qualified_domain_name(check.at("annotations", Some(name))));
    let mut errors: Vec<String> = check.take().iter().map(ToString::to_string).collect();
    if size > MAX_ANNOTATIONS {
        errors.push(format!(
            "total size of annotations is {size}, which exceeds the max size of {MAX_ANNOTATIONS}"
        ));
    }
    match errors.len() {
        0 => Ok(()),
        1 => Err(errors.concat()),
        _ => Err(format!("[{}]", errors.join(", "))),
    }
}

/// A text as logs show it, because a key's id may be confidential.
pub(super) fn hash_of(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let mut out = String::from("sha256:");
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(out, "{byte:02x}");
    }
    out
}
