//! Parses the method and URI of a request: tenant, path, query, verb.

mod info;
mod path;
mod query;
mod verb;

pub(crate) use info::RequestInfo;
pub(crate) use path::{Path, ResourcePath, decode_path, escape_path, project_of_host, unescape};
pub(crate) use query::Query;
pub(crate) use verb::Verb;
