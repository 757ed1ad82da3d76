//! What a request asks for, by its method and URI alone: tenant, path, query, verb.

mod info;
mod path;
mod query;

pub(crate) use info::{RequestInfo, method_verb};
pub(crate) use path::{Path, ResourcePath, unescape};
pub(crate) use query::Query;
