//! Patches: [JSON Patch](json), [JSON Merge Patch](merge) and [strategic merge patch](strategic), as kube-apiserver
//! applies them. All of it works on values alone; who may patch what, and what comes of it, is decided elsewhere.
//!
//! When a patch fails, the document it was applied to is left half changed: patch a copy.

mod go;
mod leftover;
mod lists;
mod operations;

pub mod json;
pub mod merge;
pub mod strategic;

pub use go::printed;

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::status::{Details, Status};

/// Why a patch was refused, as far as the answer depends on it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The body is not JSON: 400, even before the object is looked for.
    #[error("invalid JSON patch")]
    Syntax,
    /// JSON, but not of the form this kind of patch has: 400 with these words, once the object was found.
    #[error("{0}")]
    Shape(String),
    /// A JSON Patch with this many operations: 413.
    #[error(
        "Request entity too large: The allowed maximum operations in a JSON patch is {max}, got {0}",
        max = json::MAX_OPERATIONS
    )]
    TooManyOperations(usize),
    /// It does not apply to this object: 422. Clients get a general sentence, these words are for logs.
    #[error("{0}")]
    Apply(String),
    /// What the real server does not expect: 500 with these words and no reason.
    #[error("{0}")]
    Internal(String),
}

impl PatchError {
    /// The answer to the request.
    pub fn to_status(&self) -> Status {
        match self {
            PatchError::Syntax | PatchError::Shape(_) => Status::bad_request(self.to_string()),
            PatchError::TooManyOperations(_) => Status::new(413, "RequestEntityTooLarge", self.to_string()),
            PatchError::Apply(_) => {
                Status::new(422, "Invalid", "the server rejected our request due to an error in our request")
                    .with(Details::default())
            }
            PatchError::Internal(_) => Status::new(500, "", self.to_string()),
        }
    }
}

impl From<PatchError> for Status {
    fn from(error: PatchError) -> Status {
        error.to_status()
    }
}

/// Removes keys, and keeps the order of the others. To close the gap behind each of many keys would take too long.
fn remove_all(map: &mut Map<String, Value>, keys: &[String]) {
    if keys.len() <= 8 {
        for key in keys {
            map.shift_remove(key);
        }
    } else {
        let keys: HashSet<&str> = keys.iter().map(String::as_str).collect();
        map.retain(|key, _| !keys.contains(key.as_str()));
    }
}
