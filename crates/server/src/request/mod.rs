//! What a request asks for, by its method and URI alone: tenant, path, query, verb.

mod info;
mod path;
mod query;
mod verb;

pub(crate) use info::RequestInfo;
pub(crate) use path::{Path, ResourcePath, unescape};
pub(crate) use query::Query;
pub(crate) use verb::Verb;
