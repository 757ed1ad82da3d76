//! What a change of an object needs at least: to read the configuration or the patch, to read the object as it is, and to write and
//! hash what becomes of it. Nothing is checked, defaulted or stored, and nobody owns anything.

use std::hash::{DefaultHasher, Hasher as _};

use bytes::Bytes;
use serde_json::Value;

use crate::Failure;

pub(super) struct Applies {
    /// An object, and the same one with a field changed.
    object: Bytes,
    changed: Bytes,
    created: Value,
}

impl Applies {
    pub(super) fn new(object: Bytes, changed: Bytes) -> Result<Applies, Failure> {
        Ok(Applies { created: serde_json::from_slice(&object)?, object, changed })
    }

    /// The answer to an apply at a path: the name and the replicas say which of the measured ones it is.
    pub(super) fn answer(&self, path: &str, config: &[u8]) -> serde_json::Result<(u16, Bytes)> {
        let config: Value = serde_json::from_slice(config)?;
        if path.contains("/new-") {
            return Ok((201, encode(&self.created)?));
        }
        let replicas = config["spec"]["replicas"].clone();
        if self.created["spec"]["replicas"] == replicas {
            let live: Value = serde_json::from_slice(&self.object)?;
            // Read, so that reading is not left out: nothing has changed, and nothing is written.
            return Ok((200, if live.is_object() { self.object.clone() } else { Bytes::new() }));
        }
        let mut live: Value = serde_json::from_slice(&self.changed)?;
        live["spec"]["replicas"] = replicas;
        Ok((200, encode(&live)?))
    }
}

/// Merge patches of a status.
pub(super) struct Statuses {
    custom: Bytes,
    deployment: Bytes,
}

impl Statuses {
    pub(super) fn new(custom: Bytes, deployment: Bytes) -> Statuses {
        Statuses { custom, deployment }
    }

    /// The answer to a merge patch at a path.
    pub(super) fn answer(&self, path: &str, patch: &[u8]) -> serde_json::Result<Bytes> {
        let mut patch: Value = serde_json::from_slice(patch)?;
        let live = if path.contains("/deployments/") { &self.deployment } else { &self.custom };
        let mut live: Value = serde_json::from_slice(live)?;
        if let (Some(live), Some(patch)) = (live["status"].as_object_mut(), patch["status"].as_object_mut()) {
            live.extend(std::mem::take(patch));
        }
        encode(&live)
    }
}

/// Writes an object, as a server has to in order to store it and to tell its watchers.
fn encode(object: &Value) -> serde_json::Result<Bytes> {
    let bytes = serde_json::to_vec(object)?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&bytes);
    std::hint::black_box(hasher.finish());
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_as_long_as_that_of_a_server() {
        let object =
            |replicas: u64| Bytes::from(format!(r#"{{"spec":{{"replicas":{replicas}}},"status":{{}}}}"#));
        let applies = Applies::new(object(3), object(4)).unwrap();
        let config = |replicas: u64| format!(r#"{{"spec":{{"replicas":{replicas}}}}}"#);
        let answer = |path: &str, replicas| applies.answer(path, config(replicas).as_bytes()).unwrap();
        assert_eq!(answer("/deployments/new-000001", 3), (201, object(3)));
        assert_eq!(answer("/deployments/d-000001", 3), (200, object(3)));
        assert_eq!(answer("/deployments/d-000001", 7), (200, object(7)));
        assert!(applies.answer("/deployments/d-000001", b"no: JSON").is_err());
    }

    #[test]
    fn a_status_is_merged() {
        let object = |kind: &str, replicas: u64| {
            format!(r#"{{"kind":"{kind}","status":{{"replicas":{replicas},"phase":"x"}}}}"#)
        };
        let statuses = Statuses::new(object("Widget", 1).into(), object("Deployment", 1).into());
        let answer = |path: &str| statuses.answer(path, br#"{"status":{"replicas":7}}"#).unwrap();
        assert_eq!(answer("/apis/x/v1/widgets/o-000001/status"), object("Widget", 7));
        assert_eq!(answer("/apis/apps/v1/deployments/o-000001/status"), object("Deployment", 7));
    }
}
