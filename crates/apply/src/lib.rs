//! Server-side apply, without I/O: field sets, structured merge and managed fields, with the results of kube-apiserver.
//!
//! The parts, each using only those before it:
//!
//! - [`Path`] and [`FieldSet`]: paths to fields and sets of them, with their JSON form, `FieldsV1`.
//! - [`schema`]: what structured merge has to know about types.
//! - [`typed`]: values with a schema; validation, comparison, merge, removal and extraction.
//! - [`merge`]: ownership: what an update or an apply does to the fields of all managers, and conflicts.
//! - [`managed`]: `metadata.managedFields` of Kubernetes objects: [`managed::FieldManager`] is what a server calls.
//!
//! The crate reads no clock: the time of a change is an argument.
//!
//! ```
//! use k1s_apply::{managed::{FieldManager, Single}, schema::Schema};
//! use serde_json::json;
//!
//! // Without a schema, maps are merged and lists are replaced.
//! let schema = Schema::new();
//! let versions = Single::new("example.com/v1", &schema, Schema::deduced());
//! let manager = FieldManager::new(&versions, "example.com/v1", "Widget", "2024-01-01T00:00:00Z");
//!
//! let config = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}});
//! let empty = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
//! let object = manager.apply(&empty, &config, "me", false)?.object;
//! assert_eq!(object["metadata"]["managedFields"][0]["fieldsV1"], json!({"f:spec": {".": {}, "f:size": {}}}));
//!
//! let other = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 2}});
//! let conflict = manager.apply(&object, &other, "you", false).unwrap_err();
//! assert_eq!(conflict.to_string(), "Apply failed with 1 conflict: conflict with \"me\": .spec.size");
//! # Ok::<(), k1s_apply::managed::ApplyError>(())
//! ```

mod fields_text;
mod fields_v1;
pub mod managed;
pub mod merge;
mod path;
pub mod schema;
mod set;
pub mod typed;
mod value;

pub use fields_v1::FieldsError;
pub use path::{Path, PathElement};
pub use set::FieldSet;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
