//! Patches: [JSON Patch](json), [JSON Merge Patch](merge) and [strategic merge patch](strategic), as
//! kube-apiserver applies them. They operate on values only; authorization and validation are up to the caller.
//!
//! A failed patch leaves the document partially changed: patch a copy.

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

/// The reason why a patch was rejected, as far as it affects the response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The body is not JSON: 400, before the object is looked up.
    #[error("invalid JSON patch")]
    Syntax,
    /// JSON, but not a patch of this type: 400 with this message, after the object was found.
    #[error("{0}")]
    Shape(String),
    /// A JSON Patch with this many operations: 413.
    #[error(
        "Request entity too large: The allowed maximum operations in a JSON patch is {max}, got {0}",
        max = json::MAX_OPERATIONS
    )]
    TooManyOperations(usize),
    /// It cannot be applied to this object: 422. Clients get a general message, this one is for logs.
    #[error("{0}")]
    Apply(String),
    /// A test of a JSON Patch at this path fails: 422, too.
    #[error("testing value {0} failed: test failed")]
    Test(String),
    /// A case that kube-apiserver does not handle: 500 with this message and no reason.
    #[error("{0}")]
    Internal(String),
}

impl PatchError {
    /// The response.
    pub fn to_status(&self) -> Status {
        match self {
            PatchError::Syntax | PatchError::Shape(_) => Status::bad_request(self.to_string()),
            PatchError::TooManyOperations(_) => Status::new(413, "RequestEntityTooLarge", self.to_string()),
            PatchError::Apply(_) | PatchError::Test(_) => {
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

/// Removes keys, keeping the order of the others. Shifting the map for each of many keys would be quadratic.
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
